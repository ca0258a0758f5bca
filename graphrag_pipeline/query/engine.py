"""Questions on a published release: retrieve, answer, stream; each also async.

Three steps, each a function of the one before: a method gives records (``methods``), records give
a context (``results.render_context``), and an answer is made from them: the evidence itself
(``answering.extractive_answer``), or what a model writes (``writing.write_answer``), as
``settings.query.answers`` says.
"""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import ExitStack, aclosing
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.settings import load_settings
from graphrag_pipeline.llm.configured import check_own_prompts
from graphrag_pipeline.llm.rerankers import LOCAL, cross_encoder
from graphrag_pipeline.llm.running import run_calls
from graphrag_pipeline.query.answering import extractive_answer
from graphrag_pipeline.query.ask import Ask
from graphrag_pipeline.query.asked_documents import limited_as_asked
from graphrag_pipeline.query.citations import citations_of, distinct
from graphrag_pipeline.query.control import Control
from graphrag_pipeline.query.follow_ups import follow_ups_by_rule
from graphrag_pipeline.query.json_answers import checked_format
from graphrag_pipeline.query.limited_release import checked_labels
from graphrag_pipeline.query.methods import Method, method_named
from graphrag_pipeline.query.methods.method import as_mapping
from graphrag_pipeline.query.misspelt import as_spelt
from graphrag_pipeline.query.release import Release, open_release
from graphrag_pipeline.query.results import Answer, Retrieval
from graphrag_pipeline.query.streaming import AnswerStream
from graphrag_pipeline.query.trace import Trace
from graphrag_pipeline.query.writer import write_answer

if TYPE_CHECKING:
    from graphrag_pipeline.core.settings import Settings


