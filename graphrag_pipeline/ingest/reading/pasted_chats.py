"""Messages that somebody pasted from Slack, Teams or Discord: who and when stand above, or before.

``Ebba Storm  9:00 AM`` above what she says, ``[9:00 AM] Ebba Storm: ...``, ``Ebba Storm 10:12`` and
``Ebba Storm — Today at 9:00 AM``. They are written anew as other chats are, ``[09:00] Ebba Storm:
...``, with the day where it is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading.chat_days import hour_of_day

_TIME = r"(?P<hour>\d{1,2})[:.](?P<minute>\d\d)(?::\d\d)?(?:[ \u202f]?(?P<half>[APap])\.?[Mm]\.?)?"
_DAY = (
    r"(?P<day>(?P<date>\d{1,4}(?P<sep>[./-])\d{1,2}(?P=sep)\d{1,4})|[Tt]oday|[Yy]esterday|[Hh]eute|[Gg]estern"
    r"|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)"
)
_STAMP = rf"(?:{_DAY},? (?:at |um )?)?{_TIME}"
_NAME = r"(?P<who>[^\W\d_a-zß-ÿ][^\n:;|\[\]()—<>=\"]{0,49}?)(?: ?(?:APP|BOT))?"
_ABOVE = pattern_of(rf"{_NAME}(?P<between>  |\t| [—–-] | (?=\[)| )\[?{_STAMP}\]?")
_ALONE = pattern_of(rf"\[?{_STAMP}\]?")
_BEFORE = pattern_of(rf"\[{_STAMP}\] (?P<who>[^:\n\[\]]{{1,60}}):(?: (?P<said>.*)|$)")
_WORDS = pattern_of(r"[^\W\d_]+")
_YEAR = pattern_of(r"\d{4}")
_LEAST, _MOST_WORDS, _LONGEST, _LOOKED_AT = 2, 5, 120, 2_000
LEVEL = pattern_of(r"(?:trace|debug|info|notice|warn(?:ing)?|err(?:or)?|critical|fatal)\b", re.I)
"""What logs of programs write where chats say who speaks."""


def pasted_chat(text: str) -> list[tuple[str, str, str, str]]:
    """Return (day, time, who, words) of the messages of a pasted chat; nothing of other text.

    The first line that says something begins one, and somebody says more than one, or all are told
    apart by more than a space: John 3:16 says nothing. The day is as it stands, "" of none.

    >>> pasted_chat("Ebba Storm  9:00 AM\\nAye.\\nOlaf  1:05 PM\\nNo.\\nNever.")[1]
    ('', '13:05', 'Olaf', 'No.\\nNever.')
    """
    begin = text.lstrip("\ufeff \t\n")
    if not _begins(begin[:_LOOKED_AT]):
        return []
    lines = [line.strip() for line in begin.split("\n")]
    is_told_before = _BEFORE.fullmatch(lines[0]) is not None
    found = list(_told_before(lines) if is_told_before else _told_above(_joined(lines)))
    is_log = any(LEVEL.fullmatch(who) for _, _, who, _ in found)
    said = [message for message in found if message[3]]
    speakers = [message[2] for message in said]
    is_plain = any(
        (m := _above(line)) and m["between"] == " " and "[" not in line for line in lines
    )
    is_talk = len(set(speakers)) < len(speakers) or not is_plain
    return said if len(said) >= _LEAST and is_talk and not is_log else []


def _begins(text: str) -> bool:
    """Whether a text begins with who and when, in one line or two."""
    first, second, *_ = (line.strip() for line in f"{text}\n\n".split("\n", 2))
    return bool(_BEFORE.fullmatch(first) or _above(first) or _ALONE.fullmatch(second))


def _told_before(lines: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
    stamp: re.Match[str] | None = None
    words: list[str] = []
    for line in lines:
        if (begun := _BEFORE.fullmatch(line)) and _is_name(begun["who"]):
            if stamp:
                yield _message(stamp, stamp["who"], words)
            stamp, words = begun, [begun["said"] or ""]
        else:
            words.append(line)
    if stamp:
        yield _message(stamp, stamp["who"], words)


def _joined(lines: Sequence[str]) -> list[str]:
    """Return lines, a name and the time below it as one: Slack copies them so."""
    joined: list[str] = []
    names: set[str] = set()
    for line in lines:
        name = joined[-1] if joined else ""
        is_first = len(joined) < 2 or not joined[-2]
        if _ALONE.fullmatch(line) and (name in names or (is_first and _is_name(name))):
            names.add(name)
            joined[-1] = f"{name}  {line}"
        else:
            joined.append(line)
    return joined


def _told_above(lines: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
    """Yield messages below a line of who and when; times alone begin one of the same person."""
    stamp: re.Match[str] | None = None
    who, words = "", []
    for line in lines:
        above = _above(line)
        begun = above or (who and _ALONE.fullmatch(line))
        if not begun:
            if stamp is None:
                return
            words.append(line)
            continue
        if stamp:
            yield _message(stamp, who, words)
        stamp, who, words = begun, begun["who"] if begun is above else who, []
    if stamp:
        yield _message(stamp, who, words)


def _above(line: str) -> re.Match[str] | None:
    """Return who and when, of a line that says so: one space stands before AM, a day or 09:05."""
    above = _ABOVE.fullmatch(line) if len(line) < _LONGEST else None
    if above is None or not _is_name(above["who"]):
        return None
    is_plain = above["between"] == " " and not (above["half"] or above["day"])
    is_padded = len(above["hour"]) > 1 and " " in above["who"]
    return above if is_padded or not is_plain else None


def _is_name(who: str) -> bool:
    """Whether the words before a time may be a name: few, most of them with a capital."""
    words = [] if _YEAR.search(who) else _WORDS.findall(who)
    capitals = sum(not word.islower() for word in words)
    return 0 < len(words) <= _MOST_WORDS and 2 * capitals > len(words)


def _message(stamp: re.Match[str], who: str, words: Sequence[str]) -> tuple[str, str, str, str]:
    time = f"{hour_of_day(stamp['hour'], stamp['half'])}:{stamp['minute']}"
    return stamp["date"] or "", time, who.strip(), "\n".join(words).strip()
