"""Mail: one document for each message, without what it quotes and without its signature.

Who wrote it to whom, and when, stands before its text, as in a conversation of a chat. Files and
messages that are attached are documents of their own, read as they would be elsewhere.
"""

from __future__ import annotations

import email.errors
import email.header
import email.policy
import email.utils
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from email.feedparser import BytesFeedParser
from email.message import Message
from pathlib import Path

from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.blocks import Block
from graphrag_pipeline.ingest.reading.cleaning import clean_text, one_line
from graphrag_pipeline.ingest.reading.decoding import decode
from graphrag_pipeline.ingest.reading.files import is_of_other_kind, read_file
from graphrag_pipeline.ingest.reading.html import parse_html, title_of
from graphrag_pipeline.ingest.reading.line_blocks import line_blocks
from graphrag_pipeline.ingest.reading.model import (
    SMALL,
    FileFormat,
    Quarantined,
    ReadDocument,
    ReadingOptions,
    ReadResult,
    Scalar,
    Unreadable,
    clean_metadata,
    whole_document,
)
from graphrag_pipeline.ingest.reading.records import unique_keys

_MOST_PARTS = 1_000
_MOST_WORK = 50_000_000  # lines times boundaries: the parser tries each boundary on each line
_MOST_DEPTH = 50
_MOST_ATTACHED_DEPTH = 5
_BLOCK = 1 << 16
_MOST_HEADER = 5_000
_MOST_NAMES = 50
_MOST_SHOWN = 10
_MOST_MESSAGES = 100_000
_SLOW_CHARSETS = ("punycode", "idna")  # of quadratic time, and never a message's
_ONE_BYTE = re.compile(r"(?:iso-8859|iso8859|latin|windows-125|cp125|us-ascii|ascii)", re.I)
_STRUCTURE = re.compile(rb"^content-[a-z]+:[^\n]*+(?:\n[ \t][^\n]*+)*+", re.M | re.I)
_MESSAGE_ID = re.compile(r"<([^<>\s]{1,300})>")
_BETWEEN_NAMES = re.compile(r"[._]")
_IS_NAME = re.compile(r"[^\W\d_](?:[^\W\d_]|[ .'’-])*")
_HEADERS = {"From": "from", "To": "to", "Cc": "cc", "In-Reply-To": "in_reply_to"}
_SEPARATOR = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\r\n]*\r?\n(?=>*From |[!-9;-~]+:)")
"""A line of a message may begin so, too: what follows it is no header then."""
_QUOTED_SEPARATOR = re.compile(rb"^>(>*From )", re.M)
_QUOTE = re.compile(r"\s*>")
_SIGNATURE = re.compile(r"^-- ?$", re.M)
_FILE_NAME = re.compile(rb"name[*\d]{0,4}\s{0,9}=|base64", re.I)
_ORIGINAL = re.compile(
    r"^(?:-{2,} ?(?:Original Message|Ursprüngliche Nachricht|Message d'origine|Mensaje original) ?"
    r"-{2,}|_{20,}\n\s*From: .*)$",
    re.M | re.I,
)
_ATTRIBUTION = re.compile(
    r"^(?:On|Am|Le|El|Op|Il)\b.{5,300}(?:wrote|schrieb|a écrit|escribió|schreef|ha scritto)"
    r"[^\n]{0,80}:?$",
)


