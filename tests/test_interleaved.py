"""Two commands of which one is stopped at each of its steps while the other comes in between.

Whoever comes waits, is refused in one line, or is done before: what is purged is in no release that
anybody can reach, and every release is whole.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from artefacts import copy_of
from index_process import SMALL, update
from test_releases import STORY, assert_whole, grow
from traces import traces

from conftest import Engine
from graphrag_pipeline.core.errors import GraphRAGError, InputError
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.marts.build import building
from graphrag_pipeline.releases.kept_releases import release_ids
from graphrag_pipeline.releases.publishing import publish
from graphrag_pipeline.releases.rollback import rollback
from graphrag_pipeline.structures.registry import ask_for_clustering
from graphrag_pipeline.upkeep.backups import back_up, restore
from graphrag_pipeline.upkeep.purging import purge

WORD = "zqvkpurged"
GONE = "gone.txt"
PATIENCE = 120
LETS_THE_OTHER_BEGIN = 0.3
"""How long the stopped command stands still: the other is then done, or waits."""
BUILT_FROM = """
CREATE TABLE built_from AS
SELECT id AS release_id, 'none' AS project_version, created_at AS built_at,
       TIMESTAMPTZ 'epoch' AS evaluated_at, '' AS offered_version
FROM release.releases ORDER BY created_at DESC LIMIT 1
"""
NAMES_CHANGE = ("os.rename", "os.link", "os.remove", "os.chmod")
Command = Callable[[Path], object]


class Steps:
    """Counts the changes of names in a home that one thread makes, and acts at one of them."""

    def __init__(self) -> None:
        self.thread, self.home, self.at, self.count = 0, "", -1, 0
        self.act: Callable[[], None] = lambda: None
        sys.addaudithook(self._hear)

    def watch(self, home: Path, at: int, act: Callable[[], None]) -> None:
        self.home, self.at, self.act, self.count = str(home), at, act, 0
        self.thread = threading.get_ident()

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if (
            event in NAMES_CHANGE
            and threading.get_ident() == self.thread
            and str(arguments[0]).startswith(self.home)
        ):
            self.count += 1
            if self.count - 1 == self.at:
                self.act()


@pytest.fixture(scope="module")
def steps() -> Steps:
    return Steps()


def copy_of_index(to: Path) -> Path:
    """Return a copy of an index with releases that hold a document whose file is gone."""
    secret = f"{WORD} Alice Smith met {WORD} Bob Jones. Bob Jones paid Alice Smith."
    return copy_of(
        "purged beside", lambda made: grow(made, [{GONE: secret}, STORY, {GONE: None}]), to
    )


def forget(folder: Path) -> object:
    return purge(Engine(folder, SMALL).workspace, [f"documents/{GONE}"])


def go_back(folder: Path) -> object:
    workspace = Engine(folder, SMALL).workspace
    return rollback(workspace, release_ids(workspace.home)[-1])


def archive(folder: Path) -> object:
    return back_up(Engine(folder, SMALL).workspace, folder / "archive")


def publish_anew(folder: Path) -> object:
    return publish(Engine(folder, SMALL).workspace, anew=True)


def cluster_anew(folder: Path) -> object:
    engine = Engine(folder, SMALL)
    ask_for_clustering(engine.workspace.store)
    return update(engine)


def build_marts(folder: Path) -> object:
    """Build marts as the command does, with a copy of two tables in the place of dbt's work."""
    with building(Engine(folder, SMALL).workspace.home) as build:
        environment = build.environment
        try:
            with duckdb.connect(environment["DBT_ENV_SECRET_MARTS"]) as con:
                release = environment["DBT_ENV_SECRET_RELEASE"]
                con.execute(f"ATTACH '{release}' AS release (READ_ONLY)")
                con.execute("CREATE TABLE documents AS FROM release.documents")
                con.execute(BUILT_FROM)
        except duckdb.Error:
            # As the asset does where dbt fails.
            build.check_there()
            raise
        return build.put_in_place()


