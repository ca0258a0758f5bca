"""Progress of a run on standard error: bars on a terminal, a line for each stage elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from graphrag_pipeline.cli import console
from graphrag_pipeline.core.progress import (
    Listener,
    about,
    foretelling,
    listening,
    reading_remarks,
    time_left,
)
from graphrag_pipeline.core.rows import one_line, printable

Foreteller = Callable[[str, float], None]
_STAGE_WIDTH = len("attributed communities")
_SECONDS_BETWEEN_LINES = 30.0


class StageTimes:
    """Seconds spent in each stage, however the stages take turns."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._spent: dict[str, float] = {}
        self._first: dict[str, tuple[int, float]] = {}
        self._expected: dict[str, float] = {}
        self._last = ("", 0, self._started)

    def hear(self, stage: str, done: int, total: int) -> None:
        """Take note of a stage's progress."""
        now = time.perf_counter()
        if not done or stage not in self._first:
            self._first[stage] = (done, self.of(stage))
        last_stage, last_done, since = self._last
        worked = stage == last_stage and done > last_done
        self._spent[stage] = self._spent.get(stage, 0.0) + (now - since if worked else 0.0)
        self._last = (stage, done, now)

    def expect(self, stage: str, seconds: float) -> None:
        """Take note of what a stage that has just begun is likely to take."""
        self._expected[stage] = seconds

    def of(self, stage: str) -> float:
        """Return the seconds of one stage so far."""
        return self._spent.get(stage, 0.0)

    def left(self, stage: str, done: int, total: int) -> str:
        """Return in words how long the rest of a stage takes."""
        before, spent = self._first.get(stage, (0, 0.0))
        if done == before and done < total and stage in self._expected:
            return f"{about(self._expected[stage])} left"
        return time_left(done - before, total - before, self.of(stage) - spent)

    def by_stage(self) -> dict[str, float]:
        """Return the seconds of each stage, and of everything as ``total``."""
        total = time.perf_counter() - self._started
        return {**{s: round(n, 2) for s, n in self._spent.items()}, "total": round(total, 2)}


@contextlib.contextmanager
def progress(start: str) -> Iterator[StageTimes]:
    """Show on standard error how far each stage is while the body runs.

    On a terminal each stage has a bar, below the line ``start`` that stands until the first stage
    begins; elsewhere each stage is one line when it is done, and a long one a line every half
    minute. Both say how long a stage will still take, by its last calls of a model before its first
    part is done. Yields the seconds of the stages.
    """
    times = StageTimes()
    bars = _bars(times, start) if sys.stderr.isatty() else _lines(times)
    with bars as (hear, expect), listening(hear), foretelling(expect):
        yield times


@contextlib.contextmanager
def _lines(times: StageTimes) -> Iterator[tuple[Listener, Foreteller]]:
    complete = set()
    told = [time.perf_counter()]

    def hear(stage: str, done: int, total: int) -> None:
        times.hear(stage, done, total)
        line = f"{stage:<{_STAGE_WIDTH}} {done}/{total} {times.of(stage):7.1f} s"
        left = times.left(stage, done, total)
        if done >= total and stage not in complete:
            complete.add(stage)
            console.note(line)
        elif left and time.perf_counter() - told[0] >= _SECONDS_BETWEEN_LINES:
            console.note(f"{line}, {left}")
        else:
            return
        told[0] = time.perf_counter()

    def expect(stage: str, seconds: float) -> None:
        times.expect(stage, seconds)
        if seconds >= _SECONDS_BETWEEN_LINES:
            console.note(f"{stage:<{_STAGE_WIDTH}} {about(seconds)} left")
            told[0] = time.perf_counter()

    with reading_remarks(console.note):
        yield hear, expect


@contextlib.contextmanager
def _bars(times: StageTimes, start: str) -> Iterator[tuple[Listener, Foreteller]]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    bars = Progress(
        TextColumn(f"{{task.description:<{_STAGE_WIDTH}}}", markup=False),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}", markup=False),
        console=Console(stderr=True),
    )
    tasks: dict[str, Any] = {}
    first = bars.add_task(one_line(start), total=None, left="")

    def hear(stage: str, done: int, total: int) -> None:
        times.hear(stage, done, total)
        bars.update(first, visible=False)
        if stage not in tasks:
            tasks[stage] = bars.add_task(stage, total=total, left="")
        left = times.left(stage, done, total)
        bars.update(tasks[stage], completed=done, total=total, left=left)

    def expect(stage: str, seconds: float) -> None:
        times.expect(stage, seconds)
        bars.update(tasks[stage], left=f"{about(seconds)} left")

    def read(line: str) -> None:
        bars.console.print(printable(line), markup=False, highlight=False, soft_wrap=True)

    with bars, reading_remarks(read):
        yield hear, expect
        bars.update(first, visible=False)
