"""A command ends with the process that started it, and takes what it has started with it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from graphrag_pipeline.core.hardening.child_commands import guarded

PATIENCE = 60.0
# What is started starts a process of its own, tells the number of both, and waits.
COMMAND = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(os.getpid(), child.pid, flush=True)
{then}
"""
WAIT = "time.sleep(600)"
DEAF = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(600)"
OWNER = """
import sys
from graphrag_pipeline.core.hardening.child_commands import guarded
with guarded([sys.executable, "-c", sys.argv[1]]) as process:
    print(process.pid, flush=True)
    process.wait()
"""
pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows knows no process groups")


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    with contextlib.suppress(OSError):
        # One that nobody has waited for is no process any more.
        return state.read_text().rpartition(")")[2].split()[0] != "Z"
    return not state.parent.parent.exists()


def end_of(pids: list[int]) -> None:
    until = time.monotonic() + PATIENCE
    while running := [pid for pid in pids if is_running(pid)]:
        assert time.monotonic() < until, f"{running} of {pids} run still"
        time.sleep(0.05)


def test_a_command_ends_with_its_code_and_what_it_printed() -> None:
    command = [sys.executable, "-c", "print('done'); raise SystemExit(7)"]
    with guarded(command, stdout=subprocess.PIPE, text=True) as process:
        out, _ = process.communicate(timeout=PATIENCE)
    assert (out, process.returncode) == ("done\n", 7)


def test_who_has_started_it_ends_it_on_the_way_out() -> None:
    with guarded(
        [sys.executable, "-c", COMMAND.format(then=WAIT)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        pids = [int(pid) for pid in process.stdout.readline().split()]
        assert len(pids) == 2
        assert all(is_running(pid) for pid in pids)
    end_of(pids)


def test_what_a_command_leaves_behind_ends_with_it() -> None:
    command = [sys.executable, "-c", COMMAND.format(then="raise SystemExit(3)")]
    with guarded(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pids = [int(pid) for pid in process.stdout.readline().split()]
        assert process.wait(PATIENCE) == 3
    end_of(pids)


def owner(pids: list[int]) -> int:
    return pids[0]


def guard(pids: list[int]) -> int:
    return pids[1]


def command(pids: list[int]) -> int:
    return pids[2]


@pytest.mark.parametrize(
    ("killed", "then"),
    [
        (owner, WAIT),
        pytest.param(owner, DEAF, marks=pytest.mark.nightly),
        (command, WAIT),
        pytest.param(
            guard, WAIT, marks=pytest.mark.skipif(sys.platform != "linux", reason="Linux can")
        ),
    ],
)
def test_killed_anywhere_nothing_is_left(killed: Callable[[list[int]], int], then: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, COMMAND.format(then=then)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process:
        pids = [process.pid]
        for _ in range(2):
            pids += [int(pid) for pid in process.stdout.readline().split()]
        assert len(pids) == 4
        os.kill(killed(pids), signal.SIGKILL)
        process.stdout.close()
        process.wait(PATIENCE)
    # A command whose guard was killed is told, and can itself end what it has started.
    end_of(pids[:3] if killed is guard else pids)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pids[3], signal.SIGKILL)
