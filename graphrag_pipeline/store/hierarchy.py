"""Which graph a hierarchy of communities is of, and in which tables it is kept."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb

from graphrag_pipeline.store.index_store import get_meta, set_meta


@dataclass(frozen=True)
class Hierarchy:
    """A graph and the communities and reports over it: what the names in a query stand for.

    ``entities`` and ``relationships`` may be queries in parentheses; all others are tables.
    ``states`` begins the keys in ``meta`` of what is kept about it. Where ``has_history``, updates
    are logged, and what reports were written from is kept, by which a report may stay although a
    little of that has changed.
    """

    entities: str = "entities"
    relationships: str = "relationships"
    communities: str = "communities"
    members: str = "community_members"
    reports: str = "community_reports"
    failures: str = "report_failures"
    states: str = ""
    has_history: bool = True

    def sql(self, query: str) -> str:
        """Return a query of the project's own with ``{communities}`` and the like replaced."""
        for name in ("entities", "relationships", "communities", "members", "reports", "failures"):
            query = query.replace(f"{{{name}}}", getattr(self, name))
        return query

    def get_state(self, con: duckdb.DuckDBPyConnection, key: str) -> str | None:
        """Return what is kept about it under a key, or None."""
        return get_meta(con, f"{self.states}{key}")

    def set_state(self, con: duckdb.DuckDBPyConnection, key: str, value: str) -> None:
        """Keep something about it."""
        set_meta(con, f"{self.states}{key}", value)


GRAPH = Hierarchy()
"""The communities of the graph and their reports."""
