"""Steps of an experiment's file in which a model works on the answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from graphrag_evaluation.criteria import CRITERIA, REFERENCE_CRITERIA
from graphrag_evaluation.step_models import StepModel

Text = Annotated[str, Field(min_length=1, max_length=4000)]
Replicates = Annotated[int, Field(ge=1, le=100)]


class _ByCriteria(StepModel):
    """A step that goes by criteria: ``SHIPPED`` ones, and the user's own.

    ``criteria`` are names of both, by default all. A table in their place holds own criteria, by
    name and text, and ``true`` for one that ships. ``own_criteria`` of a preset may have the name
    of one that ships: the paper means something else by it.
    """

    SHIPPED: ClassVar[Mapping[str, str]]

    criteria: tuple[str, ...] = ()
    own_criteria: dict[Text, Text] = Field(default_factory=dict)

    @property
    def meanings(self) -> dict[str, str]:
        """The text that tells the model of each criterion."""
        return {**self.SHIPPED, **self.own_criteria}

    @model_validator(mode="before")
    @classmethod
    def _take_table(cls, values: Any) -> Any:
        if not isinstance(values, Mapping) or not isinstance(values.get("criteria"), Mapping):
            return values
        table = values["criteria"]
        chosen = [name for name, text in table.items() if text is not False]
        own = {name: text for name, text in table.items() if not isinstance(text, bool)}
        if both := sorted(cls.SHIPPED.keys() & own.keys()):
            raise ValueError(
                f"criterion {both[0]!r} ships with the program: write {both[0]} = true, or give "
                "your own another name"
            )
        return {**values, "criteria": chosen, "own_criteria": own}

    @model_validator(mode="after")
    def _check_criteria(self) -> Self:
        if strangers := [name for name in self.criteria if name not in self.meanings]:
            raise ValueError(f"criterion {strangers[0]!r} is none of {', '.join(self.meanings)}")
        if not self.criteria:
            object.__setattr__(self, "criteria", tuple(self.meanings))
        return self


class Judge(_ByCriteria):
    """Options for comparing answers by a model, in pairs.

    ``differential`` shows the judge only what the two answers do not share. ``against`` is the
    condition that all others are compared with, ``among`` those that are compared, by default all.
    """

    SHIPPED = CRITERIA

    replicates: Replicates = 5
    against: str = ""
    among: tuple[str, ...] = ()
    questions: Annotated[int, Field(ge=0)] = 0
    differential: bool = False


class Reference(_ByCriteria):
    """Options for scoring answers against gold answers, or against those of a ``condition``."""

    SHIPPED = REFERENCE_CRITERIA

    replicates: Replicates = 1
    condition: str = ""


class Claims(StepModel):
    """Options for counting claims: distances at which two belong together."""

    thresholds: tuple[Annotated[float, Field(gt=0, le=1)], ...] = (0.5, 0.6, 0.7, 0.8)


class Assertions(StepModel):
    """Assertions that answers must hold: at most so many a question, from so many passages."""

    per_question: Annotated[int, Field(ge=1, le=50)] = 8
    passages: Annotated[int, Field(ge=1, le=200)] = 10
    replicates: Replicates = 1


class SelfCheck(StepModel):
    """Options for comparing answers with others of the same condition, made by chance.

    Each question is answered so many times more, at a temperature at which answers differ.
    """

    samples: Annotated[int, Field(ge=1, le=20)] = 5
    sampling_temperature: Annotated[float, Field(gt=0, le=2)] = 1.0


class Relevance(StepModel):
    """Whether retrieved chunks bear on the question, among so many that come first."""

    at: Annotated[tuple[Annotated[int, Field(ge=1, le=100)], ...], Field(min_length=1)] = (5, 10)
