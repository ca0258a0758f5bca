"""Evidence: the sentences of retrieved chunks that say most to the question, with their places.

Each part of it is a function in a module of its own, and stands in one of the lists below. What may
answer by itself is cut from the sentences (``_CUTS``), told with the words of the question that it
stands for (``_TELLS``), weighed, and put in order (``_ORDERS``); what answers some questions better
than any sentence comes before all (``told_first``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from functools import partial
from typing import TYPE_CHECKING

from graphrag_pipeline.core.languages import language_of
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.prose import REPEATED_IN
from graphrag_pipeline.core.records import record_line
from graphrag_pipeline.core.text import asked_language, terms, terms_batch
from graphrag_pipeline.query.asked_authors import asked_author
from graphrag_pipeline.query.evidence.announcements import is_reference
from graphrag_pipeline.query.evidence.answer_kinds import (
    AskedFor,
    name_another,
    shares_written,
    wanted_of,
)
from graphrag_pipeline.query.evidence.asked_fields import (
    is_asked_key,
    is_asked_label,
    tell_owners,
    tell_records,
    weigh_fields,
)
from graphrag_pipeline.query.evidence.asked_figures import tell_figures
from graphrag_pipeline.query.evidence.asked_sections import told_by_section
from graphrag_pipeline.query.evidence.changelogs import told_by_changelog
from graphrag_pipeline.query.evidence.code_lines import by_code_lines
from graphrag_pipeline.query.evidence.definitions import ASKED_SO, tell_below
from graphrag_pipeline.query.evidence.divisions import told_by_division
from graphrag_pipeline.query.evidence.document_facts import tell_titles, told_by_metadata
from graphrag_pipeline.query.evidence.entries import stands_in_entry, tell_entries
from graphrag_pipeline.query.evidence.extremes import told_of_extremes
from graphrag_pipeline.query.evidence.findings import (
    found_findings,
    found_relationships,
    with_themes,
)
from graphrag_pipeline.query.evidence.latest import without_latest
from graphrag_pipeline.query.evidence.listed_items import by_items
from graphrag_pipeline.query.evidence.run_in_heads import tell_run_in_heads
from graphrag_pipeline.query.evidence.section_heads import tell_headings
from graphrag_pipeline.query.evidence.sentences import (
    Sentence,
    sentences_of,
    without_item_number,
)
from graphrag_pipeline.query.evidence.series import told_of_series
from graphrag_pipeline.query.evidence.table_rows import by_rows
from graphrag_pipeline.query.evidence.times import (
    latest_first,
    of_asked_time_first,
    tell_months,
    tell_times,
)
from graphrag_pipeline.query.evidence.totals import told_of_totals
from graphrag_pipeline.query.evidence.units import (
    DEFINITION,
    FACT,
    FIELD,
    KEY,
    OPTION,
    VALUE,
    Unit,
    units_of,
)
from graphrag_pipeline.query.evidence.widening import RankedPassage, widened
from graphrag_pipeline.query.evidence.wording import is_spoken, say
from graphrag_pipeline.query.evidence.worth import SPARE, by_worth
from graphrag_pipeline.query.operators.scoring import relevance
from graphrag_pipeline.query.question import AnalysedQuestion
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.trace import operator

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
SECTION_WEIGHT = 0.5
"""What one gains below a heading that is all that the question says, else a share of it."""
LED_WEIGHT = 0.3
"""What one gains of a document whose title the best sentence says, and the question does not."""
REPEATED_WORTH = 0.5
"""And that of one which many of the retrieved documents have in the same words (a footer)."""
LEAST_SHARE = 0.45
"""A passage that scores less than this share of the best says nothing to the question."""

_SAID, _SURE = 0.75, 0.9
_BRACKETED = pattern_of(r"\s*\([^()]*\)$")

_Ranking = list[tuple[RankedPassage, Sentence]]


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

    What answers better than any sentence comes before all: how a division begins that the
    question calls by its number (``divisions``), which of a series it asks for (``series``),
    what all rows of a table have most of or in all (``extremes``, ``totals``), the version of a
    change (``changelogs``), what metadata say of a document, or a section that it says
    (``document_facts``, ``asked_sections``). Each gets the sentences around it that it needs.
    """
    asked = AnalysedQuestion.of(question)
    findings = [record for record in records if record.kind == "finding"]
    if findings:
        return with_themes(index, _distinct(found_findings(index, findings), most))
    chunks = list(dict.fromkeys(key for record in records for key in _chunks_of(record)))
    if not chunks:
        edges = [record for record in records if record.kind == "relationship"]
        return _distinct(found_relationships(index, asked, edges), most)
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
    by_metadata = partial(told_by_metadata, is_answered=is_answered)
    told_first = (
        told_by_division,
        told_of_series,
        told_of_extremes,
        told_of_totals,
        told_by_changelog,
        by_metadata,
        told_by_section,
    )
    told = next(filter(None, (tell(index, asked, sentences) for tell in told_first)), [])
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


