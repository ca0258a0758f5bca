"""The tables of resolution: what is folded into what, and what was looked at and left apart."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import duckdb
import polars as pl

from graphrag_pipeline.core.settings import fingerprint
from graphrag_pipeline.graph.resolution.deciding import (
    Apart,
    completed,
    shared_documents,
    titles_of,
)
from graphrag_pipeline.graph.resolution.merging import Alias
from graphrag_pipeline.graph.resolution.pairs import Pair, as_json
from graphrag_pipeline.graph.resolution.splits import splits_state
from graphrag_pipeline.store.frames import value_of
from graphrag_pipeline.store.hashing import rows_hash
from graphrag_pipeline.store.index_store import get_meta, insert, replace_links, set_meta

_ALIASES = (
    "entity_id", "canonical_id", "title", "canonical_title", "type", "method", "rule",
    "confidence", "evidence",
)  # fmt: skip
_APART = (
    "one_id", "two_id", "one_title", "two_title", "method", "reason", "evidence",
)  # fmt: skip


_WORDS = "user_words"


def aliases_state(con: duckdb.DuckDBPyConnection) -> str:
    """Return a hash of what is folded into what, of what the user calls it and what he splits."""
    folded = rows_hash("entity_aliases", "entity_id, canonical_id")
    words = read_words(con)
    state = f"{value_of(con, f'SELECT {folded}')}{':' + fingerprint(words) if words else ''}"
    return f"{state}:{places}" if (places := splits_state(con)) else state


def write_words(con: duckdb.DuckDBPyConnection, words: Mapping[str, Mapping[str, str]]) -> None:
    """Keep the titles and types that the user has given, by the ids of their entities."""
    set_meta(con, _WORDS, as_json(words))


def read_words(con: duckdb.DuckDBPyConnection) -> dict[str, dict[str, str]]:
    """Return what :func:`write_words` has kept."""
    return json.loads(get_meta(con, _WORDS) or "{}")


def write_aliases(con: duckdb.DuckDBPyConnection, aliases: Sequence[Alias], within: str) -> None:
    """Make the aliases of those for whom the condition ``within`` holds exactly these.

    Only rows that differ are written.
    """
    shared = shared_documents(con, [_ids(alias.pair) for alias in aliases])
    rows = [
        (
            alias.entity.id, alias.canonical.id, alias.entity.title, alias.canonical.title,
            alias.entity.name.type, alias.pair.method, alias.pair.rule, alias.confidence,
            as_json({
                **completed(alias.pair.evidence, shared.get(_ids(alias.pair), 0)),
                **({"through": alias.through} if alias.through else {}),
            }),
        )
        for alias in aliases
    ]  # fmt: skip
    _replace(con, "entity_aliases", _ALIASES, rows, ("entity_id",), within)


def write_apart(con: duckdb.DuckDBPyConnection, apart: Sequence[Apart]) -> None:
    """Make the table of pairs that are kept apart hold exactly these."""
    ids = [pair[:2] for pair in apart]
    shared = shared_documents(con, ids)
    titles = titles_of(con, (id for pair in ids for id in pair))
    rows = [
        (
            one, two, titles[one], titles[two], method, reason,
            as_json(completed(json.loads(evidence), shared.get((one, two), 0))),
        )
        for one, two, method, reason, evidence in apart
    ]  # fmt: skip
    _replace(con, "entities_kept_apart", _APART, rows, ("one_id", "two_id"))


def _ids(pair: Pair) -> tuple[str, str]:
    return pair.one.id, pair.two.id


def _replace(
    con: duckdb.DuckDBPyConnection,
    table: str,
    names: Sequence[str],
    rows: Sequence[tuple[object, ...]],
    key: tuple[str, ...],
    within: str = "true",
) -> None:
    schema = {name: pl.Float64 if name == "confidence" else pl.String for name in names}
    con.execute(f"CREATE OR REPLACE TEMP TABLE wanted_{table} AS FROM {table} LIMIT 0")
    insert(con, f"wanted_{table}", pl.DataFrame(rows, schema=schema, orient="row"))
    replace_links(con, table, f"wanted_{table}", key, within)
