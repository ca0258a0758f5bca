"""Kinds of the fields of a file's records: names of things, keys, plain values or prose.

It is decided by the column, from all its values in the file, so that a row is read in the same way
wherever it stands; another version of the file is decided anew, and read anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from graphrag_pipeline.core.lazy import LazyModule
from graphrag_pipeline.core.records import SEPARATOR, column_of, field_head, field_words
from graphrag_pipeline.core.word_lists import word_lists

if TYPE_CHECKING:
    import polars as pl
else:
    pl = LazyModule("polars")

Role = Literal["field", "key", "value", "prose"]
"""Of a column: its values name things, are keys, are plain values, or are running text."""

_WORDS = word_lists("nlp_records.txt")
_KEY_WORDS = _WORDS["key"]
_LABELS, _KEYS, _SAID, _WHEN, _PURPOSE = (
    {(word,) for word in _WORDS[section]} for section in ("label", "key", "said", "when", "purpose")
)
_NAMES_NOTHING = sorted(_WORDS["unit"] | _WORDS["entry_type"])
_LONGEST_NAME = 120
_MOST_WORDS = 14
_SENTENCE_WORDS = 6
_MOST_NAMES = 64
_CONSTANT_IN = 20
_LONGEST_BESIDE = 30

_NUMBER = (
    r"^[^\p{L}\d]{0,3}\d[\d\s.,'’_/:×%°+-]*(?:T\d\d:[\d:.+-]*Z?$)?"
    r"(?:[^\p{L}\d\s]|\s?\p{L}{1,4}[²³23]?\.?(?:/\p{L}{1,4}[²³23]?)?)?$"
)
_DATE = r"(?i)^(?:[\W\d_]|\b(?:{words})\b|(?:st|nd|rd|th)\b)+$"
_ADDRESS = (
    r"(?i)^[a-z][a-z0-9+.-]*://|^www\.|^[^\s@]+@[^\s@]+\.\w+$|^(?:~|\.{0,2})/\S|^[a-z]:\\"
    r"|^\S+\.(?:html?|pdf|png|jpe?g|gif|svg|csv|json|xml|txt|zip|docx?|xlsx?|mp[34]|webp)$"
)
_WITHOUT_SPACE = r"^\S*\d\S*$|^[0-9a-fA-F]{16,}$"
_TWO_SENTENCES = r"[.!?…]\s+\S|[。！？].|\n"
_ENDS_SENTENCE = r"[.!?…。！？]['\")\]»”’]*$"


@dataclass(frozen=True)
class Columns:
    """The columns of a file by their use.

    ``roles`` has every column, by its path without the numbers of lists, in order of appearance.
    ``unique`` are those with one value in every record, and another in each. ``subject`` is the
    column that names records where none is set: the first unique one that is called a name or
    title; else, unless the first column of all is a key that returns, as in a table that joins two
    others, the first unique one that names things, or the first that does. ``key`` is the
    first column, if it is a unique key.
    """

    roles: Mapping[str, Role]
    unique: frozenset[str]
    subject: str = ""
    key: str = ""


def lines_of(rows: Iterable[tuple[int, str, str, bool]]) -> pl.DataFrame:
    """Return the lines of records as a table: record, path, value, whether it is the title, column.

    A path is the names and, in lists, the 1-based numbers that lead to the value, joined by dots;
    the column is the path without these numbers.
    """
    kinds = {"record": pl.Int64, "path": pl.String, "value": pl.String, "is_title": pl.Boolean}
    lines = pl.DataFrame(list(rows), schema=kinds, orient="row")
    paths = lines["path"].unique()
    names = {"path": paths, "column": [column_of(path) for path in paths]}
    columns = pl.DataFrame(names, schema={"path": pl.String, "column": pl.String})
    return with_kinds(lines.join(columns, "path", how="left", maintain_order="left"))


def with_kinds(lines: pl.DataFrame) -> pl.DataFrame:
    """Add what the value of each line is: the column ``kind``."""
    values = lines.select(pl.col("value").unique())
    values = values.with_columns(kind=_kind(pl.col("value")))
    return lines.join(values, "value", how="left", maintain_order="left")


def decide_columns(lines: pl.DataFrame, n_records: int) -> Columns:
    """Return what the columns are, from all lines of so many records."""
    shares = lines.group_by("column", maintain_order=True).agg(
        n=pl.len(),
        n_records=pl.col("record").n_unique(),
        n_distinct=pl.col("value").n_unique(),
        **{kind: (pl.col("kind") == kind).sum() for kind in ("name", "code", "number")},
        prose=(pl.col("kind") == "prose").sum(),
        unit=pl.col("value").str.to_lowercase().is_in(_NAMES_NOTHING).sum(),
    )
    rows = list(shares.iter_rows(named=True))
    roles: dict[str, Role] = {str(row["column"]): _role(row) for row in rows}
    unique = frozenset(
        str(row["column"])
        for row in rows
        if row["n"] == row["n_records"] == row["n_distinct"] == n_records
    )
    single = [str(row["column"]) for row in rows if row["n"] == row["n_records"]]
    first = next(iter(lines.filter(~pl.col("is_title")).head(1)["column"]), "")
    is_keyed = roles.get(first) == "key"
    naming = [column for column in single if roles[column] == "field"]
    candidates = [column for column in naming if column in unique]
    labels = [column for column in candidates if _is_label(column)]
    joins_others = is_keyed and first not in unique
    candidates = [] if joins_others else candidates + naming
    return Columns(
        roles=roles,
        unique=unique,
        subject=next(iter(labels + candidates), ""),
        key=first if is_keyed and first in unique else "",
    )


def _is_label(column: str) -> bool:
    """Whether records are called by a column: by `Label`, not by one of their `Labels`."""
    last = field_words(column)[-1:]
    return last in _LABELS and column.rstrip(". ").lower().endswith(last)


def _role(row: Mapping[str, int]) -> Role:
    n, name = row["n"], str(row["column"])
    if 2 * row["prose"] >= n:
        return "prose"
    if field_words(name)[-1:] in _SAID:
        return "prose"
    may_be_key = field_words(name)[-1:] in _KEYS or field_head(name) in _WORDS["self"]
    if may_be_key and 2 * (row["code"] + row["number"]) >= n:
        return "key"
    if row["code"] and 2 * row["code"] >= n:
        return "key"
    is_unit = 2 * row["unit"] >= n and row["n_distinct"] < row["n_records"]
    if is_unit or field_words(name)[-1:] in _WHEN | _PURPOSE:
        return "value"
    if 2 * row["name"] < n or (row["n_distinct"] == 1 and row["n_records"] >= _CONSTANT_IN):
        return "value"
    return "field"


def _kind(value: pl.Expr) -> pl.Expr:
    """Return what a value is: nothing, number, address, code, prose or name."""
    lower = value.str.to_lowercase()
    date = _DATE.format(words="|".join(sorted(map(re.escape, _WORDS["date"]))))
    n_words = value.str.count_matches(r"\S+")
    is_long = (value.str.len_chars() > _LONGEST_NAME) | (n_words > _MOST_WORDS)
    is_sentence = (n_words >= _SENTENCE_WORDS) & (
        value.str.contains(_TWO_SENTENCES) | value.str.contains(_ENDS_SENTENCE)
    )
    has_digit = value.str.contains(r"\d")
    return (
        pl.when(lower.is_in(sorted(_WORDS["nothing"])))
        .then(pl.lit("nothing"))
        .when(value.str.contains(_NUMBER) | (has_digit & value.str.contains(date)))
        .then(pl.lit("number"))
        .when(value.str.contains(_ADDRESS))
        .then(pl.lit("address"))
        .when(value.str.contains(_WITHOUT_SPACE))
        .then(pl.lit("code"))
        .when(is_long | is_sentence)
        .then(pl.lit("prose"))
        .when(value.str.contains(r"\p{L}"))
        .then(pl.lit("name"))
        .otherwise(pl.lit("nothing"))
    )


def with_titles(lines: pl.DataFrame, columns: Columns) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Mark the lines that name their records, and put them first.

    Returns titles by record, too, as :func:`values_of`, where the column has another in each.
    """
    if not columns.subject:
        return lines, values_of(lines, "")
    named = lines.with_columns(is_title=pl.col("column") == columns.subject).sort(
        "record", ~pl.col("is_title"), maintain_order=True
    )
    is_unique = columns.subject in columns.unique
    return named, values_of(lines, columns.subject if is_unique else "")


