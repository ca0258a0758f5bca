"""Probes of models: each that a run will use is asked something small before the first that costs.

A server that cannot embed is then found before a corpus is extracted, and not after.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Final

from graphrag_pipeline.core.scopes import within
from graphrag_pipeline.core.settings import EMBEDDINGS, LLM, Role, Settings
from graphrag_pipeline.llm.calls import Outgoing, ahead_of_calls
from graphrag_pipeline.llm.configured import calls_place, counted_client, model_of, model_options
from graphrag_pipeline.llm.database import Place
from graphrag_pipeline.llm.errors import BudgetExceededError, ModelError, TerminalModelError
from graphrag_pipeline.llm.ledger import hearing
from graphrag_pipeline.llm.options import LlmOptions

STAGE: Final = "probe"
_QUESTION: Final = "Answer with one word: are you there?"
_MOST_TOKENS: Final = 16
# A model that says nothing to the question is there all the same.
_IS_THERE: Final = frozenset({"empty", "length", "thinking", "refusal", "filter"})


@dataclass(frozen=True)
class ModelInUse:
    """One model at one server, asked in one way, and the roles that it has."""

    options: LlmOptions
    name: str
    roles: tuple[Role, ...]

    @property
    def embeds(self) -> bool:
        """Whether it is asked for vectors, and not for texts."""
        return EMBEDDINGS in self.roles

    @property
    def id(self) -> tuple[str, str, bool]:
        """Address, name and way to ask."""
        return (self.options.endpoint, self.name, self.embeds)

    def __str__(self) -> str:
        section = "" if self.options.section == LLM else f" ([{self.options.section}])"
        return f"{self.name}{section}, the model for {' and '.join(self.roles)}"


def models_in_use(settings: Settings, roles: Collection[Role]) -> list[ModelInUse]:
    """Return the models of some roles, each once."""
    models: dict[tuple[str, str, bool], ModelInUse] = {}
    for role in roles:
        model = ModelInUse(model_options(settings, role), model_of(settings, role), (role,))
        if before := models.get(model.id):
            model = ModelInUse(before.options, before.name, (*before.roles, role))
        models[model.id] = model
    return list(models.values())


_probed: set[tuple[object, ...]] = set()


def probing(
    settings: Settings, models: Sequence[ModelInUse], run_began: int
) -> AbstractContextManager[None]:
    """Ask some models before the first call within for a text, but for its own.

    That one says itself whether it can. A model is asked once in a run, which began at this
    position of the ledger. A call that finds one that cannot raises a TerminalModelError that every
    other would meet.
    """
    run = (str(calls_place(settings)), run_began)
    answers: dict[tuple[str, str, bool], Future[None]] = {}

    async def ask_others(outgoing: Outgoing, endpoint: str) -> None:
        if outgoing.embeds:
            # Texts are embedded once they are written: little is left to be asked of the others.
            return
        own = (endpoint, outgoing.model, False)
        for model in models:
            if model.id != own and (*run, model.id) not in _probed:
                await _probe_once(model, settings, answers)
            _probed.add((*run, model.id))

    return within(ahead_of_calls, ask_others)


async def _probe_once(
    model: ModelInUse, settings: Settings, answers: dict[tuple[str, str, bool], Future[None]]
) -> None:
    """Probe a model, unless another thread does or has: then wait, and raise what it has raised."""
    own: Future[None] = Future()
    answer = answers.setdefault(model.id, own)
    if answer is not own:
        await asyncio.wrap_future(answer)
        return
    # Else who waits for it and is cancelled would cancel it for all.
    own.set_running_or_notify_cancel()
    try:
        await _probe(model, settings)
    except TerminalModelError as error:
        own.set_exception(error)
        raise
    finally:
        if not own.done():
            own.set_result(None)


async def _probe(model: ModelInUse, settings: Settings) -> None:
    try:
        # The ledger has them, but they are none of the stage's calls within which they are made.
        with within(ahead_of_calls, None), hearing(lambda call: None, role="stage"):
            await _ask(model.options, calls_place(settings), embeds=model.embeds)
    except BudgetExceededError:
        return
    except ModelError as error:
        if error.kind in _IS_THERE:
            return
        kind = error.kind if error.stops_everything else "unreachable"
        raise TerminalModelError(f"{model}, cannot be used: {error}", kind) from None


async def is_there(options: LlmOptions, place: Place) -> bool:
    """Whether a chat model answers a small question."""
    try:
        await _ask(options, place, embeds=False)
    except ModelError as error:
        return error.kind in _IS_THERE
    return True


async def _ask(options: LlmOptions, place: Place, *, embeds: bool) -> None:
    # A batch may take a day.
    async with counted_client(replace(options, lane="direct"), place) as client:
        if embeds:
            await client.probe_embeddings(stage="embeddings")
            return
        question = [{"role": "user", "content": _QUESTION}]
        most = _MOST_TOKENS
        await client.complete(question, stage=STAGE, max_output_tokens=most, use_cache=False)