class Between:
    """A command that another thread begins, and what came of it."""

    def __init__(self, command: Command, folder: Path) -> None:
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(command, folder), daemon=True)

    def _run(self, command: Command, folder: Path) -> None:
        try:
            command(folder)
        except BaseException as error:
            self.error = error

    def begin(self) -> None:
        self._thread.start()
        self._thread.join(LETS_THE_OTHER_BEGIN)

    def end(self) -> None:
        if not self._thread.ident:
            self._thread.start()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "the two wait for each other"


def interleaved(
    steps: Steps, folder: Path, first: Command, second: Command, at: int
) -> tuple[int, list[BaseException | None]]:
    """Run the first command and within its step ``at`` the second; return how many steps it has."""
    between, error = Between(second, folder), None
    steps.watch(folder / ".graphrag", at, between.begin)
    try:
        first(folder)
    except GraphRAGError as refused:
        error = refused
    number = steps.count
    steps.watch(Path("nowhere"), -1, between.begin)
    between.end()
    return number, [error, between.error]


def assert_refused_in_one_line(error: BaseException | None) -> None:
    assert error is None or isinstance(error, GraphRAGError), repr(error)
    assert "\n" not in str(error or "")


COMMANDS: dict[str, Command] = {
    "purge": forget,
    "rollback": go_back,
    "backup": archive,
    "publish": publish_anew,
    "recluster": cluster_anew,
    "marts": build_marts,
}


EVERY_DAY = {
    ("purge", "rollback"): (14,),
    ("purge", "backup"): (14,),
    ("rollback", "purge"): (1,),
    ("marts", "purge"): (1,),
}
PAIRS = [*(("purge", other) for other in COMMANDS), *((other, "purge") for other in COMMANDS)]


def check_outcome(folder: Path, errors: dict[str, BaseException | None], scratch: Path) -> None:
    for error in errors.values():
        assert_refused_in_one_line(error)
    home = folder / ".graphrag"
    if errors["purge"] is not None:
        if "rollback" in errors and errors["rollback"] is None:
            rollback(Engine(folder, SMALL).workspace, release_ids(home)[0])
        forget(folder)
    assert not Home(home).purge_mark.exists()
    assert_whole(home, release_ids(home))
    scratch.mkdir()
    assert traces(home, WORD, scratch) == set()
    if (folder / "archive").exists():
        restored = restore(folder / "archive", folder / "restored").home
        assert_whole(restored, release_ids(restored))


def trial(steps: Steps, folder: Path, first: str, second: str, at: int) -> int:
    """Do both and look at what they leave; return how many steps the first has."""
    number, came_of_it = interleaved(steps, folder, COMMANDS[first], COMMANDS[second], at)
    errors = dict(zip((second, first), came_of_it[::-1], strict=True))
    check_outcome(folder, errors, folder / "scratch")
    return number


@pytest.mark.parametrize(
    ("first", "second", "at"),
    [(*pair, at) for pair, places in EVERY_DAY.items() for at in places],
)
def test_what_is_purged_is_in_no_release_whatever_comes_between(
    steps: Steps, plain_stores: None, tmp_path: Path, first: str, second: str, at: int
) -> None:
    assert at < trial(steps, copy_of_index(tmp_path / "index"), first, second, at)


@pytest.mark.nightly
@pytest.mark.parametrize(("first", "second"), PAIRS, ids=map("-".join, PAIRS))
def test_it_is_so_at_every_step(
    steps: Steps, plain_stores: None, tmp_path: Path, first: str, second: str
) -> None:
    at = 0
    while at < trial(steps, copy_of_index(tmp_path / str(at)), first, second, at):
        at += 1
    assert at > 1


def test_of_two_that_restore_to_one_place_one_is_done_and_the_other_refused(
    steps: Steps, plain_stores: None, tmp_path: Path
) -> None:
    folder, place = copy_of_index(tmp_path / "index"), tmp_path / "restored"
    archive(folder)
    place.mkdir()

    def unpack(_: Path) -> object:
        return restore(folder / "archive", place / "home")

    between, errors = Between(unpack, folder), []
    steps.watch(place, 0, between.begin)
    try:
        unpack(folder)
    except InputError as refused:
        errors.append(str(refused))
    between.end()
    errors += [str(between.error)] * (between.error is not None)
    assert len(errors) == 1
    assert "is not empty" in errors[0]
    assert_whole(place / "home", release_ids(place / "home"))
