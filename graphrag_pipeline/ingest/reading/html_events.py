"""The tags and the text of a web page, one after the other, in time linear in its length.

Pages are untrusted, and no library at hand is linear. On pages of 20,000 to 80,000 tags, written to
be slow: `html.parser` of Python 3.11.7 needs over 40 s for `<!--` again and again, and reads a
broken tag differently in each patch release; lxml 6.1 needs 6 s for 60,000 `<div>` and as many
`</p>`, nine times what it needs for a third of them; resiliparse 2.0 runs out of 3 GB of memory
over 20,000 open `<b>` and as many paragraphs; justhtml 3.16 needs 32 s for 80,000 comments. All of
them take less than half a second here. Lexbor and libxml2 read a page in a third of the time of
this, and the half of a page's time that follows is the same: it is spent on what a tag means.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from graphrag_pipeline.core.patterns import pattern_of

_NAME = r"([a-zA-Z][^\s/>]*+)"
QUOTED = r"[^\"'>]*+(?:(?:\"[^\"]*+\"|'[^']*+')[^\"'>]*+)*+"
"""A pattern: the attributes of a tag, up to its end or to a quote that is never closed."""
_COMMENT = r"<!(?=--)(?:(?s:.*?)-->|(?s:.*))"
_DECLARATION = r"<(?:[!?]|/(?![a-zA-Z]))[^>]*+>?+"
# Text; then a tag, a tag that is broken, a "<" that is only a character, or what is left out.
_PIECE = rf"([^<]*+)(?:<(/?+){_NAME}({QUOTED})>|(<)(?=/?[a-zA-Z])|{_COMMENT}|{_DECLARATION}|(<))?"
_PIECES = pattern_of(_PIECE)
# The same, when quotes that do not match were met.
_LOOSE_PIECES = pattern_of(_PIECE.replace(f"({QUOTED})>", "([^>]*+)>?+"))
_ATTRIBUTE = pattern_of(r"([^\s=/\"'>]+)\s*+(?:=\s*+(\"[^\"]*\"|'[^']*'|[^\s>\"']+))?")
_RAW = frozenset(("script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes"))


Piece = tuple[str, str, str, str]
"""Some text as it is written, and the tag after it: whether it closes ("/" or ""), its name in
small letters ("" where no tag follows), and its attributes as they are written."""


def read_pieces(markup: str) -> Iterator[Piece]:
    """Yield the text and the tags of a page, without comments and declarations.

    The text of a script and the like is one piece. An attribute that is never closed ends with its
    tag, and so do all attributes after it: what follows is text, not lost.
    """
    position: int | None = 0
    pieces = _PIECES
    while position is not None:
        start, position = position, None
        for found in pieces.finditer(markup, start):
            text, slash, name, attributes, broken, character = found.groups("")
            if broken:
                yield text, "", "", ""
                pieces, position = _LOOSE_PIECES, found.start(5)
                break
            if not name:
                if text or character:
                    yield text + character, "", "", ""
                continue
            name = name.lower()
            yield text, slash, name, attributes
            if name in _RAW and not slash:
                closing = re.compile(f"</{name}", re.I).search(markup, found.end())
                position = closing.start() if closing else len(markup)
                yield markup[found.end() : position], "", "", ""
                break


def read_attributes(written: str) -> dict[str, str]:
    """Return the attributes of a tag; of several with one name the first."""
    pairs = _ATTRIBUTE.findall(written)
    return {name.lower(): html.unescape(value.strip("\"'")) for name, value in reversed(pairs)}
