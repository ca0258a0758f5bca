"""Lazy search: all work of a model when a question is asked, within a budget of relevance tests."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from graphrag_pipeline.core.text import counted
from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.method import Method, number
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.writing.lists import ask_lists
from graphrag_pipeline.query.writing.map_reduce import reduced
from graphrag_pipeline.systems.lazy.chunk_tree import chunk_tree
from graphrag_pipeline.systems.lazy.descent import Descent
from graphrag_pipeline.systems.lazy.relevance import (
    MARKED,
    ChunkSentences,
    SubSearch,
    around,
    ask_test,
    tests_of,
)

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release
    from graphrag_pipeline.query.writing.asking import Asking, Final

_CANDIDATES = 300
_CANDIDATES_OF_A_TEST = 10
"""Chunks that are ranked: what a search may come to in the communities of the best."""
_NAMED_CHUNKS, _NAMES = 20, 20
_PART_FULL = 1.5
"""Calls for each full one: a wave seldom fills its last."""
_RELEVANT = 1 / 6
_PROMPT_TOKENS, _LIST_TOKENS = 450, 40
_CLAIMS_TOKENS, _ANSWER_TOKENS = 1000, 600
"""What prompts hold besides texts, and what is answered to a test, to a map, and in the end."""


@dataclass(frozen=True)
class LazyParameters:
    """LazyGraphRAG's idea: Edge, Trinh and Larson, 2024, as far as its authors describe it.

    A model breaks the question into at most ``sub_queries``. For it and for each of them chunks
    are ranked by similarity and communities by their best chunk, and the model tests the best
    ``each`` chunks of a community for relevance, sentence by sentence, ``batch`` chunks in a call.
    The search goes down from the root: after ``patience`` communities in a row without a relevant
    chunk it goes on below those that had one. ``budget`` is the most chunks tested in all, shared
    equally (100, 500 and 1,500 in the authors' comparison). What is relevant makes claims, and the
    best of these that fit in ``max_context_tokens`` the answer.
    """

    budget: int = number(100)
    sub_queries: int = number(3, least=0)
    each: int = number(5)
    patience: int = number(3)
    batch: int = number(10)
    max_context_tokens: int = number(12_000)


def lazy_search(index: Release, question: str, p: LazyParameters) -> list[Record]:
    """Return the chunks that would be tested, if all were relevant: as far as it goes by rule."""
    descent = _descent(index, _ranked(index, question, p), p.budget, p)
    while wave := descent.wave():
        descent.take(wave)
    records = op.chunk_records(index, dict.fromkeys(descent.relevant, 1.0))
    return op.fill(index, records, p.max_context_tokens)


async def lazy_answer(asking: Asking, p: LazyParameters) -> Final | None:
    """Break the question up, test what is found for its parts, and reduce the claims of that."""
    index = asking.index
    ranking = await asking.retrieve(lambda: _ranked(index, asking.search_text, p))
    if not ranking:
        return None
    await asking.retrieve(lambda: _check_room(index, ranking, p))
    queries = [asking.search_text, *await _sub_queries(asking, ranking, p)]
    rankings = await asking.retrieve(lambda: _ranked_each(index, queries[1:], p))
    searches = await asking.retrieve(lambda: _searches(index, queries, [ranking, *rankings], p))
    chunks: dict[str, ChunkSentences] = {}
    await _test_all(asking, searches, chunks, p)
    groups = await asking.retrieve(lambda: _relevant(index, searches, chunks, p))
    _explain(asking, searches, groups)
    listed = "\n".join(f"- {query}" for query in [asking.question, *queries[1:]])
    return await reduced(asking, groups, p.max_context_tokens, "lazy", "context", queries=listed)


def _ranked(index: Release, query: str, p: LazyParameters) -> op.Ranking:
    n = max(_CANDIDATES, _CANDIDATES_OF_A_TEST * p.budget // (1 + p.sub_queries))
    return op.nearest(index, "chunks", query, n)


def _ranked_each(index: Release, queries: Sequence[str], p: LazyParameters) -> list[op.Ranking]:
    """Return a ranking for each query; by words all are found in one search, which takes longest.

    Each query then has what was found in the order of its own words.
    """
    if not index.lexical or len(queries) < 2:
        return [_ranked(index, query, p) for query in queries]
    ranking = _ranked(index, "\n".join(queries), p)
    return [op.by_terms(index, query, ranking) for query in queries]


def _check_room(index: Release, ranking: op.Ranking, p: LazyParameters) -> None:
    """Raise InputError, before anything is paid for, if no passage would fit."""
    op.groups(index, op.chunk_records(index, op.best(ranking, 1)), p.max_context_tokens)


def _descent(index: Release, ranking: op.Ranking, budget: int, p: LazyParameters) -> Descent:
    chunks = list(ranking)
    paths = chunk_tree(index).paths(chunks)
    return Descent(chunks, paths, budget=budget, each=p.each, patience=p.patience)


async def _sub_queries(asking: Asking, ranking: op.Ranking, p: LazyParameters) -> list[str]:
    """Return what a model would look for besides the question, which it need not."""
    if not p.sub_queries or p.budget < 2:
        return []
    names = await asking.retrieve(lambda: _names_near(asking.index, ranking))
    lists = await ask_lists(
        asking, "break up", "lazy_queries", ["queries"], concepts=names, most=str(p.sub_queries)
    )
    known = {_plain(asking.question)}
    queries = [query for query in (lists or [[]])[0] if _plain(query) not in known]
    return queries[: min(p.sub_queries, p.budget - 1)]


def _plain(query: str) -> str:
    return " ".join(query.casefold().split())


def _names_near(index: Release, ranking: op.Ranking) -> str:
    """Return the most telling names of the chunks most like the question, a line each."""
    named = op.entities_in(index, op.by_place(op.best(ranking, _NAMED_CHUNKS)), _NAMES)
    titles = [record.title for record in op.entity_records(index, named)]
    return "\n".join(f"- {' '.join(title.split())}" for title in titles) or "(none)"


def _searches(
    index: Release, queries: Sequence[str], rankings: Sequence[op.Ranking], p: LazyParameters
) -> list[SubSearch]:
    """Return a search for each query, with an equal share of the tests; the first have the rest."""
    share, rest = divmod(p.budget, len(queries))
    return [
        SubSearch(query, _descent(index, ranking, share + (place < rest), p))
        for place, (query, ranking) in enumerate(zip(queries, rankings, strict=True))
    ]


async def _test_all(
    asking: Asking,
    searches: Sequence[SubSearch],
    chunks: dict[str, ChunkSentences],
    p: LazyParameters,
) -> None:
    """Go on with all searches by turns until each has ended; ``chunks`` gets those tested.

    A test that fails is one without a relevant chunk. If none of the first succeeds, that is an
    error.
    """
    any_read = False
    while waves := [(search, wave) for search in searches if (wave := search.descent.wave())]:
        build = partial(
            tests_of, asking.index, waves, chunks, most=p.batch, room=p.max_context_tokens
        )
        tests = await asking.retrieve(build)
        results = await asking.each(
            "test", [partial(ask_test, asking, test) for test in tests], one_at_least=not any_read
        )
        any_read = any_read or any(result is not None for result in results)
        for test, numbers in zip(tests, results, strict=True):
            for chunk, place in (test.places[n - 1] for n in numbers or ()):
                test.search.found.setdefault(chunk, set()).add(place)
        for search, _ in waves:
            search.descent.take(search.found)


def _relevant(
    index: Release,
    searches: Sequence[SubSearch],
    chunks: Mapping[str, ChunkSentences],
    p: LazyParameters,
) -> list[list[Record]]:
    """Return what was found relevant, by community, in groups that a call can read."""
    found: dict[str, set[int]] = {}
    for search in searches:
        for chunk in search.descent.relevant:
            found.setdefault(chunk, set()).update(search.found[chunk])
    paths = dict(zip(found, chunk_tree(index).paths(found), strict=True))
    ordered = sorted(found, key=lambda chunk: (paths[chunk], chunk))
    return op.groups(
        index, [around(chunks[key], found[key]) for key in ordered], p.max_context_tokens
    )


def _explain(
    asking: Asking, searches: Sequence[SubSearch], groups: Sequence[Sequence[Record]]
) -> None:
    """Say what each search tested and why it ended, and what the claims are made of."""
    for search in searches:
        descent = search.descent
        end = "the budget was reached" if descent.ended_by_budget else "no branch was left"
        asking.trace.step(
            f"{search.query.splitlines()[0]}: {counted(descent.n_tested, 'chunk')} of "
            f"{counted(descent.n_communities, 'community', 'communities')} tested on "
            f"{counted(descent.n_levels, 'level')}, {len(descent.relevant):,} relevant; {end}"
        )
    n = sum(map(len, groups))
    asking.trace.step(
        f"{counted(n, 'relevant passage')} in {counted(len(groups), 'group')} for claims"
    )


def lazy_estimate(index: Release, p: LazyParameters) -> tuple[float, float, float]:
    """Return what an answer takes with all tests of its budget: calls, tokens read and written.

    A search may end before. How many chunks will be relevant is not known: a third of those tested
    is reckoned, and half of the text of each.
    """
    n_searches = 1 + p.sub_queries
    tests = min(p.budget, n_searches * index.facts.counts["n_chunks"])
    length = op.mean_chunk_length(index)
    each = max(1, min(p.batch, int(p.max_context_tokens / (MARKED * max(1.0, length)))))
    n = max(1, min(n_searches, tests))
    calls = n * math.ceil(tests / n / min(each, p.each * p.patience) * _PART_FULL)
    claimed = tests * _RELEVANT * length
    groups = math.ceil(claimed / p.max_context_tokens)
    reduced_tokens = min(p.max_context_tokens, groups * _CLAIMS_TOKENS)
    asked = min(1, p.sub_queries) + calls + groups + 1
    read = tests * MARKED * length + claimed + reduced_tokens + asked * _PROMPT_TOKENS
    return asked, read, calls * _LIST_TOKENS + groups * _CLAIMS_TOKENS + _ANSWER_TOKENS


LAZY = Method(
    name="lazy",
    summary="text tested for relevance down the communities, within a budget of tests",
    parameters=LazyParameters,
    retrieve=lazy_search,
    needs_model=True,
    answer=lazy_answer,
    estimate=lazy_estimate,
)
