"""`feedback`: what people said of the answers that they got on the page."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from graphrag_pipeline.cli import console
from graphrag_pipeline.cli.command import prints, settings_here


def show_feedback(rows: list[dict[str, Any]]) -> None:
    """Print what was said as a table."""
    if not rows:
        console.say("Nobody has said yet whether an answer is good or bad.")
        return
    columns = ("verdict", "words", "question", "method", "said_by")
    days = (datetime.fromtimestamp(row["said_at"], UTC).strftime("%Y-%m-%d") for row in rows)
    console.table(
        ("day", *columns),
        [(day, *(row[c] for c in columns)) for day, row in zip(days, rows, strict=True)],
    )


@prints(show_feedback)
def feedback(
    questions: Annotated[
        Path | None,
        typer.Option(
            help="Write the questions to this file (.jsonl) for eval run; an answer that was "
            "called good is the one expected."
        ),
    ] = None,
) -> list[dict[str, Any]]:
    """List what people said of the answers they got from the server, the oldest first."""
    from graphrag_pipeline.core.hardening.files import write_beside
    from graphrag_server.conversations import Conversations
    from graphrag_server.paths import ServerFiles

    settings = settings_here()
    file = ServerFiles(settings.home_path).conversations
    rows = Conversations(file, settings.server.conversation_days).feedback()
    if questions is not None:
        write_beside(questions, "".join(map(_line, rows)).encode())
        console.note(f"Wrote {len(rows):,} questions to {questions}")
    return rows


def _line(row: dict[str, Any]) -> str:
    expected = [row["answer"]] if row["verdict"] == "good" and row["answer"] else []
    question = {"question": row["question"], "answers": expected, "type": row["verdict"]}
    return json.dumps(question, ensure_ascii=False) + "\n"
