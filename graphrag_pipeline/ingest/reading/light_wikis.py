"""Pages in the markup of DokuWiki and in Textile (Redmine, old weblogs), said again in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.cleaning import clean_text
from graphrag_pipeline.ingest.reading.decoding import decode
from graphrag_pipeline.ingest.reading.markdown import read_as_markdown
from graphrag_pipeline.ingest.reading.model import (
    SMALL,
    FileFormat,
    ReadingOptions,
    ReadResult,
    readable_name,
)
from graphrag_pipeline.ingest.reading.table_head import markdown_lines
from graphrag_pipeline.ingest.reading.wikitext import ItemNumbers

_FENCE = "```"
_DOKU_HEADING = pattern_of(r"={2,6}[ \t]*(.{1,300}?)[ \t]*(={2,6})$")
_DOKU_CODE = pattern_of(r"<(code|file)\b[^<>\n]{0,200}>\n?(.*?)\n?</\1>", re.DOTALL)
_DOKU_ITEM = pattern_of(r"((?: {2}|\t)+)([*-])[ \t]*(.*)$")
_DOKU_CELL = pattern_of(r"([|^])((?:\[\[[^\[\]\n]*+\]\]|[^|^\n])*+)(?=[|^])")
_DOKU_UNSEEN = pattern_of(r"~~[A-Z][A-Z:_a-z]{1,30}~~|</?(?:nowiki|sub|sup|del|WRAP)\b[^<>\n]*>|%%")
_DOKU_LINK = pattern_of(r"\[\[(\w+://[^\[\]|\n]+)(?:\|([^\[\]\n]+))?\]\]")
_DOKU_FILE = pattern_of(r"\{\{[^{}|\n]*(?:\|([^{}\n]*))?\}\}")
_DOKU_MARKS = pattern_of(r"(?<!:)(//|\*\*|__|'')(?=\S)(.{1,500}?)(?<=\S)(?<!:)\1")
_ATTRIBUTES = r"(?:\([^()\n]{1,100}\)|\{[^{}\n]{1,100}\}|\[[^\[\]\n]{1,30}\]|[<>=]){0,4}"
_HEADING = pattern_of(rf"h([1-6]){_ATTRIBUTES}\.[ \t]+(.*)$")
_BLOCK = pattern_of(rf"(bq|bc|pre|p|notextile|fn\d{{1,3}}){_ATTRIBUTES}\.\.?(?:[ \t]+|$)(.*)$")
_ITEM = pattern_of(rf"([*#]+){_ATTRIBUTES}[ \t]+(.*)$")
_CELL = pattern_of(
    rf"(_)?(?:\\(\d{{1,2}}))?(?:/(\d{{1,2}}))?[\^~-]?{_ATTRIBUTES}\.(?:[ \t]+|(?<=_\.))"
)
"""Marks of a cell: whether it is a head, and over how many columns and rows."""
_LINK = pattern_of(
    r"\"([^\"\n()]{1,300})(?:\([^()\n]{0,300}\))?\":((?:\w+://|mailto:)[^\s]*[^\s.,;:!?)\"]|[/#][^\s]*)"
)
_IMAGE = pattern_of(r"!(?:[<>=])?[^\s!()]{1,500}(?:\(([^()\n]{0,300})\))?!(?::\S+)?")
_MARKS = pattern_of(
    r"(?<!\w)(\*\*|__|\?\?|[*_+-]|%)(?=\S)(?:\{[^{}\n]{1,100}\})?([^\n]{1,500}?)(?<=\S)\1(?!\w)"
)
_CODE = pattern_of(r"(?<!\w)@([^@\n]{1,300})@(?!\w)")


def read_dokuwiki(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read one page of DokuWiki; notes stand in brackets, pictures are their captions."""
    parts = _DOKU_CODE.split(clean_text(decode(data, options.encoding)))
    written = [
        f"{_FENCE}\n{part}\n{_FENCE}" if place % 3 == 2 else "\n".join(_doku_lines(part))
        for place, part in enumerate(parts)
        if place % 3 != 1
    ]
    return _read(path, "\n".join(written), options)


