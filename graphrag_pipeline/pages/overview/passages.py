"""Statements and the places in documents that support them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphrag_pipeline.core.addresses import links_of
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.text import terms
from graphrag_pipeline.extraction.rules.sentences import sentence_spans
from graphrag_pipeline.pages.overview.model import Excerpt, Named, Note, Text
from graphrag_pipeline.query.citations import Pages
from graphrag_pipeline.query.release import Release
from graphrag_pipeline.reports.references import check_references

_REFERENCE = pattern_of(r"\s*\[Data: ([^\]]*)\]")
_STOP = pattern_of(r"[.,;:!?。,]")
_SECTION = pattern_of(r"(\w+) \(([^)]*)\)")
_NUMBERS = pattern_of(r"\d{1,15}")
_AROUND = 160
_MOST_QUOTED = 420
_MOST_NAMED = 6
_CANDIDATES = 4

_KNOWN = """
WITH wanted AS (SELECT unnest($numbers::JSON::BIGINT[]) AS human_readable_id)
SELECT 'Entities' AS kind, human_readable_id AS number, id, title
FROM entities SEMI JOIN wanted USING (human_readable_id)
UNION ALL SELECT 'Relationships', human_readable_id, id, source || ' – ' || target
FROM relationships SEMI JOIN wanted USING (human_readable_id)
UNION ALL SELECT 'Reports', c.human_readable_id, c.id, coalesce(r.title, c.title)
FROM communities c SEMI JOIN wanted USING (human_readable_id)
LEFT JOIN community_reports r ON r.community_id = c.id
UNION ALL SELECT 'Claims', human_readable_id, chunk_id, ''
FROM claims SEMI JOIN wanted USING (human_readable_id)
UNION ALL SELECT 'Sources', human_readable_id, id, ''
FROM chunks SEMI JOIN wanted USING (human_readable_id)
"""
_SUPPORTING = """
WITH wanted AS (
    SELECT unnest($places::JSON::INT[]) AS place, unnest($kinds::JSON::VARCHAR[]) AS kind,
           unnest($ids::JSON::VARCHAR[]) AS id),
links AS (
    SELECT place, chunk_id, 1 AS n FROM wanted JOIN entity_chunks ON entity_id = id
    WHERE kind = 'Entities'
    UNION ALL SELECT place, chunk_id, 3 FROM wanted
    JOIN relationship_chunks ON relationship_id = id WHERE kind = 'Relationships'
    UNION ALL SELECT place, id, 9 FROM wanted WHERE kind IN ('Claims', 'Sources'))
SELECT place, chunk_id FROM (
    SELECT place, chunk_id, sum(n) AS n FROM links GROUP BY ALL)
QUALIFY row_number() OVER (PARTITION BY place ORDER BY n DESC, chunk_id) <= $most
ORDER BY place, n DESC, chunk_id
"""
_TEXTS = """
WITH wanted AS (
    SELECT unnest($chunks::JSON::VARCHAR[]) AS chunk_id, unnest($starts::JSON::BIGINT[]) AS s,
           unnest($ends::JSON::BIGINT[]) AS e,
           generate_subscripts($chunks::JSON::VARCHAR[], 1) - 1 AS place)
SELECT place, d.id AS document_id, d.title, d.uri, coalesce(b.root, '') AS root, s, e,
       c.start_char AS start_char,
       greatest(coalesce(s, c.start_char) - $around, 0) AS first,
       substr(d.text, greatest(coalesce(s, c.start_char) - $around, 0) + 1,
              coalesce(least(e, s + $most), c.end_char) + $around
              - greatest(coalesce(s, c.start_char) - $around, 0)) AS text,
       c.text AS chunk
