"""Views of `index`, the imports and `status`: what is in the index, and what happened to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graphrag_pipeline.cli import console
from graphrag_pipeline.cli.wording import amount, money
from graphrag_pipeline.core.extras import commands_for
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.rows import one_line
from graphrag_pipeline.core.text import counted

_MOST_UNREAD = 10
_MOST_RULES = 10
_NUMBER = pattern_of(r"\d+")

_NOT_IMPORTED = frozenset(
    (
        "relationships_without_entity",
        "claims_without_source",
        "self_relationships",
        "malformed_lines",
        "malformed_entities",
        "malformed_triples",
    )
)


_AGAIN = "the next run tries again"
_FAILED = {
    "failed_chunks": ("chunk", f"could not be extracted (see the table extractions); {_AGAIN}"),
    "cut_chunks": (
        "chunk",
        "got an answer that was cut off: the part before the cut is in the graph; raise "
        "llm.max_output_tokens, and the next run asks again",
    ),
    "outdated_chunks": (
        "chunk",
        "could not be extracted again: the earlier result stays (see the table extractions)",
    ),
    "failed_reports": (
        "report",
        f"could not be written (see the table report_failures); {_AGAIN}",
    ),
}


def show_index(summary: dict[str, Any]) -> None:
    """Print what an index run built."""
    if "imported" in summary:
        _show_imported(summary["imported"])
    elif "changes" in summary:
        _show_changes(summary)
    _show_counts(summary)
    show_unread([row for row in summary["quarantined"] if row["batch"] in summary["batches"]])
    show_left_out(summary["left_out"])
    _show_absent(summary)
    _show_failed(summary)
    _show_estimate(summary)
    _show_seconds(summary["seconds"])
    if summary.get("changes", {}).get("remove"):
        _show_removed(summary)
    _show_published(summary)
    _show_warnings(summary)


def show_status(summary: dict[str, Any]) -> None:
    """Print the state of the index."""
    console.fact("home", summary["home"])
    _show_warnings(summary)
    if not summary["indexed"]:
        _show_published(summary)
        if summary["follows"] and summary["published"]:
            console.say(f"This index reads what is published under {summary['follows']}.")
        else:
            console.say("Nothing is indexed yet: run graphrag-pipeline index FOLDER")
        return
    _show_counts(summary)
    _show_spent(summary)
    _show_failed(summary)
    _show_estimate(summary)
    pending = len(summary["pending_batches"])
    console.fact("pending", counted(pending, "batch", "batches"))
    if because := summary["pending_because"]:
        console.say_whole(f"read again: {', '.join(because)} (plan says what that changes)")
    if staged := summary["staged_documents"]:
        console.fact("taken in", f"{counted(staged, 'document')}, not in the graph yet")
    show_unread(summary["quarantined"])
    show_left_out(summary["left_out"])
    _show_absent(summary)
    _show_removed(summary)
    _show_published(summary)
    if pending or summary["refresh_needed"]:
        console.say("The published index is behind: run graphrag-pipeline index FOLDER")


def _show_warnings(summary: dict[str, Any]) -> None:
    for warning in summary["warnings"]:
        console.note(f"warning: {warning}")


def _show_imported(imported: dict[str, Any]) -> None:
    counts = {name: number for name, number in imported["counts"].items() if number}
    _show_warnings(imported)
    if imported["done_before"]:
        console.say("The same files were imported before.")
        return
    for heading, left_out in (("imported", False), ("left out", True)):
        facts = [
            f"{name.replace('_', ' ')} {number:,}"
            for name, number in counts.items()
            if (name in _NOT_IMPORTED) is left_out
        ]
        if facts:
            console.say(f"{heading}: {', '.join(facts)}")


def _show_changes(summary: dict[str, Any]) -> None:
    from graphrag_pipeline.store.sources import changed_files

    if changes := changed_files(summary["changes"]):
        console.say(changes)
    elif summary["batches_run"]:
        batches = counted(summary["batches_run"], "batch", "batches")
        because = f", because {' and '.join(summary['because'])}" if summary["because"] else ""
        console.say_whole(f"{batches} indexed again{because}")
    else:
        console.say("No file was added, changed or removed since the last run.")
        if summary.get("reclustered"):
            console.say("The whole graph was clustered anew.")
        elif summary.get("new_release"):
            console.say_whole(f"Published again, because {' and '.join(summary['because'])}.")


def _show_counts(summary: dict[str, Any]) -> None:
    for name in ("documents", "chunks", "entities", "relationships", "claims"):
        if summary[name] or name != "claims":
            console.say(f"{name:<14}{summary[name]:>10,}")
    if not summary["levels"]:
        console.say(f"{'communities':<14}{0:>10}")
        return
    names = ("level", "communities", "reports", "largest")
    console.table(names, [[row[name] for name in names] for row in summary["levels"]])
    if summary["structures"]:
        names = ("name", "rows")
        rows = [[row[name] for name in names] for row in summary["structures"]]
        console.table(("also", "rows"), rows)


def _show_spent(summary: dict[str, Any]) -> None:
    """Print what models cost until now: by stage, and where there are several, by model."""
    models = summary["models"] if len(summary["models"]) > 1 else []
    for by, rows in (("stage", summary["model_calls"]), ("model", models)):
        names = ("calls", "cached", "failed", "tokens")
        if rows:
            console.table(
                (by, *names, "cost"),
                [(row[by], *(row[name] for name in names), money(row["cost"])) for row in rows],
            )


def _show_failed(summary: dict[str, Any]) -> None:
    """Print how good it is what the model made, and what was not read."""
    from graphrag_pipeline.releases.quality import quality_line
    from graphrag_pipeline.releases.silent_languages import silent_lines

    if quality := summary["quality"]:
        console.say_whole(f"by the model: {quality_line(quality)}")
    for line in silent_lines(summary["silent_languages"]):
        console.say_whole(line)
    for name, (noun, what) in _FAILED.items():
        if number := summary[name]:
            console.say(f"{counted(number, noun)} {what}")


def _show_estimate(summary: dict[str, Any]) -> None:
    """Print what the last run was estimated to take, and what it took."""
    estimate = summary["estimate"]
    if estimate is None:
        if summary["model_calls"]:
            console.fact("estimate", "none: only graphrag-pipeline index makes one")
        return
    stages = estimate["stages"]
    if len(stages) > 1:
        names = ("last run", "calls", "made", "tokens", "used", "cost", "spent")
        console.table(names, [_estimate_row(stage) for stage in stages])
    took = "took" if estimate["finished"] else "took until now"
    estimated, actual = (amount(estimate["total"][side]) for side in ("estimated", "actual"))
    console.fact("estimated", f"{estimated}; {took} {actual}")
    if later := estimate["later_calls"]:
        console.fact("", f"{counted(later, 'call')} since, by runs that had no estimate")


def _estimate_row(stage: dict[str, Any]) -> tuple[object, ...]:
    estimated, actual = stage["estimated"], stage["actual"]
    return (
        stage["stage"],
        *(side[name] for name in ("calls", "tokens") for side in (estimated, actual)),
        *(money(side["cost"]) for side in (estimated, actual)),
    )


def show_unread(
    rows: Sequence[Mapping[str, Any]], *, where: str = " (see the table quarantine)"
) -> None:
    """Print what could not be read: failures with their reasons, then files of other kinds.

    ``where`` says where they are listed, if they are.
    """
    bad = [row for row in rows if not row["is_other_kind"]]
    others = [Path(row["uri"]) for row in rows if row["is_other_kind"]]
    if bad:
        files = sum(not row["is_record"] for row in bad)
        kinds = [(files, "file"), (len(bad) - files, "record")]
        counts = " and ".join(counted(number, kind) for number, kind in kinds if number)
        console.say(f"{counts} could not be read{where}:")
        alike = _alike(bad)
        for first, *others_like_it in alike[:_MOST_UNREAD]:
            more = f" (and {len(others_like_it):,} more like it)" if others_like_it else ""
            console.say_whole(f"  {one_line(first['uri'])}: {one_line(first['reason'])}{more}")
        console.more(sum(map(len, alike[_MOST_UNREAD:])))
        for command in commands_for(row["reason"] for row in bad):
            console.say_whole(f"  to read more of them: {command}")
    if others:
        suffixes = Counter(one_line(path.suffix.lower()) or "no suffix" for path in others)
        common = suffixes.most_common(_MOST_UNREAD)
        rest = len(others) - sum(number for _, number in common)
        by_kind = [f"{suffix} {number:,}" for suffix, number in common]
        more = [f"others {rest:,}"] if rest else []
        files = "file" if len(others) == 1 else "files"
        kinds_read = ", ".join(by_kind + more)
        console.say(f"{len(others):,} {files} of other kinds, not read: {kinds_read}")


def _alike(rows: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Return the rows by file, and by a reason that is the same but for its numbers."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        file = row["uri"].rpartition("#")[0] if row["is_record"] else row["uri"]
        groups.setdefault((file, _NUMBER.sub("", row["reason"])), []).append(row)
    return [*groups.values()]


def _show_absent(summary: dict[str, Any]) -> None:
    """Print the titles of the user's aliases that may be misspelt."""
    absent = [one_line(title) for title in summary["titles_not_in_the_corpus"]]
    if absent:
        names = ", ".join(absent[:_MOST_UNREAD])
        console.say_whole(f"aliases.csv has titles that no document mentions: {names}")
        console.more(len(absent) - _MOST_UNREAD)


