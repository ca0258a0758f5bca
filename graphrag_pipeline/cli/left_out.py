"""Lines of `index`, `plan` and `status` on the files that are left out of a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphrag_pipeline.cli import console
from graphrag_pipeline.core.rows import one_line
from graphrag_pipeline.core.text import counted

_MOST_RULES = 10


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
