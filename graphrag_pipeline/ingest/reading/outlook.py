"""Items that Outlook keeps as files (.msg): mail as it was sent, events and contacts as records.

python-oxmsg (MIT) opens them. Their properties are read here: it takes no message that is attached
to another one, and none in a charset of its own.
"""

from __future__ import annotations

import email.utils
import io
import struct
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.header import Header
from email.message import Message
from email.mime.application import MIMEApplication
from email.mime.message import MIMEMessage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.cleaning import one_line
from graphrag_pipeline.ingest.reading.extras import require_extra
from graphrag_pipeline.ingest.reading.mail import read_eml
from graphrag_pipeline.ingest.reading.mail_headers import in_charset
from graphrag_pipeline.ingest.reading.model import (
    FileFormat,
    ReadingOptions,
    ReadResult,
    Unreadable,
    joined,
)
from graphrag_pipeline.ingest.reading.records import read_object

_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_HEADERS = ("To", "Cc", "Date", "Message-ID", "In-Reply-To", "References")
_OF_PEOPLE = ("From", "To", "Cc")
_IDS = {"Message-ID": 0x1035, "In-Reply-To": 0x1042, "References": 0x1039}
_MOST_PEOPLE, _MOST_ATTACHED, _DEEPEST = 50, 1_000, 5
_EMBEDDED = "__substg1.0_3701000D"
_HEAD, _HEAD_OF_EMBEDDED, _HEAD_OF_PART = 32, 24, 8
"""Bytes before the properties of a message, of one within another, of what is sent with it."""
_TEXT, _BYTES, _LETTERS = 0x1F, 0x102, 0x1E
_NAMED, _STARTS, _ENDS = 0x8000, 0x820D, 0x820E
_LOCATION, _ALL_DAY, _PATTERN = 0x8208, 0x8215, 0x8232
_CONTACT = {
    **{"title": 0x3001, "organization": 0x3A16, "department": 0x3A18, "job": 0x3A17},
    **{"email": 0x8083, "second email": 0x8093, "phone": 0x3A08, "mobile phone": 0x3A1C},
    **{"home phone": 0x3A09, "fax": 0x3A24, "address": 0x801B, "home address": 0x801A},
    "note": 0x1000,
}
_FIRST_YEAR = 1970
_OF_LETTERS = {
    **dict.fromkeys((50220, 50221, 50222, 51932), 932),
    **{51949: 949, 50225: 949, 51936: 936, 20866: 1251, 28595: 1251, 28592: 1250},
}
"""The code page of programs, by that of mail: letters of a byte are kept in the first."""
_LARGEST_PAGE = 2_000


