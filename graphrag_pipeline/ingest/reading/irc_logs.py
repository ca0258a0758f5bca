"""Logs of IRC as programs keep them (irssi, WeeChat, ZNC, HexChat): who says what, and when."""

from __future__ import annotations

import re
from collections.abc import Iterator

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading.cleaning import one_line

_WHO = r"[@+%&~! ]?(?P<{0}>[^\s<>\[\]@+%&~!][^\s<>]{{0,40}})"
_SAID = pattern_of(
    r"\[?(?:(?P<date>\d{4}-\d\d-\d\d)[ T]|[A-Z][a-z]{2} \d\d )?(?P<time>\d\d:\d\d)(?::\d\d)?\]?"
    rf"(?:\s+<{_WHO.format('who')}>\s|\s+\* {_WHO.format('doer')}\s|\t{_WHO.format('tab')}\t)"
    r"\s*(?P<said>\S.*)"
)
_DONE = pattern_of(
    r"\S{0,30}(?: ?\S{1,12})?\s+(?:-!-|-->|<--|--|\*{3}|[<>-]{2,3}|\*)\s|\*{4} |--- "
)
_DAY = pattern_of(
    r"(?:--- (?:Log opened|Day changed)|\*{4} BEGIN LOGGING AT) [A-Z][a-z]{2} "
    r"(?P<month>[A-Z][a-z]{2})\s+(?P<day>\d{1,2}) (?:\d\d:\d\d:\d\d )?(?P<year>\d{4})"
)
_NAMED = pattern_of(r"(?<!\d)(\d{4})-?(\d\d)-?(\d\d)(?!\d)")
_TIMED = pattern_of(r"\d\d:\d\d")
_PROGRAMS = frozenset(("--", "-->", "<--", "-", "*", "=!="))
_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
_LEAST, _LOOKED_AT, _BEGIN = 2, 5_000, 300


def irc_messages(text: str, name: str) -> list[tuple[str, str, str]]:
    """Return when, by whom and the words of each message; none where a text is no log of IRC.

    Who comes and goes is left out. Lines without a day are of the day in the name of the file, or
    of the one that the log says last.
    """
    if not _TIMED.search(text, 0, _BEGIN):
        return []
    head = [line for line in text[:_LOOKED_AT].split("\n") if line.strip()]
    n_said = sum(_SAID.match(line) is not None for line in head)
    n_done = sum(_DONE.match(line) is not None for line in head)
    if n_said < _LEAST or n_said + n_done < len(head) - n_said:
        return []
    return [*_messages(text.split("\n"), name)]


def _messages(lines: list[str], name: str) -> Iterator[tuple[str, str, str]]:
    named = _NAMED.search(name)
    today = "-".join(named.groups()) if named else ""
    for line in lines:
        if changed := _DAY.match(line):
            month = _MONTHS.find(changed["month"]) // 3 + 1
            today = f"{changed['year']}-{month:02}-{int(changed['day']):02}"
        elif (match := _SAID.match(line)) and (who := _who(match)):
            day = match["date"] or today
            said = one_line(match["said"])
            yield f"{day} {match['time']}".strip(), who, f"* {said}" if match["doer"] else said


def _who(match: re.Match[str]) -> str:
    who = match["who"] or match["doer"] or match["tab"]
    return "" if who in _PROGRAMS else who
