"""What was removed and purged is nowhere in the home: not in a table, nor in a byte of a file."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import dagster as dg
import duckdb
import pytest
from artefacts import copy_of
from index_process import by_model
from llm_helpers import ask, document_in, stage_of
from model_server import Messages, ModelServer
from query_fixture import DOCUMENTS, publish, settings_for
from test_llm_pipeline import mind
from test_ocr import scan
from traces import stores, traces, traces_of

from conftest import Engine
from graphrag_pipeline.cli.forgetting import show_purge
from graphrag_pipeline.cli.index_views import show_status
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.orchestration.runs import index_folder, opened_instance
from graphrag_pipeline.pipeline.updating import cut_batches, run_stages
from graphrag_pipeline.planning.status import summarise
from graphrag_pipeline.query import open_release
from graphrag_pipeline.releases.kept_releases import keep_published
from graphrag_pipeline.resources.liveness import show_life
from graphrag_pipeline.store.scanning import LeftOut
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.upkeep.checking import check
from graphrag_pipeline.upkeep.purging import Purge, clean_releases, plan_purge, purge

LOGS = "the logs of the model's server"
UNFINISHED = (
    "A purge was interrupted, and traces of removed documents may remain: run graphrag-pipeline "
    "purge to finish it."
)
NAME, TEXT, METADATA = "zqvkname7714", "zqvktext8825", "zqvkmeta9936"
ENTITY, ANSWER = "Zqvkaperson Zqvkbperson", "zqvkanswer5503"
BROKEN, SCANNED = "zqvkbroken3381", "zqvkscanned2270"
CANARIES = (NAME, TEXT, METADATA, ENTITY, ANSWER, BROKEN, SCANNED)
SECRET = f"""---
author: {METADATA}
---
{ENTITY} met Alice Smith at the {TEXT}. Alice Smith paid {ENTITY} twice, said Bob Jones.
"""
STAYING = {
    "a.txt": "Alice Smith met Bob Jones. Bob Jones paid Carol Brown. Carol Brown met Alice Smith.",
    "b.txt": "Dora Green met Emil Black. Emil Black paid Max Miller. Max Miller met Dora Green.",
}
NORA = "Nora Quill met Alice Smith."
MORE = {"a-copy.txt": STAYING["a.txt"], "z.txt": "Bob Jones left."}
GOING = {f"{NAME}.md": SECRET, f"{BROKEN}.pdf": f"no pdf at all, {BROKEN}"}
AFTER_THE_GRAPH = "after the graph"
STRUCTURES = {"raptor": True, "hirag": True, "attributed": True}
TABLES = {
    "documents": "SELECT id, uri, text FROM documents",
    "chunks": "SELECT id, text FROM chunks",
    "entities": "SELECT id, title, type, description, degree FROM entities",
    "relationships": "SELECT id, source, target, description, weight FROM relationships",
    "batch_sources": "SELECT uri, sha256, status FROM batch_sources",
    "quarantine": "SELECT uri, reason FROM quarantine",
}


def telling_mind(messages: Messages) -> str:
    """The model; of what it reads in the secret document it says a word of its own."""
    answer = mind(messages)
    if stage_of(messages) in ("extract", "glean") and TEXT in document_in(messages):
        return answer.replace(" is in ", f" is {ANSWER} in ")
    return answer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-never-shown")
    with ModelServer(telling_mind) as server:
        yield server


@pytest.fixture
def plain(plain_stores: None, engine: Engine) -> Engine:
    """An index whose files are opened and closed as outside of tests, for they are replaced."""
    return engine


@pytest.fixture
def indexed(plain_stores: None, tmp_path: Path) -> Engine:
    """An index of STAYING, of MORE, and of a document that will be another."""

    def make(folder: Path) -> None:
        engine = Engine(folder)
        engine.write({**STAYING, **MORE, "c.txt": NORA})
        run(engine)

    return Engine(copy_of("forgetting", make, tmp_path))


def places_of(home: Path, scratch: Path) -> dict[str, set[str]]:
    return {word: places for word, places in traces_of(home, CANARIES, scratch).items() if places}


def run(engine: Engine) -> None:
    workspace = engine.workspace
    with workspace.turn():
        cut_batches(workspace, engine.inbox, remove_all=True)
        run_stages(workspace)


def sweep(engine: Engine, *names: str) -> Purge:
    return purge(engine.workspace, names)


@dg.job
def nothing() -> None:
    """A run of it leaves a line in Dagster's history."""


