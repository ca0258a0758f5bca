"""Evidence: the sentences of retrieved chunks that say most to the question, with their places."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.core.prose import Prose, read_prose
from graphrag_pipeline.core.records import named_key, record_line
from graphrag_pipeline.core.text import terms
from graphrag_pipeline.extraction.rules.sentences import sentence_spans
from graphrag_pipeline.query.citations import citations_of, cite_chunk
from graphrag_pipeline.query.operators.chunks import chunk_records
from graphrag_pipeline.query.operators.communities import about_communities
from graphrag_pipeline.query.operators.scoring import relevance
from graphrag_pipeline.query.results import Citation, Record
from graphrag_pipeline.query.trace import operator
from graphrag_pipeline.query.wanted import test_for, without_quantity
from graphrag_pipeline.reports.references import check_references

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

RANK_WEIGHT = 0.15
ENTITY_WEIGHT = 0.1
ENTITIES_FOR_FULL_WEIGHT = 3
KIND_WEIGHT = 0.15
"""What a sentence gains that holds what is asked for: a date, a number, a person, a place."""
WORTH = {Prose.CODE: 0.35, Prose.FRAGMENT: 0.5, Prose.ITEM: 0.9, Prose.SENTENCE: 1.0}
"""What the score of a sentence is multiplied by, as it reads."""
LEAST_SHARE = 0.35
"""A passage that scores less than this share of the best says nothing to the question."""

_OF_RECORDS = frozenset(("field", "key", "value"))
_CONTEXT_CHARS = 400
_NEIGHBOUR_CHARS = 250
_MOST_LEANED = 2
_NAMES_SHOWN = 5
_LONGEST_THEME = 400
_LONGEST_SENTENCE = 600
_SAID = 0.75
_REST = rf".{{0,{_LONGEST_SENTENCE - 1}}}"
_PIECE = re.compile(rf"\S(?:{_REST}(?=\s|$)|{_REST})", re.DOTALL)

# A chunk with some of the document around it, so that sentences at its edges are whole.
_WINDOWS = """
SELECT c.id, c.document_id, d.title, d.uri, c.start_char, c.end_char, d.n_chars,
       greatest(c.start_char - $around, 0) AS window_start,
       substr(d.text, greatest(c.start_char - $around, 0) + 1,
              c.end_char + $around - greatest(c.start_char - $around, 0)) AS text
FROM (SELECT unnest($ids::JSON::VARCHAR[]) AS id,
             generate_subscripts($ids::JSON::VARCHAR[], 1) AS place)
JOIN chunks c USING (id) JOIN documents d ON d.id = c.document_id ORDER BY place
"""

_BLOCKS = """
SELECT c.id, b.start_char, b.end_char, b.kind FROM blocks b
JOIN chunks c ON c.document_id = b.document_id
    AND b.start_char < c.end_char + $around AND b.end_char > c.start_char - $around
SEMI JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS id) wanted ON wanted.id = c.id
"""

# What the keys in records refer to; a record without a name is known by the first of them.
_LINKS = """
SELECT l.chunk_id, c.start_char + l.start_char AS start_char, l.source, l.target, l.names_source,
       l.names_target
