"""The public face of the engine: `Index`, in process and without Dagster."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import duckdb
import pytest
from commands import ForkedPython
from dagster_helpers import LEVELS, PEOPLE, PLACES, RIVERS

import graphrag_pipeline
from conftest import workspace_of
from graphrag_pipeline import (
    CheckFailedError,
    ConfigError,
    Index,
    InputError,
    NothingPublishedError,
    RemovalError,
    Settings,
    StorageError,
    load_settings,
)
from graphrag_pipeline.assets import Names, build_tail
from graphrag_pipeline.core.hardening.locks import locked
from graphrag_pipeline.orchestration import runs
from graphrag_pipeline.orchestration.runs import RunFailedError, index_folder
from graphrag_pipeline.pipeline.stages import PUBLISH, ingest, refresh_stages
from graphrag_pipeline.pipeline.updating import cut_batches
from graphrag_pipeline.releases.measuring import MEASURES
from graphrag_pipeline.structures.registry import all_hierarchies

ROOT = Path(__file__).parents[1]
TABLES = ("documents", "chunks", "entities", "relationships", "entity_chunks", "entity_aliases")
HIERARCHY = ("communities", "community_members", "community_reports")
OF_THE_RUN = ("releases", "batches", "batch_stages", "graph_batches", "stage_seconds", "meta")
SMALL: dict[str, Any] = {"embeddings": {"dimensions": 32}, "communities": {"levels": 1}}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with documents and the index of them."""
    place = tmp_path_factory.mktemp("built")
    write(place / "docs", people=PEOPLE, places=PLACES)
    Index(place / "home", Settings(**SMALL)).update(place / "docs")
    return place


