"""Inputs of the reports of a level: the graph by column, contexts slice by slice."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import duckdb
import polars as pl

from graphrag_pipeline.core.identity import make_id
from graphrag_pipeline.reports.contexts import (
    Context,
    Element,
    Parts,
    build_contexts,
    intra_edges,
)
from graphrag_pipeline.reports.evidence import Evidence
from graphrag_pipeline.reports.text import ReportWriter
from graphrag_pipeline.store.frames import drop_rows, put_rows
from graphrag_pipeline.store.hierarchy import GRAPH, Hierarchy

MIN_SIZE = 2
"""Communities of fewer entities get no report."""

REPORTED_ON = "SELECT id FROM {communities} WHERE level = $level AND size >= $min_size"
"""The communities of a level that get a report."""

# A slice has about so many relationships and communities, more where a level would have more than
# so many slices: what a slice reads from the index takes as long as the index is large.
_SLICE = 100_000
_MOST_SLICES = 32

_MEMBERS = """
SELECT m.community_id, m.entity_id, c.level, c.parent_id FROM {members} m
JOIN {communities} c ON c.id = m.community_id AND c.level = m.level
WHERE (c.level = $level AND c.id IN (SELECT community_id FROM reported))
   OR (c.level = $level + 1 AND c.parent_id IN (SELECT community_id FROM reported))
"""
_ROOTS = """
SELECT community_id, entity_id FROM {members} WHERE level = 0 AND community_id IN (
    SELECT community_id FROM {members} WHERE level = 0 AND entity_id IN (
        SELECT entity_id FROM {members} SEMI JOIN chosen USING (community_id)))
"""
_REPORTS = """
SELECT r.community_id, r.level, r.n_tokens, full_content, context_hash, coverage, findings, writer,
       coalesce(support, 1) AS support
FROM {reports} r JOIN {communities} c ON c.id = r.community_id LEFT JOIN (
    SELECT community_id, sum(support)::BIGINT AS support FROM report_elements
    WHERE $has_history GROUP BY community_id) e ON e.community_id = r.community_id
WHERE (r.level = $level AND c.id IN (SELECT community_id FROM reported))
   OR (r.level = $level + 1 AND c.parent_id IN (SELECT community_id FROM reported))
"""
_ENTITIES = """
SELECT id, n_tokens, left(sha256(concat_ws(chr(10), title, type, description)), 16) AS text_hash,
       frequency AS support
FROM {entities} SEMI JOIN told_of USING (id)
"""
# The text is what is written out of a claim; a token holds three bytes at least, on average.
_CLAIMS = """
SELECT subject_id, id, strlen(told) // 3 + 12 AS n_tokens,
       left(sha256(told), 16) AS text_hash, 1 AS support
FROM (SELECT subject_id, id, human_readable_id, concat_ws(
          chr(10), subject, object, type, status, start_date, end_date, description) AS told
      FROM resolved_claims)
WHERE subject_id IN (SELECT id FROM told_of) ORDER BY human_readable_id
"""
_RELATIONSHIPS = """
SELECT r.id, source_id, target_id, combined_degree, n_tokens,
       left(sha256(source || chr(10) || target || chr(10) || description), 16) AS text_hash,
       coalesce(support, 1) AS support
FROM {relationships} r
JOIN told_of s ON s.id = source_id JOIN told_of t ON t.id = target_id AND t.within = s.within
LEFT JOIN (
    SELECT relationship_id, count(*) AS support FROM relationship_chunks GROUP BY ALL) c
