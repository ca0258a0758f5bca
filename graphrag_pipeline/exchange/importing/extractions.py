"""Extractions made elsewhere, in place of an extractor's.

A file of JSON lines, one passage a line::

    {"document": "Marie Curie", "text": "Marie Curie was born in Warsaw.",
     "entities": ["Marie Curie", {"title": "Warsaw", "type": "GEO", "description": "A city."}],
     "triples": [["Marie Curie", "was born in", "Warsaw"]]}

``text`` makes the passage a document of the index, with one chunk; ``document`` is its title.
Instead, ``chunk_id`` names a chunk that is in the index, or ``uri`` a document: its first chunk
that holds ``text`` is meant, or its only chunk. What was extracted from it before is replaced.

``entities`` are titles, or objects with ``title``, ``type`` and ``description``. ``triples`` (or
``relationships``) are [subject, predicate, object], or objects with ``source``, ``target``,
``description`` and ``weight``. Both may be missing.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import duckdb
import polars as pl

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.progress import report
from graphrag_pipeline.core.text import normalize_title
from graphrag_pipeline.exchange.importing.batch import (
    ImportedDocument,
    ImportResult,
    chunk_frame,
    save_manifest,
    stage_import,
    unique_uris,
)
from graphrag_pipeline.extraction.mentions import ENTITY_MENTIONS, RELATIONSHIP_MENTIONS, Extraction
from graphrag_pipeline.extraction.rules.sentences import sentence_spans
from graphrag_pipeline.ingest.reading.cleaning import clean_text, one_line
from graphrag_pipeline.store.frames import value_of
from graphrag_pipeline.store.index_store import IndexStore
from graphrag_pipeline.store.workspace import Workspace

UNTYPED = "CONCEPT"
_STEPS = 3
_MOST_WEIGHT = 1e9
# Chunks of the index, and those that the next merge of the graph takes in.
_CHUNKS = """
SELECT c.id, d.uri, c.text FROM chunks c JOIN documents d ON d.id = c.document_id UNION
SELECT c.id, d.uri, c.text FROM staging.chunks c JOIN (
    FROM documents UNION ALL BY NAME FROM staging.documents) d ON d.id = c.document_id
SEMI JOIN (SELECT batch FROM batch_stages WHERE stage = 'extractions' AND staged) s
    ON s.batch = c.batch
"""
_NAMED_CHUNKS = f"""
SELECT id, uri, text FROM ({_CHUNKS})
WHERE id IN (SELECT unnest($ids)) OR uri IN (SELECT unnest($uris)) ORDER BY id
"""


@dataclass(frozen=True)
class _Entity:
    title: str
    type: str
    description: str


@dataclass(frozen=True)
class _Triple:
    source: str
    target: str
    description: str
    weight: float
    type: str


_Found = TypeVar("_Found", _Entity, _Triple)


@dataclass(frozen=True, kw_only=True)
class _Line:
    """One usable line: what it tells of, and what it found there."""

    number: int
    title: str
    text: str
    chunk_id: str
    uri: str
    entities: tuple[_Entity, ...]
    triples: tuple[_Triple, ...]


_Passage = tuple[str, str, _Line]
"""A chunk's id and text, and the line that tells of it."""


def import_extractions(file: Path, workspace: Workspace) -> ImportResult:
    """Stage the extractions in a file of JSON lines; the next merge of the graph takes them in.

    All of it, or nothing. The ends of triples are entities even where not listed; an entity
    without a description is described by the first sentence that names it. A triple or entity
    that is malformed is counted and left out; a malformed line is left out with a warning. The
    same file name replaces the documents it brought before.

    Raises InputError if the file cannot be read or none of its lines can be used.
    """
    start = time.perf_counter()
    tally: Counter[str] = Counter()
    warnings: list[str] = []
    lines = list(_read(file, tally, warnings))
    report("import", 1, _STEPS)
    documents = _documents(file.stem, lines)
    passages = [
        *_own_passages(documents, lines),
        *_known_passages(workspace.store, lines, warnings),
    ]
    if not passages:
        raise InputError(f"{file} has no usable line: {'; '.join(warnings[:3]) or 'it is empty'}")
    extraction = _extraction(passages)
    chunks = chunk_frame(documents, workspace.settings.chunks.encoding)
    extracted = pl.Series([chunk for chunk, _, _ in passages], dtype=pl.String).unique(
        maintain_order=True
    )
    report("import", 2, _STEPS)
    with workspace.store.transaction() as con:
        batch = stage_import(con, workspace, file.stem, documents, chunks, extracted, extraction)
        staged = _count_staged(con, batch.key)
    save_manifest(workspace, batch.key)
    report("import", _STEPS, _STEPS)
    counts = {
        "documents": len(documents),
        "chunks": len(extracted),
        **staged,
        "self_relationships": len(extraction.relationships) - staged["relationship_mentions"],
        "malformed_lines": len(warnings),
        "malformed_entities": tally["entities"],
        "malformed_triples": tally["triples"],
    }
    return ImportResult(batch.key, counts, tuple(warnings), time.perf_counter() - start)


