"""Community reports written by a model (paper, 3.1.5 and E.2)."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from graphrag_pipeline.core import progress
from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.prompting import Message, Prompt, load_prompt, prompt_version
from graphrag_pipeline.core.settings import ReportSettings, Settings, fingerprint
from graphrag_pipeline.core.spreading import maker_of
from graphrag_pipeline.core.tokens import encoding_for
from graphrag_pipeline.llm.cache import request_json, request_key
from graphrag_pipeline.llm.client import ModelClient
from graphrag_pipeline.llm.configured import (
    answered_by,
    model_options,
    prompts_folder,
    with_model,
)
from graphrag_pipeline.llm.errors import ModelError
from graphrag_pipeline.llm.purpose import making
from graphrag_pipeline.llm.requests import ChatRequest, chat_body
from graphrag_pipeline.llm.running import work_through
from graphrag_pipeline.reports.contexts import Context
from graphrag_pipeline.reports.evidence import Evidence
from graphrag_pipeline.reports.extractive import ExtractiveWriter
from graphrag_pipeline.reports.parsing import REPORT_PARSING_VERSION, REPORT_SCHEMA, parse_report
from graphrag_pipeline.reports.rendered import Rendered, render
from graphrag_pipeline.reports.slices import REPORTS, as_bytes, read_order, report_pieces
from graphrag_pipeline.reports.text import ReportText, WrittenReports
from graphrag_pipeline.store.hierarchy import GRAPH, Hierarchy
from graphrag_pipeline.store.index_store import IndexStore

log = logging.getLogger("graphrag_pipeline")

STAGE = "community_reports"
_PROMPTS = ("community_report", "report_retry")
_RETRIES = 2
_ROUNDS = 2
"""How often a worker asks as many calls as it may make at once, for a slice of reports."""


class ModelWriter:
    """Writes reports by the configured model; a report that cannot be read is asked for again."""

    is_paid = True
    reads_claims = True
    cites_places = False

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._folder = prompts_folder(settings)
        self.name = settings.llm.model

    @property
    def version(self) -> str:
        """What decides a report besides its context: model, prompts, settings."""
        options = self._settings
        return fingerprint(
            REPORT_PARSING_VERSION,
            *answered_by(options.llm),
            options.reports.max_words,
            options.reports.written_findings,
            prompt_version(*_PROMPTS, folder=self._folder),
        )

    @property
    def asks(self) -> str:
        """What decides the requests besides the contexts: who has another asks something else."""
        options = model_options(self._settings)
        prompt = load_prompt("community_report", self._folder)
        messages = report_messages(prompt, self._settings.reports, "")
        request = ChatRequest(messages, STAGE, json_schema=REPORT_SCHEMA)
        body = request_json(chat_body(request, options))
        return fingerprint(self.version, request_key(options.endpoint, body).hex())

    def write(
        self,
        store: IndexStore,
        contexts: Sequence[Context],
        hierarchy: Hierarchy = GRAPH,
        evidence: Evidence | None = None,
    ) -> WrittenReports:
        """Write a report for each context.

        Raises the model's error when no further call can succeed; what was answered until then is
        in the cache.
        """
        if not contexts:
            return WrittenReports({}, {})
        given = self._settings.reports
        # Nothing is asked on an empty context: what rules say of such a community is enough.
        empty = [context for context in contexts if not context.elements]
        by_rule = WrittenReports({}, {})
        if empty:
            by_rule = ExtractiveWriter(given).write(store, empty, hierarchy)
            contexts = [context for context in contexts if context.elements]
        if not contexts:
            return by_rule
        encoding = encoding_for(self.name)
        texts = render(store, contexts, hierarchy, given.max_context_tokens, encoding)
        written = self._spread(texts)
        return WrittenReports({**by_rule.reports, **written.reports}, written.failures)

    def _spread(self, contexts: Sequence[Rendered]) -> WrittenReports:
        """Write here, or have workers write what is more than a slice, and here what they left."""
        size, make = _ROUNDS * self._settings.llm.concurrency, maker_of(REPORTS)
        if make is None or len(contexts) <= size:
            return self.write_on(contexts)
        reports: dict[str, ReportText] = {}
        failures: dict[str, str] = {}
        for some in make(report_pieces(self.asks, contexts, size)):
            reports |= some.reports
            failures |= some.failures
        left = [c for c in contexts if c.community_id not in {*reports, *failures}]
        rest = self.write_on(left) if left else WrittenReports()
        return WrittenReports({**reports, **rest.reports}, {**failures, **rest.failures})

    def write_on(self, contexts: Sequence[Rendered]) -> WrittenReports:
        """Write a report on each of these contexts, as :meth:`write` does."""
        return with_model(self._settings, lambda client: self._write_all(client, contexts))

    async def _write_all(self, client: ModelClient, contexts: Sequence[Rendered]) -> WrittenReports:
        reports: dict[str, ReportText] = {}
        failures: dict[str, str] = {}

        ask = load_prompt("community_report", self._folder)
        ask_again = load_prompt("report_retry", self._folder)

        async def write_report(context: Rendered) -> None:
            try:
                reports[context.community_id] = await self._report(client, context, ask, ask_again)
            except ModelError as error:
                if error.stops_everything:
                    raise
                failures[context.community_id] = str(error)
            progress.report("report calls", len(reports) + len(failures), len(contexts))

        await work_through(contexts, write_report, 2 * client.options.concurrency)
        return WrittenReports(reports, failures)

    async def _report(
        self, client: ModelClient, context: Rendered, ask: Prompt, ask_again: Prompt
    ) -> ReportText:
        with making(context.hash):
            return await self._read(client, context, ask, ask_again)

    async def _read(
        self, client: ModelClient, context: Rendered, ask: Prompt, ask_again: Prompt
    ) -> ReportText:
        allowed = {section: frozenset(some) for section, some in context.numbers.items()}
        return await client.read(
            report_messages(ask, self._settings.reports, context.text),
            lambda text: parse_report(text, allowed).to_text(),
            stage=STAGE,
            json_schema=REPORT_SCHEMA,
            again=lambda error: ask_again.render(error=error),
            retries=_RETRIES,
        )


def report_messages(prompt: Prompt, settings: ReportSettings, context: str) -> list[Message]:
    """Return what is asked for a report on a context."""
    return prompt.render(
        context=context,
        max_words=str(settings.max_words),
        max_findings=str(settings.written_findings),
    )


def write_slice(settings: Settings, order: bytes) -> tuple[bytes, int]:
    """Return the reports that are ordered, or why some could not be written, and their number.

    They are none where no further call can succeed: what was answered until then is kept, and the
    coordinator, which goes on from there, meets the error itself. Raises ConfigError where this
    machine would ask the model something else.
    """
    given, writer = read_order(order), ModelWriter(settings)
    if writer.asks != given.asked_by:
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


def report_writer(settings: Settings) -> ModelWriter | None:
    """Return the model's report writer, or None where reports are extractive."""
    return ModelWriter(settings) if settings.reports.writer == "llm" else None
