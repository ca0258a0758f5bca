"""How close together what a hierarchy puts together is: of Leiden's communities and all others.

ArchRAG (Wang et al., 2025) compares hierarchies by these two measures, in its equations 3 and 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_pipeline.query.release import VECTORS
from graphrag_pipeline.store.vector_store import VectorSnapshot

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

_MOST_VECTORS = 1_000_000
_DIMENSIONS_AT_ONCE = 64

Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, kw_only=True)
class _Hierarchy:
    """What is measured: ``members`` gives (level, community_id, member_id).

    ``tables`` hold the members' vectors; ``made`` is the table that is there if the hierarchy is.
    ``prefix`` stands before the names of its metrics.
    """

    prefix: str
    members: str
    tables: tuple[str, ...]
    made: str


_HIERARCHIES: Final = (
    _Hierarchy(
        prefix="",
        members="SELECT level, community_id, entity_id AS member_id FROM community_members",
        tables=("entities",),
        made="entities",
    ),
    _Hierarchy(
        prefix="attributed_",
        members="""
            SELECT unnest(range(level, last_level + 1)) AS level, community_id,
                   entity_id AS member_id
            FROM attributed_entities JOIN attributed_communities c ON c.id = community_id""",
        tables=("entities",),
        made="attributed_communities",
    ),
    _Hierarchy(
        prefix="hirag_",
        members="SELECT level, community_id, entity_id AS member_id FROM hirag_community_members",
        tables=("entities", "hirag_entities"),
        made="hirag_entities",
    ),
    _Hierarchy(
        prefix="raptor_",
        members="""
            SELECT layer AS level, node_id AS community_id, child_id AS member_id
            FROM raptor_edges JOIN raptor_nodes n ON n.id = node_id""",
        tables=("chunks", "raptor_nodes"),
        made="raptor_nodes",
    ),
)
_SHARED = """
SELECT level, community_id, member_id FROM ({members})
QUALIFY count(*) OVER (PARTITION BY level, community_id) > 1 ORDER BY ALL
"""


def spreads(release: Release) -> Iterator[tuple[str, float, int]]:
    """Yield (metric, value, level) of every hierarchy that a release has.

    Of communities of two or more. A member of several communities, as RAPTOR has them, counts in
    each. Nothing of a hierarchy whose vectors would fill the memory.
    """
    for hierarchy in _HIERARCHIES:
        if hierarchy.made in release.facts.vector_versions:
            yield from _of(release, hierarchy)


def spread(vectors: Floats, labels: npt.NDArray[np.intp]) -> tuple[float | None, float]:
    """Return the Calinski-Harabasz index of labelled vectors, and their mean cosine to centroids.

    ArchRAG (Wang et al., 2025), equations 3 and 4; vectors have shape (n, dimensions), labels are
    from 0, none is without a vector. The index is None where there is one label only, each vector
    has its own, or all vectors are their centroids. It equals scikit-learn's, which looks through
    all vectors once for each label.
    """
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    starts = sizes.cumsum() - sizes
    within = between = 0.0
    dot, own, centre = np.zeros(len(labels)), np.zeros(len(labels)), np.zeros(len(sizes))
    for first in range(0, vectors.shape[1], _DIMENSIONS_AT_ONCE):
        part = vectors[order, first : first + _DIMENSIONS_AT_ONCE].astype(np.float64)
        centroids = np.add.reduceat(part, starts) / sizes[:, None]
        of_each = np.repeat(centroids, sizes, axis=0)
        within += float(((part - of_each) ** 2).sum())
        between += float((sizes[:, None] * (centroids - part.mean(axis=0)) ** 2).sum())
        dot += (part * of_each).sum(axis=1)
        own += (part**2).sum(axis=1)
        centre += (centroids**2).sum(axis=1)
    lengths = np.sqrt(own * np.repeat(centre, sizes))
    cosines = np.divide(dot, lengths, out=np.zeros_like(dot), where=lengths > 0)
    n, k = len(labels), len(sizes)
    index = between / within * (n - k) / (k - 1) if 1 < k < n and within > 0 else None
    return index, float(cosines.mean())


def _of(release: Release, hierarchy: _Hierarchy) -> Iterator[tuple[str, float, int]]:
    ids, vectors = _vectors(release, hierarchy.tables)
    if not len(ids):
        return
    place = pl.DataFrame({"member_id": ids}).with_row_index("place")
    rows = pl.DataFrame(release.columns(_SHARED.format(members=hierarchy.members)))
    members = rows.join(place, on="member_id", maintain_order="left")
    for (level,), part in members.group_by("level", maintain_order=True):
        labels = part["community_id"].rank("dense").to_numpy().astype(np.intp) - 1
        index, cosine = spread(vectors[part["place"].to_numpy()], labels)
        if index is not None:
            yield f"{hierarchy.prefix}calinski_harabasz", index, int(str(level))
        yield f"{hierarchy.prefix}centroid_cosine", cosine, int(str(level))


def _vectors(release: Release, tables: Sequence[str]) -> tuple[list[str], Floats]:
    """Return what has a vector that is not zero; nothing where they would fill the memory."""
    snapshot = VectorSnapshot(release.home / VECTORS, release.facts.vector_versions)
    if not 0 < sum(map(snapshot.count, tables)) <= _MOST_VECTORS:
        return [], np.empty((0, 0))
    parts = [(ids, vectors) for ids, vectors in map(snapshot.matrix, tables) if len(ids)]
    ids = [key for keys, _ in parts for key in keys]
    vectors = np.concatenate([vectors for _, vectors in parts])
    places = np.flatnonzero(vectors.any(axis=1))
    return [ids[place] for place in places], vectors[places]
