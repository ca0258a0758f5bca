"""The project's own errors. Each message is one line that says what is wrong and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

_SQL_INTERRUPTED = "Query interrupted"


def is_interrupt(error: BaseException) -> bool:
    """Whether an error is Ctrl-C. DuckDB makes a RuntimeError of it while SQL is executed."""
    if isinstance(error, RuntimeError):
        return str(error) == _SQL_INTERRUPTED
    return isinstance(error, KeyboardInterrupt)


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says: libraries add their own traces below."""
    return next(iter(str(error).splitlines()), "")


def did_you_mean(
    name: str, names: Iterable[str], otherwise: str, written: Callable[[str], str] = str
) -> str:
    """Ask for the name nearest to one that nobody knows, as it is written; or say ``otherwise``."""
    from difflib import get_close_matches

    close = get_close_matches(name, [*names], 1)
    return f"did you mean {written(close[0])}?" if close else otherwise


class GraphRAGError(Exception):
    """Base of every error raised on purpose; the command line prints it as one line."""

    exit_code = 1


class ConfigError(GraphRAGError):
    """A setting is wrong or the configuration file cannot be read."""

    exit_code = 2


class InputError(GraphRAGError):
    """Something the user pointed at (a folder, a file, a query) cannot be used."""

    exit_code = 2


class AccessError(GraphRAGError):
    """The caller has no label that allows what was asked for."""

    exit_code = 2


class DeclinedError(InputError):
    """The user was asked, and said no."""


class RemovalError(InputError):
    """So many documents are gone from a folder that someone should look before they are removed."""


class NothingPublishedError(GraphRAGError):
    """There is no published index yet to read from."""

    exit_code = 3


class CheckFailedError(GraphRAGError):
    """A check of a stage's tables has failed; nothing is published."""

    def __init__(self, failures: Sequence[str]) -> None:
        super().__init__(f"the check failed: {', '.join(failures)}")


class BusyError(GraphRAGError):
    """Another process holds the index for longer than the wait that was allowed."""

    exit_code = 4


class StorageError(GraphRAGError):
    """The index cannot be written or read: full or read-only disk, or damaged file."""

    exit_code = 5
