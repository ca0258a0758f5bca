"""Texts as vectors: one interface, a lexical embedder that needs nothing, and local models."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from hashlib import blake2b, file_digest
from importlib import import_module
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.text import own_terms
from graphrag_pipeline.core.word_lists import ranked_words
from graphrag_pipeline.llm.embeddings import TextPiece, combine

Vectors = npt.NDArray[np.float32]
"""One row per text, each of length one."""

DEFAULT_DIMENSIONS = 640

_HASHING_VERSION = 1
# Version 1 read the beginning of a long text.
_LOCAL_VERSION = 2
_BLOCK_ROWS = 1024
_PLACES = 4
_LOWEST_WEIGHT = 0.1
_MARKS_AT_MOST = 8
_MARKS = ("cls", "sep", "bos", "eos", "pad")


class EmbeddingError(ConfigError):
    """An embedder that cannot be made as configured; the message says what to change."""


class Embedder(Protocol):
    """A way to turn texts into vectors."""

    @property
    def name(self) -> str:
        """Model and every parameter that shapes its vectors: another name, other vectors."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of the vectors."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return an array (texts, dimensions), float32, rows of length one, never NaN."""
        ...


@runtime_checkable
class TokenEmbedder(Protocol):
    """An embedder that also gives a vector for each token, in context."""

    @property
    def name(self) -> str:
        """As an embedder's."""
        ...

    def token_vectors(self, texts: Sequence[str]) -> list[Vectors]:
        """Return an array (tokens, dimensions) for each text, marks such as [CLS] left out."""
        ...


@runtime_checkable
class PartEmbedder(Protocol):
    """An embedder that would rather have all parts of a large work at once."""

    def embed_parts(self, parts: Iterable[Sequence[str]]) -> Iterator[Vectors]:
        """Yield the vectors of each part, as ``embed`` returns them."""
        ...


class Storing(NamedTuple):
    """Rules to store the vectors of an embedder: how many at most at once, and how precisely."""

    rows: int = 10**6
    half: bool = False
    by_terms: bool = False
    """Whether they are made of search terms: other terms, other vectors."""