def _telling(ranking: _Ranking) -> _Ranking:
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


def _ranked(
    index: Release,
    question: AnalysedQuestion,
    sentences: Sequence[Sentence],
    names: set[str],
    wanted: AskedFor | None,
    most: int,
) -> _Ranking:
    units = units_of(index, sentences)
    for cut in _CUTS:
        units = cut(question, units)
    say(index, question, units)
    for tell in _TELLS:
        tell(index, question, units)
    if wanted is not None and wanted.defines:
        for place in tell_below(question.subject, units):
            units[place].kind = DEFINITION
    author = asked_author(index, question)
    topic = author.topic if author else without_latest(question).without_quantity
    scores = _relevance(index, topic, units)
    if index.lexical and not any(scores):
        return []
    weigh_fields(question, units, scores)
    repeated = _repeated(units)
    totals = _totals(question, units, scores, names, wanted, repeated)
    surely: dict[int, int] = {}
    if wanted is not None and wanted.defines:
        said = (place for place, score in enumerate(scores) if score)
        surely = {place: _defines(units[place], wanted, repeated) for place in said}
        _prefer_language_asked(units, surely)
    sure = [place for place, how in surely.items() if how > 1]
    best = by_worth(units, totals, most, wanted, sure)
    if best and surely:
        floor = LEAST_SHARE * best[0][1]
        best.sort(key=lambda row: (row[1] < floor, -surely.get(row[0], 0)))
    if author:
        best.sort(key=lambda row: units[row[0]].document_id not in author.documents)
    ranking: _Ranking = []
    for place, score, leans in best:
        sentence = units[place].sentence
        leans = leans and not sentence.announces
        passage = RankedPassage(units[place].shown, score, sentence.citation)
        ranking.append((passage, sentence._replace(leans=leans)))
    for order in _ORDERS:
        ranking = order(index, question, ranking)
    return ranking


def _defines(unit: Unit, wanted: AskedFor, repeated: Set[str]) -> int:
    """Return how surely a unit says what something is: 3 if it asks so, 2, less surely 1, not 0.

    No heading does by itself, above the same words as others.
    """
    held = 1.0 if unit.kind == DEFINITION else wanted.holds(unit.sentence)
    if unit.shown in repeated or _is_bare_head(unit, held, repeated):
        return 0
    return (held > 0) + (held >= _SURE) + (held >= ASKED_SO)


def _prefer_language_asked(units: Sequence[Unit], surely: dict[int, int]) -> None:
    """Count what is said of it in other languages than the question's as less sure.

    The passage tells it by how it begins, or the words themselves where they are enough.
    """
    asked, said = asked_language(), [place for place, how in surely.items() if how]
    others = [
        place
        for place in said
        if language_of(units[place].row["text"]) != asked
        and not (asked and language_of(units[place].shown) == asked)
    ]
    if asked is not None and len(others) < len(said):
        for place in others:
            surely[place] -= 1


def _totals(
    question: AnalysedQuestion,
    units: Sequence[Unit],
    scores: Sequence[float],
    names: set[str],
    wanted: AskedFor | None,
    repeated: Set[str],
) -> list[float]:
    """Return what units are worth: their relevance, and what else counts for them."""
    texts = [without_item_number(unit.shown) for unit in units]
    named = _shares_named([unit.said for unit in units], names)
    with_rank = [
        score + RANK_WEIGHT / (1 + unit.sentence.rank)
        for score, unit in zip(scores, units, strict=True)
    ]
    led = _led_to(question, units, with_rank)
    written = shares_written(question, texts)
    others = name_another(question, texts)
    totals: list[float] = []
    columns = zip(units, named, scores, with_rank, written, others, strict=True)
    for unit, share, score, total, figures, is_other in columns:
        is_led = unit.document_id in led
        total += ENTITY_WEIGHT * share
        total += LED_WEIGHT * is_led + FIGURES_WEIGHT * figures
        held = 1.0
        if wanted is not None:
            held = wanted.holds(unit.sentence) if (score or is_led) and not is_other else 0.0
            held = 0.0 if _is_bare_head(unit, held, repeated) else held
            # A heading that asks the question comes first, and is no reason to leave others out.
            total += KIND_WEIGHT * (held if held < ASKED_SO else 1.0)
        is_said = held or unit.section == 1.0
        total += SECTION_WEIGHT * unit.section * (1.0 if is_said else 0.5)
        total += FIELD_WEIGHT * unit.gain + KIND_WEIGHT * (unit.kind == DEFINITION)
        is_repeated = unit.shown in repeated or (held == 0.0 and _below(unit) in repeated)
        totals.append(total * (REPEATED_WORTH if is_repeated else 1.0))
    return totals


