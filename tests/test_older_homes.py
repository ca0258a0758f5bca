"""Homes that the program of each schema version made: they are good, answer, and go on."""

from __future__ import annotations

import json
import os
import tarfile
from pathlib import Path

import duckdb
import pytest

from graphrag_pipeline import Index
from graphrag_pipeline.core.settings import load_settings
from graphrag_pipeline.releases.kept_releases import published_release, release_ids
from graphrag_pipeline.store.hashing import rows_hash
from graphrag_pipeline.store.index_store import connect_published
from graphrag_pipeline.store.migrations import migrations
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.upkeep.checking import check, repair

HOMES = Path(__file__).parent / "data" / "homes"
MADE = sorted(int(path.name[7:9]) for path in HOMES.glob("schema_*.tar.xz"))
OFTEN = (1, 7)
NEVER_MADE = (4, 5, 6)
ALL = sorted({*MADE, *NEVER_MADE})
QUESTION = "Who lived in Kelmouth?"
ADDED = {
    7: ("TABLE chunk_names", "TABLE staging.chunk_names"),
    6: (
        *("VIEW attributed_entities", "TABLE attributed_members", "TABLE attributed_communities"),
        *("TABLE similarity_edges", "TABLE chnsw", "TABLE staging.similarity_searched"),
        *("TABLE staging.similarity_nearest", "TABLE staging.attributed_clusters"),
    ),
    5: (
        *("TABLE hirag_entities", "TABLE hirag_relationships", "TABLE hirag_layers"),
        *("TABLE hirag_communities", "TABLE hirag_community_members"),
        *("TABLE hirag_community_reports", "TABLE staging.hirag_report_failures"),
        *("TABLE staging.hirag_mixtures", "TABLE staging.hirag_nodes"),
        "TABLE staging.hirag_summaries",
    ),
}
"""What migrations added to an index or a release, by the versions of which there is no home."""

VECTORS_ADDED = {6: "attributed_communities", 5: "hirag_entities"}

pytestmark = pytest.mark.usefixtures("plain_stores")


def schemas(often: tuple[int, ...]) -> list[object]:
    return [pytest.param(n, marks=() if n in often else pytest.mark.nightly) for n in ALL]


def home_of(schema: int, folder: Path) -> Workspace:
    """Unpack the home that the program of a schema version made."""
    made = 7 if schema in NEVER_MADE else schema
    with tarfile.open(HOMES / f"schema_{made:02}.tar.xz") as archive:
        archive.extraction_filter = getattr(tarfile, "tar_filter", None)  # Python 3.11.2 has none
        archive.extractall(folder)
    settings = load_settings(folder / "graphrag.toml")
    workspace = Workspace(settings.model_copy(update={"home": str(folder / ".graphrag")}))
    if made != schema:
        for path in {workspace.paths.index, *workspace.paths.releases.glob("*.duckdb")}:
            take_back(path, schema)
    return workspace


def take_back(path: Path, schema: int) -> None:
    """Drop what the migrations after ``schema`` added to a file of version 7."""
    path.chmod(0o644)
    with duckdb.connect(str(path)) as con:
        for version in range(7, schema, -1):
            for added in ADDED[version]:
                con.execute(f"DROP {added.replace(' ', ' IF EXISTS ', 1)}")
        later = [name for version, name in VECTORS_ADDED.items() if version > schema]
        patch = json.dumps(dict.fromkeys(later))
        con.execute(
            "UPDATE releases SET vector_versions = json_merge_patch(vector_versions, ?)", [patch]
        )
        con.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", [str(schema)])
    path.chmod(0o444 if path.parent.name == "releases" else 0o644)


def assert_good(workspace: Workspace, *, is_older: bool) -> None:
    checked = check(workspace)
    assert [problem.line for problem in checked.problems] == []
    assert any("made by an older program" in note for note in checked.notes) is is_older


def assert_answers(workspace: Workspace, method: str = "local") -> None:
    answer = Index(workspace.settings).answer(QUESTION, method=method)
    assert "Oskar Kovarna" in answer.text
    assert answer.release == published_release(workspace.home)


@pytest.mark.parametrize("schema", schemas(OFTEN))
def test_a_home_of_an_older_program_is_good_as_it_is_and_answers(schema, tmp_path):
    workspace = home_of(schema, tmp_path)
    assert_good(workspace, is_older=True)
    assert_answers(workspace)
    for release in release_ids(workspace.home)[1:]:
        Index(workspace.settings).rollback(release)
        assert_answers(workspace)
        assert_good(workspace, is_older=True)
    with duckdb.connect(str(workspace.paths.index), read_only=True) as con:
        row = con.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()
    assert row == (str(schema),)


@pytest.mark.parametrize("schema", schemas((1,)))
def test_after_the_next_index_a_home_of_an_older_program_is_of_today(schema, tmp_path):
    workspace = home_of(schema, tmp_path)
    older = release_ids(workspace.home)
    index = Index(workspace.settings)
    index.update(tmp_path / "documents")
    assert_good(workspace, is_older=False)
    assert_answers(workspace)
    assert set(older) < set(release_ids(workspace.home))
    index.rollback(older[0])
    assert_answers(workspace)
    assert_good(workspace, is_older=False)


@pytest.mark.parametrize("schema", schemas(()))
def test_repair_takes_an_older_index_up_and_finds_nothing_else_to_do(schema, tmp_path):
    workspace = home_of(schema, tmp_path)
    checked = repair(workspace)
    assert "brought index.duckdb to this program's schema" in checked.repairs
    assert [problem.line for problem in checked.problems] == []
    assert_answers(workspace)


@pytest.mark.parametrize("schema", schemas((7,)))
def test_damage_to_a_release_of_an_older_program_is_found(schema, tmp_path):
    workspace = home_of(schema, tmp_path)
    path = workspace.paths.published
    path.chmod(0o644)
    with duckdb.connect(str(path)) as con:
        con.execute("DELETE FROM chunks WHERE id = (SELECT min(id) FROM chunks)")
    wrong = [problem.where for problem in check(workspace).problems]
    assert any(where.endswith(".duckdb, entity_chunks") for where in wrong)


def test_what_an_older_release_kept_under_other_names_is_shown_under_those_of_today(tmp_path):
    workspace = home_of(7, tmp_path)
    path = workspace.paths.published
    with duckdb.connect(str(path), read_only=True) as con:
        own = con.execute(f"SELECT {rows_hash('hirag_community_members')}").fetchone()
        assert own is not None
        assert not own[0].startswith("0:")
    shown = "(SELECT * EXCLUDE (hierarchy) FROM hierarchy_members WHERE hierarchy = 'hirag')"
    with connect_published(path) as con:
        assert con.execute(f"SELECT {rows_hash(shown)}").fetchone() == own
        tables = con.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        assert ("hierarchy_members",) not in tables


def test_there_is_a_small_home_of_every_schema_version_that_a_program_had():
    assert list(range(1, migrations()[-1][0])) == ALL
    assert max(os.path.getsize(path) for path in HOMES.iterdir()) < 150_000
