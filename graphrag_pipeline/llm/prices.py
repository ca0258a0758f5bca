"""Prices of models: a small dated file, which the user's own may override."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.patterns import pattern_of

_MILLION = 1_000_000
_SNAPSHOT = pattern_of(r"-(\d{4}-\d{2}-\d{2}|\d{8}|latest)$")


@dataclass(frozen=True)
class Price:
    """US dollars for a million tokens; in batches half of it, where nothing else is said."""

    input: float
    output: float = 0.0
    cached_input: float | None = None
    batch_input: float | None = None
    batch_output: float | None = None

    def in_batches(self) -> Price:
        """Return the price of requests that are sent in batches."""
        cached = self.cached_input
        return Price(
            self.input / 2 if self.batch_input is None else self.batch_input,
            self.output / 2 if self.batch_output is None else self.batch_output,
            None if cached is None else cached / 2,
        )


@dataclass(frozen=True)
class Prices:
    """The prices of models by name, and the day they were noted; ``other`` is that of all else."""

    date: str
    models: Mapping[str, Price]
    other: Price | None = None

    def of(self, model: str) -> Price | None:
        """Return a model's price, or None; a dated snapshot costs what its model does."""
        known = self.models.get(model) or self.models.get(_SNAPSHOT.sub("", model))
        return known or self.other

    def of_batches(self) -> Prices:
        """Return the prices of the same models for requests that are sent in batches."""
        models = {name: price.in_batches() for name, price in self.models.items()}
        return replace(self, models=models, other=self.other and self.other.in_batches())

    def cost(
        self, model: str, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0
    ) -> float | None:
        """Return dollars, or None for a model without a price.

        ``cached_tokens`` are those of the prompt that the provider had in its own cache.
        """
        price = self.of(model)
        if price is None:
            return None
        cheap = price.input if price.cached_input is None else price.cached_input
        spent = (prompt_tokens - cached_tokens) * price.input + cached_tokens * cheap
        return (spent + completion_tokens * price.output) / _MILLION


def load_prices(
    file: str | Path = "", own: Mapping[str, Price] | None = None, *, own_machine: bool = False
) -> Prices:
    """Return the shipped prices, those of the user's file over them, and over these some ``own``.

    A model without a price costs nothing on one's ``own_machine``. Raises ConfigError if the file
    cannot be read as prices.
    """
    shipped = replace(_shipped(), other=Price(0.0) if own_machine else None)
    own = own or {}
    if not file:
        return replace(shipped, models={**shipped.models, **own}) if own else shipped
    try:
        in_file = _parse(tomllib.loads(Path(file).expanduser().read_text(encoding="utf-8-sig")))
    except OSError as error:
        raise ConfigError(f"cannot read the prices in {file}: {error.strerror}") from None
    except (ValueError, TypeError, AttributeError):
        raise ConfigError(
            f'{file} holds no prices: write date = "2026-01-31", then for each model '
            '[models."name"] with input and output, dollars per million tokens'
        ) from None
    models = {**shipped.models, **in_file.models, **own}
    return replace(shipped, date=in_file.date or shipped.date, models=models)


@functools.cache
def _shipped() -> Prices:
    text = resources.files("graphrag_pipeline").joinpath("data/prices.toml").read_text("utf-8")
    return _parse(tomllib.loads(text))


def _parse(raw: Mapping[str, Any]) -> Prices:
    models = {name: Price(**values) for name, values in raw.get("models", {}).items()}
    for price in models.values():
        numbers = (price.input, price.output, price.batch_input or 0, price.batch_output or 0)
        if not all(isinstance(number, int | float) for number in numbers):
            raise TypeError
    return Prices(str(raw.get("date", "")), models)


def unpriced(model: str) -> ConfigError:
    """Return the error of a budget in dollars for a model whose price is not known."""
    return ConfigError(
        f"max_cost needs a price for {model}: name it in the file of llm.prices_file, or "
        "limit max_tokens instead"
    )