class HashingEmbedder:
    """Words as vectors by signed feature hashing: no model, no download, no meaning.

    Each search term of a text in its language (:func:`~graphrag_pipeline.core.text.own_terms`)
    adds to four dimensions, chosen with their signs by a hash of the term, 1 + log of its count in
    the text, times a fixed weight that is low for common English words. Two texts are near when
    they share rare words; synonyms are not known. A vector depends on its text alone: not on other
    texts, the process or the machine. Feature hashing: Weinberger et al. 2009, "Feature Hashing for
    Large Scale Multitask Learning".
    """

    storing = Storing(half=True, by_terms=True)

    def __init__(self, dimensions: int = DEFAULT_DIMENSIONS) -> None:
        if dimensions < 2:
            raise EmbeddingError(f"hashing needs at least 2 dimensions, not {dimensions}")
        self.dimensions = dimensions
        self.name = f"hashing-v{_HASHING_VERSION}-{dimensions}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text; texts without terms share a vector at right angles to all."""
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for start in range(0, len(texts), _BLOCK_ROWS):
            block = texts[start : start + _BLOCK_ROWS]
            vectors[start : start + len(block)] = self._embed_block(block)
        return vectors

    def _embed_block(self, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        rows, hashes, values = _weighted_terms(texts)
        # The last dimension is kept for texts without terms.
        cells = rows[:, None] * self.dimensions + (hashes >> 1) % (self.dimensions - 1)
        signed = np.where(hashes & 1, 1.0, -1.0) * values[:, None]
        flat = np.bincount(cells.ravel(), signed.ravel(), len(texts) * self.dimensions)
        matrix = flat.astype(np.float64, copy=False).reshape(len(texts), self.dimensions)
        norms = np.linalg.norm(matrix, axis=1, keepdims=True)
        empty = norms[:, 0] < 1e-9
        matrix[empty, -1] = norms[empty] = 1.0
        matrix /= norms
        return matrix


class SentenceTransformerEmbedder:
    """A sentence-transformers model, run on this machine (extra ``[local]``).

    Parameters
    ----------
    model
        Name on the model hub, or a folder that holds the model.
    dimensions
        Cut vectors to their first so many numbers, for models trained for it; None keeps all.
    """

    storing = Storing(rows=1024, half=True)

    def __init__(self, model: str, dimensions: int | None = None) -> None:
        self._path = model
        self._truncate = dimensions

    @property
    def name(self) -> str:
        """Model name, or folder name and digest of its files; and the cut, if any."""
        cut = f"-{self._truncate}" if self._truncate else ""
        return f"sentence-transformers-v{_LOCAL_VERSION}:{self._model_name}{cut}"

    @property
    def dimensions(self) -> int:
        """Length of the vectors, as the model says; loads it."""
        size = self._model.get_embedding_dimension()
        if size is None or size < (self._truncate or 0):
            raise EmbeddingError(
                f"{self._path} gives vectors of {size} dimensions, not {self._truncate}: "
                "set the dimensions to that or less"
            )
        return size

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text: of one longer than the model reads, the mean of its pieces."""
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        parts = [
            [TextPiece(part, len(part.encode())) for part in self._parts(text)] for text in texts
        ]
        # The model takes the longest first, so that texts of a length share a batch.
        vectors = self._model.encode(
            [part.text for of_text in parts for part in of_text],
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return combine(np.asarray(vectors, dtype=np.float32), parts)

    def _parts(self, text: str) -> list[str]:
        """Return a text in as few parts, of about a length, as the model can read whole."""
        most, tokenizer = self._model.max_seq_length, self._model.tokenizer
        # No token is less than a byte.
        if most is None or len(text.encode()) <= most - _MARKS_AT_MOST:
            return [text]
        n_parts = -(-len(tokenizer.encode(text, verbose=False)) // most)
        if n_parts == 1:
            return [text]
        return [part for piece in cut_evenly(text, n_parts) for part in self._parts(piece)]

    def token_vectors(self, texts: Sequence[str]) -> list[Vectors]:
        """Return the vectors of each text's tokens; longer texts are cut to what the model reads.

        Marks that the model's tokenizer adds, such as [CLS], are left out.
        """
        if not texts:
            return []
        rows = self._model.encode(
            list(texts), output_value="token_embeddings", show_progress_bar=False
        )
        tokenizer = self._model.tokenizer
        # Not all special tokens: one that stands for an unknown word is a token of the text.
        marks = {getattr(tokenizer, f"{mark}_token_id", None) for mark in _MARKS}
        # Version 6 has another name for it.
        tokens = getattr(self._model, "preprocess", None) or self._model.tokenize
        vectors = []
        for text, row in zip(texts, rows, strict=True):
            ids = tokens([text])["input_ids"][0].tolist()
            places = [place for place, token in enumerate(ids) if token not in marks]
            vectors.append(np.asarray(row.cpu().numpy(), dtype=np.float32)[places])
        return vectors

    @cached_property
    def _model_name(self) -> str:
        return model_name(self._path)

    @cached_property
    def _model(self) -> Any:
        try:
            library = sentence_transformers()
        except ImportError as error:
            raise EmbeddingError(
                "local embeddings need sentence-transformers: install the extra [local]"
            ) from error
        with without_bars():
            return library.SentenceTransformer(self._path, truncate_dim=self._truncate)


def cut_evenly(text: str, n_parts: int) -> list[str]:
    """Return a text in so many parts of about a length, between words where there are any.

    >>> cut_evenly("one two three four", 2), cut_evenly("abcdef", 3)
    (['one two', ' three four'], ['ab', 'cd', 'ef'])
    """
    places = [0]
    for part in range(1, n_parts):
        middle = part * len(text) // n_parts
        space = text.rfind(" ", places[-1] + 1, middle + 1)
        places.append(space if space > 0 else max(middle, places[-1]))
    return [text[a:b] for a, b in pairwise([*places, len(text)]) if b > a]


def sentence_transformers() -> Any:
    """Return the library of local models. Raises ImportError where it is not installed.

    Threads that wait for each other sleep, unless the environment says otherwise: where other
    programs run too, they would spend more time on waiting than on computing.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    return import_module("sentence_transformers")


@contextlib.contextmanager
def without_bars() -> Iterator[None]:
    """Load a local model without the bars that its library draws on standard error."""
    try:
        bars = import_module("transformers.utils.logging")
    except ImportError:
        yield
        return
    drawn = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        if drawn:
            bars.enable_progress_bar()


def stored(embedder: Embedder) -> Storing:
    """Return how the vectors of an embedder are to be stored.

    What this machine makes is stored in half precision, which is finer than any of it means:
    cosines stay the same within 0.001. An endpoint's vectors stay as they were bought, for the
    cache of answers has them too.
    """
    return getattr(embedder, "storing", Storing())


def model_name(model: str) -> str:
    """Return a model's name on the hub, or its folder's name and a digest of its files."""
    folder = Path(model)
    return f"{folder.name}@{_digest_of(folder)}" if folder.is_dir() else model


def make_embedder(
    kind: Literal["hashing", "local"], *, model: str = "", dimensions: int = 0
) -> Embedder:
    """Return the configured embedder.

    Parameters
    ----------
    kind
        ``hashing`` (no model) or ``local`` (sentence-transformers).
    model
        Name or folder of the local model; hashing has none.
    dimensions
        0 for the embedder's own: :data:`DEFAULT_DIMENSIONS`, or what the model gives.

    Raises
    ------
    EmbeddingError
        Unknown kind, or a local embedder without a model.
    """
    if kind == "hashing":
        return HashingEmbedder(dimensions or DEFAULT_DIMENSIONS)
    if kind == "local":
        if not model:
            raise EmbeddingError("local embeddings need a model: give its name or folder")
        return SentenceTransformerEmbedder(model, dimensions or None)
    raise EmbeddingError(f"no embedder of kind {kind!r}: use 'hashing' or 'local'")


def _weighted_terms(
    texts: Sequence[str],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return row, hashes (four of 32 bits) and weight of each distinct term of each text."""
    words = [joined.split() for joined in own_terms(texts)]
    lengths = np.fromiter(map(len, words), np.int64, len(words))
    # Sorted, so that the order of summing, and its rounding, does not depend on other texts.
    vocabulary = sorted(set(chain.from_iterable(words)))
    codes = {term: code for code, term in enumerate(vocabulary)}
    flat = np.fromiter(map(codes.__getitem__, chain.from_iterable(words)), np.int64, lengths.sum())
    occurrences = np.repeat(np.arange(len(words)), lengths) * len(vocabulary) + flat
    distinct, counts = np.unique(occurrences, return_counts=True)
    rows, term = np.divmod(distinct, max(1, len(vocabulary)))
    hashes = np.frombuffer(b"".join(map(_hash, vocabulary)), "<u4").reshape(-1, _PLACES)
    common = _common_weights()
    weights = np.array([common.get(word, 1.0) for word in vocabulary])
    return rows, hashes[term].astype(np.int64), (1.0 + np.log(counts)) * weights[term]


@lru_cache(maxsize=1 << 17)
def _hash(term: str) -> bytes:
    return blake2b(term.encode(), digest_size=4 * _PLACES).digest()


@lru_cache(maxsize=1)
def _common_weights() -> dict[str, float]:
    """Return the weights of common terms, rising with the logarithm of their rank to one."""
    common = ranked_words("common_terms.txt")
    shares = np.log1p(np.arange(len(common))) / np.log1p(len(common))
    weights = _LOWEST_WEIGHT + (1.0 - _LOWEST_WEIGHT) * shares**2
    return dict(zip(common, weights.tolist(), strict=True))


def _digest_of(folder: Path) -> str:
    digest = blake2b(digest_size=8)
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        with path.open("rb") as stream:
            digest.update(file_digest(stream, blake2b).digest())
    return digest.hexdigest()
