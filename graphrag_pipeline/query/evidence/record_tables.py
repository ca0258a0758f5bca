"""Tables, whole: their columns, and which of their rows a question chooses.

A table is a source whose documents are rows, each with its fields one a line, or one in a document.
Of what a table has in all, or most, the five rows that were retrieved say nothing.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.core.records import SEPARATOR, field_line, parted, record_line
from graphrag_pipeline.core.rows import sql_literal
from graphrag_pipeline.core.text import fold, terms
from graphrag_pipeline.core.turned_tables import MOST_TURNED, stands_on_side
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.query.evidence.asked_fields import are_of_one_stem
from graphrag_pipeline.query.evidence.table_rows import caption_of, cells_of, is_rule, row_told
from graphrag_pipeline.query.evidence.widening import RankedPassage
from graphrag_pipeline.query.evidence.wording import with_name
from graphrag_pipeline.query.operators.chunks import cite_text, documents_of
from graphrag_pipeline.query.question import AnalysedQuestion, bare_word

if TYPE_CHECKING:
    from graphrag_pipeline.query.evidence.sentences import Sentence
    from graphrag_pipeline.query.release import Release

_FEWEST_ROWS, _FEWEST_COLUMNS, _FIRST_ROWS = 3, 2, 9
_MOST_WORDS, _LONGEST_NAME, _FEW = 20, 3, 4
_MOST_TABLES, _LONGEST_TABLE, _ABOVE = 40, 100_000, 400
# A file may hold several tables: sheets and parts (rent.xlsx#Flats!row-1), files within it.
_TABLE = r"""regexp_extract(uri, '^[^#]*#(?:.*(?:\.\w{1,8}|attachment-\d+)/)?(?:.*!)?')"""
# Columns are those of the first rows, of which some lack some.
_SOURCES = f"""
SELECT d.source, part, list(text ORDER BY human_readable_id) AS texts FROM documents d JOIN (
    SELECT source, {_TABLE} AS part, min(human_readable_id) AS first FROM documents
    WHERE contains(uri, '#') AND uri <> part || 'caption'
    GROUP BY ALL HAVING count(*) >= $fewest) t
ON d.source = t.source AND human_readable_id BETWEEN first AND first + $most AND {_TABLE} = part
   AND uri <> part || 'caption'
GROUP BY ALL ORDER BY ALL
"""
_BLOCKS = """
SELECT document_id, start_char, end_char FROM blocks
SEMI JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS document_id) USING (document_id)
WHERE kind = 'table' AND end_char - start_char <= $longest
ORDER BY document_id, start_char LIMIT $most
"""
_PLAIN = r"' ' || trim(regexp_replace(strip_accents(lower({})), '[^\pL\pM\pN]+', ' ', 'g')) || ' '"
"""What a value says, word by word: it begins and ends with a space, as do its words."""
_PLACES = f"""
SELECT *, row_number() OVER (ORDER BY length(uri), uri) - 1 AS place
FROM documents WHERE source = $source AND {_TABLE} = $part AND uri <> $part || 'caption'
"""
_AT = f"""
SELECT * FROM ({_PLACES}) SEMI JOIN (SELECT unnest($places::JSON::BIGINT[]) AS place) USING (place)
"""
_OF_DOCUMENTS = f"""
-- DuckDB fails within itself where such rows are numbered in a query that is read twice.
lines AS MATERIALIZED (SELECT place, unnest(string_split(text, chr(10))) AS line,
                              generate_subscripts(string_split(text, chr(10)), 1) = 1 AS is_first
                       FROM ({_PLACES})),
parts AS (SELECT place, split_part(line, ': ', 1) AS field, is_first,
                 substr(line, length(field) + 3) AS value
          FROM lines WHERE contains(line, ': '))
"""
_OF_CELLS = """
parts AS (SELECT unnest(from_json($cells,
    '[{"place": "INT", "field": "VARCHAR", "value": "VARCHAR", "is_first": "BOOLEAN"}]'),
    recursive := true))
"""
_WORDS = word_lists("questions.txt")
_IN_ALL, _TOTALS = (
    ", ".join(sql_literal(word.replace("_", " ")) for word in sorted(words))
    for words in (_WORDS["in_all"], _WORDS["in_all"] | _WORDS["total_row"])
)
_YES, _NO = _WORDS["yes"], _WORDS["no"] | {""}
_VALUES = "SELECT DISTINCT trim(said) AS said FROM cells WHERE field = $field"
_KEYS = _WORDS["key_field"]
_OF = f"({'|'.join(sorted(_WORDS['total_of']))})"
# Cells are those without rows that are called a total by what stands first in them, as at the end
# of a table. Others may be totals too: "Subtotal North", what another column calls a total; and
# rows of a name alone are no records where the first is one: they stand above those of a group.
_CELLS = rf"""
said AS MATERIALIZED (
    SELECT place, field, value, is_first, {_PLAIN.format("value")} AS said FROM parts),
