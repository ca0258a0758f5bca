"""Arrays in one file, mapped into memory: opened without being read.

First come eight bytes that say what the file is and the length of its header; then the header, JSON
with facts about the arrays and where each lies; then the arrays, as they are in memory.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphrag_pipeline.core.hardening.files import replacing, told_of_disk

Arrays = Mapping[str, npt.NDArray[Any]]

_KIND = b"grarrays"
_LENGTH_BYTES = 8
_ALIGNED = 64
_WRITTEN = "biufS"


@dataclass(frozen=True)
class ArrayFile:
    """Facts that were written with arrays, and the arrays, which cannot be written to."""

    facts: Mapping[str, Any]
    arrays: Arrays
    digest: str

    def below(self, prefix: str) -> Arrays:
        """Return the arrays whose names begin so and with a slash, by what follows."""
        start = f"{prefix}/"
        return {k.removeprefix(start): v for k, v in self.arrays.items() if k.startswith(start)}


def write_arrays(path: Path, arrays: Arrays, facts: Mapping[str, Any]) -> None:
    """Write arrays of numbers and bytes to a file that is there whole or not at all.

    Raises StorageError where the disk is full or read-only.
    """
    places: dict[str, tuple[str, int, int]] = {}
    digest, position = blake2b(digest_size=16), 0
    for name, array in arrays.items():
        if array.dtype.kind not in _WRITTEN or array.ndim != 1:
            raise ValueError(f"{name}: {array.dtype} of {array.ndim} dimensions cannot be written")
        places[name] = (array.dtype.str, len(array), position)
        position += -(-array.nbytes // _ALIGNED) * _ALIGNED
        digest.update(_bytes_of(array))
    header = {"facts": facts, "arrays": places, "bytes": position, "digest": digest.hexdigest()}
    header["header"] = _header_digest(header)
    text = json.dumps(header).encode()
    text += b" " * (-(len(_KIND) + _LENGTH_BYTES + len(text)) % _ALIGNED)
    with told_of_disk(f"cannot write {path}"):
        path.parent.mkdir(exist_ok=True)
        with replacing(path) as beside, beside.open("wb") as file:
            file.write(_KIND + len(text).to_bytes(_LENGTH_BYTES, "little") + text)
            for array in arrays.values():
                file.write(_bytes_of(array))
                file.write(bytes(-array.nbytes % _ALIGNED))


def open_arrays(path: Path) -> ArrayFile | None:
    """Return the arrays of a file; None where it is missing, cut short, or something else."""
    try:
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        header, start = _header(mapped)
        if len(mapped) != start + header["bytes"]:
            return None
        arrays = dict(_mapped(mapped, header["arrays"], start))
        return ArrayFile(header["facts"], arrays, header["digest"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_whole(path: Path) -> bool:
    """Whether the arrays of a file are as they were written."""
    opened = open_arrays(path)
    if opened is None or not _is_header_whole(path):
        return False
    digest = blake2b(digest_size=16)
    for array in opened.arrays.values():
        digest.update(_bytes_of(array))
    return opened.digest == digest.hexdigest()


def _is_header_whole(path: Path) -> bool:
    """Whether the header is as it was written; one of an older program has no hash of itself."""
    with path.open("rb") as file:
        header, _ = _header(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    return header.pop("header", None) in (None, _header_digest(header))


def _header_digest(header: Mapping[str, Any]) -> str:
    text = json.dumps(header, sort_keys=True).encode()
    return blake2b(text, digest_size=16).hexdigest()


def _header(data: bytes | mmap.mmap) -> tuple[dict[str, Any], int]:
    begin = len(_KIND) + _LENGTH_BYTES
    if data[: len(_KIND)] != _KIND:
        raise ValueError("no file of arrays")
    end = begin + int.from_bytes(data[len(_KIND) : begin], "little")
    return json.loads(data[begin:end]), end


def _mapped(
    data: mmap.mmap, places: Mapping[str, tuple[str, int, int]], start: int
) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    for name, (kind, count, position) in places.items():
        dtype = np.dtype(kind)
        # An empty array may stand at the very end, where nothing can be mapped.
        if count and dtype.itemsize:
            yield name, np.frombuffer(data, dtype, count, start + position)
        else:
            yield name, np.empty(count, dtype)


def _bytes_of(array: npt.NDArray[Any]) -> memoryview:
    """Return the bytes of an array; they are not copied where they lie side by side."""
    return np.ascontiguousarray(array).data
