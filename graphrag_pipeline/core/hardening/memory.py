"""Memory that ran out: told from other trouble, whoever says so and in whatever words."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from graphrag_pipeline.core.errors import GraphRAGError
from graphrag_pipeline.core.rows import one_line

_PROBE_BYTES = 256 * 2**20
_MOST_CHARACTERS = 120
_M_ARENA_MAX = -8
_CANNOT_SPILL = "failed to offload"
_NO_ROOM = "with no room for what does not fit where storage.temp says, or else beside the index"
_USUAL_BYTES = 8 * 2**30
_WORTH_RETURNING = 32 * 2**20
_PANIC = "PanicException"
"""What a library in Rust raises; it is no Exception."""
_TYPES = ("MemoryError", "ArrowMemoryError", "_ArrayMemoryError", "OutOfMemoryException")
_OF_SQLITE = ("SQLITE_NOMEM", "SQLITE_IOERR_NOMEM", "SQLITE_IOERR_SHMMAP")
_WORDS = (
    "out of memory error",
    "cannot allocate memory",
    "failed to map segment",
    "memory allocation of",
    "malloc of size",
    "std::bad_alloc",
    "can't start new thread",
    "could not spawn thread",
    "failed to launch worker thread",
)


def share_freed_memory(arenas: int) -> None:
    """Have glibc share what threads freed, where it would keep it for the thread that had it.

    Each of so many ``arenas`` is shared. A run of 20,000 documents then takes a fifth less memory,
    and a server does not grow with its releases; neither takes longer.
    """
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, arenas)


class _Held:
    """The bytes in memory after freed ones were last given back, or the fewest since."""

    n_bytes = 0


def return_freed_memory() -> None:
    """Give the system back what was freed: of a stage's memory, the next needs little.

    To look for it takes 10 ms in a large process, which is done where that has grown by as much.
    """
    now = _bytes_in_memory()
    if now < _Held.n_bytes + _WORTH_RETURNING:
        _Held.n_bytes = min(now, _Held.n_bytes)
        return
    if "pyarrow" in sys.modules:
        import pyarrow as pa

        pa.default_memory_pool().release_unused()
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
        _Held.n_bytes = _bytes_in_memory()


def _bytes_in_memory() -> int:
    """Return how much of this process is in memory; where the system does not say, very much."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE
    except OSError:
        return sys.maxsize


class OutOfMemoryError(GraphRAGError):
    """The system gave no more memory. What was finished is kept."""

    exit_code = 5

    def __init__(self, details: str = "", stage: str = "") -> None:
        self.details = details
        what = f"out of memory{f' in {stage}' if stage else ''}{f' ({details})' if details else ''}"
        super().__init__(
            f"{what}: what was finished is kept; give the process more memory (storage.memory_gb, "
            "where it is set), or set smaller batches (batches.max_mb), and run it again"
        )


def as_out_of_memory(error: BaseException) -> OutOfMemoryError | None:
    """Return what to say of an error if it, or one that it was raised from, is for want of memory.

    So is one that nobody meant, where memory is short: libraries have many ways to fail then.
    """
    for each in _chain(error):
        if isinstance(each, OutOfMemoryError):
            return each
        if _says_so(each):
            return OutOfMemoryError(_NO_ROOM if _CANNOT_SPILL in str(each) else "")
    unexpected = isinstance(error, Exception) and not isinstance(error, GraphRAGError)
    if (unexpected or type(error).__name__ == _PANIC) and memory_is_short():
        return OutOfMemoryError(one_line(f"{type(error).__name__}: {error}")[:_MOST_CHARACTERS])
    return None


@contextlib.contextmanager
def told_out_of_memory(stage: str) -> Iterator[None]:
    """Raise OutOfMemoryError, naming the stage, where memory runs out."""
    try:
        yield
    except BaseException as error:
        if (out := as_out_of_memory(error)) is None:
            raise
        raise OutOfMemoryError(out.details, stage) from error


def says_out_of_memory(type_name: str, message: str) -> bool:
    """Whether an error of which only its type's name and its message are known says so."""
    words = message.lower()
    return type_name in _TYPES or any(each in words for each in _WORDS)


def memory_is_short() -> bool:
    """Whether the system would refuse some more memory at this moment.

    Where it would not, an error about memory is the fault of who asked for an absurd amount.
    """
    try:
        mmap.mmap(-1, _PROBE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except (OSError, MemoryError):
        return True
    return False


def memory_for_us() -> int:
    """Return the bytes of memory that this process may use at most: the machine's, or fewer.

    Fewer under a limit of address space (``ulimit -v``) or of a control group (a container).
    """
    limits = [*_group_limits(), *_address_limit()]
    with contextlib.suppress(AttributeError, OSError, ValueError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min((limit for limit in limits if limit > 0), default=_USUAL_BYTES)


def _group_limits(
    of_process: Path = Path("/proc/self/cgroup"), groups: Path = Path("/sys/fs/cgroup")
) -> Iterator[int]:
    """Yield the limits of the control groups of this process, of both versions."""
    with contextlib.suppress(OSError):
        for line in of_process.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "memory" not in controllers.split(","):
                continue
            root = groups / "memory" if controllers else groups
            name = "memory.limit_in_bytes" if controllers else "memory.max"
            group = root / path.lstrip("/")
            for folder in (group, *group.parents):
                with contextlib.suppress(OSError, ValueError):
                    yield int((folder / name).read_text())
                if folder == root:
                    break


def _address_limit() -> Iterator[int]:
    with contextlib.suppress(ImportError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            yield limit


def require_memory() -> None:
    """Raise OutOfMemoryError where memory is short.

    A library in Rust that gets no thread for its work may wait for one for ever: do not begin.
    """
    if memory_is_short():
        raise OutOfMemoryError


def _says_so(error: BaseException) -> bool:
    if isinstance(error, MemoryError):
        return True
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    if getattr(error, "sqlite_errorname", None) in _OF_SQLITE:
        return True
    return says_out_of_memory(type(error).__name__, str(error))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