FROM record_links l JOIN chunks c ON c.id = l.chunk_id
SEMI JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS id) wanted ON wanted.id = c.id
"""

_SUPPORT = """
SELECT relationship_id AS id, first(chunk_id ORDER BY n_mentions DESC, chunk_id) AS chunk_id
FROM relationship_chunks
SEMI JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS relationship_id) USING (relationship_id)
GROUP BY relationship_id
"""


@dataclass(frozen=True)
class RankedPassage:
    """A statement that bears on a question, and the place it is taken from or rests on.

    ``heading`` is the title of the report that a finding comes from; ``theme`` its community, where
    the question asks for themes.
    """

    text: str
    score: float
    citation: Citation
    heading: str = ""
    theme: str = ""


@dataclass(frozen=True)
class Sentence:
    """A sentence of a chunk: the rank of the chunk, and its place among those around it."""

    rank: int
    window: _Window
    place: int
    start: int
    end: int

    @property
    def citation(self) -> Citation:
        """Where it stands, not numbered."""
        return self.window.cite(self.start, self.end)


@dataclass(frozen=True)
class _Window:
    """A chunk and some of the document around it; spans are characters of the document.

    ``whole`` are the spans of the sentences that the window does not cut, by place among all.
    """

    row: dict[str, Any]
    whole: dict[int, tuple[int, int]]

    def text(self, start: int, end: int) -> str:
        offset = self.row["window_start"]
        return self.row["text"][start - offset : end - offset]

    def cite(self, start: int, end: int) -> Citation:
        return Citation(
            number=0,
            document_id=self.row["document_id"],
            document_title=self.row["title"],
            uri=self.row["uri"],
            chunk_id=self.row["id"],
            start_char=start,
            end_char=end,
            text=self.text(start, end),
        )


@operator
def find_evidence(
    index: Release, question: str, records: Sequence[Record], most: int, context: int = 0
) -> list[RankedPassage]:
    """Return up to ``most`` distinct passages that bear on a question, best first.

    Findings of reports, where there are any, stand as they are ranked. Otherwise the sentences of
    the chunks are ranked by words shared with the question, embedding similarity, rank of their
    chunk, how many of the retrieved entities they name, and whether they hold what is asked for: a
    date, a number, a person, a place. Whole sentences of prose come before list items; code, rows
    of tables and headings stand only where they say more than any sentence; a record's line stands
    with the record's title, its key with the title of the record that it refers to. A sentence
    that leans on the one before it brings that, and each brings ``context`` sentences on either
    side. A summary stands for the best chunks below it. Of a retrieval without text, the
    relationships are ranked by the first two and cite the chunk that supports them most.
    """
    findings = [record for record in records if record.kind == "finding"]
    if findings:
        return _with_themes(index, _distinct(_stated(index, findings), most))
    chunks = list(dict.fromkeys(key for record in records for key in _chunks_of(record)))
    if not chunks:
        edges = [record for record in records if record.kind == "relationship"]
        return _distinct(_related(index, question, edges), most)
    names = {record.title for record in records if record.kind == "entity"}
    sentences = list(_sentences(index, chunks, context))
    ranking = _ranked(index, question, sentences, names)
    best = _distinct([passage for passage, _ in ranking], most)
    place_of = {passage.citation: sentence for passage, sentence in ranking}
    return _widened(best, [place_of[passage.citation] for passage in best], context)


def _chunks_of(record: Record) -> Sequence[str]:
    if record.kind == "summary":
        return record.attributes["chunk_ids"]
    return [record.id] if record.kind == "chunk" else []


def _stated(index: Release, findings: Sequence[Record]) -> list[RankedPassage]:
    citations = citations_of(index, findings)
    return [
        RankedPassage(
            finding.text,
            finding.score,
            citation,
            finding.title,
            finding.attributes["community_id"] if finding.attributes.get("is_theme") else "",
        )
        for finding, citation in zip(findings, citations, strict=True)
    ]


def _with_themes(index: Release, passages: Sequence[RankedPassage]) -> list[RankedPassage]:
    """Say of themes how large they are, in how many documents, and which names are key to them."""
    bare = [check_references(passage.text, {}).text for passage in passages]
    plain = read_prose(bare)["plain"].to_pylist()
    passages = [replace(p, text=text) for p, text in zip(passages, plain, strict=True)]
    about = about_communities(index, [p.theme for p in passages if p.theme], _NAMES_SHOWN)
    n_documents = index.facts.counts["n_documents"]
    widened = []
    for passage in passages:
        if theme := about.get(passage.theme):
            facts = f"{theme.size} names"
            if n_documents > 1:
                facts += f" in {theme.n_documents} of {n_documents} documents"
            names = ", ".join(n for _, n in theme.names if n not in passage.heading)
            heading = f"{passage.heading} ({facts}{f'; also {names}' if names else ''})"
            text = _beginning(passage.text)
            passage = replace(passage, heading=heading, text=text)
        widened.append(passage)
    return widened


def _beginning(text: str) -> str:
    """Return the first sentences of a text, as many as are short enough to be read in a list."""
    ends = [end for _, end in sentence_spans(text)]
    return text[: max((end for end in ends if end <= _LONGEST_THEME), default=min(ends, default=0))]


def _related(index: Release, question: str, edges: Sequence[Record]) -> list[RankedPassage]:
    rows = {row["id"]: row["chunk_id"] for row in index.rows(_SUPPORT, ids=[e.id for e in edges])}
    chunks = chunk_records(index, dict.fromkeys(rows.values(), 1.0))
    citation_of = {chunk.id: cite_chunk(chunk) for chunk in chunks}
    edges_with_chunks = [edge for edge in edges if rows.get(edge.id) in citation_of]
    scores = relevance(
        index, question, [f"{edge.title}: {edge.text}" for edge in edges_with_chunks]
    )
    passages = [
        RankedPassage(edge.text, score, citation_of[rows[edge.id]], edge.title)
        for edge, score in zip(edges_with_chunks, scores, strict=True)
    ]
    return sorted(passages, key=lambda passage: -passage.score)


def _ranked(
    index: Release, question: str, sentences: Sequence[Sentence], names: set[str]
) -> list[tuple[RankedPassage, Sentence]]:
    citations = [sentence.citation for sentence in sentences]
    texts = [citation.text for citation in citations]
    kinds = _kinds(index, sentences)
    texts = _with_subjects(index, sentences, texts, kinds)
    content = without_quantity(question)
    scores = relevance(index, content, texts)
    if index.lexical:
        question_words = set(terms(content))
        scores = [
            score if question_words & set(terms(text)) else 0.0
            for score, text in zip(scores, texts, strict=True)
        ]
        if not any(scores):
            return []
    entities = [frozenset(term) for term in map(terms, sorted(names)) if term]
    holds = test_for(index, question, list(dict.fromkeys(c.chunk_id for c in citations)))
    passages = []
    grades = _grades(texts, kinds)
    for sentence, citation, text, score, grade in zip(
        sentences, citations, texts, scores, grades, strict=True
    ):
        total = _score(text, score, sentence.rank, entities)
        if score and holds is not None and holds(citation.chunk_id, citation.text):
            total += KIND_WEIGHT
        passage = RankedPassage(text, total * WORTH[grade], citation)
        passages.append((grade, passage, sentence))
    best = max((p.score for grade, p, _ in passages if grade >= Prose.ITEM), default=0.0)
    ranking = [
        (passage, sentence)
        for grade, passage, sentence in passages
        if grade >= Prose.ITEM or passage.score > best
    ]
    return sorted(ranking, key=lambda pair: -pair[0].score)


def _score(text: str, relevant: float, rank: int, entities: Sequence[frozenset[str]]) -> float:
    word_set = set(terms(text))
    share_of_entities = sum(entity <= word_set for entity in entities) / ENTITIES_FOR_FULL_WEIGHT
    return relevant + RANK_WEIGHT / (1 + rank) + ENTITY_WEIGHT * min(1.0, share_of_entities)


def _kinds(index: Release, sentences: Sequence[Sentence]) -> list[set[str]]:
    """Return the kinds of the blocks that each sentence begins in."""
    if not index.has_table("blocks"):
        return [set() for _ in sentences]
    chunks = list({sentence.window.row["id"] for sentence in sentences})
    blocks: dict[str, list[tuple[int, int, str]]] = {}
    for row in index.rows(_BLOCKS, ids=chunks, around=_CONTEXT_CHARS):
        block = (row["start_char"], row["end_char"], row["kind"])
        blocks.setdefault(row["id"], []).append(block)
    return [
        {
            kind
            for begin, end, kind in blocks.get(sentence.window.row["id"], ())
            if begin <= sentence.start < end
        }
        for sentence in sentences
    ]


def _with_subjects(
    index: Release, sentences: Sequence[Sentence], texts: Sequence[str], kinds: Sequence[set[str]]
) -> list[str]:
    """Put the record's name before its lines, and what it refers to before a key."""
    pairs = zip(sentences, kinds, strict=True)
    chunks = {s.window.row["id"] for s, kind in pairs if kind & _OF_RECORDS}
    has_links = chunks and index.has_table("record_links")
    links = index.rows(_LINKS, ids=sorted(chunks)) if has_links else []
    targets = {(k["chunk_id"], k["start_char"]): k["target"] for k in links if k["names_target"]}
    subjects = {link["chunk_id"]: link["source"] for link in links if link["names_source"]}
    lines: list[str] = []
    for sentence, text, kind in zip(sentences, texts, kinds, strict=True):
        row = sentence.window.row
        if kind & _OF_RECORDS:
            if target := targets.get((row["id"], sentence.start)):
                text = named_key(text, target)
            subject = subjects.get(row["id"])
            text = record_line(f"{subject} ({row['title']})" if subject else row["title"], text)
        lines.append(text)
    return lines


