"""Records of a table of plain cells, by column: what `records` does for each by itself.

A table may have a million small records; as objects of Python each takes a kilobyte.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_pipeline.core.lazy import LazyModule
from graphrag_pipeline.core.records import column_of, name_columns
from graphrag_pipeline.ingest.reading import fields as by_column
from graphrag_pipeline.ingest.reading.cell_markup import plain_table
from graphrag_pipeline.ingest.reading.cleaning import NEWLINES, REMOVED
from graphrag_pipeline.ingest.reading.model import (
    DocumentTable,
    Quarantined,
    ReadingOptions,
    ReadResult,
    Unreadable,
    readable_name,
)
from graphrag_pipeline.ingest.reading.records import (
    most_said,
    too_much_said,
    unique_keys,
    why_empty,
)

if TYPE_CHECKING:
    import polars as pl
else:
    pl = LazyModule("polars")

_ROWS_AT_ONCE = 50_000
_FEWEST_OTHERS, _FEWEST_GROUPS = 2, 2


@dataclass(frozen=True)
class _Special:
    """The columns that may hold a record's text, title and id, in order, and halves of a name."""

    text: Sequence[str]
    title: Sequence[str]
    key: Sequence[str]
    halves: Sequence[str]


def read_columns(
    path: Path, cells: pl.DataFrame, problems: Mapping[int, str], options: ReadingOptions
) -> ReadResult:
    """Return a document for each row, as :func:`records.read_records` does for each record.

    ``cells`` are strings, null where a row ends before the column; names of columns are on one
    line. ``problems`` say, by the number of a row from 0, why it has no document.
    """
    if cells.is_empty():
        raise Unreadable("the file holds no records")
    cells = cells if problems else cells.filter(~_is_head_again(cells))
    cells = plain_table(_within_groups(_filled(cells, options)))
    rows, in_column = _rows(cells, options)
    numbered = pl.concat_str(pl.lit("row-"), pl.col("record") + 1)
    rows = rows.with_columns(key=pl.coalesce("key", numbered), said=pl.col("said").fill_null(""))
    if rows["key"].n_unique() < len(rows):
        rows = rows.with_columns(key=pl.Series(unique_keys(rows["key"]), dtype=pl.String))
    return _documents(path, rows, problems, options, in_column=in_column)


def _is_head_again(cells: pl.DataFrame) -> pl.Expr:
    """Whether a row says the names of all columns: printed pages and joined files repeat them."""
    names = cells.columns
    says = (pl.col(name).fill_null("").str.strip_chars() == name for name in names)
    return pl.all_horizontal(says) if len(names) > 1 else pl.lit(value=False)


def _filled(cells: pl.DataFrame, options: ReadingOptions) -> pl.DataFrame:
    """Return the columns that hold something, and those that the options name.

    Raises Unreadable where their names, said with each value, are too much text.
    """
    numbers = cells.select((pl.col(name) != "").sum() for name in cells.columns).row(0)
    if sum(n * len(name) for n, name in zip(numbers, cells.columns, strict=True)) > most_said(
        options
    ):
        raise Unreadable(too_much_said(options))
    special = _special(cells.columns, options)
    named = {*special.text, *special.title, *special.key, *special.halves}
    filled = [name for n, name in zip(numbers, cells.columns, strict=True) if n or name in named]
    return cells.select(filled or cells.columns[:1])


def _within_groups(cells: pl.DataFrame) -> pl.DataFrame:
    """Return rows that say of which group they are, where groups have a row of their own above.

    Such a row has its first cell alone, and the rows below it have all but this.
    """
    first, *others = cells.columns
    if len(others) < _FEWEST_OTHERS:
        return cells
    marks = cells.select(
        has_first=pl.col(first).fill_null("").str.strip_chars() != "",
        has_others=pl.any_horizontal(
            pl.col(name).fill_null("").str.strip_chars() != "" for name in others
        ),
    )
    has_first, has_others = marks["has_first"], marks["has_others"]
    groups, members = has_first & ~has_others, ~has_first & has_others
    begins = members & ~members.shift(1, fill_value=False)
    if groups.sum() < _FEWEST_GROUPS or not (groups.shift(1, fill_value=False) == begins).all():
        return cells
    name = pl.when(has_first).then(pl.col(first)).forward_fill()
    return cells.with_columns(pl.when(members).then(name).otherwise(pl.col(first)).alias(first))


