"""How many model calls some work takes, and how many tokens: what `plan` reckons with.

The constants are measured on what models made: GPT-4o's recorded extraction of *A Christmas
Carol* and microsoft/graphrag's index of it (chunks of 1,200 tokens), the two corpora of the
GraphRAG paper (Edge et al., 2024, section 4 and table 2; 600), and GPT-3.5's extraction of MuSiQue
(110). Entities, relationships and communities are about as many for each chunk in all five,
whatever its size: 5 to 13, 6 to 23, and 1.4 to 2.9.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from graphrag_pipeline.core.prompting import Message, load_examples, load_prompt
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.llm.configured import prompts_folder
from graphrag_pipeline.llm.embeddings import MAX_PIECES, MAX_REQUEST_BYTES
from graphrag_pipeline.llm.prices import Prices, load_prices
from graphrag_pipeline.llm.pricing import StagePlan

REPORTS_PER_CHUNK = 2
"""Communities of two or more entities for each chunk, on all levels together."""
_SMALL_CHUNK = 100
_BYTES_PER_TOKEN = 4
# An answer's tokens grow with the square root of its chunk's (paper, 3.1.2, on chunk sizes).
_RECORDS = 17.6
_SHORTEST_ANSWER = 100
_GOES_ON = 0.5
_CHECK_TOKENS = 50
_MERGES = 0.05
_ENTITIES, _ENTITY_TOKENS = 7, 60
_RELATIONSHIPS, _RELATIONSHIP_TOKENS = 12, 36
_TITLE_TOKENS = 4
# Of 1,669 podcast transcripts: summaries for each full cluster's tokens of text, how full clusters
# are, and summaries that a new chunk changes.
_TREE_NODES, _TREE_FILLED, _TREE_TOUCHED = 3.5, 0.5, 6
# The same for HiRAG's clusters of entities and the tokens of these; and tokens of an answer.
_CLUSTERS, _CLUSTER_FILLED, _CLUSTERS_TOUCHED, _CLUSTER_ANSWER = 4, 0.5, 15, 600
# Attributed communities for each entity: 1,670 for 7,269, 103 for 529.
_ATTRIBUTED = 0.2
_REPORT_CONTEXT = 1200
_REPORT_ANSWER = 950


@dataclass(frozen=True)
class Chunks:
    """A number of chunks and their tokens."""

    number: int = 0
    tokens: int = 0

    @property
    def full(self) -> float:
        """The number of chunks, where those that say next to nothing count as parts of one."""
        return min(self.number, self.tokens / _SMALL_CHUNK)

    def times(self, factor: float) -> Chunks:
        """Return so many times these chunks."""
        return Chunks(round(self.number * factor), round(self.tokens * factor))


@dataclass(frozen=True)
class Texts:
    """A number of texts to embed and their bytes; ``known`` are those whose vector is cached."""

    number: int = 0
    n_bytes: int = 0
    known: int = 0


@dataclass(frozen=True)
class Work:
    """What a run has to do.

    ``unasked`` chunks are new to the model; of ``begun`` ones the first answer is in the cache;
    ``answered`` counts all extraction calls that are there. ``grown`` are the chunks that the graph
    lacks. ``merges`` and ``reports`` are counts, ``merge_tokens`` and ``report_tokens`` what one of
    them is made from on average (None: not known). ``texts`` are those that are known by now.
    ``indexed`` are the chunks that the graph has, ``tree_nodes`` the summaries of the RAPTOR tree,
    ``clusters`` those of clusters in HiRAG's layers, ``attributed`` the attributed communities.
    """

    unasked: Chunks
    begun: Chunks
    answered: int
    grown: Chunks
    merges: int
    merge_tokens: float | None
    reports: float
    report_tokens: float | None
    texts: Sequence[Texts]
    indexed: Chunks = Chunks()
    tree_nodes: int = 0
    clusters: int = 0
    attributed: int = 0


@dataclass(frozen=True)
class Average:
    """Tokens of a stage's call in this index's history, on average."""

    prompt: float
    completion: float


def estimate(settings: Settings, work: Work, history: Mapping[str, Average]) -> Iterator[StagePlan]:
    """Yield what each stage that asks a model will take; stages with no call are left out."""
    prices = load_prices(settings.llm.prices_file)
    chat = settings.llm.model
    if settings.extraction.extractor == "llm":
        calls = _extraction(settings, work)
        yield from _priced(prices, "extractions", chat, *calls, work.answered)
    if settings.graph.summaries == "llm":
        budget = settings.graph.max_description_tokens
        guess = Average(work.merge_tokens or 2.5 * budget, 0.7 * budget)
        merges = work.merges + math.ceil(work.grown.full * _MERGES)
        yield from _averaged(prices, "summaries", chat, merges, history, guess)
    if settings.reports.writer == "llm":
        guess = Average(_report_prompt(settings, work.report_tokens), _REPORT_ANSWER)
        reports = work.reports + _further_reports(settings, work)
        yield from _averaged(prices, "community_reports", chat, reports, history, guess)
    if settings.hierarchies.hirag and settings.reports.writer == "llm":
        read = _CLUSTER_FILLED * settings.reports.max_context_tokens
        clusters, guess = _clusters(settings, work), Average(read, _CLUSTER_ANSWER)
        yield from _averaged(prices, "hirag_clusters", chat, clusters, history, guess)
    if settings.hierarchies.raptor and settings.reports.writer == "llm":
        given = settings.hierarchies
        guess = Average(_TREE_FILLED * given.raptor_cluster_tokens, given.summary_tokens)
        nodes = _tree_nodes(settings, work)
        yield from _averaged(prices, "raptor_tree", chat, nodes, history, guess)
    if settings.embeddings.embedder == "llm":
        calls, tokens, known = _embedding(settings, work)
        model = settings.llm.embedding_model
        yield from _priced(prices, "embeddings", model, calls, tokens, 0, known)


def assumptions(
    settings: Settings, work: Work, stages: Sequence[StagePlan], history: Mapping[str, Average]
) -> list[str]:
    """Return in words what the estimate rests on."""
    said = []
    if work.unasked.number:
        said.append(
            "an extraction's answer is as long as GPT-4o's are (430 tokens for a chunk of 600), "
            "half of the gleanings go on and find as much again"
        )
    if work.grown.number:
        said.append(
            f"a new chunk gives {_ENTITIES} entities, {_RELATIONSHIPS} relationships and "
            f"{REPORTS_PER_CHUNK} communities to report on"
        )
    if any(stage.stage in history for stage in stages):
        said.append("length of summaries and reports as in this index's own history")
    said.append(
        "the cache is looked up for extractions and texts to embed, not for summaries and reports"
    )
    said.append(
        f"prices as of {load_prices(settings.llm.prices_file).date}; set llm.prices_file to your "
        "own"
    )
    known = sum(stage.cost or 0.0 for stage in stages)
    tokens = sum(stage.prompt_tokens + stage.completion_tokens for stage in stages)
    limits = settings.llm
    if 0 < limits.max_cost < known or 0 < limits.max_tokens < tokens:
        said.append(
            "this is more than llm.max_cost or llm.max_tokens allow: the run would stop there and "
            "keep what was bought; raise them to go on"
        )
    unknown = sorted({stage.model for stage in stages if stage.cost is None})
    if unknown:
        said.append(f"the price of {', '.join(unknown)} is not known: tokens only")
    return said


def _extraction(settings: Settings, work: Work) -> tuple[float, float, float]:
    """Return calls, prompt tokens and completion tokens of extracting from chunks."""
    n = work.unasked.number + work.begun.number
    if not n:
        return 0, 0, 0
    size = (work.unasked.tokens + work.begun.tokens) / n
    answer = max(_RECORDS * math.sqrt(size), _SHORTEST_ANSWER)
    checks = sum(_GOES_ON**i for i in range(settings.extraction.gleanings))
    again = _GOES_ON * checks
    calls = prompt = completion = 0.0
    for place, (overhead, share) in enumerate(_conversations(settings)):
        first = n if place else work.unasked.number
        shown, said = overhead + size, share * answer
        calls += first + n * (checks + again)
        prompt += first * shown + n * (checks + again) * (shown + said + _CHECK_TOKENS)
        completion += first * said + n * (checks + again * said)
    return calls, prompt, completion


def _conversations(settings: Settings) -> Iterator[tuple[int, float]]:
    """Yield the tokens around a chunk in each conversation, and its share of a full answer.

    On the graph, or on entities and then on relationships between them; then on claims.
    """
    given, folder = settings.extraction, prompts_folder(settings)
    types = ", ".join(given.entity_types)
    examples = load_examples(given.domain, folder)
    around = {"examples": examples, "document": ""}
    if given.passes == 1:
        graph = load_prompt("extract_graph", folder)
        yield _length(graph.render(entity_types=types, **around)), 1.0
    else:
        entities = load_prompt("extract_entities", folder)
        yield _length(entities.render(entity_types=types, **around)), 0.5
        relations = load_prompt("extract_relations", folder)
        named = _ENTITIES * _TITLE_TOKENS
        yield _length(relations.render(names="", **around)) + named, 0.5
    if given.claims:
        claims = load_prompt("extract_claims", folder)
        about = given.claim_description
        shown = claims.render(entities=types, claim_description=about, document="")
        yield _length(shown), 1.0


def _report_prompt(settings: Settings, context: float | None) -> float:
    given = settings.reports
    around = load_prompt("community_report", prompts_folder(settings)).render(
        context="", max_words=str(given.max_words)
    )
    return _length(around) + (context or min(_REPORT_CONTEXT, given.max_context_tokens))


def _clusters(settings: Settings, work: Work) -> float:
    """Return how many clusters HiRAG's layers will have to summarise: all, or those touched."""
    if work.clusters:
        return min(work.clusters, _CLUSTERS_TOUCHED * work.grown.full)
    entities = (work.indexed.full + work.grown.full) * _ENTITIES
    return _CLUSTERS * entities * _ENTITY_TOKENS / settings.reports.max_context_tokens


