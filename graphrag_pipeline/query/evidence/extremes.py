"""Records that have the most or the least of what a question asks for, of a whole table.

"Which country drinks the most wine?" is answered by the rows whose *wine_servings* are largest, and
these are hardly among those that are retrieved: all rows say the same words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.core.records import SEPARATOR, field_line, parted, record_line
from graphrag_pipeline.core.text import fold, terms
from graphrag_pipeline.query.evidence.asked_fields import are_of_one_stem
from graphrag_pipeline.query.evidence.widening import RankedPassage
from graphrag_pipeline.query.evidence.wording import with_name
from graphrag_pipeline.query.operators.chunks import cite_text
from graphrag_pipeline.query.question import AnalysedQuestion, bare_word, words_pattern

if TYPE_CHECKING:
    from graphrag_pipeline.query.evidence.sentences import Sentence
    from graphrag_pipeline.query.release import Release

_SHOWN, _FEWEST_ROWS, _FEWEST_WORDS, _MOST_WORDS = 3, 3, 2, 20
_MOSTLY, _FEWEST_COLUMNS = 0.9, 2
_TABLES = """
SELECT source, text FROM documents SEMI JOIN (
    SELECT min(human_readable_id) AS human_readable_id FROM documents
    WHERE contains(uri, '#') GROUP BY source HAVING count(*) >= $fewest) USING (human_readable_id)
ORDER BY source
"""
# Commas part thousands, but for one before one or two digits at the end; $56.7M is in millions.
_HIGHEST = r"""
WITH said AS (
    SELECT id, title, uri, text, regexp_replace(regexp_extract(
        text, '(?m)^' || regexp_escape($field) || ': ([^\n]*)', 1), '[$€£%\s]', '', 'g') AS value
    FROM documents WHERE source = $source AND list_bool_and(list_transform(
        [''] || $words::JSON::VARCHAR[], lambda word: contains(lower(text), word)))),
figures AS (
    SELECT *, TRY_CAST(CASE WHEN regexp_full_match(value, '-?\d+,\d{1,2}')
        THEN replace(value, ',', '.')
        ELSE regexp_replace(value, ',|[KMB]$', '', 'g') END AS DOUBLE)
        * CASE right(value, 1) WHEN 'K' THEN 1e3 WHEN 'M' THEN 1e6 WHEN 'B' THEN 1e9 ELSE 1 END
        AS figure
    FROM said)
SELECT id, title, uri, text, count(figure) OVER () AS n_figures,
       count(*) FILTER (value NOT IN ('', '-', '?', 'n/a', 'N/A')) OVER () AS n_values
