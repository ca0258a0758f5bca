"""Chats of KakaoTalk and LINE: a line for each day, and for each message its hour and who.

They are written anew as others are, ``[2024-03-04 15:14] Ebba Storm: ...``.
"""

from __future__ import annotations

import calendar
import re

from graphrag_pipeline.core.patterns import pattern_of

_MONTHS = {name: number for number, name in enumerate(calendar.month_name) if name}
_DATE = (
    r"(?:(?P<y>\d{4})(?:[年년] ?|[./-] ?)(?P<m>\d{1,2})(?:[月월] ?|[./-] ?)(?P<d>\d{1,2})[日일.]?"
    rf"|(?:[A-Z][a-z]+day, )?(?P<month>{'|'.join(_MONTHS)}) (?P<day>\d{{1,2}}), (?P<year>\d{{4}}))"
)
_TIME = (
    r"(?:(?P<before>오전|오후|午前|午後|上午|下午) ?)?(?P<hour>\d{1,2}):(?P<minute>\d\d)"
    r"(?: ?(?P<half>[AP]M))?"
)
_DAY = pattern_of(
    rf"-*[ ]?{_DATE}(?: ?[(（]\w{{1,9}}[)）]| \w{{1,2}}曜日| \w요일|, [A-Z][a-z]+day)?[ ]?-*"
)
_MAY_BEGIN = pattern_of(rf"[-\d]|[A-Z][a-z]+day, |(?:{'|'.join(_MONTHS)}) \d")
_BRACKETED = pattern_of(rf"\[(?P<who>[^\[\]\n]{{1,80}})\] \[{_TIME}\] (?P<said>.*)")
_TABBED = pattern_of(rf"{_TIME}\t(?P<who>[^\t\n]{{1,80}})(?:\t(?P<said>.*))?")
_SPACED = pattern_of(rf"{_TIME} (?P<who>[^\W\d_a-zA-Z]{{1,20}}) (?P<said>.*)")
_STAMPED = pattern_of(rf"{_DATE},? {_TIME}, (?P<who>[^:\n]{{1,80}}) : (?P<said>.*)")
_YEAR = pattern_of("[0-9]{4}")
_MAY_BE = pattern_of(r"\d{4}[年년./-]|[a-z] \d{1,2}, \d{4}\b")
_BY_PROGRAM = pattern_of(
    rf"(?:{_DATE},? {_TIME}, )?[^:\n]{{1,60}}(?:님이 (?:나갔습니다|들어왔습니다)|님을 초대했습니다"
    r"| (?:left|joined)(?: this chatroom| the chat)?)\.?"
)
_PICTURE = pattern_of(
    r"\[[^\[\]\n]{1,20}\]|(?:사진|Photo|写真)(?: ?\d{1,3}(?:장)?)?|동영상|이모티콘"
    r"|삭제된 메시지입니다\.?"
)
_LOOKED_AT, _HOURS = 2_000, 12
_AFTERNOON = frozenset(("오후", "午後", "下午", "PM", "P", "p"))


def with_days_in_lines(text: str) -> str:
    """Return a chat of KakaoTalk or LINE with day, hour and who before each message; "" of others.

    >>> with_days_in_lines("2024/03/04(Mon)\\n15:14\\tEbba\\tAye\\n3:05\\tOlaf\\tNo\\n")
    '[2024-03-04 15:14] Ebba: Aye\\n[2024-03-04 03:05] Olaf: No'
    """
    head = text[:_LOOKED_AT]
    if not (_YEAR.search(head) and _MAY_BE.search(head) and _is_chat(head)):
        return ""
    lines: list[str] = []
    day, is_quoted, is_said = "", False, False
    for line in text.split("\n"):
        if stamp := _DAY.fullmatch(line.strip()):
            day, is_quoted, is_said = _day(stamp), False, False
        elif message := _message(line):
            own = _day(message) if "y" in message.re.groupindex else day
            said = message["said"] or ""
            is_said = bool(said) and not _PICTURE.fullmatch(said.strip())
            is_quoted = is_said and said.startswith('"') and said.count('"') == 1
            if is_said:
                said = said.removeprefix('"') if is_quoted else said
                lines.append(f"[{own} {_time(message)}] {message['who'].strip()}: {said}")
        elif is_said and not _BY_PROGRAM.fullmatch(line.strip()):
            lines.append(line.removesuffix('"') if is_quoted else line)
    return "\n".join(lines).rstrip()


def _is_chat(head: str) -> bool:
    """Whether a message stands below the first day, or begins with its own."""
    lines = [line.strip("\ufeff ") for line in head.split("\n")]
    lines = [line for line in lines if line]
    firsts = (
        n
        for n, line in enumerate(lines)
        if _MAY_BEGIN.match(line) and (_DAY.fullmatch(line) or _STAMPED.match(line))
    )
    first = next(firsts, len(lines))
    return any(_message(line) is not None for line in lines[first : first + 3])


def _message(line: str) -> re.Match[str] | None:
    forms = (_BRACKETED, _TABBED, _SPACED, _STAMPED)
    return next((match for form in forms if (match := form.fullmatch(line))), None)


def _day(stamp: re.Match[str]) -> str:
    if stamp["month"]:
        return f"{stamp['year']}-{_MONTHS[stamp['month']]:02}-{int(stamp['day']):02}"
    return f"{stamp['y']}-{int(stamp['m']):02}-{int(stamp['d']):02}"


def _time(message: re.Match[str]) -> str:
    hour = hour_of_day(message["hour"], message["before"] or message["half"])
    return f"{hour}:{message['minute']}"


def hour_of_day(hour: str, half: str | None) -> str:
    """Return an hour of a clock of 12 as one of 24, in two digits; of no half as it is.

    >>> hour_of_day("3", "PM"), hour_of_day("12", "오전"), hour_of_day("9", None)
    ('15', '00', '09')
    """
    number = int(hour)
    if half:
        number = number % _HOURS + _HOURS * (half in _AFTERNOON)
    return f"{number:02}"
