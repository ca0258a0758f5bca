"""Layout of the drawing: a disc for every community, its members and sub-communities inside.

The forces are those of ForceAtlas2 (Jacomy et al., 2014, PLoS ONE 9(6) e98679) with sizes, under a
cooling step instead of its adaptive speed. They act within one community at a time, on its
sub-communities or members, so that every piece is small and the whole is near-linear. Positions
are complex numbers here, for turning a disc is then one multiplication.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Points = npt.NDArray[np.complex128]

_DENSE = 1000
"""Pieces up to this size compare all pairs; larger ones compare with the cells of a grid."""
_PAIRS_AT_ONCE = 400_000
_FORCE_STEPS = 70
_PACK_STEPS = 150
_GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))
_MARGIN = 0.03
_ROOT_MARGIN = 0.08
_NESTED = 3
"""Levels that have discs; deeper ones are few, and each would cost half of the room."""
_MINOR = 0.02
"""A root community without links elsewhere goes to the edge if below this share of the largest."""


@dataclass(frozen=True)
class _Level:
    """The things laid out at one depth of the tree, and the piece (parent) of each."""

    piece: Ints
    radius: Floats
    of_node: Ints
    """For every node, the thing at this level that it is in."""


def layout_graph(
    n_nodes: int,
    sources: npt.ArrayLike,
    targets: npt.ArrayLike,
    weights: npt.ArrayLike,
    communities: npt.ArrayLike,
) -> npt.NDArray[np.float32]:
    """Return a position for every node, shape (n_nodes, 2), within the unit circle.

    ``sources`` and ``targets`` are node numbers, ``weights`` above 0, all of one length.
    ``communities`` has the shape (levels, n_nodes), roots first: the community of each node, any
    integers. Communities of one of the first three levels never overlap; root communities that
    are linked to no other lie in rings at the edge. The same graph gives the same positions,
    whatever the order of its edges and the names of its communities.
    """
    if not n_nodes:
        return np.zeros((0, 2), np.float32)
    edges = _merged(n_nodes, sources, targets, weights)
    paths = _paths(np.asarray(communities, np.int64).reshape(-1, n_nodes)[:_NESTED])
    levels, places = _from_the_leaves(edges, paths)
    at = _from_the_roots(edges, levels, places)
    outer = float(np.max(np.abs(at))) or 1.0
    return np.stack([at.real, at.imag], axis=1).astype(np.float32) / np.float32(outer)


@dataclass(frozen=True)
class _Edges:
    """Undirected edges, each once, sorted; ``ends`` has the shape (2, edges)."""

    ends: Ints
    weight: Floats

    def between(self, of_node: Ints) -> _Edges:
        """Return the edges between groups of nodes, weights added up."""
        return _sorted_edges(of_node[self.ends], self.weight)


def _merged(
    n_nodes: int, sources: npt.ArrayLike, targets: npt.ArrayLike, weights: npt.ArrayLike
) -> _Edges:
    ends = np.stack([np.asarray(sources, np.int64), np.asarray(targets, np.int64)])
    if ends.size and (ends.min() < 0 or ends.max() >= n_nodes):
        raise ValueError(f"edges name nodes outside 0 to {n_nodes - 1}")
    return _sorted_edges(ends, np.asarray(weights, np.float64))


def _sorted_edges(ends: Ints, weight: Floats) -> _Edges:
    ends = np.sort(ends, axis=0)
    apart = ends[0] != ends[1]
    ends, weight = ends[:, apart], weight[apart]
    # By weight last, so that sums are the same whatever order the edges came in.
    order = np.lexsort((weight, ends[1], ends[0]))
    ends, weight = ends[:, order], weight[order]
    new = np.append(True, np.any(ends[:, 1:] != ends[:, :-1], axis=0))[: ends.shape[1]]
    starts = np.flatnonzero(new)
    return _Edges(ends[:, starts], np.add.reduceat(weight, starts) if len(starts) else weight)


def _paths(communities: Ints) -> Ints:
    """Return, per level, groups numbered by first member; a group lies within one group above."""
    n_nodes = communities.shape[1]
    paths = np.zeros((len(communities) + 2, n_nodes), np.int64)
    for level, communities_of_level in enumerate(communities):
        names = np.unique(communities_of_level, return_inverse=True)[1]
        key = paths[level] * (int(names.max()) + 1) + names
        _, first, group = np.unique(key, return_index=True, return_inverse=True)
        paths[level + 1] = np.argsort(np.argsort(first))[group]
    paths[-1] = np.arange(n_nodes)
    return paths


def _from_the_leaves(edges: _Edges, paths: Ints) -> tuple[list[_Level], list[Points]]:
    """Lay out every piece around its own centre; the deepest first, for they give the sizes."""
    degree = np.bincount(edges.ends.ravel(), minlength=paths.shape[1])
    radius = 1 + 0.3 * np.log2(1 + degree)
    levels, places = [], []
    for depth in range(len(paths) - 1, 0, -1):
        of_node = paths[depth]
        piece = np.zeros(len(radius), np.int64)
        piece[of_node] = paths[depth - 1]
        level = _Level(piece, radius, of_node)
        within = edges.between(of_node)
        at_root = depth == 1
        place, radius = _lay_out(level, within, at_root=at_root)
        margin = _ROOT_MARGIN if depth == 2 else _MARGIN
        single = np.bincount(piece) == 1
        radius = np.where(single, radius, radius * (1 + margin) + 0.5)
        levels.insert(0, level)
        places.insert(0, place)
    return levels, places


def _from_the_roots(edges: _Edges, levels: list[_Level], places: list[Points]) -> Points:
    """Put pieces into their parents, each turned so that it faces what it is linked to."""
    centre = np.zeros(1, np.complex128)
    for depth, (level, place) in enumerate(zip(levels, places, strict=True)):
        if depth:
            place = _turned(edges, level, place, centre)
        centre = centre[level.piece] + place
    return centre


def _turned(edges: _Edges, level: _Level, place: Points, centre: Points) -> Points:
    ends = np.concatenate([edges.ends, edges.ends[::-1]], axis=1)
    inside, outside = level.of_node[ends[0]], level.piece[level.of_node[ends[1]]]
    piece = level.piece[inside]
    apart = piece != outside
    inside, piece, outside = inside[apart], piece[apart], outside[apart]
    away = centre[outside] - centre[piece]
    towards = np.concatenate([edges.weight] * 2)[apart] * away / np.abs(away)
    n_pieces = len(centre)
    turn = _sums(piece, towards * place[inside].conj(), n_pieces)
    flip = _sums(piece, towards * place[inside], n_pieces)
    flipped = np.abs(flip) > np.abs(turn)
    best = np.where(flipped, flip, turn)
    size = np.abs(best)
    best = np.where(size > 0, best / np.where(size > 0, size, 1), 1)
    return np.where(flipped[level.piece], place.conj(), place) * best[level.piece]


def _sums(group: Ints, values: Points, n: int) -> Points:
    return np.bincount(group, values.real, n) + 1j * np.bincount(group, values.imag, n)


def _lay_out(level: _Level, within: _Edges, *, at_root: bool) -> tuple[Points, Floats]:
    """Return each thing's place around the centre of its piece, and the pieces' radii."""
    is_inside = level.piece[within.ends[0]] == level.piece[within.ends[1]]
    edges = _Edges(within.ends[:, is_inside], within.weight[is_inside])
    if not at_root:
        return _Pieces.of(level, edges, np.arange(len(level.piece))).laid_out()
    radius, rim = level.radius, _rim(level.radius, edges)
    place, reach = _Pieces.of(level, edges, np.flatnonzero(~rim)).laid_out()
    place[rim] = _rings(radius[rim], float(reach[0]))
    return place, np.array([np.max(np.abs(place) + radius)])


def _rim(radius: Floats, edges: _Edges) -> npt.NDArray[np.bool_]:
    has_link = np.bincount(edges.ends.ravel(), minlength=len(radius)) > 0
    return ~has_link & (radius**2 < max(_MINOR * np.max(radius) ** 2, 16))


@dataclass(frozen=True)
class _Pieces:
    """The things of one level by piece; within a piece the largest have the first slots."""

    level: _Level
    edges: _Edges
    things: Ints
    slot: Ints
    size: Ints
    """Number of things in each piece."""

    @classmethod
    def of(cls, level: _Level, edges: _Edges, things: Ints) -> _Pieces:
        """Sort the given things into their pieces."""
        piece, radius = level.piece, level.radius
        degree = np.bincount(edges.ends.ravel(), minlength=len(piece))
        things = things[np.lexsort((things, -degree[things], -radius[things], piece[things]))]
        size = np.bincount(piece[things], minlength=int(piece.max()) + 1)
        slot = np.zeros(len(piece), np.int64)
        slot[things] = np.arange(len(things)) - (np.cumsum(size) - size)[piece[things]]
        return cls(level, edges, things, slot, size)

    def laid_out(self) -> tuple[Points, Floats]:
        """Return the place of every thing and the radius of every piece; like sizes together."""
        place = np.zeros(len(self.slot), np.complex128)
        reach = np.zeros(len(self.size))
        room = _room(self.size)
        for n in np.unique(room[self.size > 0]):
            pieces = np.flatnonzero((room == n) & (self.size > 0))
            at_once = max(1, _PAIRS_AT_ONCE // int(n * n))
            for start in range(0, len(pieces), at_once):
                self._lay_out(pieces[start : start + at_once], int(n), place, reach)
        return place, reach

    def _lay_out(self, pieces: Ints, n: int, place: Points, reach: Floats) -> None:
        piece, (starts, ends) = self.level.piece, self.edges.ends
        row = np.full(len(self.size), -1)
        row[pieces] = np.arange(len(pieces))
        own_things = self.things[row[piece[self.things]] >= 0]
        cell = row[piece[own_things]], self.slot[own_things]
        sizes = np.zeros((len(pieces), n))
        sizes[cell] = self.level.radius[own_things]
        ours = row[piece[starts]] >= 0
        rows, starts, ends = (
            row[piece[starts[ours]]],
            self.slot[starts[ours]],
            self.slot[ends[ours]],
        )
        pull = np.sqrt(self.edges.weight[ours])
        if n > _DENSE:
            settled = _settled_by_grid(sizes[0], starts, ends, pull)[None]
        else:
            pulls = np.zeros((len(pieces), n, n), np.float32)
            pulls[rows, starts, ends] = pulls[rows, ends, starts] = pull
            settled = _settled(sizes, pulls)
        middle, reach[pieces] = _enclosing(settled, sizes)
        place[own_things] = (settled - middle[:, None])[cell]


def _room(size: Ints) -> Ints:
    """Return sizes rounded up to a power of two or half way between two."""
    power = 2 ** np.ceil(np.log2(np.maximum(size, 1))).astype(np.int64)
    return np.where((size <= power * 3 // 4) & (power >= 4), power * 3 // 4, power)


def _sunflower(sizes: Floats) -> Points:
    """Return a start for each row: a spiral, where an area as large as its disc falls to each."""
    area = np.cumsum(sizes**2, axis=-1) - sizes**2 / 2
    turn = np.arange(sizes.shape[-1]) * _GOLDEN_ANGLE
    return 1.6 * np.sqrt(area) * np.exp(1j * turn)


def _settled(sizes: Floats, pulls: npt.NDArray[np.float32]) -> Points:
    """Return places, shape (pieces, things), of discs that do not overlap; size 0 is no thing."""
    at = _sunflower(sizes).astype(np.complex64)
    size = sizes.astype(np.float32)
    exists = size > 0
    pairs = exists[:, :, None] & exists[:, None, :] & ~np.eye(size.shape[1], dtype=bool)
    touching = np.where(pairs, size[:, :, None] + size[:, None, :], 0)
    unit = (size.sum(axis=1) / np.maximum(exists.sum(axis=1), 1))[:, None, None]
    mass = np.sqrt(1 + (pulls > 0).sum(axis=2, dtype=np.float32))
    mean_pull = pulls.sum(axis=(1, 2)) / np.maximum((pulls > 0).sum(axis=(1, 2)), 1)
    pulls = (pulls / np.maximum(mean_pull, 1e-9)[:, None, None]).astype(np.float32)
    push = np.where(pairs, mass[:, :, None] * mass[:, None, :] * unit**2, 0).astype(np.float32)
    least_gap = (0.1 * unit).astype(np.float32)
    extent = np.sqrt((size**2).sum(axis=1, keepdims=True))
    for step in range(_FORCE_STEPS):
        apart = _Apart.of(at)
        gap = np.maximum(apart.distance - touching, least_gap)
        total = apart.moved((push / gap - pulls * gap) / apart.distance) - 0.2 * mass * at
        at = at + _limited(total, extent * 0.3 * (1 - step / _FORCE_STEPS))
        at[~exists] = 0
    return _packed(at, touching, size).astype(np.complex128)


@dataclass(frozen=True)
class _Apart:
    """Distances between the things of a piece, each of shape (pieces, things, things).

    In real numbers, which are several times faster here than complex ones.
    """

    x: npt.NDArray[np.float32]
    y: npt.NDArray[np.float32]
    distance: npt.NDArray[np.float32]

    @classmethod
    def of(cls, at: npt.NDArray[np.complex64]) -> _Apart:
        """Return what lies between each two places."""
        x, y = (part[:, :, None] - part[:, None, :] for part in (at.real, at.imag))
        return cls(x, y, np.maximum(np.sqrt(x * x + y * y), np.float32(1e-6)))

    def moved(self, factor: npt.NDArray[np.floating]) -> npt.NDArray[np.complex64]:
        """Return the sum, for each thing, of its ways from all others times a factor."""
        x, y = (np.einsum("pij,pij->pi", factor, way) for way in (self.x, self.y))
        return (x + 1j * y).astype(np.complex64)


def _limited(move: npt.NDArray[np.complex64], most: Floats) -> npt.NDArray[np.complex64]:
    length = np.abs(move)
    return move * np.minimum(1, most / np.maximum(length, 1e-9)).astype(np.float32)


def _packed(
    at: npt.NDArray[np.complex64],
    touching: npt.NDArray[np.float32],
    size: npt.NDArray[np.float32],
) -> npt.NDArray[np.complex64]:
    """Draw discs together until they touch, then scale away what still overlaps.

    ``touching`` is the distance at which two touch, 0 where there are no two.
    """
    at = _at_extent(at, size)
    share = np.where(touching > 0, size[:, None, :] ** 2, 0)
    share = share / np.maximum(share + size[:, :, None] ** 2, 1e-9)
    for step in range(_PACK_STEPS):
        at = at * np.float32(1 - 0.05 * (1 - step / _PACK_STEPS) ** 2)
        apart = _Apart.of(at)
        overlap = np.maximum(touching - apart.distance, 0)
        at = at + apart.moved(np.float32(0.7) * share * overlap / apart.distance)
    ratio = (touching / _Apart.of(at).distance).max(axis=(1, 2))
    return at * np.maximum(ratio, 1e-3)[:, None] * np.float32(1.001)


def _at_extent(
    at: npt.NDArray[np.complex64], size: npt.NDArray[np.float32]
) -> npt.NDArray[np.complex64]:
    """Scale so that the spread is about that of the discs side by side."""
    exists = (size > 0).sum(axis=1, keepdims=True)
    spread = np.sqrt((np.abs(at) ** 2).sum(axis=1, keepdims=True) / exists)
    extent = np.sqrt((size**2).sum(axis=1, keepdims=True))
    return at * np.where(spread > 0, 1.1 * extent / np.maximum(spread, 1e-9), 1).astype(np.float32)


def _settled_by_grid(sizes: Floats, starts: Ints, ends: Ints, pull: Floats) -> Points:
    """Return places of a piece too large for all pairs: repulsion from cells, then rings."""
    exists = sizes > 0
    at = _sunflower(sizes)
    n = int(exists.sum())
    degree = np.bincount(np.append(starts, ends), minlength=len(sizes))
    mass = np.where(exists, 1.0 + degree, 0)
    pull = pull / max(float(pull.mean()) if len(pull) else 1, 1e-9)
    across = int(np.clip(np.sqrt(2_000_000 / n), 8, 18))
    extent = float(np.sqrt((sizes**2).sum()))
    unit = float(sizes.sum() / n) ** 2
    for step in range(_FORCE_STEPS):
        total = unit * mass * _pushed(at, mass, across, extent) - 0.2 * mass * at
        attraction = pull * (at[ends] - at[starts])
        total += _sums(starts, attraction, len(at)) - _sums(ends, attraction, len(at))
        most = 0.3 * extent * (1 - step / _FORCE_STEPS)
        at = at + total * np.minimum(1, most / np.maximum(np.abs(total), 1e-9))
    places = np.zeros(len(sizes), np.complex128)
    places[exists] = _rings(sizes[exists], 0.0, at[exists])
    return places


def _pushed(at: Points, mass: Floats, across: int, extent: float) -> Points:
    low = at.real.min(), at.imag.min()
    span = max(float(np.ptp(at.real)), float(np.ptp(at.imag)), 1e-9)
    column = np.minimum((at.real - low[0]) / span * across, across - 1).astype(np.int64)
    row = np.minimum((at.imag - low[1]) / span * across, across - 1).astype(np.int64)
    cell = column * across + row
    cells = np.bincount(cell, mass, across**2)
    occupied = cells > 0
    middle = _sums(cell, mass * at, across**2)[occupied] / cells[occupied]
    near = (0.02 * extent) ** 2
    pushed = np.zeros(len(at), np.complex128)
    for centre, weight in zip(middle, cells[occupied], strict=True):
        apart = at - centre
        pushed += weight * apart / (apart.real**2 + apart.imag**2 + near)
    return pushed


def _rings(sizes: Floats, inner: float, angles: Points | None = None) -> Points:
    """Return places on rings around a disc of radius ``inner``: none overlap, in linear time.

    ``angles`` says where each would like to be: nearest to the centre first, then by angle.
    Without it the largest are innermost.
    """
    first = -sizes if angles is None else np.abs(angles)
    order = np.lexsort((np.arange(len(sizes)), first))
    places = np.zeros(len(sizes), np.complex128)
    radius, start = inner, 0
    while start < len(order):
        widest = float(np.max(sizes[order[start : start + 64]]))
        middle = radius + (widest * 1.15 if radius else 0)
        fitting = max(1, int(np.pi / np.arcsin(min(1.0, widest * 1.1 / middle)))) if middle else 1
        ring = order[start : start + fitting]
        widest = float(np.max(sizes[ring]))
        middle = radius + (widest * 1.15 if radius else 0)
        fitting = max(1, int(np.pi / np.arcsin(min(1.0, widest * 1.1 / middle)))) if middle else 1
        ring = ring[:fitting]
        if angles is not None:
            ring = ring[np.argsort(np.angle(angles[ring]), kind="stable")]
        turn = 2 * np.pi * np.arange(len(ring)) / max(len(ring), 1) - np.pi
        places[ring] = middle * np.exp(1j * turn)
        radius, start = middle + widest * 1.15, start + len(ring)
    return places


def _enclosing(at: Points, sizes: Floats) -> tuple[Points, Floats]:
    """Return centre and radius of a circle around each row's discs (Badoiu and Clarkson)."""
    exists = sizes > 0
    middle = at.sum(axis=1) / np.maximum(exists.sum(axis=1), 1)
    rows = np.arange(len(at))
    for step in range(2, 60):
        away = at - middle[:, None]
        distance = np.abs(away)
        reach = np.where(exists, distance + sizes, 0)
        far = rows, reach.argmax(axis=1)
        middle = middle + away[far] / np.maximum(distance[far], 1e-9) * reach[far] / step**1.5
    return middle, np.where(exists, np.abs(at - middle[:, None]) + sizes, 0).max(axis=1)
