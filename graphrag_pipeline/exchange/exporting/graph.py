"""The graph as one query for nodes and one for edges, shared by the formats of single files."""

from __future__ import annotations

from collections.abc import Mapping

from graphrag_pipeline.core.addresses import PermanentLinks
from graphrag_pipeline.exchange.exporting.writing import Exporter, Writer
from graphrag_pipeline.store.frames import value_of

EDGES = """
SELECT source_id AS source, target_id AS target, human_readable_id, weight, pmi, combined_degree,
       type, description
FROM relationships ORDER BY human_readable_id
"""
EDGE_COLUMNS: Mapping[str, str] = {
    "human_readable_id": "long",
    "weight": "double",
    "pmi": "double",
    "combined_degree": "long",
    "type": "string",
    "description": "string",
}
GRAPH_ONLY = ("documents, text, claims and reports: it is the graph alone",)
"""What formats of graphs cannot hold."""
_LINK, _LEVEL = "link", "community_level_"
_NODE_COLUMNS = {
    "title": "string",
    "type": "string",
    "description": "string",
    "human_readable_id": "long",
    "degree": "long",
    "frequency": "long",
}


def node_columns(writer: Writer) -> dict[str, str]:
    """Return the attributes of a node and their types: its permanent link, the community at each
    level."""
    levels = value_of(writer.con, "SELECT coalesce(max(level) + 1, 0) FROM community_members")
    linked = {_LINK: "string"} if writer.links else {}
    return {**_NODE_COLUMNS, **linked, **{f"{_LEVEL}{n}": "long" for n in range(levels)}}


def nodes(columns: Mapping[str, str], links: PermanentLinks | None) -> str:
    """Return the query for the nodes: ``id``, then ``columns``; communities by their number."""
    more = [name for name in columns if name.startswith(_LEVEL)]
    pivot = "".join(
        f", max(c.human_readable_id) FILTER (m.level = {place}) AS {name}"
        for place, name in enumerate(more)
    )
    selection = ", ".join(f"e.{name}" for name in _NODE_COLUMNS)
    link = f", {links.sql('entities', 'e.id')} AS {_LINK}" if links else ""
    communities = "".join(f", p.{name}" for name in more)
    return f"""
        WITH placed AS (
            SELECT m.entity_id{pivot} FROM community_members m
            JOIN communities c ON c.id = m.community_id GROUP BY m.entity_id)
        SELECT e.id, {selection}{link}{communities} FROM entities e
        LEFT JOIN placed p ON p.entity_id = e.id ORDER BY e.human_readable_id"""


def node_link_json(writer: Writer, name: str) -> None:
    """Write the graph as node-link JSON, which ``networkx.node_link_graph`` reads."""
    line = "SELECT to_json(t)::VARCHAR AS line FROM ({}) t"
    writer.text(
        name,
        [
            '{"directed": false, "multigraph": false, "graph": {}, "nodes": [\n',
            ("nodes", line.format(nodes(node_columns(writer), writer.links)), ",\n"),
            '\n], "edges": [\n',
            ("edges", line.format(EDGES), ",\n"),
            "\n]}\n",
        ],
    )


JSON = Exporter(
    "graph.json",
    'networkx.node_link_graph(json.load(open("{path}")))',
    file=node_link_json,
    lost=GRAPH_ONLY,
)
