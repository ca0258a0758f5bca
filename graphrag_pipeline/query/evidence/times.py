"""The time of documents, for a question that says a time or asks how things stand now.

A question of 2022 is asked of what was written in 2022, too, though it need not say that year. One
that asks for what is latest is answered by the latest document of those that say it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import TYPE_CHECKING, TypeVar

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.records import SEPARATOR, field_words
from graphrag_pipeline.core.text import terms, terms_batch
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.query.asked_dates import (
    asked_bounds,
    asked_months,
    asked_periods,
    dates_in,
)
from graphrag_pipeline.query.asked_documents import KEYS
from graphrag_pipeline.query.evidence.latest import asks_for_latest, version_of
from graphrag_pipeline.query.evidence.units import CELL_END
from graphrag_pipeline.query.question import AnalysedQuestion

if TYPE_CHECKING:
    from graphrag_pipeline.query.evidence.sentences import Sentence
    from graphrag_pipeline.query.evidence.units import Unit
    from graphrag_pipeline.query.evidence.widening import RankedPassage
    from graphrag_pipeline.query.release import Release

AS_GOOD = 0.75
"""The latest of what scores at least this share of the best answers what is asked for as latest."""

_DATES = f"""
SELECT id, list_filter([{", ".join(f"json_extract_string(metadata, '/{key}')" for key in KEYS)}],
                       lambda v: regexp_matches(v, '^\\d{{4}}(-|$)'))[1] AS date
