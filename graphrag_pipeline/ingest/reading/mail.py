"""Mail: one document for each message, without what it quotes and without its signature.

Who wrote it to whom, and when, stands before its text, as in a conversation of a chat. Files and
messages that are attached are documents of their own, read as they would be elsewhere.
"""

from __future__ import annotations

import base64
import email.policy
import mimetypes
import quopri
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from email.feedparser import BytesFeedParser
from email.message import Message
from itertools import dropwhile, groupby, islice, takewhile
from pathlib import Path

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.cleaning import clean_text, one_line
from graphrag_pipeline.ingest.reading.files import is_of_other_kind, read_file, refused
from graphrag_pipeline.ingest.reading.html import parse_html, title_of
from graphrag_pipeline.ingest.reading.line_blocks import line_blocks
from graphrag_pipeline.ingest.reading.mail_headers import (
    date_of,
    decoded,
    header,
    in_charset,
    listed,
    message_id,
    names_of,
    people,
    thread_began,
    thread_of,
)
from graphrag_pipeline.ingest.reading.mail_quoted import quoted_messages
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
    joined,
    whole_document,
)
from graphrag_pipeline.ingest.reading.records import unique_keys
from graphrag_pipeline.ingest.reading.winmail import SIGNATURE, files_within

_MOST_PARTS = 1_000
_MOST_WORK = 50_000_000  # lines times boundaries: the parser tries each boundary on each line
_MOST_DEPTH = 50
_MOST_ATTACHED_DEPTH = 5
_BLOCK = 1 << 16
_MOST_HEADER = 5_000
_MOST_NAMES = 50
_MOST_SHOWN = 10
_MOST_MESSAGES = 100_000
_STRUCTURE = pattern_of(rb"^content-[a-z]+:[^\n]*+(?:\n[ \t][^\n]*+)*+", re.M | re.I)
_FIELD = rb"(?=>*From |[!-9;-~]+:)"
_DATED = rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? [^\r\n]{1,20}\d\d:\d\d[^\r\n]{0,300}\r?\n"
_SEPARATOR = pattern_of(
    rb"\AFrom [^\r\n]*\r?\n" + _FIELD + rb"|(?:(?<=\n\n)|(?<=\n\r\n))From "
    rb"(?:-|[^\s@]{1,200}@[^\r\n]{0,300}|[^\r\n]{0,300}\d\d:\d\d[^\r\n]{0,300})\r?\n"
    + _FIELD
    + rb"|(?<=\n)From \S{1,300} +"
    + _DATED
    + _FIELD
)
"""A line of a message may begin so, too: it holds no address and no time, or no header follows it.

After a line that is not blank, it has to be dated as well."""
_DIGEST_RULE = pattern_of(r"^(?:-{30}|-{70})\n\s*", re.M)
_IN_DIGEST = pattern_of(
    r"(?:Message: \d{1,6}\n)?(?=(?:[A-Za-z-]{2,40}:[^\n]*\n(?:[ \t][^\n]*\n)*)+\n)"
)
_ENDINGS = mimetypes.MimeTypes(filenames=())
_ENDINGS.add_type("application/mbox", ".mbox")
_QUOTED_SEPARATOR = pattern_of(rb"^>(>*From )", re.M)
_AT = pattern_of(rb"^(From: [^\s@]{1,100}) at ([^\s@]{1,100} \()", re.M)
"""How archives of mailing lists write who sends a message."""
_QUOTE = pattern_of(r"\s*>")
_LONGEST_SIZE = 20
_FORWARD = pattern_of(r"(?:fwd?|wg|tr|rv)\s?:", re.I)
_MOST_ANSWERED = 6  # lines
_SIGNATURE = pattern_of(r"^-- ?$", re.M)
_FILE_NAME = pattern_of(rb"name[*\d]{0,4}\s{0,9}=|base64", re.I)
_QUOTED = "quoted"
_IS_QUOTED = pattern_of(rf"(?:^|/){_QUOTED}-\d+$")
_ORIGINAL = pattern_of(
    r"^(?:-{2,} ?(?:Original Message|Ursprüngliche Nachricht|Message d'origine|Mensaje original) ?"
    r"-{2,}|_{20,}\n\s*From: .*)$",
    re.M | re.I,
)
_ATTRIBUTION = pattern_of(
    r"^(?:(?:On|Am|Le|El|Op|Il|Em|Den|Dne)\b.{5,300}"
    r"(?:wrote|schrieb|a écrit|escribió|schreef|ha scritto|escreveu|skrev|napsal)"
    r"[^\n]{0,80}:?|(?=.{0,100}\d).{5,200}@.{0,100}:"
    r"|[^\n.!?]{2,80} (?:wrote|writes|schrieb|schreibt|a écrit|escribió|ha scritto|escreveu|skrev|"
    r"schreef|napsal|napisał|пишет|писал)(?:\(a\)|a)?:)$",
)
"""Programs of more languages write when, and an address: pon., 4 mar 2024 ... a@x.pl napisał(a):"""


