"""Files that may be open at once: too few are told of before anything is taken for damaged.

A library that cannot open a file for want of a handle says so in words of its own, or ends the
process; whoever reads that may take a sound file for a broken one.
"""

from __future__ import annotations

import contextlib
import os

from graphrag_pipeline.core.errors import StorageError

LEAST = 200
"""So many more files can be opened where work begins. An index of a few documents takes some 60."""
_ENOUGH = 65_536


class TooManyFilesError(StorageError):
    """The system lets this process open no more files."""

    def __init__(self) -> None:
        super().__init__(
            "too few files may be open at once: raise the limit (ulimit -n 1024) and run it again"
        )


def allow_open_files() -> None:
    """Let this process open as many files as the system allows it to, up to 65,536."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
        if resource.RLIM_INFINITY != soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def require_open_files() -> None:
    """Raise TooManyFilesError unless :data:`LEAST` more files can be opened at this moment."""
    handles: list[int] = []
    try:
        handles.append(os.open(os.devnull, os.O_RDONLY))
        while len(handles) < LEAST:
            handles.append(os.dup(handles[0]))
    except OSError as error:
        raise TooManyFilesError from error
    finally:
        for handle in handles:
            os.close(handle)
