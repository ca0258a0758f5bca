"""The model as configured: its options, and the calls of a stage run to their end."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.model_settings import ROLES, Lane
from graphrag_pipeline.core.prompting import check_prompts
from graphrag_pipeline.core.scopes import within
from graphrag_pipeline.core.settings import EMBEDDINGS, LLM, LlmSettings, Role, Settings
from graphrag_pipeline.core.sharing import sharing_of
from graphrag_pipeline.llm.budget import BudgetAmount
from graphrag_pipeline.llm.database import Place
from graphrag_pipeline.llm.embedders import make_embedder
from graphrag_pipeline.llm.options import LlmOptions
from graphrag_pipeline.llm.prices import Price, Prices, load_prices
from graphrag_pipeline.llm.running import run_calls

if TYPE_CHECKING:
    from graphrag_pipeline.llm.client import ModelClient
    from graphrag_pipeline.llm.embedders import Embedder, Vectors

T = TypeVar("T")
_INDEXING: tuple[Role, ...] = ("extraction", "summaries", "reports")


class _Spending:
    """Spending of one run, in one home or several: since when in each, and how much so far."""

    def __init__(self, since: Mapping[Place, int], spent: dict[Place, BudgetAmount]) -> None:
        self.since = since
        self.spent = spent

    def elsewhere(self, home: Place) -> BudgetAmount:
        """Return what was spent in the other homes."""
        others = [amount for place, amount in self.spent.items() if place != home]
        return BudgetAmount(sum(a.tokens for a in others), sum(a.cost for a in others))


_spending: ContextVar[_Spending | None] = ContextVar("budget_spending", default=None)


def model_options(settings: Settings, role: Role) -> LlmOptions:
    """Return the options of the model client for a role, as configured; asked directly.

    Raises ConfigError for values out of range.
    """
    given, name = settings.llm_for(role), settings.model_for(role)
    section = name if name == LLM else f"models.{name}"
    return LlmOptions.of(given, section=section, prices=_own_prices(settings, role), lane="direct")


def model_prices(settings: Settings, role: Role) -> Prices:
    """Return what the model of a role costs, as configured, beside all whose price is known."""
    options = model_options(settings, role)
    return load_prices(options.prices_file, options.prices, own_machine=options.is_private)


def all_prices(settings: Settings) -> Prices:
    """Return what models cost, whatever their role."""
    models = [model_options(settings, role) for role in ROLES]
    own = {name: price for options in models for name, price in options.prices.items()}
    is_private = all(options.is_private for options in models)
    return load_prices(settings.llm.prices_file, own, own_machine=is_private)


def model_of(settings: Settings, role: Role) -> str:
    """Return the name by which its server knows the model of a role."""
    given = settings.llm_for(role)
    return given.embedding_model if role == EMBEDDINGS else given.model


def _own_prices(settings: Settings, role: Role) -> dict[str, Price]:
    section = settings.models.get(settings.model_for(role))
    if section is None or section.prices is None:
        return {}
    return {model_of(settings, role): Price(**section.prices.model_dump())}


def answered_by(given: LlmSettings) -> list[object]:
    """Return what decides a chat model's answer besides the prompt; part of a stage's version.

    Not ``max_output_tokens``: it cuts answers off, and who raises it wants those again that
    failed, not all.
    """
    return [given.model, given.temperature, *([given.extra] if given.extra else [])]


def prompts_folder(settings: Settings) -> Path | None:
    """Return the folder of the user's own prompts, or None."""
    return Path(settings.llm.prompts).expanduser().resolve() if settings.llm.prompts else None


def check_own_prompts(settings: Settings) -> None:
    """Read the user's own prompts, so that a mistake stops what would pay for calls with them.

    Raises ConfigError, with the file and the placeholder, for one that is wrong.
    """
    if folder := prompts_folder(settings):
        if not folder.is_dir():
            raise ConfigError(f"llm.prompts = {settings.llm.prompts!r}: there is no such folder")
        check_prompts(folder)


def calls_place(settings: Settings, home: Path | None = None) -> Place:
    """Return where the calls of an index are kept: its home, or where machines share them."""
    return sharing_of(settings).calls() or home or settings.home_path


def lane_of(settings: Settings, role: Role) -> Lane:
    """Return the lane by which an index asks the model of a role."""
    return settings.llm_for(role).lane if role in _INDEXING else "direct"


def with_model(
    settings: Settings,
    work: Callable[[ModelClient], Awaitable[T]],
    role: Role = "summaries",
    *,
    at_once: bool = False,
) -> T:
    """Run some calls of a role's model to their end with one client, and return their result.

    Those that make an index go by the lane of the settings, unless somebody wants them ``at_once``.
    """
    options = model_options(settings, role)
    if not at_once:
        options = replace(options, lane=lane_of(settings, role))

    async def run() -> T:
        async with counted_client(options, calls_place(settings)) as client:
            return await work(client)

    return run_calls(run)


def spending_since(home: Place, position: int) -> AbstractContextManager[None]:
    """Let the calls made within count against one budget: those of a home since a position.

    Within another such context the homes count together, each since the first position named.
    """
    outer = _spending.get()
    since = {home: position, **(outer.since if outer else {})}
    return within(_spending, _Spending(since, outer.spent if outer else {}))


@contextlib.asynccontextmanager
async def counted_client(options: LlmOptions, home: Place) -> AsyncIterator[ModelClient]:
    """Open a client whose calls count against the budget as :func:`spending_since` says."""
    from graphrag_pipeline.llm.client import ModelClient

    spending = _spending.get()
    if spending is None:
        async with ModelClient(options, home) as client:
            yield client
        return
    elsewhere = spending.elsewhere(home)
    # A home that nobody has named counts from here.
    since = spending.since.get(home)
    async with ModelClient(options, home, since=since, elsewhere=elsewhere) as client:
        try:
            yield client
        finally:
            spending.spent[home] = client.spent_here


class ModelEmbedder:
    """Embeddings by the endpoint's embedding model; each text is paid for once, by ``stage``."""

    def __init__(self, settings: Settings, stage: str = "embeddings") -> None:
        self._settings = settings
        self._stage = stage
        options = model_options(settings, EMBEDDINGS)
        width = f"-{options.embedding_dimensions}" if options.embedding_dimensions else ""
        most = options.embedding_max_tokens
        cut = "" if most == LlmSettings().embedding_max_tokens else f"<{most}"
        self.name = f"llm:{options.endpoint}:{options.embedding_model}{width}{cut}"

    @property
    def dimensions(self) -> int:
        """Length of the vectors, as the endpoint gives them."""
        return self._dimensions

    @cached_property
    def _dimensions(self) -> int:
        return self._ask(lambda client: client.embedding_width(stage=self._stage))

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text, of length one. Raises the model's error if it gives none."""
        return self._ask(lambda client: client.embed(texts, stage=self._stage))

    def _ask(self, work: Callable[[ModelClient], Awaitable[T]]) -> T:
        return with_model(self._settings, work, EMBEDDINGS)


def configured_embedder(settings: Settings, stage: str = "embeddings") -> Embedder:
    """Return the embedder as configured, whose calls are counted under a stage."""
    given = settings.embeddings
    if given.embedder == "llm":
        return ModelEmbedder(settings, stage)
    kind = "local" if given.embedder == "local" else "hashing"
    dimensions = given.dimensions if kind == "hashing" else 0
    return make_embedder(kind, model=given.model, dimensions=dimensions)
