"""The tables of resolution: what is folded into what, and what was looked at and left apart."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import duckdb
import polars as pl

from graphrag_pipeline.core.settings import fingerprint
from graphrag_pipeline.graph.resolution.merging import Alias
from graphrag_pipeline.graph.resolution.pairs import Pair
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
    """Return a hash of what is folded into what, and of what the user calls it."""
    folded = rows_hash("entity_aliases", "entity_id, canonical_id")
    row = con.execute(f"SELECT {folded}").fetchone()
    words = read_words(con)
    return f"{row[0] if row else ''}{':' + fingerprint(words) if words else ''}"


def write_words(con: duckdb.DuckDBPyConnection, words: Mapping[str, Mapping[str, str]]) -> None:
    """Keep the titles and types that the user has given, by the ids of their entities."""
    set_meta(con, _WORDS, _json(words))


def read_words(con: duckdb.DuckDBPyConnection) -> dict[str, dict[str, str]]:
    """Return what :func:`write_words` has kept."""
    return json.loads(get_meta(con, _WORDS) or "{}")


def write_aliases(
    con: duckdb.DuckDBPyConnection, aliases: Sequence[Alias], apart: Sequence[Pair]
) -> None:
    """Make both tables hold exactly this, writing only rows that differ."""
    rows = [
        (
            alias.entity.id, alias.canonical.id, alias.entity.title, alias.canonical.title,
            alias.entity.name.type, alias.pair.method, alias.pair.rule, alias.confidence,
            _json({**alias.pair.evidence, **({"through": alias.through} if alias.through else {})}),
        )
        for alias in aliases
    ]  # fmt: skip
    _replace(con, "entity_aliases", _ALIASES, rows, ("entity_id",))
    pairs = [
        (
            pair.one.id, pair.two.id, pair.one.title, pair.two.title, pair.method, pair.rule,
            _json(pair.evidence),
        )
        for pair in apart
    ]  # fmt: skip
    _replace(con, "entities_kept_apart", _APART, pairs, ("one_id", "two_id"))


def _replace(
    con: duckdb.DuckDBPyConnection,
    table: str,
    names: Sequence[str],
    rows: Sequence[tuple[object, ...]],
    key: tuple[str, ...],
) -> None:
    schema = {name: pl.Float64 if name == "confidence" else pl.String for name in names}
    con.execute(f"CREATE OR REPLACE TEMP TABLE wanted_{table} AS FROM {table} LIMIT 0")
    insert(con, f"wanted_{table}", pl.DataFrame(rows, schema=schema, orient="row"))
    replace_links(con, table, f"wanted_{table}", key)


def _json(evidence: object) -> str:
    return json.dumps(evidence, ensure_ascii=False, sort_keys=True)