class QueryEngine:
    """Repeated questions on one open release; use it as a context manager, or close it.

    Safe to use from several threads. It stays on its release when a new one is published: open
    another engine to see that. With ``labels`` it shows what somebody with these may see: see
    :meth:`view`. With ``bare`` it names no document by a path of this machine.

    Raises NothingPublishedError when ``home`` (default: that of the settings) holds no release,
    InputError when ``release`` is named (by its id or the beginning of it) and is not kept,
    ConfigError when a model writes the answers and a prompt of the user's own is wrong.
    """

    def __init__(
        self,
        home: str | Path | None = None,
        *,
        release: str | None = None,
        labels: Collection[str] | None = None,
        settings: Settings | None = None,
        bare: bool = False,
    ) -> None:
        settings = settings or load_settings(**({} if home is None else {"home": Path(home)}))
        folder = Path(home) if home is not None else settings.home_path
        if settings.query.answers == "llm":
            check_own_prompts(settings)
        self._stack = ExitStack()
        self.index: Release = self._stack.enter_context(
            open_release(folder, settings=settings, release=release, bare=bare)
        )
        if labels is not None:
            try:
                self.index = self.index.view(checked_labels(labels))
            except BaseException:
                self.close()
                raise

    def retrieve(self, question: str | Ask, method: str = "", **parameters: Any) -> Retrieval:
        """Return what a method finds for a question, with no answer made of it.

        Without a method: local where a model writes the answers, else auto.

        Raises InputError for an empty question, an unknown method or parameter, a value out of
        range, or a budget too small for any of what is found.
        """
        ask = self._asked(question, method, parameters)
        index = limited_as_asked(self.index, ask).traced(Trace())
        ask, lines = self._as_spelt(ask, index)
        for line in lines:
            index.trace.step(line)
        return self._retrieved(ask, index)

    def retrieve_on(self, ask: Ask) -> tuple[Release, Retrieval]:
        """Return :meth:`retrieve`, and the release as it was asked, with what it took."""
        ask = ask.by(self.index.settings)
        index = limited_as_asked(self.index, ask).traced(Trace())
        with index.trace.counting_embeddings(index.settings):
            return index, self._retrieved(ask, index)

    def rehearse(self, question: str | Ask, method: str = "", **parameters: Any) -> Retrieval:
        """Return :meth:`retrieve` without its reranker: what answers need is loaded then.

        A local reranker is loaded too. No reranker is asked, for its answer would be kept.
        """
        query = self.index.settings.query
        if query.reranker.startswith(LOCAL):
            cross_encoder(query.reranker).load()
        ask = self._asked(question, method, parameters)
        index = limited_as_asked(self.index, ask).traced(Trace())
        plain = query.model_copy(update={"reranker": ""})
        index.settings = index.settings.model_copy(update={"query": plain})
        return self._retrieved(ask, index)

    def answer(self, question: str | Ask, method: str = "", **options: Any) -> Answer:
        """Return an answer with its citations; see :meth:`retrieve` for errors.

        ``options`` are the method's parameters, and ``where``, ``follow_ups``, ``history``,
        ``history_turns``, ``response_type``, ``answer_style``, ``response_format``, ``sentences``
        and ``context`` of :class:`Ask`. Also raises the model's error, and InputError where a model
        is needed and none is set.
        """
        ask = self._checked(question, method, options)
        if not self.writes:
            return self._extracted(ask)
        return run_calls(lambda: _last(write_answer(self.index, ask, stream=False)))

    def stream_answer(self, question: str | Ask, method: str = "", **options: Any) -> AnswerStream:
        """Return the answer as pieces of text, to iterate or to iterate asynchronously."""
        return AnswerStream(lambda: self.pieces(question, method, **options))

    async def pieces(
        self, question: str | Ask, method: str = "", **options: Any
    ) -> AsyncGenerator[str | Answer, None]:
        """Yield the pieces of an answer's text, then the answer."""
        ask = self._checked(question, method, options)
        if self.writes:
            async with aclosing(write_answer(self.index, ask, stream=True)) as pieces:
                async for piece in pieces:
                    yield piece
            return
        extracted = await asyncio.to_thread(self._extracted, ask)
        for line in extracted.text.splitlines(keepends=True):
            yield line
        yield extracted

    async def aretrieve(
        self, question: str | Ask, method: str = "", **parameters: Any
    ) -> Retrieval:
        """Return :meth:`retrieve` without blocking the event loop."""
        return await asyncio.to_thread(self.retrieve, question, method, **parameters)

    async def aanswer(self, question: str | Ask, method: str = "", **options: Any) -> Answer:
        """Return :meth:`answer` without blocking the event loop, on which calls are made."""
        ask = self._checked(question, method, options)
        if not self.writes:
            return await asyncio.to_thread(self._extracted, ask)
        return await _last(write_answer(self.index, ask, stream=False))

    def controlled(self, control: Control) -> QueryEngine:
        """Return this engine for one question that is watched, and may be stopped, by ``control``.

        It is not to be closed: the release stays that of this engine.
        """
        return self._on(self.index.controlled(control))

    def view(self, labels: Collection[str] | None) -> QueryEngine:
        """Return this engine as somebody with these labels may ask it; None may see everything.

        It is not to be closed: the release stays that of this engine. For errors see
        :meth:`Release.view`.
        """
        return self._on(self.index.view(checked_labels(labels)))

    def _on(self, index: Release) -> QueryEngine:
        engine = copy.copy(self)
        engine._stack, engine.index = ExitStack(), index
        return engine

    @property
    def writes(self) -> bool:
        """Whether a model writes the answers."""
        return self.index.settings.query.answers == "llm"

    def check(
        self,
        name: str,
        parameters: Mapping[str, Any],
        answer_style: str | None = None,
        response_format: Mapping[str, Any] | None = None,
    ) -> Method[Any]:
        """Return a method by name; raises InputError if it cannot answer as things are set."""
        method = method_named(name)
        if self.writes:
            return method
        needing = method.name if method.needs_model else ""
        needing = needing or ("dynamic community selection" if parameters.get("dynamic") else "")
        if (answer_style or self.index.settings.query.answer_style) == "short":
            needing = needing or "a short answer"
        if needing:
            raise InputError(
                f'{needing} needs a language model: set profile = "llm", or answers = "llm" in '
                "[query], and OPENAI_API_KEY or [llm] base_url"
            )
        if checked_format(response_format) is not None:
            raise InputError(
                "response_format: no model writes the answers here, so they are text: leave it out"
            )
        return method

    def _asked(self, question: str | Ask, method: str, options: Mapping[str, Any]) -> Ask:
        return Ask.of(question, method, **options).by(self.index.settings)

    def _checked(self, question: str | Ask, method: str, options: Mapping[str, Any]) -> Ask:
        """Return what is asked; raises InputError if it cannot be answered as things are set."""
        ask = self._asked(question, method, options)
        self.check(ask.method, ask.parameters, ask.answer_style, ask.response_format)
        return ask

    def _retrieved(self, ask: Ask, index: Release) -> Retrieval:
        method = method_named(ask.method)
        values = method.parametrise(ask.parameters, index.settings)
        start = time.perf_counter()
        with index.asked_in(ask.question):
            records = method.retrieve(index, ask.question, values)
            if not records:
                index.trace.check_fit(as_mapping(values))
            citations = distinct(index, citations_of(index, records))
        seconds = time.perf_counter() - start
        return Retrieval(
            method=method.name,
            query=ask.question,
            records=tuple(records),
            citations=citations,
            timings={**index.trace.seconds, "total": seconds},
            parameters=as_mapping(values),
            release=index.facts.id,
            steps=tuple(index.trace.steps),
        )

    def _extracted(self, ask: Ask) -> Answer:
        index = limited_as_asked(self.index, ask).traced(Trace())
        asked_so, (ask, lines) = ask.question, self._as_spelt(ask, index)
        with index.trace.counting_embeddings(index.settings):
            answer = extractive_answer(
                index, self._retrieved(ask, index), sentences=ask.sentences, context=ask.context
            )
            asked = "\n".join(
                [ask.question, *(text for role, text in ask.history if role == "user")]
            )
            n = ask.follow_ups
            questions = follow_ups_by_rule(index, asked, answer.text, n) if n else ()
            return replace(answer, query=asked_so, doubts=lines, follow_ups=questions)

    def _as_spelt(self, ask: Ask, index: Release) -> tuple[Ask, tuple[str, ...]]:
        """Return what is asked as documents spell it, and lines on it: models read mistakes."""
        question, lines = (ask.question, ()) if self.writes else as_spelt(index, ask.question)
        return (replace(ask, question=question) if lines else ask), lines

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
    question: str | Ask,
    method: str = "",
    *,
    home: str | Path | None = None,
    release: str | None = None,
    labels: Collection[str] | None = None,
    settings: Settings | None = None,
    **parameters: Any,
) -> Retrieval:
    """Open what is published, retrieve for one question, and close it.

    ``home`` defaults to that of the settings. ``parameters`` are those of the method. See
    :class:`QueryEngine` for errors, and use it to ask more than once.
    """
    ask = _ask(question, method, parameters)
    with QueryEngine(home, release=release, labels=labels, settings=settings) as engine:
        return engine.retrieve(ask)


