"""Backup and restore: one archive of a state that existed, and nothing taken from it on trust."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import multiprocessing
import os
import re
import shutil
import signal
import sqlite3
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from artefacts import copy_of
from full_disk import no_file_above
from index_process import by_model, update
from killed_command import killed_at
from model_server import ModelServer
from test_check import PLAIN, digests, in_folder, story
from test_llm_pipeline import mind
from typer.testing import CliRunner

from conftest import Engine, without_privileges, workspace_of
from graphrag_pipeline import Index
from graphrag_pipeline.cli.app import app
from graphrag_pipeline.core.errors import InputError, StorageError
from graphrag_pipeline.orchestration.runs import index_folder, opened_instance
from graphrag_pipeline.query import retrieve
from graphrag_pipeline.releases.kept_releases import published_release
from graphrag_pipeline.store.hashing import rows_hash
from graphrag_pipeline.store.index_store import IndexStore
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.upkeep import home_files
from graphrag_pipeline.upkeep.archives import CONTENTS
from graphrag_pipeline.upkeep.backups import back_up, restore
from graphrag_pipeline.upkeep.checking import check
from graphrag_pipeline.upkeep.home_files import HOME_FILES
from graphrag_pipeline.upkeep.purging import purge

_TABLES = "SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT temporary ORDER BY ALL"

ARCHIVE = "index.tar.zst"

pytestmark = pytest.mark.usefixtures("plain_stores")


def _make(folder: Path) -> None:
    documents = folder / "documents"
    documents.mkdir(parents=True)
    for number in range(6):
        (documents / f"{number}.md").write_text(story(number))
    Index(in_folder(folder, PLAIN)).update(documents)


@pytest.fixture
def index(tmp_path: Path) -> Workspace:
    """An index of one release."""
    return Workspace(in_folder(copy_of("backed_up", _make, tmp_path / "index"), PLAIN))


def _back_up(folder: Path) -> None:
    index = copy_of("backed_up", _make, folder / "index")
    back_up(Workspace(in_folder(index, PLAIN)), folder / ARCHIVE)
    shutil.rmtree(index)


@pytest.fixture
def archive(index, tmp_path) -> Path:
    """A backup of it."""
    return copy_of("backup", _back_up, tmp_path) / ARCHIVE


def state(con: duckdb.DuckDBPyConnection) -> str:
    """Return a hash of all rows of an index."""
    tables = con.execute(_TABLES).fetchall()
    return str(
        [
            con.execute(f"SELECT {rows_hash(f'{schema}.{table}')}").fetchone()
            for schema, table in tables
        ]
    )


def state_of(home: Path) -> str:
    with duckdb.connect(str(home / "index.duckdb"), read_only=True) as con:
        return state(con)


def assert_nothing_left(folder: Path, *names: str) -> None:
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)


def test_a_restored_index_is_the_same_and_goes_on_without_paying(tmp_path):
    with ModelServer(mind) as server:
        engine = by_model(tmp_path / "one", server.base_url)
        engine.write({f"{number}.md": story(number) for number in range(3)})
        update(engine)
        home = engine.log.home
        made = back_up(engine.workspace, tmp_path / "index.tar.zst")
        other = by_model(tmp_path / "two", server.base_url)
        restored = restore(made.archive, other.log.home)
        assert (restored.release, restored.n_files) == (published_release(home), made.n_files)
        assert state_of(other.log.home) == state_of(home)
        assert [problem.line for problem in check(other.workspace).problems] == []
        shutil.copytree(engine.inbox, other.inbox, dirs_exist_ok=True)
        before = len(server.requests)
        assert update(other) == published_release(home)
        assert len(server.requests) == before


def test_dagster_shows_the_history_that_was_restored(tmp_path):
    engine = Engine(tmp_path / "one", PLAIN)
    engine.write({"0.md": story(0)})
    index_folder(engine.workspace, engine.inbox)
    told = history_of(engine.workspace)
    assert {"published_index", "chunks"} <= dict(told[1]).keys()
    for with_history in (False, True):
        archive = tmp_path / f"{with_history}.tar.zst"
        back_up(engine.workspace, archive, with_history=with_history)
        other = Engine(tmp_path / str(with_history), PLAIN)
        restore(archive, other.log.home)
        assert history_of(other.workspace) == (told if with_history else ([], [])), with_history
    other.write({"0.md": story(0), "1.md": story(1)})
    index_folder(other.workspace, other.inbox)
    runs, assets = history_of(other.workspace)
    assert runs[-len(told[0]) :] == told[0]
    assert (runs[0][2], dict(assets)["published_index"]) == ("SUCCESS", runs[0][0])


def history_of(workspace: Workspace) -> tuple[list[tuple[str, str, str, bool]], list[Any]]:
    """Return the runs that Dagster shows, the newest first, and the run that made each asset."""
    with opened_instance(workspace.settings) as instance:
        records = instance.get_latest_materialization_event
        assets = [(key.to_user_string(), records(key)) for key in instance.all_asset_keys()]
        return (
            [
                (run.run_id, run.job_name, run.status.value, bool(instance.all_logs(run.run_id)))
                for run in instance.get_runs()
            ],
            sorted((key, event.run_id) for key, event in assets if event),
        )


def test_a_question_is_answered_from_a_restored_index(index, archive, tmp_path):
    home = tmp_path / "other" / ".graphrag"
    restore(archive, home)
    question = "Who lived in Kelmouth?"
    asked = [
        retrieve(question, "basic", home=place, settings=PLAIN) for place in (index.home, home)
    ]
    assert asked[0].records == asked[1].records != []


def test_the_command_tells_what_it_wrote_and_checks_what_it_restored(index, tmp_path, monkeypatch):
    monkeypatch.chdir(index.home.parent)
    (index.home / "graphrag.toml").write_text("[embeddings]\ndimensions = 32\n")
    run = CliRunner().invoke(app, ["backup", str(tmp_path / "a.tar.zst"), "--json"])
    assert run.exit_code == 0, run.output
    assert json.loads(run.stdout)["release"] == published_release(index.home)
    home = tmp_path / "b" / ".graphrag"
    run = CliRunner().invoke(app, ["restore", str(tmp_path / "a.tar.zst"), "--home", str(home)])
    assert run.exit_code == 0, run.output
    assert re.search(r"MB, backed up [-\d]+ [:\d]+ UTC\.", run.output)
    assert run.stdout.splitlines()[-1] == "ok"
    assert home.stat().st_mode & 0o777 == 0o700
    named = ["--home", str(tmp_path / "c"), "--json"]
    run = CliRunner().invoke(app, ["restore", str(tmp_path / "a.tar.zst"), *named])
    values = json.loads(run.stdout)
    assert (values["home"], values["ok"], values["problems"]) == (str(tmp_path / "c"), True, [])
    assert "checked" not in values
    again = CliRunner().invoke(app, ["restore", str(tmp_path / "a.tar.zst"), "--home", str(home)])
    assert again.exit_code == InputError.exit_code
    assert "is not empty" in again.stderr


def test_no_key_is_in_a_backup(index, tmp_path):
    (index.home / "graphrag.toml").write_text('[llm]\nbase_url = "http://user:sesame@host/v1"\n')
    (index.home / ".env").write_text("OPENAI_API_KEY=sesame\n")
    made = back_up(index, tmp_path / "a.tar.zst")
    assert made.left_out == ("graphrag.toml",)
    restore(made.archive, tmp_path / "home")
    assert not any(
        b"sesame" in p.read_bytes() for p in (tmp_path / "home").rglob("*") if p.is_file()
    )


def test_a_home_is_restored_with_the_rights_that_were_asked_for(archive, tmp_path):
    restore(archive, tmp_path / "shared", 0o750)
    assert (tmp_path / "shared").stat().st_mode & 0o777 == 0o750


def _write_and_note(folder: Path, notes: Path) -> None:
    """Bring an index up to date again and again; note each state before it is committed."""
    settings = in_folder(folder, PLAIN)
    transaction = IndexStore.transaction

    @contextmanager
    def noting(store: IndexStore, **more: bool) -> Iterator[duckdb.DuckDBPyConnection]:
        with transaction(store, **more) as con:
            yield con
            with notes.open("a") as file:
                file.write(f"{hashlib.sha256(state(con).encode()).hexdigest()}\n")

    IndexStore.transaction = noting  # type: ignore[method-assign]
    index = Index(settings)
    (folder / "documents" / "2.md").write_text(story(20))
    index.update(folder / "documents")


@pytest.mark.waits
def test_a_backup_beside_a_run_is_a_state_that_existed(index, tmp_path):
    folder, notes = index.home.parent, tmp_path / "notes"
    with index.store.read() as con:
        before = hashlib.sha256(state(con).encode()).hexdigest()
    notes.write_text(f"{before}\n")
    run = multiprocessing.get_context("forkserver").Process(
        target=_write_and_note, args=(folder, notes)
    )
    run.start()
    number = 0
    try:
        while run.is_alive():
            back_up(index, tmp_path / f"{number}.tar.zst")
            number += 1
            # The run goes on meanwhile, longer each time: a slow one meets few of them.
            run.join(0.1 * 3**number)
    finally:
        run.kill() if number == 0 else run.join(240)
        run.join()
    assert run.exitcode == 0
    states = set(notes.read_text().split())
    seen = {before: index.home}
    for each in range(number):
        home = tmp_path / str(each) / ".graphrag"
        restore(tmp_path / f"{each}.tar.zst", home)
        now = hashlib.sha256(state_of(home).encode()).hexdigest()
        assert now in states
        seen[now] = home
    assert len(seen) > 1
    # The first of these was seen in the midst of the run.
    home = [*seen.values()][1]
    restored = Workspace(in_folder(home.parent, PLAIN))
    assert [problem.line for problem in check(restored).problems] == []
    assert retrieve("Kelmouth", "basic", home=home, settings=PLAIN).records


# What is no backup, or a damaged one


def unpacked(archive: Path) -> list[tuple[tarfile.TarInfo, bytes]]:
    with (
        pa.CompressedInputStream(str(archive), "zstd") as stream,
        tarfile.open(fileobj=io.BytesIO(stream.read())) as tar,
    ):
        return [(member, tar.extractfile(member).read()) for member in tar]  # type: ignore[union-attr]


def pack(archive: Path, members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    with (
        pa.CompressedOutputStream(str(archive), "zstd") as stream,
        tarfile.open(fileobj=stream, mode="w|") as tar,
    ):
        for header, data in members:
            header.size = len(data) if header.isreg() else 0
            tar.addfile(header, io.BytesIO(data))


Members = list[tuple[tarfile.TarInfo, bytes]]


def _listed(change: Callable[[dict[str, Any]], object]) -> Callable[[Members], object]:
    """Return what changes the list of an archive."""

    def edit(members: Members) -> None:
        listed = json.loads(members[0][1])
        change(listed)
        members[0] = (members[0][0], json.dumps(listed).encode())

    return edit


def _member(name: str, **values: Any) -> tuple[tarfile.TarInfo, bytes]:
    header = tarfile.TarInfo(name)
    for key, value in values.items():
        setattr(header, key, value)
    return header, b"x" if header.isreg() else b""


def _named(name: str) -> Callable[[Members], object]:
    """Return what lets a file be listed, and be there, under another name."""

    def edit(members: Members) -> None:
        _listed(lambda listed: listed["members"][0].update(name=name))(members)
        members[1][0].name = name

    return edit


def _replaced(header: tarfile.TarInfo) -> Callable[[Members], object]:
    def edit(members: Members) -> None:
        header.name = members[1][0].name
        members[1] = (header, b"")

    return edit


def _of_type(kind: bytes) -> tarfile.TarInfo:
    header = tarfile.TarInfo("")
    header.type, header.linkname = kind, "/etc/passwd"
    return header


def _changed(members: Members) -> None:
    header, data = members[1]
    members[1] = (header, bytes([data[0] ^ 1]) + data[1:])


def _same_as(name: str) -> Callable[[Members], object]:
    """Return what lists one more file, which is to have the bytes of another."""
    more = {"name": "batches/more.json", "size": 1, "sha256": "0" * 64, "same_as": name}
    return _listed(lambda listed: listed["members"].append(more))


HOSTILE: dict[str, tuple[Callable[[Members], object], str]] = {
    "a name that leads out": (_named("../evil"), "is no file of an index"),
    "a name that leads out of a folder": (_named("batches/../../evil"), "is no file of an index"),
    "an absolute name": (_named("/tmp/evil"), "is no file of an index"),
    "a file of another kind": (_named(".env"), "is no file of an index"),
    "a symbolic link": (_replaced(_of_type(tarfile.SYMTYPE)), "is not the file that its list says"),
    "a hard link": (_replaced(_of_type(tarfile.LNKTYPE)), "is not the file that its list says"),
    "a device": (_replaced(_of_type(tarfile.CHRTYPE)), "is not the file that its list says"),
    "a pipe": (_replaced(_of_type(tarfile.FIFOTYPE)), "is not the file that its list says"),
    "a file more": (lambda m: m.append(_member("batches/more.json")), "is not in its list"),
    "a file twice": (lambda m: m.append(m[1]), "is not in its list, or is there twice"),
    "a file less": (lambda m: m.pop(), "is missing"),
    "a longer file": (
        _listed(lambda listed: listed["members"][0].update(size=1)),
        "is not the file that its list says",
    ),
    "other bytes": (_changed, "is not what was written"),
    "a negative size": (
        _listed(lambda listed: listed["members"][0].update(size=-1)),
        "is none",
    ),
    "the bytes of a file elsewhere": (_same_as("/etc/passwd"), "the same as a file that is not"),
    "the bytes of a file above": (_same_as("../../a"), "the same as a file that is not there"),
    "the bytes of itself": (_same_as("batches/more.json"), "the same as a file that is not there"),
    "a list of nothing": (_listed(lambda listed: listed.pop("members")), CONTENTS),
    "a header without an end": (
        lambda m: m.insert(1, (_pax(2 * 2**20), b"")),
        "it ends, or is broken, after",
    ),
}


def _pax(n_bytes: int) -> tarfile.TarInfo:
    header = tarfile.TarInfo("batches/x.json")
    header.pax_headers = {"comment": "0" * n_bytes}
    return header


@pytest.mark.parametrize("name", HOSTILE)
def test_what_an_archive_must_not_hold_is_refused_by_name(name, archive, tmp_path):
    change, said = HOSTILE[name]
    members = unpacked(archive)
    change(members)
    pack(archive, members)
    before = set(tmp_path.iterdir())
    with pytest.raises(StorageError, match=f"is damaged: .*{said}.*; nothing was restored"):
        restore(archive, tmp_path / "place" / "home")
    assert set(tmp_path.iterdir()) - before <= {tmp_path / "place"}
    assert not (tmp_path / "place").exists() or not any((tmp_path / "place").iterdir())
    assert not Path("/tmp/evil").exists()


def test_an_archive_of_a_newer_program_is_refused(archive, tmp_path):
    members = unpacked(archive)
    _listed(lambda listed: listed.update(format=2))(members)
    pack(archive, members)
    with pytest.raises(InputError, match="is of format 2, and this program knows 1"):
        restore(archive, tmp_path / "home")


@pytest.mark.parametrize("share", [0.01, 0.5, 0.99])
def test_an_archive_that_is_cut_names_the_member(share, archive, tmp_path):
    os.truncate(archive, int(archive.stat().st_size * share))
    with pytest.raises((StorageError, InputError), match=r"is damaged: |is no backup"):
        restore(archive, tmp_path / "place" / "home")
    assert not (tmp_path / "place" / "home").exists()


def test_what_is_no_archive_is_told_apart(tmp_path):
    (tmp_path / "a").write_bytes(b"no archive at all" * 100)
    with pytest.raises(InputError, match="is no backup of this program"):
        restore(tmp_path / "a", tmp_path / "home")
    with pytest.raises(InputError, match="cannot be opened"):
        restore(tmp_path / "b", tmp_path / "home")


def test_a_folder_that_holds_something_is_left_alone(archive, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "mine").write_text("mine")
    with pytest.raises(InputError, match="is not empty"):
        restore(archive, home)
    assert_nothing_left(home, "mine")


def test_an_archive_that_is_there_is_left_alone(index, archive):
    before = archive.read_bytes()
    with pytest.raises(InputError, match="is there already"):
        back_up(index, archive)
    assert archive.read_bytes() == before


# Trouble


def test_where_there_is_no_room_nothing_is_left_behind(index, archive, tmp_path):
    before, other = digests(index.home), tmp_path / "other"
    other.mkdir()
    with no_file_above(100_000), pytest.raises(StorageError, match="cannot write"):
        back_up(index, other / "a.tar.zst")
    with no_file_above(100_000), pytest.raises(StorageError, match="cannot write"):
        restore(archive, tmp_path / "place" / "home")
    assert digests(index.home) == before
    assert not any(other.iterdir())
    assert_nothing_left(tmp_path / "place")


@pytest.mark.parametrize("refused", ["home", "other"])
def test_the_folder_that_may_not_be_written_is_the_one_that_is_named(index, open_folder, refused):
    home, other = open_folder / "home", open_folder / "other"
    shutil.copytree(index.home, home)
    other.mkdir()
    (open_folder / refused).chmod(0o500)
    named = home if refused == "home" else other / "a.tar.zst"
    own = [home, *home.rglob("*"), other]
    with without_privileges(*own), pytest.raises(StorageError) as told:
        back_up(workspace_of(home, PLAIN), other / "a.tar.zst")
    assert str(told.value) == f"cannot write {named}: Permission denied"


def _killed(work: Callable[[], object], step: int) -> bool:
    """Do something in a fork that does not survive its step ``step``; whether it was killed."""
    child = os.fork()
    if not child:
        left = [step]

        def hear(event: str, _: tuple[object, ...]) -> None:
            if event in ("os.rename", "os.mkdir", "os.link", "os.remove", "os.rmdir"):
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left[0] -= 1

        import sys

        signal.alarm(120)
        sys.addaudithook(hear)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0


def test_a_restore_that_is_killed_leaves_a_whole_home_or_none(archive, tmp_path):
    place, step = tmp_path / "place", 0
    home = place / "home"
    while _killed(lambda: restore(archive, home), step):
        if home.exists():
            assert check(Workspace(PLAIN.model_copy(update={"home": str(home)}))).problems == ()
            shutil.rmtree(home)
        step += 5
    assert step > 5
    assert_nothing_left(place, "home")


@pytest.mark.waits
@pytest.mark.parametrize("stride", [29, pytest.param(1, marks=pytest.mark.nightly)])
def test_a_backup_that_is_killed_is_whole_or_not_there_and_the_next_clears_up(
    stride, index, tmp_path, monkeypatch
):
    monkeypatch.chdir(index.home.parent)
    before, kept = digests(index.home), tmp_path / "kept"
    kept.mkdir()
    archive, step, n_whole = kept / "a.tar.zst", 0, 0
    while (ended := killed_at(step, tmp_path, "backup", str(archive))).returncode:
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        if archive.exists():
            n_whole += 1
            restored = restore(archive, tmp_path / str(step))
            assert state_of(restored.home) == state_of(index.home)
            archive.unlink()
        step += stride
    assert step >= 3 * stride
    assert n_whole > 0 or stride > 1
    assert_nothing_left(kept, archive.name)
    assert digests(index.home) == before
    restored = restore(archive, tmp_path / "whole")
    assert digests(restored.home).keys() <= before.keys()
    settings = PLAIN.model_copy(update={"home": str(restored.home)})
    assert check(Workspace(settings)).problems == ()


def test_conversations_are_backed_up_whole_where_the_server_is_not_installed(
    index, tmp_path, monkeypatch
):
    core = {name: HOME_FILES.find(name) for name in HOME_FILES.own}
    monkeypatch.setattr(home_files.HOME_FILES, "usable", lambda: core)
    with contextlib.closing(sqlite3.connect(index.home / "conversations.sqlite")) as served:
        served.execute("PRAGMA journal_mode = WAL")
        served.execute("CREATE TABLE turns (question VARCHAR)")
        served.execute("INSERT INTO turns VALUES ('Who met Bob?')")
        served.commit()
        back_up(index, tmp_path / "served.tar.zst")
    restored = restore(tmp_path / "served.tar.zst", tmp_path / "restored").home
    with contextlib.closing(sqlite3.connect(restored / "conversations.sqlite")) as con:
        assert con.execute("SELECT * FROM turns").fetchall() == [("Who met Bob?",)]


def test_no_folder_is_made_for_an_archive(index, tmp_path):
    with pytest.raises(InputError, match="nowhere is not a folder: make it, or name another"):
        back_up(index, tmp_path / "nowhere" / "index.tar.zst")
    assert not (tmp_path / "nowhere").exists()


def test_an_archive_within_the_index_is_refused(index):
    with pytest.raises(InputError, match="outside of it"):
        back_up(index, index.home / "vectors" / "a.tar.zst")


def test_an_index_is_backed_up_and_restored_after_a_purge(index, tmp_path):
    purge(index)
    made = back_up(index, tmp_path / "purged.tar.zst")
    restored = Workspace(in_folder(tmp_path / "again", PLAIN))
    restore(made.archive, restored.home)
    assert state_of(restored.home) == state_of(index.home)
    assert [problem.line for problem in check(restored).problems] == []
