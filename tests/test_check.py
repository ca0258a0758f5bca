"""Damage done on purpose to a ready index is found, and repaired where that costs nothing."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from artefacts import copy_of
from typer.testing import CliRunner

from graphrag_pipeline import Index, Settings
from graphrag_pipeline.cli.app import app
from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.hardening.temporary import temporary_folder
from graphrag_pipeline.core.settings import EmbeddingSettings, HierarchySettings
from graphrag_pipeline.exchange.importing import import_graphrag
from graphrag_pipeline.ingest.stages import INGESTION
from graphrag_pipeline.llm.database import open_database
from graphrag_pipeline.pipeline.stages import ingest, refresh_stages
from graphrag_pipeline.pipeline.updating import cut_batches, run_stages
from graphrag_pipeline.planning.pending import pending_batches
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.releases import older_releases
from graphrag_pipeline.releases.kept_releases import file_of, published_release, release_ids
from graphrag_pipeline.releases.older_releases import release_file
from graphrag_pipeline.releases.rollback import rollback
from graphrag_pipeline.releases.row_changes import undo_changes
from graphrag_pipeline.store.hashing import rows_hash
from graphrag_pipeline.store.lance import connect
from graphrag_pipeline.store.vector_store import lance_reason
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.upkeep.checking import VERIFICATIONS, check, find_by, repair
from graphrag_pipeline.upkeep.problems import unreadable

PEOPLE = ("Oskar Kovarna", "Mira Sorrel", "Lin Ruolan", "Ada Vellum", "Tomas Brandt")
PLACES = ("Kelmouth", "Port Ansel", "Orlen Dam", "Harrow Point")
PLAIN = Settings(embeddings=EmbeddingSettings(dimensions=32))
ALL = Settings(
    embeddings=EmbeddingSettings(dimensions=32, facts=True, synonyms=True),
    hierarchies=HierarchySettings(
        raptor=True, raptor_cluster_tokens=200, hirag=True, attributed=True
    ),
)
_OWN = (
    *("meta", "llm_calls", "releases", "model_quality", "community_updates"),
    *("batch_stages", "stage_seconds"),
)

pytestmark = pytest.mark.usefixtures("plain_stores")


def story(number: int) -> str:
    """Return a text that names people and places, other ones for other numbers."""
    person, other = PEOPLE[number % 5], PEOPLE[(number + 2) % 5]
    place, far = PLACES[number % 4], PLACES[(number + 1) % 4]
    return "\n\n".join(
        [
            f"{person} lived in {place} near {far}. {other} met {person} there in 19{number:02}.",
            f"{other} sailed from {far} to {place}, and {person} wrote a letter to {other}.",
            f"The museum of {place} shows what {person} and {other} built at {far}.",
        ]
    )


def in_folder(folder: Path, settings: Settings) -> Settings:
    return settings.model_copy(update={"home": str(folder / ".graphrag")})


def _make(folder: Path, settings: Settings) -> None:
    """Index eight documents, or more, then change some, remove one, and index again."""
    documents = folder / "documents"
    documents.mkdir(parents=True)
    for number in range(24 if settings is ALL else 8):
        (documents / f"{number}.md").write_text(story(number))
    index = Index(in_folder(folder, settings))
    index.update(documents)
    (documents / "0.md").unlink()
    (documents / "1.md").write_text(f"{story(11)}\n\n{story(12)}")
    (documents / "new.md").write_text(story(9))
    index.update(documents)


def ready(folder: Path, *, is_full: bool = False) -> Workspace:
    """Return a copy of an index of two releases, with every structure or with none."""
    settings = ALL if is_full else PLAIN
    name = "checked_all" if is_full else "checked"
    copy_of(name, lambda made: _make(made, settings), folder)
    return Workspace(in_folder(folder, settings))


@pytest.fixture
def index(tmp_path: Path) -> Workspace:
    """An index of two releases, without structures, to damage."""
    return ready(tmp_path / "index")


@contextlib.contextmanager
def opened(workspace: Workspace) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(str(workspace.paths.index)) as con:
        yield con


def sql(*statements: str) -> Callable[[Workspace], None]:
    """Return a damage: statements executed on the index, as if by another program."""

    def damage(workspace: Workspace) -> None:
        with opened(workspace) as con:
            for statement in statements:
                con.execute(statement)

    return damage


def cut(path: Path) -> None:
    path.chmod(0o644)
    os.truncate(path, path.stat().st_size // 2)


def flip(path: Path, place: float = 0.6) -> None:
    """Change a byte of each of many pages of a file."""
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    for at in range(int(len(data) * place), len(data), 4096):
        data[at] ^= 0xFF
    path.write_bytes(data)


def data_file(workspace: Workspace, table: str) -> Path:
    files = (workspace.paths.vectors / f"{table}.lance" / "data").iterdir()
    return max(files, key=lambda path: path.stat().st_size)


def lance_table(workspace: Workspace, table: str) -> Any:
    return connect(str(workspace.paths.vectors)).open_table(table)


def _other(table: Any) -> pa.Table:
    row = table.to_arrow().slice(0, 1)
    return row.set_column(0, row.schema.field(0), pa.array(["f" * 32]))


def _not_numbers(workspace: Workspace) -> None:
    table = lance_table(workspace, "entities")
    row = table.to_arrow().slice(0, 1)
    column = row.schema.get_field_index("vector")
    field = row.schema.field(column)
    values = pa.array(np.full(field.type.list_size, np.inf, np.float32))
    wrong = pa.FixedSizeListArray.from_arrays(values, field.type.list_size).cast(field.type)
    table.delete(f"id = '{row['id'][0].as_py()}'")
    table.add(row.set_column(column, field, wrong))
    _note_version(workspace, "entities", table.version)


def _note_version(workspace: Workspace, table: str, version: int) -> None:
    with opened(workspace) as con:
        con.execute(
            "UPDATE meta SET value = split_part(value, '@', 1) || '@' || ? WHERE key = ?",
            [str(version), f"vectors:{table}"],
        )


def _change_vectors(table: str, change: Callable[[Any], object]) -> Callable[[Workspace], None]:
    """Return a damage of the version of a vector table that belongs to the index."""

    def damage(workspace: Workspace) -> None:
        opened_table = lance_table(workspace, table)
        change(opened_table)
        _note_version(workspace, table, opened_table.version)

    return damage


def _other_dimensions(workspace: Workspace) -> None:
    db = connect(str(workspace.paths.vectors))
    old = db.open_table("community_reports")
    rows = old.to_arrow()
    column = rows.schema.get_field_index("vector")
    short = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(7 * len(rows), np.float32)), 7)
    rows = rows.set_column(column, pa.field("vector", short.type), short)
    new = db.create_table("community_reports", rows, mode="overwrite")
    _note_version(workspace, "community_reports", new.version)


def _calls(workspace: Workspace) -> None:
    """Make a cache of many answers, and damage some pages of it."""
    path = workspace.paths.calls
    with contextlib.closing(open_database(path)) as con:
        con.execute("BEGIN")
        rows = [
            (hashlib.sha256(b"%d" % n).digest(), "m", f"answer {n} " * 20, 1, 1, "stop", 0.0)
            for n in range(2000)
        ]
        con.executemany(
            "INSERT INTO responses VALUES (?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL, NULL)", rows
        )
        con.execute("COMMIT")
        con.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(path.read_bytes())
    for page in (40, 41, 90):
        data[page * 4096 : (page + 1) * 4096] = b"\xff" * 4096
    path.write_bytes(data)


def _tag_orphan(workspace: Workspace) -> None:
    workspace.vectors.tag("20200101T000000-lost")


def _drop_tag(workspace: Workspace) -> None:
    workspace.vectors.drop_tags([release_ids(workspace.home)[0]])


def _leave(name: str) -> Callable[[Workspace], None]:
    def damage(workspace: Workspace) -> None:
        path = workspace.home / name
        path.parent.mkdir(exist_ok=True)
        if path.suffix:
            path.write_text("half of something")
        else:
            path.mkdir()

    return damage


def _manifest(workspace: Workspace) -> Path:
    return min(workspace.batches.folder.glob("*.json"))


@dataclass(frozen=True)
class Damage:
    """What is done to an index, words of the line that tells of it, and whether it is mended.

    ``is_full`` asks for an index with every structure.
    """

    do: Callable[[Workspace], object]
    line: str
    mends: bool = True
    is_full: bool = False


DAMAGES = {
    "a chunk is gone": Damage(
        sql("DELETE FROM chunks WHERE id = (SELECT min(id) FROM chunks)"),
        "index.duckdb, entity_mentions: rows whose chunk_id is not in chunks (",
    ),
    "the text of a chunk": Damage(
        sql(
            "UPDATE chunks SET text = 'x' || substr(text, 2) "
            "WHERE id = (SELECT min(id) FROM chunks)"
        ),
        "index.duckdb, chunks: chunks that are not the span of their document (1)",
    ),
    "the text of a document": Damage(
        sql(
            "UPDATE documents SET text = 'x' || substr(text, 2) "
            "WHERE id = (SELECT min(id) FROM documents)"
        ),
        "documents whose text, title or metadata is not that of their hash",
    ),
    "the hash of a document": Damage(
        sql("UPDATE documents SET content_hash = repeat('0', 64)"),
        "index.duckdb, documents: documents whose text",
    ),
    "a mention is gone": Damage(
        sql("DELETE FROM entity_mentions WHERE chunk_id = (SELECT min(id) FROM chunks)"),
        "entity_mentions: chunks that have another number of mentions than was extracted (1)",
    ),
    "an extraction is gone": Damage(
        sql("DELETE FROM extractions WHERE chunk_id = (SELECT min(id) FROM chunks)"),
        "extractions: chunks without an extraction (1)",
    ),
    "provenance of no chunk": Damage(
        sql(
            "UPDATE entity_chunks SET chunk_id = 'none' "
            "WHERE chunk_id = (SELECT min(id) FROM chunks)"
        ),
        "rows whose chunk_id is not in chunks (4), such as none",
    ),
    "an entity is gone": Damage(
        sql("DELETE FROM entities WHERE id = (SELECT min(id) FROM entities)"),
        "entity_chunks: ",
    ),
    "an end of a relationship": Damage(
        sql(
            "UPDATE relationships SET target_id = 'nobody' "
            "WHERE id = (SELECT min(id) FROM relationships)"
        ),
        "relationships: rows whose target_id is not in entities (1), such as nobody",
    ),
    "a description": Damage(
        sql("UPDATE entities SET description = '' WHERE id = (SELECT min(id) FROM entities)"),
        "index.duckdb, entities: rows are not those of the release",
    ),
    "a small number twice": Damage(
        sql("UPDATE identifiers SET human_readable_id = 0 WHERE kind = 'entity'"),
        "identifiers: values of kind, human_readable_id that stand there more than once (1)",
    ),
    "a member is gone": Damage(
        sql(
            "DELETE FROM hierarchy_members WHERE hierarchy = 'graph' AND entity_id = "
            "(SELECT min(entity_id) FROM hierarchy_members WHERE hierarchy = 'graph')"
        ),
        "entities that are not in one of communities at each level",
    ),
    "a parent that is not there": Damage(
        sql(
            "UPDATE hierarchy_communities SET parent_id = 'none' "
            "WHERE hierarchy = 'hirag' AND id = (SELECT min(id) FROM hirag_communities)"
        ),
        "hirag_communities whose parent is not there",
        is_full=True,
    ),
    "a report is gone": Damage(
        sql(
            "DELETE FROM hierarchy_reports WHERE hierarchy = 'graph' "
            "AND id = (SELECT min(id) FROM community_reports)"
        ),
        "communities without a report",
    ),
    "a report of no community": Damage(
        sql(
            "UPDATE hierarchy_reports SET community_id = 'none' WHERE hierarchy = 'graph' "
            "AND id = (SELECT min(id) FROM community_reports)"
        ),
        "rows of graph whose community is not there",
    ),
    "the context of a report": Damage(
        sql(
            "UPDATE hierarchy_reports SET context_hash = '0' WHERE hierarchy = 'graph' "
            "AND id = (SELECT min(id) FROM community_reports)"
        ),
        "reports whose context is not that of their hash (1)",
    ),
    "a citation of no chunk": Damage(
        sql(
            """UPDATE hierarchy_reports SET findings = [struct_update(f, chunk_id := 'none')
               FOR f IN findings] WHERE hierarchy = 'graph'
               AND id = (SELECT min(id) FROM community_reports)"""
        ),
        "findings that cite a chunk that is not there",
    ),
    "the text of a report": Damage(
        sql(
            "UPDATE hierarchy_reports SET summary = 'y' "
            "WHERE hierarchy = 'attributed' AND id = (SELECT min(id) FROM hierarchy_reports "
            "WHERE hierarchy = 'attributed')"
        ),
        "hierarchy_reports: rows are not those of the release",
        is_full=True,
    ),
    "a part of a summary": Damage(
        sql("DELETE FROM raptor_edges WHERE node_id = (SELECT min(id) FROM raptor_nodes)"),
        "raptor_nodes: summaries lack parts (1)",
        is_full=True,
    ),
    "a link of layers": Damage(
        sql("UPDATE hirag_relationships SET source_id = 'none'"),
        "links are of no entity",
        is_full=True,
    ),
    "a synonym of nobody": Damage(
        sql("INSERT INTO synonym_edges VALUES ('nobody', 'none', 1)"),
        "synonyms are of no entity (1)",
        is_full=True,
    ),
    "the ledger of batches": Damage(
        sql("UPDATE batch_sources SET sha256 = repeat('0', 64) WHERE sha256 IS NOT NULL"),
        "files whose bytes are not those of their manifest",
    ),
    "a batch is gone": Damage(
        sql("DELETE FROM batches WHERE batch = (SELECT min(batch) FROM batches)"),
        "batch_stages: stages of a batch that is not there (1)",
    ),
    "the index is cut": Damage(
        lambda w: cut(w.paths.index), "index.duckdb: the file cannot be read ("
    ),
    "blocks of the index": Damage(
        lambda w: flip(w.paths.index), "index.duckdb: the file cannot be read ("
    ),
    "the index is gone": Damage(
        lambda w: w.paths.index.unlink(), "index.duckdb: the file is not there"
    ),
    "what is published is gone": Damage(
        lambda w: w.paths.published.unlink(),
        "published.duckdb: the file is not there, and releases are kept",
    ),
    "what is published is cut, and is kept by itself": Damage(
        lambda w: _cut_published(w), "published.duckdb: the file cannot be read"
    ),
    "the newest release is cut": Damage(
        lambda w: cut(w.paths.published), "duckdb: the file cannot be read ("
    ),
    "blocks of the newest release": Damage(
        lambda w: flip(w.paths.published), "duckdb: the file cannot be read ("
    ),
    "rows of the newest release": Damage(
        lambda w: _change_release(w), "duckdb: its content is not that of its hash"
    ),
    "an older release is cut": Damage(
        lambda w: cut(file_of(w.home, min(release_ids(w.home)))),
        "changes: cannot read ",
        mends=False,
    ),
    "an older release is published by hand": Damage(
        lambda w: _publish_by_hand(w), "was not rolled back"
    ),
    "a manifest is no JSON": Damage(
        lambda w: _manifest(w).write_text("{"),
        "the manifest cannot be read (",
        mends=False,
    ),
    "a manifest is gone": Damage(
        lambda w: _manifest(w).unlink(),
        "batches: batches of the index have no manifest (1)",
        mends=False,
    ),
    "vectors are cut": Damage(
        lambda w: cut(data_file(w, "entities")), "vectors/entities.lance: version "
    ),
    "a file of vectors is gone": Damage(
        lambda w: data_file(w, "chunks").unlink(), "vectors/chunks.lance: version "
    ),
    "all vectors are gone": Damage(
        lambda w: shutil.rmtree(w.paths.vectors),
        "vectors/chunks.lance: rows of index.duckdb without a vector (8)",
    ),
    "a vector is gone": Damage(
        _change_vectors("chunks", lambda t: t.delete(_first(t))),
        "vectors/chunks.lance: rows of index.duckdb without a vector (1)",
    ),
    "a vector too many": Damage(
        _change_vectors("chunks", lambda t: t.add(_other(t))),
        "vectors of no row of index.duckdb (1), such as ffff",
    ),
    "a vector of another text": Damage(
        _change_vectors(
            "community_reports", lambda t: t.update(where=_first(t), values={"content_hash": "0"})
        ),
        "vectors of another text than index.duckdb has (1)",
    ),
    "a vector that is no numbers": Damage(_not_numbers, "vectors that are not numbers (1)"),
    "vectors of other dimensions": Damage(
        _other_dimensions, "vectors have 7 dimensions in place of 32"
    ),
    "a tag of no release": Damage(
        _tag_orphan, "vectors: tags of releases that are not kept (1), such as 20200101"
    ),
    "a release without tags": Damage(_drop_tag, "versions that releases name and no tag protects"),
    "a mark of no release": Damage(
        _leave("releases/20200101T000000-lost.withdrawn"), "files that a killed process has left"
    ),
    "pages of the cache": Damage(_calls, "llm_cache.sqlite: the answers of models are damaged ("),
    "the evaluations are cut": Damage(
        lambda w: w.paths.evaluation.write_bytes(b"no database" * 999),
        "evaluation.duckdb: the file cannot be read (",
        mends=False,
    ),
    "the marts are cut": Damage(
        lambda w: w.paths.marts.write_bytes(b"no database" * 999),
        "marts.duckdb: the file cannot be read (",
        mends=False,
    ),
    "a schema of tomorrow": Damage(
        sql("UPDATE meta SET value = '999' WHERE key = 'schema_version'"),
        "index.duckdb, meta: the schema is of version 999",
        mends=False,
    ),
    "several at once": Damage(
        lambda w: [DAMAGES[name].do(w) for name in TOGETHER],
        "documents whose text, title or metadata is not that of their hash",
    ),
}
TOGETHER = ("the text of a document", "a file of vectors is gone", "a tag of no release",
            "pages of the cache")  # fmt: skip
OFTEN = ("blocks of the newest release", "several at once")
"""Damages whose repair is tested in every run: each by another way."""


def _first(table: Any) -> str:
    return f"id = '{min(table.to_arrow()['id'].to_pylist())}'"


def _change_release(workspace: Workspace) -> None:
    path = workspace.paths.published
    path.chmod(0o644)
    with duckdb.connect(str(path)) as con:
        con.execute("UPDATE entities SET description = 'changed'")


def _cut_published(workspace: Workspace) -> None:
    """Cut it where the disk knows no links, so that the release is there under its own name."""
    data = workspace.paths.published.read_bytes()
    workspace.paths.published.unlink()
    workspace.paths.published.write_bytes(data[: len(data) // 2])


def _publish_by_hand(workspace: Workspace) -> None:
    older = release_file(workspace.home, min(release_ids(workspace.home)))
    workspace.paths.published.unlink()
    workspace.paths.published.hardlink_to(older)


def content(workspace: Workspace) -> dict[str, object]:
    """Return hashes of all tables of the index, and of the ids of all vectors."""
    with opened(workspace) as con:
        tables = [
            row[0]
            for row in con.execute(
                "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main'"
            ).fetchall()
        ]
        rows: dict[str, object] = {
            table: con.execute(f"SELECT {rows_hash(table)}").fetchone()
            for table in sorted(tables)
            if table not in _OWN
        }
    for name in sorted(path.stem for path in workspace.paths.vectors.glob("*.lance")):
        table = lance_table(workspace, name).to_arrow().sort_by("id")
        rows[f"vectors of {name}"] = (table["id"].to_pylist(), table["vector"].to_pylist())
    return rows


def clusters_of(workspace: Workspace) -> list[tuple[Any, ...]]:
    """Return the members of each cluster, with its report."""
    with opened(workspace) as con:
        return con.execute(CLUSTERS).fetchall()


def digests(home: Path) -> dict[str, str]:
    """Return the hash of every file of a home but locks."""
    return {
        path.relative_to(home).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(home.rglob("*"))
        if path.is_file() and path.suffix not in (".lock", ".queue", ".pid")
    }


def lines(workspace: Workspace) -> list[str]:
    return [problem.line for problem in check(workspace).problems]


# An index that nothing is wrong with


def test_an_index_with_every_structure_is_ok_and_stays_as_it_is(tmp_path):
    index = ready(tmp_path, is_full=True)
    before = digests(index.home)
    checked = check(index)
    assert [problem.line for problem in checked.problems] == []
    assert list(checked.notes) == []
    assert checked.verdict == "ok"
    assert digests(index.home) == before


def test_a_repair_puts_no_release_in_place_that_was_rolled_back(index):
    before = rollback(index).now
    index.paths.published.unlink()
    repair(index)
    assert published_release(index.home) == before


def test_an_index_is_ok_after_a_rollback(index):
    rollback(index)
    assert lines(index) == []


def test_an_index_is_ok_when_its_documents_have_changed_again(index):
    documents = index.home.parent / "documents"
    (documents / "2.md").unlink()
    (documents / "new.md").rename(documents / "newer.md")
    (documents / "3.md").write_text(story(30))
    Index(index.settings).update(documents)
    assert lines(index) == []


def test_each_release_that_is_kept_as_changes_is_made_whole_once(index, monkeypatch):
    (index.home.parent / "documents" / "more.md").write_text(story(40))
    Index(index.settings).update(index.home.parent / "documents")
    undone = []

    def undo(changes, *given):
        undone.append(changes.name)
        undo_changes(changes, *given)

    monkeypatch.setattr(older_releases, "undo_changes", undo)
    kept = [file.name for file in (index.home / "releases").glob("*.changes")]
    assert lines(index) == []
    assert sorted(undone) == sorted(kept)
    assert len(kept) > 1


def test_an_index_is_ok_when_a_batch_was_read_again_and_said_the_same(index, monkeypatch):
    published = release_ids(index.home)
    monkeypatch.setattr("graphrag_pipeline.ingest.stages.missing_libraries", lambda: ("another",))
    again = Workspace(index.settings)
    Index(again.settings).update(index.home.parent / "documents")
    assert release_ids(index.home) == published
    assert lines(again) == []
    assert repair(again).verdict == "ok"
    assert pending_batches(again) == []


def test_between_two_stages_what_is_behind_is_a_note_and_no_problem(index, monkeypatch):
    documents = index.home.parent / "documents"
    (documents / "3.md").write_text(story(31))
    (documents / "4.md").unlink()
    # No stage before the last changes a release, and to look at those takes half of a check.
    others = tuple(each for each in VERIFICATIONS if each.name != "releases")
    monkeypatch.setattr("graphrag_pipeline.upkeep.checking.VERIFICATIONS", others)
    for key in cut_batches(index, documents):
        for stage in INGESTION:
            ingest(index, stage, key)
            assert lines(index) == []
    looked_after = ["graph", "communities", "reports_level_0"]
    for stage in refresh_stages(index.settings):
        stage.run(index)
        if stage.name == looked_after[0]:
            checked = check(index)
            assert not checked.problems
            assert any("the next run makes them anew" in note for note in checked.notes)
            looked_after.remove(stage.name)
        if not looked_after:
            break
    assert not looked_after


def test_an_imported_index_is_ok(tmp_path, shared_data):
    workspace = Workspace(in_folder(tmp_path, PLAIN))
    import_graphrag(shared_data / "carol_index", workspace)
    run_stages(workspace)
    assert lines(workspace) == []


def test_where_nothing_is_indexed_nothing_is_wrong_and_nothing_is_made(tmp_path):
    workspace = Workspace(in_folder(tmp_path, PLAIN))
    checked = check(workspace)
    assert (checked.verdict, list(checked.problems)) == ("ok", [])
    assert checked.notes == (f"there is no index in {workspace.home} yet",)
    assert not workspace.home.exists()


# Damage


BEGINS = {
    **{"mark": "leftovers", "tag": "tags", "published": "published", "release": "releases"},
    **{"vector": "vector_files", "marts": "other_files", "evaluations": "other_files"},
    **{"manifest": "manifests", "batch": "manifests", "the index": "index_file", "cache": "calls"},
}
"""Where to begin when a damage has such a word in its name: what comes before takes long.