def answer(
    question: str | Ask,
    method: str = "",
    *,
    home: str | Path | None = None,
    release: str | None = None,
    labels: Collection[str] | None = None,
    settings: Settings | None = None,
    **options: Any,
) -> Answer:
    """Open what is published, answer one question, and close it.

    See :meth:`QueryEngine.answer` for the options.
    """
    ask = _ask(question, method, options)
    with QueryEngine(home, release=release, labels=labels, settings=settings) as engine:
        return engine.answer(ask)


def stream_answer(
    question: str | Ask,
    method: str = "",
    *,
    home: str | Path | None = None,
    release: str | None = None,
    labels: Collection[str] | None = None,
    settings: Settings | None = None,
    **options: Any,
) -> AnswerStream:
    """Return the pieces of an answer; the release is opened when iteration begins."""
    ask = _ask(question, method, options)

    async def pieces() -> AsyncGenerator[str | Answer, None]:
        engine = await asyncio.to_thread(
            QueryEngine, home, release=release, labels=labels, settings=settings
        )
        with engine:
            async with aclosing(engine.pieces(ask)) as pieces:
                async for piece in pieces:
                    yield piece

    return AnswerStream(pieces)


async def aretrieve(question: str | Ask, method: str = "", **options: Any) -> Retrieval:
    """Return :func:`retrieve`, with the same options, without blocking the event loop."""
    return await asyncio.to_thread(retrieve, question, method, **options)


async def aanswer(
    question: str | Ask,
    method: str = "",
    *,
    home: str | Path | None = None,
    release: str | None = None,
    labels: Collection[str] | None = None,
    settings: Settings | None = None,
    **options: Any,
) -> Answer:
    """Return :func:`answer`, with the same options, without blocking the event loop."""
    ask = _ask(question, method, options)
    engine = await asyncio.to_thread(
        QueryEngine, home, release=release, labels=labels, settings=settings
    )
    with engine:
        return await engine.aanswer(ask)


async def _last(pieces: AsyncGenerator[str | Answer, None]) -> Answer:
    """Return the answer at the end of its pieces."""
    async with aclosing(pieces):
        async for piece in pieces:
            if isinstance(piece, Answer):
                return piece
    raise AssertionError("unreachable")


def _ask(question: str | Ask, method: str, options: Mapping[str, Any]) -> Ask:
    """Return what is asked; raises InputError for what can be seen without opening a release."""
    ask = Ask.of(question, method, **options)
    if ask.method:
        method_named(ask.method)
    return ask
