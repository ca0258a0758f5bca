"""Two indexes with the same public documents and different hidden ones: a view tells them apart
by nothing, whatever is asked and however."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import typer
from artefacts import copy_of
from test_access import SPECS, tables_of
from typer.testing import CliRunner
from view_pairs import (
    LABEL,
    LOUD,
    QUESTIONS,
    QUIET,
    RELEASE_FIELDS,
    RULES,
    Pair,
    Side,
    differing,
    opened_pair,
    rows_of,
    write_pair,
)

from graphrag_pipeline import Index
from graphrag_pipeline.cli import query as asking
from graphrag_pipeline.cli.app import app
from graphrag_pipeline.core.errors import GraphRAGError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.query import METHODS, QueryEngine, read_method

SETTINGS = {
    "embeddings": {"facts": True, "synonyms": True, "dimensions": 64},
    "hierarchies": {"raptor": True, "attributed": True, "hirag": True},
    "chunks": {"size": 30, "overlap": 5},
}
HIDDEN = {"quiet": QUIET, "loud": LOUD}
Views = Mapping[str, QueryEngine]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    folder = copy_of(
        "views", lambda made: write_pair(made, SETTINGS, HIDDEN), tmp_path_factory.mktemp("views")
    )
    return opened_pair(folder, SETTINGS, HIDDEN)


@pytest.fixture(scope="module")
def views(pair: Pair) -> Iterator[Views]:
    with pair["quiet"].index.open() as quiet, pair["loud"].index.open() as loud:
        yield {"quiet": quiet.view({LABEL}), "loud": loud.view({LABEL})}


def shown(engine: QueryEngine, question: str, spec: str) -> object:
    """Return all that a method gives, in order, an error among it."""
    name, options = read_method(spec)
    try:
        parts = [engine.retrieve(question, name, **options).to_dict()]
        if name in METHODS:
            parts.append(engine.answer(question, name, follow_ups=3, **options).to_dict())
        return parts
    except GraphRAGError as error:
        return str(error)


def ids_of(pair: Pair, each: int) -> dict[str, list[str]]:
    """Return ids of what is in both indexes, hidden or not, by what they are of: one of so many."""
    tables = {"documents": "documents", "entities": "entities", "communities": "communities"}
    return {
        kind: sorted(
            {str(i) for side in pair.values() for (i,) in side.index.sql(f"SELECT id FROM {t}")[1]}
        )[::each]
        for kind, t in {**tables, "reports": "community_reports"}.items()
    }


def test_the_whole_indexes_differ_in_all_that_a_view_might_tell(pair: Pair) -> None:
    for table in ("entities", "relationships", "communities", "community_reports", "facts"):
        one, two = ({*map(str, side.index.sql(f"FROM {table}")[1])} for side in pair.values())
        assert one - two, table
        assert two - one, table


def test_every_table_of_a_view_holds_the_same_rows(pair: Pair, views: Views) -> None:
    names = tables_of(views["quiet"])
    assert names == tables_of(views["loud"])
    assert len(names) > 30

    def told(side: Side) -> Mapping[str, object]:
        index = views[side.name].index
        return {name: rows_of(index, name) for name in names} | {"counts": index.facts.counts}

    assert differing(pair, told) == []


@pytest.mark.parametrize(
    "question", [QUESTIONS[0], *(pytest.param(q, marks=pytest.mark.nightly) for q in QUESTIONS[1:])]
)
def test_every_method_gives_the_same(pair: Pair, views: Views, question: str) -> None:
    def told(side: Side) -> Mapping[str, object]:
        return {spec: shown(views[side.name], question, spec) for spec in SPECS}

    assert differing(pair, told) == []


# What remains, as the page on access says


def test_a_release_and_its_time_tell_of_other_documents(pair: Pair, views: Views) -> None:
    quiet, loud = (views[name].index.facts for name in pair)
    assert quiet.id != loud.id
    assert quiet.created_at != loud.created_at
    assert {"release", "created_at"} == {*RELEASE_FIELDS}


def test_who_may_see_everything_is_shown_the_release_itself(pair: Pair) -> None:
    with pair["quiet"].index.view(["hr"]).open() as everything:
        assert not everything.index.is_limited
        assert everything.index.rows("SELECT id FROM raptor_nodes")


@pytest.mark.parametrize("copy", ["hidden/copy.md", "zoo/hidden/copy.md"])
def test_a_document_of_which_a_copy_is_hidden_is_hidden(tmp_path: Path, copy: str) -> None:
    """Whether the copy is the first name of the document or another."""
    for file in ("public/one.md", "public/two.md", copy):
        path = tmp_path / "documents" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("Lucan Vane left." if "two" in file else "Alba Crane met Dorian Feld.")
    access = {"mode": "filtered", "rules": RULES}
    index = Index(Settings.exactly({"home": str(tmp_path / "home"), "access": access}))
    index.update(tmp_path / "documents")
    with index.view([LABEL]).open() as view:
        assert [row["text"] for row in view.index.rows("FROM documents")] == ["Lucan Vane left."]


# Over HTTP


# On the command line

COMMANDS = {
    "query": ["-m", "local", "--follow-ups", "3"],
    "compare": ["-m", "bm25,ppr,lightrag", "--json"],
}
"""The further arguments of each command that takes labels: every one has to be here."""


def taking_labels(command: Any, name: str = "") -> Iterator[str]:
    for sub, each in getattr(command, "commands", {}).items():
        yield from taking_labels(each, f"{name} {sub}".strip())
    if any(parameter.name == "as_labels" for parameter in command.params):
        yield name


def test_every_command_that_takes_labels_is_known_here() -> None:
    assert {*taking_labels(typer.main.get_command(app))} == COMMANDS.keys()


@pytest.mark.parametrize("command", ["query", pytest.param("compare", marks=pytest.mark.nightly)])
def test_a_command_with_labels_prints_the_same(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    def told(side: Side) -> Mapping[str, object]:
        monkeypatch.setattr(asking, "settings_here", lambda: side.index.settings)
        line = [command, QUESTIONS[0], "--as-labels", LABEL, *COMMANDS[command]]
        result = CliRunner().invoke(app, line)
        assert not result.exit_code, result.output
        return {command: result.output}

    assert differing(pair, told) == []
