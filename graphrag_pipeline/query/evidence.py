"""Evidence: the sentences of retrieved chunks that say most to the question, with their places."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from graphrag_pipeline.core.prose import REPEATED_IN, Prose, readable
from graphrag_pipeline.core.records import named_key, record_line
from graphrag_pipeline.core.text import terms, terms_batch
from graphrag_pipeline.extraction.rules.sentences import sentence_spans
from graphrag_pipeline.query.citations import citations_of, cite_chunk
from graphrag_pipeline.query.kept_rows import KeptRows
from graphrag_pipeline.query.operators.chunks import chunk_records, document_texts
from graphrag_pipeline.query.operators.communities import about_communities
from graphrag_pipeline.query.operators.scoring import relevance
from graphrag_pipeline.query.remembered_prose import read_sentences
from graphrag_pipeline.query.results import Citation, Record
from graphrag_pipeline.query.trace import operator
from graphrag_pipeline.query.wanted import asks_to_compare, test_for, without_quantity
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
REPEATED_WORTH = 0.5
"""And that of one which many of the retrieved documents have in the same words (a footer)."""
LEAST_SHARE = 0.35
"""A passage that scores less than this share of the best says nothing to the question."""

_OF_RECORDS = frozenset(("field", "key", "value"))
_CONTEXT_CHARS = 400
_NEIGHBOUR_CHARS = 250
_MOST_LEANED = 2
_NAMES_SHOWN = 5
_LONGEST_THEME = 400
_LONGEST_SENTENCE = 600
_LONGEST_JOINED = 1_200
# Sentences looked at beyond those asked for, in place of those that become part of another.
_SPARE = 3
# So many are read at once, until there are this many times as many whole sentences as are shown.
_READ_AT_ONCE, _READ_FOR_EACH = 24, 2
_SAID = 0.75
_WINDOWS_REMEMBERED = 1024
_SPEAKER = re.compile(r"^[A-Z][A-Z.'’ -]{2,40}:\s+")
_REST = rf".{{0,{_LONGEST_SENTENCE - 1}}}"
# More than a document has characters: places in several documents, one after the other.
_FAR = 2**40
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
SELECT document_id, start_char, end_char, kind FROM blocks ORDER BY document_id, start_char
"""
_BLOCKS_OF = f"""
SELECT * FROM ({_BLOCKS})
SEMI JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS document_id) USING (document_id)
ORDER BY document_id, start_char
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


class Sentence(NamedTuple):
    """A sentence of a chunk: the rank of the chunk, and its place among those around it.

    ``leans`` says whether it cannot be understood without the one before.
    """

    rank: int
    window: _Window
    place: int
    start: int
    end: int
    quote: str
    leans: bool = False

    @property
    def citation(self) -> Citation:
        """Where it stands, not numbered."""
        return self.window.cite(self.start, self.end)

    @property
    def chunk_id(self) -> str:
        """The chunk that it is read in."""
        return self.window.row["id"]


@dataclass(frozen=True)
class _Window:
    """A chunk and some of the document around it; spans are characters of the document.

    ``whole`` are the spans of the sentences that the window does not cut, by place among all.
    """

    row: dict[str, Any]
    whole: Mapping[int, tuple[int, int]]

    def text(self, start: int, end: int) -> str:
        offset = self.row["window_start"]
        return self.row["text"][start - offset : end - offset]

    def holds(self, start: int, end: int) -> bool:
        first = self.row["window_start"]
        return first <= start and end <= first + len(self.row["text"])

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
    side. What many of the retrieved documents repeat stands after what one of them says. A summary
    stands for the best chunks below it. Of a retrieval without text, the
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
    ranking = _ranked(index, question, sentences, names, most)
    best = _distinct([passage for passage, _ in ranking], most + _SPARE)
    place_of = {passage.citation: sentence for passage, sentence in ranking}
    return _widened(best, [place_of[passage.citation] for passage in best], most, context)


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
    plain = readable(bare)
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
    index: Release, question: str, sentences: Sequence[Sentence], names: set[str], most: int
) -> list[tuple[RankedPassage, Sentence]]:
    quotes = [sentence.quote for sentence in sentences]
    kinds = _kinds(index, sentences)
    texts, kinds = _with_subjects(index, sentences, quotes, kinds)
    content = without_quantity(question)
    # Who speaks is no answer to a question about that person.
    said = [_SPEAKER.sub("", text) for text in texts]
    scores = relevance(index, content, said, sharing=index.lexical)
    if index.lexical and not any(scores):
        return []
    named = _shares_named(said, names)
    holds = test_for(index, question, list(dict.fromkeys(s.chunk_id for s in sentences)))
    repeated = _repeated(sentences, quotes)
    totals: list[float] = []
    columns = zip(sentences, quotes, named, scores, strict=True)
    for sentence, quote, share, score in columns:
        total = score + RANK_WEIGHT / (1 + sentence.rank) + ENTITY_WEIGHT * share
        if score and holds is not None and holds(sentence.chunk_id, quote):
            total += KIND_WEIGHT
        totals.append(total * (REPEATED_WORTH if quote in repeated else 1.0))
    ranking = [
        (
            RankedPassage(texts[place], score, sentences[place].citation),
            sentences[place]._replace(leans=leans),
        )
        for place, score, leans in _by_worth(said, kinds, totals, most)
    ]
    return _by_turns(question, ranking)


def _repeated(sentences: Sequence[Sentence], quotes: Sequence[str]) -> set[str]:
    """Return the quotes that ``REPEATED_IN`` or more of the documents have."""
    documents_of: dict[str, set[str]] = {}
    for sentence, quote in zip(sentences, quotes, strict=True):
        documents_of.setdefault(quote, set()).add(sentence.window.row["document_id"])
    return {text for text, ids in documents_of.items() if len(ids) >= REPEATED_IN}


def _by_worth(
    texts: Sequence[str], kinds: Sequence[set[str]], totals: Sequence[float], most: int
) -> list[tuple[int, float, bool]]:
    """Return (place, score, leans) of texts, best first, totals weighed by what they read as.

    Fragments and code stand only before any whole sentence. As most of the time would go into
    reading, no more are read than may be among the best.
    """
    bounds = [t * WORTH[_best_within(k)] for t, k in zip(totals, kinds, strict=True)]
    order = sorted(range(len(texts)), key=lambda place: -bounds[place])
    whole: list[tuple[int, float, bool]] = []
    others: list[tuple[int, float, bool]] = []
    wanted = _READ_FOR_EACH * (most + _SPARE)
    for begin in range(0, len(order), _READ_AT_ONCE):
        places = order[begin : begin + _READ_AT_ONCE]
        scores = sorted((score for _, score, _ in whole), reverse=True)
        if len(scores) >= wanted and scores[wanted - 1] >= bounds[places[0]]:
            break
        read = read_sentences([texts[place] for place in places])
        for place, (reads_as, leans) in zip(places, read, strict=True):
            grade = _grade(reads_as, kinds[place])
            scored = (place, totals[place] * WORTH[grade], leans)
            (whole if grade >= Prose.ITEM else others).append(scored)
    best = max((score for _, score, _ in whole), default=0.0)
    ranking = [*whole, *(scored for scored in others if scored[1] > best)]
    return sorted(ranking, key=lambda scored: (-scored[1], scored[0]))


def _by_turns(
    question: str, ranking: list[tuple[RankedPassage, Sentence]]
) -> list[tuple[RankedPassage, Sentence]]:
    """Put first the best that says something of each name, where a question compares several.

    Otherwise whoever asks to compare two would often be told of one.
    """
    names = _names_in(question) if asks_to_compare(question) else []
    if len(names) < 2 or not ranking:
        return ranking
    floor = LEAST_SHARE * ranking[0][0].score
    words = [set(line.split()) for line in terms_batch([p.text for p, _ in ranking])]
    first: list[int] = []
    for name in names:
        has_name = (place for place, said in enumerate(words) if name <= said)
        place = next(has_name, None)
        if place is not None and ranking[place][0].score >= floor and place not in first:
            first.append(place)
    first.sort()
    rest = (place for place in range(len(ranking)) if place not in first)
    return [ranking[place] for place in (*first, *rest)]


def _names_in(question: str) -> list[frozenset[str]]:
    """Return the names in a question: runs of words that begin with a capital, but for the first.

    >>> [sorted(name) for name in _names_in("How do Port Rowan and Bergen differ?")]
    [['port', 'rowan'], ['bergen']]
    """
    runs: list[list[str]] = [[]]
    for word in question.split()[1:]:
        if word.lstrip("\"'“‘«(")[:1].isupper():
            runs[-1].append(word)
        if not word[0].isupper() or word[-1] in ",;:?!.":
            runs.append([])
    return list(dict.fromkeys(frozenset(terms(" ".join(run))) for run in runs if run))


def _shares_named(texts: Sequence[str], names: set[str]) -> list[float]:
    """Return how many of some names each text holds, as a share of what is enough, at most 1."""
    entities = [frozenset(term) for term in map(terms, sorted(names)) if term]
    of_any = frozenset().union(*entities)
    shares: list[float] = []
    for text in texts:
        said = of_any.intersection(terms(text)) if entities else frozenset()
        n_named = sum(entity <= said for entity in entities) if said else 0
        shares.append(min(1.0, n_named / ENTITIES_FOR_FULL_WEIGHT))
    return shares


def _kinds(index: Release, sentences: Sequence[Sentence]) -> list[set[str]]:
    """Return the kind of the block that each sentence begins in, if any."""
    import numpy as np

    kinds: list[set[str]] = [set() for _ in sentences]
    if not index.has_rows("blocks"):
        return kinds
    own = [sentence.window.row["document_id"] for sentence in sentences]
    place_of = {document: place for place, document in enumerate(dict.fromkeys(own))}
    blocks = index.held(_BLOCKS)
    if blocks is None:
        blocks = KeptRows(index.columns(_BLOCKS_OF, ids=list(place_of)))
    rows, documents = blocks.having("document_id", place_of)
    begins = documents * _FAR + blocks.values("start_char")[rows]
    ends = documents * _FAR + blocks.values("end_char")[rows]
    pairs = zip(own, sentences, strict=True)
    at = np.array([place_of[document] * _FAR + s.start for document, s in pairs], np.int64)
    before = np.searchsorted(begins, at, "right") - 1
    inside = np.flatnonzero((before >= 0) & (at < np.append(ends, 0)[before]))
    names = blocks.texts("kind")
    for place, row in zip(inside.tolist(), rows[before[inside]].tolist(), strict=True):
        kinds[place].add(names[row])
    return kinds


def _with_subjects(
    index: Release, sentences: Sequence[Sentence], texts: Sequence[str], kinds: Sequence[set[str]]
) -> tuple[list[str], list[set[str]]]:
    """Put the record's name before its lines, and what it refers to before a key: then a field."""
    pairs = zip(sentences, kinds, strict=True)
    chunks = {s.window.row["id"] for s, kind in pairs if kind & _OF_RECORDS}
    has_links = chunks and index.has_rows("record_links")
    links = index.rows(_LINKS, ids=sorted(chunks)) if has_links else []
    targets = {(k["chunk_id"], k["start_char"]): k["target"] for k in links if k["names_target"]}
    subjects = {link["chunk_id"]: link["source"] for link in links if link["names_source"]}
    lines: list[str] = []
    kinds = list(kinds)
    for place, (sentence, text) in enumerate(zip(sentences, texts, strict=True)):
        row = sentence.window.row
        if kinds[place] & _OF_RECORDS:
            if target := targets.get((row["id"], sentence.start)):
                text, kinds[place] = named_key(text, target), {"field"}
            subject = subjects.get(row["id"])
            text = record_line(f"{subject} ({row['title']})" if subject else row["title"], text)
        lines.append(text)
    return lines, kinds


