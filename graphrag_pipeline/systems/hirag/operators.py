"""HiRAG's graph of all layers: its entities, their communities, and the paths between them.

Source: Huang et al., 2025 (HiRAG), section 4.2 and algorithm 2; the authors' code where said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.query.operators.communities import communities_by_members, report_record
from graphrag_pipeline.query.operators.entities import entity_record, entity_records
from graphrag_pipeline.query.operators.graph import bridge
from graphrag_pipeline.query.operators.ranking import Ranking, best, decoded, nearest
from graphrag_pipeline.query.operators.relationships import (
    relationship_record,
    relationship_records,
)
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.trace import operator
from graphrag_pipeline.systems.hirag.groups import is_group
from graphrag_pipeline.systems.hirag.layered_graph import layered_graph

if TYPE_CHECKING:
    from graphrag_pipeline.query.memory.graph_arrays import Numbers
    from graphrag_pipeline.query.release import Release

_MEMBERSHIPS = """
SELECT entity_id, m.community_id, c.level, rating
FROM {of}community_members m
JOIN {of}communities c ON c.id = m.community_id AND c.level = m.level
JOIN {of}community_reports r ON r.community_id = c.id
"""
_REPORTS = """
SELECT c.id, r.id AS report_id, c.human_readable_id, r.title, r.summary, r.full_content, r.rating,
       r.community_id, c.level, c.size
FROM {of}community_reports r JOIN {of}communities c ON c.id = r.community_id
"""
_ENTITIES = """
SELECT id, human_readable_id, title, type, description, size AS frequency, degree, layer
FROM hirag_entities
"""
_RELATIONSHIPS = """
SELECT id, human_readable_id, source_id, target_id, source, target, description, weight,
       combined_degree FROM hirag_relationships
