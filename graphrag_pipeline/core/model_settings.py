"""Settings of models: their servers, prices and roles, and what profiles decide."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Annotated, Any, ClassVar, Literal, get_args
from urllib.parse import urlsplit

from pydantic import (
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from graphrag_pipeline.core.environment import NO_KEY, variable
from graphrag_pipeline.core.errors import ConfigError, did_you_mean
from graphrag_pipeline.core.setting_values import (
    Address,
    Dollars,
    EnvironmentVariable,
    Positive,
    Section,
)

Lane = Literal["direct", "batch"]
Role = Literal["extraction", "summaries", "reports", "answers", "judging", "embeddings"]
"""What a model is asked for."""
ROLES: tuple[Role, ...] = get_args(Role)
EMBEDDINGS: Role = "embeddings"
LLM = "llm"
"""The name by which a role takes the model of ``[llm]``."""
CHAT, VECTORS = "chat", "vectors"
"""Names of models that have a role without being told."""

_SET_BY_THE_CLIENT = frozenset({"model", "messages", "n", "stream", "stream_options"})


class EndpointSettings(Section):
    """A model's server, window and limits: [llm] says them for all, [models.NAME] for one."""

    where: ClassVar[str]

    base_url: Address = ""
    """Address of the endpoint; empty: OPENAI_BASE_URL, then OpenAI."""
    api_key_env: EnvironmentVariable = ""
    """Name of the environment variable that holds the key; empty: OPENAI_API_KEY, then
    GRAPHRAG_API_KEY."""
    model: str = "gpt-4.1-mini"
    """Chat model."""
    embedding_dimensions: Annotated[int, Field(ge=0)] = 0
    """Length of the vectors; 0: the model's own."""
    embedding_max_tokens: Positive = 8000
    """Most tokens of a text the embedding model takes; longer ones are embedded in pieces."""
    context_window: Annotated[int, Field(ge=0)] = 0
    """Most tokens of prompt and answer together; 0: what is known of the model. Set it to what your
    server was started with (Ollama: OLLAMA_CONTEXT_LENGTH; vLLM: --max-model-len)."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    """Temperature of every call."""
    max_output_tokens: Annotated[int, Field(ge=0)] = 0
    """Most tokens of an answer; 0: the server's own limit."""
    max_answer_chars: Positive = 400_000
    """Most characters of an answer; a longer one is an error, for no stage asks for so much."""
    extra: dict[str, JsonValue] = {}
    """More parameters of each chat call, such as { reasoning_effort = "low" }."""
    concurrency: Positive = 16
    """Most calls at once."""
    requests_per_minute: Annotated[int, Field(ge=0)] = 0
    """Most requests a minute; 0: no limit."""
    tokens_per_minute: Annotated[int, Field(ge=0)] = 0
    """Most tokens a minute; 0: no limit."""
    timeout_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 180.0
    """How long to wait for an answer; of a server on this machine or network, for each piece of it.
    Before the first it waits longer: while the prompt is read, or others are answered."""
    max_retries: Annotated[int, Field(ge=0)] = 6
    """How often a call that failed for a passing reason is tried again."""
    retry_seconds: Annotated[float, Field(ge=0, le=300)] = 0.5
    """How long to wait before the first of these tries; the wait doubles each time."""
    lane: Lane = "direct"
    """How an index asks chat models: direct, or batch: in files, at half the price, answered within
    a day (OpenAI's Batch API). Questions and embeddings are direct always."""
    structured_output: Literal["auto", "on", "off"] = "auto"
    """Whether to ask the server for JSON by schema; auto: if it takes it."""

    @model_validator(mode="after")
    def _extra_fits(self) -> EndpointSettings:
        name = f"{self.where}.extra"
        if conflicts := sorted(_SET_BY_THE_CLIENT & self.extra.keys()):
            raise ValueError(f"{name} must not hold {conflicts[0]}: the pipeline sets it itself")
        try:
            json.dumps(self.extra, allow_nan=False)
        except ValueError:
            raise ValueError(f"{name} must hold no infinite number and no nan") from None
        return self


class LlmSettings(EndpointSettings):
    """The language model: any OpenAI-compatible endpoint. Its key is OPENAI_API_KEY, or else
    GRAPHRAG_API_KEY, in the environment or in a file .env, never here.
    """

    where: ClassVar[str] = "llm"

    env_file: str = ""
    """File of environment variables with OPENAI_API_KEY; as it is: .env beside graphrag.toml."""
    embedding_model: str = "text-embedding-3-small"
    """Embedding model."""
    max_cost: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Most US dollars a run may spend; 0: no limit. What was bought until then is kept."""
    max_tokens: Annotated[int, Field(ge=0)] = 0
    """Most tokens a run may use; 0: no limit."""
    cache_gb: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Largest size of the cache of answers, in GB; 0: no limit, for they were paid for. Above it a
    run drops at its end those not used for longest; what is needed again is bought again."""
    shared_cache: str = ""
    """Folder whose paid answers this index uses and adds to: the home of another index, or one of
    no index. Indexes of the same documents then pay once; empty: none."""
    confirm_cost: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    """`index` asks before it starts what may cost more US dollars than this, and what starts by
    itself waits for a person; 0: never."""
    prices_file: str = ""
    """Your own prices (TOML, US dollars per million tokens); empty: the list that ships."""
    prompts: str = ""
    """Folder of your own prompts, as `tune` writes them; empty: those that ship."""
    log_content: bool = False
    """Write prompts and answers, and so your documents, to the debug log graphrag_pipeline.llm."""


