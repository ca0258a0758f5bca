"""Compound files, as Outlook and older Excel keep theirs: written from streams by their paths."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import PurePosixPath

_SECTOR, _SMALL, _CUTOFF = 512, 64, 4096
_FREE, _END, _TABLE = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD


def compound(streams: Mapping[str, bytes]) -> bytes:
    """Return a compound file of streams; those in a storage are called ``storage/name``."""
    small, small_chain, small_starts = _laid({n: d for n, d in streams.items() if _is_small(d)}, 64)
    large = {n: d for n, d in streams.items() if not _is_small(d)}
    parts = {"/small": small, "/chain": _numbers(small_chain), **large}
    storages = {str(above) for name in streams for above in PurePosixPath(name).parents}
    names = ["", *sorted(storages - {"."}), *streams]
    n_directory = -(-len(names) * 128 // _SECTOR)
    data, chain, starts = _laid({**parts, "/names": bytes(n_directory * _SECTOR)}, _SECTOR)
    n_tables = 1
    while (len(chain) + n_tables) * 4 > n_tables * _SECTOR:
        n_tables += 1
    entries = _directory(names, streams, {**starts, **small_starts}, len(small))
    place = starts["/names"] * _SECTOR
    data = data[:place] + entries.ljust(n_directory * _SECTOR, b"\0") + data[place + len(entries) :]
    data = data[: len(chain) * _SECTOR]
    tables = _numbers([*chain, *[_TABLE] * n_tables]).ljust(n_tables * _SECTOR, b"\xff")
    head = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(16)
    head += struct.pack("<HHHHH6xIIIIIIIII", 0x3E, 3, 0xFFFE, 9, 6, 0, n_tables,
        starts["/names"], 0, _CUTOFF, starts["/chain"] if small else _END,
        -(-len(small_chain) * 4 // _SECTOR), _END, 0)  # fmt: skip
    places = [len(chain) + number for number in range(n_tables)]
    return head + _numbers(places).ljust(_SECTOR - len(head), b"\xff") + data + tables


def _is_small(data: bytes) -> bool:
    return len(data) < _CUTOFF


def _laid(parts: Mapping[str, bytes], size: int) -> tuple[bytes, list[int], dict[str, int]]:
    """Return parts in sectors of a size, which sector follows each, and where each part begins."""
    data, chain, starts = b"", list[int](), dict[str, int]()
    for name, part in parts.items():
        n_sectors = max(-(-len(part) // size), 1)
        starts[name] = len(chain)
        chain += [*range(len(chain) + 1, len(chain) + n_sectors), _END]
        data += part.ljust(n_sectors * size, b"\0")
    return data, chain, starts


def _numbers(values: list[int]) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


def _directory(
    names: list[str], streams: Mapping[str, bytes], starts: Mapping[str, int], n_small: int
) -> bytes:
    """Return the entries: each storage leads to its first, and each entry to the next beside it."""
    written = b""
    for number, name in enumerate(names):
        inside = [
            n for n, other in enumerate(names) if n and _above(other, streams) == (name or "/")
        ]
        beside = [
            n
            for n, other in enumerate(names)
            if n > number and number and _above(other, streams) == _above(name, streams)
        ]
        is_stream = name in streams
        kind = 5 if not number else 2 if is_stream else 1
        own = (name.rpartition("/")[2] or "Root Entry").encode("utf-16-le") + b"\0\0"
        follows = beside[0] if beside else _FREE
        first = inside[0] if inside and not is_stream else _FREE
        start = starts.get(name, 0) if is_stream else 0
        size = len(streams[name]) if is_stream else 0
        if not number:
            start, size = starts["/small"], n_small
        written += own.ljust(64, b"\0")
        written += struct.pack(
            "<HBBIII36xIQ", len(own), kind, 1, _FREE, follows, first, start, size
        )
    return written


def _above(name: str, streams: Mapping[str, bytes]) -> str:
    return name.rpartition("/")[0] or "/"
