"""Texts cut to what an embedding model takes, and its vectors put together again."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from graphrag_pipeline.core.tokens import get_encoding
from graphrag_pipeline.llm.errors import TransientModelError

Vectors = npt.NDArray[np.float32]

MAX_PIECES = 256
MAX_REQUEST_BYTES = 400_000


class TextPiece(NamedTuple):
    """A text or part of one, and its length in bytes, by which parts are weighed."""

    text: str
    n_bytes: int


def pieces(text: str, max_tokens: int) -> list[TextPiece]:
    """Cut a text into pieces of at most so many tokens; most texts are one piece.

    Nothing at all becomes one space, for servers refuse an empty text.
    """
    data = text.encode("utf-8", "replace")
    if not text.strip():
        return [TextPiece(" ", 1)]
    if len(data) <= max_tokens:
        return [TextPiece(data.decode(), len(data))]
    encoding = get_encoding()
    tokens = encoding.encode_ordinary(data.decode())
    if len(tokens) <= max_tokens:
        return [TextPiece(data.decode(), len(data))]
    blocks = (tokens[start : start + max_tokens] for start in range(0, len(tokens), max_tokens))
    parts = [encoding.decode_bytes(block) for block in blocks]
    return [TextPiece(part.decode("utf-8", "ignore") or " ", len(part)) for part in parts]


def batches(parts: Iterable[TextPiece]) -> Iterator[list[TextPiece]]:
    """Yield the pieces in groups that one request holds."""
    group: list[TextPiece] = []
    n_bytes = 0
    for part in parts:
        if group and (len(group) == MAX_PIECES or n_bytes + part.n_bytes > MAX_REQUEST_BYTES):
            yield group
            group, n_bytes = [], 0
        group.append(part)
        n_bytes += part.n_bytes
    if group:
        yield group


def read_vectors(raw: Mapping[str, Any], count: int) -> Vectors:
    """Return the vectors of a response, (count, dimensions), in the order of the request.

    A server that gives every vector the index 0, or none, sends them in that order. Raises
    TransientModelError if they are not all there, or one is no direction: not numbers, not finite,
    of length nought.
    """
    try:
        data = list(raw["data"])
        places = [row.get("index") for row in data]
        ordered = range(count) if set(places) in ({0}, {None}) else places
        rows = dict(zip(ordered, data, strict=True)) if len(data) == count else {}
        vectors = np.stack([_vector(rows[index]["embedding"]) for index in range(count)])
    except (KeyError, TypeError, ValueError, AttributeError):
        vectors = np.zeros((0, 0), dtype=np.float32)
    if vectors.ndim != 2 or not len(vectors) or not are_usable(vectors).all():
        raise TransientModelError(
            "the embedding server sent no vector, or a broken one, for some text: check that "
            "embedding_model is an embedding model",
            "body",
        )
    return vectors


def are_usable(vectors: Vectors) -> npt.NDArray[np.bool_]:
    """Return which of some vectors, (count, dimensions), are directions: finite and not nought."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    return np.isfinite(lengths) & (lengths > 0)


def combine(vectors: Vectors, texts: Sequence[Sequence[TextPiece]]) -> Vectors:
    """Return one vector of length one for each text: the mean of its pieces', by their bytes.

    ``vectors`` has a row of length one for each piece of each text, in order.
    """
    if all(len(parts) == 1 for parts in texts):
        return vectors
    weights = np.array([p.n_bytes for parts in texts for p in parts], dtype=np.float32)
    starts = np.cumsum([0, *(len(parts) for parts in texts[:-1])])
    return normalised(np.add.reduceat(vectors * weights[:, None], starts, axis=0))


def normalised(vectors: Vectors) -> Vectors:
    """Return the vectors at length one; a vector of zeros stays as it is."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)


def _vector(given: str | list[float]) -> Vectors:
    if isinstance(given, str):
        return np.frombuffer(base64.b64decode(given), dtype="<f4").astype(np.float32)
    return np.asarray(given, dtype=np.float32)
