"""Passages that stand for a whole corpus: one for each of its clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graphrag_evaluation.questions.question import Passage
from graphrag_pipeline.llm.embedders import HashingEmbedder

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

_MOST: Final = 2000
"""No more chunks than this are clustered: those whose hashes come first, any of them alike."""
_SEED: Final = 3
_ROUNDS: Final = 20
_CHUNKS = """
SELECT d.title, c.text FROM chunks c JOIN documents d ON d.id = c.document_id
ORDER BY md5(c.id), c.id LIMIT $most
"""


def sample_passages(release: Release, number: int) -> list[Passage]:
    """Return the passage in the middle of each of so many clusters, of the largest first.

    The clusters are of the words in the text (k-means on hashing vectors), not of what the index
    makes of it, so that no method under evaluation has chosen what is asked about.
    """
    rows = release.rows(_CHUNKS, most=_MOST)
    passages = [Passage(row["title"], row["text"]) for row in rows]
    if len(passages) <= number:
        return passages
    from sklearn.cluster import MiniBatchKMeans

    vectors = HashingEmbedder().embed([passage.text for passage in passages])
    # Its stubs know "auto" alone, and centres that may be a text.
    kind: Any = MiniBatchKMeans
    model = kind(number, random_state=_SEED, n_init=1, max_iter=_ROUNDS)
    labels = model.fit_predict(vectors)
    distances = ((vectors - model.cluster_centers_[labels]) ** 2).sum(axis=1)
    sizes = np.bincount(labels, minlength=number)
    middles: dict[int, int] = {}
    for place in np.argsort(distances, kind="stable").tolist():
        middles.setdefault(int(labels[place]), place)
    return [passages[middles[label]] for label in sorted(middles, key=lambda n: (-sizes[n], n))]