"""

_EXTRACTORS = "SELECT DISTINCT extractor FROM extractions ORDER BY extractor"
_PASSES = 2


@operator
def entities_of_layers(index: Release, question: str, k: int) -> Ranking:
    """Rank the ``k`` entities of all layers most similar to a question (equation 12).

    Raises InputError where the release has no layers.
    """
    if "hirag_entities" not in index.facts.vector_versions:
        raise InputError(
            f"release {index.facts.id} has no hierarchical graph: set hierarchies.hirag = true, "
            "index again, and ask once more"
        )
    scores = nearest(index, "entities", question, k)
    scores |= nearest(index, "hirag_entities", question, k)
    return best(dict(sorted(scores.items(), key=lambda item: (-item[1], item[0]))), k)


def lacks_of_layers(index: Release) -> list[str]:
    """Return what an index lacks that HiRAG rests on, a line each."""
    lacks: list[str] = []
    if index.lexical:
        lacks.append(
            "the vectors know words only, so that clusters of entities mean little: hirag needs "
            "real embeddings, by embeddings.embedder"
        )
    extractors = [row["extractor"] for row in index.rows(_EXTRACTORS)]
    options = index.settings.extraction
    in_two = options.passes == _PASSES or options.format == "two_calls"
    if extractors != ["llm"] or not in_two:
        lacks.append(
            "entities and relationships were not extracted in two passes, as hirag does: set "
            "extraction.passes = 2, with a model"
        )
    return lacks


@operator
def communities_of_layers(
    index: Release, entities: Ranking, level: int, *, flat: bool = False
) -> Ranking:
    """Rank the communities of entities of all layers, by how many of them, then by rating.

    Those with a report, that first stand at ``level`` or above (equation 13; levels: the code).
    ``flat``: those of the graph without layers.
    """
    memberships = index.kept(_of(_MEMBERSHIPS, flat))
    rows, _ = memberships.having("entity_id", entities)
    rows = rows[memberships.values("level")[rows] <= level]
    return communities_by_members(memberships, rows)


@operator
def key_entities(
    index: Release,
    communities: Iterable[str],
    candidates: Ranking,
    most: int,
    *,
    flat: bool = False,
) -> list[str]:
    """Return the ``most`` first candidates of each community, one community after the other.

    Each once: the order in which equations 14 and 15 collect them.
    """
    memberships, keys = index.kept(_of(_MEMBERSHIPS, flat)), list(candidates)
    rows, places = memberships.having("entity_id", candidates)
    members: dict[str, list[str]] = defaultdict(list)
    community_ids = decoded(memberships.ids("community_id")[rows])
    for community, place in zip(community_ids, places.tolist(), strict=True):
        members[community].append(keys[place])
    members_of_each = (members[community][:most] for community in communities)
    return list(dict.fromkeys(chain.from_iterable(members_of_each)))


@operator
def bridge_relationships(
    index: Release, entities: Iterable[str], budget: int, *, flat: bool = False
) -> Ranking:
    """Rank relationships along shortest paths from each entity to the next.

    All between the entities on these paths (equations 15 and 16), in all layers, by the degrees of
    their ends, which are the scores, then by weight: as many as could fit in ``budget`` tokens.
    """
    import numpy as np

    graph = layered_graph(index, flat=flat)
    is_on = np.zeros(len(graph.ids), np.bool_)
    walked = index.trace.timed(bridge, graph.adjacency, graph.nodes_of(entities))
    is_on[walked] = True
    edges = graph.edges
    inside = np.flatnonzero(is_on[edges.one] & is_on[edges.two])
    degrees = graph.degrees[edges.one[inside]] + graph.degrees[edges.two[inside]]
    order = np.lexsort((inside, -edges.weight[inside], -degrees))
    lengths = graph.lengths[inside[order]]
    order = order[lengths.cumsum() - lengths < budget]
    ids = decoded(edges.ids[inside[order]])
    return dict(zip(ids, degrees[order].astype(float).tolist(), strict=True))


@operator
def chunks_by_links(index: Release, entities: Ranking) -> Ranking:
    """Rank the chunks of entities, those of the first entity first, as the code does.

    Of one entity, first those that mention most of the entities related to it. Entities of higher
    layers have no chunks of their own.
    """
    import numpy as np

    graph = index.graph
    mentions, links = graph.adjacency("mentions"), graph.adjacency("links")
    places: list[Numbers] = []
    for node in graph.entity_nodes(entities).tolist():
        chunks = mentions.around(node)
        _, around = mentions.rows_of(links.around(node))
        n_links = np.bincount(around, minlength=graph.n_nodes)[chunks]
        places.append(chunks[np.argsort(-n_links, kind="stable")])
    nodes = np.concatenate(places) if places else np.empty(0, np.int64)
    ids = dict.fromkeys(graph.ids_of(nodes))
    return {key: 1.0 / place for place, key in enumerate(ids, start=1)}


@operator
def layered_report_records(
    index: Release, communities: Ranking, *, flat: bool = False
) -> list[Record]:
    """Return the reports on ranked communities of all layers, in their order."""
    rows = index.records(_of(_REPORTS, flat), communities)
    return [
        report_record(row["report_id"], row, score)
        for key, score in communities.items()
        if (row := rows.get(key))
    ]


def layered_entity_records(index: Release, entities: Ranking) -> list[Record]:
    """Return the records of ranked entities of all layers, in their order."""
    return _in_order(entities, [*entity_records(index, entities), *_summaries(index, entities)])


def layered_relationship_records(index: Release, relationships: Ranking) -> list[Record]:
    """Return the records of ranked relationships and links between layers, in their order."""
    records = [*relationship_records(index, relationships), *_links(index, relationships)]
    return _in_order(relationships, records)


def _of(sql: str, flat: bool) -> str:
    """Return what reads the communities of all layers, or those of the graph without layers."""
    return sql.format(of="" if flat else "hirag_")


def _in_order(ranking: Ranking, records: list[Record]) -> list[Record]:
    record_of = {record.id: record for record in records}
    return [record_of[key] for key in ranking if key in record_of]


@operator
def _summaries(index: Release, entities: Ranking) -> list[Record]:
    return [
        entity_record(row, entities[key], ("type", "frequency", "degree", "layer"))
        for key, row in index.records(_ENTITIES, entities).items()
    ]


def _membership(member: str, summary: str) -> str:
    """Return what a link says that no model has described."""
    if is_group(summary):
        return f"{member} is put together with {summary}."
    return f"{summary} summarises {member}."


@operator
def _links(index: Release, relationships: Ranking) -> list[Record]:
    return [
        relationship_record(
            row, relationships[key], row["description"] or _membership(row["source"], row["target"])
        )
        for key, row in index.records(_RELATIONSHIPS, relationships).items()
    ]
