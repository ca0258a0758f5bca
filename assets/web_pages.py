"""The pages of the web that settings name: fetched by a job of their own, read like a folder."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from graphrag_pipeline.assets.common import adorned, markdown_rows
from graphrag_pipeline.assets.ingestion import GROUP, WEB_PAGES
from graphrag_pipeline.assets.names import Names
from graphrag_pipeline.assets.stages import AssetStage, StageOutcome, StageTable
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.structures.structure import Check

WEB_POOL = "web"
_MOST_PROBLEMS = 20


def build_web_pages(settings: Settings, names: Names) -> list[dg.AssetsDefinition]:
    """Return the asset of the pages that settings name; none where they name none."""
    return [web_pages.build(names, {})] if settings.input.urls else []


def fetch(index: IndexResource) -> StageOutcome:
    """Bring the kept pages up to date with their servers."""
    from graphrag_pipeline.ingest.sites import fetch_sites

    fetched = fetch_sites(index.home, index.settings.input.urls, index.settings)
    numbers = {name: getattr(fetched, name) for name in ("new", "changed", "unchanged", "gone")}
    problems = list(fetched.problems.items())[:_MOST_PROBLEMS]
    why = adorned("not_fetched", lambda: _not_fetched(problems)) if problems else {}
    return StageOutcome({**numbers, **why}, failed=len(fetched.problems))


def _not_fetched(problems: Sequence[tuple[str, str]]) -> dict[str, dg.MetadataValue]:
    return {"not_fetched": markdown_rows(("address", "reason"), problems)}


web_pages = AssetStage(
    name="fetch_web_pages",
    work=fetch,
    pool=WEB_POOL,
    spends=False,
    tables=[
        StageTable(
            key=WEB_PAGES,
            about="The pages and sitemaps of `input.urls`, kept as files in the home. Only "
            "changed pages are sent; a page is removed when its server says that it is gone.",
            group=GROUP,
            kinds=frozenset({"python", "file"}),
            checks=[
                Check(
                    "every_page_answered",
                    "Warns of addresses that could not be fetched; their last copies stay.",
                    "",
                    "addresses could not be fetched; the metadata says why",
                    warns=True,
                )
            ],
        )
    ],
)
