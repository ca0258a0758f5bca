"""Items that a record lists, as evidence: each by itself, with its fields on one line.

An order lists what was ordered. That 7 are of the widget, only ``items.2.name`` and ``items.2.qty``
together say. A list of short values is one line: whoever asks for languages asks for all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.records import SEPARATOR
from graphrag_pipeline.core.text import terms
from graphrag_pipeline.query.evidence.sentences import Sentence
from graphrag_pipeline.query.evidence.units import CELL_END, ITEM, KEY, LINES, Unit
from graphrag_pipeline.query.question import AnalysedQuestion

_NUMBERED = pattern_of(r"(?:.*\.)?\d+\.|.*[^\d.]\.(?=\d+$)")
_LONGEST_VALUE, _LONGEST_ABOVE = 200, 80
_LONGEST_IN_LINE = 60
_FEWEST_FIELDS, _MOST_FIELDS = 2, 40
NameOf = Callable[[int], str | None]


def by_items(question: AnalysedQuestion, units: Sequence[Unit]) -> list[Unit]:
    """Return units, each item of a record's list in place of its lines."""
    cut: list[Unit] = []
    read: dict[tuple[str, str], dict[int, int]] = {}
    for unit in units:
        group = _group(unit.sentence.quote) if unit.kind in LINES else ""
        group = "" if unit.kind == KEY and _is_of_values(group) else group
        ends = read.setdefault((unit.document_id, group), {})
        if group and any(start <= unit.sentence.start < end for start, end in ends.items()):
            continue
        item = _item(unit.sentence, group) if group else None
        if item is None or item.start not in ends:
            cut.append(Unit(item, ITEM) if item else unit)
        if item:
            ends[item.start] = item.end
    return cut


def item_told(item: Sentence, asked: Collection[str], name_of: NameOf) -> str:
    """Return the fields of an item on one line, after what is asked of those of what lists it.

    ``items.2.name: Widget`` and ``items.2.qty: 7`` are ``id: 1003; items.2.name: Widget; qty: 7``
    for a question about 1003. ``name_of`` says what a key refers to that begins at a place.
    """
    group = _group(item.quote)
    if _is_of_values(group):
        lines = (line.partition(SEPARATOR)[2] for line in item.quote.split("\n"))
        return f"{group[:-1]}{SEPARATOR}{', '.join(lines)}"
    cells: list[str] = []
    for start, line in _lines(item.quote, item.start):
        path, _, value = line.partition(SEPARATOR)
        if _group(line) == group and len(value) <= _LONGEST_VALUE:
            name = name_of(start)
            value = f"{name} ({value})" if name else value
            cells.append(f"{path.removeprefix(group) if cells else path}{SEPARATOR}{value}")
    return CELL_END.join((*_above(item, group, asked), *cells[:_MOST_FIELDS]))


def _above(item: Sentence, group: str, asked: Collection[str]) -> Iterator[str]:
    """Yield the fields of what lists an item whose values say what is asked, but for its title."""
    row = item.window.row
    wanted = set(asked).difference(terms(row["title"]))
    for _, line in _lines(row["text"], 0) if wanted else ():
        path, _, value = line.partition(SEPARATOR)
        own = _group(line)
        is_above = own != group and group.startswith(own) and path
        if is_above and len(value) <= _LONGEST_ABOVE:
            words = set(terms(value))
            shared = words & wanted
            # A year of what is asked is no key of it.
            if shared and (shared == words or not all(map(str.isdigit, shared))):
                yield line


def _item(sentence: Sentence, group: str) -> Sentence | None:
    """Return the item that a line of a group is of, whole; None where the line says all of it."""
    offset, text = sentence.window.row["window_start"], sentence.window.row["text"]
    place = text.rfind("\n", 0, sentence.start - offset) + 1
    while place and text.startswith(group, before := text.rfind("\n", 0, place - 1) + 1):
        place = before
    own = [
        (start, start + len(line))
        for start, line in _of_group(text, place, group)
        if _group(line) == group
    ]
    if len(own) < _FEWEST_FIELDS or (_is_of_values(group) and not _fits(text, own)):
        return None
    return sentence.part(offset + own[0][0], offset + own[-1][1])


def _is_of_values(group: str) -> bool:
    """Whether what is listed are values, not items with fields: tags.1 and no crew.1.name."""
    return bool(group) and not group[-2:-1].isdigit()


def _fits(text: str, lines: Sequence[tuple[int, int]]) -> bool:
    longest = max(len(text[start:end].partition(SEPARATOR)[2]) for start, end in lines)
    return len(lines) <= _MOST_FIELDS and longest <= _LONGEST_IN_LINE


def _of_group(text: str, place: int, group: str) -> Iterator[tuple[int, str]]:
    while place < len(text) and text.startswith(group, place):
        end = text.find("\n", place)
        line = text[place : end if end >= 0 else len(text)]
        yield place, line
        place += len(line) + 1


def _lines(text: str, place: int) -> Iterator[tuple[int, str]]:
    for line in text.split("\n"):
        yield place, line
        place += len(line) + 1


def _group(line: str) -> str:
    """Return the path of the innermost item that a line is of, up to its last dot; "" of none.

    >>> _group("orders.1.items.2.price.net: 7"), _group("tags.2: red"), _group("total: 9.5")
    ('orders.1.items.2.', 'tags.', '')
    """
    path = line[: max(line.find(SEPARATOR), 0)]
    match = _NUMBERED.match(path) if "." in path and "\n" not in path else None
    return match[0] if match else ""