def read_textile(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read one page of Textile."""
    text = clean_text(decode(data, options.encoding))
    return _read(path, "\n".join(_textile_lines(text)), options)


def _read(path: Path, text: str, options: ReadingOptions) -> ReadResult:
    head = "" if text.lstrip().startswith("# ") else f"# {readable_name(path)}\n\n"
    return read_as_markdown(path, head + text, options)


def _doku_lines(text: str) -> Iterator[str]:
    numbers = ItemNumbers()
    table: list[tuple[list[str], bool]] = []
    for line in [*text.split("\n"), ""]:
        cells = _DOKU_CELL.findall(line) if line.startswith(("|", "^")) else []
        if cells:
            row = [_doku_words(cell).strip() for _, cell in cells]
            above = [*(table[-1][0] if table else []), *[""] * len(row)]
            row = [over if cell == ":::" else cell for cell, over in zip(row, above, strict=False)]
            table.append((row, all(mark == "^" for mark, _ in cells)))
            continue
        yield from _table(table)
        table = []
        if heading := _DOKU_HEADING.match(line.strip()):
            yield f"\n{'#' * (7 - len(heading[2]))} {heading[1]}\n"
        elif item := _DOKU_ITEM.match(line):
            depth = len(item[1].replace("\t", "  ")) // 2
            yield numbers.mark(depth, is_numbered=item[2] == "-") + _doku_words(item[3])
        else:
            numbers.end()
            yield _doku_words(line)


def _doku_words(line: str) -> str:
    line = _DOKU_FILE.sub(lambda file: file[1] or "", _DOKU_UNSEEN.sub("", line))
    line = re.sub(r"\\\\(?:\s|$)", " ", line).replace("((", " (").replace("))", ")")
    line = _DOKU_LINK.sub(lambda link: f"[{link[2] or link[1]}]({link[1]})", line)
    return _DOKU_MARKS.sub(r"\2", _DOKU_MARKS.sub(r"\2", line))


def _textile_lines(text: str) -> Iterator[str]:
    numbers = ItemNumbers()
    table: list[tuple[list[str], bool]] = []
    high: dict[int, tuple[int, str]] = {}
    is_code = False
    for line in [*text.split("\n"), ""]:
        if is_code:
            is_code = bool(line.strip())
            yield line if is_code else _FENCE
            continue
        if line.startswith("|") and line.rstrip().endswith("|"):
            table.append(_textile_row(line.strip()[1:-1].split("|"), high))
            continue
        yield from _table(table)
        table, high = [], {}
        block = _BLOCK.match(line)
        if heading := _HEADING.match(line):
            yield f"{'#' * int(heading[1])} {_textile_words(heading[2])}"
        elif item := _ITEM.match(line):
            mark = numbers.mark(len(item[1]), is_numbered=item[1].endswith("#"))
            yield mark + _textile_words(item[2])
        elif block and block[1] in ("bc", "pre"):
            is_code = True
            yield f"{_FENCE}\n{block[2]}"
        elif not re.match(rf"table{_ATTRIBUTES}\.", line):
            numbers.end()
            yield _textile_words(block[2] if block else line)


def _textile_row(cells: list[str], high: dict[int, tuple[int, str]]) -> tuple[list[str], bool]:
    """Return a row, and whether it has heads alone; ``high`` are cells of the rows below, too."""
    row: list[str] = []
    is_head = True
    for cell in [*cells, None]:
        while len(row) in high:
            left, said = high.pop(len(row))
            if left > 1:
                high[len(row)] = (left - 1, said)
            row.append(said)
        if cell is None:
            break
        mark = _CELL.match(cell)
        is_head &= mark is not None and bool(mark[1])
        wide, tall = (int(number or 1) for number in (mark[2], mark[3])) if mark else (1, 1)
        said = _textile_words(cell[mark.end() if mark else 0 :]).strip()
        for text in [said, *[""] * (wide - 1)]:
            row.append(text)
            if tall > 1:
                high[len(row) - 1] = (tall - 1, text)
    return row, is_head


def _textile_words(line: str) -> str:
    line = _IMAGE.sub(lambda image: image[1] or "", line)
    line = _LINK.sub(r"[\1](\2)", line)
    return _CODE.sub(r"`\1`", _MARKS.sub(r"\2", line))


def _table(rows: list[tuple[list[str], bool]]) -> Iterator[str]:
    """Yield a table in Markdown; rows at its top that hold heads alone name the columns."""
    if rows:
        n_heads = next((n for n, (_, is_head) in enumerate(rows) if not is_head), 0)
        yield from ["", *markdown_lines([row for row, _ in rows], n_heads), ""]


DOKUWIKI = FileFormat(read_dokuwiki, versions.of("wikis", "Markdown"), SMALL)
TEXTILE = FileFormat(read_textile, versions.of("wikis", "Markdown"), SMALL)