def read_eml(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read one message; its title is its subject, its metadata say from whom, to whom and when.

    Quoted lines and what follows a signature's mark are left out; `attachments` are the names of
    what is attached, and "attachment-1" is the key of the first. A message in HTML only is read as
    a web page, and a digest of plain text (RFC 1153) as the messages in it.
    """
    if not re.search(rb"^[A-Za-z-]{2,60}:", data[:10_000], re.M):
        raise Unreadable("the file is not a mail message: it has no headers")
    return _read("", data, options)


def read_emlx(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read one message of Apple Mail, above which stands how many bytes it has."""
    size, _, message = data.partition(b"\n")
    if not size.strip().isdigit() or len(size) > _LONGEST_SIZE:
        raise Unreadable("the file is not a message of Apple Mail: it does not begin with its size")
    return read_eml(path, message[: int(size)], options)


def read_mbox(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read the messages of a mailbox, each as `read_eml` does; a key is the Message-ID."""
    starts = [match.span() for match in _SEPARATOR.finditer(data)]
    if not starts or data[: starts[0][0]].strip():
        raise Unreadable("the file is not a mailbox: it does not begin with a line 'From ...'")
    if len(starts) > _MOST_MESSAGES:
        raise Unreadable(f"the mailbox has more than {_MOST_MESSAGES:,} messages: divide it")
    ends = [start for start, _ in starts[1:]] + [len(data)]
    spans = [(begin, end) for (_, begin), end in zip(starts, ends, strict=True)]
    keys = unique_keys(_key(data[b : b + 65_536], number) for number, (b, _) in enumerate(spans, 1))
    messages = (
        _AT.sub(rb"\1@\2", _QUOTED_SEPARATOR.sub(rb"\1", data[begin:end]), count=1)
        for begin, end in spans
    )
    read = joined([_read_held(k, each, options) for k, each in zip(keys, messages, strict=True)])
    return ReadResult(_in_threads(_once(read.documents)), read.quarantined)


def _once(documents: Sequence[ReadDocument]) -> list[ReadDocument]:
    """Return messages without those that are quoted only and are there by themselves, or before."""
    said = {_words_of(d) for d in documents if not _IS_QUOTED.search(d.key)}
    kept: list[ReadDocument] = []
    for document in documents:
        if _IS_QUOTED.search(document.key):
            words = _words_of(document)
            if words in said:
                continue
            said.add(words)
        kept.append(document)
    return kept


def _words_of(document: ReadDocument) -> str:
    """Return what a message says without who says it to whom."""
    return "".join(document.text.partition(":\n\n")[2].split())


def _in_threads(documents: Sequence[ReadDocument]) -> list[ReadDocument]:
    """Return messages with the beginning of their thread, where others say more of it."""
    about = [document.metadata for document in documents]
    threads = {str(m["message_id"]): str(m["thread"]) for m in about if "message_id" in m}
    return [
        replace(d, metadata={**d.metadata, "thread": thread_began(str(thread), threads)})
        if (thread := d.metadata.get("thread"))
        else d
        for d in documents
    ]


def read_mhtml(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read a web page that was saved in one file: its first page, not its frames and pictures."""
    message = _message(data)
    pages = (part for part in _parts(message) if part.get_content_type() == "text/html")
    markup = next((text for part in pages if (text := _text(part, options)).strip()), "")
    page = parse_html(markup)
    if not page.text:
        raise Unreadable("the file holds no web page with text")
    title = title_of(page.title, page.heading) or header(message, "Subject")
    about = {**page.metadata, "address": one_line(header(message, "Snapshot-Content-Location"))}
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
    if not is_page and depth < _MOST_ATTACHED_DEPTH:
        text, held = _undigested(text)
        read = joined([read, *_read_within(key, "message", held, options, depth)])
    text, quoted = quoted_messages(text) if depth < _MOST_ATTACHED_DEPTH else (text, [])
    if quoted or not _FORWARD.match(one_line(header(message, "Subject"))):
        text = own_words(text)
    mails = [each.as_mail() for each in quoted]
    within = joined(_read_within(key, _QUOTED, mails, options, depth))
    read = joined([read, _in_thread(within, thread_of(message))])
    if not text and people(message, "From") and people(message, "To", "Cc"):
        text = one_line(header(message, "Subject")) or ", ".join(name for name, _ in attached)
    if not text and not read.documents:
        raise Unreadable("the message holds no text")
    own = [_document(key, message, text, is_page, [name for name, _ in attached])] if text else []
    return ReadResult([*own, *read.documents], read.quarantined)


def _undigested(text: str) -> tuple[str, list[str]]:
    """Return a text without the messages that it lists as a digest, and these."""
    first, *parts = _DIGEST_RULE.split(text)
    kept, held = [first], list[str]()
    for part in parts:
        match = _IN_DIGEST.match(part)
        head = part[match.end() :].partition("\n\n")[0] if match else ""
        is_message = re.search(r"^From:", head, re.M) and re.search(
            r"^(?:Date|Subject):", head, re.M
        )
        if match and is_message:
            held.append(part[match.end() :])
        else:
            kept.append(part)
    return (clean_text("\n".join(kept)), held[:_MOST_PARTS]) if held else (text, [])


def _in_thread(read: ReadResult, thread: str) -> ReadResult:
    """Return messages that another one quotes, in its thread."""
    if not thread:
        return read
    documents = [replace(d, metadata={**d.metadata, "thread": thread}) for d in read.documents]
    return ReadResult(documents, read.quarantined)


def _read_within(
    key: str, kind: str, mails: Sequence[str], options: ReadingOptions, depth: int
) -> list[ReadResult]:
    """Read messages that the text of another one holds, of a digest or quoted."""
    prefix = f"{key}/" if key else ""
    return [
        _read_held(f"{prefix}{kind}-{number}", mail.encode(), options, depth + 1)
        for number, mail in enumerate(mails, 1)
    ]


def _read_held(key: str, data: bytes, options: ReadingOptions, depth: int = 0) -> ReadResult:
    """Read one of several messages: what cannot be read of it does not stop the others."""
    try:
        return _read(key, data, options, depth)
    except (Unreadable, ValueError, LookupError) as error:
        return ReadResult([], [Quarantined(key, one_line(str(error)))])


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
    subject = one_line(header(message, "Subject"))
    metadata = {
        **_sent(message),
        "cc": one_line(header(message, "Cc")),
        "in_reply_to": one_line(header(message, "In-Reply-To")),
        "message_id": message_id(message),
        "attachments": ", ".join(names[:_MOST_NAMES]),
    }
    senders, recipients = people(message, "From"), people(message, "To", "Cc")
    head = _head(names_of(senders), names_of(recipients), str(metadata["date"]))
    blocks = tuple(block.moved(len(head)) for block in line_blocks(text, markdown=is_page))
    return ReadDocument(
        key, subject or "(no subject)", head + text, clean_metadata(metadata), blocks
    )


def _sent(message: Message) -> dict[str, Scalar]:
    """Return by whom, to whom, when and in which thread a message was sent."""
    return {
        "from": one_line(header(message, "From")),
        "to": one_line(header(message, "To")),
        "date": date_of(message),
        "sender": listed(people(message, "From")),
        "recipients": listed(people(message, "To", "Cc")),
        "thread": thread_of(message),
    }


def _head(senders: Sequence[str], to: Sequence[str], date: str) -> str:
    """Return who says to whom and when what follows, as in a conversation: a paragraph."""
    sender = "".join(senders[:1])
    if not sender:
        return ""
    more = f" and {len(to) - _MOST_SHOWN} more" if len(to) > _MOST_SHOWN else ""
    recipients = f" to {', '.join(to[:_MOST_SHOWN])}{more}" if to else ""
    when = one_line(date).replace("T", " ")[:16]
    return f"{f'[{when}] ' if when else ''}{sender}{recipients}:\n\n"


def _read_attached(
    key: str,
    message: Message,
    attached: Sequence[tuple[str, Message]],
    options: ReadingOptions,
    depth: int,
) -> ReadResult:
    """Read the files and messages that are attached; those of kinds that are not read are named."""
    if not attached:
        return ReadResult([], [])
    of_message = {"message": one_line(header(message, "Subject")), **_sent(message)}
    results: list[ReadResult] = []
    for number, (name, part) in enumerate(attached, 1):
        read = _read_part(name, part, options, depth)
        documents: list[ReadDocument] = []
        for document in read.documents:
            is_message = "from" in document.metadata or "message_id" in document.metadata
            about = {"message": of_message["message"]} if is_message else of_message
            metadata = {**clean_metadata(about), **document.metadata}
            documents.append(replace(document, metadata=metadata))
        refused = [each for each in read.quarantined if not is_of_other_kind(each.reason)]
        own_key = f"{key}/attachment-{number}" if key else f"attachment-{number}"
        results.append(ReadResult(documents, refused).under(f"{own_key}/"))
    return joined(results)


def _read_part(name: str, part: Message, options: ReadingOptions, depth: int) -> ReadResult:
    if part.get_content_type() == "message/rfc822":
        inner = part.get_payload()
        message = inner[0] if isinstance(inner, list) and inner else None
        if not isinstance(message, Message):
            return ReadResult([], [])
        return _read_held("", _unpacked(part, message.as_bytes()), options, depth + 1)
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return ReadResult([], [])
    if data.startswith(SIGNATURE):
        return _read_winmail(data, options)
    path = _alone(name)
    if not path.suffix:
        path = Path(path.name + (_ENDINGS.guess_extension(part.get_content_type()) or ""))
    return read_file(path, options, data=data)


def _read_winmail(data: bytes, options: ReadingOptions) -> ReadResult:
    try:
        files = files_within(data)[:_MOST_PARTS]
    except Unreadable as error:
        return refused(str(error))
    read = [(name, read_file(_alone(name), options, data=content)) for name, content in files]
    return joined([each.under(f"{name}/") for name, each in read])


def _alone(name: str) -> Path:
    """Return a name that may lead elsewhere as a name alone: no file is opened."""
    return Path(name.replace("/", "_").replace("\\", "_"))


def _unpacked(part: Message, data: bytes) -> bytes:
    """Return a message that was encoded as a whole, which the standard forbids, as it was."""
    written = str(part.get("Content-Transfer-Encoding", "")).strip().lower()
    if written == "base64":
        return base64.b64decode(data)
    return quopri.decodestring(data.lstrip(b"\n")) if written == "quoted-printable" else data


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
        subject = header(first, "Subject") if isinstance(first, Message) else ""
        return one_line(subject)[:200] or "message"
    name = one_line(decoded(part.get_filename("") or ""))[:200]
    return name or ("attachment" if part.get_content_disposition() == "attachment" else "")


def _body(parts: list[Message], options: ReadingOptions) -> tuple[str, bool]:
    """Return the text of the message, of its plain parts, else of its pages; and if it is these.

    A page is written as Markdown is: lists, tables and code have the same marks.
    """
    shown = [part for part in parts if not _attachment(part)]
    for kind in ("text/plain", "text/html"):
        texts = [_text(part, options) for part in shown if _kind(part) == kind]
        if kind == "text/html":
            texts = [parse_html(text).text for text in texts]
        whole = clean_text("\n\n".join(texts))
        if whole:
            return whole, kind == "text/html"
    return "", False


def _kind(part: Message) -> str:
    """Return the type of a part; parts that cannot be told apart are read as they are written."""
    return "text/plain" if part.get_content_maintype() == "multipart" else part.get_content_type()


def _text(part: Message, options: ReadingOptions) -> str:
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return ""
    return in_charset(data, part.get_content_charset(), options.encoding)


def own_words(text: str) -> str:
    """Return a message without quoted lines, their attribution, and all after a signature's mark.

    What is nothing but quoted, as a forwarded message may be, is kept whole. Of what is answered
    piece by piece, the last paragraph above each answer is kept on a line with the mark ``>``.
    """
    body = text
    if original := _ORIGINAL.search(body):
        body = body[: original.start()]
    if signature := _SIGNATURE.search(body):
        body = body[: signature.start()]
    parts: list[tuple[list[str], list[str]]] = [([], [])]
    for is_quoted, run in groupby(body.split("\n"), lambda line: bool(_QUOTE.match(line))):
        if is_quoted:
            _drop_attribution(parts[-1][1])
            parts.append(([*run], []))
        else:
            parts[-1][1].extend(run)
    said = [(quoted, own) for quoted, lines in parts if (own := clean_text("\n".join(lines)))]
    answered = [quoted for quoted, _ in said if quoted]
    is_kept = len(answered) > 1 or sum(map(len, answered)) <= _MOST_ANSWERED
    texts = (f"{_last_paragraph(quoted) if is_kept else ''}{own}" for quoted, own in said)
    return re.sub(r"\n{3,}", "\n\n", "\n\n".join(texts)) or text


def _last_paragraph(quoted: Sequence[str]) -> str:
    """Return a line with the end of what is quoted, without what that quotes itself."""
    bare = [_QUOTE.sub("", line, count=1).strip() for line in reversed(quoted)]
    paragraph = takewhile(bool, dropwhile(lambda line: not line, bare))
    last = [line for line in islice(paragraph, _MOST_ANSWERED) if not _QUOTE.match(line)]
    return f"> {one_line(' '.join(reversed(last)))}\n" if last else ""


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


MHTML = FileFormat(read_mhtml, versions.of("web archives", "HTML"), SMALL)
EMLX = FileFormat(read_emlx, versions.WITHIN, SMALL, _FILE_NAME)
EML = FileFormat(read_eml, versions.WITHIN, SMALL, _FILE_NAME)
MBOX = FileFormat(read_mbox, versions.WITHIN, SMALL, _FILE_NAME)
