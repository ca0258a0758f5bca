"""Cohesion of the groups of a hierarchy, Leiden's communities and all others.

ArchRAG (Wang et al., 2025) compares hierarchies by these two measures, in its equations 3 and 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_pipeline.query.release import VECTORS
from graphrag_pipeline.store.vector_store import VectorSnapshot

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

_MOST_VECTORS = 1_000_000
_ROWS_AT_ONCE = 2048
_NOTHING = 1e-12

Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, kw_only=True)
class _Hierarchy:
    """The hierarchy that is measured: ``members`` gives (level, community_id, member_id).

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
SELECT DISTINCT community_id, member_id FROM ({members}) ORDER BY ALL
"""
_LEVELS = """
SELECT level, community_id FROM ({members}) GROUP BY ALL HAVING count(*) > 1 ORDER BY ALL
"""


def spreads(release: Release) -> Iterator[tuple[str, float, int]]:
    """Yield (metric, value, level) of every hierarchy that a release has.

    Of communities of two or more. A member of several communities, as RAPTOR has them, counts in
    each. Nothing of a hierarchy whose vectors would fill the memory.
    """
    for hierarchy in _HIERARCHIES:
        if hierarchy.made in release.facts.vector_versions:
            yield from _of(release, hierarchy)


def spread(vectors: Floats, labels: Ints) -> tuple[float | None, float]:
    """Return the Calinski-Harabasz index of labelled vectors, and their mean cosine to centroids.

    ArchRAG (Wang et al., 2025), equations 3 and 4; vectors have shape (n, dimensions), labels are
    from 0, none is without a vector. The index is None where there is one label only, each vector
    has its own, or all vectors are their centroids. It equals scikit-learn's, which looks through
    all vectors once for each label.
    """
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    return _spreads(vectors, order, sizes, [np.arange(len(sizes))])[0]


def _spreads(
    vectors: Floats, members: Ints, sizes: Ints, levels: Sequence[Ints]
) -> list[tuple[float | None, float]]:
    """Return the spread of some communities for each level, all vectors being looked at once.

    ``members`` are rows of ``vectors``, community by community as ``sizes`` says.
    """
    starts = np.concatenate([[0], sizes.cumsum()])
    squares, own, cosines = (np.zeros(len(sizes)) for _ in range(3))
    totals = np.zeros((len(levels), vectors.shape[1]))
    first = 0
    while first < len(sizes):
        last = int(np.searchsorted(starts, starts[first] + _ROWS_AT_ONCE, side="right")) - 1
        part = slice(first, max(first + 1, last))
        rows = vectors[members[starts[first] : starts[part.stop]]].astype(np.float64)
        where = starts[first : part.stop + 1] - starts[first]
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        shares = np.divide(1, lengths, out=np.zeros(len(rows)), where=lengths > 0)
        sums = _sums(rows, where)
        rows *= shares[:, None]
        directions = _sums(rows, where)
        long = np.sqrt(np.einsum("ij,ij->i", sums, sums))
        squares[part] = long**2 / sizes[part]
        own[part] = np.add.reduceat(lengths**2, where[:-1])
        cosines[part] = np.einsum("ij,ij->i", sums, directions) / np.where(long > 0, long, 1)
        for total, level in zip(totals, levels, strict=True):
            begin, end = np.searchsorted(level, (part.start, part.stop))
            total += sums[level[begin:end] - first].sum(axis=0)
        first = part.stop
    return [
        _of_level(sizes[level], squares[level], own[level], cosines[level], total)
        for level, total in zip(levels, totals, strict=True)
    ]


def _sums(rows: Floats, starts: Ints) -> Floats:
    """Return the sums of the rows from each start to the next.

    To import scipy for it takes longer than all of it, and ``reduceat`` ten times as long.
    """
    sums = np.empty((len(starts) - 1, rows.shape[1]))
    for sum_of, (first, last) in zip(sums, pairwise(starts.tolist()), strict=True):
        np.add.reduce(rows[first:last], axis=0, out=sum_of)
    return sums


def _of_level(
    sizes: Ints, squares: Floats, own: Floats, cosines: Floats, total: Floats
) -> tuple[float | None, float]:
    """Return index and mean cosine by sums of communities, and of all their members."""
    n, k = int(sizes.sum()), len(sizes)
    within = float(own.sum() - squares.sum())
    between = float(squares.sum() - total @ total / n)
    is_known = 1 < k < n and within > _NOTHING * own.sum()
    return between / within * (n - k) / (k - 1) if is_known else None, float(cosines.sum() / n)


def _of(release: Release, hierarchy: _Hierarchy) -> Iterator[tuple[str, float, int]]:
    ids, vectors = _vectors(release, hierarchy.tables)
    if not len(ids):
        return
    place = pl.DataFrame({"member_id": ids}).with_row_index("place")
    rows = pl.DataFrame(release.columns(_SHARED.format(members=hierarchy.members)))
    levels = pl.DataFrame(release.columns(_LEVELS.format(members=hierarchy.members)))
    # A community that is not divided further stands at several levels: it is the same at each.
    members = rows.join(levels, on="community_id", how="semi", maintain_order="left").join(
        place, on="member_id", maintain_order="left"
    )
    communities = members.group_by("community_id", maintain_order=True).len()
    parts = levels.join(communities.with_row_index("label"), on="community_id").partition_by(
        "level", as_dict=True, maintain_order=True
    )
    labels = [np.sort(part["label"].to_numpy()) for part in parts.values()]
    sizes = communities["len"].to_numpy().astype(np.int64)
    measured = _spreads(vectors, members["place"].to_numpy(), sizes, labels)
    for (level,), (index, cosine) in zip(parts, measured, strict=True):
        if index is not None:
            yield f"{hierarchy.prefix}calinski_harabasz", index, int(level)
        yield f"{hierarchy.prefix}centroid_cosine", cosine, int(level)


def _vectors(release: Release, tables: Sequence[str]) -> tuple[list[str], Floats]:
    """Return what has a vector that is not zero; nothing where they would fill the memory."""
    snapshot = VectorSnapshot(release.home / VECTORS, release.facts.vector_versions)
    if not 0 < sum(map(snapshot.count, tables)) <= _MOST_VECTORS:
        return [], np.empty((0, 0))
    parts = [(ids, vectors) for ids, vectors in map(snapshot.stored, tables) if len(ids)]
    ids = [key for keys, _ in parts for key in keys]
    matrices = [vectors for _, vectors in parts]
    vectors = matrices[0] if len(matrices) == 1 else np.concatenate(matrices)
    has_length = vectors.any(axis=1)
    if has_length.all():
        return ids, vectors
    return [ids[place] for place in np.flatnonzero(has_length)], vectors[has_length]
