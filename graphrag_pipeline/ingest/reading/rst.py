"""reStructuredText, said again in Markdown line by line, for the reader of Markdown.

docutils reads 0.2 MB a second into a tree a hundred times the text's size, and gives up the body of
every directive that it does not know, as those of Sphinx are. Nothing is included or executed.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.word_lists import word_set
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.cleaning import clean_text
from graphrag_pipeline.ingest.reading.decoding import decode
from graphrag_pipeline.ingest.reading.markdown import read_as_markdown
from graphrag_pipeline.ingest.reading.model import (
    SMALL,
    FileFormat,
    ReadingOptions,
    ReadResult,
)
from graphrag_pipeline.ingest.reading.text_tables import Row, extend, grid_rows, table_lines

_ADORNED = pattern_of(r"([!-/:-@\[-`{-~])\1+$")
_DIRECTIVE = pattern_of(r"( *)\.\. (?:\|[^|]+\| )?([\w:+.-]*\w)::(?: +(.*))?$")
_EXPLICIT = pattern_of(r"( *)(?:\.\.(?: +(.*))?|__ .*)$")
_NOTE = pattern_of(r"\[([^\]]+)\] +(.*)")
_NOTE_MARK = pattern_of(r" ?\[(?:#[\w-]{0,60}|\d{1,4}|\*)\]_")
_OPTION = pattern_of(r" *:[\w-]+:(?: .*)?$")
_FIELD = pattern_of(r"^:([^:`\n]{1,80}):[ \t]+(?=\S)")
_GRID_BORDER = pattern_of(r" *\+(?:[-=]+\+)+$")
_SIMPLE_BORDER = pattern_of(r" *=+(?: +=+)+$")
_COLUMN = pattern_of(r"=+")
_ITEM = pattern_of(r" *(#|\d{1,4})[.)] ")
_CELL = pattern_of(r" *(?P<row>\* +)?(?P<mark>-)(?: +(?P<said>.*))?$")
_ROLE = pattern_of(r":(?P<name>[\w:+.-]{1,60}):`(?P<said>[^`]{1,1000})`")
_LINK = pattern_of(
    r"`(?P<words>[^`<]{1,1000}?)\s{0,20}<(?P<address>[^<>`]{1,1000})>`__?"
    r"|`(?P<only>[^`]{1,1000})`__?(?!\w)"
)
_DOCUMENT = pattern_of(
    r"(?!//|[\w+.-]{1,20}:)[^()\[\]<>#?\n]{1,500}\.(?:rst|md|html?|txt|pdf)(?:#[^()\s]{0,200})?",
    re.I,
)
_BETWEEN = pattern_of(r"[-_]+")
_OF_SPHINX = word_set("genindex modindex search")
"""Labels of pages that Sphinx makes itself."""
_LABEL = pattern_of(r"^ *\.\. _([\w.+ -]{1,100}): *$", re.M)
_LITERAL = pattern_of(r"``(.{1,1000}?)``")
_SUBSTITUTION = pattern_of(r"\|([^|\s](?:[^|\n]{0,100}[^|\s])?)\|_{0,2}")
_REPLACED = pattern_of(r"^ *\.\. +\|(?P<name>[^|\n]{1,100})\| +replace:: +(?P<said>\S.*)$", re.M)
_CODE = word_set(
    "code code-block sourcecode parsed-literal doctest testcode testoutput testsetup "
    "testcleanup prompt ipython productionlist graphviz math digraph plot mermaid code-cell"
)
_DROPPED = word_set(
    "toctree contents index include literalinclude image raw meta highlight highlightlang "
    "module py:module currentmodule py:currentmodule sectionauthor moduleauthor codeauthor "
    "default-role role target-notes sectnum section-numbering header footer unicode date "
    "autosummary tabularcolumns default-domain program"
)
_OBJECTS = word_set(
    "function method class attribute data exception decorator classmethod staticmethod property "
    "describe object opcode cmdoption option envvar pdbcommand autofunction autoclass "
    "automodule automethod type var macro struct member enum enumerator confval"
)
_LABELS = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version",
    "deprecated-removed": "Deprecated since version",
    "seealso": "See also:",
}
_OF_SERIES = word_set("pep rfc")
_ADMONITIONS = word_set("attention caution danger error hint important note tip warning")


def read_rst(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read one file; titles, literal blocks and tables become Markdown's, roles their text.

    Links to other documents (``:doc:``, ``:ref:`` and relative ones) are links, too; what these
    refer to is metadata, "labels". Comments, targets, tables of contents and images are left out;
    the text of notes and of every directive that is not known stays.
    """
    text = clean_text(decode(data, options.encoding))
    if words := {match["name"]: match["said"] for match in _REPLACED.finditer(text)}:
        text = _SUBSTITUTION.sub(lambda match: words.get(match[1], match.group()), text)
    read = read_as_markdown(path, "\n".join(_Converter(text).lines()), options)
    if labels := ", ".join(dict.fromkeys(_LABEL.findall(text))):
        with_labels = ({**each.metadata, "labels": labels} for each in read.documents)
        named = zip(read.documents, with_labels, strict=True)
        return replace(read, documents=[replace(each, metadata=own) for each, own in named])
    return read


