"""A level of the hierarchy as people write it."""

from __future__ import annotations

from graphrag_pipeline.core.errors import InputError


def parse_level(value: int | str) -> int:
    """Return a level of the hierarchy: 1, or as text ``1``, or as in the paper ``C1``.

    Raises InputError for any other text.
    """
    if not isinstance(value, str):
        return value
    digits = value[1:] if value[:1] in ("C", "c") else value
    if not (digits.isascii() and digits.isdigit()):
        raise InputError(
            f"level = {value!r}: levels are numbers from 0, the root (or C0, C1 and so on)"
        )
    return int(digits)
