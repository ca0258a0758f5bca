"""RAPTOR's clusters: global ones, local ones within each, and again within those too large.

Every mixture is kept by its path, so that rows that come later are placed in the clusters there
are, and only a cluster that has grown too large is fitted anew, within itself.

Source: Sarthi et al., 2024, section 3, and their code, ``cluster_utils.py``: it splits a cluster of
more than 3,500 tokens as it splits the whole, again and again, and never ends where rows are all
alike. Here such a cluster is clustered in the space of its local stage, each row into the likeliest
part alone: what is split for its size needs no overlap, which has to be paid for. Where that does
not part it, or not in time, it is halved by the hashes of its rows' ids: that ends at single rows,
and moves no row that is there already when another one comes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from graphrag_pipeline.structures.mixtures import (
    LEAST_PROBABILITY,
    Floats,
    Mixture,
    Whole,
    from_archive,
    to_archive,
)

_STAGES = 2
_DEEPEST = 6
_MOST = 50
_SPARE = 1.5
_BITS = 64


@dataclass(frozen=True)
class NestedMixture:
    """Mixtures by their path: "" is the global one, "3" that within its fourth cluster."""

    mixtures: Mapping[str, Mixture] = field(default_factory=dict)

    def place(
        self, vectors: Floats, n_tokens: Whole, ids: Sequence[str], *, most_tokens: int,
        seed: int, dimensions: int = 10,
    ) -> tuple[NestedMixture, list[Whole]]:  # fmt: skip
        """Place all rows, fitting what is not fitted yet, and return the rows of each cluster.

        ``vectors`` (n, d), ``n_tokens`` (n,) and ``ids`` are of the same rows. No cluster of
        several rows has more than ``most_tokens``; a row can be in several. What is returned first
        holds nothing of clusters that have lost all their rows.
        """
        mixtures: dict[str, Mixture] = {}
        clusters: list[Whole] = []
        waiting = [_Part("", np.arange(len(ids)), vectors)]
        while waiting:
            part = waiting.pop()
            tokens = int(n_tokens[part.rows].sum())
            earlier = self.mixtures.get(part.path)
            is_staged = part.depth < _STAGES and len(part.rows) > dimensions + 1
            if len(part.rows) < 2 or not (earlier or is_staged or tokens > most_tokens):
                clusters.append(part.rows)
            elif part.depth >= _DEEPEST or part.is_whole:
                clusters += _halved(part.rows, n_tokens, ids, most_tokens)
            else:
                count = min(_MOST, math.ceil(_SPARE * tokens / most_tokens))
                least, most = (1, _MOST) if is_staged else (count, count)
                mixture = earlier or Mixture.fit(
                    part.points, seed=seed, dimensions=dimensions, least=least, most=most
                )
                mixtures[part.path], parts = part.divided(mixture)
                waiting += parts
        return NestedMixture(mixtures), clusters

    def to_bytes(self) -> bytes:
        """Return all mixtures as a NumPy archive of plain arrays."""
        return to_archive(
            {
                f"{path}|{array.name}": getattr(mixture, array.name)
                for path, mixture in self.mixtures.items()
                for array in fields(mixture)
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> NestedMixture:
        """Return what :meth:`to_bytes` wrote."""
        arrays_of: dict[str, dict[str, npt.NDArray]] = {}
        for name, values in from_archive(data).items():
            path, array = name.split("|")
            arrays_of.setdefault(path, {})[array] = values
        return cls({path: Mixture(**arrays) for path, arrays in arrays_of.items()})


@dataclass(frozen=True)
class _Part:
    """A cluster on the way: its ``points`` are in the space that its own parts are found in."""

    path: str
    rows: Whole
    points: Floats
    is_whole: bool = False
    """Whether a stage that was to part it has left it whole."""

    @property
    def depth(self) -> int:
        return len(self.path.split(".")) if self.path else 0

    def divided(self, mixture: Mixture) -> tuple[Mixture, list[_Part]]:
        """Return the mixture without its empty clusters, and the others."""
        above = LEAST_PROBABILITY if self.depth < _STAGES else 1.0
        rows, numbers = mixture.memberships(self.points, above)
        points = mixture.reduced(self.points) if self.depth == _STAGES - 1 else self.points
        empty = np.setdiff1d(np.arange(len(mixture)), numbers)
        return mixture.without(empty) if len(empty) else mixture, [
            _Part(
                f"{self.path}.{number}" if self.path else str(number),
                self.rows[members],
                points[members].astype(np.float32),
                self.depth >= _STAGES and len(members) == len(self.rows),
            )
            for number, members in _grouped(rows, numbers)
        ]


def _grouped(rows: Whole, numbers: Whole) -> Iterator[tuple[int, Whole]]:
    order = np.argsort(numbers, kind="stable")
    values, starts = np.unique(numbers[order], return_index=True)
    for number, members in zip(values, np.split(rows[order], starts[1:]), strict=True):
        yield int(number), members


def _halved(rows: Whole, n_tokens: Whole, ids: Sequence[str], most_tokens: int) -> list[Whole]:
    """Part rows by the bits of the hashes of their ids until no part is too large."""
    hashes = [int.from_bytes(sha256(ids[int(row)].encode()).digest()[:8]) for row in rows]
    bits = np.array(hashes, np.uint64)
    halves: list[Whole] = []
    waiting = [(np.arange(len(rows)), 0)]
    while waiting:
        part, bit = waiting.pop()
        if len(part) == 1 or bit == _BITS or n_tokens[rows[part]].sum() <= most_tokens:
            halves.append(rows[part])
            continue
        is_one = (bits[part] >> np.uint64(bit)) & np.uint64(1) == 1
        waiting += [(half, bit + 1) for half in (part[is_one], part[~is_one]) if len(half)]
    return halves
