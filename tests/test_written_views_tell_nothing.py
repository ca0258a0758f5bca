"""Where a model reads and answers, too: what it is shown for a caller with labels, and what it
costs, is the same whatever is hidden."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from strict_server import StrictServer
from test_access import SPECS, tables_of
from view_pairs import (
    LABEL,
    LOUD,
    QUESTIONS,
    QUIET,
    Side,
    differing,
    opened_pair,
    rows_of,
    write_pair,
)

from graphrag_pipeline.core.errors import GraphRAGError
from graphrag_pipeline.query import QueryEngine, read_method

HIDDEN = {"quiet": QUIET, "loud": LOUD}
EMBEDDED = "embeddings"


@pytest.fixture(scope="module")
def model() -> Iterator[StrictServer]:
    played = importlib.import_module("benchmarks.played_answers")
    with pytest.MonkeyPatch.context() as patch, StrictServer(played.played_answer) as server:
        patch.setenv("OPENAI_API_KEY", "sk-test")
        yield server


STRUCTURES: dict[str, dict[str, bool]] = {
    "embeddings": {"facts": True, "synonyms": True},
    "hierarchies": {"raptor": True, "attributed": True, "hirag": True},
}


@pytest.mark.parametrize("more", [{}, pytest.param(STRUCTURES, marks=pytest.mark.nightly)])
def test_tables_answers_prompts_and_costs_are_the_same(
    tmp_path: Path, model: StrictServer, more: Mapping[str, Mapping[str, bool]]
) -> None:
    settings = {
        "profile": "llm",
        "llm": {"base_url": model.base_url, "retry_seconds": 0.005, "max_retries": 2},
        "chunks": {"size": 60, "overlap": 5},
        **more,
    }
    write_pair(tmp_path / "pair", settings, HIDDEN)
    pair = opened_pair(tmp_path / "pair", settings, HIDDEN)

    def told(side: Side) -> Mapping[str, object]:
        with side.index.view([LABEL]).open() as view:
            tables = {name: rows_of(view.index, name) for name in tables_of(view)}
            return tables | {spec: answered(view, spec, model) for spec in SPECS}

    assert differing(pair, told) == []


def answered(view: QueryEngine, spec: str, model: StrictServer) -> object:
    """Return an answer and what the model was shown for it, but for texts to embed."""
    before, (name, options) = len(model.requests), read_method(spec)
    try:
        answer: object = view.answer(QUESTIONS[0], name, follow_ups=2, **options).to_dict()
    except GraphRAGError as error:
        answer = str(error)
    shown = (each for each in model.requests[before:] if each.endpoint != EMBEDDED)
    return answer, sorted(str(each.messages) for each in shown)
