"""Messages within the text of another one: forwarded, or answered below the answer.

Mail programs write their headers as lines, in the language of who uses them: "From: ... Sent: ...",
"Fra: ... Sendt: ...", "Von: ... Gesendet: ...".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.ingest.reading.cleaning import clean_text, one_line

_WORDS = word_lists("documents.txt")
_MEANING = {
    label.replace("_", " "): name
    for name in ("From", "Date", "To", "Cc", "Subject")
    for label in _WORDS[name]
}
_HEADER = pattern_of(
    r"^(?P<quote>[ \t]*(?:>[> \t]*)?)[*_]{0,2}(?P<label>"
    + "|".join(sorted(map(re.escape, _MEANING), key=len, reverse=True))
    + r")[ \u00a0]?[*_]{0,2}[:：][*_]{0,2}[ \t\u00a0]*(?P<value>[^\n]*)$",
    re.M,
)
_GOES_ON = pattern_of(r"(?:\n[> ]{0,9}[ \t]+[^\n]{0,1000}@[^\n]{0,1000}){0,50}[> \t\n*_]*")
_RULE = pattern_of(r"[ \t>]*(?:[-_=*]{2,}[^\n]{0,100}[-_=*]{2,}|_{5,})[ \t]*")
_QUOTE = pattern_of(r"^[ \t]*>[ \t]?", re.M)
_LEAST = 3
_MOST = 200
_MAIL_LINK = pattern_of(r"\[([^\[\]\n]{0,300})\]\(mailto:[^()\s]{0,300}\)")
_ADDRESS = pattern_of(r"[\w.+-]{1,100}@[\w-]{1,100}(?:\.[\w-]{1,100}){0,10}")
_BESIDE_NAME = pattern_of(r"[<\[(](?:mailto:)?[^<>\[\]()]*@[^<>\[\]()]*[>\])]|[\"<>]")
_AFTER_PERSON = pattern_of(r"(?<=>),\s*|(?<=[\w]),\s*(?=[^,]*@)")
_NUMERIC = pattern_of(r"\b(\d{1,2})([./-]) ?(\d{1,2})\2 ?(\d{4})\b")
_ISO = pattern_of(r"\b(\d{4})(?:-|年|\. ?)(\d{1,2})(?:-|月|\. ?)(\d{1,2})(?:日|\b)")
_DAY_MONTH = pattern_of(
    r"\b(\d{1,2})(?:st|nd|rd|th|er|\.|º|°)?,? +(?:de +|d['’])?([^\W\d_]{3,12})\.?,? +"
    r"(?:de +)?(\d{4})\b"
)
_MONTH_DAY = pattern_of(r"\b([^\W\d_]{3,12})\.? +(\d{1,2})(?:st|nd|rd|th)?,? +(\d{4})\b")
_TIME = pattern_of(r"\b(\d{1,2})[:.h](\d\d)(?:[:.]\d\d)?(?:\s*([APap])\.?\s?[Mm]\b)?")
_BEGINS = sorted(
    ((begin, number) for number in range(1, 13) for begin in _WORDS[f"month_{number}"]),
    key=lambda pair: -len(pair[0]),
)


@dataclass(frozen=True)
class QuotedMessage:
    """A message in the text of another: its headers as RFC 5322 calls them, and its words."""

    headers: dict[str, str]
    text: str

    def as_mail(self) -> str:
        """Return the message as a file of its own holds it."""
        head = "".join(f"{name}: {value}\n" for name, value in self.headers.items() if value)
        return f"{head}\n{self.text}"


def quoted_messages(text: str) -> tuple[str, list[QuotedMessage]]:
    """Return a text without the messages below their headers in it, and these.

    Headers are lines that follow each other and say who wrote and, of when, about what and to whom,
    two things or more; one, beside an address. All below is the message, up to the next headers.
    """
    if ":" not in text and "：" not in text:
        return text, []
    heads = [head for head in _heads(text) if _is_head(head)][:_MOST]
    if not heads:
        return text, []
    ends = [_without_rule(text, head) for head in heads[1:]] + [len(text)]
    messages = [
        QuotedMessage(_headers(text, head), _body(text[head[-1].end() : end], head[0]["quote"]))
        for head, end in zip(heads, ends, strict=True)
    ]
    return text[: _without_rule(text, heads[0])].rstrip(), messages


def _heads(text: str) -> Iterator[list[re.Match[str]]]:
    """Yield the runs of lines that are headers."""
    run: list[re.Match[str]] = []
    for line in _HEADER.finditer(text):
        if run and not _GOES_ON.fullmatch(text, run[-1].end(), line.start("label")):
            yield run
            run = []
        run.append(line)
    if run:
        yield run


def _is_head(head: list[re.Match[str]]) -> bool:
    told = {_MEANING[line["label"]]: line["value"].strip() for line in reversed(head)}
    told = {name: value for name, value in told.items() if value}
    is_of_message = "From" in told and ("Date" in told or "Subject" in told)
    return is_of_message and (len(told) >= _LEAST or "@" in told["From"])


def _without_rule(text: str, head: list[re.Match[str]]) -> int:
    """Return where a message begins: with the line that says so, if one stands above its headers.

    Above quoted headers it may be one that ends with a colon, as "Begin forwarded message:".
    """
    start = head[0].start()
    above = text[:start].rstrip("> \t\n")
    line = above.rpartition("\n")[2]
    is_led = ">" in head[0]["quote"] and line.rstrip().endswith(":")
    return len(above) - len(line) if line and (is_led or _RULE.fullmatch(line)) else start


def _body(text: str, quote: str) -> str:
    return clean_text(_QUOTE.sub("", text) if ">" in quote else text)


def _headers(text: str, head: list[re.Match[str]]) -> dict[str, str]:
    starts = [line.start("value") for line in head]
    ends = [line.start() for line in head[1:]] + [head[-1].end()]
    values = [one_line(text[start:end]) for start, end in zip(starts, ends, strict=True)]
    labels = [_MEANING[line["label"]] for line in head]
    told = dict(reversed([*zip(labels, values, strict=True)]))
    is_english = any(line["label"] == "From" for line in head)
    senders = _person(told.get("From", ""))
    return {
        "From": senders,
        "To": ", ".join(map(_person, _listed(told.get("To", "")))),
        "Cc": ", ".join(map(_person, _listed(told.get("Cc", "")))),
        "Date": iso_time(told.get("Date", ""), is_english=is_english),
        "Subject": told.get("Subject", "").strip("*_ "),
    }


def _listed(written: str) -> list[str]:
    """Return the people of a header, divided by semicolons, or commas after whole ones."""
    written = _MAIL_LINK.sub(r"\1", written)
    if ";" in written:
        parts = written.split(";")
    elif "@" in written:
        parts = _AFTER_PERSON.split(written)
    else:
        parts = written.split(", ")
        parts = parts if all(" " in part.strip() for part in parts) else [written]
    return [part for part in parts if part.strip()]


def _person(written: str) -> str:
    written = _MAIL_LINK.sub(r"\1", written)
    address = _ADDRESS.search(written)
    name = one_line(_ADDRESS.sub("", _BESIDE_NAME.sub("", written))).strip("'*_,;\\ ")
    return f'"{name}" <{address.group() if address else ""}>' if name or address else ""


def iso_time(written: str, *, is_english: bool) -> str:
    """Return a time that a mail program wrote in words as ISO 8601 does, or as it is written.

    English numbers alone, which may begin with the month or with the day, stay as they are.

    >>> iso_time("mandag den 4. marts 2024 15.12", is_english=False)
    '2024-03-04T15:12:00'
    """
    found = _date(written, is_english=is_english)
    if found is None:
        return written
    (year, month, day), end = found
    time = _TIME.search(written, end)
    hour, minute = (int(time[1]), int(time[2])) if time else (0, 0)
    if time and time[3]:
        hour = hour % 12 + 12 * (time[3] in "Pp")
    try:
        whole = datetime(year, month, day, hour, minute)
    except ValueError:
        return written
    return whole.isoformat() if time else whole.date().isoformat()


def _date(written: str, *, is_english: bool) -> tuple[tuple[int, int, int], int] | None:
    """Return year, month and day, and where they end."""
    if match := _ISO.search(written):
        return (int(match[1]), int(match[2]), int(match[3])), match.end()
    for pattern, day, month in ((_DAY_MONTH, 1, 2), (_MONTH_DAY, 2, 1)):
        for match in pattern.finditer(written):
            if number := _month(match[month]):
                return (int(match[3]), number, int(match[day])), match.end()
    match = _NUMERIC.search(written)
    if match is None:
        return None
    first, second, year = int(match[1]), int(match[3]), int(match[4])
    if is_english and match[2] == "/" and max(first, second) <= 12:
        return None
    is_month_first = second > 12
    month, day = (first, second) if is_month_first else (second, first)
    return (year, month, day), match.end()


def _month(word: str) -> int:
    word = word.casefold()
    return next((number for begin, number in _BEGINS if word.startswith(begin)), 0)
