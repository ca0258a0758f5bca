"""LaTeX, said again in Markdown, for the reader of Markdown. Nothing is included or executed."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.word_lists import word_pairs, word_set
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.cleaning import clean_text, one_line
from graphrag_pipeline.ingest.reading.decoding import decode
from graphrag_pipeline.ingest.reading.html_lines import mark_of
from graphrag_pipeline.ingest.reading.latex_macros import without_macros
from graphrag_pipeline.ingest.reading.latex_theorems import with_theorems
from graphrag_pipeline.ingest.reading.markdown import read_as_markdown
from graphrag_pipeline.ingest.reading.model import (
    SMALL,
    FileFormat,
    ReadingOptions,
    ReadResult,
)
from graphrag_pipeline.ingest.reading.table_head import markdown_lines

_TOKEN = pattern_of(
    r"\\begin\{(?P<begin>[A-Za-z]{1,40}\*?)\}|\\end\{(?P<end>[A-Za-z]{1,40}\*?)\}"
    r"|\\(?P<name>[A-Za-z@]+)\*?[ \t]*|\\(?P<sign>.)|(?P<other>[{}$~&]|---?|``|'')",
    re.S,
)
_COMMENT = pattern_of(r"^[ \t]*%[^\n]*(?:\n|\Z)|(?<!\\)%[^\n]*", re.M)
# A line of them would end a paragraph.
_MARKS = pattern_of(
    r"^(?:[ \t]*\\(?:label|index\w*)(?:\{(?:[^{}\n]|\{[^{}\n]*\})*\})+)+[ \t]*\n", re.M
)
_VERBATIM = pattern_of(
    r"\\begin\{(verbatim|lstlisting|minted|Verbatim)\*?\}(?:\[[^\]\n]*\])?(?:\{\w*\})?\n?(.*?)"
    r"\\end\{\1\*?\}",
    re.S,
)
_SHOWN = "\5"
_HIDDEN = pattern_of(f"{_SHOWN}([0-9]{{1,9}}){_SHOWN}")
_DOCUMENT = pattern_of(r"\\begin\{document\}(.*?)(?:\\end\{document\}|\Z)", re.S)
_PREAMBLE = pattern_of(r"\\(title|author|date)\s*(?=[\[{])")
_LEFT_BLANK = pattern_of(r"\n[ \t\n]*\n(?:(?! +(?:-|\w{1,5}[.)]) )[ \t]+)?")
"""Lines without words, and how far to the right the next begins, but for an item of a list."""
_RULE, _CELL, _ROW, _END = "\0\1\2\3"
"""Marks of a table until its head is told: a line across it, a new cell, a new row, its end."""
_TABLE = pattern_of(f"{_ROW}([^{_END}]*){_END}?")
_MOST_HEADS, _MOST_COLUMNS = 3, 100
_TRIMMED = pattern_of(r"\([lr\d{}.a-z]{0,20}\)")
# What references leave that are in brackets, or before a stop.
_BEFORE_STOP = pattern_of(r"(?<=\S) +(?:\(\s*\))?(?=[.,;:](?:\s|$))|(?<=\s)\(\s*\) ?")
_BRACE = pattern_of(r"\\.|[{}]", re.S)
_ONE_SIGN = pattern_of(r"\\[A-Za-z]+|\\.|[^\\{}\s]|", re.S)
_SPACE = pattern_of(r"\s*")
_LEVELS = {"part": 1, "chapter": 1, "section": 2, "subsection": 3, "subsubsection": 4}
_LEVELS |= {"paragraph": 5, "subparagraph": 6}
# Commands by how many of their arguments are no text; of others all arguments are.
_NOT_TEXT = {
    **dict.fromkeys(
        word_set(
            "label ref eqref pageref autoref cref Cref cite citep citet citealp citealt citeauthor "
            "citeyear parencite textcite footcite autocite nocite includegraphics vspace hspace "
            "bibliography bibliographystyle addbibresource usepackage documentclass input include "
            "pagestyle thispagestyle hypersetup color pagenumbering theoremstyle url "
            "graphicspath xymatrix title author date thanks affiliation email"
        ),
        1,
    ),
    **dict.fromkeys(word_set("cline cmidrule"), 1),
    **dict.fromkeys(word_set("href textcolor hyperref colorbox bibitem raisebox parbox"), 1),
    **dict.fromkeys(
        word_set("newcommand renewcommand providecommand setlength addtolength setcounter "
               "addtocounter newtheorem DeclareMathOperator definecolor newcolumntype"),
        2,
    ),
    **dict.fromkeys(word_set("newenvironment renewenvironment multirow"), 2),
}  # fmt: skip
_UNSEEN = word_set("tikzpicture pgfpicture comment filecontents CCSXML picture")
_WITH_COLUMNS = {"tabular": 1, "array": 1, "longtable": 1, "tabularx": 2, "minipage": 1}
_WITH_COLUMNS |= {"thebibliography": 1}
_TABLES = word_set("tabular tabularx longtable array")
_RULES = word_set("hline midrule endhead endfirsthead")
_MATHS = word_set("equation align gather multline eqnarray displaymath math flalign alignat")
_SIGNS = word_pairs("signs.txt", "latex") | {"newline": "\n", "par": "\n\n", "linebreak": "\n"}
_MATH_SIGNS = word_pairs("signs.txt", "latex_math")
_KNOWN = frozenset([*_LEVELS, *_NOT_TEXT, *_SIGNS, *_MATH_SIGNS, "item", "footnote", "caption"])
_ACCENTS = {
    **{"`": "\u0300", "'": "\u0301", "^": "\u0302", "~": "\u0303", '"': "\u0308", "=": "\u0304"},
    **{".": "\u0307", "u": "\u0306", "v": "\u030c", "H": "\u030b", "c": "\u0327", "k": "\u0328"},
    **{"r": "\u030a", "d": "\u0323", "b": "\u0331"},
}
_QUANTITIES = {
    **{"num": (1, False), "numrange": (2, False), "si": (0, True), "unit": (0, True)},
    **{"SI": (1, True), "qty": (1, True), "SIrange": (2, True), "qtyrange": (2, True)},
}
"""Of siunitx, how many numbers a command takes, and whether their unit."""
_POWER = pattern_of(r"\\(square|cubic)\s*((?:\\(?:kilo|mega|milli|micro|centi))?\s*\\[A-Za-z]+)")
_UNIT = pattern_of(r"\\([A-Za-z]+)\s*")
_UNITS = word_pairs("signs.txt", "unit")
_LONGEST_OPTION = 2_000
_COUNTED = frozenset(("enumerate",))
_LISTS = _COUNTED | {"itemize", "description"}
_LABELS = {"alph": "a", "Alph": "A", "roman": "i", "Roman": "I"}
_LABEL = pattern_of(r"\\(alph|Alph|roman|Roman|arabic)\*|^\W*([aAiI1])\W*$")
_START = pattern_of(r"\bstart\s*=\s*(\d{1,4})\b")


def read_latex(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read one file; sections become headings, items lists, listings code; no comment is read.

    Title, author and date come from the preamble, of which nothing else is read.
    """
    written = clean_text(decode(data, options.encoding))
    source = "".join(
        f"\\begin{{verbatim}}{text}\\end{{verbatim}}"
        if is_shown
        else _MARKS.sub("", _COMMENT.sub("", text))
        for text, is_shown in _pieces(written)
    )
    source = _written_out(source)
    body = match[1] if (match := _DOCUMENT.search(source)) else source
    about: dict[str, str] = {}
    for match in _PREAMBLE.finditer(source):
        converter = _Converter(source, match.end())
        converter.skip_option()
        about.setdefault(match[1], one_line(_BEFORE_STOP.sub("", latex_text(converter.argument()))))
    title = about.pop("title", "")
    text = "".join(map(_said, _pieces(body)))
    shown = (f"# {title}" if title else "", about.get("author", ""))
    head = "".join(f"{part}\n\n" for part in shown if part)
    read = read_as_markdown(path, _LEFT_BLANK.sub("\n\n", head + text), options)
    (document,) = read.documents
    metadata = {**document.metadata, **{name: value for name, value in about.items() if value}}
    return ReadResult([replace(document, title=title or document.title, metadata=metadata)], [])