called AS (SELECT place, trim(said) AS name FROM said WHERE is_first AND name IN ({_TOTALS})),
cells AS (SELECT * FROM said ANTI JOIN called USING (place)),
totals AS (
    SELECT DISTINCT place FROM cells WHERE trim(said) IN ({_IN_ALL}) OR is_first
       AND regexp_matches(said, '^ {_OF}( \S+){{1,2}} $|^( \S+){{1,2}} {_OF} $')
    UNION SELECT unnest(alone) FROM (
        SELECT list(place) FILTER (n = 1) AS alone, max(n) AS widest, min(place) AS first
        FROM (SELECT place, count(*) AS n FROM cells GROUP BY place))
    WHERE len(alone) > 1 AND widest > 2 AND list_contains(alone, first))
"""
_BLANK = r"[\s\p{Z}]"
"""White space, also that which breaks no line: 12 340."""
_MARK = r"(?:[*†‡§¹²³⁰⁴-⁹]|\([a-z]\)|\[[a-z0-9]\])+\s*"
"""Refers from a figure to a note: 1,200*, 980 [1], 980¹, 2,400 (e)."""
_DIGITS = "٠١٢٣٤٥٦٧٨٩۰۱۲۳۴۵۶۷۸۹०१२३४५६७८९"
_UNSAID = "'', '-', '--', '–', '—', '?', '…', '...', 'n/a', 'na', 'n.a.', 'nan', 'null', 'k.a.'"
_SAYING = f"""
SELECT word, field, bool_or(said = plain) AS is_value,
       max(len(string_split(trim(said), ' '))) <= $few AS is_short
FROM cells JOIN (
    SELECT word, {_PLAIN.format("word")} AS plain
    FROM (SELECT unnest($words::JSON::VARCHAR[]) AS word)) ON contains(said, plain)
GROUP BY ALL ORDER BY ALL
"""
# Commas part thousands, unless one of the field stands where none does, as in 12,5 and 0,125, or
# points do twice: then points part them. Where every point may do either, figures are unsure, and
# none is clear beside one without a point: 1.250 and 980. None is of several currencies. (12) is
# below zero. $56.7M is in millions.
_FIGURES = rf"""
wanted AS (SELECT *, {_PLAIN.format("word")} AS plain FROM (SELECT unnest(from_json($chosen,
    '[{{"n": "INT", "field": "VARCHAR", "word": "VARCHAR", "whole": "BOOLEAN"}}]'),
    recursive := true))),
kept AS (SELECT place FROM cells c JOIN wanted w ON w.field IN ('', c.field)
             AND CASE WHEN whole THEN said = plain ELSE contains(said, plain) END
         GROUP BY place HAVING count(DISTINCT n) = $n_chosen
         UNION SELECT place FROM cells WHERE $n_chosen = 0),
written AS (
    SELECT place, replace(value, '−', '-') AS as_is, regexp_extract(value, '[\p{{Sc}}%‰]') AS sign,
           regexp_extract(value, '(\p{{Sc}}{_BLANK}?)[-−.\d]', 1) AS before,
           regexp_extract(value, '\d({_BLANK}?[\p{{Sc}}%‰])', 1) AS after,
           bool_or(regexp_matches(value,
               '\d,(\d{{1,2}}|\d{{4,}})\D*$|(^|\D)0,\d|\d\.\d{{3}}\.\d{{3}}')) OVER () AS has_comma,
           regexp_matches(value, '\d\.\d') AS has_point,
           bool_or(has_point) OVER () AND bool_and(NOT has_point OR regexp_matches(value,
               '^\D*[1-9]\d{{0,2}}\.\d{{3}}\D*$')) OVER () AND NOT has_comma AS is_unsure
    FROM (SELECT place, regexp_replace(translate(value, '{_DIGITS}', '{3 * "0123456789"}'),
                                       '(\d){_BLANK}?{_MARK}$', '\1') AS value
          FROM said WHERE field = $field)),