def _grade(reads_as: Prose, kinds: set[str]) -> Prose:
    """Return what a text reads as, at best what the blocks are that it begins in.

    A record's line is read with the record's title, which makes it whole; a key alone says little.
    """
    best = _best_within(kinds)
    return best if kinds & _OF_RECORDS else min(reads_as, best)


def _best_within(kinds: set[str]) -> Prose:
    if kinds & _OF_RECORDS:
        return Prose.FRAGMENT if "key" in kinds else Prose.ITEM
    if kinds & {"code", "table"}:
        return Prose.CODE
    if kinds & {"heading", "title"}:
        return Prose.FRAGMENT
    return Prose.ITEM if kinds else Prose.SENTENCE


def _widened(
    passages: Sequence[RankedPassage], sentences: Sequence[Sentence], most: int, context: int
) -> list[RankedPassage]:
    """Give each sentence the neighbours it needs; those that so meet are one of ``most`` passages.

    A record's line, which stands with the record's title, needs none.
    """
    widened: list[RankedPassage] = []
    spans: list[tuple[str, int, int]] = []
    for passage, sentence, first in zip(passages, sentences, _firsts(sentences), strict=True):
        if len(widened) == most:
            break
        document = passage.citation.document_id
        if passage.text != passage.citation.text:
            widened.append(passage)
            spans.append((document, 0, 0))
            continue
        start, end = _reach(sentence, first, context)
        met = [n for n, (of, a, b) in enumerate(spans) if of == document and a < end and start < b]
        if met:
            start, end = min(start, spans[met[0]][1]), max(end, spans[met[0]][2])
        if not sentence.window.holds(start, end) or (met and end - start > _LONGEST_JOINED):
            continue
        citation = sentence.window.cite(start, end)
        passage = replace(passage, text=citation.text, citation=citation)
        place = slice(met[0], met[0] + 1) if met else slice(len(widened), None)
        widened[place], spans[place] = [passage], [(document, start, end)]
    plain = readable([passage.text for passage in widened])
    return [replace(p, text=text) for p, text in zip(widened, plain, strict=True)]


