"""Speed of models in the calls that they answered last, by the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from graphrag_pipeline.llm.database import Place, reading
from graphrag_pipeline.llm.pricing import StagePlan

_RECENT = """
SELECT called_at, seconds, prompt_tokens, completion_tokens FROM llm_calls
WHERE model = $1 AND cached = 0 AND error IS NULL AND seconds > 0 ORDER BY position DESC LIMIT 200
"""
_READING = 0.25
"""A token that is read takes so much of the time of one that is written: servers of one's own read
three to ten times as fast as they write."""


@dataclass(frozen=True)
class Speed:
    """Time of a model for each token, in the ``calls`` it answered last.

    ``seconds_of_token`` is for each token written while any call was under way, however many at
    once; ``shortest`` are the seconds of a call on average.
    """

    calls: int
    seconds_of_token: float
    shortest: float

    def seconds(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the seconds that so many tokens of many calls take."""
        return max(
            self.shortest, _written(prompt_tokens, completion_tokens) * self.seconds_of_token
        )


def speed_of(place: Place, model: str) -> Speed | None:
    """Return the speed of a model's last calls; None if it has answered none."""
    with reading(place) as tables:
        rows = [] if tables is None else tables.read(_RECENT, (model,))
    work = sum(_written(prompt, completion) for _, _, prompt, completion in rows)
    if not work:
        return None
    seconds = busy_seconds((began, began + took) for began, took, *_ in rows)
    return Speed(len(rows), seconds / work, sum(row[1] for row in rows) / len(rows))


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


def _written(prompt_tokens: int, completion_tokens: int) -> float:
    return completion_tokens + _READING * prompt_tokens
