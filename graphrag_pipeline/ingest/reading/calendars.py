"""Calendars and contacts (iCalendar, vCard): each event, task or person is a record."""

from __future__ import annotations

import calendar
import quopri
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from pathlib import Path

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.word_lists import word_pairs
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.cleaning import one_line, with_newlines
from graphrag_pipeline.ingest.reading.decoding import decode
from graphrag_pipeline.ingest.reading.mail_headers import person_of
from graphrag_pipeline.ingest.reading.model import (
    SMALL_RECORDS,
    FileFormat,
    ReadingOptions,
    ReadResult,
)
from graphrag_pipeline.ingest.reading.records import read_records

_FOLD = pattern_of(r"\n[ \t]")
_IN_QUOTED = pattern_of(r"^[^:\n]*QUOTED-PRINTABLE[^:\n]*:(?:[^\n]*=\n)+[^\n]*", re.M | re.I)
_LINE = pattern_of(r"(?:[\w-]+\.)?([A-Za-z-]{1,60})((?:;(?:\"[^\"\n]*\"|[^:\"\n])*)?):(.*)$")
_COMMON_NAME = pattern_of(r";CN=(?:\"([^\"]*)\"|([^;:\"]*))", re.I)
_CHARSET = pattern_of(r";CHARSET=([\w-]{1,40})", re.I)
_ESCAPE = pattern_of(r"\\([\\,;nN])")
_ZONE = pattern_of(r";TZID=\"?/?([^\";:]{1,100})", re.I)
_SPLIT = pattern_of(r"(?<!\\);")
_STAMP = pattern_of(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)(Z?))?$")
_WHOLE_DAY = pattern_of(r"\d{8}")
_KINDS = ("VEVENT", "VTODO", "VJOURNAL", "VCARD")
_EVENT = word_pairs("fields.txt", "event")
_CARD = word_pairs("fields.txt", "card")
_REPEATS = word_pairs("fields.txt", "repeats")
_DURATION = pattern_of(
    r"P(?:(\d{1,4})W)?(?:(\d{1,4})D)?(?:T(?:(\d{1,4})H)?(?:(\d{1,4})M)?(?:\d+S)?)?"
)
_DAYS = {name[:2].upper(): name for name in calendar.day_name}
_DAY = pattern_of(r"([1-5]|-1|)(MO|TU|WE|TH|FR|SA|SU)")
_PLACES = {
    **{"": "", "1": "the first ", "2": "the second ", "3": "the third "},
    **{"4": "the fourth ", "5": "the fifth ", "-1": "the last "},
}


