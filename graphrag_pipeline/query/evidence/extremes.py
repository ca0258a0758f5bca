"""Records that have the most or the least of what a question asks for, of a whole table, or are
the first or the last by a date.

"Which country drinks the most wine?" is answered by the rows whose *wine_servings* are largest, and
these are hardly among those that are retrieved: all rows say the same words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from functools import cache
from typing import TYPE_CHECKING

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.records import parted
from graphrag_pipeline.core.text import fold, terms
from graphrag_pipeline.core.word_lists import word_pairs
from graphrag_pipeline.query.evidence.asked_figures import BOUNDS
from graphrag_pipeline.query.evidence.record_tables import (
    Choice,
    RecordTable,
    asked_columns,
    choices_of,
    is_key,
    said_by,
    said_by_field,
    tables_near,
    yes_of,
)
from graphrag_pipeline.query.evidence.widening import RankedPassage
from graphrag_pipeline.query.question import AnalysedQuestion, bare_word, may_say, words_pattern

if TYPE_CHECKING:
    from graphrag_pipeline.query.evidence.sentences import Sentence
    from graphrag_pipeline.query.release import Release

_SIGNS = {"the_last": 1, "the_first": -1, "the_most": 1, "the_least": -1}
"""Words that ask for the ends of an order, by what is put before others in it."""
_BY_DATE = ("the_last", "the_first")
_SHOWN, _MOSTLY, _FEWEST_SAID, _HALF = 3, 0.9, 2, 2
_DATED = """
SELECT place, value, place IN (FROM kept) AND place NOT IN (FROM totals) AS is_meant
FROM said WHERE field = $field
"""
_DATE = pattern_of(
    r"(?P<y>\d{4})(?:-(?P<m>\d\d)(?:-(?P<d>\d\d)(?:[T ](?P<time>\d\d:\d\d.*))?)?)?"
    r"|(?P<a>\d\d?)(?P<sign>[./-])(?P<b>\d\d?)(?P=sign)(?P<year>\d{4})(?: (?P<hour>\d\d:\d\d.*))?"
)
_YEARS = range(1400, 2101)
_MONTHS = 12
_MEASURED = word_pairs("questions.txt", "measured")
_HIGHEST = """
, meant AS (SELECT place, figure, is_said FROM figures ANTI JOIN totals USING (place))
SELECT place, n_figures, n_values, (SELECT is_added FROM added) AS is_added
FROM meant, (SELECT count(figure) AS n_figures, count(*) FILTER (is_said) AS n_values FROM meant)
ORDER BY {} * figure DESC NULLS LAST, place LIMIT {}
"""


def told_of_extremes(
    index: Release, question: AnalysedQuestion, sentences: Sequence[Sentence]
) -> list[RankedPassage]:
    """Return the records of a table that have the most, or the least, of a field asked for.

    The table is the one whose columns and name say most of the question, the field the one whose
    name does; of several fields the first record of each. Nothing is told where several tables are
    alike, or where values of the field are no numbers. Other words of the question that some of the
    rows have choose among these; nothing is told of a name that none has.
    """
    is_asked = may_say(question, *_SIGNS)
    tables = tables_near(index, sentences) if is_asked else []
    if not tables:
        return []
    bound, figure = _others()
    kind = next((each for each in _SIGNS if _pattern(each).search(question.folded)), "")
    if not kind or bound.search(question.folded):
        return []
    bare, sign = question.without(_pattern(kind)), _SIGNS[kind]
    asked = frozenset(bare.terms)
    least = min(_FEWEST_SAID, len(asked) // _HALF)
    asked_for = asked_columns(tables, asked | _measured(question), least)
    if asked_for is None:
        return []
    # Who has the most orders is not the one with the highest number of an order.
    table, said = asked_for
    best = [field for field in said if not is_key(field) and not yes_of(index, table, field)]
    # Which year has the most visitors is not the highest of the years.
    which = _which().match(bare.folded)
    rows = terms(which[1]) if which else ()
    best = [field for field in best if not said_by_field(frozenset(rows), field)] or best
    found = figure.search(bare.folded)
    if found and not any(found.group() in fold(each) for each in table.columns):
        # The highest average is one of several rows.
        return []
    choices = _choices(index, table, bare, asked, best)
    if choices is None:
        return []
    find = _latest if kind in _BY_DATE else _highest
    highest = {field: find(index, table, field, choices, sign) for field in best}
    n_words = {field: len(terms(parted(field))) for field, rows in highest.items() if rows}
    fields = [field for field, n in n_words.items() if n == min(n_words.values())][:_SHOWN]
    n_shown = _SHOWN if len(fields) == 1 else 1
    return [
        passage
        for field in fields
        for passage in table.passages(index, question, highest[field][:n_shown], field)
    ]


def _choices(
    index: Release,
    table: RecordTable,
    question: AnalysedQuestion,
    asked: Set[str],
    best: Sequence[str],
) -> list[Choice] | None:
    """Return what chooses rows: values, and fields said that say yes. None if that is unclear.

    "Which active member pays the highest fee?" is asked of rows with *active: yes*.
    """
    choosing = choices_of(index, table, question, asked - said_by(asked, table.words))
    if choosing is None:
        return None
    left = asked - said_by(asked, table.row_words).union(*(said_by_field(asked, f) for f in best))
    said = [field for field in table.columns if field not in best and said_by_field(left, field)]
    yes = {field: each for field in said if (each := yes_of(index, table, field))}
    if yes and re.search(words_pattern("other_rows"), question.folded):
        return None
    return [*choosing[0], *(Choice(each, field, whole=True) for field, each in yes.items())]


def _measured(question: AnalysedQuestion) -> frozenset[str]:
    """Return the terms of what the longest, the heaviest and the like have most of: the length."""
    words = _MEASURED.keys() & set(map(bare_word, question.folded.split()))
    return frozenset(terms(" ".join(_MEASURED[word] for word in words)))


@cache
def _which() -> re.Pattern[str]:
    """Return the pattern of which of what a question asks for: the word after it."""
    return re.compile(rf"\W*(?:{words_pattern('which')})\s+(\w+)")


@cache
def _others() -> tuple[re.Pattern[str], ...]:
    """Return what asks for other rows than these, and for a figure of several."""
    others = (*BOUNDS, "between", "left_out", "next_in_rank")
    sections = (others, ("average", "in_all"))
    return tuple(re.compile("|".join(map(words_pattern, each))) for each in sections)


@cache
def _pattern(section: str) -> re.Pattern[str]:
    return re.compile(words_pattern(section))


def _latest(
    index: Release, table: RecordTable, field: str, choices: Sequence[Choice], sign: int
) -> list[int]:
    """Return the places of the rows with the latest dates of a field, or the earliest.

    None where few values are dates, or where it is unsure which number of one is its month.
    """
    rows = table.figures(index, _DATED, field, choices)
    days = _days([row["value"] for row in rows])
    dated = [(day, row["place"]) for row, day in zip(rows, days, strict=True) if row["is_meant"]]
    found = sorted((day, -sign * place) for day, place in dated if day)
    is_date = len(found) >= max(1, _MOSTLY * len(dated))
    return [abs(place) for _, place in found[::-sign][:_SHOWN]] if is_date else []


def _days(values: Sequence[str]) -> list[str]:
    """Return dates as they are compared, all of one form; "" of what is none.

    >>> _days(["31.12.2023", "3.1.2024", ""]), _days(["3/1/2024", "4/2/2024"]), _days(["5/14/2024"])
    (['2023-12-31', '2024-01-03', ''], ['', ''], ['2024-05-14'])
    """
    found = [_DATE.fullmatch(value.strip()) for value in values]
    marks = {match["sign"] for match in found if match} - {None}
    # Days stand first but where programs write months so, and points and dashes stand in no such.
    firsts, seconds = (
        max((int(match[part] or 0) for match in found if match), default=0) for part in "ab"
    )
    is_month_first = seconds > _MONTHS and marks == {"/"}
    is_clear = not marks or (
        max(firsts, seconds) > _MONTHS >= min(firsts, seconds) if "/" in marks else firsts > 0
    )
    if len({bool(match["sign"]) for match in found if match}) > 1 or not is_clear:
        return [""] * len(values)
    return [_day(match, is_month_first) if match else "" for match in found]


def _day(match: re.Match[str], is_month_first: bool) -> str:
    if match["y"]:
        parts = (match["y"], match["m"], match["d"])
        return (
            "-".join(filter(None, parts)) + (match["time"] or "")
            if int(match["y"]) in _YEARS
            else ""
        )
    day, month = (match["b"], match["a"]) if is_month_first else (match["a"], match["b"])
    return f"{match['year']}-{int(month):02}-{int(day):02}{match['hour'] or ''}"


def _highest(
    index: Release, table: RecordTable, field: str, choices: Sequence[Choice], sign: int
) -> list[int]:
    """Return the places of the rows with the highest figures of a field, or the lowest.

    None where few values are figures.
    """
    rows = table.figures(index, _HIGHEST.format(sign, _SHOWN), field, choices)
    if rows and sign > 0 and rows[0]["is_added"]:
        return []
    is_number = rows and rows[0]["n_figures"] >= max(1, _MOSTLY * rows[0]["n_values"])
    return [row["place"] for row in rows[: rows[0]["n_figures"]]] if is_number else []
