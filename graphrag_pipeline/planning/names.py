"""How many entities there will be in chunks that no model has read yet, guessed from their names.

A model writes down about as many entities of a chunk as GPT-4o did of *A Christmas Carol*: 13 for
1,200 tokens, growing with the root of the length (paper, 3.1.2). How many of these are one and the
same is told by the names that rules find: where each text names others (MuSiQue's passages: 69 % of
all names are new), nearly all are entities of their own; where all speak of the same (the podcasts:
16 %), a third are. Of the 1,669 podcasts this gives 7,100 entities; the GraphRAG paper has 8,564.
"""

from __future__ import annotations

import math

import polars as pl

from graphrag_pipeline.extraction.rules.nlp import chunk_names

REPORTS_PER_ENTITY = 0.26
"""Communities of two or more entities on all levels (Carol: 0.23)."""
RELATIONSHIPS_PER_ENTITY = 2.0
"""Relationships for each entity (Carol: 1.8; podcasts: 2.4)."""

_MENTIONED = 0.36
_SHARED = 0.6
_READ = 4000


def guess_entities(chunks: pl.DataFrame) -> float:
    """Return how many entities chunks (columns ``id``, ``text``, ``n_tokens``) will give."""
    if chunks.is_empty():
        return 0.0
    names = chunk_names(chunks.gather_every(math.ceil(len(chunks) / _READ)))["title"]
    mentioned = _MENTIONED * float(chunks["n_tokens"].sqrt().sum())
    return mentioned * (names.n_unique() / len(names)) ** _SHARED if len(names) else mentioned
