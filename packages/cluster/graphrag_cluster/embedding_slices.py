"""Slices of embeddings: texts that workers turn into vectors where a model runs on the machine."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from graphrag_cluster.pieces import MakePieces, Piece
from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm.configured import configured_embedder
from graphrag_pipeline.llm.embedders import Embedder, Vectors, stored


class SpreadEmbedder:
    """An embedder that leaves what is more than one slice to workers."""

    def __init__(self, embedder: Embedder, make: MakePieces) -> None:
        self._embedder = embedder
        self._make = make
        self.name = embedder.name
        self.storing = stored(embedder)

    @property
    def dimensions(self) -> int:
        """Length of the vectors."""
        return self._embedder.dimensions

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts here."""
        return self._embedder.embed(texts)

    def embed_parts(self, parts: Iterable[Sequence[str]]) -> Iterator[Vectors]:
        """Yield the vectors of each part; those of several are made by workers."""
        return self._make(Piece(order_vectors(self.name, texts), _read) for texts in parts)


def order_vectors(embedder: str, texts: Sequence[str]) -> bytes:
    """Return the order to embed some texts, and by which embedder."""
    return json.dumps({"embedder": embedder, "texts": list(texts)}).encode()


def embed_slice(settings: Settings, order: bytes) -> tuple[bytes, int]:
    """Return the vectors that are ordered, and how many they are.

    Raises ConfigError where this machine would make other vectors.
    """
    given = json.loads(order)
    embedder = configured_embedder(settings)
    if embedder.name != given["embedder"]:
        raise ConfigError(
            f"this worker embeds by {embedder.name}, the coordinator by {given['embedder']}: give "
            "both the same settings, and the same model"
        )
    written = io.BytesIO()
    np.save(written, embedder.embed(given["texts"]), allow_pickle=False)
    return written.getvalue(), len(given["texts"])


def _read(data: bytes) -> Vectors:
    return np.load(io.BytesIO(data), allow_pickle=False)
