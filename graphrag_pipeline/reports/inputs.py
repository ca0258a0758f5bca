"""What the reports of a level are written from: the graph by column, a context per community."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import duckdb
import polars as pl

from graphrag_pipeline.core.identity import content_hash, make_id
from graphrag_pipeline.reports.contexts import (
    Context,
    Element,
    SubReport,
    build_context,
    intra_edges,
)
from graphrag_pipeline.reports.text import ReportWriter
from graphrag_pipeline.store.hierarchy import GRAPH, Hierarchy

MIN_SIZE = 2
"""Communities of fewer entities get no report."""

_COMMUNITIES = """
SELECT id, concat_ws(':', size, n_relationships, title) FROM {communities}
WHERE level = $level AND size >= $min_size ORDER BY id
"""
_MEMBERS = """
SELECT m.community_id, m.entity_id, c.level, c.parent_id FROM {members} m
JOIN {communities} c ON c.id = m.community_id AND c.level = m.level
WHERE c.level BETWEEN $level AND $level + 1
"""
_REPORTS = """
SELECT community_id, level, n_tokens, full_content, context_hash, coverage, findings, writer,
       outdated > 0 AS outdated, coalesce(support, 1) AS support
FROM {reports} LEFT JOIN (
    SELECT community_id, sum(support)::BIGINT AS support FROM report_elements
    WHERE $has_history GROUP BY community_id) USING (community_id)
WHERE level BETWEEN $level AND $level + 1
"""
_ENTITIES = """
SELECT id, n_tokens, left(sha256(concat_ws(chr(10), title, type, description)), 16) AS text_hash,
       frequency AS support
FROM {entities}
"""
# The text is what is written out of a claim; a token holds three bytes at least, on average.
_CLAIMS = """
SELECT subject_id, id, strlen(told) // 3 + 12 AS n_tokens,
       left(sha256(told), 16) AS text_hash, 1 AS support
FROM (SELECT subject_id, id, human_readable_id, concat_ws(
          chr(10), subject, object, type, status, start_date, end_date, description) AS told
      FROM resolved_claims)
ORDER BY human_readable_id
"""
_RELATIONSHIPS = """
SELECT id, source_id, target_id, combined_degree, n_tokens,
       left(sha256(source || chr(10) || target || chr(10) || description), 16) AS text_hash,
       coalesce(support, 1) AS support
FROM {relationships} LEFT JOIN (
    SELECT relationship_id AS id, count(*) AS support FROM relationship_chunks GROUP BY ALL)
USING (id)
"""
_PLACES = """
SELECT r.id, left(sha256(string_agg(place, ',' ORDER BY place)), 16) AS places
FROM (SELECT source_id, target_id, concat_ws(':', chunk_id, start_char, end_char) AS place
      FROM resolved_relationship_mentions)
JOIN {relationships} r USING (source_id, target_id) GROUP BY r.id
"""


@dataclass(frozen=True)
class Elements:
    """All entities and relationships, the same for every level.

    ``entities`` has (id, n_tokens, text_hash, support); ``claims`` are those about each entity, if
    the writer reads them; ``relationships`` has (id, source_id, target_id, combined_degree,
    n_tokens, text_hash, support);
    ``places`` is a hash of where each relationship's evidence stands, None if nobody cites it.
    """

    entities: pl.DataFrame
    claims: Mapping[str, Sequence[Element]]
    relationships: pl.DataFrame
    places: Mapping[str, str] | None


@dataclass(frozen=True)
class Level:
    """The communities of a level to report on, and what there is of it and of the next deeper one.

    ``members`` has (community_id, entity_id, level, parent_id) and ``reports`` the columns of
    ``community_reports`` that contexts depend on, both of the two levels. ``facts`` is what a
    report without a model says of each community itself: its size, relationships and title.
    """

    number: int
    communities: Sequence[str]
    members: pl.DataFrame
    reports: pl.DataFrame
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def own_members(self) -> pl.DataFrame:
        """Members of the level's own communities: (community_id, entity_id)."""
        own = self.members.filter(pl.col("level") == self.number)
        return own.select("community_id", "entity_id")

    @property
    def own_reports(self) -> pl.DataFrame:
        """The reports there are on the level's own communities."""
        return self.reports.filter(pl.col("level") == self.number)


