"""Markup in Markdown that no reader sees as words: HTML, badges, tables of contents.

Code is left as it is: blocks of it, and spans between backticks on one line. Everything here takes
time in proportion to the text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Set

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.word_lists import word_set
from graphrag_pipeline.ingest.reading.line_blocks import line_blocks

_INLINE = word_set(
    "a abbr b bdi bdo big cite code data del dfn em font i ins kbd label mark q s samp small span "
    "strike strong sub sup time tt u var wbr img picture source video audio input button"
)
_LINES = word_set(
    "address article aside blockquote br caption center col colgroup dd details div dl dt "
    "figcaption figure footer header hr iframe main nav ol p pre section summary table tbody tfoot "
    "thead tr ul"
)
_OTHERS = word_set("h1 h2 h3 h4 h5 h6 li td th script style svg")
TAG_NAMES = _INLINE | _LINES | _OTHERS
_NAMES = "|".join(sorted(TAG_NAMES, key=len, reverse=True))
_CODE_OR_TAG = pattern_of(
    rf"(`+)[^`\n]+\1|\\<|<(?P<end>/?)(?P<name>{_NAMES})(?:\s[^<>]{{0,2000}})?/?>", re.I
)
_BLANK_LINES = pattern_of(r"\n[ \t]*\n(?:[ \t]*\n)+")
_IMAGE = r"!\[[^\[\]\n]*\](?:\([^()\n]*(?:\([^()\n]*\)[^()\n]*)?\)|\[[^\[\]\n]*\])"
_BADGE = rf"(?:\[\s*{_IMAGE}\s*\](?:\([^()\n]*\)|\[[^\[\]\n]*\])|{_IMAGE})"
_BADGES = pattern_of(rf"{_BADGE}(?:[\s|·•]*{_BADGE})*")
_HEADING = pattern_of(r"#{1,6}(?:\s|$)")
_NO_HEADING = pattern_of(r"#{1,6}\s*")
_DEFINITION = pattern_of(
    r" {0,3}\[(?!\^)[^\[\]]+\]:\s+\S+(?:\s+(?:\"[^\"]*\"|'[^']*'|\([^()]*\)))?\s*"
)
_TO_HERE = pattern_of(r"\s*(?:[-*+]|\d{1,3}[.)])\s+\[.*\]\(\s*<?#[^()\s]*>?\s*\)\s*")
_MARK_OF_CONTENTS = pattern_of(r"\s*(?:\[TOC\]|\[\[_?TOC_?\]\]|\$\{toc\}|\{:\s*toc\s*\})\s*", re.I)
_CONTENTS = pattern_of(
    r"#{1,6}\s*\W*(?:table of contents|contents|toc|on this page|inhalt(?:sverzeichnis)?|"
    r"sommaire|table des matières|índice|indice|contenido|inhoud|目录|目次)\W*",
    re.I,
)
_INSTEAD = {
    ("td", True): " | ",
    ("th", True): " | ",
    ("td", False): "",
    ("th", False): "",
    ("li", False): "\n- ",
    ("li", True): "",
}
_LEAST_LINKS = 3
_DATA_LINK = pattern_of(
    r"!?\[([^\[\]\n]{0,300})\]\(\s*<?data:[^()\s<>]*>?(?:\s+(?:\"[^\"\n]{0,300}\"|'[^'\n]{0,300}'))?\s*\)"
)
_DATA_DEFINITION = pattern_of(r"^ {0,3}\[[^\[\]\n]{1,300}\]:[ \t]*<?data:[^\n]*$", re.M)
_DATA = pattern_of(
    r"data:[\w.+-]{1,50}/[\w.+-]{1,50}(?:;[\w=-]{1,50}){0,3};base64,[A-Za-z0-9+/=%]{40,}"
)
_HEADING_ID = pattern_of(r"^(#{1,6}[ \t][^\n]{0,1000}?)[ \t]*\{[#:.][^{}\n]{0,200}\}[ \t]*$", re.M)
_CONTAINER = pattern_of(r"^[ \t]*:{3,}[ \t]*(?:\{[^{}\n]{0,200}\}|[\w-]{0,60})[ \t]*", re.M)
_CODE_OR_MARK = pattern_of(
    r"(`+)[^`\n]+\1|(?<![\w\\])</?(?P<name>[A-Z][\w.]{0,60})(?P<rest>\s[^<>]{0,2000}|/)?>"
    r"|(?<=\w)(?P<escape>\\)(?=_\w)|(?P<sign>\\)(?=[<>*])"
    r"|(?<=\]\()(?P<address>https?://[^\s()<>?#]{1,300})[?#][^\s()<>]{150,}(?=\))"
    r"|(?P<sign_name>&(?:[a-zA-Z]\w{1,30}|#\d{1,7}|#[xX][\da-fA-F]{1,6});)"
)
_CLOSED = pattern_of(r"</([A-Z][\w.]{0,60})>")
_ROW = pattern_of(r"^[ \t]*\|.*<.*$", re.M)
_BREAK = pattern_of(r"<(?:br|/?(?:p|ul|ol|li|div))\s*/?>", re.I)
"""What divides lines within a cell of a table, which is one line."""
_LONGEST = 5_000  # characters of a line that is looked at


def without_data(text: str) -> str:
    """Return Markdown without files that are written into addresses, as pictures are."""
    if "data:" not in text:
        return text
    text = _DATA_DEFINITION.sub("", _DATA_LINK.sub(r"\1", text))
    return _BLANK_LINES.sub("\n\n", without_files(text))


def without_files(text: str) -> str:
    """Return text without files that are written into addresses, whatever stands around these."""
    return _DATA.sub("", text) if ";base64," in text else text


def without_markup(text: str) -> str:
    """Return Markdown without the tags of HTML, badges, tables of contents and definitions.

    What HTML makes lines are lines, its headings are headings. Badges are images that stand alone
    before the first paragraph, tables of contents three or more items that are links within the
    page, definitions the addresses of links that are given apart. Nor has it what only generators
    of sites and converters read: ids of headings, marks of containers, components, escapes, names
    of signs (``&quot;``).
    """
    closed = frozenset(_CLOSED.findall(text))
    stripped = "".join(
        part if is_code else _without_marks(_without_tags(part), closed)
        for part, is_code in code_parts(text)
    )
    written = "\n".join(_without_lines(list(_lines(stripped))))
    return written if written == text else _BLANK_LINES.sub("\n\n", written)


def code_parts(text: str) -> Iterator[tuple[str, bool]]:
    """Yield a text in pieces, and whether each is code."""
    place = 0
    for block in line_blocks(text, markdown=True):
        if block.kind == "code":
            yield text[place : block.start], False
            yield text[block.start : block.end], True
            place = block.end
    yield text[place:], False


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the lines of a text, and whether each is code: a block of that is one line."""
    place = 0
    for block in line_blocks(text, markdown=True):
        if block.kind == "code":
            if block.start > place:
                yield from ((line, False) for line in text[place : block.start - 1].split("\n"))
            yield text[block.start : block.end], True
            place = block.end + 1
    if place <= len(text):
        yield from ((line, False) for line in text[place:].split("\n"))


