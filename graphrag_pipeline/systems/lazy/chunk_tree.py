"""The place of each chunk in the hierarchy of communities: one path from the root to a leaf."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from graphrag_pipeline.query.memory.rows_in_memory import KeptRows, as_bytes

if TYPE_CHECKING:
    import pyarrow as pa

    from graphrag_pipeline.query.release import Release

NOWHERE = -1
"""What stands in a path for a chunk that names no entity."""

_CHUNKS = "SELECT id FROM chunks ORDER BY id"
_MENTIONS = "SELECT DISTINCT entity_id, chunk_id FROM entity_chunks ORDER BY ALL"
_COMMUNITIES = "SELECT id FROM communities ORDER BY id"
_MEMBERS = "SELECT level, entity_id, community_id FROM community_members ORDER BY ALL"

Path = tuple[int, ...]
"""The numbers of a chunk's communities, one for each level, from the root."""


class ChunkTree:
    """Every chunk in one community of each level, that of the next always within it.

    A chunk is about many things. It stands in the community that holds most of the entities it
    names, an entity counting the more, the fewer chunks name it: ln(1 + N / df). Of equal ones
    the first by id is taken. Communities are numbered by id.
    """

    def __init__(self, columns: Callable[[str], pa.Table]) -> None:
        chunks, communities, mentions, members = (
            KeptRows(columns(sql)) for sql in (_CHUNKS, _COMMUNITIES, _MENTIONS, _MEMBERS)
        )
        self._ids = np.asarray(chunks.ids("id"))
        self._paths = _paths(self._ids, np.asarray(communities.ids("id")), mentions, members)

    def paths(self, chunks: Iterable[str]) -> list[Path]:
        """Return the paths of chunks, in their order; all are equally long, and may be empty."""
        keys = as_bytes(chunks)
        if not len(keys) or not len(self._ids):
            return [() for _ in keys]
        places = np.minimum(np.searchsorted(self._ids, keys), len(self._ids) - 1)
        return [tuple(path) for path in self._paths[places].tolist()]


def chunk_tree(index: Release) -> ChunkTree:
    """Return where the chunks of a release stand."""
    return index.once("lazy: chunk tree", lambda whole: ChunkTree(whole.columns))


def _paths(
    chunks: npt.NDArray[np.bytes_],
    communities: npt.NDArray[np.bytes_],
    mentions: KeptRows,
    members: KeptRows,
) -> npt.NDArray[np.int64]:
    """Return the number of each chunk's community at each level, shape (chunks, levels)."""
    entities, entity = np.unique(np.asarray(mentions.ids("entity_id")), return_inverse=True)
    chunk = np.searchsorted(chunks, np.asarray(mentions.ids("chunk_id")))
    weight = np.log1p(len(chunks) / np.bincount(entity)[entity])
    levels = members.values("level")
    standing: list[npt.NDArray[np.int64]] = []
    for level in range(int(levels.max(initial=-1)) + 1):
        held_by = _held_by(entities, communities, members, levels == level)[entity]
        home = _heaviest(chunk, held_by, weight, len(chunks), len(communities))
        within = (held_by != NOWHERE) & (held_by == home[chunk])
        chunk, entity, weight = chunk[within], entity[within], weight[within]
        standing.append(home)
    return np.stack(standing, axis=1) if standing else np.empty((len(chunks), 0), np.int64)


def _held_by(
    entities: npt.NDArray[np.bytes_],
    communities: npt.NDArray[np.bytes_],
    members: KeptRows,
    rows: npt.NDArray[np.bool_],
) -> npt.NDArray[np.int64]:
    """Return the number of the community that holds each entity at a level."""
    held_by = np.full(len(entities), NOWHERE, np.int64)
    held = members.ids("entity_id")[rows]
    known = np.isin(held, entities)
    places = np.searchsorted(entities, held[known])
    held_by[places] = np.searchsorted(communities, members.ids("community_id")[rows][known])
    return held_by


def _heaviest(
    chunk: npt.NDArray[np.int64],
    community: npt.NDArray[np.int64],
    weight: npt.NDArray[np.float64],
    n_chunks: int,
    n_communities: int,
) -> npt.NDArray[np.int64]:
    """Return for each chunk the community with the largest weight, NOWHERE where it has none."""
    home = np.full(n_chunks, NOWHERE, np.int64)
    held = community != NOWHERE
    pairs, where = np.unique(
        chunk[held] * max(1, n_communities) + community[held], return_inverse=True
    )
    # The last digits depend on the order of sums, and would decide between equal ones.
    weights = np.round(np.bincount(where, weight[held]), 9)
    of, communities = np.divmod(pairs, max(1, n_communities))
    order = np.lexsort((-communities, weights, of))
    home[of[order]] = communities[order]
    return home
