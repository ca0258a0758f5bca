"""Tables that stand on their side: fields down the first column, a record in each other one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.records import field_words
from graphrag_pipeline.core.word_lists import word_lists, word_set

MOST_TURNED = 50
"""Rows of a table that may stand on its side."""
_FEWEST, _MOST_ABOVE, _LABEL_WORDS, _FIELD_AND_VALUE = 3, 3, 5, 2
_MOSTLY, _HALF = 0.75, 0.5
_MEASURE = pattern_of(
    r"[-+(]?(?:[^\W\d_]{1,3} ?|[$€£¥] ?)?\d[\d.,' \u00a0\u202f]*([^\d\s]{0,10}(?:/\w{1,6})?)\)?"
)
_DATE = pattern_of(r"\d{1,4}([-./])\d{1,2}\1\d{1,4}(?!\d)|\d{1,2}:\d\d(?!\d)")
_WORDS = word_lists("nlp_records.txt")
_LABELS = frozenset[str]().union(
    *(_WORDS[each] for each in ("label", "key", "of_document", "total", "person", "organisation")),
    *(_WORDS[each] for each in ("person_or_firm", "place", "of_person", "of_place", "of_work")),
)
_FIELD = word_set(
    "field key property attribute parameter setting metric feld schlüssel eigenschaft merkmal "
    "champ clé propriété campo clave propiedad parámetro chiave proprietà chave propriedade "
    "veld sleutel eigenschap egenskab egenskap fält felt pole"
)
_VALUE = word_set("value entry content wert inhalt eintrag valeur valor valore waarde värde verdi")
"""What the two columns of a form are called, where they are called at all."""
_Row = Sequence[str]


def turned(rows: Sequence[_Row]) -> tuple[list[str], list[list[str]]] | None:
    """Return the lines above a table and its rows, turned; None of one that stands upright.

    It stands on its side where each row holds values of one kind, names or figures of one unit, and
    no column does. A form is a table of one record: its labels are words that fields are called by,
    or end in a colon, and what stands beside them is of several kinds.

    >>> turned([["Model", "A", "B"], ["Colour", "red", "blue"], ["Price", "10", "12"]])
    ([], [['Model', 'Colour', 'Price'], ['A', 'red', '10'], ['B', 'blue', '12']])
    """
    if not _FEWEST <= len(rows) <= MOST_TURNED:
        return None
    above = [*takewhile(lambda row: sum(map(bool, row)) == 1, rows[:_MOST_ABOVE])]
    rows = [*_without_gaps(rows[len(above) :])]
    labels = [row[0] for row in rows]
    if len(rows) < _FEWEST or len(set(labels)) < len(labels) or not all(map(_is_name, labels)):
        return None
    if len(rows[0]) == _FIELD_AND_VALUE:
        rows = _form(rows)
    elif len(rows[0]) < _FEWEST or not _holds_records(rows):
        return None
    names, *records = [[*column] for column in zip(*rows, strict=True)] or [[]]
    lines = [" ".join(filter(None, row)) for row in above]
    return (lines, [[name.rstrip(": ") for name in names], *records]) if records else None


def stands_on_side(rows: Sequence[_Row]) -> bool:
    """Whether the columns of a table but the first are its records."""
    return turned(rows) is not None


def _without_gaps(rows: Sequence[_Row]) -> Iterator[list[str]]:
    """Yield rows without the columns that are empty in all, each as wide as the widest."""
    width = max(map(len, rows), default=0)
    wide = [[cell.strip() for cell in row] + [""] * (width - len(row)) for row in rows]
    filled = [place for place in range(width) if any(row[place] for row in wide)]
    for row in wide:
        yield [row[place] for place in filled]


def _is_name(cell: str) -> bool:
    return (
        _kind(cell) == "name" and any(map(str.isalpha, cell)) and len(cell.split()) <= _LABEL_WORDS
    )


def _holds_records(rows: Sequence[_Row]) -> bool:
    heads = rows[0][1:]
    if len(set(heads)) < len(heads) or not all(map(_is_name, heads)):
        return False
    # One word in all of a row may be said in place of figures: postponed.
    kinds = [[_kind(c) for c in row[1:]] for row in rows[1:] if len({*row[1:]} - {""}) > 1]
    alike = [own for row in kinds if len(own := {*row} - {""}) == 1]
    is_of_several = len(frozenset[str]().union(*alike)) > 1
    columns = ({*column} - {""} for column in zip(*kinds, strict=True))
    return len(alike) >= _MOSTLY * len(kinds) and is_of_several and all(len(c) > 1 for c in columns)


def _form(rows: Sequence[_Row]) -> list[_Row]:
    """Return the fields of a form; none of a table of two columns."""
    first, second = (_last_word(cell) for cell in rows[0])
    if first in _FIELD and second in _VALUE:
        return [*rows[1:]]
    if all(row[0].endswith(":") for row in rows):
        return [*rows]
    kinds = Counter(kind for row in rows[1:] if (kind := _kind(row[1])))
    is_column = len(kinds) < 2 or any(
        n > _HALF * kinds.total() for kind, n in kinds.items() if kind != "name"
    )
    known = [_last_word(row[0]) in _LABELS for row in rows]
    return [*rows] if not is_column and known[0] and sum(known) >= _HALF * len(rows) else []


def _last_word(name: str) -> str:
    return next(reversed(field_words(name)), "")


def _kind(cell: str) -> str:
    """Return "name", "date", or of a figure its unit after "number"; "" of what is not said."""
    if not cell or cell.lower() in _WORDS["nothing"]:
        return ""
    if measure := _MEASURE.fullmatch(cell):
        return f"number {measure[1].lower().rstrip('s')}"
    return "date" if _DATE.match(cell) else "name"