def values_of(lines: pl.DataFrame, column: str) -> pl.DataFrame:
    """Return the values of a column, ``record`` and ``value``; none for the column ``""``."""
    on_one_line = pl.col("value").str.replace_all(r"\s+", " ")
    rows = lines.filter((pl.col("column") == column) & (column != ""))
    return rows.select("record", on_one_line).unique("record", keep="last", maintain_order=True)


def said_beside_text(lines: pl.DataFrame, columns: Columns) -> pl.DataFrame:
    """Keep, of records with a text of their own, the lines to be read beside it.

    Those are fields that name something, keys that return, and short values of the record itself,
    such as its number and when it was closed: no values of what is within it, but for what that is
    called, of lists, or that many records share. The title stands before what names something.
    """
    kind = _line_kind(columns)
    value, column = pl.col("value"), pl.col("column")
    n_records = lines["record"].n_unique()
    is_shared = (value.n_unique().over(column) == 1) & (n_records >= _CONSTANT_IN)
    is_single = pl.len().over("record", column) == 1
    own = [name for name in columns.roles if "." not in name or _is_label(name)]
    is_own = is_single & column.is_in(own) & ~is_shared
    is_short = pl.col("kind").is_in(("number", "name", "code")) & (
        value.str.len_chars() <= _LONGEST_BESIDE
    )
    names = (kind == "field") | ((kind == "key") & ~column.is_in(columns.unique))
    is_value = kind.is_in(("key", "value")) & is_own & is_short
    marked = lines.with_columns(names=names, is_value=is_value)
    of_named = pl.col("is_title") & pl.col("names").any().over("record")
    said = marked.filter(pl.col("names") | pl.col("is_value") | of_named)
    return said.drop("names", "is_value")


