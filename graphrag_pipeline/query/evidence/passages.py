"""Evidence: the sentences of retrieved chunks that say most to the question, with their places."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.core.prose import REPEATED_IN, readable
from graphrag_pipeline.core.records import named_key, record_line
from graphrag_pipeline.core.text import terms, terms_batch
from graphrag_pipeline.extraction.rules.sentences import sentence_spans
from graphrag_pipeline.query.citations import citations_of, cite_chunk
from graphrag_pipeline.query.evidence.answer_kinds import (
    AskedFor,
    name_another,
    shares_written,
    wanted_of,
)
from graphrag_pipeline.query.evidence.asked_fields import (
    asks_for_fact,
    is_asked_head,
    is_asked_key,
    is_asked_label,
    of_what_is_asked,
    said_names,
    says_asked_field,
    says_only_asked,
    with_owners,
    with_their_records,
)
from graphrag_pipeline.query.evidence.asked_figures import with_figures, with_unit
from graphrag_pipeline.query.evidence.code_lines import by_code_lines
from graphrag_pipeline.query.evidence.divisions import told_by_division
from graphrag_pipeline.query.evidence.document_facts import told_by_metadata, with_numbers
from graphrag_pipeline.query.evidence.latest import without_latest
from graphrag_pipeline.query.evidence.listed_items import by_items, item_told
from graphrag_pipeline.query.evidence.run_in_heads import with_run_in_heads
from graphrag_pipeline.query.evidence.sentences import Sentence, sentences_of
from graphrag_pipeline.query.evidence.series import told_of_series
from graphrag_pipeline.query.evidence.table_rows import CELL_END, ROW, by_rows, with_heads
from graphrag_pipeline.query.evidence.themes import is_name
from graphrag_pipeline.query.evidence.times import (
    latest_first,
    with_date,
    with_months,
    with_times,
)
from graphrag_pipeline.query.evidence.widening import RankedPassage, widened
from graphrag_pipeline.query.evidence.worth import (
    DEFINITION,
    FACT,
    FIELD,
    ITEM,
    LINES,
    OF_RECORDS,
    OPTION,
    SPARE,
    TITLE,
    TOLD_BY_FIELD,
    by_worth,
)
from graphrag_pipeline.query.memory.rows_in_memory import KeptRows
from graphrag_pipeline.query.operators.chunks import chunk_records
from graphrag_pipeline.query.operators.communities import about_communities
from graphrag_pipeline.query.operators.scoring import relevance
from graphrag_pipeline.query.question import AnalysedQuestion
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.trace import operator
from graphrag_pipeline.reports.references import check_references

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

RANK_WEIGHT = 0.15
ENTITY_WEIGHT = 0.1
ENTITIES_FOR_FULL_WEIGHT = 3
KIND_WEIGHT = 0.3
"""What a sentence gains that holds what is asked for: a date, a number, what something is."""
FIELD_WEIGHT = 0.4
"""What a line of a record gains whose field the question names, or loses beyond its bounds."""
FIGURES_WEIGHT = 0.2
"""What one gains that has the figures of the question as they are written there: 3.3a."""
LED_WEIGHT = 0.3
"""What one gains of a document whose title the best sentence says, and the question does not."""
REPEATED_WORTH = 0.5
"""And that of one which many of the retrieved documents have in the same words (a footer)."""
LEAST_SHARE = 0.45
"""A passage that scores less than this share of the best says nothing to the question."""

_NUMBERED = re.compile(r": (?:.*!)?row-\d+$")
_NAMING, _MOST_NAMING = re.compile(r"[^\n]{1,60}?: [^\W\d_][^\n]{0,60}$"), 3
_NAMES_SHOWN = 5
_MOST_DIVISIONS = 3
_LONGEST_THEME = 400
_SAID = 0.75
_SPEAKER = re.compile(r"^[A-Z][A-Z.'’ -]{2,40}:\s+")
_LATER_SPEAKER = re.compile(r"(?<=\n)[A-Z][A-Z.'’ -]{2,40}:\s+")
_BRACKETED = re.compile(r"\s*\([^()]*\)$")
# More than a document has characters: places in several documents, one after the other.
_FAR = 2**40

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


@operator
def find_evidence(
    index: Release, question: str, records: Sequence[Record], most: int, context: int = 0
) -> list[RankedPassage]:
    """Return up to ``most`` distinct passages that bear on a question, best first.

    Findings of reports, where there are any, stand as they are ranked. Otherwise the sentences of
    the chunks are ranked by words shared with the question, embedding similarity, rank of their
    chunk, how many of the retrieved entities they name, and whether they hold what is asked for: a
    date, a number, a person, a place, or who or what something is (``wanted``). A question, a
    heading or a line that ends in a colon is one with what follows it (``announcing``). Whole
    sentences of prose come before list items; code, rows of tables and headings stand only where
    they say more than any sentence; a record's line stands with the record's title, its key with
    the title of the record that it refers to. What many of the retrieved documents repeat stands
    after what one of them says; what scores less than ``LEAST_SHARE`` of the best is left out. A
    summary stands for the best chunks below it. Of a retrieval without text, the relationships are
    ranked by the first two and cite the chunk that supports them most.

    How a division begins that the question calls by its number comes before all (``divisions``), or
    which of a series it asks for (``series``), or what metadata say of a document that it calls by
    its title (``document_facts``). Each then gets the sentences around it that it needs, and an
    answer that is long enough has no more: see ``widening``. Each brings ``context`` sentences on
    either side.
    """
    asked = AnalysedQuestion.of(question)
    findings = [record for record in records if record.kind == "finding"]
    if findings:
        return _with_themes(index, _distinct(_stated(index, findings), most))
    chunks = list(dict.fromkeys(key for record in records for key in _chunks_of(record)))
    if not chunks:
        edges = [record for record in records if record.kind == "relationship"]
        return _distinct(_related(index, asked, edges), most)
    names = {record.title for record in records if record.kind == "entity"}
    sentences = list(sentences_of(index, chunks, context))
    wanted = wanted_of(index, asked, list(dict.fromkeys(s.chunk_id for s in sentences)))
    ranking = _telling(_ranked(index, asked, sentences, names, wanted, most))
    best = _distinct([each for each, _ in ranking], most + SPARE, frozenset(asked.terms))
    place_of = {passage.citation: sentence for passage, sentence in ranking}
    placed = [place_of[passage.citation] for passage in best]
    shown = widened(asked, best, placed, wanted, most, context)
    read_in = {sentence.chunk_id: sentence for sentence in placed}
    is_answered = wanted is not None and any(
        wanted.holds(read_in[passage.citation.chunk_id]._replace(quote=passage.text))
        for passage in shown
    )
    told = told_by_division(index, asked, sentences)[:_MOST_DIVISIONS]
    told = told or told_of_series(index, asked, sentences)
    told = told or told_by_metadata(index, asked, sentences, is_answered=is_answered)
    # A line of the text that says the same tells where it stands.
    lines = {passage.text.casefold(): passage for passage in shown}
    first = [lines.get(passage.text.casefold(), passage) for passage in told]
    rest = (each for each in shown if not any(_is_within(each, other) for other in first))
    return [*first, *rest][:most]


def _is_within(passage: RankedPassage, other: RankedPassage) -> bool:
    """Whether a passage is another, or words of its text."""
    place, whole = passage.citation, other.citation
    is_part = place.document_id == whole.document_id and (
        whole.start_char <= place.start_char and place.end_char <= whole.end_char
    )
    return passage == other or (is_part and passage.text in other.text)


def _telling(
    ranking: list[tuple[RankedPassage, Sentence]],
) -> list[tuple[RankedPassage, Sentence]]:
    """Return a ranking without lines of records that say their titles again, where others do not.

    "Style Guide, PEP 8 — PEP: 8" has most words of a question about it, and answers none.
    """
    telling = [row for row in ranking if not _says_title(*row)]
    return telling or ranking


def _says_title(passage: RankedPassage, sentence: Sentence) -> bool:
    title = sentence.window.row["title"]
    is_line = passage.text.startswith(record_line(title, ""))
    return is_line and {*terms(title)}.issuperset(terms(passage.text))


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
            names = ", ".join(
                name for _, name in theme.names if name not in passage.heading and is_name(name)
            )
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
    index: Release,
    question: AnalysedQuestion,
    sentences: Sequence[Sentence],
    names: set[str],
    wanted: AskedFor | None,
    most: int,
) -> list[tuple[RankedPassage, Sentence]]:
    sentences, kinds = _units(index, question, sentences)
    lines = with_heads(index, sentences, kinds, question.terms)
    texts, kinds = _with_subjects(index, question, sentences, lines, kinds)
    # Who speaks is no answer to a question about that person.
    said = [_unspoken(text, sentence) for text, sentence in zip(texts, sentences, strict=True)]
    for place, kind in enumerate(kinds):
        title, line = sentences[place].window.row["title"], lines[place]
        if kind == ROW or (kind == FACT and not asks_for_fact(question, title, line)):
            said[place] = line
    told = with_figures(question, with_times(index, question, sentences, said))
    told = with_run_in_heads(question, sentences, with_owners(question, told))
    told = with_numbers(question, sentences, told)
    records = _records_of(sentences, kinds)
    told = with_months(question, told, records)
    told = with_their_records(question, told, said, records, kinds, _files_of(sentences))
    about = without_latest(question)
    scores = _relevance(index, about.without_quantity, sentences, told)
    if index.lexical and not any(scores):
        return []
    named = _shares_named(said, names)
    with_rank = [
        score + RANK_WEIGHT / (1 + sentence.rank)
        for score, sentence in zip(scores, sentences, strict=True)
    ]
    led = _led_to(question, sentences, with_rank)
    written = shares_written(question, texts)
    repeated = _repeated(sentences, texts)
    totals: list[float] = []
    others = name_another(question, texts)
    gains = _gains(about, sentences, kinds, texts, told, scores, said_names(question, said))
    kinds = ["value" if k == "key" and g > 0 else k for k, g in zip(kinds, gains, strict=True)]
    columns = zip(sentences, texts, named, scores, with_rank, written, others, gains, strict=True)
    for place, (sentence, text, share, score, total, figures, is_other, gain) in enumerate(columns):
        is_led = bool(led) and sentence.document_id in led
        total += ENTITY_WEIGHT * share
        total += LED_WEIGHT * is_led + FIGURES_WEIGHT * figures
        is_asked = (score or is_led) and not is_other
        if is_asked and wanted is not None:
            total += KIND_WEIGHT * wanted.holds(sentence)
        total += FIELD_WEIGHT * gain + KIND_WEIGHT * (kinds[place] == DEFINITION)
        totals.append(total * (REPEATED_WORTH if text in repeated else 1.0))
    ranking = [
        (
            RankedPassage(texts[place], score, sentences[place].citation),
            sentences[place]._replace(leans=leans and not sentences[place].announces),
        )
        for place, score, leans in by_worth(sentences, said, kinds, totals, most, wanted)
    ]
    if ranking and wanted is not None and wanted.defines:
        floor = LEAST_SHARE * ranking[0][0].score
        ranking.sort(key=lambda row: row[0].score < floor or not wanted.holds(row[1]))
    return _by_turns(question, latest_first(index, question, ranking))


def _gains(
    about: AnalysedQuestion,
    sentences: Sequence[Sentence],
    kinds: Sequence[str],
    texts: Sequence[str],
    told: Sequence[str],
    scores: Sequence[float],
    names: Set[str],
) -> list[int]:
    """Return 1 for each line of a record whose field is asked for, -1 for one beyond its bounds.

    A line that the question itself says (the CVE of CVE-2021-7) gains nothing beside others. What
    stands below a heading gains where that is asked for in another word.
    """
    gains = [0] * len(texts)
    records = [""] * len(texts)
    for place, (kind, score) in enumerate(zip(kinds, scores, strict=True)):
        if score and kind in TOLD_BY_FIELD:
            title, line = sentences[place].window.row["title"], told[place]
            gains[place] = says_asked_field(about, title, texts[place], line, names)
            records[place] = f"{title} {line}"
        elif score and sentences[place].announces:
            gains[place] = int(is_asked_head(about, sentences[place].first))
    told_again = {n for n, gain in enumerate(gains) if gain and says_only_asked(about, texts[n])}
    documents = [sentence.document_id for sentence in sentences]
    others = {documents[n] for n, gain in enumerate(gains) if gain > 0 and n not in told_again}
    for place in told_again:
        gains[place] *= documents[place] not in others
    return of_what_is_asked(about, gains, texts, records)


def _relevance(
    index: Release, question: str, sentences: Sequence[Sentence], told: Sequence[str]
) -> list[float]:
    """Return how relevant what is told is; where nothing is, how relevant the titles are.

    What a message is about may be named by its subject alone.
    """
    scores = relevance(index, question, told, sharing=index.lexical)
    if index.lexical and not any(scores):
        titles = [sentence.window.row["title"] for sentence in sentences]
        return relevance(index, question, titles, sharing=True)
    return scores


def _units(
    index: Release, question: AnalysedQuestion, sentences: Sequence[Sentence]
) -> tuple[list[Sentence], list[str]]:
    """Return what may answer by itself, and its kind: rows and facts apart, labels as fields."""
    rows, kinds = by_code_lines(question, sentences, _kinds(index, sentences))
    rows, kinds = by_items(*by_rows(rows, kinds))
    for place, row in enumerate(rows):
        if kinds[place] in ("", "table") and is_asked_label(question, row.first):
            kinds[place] = kinds[place] if _is_spoken(row) else FIELD
        elif kinds[place] in ("", "code", "list") and row.is_option:
            kinds[place] = OPTION
        elif kinds[place] == "key" and is_asked_key(question, row.first):
            kinds[place] = "value"
        if kinds[place] in (FACT, FIELD):
            rows[place] = _alone(row)
    return rows, kinds


def _led_to(
    question: AnalysedQuestion, sentences: Sequence[Sentence], scores: Sequence[float]
) -> set[str]:
    """Return the documents whose titles the best sentence says, and the question does not.

    A question of several steps is answered where its first answer leads: to what is told of Port
    Rowan, if that is where the boat was built.
    """
    if not sentences:
        return set()
    lead = sentences[scores.index(max(scores))]
    rows = {sentence.rank: sentence.window.row for sentence in sentences}.values()
    titles = {row["document_id"]: row["title"] for row in rows}
    titles.pop(lead.document_id)
    asked, said = (f" {' '.join(words)} " for words in (question.terms, terms(lead.quote)))
    led: set[str] = set()
    for document, title in titles.items():
        words = f" {' '.join(terms(_BRACKETED.sub('', title)))} "
        if words.strip() and words in said and words not in asked:
            led.add(document)
    return led


def _alone(sentence: Sentence) -> Sentence:
    """Return a sentence that announces nothing of what follows."""
    end = sentence.start + len(sentence.first)
    return sentence._replace(last=sentence.place, end=end, quote=sentence.first)


def _is_spoken(sentence: Sentence) -> bool:
    """Whether somebody speaks it who speaks again around it: no label of a form stands so often."""
    speaker = _SPEAKER.match(sentence.first)
    text = f"\n{sentence.window.row['text']}"
    return speaker is not None and text.count(f"\n{speaker[0].rstrip()}") > 1


def _unspoken(text: str, sentence: Sentence) -> str:
    """Return a text without the names of those who speak it."""
    speaker = _SPEAKER.match(text)
    own = text[speaker.end() :] if speaker else text
    return _LATER_SPEAKER.sub("", own) if sentence.announces else own


def _repeated(sentences: Sequence[Sentence], quotes: Sequence[str]) -> set[str]:
    """Return the quotes that ``REPEATED_IN`` or more of the documents have."""
    documents_of: dict[str, set[str]] = {}
    for sentence, quote in zip(sentences, quotes, strict=True):
        documents_of.setdefault(quote, set()).add(sentence.document_id)
    return {text for text, ids in documents_of.items() if len(ids) >= REPEATED_IN}


def _by_turns(
    question: AnalysedQuestion, ranking: list[tuple[RankedPassage, Sentence]]
) -> list[tuple[RankedPassage, Sentence]]:
    """Put first the best that says something of each name, where a question compares several.

    Otherwise whoever asks to compare two would often be told of one.
    """
    names = question.compared
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


def _kinds(index: Release, sentences: Sequence[Sentence]) -> list[str]:
    """Return the kind of the block that each sentence begins in, if any."""
    import numpy as np

    kinds = [""] * len(sentences)
    if not index.has_rows("blocks"):
        return kinds
    own = [sentence.document_id for sentence in sentences]
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
        kinds[place] = names[row]
    return kinds


def _with_subjects(
    index: Release,
    question: AnalysedQuestion,
    sentences: Sequence[Sentence],
    texts: Sequence[str],
    kinds: Sequence[str],
) -> tuple[list[str], list[str]]:
    """Put the record's name before its lines, and what it refers to before a key: then a field."""
    pairs = zip(sentences, kinds, strict=True)
    chunks = {s.window.row["id"] for s, kind in pairs if kind in OF_RECORDS}
    has_links = chunks and index.has_rows("record_links")
    links = index.rows(_LINKS, ids=sorted(chunks)) if has_links else []
    targets = {(k["chunk_id"], k["start_char"]): k["target"] for k in links if k["names_target"]}
    subjects = {link["chunk_id"]: link["source"] for link in links if link["names_source"]}
    lines: list[str] = []
    kinds = list(kinds)
    for place, (sentence, text) in enumerate(zip(sentences, texts, strict=True)):
        row = sentence.window.row
        if kinds[place] == DEFINITION:
            text = sentence.first
        if kinds[place] == TITLE:
            text = with_date(question, text, row["text"])
        if kinds[place] in OF_RECORDS:
            if kinds[place] == ITEM:
                name_of = partial(_name_of, targets, row["id"])
                text = item_told(sentence, question.terms, name_of)
            elif target := targets.get((row["id"], sentence.start)):
                text, kinds[place] = named_key(text, target), FIELD
            if kinds[place] in LINES:
                text = with_date(question, with_unit(text, row["text"]), row["text"])
                text = _with_name(text, row)
            subject = subjects.get(row["id"])
            text = record_line(f"{subject} ({row['title']})" if subject else row["title"], text)
        lines.append(text)
    return lines, kinds


