"""Questions on a published release: retrieve, answer, stream; each also async.

Three steps, each a function of the one before: a method gives records (``methods``), records give
a context (``context.render_context``), and an answer is made from them
(``answering.extractive_answer``).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.errors import InputError
from graphrag_pipeline.query.answering import extractive_answer
from graphrag_pipeline.query.citations import citations_of, distinct
from graphrag_pipeline.query.methods import METHODS, Method
from graphrag_pipeline.query.methods.method import as_mapping
from graphrag_pipeline.query.release import Release, open_release
from graphrag_pipeline.query.results import Answer, Retrieval
from graphrag_pipeline.query.timing import recorded

if TYPE_CHECKING:
    from graphrag_pipeline.config import Settings


class QueryEngine:
    """Repeated questions on one open release; use it as a context manager, or close it.

    Safe to use from several threads. It stays on its release when a new one is published: open
    another engine to see that.

    Raises NothingPublishedError when ``home`` (default: that of the settings) holds no release,
    InputError when ``release`` is named and is not the one published.
    """

    def __init__(
        self,
        home: str | Path | None = None,
        *,
        release: str | None = None,
        settings: Settings | None = None,
    ) -> None:
        settings = settings or _settings(home)
        folder = Path(home) if home is not None else settings.home_path
        self._stack = ExitStack()
        self.index: Release = self._stack.enter_context(
            open_release(folder, settings=settings, release=release)
        )

    def retrieve(self, question: str, method: str = "local", **parameters: Any) -> Retrieval:
        """Return what a method finds for a question, with no answer made of it.

        Raises InputError for an empty question, an unknown method or parameter, or a value out of
        range.
        """
        chosen = _method(method)
        asked = _question(question)
        values = chosen.parametrise(parameters, self.index.settings.query)
        with recorded() as timings:
            records = chosen.retrieve(self.index, asked, values)
            citations = distinct(citations_of(self.index, records))
        return Retrieval(
            method=method,
            query=asked,
            records=tuple(records),
            citations=citations,
            timings=timings,
            parameters=as_mapping(values),
            release=self.index.facts.id,
        )

    def answer(self, question: str, method: str = "local", **parameters: Any) -> Answer:
        """Return an answer with its citations; see :meth:`retrieve` for errors."""
        return extractive_answer(self.index, self.retrieve(question, method, **parameters))

    def stream_answer(
        self, question: str, method: str = "local", **parameters: Any
    ) -> AnswerStream:
        """Return the answer as pieces of text, to iterate or to iterate asynchronously."""
        return AnswerStream(lambda: self.answer(question, method, **parameters))

    async def aretrieve(self, question: str, method: str = "local", **parameters: Any) -> Retrieval:
        """Return :meth:`retrieve` without blocking the event loop."""
        return await asyncio.to_thread(self.retrieve, question, method, **parameters)

    async def aanswer(self, question: str, method: str = "local", **parameters: Any) -> Answer:
        """Return :meth:`answer` without blocking the event loop."""
        return await asyncio.to_thread(self.answer, question, method, **parameters)

    def close(self) -> None:
        """Let go of the release."""
        self._stack.close()

    def __enter__(self) -> QueryEngine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class AnswerStream:
    """The pieces of an answer's text, in order; together they are ``answer.text``.

    Works with ``for`` and with ``async for``, once. Errors are raised by the first piece.
    """

    def __init__(self, make: Callable[[], Answer]) -> None:
        self._make = make
        self._answer: Answer | None = None

    @property
    def answer(self) -> Answer:
        """The complete answer; raises InputError until the stream has begun."""
        if self._answer is None:
            raise InputError("the answer is not there yet: iterate over the stream first")
        return self._answer

    def __iter__(self) -> Iterator[str]:
        self._answer = self._make()
        yield from self._answer.text.splitlines(keepends=True)

    async def __aiter__(self) -> AsyncIterator[str]:
        self._answer = await asyncio.to_thread(self._make)
        for piece in self._answer.text.splitlines(keepends=True):
            yield piece


def retrieve(
    question: str,
    method: str = "local",
    *,
    home: str | Path | None = None,
    release: str | None = None,
    settings: Settings | None = None,
    **parameters: Any,
) -> Retrieval:
    """Open what is published, retrieve for one question, and close it.

    ``home`` defaults to that of the settings. ``parameters`` are those of the method. See
    :class:`QueryEngine` for errors, and use it to ask more than once.
    """
    _check(question, method)
    with QueryEngine(home, release=release, settings=settings) as engine:
        return engine.retrieve(question, method, **parameters)


def answer(
    question: str,
    method: str = "local",
    *,
    home: str | Path | None = None,
    release: str | None = None,
    settings: Settings | None = None,
    **parameters: Any,
) -> Answer:
    """Open what is published, answer one question, and close it; see :func:`retrieve`."""
    _check(question, method)
    with QueryEngine(home, release=release, settings=settings) as engine:
        return engine.answer(question, method, **parameters)


def stream_answer(
    question: str,
    method: str = "local",
    *,
    home: str | Path | None = None,
    release: str | None = None,
    settings: Settings | None = None,
    **parameters: Any,
) -> AnswerStream:
    """Return the pieces of an answer; the release is opened when iteration begins."""
    _check(question, method)
    return AnswerStream(
        lambda: answer(
            question, method, home=home, release=release, settings=settings, **parameters
        )
    )


async def aretrieve(question: str, method: str = "local", **options: Any) -> Retrieval:
    """Return :func:`retrieve`, with the same options, without blocking the event loop."""
    return await asyncio.to_thread(retrieve, question, method, **options)


async def aanswer(question: str, method: str = "local", **options: Any) -> Answer:
    """Return :func:`answer`, with the same options, without blocking the event loop."""
    return await asyncio.to_thread(answer, question, method, **options)


def _settings(home: str | Path | None) -> Settings:
    """Read the settings; those beside a named index are preferred."""
    from graphrag_pipeline.config import CONFIG_FILE, load_settings

    beside = Path(home) / CONFIG_FILE if home is not None else None
    return load_settings(beside if beside and beside.is_file() else None)


def _check(question: str, method: str) -> None:
    """Complain of what can be seen without opening the release."""
    _method(method)
    _question(question)


def _method(name: str) -> Method[Any]:
    if name not in METHODS:
        raise InputError(f"unknown method {name!r}: use one of {', '.join(METHODS)}")
    return METHODS[name]


def _question(question: str) -> str:
    asked = question.encode("utf-8", "replace").decode().replace("\0", " ").strip()
    if not asked:
        raise InputError("the question is empty: ask something")
    return asked
