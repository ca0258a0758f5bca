"""Catalogues of translations (gettext): a table of what a program says and what stands for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.blocks import Block
from graphrag_pipeline.ingest.reading.cleaning import one_line
from graphrag_pipeline.ingest.reading.decoding import decode
from graphrag_pipeline.ingest.reading.model import (
    SMALL,
    FileFormat,
    ReadingOptions,
    ReadResult,
    Unreadable,
    readable_name,
    whole_document,
)
from graphrag_pipeline.ingest.reading.table_head import markdown_lines

_CHARSET = pattern_of(rb"charset=([\w.-]{1,40})")
_LINE = pattern_of(r"(?:(msgctxt|msgid|msgid_plural|msgstr(?:\[\d{1,3}\])?)[ \t]+)?\"(.*)\"[ \t]*$")
_ESCAPE = pattern_of(r"\\(.)")
_ESCAPED = {"n": "\n", "t": "\t", "r": ""}
_SAID_OF_ALL = {
    **{"Project-Id-Version": "Project", "Language": "Language", "Language-Team": "Language team"},
    **{"Last-Translator": "Last translator", "PO-Revision-Date": "Revised"},
}
_AS_MADE = ("PACKAGE VERSION", "EMAIL@ADDRESS", "LL@li.org", "YEAR-MO-DA")


def read_catalogue(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read a catalogue: fields of what it says of itself, and a row for each message.

    What is translated in several forms has them in one cell. What is no longer used is left out.
    """
    said = _CHARSET.search(data, 0, 10_000)
    written = said[1].decode() if said and said[1] != b"CHARSET" else None
    try:
        text = decode(data, options.encoding or written)
    except LookupError:
        text = decode(data, None)
    entries = [*_entries(text)]
    if not entries:
        raise Unreadable("it is no catalogue of translations: it has no messages")
    about = dict[str, str]()
    for line in "".join(t for e in entries[:1] if not e.get("msgid") for t in _forms(e)).split(
        "\n"
    ):
        name, _, value = line.partition(":")
        if name in _SAID_OF_ALL and value.strip() and not any(made in value for made in _AS_MADE):
            about[_SAID_OF_ALL[name]] = one_line(value)
    head = "".join(f"{name}: {value}\n" for name, value in about.items())
    language = about.get("Language", "")
    rows = [["Message", f"Translation ({language})" if language else "Translation", "Context"]]
    rows += [_row(entry) for entry in entries if entry.get("msgid")]
    has_context = any(row[2] for row in rows[1:])
    table = "\n".join(markdown_lines([row if has_context else row[:2] for row in rows], 1))
    start = len(head) + 1
    blocks = [Block(0, start - 2, "value")] if head else []
    blocks.append(Block(start, start + len(table), "table"))
    return whole_document(path, f"{head}\n{table}", readable_name(path), {**about}, blocks)


def _row(entry: dict[str, str]) -> list[str]:
    cells = (entry["msgid"], " / ".join(_forms(entry)), entry.get("msgctxt", ""))
    return [one_line(cell).replace("|", "\\|") for cell in cells]


def _forms(entry: dict[str, str]) -> list[str]:
    return [text for name, text in entry.items() if name.startswith("msgstr") and text.strip()]


def _entries(text: str) -> Iterator[dict[str, str]]:
    """Yield messages by the keywords of their parts."""
    parts: dict[str, list[str]] = {}
    name = ""
    for line in [*text.split("\n"), 'msgid ""']:
        match = _LINE.match(line.strip())
        if match is None or not (match[1] or name):
            continue
        begins = match[1] == "msgctxt" or (match[1] == "msgid" and name != "msgctxt")
        if begins and parts:
            yield {key: "".join(said) for key, said in parts.items()}
            parts = {}
        name = match[1] or name
        said = _ESCAPE.sub(lambda sign: _ESCAPED.get(sign[1], sign[1]), match[2])
        parts.setdefault(name, []).append(said)


CATALOGUE = FileFormat(read_catalogue, versions.of("catalogues"), SMALL)