-- What all figures end in, 40 kW and 75 kW, is no part of them.
units AS (SELECT place, has_comma, is_unsure, before, after,
                 regexp_replace(regexp_replace(as_is, '[\p{{Sc}}%‰''’]|{_BLANK}', '', 'g'),
                                '^\((\d.*)\)$', '-\1') AS value,
                 regexp_extract(as_is, '\d{_BLANK}?([\pL°][\pL/²³]{{0,5}}){_BLANK}*$', 1) AS own,
                 CASE WHEN min(own) OVER () = max(own) OVER () AND own NOT IN ('K', 'M', 'B')
                     THEN own ELSE '' END AS unit,
                 CASE WHEN regexp_matches(as_is, '[1-9]') THEN sign END AS own_sign,
                 coalesce(min(own_sign) OVER () <> max(own_sign) OVER (), false)
                     OR is_unsure AND bool_or(regexp_matches(value, '\d') AND NOT has_point) OVER ()
                     AS is_unclear
          FROM written SEMI JOIN (
              FROM kept UNION SELECT place FROM called WHERE $n_chosen = 0) USING (place)),
bare AS (SELECT *, left(value, len(value) - len(unit)) AS bare_value FROM units),
as_numbers AS MATERIALIZED (SELECT place, value, before,
       rtrim(' ' || unit) || after AS after, is_unsure OR is_unclear AS is_unsure,
       lower(value) NOT IN ({_UNSAID}) AS is_said,
       TRY_CAST(regexp_replace(CASE
           WHEN is_unclear OR NOT regexp_matches(value, '\d') THEN NULL
           WHEN NOT has_comma THEN replace(bare_value, ',', '')
           WHEN regexp_matches(bare_value, '\.(\d{{1,2}}|\d{{4,}})(\D|$)') THEN NULL
           ELSE replace(replace(bare_value, '.', ''), ',', '.') END, '[KMB]$', '') AS DOUBLE)
       * CASE right(bare_value, 1) WHEN 'K' THEN 1e3 WHEN 'M' THEN 1e6 WHEN 'B' THEN 1e9 ELSE 1 END
       AS figure
    FROM bare),
figures AS (FROM as_numbers SEMI JOIN kept USING (place)),
-- Whether a row that is called a total is none of the others: there are taxes between, or gaps.
at_odds AS (
    SELECT coalesce(bool_or(abs(n.figure - in_all) > 0.5 + 0.002 * abs(in_all)), false) AS is_odd
    FROM as_numbers n JOIN called USING (place), (SELECT sum(figure) AS in_all FROM figures)
    WHERE name IN ({_IN_ALL}) OR regexp_matches(name, 'tot|summe')),
-- Whether the first row, or the last one, is the total of the others by another name.
added AS (
    SELECT count(figure) > 3 AND 0.001 * abs(sum(figure)) > least(
        abs(2 * arg_min(figure, place) - sum(figure)),
        abs(2 * arg_max(figure, place) - sum(figure))) AS is_added
    FROM figures)
