"""The last call of a method: the context of a retrieval, and the question; or that alone."""

from __future__ import annotations

from collections.abc import Sequence

from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.writing.asking import Final
from graphrag_pipeline.query.writing.references import Shown, shown_to_model


def from_records(records: Sequence[Record], prompt: str) -> Final | None:
    """Return the call that answers from records, or None where there are none."""
    if not records:
        return None
    values = {"context": shown_to_model(records)}
    return Final("answer", prompt, values, Shown(records), tuple(records))


def from_nothing(prompt: str, *, may_guess: bool = False) -> Final:
    """Return the call that answers without an index."""
    return Final("answer", prompt, {}, Shown(), (), may_guess)
