"""Python in processes of their own, which need not import everything again.

They are forked from one process that has imported the engine: what they share is only that.
"""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.reduction import DupFd
from typing import Any

from llm_helpers import processes

PATIENCE = 300


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in this folder and environment; return its exit code and what it printed."""
    return run_python("-m", "graphrag_pipeline.cli", *arguments)


def run_python(
    *arguments: str, patience: float = PATIENCE, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run Python on ``-c CODE`` or ``-m MODULE``, as :func:`subprocess.run` does."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    with ForkedPython(arguments, text=True, **options) as process:
        try:
            out, err = process.communicate(timeout=patience)
        finally:
            process.kill()
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)


class ForkedPython(subprocess.Popen):
    """What :class:`subprocess.Popen` makes of ``python -c CODE`` or ``-m MODULE``, but forked."""

    def _execute_child(self, args: Sequence[str], *given: Any) -> None:
        folder, environment, pipes, own_session = *given[4:6], given[9:15], given[-2]
        standard = (pipes[0], pipes[3], pipes[5])
        self._process = processes.Process(
            target=_run,
            args=(
                [str(each) for each in args],
                os.getcwd() if folder is None else str(folder),
                dict(os.environ if environment is None else environment),
                {n: _Handle(fd) for n, fd in enumerate(standard) if fd != -1},
                own_session,
            ),
        )
        self._process.start()
        self.pid = self._process.pid
        self._child_created = True
        self._close_pipe_fds(*pipes)

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None:
            self.returncode = self._process.exitcode
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        if self.returncode is None:
            self._process.join(timeout)
            if self._internal_poll() is None:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self.returncode


class _Handle:
    """An open file that goes along to a process."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def __reduce__(self) -> tuple[Any, ...]:
        return _taken, (DupFd(self._fd),)


def _taken(handle: Any) -> int:
    return handle.detach()


def _run(
    arguments: Sequence[str],
    folder: str,
    environment: Mapping[str, str],
    streams: Mapping[int, int],
    own_session: bool,
) -> None:
    if own_session:
        os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, fd in streams.items():
        os.dup2(fd, number)
        os.close(fd)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = [folder, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    option, what, *rest = arguments
    sys.argv = [option, *rest]
    if option == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
