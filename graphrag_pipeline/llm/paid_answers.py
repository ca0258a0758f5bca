"""Answers and vectors that were paid for: an index's own, and those that indexes share.

The own file has all that the index ever used, so that what others drop is not paid again. Beside it
may lie another (``llm.shared_cache``), where all is looked up that the own one lacks, and where all
is added that is bought. What of this index lies there is noted in the own file, so that a purge
finds it, whatever has left the own cache meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from graphrag_pipeline.core.home import Home
from graphrag_pipeline.llm.answer_purposes import made_for
from graphrag_pipeline.llm.cache import (
    CachedResponse,
    Vector,
    VectorSource,
    drop,
    find_embeddings,
    find_response,
    put_embeddings,
    put_response,
)
from graphrag_pipeline.llm.database import CallDatabase, Place, Write, tables_at

_NOTE = "INSERT INTO shared_entries (place, key) VALUES ($1, $2) ON CONFLICT DO NOTHING"


def shared_place(home: Place, folder: str) -> Path | None:
    """Return the folder of the shared answers, absolute; None where there is none but the home."""
    if not folder:
        return None
    place = Path(os.path.abspath(Path(folder).expanduser()))
    is_home = isinstance(home, Path) and place == Path(os.path.abspath(home))
    return None if is_home else place


class PaidAnswers:
    """The own answers of an index, and the shared ones of ``folder`` where one is named.

    A write is on disk among the own ones before it is returned from; among the shared ones it is
    with the next commit. Raises StorageError where either cannot be used.
    """

    def __init__(self, home: Place, folder: str = "") -> None:
        self.own = CallDatabase(tables_at(home))
        self._place = shared_place(home, folder)
        try:
            self._shared = CallDatabase(tables_at(self._place)) if self._place else None
        except BaseException:
            self.own.close()
            raise

    def close(self) -> None:
        """Commit what waits and close the files."""
        try:
            self.own.close()
        finally:
            if self._shared is not None:
                self._shared.close()

    async def response(self, key: bytes, model: str, stage: str) -> CachedResponse | None:
        """Return the answer to a request, if there is one; a shared one is then one's own."""
        response = find_response(self.own, key)
        if response is not None or self._shared is None:
            return response
        if shared := find_response(self._shared, key):
            response = shared._replace(made_for=made_for())
            copy = put_response(key, model, response, stage)
            await self.own.write([copy, *self._noted([key])])
        return response

    async def vectors(self, keys: Sequence[bytes], model: str, stage: str) -> dict[bytes, Vector]:
        """Return the vectors that are there; shared ones are then one's own.

        One that is no row of numbers is of length 0.
        """
        vectors = find_embeddings(self.own, keys)
        missing = [key for key in keys if key not in vectors] if self._shared else []
        if self._shared is not None and missing:
            shared = find_embeddings(self._shared, missing)
            if shared:
                copy = put_embeddings(model, shared, stage)
                await self.own.write([copy, *self._noted(shared)])
            vectors |= shared
        return vectors

    def width(self, source: VectorSource) -> int | None:
        """Return how long a source's vectors are, None if none has come yet."""
        width = source.find_width(self.own)
        return source.find_width(self._shared) if width is None and self._shared else width

    async def keep(
        self, ledger: Sequence[Write], bought: Sequence[Write], keys: Iterable[bytes]
    ) -> None:
        """Make durable the rows of the ledger, which is one's own, and what was bought, by keys."""
        await self.own.write([*ledger, *bought, *self._noted(keys)])
        if self._shared is not None and bought:
            self._shared.write_later(bought)

    async def drop(self, responses: Iterable[bytes] = (), embeddings: Iterable[bytes] = ()) -> None:
        """Forget answers and vectors, wherever they are."""
        writes = [drop("responses", responses), drop("embeddings", embeddings)]
        await self.own.write(writes)
        if self._shared is not None:
            await self._shared.write(writes)

    def _noted(self, keys: Iterable[bytes]) -> list[Write]:
        if self._place is None:
            return []
        rows = [(str(self._place), key) for key in keys]
        return [Write(_NOTE, rows)] if rows else []


def answer_places(home: Place, folder: str = "") -> list[Place]:
    """Return where there are paid answers: the own ones, then the shared ones."""
    shared = shared_place(home, folder)
    places = [home, *([shared] if shared else [])]
    return [p for p in places if not isinstance(p, Path) or Home(p).calls.is_file()]
