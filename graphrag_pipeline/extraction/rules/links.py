"""Mentions by links: what a document is about, related to what it links to.

A relative link names the document it leads to by its file: ``[the quay](Harbour/Quay%205.md)`` is
about Quay 5. So nothing needs to know which other documents there are. Links to other sites make
none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import unquote

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.text import normalize_title, without_page_id
from graphrag_pipeline.extraction.rules.sentences import Span

LINKS_TO = "links to"
"""The type of the relationships that links make."""

_LINK = pattern_of(
    r"(?:\[|!\[)(?P<words>[^\[\]\n]{1,300})\]"
    r"\((?!//|[\w+.-]{1,20}:)(?P<address>[^()\s#?]{1,500}"
    r"\.(?:md|markdown|mdx|html?|rst|txt|pdf|docx|odt|epub|ipynb))(?:#[^()\s]{0,200})?\)",
    re.I,
)
_OF_NO_NAME = frozenset(("index", "readme", "_index", "default", "home"))
_BETWEEN_WORDS = pattern_of(r"[-_]+")
_MOST_LINKS = 200

Link = tuple[int, int, str]
"""Characters [start, end) of a text, the words of a link, and the title of what it leads to."""


def blank_addresses(text: str) -> str:
    """Return a text of the same length in which addresses of relative links are blank."""
    if "](" not in text:
        return text
    return _LINK.sub(_blanked, text)


def shown(text: str) -> str:
    """Return a text with the words of its relative links instead of these, on one line."""
    words = _LINK.sub(lambda link: link["words"], text) if "](" in text else text
    return " ".join(words.split())


def links_in(text: str) -> Iterator[Link]:
    """Yield the links of a text to other documents."""
    for link in _LINK.finditer(text):
        if title := title_of_file(unquote(link["address"])):
            yield link.start("words"), link.end("words"), title


def related_by_links(
    text: str, title: str, sentences: Sequence[Span]
) -> Iterator[tuple[Link, Span]]:
    """Yield the links in sentences from a document of this title, each target once a sentence."""
    if not normalize_title(title):
        return
    seen = {(normalize_title(title), span) for span in sentences}
    links = iter(links_in(text))
    link = next(links, None)
    n_links = 0
    for span in sentences:
        while link is not None and link[0] < span[1]:
            key = (normalize_title(link[2]), span)
            if link[0] >= span[0] and key[0] and key not in seen and n_links < _MOST_LINKS:
                seen.add(key)
                n_links += 1
                yield link, span
            link = next(links, None)


def _blanked(link: re.Match[str]) -> str:
    start = link.end("words") + 1 - link.start()
    return (
        (" " if link.group()[0] == "!" else "[")
        + link.group()[1:start]
        + " " * (len(link.group()) - start)
    )


def title_of_file(path: str) -> str:
    """Return what a document is called by its file: its name without ending, in words."""
    stem = path.replace("\\", "/").rpartition("/")[2].rpartition(".")[0]
    stem = without_page_id(stem)
    if stem.casefold() in _OF_NO_NAME:
        return ""
    return " ".join((stem if " " in stem else _BETWEEN_WORDS.sub(" ", stem)).split())
