"""Passages put in order once more, by who reads the question and the passage together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from graphrag_pipeline.core.errors import GraphRAGError
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.prompting import load_prompt
from graphrag_pipeline.core.text import terms_batch
from graphrag_pipeline.extraction.rules.sentences import sentence_spans
from graphrag_pipeline.llm.configured import (
    calls_place,
    counted_client,
    model_options,
    prompts_folder,
)
from graphrag_pipeline.llm.errors import ModelOutputError
from graphrag_pipeline.llm.ledger import Call, hearing
from graphrag_pipeline.llm.parsing import parse_json_object
from graphrag_pipeline.llm.rerankers import (
    MOST_SECONDS,
    RerankingError,
    cross_encoder,
    kept_scores,
)
from graphrag_pipeline.llm.running import run_calls, watched
from graphrag_pipeline.llm.schemas import INTEGER, closed, listed
from graphrag_pipeline.llm.windows import prompt_room
from graphrag_pipeline.query.operators.chunks import chunk_records
from graphrag_pipeline.query.operators.coverage import CANDIDATES, covering, rarity
from graphrag_pipeline.query.operators.ranking import Ranking, best, fulltext_search
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.trace import operator

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

STEP = "rerank"
LLM = "llm"

_LOCAL_WORDS = 44
_MODEL_WORDS = 120
_TOKENS_OF_A_WORD = 1.5
_MOST_LISTED = 20
_LONGEST_WORD = 12
_NUMBER = pattern_of(r"\d{1,6}(?:\.0)?")
_BRACKETED = pattern_of(r"\[(\d{1,6})\]")
_SCHEMA = closed(passages=listed(INTEGER, _MOST_LISTED))


@operator
def rerank(
    index: Release,
    question: str,
    ranking: Ranking,
    n: int,
    *,
    records: Callable[[Release, Ranking], list[Record]] = chunk_records,
) -> Ranking:
    """Put the first ``n`` of a ranking in order as ``query.reranker`` does; the rest follows.

    By a cross-encoder (Nogueira and Cho, Passage Re-ranking with BERT, 2019), or by a model that
    lists the passages that help, best first (RankGPT: Sun et al., Is ChatGPT Good at Search?,
    2023), in one list; what it does not name keeps its order behind them. Both see title and the
    part of a passage that has most of the question's words, by rarity. Scores stay as they were,
    and so may not descend.

    Without a reranker, or where it fails or takes over five seconds, the order is as it was; a
    step says why.
    """
    reranker = index.settings.query.reranker
    if not reranker or min(n, len(ranking)) < 2:
        return ranking
    passages = records(index, best(ranking, n))
    order = _by_model if reranker == LLM else _by_cross_encoder
    try:
        with hearing(partial(_count, index)):
            places = order(index, question, passages)
    except GraphRAGError as error:
        index.control.check()
        index.trace.step(f"passages not reranked: {error}")
        return ranking
    index.trace.step(f"{len(passages)} passages reranked by {reranker}")
    first = {passages[place].id: ranking[passages[place].id] for place in places}
    return first | {key: score for key, score in ranking.items() if key not in first}


def first_chunks(
    index: Release,
    question: str,
    chunks: Callable[[int], Ranking],
    k: int,
    *,
    cover: bool,
    reranked: int,
) -> Ranking:
    """Return the first ``k`` of so many ranked chunks: covering, then reranked, where wanted."""
    n = n_candidates(index, k, reranked)
    ranking = covering(index, question, chunks(max(n, CANDIDATES))) if cover else chunks(n)
    return best(rerank(index, question, ranking, reranked), k)


def chunks_by_words(index: Release, question: str, k: int, reranked: int) -> Ranking:
    """Rank the ``k`` chunks that best match the words of a question, reranked where wanted.

    What methods fall back to that found no way into the graph.
    """
    n = n_candidates(index, k, reranked)
    return best(rerank(index, question, fulltext_search(index, "chunks", question, n), reranked), k)


def n_candidates(index: Release, k: int, reranked: int) -> int:
    """Return how many to rank where ``k`` are wanted: more if a reranker will look at more."""
    return max(k, reranked) if index.settings.query.reranker else k


def _count(index: Release, call: Call) -> None:
    if call.error is None:
        index.trace.spend(STEP, call)


def _by_cross_encoder(index: Release, question: str, passages: Sequence[Record]) -> list[int]:
    encoder = cross_encoder(index.settings.query.reranker)
    texts = excerpts(index, question, passages, _LOCAL_WORDS)
    shown = [f"{passage.title}\n{text}" for passage, text in zip(passages, texts, strict=True)]
    scores = kept_scores(index.home, encoder, question, shown)
    return sorted(range(len(scores)), key=lambda place: -scores[place])


def _by_model(index: Release, question: str, passages: Sequence[Record]) -> list[int]:
    options = model_options(index.settings, "answers")
    room = prompt_room(options)
    each = _MODEL_WORDS
    if room is not None:
        each = max(1, min(each, int(room / _TOKENS_OF_A_WORD) // len(passages)))
    texts = excerpts(index, question, passages, each)
    lines = [
        f"{number}. {' '.join(passage.title.split())}: {text}"
        for number, (passage, text) in enumerate(zip(passages, texts, strict=True), 1)
    ]
    prompt = load_prompt("rerank_passages", prompts_folder(index.settings))
    talk = prompt.render(question=question, passages="\n".join(lines), most=str(_MOST_LISTED))
    read = partial(_listed, count=len(passages))

    async def ask() -> list[int]:
        async with counted_client(options, calls_place(index.settings, index.home)) as client:
            async with asyncio.timeout(MOST_SECONDS):
                return await client.read(talk, read, stage="query", json_schema=_SCHEMA)

    try:
        with watched(index.control.calling):
            return run_calls(ask)
    except TimeoutError:
        raise RerankingError(f"the model took over {MOST_SECONDS:g} s") from None


def _listed(text: str, *, count: int) -> list[int]:
    """Return the places of the passages that an answer names, each once, in its order.

    As JSON, or as in RankGPT's ``[2] > [1]``; numbers of no passage are left out. Raises
    ModelOutputError where none is left.
    """
    try:
        listed = parse_json_object(text).get("passages")
        given = listed if isinstance(listed, list) else []
    except ModelOutputError:
        given = _BRACKETED.findall(text)
    numbers = [int(float(n)) for n in given if _NUMBER.fullmatch(str(n))]
    named = list(dict.fromkeys(n - 1 for n in numbers if 1 <= n <= count))
    if not named:
        raise ModelOutputError("the answer names no passage")
    return named


def excerpts(index: Release, question: str, passages: Sequence[Record], words: int) -> list[str]:
    """Return of each passage the ``words`` that hold most of a question's words, on one line.

    They are whole sentences where these are not longer. The best of a passage's parts stands for
    it: Dai and Callan, Deeper Text Understanding for IR, 2019 (MaxP).
    """
    weights = rarity(index, question)
    return [_excerpt(passage.text, weights, words) for passage in passages]


def _excerpt(text: str, weights: Mapping[str, float], most: int) -> str:
    pieces = [
        sentence[start : start + most]
        for span in sentence_spans(text)
        for sentence in [text[slice(*span)].split()]
        for start in range(0, len(sentence), most)
    ]
    held = [set(line.split()) & weights.keys() for line in terms_batch([*map(" ".join, pieces)])]
    best_words: list[str] = []
    most_held = -1.0
    for start in range(len(pieces)):
        words: list[str] = []
        found: set[str] = set()
        for piece, terms in zip(pieces[start:], held[start:], strict=True):
            if len(words) + len(piece) > most:
                break
            words, found = words + piece, found | terms
        worth = sum(sorted(weights[term] for term in found))
        if worth > most_held:
            best_words, most_held = words, worth
    return " ".join(best_words)[: most * _LONGEST_WORD]