def read_calendar(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read each event, task and journal entry as a record: title, times, place and people."""
    return _read(path, data, options, "BEGIN:VEVENT")


def read_contacts(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read each card as a record: name, organization, job, addresses and note."""
    return _read(path, data, options, "BEGIN:VCARD")


def _read(path: Path, data: bytes, options: ReadingOptions, sign: str) -> ReadResult:
    text = with_newlines(decode(data, options.encoding))
    lines = _FOLD.sub(
        "", _IN_QUOTED.sub(lambda match: match.group().replace("=\n", ""), text)
    ).split("\n")
    none = f"the file has no entries: none begins with {sign}"
    return read_records(path, _entries(lines), options, none=none)


def _entries(lines: list[str]) -> Iterator[dict[str, object]]:
    """Yield the entries; what is within one, such as an alarm, is passed over."""
    entry: dict[str, object] = {}
    within: list[str] = []
    for line in lines:
        match = _LINE.match(line)
        if match is None:
            continue
        name, value = match[1].upper(), match[3].strip()
        if name == "BEGIN":
            within.append(value.upper())
        elif name == "END" and within:
            kind = within.pop()
            if kind in _KINDS and entry:
                yield entry
                entry = {}
        elif within and within[-1] in _KINDS:
            names = _CARD if within[-1] == "VCARD" else _EVENT
            said = _value(name, match[2], value)
            if name == "N":
                entry.setdefault("name", said)
            elif name == "ORG":
                _add_organization(entry, value)
            elif name in names and said:
                has_declined = name == "ATTENDEE" and "=DECLINED" in match[2].upper()
                field = "declined" if has_declined else names[name]
                _add(entry, field, said, replaces=name == "FN")
            if name == "DTSTART" and (zone := _ZONE.search(match[2])):
                entry["time zone"] = zone[1]


def _add_organization(entry: dict[str, object], value: str) -> None:
    """Add an organization, and the units of it that stand after its name."""
    name, *units = (one_line(_unescaped(part)) for part in _SPLIT.split(value))
    for field, said in [("organization", name), *(("department", unit) for unit in units)]:
        if said:
            _add(entry, field, said, replaces=False)


def _add(entry: dict[str, object], name: str, value: str, *, replaces: bool) -> None:
    before = None if replaces else entry.get(name)
    if before is None:
        entry[name] = value
    elif isinstance(before, list):
        before.append(value)
    else:
        entry[name] = [before, value]


def _value(name: str, parameters: str, value: str) -> str:
    if "QUOTED-PRINTABLE" in parameters.upper():
        charset = _CHARSET.search(parameters)
        value = _decoded(quopri.decodestring(value.encode()), charset[1] if charset else "utf-8")
    if name in ("ORGANIZER", "ATTENDEE"):
        common = _COMMON_NAME.search(parameters)
        address = value.removeprefix("mailto:").removeprefix("MAILTO:")
        return person_of(common[1] or common[2] or "", address) if common else address
    if name == "DTEND" and _WHOLE_DAY.fullmatch(value):
        return _day_before(value)
    if time := _time(value):
        return time
    if name == "RRULE":
        return _repetition(value)
    if name == "DURATION":
        return _duration(value)
    if name in ("N", "ADR"):
        parts = [one_line(_unescaped(part)) for part in _SPLIT.split(value)]
        if name == "N":
            family, given, middle = [*parts, "", "", ""][:3]
            return one_line(f"{given} {middle} {family}")
        return ", ".join(filter(None, parts))
    return _unescaped(value)


def _repetition(rule: str) -> str:
    """Return a rule of repetition in words; one that says what they cannot, as it stands."""
    parts = dict(part.upper().split("=", 1) for part in rule.split(";") if "=" in part)
    parts.pop("WKST", None)
    unit = _REPEATS.get(parts.pop("FREQ", ""))
    every = parts.pop("INTERVAL", "1")
    if unit is None or parts.keys() - _TOLD_OF_RULES.keys():
        return rule
    try:
        said = [f"every {unit}" if every == "1" else f"every {_number(every)} {unit}s"]
        for name, (before, words, after) in _TOLD_OF_RULES.items():
            if name in parts:
                said.append(before + ", ".join(map(words, parts[name].split(","))) + after)
    except ValueError:
        return rule
    return " ".join(said)


def _number(digits: str, most: int = 10_000) -> int:
    """Return a number from 1 to ``most``; raises ValueError."""
    if not 1 <= int(digits) <= most:
        raise ValueError(digits)
    return int(digits)


def _day(day: str) -> str:
    """Return a day of the week, and which of a month; raises ValueError."""
    match = _DAY.fullmatch(day)
    if match is None:
        raise ValueError(day)
    return _PLACES[match[1]] + _DAYS[match[2]]


def _end(value: str) -> str:
    """Return the last day of a repetition; raises ValueError."""
    if not (time := _time(value)):
        raise ValueError(value)
    return time.partition("T")[0]


def _time(value: str) -> str:
    """Return a date, with its time if it has one, as ISO 8601 writes it; "" where it is none."""
    stamp = _STAMP.match(value)
    if stamp is None:
        return ""
    day = f"{stamp[1]}-{stamp[2]}-{stamp[3]}"
    return f"{day}T{stamp[4]}:{stamp[5]}:{stamp[6]}{stamp[7]}" if stamp[4] else day


def _day_before(value: str) -> str:
    """Return the last of whole days, which end where the next day begins."""
    try:
        return str(date.fromisoformat(value) - timedelta(days=1))
    except (ValueError, OverflowError):
        return _time(value)


def _duration(value: str) -> str:
    """Return how long something lasts, in words; what is no duration, as it stands."""
    match = _DURATION.fullmatch(value)
    parts = zip(match.groups(), ("week", "day", "hour", "minute"), strict=True) if match else ()
    said = [f"{int(n)} {unit}{'s' * (int(n) != 1)}" for n, unit in parts if n]
    return " ".join(said) or value


def _decoded(data: bytes, charset: str) -> str:
    try:
        return data.decode(charset, "replace")
    except LookupError:
        return data.decode("utf-8", "replace")


def _unescaped(value: str) -> str:
    return _ESCAPE.sub(lambda match: "\n" if match[1] in "nN" else match[1], value)


_TOLD_OF_RULES: Mapping[str, tuple[str, Callable[[str], str], str]] = {
    "BYDAY": ("on ", _day, ""),
    "BYMONTHDAY": ("on day ", lambda day: str(_number(day, 31)), ""),
    "BYMONTH": ("in ", lambda month: calendar.month_name[_number(month, 12)], ""),
    "COUNT": ("", lambda count: str(_number(count)), " times"),
    "UNTIL": ("until ", _end, ""),
}
"""Parts of a rule of repetition: the words before, those of each value, the words after."""

CALENDAR = FileFormat(read_calendar, versions.of("calendars", "records"), SMALL_RECORDS)
CONTACTS = FileFormat(read_contacts, versions.of("calendars", "records"), SMALL_RECORDS)