class _Properties:
    """Properties of a message, a recipient or an attachment, by number."""

    def __init__(self, storage: Any, head: int, named: Mapping[int, int]) -> None:
        self.storage = storage
        self.named = named
        self._streams: dict[str, bytes] = {each.name: each.bytes_ for each in storage.streams}
        listed = self._streams.get("__properties_version1.0", b"")
        entries = (listed[n : n + 16] for n in range(head, len(listed) - 15, 16))
        self._values = {struct.unpack("<H", entry[2:4])[0]: entry[8:] for entry in entries}

    def data(self, number: int, kind: int = _BYTES) -> bytes:
        """Return bytes that stand in a stream of their own; b"" where there is none."""
        return self._streams.get(f"__substg1.0_{self._own(number):04X}{kind:04X}", b"")

    def text(self, number: int) -> str:
        """Return a text, in whatever charset it was kept."""
        if written := self.data(number, _TEXT):
            return written.decode("utf-16-le", "replace").rstrip("\0")
        page = self.number(0x3FFD) or self.number(0x3FDE)
        page = _OF_LETTERS.get(page, page if page in range(_LARGEST_PAGE) else 1252)
        return in_charset(self.data(number, _LETTERS).rstrip(b"\0"), f"cp{page}", None)

    def number(self, number: int) -> int:
        """Return a whole number; 0 where there is none."""
        return int.from_bytes(self._values.get(self._own(number), b"")[:4], "little")

    def time(self, number: int) -> datetime | None:
        """Return a time; None where there is none, or none that anybody set."""
        ticks = int.from_bytes(self._values.get(self._own(number), b""), "little")
        try:
            time = datetime(1601, 1, 1, tzinfo=UTC) + timedelta(microseconds=ticks // 10)
        except OverflowError:
            return None
        return time.replace(microsecond=0) if time.year >= _FIRST_YEAR else None

    def within(self, begin: str) -> Iterator[Any]:
        """Yield the storages whose names begin so."""
        return (each for each in self.storage.storages if each.name.startswith(begin))

    def _own(self, number: int) -> int:
        return self.named.get(number, 0) if number >= _NAMED else number


def read_msg(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read a message as `read_eml` does, with what is attached; an event or contact as a record."""
    if not data.startswith(_COMPOUND):
        raise Unreadable("it is no message of Outlook")
    with require_extra("oxmsg", "legacy", "msg"):
        from olefile import OleFileIO
        from oxmsg.storage import Storage
    opened: Any = OleFileIO(io.BytesIO(data))
    with opened as file:
        # Small parts stand within one of the file itself.
        if sum(part.size for part in file.direntries if part) > 2 * len(data):
            raise Unreadable("it is damaged: a part of it is said to be larger than the whole")
        root = Storage.from_ole(file)
    item = _Properties(root, _HEAD, _names(root))
    kind = item.text(0x1A)
    if kind.startswith("IPM.Contact"):
        said = {name: item.text(number).strip() for name, number in _CONTACT.items()}
        return read_object(path, said, options)
    if not kind.startswith(("IPM.Appointment", "IPM.Schedule")):
        return read_eml(path, _as_mail(item).as_bytes(), options)
    event = read_object(path, _event(item), options)
    try:
        mail = read_eml(path, _as_mail(item).as_bytes(), options)
    except Unreadable:
        return event
    return joined([mail, event.under("event/")])


def _names(root: Any) -> dict[int, int]:
    """Return under which numbers a file keeps what its programs number otherwise."""
    listed = next((each for each in root.storages if each.name == "__nameid_version1.0"), None)
    streams = listed.streams if listed else ()
    entries = next((each.bytes_ for each in streams if each.name == "__substg1.0_00030102"), b"")
    rows = struct.iter_unpack("<IHH", entries[: len(entries) // 8 * 8])
    return {name: _NAMED + place for name, kind, place in rows if not kind & 1}


def _event(item: _Properties) -> dict[str, object]:
    """Return what an event says beside its text, which is read as that of a message."""
    starts, ends = item.time(_STARTS) or item.time(0x60), item.time(_ENDS) or item.time(0x61)
    is_whole_day = bool(item.number(_ALL_DAY) & 1)
    if is_whole_day and ends:
        ends -= timedelta(days=1)
    times = {"starts": starts, "ends": ends}
    sender = _sender(item)
    return {
        "title": one_line(item.text(0x37)),
        **{name: _said(time, is_whole_day) for name, time in times.items() if time},
        "location": one_line(item.text(_LOCATION)),
        "repeats": one_line(item.text(_PATTERN)),
        "organizer": sender[0] or sender[1],
        "attendee": [name or address for name, address in _people(item)],
    }


def _said(time: datetime, is_whole_day: bool) -> str:
    """Return a time; of a whole day the day, which begins at midnight where it was written."""
    if is_whole_day:
        return str((time + timedelta(hours=12)).date())
    return time.isoformat().replace("+00:00", "Z")


def _as_mail(item: _Properties, depth: int = 0) -> MIMEMultipart:
    mail = MIMEMultipart()
    given = HeaderParser().parsestr(item.text(0x7D))
    headers = {name: _unfolded(given, name) for name in _HEADERS}
    headers |= {name: headers[name] or item.text(number) for name, number in _IDS.items()}
    headers["To"] = headers["To"] or _addresses(_people(item))
    if not headers["Date"] and (sent := item.time(0x39) or item.time(0xE06)):
        headers["Date"] = email.utils.format_datetime(sent)
    headers |= {"From": _unfolded(given, "From") or _addresses([_sender(item)])}
    headers |= {"Subject": item.text(0x37)}
    for name, value in headers.items():
        text = one_line(value)
        if not text.isascii() and name in _OF_PEOPLE:
            text = _addresses(email.utils.getaddresses([text]))
        if text:
            mail[name] = text if text.isascii() else Header(text, "utf-8").encode()
    if body := item.text(0x1000):
        mail.attach(MIMEText(body, "plain", "utf-8"))
    elif page := item.text(0x1013) or in_charset(item.data(0x1013), None, None):
        mail.attach(MIMEText(page, "html", "utf-8"))
    for number, storage in enumerate(item.within("__attach_version1.0_#")):
        if number < _MOST_ATTACHED:
            _attach(mail, _Properties(storage, _HEAD_OF_PART, item.named), depth)
    return mail


def _attach(mail: MIMEMultipart, part: _Properties, depth: int) -> None:
    name = one_line(part.text(0x3707) or part.text(0x3704) or part.text(0x3001))
    if data := part.data(0x3701):
        attached = MIMEApplication(data)
    elif (inner := next(part.within(_EMBEDDED), None)) and depth < _DEEPEST:
        item = _Properties(inner, _HEAD_OF_EMBEDDED, part.named)
        attached = MIMEMessage(_as_mail(item, depth + 1))
    else:
        return
    named = ("utf-8", "", name or "attachment")
    attached.add_header("Content-Disposition", "attachment", filename=named)
    mail.attach(attached)


def _unfolded(given: Message, name: str) -> str:
    return one_line(str(given.get(name, "")))


def _sender(item: _Properties) -> tuple[str, str]:
    return _person(item, 0xC1A, 0x5D01, 0xC1F)


def _people(item: _Properties) -> list[tuple[str, str]]:
    storages = [*item.within("__recip_version1.0_#")][:_MOST_PEOPLE]
    parts = (_Properties(storage, _HEAD_OF_PART, item.named) for storage in storages)
    return [_person(part, 0x3001, 0x39FE, 0x3003) for part in parts]


def _person(of: _Properties, name: int, *addresses: int) -> tuple[str, str]:
    """Return what somebody is called, and the address; those within an Exchange server are none."""
    told = (one_line(of.text(address)) for address in addresses)
    address = next((each for each in told if "@" in each), "")
    return one_line(of.text(name)).strip("'"), address


def _quoted(name: str) -> str:
    return f'"{name}"' if name.isascii() else Header(name, "utf-8").encode()


def _addresses(people: list[tuple[str, str]]) -> str:
    """Return people as a header names them: what they are called alone where it is all."""
    return ", ".join(
        email.utils.formataddr((name, address), "utf-8") if address else f"{_quoted(name)} <>"
        for name, address in people
        if name or address
    )


MSG = FileFormat(read_msg, versions.WITHIN)
