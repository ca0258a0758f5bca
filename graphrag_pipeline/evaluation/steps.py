"""What an experiment's file says of each thing that a model does with the answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, model_validator

from graphrag_pipeline.evaluation.judging.criteria import CRITERIA
from graphrag_pipeline.evaluation.step_models import StepModel

Text = Annotated[str, Field(min_length=1, max_length=4000)]
Replicates = Annotated[int, Field(ge=1, le=100)]


class Judge(StepModel):
    """How answers are compared by a model.

    ``criteria`` are names of those that ship and of ``own_criteria``, by default all of these. A
    table in their place holds own criteria, by name and text, and ``true`` for one that ships.
    """

    criteria: tuple[str, ...] = ()
    own_criteria: dict[Text, Text] = Field(default_factory=dict)
    replicates: Replicates = 5
    against: str = ""
    questions: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="before")
    @classmethod
    def _take_table(cls, values: Any) -> Any:
        if not isinstance(values, Mapping) or not isinstance(values.get("criteria"), Mapping):
            return values
        table = values["criteria"]
        chosen = [name for name, text in table.items() if text is not False]
        own = {name: text for name, text in table.items() if not isinstance(text, bool)}
        return {**values, "criteria": chosen, "own_criteria": own}

    @model_validator(mode="after")
    def _check_criteria(self) -> Judge:
        if both := sorted(CRITERIA.keys() & self.own_criteria.keys()):
            raise ValueError(
                f"criterion {both[0]!r} ships with the program: write {both[0]} = true, or give "
                "your own another name"
            )
        known = [*CRITERIA, *self.own_criteria]
        if strangers := [name for name in self.criteria if name not in known]:
            raise ValueError(f"criterion {strangers[0]!r} is none of {', '.join(known)}")
        if not self.criteria:
            object.__setattr__(self, "criteria", tuple(known))
        return self


class Claims(StepModel):
    """How claims are counted: distances at which two belong together."""

    thresholds: tuple[Annotated[float, Field(gt=0, le=1)], ...] = (0.5, 0.6, 0.7, 0.8)
