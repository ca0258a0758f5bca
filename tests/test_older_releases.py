"""Older releases, kept as what differs from a newer one, and made whole when they are asked for."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import duckdb
import pytest
from artefacts import copy_of
from full_disk import no_file_above
from index_process import SMALL, update

from conftest import Engine, workspace_of
from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.hardening import files
from graphrag_pipeline.query import release as release_module
from graphrag_pipeline.query import retrieve
from graphrag_pipeline.releases import older_releases
from graphrag_pipeline.releases.kept_releases import (
    changes_file,
    changing_releases,
    is_whole,
    kept_file,
    release_ids,
)
from graphrag_pipeline.releases.older_releases import each_release, release_file
from graphrag_pipeline.releases.publishing import publish
from graphrag_pipeline.releases.row_changes import (
    are_alike,
    side_by_side,
    undo_changes,
    write_changes,
)
from graphrag_pipeline.store.limits import DatabaseLimits
from graphrag_pipeline.upkeep.backups import back_up, restore
from graphrag_pipeline.upkeep.checking import check

LIMITS = DatabaseLimits()
STEPS: tuple[dict[str, str | None], ...] = (
    {"dam.md": "Oskar Kovarna built the Orlen Dam near Kelmouth.", "old.md": "An old ship."},
    {"ship.md": "Captain Mira Sorrel sailed the Kestrel out of Kelmouth with Oskar Kovarna."},
    {"old.md": None, "map.md": "Lin Ruolan drew the map of Kelmouth for Mira Sorrel."},
    {"dam.md": "Oskar Kovarna built the Orlen Dam near Kelmouth with Lin Ruolan."},
)


def grow(folder: Path) -> None:
    engine = Engine(folder, SMALL)
    for step in STEPS:
        engine.write(dict(step))
        update(engine)
        # As it was published, before anything was kept in another way.
        home = engine.log.home
        shutil.copy(home / "published.duckdb", folder / f"{len(release_ids(home))}.copy")


@pytest.fixture
def four(tmp_path: Path) -> Path:
    """A folder with four releases, and a copy of the file of each as it was published."""
    return copy_of("four releases", grow, tmp_path / "four")


def rows(file: Path) -> dict[str, list[str]]:
    with duckdb.connect() as con:
        con.execute(f"ATTACH '{file}' AS a (READ_ONLY)")
        names = con.execute("SELECT table_name FROM duckdb_tables() ORDER BY ALL").fetchall()
        return {
            name: sorted(str(row) for row in con.execute(f'FROM a."{name}"').fetchall())
            for (name,) in names
        }


def test_any_release_made_whole_holds_every_row_it_was_published_with(four):
    home = four / ".graphrag"
    ids = sorted(release_ids(home))
    assert [is_whole(home, each) for each in ids] == [False, False, False, True]
    for number, each in enumerate(ids, 1):
        assert rows(release_file(home, each)) == rows(four / f"{number}.copy")
        assert is_whole(home, each)


def test_a_release_made_whole_is_written_in_one_go_with_its_views_and_no_deleted_rows(four):
    home = four / ".graphrag"
    oldest = release_file(home, min(release_ids(home)))
    with side_by_side(oldest, four / "1.copy", LIMITS) as con:
        assert are_alike(con)
    with duckdb.connect(str(oldest), read_only=True) as con:
        names = con.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        last = [
            con.execute(f'SELECT coalesce(max(rowid) + 1, 0) = count(*) FROM "{name}"').fetchone()
            for (name,) in names
        ]
    assert set(last) == {(True,)}


def test_each_release_is_seen_in_turn_and_none_stays_whole(four):
    home = four / ".graphrag"
    seen = [(each.id, rows(each.path)) for each in each_release(home) if each.path]
    assert [each for each, _ in seen] == release_ids(home)
    for number, (_, held) in enumerate(seen):
        assert held == rows(four / f"{4 - number}.copy")
    assert [is_whole(home, each) for each in release_ids(home)] == [True, False, False, False]


def test_an_older_release_answers_as_it_did(four):
    home = four / ".graphrag"
    oldest = min(release_ids(home))
    whole = four / "then"
    shutil.copytree(home, whole)
    changes_file(whole, oldest).unlink()
    shutil.copy(four / "1.copy", kept_file(whole, oldest))
    for method in ("bm25", "ppr", "global", "basic"):
        now, then = (
            retrieve("Who built the Orlen Dam?", method, home=each, settings=SMALL, release=oldest)
            for each in (home, whole)
        )
        assert now.records == then.records, method


def test_a_release_that_is_stored_anew_in_the_moment_it_is_opened_is_found(four, monkeypatch):
    home = four / ".graphrag"
    oldest = min(release_ids(home))
    files = [kept_file(home, oldest), release_file(home, oldest)]
    files[1].rename(four / "elsewhere.duckdb")
    files[1] = four / "elsewhere.duckdb"
    monkeypatch.setattr(release_module, "release_file", lambda *_: files.pop(0))
    with release_module.open_release(home, settings=SMALL, release=oldest) as release:
        assert release.facts.id == oldest
    assert not files


def test_a_release_that_was_opened_is_kept_as_changes_again_at_the_next_publish(four):
    home = four / ".graphrag"
    second = sorted(release_ids(home))[1]
    release_file(home, second)
    publish(workspace_of(home, SMALL), anew=True)
    assert not is_whole(home, second)
    assert rows(release_file(home, second)) == rows(four / "2.copy")


def test_what_others_are_made_of_may_go_and_they_stay(four):
    home = four / ".graphrag"
    first, second, third, _ = sorted(release_ids(home))
    with changing_releases(home):
        older_releases.drop_old(home, [first], keep=1, keep_days=0)
    assert second not in release_ids(home)
    assert rows(release_file(home, first)) == rows(four / "1.copy")
    assert rows(release_file(home, third)) == rows(four / "3.copy")


def test_while_releases_are_let_go_each_that_is_there_can_be_read(four, monkeypatch):
    home = four / ".graphrag"
    remove = Path.unlink
    removed = []

    def removing(path: Path, *, missing_ok: bool = False) -> None:
        remove(path, missing_ok=missing_ok)
        if path == changes_file(home, path.name.partition(".")[0]):
            removed.append(path)
            with monkeypatch.context() as undisturbed:
                undisturbed.setattr(Path, "unlink", remove)
                for release in [*older_releases.each_release(home)]:
                    assert not release.fault

    monkeypatch.setattr(Path, "unlink", removing)
    with changing_releases(home):
        kept = older_releases.drop_old(home, [], keep=1, keep_days=0)
    assert len(removed) == 2
    assert len(kept) == 2


def test_a_backup_brings_the_changes_and_they_are_whole_where_it_is_restored(four, tmp_path):
    back_up(workspace_of(four / ".graphrag", SMALL), tmp_path / "all.tar.gz")
    restore(tmp_path / "all.tar.gz", tmp_path / "again")
    assert not check(workspace_of(tmp_path / "again", SMALL)).problems
    for number, each in enumerate(sorted(release_ids(tmp_path / "again")), 1):
        assert rows(release_file(tmp_path / "again", each)) == rows(four / f"{number}.copy")


@pytest.mark.parametrize(
    ("module", "killed_at"), [(older_releases, "kept_file"), (files, "replace_durably")]
)
def test_a_kill_while_a_release_is_stored_loses_no_row(four, module, killed_at, monkeypatch):
    home = four / ".graphrag"
    second = sorted(release_ids(home))[1]
    release_file(home, second)
    shutil.copytree(home, four / "before")

    def store(*arguments: Any) -> None:
        monkeypatch.setattr(module, killed_at, killed)
        undisturbed(*arguments)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    undisturbed = older_releases._store
    monkeypatch.setattr(older_releases, "_store", store)
    with pytest.raises(KeyboardInterrupt):
        publish(workspace_of(home, SMALL), anew=True)
    monkeypatch.undo()
    for number, each in enumerate(sorted(release_ids(home))[:4], 1):
        assert rows(release_file(home, each)) == rows(four / f"{number}.copy")


def test_where_both_files_are_there_the_whole_one_counts(four):
    home = four / ".graphrag"
    first = min(release_ids(home))
    changes = changes_file(home, first).read_bytes()
    release_file(home, first)
    changes_file(home, first).write_bytes(changes[: len(changes) // 2])
    assert rows(release_file(home, first)) == rows(four / "1.copy")
    publish(workspace_of(home, SMALL), anew=True)
    assert not is_whole(home, first)
    assert rows(release_file(home, first)) == rows(four / "1.copy")


def test_changes_that_do_not_fit_are_told_of_and_nothing_else_is_given(four):
    home = four / ".graphrag"
    older = sorted(release_ids(home))[2]
    newest = kept_file(home, release_ids(home)[0])
    newest.chmod(0o644)
    with duckdb.connect(str(newest)) as con:
        con.execute("DELETE FROM chunks WHERE rowid = (SELECT max(rowid) FROM chunks)")
    with pytest.raises(StorageError, match="does not fit the newer release"):
        release_file(home, older)
    assert not is_whole(home, older)
    told = [each.where for each in check(workspace_of(home, SMALL)).problems]
    assert f"releases/{older}.changes" in told


def test_what_another_version_has_made_stays_whole(four, tmp_path):
    older, newer = (shutil.copy(four / f"{n}.copy", tmp_path / f"{n}.duckdb") for n in (1, 2))
    newer.chmod(0o644)
    with duckdb.connect(str(newer)) as con:
        con.execute("CREATE VIEW of_another_version AS SELECT 1 AS one")
    with side_by_side(older, newer, LIMITS) as con:
        assert not are_alike(con)
    home = four / ".graphrag"
    first = min(release_ids(home))
    file = release_file(home, first)
    file.chmod(0o644)
    with duckdb.connect(str(file)) as con:
        con.execute("CREATE VIEW of_another_version AS SELECT 1 AS one")
    publish(workspace_of(home, SMALL), anew=True)
    assert [each for each in release_ids(home) if is_whole(home, each)][1:] == [first]


def test_rows_that_are_there_twice_and_values_of_all_kinds_come_back(tmp_path):
    older, newer, changes = (tmp_path / name for name in ("older", "newer", "changes"))
    tables = """
        CREATE TABLE releases (id VARCHAR, created_at TIMESTAMPTZ);
        CREATE TABLE twice (word VARCHAR, number DOUBLE);
        CREATE TABLE kinds (id VARCHAR, moment TIMESTAMPTZ, list INTEGER[], kept JSON, blob BLOB);
        CREATE TABLE "order" (id VARCHAR, "from" INTEGER);
        CREATE TABLE came (id VARCHAR, word VARCHAR);
        CREATE TABLE went (id VARCHAR, word VARCHAR);
    """
    with duckdb.connect(str(older)) as con:
        con.execute(f"""{tables}
            INSERT INTO releases VALUES ('1', '2020-01-01');
            INSERT INTO twice VALUES ('a', 1), ('a', 1), ('a', 1), (NULL, 'nan'), ('b', NULL);
            INSERT INTO kinds VALUES ('x', '2020-01-01', [1, NULL], '{{"a": 1}}', '\\xAA'),
                ('y', NULL, NULL, NULL, NULL), ('z', '2021-01-01', [], '[]', '');
            INSERT INTO "order" VALUES ('a', 1), ('a', 2), ('b', 3);
            INSERT INTO came VALUES ('a', 'x');
            INSERT INTO went VALUES ('a', 'y'), ('a', 'z')""")
    with duckdb.connect(str(newer)) as con:
        con.execute(f"""{tables}
            INSERT INTO releases VALUES ('1', '2020-01-01'), ('2', '2020-01-02');
            INSERT INTO twice VALUES ('a', 1), ('c', 'inf'), ('c', 'inf');
            INSERT INTO kinds VALUES ('x', '2020-01-02', [1], '{{"a": 2}}', NULL),
                ('y', '2020-01-01', [3], 'null', '\\x00'), ('new', NULL, NULL, NULL, NULL);
            INSERT INTO "order" VALUES ('a', 2), ('a', 4), ('c', 3);
            INSERT INTO came VALUES ('a', 'y'), ('a', 'z');
            INSERT INTO went VALUES ('a', 'x')""")
    with side_by_side(older, newer, LIMITS) as con:
        write_changes(con, changes)
    shutil.copy(newer, tmp_path / "back")
    undo_changes(changes, tmp_path / "back", LIMITS)
    assert rows(tmp_path / "back") == rows(older) != rows(newer)
    with duckdb.connect(str(newer)) as con:
        con.execute("INSERT INTO went VALUES ('b', 'of no release')")
    with pytest.raises(StorageError, match="does not fit"):
        undo_changes(changes, newer, LIMITS)


def test_who_changes_releases_may_open_an_older_one_and_others_wait(four):
    home = four / ".graphrag"
    first, second = sorted(release_ids(home))[:2]
    opened: list[Path] = []
    other = threading.Thread(target=lambda: opened.append(release_file(home, second)))
    with changing_releases(home):
        assert release_file(home, first) == kept_file(home, first)
        other.start()
        other.join(0.3)
        assert not opened
    other.join(30)
    assert opened == [kept_file(home, second)]


def test_where_a_release_cannot_be_written_it_is_read_from_a_place_of_its_own(four, monkeypatch):
    def refused(*_: object) -> None:
        raise StorageError("cannot write")

    monkeypatch.setattr(older_releases, "make_whole", refused)
    home = four / ".graphrag"
    oldest = min(release_ids(home))
    assert rows(release_file(home, oldest)) == rows(four / "1.copy")
    assert not is_whole(home, oldest)


def test_changes_for_which_the_disk_has_no_room_are_an_error(tmp_path):
    older, newer, changes = (tmp_path / f"{name}.duckdb" for name in ("older", "newer", "changes"))
    for value, file in enumerate((older, newer)):
        with duckdb.connect(str(file)) as con:
            con.execute("CREATE TABLE releases AS SELECT '1' AS id, now() AS created_at")
            for n in range(40):
                con.execute(f"CREATE TABLE rows_{n} AS SELECT 'row {value}' AS id")
    with side_by_side(older, newer, LIMITS) as con:
        write_changes(con, changes)
        with no_file_above(changes.stat().st_size // 2), pytest.raises(duckdb.Error):
            write_changes(con, tmp_path / "halved.duckdb")
