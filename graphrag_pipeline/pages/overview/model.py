"""The overview page as plain values. All texts are untrusted and not yet escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

Text = Sequence["str | Note"]
"""Text in pieces; a note stands where the text refers to its evidence."""


@dataclass(frozen=True)
class Excerpt:
    """A place in a document: ``quote`` with what stands around it; spans in characters.

    ``link`` is its permanent link, where the settings name the address of a server.
    """

    title: str
    place: str
    start: int
    end: int
    before: str
    quote: str
    after: str
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
class Bar:
    """A bar of a chart: ``share`` of the longest, 0 to 1."""

    label: str
    value: int
    share: float
    anchor: str = ""


@dataclass(frozen=True)
class FindingEntry:
    """A finding; an extractive one has a quote from a document instead of a text."""

    heading: str
    text: Text
    is_quote: bool


@dataclass(frozen=True)
class Community:
    """A community and its report; ``children`` are the largest of the next level."""

    id: str
    number: int
    title: str
    size: int
    n_relationships: int
    rating: float | None
    rating_explanation: str
    summary: Text
    writer: str = ""
    n_documents: int = 0
    findings: Sequence[FindingEntry] = ()
    notes: Sequence[Note] = ()
    children: Sequence[Community] = ()
    n_more_children: int = 0
    top_entities: Sequence[Named] = ()


@dataclass(frozen=True)
class EntityEntry:
    """A key entity and where it is mentioned."""

    anchor: str
    title: str
    type: str
    description: str
    frequency: int
    degree: int
    chapter: Named | None
    documents: Sequence[str]
    n_documents: int


@dataclass(frozen=True)
class Relationship:
    """A telling relationship and the sentence that supports it."""

    source: Named
    target: Named
    type: str
    description: str
    weight: float
    n_chunks: int
    passage: Excerpt | None


@dataclass(frozen=True)
class Coverage:
    """The files that were read, and those that could not be."""

    documents: int
    unreadable: Sequence[tuple[str, str]]
    n_unreadable: int
    chunks: int
    failed_chunks: int
    failed_reports: int
    silent_documents: Sequence[str]
    n_silent_documents: int
    silent_languages: Sequence[str]
    isolated: int
    told: float | None
    """Share of the relationships that some report was written from."""


@dataclass(frozen=True)
class StageCost:
    """Model calls of one stage: ``calls`` sent, ``failed`` ones among them, others ``cached``.

    ``cost`` is in US dollars, None where a price is not known.
    """

    stage: str
    calls: int
    cached: int
    failed: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


@dataclass(frozen=True, kw_only=True)
class Change:
    """Changes of one table since the release before, with the first names of each change."""

    what: str
    before: int
    after: int
    entered: int
    left: int
    changed: int
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Making:
    """The making of the index: counts by extractor and by report writer, models, embedder."""

    extractors: Mapping[str, int]
    writers: Mapping[str, int]
    models: Sequence[str]
    embedder: str
    merged_names: int
    modularity: float | None
    levels: int


@dataclass(frozen=True)
class Overview:
    """Everything on the page."""

    title: str
    release: str
    created_at: datetime
    words: int
    counts: Mapping[str, int]
    file_types: Sequence[tuple[str, int, int]]
    entity_types: Sequence[Bar]
    sizes: Sequence[Bar]
    chapters: Sequence[Community]
    others: Sequence[Community]
    n_more_others: int
    singletons: int
    n_themes: int
    entities: Sequence[EntityEntry]
    relationships: Sequence[Relationship]
    coverage: Coverage
    costs: Sequence[StageCost]
    making: Making
    changed_since: str | None
    changes: Sequence[Change]
