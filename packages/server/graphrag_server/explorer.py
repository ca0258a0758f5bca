"""The explorer of a collection, made once for each release."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from graphrag_pipeline.core.addresses import PermanentLinks
from graphrag_pipeline.pages.explorer import packed, read_data

if TYPE_CHECKING:
    from graphrag_pipeline.query.engine import QueryEngine
    from graphrag_server.collections import VisibleCollection


class ExplorerData:
    """The packed data of each collection's release; an older release's is let go."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[str, asyncio.Future[bytes]]] = {}

    async def of(self, holder: VisibleCollection) -> bytes:
        """Return the data of the release that answers (JSON, by gzip).

        Whoever asks meanwhile waits for the same. Raises what opening a release raises, and
        AccessError for a caller with labels.
        """
        release = await asyncio.to_thread(holder.use, _whole_release)
        made = self._made.get(holder.name)
        if made is None or made[0] != release:
            making = asyncio.ensure_future(asyncio.to_thread(_packed, holder))
            made = self._made[holder.name] = release, making
        try:
            return await asyncio.shield(made[1])
        except Exception:
            self._made.pop(holder.name, None)
            raise


def _whole_release(engine: QueryEngine) -> str:
    engine.index.check_whole()
    return engine.index.facts.id


def _packed(holder: VisibleCollection) -> bytes:
    # From where the page is, also behind a proxy that puts the server below a folder.
    links = partial(PermanentLinks, ".", holder.name)
    data = holder.use(
        lambda engine: read_data(engine.index.file, bare=engine.index.bare, links=links)
    )
    return packed(data, collection=holder.name)