def _rows(cells: pl.DataFrame, options: ReadingOptions) -> tuple[pl.DataFrame, bool]:
    """Return what each row says (see :func:`_written`), and whether a column holds the text."""
    names = cells.columns
    special = _special(names, options)
    cells = cells.select(_clean(pl.col(name)).alias(name) for name in names)
    rows = cells.select(record=pl.int_range(pl.len(), dtype=pl.Int64), **_parts(special))
    cells = cells.rename({name: _cell(name) for name in names})
    table = pl.concat([rows, cells], how="horizontal")
    in_column = bool(rows["has_text"].any())
    lines = by_column.with_kinds(_lines(table, names, special))
    columns = by_column.decide_columns(lines, len(rows))
    has = {part: bool((rows[part] != "").any()) for part in ("title", "key")}
    metadata = _metadata(names, special, None if in_column else columns.roles)
    table = table.select("record", "text", "title", "key", metadata=metadata)
    written = [
        _written(part, own_lines, columns, in_column=in_column, **has)
        for part, own_lines in _slices(table, lines)
    ]
    return pl.concat(written), in_column


def _slices(
    table: pl.DataFrame, lines: pl.DataFrame
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield the rows of a table with their lines: what is made of lines takes much memory."""
    record = lines["record"]
    for first in range(0, len(table), _ROWS_AT_ONCE):
        begin, end = (record.search_sorted(row) for row in (first, first + _ROWS_AT_ONCE))
        yield table[first : first + _ROWS_AT_ONCE], lines[begin:end]


def _written(
    rows: pl.DataFrame,
    lines: pl.DataFrame,
    columns: by_column.Columns,
    *,
    in_column: bool,
    title: bool,
    key: bool,
) -> pl.DataFrame:
    """Return rows with their ``title``, ``key`` and what their lines say, null where nothing does.

    ``title`` and ``key`` tell whether any row of the file has one in a column that is called so.
    """
    titles, keys = (
        rows.select("record", value=part).filter(pl.col("value") != "") for part in ("title", "key")
    )
    if not in_column and not title:
        lines, titles = by_column.with_titles(lines, columns)
    if not key:
        keys = by_column.values_of(lines, columns.key)
    if in_column:
        lines = by_column.said_beside_text(lines, columns)
    rows = rows.select("record", "text", "metadata")
    for said in (
        titles.rename({"value": "title"}),
        keys.rename({"value": "key"}),
        by_column.record_texts(lines, columns).rename({"text": "said"}),
    ):
        rows = rows.join(said, "record", how="left", maintain_order="left")
    return rows


def _documents(
    path: Path,
    rows: pl.DataFrame,
    problems: Mapping[int, str],
    options: ReadingOptions,
    *,
    in_column: bool,
) -> ReadResult:
    own, said = pl.col("text"), pl.col("said")
    text, room, has_blocks = said, pl.lit(0), pl.lit(value=True)
    if in_column:
        has_blocks = (own != "") & (said != "")
        text = pl.when(has_blocks).then(pl.concat_str(own, pl.lit("\n\n"), said)).otherwise(own)
        room = own.str.len_chars().cast(pl.Int64) + 2
    untitled = pl.concat_str(pl.lit(f"{readable_name(path)}: "), "key")
    is_bad = (text == "") | pl.col("record").is_in(list(problems))
    rows = rows.select(
        "record",
        "key",
        title=pl.coalesce("title", untitled),
        text=text,
        metadata=pl.when(pl.lit(in_column) | pl.col("title").is_not_null())
        .then("metadata")
        .otherwise(pl.lit("{}")),
        starts=pl.when(has_blocks).then(pl.col("starts") + room),
        ends=pl.when(has_blocks).then(pl.col("ends") + room),
        kinds=pl.when(has_blocks).then("kinds"),
        is_bad=is_bad,
    )
    reason = why_empty({}, options, in_column)
    refused = rows.filter("is_bad").select("record", "key").iter_rows()
    documents = DocumentTable(rows.filter(~pl.col("is_bad")).drop("record", "is_bad"))
    return ReadResult(
        documents, [Quarantined(key, problems.get(number, reason)) for number, key in refused]
    )


def _special(names: Sequence[str], options: ReadingOptions) -> _Special:
    folded = {name.casefold(): name for name in names}

    def among(columns: Sequence[str]) -> list[str]:
        wanted = dict.fromkeys(column.casefold() for column in columns)
        return [folded[column] for column in wanted if column in folded]

    return _Special(
        text=among(options.text_columns),
        title=among(options.title_columns),
        key=among(options.id_columns),
        halves=[folded[name] for name in name_columns(tuple(folded)) if name],
    )


def _clean(cell: pl.Expr) -> pl.Expr:
    newlines = cell.str.replace_all(NEWLINES, "\n")
    # Databases write NULL so.
    return newlines.str.replace_all(REMOVED, "").str.strip_chars().replace("\\N", "")


def _on_one_line(cell: pl.Expr) -> pl.Expr:
    return cell.str.replace_all(r"\s+", " ")


def _parts(special: _Special) -> dict[str, pl.Expr]:
    """Return what a row's text, title and key are, "" where there is none, and in which columns."""
    parts: dict[str, pl.Expr] = {}
    for part, names in (("text", special.text), ("title", special.title), ("key", special.key)):
        filled = [pl.when(pl.col(name) != "").then(pl.lit(name)) for name in names]
        values = [pl.when(pl.col(name) != "").then(pl.col(name)) for name in names]
        nothing = pl.lit(None, pl.String)
        parts[f"{part}_in"] = pl.coalesce(*filled, nothing)
        parts[part] = pl.coalesce(*values, pl.lit(""))
    has_text = pl.any_horizontal([pl.lit(value=False), *(_is_there(name) for name in special.text)])
    parts["has_text"] = has_text
    parts["key"] = _on_one_line(parts["key"])
    title = _on_one_line(parts["title"])
    in_two = pl.lit(value=False)
    if special.halves:
        given = [_on_one_line(pl.col(name)).replace("", None) for name in special.halves]
        whole = pl.concat_str(given, separator=" ", ignore_nulls=True)
        is_there = pl.all_horizontal(map(_is_there, special.halves))
        in_two = (title == "") & is_there & (whole != "")
        title = pl.when(in_two).then(whole).otherwise(title)
        parts["title_in"] = pl.when(in_two).then(pl.lit("name")).otherwise(parts["title_in"])
    return {**parts, "title": title, "in_two": in_two}


def _is_there(name: str) -> pl.Expr:
    return pl.col(name).is_not_null()


def _cell(name: str) -> str:
    return f"cell {name}"


def _is_said(name: str, special: _Special) -> pl.Expr:
    """Whether a cell holds something that is said in a line of its own."""
    is_said = (pl.col(_cell(name)) != "") & ~_is_title(name, special)
    for part, columns in (("text", special.text), ("key", special.key)):
        if name in columns:
            is_said &= ~(pl.col("has_text") & pl.col(f"{part}_in").eq_missing(pl.lit(name)))
    return is_said & ~pl.col("in_two") if name in special.halves else is_said


def _is_title(name: str, special: _Special) -> pl.Expr:
    if name not in special.title:
        return pl.lit(value=False)
    return pl.col("title_in").eq_missing(pl.lit(name)) & ~pl.col("in_two")


def _lines(table: pl.DataFrame, names: Sequence[str], special: _Special) -> pl.DataFrame:
    """Return the lines of all rows, see :func:`fields.lines_of`: the title first."""
    values = [pl.when(pl.col("title") != "").then(pl.col("title"))]
    values += [pl.when(_is_said(name, special)).then(pl.col(_cell(name))) for name in names]
    slots = pl.lit(pl.Series([list(range(len(values)))], dtype=pl.List(pl.Int32)))
    flat = (
        table.select("record", "title_in", value=pl.concat_list(values), slot=slots.first())
        .explode("value", "slot")
        .drop_nulls("value")
    )
    path = pl.Series("path", ["", *names], dtype=pl.String).gather(flat["slot"])
    is_first = pl.col("slot") == 0
    lines = flat.with_columns(path=pl.when(is_first).then("title_in").otherwise(path))
    without_numbers = {name: column_of(name) for name in names if column_of(name) != name}
    return lines.select(
        "record",
        "path",
        "value",
        is_title=pl.col("path").eq_missing(pl.col("title_in")),
        column=pl.col("path").replace(without_numbers) if without_numbers else pl.col("path"),
    )


def _metadata(names: Sequence[str], special: _Special, roles: Mapping[str, str] | None) -> pl.Expr:
    """Return each row's metadata as JSON: cells that are not its text, title or id.

    With ``roles`` only those that name nothing by themselves.
    """
    said: list[pl.Expr] = []
    for name in sorted(names):
        if roles is not None and roles.get(name, "value") not in ("value", "key"):
            continue
        text = pl.col(_cell(name))
        is_kept = (text != "") & ~_is_title(name, special)
        for part, columns in (("text", special.text), ("key", special.key)):
            if name in columns:
                is_kept &= pl.col(f"{part}_in").ne_missing(pl.lit(name))
        for character, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t")):
            text = text.str.replace_all(character, escaped, literal=True)
        before = f'{json.dumps(name, ensure_ascii=False)}: "'
        said.append(pl.when(is_kept).then(pl.concat_str(pl.lit(before), text, pl.lit('"'))))
    fields = pl.concat_str(said, separator=", ", ignore_nulls=True) if said else pl.lit("")
    return pl.concat_str(pl.lit("{"), fields, pl.lit("}"))
