import contextlib
import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from artefacts import copy_of

from conftest import Engine, build_graph, without_privileges
from graphrag_pipeline.core.errors import InputError, RemovalError, StorageError
from graphrag_pipeline.core.settings import BatchSettings, InputSettings, Settings
from graphrag_pipeline.pipeline.stages import ingest
from graphrag_pipeline.planning.lost_files import require_files
from graphrag_pipeline.releases.publishing import publish_copy
from graphrag_pipeline.store import batches
from graphrag_pipeline.store.batches import Batch, BatchLog, make_batch, may_go
from graphrag_pipeline.store.snapshots import SITES
from graphrag_pipeline.store.sources import SourceChange


def listed(batches: list[Batch]) -> dict[str, str]:
    return {c.uri.removeprefix("documents/"): c.action for b in batches for c in b.changes}


def age(path, seconds):
    os.utime(path, (time.time() - seconds,) * 2)


def test_what_is_added_changed_and_removed_is_listed_once(engine):
    engine.write({"a.txt": "one", "sub/b.txt": "two"})
    assert listed(engine.cut()) == {"a.txt": "add", "sub/b.txt": "add"}
    assert engine.cut() == []
    engine.write({"a.txt": "other", "c.txt": "three", "sub/b.txt": None})
    assert listed(engine.cut()) == {"a.txt": "change", "c.txt": "add", "sub/b.txt": "remove"}
    assert engine.cut() == []
    assert set(engine.log.sources()) == {"documents/a.txt", "documents/c.txt"}


def test_a_batch_is_the_newest_though_the_clock_was_put_back(engine):
    now = datetime.now(UTC) + timedelta(days=2)
    ahead = Batch(f"{now:{batches._KEY_TIME}}-0", now, "documents", ())
    engine.log.folder.mkdir(parents=True)
    engine.log.save(ahead)
    engine.write({"a.txt": "one"})
    assert [batch.key for batch in (ahead, *engine.cut())] == [b.key for b in engine.log.batches()]


def test_a_file_that_is_too_large_to_read_is_no_other_that_came_in_place_of_all(engine):
    engine.write({"a.txt": "one"})
    engine.cut()
    engine.write({"a.txt": None, "large.txt": "x" * 99})
    limits = engine.settings.batches
    with pytest.raises(RemovalError, match="1 of the 1 files"):
        engine.log.cut(engine.inbox, limits, max_bytes=9)


def test_a_log_in_use_sees_manifests_written_rewritten_and_removed_by_others(engine):
    other = BatchLog(engine.log.home)

    def sources_agree():
        known = other.sources(), other.first_names(), other.endings(), other.gone()
        # What one log has folded serves the others of its folder.
        batches._folds.clear()
        fresh = BatchLog(engine.log.home)
        assert known == (fresh.sources(), fresh.first_names(), fresh.endings(), fresh.gone())
        return set(other.sources())

    engine.write({"a.txt": "one", "b.txt": "two"})
    (first,) = engine.cut()
    assert sources_agree() == {"documents/a.txt", "documents/b.txt"}
    other.sources().clear()
    engine.write({"a.txt": None, "c.txt": "two"})
    engine.cut()
    assert sources_agree() == {"documents/b.txt", "documents/c.txt"}
    assert set(other.first_names().values()) == {"documents/b.txt"}
    engine.log.forget_gone([first.key])
    assert sources_agree() == {"documents/b.txt", "documents/c.txt"}
    (engine.log.folder / f"{first.key}.json").unlink()
    assert sources_agree() == {"documents/c.txt"}


def test_what_was_looked_at_is_cut_as_it_was_seen_unless_another_wrote_meanwhile(engine):
    limits, most = BatchSettings(), 1_000_000

    def cut():
        return listed(engine.log.cut(engine.inbox, limits, max_bytes=most, as_looked=True))

    def look():
        engine.log.look(engine.inbox, max_bytes=most, remember=True)

    engine.write({"a.txt": "one"})
    look()
    engine.write({"b.txt": "two"})
    assert cut() == {"a.txt": "add"}
    assert cut() == {"b.txt": "add"}
    engine.write({"c.txt": "three"})
    look()
    other = BatchLog(engine.log.home)
    assert listed(other.cut(engine.inbox, limits, max_bytes=most)) == {"c.txt": "add"}
    assert cut() == {}


