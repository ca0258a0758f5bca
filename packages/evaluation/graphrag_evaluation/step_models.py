"""The model of one step of an evaluation, where it is not the one that wrote the answers.

A judge that also wrote one of the answers favours its own; and a step may need a better model than
the answers, or a cheaper one.
"""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError

from graphrag_pipeline.core.environment import NO_KEY
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.setting_values import Address, EnvironmentVariable
from graphrag_pipeline.core.settings import (
    LlmSettings,
    Role,
    Settings,
)
from graphrag_pipeline.llm.configured import answered_by
from graphrag_pipeline.llm.options import LlmOptions

ROLE: Role = "judging"


def _without_secrets(address: str) -> str:
    parts = urlsplit(address)
    if "@" in parts.netloc or parts.query:
        raise ValueError("must hold no password: name the variable of the key in api_key_env")
    return address


class StepModel(BaseModel):
    """The model that does a step; what is left out is as the role ``judging`` has it.

    ``api_key_env`` names the environment variable that holds the key. An address of its own without
    one is sent no key, unless it is OpenAI's.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = ""
    base_url: Annotated[Address, AfterValidator(_without_secrets)] = ""
    api_key_env: EnvironmentVariable = ""
    temperature: Annotated[float | None, Field(ge=0, le=2)] = None
    extra: dict[str, JsonValue] = {}

    def settings(self, settings: Settings) -> Settings:
        """Return the settings that this step is done with.

        Raises InputError for parameters that the program sets itself.
        """
        values: dict[str, Any] = {}
        if self.model or self.base_url:
            # What is said of the one model need not hold for the other.
            values |= {"extra": {}, "context_window": 0}
        if self.base_url:
            values |= {"base_url": self.base_url, "api_key_env": _default_key(self.base_url)}
        given = self.model_dump(include={"model", "api_key_env", "extra"})
        values |= {name: value for name, value in given.items() if value}
        if self.temperature is not None:
            values["temperature"] = self.temperature
        try:
            base = settings.llm_for(ROLE).model_dump()
            llm = LlmSettings.model_validate({**base, **values})
        except ValidationError as error:
            raise InputError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None
        return settings.with_llm(llm)

    def answered_by(self, settings: Settings) -> list[object]:
        """Return what decides this step's answers besides the prompt, given its own settings.

        An address of its own is part of it: two servers may serve different models by one name.
        """
        return [*answered_by(settings.llm_for(ROLE)), *([self.base_url] if self.base_url else [])]


def model_label(step: StepModel, settings: Settings) -> str:
    """Return what the marks of a step are kept by, given its own settings: the model, and where."""
    model = settings.llm.model
    return f"{model} at {step.base_url}" if step.base_url else model


def _default_key(address: str) -> str:
    return "" if LlmOptions(base_url=address).is_openai else NO_KEY
