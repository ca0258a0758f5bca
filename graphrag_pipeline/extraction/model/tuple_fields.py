"""The fields of a record in tuple format: where they are parted, where they end, what they say."""

from __future__ import annotations

import html
import re
from typing import Final

from graphrag_pipeline.core.patterns import pattern_of

QUOTES = '"“”„‟«»＂'
SINGLE_QUOTES = "'‘’‚`´"
ANY_QUOTE = f"[{QUOTES}{SINGLE_QUOTES}*]"
BAR = "[|｜]"
FULL = rf"(?:<|&lt;)[ \t]{{0,3}}/?[ \t]{{0,3}}{BAR}{{1,3}}[ \t]{{0,3}}/?[ \t]{{0,3}}(?:>|&gt;)"
# Half a delimiter, or a lone bar, counts only where a quote ends before it and a field begins.
_HALF = rf"(?<=[{QUOTES}])[ \t]{{0,3}}(?:</?{BAR}?|{BAR})>?[ \t]{{0,3}}(?=[{QUOTES}\d])"
_COMMA = rf"(?<=[{QUOTES}])[ \t]{{0,3}}[,，;][ \t]{{0,3}}(?=[{QUOTES}\d])"
DELIMITERS = {
    "full": pattern_of(f"{FULL}|{_HALF}"),
    "bar": pattern_of(rf"{FULL}|[ \t]{{0,3}}{BAR}[ \t]{{0,3}}"),
    "comma": pattern_of(f"{FULL}|{_COMMA}"),
}
COMPLETE: Final = pattern_of(rf"<[ \t]?{BAR}?[ \t]?COMPLETED?[ \t]?{BAR}?[ \t]?>", re.IGNORECASE)
"""The marker that an answer is finished; gleaned answers put together have several."""

_QUOTED_END = pattern_of(rf"[{QUOTES}][ \t]*[)\]）]\**\s*(?=##|<{BAR}|```|\n|\Z|\d{{1,3}}\.\s*\()")
_AFTER_RECORD = pattern_of(
    rf"[.,;]?\**\s*(?:##|<{BAR}?COMP|```|\Z|\n|\d{{1,3}}\.\s*\()", re.IGNORECASE
)
_CUT = pattern_of(r"##[ \t]*(?=\n|\Z|\()|(?<=\n)[ \t]*##|\n[ \t]*\n|\n?```")
_PARENTHESIS = pattern_of(r"[()（）]")
_CHARACTER_REFERENCE = pattern_of(
    r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z]{2,31}\d{0,2});", re.IGNORECASE
)
_ENDED = pattern_of(r"[.!?…。！？।؟][)\]\"'”’»」]*$")
_IDEOGRAPH = pattern_of(r"[\u3040-\u30ff\u3400-\u9fff]")
_UNWANTED = pattern_of(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufeff\ufffe\uffff\ud800-\udfff]")


def clean(field: str) -> str:
    """Return a field as plain text on one line.

    Quotes around it are dropped, character references resolved, control characters and lone
    surrogates removed, white space collapsed.
    """
    plain = _CHARACTER_REFERENCE.sub(lambda found: html.unescape(found[0]), field)
    return " ".join(_unquote(" ".join(_UNWANTED.sub("", plain).split())).split())


def ended(text: str) -> str:
    """Return a sentence with a stop at its end, so that others can follow it."""
    if not text or _ENDED.search(text):
        return text
    return f"{text}{'。' if _IDEOGRAPH.match(text[-1]) else '.'}"


def _unquote(text: str) -> str:
    stripped = text.strip("`").strip()
    if stripped.startswith("**") and stripped.endswith("**") and len(stripped) > 4:
        stripped = stripped[2:-2].strip()
    first, last = stripped[:1], stripped[-1:]
    for quotes in (QUOTES, SINGLE_QUOTES):
        if len(stripped) > 1 and first and last and first in quotes and last in quotes:
            return stripped[1:-1].strip()
    odd = sum(map(stripped.count, QUOTES)) % 2 == 1
    if odd and first and first in QUOTES:
        return stripped[1:].strip()
    if odd and last and last in QUOTES:
        return stripped[:-1].strip()
    return stripped


def split_fields(body: str, delimiter: str = "full") -> list[tuple[int, int]]:
    """Return where each field of a record's body lies. ``delimiter`` is full, bar or comma."""
    edges = [0]
    for found in DELIMITERS[delimiter].finditer(body):
        edges += found.span()
    edges.append(len(body))
    return list(zip(edges[::2], edges[1::2], strict=True))


def record_end(tail: str, *, opened: bool) -> str:
    """Return a record's last field: what stands in ``tail`` before the record's end.

    The end is a quote and a closing parenthesis, or the parenthesis that closes the record
    (``opened``), or ``##``, an empty line or a code fence, whichever of them can be told.
    """
    if tail.lstrip()[:1] in tuple(QUOTES) and (end := _QUOTED_END.search(tail)):
        return tail[: end.start() + 1]
    if opened:
        depth = 0
        for found in _PARENTHESIS.finditer(tail):
            depth += 1 if found[0] in "(（" else -1
            if depth < 0:
                if _AFTER_RECORD.match(tail, found.end()):
                    return tail[: found.start()]
                depth = 0
    rest = tail.lstrip()
    cut = _CUT.search(rest)
    field = (rest[: cut.start()] if cut else rest).rstrip().removesuffix("##").rstrip()
    if field.endswith((")", "）")) and _n_closing(field) > 0:
        return field[:-1]
    return field


def _n_closing(text: str) -> int:
    opening, closing = sum(map(text.count, "(（")), sum(map(text.count, ")）"))
    return closing - opening
