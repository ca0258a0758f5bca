"""How many model calls some work takes, and how many tokens: what `plan` reckons with.

The constants are measured on what models made: GPT-4o's recorded extraction of *A Christmas
Carol* and microsoft/graphrag's index of it (chunks of 1,200 tokens), the two corpora of the
GraphRAG paper (Edge et al., 2024, section 4 and table 2; 600), and GPT-3.5's extraction of MuSiQue
(110). How many entities, relationships and communities there will be is guessed from the names in
the texts (``names``) for a first build, and learned from the index (``learned``) for more.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from graphrag_pipeline.core.prompting import Message, load_examples, load_prompt
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.llm.configured import model_options, model_prices, prompts_folder
from graphrag_pipeline.llm.embeddings import MAX_PIECES, MAX_REQUEST_BYTES
from graphrag_pipeline.llm.prices import Prices
from graphrag_pipeline.llm.pricing import StagePlan
from graphrag_pipeline.planning.learned import Effect, ExtractedChunk
from graphrag_pipeline.planning.names import RELATIONSHIPS_PER_ENTITY, REPORTS_PER_ENTITY
from graphrag_pipeline.reports.model_writer import report_messages
from graphrag_pipeline.structures.estimate import (
    ENTITIES,
    ENTITY_TOKENS,
    RELATIONSHIP_TOKENS,
    TITLE_TOKENS,
    Chunks,
    Embedded,
    Estimate,
    Growth,
)
from graphrag_pipeline.structures.registry import vector_tables, wanted_structures

_BYTES_PER_TOKEN = 4
# An answer's tokens grow with the square root of its chunk's (paper, 3.1.2, on chunk sizes).
_RECORDS = 17.6
_SHORTEST_ANSWER = 100
_GOES_ON = 0.5
_CHECK_TOKENS = 50
_MERGES = 0.05
_REPORT_CONTEXT = 1200
_REPORT_ANSWER = 950


@dataclass(frozen=True)
class Texts:
    """A number of texts to embed and their bytes; ``known`` are those whose vector is cached."""

    number: int = 0
    n_bytes: int = 0
    known: int = 0


@dataclass(frozen=True)
class Reports:
    """A number of reports to write, and the tokens of what one is made from (None: not known)."""

    number: float = 0.0
    context: float | None = None


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a run has to do.

    ``unasked`` chunks are new to the model; of ``begun`` ones the first answer is in the cache;
    ``answered`` counts all extraction calls that are there. ``grown`` are the chunks that the graph
    lacks. ``merges`` is a count, ``merge_tokens`` what one of them is made from on average (None:
    not known), ``mean_context`` what a report of the index was. ``texts`` are known by now.
    ``indexed`` are the chunks that the graph has, ``rows`` counts those of the structures' tables;
    ``current`` are the names of those that belong to the graph as it is.
    """

    unasked: Chunks
    begun: Chunks
    answered: int
    grown: Chunks
    merges: int
    merge_tokens: float | None
    reports: Reports
    texts: Sequence[Texts]
    indexed: Chunks = field(default_factory=Chunks)
    rows: Mapping[str, int] = field(default_factory=dict)
    current: frozenset[str] = frozenset()
    effect: Effect | None = None
    entities: float = 0.0
    extracted: ExtractedChunk | None = None
    mean_context: float | None = None

    @property
    def changes_graph(self) -> bool:
        """Whether anything is known that structures would have to follow."""
        return bool(self.grown.number or self.merges or self.reports.number)

    @property
    def growth(self) -> Growth:
        """What of it structures reckon with."""
        return Growth(self.indexed, self.grown, self.reports.number, self.rows)


@dataclass(frozen=True)
class Average:
    """Tokens of a stage's call in this index's history, on average."""

    prompt: float
    completion: float


