"""The marts: what they say of an index, how they are built, and what a broken build leaves."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pytest
from commands import PATIENCE, ForkedPython, run_python
from killed_command import killed_at
from marts_fixture import MORE, Told, home_with_marts, put_release, release_wanted
from query_fixture import DOCUMENTS
from typer.testing import CliRunner

from graphrag_pipeline.assets import Names
from graphrag_pipeline.cli.app import app
from graphrag_pipeline.core.errors import InputError, StorageError
from graphrag_pipeline.core.settings import load_settings
from graphrag_pipeline.definitions import build_definitions
from graphrag_pipeline.marts import build as marts
from graphrag_pipeline.marts.build import MARTS_JOB
from graphrag_pipeline.marts.sql import query_published
from graphrag_pipeline.orchestration import runs
from graphrag_pipeline.releases.kept_releases import published_release
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.sensors import build_marts_sensor

BROKEN = "INSERT INTO documents FROM documents LIMIT 1"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def with_marts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Told]]:
    """A home with a release, and its marts built by the job that the command line runs."""
    with home_with_marts(tmp_path_factory.mktemp("marts")) as made:
        yield made


@pytest.fixture(scope="module")
def home(with_marts: tuple[Path, Told]) -> Path:
    return with_marts[0]


@pytest.fixture(scope="module")
def built(with_marts: tuple[Path, Told]) -> Told:
    """What the run that built the marts has told."""
    return with_marts[1]


@pytest.fixture(scope="module")
def ask(home: Path):
    def rows(statement: str) -> list[tuple]:
        return query_published(home, statement)[1]

    return rows


def test_where_nothing_was_evaluated_the_marts_of_experiments_are_empty(ask) -> None:
    for name in ("results", "win_rates", "contexts", "history"):
        assert ask(f"SELECT count(*) FROM marts.experiment_{name}") == [(0,)]
    assert ask("SELECT evaluated_at FROM marts.built_from") == [(None,)]


def test_where_nobody_judged_an_answer_the_marts_of_feedback_are_empty(ask) -> None:
    for name in ("answer_feedback", "feedback_sources"):
        assert ask(f"SELECT count(*) FROM marts.{name}") == [(0,)]
    assert ask("SELECT documents, communities, words FROM marts.answer_feedback") == []
    assert ask("SELECT offered_version FROM marts.built_from") == [("",)]


def test_a_profile_tells_where_an_entity_is_found_and_belongs(ask) -> None:
    (row,) = ask(
        """SELECT degree, n_documents, documents, first_seen::VARCHAR, root_community,
                  [c.level FOR c IN communities], aliases
           FROM marts.entity_profile WHERE title = 'Scrooge'"""
    )
    assert row == (
        4,
        1,
        ["docs/0.txt"],
        "2026-11-01 10:00:00+00",
        "Scrooge, Marley, Bob Cratchit",
        [0, 1, 2],
        ["Ebenezer"],
    )
    assert ask("SELECT count(*) FROM marts.entity_profile") == ask("SELECT count(*) FROM entities")
    assert ask(
        """SELECT count(*) FROM marts.entity_profile p JOIN entities e ON e.id = p.entity_id
           WHERE p.n_chunks <> (SELECT count(*) FROM entity_chunks WHERE entity_id = e.id)"""
    ) == [(0,)]


def test_evidence_quotes_the_document_at_its_characters(ask) -> None:
    rows = ask("SELECT uri, start_char, end_char, is_exact, quote FROM marts.relationship_evidence")
    assert len(rows) == ask("SELECT count(*) FROM relationship_chunks")[0][0]
    assert {exact for *_, exact, _ in rows} == {True, False}
    texts = list(DOCUMENTS.values())
    for uri, start, end, exact, quote in rows:
        text = texts[int(Path(uri).stem)]
        assert quote == text[start:end]
        assert not exact or end - start == 7


def test_the_overview_has_every_community_with_its_way_and_its_report(ask) -> None:
    assert ask("SELECT count(*) FROM marts.community_overview") == [(8,)]
    (row,) = ask(
        """SELECT parent, path, level, size, n_children, has_report, key_entities[1]
           FROM marts.community_overview WHERE title = 'Scrooge, Marley' """
    )
    way = "Scrooge, Marley, Bob Cratchit > Scrooge, Marley, Fezziwig > Scrooge, Marley"
    assert row == ("Scrooge, Marley, Fezziwig", way, 2, 2, 0, True, "Scrooge")
    assert ask("SELECT n_missing FROM marts.report_freshness ORDER BY level") == [(0,), (0,), (1,)]


def test_coverage_has_documents_failures_and_what_could_not_be_read(ask) -> None:
    rows = ask("SELECT status, count(*), sum(n_chunks) FROM marts.document_coverage GROUP BY 1")
    assert dict(row[:2] for row in rows) == {"ok": 3, "partial": 1, "quarantined": 1}
    assert sum(row[2] for row in rows) == ask("SELECT count(*) FROM chunks")[0][0]
    assert ask("SELECT uri, reason FROM marts.document_coverage WHERE status = 'quarantined'") == [
        ("docs/broken.pdf", "it is encrypted")
    ]


def test_cost_is_by_day_in_utc_and_adds_up(ask) -> None:
    rows = ask(
        """SELECT day::VARCHAR, n_calls, n_cached, n_unpriced, prompt_tokens, cost
           FROM marts.llm_cost ORDER BY day"""
    )
    assert rows == [("2026-11-01", 20, 1, 0, 1900, 5.0), ("2026-11-02", 20, 0, 1, 2000, 4.75)]
    assert sum(row[5] for row in rows) == ask("SELECT sum(cost) FROM llm_calls")[0][0]


def test_quality_counts_failures_orphans_and_answers(ask) -> None:
    found = dict(ask("SELECT measure, number FROM marts.extraction_quality"))
    chunks = ask("SELECT count(*) FROM chunks")[0][0]
    assert found["failed_chunks"] == 1
    assert found["orphan_entities"] == 1
    assert found["duplicate_titles"] == 0
    assert found["merged_titles"] == 1
    assert found["repeated_answers"] == 40 - chunks
    assert ask("SELECT n_failed, answers_per_chunk FROM marts.extraction_batches") == [
        (1, 40 / chunks)
    ]


def test_growth_and_origin_name_the_release(ask, home: Path) -> None:
    assert ask("SELECT release_id, new_entities FROM marts.index_growth") == [("r1", 14)]
    assert ask("SELECT release_id, project_version FROM marts.built_from") == [
        ("r1", marts.project_version())
    ]


def test_data_tests_are_asset_checks_and_the_ui_has_counts_columns_and_lineage(
    built: Told,
) -> None:
    # One report is missing: the only data test that only warns.
    assert built.failed == {"marts/report_freshness:every_report_is_written"}
    told = built.metadata[("marts/relationship_evidence", None)]
    assert told["dagster/row_count"] > 10
    columns = {column.name: column for column in told["dagster/column_schema"].columns}
    assert (columns["quote"].type, columns["weight"].type) == ("VARCHAR", "DOUBLE")
    # Dagster's UI shows the lineage of columns to customers only.
    assert "| weight | stg\\_relationships.weight |" in told["columns_made_from"]
    made_from = told["dagster/column_lineage"].deps_by_column["weight"]
    assert [(d.asset_key.path[-1], d.column_name) for d in made_from] == [
        ("stg_relationships", "weight")
    ]


def test_lineage_leads_from_the_published_index_to_the_marts(home: Path) -> None:
    graph = build_definitions(load_settings(), marts=True).resolve_asset_graph()
    keys = {key for key in graph.get_all_asset_keys() if key.path[0] == "marts"}
    staging = {key for key in keys if key.path[1] == "staging"}
    assert (len(keys - staging), len(staging)) == (17, 22)
    for key in keys:
        node = graph.get(key)
        assert node.group_name == ("marts_staging" if key in staging else "marts")
        assert node.pools == {"marts"}
        assert node.kinds == {"dbt", "duckdb"}
        assert node.description
    parents = [graph.get(key).parent_keys for key in staging]
    assert parents.count({dg.AssetKey("published_index")}) == 16
    assert parents.count({dg.AssetKey("evaluations")}) == 5
    assert parents.count({dg.AssetKey("feedback")}) == 1
    checks = [key for key in graph.asset_check_keys if key.asset_key in keys]
    assert [key.name for key in checks if not graph.get_check_spec(key).description] == []


def test_every_model_and_column_is_described_in_the_file_too(home: Path) -> None:
    models = json.loads(marts.manifest(home).read_text())["nodes"]
    described = {
        node["name"]: {name for name, column in node["columns"].items() if column["description"]}
        for node in models.values()
        if node["resource_type"] == "model" and node["description"]
    }
    with duckdb.connect(str(home / "marts.duckdb"), read_only=True) as con:
        tables = dict(con.execute("SELECT table_name, comment FROM duckdb_tables()").fetchall())
        columns = con.execute(
            "SELECT table_name, column_name, comment FROM duckdb_columns() WHERE NOT internal"
        ).fetchall()
        views = con.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
    assert views == []
    assert [name for name, comment in tables.items() if not comment] == []
    assert [column for column in columns if not column[2]] == []
    staging = {name for name in described if name.startswith("stg_")}
    assert set(described) == staging | set(tables)
    for name in tables:
        assert described[name] == {column for table, column, _ in columns if table == name}
    assert len(staging) == 22


def test_nothing_new_builds_nothing_and_writes_nothing_where_one_stands(home: Path) -> None:
    before = (home / "marts.duckdb").stat()
    said = CliRunner().invoke(app, ["marts", "--json"])
    assert said.exit_code == 0, said.output
    outcome = json.loads(said.stdout)
    assert (outcome["built"], outcome["release"], outcome["rows"]["entity_profile"]) == (
        False,
        "r1",
        14,
    )
    after = (home / "marts.duckdb").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert {path.name for path in home.iterdir()} & {"target", "logs"} == set()
    assert not list((home / "dbt").glob(".building.*"))


def test_the_sensor_asks_until_the_marts_tell_of_what_is_published(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sensor = build_marts_sensor(IndexResource.of(load_settings()), Names(), "RUNNING")

    def tick(instance: dg.DagsterInstance) -> dg.RunRequest | dg.SkipReason:
        context = dg.build_sensor_context(instance)
        return sensor(context)  # type: ignore[return-value]

    with dg.DagsterInstance.ephemeral() as instance:
        assert isinstance(tick(instance), dg.SkipReason)
        newer = marts.Origin("r2", "p", datetime.fromtimestamp(0, UTC), "")
        monkeypatch.setattr("graphrag_pipeline.sensors.marts.marts_outdated", lambda home: newer)
        with monkeypatch.context() as patch:
            patch.setattr(
                "graphrag_pipeline.sensors.marts.is_of_this_version", lambda release: False
            )
            assert isinstance(tick(instance), dg.SkipReason)
        asked = tick(instance)
        assert isinstance(asked, dg.RunRequest)
        assert asked.tags["graphrag/release"] == "r2"
        assert asked.tags["graphrag/evaluated"] == "never"
        for _ in range(3):
            run = instance.create_run_for_job(_nothing, tags=asked.tags)
            instance.report_run_failed(run)
        told = tick(instance)
        assert isinstance(told, dg.SkipReason)
        assert "failed 3 times" in str(told.skip_message)
        # Another experiment is another attempt at it.
        later = replace(newer, evaluated_at=datetime.now(UTC))
        monkeypatch.setattr("graphrag_pipeline.sensors.marts.marts_outdated", lambda home: later)
        assert isinstance(tick(instance), dg.RunRequest)


@dg.job(name=MARTS_JOB)
def _nothing() -> None:
    pass


def test_a_failing_data_test_fails_its_check_and_leaves_the_last_marts(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = shutil.copytree(home, tmp_path / "home", ignore=shutil.ignore_patterns("dagster"))
    put_release(place, "r2", MORE, BROKEN)
    monkeypatch.setenv("GRAPHRAG_HOME", str(place))
    with duckdb.connect(str(place / "marts.duckdb"), read_only=True) as reader:
        said = CliRunner().invoke(app, ["marts", "--json"])
        assert reader.execute("SELECT release_id FROM built_from").fetchone() == ("r1",)
    assert said.exit_code == 1
    assert "marts/staging/stg_documents unique_stg_documents_document_id" in said.stderr
    assert len(said.stderr.strip().splitlines()) == 1
    found = marts.built_marts(place)
    assert found is not None
    assert found.release == "r1"
    assert release_wanted(place) == "r2"


KILLED = """
import os, signal, sys
from pathlib import Path
import duckdb
from graphrag_pipeline.marts import build as marts
with marts.building(Path(sys.argv[1])) as build:
    with duckdb.connect(build.environment["DBT_ENV_SECRET_MARTS"]) as con:
        con.execute("CREATE TABLE built_from AS SELECT 'half' AS release_id")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_build_leaves_the_last_marts_and_the_next_clears_up(home: Path) -> None:
    done = run_python("-c", KILLED, str(home))
    assert done.returncode == -signal.SIGKILL
    assert len(list((home / "dbt").glob(".building.*"))) == 1
    found = marts.built_marts(home)
    assert found is not None
    assert found.release == "r1"
    with marts.building(home):
        pass
    assert not list((home / "dbt").glob(".building.*"))


