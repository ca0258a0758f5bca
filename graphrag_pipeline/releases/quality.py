"""Figures of what a model has made of a corpus, and the floor below which it is not published.

Figures are of the whole index, never of the latest files alone. What rules found, and what was
imported, is left out: rules quote the text by design. Descriptions are looked at in a sample, which
is always the same of the same index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import duckdb
import polars as pl

from graphrag_pipeline.core.text import counted
from graphrag_pipeline.llm.errors import GarbageError
from graphrag_pipeline.store.index_store import insert

FEW_CHUNKS: Final = 20
"""An index of no more chunks is published whatever its figures are: they say little of so few."""

_SAMPLE = 2000
_WORDS_OF_A_PHRASE = 5
_CHARS_OF_A_COPY = 40
_EXTRACTED = """
SELECT count(*), coalesce(sum(n_entities), 0)::BIGINT, coalesce(sum(n_relationships), 0)::BIGINT,
       count(*) FILTER (n_entities = 1), count(*) FILTER (status = 'cut')
FROM {extractions} WHERE extractor = 'llm' AND status <> 'failed'
"""
_DESCRIBED = """
WITH described AS (
    SELECT m.chunk_id, m.description FROM {entity_mentions} m
    SEMI JOIN (FROM {extractions} WHERE extractor = 'llm') e ON e.chunk_id = m.chunk_id
    WHERE m.description <> ''
    ORDER BY hash(m.chunk_id), m.chunk_id, m.title, m.description LIMIT $most
)
SELECT d.chunk_id, d.description, c.text FROM described d JOIN {chunks} c ON c.id = d.chunk_id
"""
_TABLES = ("extractions", "entity_mentions", "chunks")
_FINDINGS = """
SELECT count(*), count(*) FILTER (NOT contains(f.summary || f.explanation, '[Data:'))
FROM (SELECT unnest(findings) AS f FROM community_reports
      WHERE writer NOT IN ('extractive', 'import'))
