"""Labels in ``evaluation.duckdb``: kept, counted, and removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import polars as pl

from graphrag_evaluation.labelling.items import answers_given
from graphrag_evaluation.labelling.reading import Label, read_labels
from graphrag_evaluation.store import EvaluationStore
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.store.frames import drop_rows, put_rows

_KEY = "labeller, kind, criterion, question_id, first_answer, second_answer"
_COUNT = f"""
SELECT count(*) FILTER (l.labeller IS NULL), count(*) FILTER (l.value <> g.value)
FROM given_labels g LEFT JOIN human_labels l USING ({_KEY})
"""
_MARKED = """
SELECT DISTINCT substr(metric, length('reference_') + 1) FROM experiment_scores
WHERE experiment = ? AND starts_with(metric, 'reference_')
"""


@dataclass(frozen=True, kw_only=True)
class KeptLabels:
    """Counts of the labels of files; ``changed`` are those that said something else before."""

    labels: int
    labellers: tuple[str, ...]
    new: int
    changed: int


def bring_labels(
    store: EvaluationStore, experiment: str, files: Sequence[Path], *, labeller: str = ""
) -> KeptLabels:
    """Keep the labels of files on the answers of an experiment: all, or none if one is broken.

    Raises InputError, with file and row, as :func:`read_labels`.
    """
    with store.read() as con:
        given = answers_given(con, experiment)
        marked = [criterion for (criterion,) in con.execute(_MARKED, [experiment]).fetchall()]
    labels = read_labels(files, given, labeller=labeller, marked=marked)
    with store.transaction() as con:
        return keep_labels(con, labels)


def keep_labels(con: duckdb.DuckDBPyConnection, labels: Sequence[Label]) -> KeptLabels:
    """Keep labels; one that its labeller gave before is replaced.

    The connection is one of a transaction.
    """
    rows = pl.DataFrame([_row(label) for label in labels])
    put_rows(con, "given_labels", rows)
    new, changed = con.execute(_COUNT).fetchone() or (0, 0)
    con.execute("INSERT OR REPLACE INTO human_labels BY NAME FROM given_labels")
    drop_rows(con, "given_labels")
    labellers = tuple(dict.fromkeys(label.labeller for label in labels))
    return KeptLabels(labels=len(labels), labellers=labellers, new=new, changed=changed)


def drop_labels(con: duckdb.DuckDBPyConnection, labeller: str) -> int:
    """Remove all that somebody has labelled; return how many. Raises InputError for a stranger."""
    rows = con.execute("DELETE FROM human_labels WHERE labeller = ? RETURNING 1", [labeller])
    if not (n_removed := len(rows.fetchall())):
        names = con.execute("SELECT DISTINCT labeller FROM human_labels ORDER BY ALL").fetchall()
        listed = ", ".join(name for (name,) in names)
        raise InputError(
            f"nobody called {labeller!r} has labelled anything"
            + (f": there are {listed}" if listed else "")
        )
    return n_removed


def _row(label: Label) -> dict[str, object]:
    first, second = label.item.hashes
    return {
        "labeller": label.labeller,
        "kind": label.item.kind,
        "criterion": label.criterion,
        "question_id": label.item.question_id,
        "first_answer": first,
        "second_answer": second,
        "value": label.value,
        "note": label.note,
        "labelled_at": datetime.now(UTC),
    }
