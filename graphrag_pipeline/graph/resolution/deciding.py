"""Decisions on who is who: the user's word, then rules, then the model where it is to be asked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import duckdb
import polars as pl

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.graph.resolution.blocks import decide_blocks
from graphrag_pipeline.graph.resolution.candidates import TitleVectors, find_alike
from graphrag_pipeline.graph.resolution.merging import Alias, Refusal, merge_pairs
from graphrag_pipeline.graph.resolution.names import conflict, take_apart
from graphrag_pipeline.graph.resolution.pairs import BY_FILE, SHARED, Entity, Pair, as_json
from graphrag_pipeline.graph.resolution.state import (
    add_keys,
    find_blocks,
    find_renamed,
    put_ids,
    slices,
    store_names,
    titled,
)
from graphrag_pipeline.graph.resolution.user_aliases import (
    NEVER,
    RENAME,
    SPLIT,
    TYPE,
    UserRow,
    connected,
)
from graphrag_pipeline.llm.configured import configured_embedder
from graphrag_pipeline.llm.embedders import Embedder, HashingEmbedder
from graphrag_pipeline.store.frames import put_rows
from graphrag_pipeline.store.index_store import insert

_MOST_APART = 1000
_MOST_PAIRS = 20_000
_BY_USER = "aliases.csv"

_EDGES = """
CREATE OR REPLACE TEMP TABLE merge_edges AS
SELECT one_id AS one, two_id AS two FROM staging.resolution_pairs WHERE confidence > 0 UNION ALL
SELECT one_id, two_id FROM told_pairs WHERE confidence > 0;
"""
_CHANGED_PAIRS = """
INSERT INTO scope SELECT unnest([one_id, two_id]) FROM staging.resolution_pairs
SEMI JOIN open_blocks USING (kind, key) WHERE confidence > 0
"""
_ALL_IN_SCOPE = """
CREATE OR REPLACE TEMP TABLE scope AS
SELECT unnest([one, two]) AS id FROM merge_edges UNION SELECT entity_id FROM entity_aliases UNION
SELECT unnest([one_id, two_id]) FROM staging.resolution_refusals
"""
_WIDER = """
INSERT INTO scope SELECT DISTINCT id FROM (
    SELECT two AS id FROM merge_edges WHERE one IN (SELECT id FROM scope) UNION ALL
    SELECT one FROM merge_edges WHERE two IN (SELECT id FROM scope))
WHERE id NOT IN (SELECT id FROM scope)
"""
_TO_MERGE = """
SELECT p.one_id, p.two_id, p.rule, p.confidence, p.evidence, a.title, a.type, b.title, b.type
FROM staging.resolution_pairs p SEMI JOIN scope s ON s.id = p.one_id
JOIN staging.resolution_names a ON a.id = p.one_id
JOIN staging.resolution_names b ON b.id = p.two_id WHERE confidence > 0 ORDER BY ALL
"""
_APART = f"""
WITH alike AS (
    SELECT one_id, two_id, rule, evidence, max(nearness) AS nearness
    FROM staging.resolution_pairs
    WHERE kind NOT IN ('spelling', 'plural', 'last', 'acronym') GROUP BY ALL
    ORDER BY nearness DESC, one_id, two_id LIMIT {_MOST_APART}),
listed AS (
    SELECT CASE method WHEN 'user' THEN 0 ELSE 2 END AS part, place::DOUBLE AS place, one_id,
           two_id, method, rule AS reason, evidence FROM told_pairs WHERE confidence = 0
    UNION ALL
    SELECT 1, -confidence, one_id, two_id, method, reason, evidence
    FROM staging.resolution_refusals
    UNION ALL
    SELECT CASE kind WHEN 'spelling' THEN 3 WHEN 'plural' THEN 4 WHEN 'last' THEN 5 ELSE 6 END, 0,
           one_id, two_id, 'rule', rule, evidence FROM staging.resolution_pairs
    WHERE confidence = 0 AND kind IN ('spelling', 'plural', 'last', 'acronym')
    UNION ALL
    SELECT 7, -nearness, one_id, two_id, 'rule', rule, evidence FROM alike),