class PriceSettings(Section):
    """The price of a model, in US dollars per million tokens."""

    input: Dollars
    """Tokens of prompts."""
    output: Dollars = 0.0
    """Tokens of answers."""
    cached_input: Dollars | None = None
    """Tokens of prompts that the server still had in its own cache; not set: as input."""
    batch_input: Dollars | None = None
    """Tokens of prompts that are sent in batches; not set: half of input."""
    batch_output: Dollars | None = None
    """Tokens of answers that come in batches; not set: half of output."""


class ModelSettings(EndpointSettings):
    """One of several models: its own server, window, prices and limits. What is left out is as in
    [llm]. An address of its own is sent the key that api_key_env names, and no other, unless it is
    [llm]'s or OpenAI's.
    """

    where: ClassVar[str] = "models.NAME"

    model: Annotated[str, Field(min_length=1)] = LlmSettings.model_fields["model"].default
    """The model's name at the server: of a chat model, or of what embeds."""
    prices: PriceSettings | None = None
    """Dollars per million tokens, such as { input = 0.1, output = 0.4 }; not set: as the list of
    prices says."""

    @model_serializer(mode="wrap")
    def _as_set(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what is as in ``[llm]``, so that it stays so when it is read again."""
        return {name: value for name, value in dump(self).items() if name in self.model_fields_set}

    def over(self, llm: LlmSettings, role: Role) -> LlmSettings:
        """Return ``[llm]`` with what this section says in place of it, for a role."""
        own = {name: getattr(self, name) for name in self.model_fields_set - {"prices"}}
        if self.base_url and not self._is_known_to(llm):
            own.setdefault("api_key_env", NO_KEY)
        if role == EMBEDDINGS and "model" in own:
            own["embedding_model"] = own.pop("model")
        return llm.model_copy(update=own)

    def _is_known_to(self, llm: LlmSettings) -> bool:
        """Whether the key of ``[llm]`` may go to this section's own address."""
        others = llm.base_url or variable("OPENAI_BASE_URL", llm.env_file)
        is_same = self.base_url.rstrip("/") == others.rstrip("/")
        # A key of another server is none of OpenAI's business, nor the other way round.
        return is_same or (
            not llm.api_key_env and urlsplit(self.base_url).hostname == "api.openai.com"
        )


class RoleSettings(Section):
    """Models by kind of work: the NAME of a section [models.NAME], or llm for [llm]. Where nothing
    is said, a model called chat does all but embed and one called vectors embeds; without these,
    [llm] does.
    """

    extraction: str = ""
    """Finds entities, relationships and claims in chunks, says which names mean the same, and
    writes prompts for `tune`."""
    summaries: str = ""
    """Merges descriptions; summarises chunks (raptor) and clusters of entities (hirag)."""
    reports: str = ""
    """Writes the reports of communities."""
    answers: str = ""
    """Answers questions, and puts passages in order (query.reranker)."""
    judging: str = ""
    """Evaluates: writes questions, finds claims, judges answers."""
    embeddings: str = ""
    """Embeds texts and questions, where embeddings.embedder is llm."""


_BY_MODEL: dict[str, dict[str, object]] = {
    "extraction": {"extractor": "llm", "format": "tuples"},
    "graph": {"summaries": "llm"},
    "reports": {"writer": "llm"},
    "embeddings": {"embedder": "llm"},
    "query": {"answers": "llm"},
}
# Ollama's address and its names of models. Each stage's prompt and answer fit in the window.
_ON_ONES_OWN_MACHINE: dict[str, dict[str, object]] = {
    "llm": {
        "base_url": "http://localhost:11434/v1",
        "model": "llama3.1",
        "embedding_model": "nomic-embed-text",
        "embedding_max_tokens": 1500,
        "context_window": 8192,
        "max_output_tokens": 2048,
        "concurrency": 4,
        "timeout_seconds": 600.0,
    },
    "extraction": {"format": "two_calls"},
    "graph": {"max_description_tokens": 300},
    "reports": {"max_context_tokens": 4000, "max_words": 600, "written_findings": 5},
    "hierarchies": {"raptor_cluster_tokens": 3000},
    "query": {"max_context_tokens": 3000, "map_words": 500, "reduce_words": 1000},
}
PROFILES: dict[str, dict[str, dict[str, object]]] = {
    "embedded": {
        "extraction": {"extractor": "nlp", "format": "tuples"},
        "graph": {"summaries": "off"},
        "reports": {"writer": "extractive"},
        "embeddings": {"embedder": "hashing"},
        "query": {"answers": "extractive"},
    },
    "llm": _BY_MODEL,
    "local": {
        section: {**_BY_MODEL.get(section, {}), **_ON_ONES_OWN_MACHINE.get(section, {})}
        for section in {**_BY_MODEL, **_ON_ONES_OWN_MACHINE}
    },
}
"""What each profile decides, by section, where it is left open."""


def check_models(models: Collection[str], roles: RoleSettings) -> None:
    """Raise ConfigError for a model without a proper name, and a role without a model."""
    for name in models:
        if name == LLM or not re.fullmatch(r"[a-z][a-z0-9-]*(_[a-z0-9-]+)*", name):
            raise ConfigError(
                f"[models.{name}]: the name must be lower-case letters, digits, - and _, and not "
                f"{LLM}"
            )
    for role, name in roles:
        if name and name not in {LLM, *models}:
            write = f"write a section [models.{name}], or name one that there is"
            instead = did_you_mean(name, (*models, LLM), write)
            raise ConfigError(f"roles.{role} = {name!r}: there is no such model: {instead}")
