"""Cross-encoders on this machine: how much each of some passages says to a question."""

from __future__ import annotations

import contextlib
import json
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from functools import cached_property, lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from graphrag_pipeline.core.errors import GraphRAGError
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.llm.cache import (
    CachedResponse,
    find_response,
    put_response,
    request_json,
    request_key,
)
from graphrag_pipeline.llm.database import CallDatabase
from graphrag_pipeline.llm.embedders import model_name, sentence_transformers, without_bars
from graphrag_pipeline.llm.ledger import Call, put_calls

MOST_SECONDS = 5.0
"""Passages that are not in order by then stay as they were."""

PAIR_TOKENS = 88
"""Tokens of a question and a passage together: nearly those of MS MARCO, which such models know."""

LOCAL = "local:"

_LOADING_SECONDS = 60.0
_BATCH = 8
_STAGE = "query"


class RerankingError(GraphRAGError):
    """Passages could not be put in order; the message says why, in one line."""


class CrossEncoder:
    """A cross-encoder of sentence-transformers (extra ``[local]``), by name or folder.

    Nothing is downloaded. Its weights are used at eight bits, and by one thread: both spare
    processor time, and a question has to wait for it. Safe to use from several threads, which take
    turns.
    """

    def __init__(self, model: str) -> None:
        self._path = model
        self._turn = threading.Lock()

    @cached_property
    def name(self) -> str:
        """Model name, or folder name and digest of its files."""
        return f"local:{model_name(self._path)}"

    def load(self) -> None:
        """Load the model, where it can be had; else :meth:`scores` will say why not."""
        with contextlib.suppress(Exception), self._turn:
            _ = self._model

    def scores(self, question: str, passages: Sequence[str]) -> list[float]:
        """Return how much each passage says to a question; comparable within one call.

        Raises RerankingError where the model cannot be used, and where it takes longer than
        :data:`MOST_SECONDS`, loading it not counted. It then ends its work in the background.
        """
        if not self._turn.acquire(timeout=MOST_SECONDS):
            raise RerankingError(f"{self._path} is still busy with other questions")
        loaded: Future[Any] = Future()
        scored: Future[list[float]] = Future()

        def work() -> None:
            try:
                loaded.set_result(self._model)
                scored.set_result(_predicted(self._model, question, passages))
            except BaseException as error:
                (scored if loaded.done() else loaded).set_exception(error)
            finally:
                self._turn.release()

        threading.Thread(target=work, name="reranker", daemon=True).start()
        try:
            loaded.result(_LOADING_SECONDS)
            return scored.result(MOST_SECONDS)
        except RerankingError:
            raise
        except TimeoutError:
            raise RerankingError(f"{self._path} took over {MOST_SECONDS:g} s") from None
        except Exception as error:
            raise RerankingError(f"{self._path} failed ({type(error).__name__})") from error

    @cached_property
    def _model(self) -> Any:
        try:
            library = sentence_transformers()
        except ImportError as error:
            raise RerankingError(
                "a local reranker needs sentence-transformers: install the extra [local]"
            ) from error
        try:
            with without_bars():
                model = library.CrossEncoder(
                    self._path, max_length=PAIR_TOKENS, local_files_only=True
                )
        except (OSError, ValueError) as error:
            raise RerankingError(
                f"no cross-encoder {self._path} is on disk: name its folder, or download it first"
            ) from error
        return _at_eight_bits(model)


@lru_cache(maxsize=2)
def cross_encoder(reranker: str) -> CrossEncoder:
    """Return the cross-encoder that ``local:NAME`` names, one for the whole process."""
    return CrossEncoder(reranker.removeprefix(LOCAL).strip())


def kept_scores(home: Path, encoder: CrossEncoder, question: str, passages: Sequence[str]) -> Any:
    """Return :meth:`CrossEncoder.scores`, kept with the answers of models and in their ledger."""
    asked = {"reranker": encoder.name, "question": question, "passages": list(passages)}
    key = request_key("local", request_json(asked))
    with contextlib.closing(CallDatabase(Home(home).calls)) as database:
        kept = find_response(database, key)
        if kept is not None:
            with contextlib.suppress(ValueError):
                scores = _checked(json.loads(kept.text), len(passages))
                call = Call(_STAGE, encoder.name, cached=True)
                database.write_later([put_calls(call)])
                return scores
        began = time.perf_counter()
        scores = encoder.scores(question, passages)
        call = Call(_STAGE, encoder.name, seconds=time.perf_counter() - began)
        response = CachedResponse(json.dumps(scores), 0, 0, "stop")
        database.write_later([put_calls(call), put_response(key, encoder.name, response, _STAGE)])
        return scores


def _predicted(model: Any, question: str, passages: Sequence[str]) -> list[float]:
    pairs = [(question, passage) for passage in passages]
    with _one_thread():
        predicted = model.predict(pairs, batch_size=_BATCH, show_progress_bar=False)
    try:
        return _checked(predicted, len(passages))
    except ValueError:
        raise RerankingError("the reranker gave no one number for each passage") from None


def _checked(values: Any, count: int) -> list[float]:
    """Return so many finite numbers; raises ValueError where they are something else."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except TypeError as error:
        raise ValueError(str(error)) from None
    if numbers.shape != (count,) or not np.isfinite(numbers).all():
        raise ValueError("not one finite number for each passage")
    return numbers.tolist()


def _at_eight_bits(model: Any) -> Any:
    """Return a model with its weights at eight bits, where it runs on a processor that can."""
    try:
        torch = import_module("torch")
        on_processor = isinstance(model, torch.nn.Module) and str(model.device) == "cpu"
        quantize = torch.ao.quantization.quantize_dynamic if on_processor else None
    except (ImportError, AttributeError):
        return model
    if quantize is None:
        return model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return quantize(model, {torch.nn.Linear}, dtype=torch.qint8, inplace=True)


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Let torch compute with one thread: several wait for each other by computing nothing."""
    try:
        torch = import_module("torch")
    except ImportError:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