FROM wanted JOIN chunks c ON c.id = chunk_id JOIN documents d ON d.id = c.document_id
LEFT JOIN batches b ON b.batch = d.batch
"""


@dataclass(frozen=True)
class WantedPassages:
    """A place to look up: a span (characters of the document), or a sentence of the chunk.

    Without a span, it is the sentence that has most of ``names``, then most of ``words``.
    """

    chunk_id: str
    start: int | None
    end: int | None
    words: str
    names: str = ""


def passages(index: Release, spans: Sequence[WantedPassages]) -> list[Excerpt | None]:
    """Return the passage of each place; None where there is no such chunk."""
    results: list[Excerpt | None] = [None] * len(spans)
    rows = index.rows(
        _TEXTS,
        chunks=[place.chunk_id for place in spans],
        starts=[place.start for place in spans],
        ends=[place.end for place in spans],
        around=_AROUND,
        most=_MOST_QUOTED,
    )
    links = links_of(index.settings, index.facts.id)
    pages = Pages(index, (row["document_id"] for row in rows))
    for row in rows:
        passage = _passage(row, spans[row["place"]])
        page = pages.page_of(row["document_id"], passage.start)
        span = passage.start, passage.end
        link = links.of("documents", row["document_id"], span) if links else ""
        results[row["place"]] = replace(passage, page=page, link=link)
    return results


def place_of(uri: str, root: str) -> str:
    """Return a document's place without what leads to its folder: a page may be sent to anyone."""
    inside = uri.removeprefix(root.rstrip("/") + "/") if root else uri
    return inside.removeprefix("import:")


def _passage(row: Mapping[str, Any], span: WantedPassages) -> Excerpt:
    if row["s"] is None:
        start, end = _closest_sentence(row["chunk"], span)
        text, first = row["chunk"], row["start_char"]
    else:
        first, text = row["first"], row["text"]
        start, end = row["s"] - first, row["e"] - first
    if end - start > _MOST_QUOTED:
        quote = text[start : start + _MOST_QUOTED]
        end = start + len(quote.rpartition(" ")[0] or quote)
    before, after = text[max(start - _AROUND, 0) : start], text[end : end + _AROUND]
    return Excerpt(
        title=row["title"],
        place=place_of(row["uri"], row["root"]),
        start=first + start,
        end=first + end,
        before=_from_a_word(before, cut=start > _AROUND or first > 0),
        quote=text[start:end],
        after=_to_a_word(after),
    )


def _from_a_word(text: str, *, cut: bool) -> str:
    """Begin at a word, where the text was cut."""
    head, space, rest = text.partition(" ")
    return f"… {rest}" if cut and space and len(head) < _AROUND // 2 else text


def _to_a_word(text: str) -> str:
    rest, space, tail = text.rpartition(" ")
    cut = len(text) == _AROUND and space and len(tail) < _AROUND // 2
    return f"{rest} …" if cut else text


def _closest_sentence(text: str, target: WantedPassages) -> tuple[int, int]:
    """Return the span of the sentence that shares most terms with what is wanted."""
    names, words = set(terms(target.names)), set(terms(target.words))

    def likeness(span: tuple[int, int]) -> tuple[int, int, int]:
        sentence_words = set(terms(text[span[0] : span[1]]))
        return len(sentence_words & names), len(sentence_words & words), -span[0]

    return max(sentence_spans(text) or [(0, len(text))], key=likeness)


def most_like(words: str, candidates: Sequence[Excerpt]) -> Excerpt:
    """Return the first of the passages whose quotes share most terms with some words."""
    target = set(terms(words))
    return max(candidates, key=lambda passage: len(target & set(terms(passage.quote))))