@pytest.fixture
def index(built: Path, tmp_path: Path) -> Index:
    """An index of its own, of the documents in ``docs``."""
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    return Index(tmp_path / "home", Settings(**SMALL))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two homes with every structure: one as `Index.update` makes it, one as the command does."""
    place = tmp_path_factory.mktemp("corpus")
    wanted = {"raptor": True, "attributed": True, "hirag": True}
    more = {"facts": True, "synonyms": True, "dimensions": 64}
    settings = Settings(hierarchies=wanted, embeddings=more)
    names = ("reference", "press/interview-orsolya-venn.txt", "records/ship-register.parquet")
    for name in names:
        source, target = ROOT / "examples" / "corpus" / name, place / "docs" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copyfile)(source, target)
    homes = place / "index", place / "command"
    Index(homes[0], settings).update(place / "docs")
    index_folder(workspace_of(homes[1], settings), place / "docs")
    return homes


def test_an_update_makes_the_tables_that_the_command_makes(corpus: tuple[Path, Path]) -> None:
    files = [home / "published.duckdb" for home in corpus]
    with duckdb.connect() as con:
        for name, file in zip(("mine", "theirs"), files, strict=True):
            con.execute(f"ATTACH '{file}' AS {name} (READ_ONLY)")
        tables = "SELECT table_name FROM duckdb_tables() WHERE database_name = ? ORDER BY 1"
        names = [[n for (n,) in con.execute(tables, [c]).fetchall()] for c in ("mine", "theirs")]
        assert names[0] == names[1]
        views = [view for hierarchy in all_hierarchies() for view in hierarchy.views]
        assert {*TABLES, *HIERARCHY} < {*names[0], *views}
        for table in [*names[0], *views]:
            if table in OF_THE_RUN:
                continue
            columns = con.execute(f"DESCRIBE mine.{table}").fetchall()
            timed = [n for n, kind, *_ in columns if kind.startswith("TIMESTAMP") or n == "batch"]
            left = f"* EXCLUDE ({', '.join(timed)})" if timed else "*"
            differing = con.execute(
                f"SELECT count(*) FROM ((SELECT {left} FROM mine.{table} EXCEPT ALL SELECT {left} "
                f"FROM theirs.{table}) UNION ALL (SELECT {left} FROM theirs.{table} EXCEPT ALL "
                f"SELECT {left} FROM mine.{table}))"
            ).fetchone()
            assert differing == (0,), table
        for table in ("raptor_nodes", "hirag_entities", "synonym_edges", "attributed_communities"):
            assert con.execute(f"SELECT count(*) > 0 FROM mine.{table}").fetchone() == (True,)


def test_the_command_goes_on_where_an_index_stopped(index: Index, tmp_path: Path) -> None:
    before = index.releases()
    outcome = index_folder(index, tmp_path / "docs")
    assert outcome.batches == []
    assert index.releases() == before


@pytest.mark.parametrize(
    ("broken", "failure"),
    [
        (
            "INSERT INTO entities FROM entities LIMIT 1",
            "graph/entities ids_unique (1 repeated ids)",
        ),
        (
            "DELETE FROM hierarchy_reports",
            "reports/reports_level_0 every_community_reported (",
        ),
    ],
)
def test_what_a_check_refuses_neither_an_update_nor_the_command_publishes(
    index: Index, tmp_path: Path, broken: str, failure: str
) -> None:
    with index.store.transaction() as con:
        con.execute(broken)
    published = index.paths.published.read_bytes()
    with pytest.raises(CheckFailedError) as by_update:
        index.update(tmp_path / "docs")
    with pytest.raises(RunFailedError) as by_command:
        index_folder(index, tmp_path / "docs")
    assert str(by_update.value).startswith(f"the check failed: {failure}")
    assert str(by_command.value).startswith(f"{by_update.value} (run ")
    assert index.paths.published.read_bytes() == published


def test_an_update_and_the_assets_go_through_the_same_stages_and_checks(tmp_path: Path) -> None:
    wanted = {"raptor": True, "attributed": True, "hirag": True}
    settings = Settings(home=str(tmp_path), hierarchies=wanted, embeddings={"facts": True})
    stages = [*refresh_stages(settings), PUBLISH]
    assets = build_tail(settings, Names())
    assert [each.node_def.name for each in assets] == [*(s.name for s in stages), *MEASURES.names()]
    mine = {
        (key, check.name)
        for stage in stages
        for key, checks in stage.checks.items()
        for check in checks
        if check.stops
    }
    theirs = {
        (tuple(check.asset_key.path), check.name)
        for each in assets
        for check in each.check_specs
        if check.blocking
    }
    assert mine == theirs


def test_an_update_imports_no_dagster_and_the_package_nothing_at_all(tmp_path: Path) -> None:
    write(tmp_path / "docs", people=PEOPLE)
    code = """
import sys, graphrag_pipeline
assert {name for name in sys.modules if name.startswith("graphrag_pipeline.")} == {
    "graphrag_pipeline.core", "graphrag_pipeline.core.lazy", "graphrag_pipeline.core.moved",
    "graphrag_pipeline.core.patterns",
}
from graphrag_pipeline import Index, Settings
update = Index("home", Settings(embeddings={"dimensions": 32})).update("docs")
assert update.is_new and update.counts["documents"] == 1
print(sorted({name.split(".")[0] for name in sys.modules} & {"dagster", "dbt", "typer"}))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_every_public_name_is_there_and_no_other() -> None:
    for name in graphrag_pipeline.__all__:
        assert getattr(graphrag_pipeline, name).__name__ == name
        assert name in dir(graphrag_pipeline)
    with pytest.raises(AttributeError, match="no attribute 'Indx'"):
        graphrag_pipeline.Indx  # noqa: B018


