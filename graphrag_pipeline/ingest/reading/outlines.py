"""AsciiDoc and Org, said again in Markdown line by line. Nothing is included or executed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import dropwhile
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
    clean_metadata,
)
from graphrag_pipeline.ingest.reading.table_head import markdown_lines
from graphrag_pipeline.ingest.reading.wikitext import ItemNumbers

_ADOC_HEADING = pattern_of(r"(={1,6})[ \t]+(\S.*)$")
# Lines below the title: who wrote it, and which revision it is.
_ADOC_AUTHOR = pattern_of(r"[^\W\d_][\w.'’-]*(?: [\w.'’-]+){1,3}$")
_ADOC_EMAIL = pattern_of(r" <[^<>]*>")
_ADOC_REVISION = pattern_of(r"v?\d[\w.]*(?:, (\d{4}-\d\d-\d\d))?(?:: .*)?$|(\d{4}-\d\d-\d\d)$")
_ADOC_FENCE = pattern_of(r"(-{4,}|\.{4,}|`{3,})[ \t]*$")
_ADOC_BORDER = pattern_of(r"(?:={4,}|\*{4,}|_{4,}|--|\+{4,}|\+)[ \t]*$")
_ADOC_UNSEEN = pattern_of(
    r"(?:\[[^\[\]]*\]|\[\[[^\[\]]*\]\]|:!?[\w-]+!?:(?:[ \t].*)?|//(?!/).*"
    r"|(?:include|image|video|audio|toc|ifdef|ifndef|endif|ifeval)::.*)[ \t]*$"
)
_ADOC_ITEM = pattern_of(r"[ \t]*(\*{1,5}|\.{1,5}|-)[ \t]+(\S.*)$")
_ADOC_START = pattern_of(r"\bstart=[\"']?(\d{1,4})\b")
_ADOC_COLUMNS = pattern_of(r"""cols=(?:"([^"]+)"|'([^']+)'|([^,\]]+))""")
_ADOC_HEADER = pattern_of(r"%header|options?=[\"']?[^\]]*\bheader|%autowidth\.header")
_ADOC_CELL = pattern_of(r"(?:^|(?<=\s))(?:(\d+)(?:\.\d+)?[+*]|\.\d+\+)?[<^>.]*[a-z]?\|")
_ADOC_TITLE = pattern_of(r"\.(?![.\s])(.+)$")
_ADOC_TERM = pattern_of(r"[ \t]*([^\s:][^:\n]{0,100})::[ \t]+(\S.*)$")
_ADOC_LINK = pattern_of(
    r"(?:link:|xref:|mailto:)?(?:https?://)?[^\s\[\]<>]{1,500}\[([^\[\]\n]{1,500})\]"
)
_ADOC_LINK_START = pattern_of(r"(?:link:|xref:|mailto:|https?://)")
_ADOC_REFERENCE = pattern_of(r"<<[^<>,\n]{1,200}(?:,[ \t]*([^<>\n]{1,300}))?>>")
_ORG_HEADING = pattern_of(r"(\*{1,12})[ \t]+(\S.*)$")
_ORG_STATE = pattern_of(r"(?:TODO|DONE|NEXT|WAITING|CANCELLED)[ \t]+|\[#[A-C]\][ \t]*")
_ORG_TAGS = pattern_of(r"[ \t]+:[\w@#%:]+:[ \t]*$")
_ORG_KEYWORD = pattern_of(r"[ \t]*#\+(\w+?)(?:_(SRC|EXAMPLE|EXPORT))?(?::|\s|$)[ \t]*(.*)$", re.I)
_ORG_PROPERTY = pattern_of(r"[ \t]*:(?!(?:CUSTOM_)?ID:|END:)([A-Za-z][\w-]*):[ \t]+(\S.*)")
_ORG_DRAWER = pattern_of(r"[ \t]*:[\w-]+:[ \t]*$")
_ORG_LINK = pattern_of(r"\[\[[^\[\]\n]{1,500}\]\[([^\[\]\n]{1,500})\]\]|\[\[([^\[\]\n]{1,500})\]\]")
_ORG_RULE = pattern_of(r"[ \t]*\|[-+]+\|?[ \t]*$")