def _written_out(source: str) -> str:
    """Return a source with the macros that it defines written out, but where it shows code."""
    shown: list[str] = []

    def hidden(match: re.Match[str]) -> str:
        shown.append(match.group())
        return f"{_SHOWN}{len(shown) - 1}{_SHOWN}"

    converters: dict[int, _Converter] = {}

    def argument(text: str, at: int) -> tuple[str, int]:
        converter = converters.get(id(text))
        if converter is None:
            converters.clear()
            converter = converters[id(text)] = _Converter(text)
        converter.at = at
        return converter.argument(), converter.at

    written = with_theorems(without_macros(_VERBATIM.sub(hidden, source), argument, _KNOWN))
    return _HIDDEN.sub(lambda match: shown[int(match[1])], written)


def latex_text(source: str) -> str:
    """Return the text of LaTeX, such as a title in a bibliography.

    >>> latex_text(r'Sch{\\"o}ning \\& {\\O}re~1')
    'Schöning & Øre 1'
    """
    return _Converter(source).text()


def _pieces(body: str) -> list[tuple[str, bool]]:
    """Return a text in pieces, and whether each is shown as it is written."""
    pieces: list[tuple[str, bool]] = []
    place = 0
    for match in _VERBATIM.finditer(body):
        pieces += [(body[place : match.start()], False), (match[2], True)]
        place = match.end()
    return [*pieces, (body[place:], False)]


