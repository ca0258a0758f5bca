"""A table as Dagster shows it: facts, columns, rows and pictures, made inert."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb

from graphrag_pipeline.core.errors import GraphRAGError, is_interrupt
from graphrag_pipeline.core.rows import one_line
from graphrag_pipeline.pages.pictures import Picture
from graphrag_pipeline.store.index_store import IndexStore

OWNERS = ["team:graphrag"]
_CELL = 90
_LONGEST_WHY = 200
_MARKUP = re.compile(r"([\\`*_~\[\]<>|!&#$@])")
_LINK = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?=@)", re.IGNORECASE)
_INVISIBLE = "\u2060"
_COLUMNS = """
SELECT table_name,
       list({name: column_name, type: data_type, description: comment} ORDER BY column_index)
FROM duckdb_columns() WHERE schema_name = 'main' AND NOT internal GROUP BY table_name
"""


def adorned(name: str, make: Callable[[], Mapping[Any, Any]]) -> Mapping[Any, Any]:
    """Return what is shown beside a result; where it cannot be made, why, under ``name``.

    The work is done by then: an adornment that fails is a warning in the log, and ends no run. Only
    Ctrl-C does.
    """
    try:
        return make()
    except Exception as error:
        if is_interrupt(error):
            raise
        kind = "" if isinstance(error, GraphRAGError) else f"{type(error).__name__}: "
        why = "could not be shown: " + one_line(f"{kind}{error}")[:_LONGEST_WHY]
        dg.get_dagster_logger().warning(f"{name} {why}")
        return {name: why}


def facts(
    con: duckdb.DuckDBPyConnection, query: str, parameters: Mapping[str, object] | None = None
) -> dict[str, object]:
    """Return the one row of a query as metadata, by column name; what is not known is left out."""
    result = con.execute(query, parameters or {})
    names = [column[0] for column in result.description or []]
    row = result.fetchone() or ()
    values = {name: value for name, value in zip(names, row, strict=True) if value is not None}
    return {n: round(v, 3) if isinstance(v, float) else v for n, v in values.items()}


def column_schema(
    con: duckdb.DuckDBPyConnection, store: IndexStore, table: str
) -> dict[str, object]:
    """Return a table's columns with types and comments, as metadata; a run reads all at once."""
    known = store.recall(_COLUMNS)
    tables = known if isinstance(known, dict) else {}
    if table not in tables:
        tables = dict(con.execute(_COLUMNS).fetchall())
        store.remember(_COLUMNS, tables)
    columns = [dg.TableColumn(**column) for column in tables.get(table, ())]
    return {"dagster/column_schema": dg.TableSchema(columns=columns)}


def markdown_table(
    con: duckdb.DuckDBPyConnection,
    query: str,
    parameters: Mapping[str, object] | None = None,
    longest: int = _CELL,
) -> dg.MetadataValue:
    """Return the rows of one of the project's own queries as a Markdown table.

    The UI hides tables of more than a thousand characters behind a link: ask for few rows.
    """
    result = con.execute(query, parameters or {})
    names = [column[0] for column in result.description or []]
    return markdown_rows(names, result.fetchall(), longest)


def markdown_rows(
    names: Sequence[str], rows: Sequence[Sequence[object]], longest: int = _CELL
) -> dg.MetadataValue:
    """Return rows as a Markdown table, values cut to ``longest`` characters and made inert."""
    if not rows:
        return dg.MetadataValue.md("*no rows*")
    lines = ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
    lines += ["| " + " | ".join(_cell(value, longest) for value in row) + " |" for row in rows]
    return dg.MetadataValue.md("\n".join(lines))


def picture(home: Path, drawing: Picture | None) -> Mapping[str, str | dg.MetadataValue]:
    """Return a picture as metadata, under its own name; nothing where there is nothing to see."""
    return adorned(drawing.name, lambda: {drawing.name: _drawn(home, drawing)}) if drawing else {}


def _drawn(home: Path, drawing: Picture) -> dg.MetadataValue:
    data = base64.b64encode(drawing.svg(home)).decode()
    return dg.MetadataValue.md(
        f"![{drawing.name}](data:image/svg+xml;base64,{data})\n\n{inert(drawing.caption)}"
    )


def inert(text: str) -> str:
    """Return text from anywhere as one line of Markdown that shows it and does nothing else.

    The UI makes links of addresses even where their markup is escaped: a word joiner, which is
    not seen, takes them apart.
    """
    return _MARKUP.sub(r"\\\1", _LINK.sub(_INVISIBLE, " ".join(text.split())))


def _cell(value: object, longest: int) -> str:
    if value is None:
        text = ""
    elif isinstance(value, float):
        text = f"{value:.3g}"
    elif isinstance(value, datetime):
        text = value.isoformat(sep=" ", timespec="seconds")
    else:
        text = (
            value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
        )
    flat = " ".join(text.split())
    return inert(flat if len(flat) <= longest else flat[: longest - 1] + "…")
