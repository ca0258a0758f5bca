"""Pages of wikis (MediaWiki, also its dumps, and TiddlyWiki), said again in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.cleaning import clean_text, one_line
from graphrag_pipeline.ingest.reading.decoding import decode
from graphrag_pipeline.ingest.reading.markdown import read_as_markdown
from graphrag_pipeline.ingest.reading.model import (
    SMALL,
    FileFormat,
    ReadDocument,
    ReadingOptions,
    ReadResult,
    Unreadable,
    clean_metadata,
    readable_name,
)
from graphrag_pipeline.ingest.reading.records import unique_keys
from graphrag_pipeline.ingest.reading.table_head import markdown_lines
from graphrag_pipeline.ingest.reading.xml_tree import XmlElement, elements_in, text_of

_UNSEEN = pattern_of(r"<ref\b[^<>]*/>|__[A-Z]{3,20}__", re.I)
_UNSEEN_UNTIL = {
    end: pattern_of(begin, re.I)
    for begin, end in (
        ("<!--", "-->"),
        (r"<ref\b[^<>]*>", "</ref>"),
        (r"<gallery\b", "</gallery>"),
        (r"<math\b", "</math>"),
    )
}
_TAG = pattern_of(r"</?(?:nowiki|small|big|sub|sup|span|div|center|u|s|b|i|p|noinclude)\b[^<>]*>")
_BREAK = pattern_of(r"<br\b[^<>]{0,20}>", re.I)
_BRACES = pattern_of(r"\{\{|\}\}")
_NAMED = pattern_of(r"\s*([\w .-]{1,60}?)\s*=\s*(.*)", re.S)
_FILE = pattern_of(r"\[\[(?:File|Image|Datei|Bild|Fichier|Archivo|Plik|Файл):[^\[\]\n]*\]\]", re.I)
_CATEGORY = pattern_of(r"\[\[(\w+):([^\[\]|\n]+)(?:\|[^\[\]\n]*)?\]\]")
_CATEGORIES = word_lists("documents.txt")["category"]
_ADDRESS = pattern_of(r"\[https?://[^\s\[\]]+ ([^\[\]\n]+)\]")
_QUOTES = pattern_of(r"'{2,5}")
_HEADING = pattern_of(r"(={1,6})(.{1,300}?)\1[ \t]{0,9}$")
_ITEM = pattern_of(r"([*#]+)[ \t]*(.*)$")
_CELLS = pattern_of(r"\|\||!!")
_ATTRIBUTES = pattern_of(
    r'^\s?(?:[\w-]{1,30}\s?=\s?(?:"[^"]{0,200}"|[\w%]{1,30})\s{0,5}){1,9}\|(?!\|)'
)
_REDIRECT = pattern_of(r"#\w+[ \t]*:?[ \t]*(?=\[\[)")
_TID_LINK = pattern_of(r"\[\[([^\[\]|\n]+)\|([^\[\]|\n]+)\]\]")
_TID_MARKS = pattern_of(r"(?<!:)//(?=\S)([^/\n]+)//|__([^_\n]+)__|''([^'\n]+)''")
_TID_FIELD = pattern_of(r"([\w.-]+):[ \t]*(.*)")
_TID_TIME = pattern_of(r"^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)\d{0,5}$")
_TID_UNSAID = ("title", "type", "text", "revision", "bag")
_MOST_SHOWN, _UNNAMED_SHOWN = 200, 2
_MOST_DEPTH = 20


def read_wiki(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read one page; what an infobox says are fields, references and templates of signs go."""
    text = markdown_of(decode(data, options.encoding))
    return read_as_markdown(path, f"# {readable_name(path)}\n\n{text}", options)