def estimate(settings: Settings, work: Work, history: Mapping[str, Average]) -> Iterator[StagePlan]:
    """Yield what each stage that asks a model will take; stages with no call are left out."""
    prices = model_prices(settings)
    chat = settings.llm.model
    further = [
        structure.estimate(settings, work.growth)
        for structure in wanted_structures(settings)
        if work.changes_graph or structure.name not in work.current
    ]
    if settings.extraction.extractor == "llm":
        calls = _extraction(settings, work)
        yield from _priced(prices, "extractions", chat, *calls, work.answered)
    if settings.graph.summaries == "llm":
        budget = settings.graph.max_description_tokens
        guess = Average(work.merge_tokens or 2.5 * budget, 0.7 * budget)
        new = work.effect.merges if work.effect else work.grown.full * _MERGES
        merges = work.merges + new
        yield from _averaged(prices, "summaries", chat, merges, history, guess)
    if settings.reports.writer == "llm":
        reports = work.reports.number + sum(structure.reports for structure in further)
        mean = _of_a_report(settings, work, history.get("community_reports"))
        yield from _averaged(prices, "community_reports", chat, reports, {}, mean)
    for calls in (calls for structure in further for calls in structure.calls):
        guess = Average(calls.prompt_tokens, calls.completion_tokens)
        yield from _averaged(prices, calls.stage, chat, calls.number, history, guess)
    if settings.embeddings.embedder == "llm":
        names = {table.name for table in vector_tables(settings)}
        calls, tokens, n_cached = _embedding(work, further, names)
        model = settings.llm.embedding_model
        yield from _priced(prices, "embeddings", model, calls, tokens, 0, n_cached)


def assumptions(
    settings: Settings, work: Work, stages: Sequence[StagePlan], history: Mapping[str, Average]
) -> list[str]:
    """Return in words what the estimate rests on."""
    sentences = []
    if work.unasked.number:
        sentences.append(
            "an extraction's answer is as long as GPT-4o's (430 tokens for a chunk of 600); "
            "every second time the model is asked what it missed, it finds as much again"
        )
    if work.grown.number and not work.effect:
        sentences.append(
            f"by their names, new chunks give {work.entities:,.0f} entities, "
            f"{work.entities * RELATIONSHIPS_PER_ENTITY:,.0f} relationships and "
            f"{work.entities * REPORTS_PER_ENTITY:,.0f} communities to report on"
        )
    if any(stage.stage in history for stage in stages):
        sentences.append("length of summaries and reports as in this index's own history")
    sentences.append(
        "cached answers are counted for extractions and embeddings, not for summaries and reports"
    )
    cost = sum(stage.cost or 0.0 for stage in stages)
    if cost:
        date = model_prices(settings).date
        sentences.append(f"prices as of {date}; set llm.prices_file to your own")
    sentences.append(f"calls go to {model_options(settings).endpoint}")
    tokens = sum(stage.prompt_tokens + stage.completion_tokens for stage in stages)
    limits = settings.llm
    if 0 < limits.max_cost < cost or 0 < limits.max_tokens < tokens:
        sentences.append(
            "this is more than llm.max_cost or llm.max_tokens allow: the run would stop there "
            "and keep its paid answers; raise the limit to finish"
        )
    if models := unpriced_models(stages):
        sentences.append(f"the price of {', '.join(models)} is not known: tokens only")
    return sentences


def unpriced_models(stages: Sequence[StagePlan]) -> list[str]:
    """Return the models whose price is not known."""
    return sorted({stage.model for stage in stages if stage.cost is None})


def _extraction(settings: Settings, work: Work) -> tuple[float, float, float]:
    """Return calls, prompt tokens and completion tokens of extracting from chunks."""
    n = work.unasked.number + work.begun.number
    if not n:
        return 0, 0, 0
    size = (work.unasked.tokens + work.begun.tokens) / n
    if work.extracted:
        return _as_before(settings, work, work.extracted, n, size)
    answer = max(_RECORDS * math.sqrt(size), _SHORTEST_ANSWER)
    checks = sum(_GOES_ON**i for i in range(settings.extraction.gleanings))
    again = _GOES_ON * checks
    calls = prompt = completion = 0.0
    for place, (overhead, share) in enumerate(conversations(settings)):
        first = n if place else work.unasked.number
        prompt_tokens, answer_tokens = overhead + size, share * answer
        calls += first + n * (checks + again)
        prompt += first * prompt_tokens + n * (checks + again) * (
            prompt_tokens + answer_tokens + _CHECK_TOKENS
        )
        completion += first * answer_tokens + n * (checks + again * answer_tokens)
    return calls, prompt, completion


def _as_before(
    settings: Settings, work: Work, before: ExtractedChunk, n: int, size: float
) -> tuple[float, float, float]:
    """Return what extracting takes where it has taken so much for a chunk of the index."""
    around = [overhead for overhead, _ in conversations(settings)]
    mean, begun = sum(around) / len(around), work.begun.number
    prompt = n * before.prompt * (mean + size) / (mean + before.size)
    completion = n * before.completion * math.sqrt(size / before.size)
    return (
        n * before.calls - begun,
        prompt - begun * (around[0] + size),
        completion * (1 - begun / n / before.calls),
    )


