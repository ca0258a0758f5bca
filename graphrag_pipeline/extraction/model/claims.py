"""Claims from a model's answer in tuple format (paper, 3.1.2 and A).

The format asked for is ``(subject<|>object<|>type<|>status<|>start<|>end<|>description<|>source)``
with records parted by ``##`` and ``<|COMPLETE|>`` at the end. It is read as tolerantly as
:mod:`~graphrag_pipeline.extraction.model.tuples` reads entities, in time linear in the answer's
length.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final, Literal

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.text import normalize_title
from graphrag_pipeline.extraction.model.tuple_fields import (
    COMPLETE,
    FULL,
    clean,
    record_end,
    split_fields,
)
from graphrag_pipeline.extraction.model.tuples import MAX_TITLE_CHARS, leaked_titles

CLAIMS_VERSION: Final = "1"
"""Part of the extraction's version: another parser may find other claims in the same answer."""

Status = Literal["TRUE", "FALSE", "SUSPECTED"]

_FIELDS = 8
_LEAST_FIELDS = 7
_STATUSES: dict[str, Status] = {
    "TRUE": "TRUE",
    "CONFIRMED": "TRUE",
    "FALSE": "FALSE",
    "REFUTED": "FALSE",
}
_NOTHING = frozenset(["", "NONE", "NULL", "N/A", "NA", "NIL", "UNKNOWN", "-", "–"])
_BOUNDARY = pattern_of(
    rf"{COMPLETE.pattern}|(?<=[)）\]])[ \t]*##|##[ \t]*(?=\n|\Z|[(（]|\d{{1,3}}[.)])"
    r"|(?<=[)）\]])\s*\n(?=[ \t>•*`_-]{0,8}(?:\d{1,3}[.)])?[ \t*`]{0,8}[(（])",
    re.IGNORECASE,
)
_DELIMITER = pattern_of(FULL)
_OPENING = pattern_of(r"(?:\A|\n)[ \t>•*`_#-]{0,12}(?:\d{1,3}[.)])?[ \t*`]{0,8}[(（]")

