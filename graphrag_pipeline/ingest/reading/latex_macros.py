"""Macros that a LaTeX file defines, written out where it uses them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from graphrag_pipeline.core.patterns import pattern_of

_DEFINITION = pattern_of(
    r"\\(?:(?:re|provide)?newcommand|providecommand|DeclareRobustCommand)\*?\s{0,9}\{?\s{0,9}"
    r"\\(?P<name>[A-Za-z@]{1,60})\s{0,9}\}?\s{0,9}(?:\[(?P<number>\d)\]\s{0,9})?"
    r"(?:\[(?P<default>[^\]\n]{0,200})\]\s{0,9})?(?=\{)"
    r"|\\def\s{0,9}\\(?P<plain>[A-Za-z@]{1,60})(?P<places>(?:#\d){0,9})\s{0,9}(?=\{)"
)
_COMMAND = pattern_of(r"\\([A-Za-z@]+)[ \t]{0,9}")
_PLACE = pattern_of(r"#(\d)")
_DEEPEST = 5
_MOST_GROWTH, _LEAST_ROOM = 3, 10_000

Reader = Callable[[str, int], tuple[str, int]]
"""Reads the argument at a place: what it is, and the place after it."""


class _Macro(NamedTuple):
    body: str
    n_arguments: int
    default: str | None


def without_macros(source: str, argument: Reader, known: Collection[str]) -> str:
    """Return a source with its macros written out, and without what defines them.

    ``known`` are commands that stay what they are. A macro in a macro is written out, too, up to
    five deep; a source that would grow to three times its length stays as it is from there on.
    """
    macros: dict[str, _Macro] = {}
    parts: list[str] = []
    place = 0
    for match in _DEFINITION.finditer(source):
        if match.start() < place:
            continue
        body, end = argument(source, match.end())
        number = match["number"] or len(match["places"] or "") // 2
        name = match["name"] or match["plain"]
        if name not in known:
            macros[name] = _Macro(body, int(number), match["default"])
        parts.append(source[place : match.start()])
        place = end
    written = "".join([*parts, source[place:]])
    most = _MOST_GROWTH * len(written) + _LEAST_ROOM
    for _ in range(_DEEPEST if macros else 0):
        grown = _written_out(written, macros, argument, most)
        if grown is None or grown == written:
            break
        written = grown
    return written


def _written_out(source: str, macros: dict[str, _Macro], argument: Reader, most: int) -> str | None:
    """Return a source with the macros that it names written out once; None if it grows too long."""
    parts: list[str] = []
    place = size = 0
    for match in _COMMAND.finditer(source):
        macro = macros.get(match[1])
        if macro is None or match.start() < place:
            continue
        between = source[place : match.start()]
        place = match.end() if macro.n_arguments else match.end(1)
        given: list[str] = []
        if macro.default is not None:
            end = source.find("]", place, place + 1_000) if source[place : place + 1] == "[" else -1
            given.append(source[place + 1 : end] if end > 0 else macro.default)
            place = end + 1 if end > 0 else place
        while len(given) < macro.n_arguments:
            text, place = argument(source, place)
            given.append(text)
        values = dict(enumerate(given, 1))
        body = _PLACE.sub(lambda at, values=values: values.get(int(at[1]), ""), macro.body)
        parts += [between, "{", body, "}"]
        size += len(between) + len(body)
        if size > most:
            return None
    return "".join([*parts, source[place:]])
