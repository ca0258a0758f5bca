"""Ctrl-C that is not lost: what came in the midst of code that swallows it is heard afterwards."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from collections.abc import Iterator

_hearing: list[socket.socket] = []


@contextlib.contextmanager
def hearing_interrupts() -> Iterator[None]:
    """Remember each Ctrl-C that comes meanwhile, whatever becomes of the exception it raises.

    Python drops what is raised while an object is collected, and libraries what is raised in a
    callback. Only the main thread hears signals: in others this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    receiver, sender = socket.socketpair()
    receiver.setblocking(False)
    sender.setblocking(False)
    before = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    _hearing.append(receiver)
    try:
        yield
    finally:
        _hearing.remove(receiver)
        signal.set_wakeup_fd(before)
        receiver.close()
        sender.close()


def end_if_interrupted() -> None:
    """Raise KeyboardInterrupt where Ctrl-C came within :func:`hearing_interrupts`."""
    for receiver in _hearing:
        with contextlib.suppress(BlockingIOError):
            if signal.SIGINT in receiver.recv(4096):
                raise KeyboardInterrupt
