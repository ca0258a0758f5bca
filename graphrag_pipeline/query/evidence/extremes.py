"""Records that have the most or the least of what a question asks for, of a whole table.

"Which country drinks the most wine?" is answered by the rows whose *wine_servings* are largest, and
these are hardly among those that are retrieved: all rows say the same words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from functools import cache
from typing import TYPE_CHECKING

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

_SHOWN, _MOSTLY, _FEWEST_SAID, _HALF = 3, 0.9, 2, 2
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
    is_asked = may_say(question, "the_most", "the_least")
    tables = tables_near(index, sentences) if is_asked else []
    if not tables:
        return []
    most, least, bound, figure = _patterns()
    sign = 1 if most.search(question.folded) else -1 if least.search(question.folded) else 0
    if not sign or bound.search(question.folded):
        return []
    bare = question.without(most if sign > 0 else least)
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
    highest = {field: _highest(index, table, field, choices, sign) for field in best}
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
def _patterns() -> tuple[re.Pattern[str], ...]:
    """Return what asks for the most, the least, other rows than these, and a figure of several."""
    others = (*BOUNDS, "between", "left_out", "next_in_rank")
    sections = (("the_most",), ("the_least",), others, ("average", "in_all"))
    return tuple(re.compile("|".join(map(words_pattern, each))) for each in sections)


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