def _show_removed(summary: dict[str, Any]) -> None:
    """Print what is left of removed files, and until when."""
    if summary["purge_unfinished"]:
        console.say(
            "A purge was interrupted, and traces of removed documents may remain: run "
            "graphrag-pipeline purge to finish it."
        )
    elif number := summary["removed_files"]:
        console.say(
            f"{counted(number, 'removed file')}: the published index no longer holds "
            f"{'it' if number == 1 else 'them'}. Older releases, manifests, kept answers and "
            "Dagster's history still do, until you run graphrag-pipeline purge."
        )


def _show_seconds(seconds: dict[str, float]) -> None:
    parts = ", ".join(
        f"{name} {duration:.1f}" for name, duration in seconds.items() if name != "total"
    )
    console.fact("seconds", f"{seconds['total']:.1f}")
    if parts:
        console.say(f"  {parts}")


def _show_published(summary: dict[str, Any]) -> None:
    release = summary["published"]
    if not release:
        console.fact("published", "nothing yet")
        return
    moment = release["created_at"].replace("T", " ").replace("Z", " UTC")
    console.fact("published", f"release {release['id']}")
    console.fact("", moment)
    if summary["rolled_back_from"]:
        console.fact("", f"rolled back from {summary['rolled_back_from']} until the index changes")
        names = ("documents", "chunks", "entities", "relationships")
        held = ", ".join(f"{release[name]:,} {name}" for name in names)
        console.fact("", f"it holds {held}; the counts above are those of the index")