class _Converter:
    """Walks over the lines; each method takes what begins at `at` and moves it behind that."""

    def __init__(self, text: str) -> None:
        self.source = text.expandtabs(8).split("\n")
        self.at = 0
        self.levels: dict[tuple[str, bool], int] = {}
        self.counts: dict[int, int] = {}
        """The last numbers of the open lists, by how far to the right their items begin."""

    def lines(self) -> Iterator[str]:
        while self.at < len(self.source):
            line = self._counted(self.source[self.at].rstrip())
            if not line:
                self.at += 1
                yield ""
            elif (title := self._title(line)) is not None:
                yield from ("", title, "")
            elif match := _DIRECTIVE.match(line):
                yield from self._directive(match)
            elif match := _EXPLICIT.match(line):
                yield from self._explicit(match)
            elif _GRID_BORDER.match(line):
                rows, self.at = grid_rows(self.source, self.at)
                yield from _table(rows)
            elif _SIMPLE_BORDER.match(line):
                yield from self._simple_table(line)
            elif line.lstrip().startswith(">>> "):
                yield from self._doctest()
            else:
                self.at += 1
                yield from self._prose(line)

    def _counted(self, line: str) -> str:
        """Return a line with its number where it is an item that is counted by itself: "#."."""
        item, indent = _ITEM.match(line), _depth(line)
        n_before = self.counts.get(indent, 0)
        if line:
            self.counts = {at: n for at, n in self.counts.items() if at < indent}
        if not item:
            return line
        number = n_before + 1 if item[1] == "#" else int(item[1])
        self.counts[indent] = number
        return f"{line[:indent]}{number}{line[item.end(1) :]}"

    def _line(self, offset: int) -> str:
        place = self.at + offset
        return self.source[place].rstrip() if place < len(self.source) else ""

    def _title(self, line: str) -> str | None:
        """Return the heading that begins here, if one does; its level is by first appearance."""
        below, second = self._line(1), self._line(2)
        if (match := _ADORNED.match(line)) and below.strip() and second == line:
            self.at += 3
            return self._heading(below.strip(), match[1], overlined=True)
        above = self._line(-1) if self.at else ""
        match = _ADORNED.match(below)
        if match and not above.strip() and line[0] != " " and not _ADORNED.match(line):
            if len(below) >= min(len(line), 4) and not line.startswith(".. "):
                self.at += 2
                return self._heading(line, match[1], overlined=False)
        elif match is None and _ADORNED.match(line) and len(line) >= 4 and not below.strip():
            self.at += 1
            return ""
        return None

    def _heading(self, title: str, mark: str, *, overlined: bool) -> str:
        level = self.levels.setdefault((mark, overlined), len(self.levels) + 1)
        return f"{'#' * min(level, 6)} {_inline(title)}"

    def _directive(self, match: re.Match[str]) -> Iterator[str]:
        indent, name, argument = len(match[1]), match[2].lower(), (match[3] or "").strip()
        self.at += 1
        if name in _DROPPED:
            self._indented(indent)
        elif name in _CODE:
            self._options(indent)
            yield from _fenced(self._indented(indent), argument if name != "math" else "math")
        else:
            options = self._options(indent)
            yield from _introduction(name, argument)
            if name == "csv-table":
                yield from self._csv_table(indent, options.get("header", ""))
            if name == "list-table":
                yield from self._list_table(indent)

    def _options(self, indent: int) -> dict[str, str]:
        options: dict[str, str] = {}
        while (line := self._line(0)) and _depth(line) > indent and _OPTION.match(line):
            name, _, value = line.strip()[1:].partition(":")
            options[name] = value.strip()
            self.at += 1
        return options

    def _csv_table(self, indent: int, header: str) -> Iterator[str]:
        lines = [line.strip() for line in (header, *self._indented(indent)) if line.strip()]
        cells = csv.reader(lines, skipinitialspace=True)
        yield from _table([[[cell.strip()] for cell in row] for row in cells])

    def _explicit(self, match: re.Match[str]) -> Iterator[str]:
        self.at += 1
        if note := _NOTE.match(match[2] or ""):
            is_mark = _NOTE_MARK.fullmatch(f"[{note[1]}]_")
            yield _inline(note[2] if is_mark else f"[{note[1]}] {note[2]}")
        else:
            self._indented(len(match[1]))

    def _indented(self, indent: int) -> list[str]:
        """Take the lines that are indented deeper, blank ones between them too."""
        start = end = self.at
        while self.at < len(self.source):
            line = self._line(0)
            if line and _depth(line) <= indent:
                break
            self.at += 1
            end = self.at if line else end
        self.at = end
        return self.source[start:end]

    def _prose(self, line: str) -> Iterator[str]:
        indent = _depth(line)
        if not line.endswith("::"):
            said = _FIELD.sub(r"\1: ", line.strip())
            yield _inline(f"{' ' * min(indent, 2)}{said}")
            return
        said = line.strip()[:-2].rstrip()
        if said:
            yield _inline(f"{said}:")
        if not self._line(0).strip() or _depth(self._line(0)) > indent:
            yield from _fenced(self._indented(indent), "")

    def _doctest(self) -> Iterator[str]:
        start = self.at
        while self._line(0).strip():
            self.at += 1
        yield from _fenced(self.source[start : self.at], "pycon")

    def _list_table(self, indent: int) -> Iterator[str]:
        """Take a table that is written as a list of rows, each a list of its cells."""
        rows: list[Row] = []
        lines = self._indented(indent)
        marks = [match for line in lines if (match := _CELL.match(line))]
        depth = min((match.start("mark") for match in marks), default=0)
        for line in lines:
            match = _CELL.match(line)
            is_cell = match is not None and match.start("mark") == depth
            if match and match["row"]:
                rows.append([])
            if match and is_cell and rows:
                rows[-1].append([(match["said"] or "").strip()])
            elif line.strip() and rows and rows[-1]:
                rows[-1][-1].append(line.strip())
        yield from _table([[list(filter(None, parts)) for parts in row] for row in rows if row])

    def _simple_table(self, border: str) -> Iterator[str]:
        spans = [match.span() for match in _COLUMN.finditer(border)]
        spans[-1] = (spans[-1][0], 10_000)
        rows: list[Row] = []
        borders = 0
        while self.at < len(self.source):
            line = self._line(0)
            if _SIMPLE_BORDER.match(line):
                borders += 1
                is_last = borders == 3 or (borders == 2 and not self._line(1).strip())
                self.at += 1
                if is_last:
                    break
                continue
            if _depth(line) < spans[0][0] and line:
                break
            cells = [line[start:end].strip() for start, end in spans]
            if line and not cells[0] and rows:
                extend(rows[-1], cells)
            elif line and not set(line) <= {"-", " "}:
                rows.append([[cell] for cell in cells])
            self.at += 1
        yield from _table(rows)


