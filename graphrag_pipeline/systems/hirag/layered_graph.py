"""The graph of all layers of a hierarchical graph as arrays, loaded once for a release."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from graphrag_pipeline.core.arrays import fixed_bytes
from graphrag_pipeline.query.memory.graph_arrays import Edges, join_edges
from graphrag_pipeline.store.held_vectors import places_of

if TYPE_CHECKING:
    import pyarrow as pa

    from graphrag_pipeline.query.release import Release

_NODES = """
SELECT id, (row_number() OVER (ORDER BY id) - 1)::INTEGER AS node
FROM (SELECT id FROM entities UNION ALL SELECT id FROM hirag_entities WHERE {layered})
"""
_EDGES = f"""
WITH nodes AS ({_NODES}), edges AS (
    SELECT id, source_id, target_id, weight, n_tokens FROM relationships UNION ALL
    SELECT id, source_id, target_id, weight, n_tokens FROM hirag_relationships WHERE {{layered}})
SELECT one.node AS one, two.node AS two, weight::FLOAT AS weight, n_tokens, e.id
FROM edges e JOIN nodes one ON one.id = source_id JOIN nodes two ON two.id = target_id
WHERE one.node <> two.node ORDER BY e.id
"""


class LayeredGraph:
    """Entities of all layers, numbered from 0 by id, and what relates or summarises them.

    ``edges`` are relationships and links between layers, by id, and ``lengths`` the tokens of each;
    ``adjacency`` has each pair once,
    whatever joins it; ``degrees`` say with how many others a node is joined. Without ``layered``
    it is the graph of the entities alone.
    """

    def __init__(self, read: Callable[[str], pa.Table], *, layered: bool = True) -> None:
        nodes = read(f"SELECT id FROM ({_NODES.format(layered=layered)}) ORDER BY node")
        edges = read(_EDGES.format(layered=layered))
        self.ids = _bytes(nodes)
        first, second, weight = (edges[name].to_numpy() for name in ("one", "two", "weight"))
        self.edges = Edges(first, second, weight, _bytes(edges))
        self.lengths = edges["n_tokens"].to_numpy()
        self.adjacency = join_edges(len(self.ids), [self.edges])
        self.degrees = np.diff(self.adjacency.offsets)

    def nodes_of(self, ids: Iterable[str]) -> list[int]:
        """Return the nodes of entities, in their order; ids that are none are left out."""
        places, is_node = places_of(self.ids, ids)
        return places[is_node].tolist()


def layered_graph(index: Release, *, flat: bool = False) -> LayeredGraph:
    """Return the graph of all layers of a release; ``flat``: of its entities alone."""
    name = "hirag: flat graph" if flat else "hirag: layered graph"
    return index.once(name, lambda whole: LayeredGraph(whole.columns, layered=not flat))


def _bytes(table: pa.Table) -> npt.NDArray[np.bytes_]:
    return fixed_bytes(table["id"].combine_chunks())