def test_a_change_of_the_same_length_is_seen(engine):
    engine.write({"a.txt": "one"})
    engine.cut()
    engine.write({"a.txt": "two"})
    age(engine.inbox / "a.txt", 100)
    assert listed(engine.cut()) == {"a.txt": "change"}


def test_a_file_that_was_touched_but_is_the_same_is_not_listed(engine):
    engine.write({"a.txt": "one"})
    engine.cut()
    age(engine.inbox / "a.txt", 1000)
    assert engine.cut() == []


def test_a_file_that_comes_back_is_added_again(engine):
    for content, action in (("one", "add"), (None, "remove"), ("one", "add")):
        engine.write({"a.txt": content})
        assert listed(engine.cut()) == {"a.txt": action}


def test_a_file_that_moved_is_listed_as_renamed(engine):
    engine.write({"a.txt": "one"})
    engine.cut()
    (engine.inbox / "a.txt").rename(engine.inbox / "b.txt")
    (batch,) = engine.cut()
    assert listed([batch]) == {"b.txt": "rename"}
    assert batch.changes[0].origin == batch.changes[0].identity == "documents/a.txt"
    assert set(engine.log.sources()) == {"documents/b.txt"}


def test_of_files_with_the_same_content_the_first_that_went_is_the_first_that_came(engine):
    engine.write({"a.txt": "the same", "b.txt": "the same"})
    engine.cut()
    (engine.inbox / "b.txt").rename(engine.inbox / "y.txt")
    (engine.inbox / "a.txt").rename(engine.inbox / "x.txt")
    (batch,) = engine.cut()
    assert [(change.origin, change.uri) for change in batch.changes] == [
        ("documents/a.txt", "documents/x.txt"),
        ("documents/b.txt", "documents/y.txt"),
    ]


def test_a_file_is_left_alone_until_it_has_settled(engine):
    engine.write({"old.txt": "one", "new.txt": "two"})
    age(engine.inbox / "old.txt", 60)
    assert listed(engine.cut(settle_seconds=30)) == {"old.txt": "add"}
    age(engine.inbox / "new.txt", 31)
    assert listed(engine.cut(settle_seconds=30)) == {"new.txt": "add"}


def test_a_known_file_that_is_being_written_is_not_removed(engine):
    engine.write({"a.txt": "one"})
    engine.cut()
    engine.write({"a.txt": "one and"})
    assert engine.cut(settle_seconds=30) == []
    assert set(engine.log.sources()) == {"documents/a.txt"}


def test_a_file_dated_in_the_future_is_taken_at_once(engine):
    engine.write({"a.txt": "one"})
    age(engine.inbox / "a.txt", -10_000)
    assert listed(engine.cut(settle_seconds=30)) == {"a.txt": "add"}


def test_limits_cut_the_changes_into_parts_in_order(engine):
    engine.settings = Settings(batches=BatchSettings(max_files=3, max_mb=0.001))
    engine.write({f"{i}.txt": "x" * 10 for i in range(7)})
    engine.write({"8.txt": "x" * 700, "9.txt": "x" * 700, "a.txt": "x" * 5000, "b.txt": "x"})
    parts = engine.cut()
    assert [[c.uri.removeprefix("documents/") for c in part.changes] for part in parts] == [
        ["0.txt", "1.txt", "2.txt"],
        ["3.txt", "4.txt", "5.txt"],
        ["6.txt", "8.txt"],
        ["9.txt"],
        ["a.txt"],
        ["b.txt"],
    ]
    assert [part.key for part in parts] == sorted({part.key for part in parts})
    assert engine.log.batches() == parts