def record_texts(lines: pl.DataFrame, columns: Columns) -> pl.DataFrame:
    """Return the text of each record, and its blocks, from its lines.

    The result has ``record``, ``text`` and, as lists of equal length, ``starts``, ``ends`` and
    ``kinds``: lines that hold a title, a name of something else, a key or other values (those that
    follow each other as one block). The names of fields before prose count as values.
    """
    kinds = lines.select(
        "record",
        "value",
        path=pl.col("path").str.replace_all(SEPARATOR, ":", literal=True),
        kind=_line_kind(columns),
    ).set_sorted("record")
    line = pl.when(pl.col("path") == "").then("value")
    line = line.otherwise(pl.concat_str("path", pl.lit(SEPARATOR), "value"))
    placed = kinds.select(
        "record",
        "kind",
        line=line,
        n=line.str.len_chars().cast(pl.Int64),
        n_value=pl.col("value").str.len_chars().cast(pl.Int64),
    ).with_columns(start=_so_far(pl.col("n") + 1) - pl.col("n") - 1)
    prose = pl.when(pl.col("kind") == "prose").then("n_value").otherwise(0)
    blocks = placed.with_columns(end=pl.col("start") + pl.col("n") - prose)
    blocks = blocks.filter(pl.col("end") > pl.col("start"))
    goes_on = (pl.col("kind") == "value") & (pl.col("kind").shift(1) == "value") & ~_is_first()
    blocks = blocks.with_columns(begins=~goes_on.fill_null(value=False))
    ends = blocks.filter(pl.col("begins").shift(-1, fill_value=True))["end"]
    joined = (
        blocks.filter("begins")
        .with_columns(ends, kind=pl.col("kind").replace("prose", "value"))
        .group_by("record", maintain_order=True)
        .agg(starts="start", ends="end", kinds="kind")
    )
    texts = placed.group_by("record", maintain_order=True).agg(text="line")
    texts = texts.with_columns(pl.col("text").list.join("\n"))
    return texts.join(joined, "record", how="left", maintain_order="left")


def _is_first() -> pl.Expr:
    """Whether a line is the first of its record: lines of a record stand together."""
    return pl.col("record").ne_missing(pl.col("record").shift(1))


def _so_far(amount: pl.Expr) -> pl.Expr:
    """Return the sum of an amount over the lines of a record, up to each of them."""
    total = amount.cast(pl.Int64).cum_sum()
    before = pl.when(_is_first()).then(total - amount.cast(pl.Int64)).forward_fill()
    return total - before


def _line_kind(columns: Columns) -> pl.Expr:
    """Return what a line is: title, field, key, value or prose."""
    role = pl.col("column").replace_strict(dict(columns.roles), return_dtype=pl.String)
    kind = pl.col("kind")
    own_keys = [column for column in columns.roles if _KEY_WORDS.issuperset(field_words(column))]
    is_key = (role == "key") & ~pl.col("column").is_in(own_keys)
    nth = _so_far(role == "field")
    return (
        pl.when("is_title")
        .then(pl.lit("title"))
        .when(is_key & (kind != "nothing"))
        .then(pl.lit("key"))
        .when((role == "field") & (kind == "name") & (nth <= _MOST_NAMES))
        .then(pl.lit("field"))
        .when((kind == "prose") | ((role == "prose") & (kind == "name")))
        .then(pl.lit("prose"))
        .otherwise(pl.lit("value"))
    )
