"""References in a written answer: checked while it streams, then resolved to places."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.query.citations import (
    Place,
    cite_chunk,
    cite_findings,
    cite_quote,
    cite_report,
    cite_summaries,
    distinct,
    numbered,
    place_of,
)
from graphrag_pipeline.query.operators import chunk_records, findings_of
from graphrag_pipeline.query.operators.attributed import chunks_below
from graphrag_pipeline.query.results import Citation, Record, render_context, section_of
from graphrag_pipeline.reports.references import check_references

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

Reference = tuple[str, int]
"""A section of the context and a number in it."""

_LONGEST = 1500
_PLAIN = pattern_of(r"[^\[【(]*")
_TAIL = pattern_of(r"[ \t]?\Z")
_PLACES_EACH = 3

_CHUNKS_OF = """
WITH wanted AS (SELECT unnest($ids::JSON::VARCHAR[]) AS id),
support AS (
    SELECT entity_id AS id, chunk_id, n_mentions FROM entity_chunks UNION ALL
    SELECT relationship_id, chunk_id, n_mentions FROM relationship_chunks)
SELECT id, chunk_id FROM support SEMI JOIN wanted USING (id)
LEFT JOIN (SELECT unnest($shown::JSON::VARCHAR[]) AS shown) ON shown = chunk_id
QUALIFY row_number() OVER (
    PARTITION BY id ORDER BY shown IS NULL, n_mentions DESC, chunk_id) <= $limit
ORDER BY id, shown IS NULL, n_mentions DESC, chunk_id
"""


class Shown:
    """The records that a model was shown, by the references it may make to them."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._records: dict[Reference, Record] = {}
        self.add(records)

    def add(self, records: Iterable[Record]) -> None:
        """Take in more records."""
        for record in records:
            self._records.setdefault((section_of(record.kind), record.number), record)

    def allowed(self) -> dict[str, set[int]]:
        """Return the numbers that resolve, by section."""
        allowed: dict[str, set[int]] = {}
        for section, number in self._records:
            allowed.setdefault(section, set()).add(number)
        return allowed

    def only(self, references: Iterable[Reference]) -> Shown:
        """Return what these references refer to."""
        return Shown(self._records[reference] for reference in dict.fromkeys(references))

    @property
    def records(self) -> tuple[Record, ...]:
        """The records, in the order in which they were shown."""
        return tuple(self._records.values())

    def __contains__(self, reference: Reference) -> bool:
        return reference in self._records

    def __getitem__(self, reference: Reference) -> Record:
        return self._records[reference]


def shown_to_model(records: Sequence[Record]) -> str:
    """Return records as a prompt shows them: reports refer to nothing that is not among them."""
    allowed = Shown(records).allowed()
    return render_context(
        [
            replace(record, text=check_references(record.text, allowed).text)
            if record.kind == "report"
            else record
            for record in records
        ]
    )


class ReferenceFilter:
    """Checks the references of a text that comes in pieces.

    Text is let through as it comes, but for a bracket, which waits until it is complete. What comes
    out does not depend on how the text was cut into pieces.
    """

    def __init__(self, records: Shown) -> None:
        self.cited: dict[Reference, None] = {}
        self.n_removed = 0
        self._allowed = records.allowed()
        self._waiting = ""

    def take(self, piece: str) -> str:
        """Return what can be let through now that a piece has come."""
        self._waiting += piece
        ready: list[str] = []
        while (end := self._unit()) is not None:
            unit, self._waiting = self._waiting[: abs(end)], self._waiting[abs(end) :]
            ready.append(self._checked(unit) if end > 0 else unit)
        return "".join(ready)

    def finish(self) -> str:
        """Return the rest, checked: the text has ended."""
        rest, self._waiting = self._waiting, ""
        return self._checked(rest)

    def _checked(self, unit: str) -> str:
        checked = check_references(unit, self._allowed)
        self.cited.update(dict.fromkeys(checked.cited))
        self.n_removed += checked.n_removed
        return checked.text

    def _unit(self) -> int | None:
        """Return the length of the next unit, negative if it needs no check, None to wait.

        A unit is a bracket with the space before it, or text that holds no bracket.
        """
        plain = _PLAIN.match(self._waiting)
        end = plain.end() if plain else 0
        space = _TAIL.search(self._waiting, max(0, end - 1), end)
        begin = space.start() if space else end
        if begin:
            return -begin
        if end == len(self._waiting):
            return None
        closing = _closing(self._waiting, end)
        return -(end + 1) if closing < 0 else closing or None


