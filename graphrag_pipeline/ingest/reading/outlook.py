"""Messages that Outlook keeps as files (.msg): read as the mail that they were.

python-oxmsg (MIT) reads them.
"""

from __future__ import annotations

import email.utils
import io
from email.header import Header
from email.mime.application import MIMEApplication
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from pathlib import Path
from typing import Any

from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.cleaning import one_line
from graphrag_pipeline.ingest.reading.extras import require_extra
from graphrag_pipeline.ingest.reading.mail import read_eml
from graphrag_pipeline.ingest.reading.model import (
    FileFormat,
    ReadingOptions,
    ReadResult,
    Unreadable,
)

_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_HEADERS = ("To", "Cc", "Date", "Message-ID", "In-Reply-To", "References")
_MOST_PEOPLE = 50


def read_msg(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read a message as `read_eml` does, with what is attached to it."""
    if not data.startswith(_COMPOUND):
        raise Unreadable("it is no message of Outlook")
    with require_extra("oxmsg", "legacy", "msg"):
        from oxmsg import Message
    mail = _as_mail(Message.load(io.BytesIO(data)))
    return read_eml(path, mail.as_bytes(), options)


def _as_mail(message: Any) -> MIMEMultipart:
    mail = MIMEMultipart()
    given = {name.lower(): value for name, value in message.message_headers.items()}
    headers = {name: given.get(name.lower(), "") for name in _HEADERS}
    people = (f"{p.name} <{p.email_address}>" for p in message.recipients[:_MOST_PEOPLE])
    headers["To"] = headers["To"] or ", ".join(people)
    if message.sent_date and not headers["Date"]:
        headers["Date"] = email.utils.format_datetime(message.sent_date)
    headers |= {"From": message.sender or "", "Subject": message.subject}
    for name, value in headers.items():
        if text := one_line(value):
            mail[name] = text if text.isascii() else Header(text, "utf-8").encode()
    if message.body or message.html_body:
        kind = "plain" if message.body else "html"
        mail.attach(MIMEText(message.body or message.html_body, kind, "utf-8"))
    for attached in message.attachments:
        if attached.file_bytes is not None:
            part = MIMEApplication(attached.file_bytes)
            name = one_line(attached.file_name or "attachment")
            part.add_header("Content-Disposition", "attachment", filename=("utf-8", "", name))
            mail.attach(part)
    return mail


MSG = FileFormat(read_msg, versions.WITHIN)
