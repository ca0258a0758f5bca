"""ArchRAG's layers: entities and attributed communities nearest to a question, layer by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphrag_pipeline.query.operators.attributed import check_attributed
from graphrag_pipeline.query.operators.ranking import Ranking, nearest
from graphrag_pipeline.query.trace import operator
from graphrag_pipeline.systems.archrag.index import open_chnsw

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

_MOST_MATCHES = 1000
_LEVELS = "SELECT id, level FROM attributed_communities"


@operator
def nearest_in_layers(index: Release, question: str, k: int, ef: int) -> list[Ranking]:
    """Rank the ``k`` nodes of each layer most similar to a question, by hierarchical search.

    Entities come first, then the communities of level 1 and so on. ``ef`` is how many candidates
    the search keeps. Where vectors know words only, each layer is searched by BM25; of some
    documents alone, the communities are searched without the index. Raises
    InputError where the release has no such index.
    """
    check_attributed(index)
    if index.lexical or index.is_limited:
        return [nearest(index, "entities", question, k), *_of_levels(index, question, k)]
    layers = index.once("archrag: C-HNSW", lambda whole: whole.opened(open_chnsw))
    layers_hits = layers.search(index.embed_question(question)[None], k, ef)
    return [
        {
            ids[int(place)]: float(score)
            for place, score in zip(hits.places[0].tolist(), hits.scores[0], strict=True)
            if place >= 0
        }
        for ids, hits in zip(layers.ids, layers_hits, strict=True)
    ]


def _of_levels(index: Release, question: str, k: int) -> list[Ranking]:
    """Return for each level, the lowest first, the ``k`` best of the best communities of all."""
    search = index.search_text if index.lexical else index.search_vectors
    hits = search("attributed_communities", question, _MOST_MATCHES)
    found = hits["id"].to_pylist()
    kept = index.kept(_LEVELS)
    rows, places = kept.having("id", found)
    levels, scores = kept.values("level")[rows], hits["score"].to_numpy()[places]
    of_levels: dict[int, Ranking] = {}
    for place, score, level in zip(places.tolist(), scores.tolist(), levels.tolist(), strict=True):
        key = found[place]
        ranking = of_levels.setdefault(level, {})
        if len(ranking) < k:
            ranking[key] = score
    return [of_levels[level] for level in sorted(of_levels)]