"""


@dataclass(frozen=True)
class RecordTable:
    """A source of records, or a table within a document: its name, its columns, and its rows.

    ``about`` is its file and folder, or its document and the line above. ``rows`` are the places
    of the rows of a table within ``document``; of a source each row is a document.
    """

    name: str
    about: str
    columns: Sequence[str]
    source: str = ""
    part: str = ""
    document: Mapping[str, Any] | None = None
    caption: str = ""
    rows: Sequence[tuple[int, int]] = ()
    known: dict[tuple[object, ...], list[dict[str, Any]]] = field(default_factory=dict, repr=False)
    """What was selected of it for a question: to read its rows again takes longest."""

    @cached_property
    def words(self) -> frozenset[str]:
        """The search terms of its columns and of what it is about."""
        return self.own_words | frozenset(terms(" ".join(map(parted, self.columns))))

    @cached_property
    def own_words(self) -> frozenset[str]:
        """The search terms of what it is about, and of what a row is called."""
        return self.row_words | frozenset(terms(self.about))

    @cached_property
    def row_words(self) -> frozenset[str]:
        """The search terms of what a row is called: its file, its first column."""
        name = "" if self.document else _apart(self.name)
        return frozenset(terms(f"{name} {parted(self.columns[0])}"))

    def select(self, index: Release, select: str, **parameters: object) -> list[dict[str, Any]]:
        """Return what a statement selects of ``cells``: place of the row, field, value, words.

        The same is selected once.
        """
        key = (select, *(str(value) for value in parameters.values()))
        if key not in self.known:
            self.known[key] = self._selected(index, select, parameters)
        return self.known[key]

    def _selected(
        self, index: Release, select: str, parameters: Mapping[str, object]
    ) -> list[dict[str, Any]]:
        if self.document is None:
            parts, rows = _OF_DOCUMENTS, {"source": self.source, "part": self.part}
        else:
            cells = [
                {"place": place, "field": field, "value": value, "is_first": not n}
                for place, row in enumerate(self.rows)
                for n, (field, value) in enumerate(self._said_in(row))
            ]
            parts, rows = _OF_CELLS, {"cells": json.dumps(cells)}
        comma = "" if select.lstrip().startswith("SELECT") else ","
        sql = f"WITH {parts}, {_CELLS}{comma}{select}"
        return index.rows(sql, **rows, **parameters)

    def figures(
        self, index: Release, select: str, field: str, choices: Sequence[Choice]
    ) -> list[dict[str, Any]]:
        """Return what a statement selects of ``figures``: a field of the chosen rows as a number.

        Its columns are ``place``, ``value`` (without signs of money and shares), what stands
        ``before`` and ``after`` figures, whether it ``is_said``, ``figure``, and whether figures
        may be others: ``is_unsure``. That of ``added`` is whether one is the total of the others:
        ``is_added``.
        """
        chosen = [{"n": n, **dataclasses.asdict(choice)} for n, choice in enumerate(choices)]
        return self.select(
            index,
            _FIGURES + select,
            field=field,
            chosen=json.dumps(chosen),
            n_chosen=len(chosen),
        )

    def passages(
        self,
        index: Release,
        question: AnalysedQuestion,
        places: Sequence[int],
        field: str,
        told: str = "",
    ) -> list[RankedPassage]:
        """Return a field of some rows, each with its row's title; before them what they tell.

        The citation of that is the first row's.
        """
        if self.document is None:
            asked_for = json.dumps([*places])
            found = index.rows(_AT, source=self.source, part=self.part, places=asked_for)
            of_place = {row["place"]: row for row in found}
            passages = [_of_record(index, of_place[place], field) for place in places]
        else:
            passages = [self._of_row(index, question, self.rows[place]) for place in places]
        if told:
            text = record_line(self.name, told)
            passages.insert(0, dataclasses.replace(passages[0], text=text))
        return passages

    def _said_in(self, row: tuple[int, int]) -> list[tuple[str, str]]:
        cells = zip(self.columns, cells_of(self._drawn(row)), strict=False)
        return [(field, value) for field, value in cells if value]

    def _drawn(self, row: tuple[int, int]) -> str:
        return self.document["text"][slice(*row)] if self.document else ""

    def _of_row(
        self, index: Release, question: AnalysedQuestion, row: tuple[int, int]
    ) -> RankedPassage:
        line = row_told(self._drawn(row), self.columns, self.caption, question)
        citation = cite_text(index, self.document or {}, *row)
        return RankedPassage(record_line(self.name, line), 1.0, citation)


def _of_record(index: Release, row: Mapping[str, Any], field: str) -> RankedPassage:
    """Return a field of a record, with the record's title, that cites it."""
    start = f"\n{row['text']}".find(f"\n{field_line(field, '')}")
    line = row["text"][start:].partition("\n")[0]
    citation = cite_text(index, row, start, start + len(line))
    named = with_name(line, {**row, "window_start": 0})
    is_title = line == field_line(field, row["title"])
    return RankedPassage(named if is_title else record_line(row["title"], named), 1.0, citation)


@dataclass(frozen=True)
class Choice:
    """A word that chooses the rows of a table whose field says it, or is it, if that is clear."""

    word: str
    field: str = ""
    whole: bool = False


def tables_near(index: Release, sentences: Sequence[Sentence]) -> list[RecordTable]:
    """Return all tables of records where sentences are of any, and those in their documents."""
    ids = list(dict.fromkeys(sentence.document_id for sentence in sentences))
    is_any = any("#" in sentence.window.row["uri"] for sentence in sentences)
    tables = _sources(index) if is_any else []
    if index.has_rows("blocks"):
        blocks = index.rows(_BLOCKS, ids=ids, longest=_LONGEST_TABLE, most=_MOST_TABLES)
        having = list({block["document_id"] for block in blocks})
        documents = {row["id"]: row for row in documents_of(index, having)}
        within = (_table_within(documents[block["document_id"]], block) for block in blocks)
        tables.extend(filter(None, within))
    return tables


def _sources(index: Release) -> list[RecordTable]:
    """Return the sources of some rows and columns, by the first records of each."""
    tables: list[RecordTable] = []
    for row in index.rows(_SOURCES, fewest=_FEWEST_ROWS, most=_FIRST_ROWS):
        texts = [text.split("\n") for text in row["texts"]]
        lines = [line.partition(SEPARATOR) for text in texts for line in text]
        columns = list(dict.fromkeys(column for column, mark, _ in lines if mark))
        if all(mark for _, mark, _ in lines[:_FEWEST_COLUMNS]) and len(columns) >= _FEWEST_COLUMNS:
            folder, name = f"/{row['source']}".rsplit("/", 2)[-2:]
            within = row["part"].partition("#")[2].rstrip("/!").rpartition("/")[2]
            name = within if re.search(r"\.\w{1,8}$", within) else f"{name} {within}".strip()
            about = _apart(f"{folder} {name}")
            tables.append(RecordTable(name, about, columns, row["source"], row["part"]))
    return tables


