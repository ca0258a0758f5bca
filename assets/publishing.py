"""The published index: what readers open."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from graphrag_pipeline.assets.common import adorned, markdown_rows
from graphrag_pipeline.assets.embeddings import embedding_keys
from graphrag_pipeline.assets.reports import report_key
from graphrag_pipeline.assets.stages import AssetStage, StageOutcome, StageTable, shown
from graphrag_pipeline.assets.structures import structure_keys
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.pipeline.stages import PUBLISH
from graphrag_pipeline.releases.diff import diff_releases
from graphrag_pipeline.releases.kept_releases import list_releases
from graphrag_pipeline.releases.publishing import PublishedRelease
from graphrag_pipeline.releases.quality import quality_line
from graphrag_pipeline.releases.table_diffs import CHANGES
from graphrag_pipeline.resources import IndexResource

PUBLISHED_INDEX = dg.AssetKey("published_index")
_MOST_RELEASES = 6
_FIRST = 3
_ID = len("20261121T093000")
_COUNTED = ("documents", "entities", "reports")


def build_published_index(settings: Settings) -> AssetStage:
    """Return the stage that publishes, which waits for reports, embeddings and structures."""
    return shown(
        PUBLISH,
        _end_run,
        [
            StageTable(
                key=PUBLISHED_INDEX,
                about="A consistent copy of graph, reports and vectors, put in place in one step.",
                group="serving",
                # Of the reports, the last: vectors of them are not made for every method.
                made_from=[
                    report_key(0),
                    *embedding_keys(settings),
                    *structure_keys(settings),
                ],
                kinds=frozenset({"duckdb", "lancedb"}),
                metadata={
                    "dagster/table_name": "published.main",
                    "dagster/storage_kind": "duckdb",
                },
            )
        ],
        spends=False,
    )


def _end_run(index: IndexResource, release: PublishedRelease) -> StageOutcome:
    """Make room in the cache of answers, now that the run has used it, and tell of the release."""
    index.keep_cache_within()
    return _tell(index, release)


def _tell(index: IndexResource, release: PublishedRelease) -> StageOutcome:
    """Compare the release with the one before."""
    path = index.workspace.paths.published
    return StageOutcome(
        {
            **release.counts,
            "release": release.id,
            "new_release": release.created,
            **(adorned("what_changed", lambda: _changes(index)) if release.created else {}),
            **({"quality": quality_line(release.quality.figures())} if release.quality else {}),
            **adorned("releases", lambda: {"releases": _releases(index.home)}),
            "path": dg.MetadataValue.path(str(path)),
            **adorned("size_mb", lambda: {"size_mb": round(path.stat().st_size / 1e6, 3)}),
        }
    )


def _changes(index: IndexResource) -> dict[str, dg.MetadataValue | str | int]:
    """Return how the published release differs from the one before, by numbers and as a table."""
    if len(list_releases(index.home)) == 1:
        return {"what_changed": "this is the only release that is kept"}
    diff = diff_releases(index.home, most=_FIRST, limits=index.store.limits)
    rows = [
        (
            name.replace("_", " "),
            *(table.before, table.after, table.entered, table.left, table.changed),
            "; ".join(title for change in CHANGES for title in table.first[change]),
        )
        for name, table in diff.tables.items()
    ]
    names = ("", "before", "now", *CHANGES, "first of these")
    return {
        **{f"{n}_{c}": getattr(t, c) for n, t in diff.tables.items() for c in CHANGES},
        "compared_with": diff.before,
        "what_changed": markdown_rows(names, rows),
    }


def _releases(home: Path) -> dg.MetadataValue:
    """Return the newest releases in columns that fit the page; the id's beginning names one."""
    rows = [
        (r.id[:_ID], "yes" if r.is_current else "", *(r.counts[name] for name in _COUNTED))
        for r in list_releases(home)[:_MOST_RELEASES]
    ]
    return markdown_rows(("release", "published", *_COUNTED), rows)
