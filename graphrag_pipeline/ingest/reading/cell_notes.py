"""Comments on the cells of workbooks, as fields of their rows."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading.cleaning import one_line
from graphrag_pipeline.ingest.reading.xml_tree import XmlElement, elements_in, root_of, text_of

_COMMENTS = "/comments"
_THREAD = pattern_of(r"\A\[[^\]\n]+\]\s.*?\n\s*\n\w+:\s", 16)
"""What Excel writes before a comment for older programs: that they cannot show its thread."""
_AUTHOR = pattern_of(r"\A\s*[^\n:]{2,40}:\s*\n")


def notes_of(parts: Mapping[str, bytes], sheet: str) -> dict[str, str]:
    """Return the comments of a sheet of an xlsx file, by the names of their cells."""
    folder, name = posixpath.split(sheet)
    links = parts.get(f"{folder}/_rels/{name}.rels", b"")
    if _COMMENTS.encode() not in links:
        return {}
    notes: dict[str, str] = {}
    for link in elements_in(root_of(links), ("Relationship",)):
        if link.attributes.get("Type", "").endswith(_COMMENTS):
            target = link.attributes.get("Target", "")
            path = posixpath.normpath(posixpath.join(f"/{folder}", target)).lstrip("/")
            for comment in elements_in(root_of(parts.get(path, b"<none/>")), ("comment",)):
                notes[comment.attributes.get("ref", "A1")] = _said(comment)
    return notes


def _said(comment: XmlElement) -> str:
    """Return the text of a comment, without the reading aid of Japanese words."""
    return "".join(text_of(each) for each in elements_in(comment, ("t", "rPh")) if each.name == "t")


def note_line(rows: Sequence[Sequence[str]], row: int, column: int, note: str) -> str:
    """Return a comment on a cell after what stands above it, if the row has other cells.

    >>> note_line([["Flat", "Rent"], ["1B", "820"]], 1, 1, "Karl Meier:\\nRaised in May")
    'Rent: Raised in May'
    """
    text = one_line(_AUTHOR.sub("", _THREAD.sub("", note), 1))
    above = (
        one_line(each[column])
        for each in rows[:row]
        if sum(map(bool, each)) > 1 and column < len(each) and each[column].strip()
    )
    head = next(above, "")
    return f"{head}: {text}" if head else text
