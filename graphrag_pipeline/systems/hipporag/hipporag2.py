"""HippoRAG 2: passages by PageRank from the facts and passages most like the question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from graphrag_pipeline.llm.parsing import parse_json_list
from graphrag_pipeline.llm.schemas import INTEGER, closed, listed
from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.method import Method, flag, number, share
from graphrag_pipeline.query.operators.facts import Fact, has_synonyms, texts_of_facts
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.writing.single import from_records

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release
    from graphrag_pipeline.query.writing.asking import Asking, Final

_STEP = "filter facts"


@dataclass(frozen=True)
class HippoRag2Parameters:
    """HippoRAG 2: Gutiérrez et al., 2025, section 3, with the defaults of the authors' code.

    The ``facts`` most like the question, scaled by min and max over all, are filtered by a model
    ("recognition memory", 3.3) where one is configured; where none is left, passages are ranked by
    similarity alone. An end of a fact weighs the fact's score / the number of chunks that mention
    it, averaged over its facts; the best ``phrases`` of them, and every passage with
    ``passage_weight`` x its similarity scaled by min and max, are where PageRank over entities,
    passages and synonyms sets out, with ``damping``. The best ``top_k`` passages are the answer's.

    Where paper and code differ. Code lets a synonym edge overwrite the weight of the facts between
    the same two names; here, as in the paper, both are edges, and their weights add up. Code adds
    facts and synonyms in both directions to an undirected graph, and so doubles them against the
    passages' edges; here each counts once. The filter answers by number and not by repeating a
    fact, so nothing is matched by likeness. Code removes all but ASCII from names; here no letter
    is lost. Both embed the question under an instruction, for models that know it; here there is
    none. With vectors that know words only, similarity is BM25.

    Beyond the paper, and off: ``titles``, as of ``ppr``, are nodes joined to their passages, and
    those in the question are set out from; ``covering``: those of the best 40 passages that
    together answer the question come first.
    """

    facts: int = number(5)
    phrases: int = number(5)
    passage_weight: float = share(0.05)
    damping: float = share(0.5)
    titles: bool = flag(False)
    covering: bool = flag(False)
    reranked: int = number(40, least=0)
    top_k: int = number(5)
    max_context_tokens: int = number(12_000)


def hipporag2_search(index: Release, question: str, p: HippoRag2Parameters) -> list[Record]:
    """Return the best passages; facts are not filtered, for that takes a model."""
    facts = op.best_facts(index, question, p.facts)
    index.trace.step(f"{len(facts)} facts, not filtered: no model was asked")
    return passages_from(index, question, facts, p)


def passages_from(
    index: Release, question: str, facts: Sequence[Fact], p: HippoRag2Parameters
) -> list[Record]:
    """Return passages that PageRank leads to from facts; where there are none, the nearest."""
    ranking = _ranked(index, question, facts, p) if facts else {}
    if not ranking:
        index.trace.step("no facts left: passages by similarity")
        similar = op.scaled_search(index, "chunks", question)
        ranking = op.best(op.rerank(index, question, similar, p.reranked), p.top_k)
    return op.fill(index, op.chunk_records(index, ranking), p.max_context_tokens)


def _ranked(
    index: Release, question: str, facts: Sequence[Fact], p: HippoRag2Parameters
) -> op.Ranking:
    graph = index.graph
    kinds = ["facts", "mentions"]
    kinds += ["synonyms"] if has_synonyms(index) else []
    kinds += ["titles"] if p.titles else []
    seeds = graph.weigh_chunks(op.scaled_search(index, "chunks", question)) * p.passage_weight
    for node, weight in _phrases(index, facts)[: p.phrases]:
        seeds[node] += weight
    if p.titles:
        titled = chain.from_iterable(op.titles_in(index, question).values())
        seeds += graph.weigh_nodes(titled) * graph.specificity("mentions", "titles")
    edges = graph.adjacency(*kinds)
    scores = index.trace.timed(op.personalized_pagerank, edges, seeds, damping=p.damping)
    reached = partial(graph.best_chunks, scores)
    return op.first_chunks(index, question, reached, p.top_k, cover=p.covering, reranked=p.reranked)


def _phrases(index: Release, facts: Sequence[Fact]) -> list[tuple[int, float]]:
    """Return the ends of facts and what each weighs, the heaviest first."""
    weights: dict[int, list[float]] = {}
    counts = index.graph.chunk_counts
    ends = op.ends_of_facts(index, facts)
    for fact in facts:
        for end in ends.get(fact.id, ()):
            weights.setdefault(end, []).append(fact.score / max(1, int(counts[end])))
    averaged = (
        (node, sum(node_weights) / len(node_weights)) for node, node_weights in weights.items()
    )
    return sorted(averaged, key=lambda pair: (-pair[1], pair[0]))


async def hipporag2_answer(asking: Asking, p: HippoRag2Parameters) -> Final | None:
    """Have a model filter the facts, and answer from the passages that the rest leads to."""
    index, text = asking.index, asking.search_text
    facts = await asking.retrieve(lambda: op.best_facts(index, text, p.facts))
    relevant = await _filtered(asking, facts) if facts else []
    records = await asking.retrieve(lambda: passages_from(index, text, relevant, p))
    return from_records(records, "basic_answer")


async def _filtered(asking: Asking, facts: Sequence[Fact]) -> list[Fact]:
    """Return the facts that a model finds relevant; all, if its answer cannot be had or read."""
    texts = await asking.retrieve(lambda: texts_of_facts(asking.index, facts))
    numbered = "\n".join(f"{n}. {' '.join(text.split())}" for n, text in enumerate(texts, 1))
    read = partial(_numbers, most=len(facts))
    schema = closed(facts=listed(INTEGER, len(facts)))
    asked = asking.read(_STEP, read, schema, "filter_facts", facts=numbered)
    if (selection := await asking.tried(_STEP, asked)) is None:
        return list(facts)
    asking.trace.step(f"{len(selection)} of {len(facts)} facts kept by the model")
    return [fact for n, fact in enumerate(facts, 1) if n in selection]


def _numbers(text: str, *, most: int) -> set[int]:
    numbers = parse_json_list(text, "facts")
    whole = {int(n) for n in numbers if isinstance(n, int | float) and not isinstance(n, bool)}
    return {n for n in whole if 1 <= n <= most}


HIPPORAG2 = Method(
    name="hipporag2",
    summary="passages by PageRank from the question's facts and passages",
    parameters=HippoRag2Parameters,
    retrieve=hipporag2_search,
    answer=hipporag2_answer,
    short_calls=1,
    table="facts",
)
