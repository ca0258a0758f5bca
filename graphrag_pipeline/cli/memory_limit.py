"""A command under a limit of memory: whatever ends it for want of memory is told in one line.

A library in C++ or Rust that gets no memory aborts its process, and nothing in that process can
speak for it then. So under a limit (``ulimit -v``) the command runs in a child, and its parent
waits, passes signals on, and says what happened. What libraries write about it themselves, often
hundreds of lines, is left out.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import NoReturn

from graphrag_pipeline.core.hardening.child_commands import end_with_parent
from graphrag_pipeline.core.hardening.memory import (
    OutOfMemoryError,
    says_out_of_memory,
    share_freed_memory,
)

_PASSED_ON = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_CRASHES = (signal.SIGABRT, signal.SIGSEGV, signal.SIGILL)
_GIVES_UP = "Memory allocation still failed"
"""What OpenBLAS writes before it ends the process by an exit code of 1."""
_NOISE = (
    _GIVES_UP,
    "<jemalloc>",
    "panicked at",
    "backtrace",
    "terminate called after",
    "bad_alloc",
)
_FRUGAL = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MIMALLOC_ARENA_RESERVE": "32MiB",
    "OPENBLAS_NUM_THREADS": "1",
    "_RJEM_MALLOC_CONF": "background_thread:false,narenas:1",
}
_RELAY_SECONDS = 2.0
_STDERR = 2


def run_in_child_if_limited() -> None:
    """Go on in a child, where memory is limited; the parent waits for it and never returns."""
    if sys.platform != "linux" or not _is_limited():
        return
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    reading, writing = os.pipe()
    numbers = [getattr(signal, name) for name in (*_PASSED_ON, "SIGCHLD")]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    if child := os.fork():
        os.close(writing)
        _wait_for(child, reading, numbers)
    end_with_parent(parent, signal.SIGKILL)
    os.close(reading)
    _give_libraries(writing)
    _save_addresses()
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _is_limited() -> bool:
    import resource

    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def _give_libraries(pipe: int) -> None:
    """Let what libraries write to standard error go to a pipe, and what Python writes not."""
    own = os.dup(_STDERR)
    os.dup2(pipe, _STDERR)
    os.close(pipe)
    # A line is one write, so that it does not mix with what is passed on.
    sys.stderr = os.fdopen(own, "w", 1, encoding=sys.stderr.encoding, errors="replace")


def _save_addresses() -> None:
    """Have libraries set aside fewer addresses: a limit counts those that are never used, too."""
    share_freed_memory(1)
    for name, value in _FRUGAL.items():
        os.environ.setdefault(name, value)


def _wait_for(child: int, pipe: int, numbers: list[signal.Signals]) -> NoReturn:
    dropped: list[str] = []
    relay = threading.Thread(target=_relay, args=(pipe, dropped), daemon=True)
    relay.start()
    while True:
        told = signal.sigwaitinfo(numbers)
        if told.si_signo != signal.SIGCHLD:
            # A signal of the terminal's has reached the child already.
            if told.si_pid:
                os.kill(child, told.si_signo)
            continue
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
    # A process that the command has left behind may hold the pipe open.
    relay.join(_RELAY_SECONDS)
    has_given_up = any(_GIVES_UP in line for line in dropped)
    _end_as(os.waitstatus_to_exitcode(status), has_given_up=has_given_up)


def _relay(pipe: int, dropped: list[str]) -> None:
    with os.fdopen(pipe, "rb") as lines:
        for line in lines:
            text = line.decode(errors="replace")
            if says_out_of_memory("", text) or any(word in text for word in _NOISE):
                dropped.append(text)
            else:
                os.write(_STDERR, line)


def _end_as(code: int, *, has_given_up: bool) -> NoReturn:
    """End as the child did, or, where a library has ended it, as for want of memory."""
    if -code in _CRASHES or (code == 1 and has_given_up):
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        error = OutOfMemoryError(f"a library ended the process: {how}")
        os.write(_STDERR, f"error: {error}\n".encode())
        os._exit(error.exit_code)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [-code])
        os.kill(os.getpid(), -code)
    os._exit(code)
