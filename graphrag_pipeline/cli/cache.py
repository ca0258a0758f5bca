"""`cache`: what the answers that were paid for take on the disk."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_pipeline.cli import console
from graphrag_pipeline.cli.command import prints, settings_here
from graphrag_pipeline.cli.wording import megabytes

if TYPE_CHECKING:
    from graphrag_pipeline.llm.cache_size import Entries
    from graphrag_pipeline.store.cache_limit import CacheUse


def cache_values(use: CacheUse) -> dict[str, Any]:
    """Return what the cache takes as values that JSON can hold."""
    values = asdict(use.size) | {"path": str(use.size.path), "limit_bytes": use.limit_bytes or None}
    values["shared"] = use.shared or None
    for entries in values["entries"]:
        entries |= {name: str(entries[name]) for name in ("oldest_use", "newest_use")}
    if use.dropped is not None:
        values |= {"bytes_before": use.bytes_before, "dropped": dict(use.dropped)}
    return values


def show_cache(use: CacheUse) -> None:
    """Print what the cache takes, by stage and purpose, and what was given back."""
    size = use.size
    if not size.file_bytes:
        console.say("The cache is empty: no model has been asked yet.")
        return
    if use.dropped is not None:
        counts = ", ".join(f"{number:,} of {kind}" for kind, number in use.dropped.items())
        console.say(f"Dropped: {counts or 'nothing'}.")
        before = megabytes(use.bytes_before or 0)
        console.say(f"The file took {before}, and takes {megabytes(size.file_bytes)} now.")
    console.fact("file", str(size.path))
    console.fact("size", f"{megabytes(size.file_bytes)}, {megabytes(size.free_bytes)} of it free")
    limit = megabytes(use.limit_bytes) if use.limit_bytes else "none"
    console.fact("limit", f"{limit} (llm.cache_gb)")
    if use.shared:
        console.fact("shared with", f"{use.shared} (llm.shared_cache), which is beside this")
    console.fact("ledger", f"{size.calls:,} calls, which stay")
    if size.entries:
        console.table(
            ("stage", "for", "kind", "model", "entries", "MB", "last used from", "to"),
            [
                (
                    e.stage or "not noted",
                    _purpose(e),
                    e.kind,
                    e.model,
                    e.entries,
                    round(e.n_bytes / 1e6, 1),
                    e.oldest_use,
                    e.newest_use,
                )
                for e in size.entries
            ],
        )


def _purpose(entries: Entries) -> str:
    if entries.kind == "embeddings":
        return "search"
    if entries.of_index is None:
        return "not noted"
    return "the index" if entries.of_index else "questions"


@prints(show_cache, cache_values)
def cache(
    vacuum: Annotated[
        bool,
        typer.Option(
            "--vacuum",
            help="Drop what is above llm.cache_gb, used least recently, and shrink the file.",
        ),
    ] = False,
) -> CacheUse:
    """Show what the cache of paid answers takes on the disk, and when its entries were last used.

    With --vacuum the file gives its free space back. Where it is larger than llm.cache_gb, the
    entries that were not used for longest are dropped first, none that was used today or yesterday:
    what is needed again is bought again. Without that setting nothing is dropped.
    """
    from graphrag_pipeline.index import Index

    return Index(settings_here()).cache(vacuum=vacuum)
