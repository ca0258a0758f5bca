"""Names in Dagster: an index's own, under a prefix where a code location holds several."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import dagster as dg

from graphrag_pipeline.core.errors import ConfigError

BATCHES = "document_batch"
INDEX = "index"
_PART = re.compile(r"[A-Za-z0-9_]+")


@dataclass(frozen=True)
class Names:
    """Names of the assets, jobs, sensors, partitions, pools and the resource of one index."""

    prefix: tuple[str, ...] = ()

    @classmethod
    def under(cls, key_prefix: str | Sequence[str]) -> Names:
        """Return the names under a prefix of asset keys, such as ``hr`` or ``["hr", "policies"]``.

        Raises ConfigError for one that a job could not be named by.
        """
        parts = (key_prefix,) if isinstance(key_prefix, str) else tuple(key_prefix)
        prefix = tuple(part for part in parts if part)
        for part in prefix:
            if not _PART.fullmatch(part):
                raise ConfigError(
                    f"key_prefix {part!r}: take letters, digits and underscores: jobs and sensors "
                    "are named by it"
                )
        return cls(prefix)

    def key(self, key: dg.AssetKey | str) -> dg.AssetKey:
        """Return the key of an asset here."""
        path = [key] if isinstance(key, str) else key.path
        return dg.AssetKey([*self.prefix, *path])

    def name(self, name: str) -> str:
        """Return the name of anything else here: a job, a sensor, a group, a pool, a resource."""
        return "_".join([*self.prefix, name])

    @property
    def resource(self) -> str:
        """The key of the index's resource."""
        return self.name(INDEX)

    @property
    def batches(self) -> dg.DynamicPartitionsDefinition:
        """The partitions of ingestion: batches of documents."""
        return dg.DynamicPartitionsDefinition(name=self.name(BATCHES))