def _grades(texts: Sequence[str], kinds: Sequence[set[str]]) -> list[Prose]:
    """Return what each text reads as, and at best what the blocks are that it begins in.

    A record's line is read with the record's title, which makes it whole.
    """
    grades = [Prose(grade) for grade in read_prose(texts)["grade"].to_pylist()]
    return [
        Prose.ITEM if kind & _OF_RECORDS else min(grade, _best_within(kind))
        for grade, kind in zip(grades, kinds, strict=True)
    ]


def _best_within(kinds: set[str]) -> Prose:
    if kinds & {"code", "table"}:
        return Prose.CODE
    if kinds & {"heading", "title"}:
        return Prose.FRAGMENT
    return Prose.ITEM if kinds else Prose.SENTENCE


def _widened(
    passages: Sequence[RankedPassage], sentences: Sequence[Sentence], context: int
) -> list[RankedPassage]:
    """Give each sentence the neighbours it needs; one that is among them stands there alone.

    A record's line, which stands with the record's title, needs none.
    """
    widened: list[RankedPassage] = []
    covered: list[tuple[str, int, int]] = []
    for passage, sentence, first in zip(passages, sentences, _firsts(sentences), strict=True):
        document = passage.citation.document_id
        if passage.text != passage.citation.text:
            widened.append(passage)
            continue
        if any(
            document == other and begin <= sentence.start and sentence.end <= stop
            for other, begin, stop in covered
        ):
            continue
        start, end = _reach(sentence, first, context)
        covered.append((document, start, end))
        citation = sentence.window.cite(start, end)
        widened.append(replace(passage, text=citation.text, citation=citation))
    plain = read_prose([passage.text for passage in widened])["plain"].to_pylist()
    return [replace(p, text=text) for p, text in zip(widened, plain, strict=True)]


