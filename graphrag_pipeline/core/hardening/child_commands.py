"""Commands that end with the process that started them, however it ends, and leave nothing behind.

Between the two stands a process that does little else than look whether its parent is still there:
after a ``kill -9``, too, the system gives it another one. A command's own processes are in a group
with it, and end with it likewise.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from types import FrameType
from typing import Any

_GRACE_SECONDS = 15.0
_POLL_SECONDS = 0.1
_PR_SET_PDEATHSIG = 1
_WHO_STARTS = 0
_SIGNALLED = 128
_PASSED_ON = ("SIGINT", "SIGTERM", "SIGHUP")


@contextlib.contextmanager
def guarded(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Start a command, with what :class:`subprocess.Popen` takes; end it if it runs still.

    It is out of reach of the terminal's Ctrl-C. Signals for it go to the process that is yielded,
    whose exit code is the command's. On Windows, without such groups, it runs by itself.
    """
    group = {} if os.name == "nt" else {"process_group": 0}
    with subprocess.Popen([*guard_of(os.getpid()), *command], **group, **options) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT if group else signal.SIGTERM)


def guard_of(parent: int | None = None) -> list[str]:
    """Return what to put before a command, so that it ends with its parent; nothing on Windows.

    The parent is who starts it, if no other is named.
    """
    if os.name == "nt":
        return []
    return [sys.executable, "-m", __name__, str(parent or _WHO_STARTS)]


def end_with_parent(parent: int, number: int = signal.SIGINT) -> None:
    """Have this process told when its parent is killed, where the system can do that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:
            os.kill(os.getpid(), number)


def _main() -> None:
    parent = int(sys.argv[1]) or os.getppid()
    started: list[int] = []

    def pass_on(number: int, _: FrameType | None) -> None:
        if not started:
            sys.exit(_SIGNALLED + number)
        _tell(started[0], signal.SIGINT)

    for name in _PASSED_ON:
        signal.signal(getattr(signal, name), pass_on)
    process = subprocess.Popen(
        sys.argv[2:], process_group=0, preexec_fn=partial(end_with_parent, os.getpid())
    )
    started.append(process.pid)
    threading.Thread(target=_end_with, args=(parent, process.pid), daemon=True).start()
    # Until it is waited for, nobody else can get the number of the command's group.
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    _tell_group(process.pid, signal.SIGTERM)
    code = process.wait()
    until = time.monotonic() + _GRACE_SECONDS
    while _tell_group(process.pid, 0) and time.monotonic() < until:
        time.sleep(_POLL_SECONDS)
    _tell_group(process.pid, signal.SIGKILL)
    sys.exit(code if code >= 0 else _SIGNALLED - code)


def _end_with(parent: int, command: int) -> None:
    while os.getppid() == parent:
        time.sleep(_POLL_SECONDS)
    _tell(command, signal.SIGINT)
    time.sleep(_GRACE_SECONDS)
    _tell_group(command, signal.SIGKILL)


def _tell(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _tell_group(group: int, number: int) -> bool:
    """Send a signal to a group; return whether there is one."""
    try:
        os.killpg(group, number)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    _main()
