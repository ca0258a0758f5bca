"""Results of a query: records, citations, a retrieval, an answer. Plain frozen data.

A model reads records as a context: one section per kind, one CSV row per record. Documents are
data: whatever stands in them, a row stays a row and a section a section.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from graphrag_pipeline.core import showing
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.text import counted

Kind = Literal["report", "finding", "entity", "relationship", "claim", "chunk", "summary"]

_SECTIONS: dict[Kind, tuple[str, str]] = {
    "report": ("Reports", "id,title,content"),
    "finding": ("Reports", "id,title,content"),
    "entity": ("Entities", "id,entity,type,description"),
    "relationship": ("Relationships", "id,relationship,weight,description"),
    "claim": (
        "Claims",
        "id,entity,object,type,status,start_date,end_date,description",
    ),
    "summary": ("Summaries", "id,title,text"),
    "chunk": ("Sources", "id,title,text"),
}
"""The name of each kind's section, and its columns: number, title, attributes, text."""

_PLURALS = {"entity": "entities", "summary": "summaries"}
_ROWS = 6
"""How many records of a kind a notebook shows."""

_FORGED_SECTION = pattern_of(r"^(\s*)-{5}", re.MULTILINE)


@dataclass(frozen=True)
class Record:
    """One row of evidence.

    ``number`` is the small integer a model cites it by, ``n_tokens`` what its row costs in the
    rendered context (0 until measured), ``score`` is comparable within one list only.
    A ``finding`` is one finding of a community report and carries the report's number.
    """

    kind: Kind
    id: str
    number: int
    title: str
    text: str
    score: float
    n_tokens: int = 0
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def with_tokens(self, n_tokens: int) -> Record:
        """Return the same with ``n_tokens``, ten times faster than ``dataclasses.replace``."""
        copy = object.__new__(Record)
        copy.__dict__.update(self.__dict__, n_tokens=n_tokens)
        return copy

    def __repr__(self) -> str:
        about = f"Record {self.number}: {self.kind} {showing.quoted(self.title)}"
        return showing.two_lines(f"{about}, score {self.score:.4g}", self.text)


@dataclass(frozen=True, kw_only=True)
class Citation:
    """A place in a document: ``documents.text[start_char:end_char] == text``, exactly.

    A finding of a report that no chunk supports cites the report instead: ``report_id`` and
    ``text`` are set, the document's fields are empty. ``references`` are the records that a written
    answer refers to and this place supports, as it names them: ``Sources (3)``. ``page`` is the
    page, from 1, on which it begins, of a document that has pages.
    """

    number: int
    document_id: str
    document_title: str
    uri: str
    chunk_id: str
    start_char: int
    end_char: int
    text: str
    report_id: str | None = None
    references: tuple[str, ...] = ()
    page: int | None = None

    @property
    def place(self) -> str:
        """Its place in one line: the document's name, the page and the span, or the report."""
        if not self.uri:
            return f"report {self.report_id}"
        page = f", page {self.page:,}" if self.page else ""
        return f"{self.uri}{page}, characters {self.start_char:,} to {self.end_char:,}"

    def __repr__(self) -> str:
        about = f"Citation {self.number}: {showing.quoted(self.document_title)}"
        if self.uri:
            about += f", characters {self.start_char} to {self.end_char}"
        return showing.two_lines(about, self.text)


@dataclass(frozen=True)
class Retrieval:
    """Records that a method found, best first within each kind, fitted to its token budget.

    ``citations`` are the places of the records that stand in documents; ``timings`` are seconds
    by operator and ``total``; ``steps`` say what the method decided on its way, where it does.
    """

    method: str
    query: str
    records: tuple[Record, ...]
    citations: tuple[Citation, ...]
    timings: Mapping[str, float]
    parameters: Mapping[str, Any]
    release: str
    steps: tuple[str, ...] = ()

    @property
    def context(self) -> str:
        """The records as the text a model reads."""
        return render_context(self.records)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self)

    def __repr__(self) -> str:
        return showing.two_lines(
            f"Retrieval by {self.method}: {_kinds(self.records)}{_seconds(self.timings)}",
            self.query,
        )

    def _repr_html_(self) -> str:
        rows = [
            (r.kind, r.title, r.text.removeprefix(f"# {r.title}"), r.n_tokens)
            for r in _best(self.records)
        ]
        about = f"{self.method}: {_kinds(self.records)}{_seconds(self.timings)}"
        left_out = len(self.records) - len(rows)
        return showing.block(
            showing.heading(self.query),
            showing.paragraph("\n".join([about, *self.steps]), is_small=True),
            showing.table(("kind", "title", "text", "tokens"), rows),
            showing.paragraph(f"and {left_out:,} more", is_small=True) if left_out else "",
        )


@dataclass(frozen=True)
class Unsupported:
    """A reference of an answer, ``Sources (3)``, to a record without a word of its sentence."""

    reference: str
    sentence: str


