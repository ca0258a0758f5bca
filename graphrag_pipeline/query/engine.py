"""Questions on a published release: retrieve, answer, stream; each also async.

Three steps, each a function of the one before: a method gives records (``methods``), records give
a context (``results.render_context``), and an answer is made from them: the evidence itself
(``answering.extractive_answer``), or what a model writes (``writing.write_answer``), as
``settings.query.answers`` says.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import ExitStack, aclosing
from pathlib import Path
from types import TracebackType
from typing import Any

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.settings import Settings, load_settings
from graphrag_pipeline.query.answering import extractive_answer
from graphrag_pipeline.query.citations import citations_of, distinct
from graphrag_pipeline.query.history import HISTORY_TURNS, Turn, recent_turns
from graphrag_pipeline.query.methods import Method, method_named
from graphrag_pipeline.query.methods.method import as_mapping
from graphrag_pipeline.query.release import Release, open_release
from graphrag_pipeline.query.results import Answer, Retrieval
from graphrag_pipeline.query.streaming import AnswerStream
from graphrag_pipeline.query.trace import Trace


class QueryEngine:
    """Repeated questions on one open release; use it as a context manager, or close it.

    Safe to use from several threads. It stays on its release when a new one is published: open
    another engine to see that.

    Raises NothingPublishedError when ``home`` (default: that of the settings) holds no release,
    InputError when ``release`` is named (by its id or the beginning of it) and is not kept.
    """

    def __init__(
        self,
        home: str | Path | None = None,
        *,
        release: str | None = None,
        settings: Settings | None = None,
    ) -> None:
        settings = settings or load_settings(**({} if home is None else {"home": Path(home)}))
        folder = Path(home) if home is not None else settings.home_path
        self._stack = ExitStack()
        self.index: Release = self._stack.enter_context(
            open_release(folder, settings=settings, release=release)
        )

    def retrieve(self, question: str, method: str = "local", **parameters: Any) -> Retrieval:
        """Return what a method finds for a question, with no answer made of it.

        Raises InputError for an empty question, an unknown method or parameter, a value out of
        range, or a budget too small for any of what is found.
        """
        return self._retrieved(question, method, parameters, self.index.traced(Trace()))

    def _retrieved(
        self, question: str, method: str, parameters: Mapping[str, Any], index: Release
    ) -> Retrieval:
        chosen = method_named(method)
        asked = plain_question(question)
        values = chosen.parametrise(parameters, index.settings.query)
        started = time.perf_counter()
        records = chosen.retrieve(index, asked, values)
        if not records:
            index.trace.check_fit(as_mapping(values))
        citations = distinct(citations_of(index, records))
        seconds = time.perf_counter() - started
        return Retrieval(
            method=chosen.name,
            query=asked,
            records=tuple(records),
            citations=citations,
            timings={**index.trace.seconds, "total": seconds},
            parameters=as_mapping(values),
            release=index.facts.id,
            steps=tuple(index.trace.steps),
        )

    def answer(
        self,
        question: str,
        method: str = "local",
        *,
        history: Sequence[Turn] = (),
        history_turns: int = HISTORY_TURNS,
        response_type: str | None = None,
        **parameters: Any,
    ) -> Answer:
        """Return an answer with its citations; see :meth:`retrieve` for errors.

        Where a model writes it, ``history`` is the conversation so far, (role, text) with the roles
        "user" and "assistant", oldest first, of which the ``history_turns`` most recent count;
        ``response_type`` is the length and form asked for. Also raises the model's error, and
        InputError where a model is needed and none is set.
        """
        chosen = self.check(method, parameters)
        talk = recent_turns(history, history_turns)
        if not self.writes:
            return self._extracted(question, method, parameters)
        from graphrag_pipeline.llm.running import run_calls

        pieces = self._written(question, chosen, parameters, talk, response_type, stream=False)
        return run_calls(lambda: _last(pieces))

    def stream_answer(
        self,
        question: str,
        method: str = "local",
        *,
        history: Sequence[Turn] = (),
        history_turns: int = HISTORY_TURNS,
        response_type: str | None = None,
        **parameters: Any,
    ) -> AnswerStream:
        """Return the answer as pieces of text, to iterate or to iterate asynchronously."""
        return AnswerStream(
            lambda: self.pieces(
                question,
                method,
                history=history,
                history_turns=history_turns,
                response_type=response_type,
                **parameters,
            )
        )

    async def pieces(
        self,
        question: str,
        method: str = "local",
        *,
        history: Sequence[Turn] = (),
        history_turns: int = HISTORY_TURNS,
        response_type: str | None = None,
        **parameters: Any,
    ) -> AsyncGenerator[str | Answer, None]:
        """Yield the pieces of an answer's text, then the answer."""
        chosen = self.check(method, parameters)
        talk = recent_turns(history, history_turns)
        if self.writes:
            written = self._written(question, chosen, parameters, talk, response_type, stream=True)
            async with aclosing(written) as pieces:
                async for piece in pieces:
                    yield piece
            return
        made = await asyncio.to_thread(self.answer, question, method, **parameters)
        for line in made.text.splitlines(keepends=True):
            yield line
        yield made

    async def aretrieve(self, question: str, method: str = "local", **parameters: Any) -> Retrieval:
        """Return :meth:`retrieve` without blocking the event loop."""
        return await asyncio.to_thread(self.retrieve, question, method, **parameters)

    async def aanswer(
        self,
        question: str,
        method: str = "local",
        *,
        history: Sequence[Turn] = (),
        history_turns: int = HISTORY_TURNS,
        response_type: str | None = None,
        **parameters: Any,
    ) -> Answer:
        """Return :meth:`answer` without blocking the event loop, on which calls are made."""
        chosen = self.check(method, parameters)
        talk = recent_turns(history, history_turns)
        if not self.writes:
            return await asyncio.to_thread(self.answer, question, method, **parameters)
        return await _last(
            self._written(question, chosen, parameters, talk, response_type, stream=False)
        )

    @property
    def writes(self) -> bool:
        """Whether a model writes the answers."""
        return self.index.settings.query.answers == "llm"

    def check(self, name: str, parameters: Mapping[str, Any]) -> Method[Any]:
        """Return a method by name; raises InputError if it cannot answer as things are set."""
        chosen = method_named(name)
        if self.writes:
            return chosen
        needing = chosen.name if chosen.needs_model else ""
        needing = needing or ("dynamic community selection" if parameters.get("dynamic") else "")
        if needing:
            raise InputError(
                f'{needing} needs a language model: set profile = "llm", or answers = "llm" in '
                "[query], and OPENAI_API_KEY or [llm] base_url"
            )
        return chosen

    def _extracted(self, question: str, method: str, parameters: Mapping[str, Any]) -> Answer:
        index = self.index.traced(Trace())
        with index.trace.counting_embeddings(index.settings):
            retrieval = self._retrieved(question, method, parameters, index)
            return extractive_answer(index, retrieval)

    def _written(
        self,
        question: str,
        method: Method[Any],
        parameters: Mapping[str, Any],
        history: Sequence[Turn],
        response_type: str | None,
        *,
        stream: bool,
    ) -> AsyncGenerator[str | Answer, None]:
        from graphrag_pipeline.query.writing.writer import write_answer

        asked = plain_question(question)
        values = method.parametrise(parameters, self.index.settings.query)
        return write_answer(
            self.index, method, asked, values, history, response_type or "", stream=stream
        )

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
    """Open what is published, answer one question, and close it.

    ``parameters`` are those of the method, and ``history``, ``history_turns`` and
    ``response_type``; see :meth:`QueryEngine.answer`.
    """
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

    async def pieces() -> AsyncGenerator[str | Answer, None]:
        engine = await asyncio.to_thread(QueryEngine, home, release=release, settings=settings)
        with engine:
            async with aclosing(engine.pieces(question, method, **parameters)) as made:
                async for piece in made:
                    yield piece

    return AnswerStream(pieces)