def test_processes_that_cut_at_once_list_each_change_once(engine):
    engine.write({f"{i}.txt": str(i) for i in range(200)})
    program = """
import sys
from pathlib import Path
from graphrag_pipeline.store.batches import BatchLog
from graphrag_pipeline.core.settings import BatchSettings
log = BatchLog(Path(sys.argv[1]))
log.cut(Path(sys.argv[2]), BatchSettings(max_files=50), max_bytes=10**6)
"""
    arguments = [sys.executable, "-c", program, str(engine.log.home), str(engine.inbox)]
    cutters = [subprocess.Popen(arguments) for _ in range(3)]
    assert [cutter.wait(timeout=30) for cutter in cutters] == [0, 0, 0]
    uris = [change.uri for batch in engine.log.batches() for change in batch.changes]
    assert sorted(uris) == sorted(f"documents/{i}.txt" for i in range(200))


def written(engine: Engine) -> list[Path]:
    """What the log writes in: its owner's alone."""
    return [engine.log.home, engine.log.folder, engine.log.folder / ".lock"]


@pytest.mark.parametrize("mode", [0o000, 0o444])
def test_an_unreadable_sub_folder_is_not_a_removal(open_folder, mode):
    engine = Engine(open_folder)
    engine.write({"a.txt": "one", "sub/b.txt": "two", "sub/deep/c.txt": "three", "sub2/d.txt": "4"})
    engine.cut()
    engine.write({"a.txt": None})
    (engine.inbox / "sub").chmod(mode)
    places = [*written(engine), engine.inbox / "sub"]
    with without_privileges(*places):
        batches = engine.cut()
    (engine.inbox / "sub").chmod(0o755)
    assert listed(batches) == {"a.txt": "remove"}


def test_an_unreadable_file_is_listed_once_and_again_when_it_can_be_read(open_folder):
    engine = Engine(open_folder)
    engine.write({"a.txt": "one"})
    engine.cut()
    engine.write({"b.txt": "two"})
    (engine.inbox / "b.txt").chmod(0)
    with without_privileges(*written(engine)):
        assert listed(engine.cut()) == {"b.txt": "add"}
        assert engine.cut() == []
    (engine.inbox / "b.txt").chmod(0o644)
    assert listed(engine.cut()) == {"b.txt": "change"}
    assert engine.cut() == []


def test_a_file_over_the_limit_is_listed_once_and_again_when_the_limit_is_raised(engine):
    engine.write({"a.txt": "x" * 100})
    first = engine.log.cut(engine.inbox, BatchSettings(), max_bytes=50)
    assert [(c.action, c.sha256) for c in first[0].changes] == [("add", None)]
    assert engine.log.cut(engine.inbox, BatchSettings(), max_bytes=50) == []
    assert listed(engine.log.cut(engine.inbox, BatchSettings(), max_bytes=500)) == {
        "a.txt": "change"
    }


def test_a_home_inside_the_folder_is_skipped(tmp_path):
    log = BatchLog(tmp_path / "index")
    (tmp_path / "a.txt").write_text("one")
    for _ in range(2):
        log.cut(tmp_path, BatchSettings(), max_bytes=1000)
        (log.home / "output.txt").write_text("of the pipeline")
    assert [change.uri for batch in log.batches() for change in batch.changes] == ["a.txt"]


def test_hidden_files_and_folders_are_skipped(engine):
    engine.write({".hidden.txt": "1", ".git/config.txt": "2", "a/.b/c.txt": "3", "d.txt": "4"})
    assert listed(engine.cut()) == {"d.txt": "add"}


def test_symbolic_links_to_files_are_read_and_loops_do_no_harm(engine, tmp_path):
    engine.write({"sub/a.txt": "one"})
    engine.settings = Settings(input=InputSettings(follow_links=True))
    (tmp_path / "outside.txt").write_text("two")
    (engine.inbox / "link.txt").symlink_to(tmp_path / "outside.txt")
    (engine.inbox / "sub" / "up").symlink_to(engine.inbox)
    (engine.inbox / "self.txt").symlink_to("self.txt")
    (engine.inbox / "broken.txt").symlink_to("nowhere.txt")
    assert listed(engine.cut()) == {"link.txt": "add", "sub/a.txt": "add"}
    (tmp_path / "outside.txt").unlink()
    assert listed(engine.cut()) == {"link.txt": "remove"}


def test_what_is_no_file_is_skipped(engine):
    os.mkfifo(engine.inbox / "pipe.txt")
    assert engine.cut() == []