def read_tiddler(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read one note of TiddlyWiki, whose fields stand above its text."""
    head, _, text = clean_text(decode(data, options.encoding)).partition("\n\n")
    lines = (_TID_FIELD.fullmatch(line) for line in head.split("\n"))
    fields: dict[str, str] = {line[1]: line[2] for line in lines if line}
    if "title" not in fields:
        raise Unreadable("the file is not a note of TiddlyWiki: it has no field title")
    text = _TID_LINK.sub(r"[[\2|\1]]", text)
    text = _TID_MARKS.sub(lambda match: next(filter(None, match.groups())), text)
    text = re.sub(r"^(!{1,6})[ \t]*", lambda m: "#" * len(m[1]) + " ", text, flags=re.M)
    said = "\n".join(
        f"{name}: " + _TID_TIME.sub(r"\1-\2-\3 \4:\5", value)
        for name, value in fields.items()
        if value and name not in _TID_UNSAID
    )
    return read_as_markdown(path, f"# {fields['title']}\n\n{said}\n\n{text}", options)


def read_dump(root: XmlElement, options: ReadingOptions) -> ReadResult:
    """Read the pages of a dump of MediaWiki, each by its latest revision, without redirects."""
    documents: list[ReadDocument] = []
    for page in elements_in(root, ("page",)):
        said = {name: [*elements_in(page, (name,))] for name in ("title", "text", "timestamp")}
        title = one_line(text_of(said["title"][0])) if said["title"] else ""
        text = text_of(said["text"][-1]) if said["text"] else ""
        if not text.strip() or _REDIRECT.match(text):
            continue
        page_text = f"# {title}\n\n{markdown_of(text)}"
        (read,) = read_as_markdown(Path(f"{title or 'page'}.wiki"), page_text, options).documents
        date = "".join(map(text_of, said["timestamp"][-1:]))
        metadata = clean_metadata({**read.metadata, "date": date})
        documents.append(replace(read, key=title or "page", metadata=metadata))
    keys = unique_keys(document.key for document in documents)
    return ReadResult([replace(d, key=k) for d, k in zip(documents, keys, strict=True)], [])


def markdown_of(text: str) -> str:
    """Return the text of a page of MediaWiki in Markdown."""
    text = _UNSEEN.sub("", clean_text(text))
    for end, begin in _UNSEEN_UNTIL.items():
        text = _without(text, begin, end)
    text = _FILE.sub("", _without_templates(text))
    text = _ADDRESS.sub(r"\1", _TAG.sub("", _BREAK.sub(" ", _QUOTES.sub("", text))))
    text = _CATEGORY.sub(_category, _REDIRECT.sub("See ", text))
    return "\n".join(_lines(text.split("\n")))


def _without(text: str, begin: re.Pattern[str], end: str) -> str:
    parts: list[str] = []
    place = 0
    while (match := begin.search(text, place)) and (stop := text.find(end, match.end())) >= 0:
        parts.append(text[place : match.start()])
        place = stop + len(end)
    return "".join([*parts, text[place:]])


def _category(match: re.Match[str]) -> str:
    is_category = match[1].casefold() in _CATEGORIES
    return f"\n{match[1]}: {match[2].strip()}" if is_category else match.group()


def _without_templates(text: str) -> str:
    """Return a text with what templates say, the innermost first."""
    open_: list[list[str]] = [[]]
    place = 0
    for mark in _BRACES.finditer(text):
        open_[-1].append(text[place : mark.start()])
        place = mark.end()
        if mark.group() == "{{" and len(open_) < _MOST_DEPTH:
            open_.append([])
        elif mark.group() == "}}" and len(open_) > 1:
            inner = "".join(open_.pop())
            open_[-1].append(_template("".join(open_[-1][-1:])[-1:], inner))
    open_[-1].append(text[place:])
    return "".join("".join(part) for part in open_)


def _template(before: str, inner: str) -> str:
    """Return a template's fields, a line each; of one within a line, what it shows: 12 km."""
    name, *parts = _parts(inner)
    fields = [match for match in map(_NAMED.fullmatch, parts) if match]
    if fields and "\n" in inner:
        said = ((match[1].strip(), one_line(match[2])) for match in fields)
        return "\n".join(f"{name}: {value}" for name, value in said if value) + "\n"
    unnamed = [part.strip() for part in parts if not _NAMED.fullmatch(part)]
    is_citation = name.strip().casefold().startswith(("cite", "citation", "sfn", "efn"))
    shown = "" if is_citation or before in ("", "\n") else " ".join(unnamed[:_UNNAMED_SHOWN])
    return shown if len(shown) <= _MOST_SHOWN else ""


def _parts(inner: str) -> list[str]:
    """Return what bars divide, but for those of links."""
    held = re.sub(r"\[\[[^\[\]\n]*\]\]", lambda link: link.group().replace("|", "\0"), inner)
    return [part.replace("\0", "|") for part in held.split("|")]


class ItemNumbers:
    """Counts the items of lists, which are numbered by signs alone."""

    def __init__(self) -> None:
        self._counts: list[int] = []

    def mark(self, depth: int, *, is_numbered: bool, first: int = 1) -> str:
        """Return what stands before an item of a list in so many lists, its own among them.

        Where it is the first one that is numbered, its number is ``first``.
        """
        del self._counts[depth:]
        self._counts += [0] * (depth - len(self._counts))
        if is_numbered:
            self._counts[-1] = self._counts[-1] + 1 if self._counts[-1] else first
        return f"{'  ' * (depth - 1)}{f'{self._counts[-1]}.' if is_numbered else '-'} "

    def end(self) -> None:
        """End all lists."""
        self._counts = []


def _lines(lines: Sequence[str]) -> Iterator[str]:
    table: list[str] | None = None
    numbers = ItemNumbers()
    for line in lines:
        bare = line.strip()
        if bare.startswith("{|"):
            table = []
        elif bare.startswith("|}") and table is not None:
            yield from ["", *_table(table), ""]
            table = None
        elif table is not None:
            table.append(bare)
        elif item := _ITEM.match(line):
            mark = numbers.mark(len(item[1]), is_numbered=item[1].endswith("#"))
            yield f"{mark}{item[2]}"
        else:
            numbers.end()
            yield _line(line)
    yield from map(_line, table or ())


def _line(line: str) -> str:
    if match := _HEADING.match(line):
        return f"\n{'#' * len(match[1])} {match[2].strip()}"
    if line.startswith(";"):
        return re.sub(r"^;\s*([^:\n]+?)\s*(?::\s*|$)", r"\1: ", line)
    return line.lstrip(":").lstrip() if line.startswith(":") else line


def _table(lines: Sequence[str]) -> Iterator[str]:
    """Yield a table in Markdown: rows of cells with an exclamation mark above others are heads."""
    rows: list[list[str]] = [[]]
    heads: list[bool] = [True]
    for line in lines:
        if line.startswith("|+"):
            yield f"{line[2:].strip()}\n"
        elif line.startswith("|-"):
            rows.append([])
            heads.append(True)
        elif line.startswith(("|", "!")):
            cells = [_ATTRIBUTES.sub("", cell).strip() for cell in _CELLS.split(line[1:])]
            rows[-1] += cells
            heads[-1] = heads[-1] and line.startswith("!")
        elif rows[-1]:
            rows[-1][-1] = f"{rows[-1][-1]} {line}".strip()
    told = [(row, is_head) for row, is_head in zip(rows, heads, strict=True) if row]
    n_heads = next((n for n, (_, is_head) in enumerate(told) if not is_head), 0)
    yield from markdown_lines([row for row, _ in told], n_heads)


WIKI = FileFormat(read_wiki, versions.of("wikis", "Markdown"), SMALL)
TIDDLER = FileFormat(read_tiddler, versions.of("wikis", "Markdown"), SMALL)
