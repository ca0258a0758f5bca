"""Cells of tables and fields of records that are written in HTML, as the text that they show.

Shops, forums and programs that collect pages export ``Europe&#39;s`` and ``<p>Warm boots.</p>``.
A column is read so where nearly all that looks like HTML in it is whole: known tags, each closed,
or references in cells without the bare signs that they stand for. A file that speaks of HTML may
have tags and references as its matter: of it only columns of whole paragraphs are read.
"""

from __future__ import annotations

import html
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from html.entities import html5
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.core.lazy import LazyModule
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.prose import LETTERED
from graphrag_pipeline.core.word_lists import word_set
from graphrag_pipeline.ingest.reading.cleaning import clean_text, one_line
from graphrag_pipeline.ingest.reading.html import parse_html
from graphrag_pipeline.ingest.reading.markdown_markup import TAG_NAMES

if TYPE_CHECKING:
    import polars as pl
else:
    pl = LazyModule("polars")

_MARK = r"&(?:#[0-9xX]|[a-zA-Z])[0-9a-zA-Z]{1,30};|<[a-zA-Z/!?]"
_MARKED = pattern_of(_MARK)
_OF_MARKUP = r"(?:^|[^./\w])(?:x?html[45]?|xml|X?HTML[45]?|XML)(?:[^\w/]|$)"
_SPEAKS = pattern_of(_OF_MARKUP)
_REFERENCE = pattern_of(r"&(#\d{1,7}|#[xX][\da-fA-F]{1,6}|[a-zA-Z][a-zA-Z\d]{1,30});")
_TAG = pattern_of(r"<!--.*?-->|<(/?)([a-zA-Z][a-zA-Z\d]*)(?:\s[^<>]*|/)?>|(<[a-zA-Z/!?])", re.S)
_BARE = pattern_of(r"[<>]|&(?!nbsp;)")
_BLOCK = pattern_of(r"\s*<(?:p|div|h[1-6]|ul|ol|table|blockquote|section|!--)\b", re.I)
_OPEN = word_set("area br col embed hr img input link p source track wbr")
"""Elements that nobody need close."""
_NEARLY_ALL, _MOSTLY = 0.9, 0.5
_SPEAKING = 0.02
_LOOKED_AT = 2_000
_DEEPEST = 20
_SHORT = 400
_ITEM = pattern_of(rf"^ *(?:- |\d+\. |{LETTERED} |\| |```)", re.M)

_Columns = Mapping[str, Sequence[str]]


def plain_table(cells: pl.DataFrame) -> pl.DataFrame:
    """Return a table whose columns that are written in HTML hold text."""
    is_marked = {name: cells[name].str.contains(_MARK) for name in cells.columns}
    marked = {n: cells[n].filter(marks).to_list() for n, marks in is_marked.items() if marks.any()}
    if not marked:
        return cells

    def n_speaking() -> int:
        return sum(int(cells[name].str.contains(_OF_MARKUP).sum()) for name in cells.columns)

    return cells.with_columns(
        pl.when(is_marked[name])
        .then(pl.Series(_texts_at(is_marked[name], marked[name]), dtype=pl.String))
        .otherwise(pl.col(name))
        .alias(name)
        for name in _written_in_html(marked, n_speaking, len(cells))
    )


def _texts_at(marks: pl.Series, cells: Sequence[str]) -> list[str | None]:
    texts = map(_text, cells)
    return [next(texts) if mark else None for mark in marks]


def plain_records(records: list[Any]) -> list[Any]:
    """Return records whose fields that are written in HTML hold text."""
    marked: defaultdict[str, list[str]] = defaultdict(list)
    for name, text in _texts(records):
        if ("<" in text or "&" in text) and _MARKED.search(text):
            marked[name].append(text)

    def n_speaking() -> int:
        said = (text for _, text in _texts(records) if "ml" in text or "ML" in text)
        return sum(bool(_SPEAKS.search(text)) for text in said)

    columns = set(_written_in_html(marked, n_speaking, len(records))) if marked else set[str]()
    return _with_texts(records, columns) if columns else records


def _texts(value: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield each text within a value, and the names of the fields that it is in."""
    inner = value.items() if isinstance(value, dict) else (("", item) for item in value)
    for key, item in inner:
        if isinstance(item, str):
            yield f"{name}.{key}", item
        elif isinstance(item, dict | list) and depth < _DEEPEST:
            yield from _texts(item, f"{name}.{key}", depth + 1)


def _with_texts(value: Any, columns: Set[str], name: str = "", depth: int = 0) -> Any:
    """Return a value in which fields of these names are text that was written in HTML."""
    if isinstance(value, str):
        return _text(value) if name in columns else value
    if depth > _DEEPEST or not isinstance(value, dict | list):
        return value
    if isinstance(value, list):
        return [_with_texts(item, columns, f"{name}.", depth + 1) for item in value]
    return {k: _with_texts(item, columns, f"{name}.{k}", depth + 1) for k, item in value.items()}


def _written_in_html(marked: _Columns, n_speaking: Callable[[], int], n_rows: int) -> Iterable[str]:
    """Yield the names of columns that are, by their cells that look so."""
    columns = [name for name, cells in marked.items() if _is_html(cells[:_LOOKED_AT])]
    whole = [name for name in columns if _is_of_paragraphs(marked[name][:_LOOKED_AT])]
    is_safe = len(whole) == len(columns) or n_speaking() <= _SPEAKING * n_rows
    return columns if is_safe else whole


def _is_html(cells: Sequence[str]) -> bool:
    return sum(map(_is_whole, cells)) >= _NEARLY_ALL * len(cells)


def _is_whole(cell: str) -> bool:
    """Whether all that looks like HTML in a cell is whole."""
    if "<" not in cell or not (tags := [*_TAG.finditer(cell)]):
        rest = _REFERENCE.sub("", cell)
        return not _BARE.search(rest) and bool(rest.strip() or cell.strip() == "&nbsp;")
    depths: Counter[str] = Counter()
    for closing, name, broken in (tag.groups("") for tag in tags):
        name = name.lower()
        if broken or (name and name not in TAG_NAMES):
            return False
        depths[name] += 0 if name in _OPEN else -1 if closing else 1
    return not any(depths[name] for name in depths if name)


def _is_of_paragraphs(cells: Sequence[str]) -> bool:
    """Whether cells begin as paragraphs do, and are more text than tags."""
    size = sum(map(len, cells))
    n_text = sum(len(_TAG.sub("", cell)) for cell in cells)
    n_blocks = sum(bool(_BLOCK.match(cell)) for cell in cells)
    return n_blocks >= _NEARLY_ALL * len(cells) and n_text >= _MOSTLY * size


def _text(cell: str) -> str:
    """Return the text of a cell, short paragraphs on one line; what is not whole, or shows no text,
    stays as it is."""
    if not _MARKED.search(cell) or not _is_whole(cell):
        return cell
    if "<" in cell and _TAG.search(cell):
        text = parse_html(cell).text or cell
        is_prose = len(text) < _SHORT and not _ITEM.search(text)
        return one_line(text) if is_prose else text
    return clean_text(_REFERENCE.sub(_sign, cell).replace("\xa0", " "))


def _sign(reference: re.Match[str]) -> str:
    is_known = reference[1][0] == "#" or f"{reference[1]};" in html5
    return html.unescape(reference[0]) if is_known else reference[0]