open AS (
    SELECT l.*, least(one_id, two_id) AS low, greatest(one_id, two_id) AS high FROM listed l
    LEFT JOIN entity_aliases a ON a.entity_id = one_id
    LEFT JOIN entity_aliases b ON b.entity_id = two_id
    WHERE coalesce(a.canonical_id, one_id) <> coalesce(b.canonical_id, two_id)
      AND one_id IN (SELECT id FROM seen) AND two_id IN (SELECT id FROM seen)),
once AS (
    FROM open QUALIFY row_number() OVER (
        PARTITION BY low, high ORDER BY part, place, one_id, reason, evidence) = 1)
SELECT one_id, two_id, method, reason, evidence FROM once
ORDER BY part, place, low, high LIMIT $most
"""
_SHARED = """
WITH mentioned AS (
    SELECT DISTINCT m.entity_id AS id, c.document_id FROM next_entity_mentions m
    JOIN next_chunks c ON c.id = m.chunk_id
    WHERE m.entity_id IN (SELECT unnest([one_id, two_id]) FROM paired))
SELECT one_id, two_id, count(*) FROM (SELECT DISTINCT one_id, two_id FROM paired) p
JOIN mentioned a ON a.id = p.one_id
JOIN mentioned b ON b.id = p.two_id AND b.document_id = a.document_id GROUP BY ALL
"""
_DESCRIBED = """
SELECT entity_id, arg_max(description, (length(description), description))
FROM next_entity_mentions SEMI JOIN asked_ids ON asked_ids.id = entity_id GROUP BY entity_id
"""
_TOLD = {
    **dict.fromkeys(("one_id", "two_id", "method", "rule", "evidence"), pl.String),
    "confidence": pl.Float64,
    "place": pl.Int64,
}
Apart = tuple[str, str, str, str, str]
"""Ids of both, method, reason and evidence of a pair that is kept apart."""


def follow_mentions(
    con: duckdb.DuckDBPyConnection, settings: Settings, ahead: Mapping | None
) -> None:
    """Bring names, keys and pairs up to date with the mentions the next graph will see.

    Call it in a transaction, after ``look_at_mentions``. The table ``scope`` then holds whom that
    may concern. Without ``ahead``, names that are no more than alike are not looked for.
    """
    renamed = find_renamed(con, keep_imported=settings.resolution.method == "auto")
    vectors = None
    if ahead is not None:
        vectors = TitleVectors(con, resolution_embedder(settings), ahead)
    for rows in slices(renamed):
        add_keys(con, rows)
        if vectors:
            vectors.add_codes(rows)
    store_names(con)
    find_blocks(con)
    decide_blocks(con)
    if vectors:
        find_alike(con, vectors)
    con.execute(_CHANGED_PAIRS)


def user_words(user: Sequence[UserRow], canonical: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return what the user calls entities, and of what type he says they are, by their ids."""
    words: dict[str, dict[str, str]] = {}
    for row in user:
        if row.action == RENAME:
            words.setdefault(canonical.get(row.b_id, row.b_id), {})["title"] = row.b
        elif row.action == SPLIT:
            id = canonical.get(row.split_id, row.b_id)
            words.setdefault(id, {}).setdefault("title", row.b)
        elif row.action == TYPE:
            words.setdefault(canonical.get(row.a_id, row.a_id), {})["type"] = row.b.upper()
    return words


def user_pairs(con: duckdb.DuckDBPyConnection, user: Sequence[UserRow]) -> list[Pair]:
    """Return the pairs the user merges, and with confidence 0 those he keeps apart.

    A title nobody mentions still links.
    """
    ids = (id for row in user for id in (row.a_id, row.b_id, row.split_id))
    entity_of = entities_of(con, ids)

    def pair(row: UserRow, one: tuple[str, str], two: tuple[str, str], confidence: float) -> Pair:
        first, second = (
            entity_of.get(id) or Entity(id, take_apart(title, "")) for id, title in (one, two)
        )
        evidence = {"line": row.line, **({"note": row.note} if row.note else {})}
        if row.is_file:
            return Pair(first, second, BY_FILE, confidence, "rule", {**SHARED, "file": row.note})
        return Pair(first, second, _BY_USER, confidence, "user", evidence)

    pairs = []
    of_one_name: dict[str, dict[str, str]] = {}
    for row in user:
        a, b = (row.a_id, row.a), (row.b_id, row.b)
        if row.action == SPLIT:
            others = of_one_name.setdefault(row.a_id, {row.a_id: row.a})
            own = (row.split_id, row.a)
            pairs += [pair(row, own, other, 0.0) for other in others.items() if other[0] != own[0]]
            others[row.split_id] = row.a
            pairs.append(pair(row, own, b, 1.0))
        elif row.action != TYPE and row.a_id != row.b_id:
            pairs.append(pair(row, a, b, float(row.action != NEVER)))
    return pairs


