"""Web pages; those that Telegram exports are conversations, as other chats are."""

from __future__ import annotations

import html
from collections.abc import Iterator
from pathlib import Path

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.chat_logs import as_chat
from graphrag_pipeline.ingest.reading.cleaning import clean_text, one_line
from graphrag_pipeline.ingest.reading.decoding import decode
from graphrag_pipeline.ingest.reading.html import parse_html, read_html
from graphrag_pipeline.ingest.reading.line_blocks import line_blocks
from graphrag_pipeline.ingest.reading.model import (
    SMALL,
    FileFormat,
    ReadingOptions,
    ReadResult,
    whole_document,
)

_CHAT = b'class="page_body chat_page"'
_LOOKED_AT = 20_000
_MESSAGE, _FORWARDED = '<div class="message ', '<div class="forwarded body">'
_TITLE, _WHO, _SAID = '<div class="text bold">', '<div class="from_name">', '<div class="text">'
_WHEN = pattern_of(r'title="(\d\d)\.(\d\d)\.(\d{4}) (\d\d:\d\d):\d\d')


def read_page(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read a page as `read_html` does; of a chat of Telegram, a line for each message."""
    if _CHAT not in data[:_LOOKED_AT]:
        return read_html(path, data, options)
    head, *parts = decode(data, options.encoding).split(_MESSAGE)
    chat = as_chat([*_messages(parts)])
    if chat is None:
        return read_html(path, data, options)
    text, about = chat
    blocks = line_blocks(text, markdown=False)
    return whole_document(path, text, _within(head, _TITLE), about, blocks)


def _messages(parts: list[str]) -> Iterator[tuple[str, str, str]]:
    """Yield when, by whom and the words; one below another of the same person names nobody."""
    who = ""
    for part in parts:
        own = part.partition(_FORWARDED)[0]
        who = one_line(_within(own, _WHO)) or who
        when, said = _WHEN.search(part), _within(part, _SAID)
        if when and who and said:
            day, month, year, time = when.groups()
            yield f"{year}-{month}-{day} {time}", who, said


def _within(markup: str, begin: str) -> str:
    """Return the text of the first division that begins so; "" where there is none."""
    inner = markup.partition(begin)[2].partition("</div>")[0]
    return clean_text(parse_html(inner).text if "<" in inner else html.unescape(inner))


HTML = FileFormat(read_page, versions.of("HTML", "chat pages"), SMALL)