def what_goes(plan: Purge, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the lines that say what goes, or is gone."""
    show_purge(plan)
    lines = [line.partition("go")[2] for line in capsys.readouterr().out.splitlines()]
    return [line.partition(": ")[2] for line in lines if line.startswith((": ", "ne: "))]


@pytest.mark.slow
def test_nothing_of_a_forgotten_document_is_left_in_any_store(
    server, plain_stores, tmp_path, monkeypatch
):
    command = tmp_path / "bin" / "tesseract"
    command.parent.mkdir()
    command.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && { echo "tesseract 9.9"; exit 0; }\n'
        f'cat > /dev/null\necho "{SCANNED} sails."\n'
    )
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:/usr/bin:/bin")
    engine = by_model(tmp_path, server.base_url, hierarchies=STRUCTURES, input={"ocr": True})
    home = engine.log.home
    engine.write({**STAYING, **GOING, "scan.pdf": scan("a page")})
    index_folder(engine.workspace, engine.inbox)
    engine.write({f"{NAME}.md": f"{SECRET} Bob Jones met Alice Smith again.\n"})
    run(engine)
    with duckdb.connect(str(Home(home).marts)) as con:
        con.execute(f"CREATE TABLE daily AS SELECT '{ENTITY}' AS title")
    Home(home).notices.write_text(json.dumps({"index": {"why": f"{NAME}.md failed", "hooks": []}}))
    Home(home).reader_deaths.write_text(json.dumps({"0": {"why": f"{NAME}.md killed it"}}))
    (home / "llm_cache.sqlite.damaged-1").write_text(ANSWER)
    engine.write({**dict.fromkeys(GOING), "scan.pdf": None})
    run(engine)
    links = LeftOut("links", "", 1, (f"{NAME}.md",))
    own = LeftOut(".graphragignore", f"{BROKEN}.pdf", 2, (f"{BROKEN}.pdf", f"{NAME}.d/x"))
    engine.workspace.batches.note_left_out(engine.inbox, [links, own])

    before = places_of(home, tmp_path)
    assert set(before) == set(CANARIES)
    assert stores(before[NAME]) >= {
        *("batches", "dagster", "index.duckdb", "published.duckdb", "releases", "notices.json"),
        *("vectors", "left_out.json", "reader_deaths.json"),
    }
    assert stores(before[TEXT]) >= {"index.duckdb", "releases", "vectors", "dagster"}
    assert stores(before[METADATA]) >= {"releases"}
    assert stores(before[ENTITY]) >= {
        *("llm_cache.sqlite", "releases", "vectors", "marts.duckdb", "dagster"),
    }
    assert stores(before[ANSWER]) >= {"llm_cache.sqlite", "releases", "vectors"}
    assert stores(before[SCANNED]) >= {"ocr", "releases", "vectors"}
    assert stores(before[BROKEN]) >= {"batches", "releases", "index.duckdb"}
    # Formats that compress hide words from a search of their bytes alone.
    assert {place for place in before[TEXT] if ".changes:" in place}

    names = [str(engine.inbox / name) for name in (*GOING, "scan.pdf")]
    plan = plan_purge(engine.workspace, names)
    told = sweep(engine, *names)
    assert len(told.sources) == 3
    assert told.removed == []
    assert told.dropped_runs == plan.dropped_runs
    assert LOGS in told.elsewhere
    assert any("audit/" in place for place in told.elsewhere)
    assert told.dropped_releases == plan.dropped_releases
    assert told.answers.dropped
    assert told.dropped_runs
    assert places_of(home, tmp_path) == {}
    files = traces_of(home, (*GOING, "scan.pdf"), tmp_path)
    assert [name for name, places in files.items() if places] == []
    assert list(check(engine.workspace).problems) == []
    summary = summarise(engine.workspace)
    assert summary["removed_files"] == 0
    assert not summary["refresh_needed"]
    assert not summary["pending_batches"]
    with open_release(home, settings=engine.settings) as release:
        assert [row["uri"] for row in release.rows("SELECT uri FROM documents ORDER BY uri")] == [
            f"documents/{name}" for name in STAYING
        ]
        assert release.search_vectors("chunks", "Who met Bob Jones?", 1).num_rows == 1


@pytest.mark.nightly
def test_the_index_is_that_of_what_stays_and_its_answers_are_not_paid_again(
    server, plain_stores, tmp_path
):
    engine = by_model(tmp_path / "one", server.base_url)
    engine.write(STAYING)
    run(engine)
    engine.write(GOING)
    run(engine)
    spent = (
        "SELECT count(*), sum(prompt_tokens + completion_tokens) FROM llm_calls WHERE NOT cached"
    )
    before = engine.rows(spent)
    engine.write(dict.fromkeys(GOING))
    purged = sweep(engine, *(f"documents/{name}" for name in GOING))
    assert len(purged.removed) == len(GOING)
    assert purged.answers.kept
    assert purged.answers.dropped
    assert engine.rows(spent) == before
    fresh = by_model(tmp_path / "two", server.base_url)
    fresh.write(STAYING)
    fresh.log.home.mkdir(exist_ok=True)
    shutil.copy(Home(engine.log.home).calls, Home(fresh.log.home).calls)
    n_asked = len(server.asked())
    run(fresh)
    assert len(server.asked()) == n_asked
    asked = [text for request in server.asked("embeddings") for text in request.body["input"]]
    # How long vectors are is asked as each run begins that has something to embed.
    texts = [text for text in asked if text != "length"]
    assert len(texts) == len(set(texts))
    for table, query in TABLES.items():
        assert sorted(engine.rows(query), key=repr) == sorted(fresh.rows(query), key=repr), table
    assert places_of(engine.log.home, tmp_path) == {}


def test_only_what_is_known_and_would_not_come_back_is_forgotten(engine, tmp_path):
    engine.write({**STAYING, "copy.txt": STAYING["a.txt"], "old/c.txt": SECRET})
    run(engine)
    ((id,),) = engine.rows("SELECT id FROM documents WHERE uri = 'documents/old/c.txt'")
    plan = partial(plan_purge, engine.workspace)
    with pytest.raises(InputError, match=r"never held a document documents/never.txt"):
        plan(["documents/never.txt"])
    with pytest.raises(InputError, match=r"c.txt would come back with the next run: delete the"):
        plan([id])
    engine.write({"a.txt": None, "old/c.txt": None})
    with pytest.raises(InputError, match=r"documents/copy.txt has the same content"):
        plan(["documents/a.txt"])
    for name in (id, "documents/old/c.txt", str(engine.inbox / "old/c.txt"), "documents/old"):
        planned = plan([name])
        assert planned.sources == planned.removed == ["documents/old/c.txt"]
    run(engine)
    planned = plan([id])
    assert (planned.sources, planned.removed) == (["documents/old/c.txt"], [])
    engine.write({"d.txt": "Nora Quill met Alice Smith."})
    engine.cut()
    with pytest.raises(InputError, match=r"changes are waiting to be indexed"):
        plan([id])
    assert traces(engine.log.home, TEXT, tmp_path)


def test_a_release_is_clean_where_all_its_documents_are_in_the_index(tmp_path):
    for release, names in (("r1", [*DOCUMENTS][:2]), ("r2", [*DOCUMENTS])):
        publish(tmp_path, documents={name: DOCUMENTS[name] for name in names}, release=release)
        keep_published(tmp_path)
    workspace = Workspace(settings_for(tmp_path))
    shutil.copy(tmp_path / "index-r2.duckdb", workspace.paths.index)
    assert clean_releases(workspace) == {"r1", "r2"}
    with workspace.store.transaction() as con:
        con.execute("DELETE FROM documents WHERE title = ?", [[*DOCUMENTS][-1]])
        ((source, *_), *_) = con.execute("SELECT source FROM documents").fetchall()
    assert clean_releases(workspace) == {"r1"}
    assert clean_releases(workspace, [source]) == set()


def test_logs_of_a_model_that_is_not_asked_any_more_are_named_too(engine, server):
    engine.write({"a.txt": STAYING["a.txt"]})
    run(engine)
    assert LOGS not in plan_purge(engine.workspace).elsewhere
    ask(server, engine.log.home)
    assert LOGS in plan_purge(engine.workspace).elsewhere


def test_what_changes_after_a_purge_is_indexed_as_ever(indexed, capsys):
    engine = indexed
    ((last,),) = engine.rows("SELECT max(human_readable_id) FROM documents")
    engine.write({"c.txt": "Nora Quill met Bob Jones."} | dict.fromkeys(("b.txt", *MORE)))
    run(engine)
    show_status(summarise(engine.workspace))
    stays = r"3 removed files: .* until you run graphrag-pipeline purge"
    assert re.search(stays, capsys.readouterr().out)
    sweep(engine)
    show_status(summarise(engine.workspace))
    assert "removed file" not in capsys.readouterr().out
    assert not summarise(engine.workspace)["pending_batches"]
    engine.write({".graphragignore": "a.txt\n"})
    assert sweep(engine, "documents/a.txt").removed == ["documents/a.txt"]
    engine.write({"c.txt": "Nora Quill met nobody.", "y.txt": "Dora Green met Nora Quill."})
    run(engine)
    documents = "SELECT uri, text, human_readable_id FROM documents ORDER BY uri"
    ((c, text, _), (y, _, number)) = engine.rows(documents)
    assert (c, text, y) == ("documents/c.txt", "Nora Quill met nobody.", "documents/y.txt")
    assert number == last + 1


def test_tables_and_manifests_say_the_same_of_files_that_stay(indexed):
    engine = indexed
    engine.write({"a-copy.txt": None, "b.txt": "Dora Green left.", "c.txt": None})
    engine.write({"moved.txt": NORA, "z.txt": None})
    run(engine)
    engine.write({"moved.txt": None, "c.txt": NORA, "z.txt": "Bob Jones sang."})
    run(engine)
    before = engine.rows(TABLES["documents"])
    sweep(engine)
    assert list(check(engine.workspace).problems) == []
    assert sorted(engine.rows(TABLES["documents"])) == sorted(before)
    log = engine.workspace.batches
    listed = {(batch.key, change.uri) for batch in log.batches() for change in batch.changes}
    rows = engine.rows("SELECT batch, uri, status FROM batch_sources")
    assert {(batch, uri) for batch, uri, _ in rows} == listed
    assert {uri for _, uri, status in rows if status == "ok"} == log.sources().keys()
    # Programs before this one have kept such names in manifests alone.
    with engine.workspace.store.transaction() as con:
        con.execute("DELETE FROM batch_sources WHERE status = 'superseded'")
    assert [p for p in check(engine.workspace).problems if p.check == "batch_ledger"] == []
    # To read a batch once more, as after a change of settings, changes nothing.
    with engine.workspace.store.transaction() as con:
        con.execute("DELETE FROM batch_stages")
    with engine.workspace.turn():
        run_stages(engine.workspace)
    assert sorted(engine.rows("SELECT batch, uri, status FROM batch_sources")) == sorted(rows)
    assert sorted(engine.rows(TABLES["documents"])) == sorted(before)


def test_a_dry_run_says_what_the_run_then_does_and_links_stay_left_out(indexed, tmp_path, capsys):
    engine = indexed
    (tmp_path / "outside.txt").write_text("Nobody reads this.")
    (engine.inbox / "link.txt").symlink_to(tmp_path / "outside.txt")
    engine.write({".graphragignore": "c.txt\n", "d.txt": "Dora Green met Nora Quill."})
    run(engine)
    statuses = (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.STARTED)
    with opened_instance(engine.workspace.settings) as instance:
        _, dead, living = (
            instance.create_run_for_job(nothing, status=status).run_id
            for status in (*statuses, dg.DagsterRunStatus.STARTED)
        )
        show_life(instance, living)
        (Home(engine.log.home).dagster / "alive" / f"{dead}.lock").touch()
    plan = plan_purge(engine.workspace, ["documents/c.txt"])
    told = sweep(engine, "documents/c.txt")
    with opened_instance(engine.workspace.settings) as instance:
        assert [run.run_id for run in instance.get_runs()] == [living]
    assert (plan.dropped_runs, len(plan.dropped_releases)) == (2, 2)
    assert LOGS not in told.elsewhere
    assert what_goes(plan, capsys) == what_goes(told, capsys)
    rules = summarise(engine.workspace)["left_out"]
    names = {name for rule in rules for name in rule["names"]}
    assert names == {".graphragignore", "link.txt"}
    assert "c.txt" not in Home(engine.log.home).left_out.read_text()


def test_where_no_index_is_a_purge_leaves_the_folder_alone(tmp_path):
    for act in (plan_purge, purge):
        with pytest.raises(InputError, match="there is no index in"):
            act(Workspace(Settings(home=str(tmp_path / ".graphrag"))))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "step",
    [
        AFTER_THE_GRAPH,
        *(
            pytest.param(step, marks=pytest.mark.nightly)
            for step in (
                *(
                    "keep_only",
                    "take_out_gone",
                    "run_stages",
                    "note_versions",
                    "publish_while_changing",
                    "drop_unused",
                ),
                "drop_experiments",
                "drop_leftovers",
            )
        ),
    ],
)
def test_a_purge_that_was_stopped_anywhere_is_completed_by_the_next(
    step, plain, tmp_path, monkeypatch, capsys
):
    engine = plain
    engine.write({**STAYING, **GOING})
    run(engine)
    engine.write(dict.fromkeys(GOING))
    names = [f"documents/{name}" for name in GOING]

    def stop(*given: object, **_: object) -> None:
        if step != AFTER_THE_GRAPH or given[0] == "communities":
            raise KeyboardInterrupt

    place = (
        "pipeline.updating.progress.report" if step == AFTER_THE_GRAPH else f"upkeep.purging.{step}"
    )
    with monkeypatch.context() as patch:
        patch.setattr(f"graphrag_pipeline.{place}", stop)
        with pytest.raises(KeyboardInterrupt):
            sweep(engine, *names)
    assert summarise(engine.workspace)["purge_unfinished"]
    show_status(summarise(engine.workspace))
    shown = capsys.readouterr().out.splitlines()
    assert [line for line in shown if "pipeline purge" in line] == [UNFINISHED]
    checked = check(engine.workspace)
    told = [*(problem.line for problem in checked.problems), *checked.notes]
    assert any("run graphrag-pipeline purge" in line for line in told)
    assert not any("--repair" in line for line in told)
    sweep(engine, *names)
    assert not summarise(engine.workspace)["purge_unfinished"]
    assert places_of(engine.log.home, tmp_path) == {}
    assert not summarise(engine.workspace)["pending_batches"]
    with open_release(engine.log.home) as release:
        assert len(release.rows("SELECT * FROM documents")) == len(STAYING)