def entities_of(con: duckdb.DuckDBPyConnection, ids: Iterable[str]) -> dict[str, Entity]:
    """Return those of some entities that are mentioned, by id."""
    put_ids(con, "wanted_ids", ids)
    rows = con.execute(titled("wanted_ids", keep_imported=False)).fetchall()
    return {id: Entity(id, take_apart(title, kind)) for id, title, kind, _ in rows}


def titles_of(con: duckdb.DuckDBPyConnection, ids: Iterable[str]) -> dict[str, str]:
    """Return the titles of some entities that are mentioned, by id."""
    put_ids(con, "asked_ids", ids)
    rows = con.execute(
        "SELECT id, title FROM staging.resolution_names SEMI JOIN asked_ids USING (id)"
    )
    titles = dict(rows.fetchall())
    missing = con.execute("FROM asked_ids ANTI JOIN staging.resolution_names USING (id)").fetchall()
    if missing:
        entities = entities_of(con, (id for (id,) in missing))
        titles |= {id: entity.title for id, entity in entities.items()}
    return titles


def merge_scope(
    con: duckdb.DuckDBPyConnection,
    told: Sequence[Pair],
    user: Sequence[UserRow],
    *,
    is_whole: bool,
) -> list[Alias]:
    """Return the aliases of those in ``scope``, which is widened to whom they are joined with.

    ``told`` are pairs of the user and the model. Of a whole scope everybody is part.
    """
    _put_told(con, told)
    con.execute(_EDGES)
    if is_whole:
        con.execute(_ALL_IN_SCOPE)
    while not is_whole and con.execute(_WIDER).fetchall() != [(0,)]:
        pass
    con.execute("DELETE FROM staging.resolution_refusals WHERE one_id IN (SELECT id FROM scope)")
    rows = con.sql(_TO_MERGE).pl()
    named = [row.b_id for row in user if row.action == SPLIT]
    named += [row.b_id for row in user if row.action == RENAME]
    never = [pair.ids for pair in told if pair.method == "user" and not pair.confidence]
    in_scope = _those_in(con, "scope", [pair.one.id for pair in told])
    joined = [pair for pair in told if pair.confidence and pair.one.id in in_scope]
    aliases: list[Alias] = []
    for part, own in _components(rows, joined):
        by_word = [pair for pair in own if pair.is_told]
        by_model = [pair for pair in own if not pair.is_told]
        merged, refusals = merge_pairs(by_word, never, [*_pairs(part), *by_model], named)
        aliases += merged
        _put_refusals(con, refusals)
    known = _those_in(con, "seen", [alias.entity.id for alias in aliases])
    return [alias for alias in aliases if alias.entity.id in known]


