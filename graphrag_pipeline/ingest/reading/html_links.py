"""Links of web pages to other documents, written as the relative links of Markdown that they are.

While a page is read, a link is marked by control characters, a few for each, so that
how much of a line is links stays what it is. What is kept of the page gets its addresses.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from graphrag_pipeline.core.patterns import pattern_of

_ADDRESS = pattern_of(
    r"\bhref\s*=\s*[\"']?\s*(?!//|[\w+.-]{1,20}:)([^\"'\s#?<>()]{1,500}"
    r"\.(?:md|markdown|mdx|html?|rst|txt|pdf|docx|odt|epub|ipynb))(?:#[^\"'\s<>()]{0,200})?[\"'\s]",
    re.I,
)
_START, _END, _CLOSE = "\x02", "\x03", "\x04"
_MARKED = pattern_of("\x02(\\s*)([^\x02-\x04]*?)(\\s*)\x03([0-9]{1,9})\x04")
_LONGEST = 300


def address_of(attributes: str) -> str:
    """Return to which other document an `<a>` leads; empty where it leads to none."""
    if "." not in attributes:
        return ""
    address = _ADDRESS.search(f"{attributes} ")
    return html.unescape(address.group(1)) if address else ""


def marked(words: str, number: int) -> str:
    """Return the words of a link, marked as the one of this number."""
    return f"{_START}{words}{_END}{number}{_CLOSE}"


def with_addresses(text: str, addresses: Sequence[str]) -> str:
    """Return a text in which marked links have their addresses: ``[words](address)``."""
    if _START not in text:
        return text

    def link(match: re.Match[str]) -> str:
        before, words, after, number = match.groups()
        place = int(number)
        is_link = place < len(addresses) and 0 < len(words) <= _LONGEST and not {*"[]"} & {*words}
        return (
            f"{before}[{words}]({addresses[place]}){after}" if is_link else before + words + after
        )

    return _MARKED.sub(link, text)
