"""Slices of a level's reports: contexts that workers have a model write on."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from pydantic import TypeAdapter

from graphrag_cluster.pieces import MakePieces, Piece
from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.prompting import load_prompt
from graphrag_pipeline.core.settings import Settings, fingerprint
from graphrag_pipeline.llm.configured import model_options, prompts_folder
from graphrag_pipeline.llm.errors import ModelError
from graphrag_pipeline.llm.requests import ChatRequest, chat_key
from graphrag_pipeline.reports.model_writer import ROLE, STAGE, ModelWriter, report_messages
from graphrag_pipeline.reports.parsing import report_schema
from graphrag_pipeline.reports.rendered import Rendered
from graphrag_pipeline.reports.text import ReportText, WrittenReports

log = logging.getLogger("graphrag_pipeline")

_ROUNDS = 2
"""How often a worker asks as many calls as it may make at once, for a slice of reports."""


@dataclass(frozen=True)
class ReportOrder:
    """Contexts to write on; ``asked_by`` is all that decides what is asked besides them."""

    asked_by: str
    contexts: tuple[Rendered, ...]


_ORDER = TypeAdapter(ReportOrder)
_WRITTEN = TypeAdapter(WrittenReports)


class SpreadWriter(ModelWriter):
    """A writer that has workers write what is more than a slice, and writes what they left."""

    def __init__(self, writer: ModelWriter, make: MakePieces) -> None:
        super().__init__(writer.settings)
        self._make = make

    def write_on(self, contexts: Sequence[Rendered]) -> WrittenReports:
        """Write a report on each of these contexts."""
        size = _ROUNDS * self.settings.llm_for(ROLE).concurrency
        if len(contexts) <= size:
            return super().write_on(contexts)
        reports: dict[str, ReportText] = {}
        failures: dict[str, str] = {}
        for some in self._make(report_pieces(asked_by(self), contexts, size)):
            reports |= some.reports
            failures |= some.failures
        left = [c for c in contexts if c.community_id not in {*reports, *failures}]
        rest = super().write_on(left) if left else WrittenReports()
        return WrittenReports({**reports, **rest.reports}, {**failures, **rest.failures})


def asked_by(writer: ModelWriter) -> str:
    """Return what decides the requests besides the contexts: who has another asks otherwise."""
    settings = writer.settings
    options = model_options(settings, ROLE)
    prompt = load_prompt("community_report", prompts_folder(settings))
    messages = report_messages(prompt, settings.reports, "")
    request = ChatRequest(
        messages, STAGE, json_schema=report_schema(settings.reports.written_findings)
    )
    return fingerprint(writer.version, chat_key(request, options).hex())


def write_slice(settings: Settings, order: bytes) -> tuple[bytes, int]:
    """Return the reports that are ordered, or why some could not be written, and their number.

    They are none where no further call can succeed: what was answered until then is kept, and the
    coordinator, which goes on from there, meets the error itself. Raises ConfigError where this
    machine would ask the model something else.
    """
    given, writer = read_order(order), ModelWriter(settings)
    if asked_by(writer) != given.asked_by:
        raise ConfigError(
            "this worker would ask the model otherwise for reports than the coordinator: give both "
            "the same settings and prompts, and the same version of the program"
        )
    try:
        written = writer.write_on(given.contexts)
    except ModelError as error:
        log.warning("a slice of reports is left to the coordinator: %s", error)
        written = WrittenReports()
    return as_bytes(written), len(written.reports)


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
