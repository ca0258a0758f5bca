"""Headers of mail as they were meant: their signs, the people they name, and their thread."""

from __future__ import annotations

import codecs
import email.errors
import email.header
import email.utils
import functools
from collections.abc import Iterable, Sequence
from email.message import Message

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading.cleaning import one_line
from graphrag_pipeline.ingest.reading.decoding import decode

_MOST_HEADER = 5_000
_MOST_PEOPLE = 50
_SLOW_CHARSETS = ("punycode", "idna")  # of quadratic time, and never a message's
_ONE_BYTE = pattern_of(r"(?:iso8859|cp125|ascii)")
_MEANT = {
    **{"ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254"},
    **{"gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949"},
}
"""What is written under the name of a smaller set, as browsers read it (WHATWG Encoding, 4.2)."""
_ID = pattern_of(r"<([^<>\s]{1,300})>")
_BETWEEN_NAMES = pattern_of(r"[._]")
_ADDRESS = r"[A-Za-z0-9_+-]+(?:\.[A-Za-z0-9_+-]+)*@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*"
_PLAIN = pattern_of(
    rf"([A-Za-z][A-Za-z0-9=?_'-]*(?: [A-Za-z=][A-Za-z0-9=?_'-]*)*) <({_ADDRESS})>|({_ADDRESS})"
)
_IS_NAME = pattern_of(r"[^\W\d_](?:[^\W\d_]|[ .'’-])*")


def in_charset(data: bytes, charset: str | None, encoding: str | None) -> str:
    """Return the text of bytes that say in which charset they are, which they may not be.

    ``encoding`` is that of files which do not say it; None detects it.
    """
    try:
        name = codecs.lookup(charset or "utf-8").name
    except (LookupError, ValueError):
        name = ""
    # Text of one byte a character is hardly ever valid UTF-8, unless it is that.
    if name in _SLOW_CHARSETS or (_ONE_BYTE.match(name) and _is_utf8(data)):
        name = "utf-8"
    for tried in filter(None, (_MEANT.get(name), name)):
        try:
            return data.decode(tried)
        except (UnicodeError, LookupError):
            continue
    return decode(data, encoding) if data.strip() else ""


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def header(message: Message, name: str) -> str:
    """Return the first header of a name, decoded; "" where there is none."""
    return decoded(_written(message, name))


def _written(message: Message, name: str) -> str:
    """Return a header as it is written, with signs that should have been encoded."""
    written = str(_headers(message).get(name.lower(), ""))[:_MOST_HEADER]
    if written.isascii():
        return written
    return in_charset(written.encode("utf-8", "surrogateescape"), "utf-8", None)


@functools.lru_cache(maxsize=1)
def _headers(message: Message) -> dict[str, object]:
    """Return the first header of each name, in lower case: they are asked for one after another."""
    return {key.lower(): value for key, value in reversed([*message.raw_items()])}


def decoded(written: str) -> str:
    """Return a header with its encoded words decoded."""
    if "=?" not in written:
        return written
    try:
        parts = email.header.decode_header(written)
    except (ValueError, email.errors.HeaderParseError):
        return written
    return "".join(
        part
        if isinstance(part, str)
        else in_charset(part, charset, None)
        if charset
        else part.decode("raw-unicode-escape", "replace")
        for part, charset in parts
    )


def date_of(message: Message) -> str:
    """Return when a message was sent, as ISO 8601 writes it where the header can be read."""
    written = header(message, "Date")
    try:
        return email.utils.parsedate_to_datetime(written).isoformat()
    except (ValueError, TypeError, IndexError, OverflowError):
        return written


def people(message: Message, *names: str) -> list[tuple[str, str]]:
    """Return the (name, address) of those whom headers name, as an address alone tells one."""
    written = [text for name in names if (text := _written(message, name))]
    pairs = addresses_in(written)[:_MOST_PEOPLE]
    return [(person_of(decoded(name), address), one_line(address)) for name, address in pairs]


def addresses_in(written: Sequence[str]) -> list[tuple[str, str]]:
    """Return what :func:`email.utils.getaddresses` does, which reads each sign by itself.

    Most headers are names and addresses without quotes and comments: one search reads these.
    """
    parts = [part for text in written for part in text.split(", ")]
    plain = [_PLAIN.fullmatch(part) for part in parts]
    if all(plain):
        return [(match[1] or "", match[2] or match[3]) for match in plain if match]
    return email.utils.getaddresses(written)


def names_of(found: Iterable[tuple[str, str]]) -> list[str]:
    """Return what people are called, each once."""
    return list(dict.fromkeys(name for name, _ in found if name))


def listed(found: Iterable[tuple[str, str]]) -> str:
    """Return people as a list of their names and addresses, of which each can be asked for."""
    parts = (part for name, address in found for part in (name, address.lower()))
    return ", ".join(dict.fromkeys(part for part in parts if part and "," not in part))


def person_of(name: str, address: str) -> str:
    """Return what somebody is called: "Kovac, Ana" and ana.kovac@example.org are Ana Kovac."""
    name = one_line(name).strip("'\" ")
    family, comma, given = name.partition(", ")
    if name and "@" not in name:
        return f"{given} {family}" if comma and _IS_NAME.fullmatch(given + family) else name
    parts = _BETWEEN_NAMES.split(address.partition("@")[0])
    if len(parts) > 1 and all(part.isalpha() for part in parts):
        return " ".join(part.capitalize() for part in parts)
    return address


def message_id(message: Message) -> str:
    """Return the Message-ID, without its brackets."""
    return _first_id(header(message, "Message-ID"))


def thread_of(message: Message) -> str:
    """Return the Message-ID with which a thread began, as far as a message says it."""
    answered = header(message, "References"), header(message, "In-Reply-To")
    return next(filter(None, map(_first_id, answered)), message_id(message))


def thread_began(thread: str, threads: dict[str, str]) -> str:
    """Return with what a thread began by the ``threads`` of other messages, by Message-ID.

    What is found is noted there for all on the way, so that a long thread is walked once.
    """
    seen = {thread}
    while (earlier := threads.get(thread, thread)) not in seen:
        seen.add(earlier)
        thread = earlier
    threads.update(dict.fromkeys(seen, thread))
    return thread


def _first_id(written: str) -> str:
    match = _ID.search(written)
    return one_line(match[1]) if match else ""
