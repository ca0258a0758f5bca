"""Names in Thai text, which writes no spaces between words: by what is written before a name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from graphrag_pipeline.core.word_lists import alternatives
from graphrag_pipeline.extraction.rules.scripts import GEO, ORGANIZATION, PERSON, Place, listed

_THAI = "\u0e01-\u0e3a\u0e40-\u0e4e"
_MOST = 40
_LEAST_ALONE = 6
_SHORT_HEAD = 4
_LEAST_SURNAME = 4
_LONGEST_PLACE = 14


def thai_names(text: str) -> Iterator[Place]:
    """Yield (start, end, type) of names, the surest first; some overlap."""
    yield from _people(text)
    yield from _headed(text, "th_organisation", "th_no_organisation", ORGANIZATION)
    yield from _headed(text, "th_place_head", "th_no_place", GEO)
    for match in _place().finditer(text):
        yield match.start(), match.end(), GEO


def _people(text: str) -> Iterator[Place]:
    for match in _person().finditer(text):
        first, second = match.span("first"), match.span("second")
        if match.group().startswith("คุณ") and second[0] < 0 and not _is_given(match["first"]):
            continue
        end = first[1] if second[0] < 0 or _stops(text, second[0]) else second[1]
        yield first[0], end, PERSON


def _is_given(name: str) -> bool:
    """Say whether a name alone is one beyond doubt: คุณ is "you", too."""
    return name in listed("th_first") or name in listed("th_given")


def _stops(text: str, start: int) -> bool:
    """Say whether what stands behind a name goes on with the sentence; surnames begin alike."""
    if _surname().match(text, start):
        return False
    return bool(_stop().match(text, start)) or bool(_heads().match(text, start))


def _headed(text: str, heads: str, none: str, kind: str) -> Iterator[Place]:
    pattern = _head(heads, none)
    place = 0
    while match := pattern.search(text, place):
        rest = match.start("rest")
        known = _known().match(text, rest) if kind == GEO else None
        stop = _stop_within().search(text, rest, match.end())
        end = known.end() if known else stop.start() if stop else match.end()
        head = text[match.start() : rest]
        is_name = known or kind != GEO or _may_be_place(head, end - rest)
        if end > rest + 1 and is_name and (known or not _stop().match(text, rest)):
            yield match.start(), end, kind
        place = max(end, match.start("rest"))


def _may_be_place(head: str, length: int) -> bool:
    """Say whether signs behind a head may be a place that is not known: few, behind some heads."""
    return head not in listed("th_place_of_known") and length <= _LONGEST_PLACE


@cache
def _person() -> re.Pattern[str]:
    none = alternatives(listed("th_no_person"))
    return re.compile(
        # Not within a word: มิถุนายน, ขุนนาง, ศาสนายิว; nor behind a number, where it counts men.
        f"(?<!ถุ)(?<!ขุน)(?<!\\d )(?!{none})(?:{alternatives(listed('th_title'))}) ?"
        f"(?![\u0e31\u0e34-\u0e3a\u0e47-\u0e4e])(?P<first>[{_THAI}]{{2,20}})"
        f"(?: (?P<second>[{_THAI}]{{2,20}})(?=\\s|$|[,.:;)]))?(?=\\s|$|[,.:;)])"
    )


@cache
def _head(heads: str, none: str) -> re.Pattern[str]:
    words = listed(heads)
    long = alternatives(word for word in words if len(word) > _SHORT_HEAD)
    short = alternatives(word for word in words if len(word) <= _SHORT_HEAD)
    # A short one is a part of many words: it must stand where a word begins.
    begins = f"(?:(?<![{_THAI}])|(?<=ที่)|(?<=จาก)|(?<=ริม)|(?<=และ)|(?<=แจ้ง)|(?<=ของ))"
    return re.compile(
        # Politics, citizens, natives and suburbs have the word for a town in them.
        f"(?<!การ)(?<!พล)(?<!พื้น)(?<!ชาน)(?<!กลาง)(?!{alternatives(listed(none))})(?:{long}|{begins}(?:{short}))(?P<rest>[{_THAI}]{{1,{_MOST}}})"
    )


@cache
def _stop() -> re.Pattern[str]:
    return re.compile(alternatives(listed("th_stop")))


@cache
def _surname() -> re.Pattern[str]:
    """Return what a surname is or begins with, though a verb begins alike: มีสุข, ทำดี."""
    names = alternatives(name for name in listed("th_last") if len(name) >= _LEAST_SURNAME)
    return re.compile(
        f"(?:{names})(?![{_THAI}])|(?:มี|เปิด|ส่ง|พา|ให้)(?:{alternatives(listed('th_fortune'))})"
    )


@cache
def _known() -> re.Pattern[str]:
    return re.compile(alternatives(listed("th_place")))


@cache
def _stop_within() -> re.Pattern[str]:
    """Return what ends a name that is written on: only words that are seldom parts of one."""
    return re.compile(
        "(?:ที่|และ|ได้|จาก|กล่าว|ประกาศ|ส่ง|เป็น|แต่งตั้ง|เปิด|รายงาน|แล้ว|มีคน|เมื่อ|ตั้งแต่|ซึ่ง|จะ|ให้|ว่า|แจ้ง|ยืนยัน"
        "|ของ|หลาย|สามารถ|จนถึง|พร้อม|เกี่ยวกับ|อ้างอิง|ก่อตั้ง|ขัดแย้ง|ดังกล่าว|รายนี้|กลับ)"
    )


@cache
def _heads() -> re.Pattern[str]:
    sections = ("th_organisation", "th_place_head", "th_title")
    return re.compile(alternatives(word for name in sections for word in listed(name)))


@cache
def _place() -> re.Pattern[str]:
    long = (name for name in listed("th_place") if len(name) >= _LEAST_ALONE)
    return re.compile(alternatives(long))
