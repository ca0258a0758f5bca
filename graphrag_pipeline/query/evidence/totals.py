"""Averages, totals and counts of the rows of a table: "What is the average of the fares?"

They are told where every word of a question is accounted for: by the table, a field, or a value
that chooses rows. A figure of other rows than those meant would be wrong, and look right.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from functools import cache
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.core.records import SEPARATOR, parted
from graphrag_pipeline.core.text import asked_language, fold, terms
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.query.evidence.asked_figures import BOUNDS
from graphrag_pipeline.query.evidence.record_tables import (
    Choice,
    RecordTable,
    choices_of,
    is_key,
    last_word,
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

_SHOWN, _FEWEST, _MOST_ALIKE, _MOST_NAMED = 3, 2, 4, 12
_Figures = tuple[RecordTable, str, list[Choice], dict[str, Any]]
_DECIMALS = {"average": 2, "total": 6}
_HOW = {"average": "on average", "total": "in all"}
_WORDS = word_lists("questions.txt")
_MEASURES, _MONIES, _COUNTS, _NAMES = (
    frozenset(map(fold, _WORDS[each]))
    for each in ("measure_field", "unit_field", "count_field", "name_field")
)
_FIGURES = """
SELECT count(DISTINCT value) FILTER (is_said) AS n_values, count(figure) AS n_figures,
       count(*) FILTER (is_said) AS n_said, bool_or(is_unsure) AS is_unsure,
       sum(figure) AS total, avg(figure) AS average, max(before) AS before, max(after) AS after,
       (SELECT count(*) FROM kept) AS n_chosen, (SELECT count(DISTINCT place) FROM cells) AS n_all,
       (SELECT count(*) FROM totals SEMI JOIN kept USING (place)) AS n_totals,
       count(*) FILTER (is_said AND place IN (FROM totals)) AS n_totals_said,
       (SELECT is_added FROM added) OR (SELECT is_odd FROM at_odds) AS is_added
FROM figures
"""
_FIRST = f"""
SELECT place FROM kept WHERE $field IS NOT NULL ORDER BY place LIMIT {_SHOWN}
"""
_ENDS = """
SELECT place FROM figures
QUALIFY row_number() OVER (ORDER BY figure DESC, place) = 1
     OR row_number() OVER (ORDER BY figure, place) = 1