def _firsts(sentences: Sequence[Sentence]) -> list[int]:
    """Return the place of the first of each sentence and those that it leans on, one by one."""
    spans = [
        [
            s.window.whole[place]
            for place in range(s.place - _MOST_LEANED, s.place)
            if place in s.window.whole
        ]
        + [(s.start, s.end)]
        for s in sentences
    ]
    texts = [s.window.text(*span) for s, of in zip(sentences, spans, strict=True) for span in of]
    read = read_prose(texts)
    prose = list(zip(read["grade"].to_pylist(), read["leans"].to_pylist(), strict=True))
    firsts = []
    for sentence, of in zip(sentences, spans, strict=True):
        told, prose = prose[: len(of)], prose[len(of) :]
        first = len(of) - 1
        while (
            first > 0
            and told[first][1]
            and told[first - 1][0] != Prose.CODE
            and "\n\n" not in sentence.window.text(of[first - 1][1], of[first][0])
        ):
            first -= 1
        firsts.append(sentence.place - (len(of) - 1 - first))
    return firsts


def _reach(sentence: Sentence, first: int, context: int) -> tuple[int, int]:
    """Return the span from the sentence at a place, with ``context`` more on either side."""
    whole, last = sentence.window.whole, sentence.place
    start, end = sentence.start, sentence.end
    for place in range(sentence.place - 1, first - context - 1, -1):
        if place not in whole:
            break
        start = whole[place][0]
    for place in range(last + 1, last + context + 1):
        if place not in whole:
            break
        end = whole[place][1]
    return start, end


def _sentences(index: Release, chunks: Sequence[str], context: int = 0) -> Iterator[Sentence]:
    """Yield sentences with the rank of their chunk, each once, whole across a chunk's edges."""
    places: set[tuple[str, int]] = set()
    around = _CONTEXT_CHARS + context * _NEIGHBOUR_CHARS
    for rank, row in enumerate(index.rows(_WINDOWS, ids=list(chunks), around=around)):
        window, within = _read_window(row)
        for place, start, end in within:
            if (row["document_id"], end) not in places:
                places.add((row["document_id"], end))
                yield Sentence(rank, window, place, start, end)


def _read_window(row: dict[str, Any]) -> tuple[_Window, list[tuple[int, int, int]]]:
    """Return a window, and (place, start, end) of the sentences that touch its chunk.

    Those are cut only if they are far longer than it.
    """
    text, offset = row["text"], row["window_start"]
    cut_end = offset + len(text) if offset + len(text) < row["n_chars"] else -1
    whole: dict[int, tuple[int, int]] = {}
    within: list[tuple[int, int, int]] = []
    for place, (start, end) in enumerate(_short_spans(text, sentence_spans(text))):
        begin, stop = offset + start, offset + end
        if (begin > offset or offset == 0) and stop != cut_end:
            whole[place] = (begin, stop)
        if begin == offset > 0:
            begin = max(begin, row["start_char"])
        if stop == cut_end:
            stop = min(stop, row["end_char"])
        if max(begin, row["start_char"]) < min(stop, row["end_char"]):
            within.append((place, begin, stop))
    return _Window(row, whole), within


def _short_spans(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for start, end in spans:
        if end - start <= _LONGEST_SENTENCE:
            yield start, end
        else:
            yield from (match.span() for match in _PIECE.finditer(text, start, end))


def _distinct(passages: Sequence[RankedPassage], most: int) -> list[RankedPassage]:
    """Return the first ``most`` that do not say what an earlier one said, best first."""
    floor = LEAST_SHARE * max((passage.score for passage in passages), default=0.0)
    distinct_passages: dict[frozenset[str], RankedPassage] = {}
    for passage in passages:
        is_record = not passage.heading and passage.text != passage.citation.text
        words = frozenset([passage.text] if is_record else terms(passage.text) or [passage.text])
        if passage.score >= floor and all(
            _share_said(words, earlier) < _SAID for earlier in distinct_passages
        ):
            distinct_passages[words] = passage
        if len(distinct_passages) == most:
            break
    return list(distinct_passages.values())


def _share_said(words: frozenset[str], earlier: frozenset[str]) -> float:
    return len(words & earlier) / len(words)
