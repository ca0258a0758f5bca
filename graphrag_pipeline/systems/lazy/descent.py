"""The way of a lazy search down the hierarchy: which chunks are tested next, and when it ends."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from graphrag_pipeline.systems.lazy.chunk_tree import Path


class Descent:
    """Best-first and breadth-first down the communities of ranked chunks, deepening by turns.

    At a level, communities are visited in the order of their best chunk, and of each the
    ``each`` best chunks not yet tested are. After ``patience`` communities in a row without a
    relevant chunk, and at the end of the level, the search goes on in the communities below those
    that had one. A community that is not split stands for itself below, and so is visited again
    while its chunks are relevant. The search ends where none is left, or after ``budget`` tests.

    What is visited in a row whatever the model says is one wave, whose tests can be made together:
    waves change when a test is made, never which.
    """

    def __init__(
        self, chunks: Sequence[str], paths: Sequence[Path], *, budget: int, each: int, patience: int
    ) -> None:
        self._paths = dict(zip(chunks, paths, strict=True))
        self._untested = dict.fromkeys(chunks)
        self._each, self._patience = each, patience
        self._left = budget
        self._depth = 0
        self._open = self._grouped(self._untested)
        self._with_hit: set[int | None] = set()
        self._misses = 0
        self._wave: list[tuple[int | None, list[str]]] = []
        self.n_tested = self.n_communities = 0
        self.relevant: dict[str, None] = {}

    @property
    def n_levels(self) -> int:
        """The number of levels that were looked at."""
        return self._depth + 1

    @property
    def ended_by_budget(self) -> bool:
        """Whether no test was left."""
        return self._left == 0

    def wave(self) -> list[str]:
        """Return the chunks to be tested next, best community first; empty where the search ends.

        What was found of them must be told (:meth:`take`) before the next wave.
        """
        while not self._open and self._with_hit:
            self._deepen()
        self._wave = []
        for community in list(self._open)[: self._patience - self._misses]:
            chunks = self._open[community][: min(self._each, self._left)]
            if not chunks:
                break
            self._left -= len(chunks)
            self._wave.append((community, chunks))
        return [chunk for _, chunks in self._wave for chunk in chunks]

    def take(self, relevant: Collection[str]) -> None:
        """Take note of which chunks of the last wave are relevant."""
        for community, chunks in self._wave:
            del self._open[community]
            self.n_communities += 1
            self.n_tested += len(chunks)
            hits = [chunk for chunk in chunks if chunk in relevant]
            self.relevant |= dict.fromkeys(hits)
            self._misses = 0 if hits else self._misses + 1
            self._with_hit |= {community} if hits else set()
            for chunk in chunks:
                del self._untested[chunk]
        if self._misses >= self._patience:
            self._open = {}

    def _deepen(self) -> None:
        """Go on a level below, in the communities that had a relevant chunk."""
        below = [key for key in self._untested if self._at(key) in self._with_hit]
        self._depth += 1
        self._open, self._with_hit, self._misses = self._grouped(below), set(), 0

    def _grouped(self, chunks: Collection[str]) -> dict[int | None, list[str]]:
        """Return chunks by their community at this depth, that of the best chunk first."""
        groups: dict[int | None, list[str]] = {}
        for chunk in chunks:
            groups.setdefault(self._at(chunk), []).append(chunk)
        return groups

    def _at(self, chunk: str) -> int | None:
        """Return the community of a chunk at this depth; the last one where it ends before."""
        path = self._paths[chunk]
        return path[min(self._depth, len(path) - 1)] if path else None