def works_in(folder: Path) -> list[int]:
    """Return the processes that were started with a folder in their environment."""
    pids = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if str(folder).encode() in environ.read_bytes():
                pids.append(int(environ.parent.name))
    return pids


def seen(what: str, look: Callable[[], Any]) -> Any:
    until = time.monotonic() + PATIENCE
    while not (found := look()):
        assert time.monotonic() < until, f"{what}: not seen in time"
        time.sleep(0.05)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up as Linux shows them")
def test_dbt_ends_with_a_killed_build_and_readers_keep_the_last_marts(home: Path) -> None:
    command = ["-m", "graphrag_pipeline.cli", "marts", "--force"]
    with ForkedPython(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            place = home / "dbt"
            file = seen("dbt's file", lambda: [*place.glob(".building.*/content/marts.duckdb")])[0]
            assert works_in(file.parent)
        finally:
            process.kill()
    seen("the end of dbt", lambda: not works_in(file.parent))
    whole = marts.built_marts(home)
    assert whole is not None
    assert whole.release == "r1"
    assert runs.run_marts(load_settings()).built is False
    assert not list(home.rglob("*.tmp"))


@pytest.mark.nightly
def test_marts_killed_at_any_step_leave_whole_ones_and_the_next_build_is_right(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = shutil.copytree(home, tmp_path / "home")
    monkeypatch.setenv("GRAPHRAG_HOME", str(place))
    monkeypatch.setenv("DAGSTER_HOME", str(place / "dagster"))
    before = marts.built_marts(place)
    assert before is not None
    step, code = 0, -signal.SIGKILL
    while code:
        ended = killed_at(step, place, "marts", "--force")
        code = ended.returncode
        assert code in (0, -signal.SIGKILL), ended.stderr
        whole = marts.built_marts(place)
        assert whole is not None
        assert (whole.release, whole.rows) == (before.release, before.rows)
        seen("the end of dbt", lambda: not works_in(place / "dbt"))
        step += 3
    assert step > 10
    assert not list(place.rglob("*.tmp"))
    with dg.DagsterInstance.from_config(str(place / "dagster")) as instance:
        assert {run.status for run in instance.get_runs()} <= {
            dg.DagsterRunStatus.SUCCESS,
            dg.DagsterRunStatus.FAILURE,
        }


def test_a_build_is_of_one_release_and_readers_do_not_hold_it_up(
    home: Path, tmp_path: Path
) -> None:
    put_release(tmp_path, "r1")
    parsed = marts.manifest(home).parent
    shutil.copytree(parsed, tmp_path / "dbt" / parsed.name)

    def build(publish_meanwhile: str) -> marts.Marts:
        with marts.building(tmp_path) as build:
            given = build.environment
            put_release(tmp_path, publish_meanwhile)
            pinned = given["DBT_ENV_SECRET_RELEASE"]
            with duckdb.connect(given["DBT_ENV_SECRET_MARTS"]) as con:
                con.execute(f"ATTACH '{pinned}' AS published (READ_ONLY)")
                con.execute("CREATE SCHEMA staging")
                con.execute("CREATE VIEW staging.v AS FROM published.releases")
                con.execute(
                    "CREATE TABLE built_from AS SELECT id AS release_id, now() AS built_at, "
                    "'p' AS project_version, NULL::TIMESTAMPTZ AS evaluated_at, "
                    "'' AS offered_version "
                    "FROM published.releases"
                )
            return build.put_in_place()

    assert build("r2").release == "r1"
    with duckdb.connect(str(tmp_path / "marts.duckdb"), read_only=True) as reader:
        assert build("r3").release == "r2"
        assert reader.execute("SELECT release_id FROM built_from").fetchone() == ("r1",)
    assert published_release(tmp_path) == "r3"
    assert release_wanted(tmp_path) == "r3"


def test_sql_says_what_to_do_where_there_are_no_marts_or_old_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHRAG_HOME", str(tmp_path))
    said = CliRunner().invoke(app, ["marts"])
    assert (said.exit_code, "run graphrag-pipeline index" in said.stderr) == (3, True)
    put_release(tmp_path, "r1")
    with pytest.raises(InputError, match="run graphrag-pipeline marts"):
        query_published(tmp_path, "SELECT * FROM marts.entity_profile")
    assert query_published(tmp_path, "SELECT 'marts. ' AS said")[1] == [("marts. ",)]
    with duckdb.connect(str(tmp_path / "marts.duckdb")) as con:
        con.execute("CREATE TABLE built_from AS SELECT 'r0' release_id, now() a, '' b")
    said = CliRunner().invoke(app, ["sql", "-f", "csv", "SELECT release_id FROM marts.built_from"])
    assert said.stdout.split() == ["release_id", "r0"]
    assert "the marts are behind" in said.stderr


def test_a_release_of_an_older_program_is_refused(tmp_path: Path) -> None:
    put_release(tmp_path, "r1", "UPDATE meta SET value = '1' WHERE key = 'schema_version'")
    assert not marts.is_of_this_version(tmp_path / "published.duckdb")
    with (
        pytest.raises(StorageError, match="run graphrag-pipeline index"),
        marts.building(tmp_path),
    ):
        pass


def test_docs_are_generated_from_any_folder(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_release(tmp_path, "r1")
    shutil.copytree(marts.manifest(home).parent, tmp_path / "dbt" / "target")
    elsewhere = tmp_path / "some" / "folder"
    elsewhere.mkdir(parents=True)
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("GRAPHRAG_HOME", "../..")
    done = CliRunner().invoke(
        app, ["dbt", "docs", "generate", "--static", "--quiet", "--no-compile"]
    )
    assert done.exit_code == 0, done.output
    assert (tmp_path / "dbt" / "target" / "static_index.html").is_file()
    assert list(elsewhere.iterdir()) == []
    catalog = json.loads((tmp_path / "dbt" / "target" / "catalog.json").read_text())
    assert len(catalog["sources"]) == 18 + 7 + 2
    assert {path.name for path in tmp_path.glob("eval*")} == set()
