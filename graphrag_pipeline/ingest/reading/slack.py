"""Exports of Slack: the lists beside the channels say who is meant by ids in their days."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePath

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading.model import ReadResult, SlackDay
from graphrag_pipeline.store.sources import SLACK_LISTS

_DAY = pattern_of(r"\d{4}-\d\d-\d\d\.json")
_ID = pattern_of(r"[A-Z][A-Z0-9]{1,20}")
_NAMES = ("profile.real_name", "real_name", "profile.display_name", "name")


class SlackLists:
    """The lists of exports, read once for all their days."""

    def __init__(self) -> None:
        self._names: dict[PurePath, Mapping[str, str]] = {}

    def day(self, path: PurePath, read: Callable[[PurePath], ReadResult]) -> SlackDay | None:
        """Return what is known of a file that is a day of a channel; None for all others.

        ``read`` returns what a list gives, and nothing where it is not there.
        """
        if not _DAY.fullmatch(path.name):
            return None
        export, channel = path.parent.parent, path.parent.name
        if export not in self._names:
            self._names[export] = _names([read(export / name) for name in SLACK_LISTS])
        if not (names := self._names[export]):
            return None
        channel = names.get(channel, channel)
        return SlackDay(f"{channel} {path.stem}", channel, names)


def _names(lists: list[ReadResult]) -> dict[str, str]:
    """Return names by ids; direct messages are called as those who write them."""
    names: dict[str, str] = {}
    for document in (document for read in lists for document in read.documents):
        lines = (line.partition(": ") for line in document.text.split("\n"))
        fields = {field: value for field, _, value in lines}
        members = [
            names.get(value, value) for n, value in fields.items() if n.startswith("members.")
        ]
        name = next((fields[n] for n in _NAMES if n in fields), ", ".join(members))
        if name and _ID.fullmatch(fields.get("id", "")):
            names[fields["id"]] = name
    return names
