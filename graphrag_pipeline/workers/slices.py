"""Slices of embeddings: texts that workers turn into vectors where a model runs on the machine.

A slice is named after its texts and its embedder: one that is made twice is the same slice twice,
and one that was made before the coordinator was killed is not made again.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm.configured import configured_embedder
from graphrag_pipeline.llm.embedders import Embedder, Vectors, stored
from graphrag_pipeline.store.objects import MissingObjectError, ObjectStore

MakeSlices = Callable[[Sequence[str]], None]
"""Has these slices made by workers, and returns when they are."""


class SpreadEmbedder:
    """An embedder that leaves what is more than one slice to workers."""

    def __init__(self, embedder: Embedder, objects: ObjectStore, make_slices: MakeSlices) -> None:
        self._embedder = embedder
        self._objects = objects
        self._make_slices = make_slices
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
        """Yield the vectors of each part; those of several are made by workers.

        Raises MissingObjectError where a worker brought none that can be read.
        """
        keys = [order_slice(self._objects, self.name, texts) for texts in parts]
        self._make_slices([key for key in keys if not is_made(self._objects, key)])
        for key in keys:
            yield find_slice(self._objects, key)
            drop_slice(self._objects, key)


def order_slice(objects: ObjectStore, embedder: str, texts: Sequence[str]) -> str:
    """Write down what a worker is to embed, and by which embedder; return the name of the slice."""
    data = json.dumps({"embedder": embedder, "texts": list(texts)}).encode()
    key = hashlib.sha256(data).hexdigest()[:32]
    objects.write(_texts(key), data)
    return key


def make_slice(settings: Settings, objects: ObjectStore, key: str) -> int:
    """Embed the texts of a slice; return how many they are.

    Raises ConfigError where this machine would make other vectors than are ordered.
    """
    order = json.loads(objects.read(_texts(key)))
    embedder = configured_embedder(settings)
    if embedder.name != order["embedder"]:
        raise ConfigError(
            f"this worker embeds by {embedder.name}, the coordinator by {order['embedder']}: give "
            "both the same settings, and the same model"
        )
    written = io.BytesIO()
    np.save(written, embedder.embed(order["texts"]), allow_pickle=False)
    objects.write(_vectors(key), written.getvalue())
    return len(order["texts"])


def is_made(objects: ObjectStore, key: str) -> bool:
    """Whether the vectors of a slice are there."""
    return _vectors(key) in objects.sizes(f"slices/{key}")


def find_slice(objects: ObjectStore, key: str) -> Vectors:
    """Return the vectors of a slice. Raises MissingObjectError where they cannot be read."""
    try:
        return np.load(io.BytesIO(objects.read(_vectors(key))), allow_pickle=False)
    except (ValueError, EOFError) as error:
        drop_slice(objects, key)
        raise MissingObjectError(f"the vectors of slice {key} are damaged: {error}") from None


def drop_slice(objects: ObjectStore, key: str) -> None:
    """Forget a slice."""
    for name in (_texts(key), _vectors(key)):
        objects.drop(name)


def _texts(key: str) -> str:
    return f"slices/{key}/texts.json"


def _vectors(key: str) -> str:
    return f"slices/{key}/vectors.npy"
