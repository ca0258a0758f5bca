"""What is embedded: only what a chosen method reads, where a model embeds."""

from __future__ import annotations

from unittest import mock

import pytest
from model_server import ModelServer
from query_fixture import publish
from query_player import play

from graphrag_pipeline import Index
from graphrag_pipeline.core.errors import ConfigError, InputError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.query import METHODS, MODEL_METHODS, QueryEngine
from graphrag_pipeline.query.release import Release
from graphrag_pipeline.structures.registry import vector_tables
from graphrag_pipeline.structures.vector_tables import TABLES, tables_read

EVERY = [table.name for table in TABLES]
QUESTION = "Who was the clerk of Scrooge?"


def chosen(*methods: str, **embeddings) -> Settings:
    values = {"embedder": "local", "methods": methods, **embeddings}
    return Settings.model_validate({"embeddings": values})


def names(settings: Settings) -> list[str]:
    return [table.name for table in vector_tables(settings)]


def test_a_table_is_embedded_if_a_chosen_method_reads_it():
    assert names(chosen()) == EVERY
    assert names(chosen("basic", "zero_shot")) == ["chunks"]
    assert names(chosen("ppr")) == ["chunks", "relationships"]
    assert names(chosen("local")) == ["chunks", "entities", "community_reports"]
    assert names(chosen("ppr", "local")) == EVERY
    assert names(chosen("ppr", embedder="hashing")) == EVERY


def test_structures_have_the_tables_that_they_are_made_from():
    with_layers = chosen("ppr", facts=True).model_copy(
        update={"hierarchies": Settings(hierarchies={"hirag": True}).hierarchies}
    )
    assert {"entities", "facts", "hirag_entities"} < set(names(with_layers))
    assert "community_reports" not in names(with_layers)


def test_a_method_that_nobody_knows_is_refused():
    with pytest.raises(ConfigError, match=r"'pprr' is none of .*ppr"):
        vector_tables(chosen("ppr", "pprr"))
    with pytest.raises(ConfigError, match="without parameters"):
        vector_tables(chosen("ppr:titles=false"))


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return publish(tmp_path_factory.mktemp("published"))


@pytest.mark.parametrize("answers", ["extractive", "llm"])
def test_no_method_searches_a_table_that_is_not_said_to_be_its(home, answers):
    searched: set[str] = set()

    def noting(name: str):
        real = getattr(Release, name)

        def search(self, table, *given, **named):
            searched.add(table)
            return real(self, table, *given, **named)

        return mock.patch.object(Release, name, search)

    of_words = mock.patch.object(Release, "lexical", property(lambda self: False))
    with of_words, noting("search_vectors"), noting("similarities"), ModelServer(play) as server:
        query, llm = {"answers": answers}, {"base_url": server.base_url}
        settings = Settings.model_validate({"home": str(home), "query": query, "llm": llm})
        with QueryEngine(home, settings=settings) as engine:
            for method in METHODS | (MODEL_METHODS if answers == "llm" else {}):
                searched.clear()
                for question in (QUESTION, "What are the main themes?", "how do they compare?"):
                    engine.answer(question, method)
                allowed = {each.name for each in tables_read(chosen(method).embeddings, ())}
                assert searched & set(EVERY) <= allowed, method


def test_what_was_left_out_is_said_and_made_when_it_is_chosen(tmp_path):
    folder = tmp_path / "documents"
    folder.mkdir()
    for name in ("ferry", "pier"):
        text = "Oda Lindqvarn repaired the Harbour Ferry for Nadia Fenwright at the North Pier. "
        (folder / f"{name}.txt").write_text(f"{name}. {text * 2}")
    with ModelServer(play) as server:

        def settings(*methods: str) -> Settings:
            return Settings.model_validate(
                {
                    "home": str(tmp_path / "home"),
                    "embeddings": {"embedder": "llm", "methods": methods},
                    "llm": {"base_url": server.base_url},
                }
            )

        Index(settings("ppr")).update(folder)
        few = sum(len(request.body["input"]) for request in server.asked("embeddings"))
        with QueryEngine(settings=settings("ppr")) as engine:
            assert set(engine.index.facts.vector_versions) == {"chunks", "relationships"}
            assert engine.retrieve(QUESTION, "ppr").records
            with pytest.raises(InputError, match="no vectors of entities: add the method to"):
                engine.retrieve(QUESTION, "lightrag")
        Index(settings("ppr", "lightrag")).update(folder)
        more = sum(len(request.body["input"]) for request in server.asked("embeddings"))
        with QueryEngine(settings=settings("ppr", "lightrag")) as engine:
            assert engine.retrieve(QUESTION, "lightrag").records
        assert more > few
        Index(settings("ppr")).update(folder)
        with QueryEngine(settings=settings("ppr")) as engine:
            assert engine.retrieve(QUESTION, "ppr").records
