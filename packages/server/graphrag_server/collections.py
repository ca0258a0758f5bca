"""The collections that are served, and each as a caller with some labels may see it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from graphrag_pipeline.core.errors import (
    AccessError,
    ConfigError,
    InputError,
    NothingPublishedError,
)
from graphrag_pipeline.core.settings import CONFIG_FILE, load_settings
from graphrag_pipeline.query.engine import QueryEngine
from graphrag_pipeline.query.open_engine import Holder
from graphrag_pipeline.releases.kept_releases import list_releases

if TYPE_CHECKING:
    from graphrag_pipeline.core.settings import Settings
    from graphrag_pipeline.query.release import ReleaseFacts

DEFAULT = "default"

T = TypeVar("T")


@dataclass(frozen=True)
class VisibleCollection:
    """A collection as a caller with some labels may see it; None: all of it.

    Whoever asks for somebody else gets the engine here. Labels count where ``[access]`` is set.
    """

    holder: Holder
    labels: frozenset[str] | None

    @property
    def name(self) -> str:
        """The collection's name."""
        return self.holder.name

    @property
    def settings(self) -> Settings:
        """The settings by which it is asked."""
        return self.holder.settings

    @property
    def home(self) -> Path:
        """The folder of its index."""
        return self.holder.home

    @contextlib.contextmanager
    def lease(self, release: str | None = None) -> Iterator[QueryEngine]:
        """Yield what the caller may see of an engine; see :meth:`Holder.lease`.

        Also raises AccessError where his labels open nothing, or not that release.
        """
        with self.holder.lease(self._release_of(release)) as engine:
            yield self._view(engine)

    def use(self, work: Callable[[QueryEngine], T], release: str | None = None) -> T:
        """Return what some work gives; see :meth:`Holder.use` and :meth:`lease`."""
        return self.holder.use(lambda engine: work(self._view(engine)), self._release_of(release))

    def tables(self) -> Collection[str] | None:
        """Return the tables of vectors of the release; see :meth:`Holder.tables`."""
        return self.holder.tables()

    def look(self) -> bool:
        """Look whether another release was published; see :meth:`Holder.look`."""
        return self.holder.look()

    def releases(self) -> list[dict[str, Any]]:
        """Return the releases that are kept, the newest first.

        Who sees some documents only is told of the published one, with counts of what he sees.
        """
        kept = [asdict(release) for release in list_releases(self.home)]
        for release in kept:
            # Nobody is told of the places of this machine.
            del release["path"]
        if not self.is_limited():
            return kept
        facts = self.use(lambda engine: engine.index.facts)
        told = ("id", "created_at", "embedder", "is_current")
        return [
            {**{name: release[name] for name in told}, "counts": counts_in(facts)}
            for release in kept
            if release["id"] == facts.id
        ]

    def is_limited(self) -> bool:
        """Whether the caller sees some documents only, by the settings or by the release."""
        if self.labels is None or self.settings.access.mode == "filtered":
            return self.labels is not None
        try:
            return self.holder.use(lambda engine: engine.index.access[0]) == "filtered"
        except NothingPublishedError:
            return False

    def _release_of(self, named: str | None) -> str | None:
        """Return the release to open. Raises AccessError for one that labels do not open.

        What is said of such a release does not depend on whether it is kept.
        """
        if named is None or not self.is_limited():
            return named
        published = self.holder.use(lambda engine: engine.index.facts.id)
        if not published.startswith(named):
            raise AccessError(
                "callers with labels see only the published release: leave out the release"
            )
        return published

    def _view(self, engine: QueryEngine) -> QueryEngine:
        is_open = self.labels is None or engine.index.access[0] == "off"
        return engine if is_open else engine.view(self.labels)


def counts_in(facts: ReleaseFacts) -> dict[str, int]:
    """Return how much is in a release, or in what a caller sees of it."""
    return {name.removeprefix("n_"): count for name, count in facts.counts.items()}


@dataclass(frozen=True)
class Collections:
    """The collections that are served, by name; ``default`` is asked where none is named."""

    holders: Mapping[str, Holder]
    default: str

    def named(self, name: str | None) -> Holder:
        """Return the holder of a collection. Raises UnknownCollectionError for no such name."""
        holder = self.holders.get(self.default if name is None else name)
        if holder is None:
            raise UnknownCollectionError(
                f"there is no collection {name}: there are {', '.join(self.holders)}"
            )
        return holder

    def close(self) -> None:
        """Close the engines of all."""
        for holder in self.holders.values():
            holder.close()


class UnknownCollectionError(InputError):
    """A collection was named that is not served."""


def open_collections(
    settings: Settings, *, release: str | None = None, with_paths: bool = False
) -> Collections:
    """Return the collections of some settings; ``release`` pins the default one.

    ``with_paths``: documents are told by the paths of this machine, for who may read its files.

    A collection whose home has a settings file of its own is asked by that, another by
    ``settings``. Raises ConfigError for a collection whose folder is not there.
    """
    named = {name: Path(folder) for name, folder in settings.server.collections.items()}
    holders = {
        name: Holder(name, _settings_of(name, folder.expanduser(), settings), with_paths=with_paths)
        for name, folder in named.items()
    }
    if DEFAULT not in holders:
        own = Holder(DEFAULT, settings, release=release, with_paths=with_paths)
        holders = {DEFAULT: own, **holders}
    return Collections(holders, DEFAULT)


def _settings_of(name: str, folder: Path, settings: Settings) -> Settings:
    home = Path(os.path.abspath(folder))
    if not home.is_dir():
        raise ConfigError(
            f"server.collections: {name} = {str(folder)!r}: there is no such folder; name the home "
            "of an index (.graphrag)"
        )
    if (home / CONFIG_FILE).is_file():
        return load_settings(home=str(home))
    # The folder of uploads is read by runs of the server's own index alone.
    server = settings.server.model_copy(update={"uploads": ""})
    # What is said of its entities stands in its home.
    aliases = settings.resolution.model_copy(update={"aliases_file": str(home / "aliases.csv")})
    own = {"home": str(home), "server": server, "resolution": aliases}
    return settings.model_copy(update=own)