STRANGE = [
    b"a, b.txt",
    b'it\'s "quoted"; DROP TABLE documents.txt',
    "😀 漢字.txt".encode(),
    b"two\nlines\t.txt",
    b"back\\slash \\xff.txt",
    b"caf\xe9 \xff\xfe.txt",
    b"percent %41 #fragment?.txt",
    "e\u0301.txt".encode(),
    "é.txt".encode(),
    b"-rf.txt",
    b"x" * 246 + b".txt",
    "ж".encode() * 120 + b".txt",
]


@pytest.mark.parametrize("name", STRANGE)
def test_a_file_of_any_name_is_listed_read_and_removed(engine, name):
    path = os.path.join(os.fsencode(engine.inbox), name)
    with open(path, "wb") as file:
        file.write(b"Alice met Bob.")
    (batch,) = engine.cut()
    assert engine.cut() == []
    assert BatchLog(engine.log.home).batches() == [batch]
    ingest(engine.workspace, "documents", batch.key)
    assert engine.rows("SELECT count(*) FROM quarantine") == [(0,)]
    assert engine.rows("SELECT uri FROM staging.documents") == [(batch.changes[0].uri,)]
    os.unlink(path)
    assert [(c.uri, c.action) for c in engine.cut()[0].changes] == [
        (batch.changes[0].uri, "remove")
    ]


def test_a_folder_whose_name_is_no_utf_8_is_listed_and_read(engine):
    folder = os.path.join(os.fsencode(engine.inbox), b"d\xe9j\xe0")
    os.mkdir(folder)
    with open(os.path.join(folder, b"a.txt"), "wb") as file:
        file.write(b"Alice met Bob.")
    (batch,) = engine.log.cut(
        engine.inbox / os.fsdecode(b"d\xe9j\xe0"), BatchSettings(), max_bytes=1000
    )
    ingest(engine.workspace, "documents", batch.key)
    assert engine.rows("SELECT count(*) FROM staging.documents") == [(1,)]


def test_an_empty_folder_gives_no_batch(engine):
    assert engine.cut() == []
    assert engine.log.batches() == []
    assert engine.log.sources() == {}


def test_a_folder_that_is_missing_or_is_a_file_is_an_input_error(engine, tmp_path):
    (tmp_path / "file").write_text("x")
    for name in ("missing", "file"):
        with pytest.raises(InputError, match=f"{name} is not a folder"):
            engine.log.cut(tmp_path / name, BatchSettings(), max_bytes=1000)


def test_an_unreadable_folder_is_an_input_error_and_no_removal(open_folder):
    engine = Engine(open_folder)
    engine.write({"a.txt": "one"})
    engine.cut()
    engine.inbox.chmod(0)
    places = [*written(engine), engine.inbox]
    with without_privileges(*places), pytest.raises(InputError, match="cannot read folder"):
        engine.cut()
    assert set(engine.log.sources()) == {"documents/a.txt"}


def test_a_home_that_cannot_be_written_is_a_storage_error(tmp_path):
    (tmp_path / "home").write_text("a file")
    with pytest.raises(StorageError, match="cannot write in"):
        BatchLog(tmp_path / "home").cut(tmp_path, BatchSettings(), max_bytes=1000)


def test_a_manifest_once_written_never_changes(engine):
    engine.write({"a.txt": "one"})
    engine.cut()
    before = {path: path.read_bytes() for path in engine.log.folder.glob("*.json")}
    engine.write({"a.txt": "two"})
    engine.index()
    assert {path: path.read_bytes() for path in before} == before
    with pytest.raises(AttributeError):
        engine.log.batches()[0].root = "other"


def test_a_manifest_that_cannot_be_read_is_named(engine):
    engine.write({"a.txt": "one"})
    engine.cut()
    (path,) = engine.log.folder.glob("*.json")
    path.write_text(json.dumps({"key": "x"}))
    with pytest.raises(StorageError, match=f"batch manifest {path} cannot be read"):
        engine.log.batches()


