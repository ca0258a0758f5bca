"""Time that vectors by a model on this machine will take; they cost nothing else."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.core.tokens import BYTES_PER_TOKEN
from graphrag_pipeline.llm.configured import configured_embedder
from graphrag_pipeline.llm.embedders import Embedder
from graphrag_pipeline.llm.estimates import Growth
from graphrag_pipeline.planning.estimates import to_embed

_TRIED = 8
"""Texts that are embedded to learn how long others take."""


@dataclass(frozen=True)
class LocalVectors:
    """About how many texts the model will embed, and how many seconds of this machine's time."""

    model: str
    texts: int
    seconds: float


def local_vectors(settings: Settings, growth: Growth, sample: Sequence[str]) -> LocalVectors | None:
    """Return what there is to embed, None where no local model has anything to embed.

    The time is that of some texts of the ``sample``, embedded now. Raises EmbeddingError where the
    model cannot be loaded.
    """
    if settings.embeddings.embedder != "local" or not sample:
        return None
    texts = to_embed(settings, growth)
    number = sum(part.number for part in texts)
    if not number:
        return None
    tried = sample[:: max(1, len(sample) // _TRIED)][:_TRIED]
    seconds = seconds_of(configured_embedder(settings), tried)
    n_bytes = sum(len(text.encode("utf-8", "replace")) for text in tried)
    all_bytes = BYTES_PER_TOKEN * sum(part.tokens for part in texts)
    return LocalVectors(settings.embeddings.model, round(number), seconds * all_bytes / n_bytes)


def seconds_of(embedder: Embedder, texts: Sequence[str]) -> float:
    """Return how long an embedder takes for some texts, once it is loaded."""
    embedder.embed(texts[:1])
    began = time.perf_counter()
    embedder.embed(texts)
    return time.perf_counter() - began
