"""Citations as clients of OpenAI's API show them: footnotes, and annotations.

An annotation is an address of our own page and the place in the text where it is referred to, in
characters from 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.core.rows import one_line

if TYPE_CHECKING:
    from graphrag_pipeline.query.results import Answer, Citation

_MOST_NOTED = 20
HEADING = "\n\n**Sources**\n\n"
"""What stands between an answer and its footnotes."""
SHOWN = "\n\n**Shown to the model**\n\n"
"""The same where the answer names no source."""
_MARKUP = re.compile(r"([\\`\[\]<>])")
# As the answering of questions writes them: a number at the end of a sentence, or a reference.
_MARKER = re.compile(r"\[(\d+)\]$", re.MULTILINE)
_REFERENCE = re.compile(r"\[Data: ([^\[\]]*)\]")
_SECTION = re.compile(r"(\w+) \(([^()]*)\)")

Span = tuple[int, int]
Addressed = Callable[["Citation"], str]


@dataclass(frozen=True)
class Cited:
    """The footnotes of a text, to stand below it, and the annotations of both together."""

    notes: str
    annotations: list[dict[str, Any]]


def cited(answer: Answer, text: str, address_of: Addressed, *, noted: bool = True) -> Cited:
    """Return what an answer with this text cites; one that must stay as it is has no footnotes.

    What is amiss with its references stands before the footnotes.

    There is an annotation for each citation, in the order of their numbers, at the first place
    that refers to it: in the text, or else in its footnote, or else the whole text.
    """
    citations = answer.places
    addresses = [address_of(citation) for citation in citations]
    notes, lines = _notes(answer, addresses) if noted else ("", [])
    whole = (0, len(text))
    in_notes = [(start + len(text), end + len(text)) for start, end in lines]
    in_notes += [whole] * (len(citations) - len(lines))
    places = _places(text)
    return Cited(
        notes,
        [
            _annotation(citation, address, _place_of(citation, places) or noted_at)
            for citation, address, noted_at in zip(citations, addresses, in_notes, strict=True)
        ],
    )


def _annotation(citation: Citation, address: str, span: Span) -> dict[str, Any]:
    cites = {"url": address, "title": one_line(citation.document_title) or address}
    place = {"start_index": span[0], "end_index": span[1]}
    return {"type": "url_citation", "url_citation": {**cites, **place}}


def _places(text: str) -> dict[str, Span]:
    """Return the first place of each number and each reference in a text."""
    places: dict[str, Span] = {}
    for marker in _MARKER.finditer(text):
        places.setdefault(marker[1], marker.span())
    for reference in _REFERENCE.finditer(text):
        for section, numbers in _SECTION.findall(reference[1]):
            for number in numbers.split(","):
                places.setdefault(f"{section} ({number.strip()})", reference.span())
    return places


def _place_of(citation: Citation, places: Mapping[str, Span]) -> Span | None:
    names = citation.references or (str(citation.number),)
    return min((places[name] for name in names if name in places), default=None)


def _notes(answer: Answer, addresses: Sequence[str]) -> tuple[str, list[Span]]:
    """Return the footnotes, a line each, and where each line stands in them."""
    notes, lines = "".join(f"\n\n*{doubt}*" for doubt in answer.doubts), []
    citations = answer.places
    if citations:
        notes += SHOWN if answer.names_no_source else HEADING
    for citation, address in [*zip(citations, addresses, strict=True)][:_MOST_NOTED]:
        line = _note(citation, address)
        lines.append((len(notes), len(notes) + len(line)))
        notes += f"{line}\n"
    if len(citations) > _MOST_NOTED:
        notes += f"- and {len(citations) - _MOST_NOTED:,} more\n"
    return notes, lines


def _note(citation: Citation, address: str) -> str:
    title = _plain(citation.document_title) or "untitled"
    referring = f" ({', '.join(citation.references)})" if citation.references else ""
    link = f"{citation.number}. [{title}]({address}){referring}"
    if not citation.document_id:
        return f"{link}, a report"
    page = f", page {citation.page}" if citation.page else ""
    return f"{link}{page}, characters {citation.start_char}–{citation.end_char}"


def _plain(text: str) -> str:
    """Return a name that documents give so that no page takes it for a link or a picture."""
    return _MARKUP.sub(r"\\\1", one_line(text))
