"""One open engine on the release that is published now.

A new release shows within a second. Questions that began on the one before end on it: each holds a
lease, and an engine is closed with its last.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from graphrag_pipeline.core.errors import GraphRAGError, StorageError
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.sharing import sharing_of
from graphrag_pipeline.query.engine import QueryEngine
from graphrag_pipeline.releases.kept_releases import find_release, release_ids

if TYPE_CHECKING:
    from graphrag_pipeline.core.settings import Settings

log = logging.getLogger("graphrag_pipeline")

LOOK_SECONDS = 1.0
_MOST_PINNED = 2

T = TypeVar("T")
_File = tuple[int, int, int, int]


@dataclass
class _Held:
    """An open engine, the file it was opened from, and how many questions use it."""

    engine: QueryEngine
    file: _File | None
    leases: int = 0
    is_retired: bool = False


class Holder:
    """The engine of one collection. Safe to use from several threads.

    ``release`` pins it to one that is kept. Nothing is opened before the first lease. Documents are
    told by their bare names, unless ``with_paths``: then by the paths of this machine.
    """

    def __init__(
        self,
        name: str,
        settings: Settings,
        *,
        release: str | None = None,
        with_paths: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.settings = settings
        self.home = settings.home_path
        self.n_switches = 0
        self.with_paths = with_paths
        self._release = release
        self._clock = clock
        self._current: _Held | None = None
        self._pinned: OrderedDict[str, _Held] = OrderedDict()
        self._looked = float("-inf")
        self._lock = threading.Lock()
        self._opening = threading.Lock()

    @contextlib.contextmanager
    def lease(self, release: str | None = None) -> Iterator[QueryEngine]:
        """Yield an engine on the published release, or on another that is kept, while it is used.

        Raises NothingPublishedError where there is no release, UnknownReleaseError for one that is
        not kept, StorageError or ConfigError where it cannot be opened and none was open before.
        """
        held = self._take(release or self._release)
        try:
            yield held.engine
        finally:
            self._give_back(held)

    def use(self, work: Callable[[QueryEngine], T], release: str | None = None) -> T:
        """Return what some work gives that reads only; see :meth:`lease`.

        Where a purge takes the files of an older release away in the second before that is seen,
        the work is done once more, on the new one.
        """
        try:
            with self.lease(release) as engine:
                return work(engine)
        except StorageError:
            if not self.look():
                raise
        with self.lease(release) as engine:
            return work(engine)

    def tables(self) -> Collection[str] | None:
        """Return the tables of vectors of the release; None where there is none to look at."""
        try:
            with self.lease() as engine:
                return engine.index.facts.vector_versions.keys()
        except GraphRAGError:
            return None

    def look(self) -> bool:
        """Look at once whether another release was published; return whether it was, and is open.

        Where nothing is open, that is whether something could be opened.
        """
        before = self._current
        self._looked = float("-inf")
        with contextlib.suppress(GraphRAGError), self.lease():
            pass
        return self._current is not before

    def give_back_memory(self) -> None:
        """Give the system back what the open engines took to load what they keep."""
        for held in self._open_ones():
            held.engine.index.give_back_memory()

    def _open_ones(self) -> list[_Held]:
        with self._lock:
            return [*([self._current] if self._current else []), *self._pinned.values()]

    def close(self) -> None:
        """Close what is open; an engine that answers is closed with its last question."""
        open_ones = self._open_ones()
        with self._lock:
            self._current = None
            self._pinned.clear()
        for held in open_ones:
            self._retire(held)

    def _take(self, release: str | None) -> _Held:
        if release is not None:
            return self._take_named(release)
        self._look_if_due()
        with self._lock:
            assert self._current is not None
            self._current.leases += 1
            return self._current

    def _take_named(self, release: str) -> _Held:
        """Take what is open, where that is the release; most addresses name the published one."""
        if self._current is not None:
            self._look_if_due()
        with self._lock:
            current = self._current
            if current is not None and current.engine.index.facts.id == release:
                current.leases += 1
                return current
        return self._take_pinned(release)

    def _look_if_due(self) -> None:
        """Open what is published, where that is another file than the one that is open.

        One thread opens it; the others go on with what is open, if anything is.
        """
        if self._current is not None and self._clock() - self._looked < LOOK_SECONDS:
            return
        if not self._opening.acquire(blocking=self._current is None):
            return
        try:
            if self._current is None or self._clock() - self._looked >= LOOK_SECONDS:
                self._open_published()
                self._let_go()
        finally:
            self._opening.release()

    def _open_published(self) -> None:
        sharing_of(self.settings).follow()
        file = _file_of(Home(self.home).published)
        before = self._current
        if before is not None and (file is None or file == before.file):
            self._looked = self._clock()
            return
        try:
            engine = self._opened(None)
        except GraphRAGError as error:
            self._looked = self._clock()
            if before is None:
                raise
            log.warning(
                "%s stays on release %s: %s", self.name, before.engine.index.facts.id, error
            )
            return
        with self._lock:
            self._current = _Held(engine, file)
            self._looked = self._clock()
        if before is not None:
            self.n_switches += 1
            self._retire(before)

    def _let_go(self) -> None:
        """Close older releases that are no longer kept: while one is open, its file stays."""
        if not self._pinned:
            return
        ids = release_ids(self.home)
        with self._lock:
            dropped = [self._pinned.pop(id) for id in [*self._pinned] if id not in ids]
        for held in dropped:
            self._retire(held)

    def _take_pinned(self, prefix: str) -> _Held:
        release = find_release(self.home, prefix)
        with self._lock:
            held = self._pinned.get(release)
            if held is not None:
                self._pinned.move_to_end(release)
                held.leases += 1
                return held
        engine = self._opened(release)
        with self._lock:
            # Another thread may have opened it meanwhile: then there are two for a while.
            dropped = [self._pinned.pop(release)] if release in self._pinned else []
            held = self._pinned[release] = _Held(engine, None, leases=1)
            while len(self._pinned) > _MOST_PINNED:
                dropped.append(self._pinned.popitem(last=False)[1])
        for old in dropped:
            self._retire(old)
        return held

    def _opened(self, release: str | None) -> QueryEngine:
        return QueryEngine(
            self.home, release=release, settings=self.settings, bare=not self.with_paths
        )

    def _give_back(self, held: _Held) -> None:
        with self._lock:
            held.leases -= 1
            is_last = held.is_retired and not held.leases
        if is_last:
            held.engine.close()

    def _retire(self, held: _Held) -> None:
        with self._lock:
            held.is_retired = True
            is_free = not held.leases
        if is_free:
            held.engine.close()


def _file_of(path: Path) -> _File | None:
    """Return what tells one published file from another, or None where there is none."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns
