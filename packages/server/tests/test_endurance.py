"""One process of the server for long: a thousand streams at once, fifty releases in turn."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest
from query_fixture import published

from benchmarks.endurance import RELEASES, STREAMS, Stream, ends, is_whole, released, streamed

pytestmark = [pytest.mark.live, pytest.mark.waits]
MOST_KB = 600
"""Of memory for each stream that is open; a connection on the way to a model is part of it."""
MOST_GROWTH = 0.15
"""Of memory over fifty releases: it grows by a twentieth, and stays there for a hundred."""


def test_streams_that_are_open_at_once_have_each_its_own_answer(tmp_path: Path) -> None:
    took = streamed(published(tmp_path), 8, open_seconds=0)
    assert took.most_open == took.n_whole == 8
    assert not is_whole(1, took.streams[0])
    assert not is_whole(0, Stream(took.streams[0].events[:-1]))


def test_what_is_held_is_read_after_each_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.endurance._SETTLING", 1)
    held = released(tmp_path, 2)
    assert [each.release for each in held] == ["r0002", "r0003"]
    assert all(each.memory > 10 and each.n_files > 3 for each in held)


@pytest.mark.nightly
def test_a_thousand_streams_are_open_at_once_and_each_has_all_its_events(tmp_path: Path) -> None:
    took = streamed(published(tmp_path), STREAMS, open_seconds=5)
    assert took.most_open == took.n_whole == STREAMS
    before, during, _ = took.memory
    assert (during - before) * 1024 / STREAMS < MOST_KB


@pytest.mark.nightly
def test_memory_and_open_files_stay_as_they_are_over_fifty_releases(tmp_path: Path) -> None:
    held = released(tmp_path, RELEASES)
    first, last = ends(held)
    before, after = (statistics.median(each.memory for each in part) for part in (first, last))
    assert after < (1 + MOST_GROWTH) * before
    assert max(each.n_files for each in last) <= max(each.n_files for each in first)
