"""The page of an experiment as plain values. All texts are untrusted, not escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from graphrag_evaluation.judging.agreement import Agreement
from graphrag_evaluation.labelling.human_agreement import PeopleSay

Kind = Literal["share", "number", "count", "dollars", "milliseconds"]
"""How a value is written: shares, from 0 to 1, as percent."""


@dataclass(frozen=True)
class ShownMeasure:
    """The measure of a column. ``name`` is that of the metric, ``label`` what a reader calls it."""

    name: str
    label: str
    kind: Kind
    is_less_better: bool = False


@dataclass(frozen=True)
class Cell:
    """A value with its 95 % interval, where there is one.

    ``is_best`` is of the best in its column, ``is_sure`` if it is so beyond chance.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    is_best: bool = False
    is_sure: bool = False


@dataclass(frozen=True)
class Table:
    """Values of conditions (rows, by name) by measures (columns)."""

    measures: Sequence[ShownMeasure]
    rows: Mapping[str, Sequence[Cell]]


@dataclass(frozen=True)
class ConditionEntry:
    """A condition that was compared; ``number`` is its place, from 1."""

    number: int
    name: str
    method: str
    parameters: str
    answers: int


@dataclass(frozen=True, kw_only=True)
class Dot:
    """A condition in a chart; coordinates are of the drawing, y growing downwards.

    ``label`` is empty where there was no room for it. ``is_apart`` asks for a line to it.
    """

    number: int
    name: str
    x: float
    y: float
    low: float
    high: float
    said: str
    is_front: bool
    label: str = ""
    label_x: float = 0.0
    label_y: float = 0.0
    is_apart: bool = False


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Quality against what it takes; ticks are (place, text), ``front`` a path of the best."""

    across: ShownMeasure
    dots: Sequence[Dot]
    x_ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[tuple[float, str]]
    front: str
    is_log: bool
    is_numbered: bool


@dataclass(frozen=True)
class Charts:
    """The charts of one quality, and the conditions that it says nothing about."""

    quality: ShownMeasure
    charts: Sequence[Chart]
    absent: Sequence[str]


@dataclass(frozen=True)
class ByType:
    """The means of one metric by type of question: (type, questions), and values by condition."""

    measure: ShownMeasure
    types: Sequence[tuple[str, int]]
    rows: Mapping[str, Sequence[float | None]]
    n_more: int


@dataclass(frozen=True)
class Share:
    """A number of questions, its share of all, and how opaque the colour is that shows it."""

    label: str
    count: int
    share: float
    opacity: float


@dataclass(frozen=True, kw_only=True)
class RightAndWrong:
    """The questions that two conditions answer right.

    ``quarters`` are those on which both are, the first alone, the second alone, and none.
    """

    metric: str
    first: str
    second: str
    questions: int
    quarters: tuple[Share, Share, Share, Share]
    said: str


@dataclass(frozen=True, kw_only=True)
class Duel:
    """The row's condition against the column's, by one criterion.

    ``is_won`` and ``is_lost`` say that it is so beyond chance. ``is_void`` marks a rate that the
    order of answers explains, ``is_biased`` one that it had a part in.
    """

    rate: float
    said: str
    is_won: bool
    is_lost: bool
    is_biased: bool
    is_void: bool


@dataclass(frozen=True)
class Matrix:
    """Win rates of rows over columns by a criterion, with each pair's verdict in words.

    ``first_chosen`` is how often the judge took the answer shown first, over all pairs;
    ``biased_to_first`` of the ``biased`` pairs lean that way, the others to the second.
    """

    criterion: str
    columns: Sequence[str]
    rows: Mapping[str, Sequence[Duel | None]]
    verdicts: Sequence[str]
    pairs: int
    biased: int
    biased_to_first: int
    void: int
    won: int
    first_chosen: float | None


@dataclass(frozen=True)
class IndexMetrics:
    """Metrics of releases: name, what it is, level or -1, and a value for each release."""

    releases: Sequence[str]
    rows: Sequence[tuple[str, str, int, Sequence[float | None]]]


@dataclass(frozen=True)
class Chunk:
    """A retrieved chunk; ``is_gold`` if it holds a gold passage."""

    title: str
    beginning: str
    is_gold: bool


@dataclass(frozen=True)
class Given:
    """The answer of one condition to a question; ``scores`` are (label, kind, value)."""

    condition: str
    text: str
    scores: Sequence[tuple[str, Kind, float]]
    tokens: float
    milliseconds: float
    citations: int
    citations_resolved: int
    failures: Sequence[str]
    chunks: Sequence[Chunk]
    n_more_chunks: int


@dataclass(frozen=True)
class AskedCondition:
    """A question; ``values`` are of the conditions in order, ``given`` is empty in brief ones."""

    position: int
    text: str
    type: str
    values: Sequence[float | None]
    spread: float | None
    answers: Sequence[str] = ()
    n_more_answers: int = 0
    passages: Sequence[tuple[str, str]] = ()
    n_more_passages: int = 0
    given: Sequence[Given] = ()


@dataclass(frozen=True)
class EvaluationPage:
    """Everything on the page.

    ``left_out`` are conditions without an answer, and why. ``finding`` is what came out, in
    sentences; ``advice`` what to do where nothing could. ``quality`` is what conditions are
    compared by, None where there are neither scores nor verdicts. ``cost`` is in US dollars, None
    where a price is not known. ``agreement`` is that of judge and claims, ``people`` what
    people say of the answers, ``marked_by`` the metrics
    that models give marks by, by model.
    """

    experiment: str
    question_set: str
    n_questions: int
    releases: Sequence[str]
    models: Sequence[str]
    started_at: datetime
    finished_at: datetime | None
    n_answers: int
    model_calls: int
    cost: float | None
    left_out: Sequence[tuple[str, str]]
    finding: Sequence[str]
    advice: Sequence[str]
    conditions: Sequence[ConditionEntry]
    quality: ShownMeasure | None
    charts: Sequence[Charts]
    table: Table
    more: Table
    claims: Table
    agreement: Sequence[Agreement]
    people: PeopleSay
    marked_by: Mapping[str, Sequence[str]]
    by_type: ByType | None
    overlaps: Sequence[RightAndWrong]
    matrices: Sequence[Matrix]
    index: IndexMetrics | None
    in_full: Sequence[AskedCondition]
    asked: Sequence[AskedCondition]
    n_more_asked: int
