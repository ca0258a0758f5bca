"""Commands killed (`kill -9`) before a change that they make on the disk, or at any moment.

What was published is readable, `check` finds nothing wrong, and the same command again ends as if
nobody had been killed.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest
from artefacts import copy_of
from commands import PATIENCE, ForkedPython, command
from killed_command import killed_at, number_of_steps
from test_check import _OWN, PLAIN, cut, data_file, in_folder, lance_table, ready, story
from traces import traces

from graphrag_pipeline import Index
from graphrag_pipeline.cli.commands import COMMANDS
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.query import retrieve
from graphrag_pipeline.releases.kept_releases import (
    file_of,
    kept_file,
    release_ids,
    rolled_back_from,
)
from graphrag_pipeline.store.hashing import rows_hash
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.structures.vector_tables import noted_versions
from graphrag_pipeline.upkeep.backups import back_up, restore
from graphrag_pipeline.upkeep.checking import check
from graphrag_pipeline.upkeep.purging import purge

KILLS = int(os.environ.get("KILLS", "12"))
"""How many steps, and how many moments, each command is killed at in the nightly tests."""
WORD = "zqvkforgotten"
QUESTION = "Who met Mira Sorrel?"
QUESTIONS = f'{{"question": "{QUESTION}", "answers": ["Oskar Kovarna"]}}\n'
EXPERIMENT = 'questions = "asked.jsonl"\nmethods = ["basic", "bm25"]\n'
WHOSE = ["id", "vector"]
OF_A_RUN = ["batch", "root", "seconds", "mtime_ns"]
COLUMNS = """
SELECT table_name, list('"' || column_name || '"')
FROM duckdb_columns() SEMI JOIN (SELECT table_oid FROM duckdb_tables()) USING (table_oid)
WHERE schema_name = 'main' AND NOT list_contains($1, column_name)
      AND NOT list_contains($2, table_name)
      AND NOT starts_with(data_type, 'TIME') AND data_type <> 'DATE'
