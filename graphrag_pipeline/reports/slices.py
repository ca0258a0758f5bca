"""Slices of a level's reports: contexts that workers have a model write on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from pydantic import TypeAdapter

from graphrag_pipeline.core.spreading import Piece
from graphrag_pipeline.reports.rendered import Rendered
from graphrag_pipeline.reports.text import WrittenReports

REPORTS = "report"
"""The kind of these slices."""


@dataclass(frozen=True)
class ReportOrder:
    """Contexts to write on; ``asked_by`` is all that decides what is asked besides them."""

    asked_by: str
    contexts: tuple[Rendered, ...]


_ORDER = TypeAdapter(ReportOrder)
_WRITTEN = TypeAdapter(WrittenReports)


def report_pieces(
    asked_by: str, contexts: Sequence[Rendered], size: int
) -> Iterator[Piece[WrittenReports]]:
    """Yield orders of so many reports."""
    for start in range(0, len(contexts), size):
        some = tuple(contexts[start : start + size])
        order = _ORDER.dump_json(ReportOrder(asked_by, some))
        ids = frozenset(context.community_id for context in some)
        yield Piece(order, partial(_read, ids))


def read_order(data: bytes) -> ReportOrder:
    """Return what is ordered. Raises ValueError where that cannot be read."""
    return _ORDER.validate_json(data)


def as_bytes(written: WrittenReports) -> bytes:
    """Return what was written on a slice as it is handed over."""
    return _WRITTEN.dump_json(written)


def _read(ids: frozenset[str], data: bytes) -> WrittenReports:
    written = _WRITTEN.validate_json(data)
    if not {*written.reports, *written.failures} <= ids:
        raise ValueError("it has the reports on other communities than were ordered")
    return written
