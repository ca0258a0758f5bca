"""Traces kept with an answer: its method's steps, the names it looked for, parts of its context."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from graphrag_pipeline.query.trace import names_told

if TYPE_CHECKING:
    from graphrag_pipeline.query import Retrieval
    from graphrag_pipeline.query.results import Record

SCHEMA: Final = {
    "steps": pl.List(pl.String),
    "names": pl.List(pl.String),
    "parts": pl.List(pl.Struct({"kind": pl.String, "records": pl.Int32, "tokens": pl.Int32})),
    "reports_in_relationships": pl.Float64,
    "entities_in_relationships": pl.Float64,
}
"""The columns, with their types."""

_WORD = re.compile(r"\w+")


def trace_columns(retrieval: Retrieval) -> dict[str, Any]:
    """Return the columns of ``answers`` that trace a retrieval.

    ``names`` are those that the method looked for, None where it looks for none. The last two are
    shares of the different words of reports, and of entities with text, that the relationships of
    the context have (HiRAG, table 7): None where it has not both.
    """
    texts: dict[str, set[str]] = {}
    for record in retrieval.records:
        texts.setdefault(record.kind, set()).update(_words(record))
    bridge = texts.get("relationship", set())
    return {
        "steps": list(retrieval.steps),
        "names": names_told(retrieval.steps),
        "parts": _parts(retrieval.records),
        "reports_in_relationships": _share(texts, ("report", "finding"), bridge),
        "entities_in_relationships": _share(texts, ("entity", "chunk"), bridge),
    }


def _parts(records: Sequence[Record]) -> list[dict[str, Any]]:
    kinds = dict.fromkeys(record.kind for record in records)
    return [
        {
            "kind": kind,
            "records": sum(record.kind == kind for record in records),
            "tokens": sum(record.n_tokens for record in records if record.kind == kind),
        }
        for kind in kinds
    ]


def _words(record: Record) -> set[str]:
    return set(_WORD.findall(f"{record.title} {record.text}".casefold()))


def _share(texts: Mapping[str, set[str]], kinds: Sequence[str], bridge: set[str]) -> float | None:
    words = set[str]().union(*(texts.get(kind, set()) for kind in kinds))
    return len(words & bridge) / len(words) if words and bridge else None
