"""Tables of records, whole: their columns, and which of their rows a question chooses.

A table is a source whose documents are rows; a row's text is its fields, one a line. Of what it has
in all, or most, the five rows that were retrieved say nothing.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.core.records import SEPARATOR, field_line, parted, record_line
from graphrag_pipeline.core.text import terms
from graphrag_pipeline.query.evidence.asked_fields import are_of_one_stem
from graphrag_pipeline.query.evidence.widening import RankedPassage
from graphrag_pipeline.query.evidence.wording import with_name
from graphrag_pipeline.query.operators.chunks import cite_text
from graphrag_pipeline.query.question import AnalysedQuestion, bare_word

if TYPE_CHECKING:
    from graphrag_pipeline.query.evidence.sentences import Sentence
    from graphrag_pipeline.query.release import Release

_FEWEST_ROWS, _FEWEST_COLUMNS = 3, 2
_MOST_WORDS, _LONGEST_NAME, _FEW = 20, 3, 4
_TABLES = """
SELECT source, text FROM documents SEMI JOIN (
    SELECT min(human_readable_id) AS human_readable_id FROM documents
    WHERE contains(uri, '#') GROUP BY source HAVING count(*) >= $fewest) USING (human_readable_id)
ORDER BY source
"""
_PLAIN = r"' ' || trim(regexp_replace(strip_accents(lower({})), '[^\pL\pM\pN]+', ' ', 'g')) || ' '"
"""What a value says, word by word: it begins and ends with a space, as do its words."""
_CELLS = f"""
WITH lines AS (SELECT id, unnest(string_split(text, chr(10))) AS line
               FROM documents WHERE source = $source),
parts AS (SELECT id, split_part(line, ': ', 1) AS field, substr(line, strlen(field) + 3) AS value
          FROM lines WHERE contains(line, ': ')),
cells AS (SELECT id, field, value, {_PLAIN.format("value")} AS said FROM parts)
"""
_SAYING = f"""{_CELLS}
SELECT word, field, bool_or(said = plain) AS is_value,
       max(len(string_split(trim(said), ' '))) <= $few AS is_short
FROM cells JOIN (
    SELECT word, {_PLAIN.format("word")} AS plain
    FROM (SELECT unnest($words::JSON::VARCHAR[]) AS word)) ON contains(said, plain)
GROUP BY ALL ORDER BY ALL
"""
# Commas part thousands, but for one before one or two digits at the end; $56.7M is in millions.
_ROWS = rf"""{_CELLS},
wanted AS (SELECT *, {_PLAIN.format("word")} AS plain FROM (SELECT unnest(from_json($chosen,
    '[{{"n": "INT", "field": "VARCHAR", "word": "VARCHAR", "whole": "BOOLEAN"}}]'),
    recursive := true))),
kept AS (SELECT id FROM cells c JOIN wanted w ON w.field IN ('', c.field)
             AND CASE WHEN whole THEN said = plain ELSE contains(said, plain) END
         GROUP BY id HAVING count(DISTINCT n) = $n_chosen
         UNION SELECT id FROM cells WHERE $n_chosen = 0),
bare AS (SELECT id, field, regexp_replace(value, '[$€£%\s]', '', 'g') AS value FROM cells),
figures AS (SELECT id, value, TRY_CAST(CASE WHEN regexp_full_match(value, '-?\d+,\d{{1,2}}')
        THEN replace(value, ',', '.')
        ELSE regexp_replace(value, ',|[KMB]$', '', 'g') END AS DOUBLE)
        * CASE right(value, 1) WHEN 'K' THEN 1e3 WHEN 'M' THEN 1e6 WHEN 'B' THEN 1e9 ELSE 1 END
        AS figure
    FROM bare SEMI JOIN kept USING (id) WHERE field = $field)