def _further_reports(settings: Settings, work: Work) -> float:
    """Return how many reports there will be on HiRAG's and on attributed communities.

    As many change as of the others; of those that are not there yet all are to be written.
    """
    chunks = work.indexed.full + work.grown.full
    reports = 0.0
    if settings.hierarchies.hirag:
        reports += work.reports if work.clusters else chunks * REPORTS_PER_CHUNK
    if settings.hierarchies.attributed:
        everything = chunks * _ENTITIES * _ATTRIBUTED
        reports += min(work.reports, everything) if work.attributed else everything
    return reports


def _tree_nodes(settings: Settings, work: Work) -> float:
    """Return how many summaries the RAPTOR tree will need: all, or those above new chunks."""
    if work.tree_nodes:
        return min(work.tree_nodes, _TREE_TOUCHED * work.grown.number)
    tokens = work.indexed.tokens + work.grown.tokens
    return _TREE_NODES * tokens / settings.hierarchies.raptor_cluster_tokens


def _embedding(settings: Settings, work: Work) -> tuple[float, float, int]:
    """Return calls to make, their tokens, and calls that are cached."""
    entities, relationships = work.grown.full * _ENTITIES, work.grown.full * _RELATIONSHIPS
    guessed = [
        (entities, entities * _ENTITY_TOKENS),
        (relationships, relationships * _RELATIONSHIP_TOKENS),
        (work.reports, work.reports * _REPORT_ANSWER),
    ]
    if settings.hierarchies.hirag:
        clusters = _clusters(settings, work)
        guessed.append((clusters, clusters * _ENTITY_TOKENS))
    if settings.hierarchies.raptor:
        nodes = _tree_nodes(settings, work)
        guessed.append((nodes, nodes * settings.hierarchies.summary_tokens))
    if settings.embeddings.facts:
        guessed.append((relationships, relationships * _RELATIONSHIP_TOKENS))
    if settings.embeddings.synonyms:
        guessed.append((entities, entities * _TITLE_TOKENS))
    counted = [(texts.number, texts.n_bytes / _BYTES_PER_TOKEN) for texts in work.texts]
    parts = [*counted, *guessed]
    known = sum(math.ceil(texts.known / MAX_PIECES) for texts in work.texts)
    calls = sum(_requests(number, of_part) for number, of_part in parts)
    return calls, sum(of_part for _, of_part in parts), known


def _requests(number: float, tokens: float) -> int:
    return math.ceil(max(number / MAX_PIECES, tokens * _BYTES_PER_TOKEN / MAX_REQUEST_BYTES))


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
    each = history.get(stage, guess)
    n = math.ceil(calls)
    yield from _priced(prices, stage, model, n, n * each.prompt, n * each.completion)


def _priced(
    prices: Prices,
    stage: str,
    model: str,
    calls: float,
    prompt: float,
    completion: float,
    cached: int = 0,
) -> Iterator[StagePlan]:
    if calls or cached:
        read, written = round(prompt), round(completion)
        cost = prices.cost(model, read, written)
        yield StagePlan(stage, model, math.ceil(calls), cached, read, written, cost)