def conversations(settings: Settings) -> Iterator[tuple[int, float]]:
    """Yield the tokens around a chunk in each conversation, and its share of a full answer.

    On the graph, or on entities and then on relationships between them; then on claims.
    """
    options, folder = settings.extraction, prompts_folder(settings)
    types = ", ".join(options.entity_types)
    examples = load_examples(options.domain, folder)
    around = {"examples": examples, "document": ""}
    if options.passes == 1:
        graph = load_prompt("extract_graph", folder)
        yield _length(graph.render(entity_types=types, **around)), 1.0
    else:
        entities = load_prompt("extract_entities", folder)
        yield _length(entities.render(entity_types=types, **around)), 0.5
        relations = load_prompt("extract_relations", folder)
        title_tokens = ENTITIES * TITLE_TOKENS
        yield _length(relations.render(names="", **around)) + title_tokens, 0.5
    if options.claims:
        claims = load_prompt("extract_claims", folder)
        about = options.claim_description
        prompt = claims.render(entities=types, claim_description=about, document="")
        yield _length(prompt), 1.0


def report_instructions(settings: Settings) -> int:
    """Return the tokens of a report's prompt without its context."""
    prompt = load_prompt("community_report", prompts_folder(settings))
    return _length(report_messages(prompt, settings.reports, ""))


def _report_prompt(settings: Settings, context: float | None) -> float:
    most = min(_REPORT_CONTEXT, settings.reports.max_context_tokens)
    return report_instructions(settings) + (context or most)


def _embedding(
    work: Work, further: Sequence[Estimate], tables: Collection[str]
) -> tuple[float, float, int]:
    """Return calls to make for the vector tables, their tokens, and calls that are cached."""
    reports = Embedded(work.reports.number, work.reports.number * _report_text(work))
    entities, relationships = _elements(work)
    of_tables = {
        "entities": entities,
        "relationships": relationships,
        "community_reports": reports,
    }
    guessed = [
        *(texts for table, texts in of_tables.items() if table in tables),
        *(texts for structure in further for texts in structure.texts),
    ]
    kinds = [Embedded(texts.number, texts.n_bytes / _BYTES_PER_TOKEN) for texts in work.texts]
    parts = [*kinds, *guessed]
    n_cached = sum(math.ceil(texts.known / MAX_PIECES) for texts in work.texts)
    calls = sum(_requests(part) for part in parts)
    return calls, sum(part.tokens for part in parts), n_cached


def _elements(work: Work) -> Iterator[Embedded]:
    """Yield entities and relationships that are new or change."""
    if work.effect:
        for amount in (work.effect.entities, work.effect.relationships):
            yield Embedded(amount.number, amount.tokens)
        return
    relationships = work.entities * RELATIONSHIPS_PER_ENTITY
    yield Embedded(work.entities, work.entities * ENTITY_TOKENS)
    yield Embedded(relationships, relationships * RELATIONSHIP_TOKENS)


def _report_text(work: Work) -> float:
    """Return the tokens of a report."""
    written = work.effect.report_texts if work.effect else None
    return written.tokens / written.number if written and written.number else _REPORT_ANSWER


def _of_a_report(settings: Settings, work: Work, before: Average | None) -> Average:
    """Return the tokens of a report's calls: those of the index's reports, by size of context."""
    prompt = _report_prompt(settings, work.reports.context)
    if before is None:
        return Average(prompt, _REPORT_ANSWER)
    return Average(
        before.prompt * prompt / _report_prompt(settings, work.mean_context), before.completion
    )


def _requests(texts: Embedded) -> int:
    by_size = texts.tokens * _BYTES_PER_TOKEN / MAX_REQUEST_BYTES
    return math.ceil(max(texts.number / MAX_PIECES, by_size))


def _length(messages: Sequence[Message]) -> int:
    return sum(count_tokens([message["content"] for message in messages]))


def _averaged(
    prices: Prices,
    stage: str,
    model: str,
    calls: float,
    history: Mapping[str, Average],
    guess: Average,
) -> Iterator[StagePlan]:
    mean = history.get(stage, guess)
    yield from _priced(prices, stage, model, calls, calls * mean.prompt, calls * mean.completion)


def _priced(
    prices: Prices,
    stage: str,
    model: str,
    calls: float,
    prompt: float,
    completion: float,
    cached: int = 0,
) -> Iterator[StagePlan]:
    number = math.floor(calls + 0.5)
    if number or cached:
        read, output = round(prompt), round(completion)
        cost = prices.cost(model, read, output)
        yield StagePlan(
            stage=stage,
            model=model,
            calls=number,
            cached=cached,
            prompt_tokens=read,
            completion_tokens=output,
            cost=cost,
        )