def _firsts(sentences: Sequence[Sentence]) -> list[int]:
    """Return the place of the first of each sentence and those that it leans on, one by one."""
    before = {
        (n, place): s.window.text(*s.window.whole[place])
        for n, s in enumerate(sentences)
        for place in range(s.place - _MOST_LEANED, s.place)
        if s.leans and place in s.window.whole
    }
    prose = dict(zip(before, read_sentences(list(before.values())), strict=True))
    firsts: list[int] = []
    for n, sentence in enumerate(sentences):
        first, start, leans = sentence.place, sentence.start, sentence.leans
        while leans and (n, first - 1) in prose:
            begin, end = sentence.window.whole[first - 1]
            grade, leans = prose[n, first - 1]
            if grade == Prose.CODE or "\n\n" in sentence.window.text(end, start):
                break
            first, start = first - 1, begin
        firsts.append(first)
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
    for rank, row in enumerate(_windows(index, chunks, around)):
        whole, within = _read_window(
            row["text"], row["window_start"], row["n_chars"], row["start_char"], row["end_char"]
        )
        window = _Window(row, whole)
        for place, start, end, quote in within:
            if (row["document_id"], end) not in places:
                places.add((row["document_id"], end))
                yield Sentence(rank, window, place, start, end, quote)


def _windows(index: Release, chunks: Sequence[str], around: int) -> Iterator[dict[str, Any]]:
    """Yield chunks, each with so many characters of its document around it as ``text``."""
    records = chunk_records(index, dict.fromkeys(chunks, 1.0))
    ids = dict.fromkeys(record.attributes["document_id"] for record in records)
    texts = document_texts(index, ids)
    if texts is None:
        yield from index.rows(_WINDOWS, ids=list(chunks), around=around)
        return
    for record in records:
        text = texts[record.attributes["document_id"]]
        start = max(0, record.attributes["start_char"] - around)
        yield {
            **record.attributes,
            "id": record.id,
            "title": record.title,
            "n_chars": len(text),
            "window_start": start,
            "text": text[start : record.attributes["end_char"] + around],
        }


