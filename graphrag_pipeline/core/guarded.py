"""Commands that end with the process that started them, however it ends, and leave nothing behind.

Between the two stands a process that does little else than wait. It holds one end of a pipe; the
operating system closes the other when the process that started it ends, be it by ``kill -9``. A
command's own processes are in a group with it, and end with it likewise.
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
from types import FrameType
from typing import Any

_GRACE_SECONDS = 15.0
_POLL_SECONDS = 0.1
_PR_SET_PDEATHSIG = 1
_SIGNALLED = 128
_PASSED_ON = ("SIGINT", "SIGTERM", "SIGHUP")


@contextlib.contextmanager
def guarded(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Start a command, with what :class:`subprocess.Popen` takes; end it if it runs still.

    It is out of reach of the terminal's Ctrl-C. Signals for it go to the process that is yielded,
    whose exit code is the command's. Windows knows no such groups: there the command runs as it is.
    """
    if os.name == "nt":
        with subprocess.Popen(command, **options) as process:
            yield process
        return
    watched, held = os.pipe()
    guard = [sys.executable, "-m", __name__, str(watched), *command]
    try:
        process = subprocess.Popen(guard, pass_fds=(watched,), process_group=0, **options)
    except BaseException:
        os.close(held)
        raise
    finally:
        os.close(watched)
    try:
        yield process
    finally:
        os.close(held)
        with process:
            pass


def _main() -> None:
    watched, *command = sys.argv[1:]
    started: list[int] = []

    def pass_on(number: int, _: FrameType | None) -> None:
        if not started:
            sys.exit(_SIGNALLED + number)
        _tell(started[0], signal.SIGINT)

    for name in _PASSED_ON:
        signal.signal(getattr(signal, name), pass_on)
    process = subprocess.Popen(command, process_group=0, preexec_fn=_end_with_parent)
    started.append(process.pid)
    watcher = threading.Thread(target=_end_when_closed, args=(int(watched), process.pid))
    watcher.daemon = True
    watcher.start()
    # Until it is waited for, nobody else can get the number of the command's group.
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    _tell_group(process.pid, signal.SIGTERM)
    code = process.wait()
    until = time.monotonic() + _GRACE_SECONDS
    while _tell_group(process.pid, 0) and time.monotonic() < until:
        time.sleep(_POLL_SECONDS)
    _tell_group(process.pid, signal.SIGKILL)
    sys.exit(code if code >= 0 else _SIGNALLED - code)


def _end_with_parent() -> None:
    """Have this process told when the guard itself is killed, where the system can do that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)


def _end_when_closed(watched: int, command: int) -> None:
    os.read(watched, 1)
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