def test_an_update_says_what_it_did(index: Index, tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", rivers=RIVERS, people=PEOPLE + " Anna Berg sings.")
    (docs / "places.txt").unlink()
    assert index.plan(docs).changes == {"add": 1, "change": 1, "remove": 1, "rename": 0}
    update = index.update(docs)
    assert update.changes == {"add": 1, "change": 1, "remove": 1, "rename": 0}
    assert update.is_new
    assert update.counts["documents"] == 2
    assert update.release == index.releases()[0].id
    again = index.update(docs)
    assert (again.is_new, again.batches, again.release) == (False, [], update.release)
    assert index.update(docs, recluster=True).batches == []
    status = index.status()
    assert status["documents"] == 2


def test_a_table_of_vectors_that_is_gone_is_made_again(index: Index, tmp_path: Path) -> None:
    shutil.rmtree(index.paths.vectors / "chunks.lance")
    index.update(tmp_path / "docs")
    assert len(index.retrieve("Who leads Orion Labs?", "basic").records) == 2


def test_questions_are_answered_by_an_engine_or_at_once(index: Index) -> None:
    with index.open() as engine:
        answer = engine.answer("Who leads Orion Labs?")
    assert "Boris Claude" in answer.text
    assert index.answer("Who leads Orion Labs?").text == answer.text
    assert index.retrieve("Orion Labs", "bm25", top_k=1).records[0].kind == "chunk"


def test_the_graph_and_the_tables_are_handed_to_a_notebook(index: Index) -> None:
    graph = index.to_networkx()
    entities, relationships = index.to_polars("entities"), index.to_polars("relationships")
    assert set(graph.nodes) == set(entities["title"])
    assert graph.number_of_edges() == len(relationships)
    source, target, weight = relationships.select("source", "target", "weight").row(0)
    assert graph.edges[target, source]["weight"] == weight
    assert graph.nodes[source]["type"]
    with pytest.raises(InputError, match=r"there is no table entites: there are .*entities"):
        index.to_polars("entites")
    with pytest.raises(InputError, match="there is no table"):
        index.to_polars("(SELECT 1)")


def test_a_table_comes_as_pandas_has_it_or_the_error_says_what_to_install(index: Index) -> None:
    if PathFinder.find_spec("pandas"):
        titles = list(index.to_pandas("entities")["title"])
        assert titles == index.to_polars("entities")["title"].to_list()
    else:
        with pytest.raises(ConfigError, match="pip install pandas, or use to_polars"):
            index.to_pandas("entities")


def test_the_graph_is_exported(index: Index, tmp_path: Path) -> None:
    assert index.export("csv", tmp_path / "tables", tables=["entities"]).files[0].n_bytes > 0


def test_a_format_there_is_not_is_an_error_that_lists_them(index: Index, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown format 'gexf': use one of .*graphml"):
        index.export("gexf", tmp_path / "graph")


def test_a_folder_that_is_named_beats_the_settings_and_these_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHRAG_HOME", "of the environment")
    monkeypatch.setenv("GRAPHRAG_QUERY__TOP_K", "3")
    settings = Settings(home="of the settings", query={"top_k": 4})
    assert Index(settings).home == tmp_path / "of the settings"
    assert Index("named", settings).home == tmp_path / "named"
    assert Index("named", settings).settings.query.top_k == 4
    assert Index().home == tmp_path / "of the environment"
    write(tmp_path / "named").joinpath("graphrag.toml").write_text("[query]\nlevel = 0\n")
    named = Index("named").settings
    assert (named.query.level, named.query.top_k, named.home_path) == (0, 3, tmp_path / "named")


def test_nothing_is_read_before_there_is_a_release(tmp_path: Path) -> None:
    with pytest.raises(NothingPublishedError):
        Index("nowhere").open()
    with pytest.raises(NothingPublishedError):
        Index("nowhere").to_polars("entities")
    assert not (tmp_path / "nowhere").exists()


def test_settings_edited_during_a_run_do_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = write(tmp_path / "docs", people=PEOPLE)
    (tmp_path / "graphrag.toml").write_text("[embeddings]\ndimensions = 32\n")
    index = Index("home")
    before = load_settings(home="home")
    (tmp_path / "graphrag.toml").write_text("[embeddings]\ndimensions = 64\n")
    monkeypatch.setenv("GRAPHRAG_CHUNKS__SIZE", "101")
    monkeypatch.setenv("GRAPHRAG_HOME", str(tmp_path / "elsewhere"))
    index.update(docs)
    assert index.settings == before
    assert "32" in index.releases()[0].embedder
    assert not (tmp_path / "elsewhere").exists()


def test_two_homes_are_indexed_at_once_in_one_process(plain_stores: None, tmp_path: Path) -> None:
    environment = dict(os.environ)
    texts = {"one": PEOPLE, "two": RIVERS}
    for name, text in texts.items():
        write(tmp_path / name / "docs", text=text)
    indexes = {name: Index(tmp_path / name / "home", Settings(**SMALL)) for name in texts}
    with ThreadPoolExecutor(2) as pool:
        updates = [pool.submit(indexes[name].update, tmp_path / name / "docs") for name in texts]
        assert [update.result().counts["documents"] for update in updates] == [1, 1]
    for name, text in texts.items():
        assert indexes[name].sql("SELECT text FROM documents")[1] == [(text,)]
    assert dict(os.environ) == environment


def test_runs_of_one_home_wait_for_each_other(index: Index, tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", rivers=RIVERS)
    other, updates = Index(index.home, index.settings), []
    threads = [
        threading.Thread(target=lambda: updates.append(other.update(docs))),
        threading.Thread(target=lambda: updates.append(index_folder(index, docs))),
    ]
    with index.turn():
        threads[0].start()
        threads[0].join(1)
        assert updates == []
        assert len(index.releases()) == 1
    threads[1].start()
    for thread in threads:
        thread.join(120)
    assert len(updates) == 2
    assert len(index.releases()) == 2
    assert index.sql("SELECT count(*) FROM documents")[1] == [(3,)]


def test_a_run_of_dagster_waits_for_its_turn_too(index: Index, tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", rivers=RIVERS)
    thread = threading.Thread(target=lambda: index_folder(index, docs))
    with locked(index.paths.run_lock):
        thread.start()
        thread.join(4)
        assert thread.is_alive()
        assert len(index.releases()) == 1
    thread.join(120)
    assert len(index.releases()) == 2


UPDATE = """
import sys
from graphrag_pipeline import Index, Settings
Index("home", Settings(embeddings={"dimensions": 32})).update("docs")
"""


def test_who_waits_long_for_another_run_says_so_in_one_line(index: Index, tmp_path: Path) -> None:
    write(tmp_path / "docs", rivers=RIVERS)
    holder = start(
        "-c",
        "from graphrag_pipeline import Index\n"
        "with Index('home').turn():\n    print('inside', flush=True)\n    input()",
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "inside\n"
    said = f"waiting for another run on {index.home} to end (pid {holder.pid})\n"
    command = ("-m", "graphrag_pipeline.cli", "index", "docs")
    waiting = [start("-c", UPDATE), start(*command)]
    try:
        for process in waiting:
            assert process.stderr is not None
            lines = iter(process.stderr.readline, "")
            assert said in (line[-len(said) :] for line in lines)
            assert process.poll() is None
    finally:
        holder.communicate("\n", timeout=60)
        rest = [process.communicate(timeout=300)[1] for process in waiting]
    assert [process.returncode for process in waiting] == [0, 0]
    # Of the holder it is said once; one of the two may have to wait for the other as long.
    assert not any(said in text for text in rest)
    assert not index.paths.run_process.exists()
    assert index.sql("SELECT count(*) FROM documents")[1] == [(3,)]


def start(*arguments: str) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "GRAPHRAG_HOME": "home",
        "GRAPHRAG_EMBEDDINGS__DIMENSIONS": "32",
        LEVELS: "1",
    }
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return ForkedPython([*arguments], env=environment, text=True, **pipes)


@pytest.mark.usefixtures("plain_stores")
def test_an_update_opens_the_tables_a_few_times_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphrag_pipeline.store.index_store._IDLE_SECONDS", 600)
    docs = write(tmp_path / "docs", people=PEOPLE, places=PLACES)
    opened, connect = [], duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda *a, **k: opened.append(a[:1]) or connect(*a, **k))
    index = Index("home", Settings(**SMALL))
    index.update(docs)
    # Opened, and closed to be written out and copied for readers.
    assert opened.count((str(index.paths.index),)) == 1
    assert len(opened) <= 4


def test_a_home_of_a_newer_version_is_refused_with_one_line(index: Index, tmp_path: Path) -> None:
    with index.store.transaction() as con:
        con.execute("UPDATE meta SET value = '9999' WHERE key = 'schema_version'")
    with pytest.raises(StorageError, match="newer") as caught:
        index.update(write(tmp_path / "docs", rivers=RIVERS))
    assert "\n" not in str(caught.value)


def test_removing_all_documents_is_asked_for(index: Index, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    shutil.rmtree(docs)
    docs.mkdir()
    cut = sorted((index.home / "batches").glob("*.json"))
    with pytest.raises(RemovalError, match=r"^2 of the 2 files indexed from .* are gone"):
        index.update(docs)
    assert sorted((index.home / "batches").glob("*.json")) == cut
    assert index.update(docs, remove_all=True).changes == {
        "add": 0,
        "change": 0,
        "remove": 2,
        "rename": 0,
    }
    assert index.sql("SELECT count(*) FROM documents")[1] == [(0,)]
    assert index.update(docs).batches == []


def test_more_than_a_share_of_many_documents_is_asked_for(tmp_path: Path) -> None:
    texts = {f"text{number}": f"Text {number}." for number in range(18)}
    docs = write(tmp_path / "docs", **texts)
    none, half = (
        Index("home", Settings(batches={"max_removed_share": share}, **SMALL)) for share in (0, 0.5)
    )
    half.update(docs)
    for gone, index in ((1, none), (10, half)):
        for name in list(texts)[:gone]:
            (docs / f"{name}.txt").unlink(missing_ok=True)
        with pytest.raises(RemovalError, match=f"{gone} of the 18 files"):
            index.update(docs)
    write(docs, text0=texts["text0"])
    assert half.update(docs).changes["remove"] == 9


def test_a_plan_says_that_removals_will_be_asked_about(index: Index, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    assert index.plan(docs).question is None
    shutil.rmtree(docs)
    docs.mkdir()
    question = index.plan(docs).question
    with pytest.raises(RemovalError) as raised:
        index.update(docs)
    assert question == str(raised.value)


def test_files_of_a_disk_that_is_not_mounted_stay_when_files_are_read_again(
    index: Index, tmp_path: Path
) -> None:
    disk, other = tmp_path / "docs", write(tmp_path / "other", rivers=RIVERS)
    index.update(other)
    disk.rename(tmp_path / "taken away")
    index.update(write(other, more=PLACES + RIVERS))
    again, and_again = (
        Index("home", Settings(input={"title_columns": [name]}, **SMALL)) for name in "ab"
    )
    write(other, third=RIVERS + PLACES)
    asked = r"^2 of the 2 files indexed from .*docs, such as docs/.*\.txt, .* is its disk mounted\?"
    for mount_point_stays in (False, True):
        if mount_point_stays:
            disk.mkdir()
        with pytest.raises(RemovalError, match=asked):
            again.update(other)
        assert index.sql("SELECT count(*) FROM documents")[1] == [(4,)]
    disk.rmdir()
    (tmp_path / "taken away").rename(disk)
    again.update(other)
    assert again.sql("SELECT count(*) FROM documents")[1] == [(5,)]
    disk.rename(tmp_path / "taken away")
    disk.mkdir()
    and_again.update(other, remove_all=True)
    assert and_again.sql("SELECT count(*) FROM documents")[1] == [(3,)]


@pytest.mark.parametrize("folder", [None, "", 3])
def test_what_is_no_folder_is_an_error_that_says_so(index: Index, folder: object) -> None:
    with pytest.raises(InputError, match="is not a folder"):
        index.update(folder)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="is not a folder"):
        index.plan(folder)  # pyright: ignore[reportArgumentType]


def test_a_run_that_waited_for_another_does_nothing_again_and_takes_no_credit_for_it(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "docs", rivers=RIVERS)

    def wait(instance: object, job_name: str) -> bool:
        monkeypatch.undo()
        assert index_folder(index, tmp_path / "docs").is_new
        return True

    monkeypatch.setattr(runs, "_wait_for_others", wait)
    outcome = index_folder(index, tmp_path / "docs")
    assert (list(outcome.batches), list(outcome.run_ids), outcome.is_new) == ([], [], False)


def test_status_says_what_is_taken_in_and_what_an_older_release_holds(
    index: Index, tmp_path: Path
) -> None:
    docs = write(tmp_path / "docs", rivers=RIVERS)
    assert index.status()["staged_documents"] == 0
    for key in cut_batches(index, docs):
        ingest(index, "documents", key)
    assert index.status()["staged_documents"] == 1
    index.update(docs)
    index.rollback()
    status = index.status()
    assert (status["documents"], status["published"]["documents"]) == (3, 2)


def test_documents_under_other_names_are_not_gone(index: Index, tmp_path: Path) -> None:
    (tmp_path / "docs").rename(tmp_path / "moved")
    (tmp_path / "docs").mkdir()
    for path in (tmp_path / "moved").iterdir():
        path.rename(tmp_path / "docs" / f"new-{path.name}")
    assert index.update(tmp_path / "docs").changes == {
        "add": 0,
        "change": 0,
        "remove": 0,
        "rename": 2,
    }


@pytest.mark.usefixtures("plain_stores")
def test_a_document_is_forgotten_and_the_index_is_whole(index: Index, tmp_path: Path) -> None:
    going = tmp_path / "docs" / "people.txt"
    with pytest.raises(InputError, match="would come back with the next run"):
        index.forget(going)
    going.unlink()
    plan = index.forget(going, dry_run=True)
    assert (plan.release, plan.removed, len(index.releases())) == (None, ["docs/people.txt"], 1)
    forgotten = index.forget(going)
    assert (forgotten.sources, forgotten.removed) == (plan.sources, plan.removed)
    assert forgotten.release == index.releases()[0].id not in plan.dropped_releases
    assert index.sql("SELECT uri FROM documents")[1] == [("docs/places.txt",)]
    assert index.check().problems == ()
    assert index.purge(dry_run=True).sources == []
    with pytest.raises(InputError, match="name the documents to forget"):
        index.forget()


@pytest.mark.usefixtures("plain_stores")
def test_an_index_is_backed_up_restored_checked_and_repaired(index: Index, tmp_path: Path) -> None:
    archive = tmp_path / "index.tar.zst"
    made = index.backup(str(archive))
    assert (made.release, made.size) == (index.releases()[0].id, archive.stat().st_size)
    with pytest.raises(InputError, match="is there already"):
        index.backup(archive)
    restored = Index.restore(archive, tmp_path / "other", index.settings)
    assert (restored.release, restored.checked.problems) == (made.release, ())
    other = Index(restored.home, index.settings)
    assert other.sql("FROM entities")[1] == index.sql("FROM entities")[1]
    with pytest.raises(InputError, match="is not empty"):
        Index.restore(archive, restored.home)
    (restored.home / "published.duckdb").unlink()
    (problem,) = other.check().problems
    assert problem.can_repair
    repaired = other.check(repair=True)
    assert (len(repaired.repairs), repaired.verdict) == (1, "ok")


@pytest.mark.parametrize("wrong", [(3,), ("home", {"profile": "llm"})])
def test_an_index_of_something_else_is_refused_in_one_line(wrong: tuple) -> None:
    with pytest.raises(InputError, match=r"^(home = 3|settings = \{.*\}): must be"):
        Index(*wrong)


def test_open_asked_of_the_class_says_how_it_is_asked() -> None:
    with pytest.raises(InputError, match=r"Index\('h1'\)\.open\(\)"):
        Index.open("h1")  # pyright: ignore[reportArgumentType]
