"""Changes that keep size and time are noticed, and unchanged files are not read again."""

import json
import os
import time
from pathlib import Path

import pytest

from conftest import Engine
from graphrag_pipeline.core.settings import InputSettings, Settings
from graphrag_pipeline.store import batches
from graphrag_pipeline.store import file_stats as seen
from graphrag_pipeline.store.batches import Batch


def listed(cut: list[Batch]) -> dict[str, str]:
    return {c.uri.removeprefix("documents/"): c.action for b in cut for c in b.changes}


class Reads:
    """The files that were read, by name."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        read = batches._sha256

        def noted(*place: Path | str) -> str | None:
            self.names.append(Path(place[0]).name)
            return read(*place)

        monkeypatch.setattr(batches, "_sha256", noted)

    def take(self) -> list[str]:
        names, self.names = self.names, []
        return sorted(names)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    return Reads(monkeypatch)


def wait_until_past(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no time be counted as one tick, as if all files had been written long ago."""
    monkeypatch.setattr(seen, "TICK_NS", -1)


def replace_keeping_times(path: Path, content: str) -> None:
    before = path.stat()
    path.write_text(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_a_file_that_was_written_long_ago_is_read_once(engine: Engine, reads, monkeypatch):
    wait_until_past(monkeypatch)
    engine.write({"a.txt": "one", "b.txt": "two"})
    engine.cut()
    assert reads.take() == ["a.txt", "b.txt"]
    assert engine.cut() == []
    assert reads.take() == []


def test_a_change_with_size_and_time_restored_right_after_is_listed(engine: Engine):
    engine.write({"a.txt": "one"})
    engine.cut()
    replace_keeping_times(engine.inbox / "a.txt", "two")
    assert listed(engine.cut()) == {"a.txt": "change"}


def test_a_change_with_size_and_time_restored_later_is_listed(engine: Engine, reads, monkeypatch):
    wait_until_past(monkeypatch)
    engine.write({"a.txt": "one", "b.txt": "two"})
    engine.cut()
    replace_keeping_times(engine.inbox / "a.txt", "six")
    reads.take()
    assert listed(engine.cut()) == {"a.txt": "change"}
    assert reads.take() == ["a.txt"]


def test_a_change_within_a_tick_of_the_clock_is_listed(engine: Engine, monkeypatch):
    """All that a coarse file system tells of the file is the same before and after."""
    coarse = 10**12

    def round_times(stat: os.stat_result) -> tuple[int, int, int, int]:
        return stat.st_size, stat.st_mtime_ns // coarse, stat.st_ctime_ns // coarse, stat.st_ino

    monkeypatch.setattr(seen, "_looks", round_times)
    engine.write({"a.txt": "one"})
    engine.cut()
    engine.write({"a.txt": "two"})
    assert listed(engine.cut()) == {"a.txt": "change"}


def test_a_file_that_is_no_longer_new_is_read_once_more_and_then_trusted(
    engine: Engine, reads, monkeypatch
):
    engine.write({"a.txt": "one"})
    for _ in range(2):
        engine.cut()
        assert reads.take() == ["a.txt"]
    wait_until_past(monkeypatch)
    engine.cut()
    assert reads.take() == ["a.txt"]
    engine.cut()
    assert reads.take() == []


def test_a_file_of_times_to_come_is_trusted_once_it_has_looked_so_for_a_while(
    engine: Engine, reads, monkeypatch
):
    """The clock was put back, or the file comes from a machine whose clock is ahead."""
    engine.write({"a.txt": "one"})
    os.utime(engine.inbox / "a.txt", (time.time() + 10**6,) * 2)
    engine.cut()
    engine.cut()
    assert reads.take() == ["a.txt"] * 2
    known = seen.load_seen(engine.log.home / "seen.json")
    entry = known["documents/a.txt"]
    earlier = entry._replace(since_ns=entry.since_ns - 2 * seen.TICK_NS)
    seen.save_seen(engine.log.home / "seen.json", {"documents/a.txt": earlier})
    for expected in (["a.txt"], []):
        assert engine.cut() == []
        assert reads.take() == expected


def test_a_change_after_the_clock_was_put_back_is_listed(engine: Engine, monkeypatch):
    wait_until_past(monkeypatch)
    engine.write({"a.txt": "one"})
    engine.cut()
    engine.write({"a.txt": "two"})
    os.utime(engine.inbox / "a.txt", (time.time() - 3600,) * 2)
    assert listed(engine.cut()) == {"a.txt": "change"}


@pytest.mark.parametrize("seconds_older", [0, 50])
def test_a_file_replaced_by_another_of_its_size_and_no_later_time_is_listed(
    engine: Engine, monkeypatch, seconds_older: int
):
    wait_until_past(monkeypatch)
    path, replacement = engine.inbox / "a.txt", engine.inbox.parent / "new"
    engine.write({"a.txt": "one"})
    os.utime(path, ns=(10**18, 10**18))
    engine.cut()
    replacement.write_text("two")
    os.utime(replacement, ns=(10**18, 10**18 - seconds_older * 10**9))
    replacement.rename(path)
    assert listed(engine.cut()) == {"a.txt": "change"}


def test_other_rights_cost_a_hash_and_no_more(engine: Engine, reads, monkeypatch):
    wait_until_past(monkeypatch)
    engine.write({"a.txt": "one"})
    engine.cut()
    reads.take()
    (engine.inbox / "a.txt").chmod(0o600)
    for expected in (["a.txt"], []):
        assert engine.cut() == []
        assert reads.take() == expected


def test_verify_reads_all_files_once(engine: Engine, reads, monkeypatch):
    wait_until_past(monkeypatch)
    engine.write({"a.txt": "one", "b.txt": "two"})
    engine.cut()
    reads.take()
    log = engine.workspace.batches
    log.verify()
    for expected in (["a.txt", "b.txt"], []):
        assert log.look(engine.inbox, max_bytes=100).changes == ()
        assert reads.take() == expected


def test_verify_finds_what_no_time_tells(engine: Engine, monkeypatch):
    """As on a disk that decays, or a file system that lets all times be put back."""
    wait_until_past(monkeypatch)
    monkeypatch.setattr(seen, "_looks", lambda stat: (stat.st_size, 0, 0, 0))
    engine.write({"a.txt": "one"})
    engine.cut()
    engine.write({"a.txt": "two"})
    assert engine.cut() == []
    log = engine.workspace.batches
    log.verify()
    (change,) = log.look(engine.inbox, max_bytes=100).changes
    assert change.action == "change"


def test_a_file_read_more_than_some_days_ago_is_read_again(engine: Engine, reads, monkeypatch):
    wait_until_past(monkeypatch)
    engine.settings = Settings(input=InputSettings(verify_days=2))
    engine.write({"a.txt": "one", "b.txt": "two"})
    engine.cut()
    path = engine.log.home / "seen.json"
    known = seen.load_seen(path)
    entry = known["documents/b.txt"]
    known["documents/b.txt"] = entry._replace(read_ns=entry.read_ns - 3 * 86_400 * 10**9)
    seen.save_seen(path, known)
    reads.take()
    for expected in (["b.txt"], []):
        engine.cut()
        assert reads.take() == expected


def test_without_what_was_written_down_all_files_are_read(engine: Engine, reads, monkeypatch):
    wait_until_past(monkeypatch)
    engine.write({"a.txt": "one"})
    path = engine.log.home / "seen.json"
    for damage in (path.unlink, lambda: path.write_text("{"), lambda: path.write_text("[1]")):
        engine.cut()
        damage()
        reads.take()
        assert engine.cut() == []
        assert reads.take() == ["a.txt"]


def test_what_is_written_down_is_of_the_corpus_alone(engine: Engine, tmp_path, monkeypatch):
    wait_until_past(monkeypatch)
    other = tmp_path / "other"
    other.mkdir()
    (other / "c.txt").write_text("three")
    engine.write({"a.txt": "one", "b.txt": "two"})
    engine.cut()
    engine.log.look(other, max_bytes=100, remember=True)
    engine.log.cut(other, engine.settings.batches, max_bytes=100)
    engine.write({"b.txt": None})
    engine.cut()
    written = json.loads((engine.log.home / "seen.json").read_bytes())
    assert set(written) == {"documents/a.txt", "other/c.txt"}


def test_a_look_writes_nothing(engine: Engine):
    engine.write({"a.txt": "one"})
    engine.log.look(engine.inbox, max_bytes=100)
    assert not engine.log.home.exists()


def test_a_share_whose_clock_is_late_is_asked_for_its_own_time(tmp_path):
    """A file of its last two seconds is not past, whatever the clock of the home says."""
    late = time.time_ns() - 3600 * 10**9
    second = 10**9

    def stat(changed: int) -> os.stat_result:
        values = [0o100644, 1, 99_999, 1, 0, 0, 3, 0, 0, 0]
        times = {"st_atime_ns": changed, "st_mtime_ns": changed, "st_ctime_ns": changed}
        return os.stat_result(values, times)

    clocks = seen.Clocks(tmp_path, [stat(late), stat(late - 10 * second)])
    assert not clocks.is_past(stat(late - second))
    assert clocks.is_past(stat(late - 10 * second))
    ahead = seen.Clocks(tmp_path, [stat(clocks.here + 3600 * second)])
    assert ahead.is_past(stat(clocks.here - 10 * second))
    assert not ahead.is_past(stat(clocks.here + second))
