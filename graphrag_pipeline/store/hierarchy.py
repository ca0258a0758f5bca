"""Hierarchies of communities: which graph each is of, and its rows of the tables they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb

from graphrag_pipeline.store.frames import value_of
from graphrag_pipeline.store.index_store import get_meta, insert, replace_links, set_meta

TABLES = {
    "communities": ("id",),
    "members": ("community_id", "entity_id", "level"),
    "reports": ("id",),
    "failures": ("community_id",),
}
"""What there is of every hierarchy, and what tells its rows apart.

The table ``hierarchy_NAME`` has the rows of all hierarchies.
"""
ENTITIES_COVERED_ONCE = """
SELECT e.id FROM {entities} e
CROSS JOIN (SELECT unnest(range(min(level), max(last_level) + 1)) AS level FROM {communities}) l
LEFT JOIN {members} m ON m.entity_id = e.id AND m.level = l.level
GROUP BY e.id, l.level HAVING count(m.entity_id) <> 1
"""
"""An invariant, by what is against it: every level has every entity in one community."""
COMMUNITIES_REPORTED = """
SELECT c.id FROM {communities} c
ANTI JOIN (SELECT community_id FROM {reports} UNION ALL SELECT community_id FROM {failures}) r
    ON r.community_id = c.id
WHERE c.size >= 2
"""
"""An invariant: each community of two or more entities has a report, or one that failed."""

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Hierarchy:
    """A graph and the communities and reports over it: what the names in a query stand for.

    Its rows have ``name`` in the column ``hierarchy``, and SQL users see them in ``views``.
    ``entities`` and ``relationships`` may be queries in parentheses. Where ``has_history``, updates
    are logged, and what reports were written from is kept, by which a report may stay although a
    little of that has changed. ``tables`` begins the names of the tables to read.
    """

    name: str
    views: Sequence[str]
    entities: str = "entities"
    relationships: str = "relationships"
    has_history: bool = False
    tables: str = "hierarchy_"

    @property
    def is_own(self) -> str:
        """The condition that a row belongs to it."""
        return f"hierarchy = '{self.name}'"

    def sql(self, query: str) -> str:
        """Return a query of the project's own with ``{communities}`` and the like replaced."""
        for name in TABLES:
            own = f"(SELECT * EXCLUDE (hierarchy) FROM {self.tables}{name} WHERE {self.is_own})"
            query = query.replace(f"{{{name}}}", own)
        query = query.replace("{entities}", self.entities)
        return query.replace("{relationships}", self.relationships)

    def count(self, broken: str) -> str:
        """Return the query that counts what such a query selects."""
        return f"SELECT count(*) FROM ({self.sql(broken)})"

    def insert(self, con: duckdb.DuckDBPyConnection, table: str, rows: pl.DataFrame) -> None:
        """Append rows to one of the tables."""
        insert(con, f"hierarchy_{table}", self.own(rows))

    def replace(self, con: duckdb.DuckDBPyConnection, table: str, wanted: str) -> None:
        """Make its rows of a table those of a relation, in this order of columns."""
        own = f"(SELECT '{self.name}' AS hierarchy, * FROM {wanted})"
        key = ("hierarchy", *TABLES[table])
        replace_links(con, f"hierarchy_{table}", own, key, self.is_own)

    def delete(
        self, con: duckdb.DuckDBPyConnection, table: str, where: str, values: Mapping[str, object]
    ) -> int:
        """Delete its rows of which a condition of the project's own holds; return how many."""
        query = f"DELETE FROM hierarchy_{table} WHERE {self.is_own} AND ({self.sql(where)})"
        return value_of(con, query, values)

    def clear(self, con: duckdb.DuckDBPyConnection) -> None:
        """Delete all of its rows."""
        for table in TABLES:
            self.delete(con, table, "true", {})

    def own(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return rows with its name before them."""
        import polars as pl

        return rows.select(pl.lit(self.name).alias("hierarchy"), pl.all())

    def get_state(self, con: duckdb.DuckDBPyConnection, key: str) -> str | None:
        """Return what is kept about it under a key, or None."""
        return get_meta(con, f"{self.name}:{key}")

    def set_state(self, con: duckdb.DuckDBPyConnection, key: str, value: str) -> None:
        """Keep something about it."""
        set_meta(con, f"{self.name}:{key}", value)


GRAPH = Hierarchy(
    "graph",
    ("communities", "community_members", "community_reports", "report_failures"),
    has_history=True,
)
"""The communities of the graph and their reports."""
