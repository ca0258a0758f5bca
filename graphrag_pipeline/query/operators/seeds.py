"""Seeds of a walk over the graph: entities named by rule, and rows by scaled similarity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from graphrag_pipeline.core.identity import make_id
from graphrag_pipeline.core.text import normalize_title
from graphrag_pipeline.extraction.rules.nlp import names_in
from graphrag_pipeline.query.operators.entities import entities_titled
from graphrag_pipeline.query.operators.ranking import Ranking, VectorTable, text_hits
from graphrag_pipeline.query.question import AnalysedQuestion
from graphrag_pipeline.query.trace import operator

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

WORDS = 0.5
"""What words weigh against meaning: as much. Chosen on news, claims, code and Japanese."""
MOST_SCALED = 10_000
"""Rows that similarities are scaled over: all of a small index, the best of a large one."""


@operator
def names_known(index: Release, question: str) -> dict[str, list[int]]:
    """Return the names that the rule extractor finds in a question, and the nodes of each.

    Those of ``index.graph``; a name that it does not have is left out. A question without names, or
    all in lower case, has none.
    """
    graph, known = index.graph, {}
    for name in AnalysedQuestion.of(question).read(names_in):
        entities = graph.entity_nodes(entities_titled(index, [name]))
        others = graph.name_nodes([make_id("entity", normalize_title(name))])
        if nodes := [*entities.tolist(), *others.tolist()]:
            known[name] = nodes
    return known


@operator
def scaled_search(
    index: Release, table: VectorTable, question: str, k: int = MOST_SCALED
) -> Ranking:
    """Rank the ``k`` rows most like a question, scaled so that the best has 1 and the last 0.

    The last is that of the table, or the 10,000th. By vectors; by BM25 where vectors know words
    only: what has none of the words has 0 by that, and is left out.
    """
    if index.lexical:
        shares = _shares(text_hits(index, table, question, k), lowest=0.0)
    else:
        shares = _shares(index.search_vectors(table, question, MOST_SCALED)).slice(0, k)
    return dict(zip(shares["id"].to_pylist(), shares["share"].to_pylist(), strict=True))


@operator
def likely(
    index: Release,
    table: VectorTable,
    question: str,
    k: int = MOST_SCALED,
    *,
    words: float = WORDS,
) -> Ranking:
    """Rank the ``k`` rows most like a question in words and in meaning, from 1 to 0.

    Scores by BM25 and by vectors are standardised over the rows and added, ``words`` of the one and
    the rest of the other; a row no more alike than the average has 0, and is left out. So a search
    in which few rows stand out counts for more than one in which none does, as among texts in a
    language that the model does not read. Where vectors know words only, the scaled score by BM25.
    """
    if index.lexical:
        return scaled_search(index, table, question, k)
    by_words = text_hits(index, table, question, MOST_SCALED)
    by_meaning = index.search_vectors(table, question, MOST_SCALED)
    n = max(len(by_words), len(by_meaning))
    rows, absent = zip(
        _standardised(by_words, n, words, lowest=0.0),
        _standardised(by_meaning, n, 1 - words),
        strict=True,
    )
    both = pa.concat_tables(rows).group_by("id").aggregate([("share", "sum")])
    ranked = both.sort_by([("share_sum", "descending"), ("id", "ascending")]).slice(0, k)
    scores = ranked["share_sum"].to_numpy() + sum(absent)
    alike = scores > 0
    shares = scores[alike] / max(scores[:1], default=1.0)
    return dict(zip(ranked["id"].filter(pa.array(alike)).to_pylist(), shares.tolist(), strict=True))


def _standardised(
    hits: pa.Table, n: int, of: float, *, lowest: float | None = None
) -> tuple[pa.Table, float]:
    """Return (id, share) of rows, and the score of a row of the ``n`` that is not among them.

    It has the score ``lowest``, or that of the last. ``share`` is what a row has above it; both in
    standard deviations of the ``n`` scores from their mean, times ``of``.
    """
    scores = hits["score"].to_numpy().astype(np.float64)
    low = lowest if lowest is not None else min(scores[-1:], default=0.0)
    all_scores = np.pad(scores, (0, n - len(scores)), constant_values=low)
    spread = float(all_scores.std()) if n else 0.0
    unit = of / spread if spread > 1e-9 else 0.0
    rows = pa.table({"id": hits["id"], "share": (scores - low) * unit})
    return rows, (low - float(all_scores.mean())) * unit if n else 0.0


def _shares(hits: pa.Table, *, lowest: float | None = None) -> pa.Table:
    """Return (id, share): scores scaled so that the best has 1, and ``lowest``, or the last, 0.

    Rows with 0 are left out.
    """
    scores = hits["score"].to_numpy().astype(np.float64)
    if len(scores):
        scores -= scores[-1] if lowest is None else lowest
    above = scores > 0
    shares = scores[above] / max(scores[:1], default=1.0)
    return pa.table({"id": hits["id"].filter(pa.array(above)), "share": shares})