@dataclass(frozen=True)
class Answer:
    """An answer with its citations, what it rests on, and what it cost.

    ``generated`` tells a model's text from listed evidence; ``cost`` is in US dollars, None where
    a model's price is not known. ``model_calls``, tokens and cost are of calls that were paid for,
    embeddings among them; ``cached_calls`` were answered from the cache. ``calls`` has both by step
    (embed, rate, map, reduce and so on). ``references_removed`` counts references to what was not
    in the model's context; ``references`` those that are left, and ``unsupported`` has the ones of
    them whose record shares no word with the sentence. ``names_no_source``: a model wrote it and it
    refers to nothing; what the model was shown is in ``retrieval``. ``doubts`` says this in words,
    a line each, and which words of the question no document says. ``failures`` has one line for
    each part of the work that gave nothing and was left out. ``follow_ups`` are questions that
    may come next, where they are asked for. ``timings`` are seconds; ``first_piece`` is when a
    written answer began.
    """

    query: str
    method: str
    text: str
    citations: tuple[Citation, ...]
    retrieval: Retrieval
    generated: bool
    model_calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    timings: Mapping[str, float]
    release: str
    references_removed: int = 0
    cached_calls: int = 0
    calls: Mapping[str, int] = field(default_factory=dict)
    failures: tuple[str, ...] = ()
    follow_ups: tuple[str, ...] = ()
    references: int = 0
    unsupported: tuple[Unsupported, ...] = ()
    names_no_source: bool = False
    doubts: tuple[str, ...] = ()

    @property
    def places(self) -> tuple[Citation, ...]:
        """The places to read: those it cites, or where it names none those the model was shown."""
        return self.retrieval.citations if self.names_no_source else self.citations

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self)

    def __repr__(self) -> str:
        notice, _, evidence = self._parts
        return showing.two_lines(f"Answer by {self._about}", evidence or notice)

    def _repr_html_(self) -> str:
        sources = (
            showing.source(cited.number, cited.document_title, cited.text, cited.place)
            for cited in self.places
        )
        return showing.block(
            showing.heading(self.query),
            showing.paragraph(self._parts[0]),
            *(showing.paragraph(line, is_small=True) for line in self.doubts),
            *sources,
            *(showing.paragraph(failure, is_small=True) for failure in self.failures),
            showing.paragraph(self._about, is_small=True),
        )

    @property
    def _parts(self) -> tuple[str, str, str]:
        """A text, or the notice that it is none and the evidence, which its sources quote."""
        return (self.text, "", "") if self.generated else self.text.partition("\n\n")

    @property
    def _about(self) -> str:
        writer = "written by a model" if self.generated else "quoted from the documents"
        price = f", ${self.cost:.4f}" if self.cost else ""
        sources = counted(len(self.citations), "source")
        return f"{self.method}: {writer}, {sources}{price}{_seconds(self.timings)}"


def _best(records: Sequence[Record]) -> list[Record]:
    """Return the first records of each kind, as many as a notebook shows."""
    of_kind = {kind: [r for r in records if r.kind == kind] for kind in _SECTIONS}
    return [record for records in of_kind.values() for record in records[:_ROWS]]


def _kinds(records: Sequence[Record]) -> str:
    """Return how many records there are of each kind, in words."""
    kinds = Counter(record.kind for record in records)
    counts = [counted(n, kind, _PLURALS.get(kind, "")) for kind, n in kinds.items()]
    return ", ".join(counts) or "nothing"


def _seconds(timings: Mapping[str, float]) -> str:
    return f", {timings['total']:.2g} s" if "total" in timings else ""


def render_context(records: Sequence[Record]) -> str:
    """Return the context of a retrieval, sections in the order Reports to Sources.

    The first column of a row is the number it is cited by, as in ``[Data: Sources (3)]``.
    """
    parts: list[str] = []
    for name in dict.fromkeys(section for section, _ in _SECTIONS.values()):
        rows = [r for r in records if section_of(r.kind) == name]
        if rows:
            parts += [render_header(rows[0].kind), *map(render_row, rows)]
    return "".join(parts)


def render_passages(records: Sequence[Record]) -> str:
    """Return records by title and text alone, for a prompt whose answer refers to none of them."""
    return "\n\n".join(f"{_plain(record.title)}\n{_plain(record.text)}" for record in records)


def section_of(kind: Kind) -> str:
    """Return the name of the section that holds records of a kind, by which they are cited."""
    return _SECTIONS[kind][0]


def render_header(kind: Kind) -> str:
    """Return the lines that open the section of a kind."""
    name, columns = _SECTIONS[kind]
    return f"\n-----{name}-----\n{columns}\n"


def render_row(record: Record) -> str:
    """Return a record's row, its line end included."""
    columns = _SECTIONS[record.kind][1].split(",")[2:-1]
    attributes = [_attribute(record.attributes[name]) for name in columns]
    line = io.StringIO()
    writer = csv.writer(line, lineterminator="\n")
    writer.writerow([record.number, *map(_plain, [record.title, *attributes, record.text])])
    return line.getvalue()


def _attribute(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value or "")


def _plain(text: str) -> str:
    unified = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").strip()
    return _FORGED_SECTION.sub(r"\1- ----", unified) if "-----" in unified else unified
