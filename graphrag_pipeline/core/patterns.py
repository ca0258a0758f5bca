"""Regular expressions that are compiled with their first use: an import then costs little.

A run imports a thousand of them and uses some hundred; to compile them all takes .3 CPU s.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class _LatePattern:
    """A pattern that takes the methods of the compiled one when it is first asked for any."""

    __slots__ = (
        *("_flags", "findall", "finditer", "flags", "fullmatch", "groupindex", "groups", "match"),
        *("pattern", "scanner", "search", "split", "sub", "subn"),
    )

    def __init__(self, source: str | bytes, flags: int) -> None:
        self.pattern = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        # A slot without a value: from here on all have theirs, and nothing comes this way again.
        compiled = re.compile(self.pattern, self._flags)
        for slot in self.__slots__[1:]:
            setattr(self, slot, getattr(compiled, slot))
        return getattr(compiled, name)


def pattern_of(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern that is compiled when it is first searched for.

    One that is wrong raises re.error then. It is no argument to the functions of ``re``.
    """
    return cast("re.Pattern[AnyStr]", _LatePattern(source, flags))
