"""Opening a source file: a regular file that lies where the scan of its folder saw it."""

from __future__ import annotations

import errno
import os
from io import BufferedReader
from pathlib import Path
from stat import S_ISREG

from graphrag_pipeline.store.scanning import is_within

LEADS_OUT = "it is a link that leads out of the folder (input.follow_links)"
NOT_REGULAR = "it is not a regular file"
_WITHOUT_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


def open_source(path: Path, within: Path | None) -> BufferedReader:
    """Open a file to be read; a pipe or a device that took its place is not waited for.

    Where it really lies is looked up once it is open: a link that was put in its place after the
    scan leads nowhere out of ``within`` (None: anywhere is right). Raises OSError.
    """
    file = os.fdopen(os.open(path, os.O_RDONLY | _WITHOUT_WAITING), "rb")
    try:
        status = os.fstat(file.fileno())
        if not S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, NOT_REGULAR)
        if within is not None and not _lies_in(path, within, status):
            raise OSError(errno.ELOOP, LEADS_OUT)
    except BaseException:
        file.close()
        raise
    return file


def _lies_in(path: Path, folder: Path, opened: os.stat_result) -> bool:
    """Whether the open file is the one to which a path leads now, and that is in the folder."""
    real = os.path.realpath(path)
    return is_within(real, os.path.realpath(folder)) and os.path.samestat(os.lstat(real), opened)