The others are of tables.
"""


def find(workspace: Workspace, line: str, name: str) -> list[str]:
    """Return what verifications find, one after the other, until one finds a line."""
    found: list[str] = []
    first = next((by for word, by in BEGINS.items() if word in name), "schema")
    with workspace.store.session():
        for verification in dropwhile(lambda each: each.name != first, VERIFICATIONS):
            found += [problem.line for problem in find_by(workspace, verification, ())]
            if any(line in each for each in found):
                break
    return found


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_found(name, tmp_path):
    damage = DAMAGES[name]
    index = ready(tmp_path, is_full=damage.is_full)
    damage.do(index)
    damaged = digests(index.home)
    found = find(index, damage.line, name)
    assert any(damage.line in line for line in found), found
    assert digests(index.home) == damaged


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in OFTEN else pytest.mark.nightly) for n in DAMAGES]
)
def test_damage_is_mended_or_left_alone(name, tmp_path):
    damage = DAMAGES[name]
    index = ready(tmp_path, is_full=damage.is_full)
    before = content(index)
    damage.do(index)
    damaged = digests(index.home)
    outcome = repair(index)
    if damage.mends:
        assert [problem.line for problem in outcome.problems] == []
        assert outcome.repairs
        assert not any(re.search(r"\b0 ", line) for line in outcome.repairs)
        assert content(index) == before
    else:
        assert any(damage.line in problem.line for problem in outcome.problems)
        mended = "; run graphrag-pipeline check --repair"
        assert not any(mended in problem.line for problem in outcome.problems)
        assert digests(index.home) == damaged


WITHOUT_RELEASE = {
    "a chunk": "DELETE FROM chunks WHERE id = (SELECT min(id) FROM chunks)",
    "a mention": "DELETE FROM entity_mentions WHERE chunk_id = (SELECT min(id) FROM chunks)",
    "an entity": "DELETE FROM entities WHERE id = (SELECT min(id) FROM entities)",
    "all members": "DELETE FROM hierarchy_members",
    "contexts": "UPDATE hierarchy_reports SET context_hash = '0'",
}
# Which cluster had which id is known by its members alone.
NEW_IDS = {
    "all members": {
        *("hierarchy_communities", "hierarchy_members", "hierarchy_reports", "report_elements"),
        "vectors of community_reports",
    }
}
CLUSTERS = """
SELECT members, r.title, r.full_content FROM (
    SELECT community_id, list(entity_id ORDER BY entity_id) AS members
    FROM hierarchy_members GROUP BY ALL)
