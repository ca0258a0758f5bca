"""Rankings: ids with scores, best first. What searches return and operators hand on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Literal, TypeAlias

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.text import terms
from graphrag_pipeline.query.names_of_code import defined, names_of_code, written
from graphrag_pipeline.query.trace import operator

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from graphrag_pipeline.query.release import Release

_WITH_PARTS = 500
_WRITTEN = """
SELECT id, regexp_matches(text, $defined) AS defines
FROM chunks SEMI JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS id) USING (id)
WHERE defines OR regexp_matches(text, $written)
"""

Ranking: TypeAlias = dict[str, float]
"""Ids to scores, in order, best first."""

VectorTable = Literal[
    "chunks",
    "entities",
    "relationships",
    "community_reports",
    "facts",
    "entity_titles",
    "raptor_nodes",
    "hirag_entities",
]


@operator
def vector_search(index: Release, table: VectorTable, question: str, k: int) -> Ranking:
    """Rank the ``k`` rows most similar to a question, by cosine."""
    return _ranking(index.search_vectors(table, question, k))


@operator
def nearest(
    index: Release, table: VectorTable, question: str, k: int, *, least: float = -1.0
) -> Ranking:
    """Rank the ``k`` rows most similar to a question: by cosine, of ``least`` or more.

    Where vectors know words only, by BM25, which ranks words better; what has no word in common
    follows by cosine.
    """
    by_words = _ranking(text_hits(index, table, question, k)) if index.lexical else {}
    if len(by_words) >= k:
        return by_words
    similar = at_least(_ranking(index.search_vectors(table, question, k)), least)
    most = min(by_words.values(), default=1.0)
    further = {key: min(score, most) for key, score in similar.items() if key not in by_words}
    return best(by_words | further, k)


@operator
def fulltext_search(index: Release, table: VectorTable, question: str, k: int) -> Ranking:
    """Rank the ``k`` rows that best match the words of a question, by BM25."""
    return _ranking(text_hits(index, table, question, k))


def text_hits(index: Release, table: VectorTable, question: str, k: int) -> pa.Table:
    """Return (id, score) of the ``k`` rows that best match the words of a question, by BM25.

    Of the best ``_WITH_PARTS`` chunks, those come first that define a name of code which the
    question has, then those that write one of several words: may_go, and not *may* and *go*.
    """
    names = names_of_code(question) if table == "chunks" else ()
    if not names:
        return index.search_text(table, question, k)
    hits = index.search_text(table, question, max(k, _WITH_PARTS))
    scores = dict(zip(hits["id"].to_pylist(), hits["score"].to_pylist(), strict=True))
    best, ids = max(scores.values(), default=0.0), list(scores)[:_WITH_PARTS]
    parted = [name for name in names if len(terms(name)) > 1]
    pattern = written(parted) if parted else defined(names)
    rows = index.rows(_WRITTEN, ids=ids, written=pattern, defined=defined(names))
    scores |= {row["id"]: scores[row["id"]] + best * (1 + row["defines"]) for row in rows}
    ranked = sorted(scores.items(), key=lambda item: -item[1])[:k]
    columns = {"id": [key for key, _ in ranked], "score": [score for _, score in ranked]}
    return hits.from_pydict(columns, schema=hits.schema)


@operator
def most_similar(
    index: Release, table: VectorTable, question: str, ids: Iterable[str], k: int
) -> Ranking:
    """Rank the ``k`` of the given rows that are most similar to a question, by cosine.

    By BM25 where vectors know words only; rows without a common word come last, with 0.
    """
    id_list = list(ids)
    if index.lexical:
        hits = index.search_text(table, question, len(id_list), among=id_list)
        scores = dict.fromkeys(id_list, 0.0) | _ranking(hits)
    else:
        scores = index.similarities(table, question, id_list)
    return dict(sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:k])


def in_turn(*rankings: Ranking) -> Ranking:
    """Merge rankings by turns: the first of each, the second of each, and so on, each id once."""
    joint: Ranking = {}
    for turn in zip_longest(*(ranking.items() for ranking in rankings)):
        for item in filter(None, turn):
            joint.setdefault(*item)
    return joint


def fuse(
    rankings: Sequence[Iterable[str]], *, k: int = 60, weights: Sequence[float] | None = None
) -> Ranking:
    """Merge rankings by reciprocal rank: the sum of weight / (k + place), places from 1.

    Source: Cormack, Clarke and Buettcher, 2009.
    """
    scores: Ranking = {}
    for ranking, weight in zip(rankings, weights or [1.0] * len(rankings), strict=True):
        for place, key in enumerate(ranking, start=1):
            scores[key] = scores.get(key, 0.0) + weight / (k + place)
    return dict(sorted(scores.items(), key=lambda item: (-item[1], item[0])))


def highest(*rankings: Ranking) -> Ranking:
    """Merge rankings by the highest score that each id has in any, best first."""
    scores: Ranking = {}
    for key, score in (item for ranking in rankings for item in ranking.items()):
        scores[key] = max(score, scores.get(key, score))
    return dict(sorted(scores.items(), key=lambda item: (-item[1], item[0])))


def at_least(ranking: Ranking, score: float) -> Ranking:
    """Return what of a ranking scores no less than this."""
    return {key: value for key, value in ranking.items() if value >= score}


def best(ranking: Ranking, n: int) -> Ranking:
    """Return the first ``n`` of a ranking."""
    return dict(islice(ranking.items(), n))


def by_place(ranking: Iterable[str]) -> Ranking:
    """Score by place alone: 1, 1/2, 1/3 ..., for rankings whose scores are not comparable."""
    return {key: 1.0 / place for place, key in enumerate(ranking, start=1)}


def check_kept(index: Release, table: str, what: str, setting: str) -> None:
    """Raise InputError where a release lacks an optional vector table; it tells the setting."""
    if table not in index.facts.vector_versions:
        raise InputError(
            f"release {index.facts.id} has no {what}: set {setting} = true, index again, and ask "
            "once more"
        )


def decoded(ids: npt.NDArray[np.bytes_]) -> list[str]:
    """Return ids that arrays hold as bytes as they are in rankings."""
    return [key.decode() for key in ids.tolist()]


def _ranking(hits: pa.Table) -> Ranking:
    return dict(zip(hits["id"].to_pylist(), hits["score"].to_pylist(), strict=True))