FROM documents SEMI JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS id) USING (id)
"""
_WRITTEN = pattern_of(r"(?<!\d)((?:19|20)\d\d)(?:[-_.]?(0[1-9]|1[0-2])(?:[-_.]?([0-3]\d))?)?(?!\d)")
_IN_TEXT = pattern_of(
    r"(?<![\d./-])(?:(\d{4})-(\d\d)-(\d\d)|(\d\d?)([./])(\d\d?)\5(\d{4}))(?![\d/-])"
)
_MESSAGES = {(word,) for word in word_lists("nlp_records.txt")["said"]}
_DAY = len("1960-05-03")
_Ranking = list[tuple["RankedPassage", "Sentence"]]
_T = TypeVar("_T")


def tell_times(index: Release, question: AnalysedQuestion, units: Sequence[Unit]) -> None:
    """Tell units of the time that a question says with its words for that.

    Those are the sentences of a document that was written then, and those that say a date of it,
    if they or the title say something else of the question. Where there are such, the time alone
    is no answer, and what says another time, or whose title does, says nothing.
    """
    periods = question.read(_periods)
    if not periods:
        return
    dates = _dates(index, [unit.sentence for unit in units])
    times = frozenset(word for words, _ in periods for word in terms(words))
    others = frozenset(question.terms) - times
    words_of = [frozenset(line.split()) for line in terms_batch([unit.told for unit in units])]
    titles = terms_batch([unit.title for unit in units])
    # Whoever asks for a day asks for all of it.
    asks_day = any(len(period) == _DAY for _, period in periods)
    rows: list[tuple[Unit, frozenset[str], bool, list[str], bool]] = []
    for unit, words, title in zip(units, words_of, titles, strict=True):
        days = [*filter(None, (_named_date(unit.row), *_said_dates(unit.told)))]
        all_days = (_date(dates, unit.sentence), *days)
        then = [w for w, period in periods if any(day.startswith(period) for day in all_days)]
        is_asked = (asks_day and bool(then)) or not others.isdisjoint(words.union(title.split()))
        rows.append((unit, words, is_asked, then, bool(days)))
    is_told = any(is_asked and then for _, _, is_asked, then, _ in rows)
    for unit, words, is_asked, then, is_dated in rows:
        if is_told and is_dated and not then and not times <= words:
            unit.told = ""
        elif is_asked:
            unit.told = " ".join((unit.told, *then))
        elif is_told:
            unit.told = " ".join(sorted(words - times))


def tell_months(index: Release, question: AnalysedQuestion, units: Sequence[Unit]) -> None:
    """Tell the first dated line of each record with the month that a question says.

    Records of May are those whose first date is in May: an invoice of April may be due in May.
    """
    months = asked_months(question)
    dated: set[str] = set()
    for unit in units if months else ():
        record = unit.record
        if record and record not in dated and (said := _said_dates(unit.told)):
            dated.add(record)
            unit.told = " ".join((unit.told, *(word for word, m in months if m in said[0])))


def with_date(question: AnalysedQuestion, line: str, record: str) -> str:
    """Return a line of a record after the first that is dated, where a question says a time.

    Or asks when something was that a message says.
    """
    is_message = field_words(line.partition(SEPARATOR)[0])[-1:] in _MESSAGES
    asks = question.read(_periods) or (is_message and question.asks_for == "time")
    if not asks or _said_dates(line):
        return line
    dated = _dated(record)
    return f"{dated}{CELL_END}{line}" if dated else line


@lru_cache(maxsize=256)
def _dated(record: str) -> str:
    fields = (line for line in record.split("\n") if SEPARATOR in line and _said_dates(line))
    return next(fields, "")


def _periods(question: str) -> list[tuple[str, str]]:
    return asked_periods(question, datetime.now(UTC).date())


def latest_first(index: Release, question: AnalysedQuestion, ranking: _Ranking) -> _Ranking:
    """Put the latest first of what answers as well, where a question asks for it.

    By the dates of documents where two or more have one, by the versions in their titles, and by
    the versions in the sentences. What has none stays where it is.
    """
    if not ranking or not asks_for_latest(question):
        return ranking
    floor = AS_GOOD * ranking[0][0].score
    words = frozenset(question.terms)
    least = words.intersection(terms(ranking[0][0].text))
    best, others = [], []
    for row in ranking:
        is_as_good = row[0].score >= floor and least.issubset(terms(row[0].text))
        (best if is_as_good else others).append(row)
    dates = _dates(index, [sentence for _, sentence in best])
    for key in (_said_version, _title_version, partial(_date, dates)):
        best = _sorted_within(best, [key(sentence) for _, sentence in best])
    return [*best, *others]


def of_asked_time_first(index: Release, question: AnalysedQuestion, ranking: _Ranking) -> _Ranking:
    """Put what is of another time than a question asks for after what answers it as well.

    "Before April": a passage is of the time of its document, and of the dates that it says.
    """
    bounds = question.read(_bounds) if ranking else {}
    if not bounds:
        return ranking
    floor = AS_GOOD * ranking[0][0].score
    dates = _dates(index, [sentence for passage, sentence in ranking if passage.score >= floor])

    def is_other(row: tuple[RankedPassage, Sentence]) -> bool:
        sentence = row[1]
        days = (_date(dates, sentence), *_said_dates(sentence.quote), *dates_in(sentence.quote))
        return any(days) and not any(_is_within(day, bounds) for day in days if day)

    best = [row for row in ranking if row[0].score >= floor]
    return [*sorted(best, key=is_other), *(row for row in ranking if row[0].score < floor)]


def _bounds(question: str) -> dict[str, str]:
    return asked_bounds(question, datetime.now(UTC).date())


def _is_within(day: str, bounds: Mapping[str, str]) -> bool:
    """Whether a day, month or year may be in a time: 2024 in what begins with May 2024."""
    sides = ((sign, day[: len(end)], end[: len(day)]) for sign, end in bounds.items())
    return all(when >= end if sign == ">" else when <= end for sign, when, end in sides)


def _sorted_within(rows: Sequence[_T], keys: Sequence[object]) -> list[_T]:
    """Return rows with those that have a key in its order, greatest first, at their places."""
    places = [place for place, key in enumerate(keys) if key]
    moved = sorted(places, key=lambda place: keys[place], reverse=True)  # pyright: ignore
    ordered = list(rows)
    for place, source in zip(places, moved, strict=True):
        ordered[place] = rows[source]
    return ordered


def _date(dates: Mapping[str, str], sentence: Sentence) -> str:
    return dates.get(sentence.document_id, "")


def _title_version(sentence: Sentence) -> tuple[tuple[int, ...], str] | None:
    """Return the version in a document's title, or else in the name of its file: spec_v1.10.md."""
    row = sentence.window.row
    name = row["uri"].partition("#")[0].rpartition("/")[2].rpartition(".")[0]
    return version_of(row["title"]) or version_of(name.replace("_", " "))


def _said_version(sentence: Sentence) -> tuple[tuple[int, ...], str] | None:
    return version_of(sentence.quote)


def _said_dates(line: str) -> list[str]:
    """Return the days that a line says; of 2/6/2025 both, as it does not say which."""
    days: list[str] = []
    for y, m, d, first, sign, second, year in _IN_TEXT.findall(line):
        days.append(f"{y}-{m}-{d}" if y else f"{year}-{int(second):02}-{int(first):02}")
        days += [f"{year}-{int(first):02}-{int(second):02}"] if sign == "/" else []
    return days


def _dates(index: Release, sentences: Sequence[Sentence]) -> dict[str, str]:
    """Return when documents were written: by their metadata, else by their titles or names."""
    rows = {s.document_id: s.window.row for s in sentences}
    dates = {row["id"]: row["date"] or "" for row in index.rows(_DATES, ids=list(rows))}
    return {document: dates.get(document) or _named_date(row) for document, row in rows.items()}


def _named_date(row: Mapping[str, str]) -> str:
    """Return the time that the title of a document says, or its file's name; "" if none."""
    name = row["uri"].partition("#")[0].rpartition("/")[2]
    found = _WRITTEN.search(row["title"]) or _WRITTEN.search(name)
    return "-".join(filter(None, found.groups())) if found else ""