LEFT JOIN hierarchy_reports r USING (community_id) ORDER BY ALL
"""


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n == "a chunk" else pytest.mark.nightly) for n in WITHOUT_RELEASE],
)
def test_without_a_release_what_is_derived_is_made_again_by_the_stages(name, index):
    before, clusters = content(index), clusters_of(index)
    shutil.rmtree(index.paths.releases)
    index.paths.published.unlink()
    sql(WITHOUT_RELEASE[name])(index)
    outcome = repair(index)
    assert [problem.line for problem in outcome.problems] == []
    assert "marked" in outcome.repairs[0]
    after = content(index)
    different = {table for table in before if after[table] != before[table]}
    assert different <= {"identifiers", *NEW_IDS.get(name, ())}
    assert clusters_of(index) == clusters != []


def test_the_command_ends_with_a_verdict_and_a_code(index, monkeypatch):
    monkeypatch.chdir(index.home.parent)
    monkeypatch.setenv("GRAPHRAG_EMBEDDINGS__DIMENSIONS", "32")
    _drop_tag(index)
    run = CliRunner().invoke(app, ["check", "--json"])
    assert run.exit_code == 1
    assert [problem["check"] for problem in json.loads(run.stdout)["problems"]] == ["tags"]
    run = CliRunner().invoke(app, ["check", "--repair"])
    assert run.exit_code == 0
    assert run.stdout.splitlines() == ["repaired: protected 4 versions of vectors", "ok"]


def test_a_folder_in_use_is_no_leftover_though_its_name_is_all_digits(index, monkeypatch):
    digits = SimpleNamespace(uuid4=lambda: SimpleNamespace(hex="96330306" * 4))
    monkeypatch.setattr("graphrag_pipeline.core.hardening.temporary.uuid", digits)
    with temporary_folder(index.home / "releases", "building"):
        assert [problem.line for problem in check(index).problems] == []


def test_what_the_next_run_clears_is_told_and_is_no_problem(index, monkeypatch):
    monkeypatch.chdir(index.home.parent)
    monkeypatch.setenv("GRAPHRAG_EMBEDDINGS__DIMENSIONS", "32")
    _tag_orphan(index)
    left = index.home / "releases" / ".published.duckdb.0123abcd.tmp"
    (left / "content").mkdir(parents=True)
    (left / "content" / "file").write_bytes(b"half of a release")
    run = CliRunner().invoke(app, ["check"])
    assert (run.exit_code, run.stdout) == (0, "ok\n")
    assert "files that a killed process has left (1)" in run.stderr
    assert "the next run removes them" in run.stderr
    assert "tags of releases that are not kept (1)" in run.stderr
    documents = index.home.parent / "documents"
    (documents / "3.md").write_text(story(32))
    Index(index.settings).update(documents)
    assert not left.exists()
    assert check(index).notes == ()


def test_a_question_to_damaged_vectors_is_one_error_that_says_what_to_do(index):
    for path in (index.paths.vectors / "chunks.lance" / "data").iterdir():
        path.write_bytes(b"x")
    with (
        QueryEngine(index.home, settings=index.settings) as engine,
        pytest.raises(StorageError, match="check --repair") as raised,
    ):
        engine.answer(story(1), "basic")
    assert "\n" not in str(raised.value)
    assert ".rs" not in str(raised.value)


def test_no_insides_of_libraries_are_told(tmp_path: Path) -> None:
    damaged = duckdb.IOException(
        "IO Error: Corrupt database file: computed checksum 123 does not match stored checksum 4 "
        "in block at location 4096; run graphrag-pipeline index\nmore"
    )
    assert unreadable(tmp_path, damaged) == (
        "the file cannot be read (Corrupt database file: what was written is not what is there, "
        "from byte 4096)"
    )
    misread = RuntimeError("lance error: LanceError(IO): Invalid input, buffer 0 is not aligned")
    assert lance_reason(misread) == "its bytes are damaged"
    assert lance_reason(OSError("LanceError(IO): Permission denied")) == "Permission denied"


def test_what_nobody_may_write_is_not_called_damaged(tmp_path, monkeypatch):
    workspace = Workspace(Settings(home=str(tmp_path)))
    # Who runs the tests as root may write in any folder but one of a disk that is read-only.
    monkeypatch.setattr(os, "access", lambda path, mode: (path, mode) != (tmp_path, os.W_OK))
    with pytest.raises(StorageError, match=r"^cannot check .*check the copy$"):
        check(workspace)
