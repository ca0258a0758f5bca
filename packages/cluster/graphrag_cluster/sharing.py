"""The part of the door ``sharing``: many workers in place of one machine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from graphrag_cluster.calls import PostgresCalls
from graphrag_cluster.lease import holding_lease
from graphrag_cluster.objects import ObjectStore
from graphrag_cluster.postgres import Postgres
from graphrag_cluster.releases import follow_published, forget_shared, share_release
from graphrag_cluster.slices import sweep_slices
from graphrag_pipeline.core.sharing import Sharing


class SharedIndex(Sharing):
    """An index whose machines share Postgres and what lies under ``storage.url``."""

    def calls(self) -> PostgresCalls:
        """Return the tables of answers and the ledger in Postgres."""
        return PostgresCalls(Postgres.of(self.settings))

    @contextlib.contextmanager
    def coordinating(self) -> Iterator[object]:
        """Hold the lease of the coordinator within this context.

        Raises StorageError, at once, where Postgres or the store cannot be reached.
        """
        objects = ObjectStore(self.settings.storage.url)
        objects.check()
        with holding_lease(self.settings) as lease:
            # Whoever wanted them had the lease, and has not come back for a day.
            sweep_slices(objects)
            yield lease

    def publish(self) -> None:
        """Publish under the url what is published in this home."""
        share_release(self.settings)

    def follow(self, *, at_once: bool = False) -> None:
        """Bring what is published under the url into the home of a reader."""
        follow_published(self.settings, at_once=at_once)

    def forget(self) -> None:
        """Remove all under the url but what is published there."""
        forget_shared(self.settings)
