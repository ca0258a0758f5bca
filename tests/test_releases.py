"""Releases that are kept: named, listed, gone back to, compared and let go, whatever is killed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from artefacts import made_once
from commands import run_python
from full_disk import no_file_above
from index_process import SMALL, faults, update
from release_steps import KEEP
from typer.testing import CliRunner

from conftest import Engine, workspace_of
from graphrag_pipeline.cli.app import app
from graphrag_pipeline.core.errors import (
    BusyError,
    InputError,
    NothingPublishedError,
    StorageError,
)
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.settings import EmbeddingSettings, InputSettings, ReleaseSettings
from graphrag_pipeline.graph.resolution.resolving import resolve_entities
from graphrag_pipeline.marts.sql import query_published
from graphrag_pipeline.query import QueryEngine, open_release, retrieve
from graphrag_pipeline.releases import publishing
from graphrag_pipeline.releases.diff import diff_releases
from graphrag_pipeline.releases.kept_releases import (
    UnknownReleaseError,
    changing_releases,
    file_of,
    find_release,
    kept_file,
    list_releases,
    published_release,
    release_ids,
    rolled_back_from,
)
from graphrag_pipeline.releases.publishing import publish, refresh_needed
from graphrag_pipeline.releases.rollback import rollback
from graphrag_pipeline.store import vector_store as vectors
from graphrag_pipeline.store.vector_store import VectorStore
from graphrag_pipeline.structures.updating import embed_table
from graphrag_pipeline.structures.vector_tables import TABLES
from graphrag_pipeline.upkeep.checking import check
from graphrag_pipeline.upkeep.purging import purge

STORY = {
    "dam.md": "Oskar Kovarna built the Orlen Dam near Kelmouth.",
    "ship.md": "Captain Mira Sorrel sailed the Kestrel out of Kelmouth with Oskar Kovarna.",
    "map.md": "Lin Ruolan drew the map of Kelmouth for Mira Sorrel.",
}
FEW_DIMENSIONS = {"GRAPHRAG_EMBEDDINGS__DIMENSIONS": str(SMALL.embeddings.dimensions)}
A_WHILE, PATIENCE = 1.5, 120
QUESTION = "Who built the Orlen Dam near Kelmouth?"


def grow(folder: Path, steps: Sequence[dict[str, str | None]]) -> tuple[Engine, list[str]]:
    """Index and publish one step after the other; return the ids of the releases."""
    engine = Engine(folder, SMALL)
    made = []
    for files in steps:
        engine.write(files)
        made.append(update(engine))
    return engine, made


@pytest.fixture(scope="module")
def three() -> tuple[Path, list[str]]:
    """A folder with three releases: one, two and three documents; not to be changed."""
    steps: list[dict[str, str | None]] = [{name: text} for name, text in STORY.items()]
    folder = made_once("three", lambda made: grow(made, steps))
    return folder, sorted(release_ids(folder / ".graphrag"))


@pytest.fixture
def indexed(three, tmp_path) -> tuple[Engine, list[str]]:
    """A copy of :func:`three` to change."""
    folder, made = three
    shutil.copytree(folder, tmp_path / "index", dirs_exist_ok=True)
    return Engine(tmp_path / "index", SMALL), list(made)


def assert_whole(home: Path, ids: Sequence[str]) -> None:
    """Every release can be read: its rows and vectors belong together and a search finds some."""
    for wanted in ids:
        with QueryEngine(home, settings=SMALL, release=wanted) as engine:
            assert engine.index.facts.id == wanted
            assert faults(engine.index) == [], wanted
            assert engine.retrieve(QUESTION, "basic").records, wanted


def uris(home: Path, release: str | None = None) -> int:
    _, rows = query_published(home, "SELECT count(*) FROM documents", release)
    return int(str(rows[0][0]))


def leftovers(home: Path) -> list[str]:
    return [p.name for p in (*home.iterdir(), *(home / "releases").iterdir()) if "tmp" in p.name]


# Reading a release by its name


def test_each_release_is_read_with_its_own_rows_and_vectors(three):
    folder, made = three
    home = folder / ".graphrag"
    assert_whole(home, made)
    assert [uris(home, release) for release in made] == [1, 2, 3]
    assert uris(home) == 3
    for number, release in enumerate(made, 1):
        found = retrieve("Kelmouth", "basic", home=home, settings=SMALL, release=release)
        assert found.release == release
        assert len(found.records) == number


def test_the_beginning_of_an_id_is_enough_where_it_is_unique(three):
    folder, made = three
    home = folder / ".graphrag"
    assert find_release(home, made[1][:-1]) == made[1]
    with pytest.raises(InputError, match=f"could be {made[2]}, {made[1]}, {made[0]}: write more"):
        find_release(home, made[0][:4])


@pytest.mark.parametrize("unknown", ["1999", "../index", "", "x' OR 1=1 --", "a\0b"])
def test_an_unknown_release_is_one_line_that_names_those_there_are(three, unknown):
    folder, made = three
    with pytest.raises(InputError) as raised:
        query_published(folder / ".graphrag", "SELECT 1", unknown)
    assert str(raised.value).splitlines() == [str(raised.value)]
    assert ", ".join(reversed(made)) in str(raised.value)


def test_without_a_release_everything_says_so(tmp_path):
    engine = Engine(tmp_path, SMALL)
    home = engine.log.home
    for act in (
        lambda: list_releases(home),
        lambda: rollback(engine.workspace),
        lambda: diff_releases(home),
        lambda: find_release(home, "x"),
    ):
        with pytest.raises(NothingPublishedError, match="run graphrag-pipeline index"):
            act()
    assert not engine.store.path.exists()


def test_the_list_says_when_what_and_which(three):
    folder, made = three
    listed = list_releases(folder / ".graphrag")
    assert [release.id for release in listed] == made[::-1]
    assert [release.counts["documents"] for release in listed] == [3, 2, 1]
    assert [release.is_current for release in listed] == [True, False, False]
    assert rolled_back_from(folder / ".graphrag") is None
    assert listed == sorted(listed, key=lambda r: r.created_at, reverse=True)
    sizes = {file_of(folder / ".graphrag", r.id).stat().st_size for r in listed}
    assert {release.n_bytes for release in listed} == sizes


def test_a_release_holds_every_table_with_its_comments_and_is_one_file_twice(three):
    folder, made = three
    home = folder / ".graphrag"
    assert (home / "published.duckdb").samefile(home / "releases" / f"{made[2]}.duckdb")
    shape = """SELECT table_name, column_name, data_type, is_nullable, comment
               FROM duckdb_columns() WHERE database_name = '{}' AND schema_name = 'main'
               UNION SELECT table_name, '', '', false, comment FROM duckdb_tables()
               WHERE database_name = '{}' AND schema_name = 'main' ORDER BY ALL"""
    _, published = query_published(home, shape.format("published", "published"))
    engine = Engine(folder, SMALL)
    assert set(published) >= set(engine.rows(shape.format("index", "index")))
    _, schemas = query_published(home, "SELECT DISTINCT schema_name FROM duckdb_tables()")
    assert schemas == [("main",)]


# Going back


def test_a_rollback_shows_rows_and_vectors_of_the_older_release(indexed):
    engine, made = indexed
    home = engine.log.home
    with open_release(home, settings=SMALL) as reader:
        done = rollback(engine.workspace)
        assert (done.before, done.now) == (made[2], made[1])
        assert reader.facts.id == made[2]
        assert faults(reader) == []
    with open_release(home, settings=SMALL) as reader:
        assert reader.facts.id == made[1]
        assert faults(reader) == []
    assert uris(home) == 2
    listed = {release.id: release for release in list_releases(home)}
    assert listed[made[1]].is_current
    assert [listed[release].is_withdrawn for release in made] == [False, False, True]
    assert rolled_back_from(home) == made[2]


def test_a_rollback_stays_until_the_index_changes(indexed):
    engine, made = indexed
    home = engine.log.home
    rollback(engine.workspace, made[0])
    assert not refresh_needed(workspace_of(home, SMALL))
    again = publish(workspace_of(home, SMALL))
    assert (again.id, again.created, again.counts["documents"]) == (made[0], False, 1)
    assert published_release(home) == made[0]
    engine.write({"ship.md": None})
    new = update(engine)
    assert new not in made
    assert published_release(home) == new
    assert uris(home) == 2


def test_a_rollback_stays_when_the_program_changes_and_not_the_index(indexed, monkeypatch):
    engine, made = indexed
    home = engine.log.home
    rollback(engine.workspace, made[0])
    views = publishing.published_sql()
    monkeypatch.setattr(publishing, "published_sql", lambda: f"{views} -- of another version")
    monkeypatch.setattr(publishing, "config_hash", lambda _: "with a setting more")
    assert not refresh_needed(workspace_of(home, SMALL))
    assert publish(workspace_of(home, SMALL)).id == made[0]
    rollback(engine.workspace, made[2])
    assert refresh_needed(workspace_of(home, SMALL))
    assert publish(workspace_of(home, SMALL)).created


def test_other_vectors_are_published_after_a_rollback_though_the_rows_are_the_same(indexed):
    engine, made = indexed
    rollback(engine.workspace, made[0])
    other = EmbeddingSettings(dimensions=48)
    engine.settings = SMALL.model_copy(update={"embeddings": other})
    assert update(engine) not in made


def test_a_release_that_was_made_by_other_rules_is_measured_by_none_of_these(indexed, monkeypatch):
    engine, _ = indexed
    monkeypatch.setattr(publishing, "GRAPH_VERSION", "next")
    engine.write({"ship.md": None})
    update(engine)
    problems = check(engine.workspace).problems
    assert not [each for each in problems if each.where.startswith("releases/")]


def test_the_one_before_is_never_one_that_was_withdrawn(indexed):
    engine, made = indexed
    home = engine.log.home
    rollback(engine.workspace, made[0])
    engine.write({"ship.md": None})
    update(engine)
    assert diff_releases(home).before == made[0]
    assert rollback(engine.workspace).now == made[0]
    with pytest.raises(InputError, match="no release before"):
        rollback(engine.workspace)


def test_a_rollback_can_be_taken_back(indexed):
    engine, made = indexed
    home = engine.log.home
    rollback(engine.workspace)
    assert rollback(engine.workspace, made[2]).now == made[2]
    assert not any(release.is_withdrawn for release in list_releases(home))
    with pytest.raises(InputError, match="published one already"):
        rollback(engine.workspace, made[2])
    assert not refresh_needed(workspace_of(home, SMALL))


def test_while_a_purge_is_not_at_its_end_no_older_release_is_gone_back_to(indexed):
    engine, (first, second, third) = indexed
    rollback(engine.workspace, second)
    engine.workspace.paths.purge_mark.touch()
    with pytest.raises(BusyError, match="run graphrag-pipeline purge to finish it"):
        rollback(engine.workspace, first)
    assert published_release(engine.log.home) == second
    assert rollback(engine.workspace, third).now == third


@pytest.mark.waits
@pytest.mark.parametrize(
    ("hold", "work"),
    [
        (lambda workspace: changing_releases(workspace.home), partial(publish, anew=True)),
        (lambda workspace: changing_releases(workspace.home), rollback),
        (lambda workspace: workspace.turn(), purge),
    ],
    ids=["publish", "rollback", "purge"],
)
def test_who_changes_releases_waits_until_others_have(indexed, hold, work):
    engine, ids = indexed
    home = engine.log.home
    with ThreadPoolExecutor(1) as thread:
        with hold(engine.workspace):
            working = thread.submit(work, workspace_of(home, SMALL))
            with pytest.raises(TimeoutError):
                working.result(A_WHILE)
            assert published_release(home) == ids[-1]
            assert not engine.workspace.paths.purge_mark.exists()
        working.result(PATIENCE)
    assert published_release(home) != ids[-1] or work is purge


def test_a_release_that_cannot_be_read_is_not_gone_back_to(indexed):
    engine, made = indexed
    home = engine.log.home
    for manifest in (home / "vectors" / "chunks.lance" / "_versions").iterdir():
        manifest.unlink()
    with pytest.raises(StorageError, match="chunks"):
        rollback(engine.workspace, made[0])
    file = file_of(home, made[1])
    file.chmod(0o644)
    file.write_bytes(b"no database" * 1000)
    with pytest.raises(StorageError, match=file.name):
        rollback(engine.workspace)
    assert published_release(home) == made[2]
    assert [release.id for release in list_releases(home)] == made[::-1]


# Letting go


def kept_and_tagged(engine: Engine) -> tuple[list[str], list[str]]:
    tags = VectorStore(engine.log.home / "vectors").tags()
    return sorted(release_ids(engine.log.home)), sorted(tags)


@pytest.mark.filterwarnings("ignore:optimize")
def test_what_the_user_keeps_apart_is_published_though_the_graph_stays(indexed):
    engine, made = indexed
    home = engine.store.path.parent
    (home / "aliases.csv").write_text("action,a,b\nnever,Oskar Kovarna,Kelmouth\n")
    settings = SMALL.model_copy(update={"home": home})
    resolve_entities(workspace_of(home, settings).store, workspace_of(home, settings).settings)
    assert refresh_needed(workspace_of(home, settings))
    assert publish(workspace_of(home, settings)).id != made[-1]
    _, rows = query_published(home, "SELECT count(*) FROM entities_kept_apart WHERE method='user'")
    assert rows == [(1,)]


def test_a_clock_that_is_put_back_does_not_make_an_older_release_the_newest(indexed):
    engine, made = indexed
    with engine.store.transaction() as con:
        con.execute("UPDATE releases SET created_at = created_at + INTERVAL 1 DAY")
    engine.write({"more.md": "Ada Quill painted the Orlen Dam."})
    release = update(engine)
    assert release > made[-1]
    with engine.store.read() as con:
        first, last = con.execute(
            "SELECT created_at FROM releases ORDER BY created_at DESC LIMIT 2"
        ).fetchall()
    assert first > last
    assert update(engine) == release


def test_a_release_that_a_kill_left_unkept_or_marked_is_what_readers_see(indexed):
    engine, made = indexed
    home = engine.log.home
    kept_file(home, made[2]).unlink()
    assert rolled_back_from(home) is None
    (home / "releases" / f"{made[2]}.withdrawn").touch()
    assert not list_releases(home)[0].is_withdrawn


def test_releases_are_let_go_by_number_and_their_vectors_reclaimed(indexed, monkeypatch):
    monkeypatch.setattr(vectors, "_CLOCK_MARGIN", timedelta(milliseconds=500))
    monkeypatch.setattr("graphrag_pipeline.releases.publishing._LATE_READERS_DAYS", 0)
    monkeypatch.setattr(VectorStore.optimize, "__defaults__", (7.0, 0))
    engine, made = indexed
    with open_release(engine.log.home, settings=SMALL, release=made[0]) as release:
        oldest = release.facts.vector_versions
    store = VectorStore(engine.log.home / "vectors")
    assert store.at(oldest).count("entities") > 0
    engine.settings = SMALL.model_copy(update={"releases": ReleaseSettings(keep=2)})
    for number in range(2):
        engine.write({f"{number}.md": f"Oskar Kovarna met Mira Sorrel on day {number}."})
        made.append(update(engine))
        assert kept_and_tagged(engine) == (made[-2:], made[-2:])
    assert_whole(engine.log.home, made[-2:])
    with pytest.raises(StorageError, match="cannot be opened"):
        store.at(oldest).count("entities")


def test_releases_are_let_go_by_age_but_never_the_published_one_and_the_one_before(indexed):
    engine, made = indexed
    home = engine.log.home
    engine.settings = SMALL.model_copy(update={"releases": ReleaseSettings(keep_days=1e-9)})
    rollback(engine.workspace, made[0])
    engine.write({"new.md": "Lin Ruolan met Oskar Kovarna."})
    newest = update(engine)
    kept = [made[0], made[2], newest]
    assert kept_and_tagged(engine) == (kept, kept)
    assert_whole(home, kept)


def test_what_an_older_program_published_is_kept_by_the_next_run(indexed):
    engine, made = indexed
    home = engine.log.home
    shutil.rmtree(home / "releases")
    assert [release.id for release in list_releases(home)] == [made[2]]
    with pytest.raises(UnknownReleaseError):
        find_release(home, "")
    assert publish(workspace_of(home, SMALL)).created is False
    assert (home / "published.duckdb").samefile(home / "releases" / f"{made[2]}.duckdb")
    assert_whole(home, [made[2]])


# Comparing


def test_the_difference_names_what_entered_left_and_changed(indexed):
    engine, (*_, before_it) = indexed
    ship = STORY["ship.md"] + " Again."
    engine.write({"dam.md": None, "ship.md": ship, "c.md": "Ada Quill met Captain Mira Sorrel."})
    made = [before_it, update(engine)]
    found = diff_releases(engine.log.home)
    assert (found.before, found.after) == tuple(made)
    documents = found.tables["documents"]
    assert (documents.before, documents.after) == (3, 3)
    names = {change: [Path(uri).name for uri in uris] for change, uris in documents.first.items()}
    assert names == {
        "entered": ["c.md"],
        "left": ["dam.md"],
        "changed": ["ship.md"],
        "renamed": [],
    }
    entities = found.tables["entities"]
    before, after = (titles(engine.log.home, release) for release in made)
    assert set(entities.first["entered"]) == after.keys() - before.keys() != set()
    assert set(entities.first["left"]) == before.keys() - after.keys() != set()
    same = before.keys() & after.keys()
    assert entities.changed == sum(before[name] != after[name] for name in same) > 0
    backwards = diff_releases(engine.log.home, made[1], made[0]).tables["entities"]
    assert backwards.entered == entities.left
    with pytest.raises(InputError, match="named twice"):
        diff_releases(engine.log.home, made[0], made[0])


def titles(home: Path, release: str) -> dict[object, tuple[object, ...]]:
    query = "SELECT title, type, description, frequency, degree FROM entities"
    return {row[0]: row for row in query_published(home, query, release)[1]}


def test_names_come_by_importance_and_no_more_than_asked_for(three):
    folder, made = three
    home = folder / ".graphrag"
    found = diff_releases(home, made[0], made[2], most=2).tables["entities"]
    query = f"""SELECT title FROM entities WHERE title NOT IN ({
        ", ".join("'" + str(title) + "'" for title in titles(home, made[0]))
    })
        ORDER BY degree DESC, title LIMIT 2"""
    assert found.entered > 2
    assert found.first["entered"] == [row[0] for row in query_published(home, query)[1]]


# Whatever is killed


def killed_copies(
    what: str, template: Path, folder: Path, stride: int = 1
) -> list[tuple[int, Engine]]:
    """Return copies of an index that were killed while something was done, and at which step."""
    given = (what, str(template), str(folder), str(stride))
    done = run_python("-m", "release_steps", *given, patience=900)
    assert done.returncode == 0, done.stderr
    steps = range(stride - 1, int(done.stdout), stride)
    return [(step, Engine(folder / str(step), KEEP)) for step in steps]


@pytest.mark.slow
@pytest.mark.waits
@pytest.mark.parametrize("stride", [13, pytest.param(1, marks=pytest.mark.nightly)])
def test_publishing_killed_at_any_step_leaves_releases_whole_and_the_next_one_clears_up(
    indexed, tmp_path, stride
):
    engine, made = indexed
    engine.write({"new.md": "Lin Ruolan met Oskar Kovarna at the Orlen Dam."})
    bring_up_to_publishing(engine)
    copies = killed_copies("publish", engine.inbox.parent, tmp_path, stride)
    assert len(copies) * stride >= 15
    another = KEEP.model_copy(update={"input": InputSettings(max_file_mb=7)})
    for step, copy in copies:
        home = copy.log.home
        assert_whole(home, release_ids(home))
        published = published_release(home)
        assert published == made[2] or published not in made, step
        taken_up = publish(workspace_of(home, KEEP)).id
        assert published_release(home) == taken_up
        assert uris(home) == 4, step
        newest = publish(workspace_of(home, another)).id
        assert leftovers(home) == [], step
        assert kept_and_tagged(copy) == ([taken_up, newest],) * 2, step
        assert_whole(home, [taken_up, newest])


@pytest.mark.slow
@pytest.mark.waits
@pytest.mark.parametrize("stride", [4, pytest.param(1, marks=pytest.mark.nightly)])
def test_a_rollback_killed_at_any_step_is_done_or_not_begun(indexed, tmp_path, stride):
    engine, made = indexed
    copies = killed_copies("rollback", engine.inbox.parent, tmp_path, stride)
    assert len(copies) >= 2
    for step, copy in copies:
        home = copy.log.home
        assert_whole(home, made)
        published = published_release(home)
        assert published in (made[0], made[2]), step
        assert publish(workspace_of(home, KEEP)).id == published
        assert leftovers(home) == [], step
        marked = [release.id for release in list_releases(home) if release.is_withdrawn]
        assert marked == (made[:0:-1] if published == made[0] else marked), step


def bring_up_to_publishing(engine: Engine) -> None:
    engine.update()
    for table in TABLES:
        embed_table(workspace_of(engine.log.home, SMALL), table)


# On the command line


def test_the_commands_list_compare_go_back_and_read(indexed, tmp_path, monkeypatch):
    engine, made = indexed
    monkeypatch.chdir(tmp_path)
    given = {"GRAPHRAG_HOME": str(engine.log.home), **FEW_DIMENSIONS}

    def run(*arguments: str, code: int = 0) -> str:
        done = CliRunner().invoke(app, arguments, env=given)
        assert done.exit_code == code, done.output
        return done.stderr if code else done.stdout

    listed = json.loads(run("releases", "--json"))
    assert [(r["id"], r["counts"]["documents"]) for r in listed] == [
        (release, number) for release, number in zip(made[::-1], (3, 2, 1), strict=True)
    ]
    lines = run("releases").splitlines()
    assert lines[::2] == [f"{made[2]}  published", made[1], made[0]]
    assert re.fullmatch(
        r"  20..-..-.. ..:.. UTC, 1 document, \d+ entit.*, \d+ reports?, \d+\.\d MB", lines[5]
    )
    differs = json.loads(run("diff", made[0], made[2], "--json"))["tables"]["documents"]
    assert (differs["before"], differs["after"], differs["entered"]) == (1, 3, 2)
    assert "map.md" in run("diff")
    assert made[1] in run("rollback")
    assert "rolled back from " + made[2] in run("status")
    count = ("sql", "SELECT count(*) AS n FROM documents", "--json")
    assert json.loads(run(*count)) == [{"n": 2}]
    assert json.loads(run(*count, "--release", made[0])) == [{"n": 1}]
    asked = ("query", QUESTION, "--method", "basic", "--json", "--release")
    assert json.loads(run(*asked, made[2]))["release"] == made[2]
    assert run(*asked, "1999", code=2) == (
        f"error: no release 1999 is kept; there are {', '.join(made[::-1])}\n"
    )


def test_a_release_for_which_the_disk_has_no_room_takes_the_place_of_none(indexed):
    engine, made = indexed
    size = Home(engine.workspace.home).published.stat().st_size
    with no_file_above(size // 2), pytest.raises(StorageError) as told:
        publish(engine.workspace, anew=True)
    published = re.escape(str(Home(engine.workspace.home).published))
    assert re.match(f"cannot write {published}: Could not .*File too large$", str(told.value))
    assert published_release(engine.workspace.home) == made[-1]
    assert_whole(engine.workspace.home, made)


# Others who have a file open


@pytest.mark.parametrize("read_only", [True, False])
def test_who_has_a_release_open_blocks_neither_publishing_nor_going_back(indexed, read_only):
    engine, made = indexed
    home = engine.log.home
    path = home / "published.duckdb"
    publish(workspace_of(home, SMALL))
    path.chmod(0o644)
    code = f"""import duckdb; con = duckdb.connect({str(path)!r}, read_only={read_only})
print(con.sql("SELECT count(*) FROM documents").fetchone(), flush=True); input()"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "(3,)\n"
        assert published_release(home) == made[2]
        assert publish(workspace_of(home, SMALL)).created is False
        assert rollback(engine.workspace).now == made[1]
        assert publish(workspace_of(home, SMALL)).id == made[1]
        engine.write({"new.md": "Lin Ruolan met Oskar Kovarna."})
        newest = update(engine)
        assert published_release(home) == newest
        assert_whole(home, [newest, made[1], made[0]])
        other.communicate("\n", timeout=30)
    assert_whole(home, [*made, newest])
