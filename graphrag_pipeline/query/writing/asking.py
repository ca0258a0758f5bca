"""One question put to a model: its calls, what they cost, and what went wrong with them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from graphrag_pipeline.core.prompting import Message, load_prompt
from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.llm.answers import LOOP
from graphrag_pipeline.llm.errors import ModelError, ModelOutputError
from graphrag_pipeline.llm.parsing import check_words
from graphrag_pipeline.llm.windows import history_tokens
from graphrag_pipeline.query import short_answers as short
from graphrag_pipeline.query.conversation import Turn
from graphrag_pipeline.query.json_answers import json_rule, plain_json
from graphrag_pipeline.query.question import AnalysedQuestion
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.trace import Trace
from graphrag_pipeline.query.writing.references import Shown
from graphrag_pipeline.query.writing.support import reference_fields

if TYPE_CHECKING:
    from pathlib import Path

    from graphrag_pipeline.llm.client import ModelClient
    from graphrag_pipeline.llm.completion import Completion
    from graphrag_pipeline.query.ask import Ask
    from graphrag_pipeline.query.release import Release

STAGE = "query"

T = TypeVar("T")


@dataclass(frozen=True)
class Final:
    """The last call, whose answer is the answer: a prompt, its values, what it may refer to.

    ``evidence`` are the records that the answer as a whole rests on. It ``may_guess`` where a short
    answer would say that it is not known.
    """

    step: str
    prompt: str
    values: dict[str, str]
    shown: Shown
    evidence: tuple[Record, ...]
    may_guess: bool = False


class Asking:
    """A question on its way to an answer: retrieval in threads, calls on the event loop.

    ``told`` are all texts that the last call had before it, once it is made.
    """

    def __init__(
        self, index: Release, client: ModelClient, ask: Ask, *, prompts: Path | None
    ) -> None:
        settings = index.settings
        self.trace = Trace()
        self.index = index.traced(self.trace)
        self.question = ask.question
        self.failures: list[str] = []
        self.told: list[str] = []
        self.is_stopped = False
        self.references_removed = 0
        self.retrieval_seconds = 0.0
        self._retrieving = 0
        self._retrieving_since = 0.0
        self._client = client
        self._folder = prompts
        self.is_short = (ask.answer_style or settings.query.answer_style) == "short"
        self._format = ask.response_format
        usual = short.RESPONSE_TYPE if self.is_short else settings.query.response_type
        self._response_type = ask.response_type or usual
        self._use_cache = settings.query.cache
        most = history_tokens(client.options)
        self._history = _recent(ask.history, most, index.encoding)
        self._turns = asyncio.Semaphore(2 * client.options.concurrency)

    @property
    def may_refer(self) -> bool:
        """Whether the answer is to name its sources: one of a few words, or of JSON, is not."""
        return not self.is_short and self._format is None

    @cached_property
    def search_text(self) -> AnalysedQuestion:
        """Text to search for: the question, then what was asked before it in the conversation."""
        turns = [text for role, text in self._history if role == "user"]
        return AnalysedQuestion("\n".join([self.question, *reversed(turns)]))

    async def retrieve(self, work: Callable[[], T]) -> T:
        """Return what some work on the index gives, done in a thread.

        Time in which several threads retrieve counts once.
        """

        def count_and_call() -> T:
            counting = self.trace.counting_embeddings(self.index.settings)
            with counting, self.index.asked_in(self.question):
                return work()

        if not self._retrieving:
            self._retrieving_since = time.perf_counter()
        self._retrieving += 1
        try:
            return await asyncio.to_thread(count_and_call)
        finally:
            self._retrieving -= 1
            if not self._retrieving:
                self.retrieval_seconds += time.perf_counter() - self._retrieving_since

    async def say(self, step: str, prompt: str, **values: str) -> str:
        """Return a model's answer to a prompt."""
        return await self._say(step, self.messages(prompt, values))

    async def _say(self, step: str, talk: list[Message], *, keeps_sound_part: bool = False) -> str:
        completion = await self._client.complete(
            talk,
            stage=STAGE,
            use_cache=self._use_cache,
            check=check_words,
            keeps_sound_part=keeps_sound_part,
        )
        self._spend(step, completion)
        return completion.text

    async def _say_json(self, step: str, talk: list[Message]) -> str:
        completion = await self._client.complete(
            talk,
            stage=STAGE,
            use_cache=self._use_cache,
            check=plain_json,
            response_format=self._format,
        )
        self.trace.spend(step, completion)
        return plain_json(completion.text)

    async def read(
        self,
        step: str,
        parse: Callable[[str], T],
        schema: Mapping[str, Any],
        prompt: str,
        **values: str,
    ) -> T:
        """Return a model's answer as read; one that cannot be is asked for once more, told why.

        ``schema`` is the JSON schema of what ``parse`` reads.
        """
        talk = self.messages(prompt, values)
        again = load_prompt("report_retry", self._folder)
        return await self._client.read(
            talk,
            parse,
            stage=STAGE,
            json_schema=schema,
            use_cache=self._use_cache,
            again=lambda error: again.render(error=error),
            on_answer=lambda answer: self.trace.spend(step, answer),
        )

    async def tried(self, step: str, answer: Awaitable[T]) -> T | None:
        """Return what a model says; None, and why in the failures, where that is of no use.

        Raises the model's error when no further call can succeed.
        """
        try:
            return await answer
        except ModelError as error:
            if error.stops_everything:
                raise
            self.failures.append(f"{step}: {error}")
            return None

    async def pieces(self, final: Final) -> AsyncGenerator[str, None]:
        """Yield the final answer as the model writes it.

        Raises ModelOutputError at its end where it held no words.
        """
        talk = self._last_messages(final)
        stream = self._client.stream(
            talk, stage=STAGE, use_cache=self._use_cache, check=check_words
        )
        async for piece in stream:
            yield piece
        if stream.completion is not None:
            self._spend(final.step, stream.completion)

    def _spend(self, step: str, completion: Completion) -> None:
        self.is_stopped = self.is_stopped or completion.finish_reason == LOOP
        self.trace.spend(step, completion)

    async def text(self, final: Final) -> str:
        """Return the final answer at once; as JSON alone, where that was asked for.

        Raises ModelOutputError where the model gave no words, or no JSON.
        """
        talk = self._last_messages(final)
        if self._format is not None:
            return await self._say_json(final.step, talk)
        return await self._say(final.step, talk, keeps_sound_part=True)

    def checked(self, text: str, shown: Shown, n_removed: int) -> dict[str, Any]:
        """Return what the answer says of its references, ``n_removed`` of which are taken out."""
        return reference_fields(
            text,
            shown,
            self.references_removed + n_removed,
            told=self.told,
            may_refer=self.may_refer,
            is_stopped=self.is_stopped,
        )

    async def each(
        self, step: str, work: Sequence[Callable[[], Awaitable[T]]], *, one_at_least: bool = True
    ) -> list[T | None]:
        """Do things together and return their results in order, None for one that failed.

        Failures are noted; one that all others would meet is raised, as is the first if none
        succeeded and one must.
        """
        errors: list[ModelError] = []
        ending: list[ModelError] = []

        async def run_part(part: Callable[[], Awaitable[T]]) -> T | None:
            try:
                async with self._turns:
                    if ending:
                        raise ending[0]
                    return await part()
            except ModelError as error:
                if error.stops_everything:
                    ending.append(error)
                    raise
                errors.append(error)
                return None

        tasks = [asyncio.ensure_future(run_part(part)) for part in work]
        try:
            results = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if one_at_least and errors and len(errors) == len(results):
            raise _without_answer(errors[0], step)
        self.failures += [f"{step}: {error}" for error in errors]
        return results

    def messages(self, name: str, values: dict[str, str]) -> list[Message]:
        """Return a prompt's messages, the conversation so far between system and user."""
        prompt = load_prompt(name, self._folder)
        common = {"question": self.question, "response_type": self._response_type}
        fields = {key: value for key, value in common.items() if key in prompt.placeholders}
        rendered = prompt.render(**{**fields, **values})
        n_system = sum(message["role"] == "system" for message in rendered)
        turns = [{"role": role, "content": text} for role, text in self._history]
        return [*rendered[:n_system], *turns, *rendered[n_system:]]

    def _last_messages(self, final: Final) -> list[Message]:
        *before, last = self.messages(final.prompt, final.values)
        rules = [short.rule(may_guess=final.may_guess)] if self.is_short else []
        if self._format is not None:
            rules.append(json_rule(self._format))
        # In the last message: some servers take no two of one role in a row.
        talk = [*before, {**last, "content": "\n\n".join([last["content"], *rules])}]
        self.told = [message["content"] for message in talk]
        return talk


def _without_answer(error: ModelError, step: str) -> ModelError:
    if isinstance(error, ModelOutputError):
        return ModelOutputError(f"no answer of the {step} step could be read: {error}")
    return error


def _recent(history: Sequence[Turn], budget: int, encoding: str) -> list[Turn]:
    """Return the most recent turns that fit, oldest first."""
    recent: list[Turn] = []
    for role, text in reversed(history):
        budget -= count_tokens([text], encoding)[0]
        if budget < 0:
            break
        recent.append((role, text))
    return recent[::-1]
