"""Documents of several names, and files that are renamed: what is kept, and what is counted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from artefacts import copy_of
from test_ingest import OTHER, STORY, folded

from conftest import Engine, build, build_graph
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.index import Index
from graphrag_pipeline.ingest.staging import DERIVED
from graphrag_pipeline.pipeline.stages import ingest

LONG = " ".join(f"{STORY} {OTHER} Number {n}." for n in range(15))
RECORDS = f"id,title,text\n1,One,{STORY}\n2,Two,{OTHER}\n"
FILES = {"a.txt": LONG, "b.txt": OTHER, "sub/c.csv": RECORDS}


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """An index of FILES."""
    return Engine(copy_of("names", lambda made: build(made, FILES), tmp_path / "one"))


def kept(engine: Engine) -> dict[str, list[tuple]]:
    """What a rename leaves as it is, ids and numbers included."""
    tables = {
        "documents": "id, human_readable_id, text",
        "chunks": "* EXCLUDE batch",
        "extractions": "* EXCLUDE batch",
        "entity_mentions": "* EXCLUDE batch",
        "entities": "*",
        "relationships": "*",
        "entity_chunks": "*",
        "community_reports": "*",
    }
    return {
        name: engine.rows(f"SELECT {columns} FROM {name} ORDER BY ALL")
        for name, columns in tables.items()
    }


def rename(engine: Engine, names: Mapping[str, str]) -> None:
    for old, new in names.items():
        content = (engine.inbox / old).read_bytes()
        engine.write({old: None, new: content})


def fresh(engine: Engine, folder: Path) -> Engine:
    files = {
        str(path.relative_to(engine.inbox)): path.read_bytes()
        for path in engine.inbox.rglob("*")
        if path.is_file()
    }
    return build_graph(folder, files)


def extracted(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count, from here on, the chunks that are extracted from, by batch."""
    counts: list[int] = []

    def counted(workspace, stage, key):
        result = ingest(workspace, stage, key)
        if stage == "extractions":
            of_batch = f"SELECT count(*) FROM staging.extractions WHERE batch = '{key}'"
            counts.append(0 if result.done_before else engine.rows(of_batch)[0][0])
        return result

    monkeypatch.setattr("conftest.ingest", counted)
    return counts


def test_a_renamed_file_keeps_its_ids_chunks_extractions_and_reports(engine, tmp_path, monkeypatch):
    before = kept(engine)
    counts = extracted(engine, monkeypatch)
    rename(engine, {"a.txt": "moved/a.txt", "sub/c.csv": "records.csv"})
    (batch,) = engine.workspace.batches.look(engine.inbox, max_bytes=10**8).changes[:1]
    assert batch.action == "rename"
    engine.update()
    assert kept(engine) == before
    assert sum(counts) == 0
    uris = {uri for (uri,) in engine.rows("SELECT uri FROM documents")}
    place = "documents"
    assert uris == {
        f"{place}/moved/a.txt",
        f"{place}/b.txt",
        f"{place}/records.csv#1",
        f"{place}/records.csv#2",
    }
    assert folded(engine) == folded(fresh(engine, tmp_path / "two"))


def test_a_copied_folder_adds_names_and_no_weight(engine, monkeypatch):
    before = kept(engine)
    counts = extracted(engine, monkeypatch)
    engine.write({f"copy/{name}": text for name, text in FILES.items()})
    engine.update()
    assert kept(engine) == before
    assert sum(counts) == 0
    rows = engine.rows(
        """SELECT n.uri, n.is_first FROM document_names n JOIN documents d ON d.id = n.document_id
           WHERE d.text LIKE '%Number 14%' ORDER BY n.uri"""
    )
    assert rows == [("documents/a.txt", True), ("documents/copy/a.txt", False)]
    records = engine.rows("SELECT uri FROM document_names WHERE uri LIKE '%csv#1' ORDER BY uri")
    assert records == [("documents/copy/sub/c.csv#1",), ("documents/sub/c.csv#1",)]


def names_of_links(engine: Engine) -> dict[str, bool]:
    rows = engine.rows("SELECT uri, is_first FROM document_names")
    return {uri.removeprefix("documents/"): is_first for uri, is_first in rows}


def test_a_link_is_the_first_name_only_where_no_file_is(tmp_path, monkeypatch):
    engine = build(tmp_path, {"m.txt": LONG})
    (engine.inbox / "a.txt").symlink_to("m.txt")
    engine.update()
    before = kept(engine)
    counts = extracted(engine, monkeypatch)
    assert names_of_links(engine) == {"a.txt": False, "m.txt": True}
    rename(engine, {"m.txt": "sub/z.txt"})
    (engine.inbox / "a.txt").unlink()
    (engine.inbox / "a.txt").symlink_to("sub/z.txt")
    engine.update()
    assert names_of_links(engine) == {"a.txt": False, "sub/z.txt": True}
    (engine.inbox / "a.txt").unlink()
    engine.write({"a.txt": LONG})
    engine.update()
    assert names_of_links(engine) == {"a.txt": True, "sub/z.txt": False}
    assert engine.rows("SELECT source FROM documents") == [("documents/a.txt",)]
    assert kept(engine) == before
    assert sum(counts) == 0
    assert engine.cut() == []


