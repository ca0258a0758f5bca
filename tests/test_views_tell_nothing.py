"""Two indexes with the same public documents and different hidden ones: a view tells them apart
by nothing, whatever is asked and however."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from test_access import SPECS, tables_of
from view_pairs import LABEL, LOUD, QUESTIONS, QUIET, Side, build_pair, differing

from graphrag_pipeline.core.errors import GraphRAGError
from graphrag_pipeline.query import METHODS, QueryEngine, read_method

SETTINGS = {
    "embeddings": {"facts": True, "synonyms": True, "dimensions": 64},
    "hierarchies": {"raptor": True, "attributed": True, "hirag": True},
    "chunks": {"size": 30, "overlap": 5},
}
HIDDEN = {"quiet": QUIET, "loud": LOUD}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Side]:
    return build_pair(tmp_path_factory.mktemp("pair"), SETTINGS, HIDDEN)


@pytest.fixture(scope="module")
def views(pair: dict[str, Side]) -> Iterator[dict[str, QueryEngine]]:
    engines = {name: side.index.open() for name, side in pair.items()}
    with engines["quiet"] as quiet, engines["loud"] as loud:
        yield {"quiet": quiet.view({LABEL}), "loud": loud.view({LABEL})}


def view_of(views: Mapping[str, QueryEngine], pair: Mapping[str, Side], side: Side) -> QueryEngine:
    return next(views[name] for name, each in pair.items() if each is side)


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


def test_the_whole_indexes_differ_in_what_views_might_tell(pair):
    """So that the tests below could fail."""
    for table in ("entities", "relationships", "communities", "community_reports", "facts"):
        one, two = ([*map(str, side.index.sql(f"FROM {table}")[1])] for side in pair.values())
        assert set(one) - set(two), table


def test_every_table_of_a_view_is_the_same_row_by_row(pair, views):
    def told(side: Side) -> dict[str, object]:
        index = view_of(views, pair, side).index
        return {name: index.rows(f"FROM {name}") for name in tables_of_all(views)}

    assert differing(pair, told) == []


def tables_of_all(views: Mapping[str, QueryEngine]) -> list[str]:
    quiet, loud = (tables_of(view) for view in views.values())
    assert quiet == loud
    assert len(quiet) > 30
    return quiet


@pytest.mark.parametrize("spec", SPECS)
def test_every_method_gives_the_same(pair, views, spec):
    def told(side: Side) -> dict[str, object]:
        view = view_of(views, pair, side)
        return {question: shown(view, question, spec) for question in QUESTIONS}

    assert differing(pair, told) == []


def test_counts_of_a_view_are_the_same(pair, views):
    assert differing(pair, lambda side: {"n": view_of(views, pair, side).index.facts.counts}) == []