GROUP BY ALL ORDER BY ALL
"""
BEFORE = "the release before"
ARCHIVE, OTHER, EXPORT = "index.tar.zst", "restored", "exported"
pytestmark = [
    pytest.mark.usefixtures("plain_stores"),
    pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL"),
]


@dataclass(frozen=True)
class Place:
    """A folder with documents, their index, and what commands make."""

    folder: Path

    @property
    def home(self) -> Path:
        return self.folder / ".graphrag"

    @property
    def workspace(self) -> Workspace:
        return Workspace(in_folder(self.folder, PLAIN))


@dataclass(frozen=True)
class Case:
    """A command; what comes before it; what it comes to, equal however often it was killed."""

    arguments: tuple[str, ...]
    prepare: Callable[[Place], object]
    outcome: Callable[[Place], object]
    place_of_steps: str = ".graphrag"
    may_be_done: bool = False
    """Whether the command is refused (exit code 2) where it has come to its end before."""

    def command(self, place: Place) -> list[str]:
        """Return the command as it is given: the second newest release by its id."""
        return [release_ids(place.home)[1] if each == BEFORE else each for each in self.arguments]


def change_documents(place: Place) -> None:
    documents = place.folder / "documents"
    (documents / "2.md").unlink()
    (documents / "3.md").write_text(story(7))
    (documents / "more.md").write_text(story(14))


def remove_document(place: Place) -> None:
    (place.folder / "documents" / "secret.md").unlink()


def damage(place: Place) -> None:
    workspace = place.workspace
    cut(workspace.paths.published)
    cut(data_file(workspace, "entities"))


def archive(place: Place) -> None:
    back_up(place.workspace, place.folder / ARCHIVE)


def questions(place: Place) -> None:
    (place.folder / "asked.jsonl").write_text(QUESTIONS)
    (place.folder / "small.toml").write_text(EXPERIMENT)


def nothing(place: Place) -> None:
    pass


def rows_of(place: Place) -> object:
    return rows_in(place.workspace)


def rows_in(workspace: Workspace) -> object:
    """Return hashes of what does not depend on clocks: rows of the index, ids and vectors.

    Of vectors those that the index names: a repair that was killed while it made those of an older
    release again has left others behind them.
    """
    with duckdb.connect(str(workspace.paths.index), read_only=True) as con:
        hashes = {
            table: con.execute(f"SELECT {rows_hash(table, ', '.join(columns))}").fetchone()
            for table, columns in con.execute(COLUMNS, [OF_A_RUN, [*_OWN, "quality"]]).fetchall()
        }
        versions = {name: n for name, n in noted_versions(con).items() if n}
    vectors = dict[str, object]()
    for name, version in versions.items():
        table = lance_table(workspace, name)
        table.checkout(version)
        vectors[name] = table.to_arrow().sort_by("id").select(WHOSE).to_pydict()
    return hashes, vectors


def rows_without_traces(place: Place) -> object:
    scratch = place.folder / "scratch"
    scratch.mkdir(exist_ok=True)
    return rows_of(place), traces(place.home, WORD, scratch)


def published(place: Place) -> object:
    current = Home(place.home).published
    return [file_of(place.home, each).samefile(current) for each in release_ids(place.home)]


def of_archive(place: Place) -> object:
    restored = restore(place.folder / ARCHIVE, place.folder / "looked at").home
    return rows_in(Workspace(PLAIN.model_copy(update={"home": str(restored)})))


def restored(place: Place) -> object:
    home = str(place.folder / OTHER / "home")
    return rows_in(Workspace(PLAIN.model_copy(update={"home": home})))


def files_exported(place: Place) -> object:
    folder = place.folder / EXPORT
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def marts(place: Place) -> object:
    done = command("sql", "SELECT count(*) FROM marts.corpus", "--format", "csv")
    return done.returncode, done.stdout


def experiment(place: Place) -> object:
    done = command("eval", "results", "--json")
    return done.returncode, done.stdout.count("basic"), done.stdout.count("bm25")


CASES: dict[str, Case] = {
    "index": Case(("index", "documents", "--remove-all"), change_documents, rows_of),
    "forget": Case(
        ("forget", "documents/secret.md", "-y"),
        remove_document,
        rows_without_traces,
        may_be_done=True,
    ),
    "purge": Case(("purge", "-y"), nothing, rows_of),
    "rollback": Case(("rollback", BEFORE), nothing, published, may_be_done=True),
    "backup": Case(("backup", ARCHIVE), nothing, of_archive, "", may_be_done=True),
    "restore": Case(
        ("restore", ARCHIVE, "--home", f"{OTHER}/home"), archive, restored, OTHER, may_be_done=True
    ),
    "repair": Case(("check", "--repair"), damage, rows_of),
    "export": Case(("export", "csv", "-o", EXPORT, "--force"), nothing, files_exported, ""),
    "marts": Case(("marts",), nothing, marts),
}
if "eval" in COMMANDS.names():
    CASES["eval"] = Case(("eval", "run", "small.toml", "--yes"), questions, experiment)
LATE_IN_FORGETTING = 521
"""The step before which every run of the tests kills `forget`."""


def make(folder: Path) -> None:
    index = Index(ready(folder).settings)
    secret = f"{WORD} Lin Ruolan met {WORD} Ada Vellum in Kelmouth."
    (folder / "documents" / "secret.md").write_text(secret)
    index.update(folder / "documents")


Prepared = Callable[[str], Place]


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prepared:
    """What makes an index, in a folder of its own, that the next commands work on."""

    def made(name: str) -> Place:
        folder = tmp_path / name
        copy_of("killed", make, folder)
        monkeypatch.chdir(folder)
        monkeypatch.setenv("GRAPHRAG_HOME", str(folder / ".graphrag"))
        monkeypatch.setenv("DAGSTER_HOME", str(folder / ".graphrag" / "dagster"))
        monkeypatch.setenv("GRAPHRAG_EMBEDDINGS__DIMENSIONS", str(PLAIN.embeddings.dimensions))
        return Place(folder)

    return made


def assert_ok(place: Place, *remarks: str) -> None:
    """`check` calls an index good, or says one of these."""
    problems = [problem.line for problem in check(place.workspace).problems]
    assert [line for line in problems if not any(each in line for each in remarks)] == []


def is_good(done: subprocess.CompletedProcess[str], *codes: int) -> None:
    assert done.returncode in (0, *codes), done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def undisturbed(prepared: Prepared, case: Case) -> tuple[object, int, float]:
    """Return what a command comes to, how many steps it makes, and how long it takes."""
    place = prepared("calm")
    case.prepare(place)
    begin = time.monotonic()
    steps = number_of_steps(place.folder / case.place_of_steps, *case.command(place))
    seconds = time.monotonic() - begin
    return case.outcome(place), steps, seconds


def assert_next_is_right(place: Place, case: Case, right: object) -> None:
    """Look at what a killed command leaves, and run it again."""
    if case is not CASES["repair"]:
        assert_ok(place, "a purge was interrupted: run graphrag-pipeline purge to finish it")
        assert retrieve(QUESTION, "bm25", home=place.home, settings=PLAIN).records
    again = command(*case.command(place))
    is_good(again, *([2] if case.may_be_done else []))
    # What is refused clears nothing away.
    assert again.returncode or not list(place.folder.rglob("*.tmp"))
    assert_ok(place)
    assert case.outcome(place) == right


@pytest.mark.waits
def test_what_is_forgotten_is_gone_where_the_command_is_killed_and_given_again(
    prepared: Prepared,
) -> None:
    case, place = CASES["forget"], prepared("killed")
    case.prepare(place)
    ended = killed_at(LATE_IN_FORGETTING, place.home, *case.arguments)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    is_good(command(*case.arguments), 2)
    assert_ok(place)
    (place.folder / "scratch").mkdir()
    assert traces(place.home, WORD, place.folder / "scratch") == set()


def test_what_was_killed_between_publishing_and_keeping_can_be_purged(tmp_path: Path) -> None:
    ready(tmp_path)
    place = Place(tmp_path)
    kept_file(place.home, release_ids(place.home)[0]).unlink()
    assert rolled_back_from(place.home) is None
    purge(place.workspace)
    assert_ok(place)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_after_kills_at_many_steps_and_moments_the_next_is_right(
    prepared: Prepared, name: str
) -> None:
    case, chance = CASES[name], random.Random(name)
    right, steps, seconds = undisturbed(prepared, case)
    n_killed = 0
    for step in sorted(chance.sample(range(steps), min(KILLS, steps))):
        place = prepared(f"step {step}")
        case.prepare(place)
        ended = killed_at(step, place.folder / case.place_of_steps, *case.command(place))
        n_killed += ended.returncode == -signal.SIGKILL
        assert_next_is_right(place, case, right)
    for number in range(KILLS):
        place = prepared(f"moment {number}")
        case.prepare(place)
        n_killed += killed_after(seconds * chance.random(), *case.command(place))
        assert_next_is_right(place, case, right)
    print(f"{name}: {n_killed} kills at {steps} steps")
    assert n_killed >= min(KILLS, steps) / 2


def killed_after(seconds: float, *arguments: str) -> bool:
    """Run a command and kill it after a while; return whether it had not ended before."""
    with ForkedPython(
        ["-m", "graphrag_pipeline.cli", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        time.sleep(seconds)
        process.kill()
        return process.wait(PATIENCE) == -signal.SIGKILL