def _count_staged(con: duckdb.DuckDBPyConnection, batch: str) -> dict[str, int]:
    return {
        table: value_of(con, f"SELECT count(*) FROM staging.{table} WHERE batch = ?", [batch])
        for table in ("entity_mentions", "relationship_mentions")
    }


def _read(file: Path, tally: Counter[str], warnings: list[str]) -> Iterator[_Line]:
    try:
        with file.open("rb") as stream:
            for number, raw in enumerate(stream, 1):
                if raw.strip():
                    try:
                        yield _parse(raw, number, tally)
                    except (ValueError, RecursionError) as error:
                        warnings.append(f"line {number}: {_reason(error)}")
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from error


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
        return f"it is not JSON: {error}"
    return str(error)


def _parse(raw: bytes, number: int, tally: Counter[str]) -> _Line:
    contents = json.loads(raw.decode("utf-8-sig"))
    if not isinstance(contents, dict):
        raise ValueError("it is not a JSON object")
    text, chunk_id, uri = (_string(contents.get(name)) for name in ("text", "chunk_id", "uri"))
    if not (text or chunk_id or uri):
        raise ValueError("it has no text, chunk_id or uri")
    triples = [*_list(contents, "triples"), *_list(contents, "relationships")]
    return _Line(
        number=number,
        title=one_line(_string(contents.get("document"))) or f"passage {number}",
        text=text,
        chunk_id=chunk_id,
        uri=uri,
        entities=tuple(_well_formed(map(_entity, _list(contents, "entities")), "entities", tally)),
        triples=tuple(_well_formed(map(_triple, triples), "triples", tally)),
    )


def _list(entry: Mapping[str, object], name: str) -> list[object]:
    value = entry.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError(f"its {name} are not a list")
    return value


def _string(value: object) -> str:
    return clean_text(value) if isinstance(value, str) else ""


def _well_formed(
    items: Iterable[_Found | None], name: str, tally: Counter[str]
) -> Iterator[_Found]:
    for item in items:
        if item is None:
            tally[name] += 1
        else:
            yield item


def _entity(entry: object) -> _Entity | None:
    fields = entry if isinstance(entry, dict) else {"title": entry}
    title = one_line(_string(fields.get("title") or fields.get("name")))
    if not normalize_title(title):
        return None
    kind = one_line(_string(fields.get("type"))) or UNTYPED
    return _Entity(title, kind, _string(fields.get("description")))


def _triple(entry: object) -> _Triple | None:
    if isinstance(entry, dict):
        ends, about = (entry.get("source"), entry.get("target")), entry.get("description")
        weight, kind = entry.get("weight"), entry.get("type")
    elif isinstance(entry, list) and len(entry) == 3 and isinstance(entry[1], str):
        ends, about, weight = (entry[0], entry[2]), " ".join(map(str, entry)), None
        kind = entry[1]
    else:
        return None
    source, target = (one_line(_string(end)) for end in ends)
    if not (normalize_title(source) and normalize_title(target)):
        return None
    description, kind = (one_line(_string(text)) for text in (about, kind))
    return _Triple(source, target, description, _weight(weight), kind)


