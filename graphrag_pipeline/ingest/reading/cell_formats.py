"""Numbers as a workbook shows them: a share as 25%, a price as 450 EUR, a code as 00042."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from graphrag_pipeline.core.patterns import pattern_of

_PART = pattern_of(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|\[\$(?P<currency>[^\]-]*)(?:-[^\]]*)?\]|\[[^\]]*\]'
    r"|[_*].|(?P<sign>[$€£¥₹₽₺₩₴%])|(?P<digits>[#0?][#0?,./]*)|(?P<other>.)",
    re.DOTALL,
)
_MOST = 100
_CODE = pattern_of(r"0{2,15}")
_SAYS = pattern_of(r"[^\s()+-]")


@dataclass(frozen=True)
class CellFormat:
    """Additions of a format to a number: words around it, a share of 100, zeros before it."""

    before: str = ""
    after: str = ""
    is_share: bool = False
    digits: int = 0

    def shown(self, value: object) -> object:
        """Return a number as it is shown, with all its digits; anything else as it is.

        >>> format_of_code("#,##0.00 [$EUR]").shown(450)
        '450 EUR'
        """
        if isinstance(value, bool) or not isinstance(value, int | float):
            return value
        amount = abs(100 * value if self.is_share else value)
        is_whole = self.digits and amount == int(amount)
        number = f"{amount:0{self.digits}.0f}" if is_whole else f"{amount:.15g}"
        return f"{'-' if value < 0 else ''}{self.before}{number}{self.after}"


@lru_cache(maxsize=1024)
def format_of_code(code: str) -> CellFormat | None:
    """Return what a format adds to positive numbers; None for nothing, for dates and for texts.

    None, too, where it shows another number: in thousands, as a fraction, with signs within.
    """
    before, after, digits = "", "", ""
    for kind, said in _parts(code):
        if said == ";":
            break
        if (kind == "digits" and digits) or (kind == "other" and said.isalpha()) or said == "@":
            return None
        if kind == "digits":
            digits = said
        elif digits:
            after += said
        else:
            before += said
    is_code = _CODE.fullmatch(digits) is not None
    if not digits or digits.endswith(",") or not (is_code or _SAYS.search(before + after)):
        return None
    after = after.rstrip().replace(" %", "%")
    return CellFormat(before.lstrip(), after, "%" in code, len(digits) * is_code)


def _parts(code: str) -> Iterator[tuple[str, str]]:
    for part in _PART.finditer(code[:_MOST]):
        if kind := part.lastgroup:
            yield kind, part[kind]