ON c.relationship_id = r.id
"""


@dataclass(frozen=True)
class Elements:
    """The parts of contexts, the same for every level.

    ``entities`` has (id, n_tokens, text_hash, support), ``relationships`` also (source_id,
    target_id, combined_degree). ``claims`` are those of each subject_id, in order, if the writer
    reads them.
    """

    entities: pl.DataFrame
    claims: pl.DataFrame | None
    relationships: pl.DataFrame


@dataclass(frozen=True)
class Level:
    """The communities of a level to report on, and what there is of them and one level deeper.

    ``members`` has (community_id, entity_id, level, parent_id) and ``reports`` the columns of
    ``community_reports`` that contexts depend on, both of these communities and of their parts.
    """

    number: int
    communities: Sequence[str]
    members: pl.DataFrame
    reports: pl.DataFrame

    @property
    def own_members(self) -> pl.DataFrame:
        """Members of the level's own communities: (community_id, entity_id)."""
        own = self.members.filter(pl.col("level") == self.number)
        return own.select("community_id", "entity_id")

    @property
    def own_reports(self) -> pl.DataFrame:
        """The reports there are on the level's own communities."""
        return self.reports.filter(pl.col("level") == self.number)

    def parts(self, communities: pl.DataFrame) -> Parts:
        """Return what some of its own communities (community_id) are made of one level deeper."""
        below = pl.col("level") == self.number + 1
        members = (
            self.members.filter(below)
            .join(communities, left_on="parent_id", right_on="community_id", how="semi")
            .select(community_id="parent_id", child="community_id", id="entity_id")
        )
        reports = self.reports.filter(below).rename({"community_id": "child"})
        return Parts(members, reports.join(members, "child", "semi"))


@dataclass(frozen=True)
class Slice:
    """Some communities of a level, the context of each, and the elements of these (``ELEMENTS``).

    ``edges`` are all within these communities, as :func:`intra_edges` returns them, ``entities``
    those at their ends and others. Once places are known, ``evidence`` is what contexts rest on.
    """

    contexts: Sequence[Context]
    elements: pl.DataFrame
    edges: pl.DataFrame
    entities: pl.DataFrame
    evidence: Evidence | None = None

    def elements_of(self, contexts: Iterable[Context]) -> pl.DataFrame:
        """Return the elements of some of the contexts."""
        chosen = pl.Series("community_id", [c.community_id for c in contexts], pl.String)
        return self.elements.join(chosen.to_frame(), "community_id", "semi", maintain_order="left")

    def whole_hashes(self, communities: Sequence[str]) -> Mapping[str, str]:
        """Return a hash of all entities and relationships of each of these communities."""
        if not communities:
            return {}
        edges = self.edges.filter(pl.col("community_id").is_in(communities))
        contexts, _ = build_contexts(communities, edges, self.entities, sys.maxsize, "import")
        return {context.community_id: context.hash for context in contexts}


def read_level(
    con: duckdb.DuckDBPyConnection,
    number: int,
    hierarchy: Hierarchy = GRAPH,
    communities: str = REPORTED_ON,
) -> Level:
    """Read a level's communities, or those of them that a query of the project's own selects."""
    level, sql = {"level": number}, hierarchy.sql
    among = {**level, "min_size": MIN_SIZE} if communities == REPORTED_ON else None
    chosen = con.execute(f"SELECT id AS community_id FROM ({sql(communities)}) ORDER BY id", among)
    put_rows(con, "reported", chosen.pl())
    return Level(
        number,
        [id for (id,) in con.execute("SELECT community_id FROM reported").fetchall()],
        con.execute(sql(_MEMBERS), level).pl(),
        con.execute(sql(_REPORTS), {**level, "has_history": hierarchy.has_history}).pl(),
    )


def read_elements(
    con: duckdb.DuckDBPyConnection,
    writer: ReportWriter,
    hierarchy: Hierarchy = GRAPH,
    members: pl.DataFrame | None = None,
) -> Elements:
    """Read what contexts are made of, of all entities.

    Or of ``members`` only: (community_id, entity_id), of communities of one level, and of what
    joins two within one.
    """
    sql = hierarchy.sql
    if members is None:
        told_of = con.sql(sql("SELECT id, '' AS within FROM {entities}")).pl()
    else:
        told_of = members.select(id="entity_id", within="community_id")
    put_rows(con, "told_of", told_of)
    relationships = con.sql(sql(_RELATIONSHIPS)).pl()
    entities = con.sql(sql(_ENTITIES)).pl()
    claims = con.sql(_CLAIMS).pl() if writer.is_model else None
    drop_rows(con, "told_of")
    return Elements(entities, claims, relationships)


