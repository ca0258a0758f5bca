"""Questions that are each about one document, asked of that document's own index.

RAG vs. GraphRAG (2502.11371) indexes each document of NQ, NovelQA and QMSum apart. The indexes lie
in the home of the index that has all documents, in a folder each, whose name is a hash of the
document and of what was extracted from it: another content is another index.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graphrag_evaluation.experiment import Condition, Experiment
from graphrag_evaluation.questions.documents import file_name
from graphrag_evaluation.questions.question import Question
from graphrag_pipeline.core.errors import InputError, StorageError
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.settings import Settings, fingerprint
from graphrag_pipeline.query.release import Release

EXTRACTED = (
    "extractions", "entity_mentions", "relationship_mentions", "claims", "chunk_names",
)  # fmt: skip
"""Tables of what was extracted from chunks, by ``chunk_id``."""
_DOCUMENTS = "SELECT id, uri, source, title, content_hash FROM documents ORDER BY uri"
_CHUNKS_OF = "SELECT document_id, count(*) AS n FROM chunks GROUP BY ALL"
_HASHES = """
SELECT document_id, list(h ORDER BY h) AS hashes FROM (
    SELECT c.document_id, '{table}' || md5(to_json(x)::VARCHAR) AS h
    FROM (SELECT * EXCLUDE (batch) FROM {table}) x JOIN chunks c ON c.id = x.chunk_id
    WHERE c.document_id IN (SELECT unnest($ids::JSON::VARCHAR[]))
) GROUP BY ALL
"""
_CALLS = """
SELECT stage, any_value(model) AS model, count(*) AS calls, sum(prompt_tokens) AS prompt,
       sum(completion_tokens) AS completion
FROM llm_calls WHERE error IS NULL AND batch IS NULL GROUP BY stage
"""


@dataclass(frozen=True)
class Apart:
    """A document with an index of its own: where it is, and the questions that ask about it."""

    id: str
    uri: str
    title: str
    folder: Path
    questions: frozenset[str]
    n_chunks: int

    @property
    def is_there(self) -> bool:
        """Whether something is published there."""
        return Home(self.folder).published.is_file()


def documents_asked(
    release: Release, questions: Sequence[Question], source: str, settings: Settings
) -> list[Apart]:
    """Return the documents that questions name, each with its questions.

    ``source`` is what the questions are from, for messages. Raises InputError, with the place,
    where a question names no document, one that is not in the index, or one of several.
    """
    rows = release.rows(_DOCUMENTS)
    known = _names(rows)
    asked: dict[str, set[str]] = {}
    for number, question in enumerate(questions, 1):
        place = f"{source}, {question.place or f'question {number}'}"
        asked.setdefault(_document(question, known, place), set()).add(question.id)
    counts = {row["document_id"]: row["n"] for row in release.rows(_CHUNKS_OF)}
    by_id = {row["id"]: row for row in rows}
    keys = _keys(release, [by_id[id] for id in asked])
    place = Home(settings.home_path).document_indexes
    return [
        Apart(
            id=id,
            uri=by_id[id]["uri"],
            title=by_id[id]["title"],
            folder=place / keys[id],
            questions=frozenset(ids),
            n_chunks=counts.get(id, 0),
        )
        for id, ids in asked.items()
    ]


def spread_over(experiment: Experiment, documents: Sequence[Apart]) -> Experiment:
    """Return an experiment whose conditions are each asked of each document's index.

    Of a document that has none yet, as while it is planned, they are asked of the index of all.
    Raises InputError for a condition that names an index itself.
    """
    conditions: list[Condition] = []
    for condition in experiment.conditions:
        if condition.given is not None:
            conditions.append(condition)
        elif condition.home or condition.release:
            raise InputError(
                f"{condition.name}: it names an index, and so cannot be asked of an index for "
                "each document: leave out home and release, or per_document"
            )
        else:
            conditions += [
                replace(
                    condition,
                    home=document.folder if document.is_there else None,
                    document=document.uri,
                    asks=document.questions,
                )
                for document in documents
            ]
    return replace(experiment, conditions=tuple(conditions))


def outdated_indexes(
    release: Release, folders: Iterable[Path], removed: Collection[str] = ()
) -> list[Path]:
    """Return the folders of documents that a release does not hold, or holds with other content.

    Documents of ``removed`` files count as gone.
    """
    folders = list(folders)
    if not folders:
        return []
    rows = [row for row in release.rows(_DOCUMENTS) if row["source"] not in removed]
    current = set(_keys(release, rows).values())
    return [folder for folder in folders if folder.name not in current]


def remove_indexes(folders: Iterable[Path]) -> None:
    """Remove folders of documents' indexes. Raises StorageError where one cannot be removed."""
    for folder in folders:
        try:
            shutil.rmtree(folder)
        except OSError as error:
            raise StorageError(f"cannot remove {folder}: {error.strerror or error}") from error


def calls_by_chunk(release: Release) -> list[tuple[str, str, float, float, float]]:
    """Return (stage, model, calls, prompt tokens, completion tokens) of what was written.

    All but extraction, by chunk of the index: what an index of a part takes, about.
    """
    ((chunks,),) = ((row["n"],) for row in release.rows("SELECT count(*) AS n FROM chunks"))
    rows = release.rows(_CALLS) if chunks else []
    numbers = ("calls", "prompt", "completion")
    return [
        (row["stage"], row["model"], *(row[number] / chunks for number in numbers)) for row in rows
    ]


def _keys(release: Release, rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the name of each document's index: a hash of its content and its extractions."""
    parts: dict[str, list[Any]] = {row["id"]: [row["id"], row["content_hash"]] for row in rows}
    for table in EXTRACTED:
        sql = _HASHES.format(table=table)
        for row in release.rows(sql, ids=list(parts)):
            parts[row["document_id"]].append(row["hashes"])
    return {id: fingerprint(*values) for id, values in parts.items()}


def _names(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, set[str]]]:
    """Return the ids of documents by each kind of name, the most exact first."""
    kinds: list[dict[str, set[str]]] = [{}, {}, {}, {}]
    for row in rows:
        file = row["uri"].rpartition("/")[2]
        names = (row["uri"], row["title"], file, file.rpartition(".")[0] or file)
        for kind, name in zip(kinds, names, strict=True):
            kind.setdefault(name, set()).add(row["id"])
    return kinds


def _document(question: Question, known: Sequence[Mapping[str, set[str]]], place: str) -> str:
    if not question.document:
        raise InputError(
            f"{place}: {question.text[:80]!r} names no document: give each question a field "
            "document, or ask all of one index (per_document = false)"
        )
    name = question.document
    for kind in known:
        ids = kind.get(name) or kind.get(file_name(name)) or set()
        if len(ids) == 1:
            return next(iter(ids))
        if ids:
            raise InputError(
                f"{place}: {len(ids)} documents are called {name!r}: name its uri, as "
                "graphrag-pipeline sql 'SELECT uri FROM documents' lists them"
            )
    raise InputError(
        f"{place}: no document {name!r} is in the index: index it first, or name it by uri, title "
        "or file name"
    )
