"""Estimate of an extraction: the calls of a model, and how many entities they will give.

The constants are measured on what models made: GPT-4o's recorded extraction of *A Christmas
Carol* and microsoft/graphrag's index of it (chunks of 1,200 tokens), the two corpora of the
GraphRAG paper (Edge et al., 2024, section 4 and table 2; 600), and GPT-3.5's extraction of MuSiQue
(110).

A model writes down about as many entities of a chunk as GPT-4o did of *A Christmas Carol*: 13 for
1,200 tokens, growing with the root of the length (paper, 3.1.2). How many of these are one and the
same is told by the names that rules find: where each text names others (MuSiQue's passages: 69 % of
all names are new), nearly all are entities of their own; where all speak of the same (the podcasts:
16 %), a third are. Of the 1,669 podcasts this gives 7,100 entities; the GraphRAG paper has 8,564.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import duckdb
import polars as pl

from graphrag_pipeline.core.prompting import load_prompt
from graphrag_pipeline.core.settings import Role, Settings
from graphrag_pipeline.core.tokens import message_tokens
from graphrag_pipeline.extraction.extractors import extraction_version
from graphrag_pipeline.extraction.model.by_schema import (
    LISTS,
    SCHEMA_PROMPTS,
    Example,
    messages_of,
)
from graphrag_pipeline.extraction.model.llm import extract_llm
from graphrag_pipeline.extraction.model.strength import asked_in_tuples, shown_examples
from graphrag_pipeline.extraction.rules.nlp import chunk_names
from graphrag_pipeline.llm.configured import calls_place, model_options, prompts_folder
from graphrag_pipeline.llm.estimates import (
    ENTITIES,
    TITLE_TOKENS,
    Chunks,
    Estimate,
    ExtractedChunk,
    Growth,
    LargestCall,
    ModelCalls,
)
from graphrag_pipeline.llm.offline import CachedAnswers
from graphrag_pipeline.llm.paid_answers import answer_places
from graphrag_pipeline.llm.running import run_calls

STAGE = "extractions"
ROLE: Role = "extraction"
# An answer's tokens grow with the square root of its chunk's (paper, 3.1.2, on chunk sizes).
_RECORDS = 17.6
_SHORTEST_ANSWER = 100
# The same records as JSON are longer.
_JSON = 1.8
_GOES_ON = 0.5
_CHECK_TOKENS = 50
_SHORTEST_EXTRACTION = 400
_MENTIONED = 0.36
_SHARED = 0.6
_READ = 4000
_LOOKED_UP = 500
_EXTRACTED = """
SELECT count(*), avg(n_tokens), avg(prompt_tokens), avg(completion_tokens)
FROM extractions JOIN chunks ON chunks.id = chunk_id
WHERE version = $version AND status = 'ok' AND prompt_tokens > 0
"""
_CALL = """
SELECT coalesce(avg(prompt_tokens) FILTER (NOT cached), avg(prompt_tokens)) FROM llm_calls
WHERE stage = 'extractions' AND error IS NULL
"""


def estimate(settings: Settings, growth: Growth) -> Estimate:
    """Return the calls that extracting from the chunks will take."""
    if settings.extraction.extractor != "llm":
        return Estimate()
    calls, prompt, completion = _tokens(settings, growth)
    in_all = ModelCalls(
        STAGE, calls, prompt, completion, is_total=True, cached=growth.answered, role=ROLE,
        rounds=len(list(conversations(settings))) * (1 + 2 * _gleanings(settings)),
        repeated=_repeated(settings, growth),
    )  # fmt: skip
    return Estimate([in_all])


def chunks_of(rows: pl.DataFrame) -> Chunks:
    """Return how many chunks these rows are, and their tokens."""
    return Chunks(len(rows), int(rows["n_tokens"].sum()))


def look_up(settings: Settings, todo: pl.DataFrame) -> tuple[Chunks, Chunks, int]:
    """Return the chunks never asked about, those only begun, and how many answers are cached.

    This is the extraction itself, by a client that has only the cache to answer from; of very many
    chunks those of a sample, evenly spread, stand for all.
    """
    is_asked = settings.extraction.extractor == "llm"
    options = model_options(settings, ROLE)
    files = answer_places(calls_place(settings), options.shared_cache)
    if not is_asked or todo.is_empty() or not files:
        return chunks_of(todo), Chunks(), 0
    sample = todo.gather_every(math.ceil(len(todo) / _LOOKED_UP))

    async def look_up() -> tuple[pl.DataFrame, int]:
        async with CachedAnswers(options, calls_place(settings)) as client:
            folder = prompts_folder(settings)
            extraction = await extract_llm(
                sample, client, settings.extraction, batch="", prompts=folder
            )
            return extraction.outcomes, client.found

    outcomes, n_answered = run_calls(look_up)
    unfinished = outcomes.filter(pl.col("status") == "failed").join(
        sample.select("id", "n_tokens"), left_on="chunk_id", right_on="id"
    )
    is_begun, share = pl.col("prompt_tokens") > 0, len(sample) / len(todo)
    unasked, begun = (
        chunks_of(unfinished.filter(condition)) for condition in (~is_begun, is_begun)
    )
    return unasked.times(1 / share), begun.times(1 / share), round(n_answered / share)


def largest_calls(settings: Settings) -> Iterator[LargestCall]:
    """Yield the largest call of each conversation about a chunk."""
    if settings.extraction.extractor == "llm":
        answer = settings.llm_for(ROLE).max_output_tokens or _SHORTEST_EXTRACTION
        for overhead, _ in conversations(settings):
            yield LargestCall(STAGE, overhead, "chunks.size", answer, ROLE)


def _tokens(settings: Settings, growth: Growth) -> tuple[float, float, float]:
    """Return calls, prompt tokens and completion tokens of extracting from chunks."""
    n = growth.unasked.number + growth.begun.number
    if not n:
        return 0, 0, 0
    size = (growth.unasked.tokens + growth.begun.tokens) / n
    if growth.extracted:
        return _as_before(settings, growth, growth.extracted, n, size)
    answer = max(_RECORDS * math.sqrt(size), _SHORTEST_ANSWER)
    checks = sum(_GOES_ON**i for i in range(_gleanings(settings)))
    again = _GOES_ON * checks
    calls = prompt = completion = 0.0
    for place, (overhead, share) in enumerate(conversations(settings)):
        first = n if place else growth.unasked.number
        prompt_tokens, answer_tokens = overhead + size, share * answer
        calls += first + n * (checks + again)
        prompt += first * prompt_tokens + n * (checks + again) * (
            prompt_tokens + answer_tokens + _CHECK_TOKENS
        )
        completion += first * answer_tokens + n * (checks + again * answer_tokens)
    return calls, prompt, completion


def _gleanings(settings: Settings) -> int:
    options = settings.extraction
    return 0 if options.format in SCHEMA_PROMPTS else options.gleanings


def _repeated(settings: Settings, growth: Growth) -> float:
    """Return the share of the prompts' tokens that begin as a prompt before.

    A chunk's first prompt begins with the instructions, each later one with all of that before it.
    """
    n = growth.unasked.number + growth.begun.number
    size = (growth.unasked.tokens + growth.begun.tokens) / n if n else 0.0
    checks = sum(_GOES_ON**i for i in range(_gleanings(settings)))
    read = repeated = 0.0
    for overhead, share in conversations(settings):
        answer = share * max(_RECORDS * math.sqrt(size), _SHORTEST_ANSWER)
        first, later = overhead + size, overhead + size + answer + _CHECK_TOKENS
        read += first + checks * (1 + _GOES_ON) * later
        repeated += _in_caches(overhead) + checks * (
            _in_caches(first) + _GOES_ON * _in_caches(later)
        )
    return repeated / read


def _in_caches(tokens: float) -> int:
    """Return how many of so many tokens a provider's cache keeps: OpenAI's from 1,024, by 128."""
    return int(tokens) // 128 * 128 if tokens >= 1024 else 0


def _as_before(
    settings: Settings, growth: Growth, before: ExtractedChunk, n: int, size: float
) -> tuple[float, float, float]:
    """Return what extracting takes where it has taken so much for a chunk of the index."""
    around = [overhead for overhead, _ in conversations(settings)]
    mean, begun = sum(around) / len(around), growth.begun.number
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
    examples = shown_examples(options.domain, folder, strengths=options.strength)
    around = {"examples": examples, "document": "", **asked_in_tuples(options)}
    if options.format in SCHEMA_PROMPTS:
        example = Example.first_of(examples)
        for name in SCHEMA_PROMPTS[options.format]:
            asked = messages_of(load_prompt(name, folder), options, example, "", [])
            n_names = 0 if "entities" in LISTS[name] else ENTITIES * TITLE_TOKENS
            yield message_tokens(asked) + n_names, _JSON * len(LISTS[name]) / 2
    elif options.passes == 1:
        graph = load_prompt("extract_graph", folder)
        yield message_tokens(graph.render(entity_types=types, **around)), 1.0
    else:
        entities = load_prompt("extract_entities", folder)
        asked = entities.render(entity_types=types, examples=examples, document="")
        yield message_tokens(asked), 0.5
        relations = load_prompt("extract_relations", folder)
        title_tokens = ENTITIES * TITLE_TOKENS
        yield message_tokens(relations.render(names="", **around)) + title_tokens, 0.5
    if options.claims:
        claims = load_prompt("extract_claims", folder)
        about = options.claim_description
        prompt = claims.render(entities=types, claim_description=about, document="")
        yield message_tokens(prompt), 1.0


def learn_extraction(con: duckdb.DuckDBPyConnection, settings: Settings) -> ExtractedChunk | None:
    """Return what extracting from a chunk took as the settings are; None if none has been yet."""
    [(number, size, prompt, completion)] = con.execute(
        _EXTRACTED, {"version": extraction_version(settings)}
    ).fetchall()
    [(of_a_call,)] = con.execute(_CALL).fetchall()
    if not number or not of_a_call:
        return None
    return ExtractedChunk(size, prompt / of_a_call, prompt, completion)


def guess_entities(chunks: pl.DataFrame) -> float:
    """Return how many entities chunks (columns ``id``, ``text``, ``n_tokens``) will give."""
    if chunks.is_empty():
        return 0.0
    names = chunk_names(chunks.gather_every(math.ceil(len(chunks) / _READ)))["title"]
    mentioned = _MENTIONED * float(chunks["n_tokens"].sqrt().sum())
    return mentioned * (names.n_unique() / len(names)) ** _SHARED if len(names) else mentioned
