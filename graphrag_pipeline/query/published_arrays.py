"""Giving the published release the arrays that questions on it need."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.query.memory.mapped_arrays import (
    FULL_TEXT,
    GRAPH,
    NAMES,
    VECTORS,
    CarriedArrays,
    rows_name,
    write_carried,
)
from graphrag_pipeline.query.methods.ppr_search import prepare
from graphrag_pipeline.query.operators import chunks, communities, relationships
from graphrag_pipeline.query.release import Release, open_release
from graphrag_pipeline.releases.kept_releases import (
    arrays_file,
    drop_arrays,
    published_release,
    release_ids,
)
from graphrag_pipeline.store.limits import limits_of
from graphrag_pipeline.store.sparse_vectors import MOST_ROWS

if TYPE_CHECKING:
    from graphrag_pipeline.core.settings import Settings
    from graphrag_pipeline.store.array_file import Arrays

log = logging.getLogger("graphrag_pipeline")

KEPT = (*chunks.KEPT, *communities.KEPT, *relationships.KEPT)
"""Queries whose rows a release carries."""


def carry_arrays(home: Path, settings: Settings) -> None:
    """Let the published release carry its arrays; only it and the newest keep theirs.

    Does nothing where it carries them. Where they cannot be written that is logged and no error: a
    reader then makes in memory what it needs.
    """
    try:
        _carry(home, settings)
    except StorageError as error:
        log.warning("the release is published without its arrays, and opens slower: %s", error)


def _carry(home: Path, settings: Settings) -> None:
    published = published_release(home)
    if published is None or CarriedArrays.of_release(home, published):
        return
    others = (CarriedArrays.of_release(home, each) for each in release_ids(home))
    before = next(filter(None, others), None)
    with open_release(home, settings=settings, limits=limits_of(settings)) as release:
        prepare(release)
        write_for(release, before)
    drop_arrays(home, {published, *release_ids(home)[:1]})


def write_for(release: Release, before: CarriedArrays | None) -> None:
    """Write the arrays that a release carries. Raises StorageError.

    ``before`` is what an earlier release carries: of its full texts and vectors that is taken over
    which is still so.
    """
    versions, vectors = release.facts.vector_versions, release.vectors
    earlier = before.full_texts(before.versions) if before else {}
    parts: dict[str, Arrays] = {}
    for table in (table for table, version in versions.items() if version):
        text = vectors.full_text(table, earlier.get(table))
        parts[f"{FULL_TEXT}/{table}"] = text.arrays()
        if len(text) <= MOST_ROWS:
            sparse = vectors.sparse(table, text, before.versioned(table) if before else None)
            parts |= {f"{VECTORS}/{table}": sparse.arrays()} if sparse else {}
    parts[NAMES] = release.names.arrays
    parts[GRAPH] = release.graph.arrays(edges=("facts",))
    parts |= {rows_name(sql): release.kept(sql).arrays() for sql in KEPT}
    facts = release.facts
    file = arrays_file(release.home, facts.id)
    write_carried(file, facts.id, facts.embedder, versions, parts)