@lru_cache(_WINDOWS_REMEMBERED)
def _read_window(
    text: str, offset: int, n_chars: int, chunk_start: int, chunk_end: int
) -> tuple[Mapping[int, tuple[int, int]], Sequence[tuple[int, int, int, str]]]:
    """Return the whole sentences of a window, and (place, start, end, text) of the chunk's own.

    The window begins at ``offset`` of a document of ``n_chars``. The sentences that touch the chunk
    are cut only if they are far longer than it. Some chunks come with many questions.
    """
    cut_end = offset + len(text) if offset + len(text) < n_chars else -1
    whole: dict[int, tuple[int, int]] = {}
    within: list[tuple[int, int, int, str]] = []
    for place, (start, end) in enumerate(_short_spans(text)):
        begin, stop = offset + start, offset + end
        if (begin > offset or offset == 0) and stop != cut_end:
            whole[place] = (begin, stop)
        if begin == offset > 0:
            begin = max(begin, chunk_start)
        if stop == cut_end:
            stop = min(stop, chunk_end)
        if max(begin, chunk_start) < min(stop, chunk_end):
            within.append((place, begin, stop, text[begin - offset : stop - offset]))
    return whole, within


def _short_spans(text: str) -> Sequence[tuple[int, int]]:
    """Return the spans of sentences, long ones in pieces."""
    spans: list[tuple[int, int]] = []
    for start, end in sentence_spans(text):
        if end - start <= _LONGEST_SENTENCE:
            spans.append((start, end))
        else:
            spans += (match.span() for match in _PIECE.finditer(text, start, end))
    return spans


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