def show_left_out(rules: Sequence[Mapping[str, Any]]) -> None:
    """Print how many files and folders are left out, by which rules, and the first of each."""
    if not rules:
        return
    console.fact(
        "left out",
        counted(sum(rule["number"] for rule in rules), "file or folder", "files and folders"),
    )
    for rule in rules[:_MOST_RULES]:
        console.say_whole(f"  {rule['number']:>6,}  {_rule(rule)}: {_names(rule)}")
    console.more(len(rules) - _MOST_RULES)


def _rule(rule: Mapping[str, Any]) -> str:
    from graphrag_pipeline.store.ignoring import BY_DEFAULT
    from graphrag_pipeline.store.scanning import BROKEN, INCLUDE, LINKS, SPECIAL

    by = rule["by"]
    in_words = {
        LINKS: "links out of the folder (input.follow_links)",
        INCLUDE: "match no pattern of input.include",
        BROKEN: "broken links",
        SPECIAL: "pipes, sockets and devices, which are never read",
    }
    if by in in_words:
        return in_words[by]
    origin = "input.default_excludes" if by == BY_DEFAULT else by
    return f"{one_line(rule['pattern'])} ({one_line(origin)})"


def _names(rule: Mapping[str, Any]) -> str:
    """Return the first names of what a rule leaves out."""
    more = " ..." if rule["number"] > len(rule["names"]) else ""
    return ", ".join(map(one_line, rule["names"])) + more
