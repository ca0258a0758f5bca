"""Manual pages (roff, with the macros man and mdoc): headings, paragraphs, options with their text.

Nothing is executed: what a page defines, asks for or includes is passed over.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.word_lists import word_pairs
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.blocks import BlockKind, joined_lines
from graphrag_pipeline.ingest.reading.cleaning import one_line
from graphrag_pipeline.ingest.reading.decoding import decode
from graphrag_pipeline.ingest.reading.files import PLAIN, of_other_kind
from graphrag_pipeline.ingest.reading.html_lines import n_names
from graphrag_pipeline.ingest.reading.model import (
    SMALL,
    FileFormat,
    ReadingOptions,
    ReadResult,
    Scalar,
    Unreadable,
    whole_document,
)
from graphrag_pipeline.ingest.reading.table_head import markdown_lines

_IS_PAGE = pattern_of(r"^[.'][ \t]*(?:TH|Dt|Dd|SH|Sh)\b", re.M)
_REQUEST = pattern_of(r"[.'][ \t]*([^\s\\]{1,20})[ \t]*(.*)$")
_ARGUMENT = pattern_of(r'"((?:[^"]|"")*)"?|((?:\\ |\S)+)')
_ESCAPE = pattern_of(
    r'\\(?:["#].*$|[fFmMgkn](?:\[[^\]]{0,40}\]|\(..|.)|s(?:\[[^\]]{0,9}\]|\'[^\']{0,9}\'|[+-]?\d{1,2})'
    r"|[hvwXbDlLoZHSNR]'[^']{0,200}'|z.|(\*?)(?:\((..)|\[([^\]]{0,40})\])|\*.|(.)|$)"
)
_SIGNS = word_pairs("signs.txt", "roff") | {" ": " "}
_MARKS = {"'": "\u0301", "`": "\u0300", ":": "\u0308", "^": "\u0302", "~": "\u0303", ",": "\u0327"}
_BREAKS = frozenset(
    ("PP", "P", "LP", "HP", "Pp", "sp", "br", "RS", "RE", "Bl", "El", "Lp", "SY", "YS")
)
_HEADINGS = frozenset(("SH", "SS", "Sh", "Ss"))
_CODE, _CODE_END = frozenset(("nf", "EX", "Vb")), frozenset(("fi", "EE", "Ve"))
_FONTS = frozenset(("B", "I", "SM", "SB", "R"))
_TWO_FONTS = frozenset(("BR", "RB", "IR", "RI", "BI", "IB"))
_WORDS = (
    *("Ar", "Cm", "Pa", "Ev", "Li", "Em", "Sy", "No", "Ic", "Va", "Vt", "Fa", "Ft", "Dv", "Er"),
    *("An", "Cd", "Tn", "Sx", "Xo", "Xc", "Fn", "Bx"),
)
_NAMED = {
    **{"Fl": ("-", ""), "Op": ("[", "]"), "Dq": ("“", "”"), "Qq": ('"', '"'), "Sq": ("‘", "’")},
    **{"Ql": ("‘", "’"), "Aq": ("<", ">"), "Pq": ("(", ")"), "Bq": ("[", "]"), "Brq": ("{", "}")},
    **{"Nd": ("— ", ""), "Oo": ("[", ""), "Oc": ("]", ""), "Lk": ("", ""), "Mt": ("", "")},
    **dict.fromkeys(_WORDS, ("", "")),
    **dict.fromkeys(("%A", "%T", "%B", "%J", "%D", "%R", "%U"), ("", ".")),
}
"""Macros of mdoc that say words, by what stands before and after these."""
_CLOSING = frozenset(".,:;)]?!|")


def read_manual(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read a page: an option stands in one line with its text, an example is code.

    A file that ends in a number and is none is read as text: logs and licences are numbered so.
    """
    try:
        text = decode(data, options.encoding)
    except Unreadable:  # a library, lib.so.1, is no broken page
        raise of_other_kind(path.suffix) from None
    if not _IS_PAGE.search(text[:100_000]):
        return PLAIN.read(path.with_name(f"{path.name}.txt"), data, options)
    page = _Page(path.stem)
    page.read(text.replace("\\\n", "").split("\n"))
    said, blocks = joined_lines(("\n\n", *part) for part in page.parts)
    return whole_document(path, said, page.title, page.about, blocks)