def _closing(text: str, opening: int) -> int:
    """Return the end of a bracket, 0 if it is not there yet, -1 if it is none to wait for."""
    openers, closers = ("(", ")") if text[opening] == "(" else ("[【", "]】")
    depth = 0
    for position in range(opening, min(len(text), opening + _LONGEST)):
        depth += text[position] in openers
        depth -= text[position] in closers
        if depth == 0:
            return position + 1
        if depth > 1 and openers != "(":
            return -1
    return -1 if len(text) - opening >= _LONGEST else 0


def resolve(
    index: Release, shown_records: Shown, references: Sequence[Reference]
) -> tuple[Citation, ...]:
    """Return the places in documents that references rest on, one citation for each place.

    A source cites its own span; a report its findings' places; a claim the words it was taken from,
    or their chunk; a summary the best chunks below it; an entity or relationship the chunks it was
    found in, those that were shown to the model first.
    """
    records = {reference: shown_records[reference] for reference in references}
    places = {
        **_by_report(index, records.values()),
        **_by_claim(index, records.values()),
        **_by_chunks(index, records.values(), shown_records),
        **cite_summaries(index, [r for r in records.values() if r.kind == "summary"]),
    }
    citations = [
        (reference, citation)
        for reference, record in records.items()
        for citation in ([cite_chunk(record)] if record.kind == "chunk" else places[record.id])
    ]
    names: dict[Place, dict[str, None]] = {}
    for (section, number), citation in citations:
        names.setdefault(place_of(citation), {})[f"{section} ({number})"] = None
    return tuple(
        replace(citation, references=tuple(names[place_of(citation)]))
        for citation in distinct(index, numbered(citation for _, citation in citations))
    )


def _by_report(index: Release, records: Iterable[Record]) -> dict[str, list[Citation]]:
    reports = [record for record in records if record.kind == "report"]
    findings = findings_of(index, [report.id for report in reports]) if reports else []
    places: dict[str, list[Citation]] = {report.id: [] for report in reports}
    for finding, citation in zip(findings, cite_findings(index, findings), strict=True):
        of_report = places[finding.attributes["report_id"]]
        if len(of_report) < _PLACES_EACH:
            of_report.append(citation)
    places |= _by_attributed(index, [r for r in reports if "chunk_ids" in r.attributes])
    for report in reports:
        if not places[report.id]:
            summary = report.attributes["summary"]
            places[report.id] = [cite_report(report.id, report.title, summary)]
    return places


def _by_attributed(index: Release, reports: Sequence[Record]) -> dict[str, list[Citation]]:
    below = chunks_below(index, [r.id for r in reports if not r.attributes["chunk_ids"]])
    chunks_of = {report.id: report.attributes["chunk_ids"] for report in reports} | below
    with_chunks = [
        replace(report, attributes={"chunk_ids": chunks_of[report.id]}) for report in reports
    ]
    return cite_summaries(index, with_chunks)


def _by_claim(index: Release, records: Iterable[Record]) -> dict[str, list[Citation]]:
    claims = [record for record in records if record.kind == "claim"]
    if not claims:
        return {}
    ids = dict.fromkeys((claim.attributes["chunk_id"] for claim in claims), 1.0)
    citation_of = {chunk.id: cite_chunk(chunk) for chunk in chunk_records(index, ids)}
    return {
        claim.id: [
            cite_quote(
                citation_of[claim.attributes["chunk_id"]], claim.attributes["source_text"] or ""
            )
        ]
        for claim in claims
    }


def _by_chunks(
    index: Release, records: Iterable[Record], shown_records: Shown
) -> dict[str, list[Citation]]:
    ids = [record.id for record in records if record.kind in ("entity", "relationship")]
    if not ids:
        return {}
    read = [record.id for record in shown_records.records if record.kind == "chunk"]
    rows = index.rows(_CHUNKS_OF, ids=ids, shown=read, limit=_PLACES_EACH)
    chunks = dict.fromkeys((row["chunk_id"] for row in rows), 1.0)
    citation_of = {record.id: cite_chunk(record) for record in chunk_records(index, chunks)}
    places: dict[str, list[Citation]] = {key: [] for key in ids}
    for row in rows:
        places[row["id"]].append(citation_of[row["chunk_id"]])
    return places