def _table_within(row: Mapping[str, Any], block: Mapping[str, Any]) -> RecordTable | None:
    """Return a table of a document by its heads.

    None without heads, with two alike, few rows, or where its columns are the records.
    """
    start, text = block["start_char"], row["text"]
    lines = text[start : block["end_char"]].split("\n")
    begins = [start, *(start + each for each in accumulate(len(line) + 1 for line in lines))]
    rule = next((n for n, line in enumerate(lines) if n and "--" in line and is_rule(line)), 0)
    heads = cells_of(lines[rule - 1]) if rule else []
    rows = [
        (begin, begin + len(line))
        for begin, line in zip(begins[rule + 1 :], lines[rule + 1 :], strict=False)
        if line.lstrip().startswith("|")
    ]
    is_table = len(set(heads)) == len(heads) >= _FEWEST_COLUMNS and all(heads)
    if not is_table or len(rows) < _FEWEST_ROWS:
        return None
    if stands_on_side([heads, *(cells_of(text[slice(*row)]) for row in rows[:MOST_TURNED])]):
        return None
    above = text[max(0, start - _ABOVE) : start]
    is_whole = start <= _ABOVE
    caption = caption_of(above, is_whole=is_whole)
    caption = "" if caption == row["title"] else caption
    # A statement that ends in a semicolon names its table, and is shown with no row.
    statement = caption_of(above.rstrip("; \n"), is_whole=is_whole)
    about = f"{row['title']} {caption or statement}"
    return RecordTable(row["title"], about, heads, document=row, caption=caption, rows=rows)


def _apart(name: str) -> str:
    """Return the name of a file or a field with its words apart."""
    return re.sub(r"[\W_]+", " ", name)


def said_by(asked: Set[str], words: Iterable[str]) -> frozenset[str]:
    """Return the words of a question that some names have, by their stems."""
    own = [*words]
    return frozenset(word for word in asked if any(are_of_one_stem(word, each) for each in own))


def yes_of(index: Release, table: RecordTable, field: str) -> str:
    """Return the value of a field that says yes, if it says nothing but yes and no."""
    said = {row["said"] for row in table.select(index, _VALUES, field=field)}
    yes = said & _YES
    return next(iter(yes)) if len(yes) == 1 and said <= _YES | _NO else ""


def is_key(field: str) -> bool:
    """Whether a field tells records apart by a number that measures nothing: an order's id."""
    return last_word(field) in _KEYS


def last_word(field: str) -> str:
    """Return the last word of a field's name, folded: *id* of order_id, orderId and Order ID."""
    return (fold(_apart(parted(field))).split() or [""])[-1]


def said_by_field(asked: Set[str], field: str) -> frozenset[str]:
    """Return the words of a question that the name of a field has."""
    return said_by(asked, terms(parted(field)))


def asked_columns(
    tables: Sequence[RecordTable], asked: Set[str], least: int = 2
) -> tuple[RecordTable, list[str]] | None:
    """Return the table that says most of a question, and its columns that do.

    None where two tables are alike, or where a table says fewer words than the ``least``.
    """
    ranked = [
        (len(said_by_field(asked, field)), len(said_by(asked, table.words)), field, table)
        for table in tables
        for field in table.columns
    ]
    most = max((each[:2] for each in ranked), default=(0, 0))
    best = [each[2:] for each in ranked if each[:2] == most]
    if not most[0] or most[1] < least or any(table is not best[0][1] for _, table in best):
        return None
    return best[0][1], [field for field, _ in best]


def _most_said(asked: Set[str], fields: Sequence[str]) -> list[str]:
    """Return those of some fields whose names say most of a question."""
    n_said = {field: len(asked & set(terms(parted(field)))) for field in fields}
    return [field for field, n in n_said.items() if n == max(n_said.values())]


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
    for row in table.select(index, _SAYING, words=[*runs], few=_FEW) if runs else ():
        found[row["word"]].append(row)
    choices: list[Choice] = []
    taken: set[int] = set()
    asked = frozenset(question.terms)
    for run, places in runs.items():
        whole = _most_said(asked, [row["field"] for row in found[run] if row["is_value"]])
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