def _said(piece: tuple[str, bool]) -> str:
    text, is_verbatim = piece
    if is_verbatim:
        return f"\n\n```\n{text.strip()}\n```\n\n"
    return _BEFORE_STOP.sub("", _TABLE.sub(_table, latex_text(text)))


def _table(match: re.Match[str]) -> str:
    """Return a table with its head, which is what a line below it parts from the other rows."""
    written = match[1].split(_ROW)
    rows = [line.replace(_RULE, "").split(_CELL) for line in written]
    ruled = [number for number, line in enumerate(written) if number and _RULE in line]
    n_heads = sum(any(map(str.strip, row)) for row in rows[: ruled[0]]) if ruled else 0
    filled = [row for row in rows if any(map(str.strip, row))]
    is_head = 0 < n_heads <= _MOST_HEADS and n_heads < len(filled)
    lines = markdown_lines(filled, n_heads if is_head else 0)
    return "\n\n" + "\n".join(lines) + "\n\n" if filled else ""


class _Converter:
    """Walks over the source; what is no command is text, and braces are none."""

    def __init__(self, source: str, at: int = 0, *, is_math: bool = False) -> None:
        self.source, self.at, self.is_math = source, at, is_math
        self.in_table = 0
        self.lists: list[tuple[str, int]] = []
        """What counts the items of the open lists, "" where nothing does, and the last number."""

    def text(self) -> str:
        """Return the text of all that is left."""
        parts: list[str] = []
        while match := _TOKEN.search(self.source, self.at):
            between = self.source[self.at : match.start()]
            parts.append(between.replace("\n", " ") if self.in_table > 0 else between)
            self.at = match.end()
            parts.append(self._token(match))
        parts.append(self.source[self.at :])
        return "".join(parts)

    def _token(self, match: re.Match[str]) -> str:
        if name := match["begin"]:
            return self._begin(name.rstrip("*"))
        if name := match["end"]:
            return self._end(name.rstrip("*"))
        if name := match["name"]:
            is_word = self.is_math and name.isalpha()
            return self._command(name, f"{name} " if is_word else "")
        if sign := match["sign"]:
            return self._sign(sign)
        return self._other(match["other"])

    def _begin(self, name: str) -> str:
        if name in _UNSEEN:
            end = self.source.find(f"\\end{{{name}}}", self.at)
            self.at = len(self.source) if end < 0 else end
            return ""
        option = self.skip_option()
        for _ in range(_WITH_COLUMNS.get(name, 0)):
            self.argument()
        if name in _MATHS:
            return f"\n{self._math(f'end{{{name}')}\n"
        self.in_table += name in _TABLES
        if name in _LISTS:
            self.lists.append(self._counting(option) if name in _COUNTED else ("", 0))
        if name == "abstract":
            return "\n\n## Abstract\n\n"
        if name in _TABLES:
            return _ROW if self.in_table == 1 else " "
        return "\n\n"

    def _end(self, name: str) -> str:
        if name in _TABLES:
            self.in_table -= 1
            return " " if self.in_table > 0 else _END
        if name in _LISTS and self.lists:
            self.lists.pop()
        return "\n\n"

    def _command(self, name: str, otherwise: str) -> str:
        if name in _LEVELS:
            self.skip_option()
            title = one_line(latex_text(self.argument()))
            return f"\n\n{'#' * _LEVELS[name]} {title}\n\n"
        if name in _ACCENTS and not self.is_math:
            return self._accented(_ACCENTS[name])
        if name in _RULES and self.in_table > 0:
            self.skip_option()
            return self._mark(_RULE)
        if name in _NOT_TEXT:
            if name == "cmidrule" and (trimmed := _TRIMMED.match(self.source, self.at)):
                self.at = trimmed.end()
            for _ in range(_NOT_TEXT[name]):
                self.skip_option()
                self.argument()
            self.skip_option()
            return ""
        if name.startswith("index"):
            while self.source.startswith("{", self._after_space()):
                self.argument()
            return ""
        special: dict[str, Callable[[], str]] = {
            "multicolumn": self._wide_cell,
            "item": self._item,
            "footnote": lambda: f" ({one_line(latex_text(self.argument()))})",
            "caption": lambda: f"\n\n{latex_text(self._captioned())}\n\n",
            "frac": self._fraction,
            "dfrac": self._fraction,
        }
        if name in special:
            return special[name]()
        if name in _QUANTITIES:
            return self._quantity(*_QUANTITIES[name])
        if len(name) > 2 and (greek := _greek(name)):
            return greek
        if self.is_math and name in _MATH_SIGNS:
            return _MATH_SIGNS[name]
        return _SIGNS.get(name, otherwise)

    def _sign(self, sign: str) -> str:
        if sign in _ACCENTS and not self.is_math:
            return self._accented(_ACCENTS[sign])
        if sign == "\\":
            self.skip_option()
            return self._mark(_ROW) or "\n"
        if sign in "([":
            return self._math(")" if sign == "(" else "]")
        return {",": " ", ";": " ", " ": " ", "\n": " ", "-": "", "/": "", "!": ""}.get(sign, sign)

    def _other(self, other: str) -> str:
        if other == "$":
            twice = self.source.startswith("$", self.at)
            self.at += twice
            return self._math("$$" if twice else "$")
        if other == "&":
            return self._mark(_CELL) or "&"
        signs = {"{": "", "}": "", "~": " ", "--": "–", "---": "—", "``": "“", "''": "”"}
        return signs.get(other, other)

    def _math(self, end: str) -> str:
        """Return a formula as linear text, up to its end."""
        mark = end if end.startswith("$") else f"\\{end}"
        place = self.source.find(mark, self.at)
        if place < 0:
            return ""
        formula = self.source[self.at : place]
        self.at = place + len(mark)
        if end.startswith("end"):
            close = self.source.find("}", self.at)
            self.at = close + 1 if close >= 0 else self.at
        return one_line(_Converter(formula.replace("$", ""), is_math=True).text())

    def _fraction(self) -> str:
        parts = [one_line(_Converter(self.argument(), is_math=True).text()) for _ in range(2)]
        return "/".join(part if part.isalnum() else f"({part})" for part in parts)

    def _quantity(self, n_numbers: int, has_unit: bool) -> str:
        """Return numbers with the signs of their unit: ``\\kilo\\metre\\per\\hour`` is km/h."""
        self.skip_option()
        numbers = "–".join(latex_text(self.argument()) for _ in range(n_numbers))
        self.skip_option()
        unit = _POWER.sub(r"\2\\\1", self.argument()) if has_unit else ""
        return f"{numbers} {_UNIT.sub(lambda m: _UNITS.get(m[1], m[1]), unit)}".strip()

    def _item(self) -> str:
        option = self.skip_option()
        indent = "  " * max(len(self.lists) - 1, 0)
        by, last = self.lists[-1] if self.lists else ("", 0)
        mark = mark_of(last + 1, by) if by and not option else "-"
        if mark != "-":
            self.lists[-1] = (by, last + 1)
        return f"\n{indent}{mark} {latex_text(option)}{' ' if option else ''}"

    def _counting(self, option: str) -> tuple[str, int]:
        """Return what counts the items of a list that begins, and the number before the first."""
        if "resume" in option or "\\setcounter{enum" in self.source:
            return "", 0
        depth = sum(by != "" for by, _ in self.lists)
        label, start = _LABEL.search(option), _START.search(option)
        by = (_LABELS.get(label[1]) or label[2]) if label else "1aiA"[min(depth, 3)]
        return by or "1", int(start[1]) - 1 if start else 0

    def _mark(self, mark: str) -> str:
        """Return a mark of a table; of one within a cell of another a blank; else nothing."""
        return mark if self.in_table == 1 else " " * (self.in_table > 1)

    def _wide_cell(self) -> str:
        width = self.argument()
        self.argument()
        n_more = min(int(width), _MOST_COLUMNS) - 1 if width.isdecimal() else 0
        return one_line(latex_text(self.argument())) + self._mark(_CELL) * n_more

    def _captioned(self) -> str:
        self.skip_option()
        return self.argument()

    def _accented(self, accent: str) -> str:
        written = self.argument()
        base = {"\\i": "i", "\\j": "j"}.get(written.strip(), written)
        letter = latex_text(base)
        return unicodedata.normalize("NFC", letter[:1] + accent + letter[1:]) if letter else ""

    def skip_option(self) -> str:
        """Pass over an argument in square brackets, if one is next, and return it."""
        start = self._after_space()
        if not self.source.startswith("[", start):
            return ""
        end = self.source.find("]", start, start + _LONGEST_OPTION)
        if end < 0:
            return ""
        self.at = end + 1
        return self.source[start + 1 : end]

    def argument(self) -> str:
        """Return the next argument as it is written, and pass over it: a group or one sign."""
        start = self._after_space()
        if not self.source.startswith("{", start):
            sign = _ONE_SIGN.match(self.source, start)
            self.at = sign.end() if sign and sign.group() else self.at
            return sign.group() if sign else ""
        end = self.closing.get(start)
        if end is None:
            return ""
        self.at = end + 1
        return self.source[start + 1 : end]

    @functools.cached_property
    def closing(self) -> dict[int, int]:
        """The end of each group, by where it begins: those that are never closed are none."""
        pairs: dict[int, int] = {}
        begun: list[int] = []
        for brace in _BRACE.finditer(self.source):
            if brace.group() == "{":
                begun.append(brace.start())
            elif brace.group() == "}" and begun:
                pairs[begun.pop()] = brace.start()
        return pairs

    def _after_space(self) -> int:
        match = _SPACE.match(self.source, self.at)
        return match.end() if match and "\n\n" not in match.group() else self.at


def _greek(name: str) -> str:
    size = "CAPITAL" if name[0].isupper() else "SMALL"
    letter = {"varepsilon": "epsilon", "varphi": "phi", "lambda": "lamda", "Lambda": "lamda"}
    try:
        return unicodedata.lookup(f"GREEK {size} LETTER {letter.get(name, name).upper()}")
    except KeyError:
        return ""


LATEX = FileFormat(read_latex, versions.of("LaTeX", "Markdown"), SMALL)