class _Page:
    """Parts of a page, each with what it is, as its lines are read one after the other."""

    def __init__(self, name: str) -> None:
        self.title, self.name = "", name
        self.about: dict[str, Scalar] = {}
        self.parts: list[tuple[str, BlockKind | None]] = []
        self.words: list[str] = []
        self.tag: list[str] = []
        self.waits = ""

    def read(self, lines: list[str]) -> None:
        place, depth, in_code, code = 0, 0, False, list[str]()
        while place < len(lines):
            line = lines[place]
            place += 1
            match = _REQUEST.match(line)
            if depth or (match and match[1] in ("if", "ie", "el", "while", "do")):
                depth = max(depth + line.count("\\{") - line.count("\\}"), 0)
            elif match and match[1] in ("de", "de1", "am", "ig"):
                place = _after(
                    lines, place, f".{match[2].split()[1]}" if match[2][:1] == "." else ".."
                )
            elif match and match[1] == "TS":
                end = _after(lines, place, ".TE")
                self.flush()
                self.add(_table(lines[place : end - 1]), "table")
                place = end
            elif match and (match[1] in _CODE or (match[1] == "Bd" and "-literal" in match[2])):
                self.flush()
                in_code, code = True, []
            elif in_code and match and (match[1] in _CODE_END or match[1] == "Ed"):
                self.add("\n".join(code), "code")
                in_code = False
            elif in_code:
                said = _plain(line) if not match else " ".join(self._said(match[1], match[2]))
                code.append(said.rstrip())
            elif match:
                self._request(match[1], _arguments(match[2]), match[2])
            elif line[:1] not in ".'":
                self.say([_plain(line)], ends=line[:1] in " \t" or not line.strip())
        self.add("\n".join(code) if in_code else "", "code")
        self.flush()

    def _request(self, name: str, arguments: list[str], written: str) -> None:
        if name in ("TH", "Dt"):
            self._titled(arguments)
        elif name == "Dd":
            self.about["date"] = one_line(_plain(written).strip("$").removeprefix("Mdocdate:"))
        elif name in _HEADINGS:
            self.flush()
            self.waits = "heading"
            self.say(arguments)
        elif name in ("TP", "TQ", "IP", "It"):
            if name != "TQ" or not self.tag:
                self.flush()
            if name == "It":
                self.tag += self._said("No", written)
            elif name == "IP":
                self.tag += arguments[:1]
            else:
                self.waits = "tag"
        elif name in _BREAKS:
            self.flush(keeps_tag=name in ("RS", "sp", "br", "PP", "Bl") and not self.words)
        elif words := self._said(name, written):
            self.say(words)

    def _titled(self, arguments: list[str]) -> None:
        name, section, date = [*arguments, "", "", ""][:3]
        own = self.name if self.name.casefold() == name.casefold() or not name else name
        self.name, self.title = own, f"{own}({section})" if section else own
        self.about |= {"section": section}
        if any(map(str.isdigit, date)):
            self.about["date"] = date

    def _said(self, name: str, written: str) -> list[str]:
        """Return the words that a macro says; none for one that is not known."""
        arguments = _arguments(written)
        if name in _FONTS:
            return [" ".join(arguments)] if arguments else []
        if name in _TWO_FONTS:
            return ["".join(arguments)] if arguments else []
        if name in ("Xr", "MR"):
            link, section, *rest = [*arguments, "", ""]
            return _joined([f"{link}({section})", *rest])
        if name in ("UR", "MT"):
            return [f"<{arguments[0]}>"] if arguments else []
        if name == "OP":
            return [f"[{' '.join(arguments)}]"]
        if name == "Nm":
            return _joined([self.name, *arguments] if _is_mark("".join(arguments)) else arguments)
        return _joined(_of_mdoc([name, *arguments], self.name)) if name in _NAMED else []

    def say(self, words: list[str], *, ends: bool = False) -> None:
        said = [word for word in words if word.strip()]
        if said and self.waits == "heading":
            self.waits = ""
            self.add(one_line(" ".join(said)), "heading")
        elif said and self.waits == "tag":
            self.waits = ""
            self.tag += said
        else:
            if ends:
                self.flush(keeps_tag=not self.words)
            self.words += said

    def flush(self, *, keeps_tag: bool = False) -> None:
        """End a paragraph: an item with its tag before it."""
        if keeps_tag and self.tag:
            return
        tag, text = one_line(" ".join(self.tag)), one_line(" ".join(self.words))
        is_mark = not any(map(str.isalnum, tag))
        self.tag, self.words, self.waits = [], [], ""
        self.add(
            (f"{tag} {text}" if is_mark else f"{tag}: {text}") if tag and text else tag or text
        )

    def add(self, text: str, kind: BlockKind | None = None) -> None:
        if text.strip():
            self.parts.append((text.strip("\n"), kind))


