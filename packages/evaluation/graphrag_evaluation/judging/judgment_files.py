"""Recorded judgments: files of verdicts that some judge gave, here or elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from graphrag_evaluation.judging.verdicts import Verdict, Won
from graphrag_pipeline.core.errors import InputError

_BETWEEN = "_vs_"
_OURS = ("question", "criterion", "first", "second", "winner")
_WINNERS = ("first", "second", "tie")
_RECORDED: Mapping[str, Won] = {"answer 1": "first", "answer 2": "second", "tie": "tie"}


def read_judgment_files(files: Sequence[Path]) -> list[Verdict]:
    """Read the verdicts of several files, as :func:`read_judgments` does each.

    Raises InputError also where two files in the recorded form are of the same two conditions:
    nothing tells their questions apart.
    """
    file_of: dict[frozenset[str], Path] = {}
    verdicts: list[Verdict] = []
    for file in files:
        rows = _rows(file)
        if not _is_ours(rows):
            pair = frozenset(_names(file))
            if earlier := file_of.get(pair):
                raise InputError(f"{earlier} and {file} are of the same pair: rename one of them")
            file_of[pair] = file
        verdicts += _verdicts(file, rows)
    return verdicts


def read_judgments(file: Path) -> list[Verdict]:
    """Read the verdicts of a JSON Lines file, in either of two forms.

    Ours has one verdict a line: ``{"question": ..., "criterion": ..., "first": ..., "second": ...,
    "winner": "first" | "second" | "tie"}``, where ``first`` and ``second`` are the conditions whose
    answers were shown so, and a ``replicate`` if there are several.

    The recorded form (of LightRAG's, HiRAG's and others' evaluations) has one question a line:
    ``{"Comprehensiveness": {"Winner": "Answer 1", "Explanation": ...}, ..., "Overall Winner":
    {...}}``. The first half of the lines shows the one condition's answers first, the second half
    the same questions in the other order; the file's name ``A_vs_B.jsonl`` names the two.

    Raises
    ------
    InputError
        If the file cannot be read, is empty, or a line is malformed, with the line's number.
    """
    return _verdicts(file, _rows(file))


def _rows(file: Path) -> list[tuple[int, Mapping[str, Any]]]:
    """Return the objects of a file with the numbers of their lines."""
    try:
        lines = file.read_text("utf-8-sig").split("\n")
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{file} is not UTF-8: a file of judgments is JSON Lines") from None
    rows = [(n, _object(file, n, line)) for n, line in enumerate(lines, 1) if line.strip()]
    if not rows:
        raise InputError(f"{file} holds no judgments")
    return rows


def _object(file: Path, number: int, line: str) -> Mapping[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise _malformed(file, number, "it is not JSON") from None
    if not isinstance(value, dict):
        raise _malformed(file, number, "it is no JSON object")
    return value


def _verdicts(file: Path, rows: Sequence[tuple[int, Mapping[str, Any]]]) -> list[Verdict]:
    if _is_ours(rows):
        return [_ours(file, number, row) for number, row in rows]
    return _recorded(file, rows)


def _is_ours(rows: Sequence[tuple[int, Mapping[str, Any]]]) -> bool:
    return "winner" in rows[0][1] or "criterion" in rows[0][1]


def _ours(file: Path, number: int, row: Mapping[str, Any]) -> Verdict:
    texts = [row.get(name) for name in _OURS]
    for name, text in zip(_OURS, texts, strict=True):
        if not isinstance(text, str) or not text:
            raise _malformed(file, number, f'"{name}" must be a text')
    question, criterion, first, second, winner = map(str, texts)
    if winner not in _WINNERS:
        raise _malformed(file, number, '"winner" must be "first", "second" or "tie"')
    if first == second:
        raise _malformed(file, number, '"first" and "second" must be two conditions')
    replicate = row.get("replicate", 0)
    if not isinstance(replicate, int):
        raise _malformed(file, number, '"replicate" must be a whole number')
    return Verdict(
        question=question,
        criterion=criterion.lower(),
        first=first,
        second=second,
        winner=cast(Won, winner),
        replicate=replicate,
    )


def _recorded(file: Path, rows: Sequence[tuple[int, Mapping[str, Any]]]) -> list[Verdict]:
    if len(rows) % 2:
        raise InputError(
            f"{file} has {len(rows)} judgments: the second half must be of the first half's "
            "questions in the other order"
        )
    half = len(rows) // 2
    first, second = _names(file)
    criteria = list(rows[0][1])
    verdicts: list[Verdict] = []
    for place, (number, row) in enumerate(rows):
        order = (first, second) if place < half else (second, first)
        question = f"{place % half + 1}"
        verdicts += [
            Verdict(question, _criterion(name), *order, _winner(file, number, row, name))
            for name in criteria
        ]
        if strangers := [name for name in row if name not in criteria]:
            raise _malformed(file, number, f'the first line has no "{strangers[0]}"')
    return verdicts


def _winner(file: Path, number: int, row: Mapping[str, Any], criterion: str) -> Won:
    entry = row.get(criterion)
    word = entry.get("Winner") if isinstance(entry, dict) else None
    winner = _RECORDED.get(word.strip().lower()) if isinstance(word, str) else None
    if winner is None:
        reason = f'"{criterion}" must have a "Winner": "Answer 1", "Answer 2" or "Tie"'
        raise _malformed(file, number, reason)
    return winner


def _criterion(name: str) -> str:
    return name.lower().removesuffix(" winner")


def _names(file: Path) -> tuple[str, str]:
    first, between, second = file.stem.partition(_BETWEEN)
    return (first, second) if between and first and second else (f"{file.stem} A", f"{file.stem} B")


def _malformed(file: Path, number: int, reason: str) -> InputError:
    return InputError(f"{file} line {number}: {reason}")