"""


@dataclass(frozen=True)
class RecordTable:
    """A source of records: its columns, and the words of these and of its name."""

    source: str
    columns: Sequence[str]

    @cached_property
    def words(self) -> frozenset[str]:
        """The search terms of its columns, its name and that of its folder."""
        return self.row_words | frozenset(terms(" ".join(map(parted, self.columns))))

    @cached_property
    def row_words(self) -> frozenset[str]:
        """The search terms of what a row is called: its name, its folder's, its first column's."""
        place = re.sub(r"[\W_]+", " ", " ".join(self.source.rsplit("/", 2)[-2:]))
        return frozenset(terms(f"{place} {parted(self.columns[0])}"))

    @property
    def name(self) -> str:
        """The name of its file."""
        return self.source.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Choice:
    """A word that chooses the rows of a table whose field says it, or is it, if that is clear."""

    word: str
    field: str = ""
    whole: bool = False


def has_records(sentences: Iterable[Sentence]) -> bool:
    """Whether some of the sentences are of records."""
    return any("#" in sentence.window.row["uri"] for sentence in sentences)


def tables_of(index: Release) -> list[RecordTable]:
    """Return the tables of some rows and columns, by the first record of each."""
    tables: list[RecordTable] = []
    for row in index.rows(_TABLES, fewest=_FEWEST_ROWS):
        lines = [line.partition(SEPARATOR) for line in row["text"].split("\n")]
        columns = [column for column, mark, _ in lines if mark]
        if all(mark for _, mark, _ in lines[:_FEWEST_COLUMNS]) and len(columns) >= _FEWEST_COLUMNS:
            tables.append(RecordTable(row["source"], columns))
    return tables


def said_by(asked: Set[str], words: Iterable[str]) -> frozenset[str]:
    """Return the words of a question that some names have, by their stems."""
    own = [*words]
    return frozenset(word for word in asked if any(are_of_one_stem(word, each) for each in own))


def said_by_field(asked: Set[str], field: str) -> frozenset[str]:
    """Return the words of a question that the name of a field has."""
    return said_by(asked, terms(parted(field)))


def asked_columns(index: Release, asked: Set[str]) -> tuple[RecordTable, list[str], int] | None:
    """Return the table that says most of a question, its columns that do, and how many words.

    None where two tables are alike.
    """
    ranked = [
        (len(said_by_field(asked, field)), len(said_by(asked, table.words)), field, table)
        for table in tables_of(index)
        for field in table.columns
    ]
    most = max((each[:2] for each in ranked), default=(0, 0))
    best = [each[2:] for each in ranked if each[:2] == most]
    if not most[0] or any(table is not best[0][1] for _, table in best):
        return None
    return best[0][1], [field for field, _ in best], most[1]


def choices_of(
    index: Release, table: RecordTable, question: AnalysedQuestion, others: Set[str]
) -> tuple[list[Choice], frozenset[str]] | None:
    """Return what of a question chooses rows of a table, and which of its other words do not.

    A name of several words chooses by the field that is this name, a word by a field whose values
    are it or are short names with it, else by any. None where no row says a word with a capital:
    the table says nothing of what it names.
    """
    words = [bare_word(word) for word in question.split()][:_MOST_WORDS]
    is_other = [not others.isdisjoint(terms(word)) for word in words]
    runs = {
        " ".join(words[start:end]): range(start, end)
        for n in range(_LONGEST_NAME, 0, -1)
        for start, end in zip(range(len(words)), range(n, len(words) + 1), strict=False)
        if is_other[start] and is_other[end - 1]
    }
    found: dict[str, list[dict[str, Any]]] = {run: [] for run in runs}
    for row in index.rows(_SAYING, source=table.source, words=[*runs], few=_FEW) if runs else ():
        found[row["word"]].append(row)
    choices: list[Choice] = []
    taken: set[int] = set()
    for run, places in runs.items():
        whole = [row["field"] for row in found[run] if row["is_value"]]
        fields = [row["field"] for row in found[run]]
        if taken.isdisjoint(places) and (len(whole) == 1 or (fields and len(places) == 1)):
            is_short = len(fields) == 1 and found[run][0]["is_short"]
            field = whole[0] if len(whole) == 1 else fields[0] if is_short else ""
            choices.append(Choice(run, field, len(whole) == 1))
            taken.update(places)
    left = [n for n, is_asked in enumerate(is_other) if is_asked and n not in taken]
    if any(n and words[n][:1].isupper() for n in left):
        return None
    return choices, frozenset(word for n in left for word in terms(words[n])) & others


def chosen_rows(
    index: Release, select: str, table: RecordTable, field: str, choices: Sequence[Choice]
) -> list[dict[str, Any]]:
    """Return what a statement selects of ``figures``: the chosen rows, their field as a number.

    Its columns are ``id``, ``value`` (without signs of money and shares) and ``figure``.
    """
    chosen = [{"n": n, **dataclasses.asdict(choice)} for n, choice in enumerate(choices)]
    return index.rows(
        _ROWS + select,
        source=table.source,
        field=field,
        chosen=json.dumps(chosen),
        n_chosen=len(chosen),
    )


def row_passage(
    index: Release, row: Mapping[str, Any], field: str, text: str = ""
) -> RankedPassage:
    """Return a text, or a field of a row with the row's title, that cites this field.

    ``row`` has the id, title, uri and text of a document.
    """
    start = f"\n{row['text']}".find(f"\n{field_line(field, '')}")
    line = row["text"][start:].partition("\n")[0]
    citation = cite_text(index, row, start, start + len(line))
    named = with_name(line, {**row, "window_start": 0})
    is_title = line == field_line(field, row["title"])
    shown = named if is_title else record_line(row["title"], named)
    return RankedPassage(text or shown, 1.0, citation)