def read_roots(
    con: duckdb.DuckDBPyConnection, communities: pl.DataFrame, hierarchy: Hierarchy = GRAPH
) -> pl.DataFrame:
    """Return all members of the communities of level 0 that some (community_id) are in.

    That is (community_id, entity_id). What their reports may change, at any level above them, is
    within these.
    """
    put_rows(con, "chosen", communities.select("community_id"))
    members = con.sql(hierarchy.sql(_ROOTS)).pl()
    drop_rows(con, "chosen")
    return members


def level_contexts(elements: Elements, level: Level, budget: int, version: str) -> list[Context]:
    """Return the context of each community of a level, filled up to ``budget`` tokens.

    ``version`` is that of the writer; where it cites places, see :func:`with_places`.
    """
    slices = level_slices(elements, level, budget, version)
    return [context for part in slices for context in part.contexts]


def level_slices(
    elements: Elements, level: Level, budget: int, version: str, size: int = _SLICE
) -> Iterator[Slice]:
    """Yield what :func:`level_contexts` returns slice by slice.

    A slice has about ``size`` communities and relationships: only its own are objects.
    """
    chosen = pl.DataFrame({"community_id": level.communities}, schema={"community_id": pl.String})
    own = level.own_members.join(chosen, "community_id", "semi")
    rows = intra_edges(own, elements.relationships)
    for ids in _slices(chosen, rows, size):
        yield _slice(elements, level, ids, rows.join(ids, "community_id", "semi"), budget, version)


def _slices(chosen: pl.DataFrame, rows: pl.DataFrame, size: int) -> Iterator[pl.DataFrame]:
    counts = rows.group_by("community_id").len()
    weights = chosen.join(counts, "community_id", "left", maintain_order="left").select(
        "community_id", place=(pl.col("len").fill_null(0) + 1).cum_sum()
    )
    size = max(size, (len(rows) + len(chosen)) // _MOST_SLICES + 1)
    numbered = weights.with_columns(number=(pl.col("place") - 1) // size)
    for part in numbered.partition_by("number", maintain_order=True):
        yield part.select("community_id")


def _slice(
    elements: Elements,
    level: Level,
    ids: pl.DataFrame,
    rows: pl.DataFrame,
    budget: int,
    version: str,
) -> Slice:
    claims = _claims(elements.claims, rows)
    parts = level.parts(ids)
    contexts, told = build_contexts(
        ids["community_id"].to_list(), rows, elements.entities, budget, version, parts, claims
    )
    return Slice(contexts, told, rows, elements.entities)


def with_places(contexts: Sequence[Context], evidence: Evidence) -> list[Context]:
    """Return contexts whose hash is of all that a report without a model says and cites.

    That is, besides their texts, the size, relationships, title and evidence of each community, and
    the sentences behind the relationships that are told, with their places.
    """
    facts, sizes = {}, {}
    for id, title, size, n, weight in evidence.communities.iter_rows():
        facts[id], sizes[id] = f"{size}:{n}:{title}:{weight:g}", str(size)
    placed = []
    for context in contexts:
        cited = [evidence.places.get(relationship, "") for relationship in context.relationships]
        cited += [sizes.get(community, "") for community in context.sub_reports]
        version, _, text_hash = context.hash.partition(":")
        about = facts.get(context.community_id, "")
        hash = f"{version}:{make_id('context', text_hash, about, *cited)}"
        placed.append(replace(context, hash=hash))
    return placed


def _claims(claims: pl.DataFrame | None, rows: pl.DataFrame) -> Mapping[str, Sequence[Element]]:
    """Return the claims about each entity at an end of these rows."""
    claims_of: dict[str, list[Element]] = defaultdict(list)
    if claims is not None:
        shown = pl.concat([rows["source_id"], rows["target_id"]]).unique().alias("subject_id")
        own = claims.join(shown.to_frame(), "subject_id", "semi", maintain_order="left")
        for subject, *element in own.iter_rows():
            claims_of[subject].append(Element(*element))
    return claims_of
