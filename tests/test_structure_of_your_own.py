"""A structure that another package brings, as the documentation shows one."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import dagster as dg
import pytest
from model_server import ModelServer

from conftest import Engine, workspace_of
from docs import generate
from graphrag_pipeline.assets import Names, build_tail
from graphrag_pipeline.assets.embeddings import embedding_key
from graphrag_pipeline.core.errors import ConfigError, StorageError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.definitions import build_definitions
from graphrag_pipeline.pipeline.stages import StepStage, VectorStage, refresh_stages
from graphrag_pipeline.planning.plan import plan_run
from graphrag_pipeline.planning.status import summarise
from graphrag_pipeline.releases.older_releases import release_file
from graphrag_pipeline.releases.publishing import publish
from graphrag_pipeline.releases.rollback import rollback
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.store.index_store import connect_published
from graphrag_pipeline.structures import Step, Structure, register_structure, unregister_structure
from graphrag_pipeline.structures.updating import in_order

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "extend.md"
NAME = "document_summaries"
KEY, VECTORS = dg.AssetKey(["structures", NAME]), embedding_key(NAME)
WANTED = {"structures": {"wanted": [NAME], "options": {NAME: {"words": 4}}}}
FILES = {
    "dam.txt": "Orsolya Venn built the Kestrel Dam with Mira Dorn.",
    "ferry.txt": "Anna Berg owns the ferry at Varna. Boris Claude steers it.",
}
SUMMARIES = f"SELECT summary FROM {NAME} ORDER BY summary"


def code_of_the_page() -> str:
    (code,) = re.findall(
        r"^```python\n(\"\"\"document_summaries.*?)^```$", PAGE.read_text(), re.M | re.S
    )
    return code


@pytest.fixture
def structure():
    """The structure of the page, added by a call."""
    module = types.ModuleType(NAME)
    exec(compile(code_of_the_page(), str(PAGE), "exec"), module.__dict__)
    register_structure(module.SUMMARIES)
    yield module.SUMMARIES
    unregister_structure(NAME)


def indexed(folder: Path, **given) -> Engine:
    given.setdefault("embeddings", {"dimensions": 64})
    engine = Engine(folder, Settings(home=str(folder / ".graphrag"), **WANTED, **given))
    engine.write(FILES)
    engine.update()
    return engine


def published(engine: Engine, release: str | None = None) -> list[str]:
    home = engine.log.home
    file = release_file(home, release)
    with connect_published(file) as con:
        return [text for (text,) in con.execute(SUMMARIES).fetchall()]


def updated(engine: Engine) -> dict[str, object]:
    """Bring vectors and structures up to date; return what was done, by name."""
    stages = [
        s
        for s in refresh_stages(engine.workspace.settings)
        if isinstance(s, (VectorStage, StepStage))
    ]
    return {stage.name: stage.update(engine.workspace) for stage in stages}


def test_a_structure_of_ones_own_is_in_lineage_status_plan_and_releases(structure, tmp_path):
    engine = indexed(tmp_path)
    with pytest.raises(StorageError, match=f"vectors of {NAME}|summaries of documents"):
        publish(engine.workspace)
    changes = updated(engine)
    assert changes["__".join(KEY.path)].facts == {"written": 2}
    assert changes[f"{NAME}_vectors"].embedded == 2
    assert updated(engine)["__".join(KEY.path)].facts == {"written": 0}
    first = publish(engine.workspace)
    assert published(engine) == ["Anna Berg owns the", "Orsolya Venn built the"]
    assert {"name": NAME, "rows": 2} in summarise(engine.workspace)["structures"]

    engine.write({"ferry.txt": None, "mill.txt": "Gina Lund leases the mill."})
    engine.update()
    with pytest.raises(StorageError, match=r"not published: .*summaries of documents"):
        publish(engine.workspace)
    updated(engine)
    second = publish(engine.workspace)
    assert second.id != first.id
    assert published(engine) == ["Gina Lund leases the", "Orsolya Venn built the"]
    assert published(engine, first.id) == ["Anna Berg owns the", "Orsolya Venn built the"]
    assert rollback(engine.workspace).now == first.id
    vectors = engine.workspace.vectors
    assert vectors.tags()[first.id].keys() == vectors.tags()[second.id].keys() > {NAME, "chunks"}

    graph = build_definitions(engine.settings).resolve_asset_graph()
    assert dg.AssetKey("documents") in graph.get(KEY).parent_keys
    assert graph.get(VECTORS).parent_keys == {KEY}
    assert {KEY, VECTORS} <= graph.get(dg.AssetKey("published_index")).parent_keys
    assert graph.get(KEY).code_version is not None


def test_a_model_writes_it_within_the_plan_and_the_ledger(structure, tmp_path):
    with ModelServer(
        lambda messages: "Of a ferry." if "ferry" in str(messages) else "Of it."
    ) as it:
        llm = {"base_url": it.base_url, "model": "gpt-4.1-mini", "retry_seconds": 0.02}
        by_model = {"reports": {"writer": "llm"}, "llm": llm}
        engine = Engine(tmp_path, Settings(home=str(tmp_path / ".graphrag"), **WANTED, **by_model))
        engine.write(FILES)
        (stage,) = [s for s in plan_run(engine.workspace, engine.inbox).stages if s.stage == NAME]
        assert (stage.calls, stage.model) == (2, "gpt-4.1-mini")
        engine.index()
        stages = {stage.label: stage for stage in refresh_stages(engine.workspace.settings)}
        assert stages[NAME].update(engine.workspace).facts == {"written": 2}
        asked = it.asked()
        assert len(asked) == 2
        assert all("<document id=" in request.text for request in asked)
        assert stages[NAME].update(engine.workspace).facts == {"written": 0}
        assert len(it.asked()) == 2
    assert engine.rows(SUMMARIES) == [("Of a ferry.",), ("Of it.",)]


def test_its_asset_runs_in_dagster_with_its_checks(structure, tmp_path):
    engine = indexed(tmp_path)
    assets = [each for each in build_tail(engine.settings, Names()) if each.keys & {KEY, VECTORS}]
    run = dg.materialize(assets, resources={"index": IndexResource.of(engine.settings)})
    assert run.success
    checks = {each.check_name: each.passed for each in run.get_asset_check_evaluations()}
    assert checks["every_document_summarised"]
    (materialized,) = run.asset_materializations_for_node("structures__document_summaries")
    assert materialized.metadata["written"].value == 2
    assert "Orsolya Venn built the" in materialized.metadata["preview"].value
    columns = materialized.metadata["dagster/column_schema"].value.columns
    assert [column.description for column in columns][-1] == "What it is about."


def test_the_reference_tells_of_it(structure):
    generate._parts.cache_clear()
    try:
        tables, assets = generate.page("tables"), generate.page("assets")
    finally:
        generate._parts.cache_clear()
    assert "## document_summaries\n\nWhat each document is about, in a few words." in tables
    assert f"`structures/{NAME}`" in assets


def test_what_is_no_longer_wanted_is_gone_from_the_next_release(structure, tmp_path):
    engine = indexed(tmp_path)
    updated(engine)
    first = publish(engine.workspace)
    unregister_structure(NAME)
    off = workspace_of(engine.log.home, Settings(embeddings={"dimensions": 64}))
    publish(off)
    there = engine.rows("SELECT table_name FROM duckdb_tables()")
    assert (NAME,) not in there
    assert engine.rows(f"SELECT key FROM meta WHERE contains(key, '{NAME}')") == []
    assert published(engine, first.id) == ["Anna Berg owns the", "Orsolya Venn built the"]
    assert rollback(off).now == first.id


def test_another_schema_makes_the_tables_anew(structure, tmp_path):
    engine = indexed(tmp_path)
    updated(engine)
    schema = structure.schema.replace("summary VARCHAR NOT NULL", "summary VARCHAR, note VARCHAR")
    register_structure(Structure(**{**vars(structure), "schema": schema}))
    assert updated(engine)["__".join(KEY.path)].facts == {"written": 2}
    assert engine.rows(f"SELECT DISTINCT note FROM {NAME}") == [(None,)]


def test_a_package_brings_it_by_an_entry_point(tmp_path, monkeypatch):
    (tmp_path / f"{NAME}.py").write_text(code_of_the_page())
    info = tmp_path / "brings_summaries-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brings-summaries\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[graphrag_pipeline.structures]\n"
        f"{NAME} = {NAME}:SUMMARIES\nbroken = {NAME}:MISSING\nother = {NAME}:SUMMARIES\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        graph = build_definitions(Settings(**WANTED)).resolve_asset_graph()
        assert {KEY, VECTORS} <= graph.get(dg.AssetKey("published_index")).parent_keys
        for name, said in (
            ("nobody", "no structure 'nobody' .there are broken, document_summaries, other"),
            ("broken", "of the package brings-summaries 1.0 cannot be used: AttributeError"),
            ("other", "it is called document_summaries: name the entry point so, too"),
            ("raptor", "ships with the pipeline: set hierarchies.raptor"),
        ):
            with pytest.raises(ConfigError, match=said):
                build_definitions(Settings(structures={"wanted": [name]}))
    finally:
        unregister_structure(NAME)
        sys.modules.pop(NAME, None)


def test_names_that_cannot_be_used_and_structures_that_wait_for_each_other_are_refused():
    with pytest.raises(ConfigError, match="'no name' cannot be used"):
        register_structure(Structure("no name"))

    def step(table, made_from):
        return Step(("x", table), "", table, print, print, "", made_from=[made_from])

    register_structure(Structure("loop", steps=[step("one", "two"), step("two", "one")]))
    try:
        with pytest.raises(ConfigError, match="wait for each other: one, two"):
            list(in_order(Settings(structures={"wanted": ["loop"]})))
    finally:
        unregister_structure("loop")
