"""A copy of what marts read beside a release, for a dbt that is run by hand: nobody waits for it.

The profile's target ``dev`` names this module as a plugin of dbt-duckdb.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from dbt.adapters.duckdb.plugins import BasePlugin
from duckdb import DuckDBPyConnection

from graphrag_pipeline.core.rows import sql_literal
from graphrag_pipeline.marts.inputs import copy_inputs


class Plugin(BasePlugin):
    """Attaches a copy of what marts read beside a release, as ``evaluation``; it goes at exit."""

    def configure_connection(self, conn: DuckDBPyConnection) -> None:
        """Copy what there is; where nothing was evaluated, the tables are there and empty."""
        assert self.creds is not None
        self._folder = tempfile.TemporaryDirectory(prefix="graphrag-")
        copy = copy_inputs(Path(self.creds.path).parent, Path(self._folder.name))
        conn.execute(f"ATTACH {sql_literal(copy)} AS evaluation (READ_ONLY)")
