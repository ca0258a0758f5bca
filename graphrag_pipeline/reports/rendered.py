"""Contexts written out as text: what a model is shown for a report, and what it may refer to."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import polars as pl

from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.reports.contexts import Context
from graphrag_pipeline.reports.references import check_references
from graphrag_pipeline.store.frames import put_rows
from graphrag_pipeline.store.hierarchy import Hierarchy
from graphrag_pipeline.store.index_store import IndexStore

_ROWS = {
    "Reports": """SELECT c.id, c.human_readable_id, r.title, r.full_content
                  FROM {communities} c JOIN {reports} r ON r.community_id = c.id
                  SEMI JOIN shown ON shown.id = c.id""",
    "Entities": """SELECT id, human_readable_id, title, type, description FROM {entities}
                   SEMI JOIN shown USING (id)""",
    "Claims": """SELECT id, human_readable_id, subject, object, type, status, start_date,
                        end_date, description FROM resolved_claims
                 SEMI JOIN shown USING (id)""",
    "Relationships": """SELECT id, human_readable_id, source, target, description
                        FROM {relationships} SEMI JOIN shown USING (id)""",
}
_HEADERS = {
    "Reports": ("id", "title", "report"),
    "Entities": ("id", "entity", "type", "description"),
    "Claims": (
        "id", "subject", "object", "type", "status", "start_date", "end_date", "description",
    ),
    "Relationships": ("id", "source", "target", "description"),
}  # fmt: skip

_DROPPED_FIRST = ("Claims", "Relationships", "Entities", "Reports")
_SHORTEST_CUT = 20

Row = tuple[object, ...]


@dataclass(frozen=True)
class Rendered:
    """A context as text, of so many tokens at most, and the numbers of its rows, by section."""

    community_id: str
    hash: str
    text: str
    numbers: Mapping[str, tuple[int, ...]]


def render(
    store: IndexStore,
    contexts: Sequence[Context],
    hierarchy: Hierarchy,
    budget: int,
    encoding: str,
) -> list[Rendered]:
    """Write contexts out, each in at most ``budget`` tokens of an encoding."""
    rows = _read_rows(store, contexts, hierarchy)
    return [_rendered(context, rows, budget, encoding) for context in contexts]


def _rendered(
    context: Context,
    rows: Mapping[str, Mapping[str, Sequence[Row]]],
    budget: int,
    encoding: str,
) -> Rendered:
    ids = {
        "Reports": context.sub_reports,
        "Entities": context.entities,
        "Claims": context.claims,
        "Relationships": context.relationships,
    }
    rows_of = {
        section: [row for id in ids[section] for row in rows[section].get(id, ())]
        for section in _ROWS
    }
    allowed = _numbers(rows_of)
    rows_of["Reports"] = [
        (number, title, check_references(str(report), allowed).text)
        for number, title, report in rows_of["Reports"]
    ]
    text = fitted(rows_of, budget, encoding)
    numbers = {section: tuple(sorted(some)) for section, some in _numbers(rows_of).items()}
    return Rendered(context.community_id, context.hash, text, numbers)


def _numbers(rows_of: Mapping[str, Sequence[Row]]) -> dict[str, set[int]]:
    """Return what can be referred to: the numbers of the rows, by section."""
    return {name: {int(str(row[0])) for row in rows_of[name]} for name in _ROWS}


def fitted(rows_of: dict[str, list[Row]], budget: int, encoding: str) -> str:
    """Write rows out; those that matter least are dropped, and long texts cut, until it fits.

    What they take was reckoned from their parts: written out, it may be a little more.
    """
    text = _written(rows_of)
    while (over := count_tokens([text], encoding)[0] - budget) > 0:
        section = next((name for name in _DROPPED_FIRST if len(rows_of[name]) > 1), None)
        if section is not None:
            while over > 0 and len(rows_of[section]) > 1:
                over -= count_tokens([_csv((), [rows_of[section].pop()])], encoding)[0]
        elif not _cut_longest(rows_of, over / (over + budget)):
            break
        text = _written(rows_of)
    return text


def _cut_longest(rows_of: dict[str, list[Row]], share: float) -> bool:
    """Cut a share of the longest text of all rows; say if there was one to cut."""
    cells = [
        (len(cell), name, place, column)
        for name, rows in rows_of.items()
        for place, row in enumerate(rows)
        for column, cell in enumerate(row)
        if isinstance(cell, str)
    ]
    length, name, place, column = max(cells, default=(0, "", 0, 0))
    if length < _SHORTEST_CUT:
        return False
    row = rows_of[name][place]
    cut = str(row[column])[: min(length - 1, int(length * (1 - share)))]
    rows_of[name][place] = (*row[:column], f"{cut.rstrip()}…", *row[column + 1 :])
    return True


def _written(rows_of: Mapping[str, Sequence[Row]]) -> str:
    return "\n".join(
        f"-----{name}-----\n{_csv(_HEADERS[name], rows_of[name])}"
        for name in _ROWS
        if rows_of[name]
    )


def _read_rows(
    store: IndexStore, contexts: Iterable[Context], hierarchy: Hierarchy
) -> Mapping[str, Mapping[str, Sequence[Row]]]:
    ids = {id for context in contexts for id in context.elements}
    with store.read() as con:
        put_rows(con, "shown", pl.DataFrame({"id": sorted(ids)}, schema={"id": pl.String}))
        return {section: _grouped(con, hierarchy.sql(query)) for section, query in _ROWS.items()}


def _grouped(con: duckdb.DuckDBPyConnection, query: str) -> Mapping[str, Sequence[Row]]:
    rows_of: dict[str, list[Row]] = defaultdict(list)
    for key, *row in con.execute(query).fetchall():
        rows_of[key].append(tuple(row))
    return rows_of


def _csv(header: Sequence[str], rows: Iterable[Row]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if header:
        writer.writerow(header)
    writer.writerows([["" if v is None else v for v in row] for row in rows])
    return text.getvalue()
