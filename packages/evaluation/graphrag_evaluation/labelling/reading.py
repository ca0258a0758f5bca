"""Labels that people gave, read from files with care: all of it before anything is kept.

A file has an object a row, as CSV, JSON lines or a JSON list. What was labelled is an ``item`` of a
sheet, or a ``question`` with a ``condition``, or with two of them, ``first`` and ``second``. Labels
are one a row (``criterion`` with ``score``, ``value``, ``verdict`` or ``winner``), or a column for
each criterion, as sheets have them. A row may name its ``labeller`` and have a ``note``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from graphrag_evaluation.criteria import REFERENCE_CRITERIA
from graphrag_evaluation.judging.reference import HIGHEST, LOWEST
from graphrag_evaluation.labelling.items import AnswersGiven, Item
from graphrag_evaluation.questions.entries import entries
from graphrag_evaluation.questions.fields import clean
from graphrag_pipeline.core.errors import InputError

_QUESTION: Final = ("question", "question_text", "query")
_VALUE: Final = ("score", "value", "verdict", "winner")
_CRITERION, _OVERALL = "criterion", "overall"
FIELDS: Final = frozenset(
    (*_QUESTION, *_VALUE, _CRITERION, "item", "question_id", "document", "reference", "answer",
     "first_answer", "second_answer", "condition", "first", "second", "labeller", "note")
)  # fmt: skip
"""What a row says besides labels in columns of their own."""
_NUMBERS: Final = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
FIRST, SECOND, TIE = 1.0, 0.0, 0.5
_WINNERS: Final = {
    **dict.fromkeys(("first", "1", "a"), FIRST),
    **dict.fromkeys(("second", "2", "b"), SECOND),
    **dict.fromkeys(("tie", "0", "even"), TIE),
}


@dataclass(frozen=True, kw_only=True)
class Label:
    """The judgement of somebody on an item by a criterion.

    ``value`` is a number; of two answers 1 where the first is better, 0 where the second is, else
    0.5. ``place`` is where in which file it stands.
    """

    labeller: str
    criterion: str
    item: Item
    value: float
    note: str = ""
    place: str = field(default="", compare=False)


def read_labels(
    files: Sequence[Path],
    given: AnswersGiven,
    *,
    labeller: str = "",
    marked: Collection[str] = (),
) -> list[Label]:
    """Return the labels of files on an experiment's answers; empty cells are none.

    ``labeller`` is who gave those that name nobody. ``marked`` are criteria that a model marks from
    1 to 10, besides those that ship: people's numbers are of that scale, too. Raises InputError
    with file and row for what is no label, is of no answer there is, or was given before.
    """
    scale = {*REFERENCE_CRITERIA, *marked}
    labels: dict[tuple[str, str, str], Label] = {}
    for file in files:
        n_before = len(labels)
        for place, entry in entries(file):
            where = f"{file}, {place}"
            for label in _labels(where, entry, given, labeller, scale):
                key = (label.labeller, label.criterion, label.item.id)
                if earlier := labels.get(key):
                    raise InputError(
                        f"{where}: {label.labeller} has labelled this by {label.criterion} before, "
                        f"in {earlier.place}"
                    )
                labels[key] = label
        if len(labels) == n_before:
            raise InputError(f"{file} holds no label: nothing is filled in")
    return list(labels.values())


def _labels(
    where: str, entry: Any, given: AnswersGiven, labeller: str, scale: Collection[str]
) -> list[Label]:
    if not isinstance(entry, Mapping):
        raise InputError(f"{where}: an object with an item, or a question, was expected")
    values = _values(where, entry)
    if not values:
        return []
    item = _item(where, entry, given)
    if not (name := clean(entry.get("labeller")) or labeller):
        raise InputError(f"{where}: nobody is named: add a field labeller, or --labeller NAME")
    return [
        Label(
            labeller=name,
            criterion=criterion,
            item=item,
            value=_value(f"{where}: {criterion}", criterion, value, entry, item, scale),
            note=clean(entry.get("note")),
            place=where,
        )
        for criterion, value in values.items()
    ]


def _values(where: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a row says by criterion, without what was left empty."""
    if any(name in entry for name in (_CRITERION, *_VALUE)):
        if strangers := sorted(map(str, entry.keys() - FIELDS)):
            raise InputError(
                f"{where}: unknown field {strangers[0]!r}: a row has a criterion and a value, or a "
                "column for each criterion"
            )
        value = next((entry[name] for name in _VALUE if not _is_empty(entry.get(name))), None)
        listed = {clean(entry.get(_CRITERION)) or _OVERALL: value}
    else:
        listed = {clean(name): value for name, value in entry.items() if name not in FIELDS}
    return {name.lower(): value for name, value in listed.items() if not _is_empty(value)}


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _item(where: str, entry: Mapping[str, Any], given: AnswersGiven) -> Item:
    if id := clean(entry.get("item")):
        if id not in given.by_id:
            raise InputError(
                f"{where}: {id} is no answer of {given.experiment} as it is now: name the "
                "experiment that the sheet was made of, or make another sheet"
            )
        return given.by_id[id]
    answers = given.by_question[_question(where, entry, given)]
    first, second = clean(entry.get("first")), clean(entry.get("second"))
    if not (first or second):
        return _answer(where, "condition", clean(entry.get("condition")), answers)
    pair = [
        _answer(where, name, condition, answers)
        for name, condition in (("first", first), ("second", second))
    ]
    if pair[0].first == pair[1].first:
        raise InputError(f"{where}: {first!r} and {second!r} gave the same answer")
    return pair[0].beside(pair[1])


def _question(where: str, entry: Mapping[str, Any], given: AnswersGiven) -> str:
    if (id := clean(entry.get("question_id"))) in given.by_question:
        return id
    text = next(filter(None, (clean(entry.get(name)) for name in _QUESTION)), "")
    if not text:
        raise InputError(f"{where}: neither item nor question is named")
    document = clean(entry.get("document"))
    ids = [
        id
        for id in given.ids_of_text.get(text, ())
        if not document or next(iter(given.by_question[id].values())).document == document
    ]
    if not ids:
        raise InputError(f"{where}: {text[:80]!r} was not answered in {given.experiment}")
    if len(ids) > 1:
        raise InputError(f"{where}: {text[:80]!r} is asked of several documents: name the document")
    return ids[0]


def _answer(where: str, name: str, condition: str, answers: Mapping[str, Item]) -> Item:
    if condition not in answers:
        names = ", ".join(answers)
        raise InputError(f"{where}: {name} {condition!r} gave no answer: there are {names}")
    return answers[condition]


def _value(
    where: str,
    criterion: str,
    value: Any,
    entry: Mapping[str, Any],
    item: Item,
    scale: Collection[str],
) -> float:
    text = clean(value).lower()
    if item.kind == "preference":
        sides = {
            clean(entry.get("first")).lower(): FIRST,
            clean(entry.get("second")).lower(): SECOND,
        }
        winner = _WINNERS.get(text.removesuffix(".0"), sides.get(text))
        if winner is None:
            raise InputError(f"{where} = {clean(value)[:40]!r}: write first, second or tie")
        return winner
    number = _NUMBERS.get(text)
    if number is None:
        try:
            number = float(text.replace(",", "."))
        except ValueError:
            number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{where} = {clean(value)[:40]!r}: write a number, or yes or no")
    if criterion in scale and not LOWEST <= number <= HIGHEST:
        raise InputError(
            f"{where} = {clean(value)[:40]!r}: it is marked from {LOWEST} to {HIGHEST}, as models "
            "mark it; give another scale, or yes and no, a criterion of another name"
        )
    return number