"""


@dataclass(frozen=True, kw_only=True)
class ModelQuality:
    """Figures of what a model made: numbers a chunk, and shares from 0 to 1.

    ``single`` is the share of chunks with exactly one entity, ``cut`` of those whose answer was cut
    off. Of descriptions, ``copied`` are their text's beginning or most of it word for word,
    ``doubled`` are said of something else in the same answer too, and ``alike`` hold the commonest
    ``phrase``.
    ``unreferenced`` is the share of the reports' findings that name no record.
    """

    chunks: int
    entities_a_chunk: float
    relationships_a_chunk: float
    single: float
    cut: float
    copied: float
    doubled: float
    alike: float
    phrase: str
    findings: int
    unreferenced: float

    def figures(self) -> dict[str, Any]:
        """Return the figures as plain values, rounded."""
        values = asdict(self)
        return {k: round(v, 3) if isinstance(v, float) else v for k, v in values.items()}


def model_quality(con: duckdb.DuckDBPyConnection) -> ModelQuality | None:
    """Return the figures of an index, None where a model made nothing of it."""
    return _quality_of(con, {table: table for table in _TABLES}, {}, _FINDINGS)


def batch_quality(
    con: duckdb.DuckDBPyConnection, of_batch: Callable[[str], str], batch: str
) -> ModelQuality | None:
    """Return the figures of the extractions of a batch, None where a model made none.

    ``of_batch`` is the query of a table's rows of the batch ``$key``.
    """
    tables = {table: f"({of_batch(table)})" for table in _TABLES}
    return _quality_of(con, tables, {"key": batch}, "SELECT 0, 0")


def _quality_of(
    con: duckdb.DuckDBPyConnection, tables: Mapping[str, str], of: Mapping[str, str], findings: str
) -> ModelQuality | None:
    row = con.execute(_EXTRACTED.format(**tables), of).fetchone()
    chunks, entities, relationships, single, cut = row or (0,) * 5
    n_findings, bare = con.execute(findings).fetchone() or (0, 0)
    if not chunks and not n_findings:
        return None
    rows = con.execute(_DESCRIBED.format(**tables), {"most": _SAMPLE, **of}).fetchall()
    said = [(chunk, _plain(description)) for chunk, description, _ in rows]
    copied = sum(_is_copy(text, whole) for (_, text), (*_, whole) in zip(said, rows, strict=True))
    doubled = sum(number for number in Counter(said).values() if number > 1)
    phrase, alike = _commonest_phrase([text for _, text in said])
    return ModelQuality(
        chunks=chunks,
        entities_a_chunk=_share(entities, chunks),
        relationships_a_chunk=_share(relationships, chunks),
        single=_share(single, chunks),
        cut=_share(cut, chunks),
        copied=_share(copied, len(rows)),
        doubled=_share(doubled, len(rows)),
        alike=_share(alike, len(rows)),
        phrase=phrase,
        findings=n_findings,
        unreferenced=_share(bare, n_findings),
    )


def record_quality(
    con: duckdb.DuckDBPyConnection, release: str, quality: ModelQuality | None
) -> None:
    """Write down the figures of an index as those of a release; none where no model was asked."""
    if quality:
        row = {"release": release, **asdict(quality)}
        # A phrase is text of documents that not all may see.
        insert(con, "model_quality", pl.DataFrame([row]).drop("phrase"))


def quality_line(figures: dict[str, Any]) -> str:
    """Return the figures as one line for a person."""
    parts = []
    if figures["chunks"]:
        parts.append(
            f"{figures['entities_a_chunk']:.1f} entities and "
            f"{figures['relationships_a_chunk']:.1f} relationships a chunk"
        )
        parts.append(f"{figures['cut']:.0%} of answers cut off")
        parts.append(
            f"of descriptions {figures['copied']:.0%} copied from their text, "
            f"{figures['doubled']:.0%} doubled in an answer, {figures['alike']:.0%} with one phrase"
        )
    if figures["findings"]:
        parts.append(f"{figures['unreferenced']:.0%} of findings without a reference")
    return "; ".join(parts)


def check_floor(quality: ModelQuality | None, most: float) -> None:
    """Raise GarbageError where what a model extracted is not worth publishing.

    ``most`` is the share of it that may be wrong in one and the same way; 1 lets all through.
    """
    if quality is None or quality.chunks <= FEW_CHUNKS or most >= 1:
        return
    reasons = list(_below_floor(quality, most))
    if reasons:
        raise GarbageError(
            f"not published: of {counted(quality.chunks, 'chunk')} that the model extracted, "
            f"{'; '.join(reasons)}. Answers that are paid for stay. Take a larger model or "
            'extraction.extractor = "nlp" (rules) and run again, or set releases.max_garbage_share '
            "= 1 to publish it as it is; readers keep the last release"
        )


def _below_floor(quality: ModelQuality, most: float) -> Iterator[str]:
    if not quality.relationships_a_chunk:
        yield "none has a relationship"
    if quality.single > most:
        yield f"{quality.single:.0%} have exactly one entity"
    if quality.copied > most:
        yield f"{quality.copied:.0%} of the descriptions only copy the text"
    if quality.alike > most:
        yield f"{quality.alike:.0%} of the descriptions hold the same {_WORDS_OF_A_PHRASE} words"


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def _is_copy(description: str, text: str) -> bool:
    """Whether a description is the beginning of its text, or most of it: not a phrase quoted."""
    whole, begin = _plain(text), description.rstrip(".…")
    if len(begin) < _CHARS_OF_A_COPY:
        return False
    return whole.startswith(begin) or (2 * len(begin) > len(whole) and begin in whole)


def _commonest_phrase(descriptions: Sequence[str]) -> tuple[str, int]:
    """Return the words in a row that most descriptions hold, and how many do."""
    counts: Counter[str] = Counter()
    for description in descriptions:
        words = description.split()
        starts = range(len(words) - _WORDS_OF_A_PHRASE + 1)
        counts.update({" ".join(words[n : n + _WORDS_OF_A_PHRASE]) for n in starts})
    return min(counts.items(), key=lambda item: (-item[1], item[0]), default=("", 0))
