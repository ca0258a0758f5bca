"""What a release carries as arrays: the same answers with it, without it, and where it is bad."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from query_fixture import publish, settings_for

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query import published_arrays as carrying
from graphrag_pipeline.query.memory.graph_arrays import GraphArrays
from graphrag_pipeline.query.memory.mapped_arrays import CarriedArrays
from graphrag_pipeline.query.published_arrays import carry_arrays
from graphrag_pipeline.releases.kept_releases import arrays_file, published_release
from graphrag_pipeline.store.array_file import is_whole, open_arrays, write_arrays

METHODS = ("basic", "bm25", "hybrid", "ppr", "local", "lightrag", "hipporag2", "drift", "lazy")
QUESTIONS = (
    "How did Marie Curie isolate radium?",
    "What do Scrooge and Bob Cratchit have in common?",
    "radium",
)


@pytest.fixture
def home(tmp_path):
    return publish(tmp_path / "home")


def file_of(home):
    return arrays_file(home, published_release(home))


def found(home, **limits):
    with QueryEngine(home, settings=settings_for(home)) as engine:
        retrievals = [
            engine.retrieve(question, method, **limits)
            for question in QUESTIONS
            for method in METHODS
        ]
    return [[(r.kind, r.id, r.score) for r in each.records] for each in retrievals]


def test_every_method_finds_the_same_with_and_without_arrays(home):
    without = found(home)
    carry_arrays(home, settings_for(home))
    assert is_whole(file_of(home))
    assert found(home) == without


def test_a_reader_makes_nothing_that_the_release_carries(home, monkeypatch):
    carry_arrays(home, settings_for(home))

    def refuse(*_):
        raise AssertionError("made anew")

    monkeypatch.setattr(GraphArrays, "_read_nodes", refuse)
    monkeypatch.setattr("graphrag_pipeline.query.memory.entity_names.EntityNames.read", refuse)
    monkeypatch.setattr("graphrag_pipeline.store.vector_store.full_text", refuse)
    with QueryEngine(home, settings=settings_for(home)) as engine:
        for method in ("basic", "ppr", "local"):
            assert engine.retrieve(QUESTIONS[0], method).records


@pytest.mark.parametrize("damage", ["cut", "emptied", "of another kind", "of another program"])
def test_a_file_that_cannot_be_used_is_as_none(home, damage):
    without = found(home)
    carry_arrays(home, settings_for(home))
    file = file_of(home)
    data = file.read_bytes()
    if damage == "of another program":
        opened = open_arrays(file)
        write_arrays(file, opened.arrays, {**opened.facts, "made_by": "another"})
    else:
        file.write_bytes({"cut": data[:-1], "emptied": b""}.get(damage, b"x" + data[1:]))
    assert CarriedArrays.of_release(home, published_release(home)) is None
    assert found(home) == without
    carry_arrays(home, settings_for(home))
    assert CarriedArrays.of_release(home, published_release(home))


def test_a_release_limited_to_documents_uses_none_of_it(home):
    with QueryEngine(home, settings=settings_for(home)) as engine:
        title = engine.index.rows("SELECT title FROM documents ORDER BY title LIMIT 1")[0]["title"]
    without = found(home, where={"title": title})
    carry_arrays(home, settings_for(home))
    assert found(home, where={"title": title}) == without


def test_no_text_of_documents_is_in_the_file(home):
    carry_arrays(home, settings_for(home))
    data = file_of(home).read_bytes().lower()
    for word in (b"curie", b"radium", b"scrooge", b"cratchit"):
        assert word not in data


def test_arrays_by_difference_are_those_made_anew(home):
    carry_arrays(home, settings_for(home))
    file = file_of(home)
    anew = open_arrays(file)
    earlier = CarriedArrays.of_release(home, published_release(home))
    with QueryEngine(home, settings=settings_for(home)) as engine:
        carrying.prepare(engine.index)
        carrying.write_for(engine.index, earlier)
    after = open_arrays(file)
    assert after.arrays.keys() == anew.arrays.keys()
    for name, array in after.arrays.items():
        np.testing.assert_array_equal(array, anew.arrays[name])


def test_a_full_disk_leaves_a_release_that_can_be_read(home, monkeypatch, caplog):
    def full(*_):
        raise StorageError("cannot write: no space left on device")

    without = found(home)
    monkeypatch.setattr(carrying, "write_carried", full)
    carry_arrays(home, settings_for(home))
    assert "opens slower" in caplog.text
    assert found(home) == without


KILLED = """
import os, sys
from pathlib import Path
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.query.published_arrays import carry_arrays
from graphrag_pipeline.core.hardening import files
files.replace_durably = lambda *_: os.kill(os.getpid(), 9)
carry_arrays(Path(sys.argv[1]), Settings(home=sys.argv[1]))
"""


def test_a_kill_before_the_file_has_its_name_leaves_none(home):
    without = found(home)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(home)], check=False)
    assert killed.returncode == -9
    assert not file_of(home).exists()
    assert found(home) == without
    carry_arrays(home, settings_for(home))
    assert found(home) == without


WITHOUT_LANCEDB = """
import sys
from pathlib import Path
from pathlib import Path
sys.modules["lancedb"] = None
from query_fixture import settings_for
from graphrag_pipeline.query import QueryEngine
home = Path(sys.argv[1])
with QueryEngine(home, settings=settings_for(home)) as engine:
    engine.index.check_readable()
    for method in sys.argv[2:]:
        print(method, len(engine.retrieve("radium", method).records))
"""


def test_a_small_index_is_asked_without_lancedb(home):
    carry_arrays(home, settings_for(home))
    methods = [name for name in METHODS if name not in ("drift", "lazy")]
    command = [sys.executable, "-c", WITHOUT_LANCEDB, str(home), *methods]
    folder = Path(__file__).parent
    asked = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    counts = dict(line.split() for line in asked.stdout.splitlines())
    assert counts.keys() == {*methods}
    assert "0" not in counts.values()


def test_a_release_whose_vectors_are_gone_is_not_readable_though_it_carries_them(home):
    carry_arrays(home, settings_for(home))
    shutil.rmtree(home / "vectors" / "chunks.lance")
    with (
        QueryEngine(home, settings=settings_for(home)) as engine,
        pytest.raises(StorageError, match=r"version \d+ of vector table chunks is gone"),
    ):
        engine.index.check_readable()


def test_vectors_of_large_tables_are_left_to_lancedb(home, monkeypatch):
    without = found(home)
    carry_arrays(home, settings_for(home))
    assert any(name.startswith("vectors/") for name in open_arrays(file_of(home)).arrays)
    monkeypatch.setattr(carrying, "MOST_ROWS", 0)
    file_of(home).unlink()
    carry_arrays(home, settings_for(home))
    assert not any(name.startswith("vectors/") for name in open_arrays(file_of(home)).arrays)
    assert found(home) == without
