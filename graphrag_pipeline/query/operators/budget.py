"""Fitting records into a number of tokens."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.query.results import Kind, Record, render_header, render_row
from graphrag_pipeline.query.trace import operator

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

_FEWEST_CHARS = 20
_MOST_IN_A_GROUP = 1000
_ROWS_REMEMBERED = 50_000


@operator
def fill(
    index: Release,
    records: Sequence[Record],
    budget: int,
    *,
    shorter: Callable[[Record], Record] | None = None,
) -> list[Record]:
    """Return the first records whose rows, with their headers, fit in ``budget`` tokens.

    A record that does not fit is tried in its ``shorter`` form; where neither fits, filling ends.
    The first record is cut rather than left out, so that a budget too small for it still shows
    what was found. ``n_tokens`` of the records returned are set; their sum and the header's
    tokens never exceed the budget.
    """
    encoding = index.encoding
    fitting: list[Record] = []
    budget_left = budget - _header_tokens(records, encoding)
    for record in records:
        forms = [record, shorter(record)] if shorter else [record]
        form = _first_fitting(index, forms, budget_left)
        if form is None and not fitting:
            form = _cut(index, forms[-1], budget_left)
        if form is None:
            break
        fitting.append(form)
        budget_left -= form.n_tokens
    if records:
        index.trace.note_filling(any_fit=bool(fitting))
    return fitting


def in_proportion(total: int, parts: Sequence[int]) -> list[int]:
    """Return budgets as they are where they fit in ``total`` tokens, else cut in proportion."""
    whole = sum(parts)
    return [part if whole <= total else part * total // whole for part in parts]


def groups(index: Release, records: Sequence[Record], budget: int) -> list[list[Record]]:
    """Cut records of one kind, in their order, into groups that each fit in ``budget`` tokens.

    Raises InputError when the budget is too small for any of one record.
    """
    parts: list[list[Record]] = []
    begin = 0
    while begin < len(records):
        part = fill(index, records[begin : begin + _MOST_IN_A_GROUP], budget)
        if not part:
            raise InputError(f"max_context_tokens = {budget}: too few for one record")
        parts.append(part)
        begin += len(part)
    return parts


def measured(index: Release, records: Sequence[Record]) -> list[Record]:
    """Return records with ``n_tokens`` set."""
    return [_measured(index, record) for record in records]


def tokens_of(index: Release, records: Sequence[Record]) -> int:
    """Return the tokens that filled records take in the context."""
    header = _header_tokens(records, index.encoding)
    return header + sum(record.n_tokens for record in records)


def summarised(report: Record) -> Record:
    """Return a report reduced to its summary."""
    return replace(report, text=report.attributes["summary"])


def _header_tokens(records: Sequence[Record], encoding: str) -> int:
    kinds = {record.kind for record in records}
    return sum(_header(kind, encoding) for kind in kinds)


@functools.cache
def _header(kind: Kind, encoding: str) -> int:
    return count_tokens([render_header(kind)], encoding)[0]


def _measured(index: Release, record: Record) -> Record:
    """Return a record with ``n_tokens`` set: what stands in a release, or part of it, by its text.

    The most frequent entities and reports come with many questions.
    """
    row_tokens, key = index.row_tokens, (record.kind, record.id, record.text)
    n_tokens = row_tokens.get(key)
    if n_tokens is None:
        n_tokens = count_tokens([render_row(record)], index.encoding)[0]
        if len(row_tokens) >= _ROWS_REMEMBERED:
            row_tokens.clear()
        row_tokens[key] = n_tokens
    return record.with_tokens(n_tokens)


def _first_fitting(index: Release, forms: Iterable[Record], budget: int) -> Record | None:
    sized = (_measured(index, form) for form in forms)
    return next((form for form in sized if form.n_tokens <= budget), None)


def _cut(index: Release, record: Record, budget: int) -> Record | None:
    text, sized = record.text, _measured(index, record)
    while sized.n_tokens > budget:
        text = text[: int(len(text) * min(0.9, max(0, budget) / sized.n_tokens))].rstrip()
        if len(text) < _FEWEST_CHARS:
            return None
        sized = _measured(index, _shortened(record, text))
    return sized


def _shortened(record: Record, text: str) -> Record:
    """Return a record with the beginning of its text, and its span cut to match."""
    attributes = dict(record.attributes)
    if record.kind == "chunk":
        attributes["end_char"] = attributes["start_char"] + len(text)
    return replace(record, text=f"{text}…", attributes=attributes)
