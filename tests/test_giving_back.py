"""Memory that an open release gives back once it has loaded what questions need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from query_fixture import published, settings_for

from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query.open_engine import Holder
from graphrag_pipeline.query.release import Release

QUESTION = "Who worked as a clerk for Scrooge?"
_CACHED = (
    "SELECT sum(memory_usage_bytes)::BIGINT AS n FROM duckdb_memory() WHERE tag = 'BASE_TABLE'"
)
_LIMIT = "SELECT current_setting('memory_limit') AS n, current_setting('threads') AS threads"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return published(tmp_path_factory.mktemp("giving back") / "home")


@pytest.fixture
def engine(home: Path) -> Iterator[QueryEngine]:
    with QueryEngine(home, settings=settings_for(home)) as engine:
        yield engine


def cached(release: Release) -> int:
    return int(release.rows(_CACHED)[0]["n"])


def test_blocks_that_were_read_are_given_back_once_and_answers_stay(engine: QueryEngine) -> None:
    release = engine.index
    answer, limits = engine.answer(QUESTION, "local"), release.rows(_LIMIT)
    before = cached(release)
    release.give_back_memory()
    assert cached(release) < before / 2
    assert release.rows(_LIMIT) == limits
    assert engine.answer(QUESTION, "local").text == answer.text
    release.columns("FROM chunks")
    again = cached(release)
    release.give_back_memory()
    assert cached(release) == again, "nothing was loaded to be kept: what is read stays"


def test_who_reads_is_not_disturbed_and_the_next_call_gives_back(engine: QueryEngine) -> None:
    release = engine.index
    engine.answer(QUESTION, "local")
    before = cached(release)
    with release._cursor():
        release.give_back_memory()
        assert cached(release) == before
    release.give_back_memory()
    assert cached(release) < before / 2


def test_a_holder_gives_back_what_its_engines_hold_and_not_of_a_closed_one(home: Path) -> None:
    holder = Holder("own", settings_for(home))
    holder.give_back_memory()
    release = holder.use(lambda engine: (engine.answer(QUESTION, "local"), engine.index)[1])
    before = cached(release)
    holder.give_back_memory()
    assert cached(release) < before / 2
    release.kept("SELECT id FROM documents")
    holder.close()
    release.give_back_memory()
