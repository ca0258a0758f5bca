"""Sheets for people to fill in: the answers of an experiment without a sign of who gave them.

The order is random, and so is which of two answers comes first; both follow from a seed. References
such as ``[Data: Reports (3)]`` are left out, because they tell the method.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Sequence
from pathlib import Path

from graphrag_evaluation.criteria import CRITERIA, REFERENCE_CRITERIA
from graphrag_evaluation.judging.reference import HIGHEST, LOWEST
from graphrag_evaluation.labelling.items import AnswersGiven, Item, Kind
from graphrag_evaluation.labelling.reading import FIELDS
from graphrag_evaluation.metrics.answers import bare
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.hardening.files import write_output
from graphrag_pipeline.core.rows import Row, write_csv

LINES = (".jsonl", ".ndjson")
_SHOWN = {
    "score": ("item", "question", "document", "reference", "answer"),
    "preference": ("item", "question", "document", "reference", "first_answer", "second_answer"),
}
_OPTIONAL = ("document", "reference")
_NOTE = "note"


def write_sheet(
    file: Path,
    given: AnswersGiven,
    kind: Kind,
    criteria: Sequence[str],
    *,
    conditions: Sequence[str] = (),
    limit: int = 0,
    seed: int = 0,
) -> int:
    """Write a sheet with a column to fill in for each criterion; return how many rows it has.

    CSV, which spreadsheets open and do not calculate, or JSON lines if the name ends so. ``limit``
    draws so many of the rows (0: all). Raises InputError where there is nothing to label, or a
    criterion has the name of another column.
    """
    if taken := [name for name in criteria if name in FIELDS]:
        raise InputError(f"a criterion cannot be called {taken[0]!r}: a sheet has such a column")
    items = drawn(given.items(kind, conditions), limit, seed)
    if not items:
        wanted = "two different answers to a question" if kind == "preference" else "an answer"
        raise InputError(f"{given.experiment} has nothing to label: {wanted} with a text is needed")
    rows = [_cells(item) for item in items]
    names = [
        name for name in _SHOWN[kind] if name not in _OPTIONAL or any(row[name] for row in rows)
    ]
    to_fill = (*criteria, _NOTE)
    if file.suffix.lower() in LINES:
        empty = dict.fromkeys(to_fill)
        lines = ({**{name: row[name] for name in names}, **empty} for row in rows)
        text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
        write_output(file, text.encode())
    else:
        blank = ("",) * len(to_fill)
        text = _as_csv((*names, *to_fill), [(*(row[n] for n in names), *blank) for row in rows])
        # Spreadsheets take UTF-8 for something else where nothing says that it is.
        write_output(file, text.encode("utf-8-sig"))
    return len(items)


def default_criteria(kind: Kind) -> Sequence[str]:
    """Return what a sheet asks for by default: of one answer what the model is asked, too."""
    return list(REFERENCE_CRITERIA) if kind == "score" else ["overall"]


def how_to_fill(criterion: str, kind: Kind) -> str:
    """Return what to write into the column of a criterion, and what it means where it ships."""
    if kind == "preference":
        meaning = CRITERIA.get(criterion, "")
        return f"first, second or tie. {meaning}".strip()
    if meaning := REFERENCE_CRITERIA.get(criterion, ""):
        return f"a number from {LOWEST} to {HIGHEST}. {meaning}"
    return "a number, or yes or no"


def drawn(items: Sequence[Item], limit: int, seed: int) -> list[Item]:
    """Return items in random order, pairs turned round or not; the first ``limit`` (0: all)."""
    chance = random.Random(seed)
    shuffled = chance.sample(items, len(items))[: limit or None]
    return [item.turned if item.second and chance.random() < 0.5 else item for item in shuffled]


def _cells(item: Item) -> dict[str, str]:
    return {
        "item": item.id,
        "question": item.question,
        "document": item.document,
        "reference": "\n".join(item.reference),
        "answer": bare(item.first),
        "first_answer": bare(item.first),
        "second_answer": bare(item.second),
    }


def _as_csv(names: Sequence[str], rows: Sequence[Row]) -> str:
    text = io.StringIO()
    write_csv(text, names, rows)
    return text.getvalue()
