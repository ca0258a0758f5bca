"""A preset is a file: conditions of a paper, how it judges, and its tables as they are printed.

The files stand in the folder presets, one for each paper, in TOML. Another file there is another
preset: nothing else needs to know of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from graphrag_evaluation.file_errors import parsed
from graphrag_evaluation.metrics.computed import COMPUTED
from graphrag_evaluation.metrics.retrieval import OF_DOCUMENTS
from graphrag_evaluation.steps import Claims, Judge
from graphrag_pipeline.core.errors import InputError

_FOLDER, _SUFFIX = "graphrag_evaluation.presets", ".toml"

TableKind = Literal[
    "scores", "types", "two_ways", "transposed", "win_rates", "average_wins", "duels", "pairs",
    "orders", "units", "corpus", "indexing", "costs", "storage", "hierarchies", "graphs", "indexes",
    "overlap", "agreement",
]  # fmt: skip
"""How a table is filled: see ``presets.kinds``."""

Printed = dict[str, list[float | str]]
"""Values of rows as a paper prints them."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PaperCondition(_Strict):
    """A row of the paper, by its name there, and the method with parameters that is this row.

    ``index`` are settings in which the index that it is asked of differs from the usual one, by
    section. ``as_much_as`` is another condition, whose tokens of context are the budget of each
    question.
    """

    name: str
    method: str
    index: dict[str, Any] = Field(default_factory=dict)
    as_much_as: str = ""


class TableSpec(_Strict):
    """A table or figure: its number, what kind it is (see ``kinds``), rows and columns as printed.

    ``columns`` give each heading and what stands under it: a metric, a type of question, a
    condition. ``scorers`` are those of the data set that the table is of, as those of the paper.
    ``printed`` are the paper's own figures, by data set and row, for these columns.
    """

    number: str
    title: str
    kind: TableKind
    rows: tuple[str, ...] = ()
    columns: dict[str, str] = Field(default_factory=dict)
    metric: str = ""
    criteria: tuple[str, ...] = ()
    against: str = ""
    scale: float = 100.0
    decimals: int = 1
    note: str = ""
    scorers: dict[str, str] = Field(default_factory=dict)
    printed: dict[str, Printed] = Field(default_factory=dict)


class Missing(_Strict):
    """A table or figure that is not made, and why."""

    number: str
    why: str


class Paper(_Strict):
    """A preset.

    ``retrieval_only`` is of one whose tables need no answers. ``short_answers`` are those of a
    paper that compares answers with gold ones: they are short where the gold answers are.
    ``per_document`` is of one that indexes each document apart, where the questions name their
    documents. ``scorers`` name for a score of ours the one by the script that the authors used:
    both are measured, and tables show theirs. ``differs`` says in a sentence each what is not as in
    the paper.
    """

    title: str
    differs: tuple[str, ...] = ()
    retrieval_only: bool = False
    short_answers: bool = False
    per_document: bool = False
    context_tokens: tuple[int, ...] = ()
    metrics: tuple[str, ...] = ()
    scorers: dict[str, str] = Field(default_factory=dict)
    judge: Judge | None = None
    claims: Claims | None = None
    condition: tuple[PaperCondition, ...]
    table: tuple[TableSpec, ...] = ()
    missing: tuple[Missing, ...] = ()

    @property
    def methods(self) -> Mapping[str, str]:
        """Each condition's method with parameters, by the condition's name."""
        return {row.name: row.method for row in self.condition}

    @property
    def names(self) -> frozenset[str]:
        """The names of the conditions as they are asked: one for each size of context."""
        names = [row.name for row in self.condition]
        budgets = self.context_tokens if len(self.context_tokens) > 1 else ()
        spread = [with_budget(name, budget) for name in names for budget in budgets]
        return frozenset(spread or names)

    @property
    def verdicts(self) -> int:
        """Calls of the judge for one question, where no two answers are the same."""
        if self.judge is None:
            return 0
        n = len(self.judge.among or self.condition) * max(1, len(self.context_tokens))
        pairs = n - 1 if self.judge.against else math.comb(n, 2)
        return 2 * pairs * len(self.judge.criteria) * self.judge.replicates

    @property
    def measured(self) -> tuple[str, ...]:
        """The metrics beyond the usual ones: ours, and those of the authors' scripts."""
        theirs = {
            **self.scorers,
            **{k: v for table in self.table for k, v in table.scorers.items()},
        }
        wanted = dict.fromkeys([*self.metrics, *theirs.values()])
        return tuple(name for name in wanted if name in (*COMPUTED, OF_DOCUMENTS))


def with_budget(name: str, tokens: int) -> str:
    """Return the name of a condition that has so many tokens of context, where several have."""
    return f"{name} {tokens // 1000}k"


def preset_names() -> list[str]:
    """Return the names of all presets."""
    files = resources.files(_FOLDER).iterdir()
    return sorted(file.name.removesuffix(_SUFFIX) for file in files if file.name.endswith(_SUFFIX))


@cache
def paper_of(preset: str) -> Paper:
    """Return a preset. Raises InputError where there is none of the name, or its file is wrong."""
    if preset not in preset_names():
        raise InputError(f"preset = {preset!r}: use one of {', '.join(preset_names())}")
    file = resources.files(_FOLDER).joinpath(f"{preset}{_SUFFIX}")
    return parsed(file.read_text("utf-8"), f"preset {preset}", Paper)
