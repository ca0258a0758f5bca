"""Whether a run has anything to do: each way in which an index can be behind."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest
from commands import command
from dagster_helpers import PEOPLE, PLACES
from model_server import ModelServer
from test_llm_pipeline import FILES, mind
from typer.testing import CliRunner

from graphrag_pipeline.cli.app import app
from graphrag_pipeline.core.prompting import PROMPTS
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.graph.resolution.model_pairs import FAILED
from graphrag_pipeline.ingest.stages import INGESTION
from graphrag_pipeline.orchestration.runs import index_folder
from graphrag_pipeline.pipeline.stages import ingest
from graphrag_pipeline.pipeline.updating import cut_batches
from graphrag_pipeline.planning import pending
from graphrag_pipeline.releases.publishing import content_hash, refresh_needed
from graphrag_pipeline.store.index_store import IndexStore
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.structures.registry import ask_for_clustering

Built = tuple[Path, Path]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """A home that a run of Dagster has made, and its documents."""
    place = tmp_path_factory.mktemp("pending")
    (place / "documents").mkdir()
    (place / "documents" / "people.txt").write_text(PEOPLE)
    (place / "documents" / "places.md").write_text(PLACES)
    index_folder(Workspace(Settings(home=str(place / "home"))), place / "documents")
    return place / "home", place / "documents"


@pytest.fixture
def copied(built: Built, tmp_path: Path) -> Built:
    for folder in built:
        shutil.copytree(folder, tmp_path / folder.name)
    return tmp_path / "home", tmp_path / "documents"


def nothing_to_do(workspace: Workspace, folder: Path) -> bool:
    """Whether a run that looks at a folder now would leave all as it is."""
    return pending.nothing_to_do(workspace, pending.look_at(workspace, folder).changes)


def idle(place: Built, **given: Any) -> bool:
    """Whether there is nothing to do under some settings."""
    return nothing_to_do(Workspace(Settings(home=str(place[0]), **given)), place[1])


def test_after_a_run_there_is_nothing_to_do(built: Built) -> None:
    assert idle(built)


@pytest.mark.usefixtures("plain_stores")
def test_index_opens_the_tables_once_to_see_that_nothing_has_changed(
    built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, folder = built
    opened, connect = [], duckdb.connect
    monkeypatch.setattr("graphrag_pipeline.store.index_store._IDLE_SECONDS", 600.0)
    monkeypatch.setattr(duckdb, "connect", lambda *a, **k: opened.append(a[0]) or connect(*a, **k))
    result = CliRunner().invoke(app, ["index", str(folder)], env={"GRAPHRAG_HOME": str(home)})
    assert result.exit_code == 0, result.output
    assert opened.count(str(home / "index.duckdb")) == 1


def test_there_is_something_to_do_where_nothing_is_indexed(tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    assert not idle((tmp_path / "home", tmp_path / "documents"))


@pytest.mark.parametrize(
    "given",
    [
        {"input": {"text_columns": ["other"]}},
        {"chunks": {"size": 300}},
        {"chunks": {"prepend_metadata": ["title"]}},
        {"extraction": {"noun_phrases": False}},
        {"resolution": {"method": "off"}},
        {"graph": {"min_concept_frequency": 7}},
        {"graph": {"max_description_sentences": 2}},
        {"communities": {"resolution": 2.5}},
        {"communities": {"levels": 2}},
        {"reports": {"max_context_tokens": 900}},
        {"embeddings": {"dimensions": 320}},
        {"embeddings": {"facts": True}},
        {"embeddings": {"synonyms": True}},
        {"hierarchies": {"raptor": True}},
        {"hierarchies": {"hirag": True}},
        {"hierarchies": {"attributed": True}},
        {"reports": {"writer": "llm"}},
    ],
    ids=str,
)
def test_settings_that_shape_the_index_are_something_to_do(
    built: Built, given: dict[str, Any]
) -> None:
    assert not idle(built, **given)


@pytest.mark.parametrize(
    "given",
    [
        {"query": {"top_k": 3}},
        {"batches": {"max_files": 3}},
        {"releases": {"keep": 9}},
        {"llm": {"prices_file": "prices.toml"}},
    ],
    ids=str,
)
def test_settings_that_shape_nothing_are_not(built: Built, given: dict[str, Any]) -> None:
    assert idle(built, **given)


@pytest.mark.parametrize(
    "constant",
    [
        "ingest.documents.READER_VERSION",
        "ingest.stages.CHUNKER_VERSION",
        "extraction.extractors.NLP_VERSION",
        "graph.resolution.resolving.RESOLUTION_VERSION",
        "graph.fold.GRAPH_VERSION",
        "graph.communities.COMMUNITIES_VERSION",
        "reports.levels.REPORTS_VERSION",
        "reports.extractive.EXTRACTIVE_VERSION",
        "llm.embedders._HASHING_VERSION",
    ],
)
def test_a_stage_of_another_version_is_something_to_do(
    built: Built, monkeypatch: pytest.MonkeyPatch, constant: str
) -> None:
    monkeypatch.setattr(f"graphrag_pipeline.{constant}", "another")
    assert not idle(built)


def _add(home: Path, folder: Path) -> None:
    (folder / "new.txt").write_text("Kora Lund paints near Montreux.")


def _change(home: Path, folder: Path) -> None:
    (folder / "people.txt").write_text(PEOPLE + " Anna Berg left.")


def _remove(home: Path, folder: Path) -> None:
    (folder / "people.txt").unlink()


def _alias(home: Path, folder: Path) -> None:
    (home / "aliases.csv").write_text("action,a,b\nmerge,Anna Berg,Mira Dorn\n")


def _recluster(home: Path, folder: Path) -> None:
    ask_for_clustering(IndexStore(home / "index.duckdb"))


def _edit(home: Path, folder: Path) -> None:
    with IndexStore(home / "index.duckdb").transaction() as con:
        con.execute("UPDATE entities SET description = description || '!'")


def _fail(home: Path, folder: Path) -> None:
    with IndexStore(home / "index.duckdb").transaction() as con:
        con.execute("UPDATE extractions SET status = 'failed'")


def _stage(home: Path, folder: Path) -> None:
    with IndexStore(home / "index.duckdb").transaction() as con:
        con.execute("UPDATE batch_stages SET staged = true")


def _unpublish(home: Path, folder: Path) -> None:
    (home / "published.duckdb").unlink()


def _damage(home: Path, folder: Path) -> None:
    (home / "published.duckdb").unlink()
    (home / "published.duckdb").write_bytes(b"no database" * 1000)


def _lose_vectors(home: Path, folder: Path) -> None:
    shutil.rmtree(home / "vectors" / "entities.lance")


@pytest.mark.parametrize(
    "happens",
    [
        _add,
        _change,
        _remove,
        _alias,
        _recluster,
        _edit,
        _fail,
        _stage,
        _unpublish,
        _damage,
        _lose_vectors,
    ],
)
def test_what_happens_to_files_and_tables_is_something_to_do(
    copied: Built, happens: Callable[[Path, Path], None]
) -> None:
    happens(*copied)
    assert not idle(copied)


MODEL = {"profile": "llm", "resolution": {"method": "llm"}, "graph": {"max_description_tokens": 9}}


@pytest.fixture(scope="module")
def built_by_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ModelServer, Built]]:
    """A home that a model took part in, its documents, and the server."""
    place = tmp_path_factory.mktemp("by_model")
    documents = place / "documents"
    documents.mkdir()
    with pytest.MonkeyPatch.context() as patch, ModelServer(mind) as server:
        patch.setenv("OPENAI_API_KEY", "sk-test")
        for name, text in FILES.items():
            (documents / name).write_text(text)
        settings = settings_by_model(place / "home", server)
        index_folder(Workspace(settings), documents)
        yield server, (place / "home", documents)


@pytest.fixture
def copied_by_model(
    built_by_model: tuple[ModelServer, Built], tmp_path: Path
) -> tuple[ModelServer, Path]:
    """The server, and the documents of a copy of that home."""
    server, place = built_by_model
    for folder in place:
        shutil.copytree(folder, tmp_path / folder.name)
    return server, tmp_path / "documents"


def settings_by_model(home: Path, server: ModelServer, **given: Any) -> Settings:
    llm = {"base_url": server.base_url, **given.pop("llm", {})}
    return Settings(**{**MODEL, "home": str(home), "llm": llm, **given})


def test_where_a_model_has_given_everything_there_is_nothing_to_do_and_nothing_asked(
    built_by_model: tuple[ModelServer, Built],
) -> None:
    server, (home, documents) = built_by_model
    server.forget()
    assert nothing_to_do(Workspace(settings_by_model(home, server)), documents)
    assert server.requests == []


@pytest.mark.parametrize(
    "given",
    [
        {"llm": {"model": "another"}},
        {"llm": {"embedding_model": "another"}},
        {"llm": {"temperature": 0.5}},
        {"llm": {"prompts": "own"}},
        {"extraction": {"gleanings": 3}},
        {"extraction": {"claims": True}},
        {"extraction": {"entity_types": ["ship"]}},
        {"graph": {"max_description_tokens": 8}},
        {"reports": {"max_words": 77}},
        {"hierarchies": {"raptor": True}},
        {"profile": "embedded"},
    ],
    ids=str,
)
def test_what_decides_a_models_answers_is_something_to_do(
    built_by_model: tuple[ModelServer, Built],
    given: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, (home, documents) = built_by_model
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").mkdir()
    shipped = (PROMPTS / "extract_graph.txt").read_text()
    (tmp_path / "own" / "extract_graph.txt").write_text(f"{shipped}\nBe brief.\n")
    assert not nothing_to_do(Workspace(settings_by_model(home, server, **given)), documents)


@pytest.mark.parametrize(
    "happens",
    [
        "UPDATE extractions SET status = 'failed' WHERE chunk_id = (SELECT min(id) FROM chunks)",
        "UPDATE extractions SET status = 'cut' WHERE chunk_id = (SELECT min(id) FROM chunks)",
        "INSERT INTO hierarchy_failures BY NAME SELECT 'graph' AS hierarchy, min(id) AS "
        "community_id, 0 AS level, 'h' AS context_hash, 'refused' AS error, 1 AS attempts "
        "FROM communities",
        "DELETE FROM description_summaries",
        f"INSERT INTO entities_kept_apart VALUES ('a', 'b', 'A', 'B', 'model', '{FAILED}', '[]')",
        "UPDATE entities SET description = description || '!'",
        "UPDATE meta SET value = 'x' WHERE key LIKE '%vector%'",
    ],
)
def test_what_a_model_owes_is_something_to_do(
    copied_by_model: tuple[ModelServer, Path], tmp_path: Path, happens: str
) -> None:
    server, documents = copied_by_model
    workspace = Workspace(settings_by_model(tmp_path / "home", server))
    assert nothing_to_do(workspace, documents)
    with workspace.store.transaction() as con:
        [(n_rows,)] = con.execute(happens).fetchall()
    assert n_rows
    assert not nothing_to_do(workspace, documents)


@pytest.mark.parametrize(
    "owed",
    [
        f"INSERT INTO entities_kept_apart VALUES ('a', 'b', 'A', 'B', 'model', '{FAILED}', '[]')",
        "INSERT INTO hierarchy_failures BY NAME SELECT 'graph' AS hierarchy, min(id) AS "
        "community_id, 0 AS level, 'h' AS context_hash, 'refused' AS error, 1 AS attempts "
        "FROM communities",
    ],
)
def test_what_a_model_owes_is_something_to_do_though_all_is_published(
    copied_by_model: tuple[ModelServer, Path], tmp_path: Path, owed: str
) -> None:
    server, documents = copied_by_model
    workspace = Workspace(settings_by_model(tmp_path / "home", server))
    with workspace.store.transaction() as con:
        con.execute(owed)
        con.execute("UPDATE releases SET content_hash = ?", [content_hash(con)])
    assert not refresh_needed(workspace)
    assert not nothing_to_do(workspace, documents)


def test_index_starts_no_run_and_imports_no_dagster_where_nothing_has_changed(
    copied: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, folder = copied
    monkeypatch.setenv("GRAPHRAG_HOME", str(home))
    program = f"""
