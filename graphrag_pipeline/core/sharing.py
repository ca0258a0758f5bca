"""An index that several machines share: what the rooms ask of it, and how one machine answers.

Without ``storage.url`` an index is in its home folder, and :class:`Sharing` says all there is to
say. With one, somebody else answers in its place: a part that comes in by the door ``sharing``,
called like the scheme of the url.
"""

from __future__ import annotations

import contextlib
from typing import Any
from urllib.parse import urlsplit

from graphrag_pipeline.core.doors import Door
from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.extras import how_to_install
from graphrag_pipeline.core.settings import Settings


class Sharing:
    """An index that is not shared: nothing is asked of other machines, and nothing told them.

    A part of the door ``sharing`` is a class that derives from this one, and is given the settings
    of an index.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def calls(self) -> Any:
        """Return where paid answers and the ledger are, None where they are in the home.

        It is a :class:`~graphrag_pipeline.llm.database.SharedCalls`.
        """
        return None

    def coordinating(self) -> contextlib.AbstractContextManager[object]:
        """Let no other machine change the index within this context.

        Raises StorageError where another does, and where that cannot be known.
        """
        return contextlib.nullcontext()

    def publish(self) -> None:
        """Show the readers of other machines what is published in this home, if they do not see it.

        Raises StorageError; readers then stay on the release before.
        """

    def follow(self, *, at_once: bool = False) -> None:
        """Bring what another machine has published into this home, if it is news.

        Unless ``at_once``, it is not looked for where it was a moment ago. Raises StorageError
        where this home has no release, and none can be had.
        """

    def forget(self) -> None:
        """Remove all that lies elsewhere, but for what is published now. Raises StorageError."""


def _check(name: str, part: type) -> None:
    if not issubclass(part, Sharing):
        raise ConfigError(f"{part.__name__} does not derive from {Sharing.__qualname__}")


SHARING: Door[type] = Door(
    "sharing",
    type,
    "way to share an index",
    own={},
    beside=__name__,
    check=_check,
)
"""The ways to share an index, by the scheme of ``storage.url``."""


def sharing_of(settings: Settings) -> Sharing:
    """Return how an index is shared. Raises ConfigError where what does that is not installed."""
    url = settings.storage.url
    if not url:
        return Sharing(settings)
    part = SHARING.find(urlsplit(url).scheme)
    if part is None:
        raise ConfigError(f"storage.url is for many workers: {how_to_install('cluster')}")
    return part(settings)
