"""Options of a model: how it is reached, and how much may be asked of it."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

from pydantic import ValidationError

from graphrag_pipeline.core.environment import KEYS, Secret, variable
from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.model_settings import LlmSettings
from graphrag_pipeline.core.setting_errors import shown, what_is_right
from graphrag_pipeline.llm.prices import Price

OPENAI_URL = "https://api.openai.com/v1"


@dataclass(frozen=True)
class LlmOptions:
    """The places of models, their parameters, and the limits of one client.

    An empty ``base_url`` means ``OPENAI_BASE_URL``, then OpenAI. An empty ``api_key`` means
    the variable ``api_key_env``, or where that is empty ``OPENAI_API_KEY``, then
    ``GRAPHRAG_API_KEY``, of the environment or of ``env_file``. Costs are US
    dollars, rates are per minute, times are seconds. ``retry_seconds`` is the first wait before a
    call is tried again; it doubles each time. ``prices`` are those said of these models alone, by
    name, and ``section`` is where the settings say all this: ``llm`` or ``models.NAME``. The
    ``lane`` "batch" sends chat requests in files, at half the price, to be answered within a day.
    Raises ConfigError for values out of range.
    """

    base_url: str = field(default="", repr=False)
    api_key: Secret | str = field(default=Secret(), repr=False)
    model: str = "gpt-4.1-mini"
    embedding_model: str = "text-embedding-3-small"
    embedding_dimensions: int | None = None
    embedding_max_tokens: int = 8000
    context_window: int | None = None
    temperature: float | None = 0.0
    max_output_tokens: int | None = None
    max_answer_chars: int = 400_000
    concurrency: int = 16
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    timeout_seconds: float = 180.0
    max_retries: int = 6
    retry_seconds: float = 0.5
    max_cost: float | None = None
    max_tokens: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)
    structured_output: Literal["auto", "on", "off"] = "auto"
    prices_file: str = ""
    log_content: bool = False
    shared_cache: str = ""
    env_file: str = ""
    api_key_env: str = ""
    prices: Mapping[str, Price] = field(default_factory=dict, hash=False)
    section: str = "llm"
    lane: Literal["direct", "batch"] = "direct"

    def __post_init__(self) -> None:
        if isinstance(self.api_key, str):
            object.__setattr__(self, "api_key", Secret(self.api_key))
        own = {name: getattr(self, name) for name in _names_of_settings()}
        try:
            LlmSettings(**{name: value for name, value in own.items() if value is not None})
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(map(str, (self.section, *first["loc"])))
            raise ConfigError(f"{name} = {shown(first)}: {what_is_right(first)}") from None
        if urlsplit(self._url).scheme not in ("http", "https"):
            address = self._url.rpartition("@")[2].partition("?")[0]
            raise ConfigError(f"OPENAI_BASE_URL = {address!r}: must begin with http:// or https://")

    @classmethod
    def of(cls, given: LlmSettings, **more: Any) -> LlmOptions:
        """Return the options that settings give, in which 0 stands for None, and ``more``."""
        defaults = {option.name: option.default for option in fields(cls)}
        own: dict[str, Any] = {name: getattr(given, name) for name in _names_of_settings()}
        own |= {n: None for n, value in own.items() if not value and defaults[n] is None}
        return cls(**own | more)

    @property
    def endpoint(self) -> str:
        """The base URL without user, password, query and trailing slash: safe to show."""
        parts = urlsplit(self._url)
        host = parts.netloc.rpartition("@")[2]
        return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))

    @property
    def is_openai(self) -> bool:
        """Whether the models are OpenAI's own."""
        return urlsplit(self._url).hostname == "api.openai.com"

    @property
    def is_private(self) -> bool:
        """Whether the models are served from this machine or its own network."""
        host = urlsplit(self._url).hostname or ""
        try:
            return ipaddress.ip_address(host).is_private
        except ValueError:
            return "." not in host or host.endswith((".local", ".internal", ".lan"))

    def connection(self) -> tuple[str, str]:
        """Return base URL and key, for the HTTP client alone; ConfigError if OpenAI has no key."""
        assert isinstance(self.api_key, Secret)
        names = (self.api_key_env,) if self.api_key_env else KEYS
        key = self.api_key.reveal() or next(filter(None, map(self._variable, names)), "")
        if not key and self.is_openai:
            raise ConfigError(
                f"no key for the model: set {names[0]} (in the environment, or in a file .env "
                "beside graphrag.toml), or base_url to your server"
            )
        return self._url, key or "none"

    @property
    def _url(self) -> str:
        return self.base_url or self._variable("OPENAI_BASE_URL") or OPENAI_URL

    def _variable(self, name: str) -> str:
        return variable(name, self.env_file)


def _names_of_settings() -> list[str]:
    """Return the names of the options that settings have, too."""
    return [each.name for each in fields(LlmOptions) if each.name in LlmSettings.model_fields]