async def aretrieve(question: str, method: str = "local", **options: Any) -> Retrieval:
    """Return :func:`retrieve`, with the same options, without blocking the event loop."""
    return await asyncio.to_thread(retrieve, question, method, **options)


async def aanswer(
    question: str,
    method: str = "local",
    *,
    home: str | Path | None = None,
    release: str | None = None,
    settings: Settings | None = None,
    **parameters: Any,
) -> Answer:
    """Return :func:`answer`, with the same options, without blocking the event loop."""
    _check(question, method)
    engine = await asyncio.to_thread(QueryEngine, home, release=release, settings=settings)
    with engine:
        return await engine.aanswer(question, method, **parameters)


async def _last(pieces: AsyncGenerator[str | Answer, None]) -> Answer:
    """Return the answer at the end of its pieces."""
    async with aclosing(pieces):
        async for piece in pieces:
            if isinstance(piece, Answer):
                return piece
    raise AssertionError("unreachable")


def _check(question: str, method: str) -> None:
    """Complain of what can be seen without opening the release."""
    method_named(method)
    plain_question(question)


def plain_question(question: str) -> str:
    """Return a question as it is asked; raises InputError for one that says nothing.

    So does what is no text: scripts pass on what they read.
    """
    if not isinstance(question, str):
        raise InputError(f"a question is text, not {type(question).__name__}: ask something")
    asked = question.encode("utf-8", "replace").decode().replace("\0", " ").strip()
    if not asked:
        raise InputError("the question is empty: ask something")
    return asked