class Notes:
    """Numbers the notes of a page and finds what each rests on, all in a few queries.

    First every text is announced, then :meth:`resolve` looks everything up, then the texts are
    cut into pieces, with a note for each reference.
    """

    def __init__(self, index: Release, anchors: Mapping[str, str]) -> None:
        self._index = index
        self._anchors = anchors
        self._texts: list[str] = []
        self._spans: list[WantedPassages] = []
        self._known: dict[tuple[str, int], tuple[str, str]] = {}
        self._of_text: dict[tuple[str, int], Excerpt | None] = {}
        self._of_span: dict[WantedPassages, Excerpt | None] = {}
        self._n = 0

    def announce(self, text: str, span: WantedPassages | None = None) -> None:
        """Make known a text that may hold references, or the span it was taken from."""
        self._spans.append(span) if span else self._texts.append(text)

    def resolve(self) -> None:
        """Look up the numbers in all texts announced, and the passages behind them."""
        numbers = {int(n) for text in self._texts for n in _NUMBERS.findall(text)}
        for row in self._index.rows(_KNOWN, numbers=sorted(numbers)):
            self._known[row["kind"], row["number"]] = (row["id"], row["title"])
        self._of_span = dict(zip(self._spans, passages(self._index, self._spans), strict=True))
        self._find_support()

    def cut(self, text: str) -> tuple[Text, list[Note]]:
        """Return a text in pieces, and the notes in it."""
        checked = self._checked(text)
        pieces: list[str | Note] = []
        notes: list[Note] = []
        end = 0
        for place, match in enumerate(_REFERENCE.finditer(checked)):
            note = self._note(_cited(match[1]), self._of_text.get((text, place)))
            stop = _STOP.match(checked, match.end())
            pieces += [checked[end : match.start()] + (stop[0] if stop else ""), note]
            notes.append(note)
            end = stop.end() if stop else match.end()
        return [*pieces, checked[end:]], notes

    def at(self, span: WantedPassages) -> Note:
        """Return a note on the place that a text was taken from."""
        return self._note([], self._of_span.get(span))

    def _note(self, references: Sequence[tuple[str, int]], passage: Excerpt | None) -> Note:
        self._n += 1
        by_kind: dict[str, list[tuple[str, str]]] = {}
        for reference in references:
            by_kind.setdefault(reference[0], []).append(self._known[reference])
        rows_of_kind = {kind: rows[:_MOST_NAMED] for kind, rows in by_kind.items()}
        titled = [kind for kind in ("Entities", "Relationships", "Reports") if kind in by_kind]
        return Note(
            number=self._n,
            passage=passage,
            entities=[
                Named(title, self._anchors.get(entity, ""))
                for entity, title in rows_of_kind.get("Entities", ())
            ],
            relationships=[title for _, title in rows_of_kind.get("Relationships", ())],
            reports=[title for _, title in rows_of_kind.get("Reports", ())],
            n_more=sum(len(by_kind[kind]) - len(rows_of_kind[kind]) for kind in titled),
        )

    def _checked(self, text: str) -> str:
        allowed: dict[str, set[int]] = {}
        for kind, number in self._known:
            allowed.setdefault(kind, set()).add(number)
        return check_references(text, allowed).text

    def _find_support(self) -> None:
        """Find the sentence behind each reference: of the chunks cited, the one most like it."""
        places: list[tuple[str, int]] = []
        words: list[str] = []
        requests: list[tuple[int, str, str]] = []
        for text in dict.fromkeys(self._texts):
            checked = self._checked(text)
            end = 0
            for n, match in enumerate(_REFERENCE.finditer(checked)):
                references = _cited(match[1])
                titles = [self._known[reference] for reference in references]
                requests += [
                    (len(places), kind, record)
                    for (kind, _), (record, _) in zip(references, titles, strict=True)
                ]
                places.append((text, n))
                words.append(
                    " ".join([checked[end : match.start()], *(title for _, title in titles)])
                )
                end = match.end()
        for place, passage in self._supporting(requests, words).items():
            self._of_text[places[place]] = passage

    def _supporting(
        self, requests: Sequence[tuple[int, str, str]], words: Sequence[str]
    ) -> dict[int, Excerpt]:
        """Return the passage most like its words at each place that (place, kind, id) support."""
        columns = [list(column) for column in zip(*requests, strict=True)] or [[], [], []]
        columns_by_name = dict(zip(("places", "kinds", "ids"), columns, strict=True))
        rows = self._index.rows(_SUPPORTING, most=_CANDIDATES, **columns_by_name)
        spans = [
            WantedPassages(row["chunk_id"], None, None, words[int(row["place"])]) for row in rows
        ]
        candidates: dict[int, list[Excerpt]] = {}
        for row, passage in zip(rows, passages(self._index, spans), strict=True):
            if passage is not None:
                candidates.setdefault(row["place"], []).append(passage)
        return {place: most_like(words[place], choices) for place, choices in candidates.items()}


def _cited(inside: str) -> list[tuple[str, int]]:
    """Return the (kind, number) pairs of a reference in the form that check_references gives."""
    return [
        (kind, int(number))
        for kind, numbers in _SECTION.findall(inside)
        for number in _NUMBERS.findall(numbers)
    ]


def clip(text: str, most: int) -> str:
    """Shorten a text to so many characters, at a word."""
    if len(text) <= most:
        return text
    cut = text[:most]
    head, space, _ = cut.rpartition(" ")
    return f"{head if space and len(head) > most // 2 else cut}…"