def _with_name(line: str, row: Mapping[str, Any]) -> str:
    """Return a line of a record that is only numbered after the names that it begins with."""
    if row["window_start"] or not _NUMBERED.search(row["title"]):
        return line
    lines = row["text"].split("\n", _MOST_NAMING)[:_MOST_NAMING]
    naming = takewhile(lambda each: _NAMING.match(each) and each not in line, lines)
    return CELL_END.join((*naming, line))


def _name_of(targets: Mapping[tuple[str, int], str], chunk: str, start: int) -> str | None:
    return targets.get((chunk, start))


def _files_of(sentences: Sequence[Sentence]) -> dict[str, str]:
    """Return the name of the file that each document is in, without its ending."""
    rows = {s.document_id: s.window.row["uri"] for s in sentences}
    names = {id_: uri.partition("#")[0].rpartition("/")[2] for id_, uri in rows.items()}
    return {id_: name.rpartition(".")[0] or name for id_, name in names.items()}


def _records_of(sentences: Sequence[Sentence], kinds: Sequence[str]) -> list[str]:
    """Return the document of each line of a record; "" of what is none."""
    pairs = zip(sentences, kinds, strict=True)
    return [s.document_id if k in LINES or k in (FACT, TITLE, ITEM) else "" for s, k in pairs]


def _distinct(
    passages: Sequence[RankedPassage], most: int, asked: Set[str] = frozenset()
) -> list[RankedPassage]:
    """Return the first ``most`` that do not say what an earlier one said, best first.

    What says the question again in another's words may yet say something else beyond it.
    """
    floor = LEAST_SHARE * max((passage.score for passage in passages), default=0.0)
    distinct_passages: dict[frozenset[str], RankedPassage] = {}
    for passage in passages:
        is_record = not passage.heading and passage.text != passage.citation.text
        words = frozenset([passage.text] if is_record else terms(passage.text) or [passage.text])
        parts = [part for part in (words, words - asked) if part]
        if passage.score >= floor and not any(
            all(len(part & earlier) >= _SAID * len(part) for part in parts)
            for earlier in distinct_passages
        ):
            distinct_passages[words] = passage
        if len(distinct_passages) == most:
            break
    return list(distinct_passages.values())
