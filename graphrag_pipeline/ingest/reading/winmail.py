"""Files that Outlook attaches within one, ``winmail.dat`` (TNEF), with their names."""

from __future__ import annotations

import struct

from graphrag_pipeline.ingest.reading.cleaning import one_line
from graphrag_pipeline.ingest.reading.model import Unreadable

SIGNATURE = b"\x78\x9f\x3e\x22"
_HEAD = struct.Struct("<BII")
_BEGINS, _NAME, _CONTENT = 0x69002, 0x18010, 0x6800F


def files_within(data: bytes) -> list[tuple[str, bytes]]:
    """Return the name and the content of each file. Raises Unreadable where the data are cut off.

    What else they hold, the message once more with its fonts, is not read.
    """
    files: list[tuple[str, bytes]] = []
    place = len(SIGNATURE) + 2
    while place + _HEAD.size <= len(data):
        _, attribute, length = _HEAD.unpack_from(data, place)
        value = data[place + _HEAD.size : place + _HEAD.size + length]
        place += _HEAD.size + length + 2
        if attribute == _BEGINS:
            files.append(("attachment", b""))
        elif files and attribute == _NAME:
            files[-1] = one_line(value.rstrip(b"\0").decode("cp1252", "replace")), files[-1][1]
        elif files and attribute == _CONTENT:
            files[-1] = files[-1][0], value
    if place > len(data):
        raise Unreadable("the attachment of Outlook is cut off: what it holds was not read")
    return files
