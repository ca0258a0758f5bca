"""Links between notes, ``[[Name]]``, as the relative links of Markdown that they stand for."""

from __future__ import annotations

import re

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading.markdown_markup import code_parts

_NAME = r"[^\[\]|#\n\\]{1,200}"
_LINK = pattern_of(
    rf"(?P<code>`+)[^`\n]+(?P=code)"
    rf"|(?P<embed>!?)\[\[(?P<name>{_NAME})?(?P<heading>#[^\[\]|\n\\]{{1,200}})?"
    r"(?:\\?\|(?P<words>[^\[\]\n]{1,300}))?\]\](?![(\[])"
)
_LETTER = pattern_of(r"[^\W\d_]")
_HAS_ENDING = pattern_of(
    r"\.(?:md|canvas|base|pdf|csv|png|jpe?g|gif|svg|webp|bmp|avif|mp[34]|wav|ogg|m4a|webm|mov)$",
    re.I,
)
_NOT_IN_ADDRESS = pattern_of(r"[\s()<>%\"\\`*]")
_BADGE = pattern_of(r"\[!\[([^\[\]\n]*)\]\([^()\n]*\)\]\([^()\n]*\)")
_MARKDOWN_LINK = pattern_of(r"!?\[([^\[\]\n]+)\]\([^()\s]*\)")


def with_links(text: str) -> str:
    """Return Markdown in which ``[[Name|words]]`` is ``[words](Name.md)``; code stays as it is."""
    if "[[" not in text:
        return text
    parts = code_parts(text)
    return "".join(part if is_code else _LINK.sub(_written, part) for part, is_code in parts)


def without_links(text: str) -> str:
    """Return a title or a value with the words of its links only; badges beside them are none."""
    text = _BADGE.sub("", text).strip() or _BADGE.sub(r"\1", text)
    return _MARKDOWN_LINK.sub(r"\1", _LINK.sub(_written, text))


def notes_linked(value: str) -> list[str]:
    """Return the names of the notes that a value links to, whatever it calls them.

    >>> notes_linked("[[firms/Baltor Freight#Owner|the firm]], [[cover.png]]")
    ['Baltor Freight']
    """
    names = [(match["name"] or "").strip() for match in _LINK.finditer(value) if not match["code"]]
    notes = [name for name in names if name.endswith(".md") or not _HAS_ENDING.search(name)]
    stems = (name.rpartition("/")[2].removesuffix(".md") for name in notes)
    return list(dict.fromkeys(stem for stem in stems if _LETTER.search(stem)))


def as_notes(value: str) -> str:
    """Return a value in which links are the names of the notes that they lead to."""
    return _LINK.sub(_as_note, value)


def _as_note(match: re.Match[str]) -> str:
    return "".join(notes_linked(match.group())) or (match["name"] or match.group()).strip()


def _written(match: re.Match[str]) -> str:
    name = (match["name"] or "").strip()
    heading = (match["heading"] or "").strip("#^ ")
    words = (match["words"] or "").strip() or name.rpartition("/")[2] or heading
    if match["code"] or not _LETTER.search(name + heading):
        return match.group()
    if not name:
        return words
    file = name if _HAS_ENDING.search(name) else f"{name}.md"
    address = _NOT_IN_ADDRESS.sub(lambda character: f"%{ord(character.group()):02X}", file)
    return f"{match['embed']}[{words}]({address})"
