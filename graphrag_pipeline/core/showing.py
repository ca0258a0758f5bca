"""Results as a prompt and a notebook show them: two lines of text, and small HTML.

Documents and models are not trusted: whatever they say is quoted in text, and escaped in HTML.
There is no script, and nothing is loaded from anywhere.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from html import escape

WIDTH = 96
"""Characters of a line."""

_CELL = "text-align:left;vertical-align:top;padding:.2em .8em"
_LONG = 280
_CELL_CHARS = 160


def two_lines(about: str, text: object = None) -> str:
    """Return what a prompt shows of a result: a line about it, and the beginning of its text."""
    first = f"<{cut(about, WIDTH)}>"
    return first if text is None else f"{first}\n    {cut(text, WIDTH - 8)!r}"


def brief(self: object) -> str:
    """Return the ``repr`` of a dataclass in two lines at most: what it holds, in short.

    Collections are counted, texts cut, and fields that hold nothing left out.
    """
    values = {field.name: getattr(self, field.name) for field in fields(self)}  # pyright: ignore[reportArgumentType]
    parts = [f"{name}={_short(value)}" for name, value in values.items() if not _is_empty(value)]
    return f"{type(self).__name__}({cut(', '.join(parts), 2 * WIDTH)})"


def cut(text: object, most: int) -> str:
    """Return text in one line of at most so many characters."""
    plain = " ".join(str(text)[: 4 * most].split())
    return plain if len(plain) <= most else plain[: most - 1] + "…"


def quoted(text: object, most: int = 60) -> str:
    """Return text in quotes, in one line of at most so many characters."""
    return repr(cut(text, most))


def block(*parts: str) -> str:
    """Return parts of HTML, one below the other, in a column that can be read."""
    return f'<div style="max-width:60em">{"".join(parts)}</div>'


def paragraph(text: str, *, is_small: bool = False) -> str:
    """Return text with its line breaks as a paragraph of HTML."""
    size = "font-size:85%;opacity:.75;" if is_small else ""
    return f'<p style="{size}white-space:pre-wrap;margin:.5em 0">{escape(text)}</p>'


def heading(text: str) -> str:
    """Return what a result is about, in bold."""
    return f'<p style="margin:.5em 0"><b>{escape(text)}</b></p>'


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return rows of plain values as a table of HTML."""
    head = "".join(f'<th style="{_CELL}">{escape(column)}</th>' for column in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def source(number: int, title: str, quote: str, where: str) -> str:
    """Return a numbered source: what it is called, what it says, and where it stands."""
    link = escape(where)
    if where.startswith(("http://", "https://")):
        link = f'<a href="{link}" rel="noopener noreferrer">{link}</a>'
    return (
        f'<div style="margin:.5em 0 .5em 1em"><b>[{number}]</b> {escape(title)}'
        f'<div style="border-left:3px solid #8888;padding-left:.8em">{_quote(quote)}</div>'
        f'<small style="opacity:.75">{link}</small></div>'
    )


def picture(svg: bytes, caption: str) -> str:
    """Return a drawing as an image, in which no script can run, with a caption."""
    data = base64.b64encode(svg).decode()
    image = f'<img style="max-width:100%" alt="" src="data:image/svg+xml;base64,{data}">'
    return image + paragraph(caption, is_small=True)


def _quote(text: str) -> str:
    if len(text) <= _LONG:
        return escape(text)
    return f"<details><summary>{escape(cut(text, _LONG))}</summary>{escape(text)}</details>"


def _cell(value: object) -> str:
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return f'<td style="{_CELL}">{escape(cut(text, _CELL_CHARS))}</td>'


def _is_empty(value: object) -> bool:
    if isinstance(value, Mapping):
        return not any(value.values())
    return value is None or (isinstance(value, str | Sequence) and not value)


def _short(value: object) -> str:
    if isinstance(value, str):
        return quoted(value, 40)
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{key}: {_short(each)}" for key, each in value.items() if each)
        return f"{{{cut(pairs, 80)}}}"
    return f"[{len(value)}]" if isinstance(value, Sequence) else cut(repr(value), 40)
