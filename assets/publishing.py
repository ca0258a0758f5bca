"""The published index: what readers open."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from graphrag_pipeline.assets.common import markdown_rows
from graphrag_pipeline.assets.embeddings import embedding_keys
from graphrag_pipeline.assets.stages import Check, Outcome, Stage, Table
from graphrag_pipeline.assets.structures import structure_keys
from graphrag_pipeline.core.errors import GraphRAGError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.releases.diff import CHANGES, diff_releases
from graphrag_pipeline.releases.kept import list_releases, published_release
from graphrag_pipeline.releases.publishing import publish
from graphrag_pipeline.resources import IndexResource

PUBLISHED_INDEX = dg.AssetKey("published_index")
_MOST_RELEASES = 6
_FIRST = 3
_ID = len("20261121T093000")
_COUNTED = ("documents", "entities", "reports")


def build_published_index(settings: Settings) -> Stage:
    """Return the stage that publishes, which waits for all embeddings and structures."""
    return Stage(
        name="published_index",
        label="publish",
        work=put_in_place,
        spends=False,
        tables=[
            Table(
                key=PUBLISHED_INDEX,
                about="A consistent copy of graph, reports and vectors, put in place in one step.",
                group="serving",
                made_from=[*embedding_keys(settings), *structure_keys(settings)],
                kinds=frozenset({"duckdb", "lancedb"}),
                metadata={
                    "dagster/table_name": "published.main",
                    "dagster/storage_kind": "duckdb",
                },
                checks=[
                    Check(
                        "release_readable",
                        "A reader who opens the published file finds this release.",
                        "published file holds another release",
                    )
                ],
            )
        ],
    )


def put_in_place(index: IndexResource) -> Outcome:
    """Publish, and compare the release with the one before."""
    release = publish(index.workspace)
    path = index.workspace.paths.published
    readable = published_release(index.home) == release.id
    return Outcome(
        {
            **release.counts,
            "release": release.id,
            "new_release": release.created,
            **(_changes(index.home) if release.created else {}),
            "releases": _releases(index.home),
            "path": dg.MetadataValue.path(str(path)),
            "size_mb": round(path.stat().st_size / 1e6, 3),
        },
        failed=int(not readable),
    )


def _changes(home: Path) -> dict[str, dg.MetadataValue | str | int]:
    """Return how the published release differs from the one before, by numbers and as a table."""
    if len(list_releases(home)) == 1:
        return {"what_changed": "this is the only release that is kept"}
    try:
        diff = diff_releases(home, most=_FIRST)
    except GraphRAGError as error:
        return {"what_changed": str(error)}
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
