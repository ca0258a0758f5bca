"""Facts, what single texts say of two entities: those nearest to a question, and their ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING

from graphrag_pipeline.query.operators.ranking import (
    Ranking,
    check_kept,
    fulltext_search,
    highest,
    vector_search,
)
from graphrag_pipeline.query.trace import operator
from graphrag_pipeline.store.held_vectors import places_of

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

_MOST_SCALED = 10_000


@dataclass(frozen=True)
class Fact:
    """A row of ``facts``: ``score`` is 1 for the best of the index and 0 for the worst."""

    id: str
    score: float


@operator
def best_facts(index: Release, question: str, k: int) -> list[Fact]:
    """Return the ``k`` facts most similar to a question, scores scaled by min and max.

    By vectors; by BM25 where vectors know words only. Raises InputError where the release has no
    facts.
    """
    check_kept(index, "facts", "facts", "embeddings.facts")
    if index.lexical:
        hits, lowest = index.search_text("facts", question, k), 0.0
    else:
        hits = index.search_vectors("facts", question, k)
        every = index.search_vectors("facts", question, _MOST_SCALED)["score"]
        lowest = every[-1].as_py() if len(every) else 0.0
    scores = hits["score"].to_numpy()
    span = float(scores.max()) - lowest if len(scores) else 0.0
    # All facts alike: the authors' code then gives each 1.
    scaled = (scores - lowest) / span if span > 0 else scores * 0 + 1
    return [Fact(*row) for row in zip(hits["id"].to_pylist(), scaled.tolist(), strict=True)]


def texts_of_facts(index: Release, facts: Sequence[Fact]) -> list[str]:
    """Return what each fact says."""
    texts = index.stored_texts("facts", [fact.id for fact in facts])
    return [texts[fact.id] for fact in facts]


@operator
def ends_of_facts(index: Release, facts: Iterable[Fact]) -> dict[str, tuple[int, int]]:
    """Return the two nodes of ``index.graph`` that each fact joins, by the fact's id."""
    statements = index.graph.edges("statements")
    ids = [fact.id for fact in facts]
    places, is_statement = places_of(statements.ids, ids)
    ends = zip(
        statements.one[places[is_statement]].tolist(),
        statements.two[places[is_statement]].tolist(),
        strict=True,
    )
    return dict(zip(compress(ids, is_statement), ends, strict=True))


@operator
def link_entities(index: Release, names: Sequence[str]) -> Ranking:
    """Return for each name the entity whose title is most like it, with their similarity.

    By vectors of titles; by BM25 where vectors know words only. Raises InputError where the release
    has no vectors of titles.
    """
    check_kept(index, "entity_titles", "synonyms", "embeddings.synonyms")
    search = fulltext_search if index.lexical else vector_search
    return highest(*(search(index, "entity_titles", name, 1) for name in names))


def has_synonyms(index: Release) -> bool:
    """Whether a release was made with synonyms."""
    return "entity_titles" in index.facts.vector_versions
