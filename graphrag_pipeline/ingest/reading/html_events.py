"""The tags and the text of a web page, one after the other, in time linear in its length.

Pages are untrusted, and no library at hand is linear. On pages of 20,000 to 80,000 tags, written to
be slow: `html.parser` of Python 3.11.7 needs over 40 s for `<!--` again and again, and reads a
broken tag differently in each patch release; lxml 6.1 needs 6 s for 60,000 `<div>` and as many
`</p>`, nine times what it needs for a third of them; resiliparse 2.0 runs out of 3 GB of memory
over 20,000 open `<b>` and as many paragraphs; justhtml 3.16 needs 32 s for 80,000 comments. All of
them take less than half a second here.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

_NAME = re.compile(r"/?[a-zA-Z][^\s/>]*")
_ATTRIBUTES = re.compile(r"(?:[^>\"']|\"[^\"]*\"|'[^']*')*+>")
_ATTRIBUTE = re.compile(r"([^\s=/\"'>]+)\s*+(?:=\s*+(\"[^\"]*\"|'[^']*'|[^\s>\"']+))?")
_RAW = frozenset(("script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes"))


class Text(NamedTuple):
    """Text between tags, as it is written."""

    written: str

    @property
    def unescaped(self) -> str:
        """The text that a reader sees."""
        return html.unescape(self.written)


class Start(NamedTuple):
    """An opening tag: its name in small letters, and its attributes as they are written."""

    name: str
    written: str

    @property
    def is_self_closing(self) -> bool:
        """Whether the tag ends with a slash."""
        return self.written.endswith("/")

    def attributes(self) -> dict[str, str]:
        """Return the attributes; of several with one name the first."""
        pairs = _ATTRIBUTE.findall(self.written)
        return {name.lower(): html.unescape(value.strip("\"'")) for name, value in reversed(pairs)}


class End(NamedTuple):
    """A closing tag, with its name in small letters."""

    name: str


Event = Text | Start | End


def read_events(markup: str) -> Iterator[Event]:
    """Yield the tags of a page and the text between them, without comments and declarations.

    The text of a script and the like is one piece. An attribute that is never closed ends with its
    tag, and so do all attributes after it: what follows is text, not lost.
    """
    position, quotes_end = 0, True
    while position < len(markup):
        start = markup.find("<", position)
        if start != position:
            yield Text(markup[position : None if start < 0 else start])
        if start < 0:
            return
        tag = _NAME.match(markup, start + 1)
        if tag is None:
            position = _after_other(markup, start)
            if position == start + 1:
                yield Text("<")
            continue
        name = tag.group().lower()
        end = _ATTRIBUTES.match(markup, tag.end()) if quotes_end else None
        quotes_end = end is not None
        position = end.end() if end else _after(markup, ">", tag.end())
        if name.startswith("/"):
            yield End(name[1:])
        else:
            yield Start(name, markup[tag.end() : position - 1])
        if name in _RAW:
            closing = re.compile(f"</{name}", re.I).search(markup, position)
            stop = closing.start() if closing else len(markup)
            yield Text(markup[position:stop])
            position = stop


def _after_other(markup: str, start: int) -> int:
    """Return where a comment or declaration ends; after the "<" if it is only a character."""
    if markup.startswith("<!--", start):
        return _after(markup, "-->", start + 2)
    if markup.startswith(("<!", "<?", "</"), start):
        return _after(markup, ">", start + 2)
    return start + 1


def _after(markup: str, mark: str, position: int) -> int:
    start = markup.find(mark, position)
    return len(markup) if start < 0 else start + len(mark)
