"""Rows of a table around one of them: the records of a file, as a table has them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from graphrag_server.problems import one

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

_AROUND = 10
_MOST_COLUMNS = 30
_MOST_CHARACTERS = 300
_TABLE = r"\.(csv|tsv|xlsx|xlsm|ods|parquet|json|jsonl|ndjson)$"
_LINE = re.compile(r"([^:\n]{1,80}): (.*)")
# Numbered keys stand in their order where shorter ones come first.
_ROWS = """
WITH numbered AS (
    SELECT id, row_number() OVER (ORDER BY length(uri), uri) AS place FROM documents
    WHERE source = $source
)
SELECT d.id, d.title, left(d.text, 20000) AS text, d.metadata::VARCHAR AS metadata, n.place
FROM numbered n JOIN documents d USING (id)
WHERE abs(n.place - (SELECT place FROM numbered WHERE id = $id)) <= $around ORDER BY n.place
"""
_OF = f"""
SELECT source, uri <> source AND regexp_matches(lower(source), '{_TABLE}') AS is_row
FROM documents WHERE id = $id
"""


def rows_around(index: Release, id: str) -> dict[str, Any]:
    """Return columns and rows of the table around the row that a document is; else none.

    ``first`` is the place of the first of them among all that a caller sees.
    """
    of = one(index.rows(_OF, id=id), "document")
    found = index.rows(_ROWS, source=of["source"], id=id, around=_AROUND) if of["is_row"] else []
    cells = [_cells(row) for row in found]
    columns = [*dict.fromkeys(name for row in cells for name in row)][:_MOST_COLUMNS]
    rows = [
        {"id": row["id"], "cells": [each.get(name, "") for name in columns]}
        for row, each in zip(found, cells, strict=True)
    ]
    first = found[0]["place"] if found else None
    return {"columns": columns, "rows": rows, "first": first, "release": index.facts.id}


def _cells(row: dict[str, Any]) -> dict[str, str]:
    """Return the values of a record by column: of its lines, or its text, and its metadata."""
    lines = [_LINE.fullmatch(line) for line in row["text"].split("\n")]
    named = {line[1]: line[2] for line in lines if line}
    if not all(lines):
        named = {"title": row["title"], "text": row["text"]}
    values = {**{k: _plain(v) for k, v in json.loads(row["metadata"]).items()}, **named}
    ordered = {**named, **values}
    return {name: value[:_MOST_CHARACTERS] for name, value in ordered.items()}


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
