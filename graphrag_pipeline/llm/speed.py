"""Speed of models in the calls that they answered last, by the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from graphrag_pipeline.core import progress
from graphrag_pipeline.core.settings import Role, Settings
from graphrag_pipeline.llm.configured import calls_place, lane_of, model_of
from graphrag_pipeline.llm.database import Place, reading
from graphrag_pipeline.llm.pricing import StagePlan

_RECENT = """
SELECT called_at, seconds, prompt_tokens, completion_tokens FROM llm_calls
WHERE model = $1 AND cached = 0 AND error IS NULL AND seconds > 0 ORDER BY position DESC LIMIT 200
"""
_OF_A_STAGE = """
SELECT called_at, seconds FROM llm_calls
WHERE model = $1 AND stage = $2 AND cached = 0 AND error IS NULL AND seconds > 0
ORDER BY position DESC LIMIT 200
"""
_READING = 0.25
"""A token that is read takes so much of the time of one that is written, where no calls say it:
servers of one's own read three to ten times as fast as they write."""
_ENOUGH_CALLS = 8
_APART = 0.02
"""Squared sine between the tokens read and written of the calls, below which nobody can say which
of them took the time."""


@dataclass(frozen=True)
class Speed:
    """Time of a model for each token, in the ``calls`` it answered last.

    ``seconds_of_token`` is for each token written while any call was under way, however many at
    once; one that is read takes ``reading`` of it. ``shortest`` are the seconds of a call on
    average.
    """

    calls: int
    seconds_of_token: float
    shortest: float
    reading: float = _READING

    def seconds(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the seconds that so many tokens of many calls take."""
        written = completion_tokens + self.reading * prompt_tokens
        return max(self.shortest, written * self.seconds_of_token)


def speed_of(place: Place, model: str) -> Speed | None:
    """Return the speed of a model's last calls; None if it has answered none."""
    with reading(place) as tables:
        rows = [] if tables is None else tables.read(_RECENT, (model,))
    reading_share = _reading_share([row[1:] for row in rows])
    work = sum(completion + reading_share * prompt for _, _, prompt, completion in rows)
    if not work:
        return None
    seconds = busy_seconds((began, began + took) for began, took, *_ in rows)
    mean = sum(row[1] for row in rows) / len(rows)
    return Speed(len(rows), seconds / work, mean, reading_share)


def _reading_share(calls: Sequence[tuple[float, int, int]]) -> float:
    """Return how much of a written token's time one takes that is read, by least squares.

    Of (seconds, prompt tokens, completion tokens) of calls; what the provider had cached counts as
    read. As is usual where they are few, or too much alike to tell.
    """
    pp = sum(prompt * prompt for _, prompt, _ in calls)
    cc = sum(completion * completion for *_, completion in calls)
    pc = sum(prompt * completion for _, prompt, completion in calls)
    ps = sum(seconds * prompt for seconds, prompt, _ in calls)
    cs = sum(seconds * completion for seconds, _, completion in calls)
    apart = pp * cc - pc * pc
    of_completion = cs * pp - ps * pc
    if len(calls) < _ENOUGH_CALLS or apart <= _APART * pp * cc or of_completion <= 0:
        return _READING
    return min(1.0, max(0.0, (ps * cc - cs * pc) / of_completion))


def busy_seconds(spans: Iterable[tuple[float, float]]) -> float:
    """Return for how many seconds at least one of some spans of time goes on."""
    busy, until = 0.0, float("-inf")
    for began, ended in sorted(spans):
        busy += max(0.0, ended - max(began, until))
        until = max(until, ended)
    return busy


def timed(stages: Sequence[StagePlan], place: Place) -> list[StagePlan]:
    """Return plans of stages with the time they take, where the speed of the model is known."""
    speeds = {model: speed_of(place, model) for model in {stage.model for stage in stages}}
    return [
        replace(stage, seconds=speed.seconds(stage.prompt_tokens, stage.completion_tokens))
        if stage.calls and (speed := speeds[stage.model]) is not None
        else replace(stage, seconds=None if stage.calls else 0.0)
        for stage in stages
    ]


def foretell(settings: Settings, role: Role, stage: str, bar: str, parts: int, calls: int) -> None:
    """Say how long a stage will take, before its first part is done, by its last calls.

    ``bar`` is what its progress is reported as, ``calls`` are those to be made. Nothing is said
    where its model has answered none of the stage, and of batches, whose time nobody knows.
    """
    progress.report(bar, 0, parts)
    if lane_of(settings, role) == "batch":
        return
    with reading(calls_place(settings)) as tables:
        rows = [] if tables is None else tables.read(_OF_A_STAGE, (model_of(settings, role), stage))
    if rows:
        seconds = busy_seconds((began, began + took) for began, took in rows)
        progress.expect(bar, seconds / len(rows) * calls)