def read_eml(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read one message; its title is its subject, its metadata say from whom, to whom and when.

    Quoted lines and what follows a signature's mark are left out; `attachments` are the names of
    what is attached, and "attachment-1" is the key of the first. A message in HTML only is read as
    a web page.
    """
    if not re.search(rb"^[A-Za-z-]{2,60}:", data[:10_000], re.M):
        raise Unreadable("the file is not a mail message: it has no headers")
    return _read("", data, options)


def read_mbox(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read the messages of a mailbox, each as `read_eml` does; a key is the Message-ID."""
    starts = [match.span() for match in _SEPARATOR.finditer(data)]
    if not starts or data[: starts[0][0]].strip():
        raise Unreadable("the file is not a mailbox: it does not begin with a line 'From ...'")
    if len(starts) > _MOST_MESSAGES:
        raise Unreadable(f"the mailbox has more than {_MOST_MESSAGES:,} messages: divide it")
    ends = [start for start, _ in starts[1:]] + [len(data)]
    documents: list[ReadDocument] = []
    quarantined: list[Quarantined] = []
    spans = [(begin, end) for (_, begin), end in zip(starts, ends, strict=True)]
    keys = unique_keys(_key(data[b : b + 65_536], number) for number, (b, _) in enumerate(spans, 1))
    for key, (begin, end) in zip(keys, spans, strict=True):
        message = _QUOTED_SEPARATOR.sub(rb"\1", data[begin:end])
        try:
            read = _read(key, message, options)
            documents += read.documents
            quarantined += read.quarantined
        except Unreadable as error:
            quarantined.append(Quarantined(key, str(error)))
    return ReadResult(documents, quarantined)


def read_mhtml(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read a web page that was saved in one file: its first page, not its frames and pictures."""
    message = _message(data)
    pages = (part for part in _parts(message) if part.get_content_type() == "text/html")
    markup = next((text for part in pages if (text := _text(part, options)).strip()), "")
    page = parse_html(markup)
    if not page.text:
        raise Unreadable("the file holds no web page with text")
    title = title_of(page.title, page.heading) or _header(message, "Subject")
    about = {**page.metadata, "address": one_line(_header(message, "Snapshot-Content-Location"))}
    return whole_document(path, page.text, title, about, page.blocks)


def _key(head: bytes, number: int) -> str:
    headers = re.split(rb"\r?\n\r?\n", head, maxsplit=1)[0]
    match = re.search(rb"^Message-ID:\s*<([^<>\s]{1,300})>", headers, re.M | re.I)
    return one_line(match[1].decode("ascii", "replace")) if match else f"message-{number}"


def _read(key: str, data: bytes, options: ReadingOptions, depth: int = 0) -> ReadResult:
    """Read a message with all that is attached. Raises Unreadable where nothing of it has text."""
    message = _message(data)
    parts = list(_parts(message))
    if len(parts) > _MOST_PARTS:
        raise Unreadable(f"the message has more than {_MOST_PARTS:,} parts")
    attached = [(name, part) for part in parts if (name := _attachment(part))]
    read = ReadResult([], [])
    if depth < _MOST_ATTACHED_DEPTH:
        read = _read_attached(key, message, attached, options, depth)
    text, is_page = _body(parts, options)
    if not text and not read.documents:
        raise Unreadable("the message holds no text")
    own = [_document(key, message, text, is_page, [name for name, _ in attached])] if text else []
    return ReadResult([*own, *read.documents], read.quarantined)


def _message(data: bytes) -> Message:
    """Parse a message. Raises Unreadable for one that would take the parser too long."""
    if any(match.end() - match.start() > _MOST_HEADER for match in _STRUCTURE.finditer(data)):
        raise Unreadable("a header that says how the message is built is too long")
    boundaries = data.lower().count(b"boundary")
    if boundaries * data.count(b"\n") > _MOST_WORK:
        raise Unreadable(
            f"the message has {boundaries:,} nested or repeated parts in too many lines"
        )
    try:
        return _parsed(data)
    except RecursionError:
        raise Unreadable("the parts of the message are nested too deep") from None


def _document(
    key: str, message: Message, text: str, is_page: bool, names: Sequence[str]
) -> ReadDocument:
    subject = one_line(_header(message, "Subject"))
    metadata: dict[str, Scalar] = {
        name: one_line(_header(message, header)) for header, name in _HEADERS.items()
    }
    metadata["date"] = _date(_header(message, "Date"))
    metadata["thread"] = _thread(message)
    metadata["attachments"] = ", ".join(names[:_MOST_NAMES])
    head = _head(message, str(metadata["date"]))
    blocks = tuple(
        Block(block.start + len(head), block.end + len(head), block.kind)
        for block in line_blocks(text, markdown=is_page)
    )
    return ReadDocument(
        key, subject or "(no subject)", head + text, clean_metadata(metadata), blocks
    )


def _head(message: Message, date: str) -> str:
    """Return who says to whom and when what follows, as in a conversation: a paragraph."""
    sender, to = "".join(_people(message, "From")[:1]), _people(message, "To", "Cc")
    if not sender:
        return ""
    more = f" and {len(to) - _MOST_SHOWN} more" if len(to) > _MOST_SHOWN else ""
    recipients = f" to {', '.join(to[:_MOST_SHOWN])}{more}" if to else ""
    when = date.replace("T", " ")[:16]
    return f"{f'[{when}] ' if when else ''}{sender}{recipients}:\n\n"


def _people(message: Message, *headers: str) -> list[str]:
    """Return the names in some headers, each once, those of addresses alone as they tell one."""
    written = [str(message.get(name) or "")[:_MOST_HEADER] for name in headers]
    pairs = email.utils.getaddresses(written)
    names = (_person(_decoded(name), address) for name, address in pairs)
    return list(dict.fromkeys(name for name in names if name))[:_MOST_NAMES]


def _person(name: str, address: str) -> str:
    """Return what somebody is called: "Kovac, Ana" and ana.kovac@example.org are Ana Kovac."""
    name = one_line(name).strip("'\" ")
    family, comma, given = name.partition(", ")
    if name and "@" not in name:
        return f"{given} {family}" if comma and _IS_NAME.fullmatch(given + family) else name
    parts = _BETWEEN_NAMES.split(address.partition("@")[0])
    if len(parts) > 1 and all(part.isalpha() for part in parts):
        return " ".join(part.capitalize() for part in parts)
    return address


def _thread(message: Message) -> str:
    """Return the Message-ID of the first message that this one is in a conversation with."""
    for name in ("References", "In-Reply-To", "Message-ID"):
        if ids := _MESSAGE_ID.findall(_header(message, name)):
            return one_line(ids[0])
    return ""


def _read_attached(
    key: str,
    message: Message,
    attached: Sequence[tuple[str, Message]],
    options: ReadingOptions,
    depth: int,
) -> ReadResult:
    """Read the files and messages that are attached; those of kinds that are not read are named."""
    of_message: dict[str, Scalar] = {
        "message": one_line(_header(message, "Subject")),
        "from": one_line(_header(message, "From")),
        "date": _date(_header(message, "Date")),
    }
    documents: list[ReadDocument] = []
    quarantined: list[Quarantined] = []
    for number, (name, part) in enumerate(attached, 1):
        own_key = f"{key}/attachment-{number}" if key else f"attachment-{number}"
        read = _read_part(name, part, options, depth)
        for document in read.documents:
            under = f"{own_key}/{document.key}" if document.key else own_key
            metadata = {**clean_metadata(of_message), **document.metadata}
            documents.append(replace(document, key=under, metadata=metadata))
        quarantined += (
            Quarantined(f"{own_key}/{refusal.key}".rstrip("/"), refusal.reason)
            for refusal in read.quarantined
            if not is_of_other_kind(refusal.reason)
        )
    return ReadResult(documents, quarantined)


def _read_part(name: str, part: Message, options: ReadingOptions, depth: int) -> ReadResult:
    if part.get_content_type() == "message/rfc822":
        inner = part.get_payload()
        message = inner[0] if isinstance(inner, list) and inner else None
        if not isinstance(message, Message):
            return ReadResult([], [])
        try:
            return _read("", message.as_bytes(), options, depth + 1)
        except (Unreadable, ValueError, LookupError) as error:
            return ReadResult([], [Quarantined("", one_line(str(error)))])
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return ReadResult([], [])
    # A name that leads elsewhere is a name alone: no file is opened.
    return read_file(Path(name.replace("/", "_").replace("\\", "_")), options, data=data)


def _parsed(data: bytes) -> Message:
    """Parse by blocks: given all at once, the parser makes copies of four bytes a character."""
    parser = BytesFeedParser(policy=email.policy.compat32)
    for start in range(0, len(data), _BLOCK):
        parser.feed(data[start : start + _BLOCK])
    return parser.close()


def _parts(message: Message) -> Iterator[Message]:
    """Yield the parts that hold no others; a message that is attached is one part."""
    pending = [(message, 0)]
    count = 0
    while pending:
        part, depth = pending.pop()
        count += 1
        if depth > _MOST_DEPTH:
            raise Unreadable(f"the parts of the message are nested more than {_MOST_DEPTH} deep")
        if part.get_content_maintype() == "multipart" and part.is_multipart():
            inner = part.get_payload()
            held = inner if isinstance(inner, list) else []
            pending += [(p, depth + 1) for p in reversed(held) if isinstance(p, Message)]
        else:
            yield part
        if count > 2 * _MOST_PARTS:
            raise Unreadable(f"the message has more than {_MOST_PARTS:,} parts")


def _attachment(part: Message) -> str:
    """Return the name of a part that is an attachment, or ""."""
    if part.get_content_type() == "message/rfc822":
        inner = part.get_payload()
        first = inner[0] if isinstance(inner, list) and inner else None
        subject = _header(first, "Subject") if isinstance(first, Message) else ""
        return one_line(subject)[:200] or "message"
    name = one_line(_decoded(part.get_filename("") or ""))[:200]
    return name or ("attachment" if part.get_content_disposition() == "attachment" else "")


def _body(parts: list[Message], options: ReadingOptions) -> tuple[str, bool]:
    """Return the text of the message, of its plain parts, else of its pages; and if it is these.

    A page is written as Markdown is: lists, tables and code have the same marks.
    """
    shown = [part for part in parts if not _attachment(part)]
    for kind in ("text/plain", "text/html"):
        texts = [_text(part, options) for part in shown if part.get_content_type() == kind]
        if kind == "text/html":
            texts = [parse_html(text).text for text in texts]
        whole = clean_text("\n\n".join(texts))
        if whole:
            return own_words(whole), kind == "text/html"
    return "", False


def _text(part: Message, options: ReadingOptions) -> str:
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return ""
    charset = part.get_content_charset() or "utf-8"
    # Text of one byte a character is hardly ever valid UTF-8, unless it is that.
    is_utf8 = charset in _SLOW_CHARSETS or (_ONE_BYTE.match(charset) and _is_utf8(data))
    try:
        return data.decode("utf-8" if is_utf8 else charset)
    except (UnicodeError, LookupError):
        return decode(data, options.encoding) if data.strip() else ""


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def own_words(text: str) -> str:
    """Return a message without quoted lines, their attribution, and all after a signature's mark.

    What is nothing but quoted, as a forwarded message may be, is kept whole.
    """
    body = text
    if original := _ORIGINAL.search(body):
        body = body[: original.start()]
    if signature := _SIGNATURE.search(body):
        body = body[: signature.start()]
    lines: list[str] = []
    in_quotation = False
    for line in body.split("\n"):
        is_quoted = bool(_QUOTE.match(line))
        if is_quoted and not in_quotation:
            _drop_attribution(lines)
        elif not is_quoted:
            lines.append(line)
        in_quotation = is_quoted
    return clean_text(re.sub(r"\n{3,}", "\n\n", "\n".join(lines))) or text


def _drop_attribution(lines: list[str]) -> None:
    """Remove the "On ... wrote:" that stands before a quotation, on one line or on two."""
    last = len(lines)
    while last > max(len(lines) - 2, 0) and not lines[last - 1].strip():
        last -= 1
    for height in (1, 2):
        above = lines[max(last - height, 0) : last]
        short = all(len(line) < 300 for line in above)
        if short and _ATTRIBUTION.match(" ".join(line.strip() for line in above)):
            del lines[last - len(above) :]
            return


def _header(message: Message, name: str) -> str:
    value = message.get(name)
    return _decoded(str(value)[:_MOST_HEADER]) if value is not None else ""


def _decoded(written: str) -> str:
    """Return a header with its encoded words decoded."""
    try:
        return str(email.header.make_header(email.header.decode_header(written)))
    except (ValueError, LookupError, email.errors.HeaderParseError):
        return written


def _date(written: str) -> str:
    try:
        return email.utils.parsedate_to_datetime(written).isoformat()
    except (ValueError, TypeError, IndexError, OverflowError):
        return written


MHTML = FileFormat(read_mhtml, versions.WEB_ARCHIVES | versions.HTML, SMALL)
EML = FileFormat(read_eml, versions.WITHIN, SMALL, _FILE_NAME)
MBOX = FileFormat(read_mbox, versions.WITHIN, SMALL, _FILE_NAME)
