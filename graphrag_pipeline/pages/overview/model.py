"""The overview page as plain values. All texts are untrusted and not yet escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Text = Sequence["str | Note"]
"""Text in pieces; a note stands where the text refers to its evidence."""


@dataclass(frozen=True)
class Excerpt:
    """A place in a document: ``quote`` with what stands around it; spans in characters.

    ``page`` is the one it begins on, of a document that has pages. ``link`` is its permanent link,
    where the settings name the address of a server.
    """

    title: str
    place: str
    start: int
    end: int
    before: str
    quote: str
    after: str
    page: int | None = None
    link: str = ""


@dataclass(frozen=True)
class Note:
    """The basis of a statement: a passage, and the names and connections it cites."""

    number: int
    passage: Excerpt | None
    entities: Sequence[Named] = ()
    relationships: Sequence[str] = ()
    reports: Sequence[str] = ()
    n_more: int = 0


@dataclass(frozen=True)
class Named:
    """A name, and its anchor where the page has more on it."""

    title: str
    anchor: str = ""


@dataclass(frozen=True)
class FindingEntry:
    """A finding; an extractive one has a quote from a document instead of a text."""

    heading: str
    text: Text
    is_quote: bool


Rows = Mapping[str, Any]
"""Values of the page by the names that its template has for them, mostly rows of the release."""
