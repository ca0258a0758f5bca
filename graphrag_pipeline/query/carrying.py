"""Giving the published release the arrays that questions on it need."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_pipeline.query.carried_arrays import CarriedArrays, write_carried
from graphrag_pipeline.query.methods.ppr_search import prepare
from graphrag_pipeline.query.operators import chunks, communities, relationships
from graphrag_pipeline.query.release import open_release
from graphrag_pipeline.releases.kept import drop_arrays, published_release, release_ids

if TYPE_CHECKING:
    from graphrag_pipeline.core.settings import Settings

_NEWEST = 2
_ROWS = (*chunks.KEPT, *communities.KEPT, *relationships.KEPT)


def carry_arrays(home: Path, settings: Settings) -> None:
    """Let the published release carry its arrays, and the newest two; others' are removed.

    Does nothing where it carries them. Raises StorageError.
    """
    published = published_release(home)
    if published is None or CarriedArrays.of_release(home, published):
        return
    others = (CarriedArrays.of_release(home, each) for each in release_ids(home))
    before = next(filter(None, others), None)
    with open_release(home, settings=settings) as release:
        prepare(release)
        write_carried(release, _ROWS, before)
    drop_arrays(home, {published, *release_ids(home)[:_NEWEST]})
