"""The server's tables for the marts: what people said of answers."""

from pathlib import Path

import polars as pl

from graphrag_pipeline.marts.inputs import MartTable
from graphrag_server.conversations import Conversations
from graphrag_server.paths import ServerFiles

_COLUMNS = {
    "answer_id": pl.String,
    "said_by": pl.String,
    "said_at": pl.Datetime("us", "UTC"),
    "verdict": pl.String,
    "words": pl.String,
    "question": pl.String,
    "method": pl.String,
    "release": pl.String,
    "documents": pl.List(pl.String),
    "communities": pl.List(pl.String),
}


def _feedback(home: Path) -> pl.DataFrame:
    rows = _conversations(home).feedback()
    said_at = [round(row["said_at"] * 1_000_000) for row in rows]
    columns = {name: [row[name] for row in rows] for name in _COLUMNS} | {"said_at": said_at}
    return pl.DataFrame(columns, schema=_COLUMNS)


def _version(home: Path) -> str:
    return _conversations(home).feedback_version()


def _conversations(home: Path) -> Conversations:
    return Conversations(ServerFiles(home).conversations, 0)


FEEDBACK = MartTable(
    about="What people said of answers, and what these rest on.", rows=_feedback, version=_version
)
