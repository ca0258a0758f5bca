"""The process that reads what may do harm: it has its own memory and its own time.

It reads one file after the other, as long as the process that started it holds its input open.
"""

from __future__ import annotations

import importlib
import os
import pickle
import queue
import select
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from graphrag_pipeline.ingest.reading.answers import read_frame, write_answer, write_frame
from graphrag_pipeline.ingest.reading.files import is_out_of_memory, read_file, refused
from graphrag_pipeline.ingest.reading.formats import FORMATS
from graphrag_pipeline.ingest.reading.model import ReadingOptions

READY = b"ready"
LENGTH = 8
"""Bytes of the number that a request begins with: how long its first part is."""
OUT_OF_MEMORY = b"memory"
WALL_TO_CPU = 10
"""How much longer than its time of the processor a file may take by the clock."""


def main() -> None:
    """Read files until there is nobody to answer."""
    megabytes, seconds, most_answered = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    # What is imported later would count as memory and time of a file.
    FORMATS.usable()
    _limit_memory(megabytes)
    requests = _requests(sys.stdin.buffer)
    write_frame(answers, READY)
    for request in requests:
        end = LENGTH + int.from_bytes(request[:LENGTH])
        path, options = pickle.loads(request[LENGTH:end])
        data = request[end:]
        del request
        # Recognised pages have limits of their own, and their number has none.
        _limit_time(seconds, is_clocked=options.ocr is None)
        answer = _answer(path, options, data, most_answered)
        _limit_time(0, is_clocked=True)
        write_frame(answers, answer)
        del data, answer


def _answer(path: Path, options: ReadingOptions, data: bytes, most: int) -> bytes:
    try:
        result = read_file(path, options, data=data)
        answer = write_answer(result)
    except MemoryError:
        return OUT_OF_MEMORY
    if is_out_of_memory(result):
        return OUT_OF_MEMORY
    if len(answer) > most:
        return write_answer(refused(f"it unpacks to {len(answer):,} bytes, more than {most:,}"))
    return answer


def _requests(asked: BinaryIO) -> Iterator[bytes]:
    """Yield what is asked; end the process, whatever it does, when its parent is gone."""
    if hasattr(select, "poll"):
        threading.Thread(target=_end_with, args=(asked.fileno(),), daemon=True).start()
        return _read_all(asked)
    taken_in: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_take_in, args=(asked, taken_in), daemon=True).start()
    return iter(taken_in.get, None)


def _end_with(pipe: int) -> None:
    """End the process when the other end of its input is closed, without reading any of it."""
    hung_up = select.poll()
    hung_up.register(pipe, 0)
    hung_up.poll()
    os._exit(0)


def _read_all(asked: BinaryIO) -> Iterator[bytes]:
    while (request := read_frame(asked)) is not None:
        yield request


def _take_in(asked: BinaryIO, into: queue.SimpleQueue[bytes]) -> None:
    for request in _read_all(asked):
        into.put(request)
    os._exit(0)


def _limit_memory(megabytes: float) -> None:
    """Let no more memory be written to. Only Linux keeps to this limit."""
    try:
        resource: Any = importlib.import_module("resource")
    except ImportError:
        return
    for kind, most in ((resource.RLIMIT_DATA, int(megabytes * 1e6)), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(kind)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (least, hard))


def _limit_time(seconds: float, *, is_clocked: bool) -> None:
    """End the process when it has used the processor for so long; 0 for no limit."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)
        if is_clocked:
            signal.setitimer(signal.ITIMER_REAL, WALL_TO_CPU * seconds)


if __name__ == "__main__":
    main()