ORDER BY figure DESC
"""


def told_of_totals(
    index: Release, question: AnalysedQuestion, sentences: Sequence[Sentence]
) -> list[RankedPassage]:
    """Return an average, a total or a number of rows that a question asks of a table.

    Then rows that it is made of: those with the highest and lowest figure, or the first ones. The
    figures of a field are averaged and added where all of its values are numbers. Nothing is told
    where several tables, fields or values may be meant.
    """
    is_asked = may_say(question, "average", "in_all", "counted")
    tables = tables_near(index, sentences) if is_asked else []
    if not tables:
        return []
    average, total, how_many, other, limit = _patterns()
    said = question.folded
    for column in chain.from_iterable(table.columns for table in tables):
        # "The average price per month" may be the name of a column, and "no" that of a number.
        if re.search(r"\w\W+\w", name := fold(column)) and other.search(name):
            said = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "", said)
    if other.search(said):
        return []
    if average.search(question.folded):
        return _told_of_figures(index, tables, question, average, "average")
    bare = question.without(how_many)
    asks = how_many.search(question.folded)
    if asks and not limit.search(question.folded):
        noun = _noun_after(question.folded[asks.end() :])
        if told := _told_of_rows(index, tables, bare.without(total), noun):
            return told
    return (
        _told_of_figures(index, tables, bare, total, "total")
        if total.search(question.folded)
        else []
    )


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    """Return what asks for averages, totals and counts, what makes other rows of those said, "can".

    Who asks how many columns a table can have asks for no number of rows.
    """
    other = "|".join(map(words_pattern, ("other_rows", "between", *BOUNDS)))
    return (
        *(re.compile(words_pattern(each)) for each in ("average", "in_all", "counted")),
        re.compile(other),
        re.compile(words_pattern("asks_limit")),
    )


def _noun_after(text: str) -> frozenset[str]:
    """Return the terms of the words up to the first that has none, as *are* and *in*."""
    own = (terms(bare_word(word)) for word in text.split())
    return frozenset(chain.from_iterable(takewhile(bool, own)))


def _told_of_figures(
    index: Release,
    tables: Sequence[RecordTable],
    question: AnalysedQuestion,
    kind: re.Pattern[str],
    asked_for: str,
) -> list[RankedPassage]:
    bare = question.without(kind)
    asked = frozenset(question.terms)
    named = {
        (n, field): len(own - asked)
        for n, table in enumerate(tables)
        for field in table.columns
        if not asked.isdisjoint(own := frozenset(terms(parted(field)))) and not is_key(field)
    }
    told: dict[int, list[_Figures]] = defaultdict(list)
    for (n, field), n_more in sorted(named.items(), key=lambda each: each[1])[:_MOST_NAMED]:
        if found := _figures_meant(index, tables[n], bare, field):
            told[n_more].append(found)
    best = told[min(told)] if told else []
    meant = [each for each in best if each[3]["n_figures"]]
    if len(meant) != 1 or not _are_addable(index, *meant[0]):
        return []
    table, field, choices, figures = meant[0]
    if sum(fold(each[1]) == fold(field) for each in best) > 1:
        # Another table has hours too, written as 7:30.
        return []
    figure = _written(figures[asked_for], _DECIMALS[asked_for])
    figure = f"{figures['before']}{figure}".replace(
        f"{figures['before']}-", f"-{figures['before']}"
    )
    said = f"{figure}{figures['after']} {_HOW[asked_for]}"
    rows = _rows(figures["n_figures"], figures["n_all"], choices)
    places = [row["place"] for row in table.figures(index, _ENDS, field, choices)]
    return table.passages(index, question, places, field, f"{field}{SEPARATOR}{said}, {rows}")


def _figures_meant(
    index: Release, table: RecordTable, question: AnalysedQuestion, field: str
) -> _Figures | None:
    """Return the values of a field that a question may mean, if all of it is accounted for."""
    choices = _choices(index, table, question, said_by_field(frozenset(question.terms), field))
    if choices is None:
        return None
    figures = _figures(index, table, field, choices)
    return (table, field, choices, figures) if figures["n_said"] else None


def _are_addable(
    index: Release,
    table: RecordTable,
    field: str,
    choices: Sequence[Choice],
    figures: Mapping[str, Any],
) -> bool:
    """Whether the values of a field are numbers, all of one unit, and none the total of others."""
    if not _FEWEST <= figures["n_figures"] == figures["n_said"] or figures["n_totals_said"]:
        return False
    if figures["is_unsure"] or figures["is_added"]:
        return False
    is_count = last_word(field) in _COUNTS - {"amount"}
    of_units = _MEASURES if is_count else _MEASURES | _MONIES
    others = (each for each in table.columns if last_word(each) in of_units and each != field)
    return all(_figures(index, table, each, choices)["n_values"] <= 1 for each in others)


def _told_of_rows(
    index: Release,
    tables: Sequence[RecordTable],
    question: AnalysedQuestion,
    noun: frozenset[str],
) -> list[RankedPassage]:
    n_said = [len(noun & table.words) for table in tables]
    alike = [table for table, n in zip(tables, n_said, strict=True) if n == max(n_said) > 0]
    if len(alike) > _MOST_ALIKE or any(_has_numbers(index, table, noun) for table in alike):
        return []
    counted = [told for table in alike if (told := _counted(index, table, question, noun))]
    return counted[0] if len(counted) == 1 else []


def _has_numbers(index: Release, table: RecordTable, noun: frozenset[str]) -> bool:
    """Whether a field tells how many there are: "How many births?" asks for the field births."""
    return any(
        _are_mostly_numbers(_figures(index, table, field, ()))
        for field in table.columns[1:]
        if (own := frozenset(terms(parted(field)))) and own <= noun and not is_key(field)
    )


def _is_row(index: Release, table: RecordTable, noun: frozenset[str]) -> bool:
    """Whether a row is called so: by its first column, or by its file if that names nothing else.

    The rows of visitors.csv are museums if each has another *museum* in its first column.
    """
    first = table.columns[0]
    if not noun.isdisjoint(terms(parted(first))) or noun.isdisjoint(table.row_words):
        return not noun.isdisjoint(table.row_words)
    if is_key(first) or last_word(first) in _NAMES:
        return True
    own = frozenset(terms(parted(first)))
    figures = _figures(index, table, first, ())
    is_named = said_by(own, table.row_words - own) or _are_mostly_numbers(figures)
    return bool(is_named) or figures["n_values"] < figures["n_all"]


def _counted(
    index: Release, table: RecordTable, question: AnalysedQuestion, noun: frozenset[str]
) -> list[RankedPassage]:
    """Return how many rows of a table, or values of a field, are meant, and the first of these.

    Nothing where the table does not account for all of the question.
    """
    n_said = {field: len(noun.intersection(terms(parted(field)))) for field in table.columns}
    most = max(n_said.values())
    named = [field for field, n in n_said.items() if n == most > 0]
    field = named[0] if len(named) == 1 else ""
    is_row = _is_row(index, table, noun)
    named_by = said_by_field(noun, field)
    if is_row and field and field != table.columns[0]:
        if yes_of(index, table, field):
            named_by = frozenset()
        elif _are_mostly_numbers(_figures(index, table, field, ())):
            return []
        field = ""
    if not field and not is_row:
        return []
    choices = _choices(index, table, question, named_by)
    if choices is None:
        return []
    shown = field or (choices[0].field if choices else table.columns[0])
    figures = _figures(index, table, shown, choices)
    is_number = _are_mostly_numbers(figures)
    if not figures["n_chosen"] or figures["n_totals"] or (is_number and not is_row):
        return []
    rows = _rows(figures["n_chosen"], figures["n_all"], choices)
    if field and not is_number and figures["n_values"] != figures["n_chosen"]:
        rows = f"{figures['n_values']:,} values of {field}, {rows}"
    first = [row["place"] for row in table.figures(index, _FIRST, shown, choices)]
    return table.passages(index, question, first, shown, rows.removeprefix("in "))


def _choices(
    index: Release, table: RecordTable, question: AnalysedQuestion, named: Set[str]
) -> list[Choice] | None:
    """Return what chooses rows of a table; None where that is not all of a question's other words.

    A word of a field that says yes or no chooses the rows that say yes, one of another field stands
    beside a value of it. One of what a row is called chooses if it is a value. A year that is both
    named by the field and a value may be either.
    """
    figures = frozenset(filter(str.isdigit, named))
    others = frozenset(question.terms) - named - _of_rows(asked_language())
    by_field = {field: said for field in table.columns if (said := said_by_field(others, field))}
    of_fields = frozenset[str]().union(*by_field.values())
    choosing = choices_of(index, table, question, others - of_fields | figures)
    if choosing is None:
        return None
    # "Articles in stock" of stock.csv are not all of them, if it has a field "in stock".
    whole = (terms(name) for field in table.columns if re.search(r"[\s_]", name := parted(field)))
    of_one = frozenset(chain.from_iterable(each for each in whole if others.issuperset(each)))
    own = said_by(others, table.own_words) - of_one
    choices = [each for each in choosing[0] if each.whole or not own.issuperset(terms(each.word))]
    is_clear = all(each.field and each.word not in figures for each in choices)
    if not is_clear or choosing[1] - own - figures:
        return None
    beside = (by_field.get(choice.field, frozenset()) for choice in choices)
    left = of_fields.difference(own, *beside)
    flags = {
        field: (yes, left & said)
        for field, said in by_field.items()
        if not left.isdisjoint(said) and (yes := yes_of(index, table, field))
    }
    choices.extend(Choice(yes, field, whole=True) for field, (yes, _) in flags.items())
    # Each word by one field: MOUNTAIN and MOUNTAINS may be others.
    said_once = Counter(chain.from_iterable(said for _, said in flags.values()))
    return choices if said_once == Counter(left) else None


@cache
def _of_rows(language: str | None) -> frozenset[str]:
    """Return the terms of words that say nothing but that rows are meant: "how many rows are".

    They are others in each language that is asked in.
    """
    return frozenset(terms(" ".join(_WORDS["of_rows"]).replace("_", " ")))


def _are_mostly_numbers(figures: Mapping[str, Any]) -> bool:
    return figures["is_unsure"] or 0 < figures["n_said"] < 2 * figures["n_figures"]


def _figures(
    index: Release, table: RecordTable, field: str, choices: Sequence[Choice]
) -> dict[str, Any]:
    return table.figures(index, _FIGURES, field, choices)[0]


def _rows(n_chosen: int, n_all: int, choices: Sequence[Choice]) -> str:
    """Return which rows are meant: "in 8 of 12 records with country: Norway"."""
    of = "" if n_chosen == n_all else f"{n_chosen:,} of "
    each = [
        f"{c.field}{SEPARATOR}{c.word}" if c.whole else f"*{c.word}* in {c.field}" for c in choices
    ]
    return f"in {of}{n_all:,} records{' with ' if each else ''}{' and '.join(each)}"


def _written(figure: float, n_decimals: int = 2) -> str:
    """Return a figure with its thousands parted and at most some decimals, or two digits.

    >>> _written(1234567.891), _written(12.0), _written(0.01234), _written(5.125, 6)
    ('1,234,567.89', '12', '0.012', '5.125')
    """
    if 0 < abs(figure) < (1 if n_decimals <= _FEWEST else 0.01):
        return f"{figure:.2g}"
    return f"{figure:,.{n_decimals}f}".rstrip("0").rstrip(".")