def test_a_batch_is_found_by_its_key_and_by_nothing_else(engine):
    engine.write({"a.txt": "one"})
    (batch,) = engine.cut()
    assert engine.log.get(batch.key) == batch
    for key in ("", "x", "../batches/" + batch.key, "."):
        with pytest.raises(InputError, match="there is no batch"):
            engine.log.get(key)


def test_folders_are_told_apart_and_one_does_not_remove_the_others_files(engine, tmp_path):
    other = tmp_path / "documents2"
    other.mkdir()
    (other / "b.txt").write_text("two")
    engine.write({"a.txt": "one"})
    engine.cut()
    engine.log.cut(other, BatchSettings(), max_bytes=1000)
    assert engine.cut() == []
    assert set(engine.log.sources()) == {"documents/a.txt", "documents2/b.txt"}


def test_a_folder_within_a_folder_is_the_same_files(engine):
    engine.write({"sub/a.txt": "one", ".hidden/b.txt": "two"})
    assert listed(engine.cut()) == {"sub/a.txt": "add"}
    hidden = engine.log.cut(engine.inbox / ".hidden", BatchSettings(), max_bytes=1000)
    assert listed(hidden) == {".hidden/b.txt": "add"}
    assert engine.log.cut(engine.inbox / "sub", BatchSettings(), max_bytes=1000) == []
    engine.write({"sub/a.txt": "other"})
    changed = engine.log.cut(engine.inbox / "sub", BatchSettings(), max_bytes=1000)
    assert listed(changed) == {"sub/a.txt": "change"}
    assert engine.cut() == []
    engine.write({"sub/a.txt": None})
    assert listed(engine.cut()) == {"sub/a.txt": "remove"}


def test_a_folder_elsewhere_is_known_by_its_whole_path(engine, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "a.txt").write_text("one")
    (batch,) = engine.log.cut(elsewhere, BatchSettings(), max_bytes=1000)
    assert batch.changes[0].uri == f"{elsewhere}/a.txt"
    assert engine.log.path_of(batch.changes[0].uri) == elsewhere / "a.txt"


def test_batches_sort_by_age_even_when_the_clock_is_put_back(engine):
    engine.write({"a.txt": "one"})
    future = make_batch("documents", [], engine.cut()[0].created_at.replace(year=2999))
    engine.log.save(future)
    engine.write({"a.txt": "two"})
    (late,) = engine.cut()
    assert late.key > future.key
    assert [batch.key for batch in engine.log.batches()][-1] == late.key


@pytest.mark.parametrize(
    ("number", "of", "share", "may"),
    [(9, 10, 0.5, True), (10, 12, 0.5, False), (50, 100, 0.5, True), (51, 100, 0.5, False),
     (1, 100, 0.0, False), (100, 100, 1.0, True)],
)  # fmt: skip
def test_nine_files_or_a_share_of_many_may_go_unasked(number, of, share, may):
    assert may_go(number, of, BatchSettings(max_removed_share=share)) == may


@pytest.mark.parametrize(
    ("root", "uri", "is_asked"),
    [
        ("elsewhere", "elsewhere/a.txt", True),
        (SITES, "https://kelm.example/a.txt", False),
        ("elsewhere", "elsewhere/a.odd", True),
        ("import:old", "import:old/a.odd", False),
    ],
)
def test_it_is_asked_for_files_that_are_lost_and_for_no_pages_or_imports(
    tmp_path, root, uri, is_asked
):
    copy_of("a met b", lambda made: build_graph(made, {"b.txt": "Ada met Bob."}), tmp_path)
    engine = Engine(tmp_path, Settings(batches={"max_removed_share": 0}))
    batch = make_batch(root, [SourceChange(uri, "add", "0" * 64, 1, 1)])
    engine.log.save(batch)
    with engine.store.transaction() as con:
        con.execute("UPDATE documents SET source = ?", [uri])
        con.execute(
            "INSERT INTO batch_stages VALUES (?, 'documents', 'older', now(), 1, false)",
            [batch.key],
        )
    publish_copy(engine.store, engine.log.home)
    with pytest.raises(RemovalError) if is_asked else contextlib.nullcontext():
        require_files(engine.workspace, engine.inbox)
