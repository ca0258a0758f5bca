"""JavaScript: source code, or a value of the archive that Twitter gives of an account."""

from __future__ import annotations

import json
import re
from pathlib import Path

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.code import read_code
from graphrag_pipeline.ingest.reading.decoding import decode
from graphrag_pipeline.ingest.reading.model import (
    SMALL_RECORDS,
    FileFormat,
    ReadingOptions,
    ReadResult,
)
from graphrag_pipeline.ingest.reading.tables import read_value

_BEGIN, _LOOKED_AT = b"window.YTD.", 100
_ASSIGNED = pattern_of(r"\s*window\.YTD\.\w{1,80}(?:\.part\d{1,6})?\s*=(.*)", re.DOTALL)


def read_script(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read ``window.YTD.tweets.part0 = [...]`` as the JSON that is assigned, all else as code."""
    is_archive = _BEGIN in data[:_LOOKED_AT]
    assigned = _ASSIGNED.fullmatch(decode(data, options.encoding)) if is_archive else None
    try:
        value = json.loads(assigned[1].strip().removesuffix(";")) if assigned else None
    except (ValueError, RecursionError):
        value = None
    if not value:
        return read_code(path, data, options)
    return read_value(path, value, options, "archive")


SCRIPT = FileFormat(read_script, versions.of("code", "records"), SMALL_RECORDS)