FROM figures ORDER BY $sign * figure DESC NULLS LAST, title, id LIMIT $shown
"""
_SAYING = """
SELECT word, count(*) FILTER (contains(lower(text), word)) AS n, count(*) AS n_rows
FROM documents, (SELECT unnest($words::JSON::VARCHAR[]) AS word)
WHERE source = $source GROUP BY word ORDER BY word
"""


@dataclass(frozen=True)
class _Table:
    """A source of records: its columns, and the words of these and of its name."""

    source: str
    columns: Sequence[str]
    words: frozenset[str]


def told_of_extremes(
    index: Release, question: AnalysedQuestion, sentences: Sequence[Sentence]
) -> list[RankedPassage]:
    """Return the records of a table that have the most, or the least, of a field asked for.

    The table is the one whose columns and name say most of the question, the field the one whose
    name does; of several fields the first record of each. Nothing is told where several tables are
    alike, or where values of the field are no numbers. Other words of the question that some of the
    rows have choose among these; nothing is told of a name that none has.
    """
    if not any("#" in sentence.window.row["uri"] for sentence in sentences):
        return []
    most, least, bound = _patterns()
    sign = 1 if most.search(question.folded) else -1 if least.search(question.folded) else 0
    if not sign or bound.search(question.folded):
        return []
    bare = question.without(most if sign > 0 else least)
    asked = frozenset(bare.terms)
    ranked = sorted(
        (
            (len(_said(asked, terms(parted(field)))), len(_said(asked, table.words)), field, table)
            for table in filter(None, map(_table_of, index.rows(_TABLES, fewest=_FEWEST_ROWS)))
            for field in table.columns
        ),
        key=lambda each: each[:2],
        reverse=True,
    )
    if not ranked or not ranked[0][0] or ranked[0][1] < _FEWEST_WORDS:
        return []
    best = [each[2:] for each in ranked if each[:2] == ranked[0][:2]]
    table = best[0][1]
    if any(other is not table for _, other in best):
        return []
    others = asked - _said(asked, table.words)
    said = [bare_word(word) for word in bare.split()[1:] if others.intersection(terms(word))]
    words = _choosing(index, table, said)
    if words is None:
        return []
    highest = {field: _highest(index, table, field, words, sign) for field, _ in best}
    n_words = {field: len(terms(parted(field))) for field, rows in highest.items() if rows}
    fields = [field for field, n in n_words.items() if n == min(n_words.values())][:_SHOWN]
    return [
        _passage(index, row, field)
        for field in fields
        for row in highest[field][: _SHOWN if len(fields) == 1 else 1]
    ]


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Return what asks for the most, for the least, and what sets a bound: made for records."""
    most, least, at_most, at_least = (
        words_pattern(section) for section in ("the_most", "the_least", "at_most", "at_least")
    )
    return re.compile(most), re.compile(least), re.compile(f"{at_most}|{at_least}")


def _highest(
    index: Release, table: _Table, field: str, words: Sequence[str], sign: int
) -> list[dict[str, Any]]:
    """Return the rows with the highest figures of a field, or lowest; none where few are any."""
    rows = index.rows(
        _HIGHEST,
        source=table.source,
        field=field,
        words=list(words),
        sign=sign,
        shown=_SHOWN,
    )
    is_number = rows and rows[0]["n_figures"] >= max(1, _MOSTLY * rows[0]["n_values"])
    return rows[: rows[0]["n_figures"]] if is_number else []


def _table_of(row: Mapping[str, Any]) -> _Table | None:
    """Return the table that a source is by its first document; None where that is no record."""
    lines = [line.partition(SEPARATOR) for line in row["text"].split("\n")]
    columns = [column for column, mark, _ in lines if mark]
    if not all(mark for _, mark, _ in lines[:_FEWEST_COLUMNS]) or len(columns) < _FEWEST_COLUMNS:
        return None
    place = re.sub(r"[\W_]+", " ", " ".join(row["source"].rsplit("/", 2)[-2:]))
    words = frozenset(terms(f"{place} {' '.join(map(parted, columns))}"))
    return _Table(row["source"], columns, words)


def _said(asked: Set[str], words: Sequence[str] | Set[str]) -> frozenset[str]:
    """Return the words of a question that some names have, by their stems."""
    return frozenset(word for word in asked if any(are_of_one_stem(word, own) for own in words))


def _choosing(index: Release, table: _Table, words: Sequence[str]) -> list[str] | None:
    """Return those of some words that some rows of a table have, and others not, folded.

    None where a word with a capital is in no row: the table says nothing of what it names.
    """
    folded = {fold(word): word for word in words[:_MOST_WORDS]}
    rows = index.rows(_SAYING, source=table.source, words=[*folded]) if folded else []
    if any(row["n"] == 0 and folded[row["word"]][:1].isupper() for row in rows):
        return None
    return [row["word"] for row in rows if 0 < row["n"] < row["n_rows"]]


def _passage(index: Release, row: Mapping[str, Any], field: str) -> RankedPassage:
    start = f"\n{row['text']}".find(f"\n{field_line(field, '')}")
    line = row["text"][start:].partition("\n")[0]
    citation = cite_text(index, row, start, start + len(line))
    named = with_name(line, {**row, "window_start": 0})
    return RankedPassage(record_line(row["title"], named), 1.0, citation)
