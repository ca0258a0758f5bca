"""What the next run would do and cost, told before anything is spent.

Documents are read and cut into chunks in memory, so that changes, chunks and extraction calls are
counted; what depends on the model's answers is estimated, from this index's own history if it has
one. Nothing is written and the model is not asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import polars as pl

from graphrag_pipeline import documents
from graphrag_pipeline.batches import BatchLog, SourceChange
from graphrag_pipeline.chunking import chunk_documents
from graphrag_pipeline.config import Settings
from graphrag_pipeline.extraction.extractors import extraction_version
from graphrag_pipeline.ingest import pending_batches
from graphrag_pipeline.llm.prices import Prices, load_prices
from graphrag_pipeline.models import prompts_folder
from graphrag_pipeline.prompting import Message, load_examples, load_prompt
from graphrag_pipeline.store import IndexStore
from graphrag_pipeline.tokens import count_tokens

_RECORD_TOKENS = 0.75
_SHORTEST_ANSWER = 100
_GOES_ON = 0.5
_MORE_RECORDS = 0.3
_CHECK_TOKENS = 50
_SUMMARIES_PER_CHUNK = 0.05
_REPORTS_PER_CHUNK = 0.4
_REPORT_PROMPT = 3500
_REPORT_ANSWER = 900
_ROWS_PER_CHUNK = 15
_EMBEDDED_TOKENS = 3.0
_TEXTS_PER_REQUEST = 128

_HISTORY = """
SELECT stage, count(*) AS calls, avg(prompt_tokens) AS prompt, avg(completion_tokens) AS completion
FROM llm_calls WHERE NOT cached AND error IS NULL GROUP BY stage
"""
_EXTRACTED = """
SELECT chunk_id FROM extractions
WHERE (version = $version OR extractor = 'import') AND status = 'ok'
UNION SELECT chunk_id FROM staging.extractions WHERE version = $version AND status = 'ok'
"""


@dataclass(frozen=True)
class StagePlan:
    """Model calls of one stage; ``cost`` is in US dollars, None where the price is not known."""

    stage: str
    model: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


@dataclass(frozen=True)
class Plan:
    """What the next run would do.

    ``changes`` counts files by action (add, change, remove); ``chunks`` those of all files that
    would be read, ``to_extract`` those of them whose extraction is still to be made.
    """

    changes: Mapping[str, int]
    pending_batches: int
    documents: int
    unreadable: int
    chunks: int
    to_extract: int
    stages: Sequence[StagePlan]
    assumptions: Sequence[str]

    @property
    def calls(self) -> int:
        """Model calls of all stages."""
        return sum(stage.calls for stage in self.stages)

    @property
    def tokens(self) -> int:
        """Tokens of all stages, read and written."""
        return sum(stage.prompt_tokens + stage.completion_tokens for stage in self.stages)

    @property
    def cost(self) -> float | None:
        """US dollars of all stages, None if the price of some model is not known."""
        costs = [stage.cost for stage in self.stages if stage.cost is not None]
        return sum(costs) if len(costs) == len(self.stages) else None


@dataclass(frozen=True)
class _Average:
    calls: int
    prompt: float
    completion: float


@dataclass(frozen=True)
class _Past:
    chunks: int
    stages: Mapping[str, _Average]
    failed_reports: int

    def of(self, stage: str) -> _Average | None:
        return self.stages.get(stage) if self.chunks else None


def plan_run(settings: Settings, folder: Path) -> Plan:
    """Return what `index` of this folder would do now.

    Raises InputError if the folder cannot be read, ConfigError if the prices cannot.
    """
    log = BatchLog(settings.home_path)
    store = _store(settings)
    new = log.look(folder, max_bytes=int(settings.input.max_file_mb * 1e6))
    pending = pending_batches(store, log, settings) if store else []
    if store is None:
        pending = [batch.key for batch in log.batches()]
    read = documents.read_changes(_to_read(log, new, pending), log, settings)
    texts = pl.DataFrame(
        [(d["id"], d["text"]) for d in read.documents],
        schema={"id": pl.String, "text": pl.String},
        orient="row",
    )
    chunks = chunk_documents(texts, settings.chunks)
    todo = _not_extracted(store, settings, chunks)
    stages = list(_stages(settings, todo, _past(store)))
    actions = ("add", "change", "remove")
    return Plan(
        {action: sum(change.action == action for change in new) for action in actions},
        len(pending),
        len(read.documents),
        len(read.quarantine),
        len(chunks),
        len(todo),
        stages,
        _assumptions(settings, stages, _past(store)) if stages else [],
    )


def _store(settings: Settings) -> IndexStore | None:
    file = settings.home_path / "index.duckdb"
    return IndexStore(file) if file.is_file() else None


def _to_read(
    log: BatchLog, new: Sequence[SourceChange], pending: Sequence[str]
) -> list[SourceChange]:
    """Return the changes whose files the next run would read, the newest of each file."""
    owners = {uri: source.batch for uri, source in log.sources().items()}
    waiting = set(pending)
    found = {
        change.uri: change
        for batch in log.batches()
        if batch.key in waiting
        for change in batch.changes
        if owners.get(change.uri) == batch.key
    }
    found |= {change.uri: change for change in new}
    return [change for change in found.values() if change.action != "remove"]


def _not_extracted(
    store: IndexStore | None, settings: Settings, chunks: pl.DataFrame
) -> pl.DataFrame:
    if store is None:
        return chunks
    with store.read() as con:
        done = con.sql(_EXTRACTED, params={"version": extraction_version(settings)}).pl()
    return chunks.join(done, left_on="id", right_on="chunk_id", how="anti")


def _past(store: IndexStore | None) -> _Past:
    if store is None:
        return _Past(0, {}, 0)
    with store.read() as con:
        rows = con.execute(_HISTORY).fetchall()
        chunks = _number(con, "SELECT count(*) FROM extractions WHERE extractor = 'llm'")
        failed = _number(con, "SELECT count(*) FROM report_failures")
    return _Past(chunks, {stage: _Average(*numbers) for stage, *numbers in rows}, failed)


def _number(con: duckdb.DuckDBPyConnection, query: str) -> int:
    row = con.execute(query).fetchone()
    return int(row[0]) if row else 0


def _stages(settings: Settings, todo: pl.DataFrame, past: _Past) -> Iterator[StagePlan]:
    prices = load_prices(settings.llm.prices_file)
    n, tokens = len(todo), int(todo["n_tokens"].sum() or 0)
    budget = settings.graph.max_description_tokens
    if settings.extraction.extractor == "llm" and n:
        yield _priced(prices, settings.llm.model, "extractions", *_extraction(settings, n, tokens))
    if settings.graph.summaries == "llm" and n:
        guess = _Average(math.ceil(n * _SUMMARIES_PER_CHUNK), 2.5 * budget, 0.7 * budget)
        yield _estimated(prices, settings, "summaries", guess, past, n)
    if settings.reports.writer == "llm" and (n or past.failed_reports):
        prompt = min(_REPORT_PROMPT, settings.reports.max_context_tokens + 700)
        guess = _Average(math.ceil(n * _REPORTS_PER_CHUNK), prompt, _REPORT_ANSWER)
        yield _estimated(prices, settings, "community_reports", guess, past, n, past.failed_reports)
    if settings.embeddings.embedder == "llm" and n:
        calls = math.ceil(n * (1 + _ROWS_PER_CHUNK) / _TEXTS_PER_REQUEST)
        model = settings.llm.embedding_model
        yield _priced(prices, model, "embeddings", calls, tokens * _EMBEDDED_TOKENS, 0)


def _extraction(settings: Settings, n: int, tokens: int) -> tuple[float, float, float]:
    """Return calls, prompt tokens and completion tokens of extracting from ``n`` chunks."""
    given = settings.extraction
    folder = prompts_folder(settings)
    types = ", ".join(given.entity_types)
    graph = load_prompt("extract_graph", folder).render(
        entity_types=types, examples=load_examples(given.domain, folder), document=""
    )
    talks = [_length(graph)]
    if given.claims:
        claims = load_prompt("extract_claims", folder).render(
            entities=types, claim_description=given.claim_description, document=""
        )
        talks.append(_length(claims))
    answer = max(_RECORD_TOKENS * tokens / n, _SHORTEST_ANSWER)
    calls = prompt = completion = 0.0
    for overhead in talks:
        shown = overhead + tokens / n
        goes_on = given.gleanings * _GOES_ON
        calls += 1 + given.gleanings + goes_on
        prompt += shown + (given.gleanings + goes_on) * (shown + answer + _CHECK_TOKENS)
        completion += answer + given.gleanings + goes_on * _MORE_RECORDS * answer
    return n * calls, n * prompt, n * completion


def _length(messages: Sequence[Message]) -> int:
    return sum(count_tokens([message["content"] for message in messages]))


def _estimated(
    prices: Prices,
    settings: Settings,
    stage: str,
    guess: _Average,
    past: _Past,
    n: int,
    more: int = 0,
) -> StagePlan:
    known = past.of(stage)
    if known is not None:
        guess = _Average(math.ceil(known.calls / past.chunks * n), known.prompt, known.completion)
    calls = guess.calls + more
    return _priced(
        prices,
        settings.llm.model,
        stage,
        calls,
        calls * guess.prompt,
        calls * guess.completion,
    )


def _priced(
    prices: Prices, model: str, stage: str, calls: float, prompt: float, completion: float
) -> StagePlan:
    read, written = round(prompt), round(completion)
    return StagePlan(
        stage, model, math.ceil(calls), read, written, prices.cost(model, read, written)
    )


def _assumptions(settings: Settings, stages: Sequence[StagePlan], past: _Past) -> list[str]:
    prices = load_prices(settings.llm.prices_file)
    said = [
        f"an extraction writes {_RECORD_TOKENS:.0%} as many tokens as its chunk has, and half of "
        "the gleanings go on",
        "summaries and reports by this index's own history"
        if past.of("community_reports")
        else f"{_REPORTS_PER_CHUNK} reports and {_SUMMARIES_PER_CHUNK} summaries for each chunk: "
        "the first build has no history",
        f"embeddings take {_EMBEDDED_TOKENS:g} times the tokens of the chunks",
        "answers that are in the cache already cost nothing and are not deducted",
        f"prices as of {prices.date}; set llm.prices_file to your own",
    ]
    unknown = sorted({stage.model for stage in stages if stage.cost is None})
    if unknown:
        said.append(f"the price of {', '.join(unknown)} is not known: tokens only")
    return said