def read_elements(
    con: duckdb.DuckDBPyConnection, writer: ReportWriter, hierarchy: Hierarchy = GRAPH
) -> Elements:
    """Read what contexts are made of."""
    sql = hierarchy.sql
    return Elements(
        con.sql(sql(_ENTITIES)).pl(),
        _claims(con) if writer.reads_claims else {},
        con.sql(sql(_RELATIONSHIPS)).pl(),
        dict(con.execute(sql(_PLACES)).fetchall()) if writer.cites_places else None,
    )


def read_level(con: duckdb.DuckDBPyConnection, number: int, hierarchy: Hierarchy = GRAPH) -> Level:
    """Read a level's communities and reports."""
    level, sql = {"level": number}, hierarchy.sql
    facts = dict(con.execute(sql(_COMMUNITIES), {**level, "min_size": MIN_SIZE}).fetchall())
    return Level(
        number,
        list(facts),
        con.execute(sql(_MEMBERS), level).pl(),
        con.execute(sql(_REPORTS), {**level, "has_history": hierarchy.has_history}).pl(),
        facts,
    )


def level_contexts(elements: Elements, level: Level, budget: int, version: str) -> list[Context]:
    """Return the context of each community of a level, filled up to ``budget`` tokens.

    ``version`` is that of the writer; where it cites places, they and the facts about a community
    are part of a context's hash.
    """
    edges = intra_edges(level.own_members, elements.relationships, elements.entities)
    children = _children(level)
    sub_reports = _sub_reports(level)
    contexts = [
        build_context(
            community,
            edges.get(community, []),
            children.get(community, {}),
            sub_reports,
            budget,
            version,
            elements.claims,
        )
        for community in level.communities
    ]
    places = elements.places
    if places is None:
        return contexts
    return [_with_places(c, places, level.facts.get(c.community_id, "")) for c in contexts]


def whole_hashes(
    elements: Elements, level: Level, communities: Collection[str]
) -> Mapping[str, str]:
    """Return a hash of all entities and relationships of each of these communities of a level."""
    if not communities:
        return {}
    own = level.own_members.filter(pl.col("community_id").is_in(list(communities)))
    edges = intra_edges(own, elements.relationships, elements.entities)
    return {
        c: build_context(c, edges.get(c, []), {}, {}, sys.maxsize, "import").hash
        for c in communities
    }


def _claims(con: duckdb.DuckDBPyConnection) -> Mapping[str, Sequence[Element]]:
    claims: dict[str, list[Element]] = defaultdict(list)
    for subject, *element in con.execute(_CLAIMS).fetchall():
        claims[subject].append(Element(*element))
    return claims


def _children(level: Level) -> Mapping[str, dict[str, frozenset[str]]]:
    children: dict[str, dict[str, frozenset[str]]] = defaultdict(dict)
    deeper = level.members.filter(pl.col("level") == level.number + 1)
    members = deeper.group_by("parent_id", "community_id").agg("entity_id")
    for parent, community, nodes in members.iter_rows():
        children[parent][community] = frozenset(nodes)
    return children


def _sub_reports(level: Level) -> Mapping[str, SubReport]:
    deeper = level.reports.filter(pl.col("level") == level.number + 1)
    columns = ("community_id", "n_tokens", "coverage", "support", "full_content", "findings")
    return {
        community: SubReport(community, n_tokens, _report_hash(*ids), coverage, support)
        for community, n_tokens, coverage, support, *ids in deeper.select(columns).iter_rows()
    }


def _report_hash(text: str, findings: Sequence[Mapping[str, object]]) -> str:
    places = [(f["chunk_id"], f["start_char"], f["end_char"]) for f in findings]
    return content_hash(f"{text}\n{places}")[:16]


def _with_places(context: Context, places: Mapping[str, str], facts: str) -> Context:
    places_cited = [places.get(relationship, "") for relationship in context.relationships]
    version, _, text_hash = context.hash.partition(":")
    return replace(context, hash=f"{version}:{make_id('context', text_hash, facts, *places_cited)}")
