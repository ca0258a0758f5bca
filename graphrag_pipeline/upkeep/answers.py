"""Paid answers: those that the index still holds, and those that go with what they were made from.

A request is kept as a hash alone, so nothing in the cache says which documents it quoted. What an
answer was bought for does (:mod:`graphrag_pipeline.llm.answer_purposes`): a chunk, or a hash of all
that a description, a report or a cluster was made from. Where that is in the index, so is
everything the answer tells of. Any other answer goes: those to questions, those of evaluations, and
those that an older program has kept. What goes is taken out of the folders of shared answers, too
(``llm.shared_cache``), but not out of the home of another index: its own purge does that.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import duckdb

from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm.batching.records import keep_no_answers
from graphrag_pipeline.llm.cache import (
    VectorSource,
    drop,
    held_keys,
)
from graphrag_pipeline.llm.configured import all_prices, calls_place, model_options
from graphrag_pipeline.llm.database import CallTables, Write, reading
from graphrag_pipeline.llm.embeddings import pieces
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.structures.registry import made_vector_tables
from graphrag_pipeline.structures.vector_tables import texts_of
from graphrag_pipeline.upkeep.tables import ERROR_TAKEN_OUT

_PURPOSES = """
SELECT id FROM chunks UNION SELECT input_hash FROM description_summaries UNION
SELECT context_hash FROM hierarchy_reports UNION SELECT hash FROM staging.hirag_summaries UNION
SELECT value FROM meta
"""
_CHUNKS_OF = """
SELECT c.id FROM chunks c JOIN documents d ON d.id = c.document_id WHERE d.source = ?
"""
# Summaries of RAPTOR's clusters have no hash in the index: the answer itself is their text.
_TEXTS = "SELECT text FROM raptor_nodes"
_TITLES = "SELECT DISTINCT title FROM entity_mentions UNION SELECT text FROM raptor_nodes"
_SHARED_TO_DROP = """
SELECT place, key FROM shared_entries WHERE key NOT IN (SELECT key FROM responses)
AND key NOT IN (SELECT key FROM embeddings) ORDER BY place
"""
_SHARED_PLACES = "SELECT DISTINCT place FROM shared_entries ORDER BY place"
_FORGET_SHARED = "DELETE FROM shared_entries WHERE place = $1 AND key = $2"
_ANSWERS = "SELECT key, model, text, made_for, prompt_tokens, completion_tokens FROM responses"
_TAKE_OUT_ERRORS = Write(
    "UPDATE llm_calls SET error = $1 WHERE error IS NOT NULL", [(ERROR_TAKEN_OUT,)]
)
_ROWS_AT_ONCE = 500


@dataclass(frozen=True)
class KeptAnswers:
    """Parts of the cache that stay and that go. ``cost`` is what the latter cost, where known."""

    kept: int = 0
    dropped: int = 0
    cost: float | None = 0.0
    vectors_kept: int = 0
    vectors_dropped: int = 0
    shared_dropped: int = 0
    """Answers and vectors in folders that indexes share: they are counted there once more."""


@dataclass(frozen=True)
class _Wanted:
    """Contents of the index: by purpose, by text, and the keys of the vectors of its texts."""

    purposes: Collection[str]
    texts: Collection[str]
    vectors: Collection[bytes]


def unused_answers(workspace: Workspace, removed: Collection[str] = ()) -> KeptAnswers:
    """Return what :func:`drop_unused` would drop, but for what follows from ``removed`` files."""
    with reading(calls_place(workspace.settings)) as calls:
        if calls is None:
            return KeptAnswers()
        return _sorted_out(calls, _wanted(workspace, removed), workspace.settings)[0]


def drop_unused(workspace: Workspace) -> KeptAnswers:
    """Remove from the cache, and from its file, all that the index does not hold.

    What was spent stays in the ledger, without the words of errors. Raises StorageError when the
    file cannot be written, or another process does not let go of it.
    """
    with reading(calls_place(workspace.settings)) as calls:
        if calls is None:
            return KeptAnswers()
        summary, answers, vectors = _sorted_out(calls, _wanted(workspace), workspace.settings)
        # What is still on its way in batches is not kept unless it is asked for again.
        awaited = [keep_no_answers()] if isinstance(calls_place(workspace.settings), Path) else []
        gone = [drop("responses", answers), drop("embeddings", vectors), _TAKE_OUT_ERRORS]
        calls.forget([*gone, *awaited])
        shared = _drop_shared(calls)
    return replace(summary, shared_dropped=shared)


def shared_elsewhere(workspace: Workspace) -> list[str]:
    """Return the places with shared answers of this index that a purge of it does not reach."""
    with reading(calls_place(workspace.settings)) as calls:
        rows = calls.read(_SHARED_PLACES) if calls is not None else []
    return [place for (place,) in rows if not _is_within_reach(Home(Path(place)))]


def _is_within_reach(home: Home) -> bool:
    """Whether a place is a folder of shared answers that is there, and no home of an index."""
    return home.calls.is_file() and not (home.index.is_file() or home.published.is_file())


def _drop_shared(calls: CallTables) -> int:
    """Remove from the folders of shared answers what the own cache has not; return how many."""
    n_dropped = 0
    noted = calls.read(_SHARED_TO_DROP)
    for place, rows in itertools.groupby(noted, key=itemgetter(0)):
        keys = [key for _, key in rows]
        home = Home(Path(place))
        if not _is_within_reach(home):
            continue
        with reading(home.folder) as shared:
            assert shared is not None
            tables = ("responses", "embeddings")
            n_dropped += sum(len(held_keys(shared, table, keys)) for table in tables)
            shared.forget([drop(table, keys) for table in tables])
        calls.commit([[Write(_FORGET_SHARED, [(place, key) for key in keys])]])
    return n_dropped


def _sorted_out(
    calls: CallTables, wanted: _Wanted, settings: Settings
) -> tuple[KeptAnswers, list[bytes], list[bytes]]:
    """Return a summary, the keys of the answers to drop, and those of the vectors."""
    prices, cost, n_answers = all_prices(settings), 0.0, 0
    answers: list[bytes] = []
    for key, model, text, purpose, prompt, completion in _in_parts(calls, _ANSWERS):
        n_answers += 1
        if purpose not in wanted.purposes and text.strip() not in wanted.texts:
            answers.append(key)
            price = prices.cost(model, prompt, completion)
            cost = None if price is None or cost is None else cost + price
    keys = [key for (key,) in _in_parts(calls, "SELECT key FROM embeddings")]
    vectors = [key for key in keys if key not in wanted.vectors]
    going = {*answers, *vectors}
    notes = calls.read("SELECT place, key FROM shared_entries")
    reached = {place for place, _ in notes if _is_within_reach(Home(Path(place)))}
    stays = {key for (key,) in calls.read("SELECT key FROM responses")} | {*keys}
    summary = KeptAnswers(
        kept=n_answers - len(answers),
        dropped=len(answers),
        cost=cost,
        vectors_kept=len(keys) - len(vectors),
        vectors_dropped=len(vectors),
        shared_dropped=sum(
            place in reached and (key in going or key not in stays) for place, key in notes
        ),
    )
    return summary, answers, vectors


def _in_parts(calls: CallTables, select: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table by key, some at a time."""
    last, after = b"", ">="
    while part := calls.read(
        f"{select} WHERE key {after} $1 ORDER BY key LIMIT $2", (last, _ROWS_AT_ONCE)
    ):
        yield from part
        last, after = part[-1][0], ">"


def _wanted(workspace: Workspace, removed: Collection[str] = ()) -> _Wanted:
    settings = workspace.settings
    with workspace.store.read() as con:
        purposes = _values(con, _PURPOSES)
        for uri in removed:
            purposes -= {id for (id,) in con.execute(_CHUNKS_OF, [uri]).fetchall()}
        texts = {text.strip() for text in _values(con, _TEXTS)}
        embedded: set[str] = set()
        if settings.embeddings.embedder == "llm":
            embedded = _values(con, _TITLES)
            for table in made_vector_tables(con, settings):
                embedded.update(texts_of(con, table))
    return _Wanted(purposes, texts, _vector_keys(settings, embedded))


def _values(con: duckdb.DuckDBPyConnection, query: str) -> set[str]:
    return {value for (value,) in con.execute(query).fetchall()}


def _vector_keys(settings: Settings, texts: Collection[str]) -> set[bytes]:
    if not texts:
        return set()
    options = model_options(settings, "embeddings")
    source = VectorSource(options.endpoint, options.embedding_model, options.embedding_dimensions)
    most = options.embedding_max_tokens
    return {
        key for text in texts for key in source.keys(piece.text for piece in pieces(text, most))
    }
