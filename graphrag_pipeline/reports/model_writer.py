"""Community reports written by a model (paper, 3.1.5 and E.2)."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import duckdb
import polars as pl

from graphrag_pipeline.core import progress
from graphrag_pipeline.core.prompting import Message, Prompt, load_prompt, prompt_version
from graphrag_pipeline.core.settings import ReportSettings, Settings, fingerprint
from graphrag_pipeline.core.tokens import count_tokens, encoding_for
from graphrag_pipeline.llm.client import ModelClient
from graphrag_pipeline.llm.configured import answered_by, prompts_folder, with_model
from graphrag_pipeline.llm.errors import ModelError
from graphrag_pipeline.llm.purpose import making
from graphrag_pipeline.llm.running import work_through
from graphrag_pipeline.reports.contexts import Context
from graphrag_pipeline.reports.evidence import Evidence
from graphrag_pipeline.reports.extractive import ExtractiveWriter
from graphrag_pipeline.reports.parsing import REPORT_PARSING_VERSION, REPORT_SCHEMA, parse_report
from graphrag_pipeline.reports.references import check_references
from graphrag_pipeline.reports.text import ReportText, WrittenReports
from graphrag_pipeline.store.frames import put_rows
from graphrag_pipeline.store.hierarchy import GRAPH, Hierarchy
from graphrag_pipeline.store.index_store import IndexStore

STAGE = "community_reports"
_PROMPTS = ("community_report", "report_retry")
_RETRIES = 2

_ROWS = {
    "Reports": """SELECT c.id, c.human_readable_id, r.title, r.full_content
                  FROM {communities} c JOIN {reports} r ON r.community_id = c.id
                  SEMI JOIN shown ON shown.id = c.id""",
    "Entities": """SELECT id, human_readable_id, title, type, description FROM {entities}
                   SEMI JOIN shown USING (id)""",
    "Claims": """SELECT id, human_readable_id, subject, object, type, status, start_date,
                        end_date, description FROM resolved_claims
                 SEMI JOIN shown USING (id)""",
    "Relationships": """SELECT id, human_readable_id, source, target, description
                        FROM {relationships} SEMI JOIN shown USING (id)""",
}
_HEADERS = {
    "Reports": ("id", "title", "report"),
    "Entities": ("id", "entity", "type", "description"),
    "Claims": (
        "id", "subject", "object", "type", "status", "start_date", "end_date", "description",
    ),
    "Relationships": ("id", "source", "target", "description"),
}  # fmt: skip

_DROPPED_FIRST = ("Claims", "Relationships", "Entities", "Reports")
_SHORTEST_CUT = 20

Row = tuple[object, ...]


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
        rows, encoding = _read_rows(store, contexts, hierarchy), encoding_for(self.name)
        texts = [_Rendered(each, rows, given.max_context_tokens, encoding) for each in contexts]
        written = with_model(self._settings, lambda client: self._write_all(client, texts))
        return WrittenReports({**by_rule.reports, **written.reports}, written.failures)

    async def _write_all(
        self, client: ModelClient, contexts: Sequence[_Rendered]
    ) -> WrittenReports:
        reports: dict[str, ReportText] = {}
        failures: dict[str, str] = {}

        ask = load_prompt("community_report", self._folder)
        ask_again = load_prompt("report_retry", self._folder)

        async def write_report(context: _Rendered) -> None:
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
        self, client: ModelClient, context: _Rendered, ask: Prompt, ask_again: Prompt
    ) -> ReportText:
        with making(context.hash):
            return await self._read(client, context, ask, ask_again)

    async def _read(
        self, client: ModelClient, context: _Rendered, ask: Prompt, ask_again: Prompt
    ) -> ReportText:
        return await client.read(
            report_messages(ask, self._settings.reports, context.text),
            lambda text: parse_report(text, context.allowed).to_text(),
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


class _Rendered:
    """A context as text, of so many tokens at most, and the ids that may be referred to."""

    def __init__(
        self,
        context: Context,
        rows: Mapping[str, Mapping[str, Sequence[Row]]],
        budget: int,
        encoding: str,
    ) -> None:
        self.community_id, self.hash = context.community_id, context.hash
        ids = {
            "Reports": context.sub_reports,
            "Entities": context.entities,
            "Claims": context.claims,
            "Relationships": context.relationships,
        }
        rows_of = {
            section: [row for id in ids[section] for row in rows[section].get(id, ())]
            for section in _ROWS
        }
        allowed = _numbers(rows_of)
        rows_of["Reports"] = [
            (number, title, check_references(str(report), allowed).text)
            for number, title, report in rows_of["Reports"]
        ]
        self.text = fitted(rows_of, budget, encoding)
        self.allowed = _numbers(rows_of)


def _numbers(rows_of: Mapping[str, Sequence[Row]]) -> dict[str, set[int]]:
    """Return what can be referred to: the numbers of the rows, by section."""
    return {name: {int(str(row[0])) for row in rows_of[name]} for name in _ROWS}


def fitted(rows_of: dict[str, list[Row]], budget: int, encoding: str) -> str:
    """Write rows out; those that matter least are dropped, and long texts cut, until it fits.

    What they take was reckoned from their parts: written out, it may be a little more.
    """
    text = _written(rows_of)
    while (over := count_tokens([text], encoding)[0] - budget) > 0:
        section = next((name for name in _DROPPED_FIRST if len(rows_of[name]) > 1), None)
        if section is not None:
            while over > 0 and len(rows_of[section]) > 1:
                over -= count_tokens([_csv((), [rows_of[section].pop()])], encoding)[0]
        elif not _cut_longest(rows_of, over / (over + budget)):
            break
        text = _written(rows_of)
    return text


def _cut_longest(rows_of: dict[str, list[Row]], share: float) -> bool:
    """Cut a share of the longest text of all rows; say if there was one to cut."""
    cells = [
        (len(cell), name, place, column)
        for name, rows in rows_of.items()
        for place, row in enumerate(rows)
        for column, cell in enumerate(row)
        if isinstance(cell, str)
    ]
    length, name, place, column = max(cells, default=(0, "", 0, 0))
    if length < _SHORTEST_CUT:
        return False
    row = rows_of[name][place]
    cut = str(row[column])[: min(length - 1, int(length * (1 - share)))]
    rows_of[name][place] = (*row[:column], f"{cut.rstrip()}…", *row[column + 1 :])
    return True


def _written(rows_of: Mapping[str, Sequence[Row]]) -> str:
    return "\n".join(
        f"-----{name}-----\n{_csv(_HEADERS[name], rows_of[name])}"
        for name in _ROWS
        if rows_of[name]
    )


def _read_rows(
    store: IndexStore, contexts: Iterable[Context], hierarchy: Hierarchy
) -> Mapping[str, Mapping[str, Sequence[Row]]]:
    ids = {
        id
        for context in contexts
        for id in (*context.sub_reports, *(element.id for element in context.elements))
    }
    with store.read() as con:
        put_rows(con, "shown", pl.DataFrame({"id": sorted(ids)}, schema={"id": pl.String}))
        return {section: _grouped(con, hierarchy.sql(query)) for section, query in _ROWS.items()}


def _grouped(con: duckdb.DuckDBPyConnection, query: str) -> Mapping[str, Sequence[Row]]:
    rows_of: dict[str, list[Row]] = defaultdict(list)
    for key, *row in con.execute(query).fetchall():
        rows_of[key].append(tuple(row))
    return rows_of


def _csv(header: Sequence[str], rows: Iterable[Row]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if header:
        writer.writerow(header)
    writer.writerows([["" if v is None else v for v in row] for row in rows])
    return text.getvalue()


def report_writer(settings: Settings) -> ModelWriter | None:
    """Return the model's report writer, or None where reports are extractive."""
    return ModelWriter(settings) if settings.reports.writer == "llm" else None
