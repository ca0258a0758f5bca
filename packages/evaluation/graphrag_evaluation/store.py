"""``evaluation.duckdb``: questions, answers, verdicts and scores, beside the index."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path

import duckdb

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.identity import content_hash
from graphrag_pipeline.store.index_store import IndexStore, get_meta

_VERSION = "1"
_MADE_BY = "schema"
# A key cannot be changed: the table is made anew.
_SCORES_BEFORE = (
    "CREATE TABLE scores_before AS FROM scores; DROP TABLE scores;",
    "INSERT INTO scores BY NAME FROM scores_before; DROP TABLE scores_before;",
)
_SCORES_COLUMNS = """
SELECT count(*) FILTER (column_name = 'model') = 0 AND count(*) > 0
FROM duckdb_columns() WHERE table_name = 'scores'
"""


class EvaluationStore(IndexStore):
    """The file of all evaluations of a home folder; one process at a time has it open.

    It is another file than the index, so that evaluating never waits for a run of the pipeline,
    nor a run for it, and no release carries a copy.
    """

    def __init__(self, home: Path) -> None:
        super().__init__(Home(home).evaluation)

    def ensure_schema(self, con: duckdb.DuckDBPyConnection) -> None:
        """Give a new file its tables; refuse one that a newer program made."""
        if _made_by(con) == content_hash(_schema()):
            return
        before, after = _SCORES_BEFORE if _lacks_model(con) else ("", "")
        # One transaction: each of its many statements would otherwise be synced by itself.
        con.execute(f"BEGIN; {before} {_schema()}; {after} COMMIT")
        con.execute(
            "INSERT OR REPLACE INTO meta VALUES (?, ?)", [_MADE_BY, content_hash(_schema())]
        )
        con.execute("INSERT OR IGNORE INTO meta VALUES ('schema_version', ?)", [_VERSION])
        row = con.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()
        if row is None or row[0] != _VERSION:
            raise StorageError(
                f"{self.path} was made by another version of the program: move it away, or "
                "use that version"
            )


def _made_by(con: duckdb.DuckDBPyConnection) -> str | None:
    """Return a hash of the schema that a file's tables are made by, None for a new file."""
    row = con.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'meta'").fetchone()
    return get_meta(con, _MADE_BY) if row != (0,) else None


def _lacks_model(con: duckdb.DuckDBPyConnection) -> bool:
    """Say whether there is a table of scores of before they were kept by model."""
    return con.execute(_SCORES_COLUMNS).fetchone() == (True,)


@cache
def _schema() -> str:
    return resources.files("graphrag_evaluation").joinpath("schema.sql").read_text("utf-8")