import sys
sys.argv = ["graphrag-pipeline", "index", {str(folder)!r}, "--json"]
from graphrag_pipeline.cli import app
try:
    app.main()
finally:
    print("imported" if "dagster" in sys.modules else "spared", file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert '"runs": []' in done.stdout
    assert "spared" in done.stderr
    _unpublish(home, folder)
    again = command("index", str(folder))
    assert again.returncode == 0, again.stderr
    assert (home / "published.duckdb").is_file()
    assert idle(copied)


def test_a_run_says_which_change_it_takes_in_where_no_file_has_changed(
    copied: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def because(**given: Any) -> Sequence[str]:
        return pending.due_besides(Workspace(Settings(home=str(copied[0]), **given))).because

    assert because(reports={"max_findings": 3}) == ["the settings have changed"]
    assert because(chunks={"size": 300}) == ["settings of [chunks] have changed"]
    (tmp_path / "aliases.csv").write_text("action,a,b,note\nmerge,Anna,Berta,\n")
    assert because() == ["aliases.csv has changed"]
    (tmp_path / "aliases.csv").unlink()
    (copied[1] / "more.txt").write_text("Dora Lind met Emil Krug in Ulm.\n")
    workspace = Workspace(Settings(home=str(copied[0])))
    [batch] = cut_batches(workspace, copied[1])
    for stage in INGESTION:
        ingest(workspace, stage, batch)
    assert because() == ["an earlier run had not finished"]


def test_files_that_are_indexed_again_are_not_counted_as_added(copied: Built) -> None:
    workspace = Workspace(Settings(home=str(copied[0]), chunks={"size": 300}))
    assert set(pending.due_besides(workspace).again) == {b.key for b in workspace.batches.batches()}


def test_where_a_model_is_asked_for_a_structure_a_run_looks_whether_it_owes_any(
    copied_by_model: tuple[ModelServer, Path], tmp_path: Path
) -> None:
    server, documents = copied_by_model
    given = Workspace(settings_by_model(tmp_path / "home", server, hierarchies={"raptor": True}))
    index_folder(given, documents)
    assert not refresh_needed(given)
    assert not nothing_to_do(given, documents)
    without = Workspace(settings_by_model(tmp_path / "home", server))
    index_folder(without, documents)
    assert nothing_to_do(without, documents)


def test_a_structure_that_no_model_is_asked_for_is_nothing_to_do(
    copied: Built,
) -> None:
    home, documents = copied
    workspace = Workspace(Settings(home=str(home), hierarchies={"raptor": True}))
    assert not nothing_to_do(workspace, documents)
    index_folder(workspace, documents)
    assert nothing_to_do(workspace, documents)
