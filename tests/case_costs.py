"""The CPU that each case takes, its processes included: what tests/dear_list.py reads."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest
from artefacts import MADE, MAKING

_TICKS = os.sysconf("SC_CLK_TCK")


class CaseCosts:
    """Measures the cases of this process, and writes their seconds into a folder: a file a worker.

    Cases that share a fixture take an equal part each of what it takes: whoever runs first pays for
    all. What is made once for all workers counts for none, nor does the end of a module, with the
    browser that all its cases have used.
    """

    def __init__(self, folder: Path, name: Callable[[pytest.Item], str]) -> None:
        self._folder, self._name = folder, name
        self._own = dict[str, float]()
        self._shared, self._users = Counter[Any](), defaultdict[Any, list[str]](list)
        self._apart = 0.0
        """Seconds that no case has to itself."""
        self._making = list[tuple[float, float]]()
        sys.addaudithook(self._hear)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Function) -> Iterator[None]:
        case, before, apart = self._name(item), _seconds(), self._apart
        result = yield
        self._own[case] = _seconds() - before - (self._apart - apart)
        for name in item.fixturenames:
            for fixture in item._fixtureinfo.name2fixturedefs.get(name, ())[-1:]:
                self._users[fixture].append(case)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
        before, apart = _seconds(), self._apart
        result = yield
        if fixturedef.scope != "function":
            seconds = _seconds() - before - (self._apart - apart)
            self._shared[fixturedef] += seconds
            self._apart += seconds
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Iterator[None]:
        before, apart = _seconds(), self._apart
        result = yield
        if nextitem is None or nextitem.path != item.path:
            self._apart += _seconds() - before - (self._apart - apart)
        return result

    def pytest_sessionfinish(self) -> None:
        seconds = Counter(self._own)
        for fixture, users in self._users.items():
            for case in users:
                seconds[case] += self._shared[fixture] / len(users)
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / f"{worker}.json").write_text(json.dumps(seconds))

    def _hear(self, event: str, _: tuple[object, ...]) -> None:
        if event == MAKING:
            self._making.append((_seconds(), self._apart))
        elif event == MADE:
            before, apart = self._making.pop()
            self._apart += _seconds() - before - (self._apart - apart)


def _seconds() -> float:
    """Return the CPU of this process, of its children that have ended, and of those of forks."""
    seconds = sum(os.times()[:4])
    # Processes of a forkserver are its children: only the system says what they took.
    server = Path(f"/proc/{forkserver._forkserver._forkserver_pid}/stat")
    if server.exists():
        seconds += sum(map(int, server.read_text().rpartition(")")[2].split()[13:15])) / _TICKS
    return seconds