def _relevance(index: Release, question: str, units: Sequence[Unit]) -> list[float]:
    """Return how relevant what is told is; where nothing is, how relevant the titles are.

    What a message is about may be named by its subject alone.
    """
    scores = relevance(index, question, [unit.told for unit in units], sharing=index.lexical)
    if index.lexical and not any(scores):
        return relevance(index, question, [unit.title for unit in units], sharing=True)
    return scores


def _by_labels(question: AnalysedQuestion, units: Sequence[Unit]) -> list[Unit]:
    """Return units; labels of forms as fields, what is asked by its key as what it says."""
    for unit in units:
        first = unit.sentence.first
        if unit.kind in ("", "table") and is_asked_label(question, first):
            is_of_all = not (is_spoken(unit.sentence) or stands_in_entry(unit))
            unit.kind = FIELD if is_of_all else unit.kind
        elif unit.kind in ("", "code", "list") and unit.sentence.is_option:
            unit.kind = OPTION
        elif unit.kind == KEY and is_asked_key(question, first):
            unit.kind = VALUE
        if unit.kind in (FACT, FIELD):
            start = unit.sentence.start
            unit.sentence = unit.sentence.part(start, start + len(first))
    return list(units)


def _led_to(question: AnalysedQuestion, units: Sequence[Unit], scores: Sequence[float]) -> set[str]:
    """Return the documents whose titles the best sentence says, and the question does not.

    A question of several steps is answered where its first answer leads: to what is told of Port
    Rowan, if that is where the boat was built.
    """
    if not units:
        return set()
    lead = units[scores.index(max(scores))].sentence
    titles = {unit.document_id: unit.title for unit in units}
    titles.pop(lead.document_id)
    asked, said = (f" {' '.join(words)} " for words in (question.terms, terms(lead.quote)))
    led: set[str] = set()
    for document, title in titles.items():
        words = f" {' '.join(terms(_BRACKETED.sub('', title)))} "
        if words.strip() and words in said and words not in asked:
            led.add(document)
    return led


def _repeated(units: Sequence[Unit]) -> set[str]:
    """Return the texts that ``REPEATED_IN`` or more of the documents have.

    Also below headings, which are not all the same.
    """
    documents_of: dict[str, set[str]] = {}
    heads_of: dict[str, set[str]] = {}
    for unit in units:
        documents_of.setdefault(unit.shown, set()).add(unit.document_id)
        if below := _below(unit):
            heads_of.setdefault(below, set()).add(unit.sentence.first)
    repeated = {text for text, ids in documents_of.items() if len(ids) >= REPEATED_IN}
    return repeated | {text for text, heads in heads_of.items() if len(heads) >= REPEATED_IN}


def _is_bare_head(unit: Unit, held: float, repeated: Set[str]) -> bool:
    """Whether a heading stands above words that others stand above, too, or a reference."""
    below = _below(unit)
    return held == 1.0 and (below in repeated or (bool(below) and is_reference(below)))


def _below(unit: Unit) -> str:
    return unit.sentence.announced if unit.sentence.announces else ""


def _by_turns(index: Release, question: AnalysedQuestion, ranking: _Ranking) -> _Ranking:
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


_CUTS: tuple[Callable[[AnalysedQuestion, Sequence[Unit]], list[Unit]], ...] = (
    by_code_lines,
    by_rows,
    by_items,
    _by_labels,
)
_TELLS: tuple[Callable[[Release, AnalysedQuestion, Sequence[Unit]], None], ...] = (
    tell_times,
    tell_figures,
    tell_owners,
    tell_run_in_heads,
    tell_headings,
    tell_entries,
    tell_titles,
    tell_months,
    tell_records,
)
_ORDERS: tuple[Callable[[Release, AnalysedQuestion, _Ranking], _Ranking], ...] = (
    latest_first,
    of_asked_time_first,
    _by_turns,
)
