"""``evaluation.duckdb``: questions, answers, verdicts and scores, beside the index."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import duckdb

from graphrag_pipeline.errors import StorageError
from graphrag_pipeline.store import IndexStore

FILE = "evaluation.duckdb"
_VERSION = "1"


class EvaluationStore(IndexStore):
    """The file of all evaluations of a home folder; one process at a time has it open.

    It is another file than the index, so that evaluating never waits for a run of the pipeline,
    nor a run for it, and no release carries a copy.
    """

    def __init__(self, home: Path) -> None:
        super().__init__(home / FILE)

    def ensure_schema(self, con: duckdb.DuckDBPyConnection) -> None:
        """Give a new file its tables; refuse one that a newer program made."""
        con.execute(_schema())
        con.execute("INSERT OR IGNORE INTO meta VALUES ('schema_version', ?)", [_VERSION])
        row = con.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()
        if row is None or row[0] != _VERSION:
            raise StorageError(
                f"{self.path} was made by another version of the program: move it away, or "
                "use that version"
            )


def _schema() -> str:
    return resources.files(__package__).joinpath("schema.sql").read_text("utf-8")