def read_asciidoc(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read one file; titles become headings, listings code, tables Markdown's.

    Attributes, comments, images and what would be included are left out.
    """
    lines = clean_text(decode(data, options.encoding)).split("\n")
    read = read_as_markdown(path, "\n".join(_of_asciidoc(lines)), options)
    (document,) = read.documents
    metadata = {**document.metadata, **_written_by(lines)}
    return ReadResult([replace(document, metadata=clean_metadata(metadata))], read.quarantined)


def read_org(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read one file; headlines become headings, source blocks code, links their text.

    Comments, keywords but the title, states of tasks and tags are left out, of drawers what is no
    property.
    """
    lines = clean_text(decode(data, options.encoding)).split("\n")
    return read_as_markdown(path, "\n".join(_of_org(lines)), options)


def _written_by(lines: list[str]) -> dict[str, str]:
    """Return what the lines below the title say: the authors, and the day of the revision."""
    title = next((n for n, line in enumerate(lines) if line.startswith("= ")), len(lines))
    written, revised = [*lines[title + 1 : title + 3], "", ""][:2]
    names = _ADOC_EMAIL.sub("", written).split("; ")
    if not all(map(_ADOC_AUTHOR.match, names)):
        return {}
    revision = _ADOC_REVISION.match(revised)
    day = (revision[1] or revision[2] or "") if revision else ""
    return {"author": ", ".join(names), "date": day}


def _of_asciidoc(lines: list[str]) -> Iterator[str]:
    fence = attributes = ""
    in_comment = is_apart = False
    numbers = ItemNumbers()
    table: list[str] | None = None
    for line in lines:
        if table is not None and not line.startswith("|==="):
            table.append(line)
        elif line.startswith("////") and not fence:
            in_comment = not in_comment
        elif in_comment:
            continue
        elif (match := _ADOC_FENCE.match(line)) and (not fence or fence == match[1]):
            fence = "" if fence else match[1]
            yield "```"
        elif fence:
            yield line
        elif line.startswith("|==="):
            yield from ["", *_asciidoc_table(table, attributes), ""] if table else ()
            table = [] if table is None else None
        elif item := _ADOC_ITEM.match(line):
            if attributes and len(item[1]) == 1:
                numbers.end()
            start = _ADOC_START.search(attributes)
            is_numbered = item[1].startswith(".")
            first = int(start[1]) if start else 1
            mark = numbers.mark(len(item[1]), is_numbered=is_numbered, first=first)
            yield _asciidoc_links(f"{mark}{item[2]}")
        elif not _ADOC_UNSEEN.match(line) and not _ADOC_BORDER.match(line):
            if line and is_apart:
                numbers.end()
            yield _asciidoc_line(line)
        is_apart = not line
        if table is None:
            attributes = line if line.startswith("[") else ""
    yield from map(_asciidoc_line, table or ())


def _asciidoc_table(lines: list[str], attributes: str) -> Iterator[str]:
    """Yield a table in Markdown. Its head is asked for, or the first line before a blank one."""
    cells: list[str] = []
    n_first = 0
    for line in lines:
        starts = [*_ADOC_CELL.finditer(line)]
        before = line[: starts[0].start()] if starts else line
        if cells and before.strip():
            cells[-1] = f"{cells[-1]} {_asciidoc_links(before.strip())}"
        ends = [*(start.start() for start in starts[1:]), len(line)]
        for start, end in zip(starts, ends, strict=False):
            text = _asciidoc_links(line[start.end() : end].strip())
            cells += [text, *[""] * (int(start[1] or 1) - 1)]
        n_first = n_first or len(cells)
    columns = _ADOC_COLUMNS.search(attributes)
    width = _n_columns(next(filter(None, columns.groups()), "")) if columns else n_first
    rows = [cells[place : place + width] for place in range(0, len(cells), max(width, 1))]
    is_line = len(lines) > 1 and bool(lines[0].strip()) and not lines[1].strip()
    is_headed = _ADOC_HEADER.search(attributes) or (is_line and n_first == width)
    yield from markdown_lines(rows, int(bool(is_headed) and len(rows) > 1))


def _n_columns(written: str) -> int:
    """Return how many columns "1,2", "3*" or "2*,1" are."""
    counts = (re.match(r"\s*(\d{1,3})\*", part) for part in re.split("[,;]", written))
    return sum(int(count[1]) if count else 1 for count in counts)


def _asciidoc_line(line: str) -> str:
    if match := _ADOC_HEADING.match(line):
        return f"{'#' * len(match[1])} {match[2]}"
    if match := _ADOC_TITLE.match(line):
        line = match[1]
    elif match := _ADOC_TERM.match(line):
        line = f"{match[1]}: {match[2]}"
    return _asciidoc_links(line)


def _asciidoc_links(line: str) -> str:
    if _ADOC_LINK_START.search(line):
        line = _ADOC_LINK.sub(lambda m: m[1] if _ADOC_LINK_START.match(m[0]) else m[0], line)
    return _ADOC_REFERENCE.sub(lambda match: match[1] or "", line)


def _of_org(lines: list[str]) -> Iterator[str]:
    in_code = in_drawer = False
    table: list[str] = []
    for line in [*lines, ""]:
        if not in_code and line.lstrip().startswith("|"):
            table.append(line)
            continue
        yield from _org_table(table)
        table = []
        keyword = _ORG_KEYWORD.match(line)
        name = keyword[1].upper() if keyword else ""
        if keyword and keyword[2] and name in ("BEGIN", "END"):
            in_code = name == "BEGIN"
            yield "```"
        elif in_code:
            yield line
        elif in_drawer:
            in_drawer = line.strip().upper() != ":END:"
            if field := _ORG_PROPERTY.fullmatch(line):
                yield f"{field[1].replace('_', ' ').capitalize()}: {_org_links(field[2])}"
        elif keyword:
            if name in ("TITLE", "CAPTION"):
                yield f"# {keyword[3]}\n" if name == "TITLE" else keyword[3]
        elif _ORG_DRAWER.match(line):
            in_drawer = True
        elif not line.startswith("# ") and not line.lstrip().startswith("CLOCK:"):
            yield _org_line(line)


def _org_table(lines: list[str]) -> Iterator[str]:
    """Yield a table in Markdown: what is above its first rule names the columns."""
    lines = list(dropwhile(_ORG_RULE.match, lines))
    rule = next((number for number, line in enumerate(lines) if _ORG_RULE.match(line)), 0)
    rows = [
        [cell.strip() for cell in _org_links(line).strip().strip("|").split("|")]
        for line in lines
        if not _ORG_RULE.match(line)
    ]
    yield from markdown_lines(rows, rule if 0 < rule < len(rows) else 0)


def _org_links(line: str) -> str:
    return _ORG_LINK.sub(lambda match: match[1] or match[2], line)


def _org_line(line: str) -> str:
    line = _org_links(line)
    if match := _ORG_HEADING.match(line):
        title = _ORG_TAGS.sub("", _ORG_STATE.sub("", match[2], count=2))
        return f"{'#' * min(len(match[1]), 6)} {title}"
    return line


ASCIIDOC = FileFormat(read_asciidoc, versions.of("outlines", "Markdown"), SMALL)
ORG = FileFormat(read_org, versions.of("outlines", "Markdown"), SMALL)