def _without_tags(text: str) -> str:
    if "<" not in text:
        return text
    text = _ROW.sub(lambda row: _BREAK.sub(" ", row.group()), text)
    small = text.lower()
    parts: list[str] = []
    heading: list[str] | None = None
    never_closed: set[str] = set()
    place = 0
    for match in _CODE_OR_TAG.finditer(text):
        if match.start() < place:
            continue
        name = (match["name"] or "").lower()
        into = parts if heading is None else heading
        into.append(text[place : match.start()])
        place = match.end()
        if not name:
            into.append(match.group())
        elif name in ("script", "style", "svg"):
            end = -1 if match["end"] or name in never_closed else small.find(f"</{name}", place)
            if end < 0:
                never_closed.add(name)
            place = max(place, end)
        elif name[0] == "h" and name[1:].isdecimal():
            if heading is not None:
                parts.append(" ".join("".join(heading).split()))
            parts.append("\n\n")
            heading = None
            if not match["end"]:
                parts.append(f"{'#' * int(name[1])} ")
                heading = []
        elif name not in _INLINE:
            into.append(_INSTEAD.get((name, bool(match["end"])), "\n"))
    return "".join((*parts, *(heading or ()), text[place:]))


def _without_marks(text: str, closed: Set[str]) -> str:
    """Return text without marks of generators and converters; ``closed`` are names of end tags.

    >>> _without_marks('# Ports {#ports}\\n:::tip Fees\\n<Badge text="new" /> <Name>', frozenset())
    '# Ports\\nFees\\n <Name>'
    >>> _without_marks("&quot;R&amp;D&quot;, `&amp;`", frozenset())
    '"R&D", `&amp;`'
    """
    if "{" in text:
        text = _HEADING_ID.sub(r"\1", text)
    if ":::" in text:
        text = _CONTAINER.sub("", text)

    def kept(mark: re.Match[str]) -> str:
        rest = mark["rest"] or ""
        is_tag = mark["name"] and (mark["name"] in closed or "=" in rest or rest.endswith("/"))
        if is_tag or mark["escape"] or mark["sign"]:
            return ""
        if mark["sign_name"]:
            return html.unescape(mark.group()).replace("\xa0", " ")
        return mark["address"] or mark.group()

    return _CODE_OR_MARK.sub(kept, text)


def _without_lines(lines: list[tuple[str, bool]]) -> Iterator[str]:
    """Yield the lines that are no badges, definitions and tables of contents."""
    is_top = True
    dropped = _of_contents(lines)
    for number, (line, is_code) in enumerate(lines):
        written = line.strip()
        if is_code or len(line) > _LONGEST or not written:
            is_top &= not written
            if number not in dropped:
                yield line
            continue
        is_badge = is_top and written[0] in "![" and _BADGES.fullmatch(written)
        is_top &= bool(is_badge or _HEADING.match(written))
        if not (
            is_badge
            or number in dropped
            or _NO_HEADING.fullmatch(written)
            or ("]:" in line and _DEFINITION.fullmatch(line))
        ):
            yield line


def _of_contents(lines: list[tuple[str, bool]]) -> set[int]:
    """Return the numbers of the lines of generated tables of contents, with their headings."""
    dropped: set[int] = set()
    run: list[int] = []
    heading = -1
    for number, (line, is_code) in enumerate([*lines, ("end", False)]):
        is_link = (
            not is_code and len(line) <= _LONGEST and "](" in line and _TO_HERE.fullmatch(line)
        )
        if is_link:
            run.append(number)
            continue
        if not line.strip():
            continue
        if _MARK_OF_CONTENTS.fullmatch(line) and not is_code:
            dropped.update((number, *([heading] if heading >= 0 else [])))
            continue
        if len(run) >= _LEAST_LINKS:
            dropped.update(run, [heading] if heading >= 0 else [])
        run = []
        heading = number if not is_code and _CONTENTS.fullmatch(line.strip()) else -1
    return dropped