def _weight(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 1.0
    return float(value) if 0 < value < _MOST_WEIGHT else 1.0


def _is_new(line: _Line) -> bool:
    return not (line.chunk_id or line.uri)


def _documents(label: str, lines: Sequence[_Line]) -> list[ImportedDocument]:
    new = [line for line in lines if _is_new(line)]
    uris = unique_uris(label, (line.title for line in new))
    return [
        ImportedDocument(uri, line.title, line.text, ((0, len(line.text)),), {})
        for uri, line in zip(uris, new, strict=True)
    ]


def _own_passages(
    documents: Sequence[ImportedDocument], lines: Sequence[_Line]
) -> Iterator[_Passage]:
    new = (line for line in lines if _is_new(line))
    for document, line in zip(documents, new, strict=True):
        yield document.chunk_ids[0], line.text, line


def _known_passages(
    store: IndexStore, lines: Sequence[_Line], warnings: list[str]
) -> Iterator[_Passage]:
    existing = [line for line in lines if not _is_new(line)]
    if not existing:
        return
    names = {"ids": [line.chunk_id for line in existing], "uris": [line.uri for line in existing]}
    with store.read() as con:
        rows = con.execute(_NAMED_CHUNKS, names).fetchall()
    texts = {chunk_id: text for chunk_id, _, text in rows}
    of_uri: dict[str, list[str]] = {}
    for chunk_id, uri, _ in rows:
        of_uri.setdefault(uri, []).append(chunk_id)
    for line in existing:
        chunk_id = line.chunk_id if line.chunk_id in texts else _chunk_of(line, of_uri, texts)
        if chunk_id:
            yield chunk_id, texts[chunk_id], line
        else:
            label = f"chunk {line.chunk_id}" if line.chunk_id else f"such chunk of {line.uri}"
            warnings.append(f"line {line.number}: there is no {label} in the index")


def _chunk_of(
    line: _Line, of_uri: Mapping[str, Sequence[str]], texts: Mapping[str, str]
) -> str | None:
    chunks = of_uri.get(line.uri, []) if not line.chunk_id else []
    if not line.text:
        return chunks[0] if len(chunks) == 1 else None
    return next((chunk for chunk in chunks if line.text in texts[chunk]), None)


class _Evidence:
    """The sentences of a passage, asked for those that name something."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._spans = sentence_spans(text)
        self._folded = [text[start:end].casefold() for start, end in self._spans]

    def naming(self, *titles: str) -> tuple[int, int] | None:
        """Return the span of the first sentence that names all of these titles."""
        names = [title.casefold() for title in titles]
        for span, sentence in zip(self._spans, self._folded, strict=True):
            if all(_names(sentence, title) for title in names):
                return span
        return None

    def text_of(self, span: tuple[int, int] | None) -> str:
        return " ".join(self._text[span[0] : span[1]].split()) if span else ""


def _names(sentence: str, title: str) -> bool:
    start = sentence.find(title)
    while start >= 0:
        end = start + len(title)
        around = sentence[max(start - 1, 0) : start], sentence[end : end + 1]
        if not any(neighbour.isalnum() for neighbour in around):
            return True
        start = sentence.find(title, start + 1)
    return False


def _extraction(passages: Sequence[_Passage]) -> Extraction:
    entities: list[tuple[object, ...]] = []
    relationships: list[tuple[object, ...]] = []
    for chunk_id, text, line in passages:
        evidence = _Evidence(text)
        for entity in _entities_of(line):
            span = evidence.naming(entity.title)
            about = entity.description or evidence.text_of(span)
            place = span or (None, None)
            entities.append((chunk_id, entity.title, entity.type, about, *place))
        for triple in line.triples:
            place = evidence.naming(triple.source, triple.target) or (None, None)
            key = (triple.source, triple.target, triple.description, triple.weight)
            relationships.append((chunk_id, *key, *place, triple.type))
    return Extraction(
        pl.DataFrame(entities, schema=ENTITY_MENTIONS, orient="row"),
        pl.DataFrame(relationships, schema=RELATIONSHIP_MENTIONS, orient="row"),
    )


def _entities_of(line: _Line) -> Iterator[_Entity]:
    """Yield the entities listed, each once, then the ends of triples that were not."""
    listed = dict.fromkeys(line.entities)
    yield from listed
    titles = {normalize_title(entity.title) for entity in listed}
    for triple in line.triples:
        for end in (triple.source, triple.target):
            key = normalize_title(end)
            if key not in titles:
                titles.add(key)
                yield _Entity(end, UNTYPED, "")