def _components(
    rows: pl.DataFrame, told: Sequence[Pair]
) -> Iterator[tuple[pl.DataFrame, list[Pair]]]:
    """Cut pairs into parts of bounded size that have no entity in common."""
    ends = pl.concat([rows["one_id"], pl.Series([pair.one.id for pair in told], dtype=pl.String)])
    others = pl.concat([rows["two_id"], pl.Series([pair.two.id for pair in told], dtype=pl.String)])
    groups = connected(zip(ends, others, strict=True))
    parts = (
        pl.DataFrame({"group": ends.replace_strict(groups, return_dtype=pl.String)})
        .with_row_index("place")
        .sort("group", "place")
        .with_columns(part=pl.int_range(pl.len()) // _MOST_PAIRS)
        .with_columns(part=pl.col("part").first().over("group"))
    )
    for part in parts.partition_by("part", maintain_order=True):
        places = part["place"].sort()
        own = [told[place] for place in (places.filter(places >= len(rows)) - len(rows))]
        yield rows[places.filter(places < len(rows))], own


def _pairs(rows: pl.DataFrame) -> list[Pair]:
    entities: dict[str, Entity] = {}
    pairs = []
    for one, two, rule, confidence, evidence, title, kind, other, other_kind in rows.iter_rows():
        for id, name, type_ in ((one, title, kind), (two, other, other_kind)):
            if id not in entities:
                entities[id] = Entity(id, take_apart(name, type_))
        pair = Pair(entities[one], entities[two], rule, confidence, evidence=json.loads(evidence))
        pairs.append(pair)
    return pairs


def left_apart(con: duckdb.DuckDBPyConnection, most: int = _MOST_APART) -> list[Apart]:
    """Return pairs that look alike and stay apart, the most important first."""
    return con.execute(_APART, {"most": most}).fetchall()


def pairs_to_ask(con: duckdb.DuckDBPyConnection, settings: Settings) -> list[Pair]:
    """Return the pairs that nothing speaks against, the most alike first, up to the limit."""
    rows = left_apart(con, 2**40)
    names = entities_of(con, (id for row in rows for id in row[:2]))
    open_pairs = (
        Pair(names[one], names[two], reason, evidence=json.loads(evidence))
        for one, two, method, reason, evidence in rows
        if method == "rule" and not conflict(names[one].name, names[two].name)
    )
    pairs = list(islice(open_pairs, settings.resolution.max_model_pairs))
    put_ids(con, "asked_ids", (id for pair in pairs for id in pair.ids))
    described = dict(con.execute(_DESCRIBED).fetchall())
    shared = shared_documents(con, [(pair.one.id, pair.two.id) for pair in pairs])
    return [
        replace(
            pair,
            one=replace(pair.one, description=described.get(pair.one.id, "")),
            two=replace(pair.two, description=described.get(pair.two.id, "")),
            evidence=completed(pair.evidence, shared.get((pair.one.id, pair.two.id), 0)),
        )
        for pair in pairs
    ]


def completed(evidence: Mapping[str, object], n_shared: int) -> dict[str, object]:
    """Return evidence with the number of shared documents, where it is to be part of it."""
    is_missing = "shared_documents" in evidence and evidence["shared_documents"] is None
    return {**evidence, **({"shared_documents": n_shared} if is_missing else {})}


def shared_documents(
    con: duckdb.DuckDBPyConnection, pairs: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], int]:
    """Return how many documents mention both of each pair of ids; none is left out."""
    schema = {"one_id": pl.String, "two_id": pl.String}
    put_rows(con, "paired", pl.DataFrame(pairs, schema=schema, orient="row"))
    return {(one, two): count for one, two, count in con.execute(_SHARED).fetchall()}


def resolution_embedder(settings: Settings) -> Embedder:
    """Return the configured embedder; a paid one only where the model is to be asked anyway."""
    if settings.embeddings.embedder == "llm" and settings.resolution.method != "llm":
        return HashingEmbedder()
    return configured_embedder(settings)


def _put_told(con: duckdb.DuckDBPyConnection, told: Sequence[Pair]) -> None:
    rows = [
        (p.one.id, p.two.id, p.method, p.rule, as_json(p.evidence), p.confidence, place)
        for place, p in enumerate(told)
    ]
    put_rows(con, "told_pairs", pl.DataFrame(rows, schema=_TOLD, orient="row"))


def _put_refusals(con: duckdb.DuckDBPyConnection, refusals: Sequence[Refusal]) -> None:
    rows = [
        (p.one.id, p.two.id, p.method, refusal.why, p.confidence, as_json(p.evidence))
        for refusal in refusals
        for p in [refusal.pair]
    ]
    names = ("one_id", "two_id", "method", "reason", "confidence", "evidence")
    schema = {name: pl.Float64 if name == "confidence" else pl.String for name in names}
    insert(con, "staging.resolution_refusals", pl.DataFrame(rows, schema=schema, orient="row"))


def _those_in(con: duckdb.DuckDBPyConnection, table: str, ids: Sequence[str]) -> set[str]:
    put_ids(con, "wanted_ids", ids)
    return {id for (id,) in con.execute(f"FROM wanted_ids SEMI JOIN {table} USING (id)").fetchall()}