def _introduction(name: str, argument: str) -> Iterator[str]:
    """Yield what a directive says before its body, which stands as the lines that follow."""
    kind = name.rpartition(":")[2]
    if kind in _OBJECTS:
        yield from ("", f"`{argument}`" if argument else "", "")
    elif name in _ADMONITIONS:
        yield f"{name.capitalize()}: {_inline(argument)}".rstrip()
    elif name in _LABELS:
        yield f"{_LABELS[name]} {_inline(argument)}".rstrip()
    elif argument:
        yield _inline(argument)


def _fenced(lines: list[str], language: str) -> Iterator[str]:
    depth = min((_depth(line) for line in lines if line.strip()), default=0)
    code = [line[depth:].rstrip() for line in lines]
    while code and not code[0]:
        code.pop(0)
    if not code:
        return
    fence = "````" if any("```" in line for line in code) else "```"
    yield from ("", f"{fence}{language if language.isalnum() else ''}", *code, fence, "")


def _table(rows: list[Row]) -> Iterator[str]:
    yield ""
    yield from table_lines([[_inline(" ".join(parts)) for parts in row] for row in rows])
    yield ""


def _inline(text: str) -> str:
    """Return text with its roles and links as the words that a reader sees."""
    if "`" in text:
        text = _ROLE.sub(_role_text, text)
        text = _LITERAL.sub(r"`\1`", text)
        text = _LINK.sub(_link_text, text)
    if "]_" in text:
        text = _NOTE_MARK.sub("", text)
    return _SUBSTITUTION.sub(r"\1", text) if "|" in text else text


def _role_text(match: re.Match[str]) -> str:
    words, target = match["said"], ""
    if words.endswith(">") and "<" in words:
        place = words.rindex("<")
        words, target = words[:place].strip(), words[place + 1 : -1]
    if match["name"] in ("doc", "ref") and words not in _OF_SPHINX:
        target = target or words
        words = words if words != target else _BETWEEN.sub(" ", target.rpartition("/")[2])
        return _linked(words or target, f"{target.removesuffix('.rst')}.rst")
    if target:
        return words or target
    if match["name"] in _OF_SERIES:
        return f"{match['name'].upper()} {words.partition('#')[0]}"
    if words.startswith("~"):
        return words.rpartition(".")[2].lstrip("~")
    return words.lstrip("!")


def _link_text(match: re.Match[str]) -> str:
    return _linked(match["words"], match["address"]) if match["words"] else match["only"] or ""


def _linked(words: str, address: str) -> str:
    """Return the words of a link, as one of Markdown where it leads to another document."""
    if "[" in words or "]" in words or not _DOCUMENT.fullmatch(address):
        return words
    return f"[{words}]({address.replace(' ', '%20')})"


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


RST = FileFormat(read_rst, versions.of("Markdown", "reStructuredText"), SMALL)
