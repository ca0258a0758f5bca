"""Cron schedules: told valid or not before anything is scheduled by them."""

from __future__ import annotations

import re

_LIMITS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_NAMES = ((), (), ("l",), _MONTHS, _DAYS)
_PART = re.compile(r"(?:\*|(\w+)(?:-(\w+))?)(?:/[1-9]\d*)?")
_WORDS = ("@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually")


def is_cron(text: str) -> bool:
    """Whether a schedule is five cron fields within their limits, or a word such as ``@daily``."""
    fields = text.split()
    return text in _WORDS or (
        len(fields) == len(_LIMITS) and all(map(_is_field, fields, range(len(fields))))
    )


def _is_field(text: str, place: int) -> bool:
    first, last = _LIMITS[place]
    for part in text.lower().split(","):
        found = _PART.fullmatch(part)
        if found is None:
            return False
        for value in filter(None, found.groups()):
            number = value.isascii() and value.isdigit() and first <= int(value) <= last
            if not number and value not in _NAMES[place]:
                return False
    return True