def _after(lines: list[str], place: int, end: str) -> int:
    """Return the number of the line after the one that ends a definition, a table or a remark."""
    for number in range(place, len(lines)):
        if lines[number].strip() == end:
            return number + 1
    return len(lines)


def _arguments(written: str) -> list[str]:
    found = _ARGUMENT.finditer(re.split(r'\\"', written, maxsplit=1)[0])
    return [_plain(m[2] if m[1] is None else m[1].replace('""', '"')) for m in found]


def _of_mdoc(words: list[str], page: str) -> Iterator[str]:
    """Yield the words of a line of mdoc, whose macros may stand among them."""
    before, after = "", ""
    for word in words:
        if word in _NAMED:
            before, after = before + _NAMED[word][0], _NAMED[word][1] + after
        elif word == "Ns":
            yield "\b"
        elif _is_mark(word):
            yield after
            yield word
            after = ""
        else:
            yield before + (page if word == "Nm" else word)
            before = ""
    yield before + after


def _is_mark(word: str) -> bool:
    return (len(word) == 1 and word in _CLOSING) or not word


def _joined(words: Iterator[str] | list[str]) -> list[str]:
    """Return words as one, with the marks that end them, and those that stand side by side."""
    line = ""
    for word in words:
        is_close = word and (word[0] in _CLOSING or word in ("”", "’", ">", "}", '"'))
        is_open = line.endswith(("\b", "[", "(", "{", "<", "“", "‘"))
        line += word if not line or is_close or is_open or not word else f" {word}"
    return [line.replace(" \b", "").replace("\b", "")] if line.strip() else []


def _plain(text: str) -> str:
    """Return a text without the escapes of roff."""
    return _ESCAPE.sub(_sign, text) if "\\" in text else text


def _sign(match: re.Match[str]) -> str:
    name = match[2] or match[3] or ""
    if name in _SIGNS:
        return _SIGNS[name]
    if len(name) == 2 and name[0] in _MARKS:
        return unicodedata.normalize("NFC", name[1] + _MARKS[name[0]])
    if re.fullmatch(r"u[0-9A-F]{4,5}", name):
        return chr(int(name[1:], 16))
    return _SIGNS.get(match[4] or "", "")


def _table(lines: list[str]) -> str:
    """Return a table of tbl as one of Markdown; its format, rules and commands are passed over."""
    tab = next((m[1] for line in lines[:1] if (m := re.search(r"tab *\((.)\)", line))), "\t")
    start = next((n for n, line in enumerate(lines) if line.rstrip().endswith(".")), -1) + 1
    rows: list[list[str]] = []
    is_open = False
    for line in lines[start:]:
        if line[:1] in ".'" and not is_open:
            continue
        match = _REQUEST.match(line)
        said = _plain(match[2] if match else line)
        if is_open and rows:
            head, closes, said = said.partition("T}")
            rows[-1][-1] += f" {head}"
            is_open, cells = not closes, said.split(tab)[1:]
            rows[-1] += cells
        elif line.strip("_=- \t"):
            rows.append(said.split(tab))
        if rows and rows[-1][-1].rstrip().endswith("T{"):
            rows[-1][-1], is_open = rows[-1][-1].rstrip()[:-2], True
    rows = [[one_line(cell) for cell in row] for row in rows]
    return "\n".join(markdown_lines(rows, n_names(rows))) if rows else ""


MANUAL = FileFormat(read_manual, versions.of("manual pages", "plain"), SMALL)
