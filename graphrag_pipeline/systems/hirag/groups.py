"""Names of clusters that no model has summarised: a group, by its most central members."""

from __future__ import annotations

from collections.abc import Iterable

GROUP = "GROUP"
"""The type of such an entity."""

_AND_OTHERS = " and others"
_BETWEEN = " / "


def group_title(members: Iterable[str]) -> str:
    """Return what a group is called after these members; of a group, its first name counts."""
    return f"{_BETWEEN.join(dict.fromkeys(map(_first_name, members)))}{_AND_OTHERS}"


def is_group(title: str) -> bool:
    """Whether a title is that of a group."""
    return title.endswith(_AND_OTHERS)


def _first_name(title: str) -> str:
    return title.removesuffix(_AND_OTHERS).partition(_BETWEEN)[0] if is_group(title) else title
