"""Community reports written by a model (paper, 3.1.5 and E.2)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from graphrag_pipeline.core import progress
from graphrag_pipeline.core.prompting import Message, Prompt, load_prompt, prompt_version
from graphrag_pipeline.core.settings import ReportSettings, Role, Settings, fingerprint
from graphrag_pipeline.core.spreading import spread
from graphrag_pipeline.core.tokens import encoding_for
from graphrag_pipeline.llm.answer_purposes import making
from graphrag_pipeline.llm.configured import (
    answered_by,
    model_of,
    prompts_folder,
    with_model,
)
from graphrag_pipeline.llm.errors import ModelError
from graphrag_pipeline.llm.running import ask_each
from graphrag_pipeline.llm.speed import foretell
from graphrag_pipeline.reports.contexts import Context
from graphrag_pipeline.reports.evidence import Evidence
from graphrag_pipeline.reports.extractive import ExtractiveWriter
from graphrag_pipeline.reports.parsing import REPORT_PARSING_VERSION, parse_report, report_schema
from graphrag_pipeline.reports.rendered import Rendered, render
from graphrag_pipeline.reports.text import ReportText, ReportWriter, WrittenReports
from graphrag_pipeline.store.hierarchy import GRAPH, Hierarchy
from graphrag_pipeline.store.index_store import IndexStore

if TYPE_CHECKING:
    from graphrag_pipeline.llm.client import ModelClient

STAGE = "community_reports"
ROLE: Role = "reports"
BAR = "report calls"
REPORTS = "report"
"""The kind of work that others may stand in for: to write on contexts."""
_PROMPTS = ("community_report", "report_retry")
_RETRIES = 2


class ModelWriter:
    """Writes reports by the configured model; a report that cannot be read is asked for again."""

    is_model = True

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._folder = prompts_folder(settings)
        self.name = model_of(settings, ROLE)

    @property
    def version(self) -> str:
        """A hash of what decides a report besides its context: model, prompts, settings."""
        options = self.settings
        return fingerprint(
            REPORT_PARSING_VERSION,
            *answered_by(options.llm_for(ROLE)),
            options.reports.max_words,
            options.reports.written_findings,
            prompt_version(*_PROMPTS, folder=self._folder),
        )

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
            return WrittenReports()
        given = self.settings.reports
        # Nothing is asked on an empty context: what rules say of such a community is enough.
        empty = [context for context in contexts if not context.elements]
        by_rule = WrittenReports()
        if empty:
            by_rule = ExtractiveWriter(given).write(store, empty, hierarchy)
            contexts = [context for context in contexts if context.elements]
        if not contexts:
            return by_rule
        encoding = encoding_for(self.name)
        texts = render(store, contexts, hierarchy, given.max_context_tokens, encoding)
        written = spread(REPORTS, self).write_on(texts)
        return WrittenReports({**by_rule.reports, **written.reports}, written.failures)

    def write_on(self, contexts: Sequence[Rendered]) -> WrittenReports:
        """Write a report on each of these contexts, as :meth:`write` does."""
        foretell(self.settings, ROLE, STAGE, BAR, len(contexts), len(contexts))
        return with_model(self.settings, lambda client: self._write_all(client, contexts), ROLE)

    async def _write_all(self, client: ModelClient, contexts: Sequence[Rendered]) -> WrittenReports:
        ask = load_prompt("community_report", self._folder)
        ask_again = load_prompt("report_retry", self._folder)

        async def write_report(context: Rendered) -> ReportText:
            with making(context.hash):
                return await self._read(client, context, ask, ask_again)

        written = await ask_each(client, contexts, write_report, partial(progress.report, BAR))
        reports: dict[str, ReportText] = {}
        failures: dict[str, str] = {}
        for context, report in zip(contexts, written, strict=True):
            if isinstance(report, ModelError):
                failures[context.community_id] = str(report)
            else:
                reports[context.community_id] = report
        return WrittenReports(reports, failures)

    async def _read(
        self, client: ModelClient, context: Rendered, ask: Prompt, ask_again: Prompt
    ) -> ReportText:
        allowed = {section: frozenset(some) for section, some in context.numbers.items()}
        return await client.read(
            report_messages(ask, self.settings.reports, context.text),
            lambda text: parse_report(text, allowed),
            stage=STAGE,
            json_schema=report_schema(self.settings.reports.written_findings),
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


def report_writer(settings: Settings) -> ReportWriter:
    """Return who writes the reports, as configured."""
    by_model = settings.reports.writer == "llm"
    return ModelWriter(settings) if by_model else ExtractiveWriter(settings.reports)