def test_an_index_that_did_not_know_links_calls_documents_by_their_files(tmp_path, monkeypatch):
    engine = build(tmp_path, {"a.txt": LONG, "m.txt": LONG})
    before = kept(engine)
    counts = extracted(engine, monkeypatch)
    assert names_of_links(engine) == {"a.txt": True, "m.txt": False}
    (engine.inbox / "a.txt").unlink()
    (engine.inbox / "a.txt").symlink_to("m.txt")
    engine.update()
    assert names_of_links(engine) == {"a.txt": False, "m.txt": True}
    assert kept(engine) == before
    assert sum(counts) == 0


@pytest.mark.parametrize("copy", ["0.txt", "z.txt"])
def test_a_document_lives_as_long_as_one_of_its_names(engine, tmp_path, monkeypatch, copy):
    before = kept(engine)
    counts = extracted(engine, monkeypatch)
    first, _ = sorted((copy, "a.txt"))
    for step, changes in enumerate(({copy: LONG}, {first: None})):
        engine.write(changes)
        engine.update()
        assert kept(engine) == before
        assert sum(counts) == 0
        assert folded(engine) == folded(fresh(engine, tmp_path / str(step)))
        counts.clear()
    engine.write({copy: None, "a.txt": None})
    engine.update()
    assert engine.rows("SELECT count(*) FROM documents WHERE text LIKE '%Number 14%'") == [(0,)]
    assert folded(engine) == folded(fresh(engine, tmp_path / "last"))


def test_a_copy_that_is_edited_is_a_document_of_its_own_and_the_other_stays(tmp_path, monkeypatch):
    engine = build(tmp_path / "one", {"a.txt": LONG, "b.txt": LONG})
    ids = engine.rows("SELECT id FROM documents")
    edited = f"{LONG} Dora Miller came later."
    engine.write({"a.txt": edited})
    counts = extracted(engine, monkeypatch)
    engine.update()
    assert sum(counts) > 0
    found = dict(engine.rows("SELECT uri, id FROM documents"))
    assert [(found["documents/b.txt"],)] == ids
    assert found["documents/a.txt"] != found["documents/b.txt"]
    assert folded(engine) == folded(fresh(engine, tmp_path / "two"))


def test_files_that_swap_their_names_keep_what_was_extracted(tmp_path, monkeypatch):
    engine = build(tmp_path / "one", {"a.txt": LONG, "b.txt": OTHER})
    before = kept(engine)
    counts = extracted(engine, monkeypatch)
    engine.write({"a.txt": OTHER, "b.txt": LONG})
    engine.update()
    assert kept(engine) == before
    assert sum(counts) == 0
    assert folded(engine) == folded(fresh(engine, tmp_path / "two"))


def test_a_changed_file_keeps_the_chunks_that_did_not_change(tmp_path, monkeypatch):
    engine = build(tmp_path, {"a.txt": LONG})
    total = engine.rows("SELECT count(*) FROM chunks")[0][0]
    rename(engine, {"a.txt": "b.txt"})
    engine.update()
    counts = extracted(engine, monkeypatch)
    engine.write({"b.txt": f"{LONG} Dora Miller came later."})
    engine.update()
    assert 0 < sum(counts) < total
    for table in DERIVED:
        left_behind = f"SELECT count(*) FROM {table} t JOIN chunks c ON c.id = t.chunk_id"
        assert engine.rows(f"{left_behind} WHERE t.batch <> c.batch") == [(0,)], table


def test_files_of_equal_bytes_and_other_endings_are_documents_of_their_own(tmp_path):
    engine = build_graph(tmp_path, {"a.txt": STORY, "a.md": STORY})
    assert engine.rows("SELECT count(*) FROM documents") == [(2,)]


def test_a_rename_is_counted_as_one_and_asks_nothing(tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    for number in range(12):
        (docs / f"{number}.txt").write_text(f"{STORY} Number {number}.")
    index = Index(tmp_path / ".graphrag", Settings())
    index.update(docs)
    docs.rename(tmp_path / "other")
    docs.mkdir()
    (tmp_path / "other").rename(docs / "all")
    renamed = {"add": 0, "change": 0, "remove": 0, "rename": 12}
    plan = index.plan(docs)
    assert (plan.changes, plan.to_extract, plan.question) == (renamed, 0, None)
    assert index.update(docs).changes == renamed
    diff = index.diff().tables["documents"]
    assert (diff.entered, diff.left, diff.changed, diff.renamed) == (0, 0, 0, 12)
    assert "docs/7.txt -> " in " ".join(diff.first["renamed"])