_ISO = pattern_of(r"(\d{4})(?:[-/.](\d{1,2})(?:[-/.](\d{1,2}))?)?(?:[T ].*)?", re.ASCII)
_CLOCK = pattern_of(r"[T ](\d{2}):(\d{2})(?::(\d{2}))?", re.ASCII)
_MONTH_FIRST = pattern_of(
    r"([a-z]{3,9})\.?\s(?:(\d{1,2})(?:st|nd|rd|th)?,?\s)?(\d{4})", re.ASCII | re.IGNORECASE
)
_DAY_FIRST = pattern_of(
    r"(\d{1,2})(?:st|nd|rd|th)?\s(?:of\s)?([a-z]{3,9})\.?,?\s(\d{4})", re.ASCII | re.IGNORECASE
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


@dataclass(frozen=True)
class ParsedClaim:
    """A claim about ``subject``; dates are ISO 8601 (``1843``, ``1843-12``, ``1843-12-19`` or with
    a time), None where there is none or it cannot be read.
    """

    subject: str
    object: str | None
    type: str | None
    status: Status
    start_date: str | None
    end_date: str | None
    description: str
    source_text: str


@dataclass(frozen=True)
class ParsedClaims:
    """Claims read from one answer; ``completed`` if it said that it was finished."""

    claims: tuple[ParsedClaim, ...]
    completed: bool

    @property
    def answered(self) -> bool:
        """Whether this was an answer at all: some claim, or the marker that there are none."""
        return self.completed or bool(self.claims)


def parse_claims(
    text: str,
    *,
    chunk_text: str | None = None,
    example_titles: Collection[str] = frozenset(),
) -> ParsedClaims:
    """Read the claims of an answer, or of several put together. Never raises.

    A claim about one of ``example_titles`` is dropped unless that title stands in ``chunk_text``.
    """
    leaked = leaked_titles(example_titles, chunk_text)
    claims = tuple(
        claim
        for piece in _pieces(text)
        if (claim := _read(piece)) and normalize_title(claim.subject) not in leaked
    )
    return ParsedClaims(claims, COMPLETE.search(text) is not None)


def claim_subjects(examples: str) -> frozenset[str]:
    """Return the normalised subjects of the claims in few-shot examples."""
    return frozenset(normalize_title(claim.subject) for claim in parse_claims(examples).claims)


def parse_date(field: str) -> str | None:
    """Return a date as ISO 8601, as precise as it was given; None if it cannot be told.

    Dates such as 03/04/1843, whose month cannot be told from their day, are not read.

    >>> parse_date("December 19th, 1843")
    '1843-12-19'
    """
    plain = " ".join(field.split())[:64]
    if found := _ISO.fullmatch(plain):
        day = _date(found[1], found[2], found[3])
        return _with_time(day, plain) if day and found[3] else day
    if found := _MONTH_FIRST.fullmatch(plain):
        return _date(found[3], _month(found[1]), found[2])
    if found := _DAY_FIRST.fullmatch(plain):
        return _date(found[3], _month(found[2]), found[1])
    return None


def _month(name: str) -> str:
    key = name.lower()[:3]
    return str(_MONTHS.index(key) + 1) if key in _MONTHS else "0"


def _date(year: str, month: str | None, day: str | None) -> str | None:
    try:
        checked = date(int(year), int(month or 1), int(day or 1)).isoformat()
    except ValueError:
        return None
    return checked[: 10 if day else 7 if month else 4]


def _with_time(day: str, text: str) -> str:
    found = _CLOCK.search(text)
    if found is None or set(found.groups("00")) == {"00"}:
        return day
    try:
        return datetime.fromisoformat(f"{day}T{found[1]}:{found[2]}:{found[3] or '00'}").isoformat()
    except ValueError:
        return day


def _pieces(text: str) -> Iterator[str]:
    """Yield the parts of an answer that hold fields."""
    start = 0
    for boundary in (*_BOUNDARY.finditer(text), None):
        end = boundary.start() if boundary else len(text)
        piece = text[start:end]
        if _DELIMITER.search(piece) or _has_bars(piece):
            yield piece.strip()
        start = boundary.end() if boundary else end


def _has_bars(piece: str) -> bool:
    return piece.count("|") >= _LEAST_FIELDS - 1 and _OPENING.match(piece.strip()) is not None


def _read(piece: str) -> ParsedClaim | None:
    """Return the claim of a record, None where it lacks fields, a subject or a description."""
    spans = split_fields(piece, "full" if _DELIMITER.search(piece) else "bar")
    openings = [found.end() for found in _OPENING.finditer(piece, 0, spans[0][1])]
    begin = openings[-1] if openings else piece.rfind("\n", 0, spans[0][1]) + 1
    spans[0] = (begin, spans[0][1])
    if clean(piece[slice(*spans[0])]).lower() == "claim":
        spans = spans[1:]
    if len(spans) < _LEAST_FIELDS:
        return None
    last = min(len(spans), _FIELDS) - 1
    fields = [clean(piece[start:end]) for start, end in spans[:last]]
    fields.append(clean(record_end(piece[spans[last][0] :], opened=bool(openings))))
    return _claim(*fields)


def _claim(
    subject: str,
    of: str,
    kind: str,
    status: str,
    start: str,
    end: str,
    description: str,
    source: str = "",
) -> ParsedClaim | None:
    if _is_nothing(subject) or len(subject) > MAX_TITLE_CHARS or _is_nothing(description):
        return None
    return ParsedClaim(
        subject=subject,
        object=None if _is_nothing(of) else of[:MAX_TITLE_CHARS],
        type=None if _is_nothing(kind) else kind.upper()[:MAX_TITLE_CHARS],
        status=_STATUSES.get(status.upper(), "SUSPECTED"),
        start_date=parse_date(start),
        end_date=parse_date(end),
        description=description,
        source_text="" if _is_nothing(source) else source,
    )


def _is_nothing(field: str) -> bool:
    return field.upper() in _NOTHING
