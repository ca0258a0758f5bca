"""Chats as programs export them in lines (WhatsApp, Viber, KakaoTalk, LINE, Messages), or pasted.

They are read as conversations of other exports are: a line for each message, by whom and when.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.ingest.reading.chat_days import hour_of_day, with_days_in_lines
from graphrag_pipeline.ingest.reading.cleaning import clean_text, one_line
from graphrag_pipeline.ingest.reading.model import Scalar
from graphrag_pipeline.ingest.reading.pasted_chats import LEVEL, pasted_chat

_MARKS = "\u200e\u200f\u202a-\u202e\u2066-\u2069"
_DATE = r"(?P<date>\d{1,4}([./-])\d{1,2}\2\d{1,4})\.?"
_TIME = r"(?P<time>\d{1,2}[:.]\d\d(?:[:.]\d\d)?)(?:[\s\u202f]?(?P<half>[APap])\.?\s?[Mm]\.?)?"
_BRACKETED = pattern_of(rf"[{_MARKS}]*\[ ?{_DATE},? {_TIME} ?\] ?(?P<rest>.*)")
_DASHED = pattern_of(
    rf"[{_MARKS}]*{_DATE}(?:,| à| um| kl\.?)? (?P<time>\d{{1,2}}[:.]\d\d)"
    r"(?:[\s\u202f]?(?P<half>[APap])\.?\s?[Mm]\.?)? [-–] (?P<rest>.*)"
)
_WHO = pattern_of(rf"[{_MARKS}~ \u202f]*(?P<who>[^:\n\"“”„«»]{{1,80}}):(?: (?P<said>.*)|$)")
_BY_PROGRAM = "\u200e"
"""Stands before what WhatsApp says itself, on telephones of Apple."""
_EDITED = pattern_of(rf"[{_MARKS} ]*\u200e<[^<>\n]{{1,60}}>$")
_ATTACHED = pattern_of(rf"[{_MARKS}]*[^\s()]{{1,200}}\.\w{{2,4}} \([^()\n]{{1,60}}\)\s*")
_UNSEEN = pattern_of(r"<[^<>\n]{1,80}>|null", re.I)
_BY_PROGRAMS = frozenset(
    words.replace("_", " ") for words in word_lists("documents.txt")["said_by_program"]
)
_IMESSAGE = pattern_of(
    r"^([A-Z][a-z]{2}) (\d\d), (\d{4})  (\d{1,2}):(\d\d):\d\d ([AP])M(?: \([^()\n]{1,80}\))?\n"
    r"([^\n]{1,60})$",
    re.M,
)
_LEAST, _MOST_PEOPLE, _LOOKED_AT = 2, 50, 2_000
_MONTHS, _DAYS = 12, 31


@dataclass
class _Said:
    date: str
    time: str
    who: str
    lines: list[str]

    @property
    def words(self) -> str:
        """The words of somebody; "" for what the program did."""
        first = self.lines[0]
        if first.startswith(_BY_PROGRAM) and not _ATTACHED.match(first):
            return ""
        whole = _EDITED.sub("", "\n".join([_ATTACHED.sub("", first), *self.lines[1:]]))
        words = clean_text(whole)
        bare = words.removesuffix(words[-1:] if words[-1:] in (".", "!") else "").lower()
        return "" if bare in _BY_PROGRAMS or _UNSEEN.fullmatch(words) else words


def chat_in_lines(text: str) -> tuple[str, dict[str, Scalar]] | None:
    """Return the text and metadata of a chat that is written in lines; None for other text.

    What nobody says is left out: who came or left, calls, pictures, deleted messages.
    """
    if _IMESSAGE.match(text.lstrip("\ufeff\n\r ")):
        return _of_imessage(text)
    text = with_days_in_lines(text) or text
    head = text[:_LOOKED_AT].lstrip("\ufeff\n\r ")
    pattern = next((p for p in (_BRACKETED, _DASHED) if p.match(head)), None)
    if pattern is None:
        return _pasted(text)
    entries = list(_messages(text, pattern))
    said = [message for message in entries if message]
    is_log = any(LEVEL.search(message.who) for message in said)
    if len(said) < max(_LEAST, len(entries) - len(said)) or is_log:
        return None
    is_month_first = _is_month_first([message.date for message in said], text)
    return as_chat(
        [
            (f"{_day(message.date, is_month_first)} {message.time}", message.who, words)
            for message in said
            if (words := message.words)
        ]
    )


def as_chat(messages: Sequence[tuple[str, str, str]]) -> tuple[str, dict[str, Scalar]] | None:
    """Return the text and metadata of messages: when, by whom and the words; None of none."""
    if not messages:
        return None
    people = dict.fromkeys(who for _, who, _ in messages)
    about: dict[str, Scalar] = {"from": ", ".join([*people][:_MOST_PEOPLE])}
    if " " in messages[0][0]:
        about["date"] = messages[0][0].replace(" ", "T")
    return clean_text("\n".join(f"[{w}] {who}: {said}" for w, who, said in messages)), about


def _of_imessage(text: str) -> tuple[str, dict[str, Scalar]] | None:
    """Return the text and metadata of messages of a Mac: when, by whom and the words in lines."""
    names = [month[:3] for month in calendar.month_name]
    parts = _IMESSAGE.split(text)[1:]
    messages: list[tuple[str, str, str]] = []
    for place in range(0, len(parts), 8):
        month, day, year, hour, minute, half, who, words = parts[place : place + 8]
        if month in names and (said := clean_text(words)):
            when = f"{year}-{names.index(month):02}-{day} {hour_of_day(hour, half)}:{minute}"
            messages.append((when, one_line(who), said))
    return as_chat(messages)


def _pasted(text: str) -> tuple[str, dict[str, Scalar]] | None:
    """Return the text and metadata of messages that somebody pasted; None for other text."""
    messages = pasted_chat(text)
    dates = [date for date, *_ in messages if date]
    if not messages or not all(map(_may_be_day, dates)):
        return None
    is_month_first = _is_month_first(dates, text)
    days = {date: _day(date, is_month_first) for date in dates}
    return as_chat(
        [
            (f"{days.get(date, '')} {time}".strip(), who, words)
            for date, time, who, words in messages
        ]
    )


def _may_be_day(date: str) -> bool:
    numbers = [int(number) for number in re.split("[./-]", date)]
    return max(numbers[1], min(numbers)) <= _DAYS and min(numbers) >= 1


def _messages(text: str, pattern: re.Pattern[str]) -> Iterator[_Said | None]:
    """Yield what somebody says, with the lines that go on with it; None for what nobody does."""
    message: _Said | None = None
    is_begun = False
    for line in text.split("\n"):
        stamp = pattern.match(line.lstrip("\ufeff"))
        if stamp is None:
            if message:
                message.lines.append(line)
            continue
        if is_begun:
            yield message
        is_begun = True
        who = _WHO.fullmatch(stamp["rest"])
        name = one_line(who["who"]) if who else ""
        message = _Said(stamp["date"], _hour(stamp), name, [who["said"] or ""]) if who else None
    if is_begun:
        yield message


def _hour(stamp: re.Match[str]) -> str:
    hour, minute = re.split("[:.]", stamp["time"])[:2]
    return f"{hour_of_day(hour, stamp['half'])}:{minute}"


def _is_month_first(dates: Sequence[str], text: str) -> bool:
    """Say whether dates begin with the month: days go on, and where both ways do, by habit.

    Only the short dates of the United States do, as 1/5/24 beside hours up to twelve.
    """
    pairs = [re.split("[./-]", date)[:2] for date in dict.fromkeys(dates)]
    numbers = [(int(a), int(b)) for a, b in pairs if len(a) <= 2]
    if not numbers or any("." in date for date in dates[:1]):
        return False
    if any(first > _MONTHS for first, _ in numbers):
        return False
    if any(second > _MONTHS for _, second in numbers):
        return True
    back = [sum(_steps_back(dates, order)) for order in (True, False)]
    if back[0] != back[1]:
        return back[0] < back[1]
    has_halves = re.search(r"\d[\s\u202f][AP]M\b", text[:_LOOKED_AT]) is not None
    return has_halves and not any(date.startswith("0") for date in dates)


def _steps_back(dates: Sequence[str], is_month_first: bool) -> Iterator[bool]:
    days = [_day(date, is_month_first) for date in dates]
    return (after < before for before, after in pairwise(days))


def _day(date: str, is_month_first: bool) -> str:
    """Return a day as ISO 8601 writes it."""
    first, second, third = re.split("[./-]", date)
    if len(first) > 2:
        year, month, day = first, second, third
    else:
        year = third if len(third) > 2 else f"20{third}"
        month, day = (first, second) if is_month_first else (second, first)
    return f"{year}-{int(month):02}-{int(day):02}"
