"""The assets, run by Dagster on real files."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import duckdb
import lancedb
import pyarrow as pa
import pytest
from dagster_helpers import (
    LEVELS,
    PEOPLE,
    PLACES,
    RIVERS,
    Pipeline,
    failed_checks,
    metadata_of,
)

from graphrag_pipeline.assets.common import picture
from graphrag_pipeline.definitions import CHECK_JOB
from graphrag_pipeline.marts.sql import query_published
from graphrag_pipeline.releases.measuring import MEASURES

Told = dict[tuple[str, str | None], dict]
FILES = {"people.txt": PEOPLE, "places.md": PLACES, "broken.pdf": b"%PDF-1.4 not really"}


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as ephemeral:
        yield ephemeral


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    return Pipeline(tmp_path, monkeypatch)


@dataclass(frozen=True)
class FirstBuild:
    """A folder with a published index, and the runs of the two jobs that made it."""

    folder: Path
    key: str
    release_before: str | None
    """What was published after the first job."""
    ingested: dg.ExecuteInProcessResult
    refreshed: dg.ExecuteInProcessResult

    @property
    def told(self) -> Told:
        """The metadata of the run that published the index."""
        return metadata_of(self.refreshed)


@pytest.fixture(scope="module")
def first_build(tmp_path_factory: pytest.TempPathFactory) -> FirstBuild:
    folder = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as patch, dg.DagsterInstance.ephemeral() as ephemeral:
        patch.setenv(LEVELS, "4")
        pipeline = Pipeline(folder, patch)
        pipeline.write(FILES)
        (key,) = pipeline.cut()
        ingested = pipeline.ingest(ephemeral, [key])
        before = pipeline.release
        return FirstBuild(folder, key, before, ingested, pipeline.refresh(ephemeral))


@pytest.fixture
def indexed(first_build: FirstBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    """A pipeline whose index is built and published."""
    shutil.copytree(first_build.folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv(LEVELS, "4")
    return Pipeline(tmp_path, monkeypatch)


def test_both_jobs_build_and_publish_an_index(first_build: FirstBuild) -> None:
    ingested, refreshed = first_build.ingested, first_build.refreshed
    assert ingested.success
    assert first_build.release_before is None
    assert failed_checks(ingested) == {"documents:nothing_quarantined"}
    (unread,) = [c for c in ingested.get_asset_check_evaluations() if not c.passed]
    assert str(unread.description).startswith("1 of the files could not be read")
    shown = str(unread.metadata["rows"].value)
    assert shown.startswith("| reason | uri |")
    assert "broken.pdf" in shown
    assert refreshed.success
    assert failed_checks(refreshed) == set()
    assert len(refreshed.get_asset_check_evaluations()) == 1 + 4 + 4 + 4 * 3 + 8 + 1
    _, rows = query_published(first_build.folder / "home", "SELECT title FROM entities")
    assert {"Orion Labs", "Emil Fuchs"} <= {title for (title,) in rows}


def test_every_materialisation_says_rows_columns_time_and_shows_some(
    first_build: FirstBuild, indexed: Pipeline
) -> None:
    key, ingested, refreshed = first_build.key, metadata_of(first_build.ingested), first_build.told
    found = ingested | refreshed
    assert {partition for _, partition in ingested} == {key}
    for (asset, _), metadata in found.items():
        assert metadata["seconds"] >= 0, asset
        if asset.startswith("embeddings/"):
            assert metadata["dagster/row_count"] == metadata["embedded"]
            assert metadata["size_mb"] > 0
            assert "hashing" in metadata["embedder"]
        elif asset not in ("published_index", *MEASURES.names()):
            assert metadata["dagster/column_schema"].columns, asset
            assert metadata["preview"], asset
    assert ingested["documents", key]["dagster/partition_row_count"] == 2
    assert ingested["documents", key]["quarantined"] == 1
    assert "broken.pdf" in ingested["documents", key]["quarantined_files"]
    assert ingested["chunks", key]["tokens"] > 20
    assert "Boris Claude" in ingested["extractions", key]["preview"]
    for table in ("entities", "relationships"):
        count = indexed.rows(f"SELECT count(*) FROM {table}")[0][0]
        assert refreshed[f"graph/{table}", None]["dagster/row_count"] == count > 0
    assert "| Orion Labs |" in refreshed["graph/entities", None]["preview"]
    described = refreshed["graph/entities", None]["dagster/column_schema"].columns
    about = {c.name: c.description for c in described}["degree"]
    assert str(about).startswith("Number of distinct neighbours")


def test_each_batch_of_one_run_is_told_of_its_own_rows(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.write({"people.txt": PEOPLE})
    keys = pipeline.cut()
    pipeline.write({"places.md": PLACES, "rivers.txt": RIVERS})
    keys += pipeline.cut()
    told = metadata_of(pipeline.ingest(instance, keys))
    rows = [told["documents", key]["dagster/partition_row_count"] for key in keys]
    assert rows == [1, 2]
    assert "people" in told["documents", keys[0]]["preview"]
    assert "people" not in told["documents", keys[1]]["preview"]


def test_pictures_stand_where_they_belong_and_levels_count_their_own(
    first_build: FirstBuild, indexed: Pipeline
) -> None:
    first_told = first_build.told
    pictured = {
        (asset, name)
        for (asset, _), metadata in first_told.items()
        for name, value in metadata.items()
        if "(data:image/svg+xml;base64," in str(value)
    }
    assert pictured == {
        ("graph/entities", "degree_distribution"),
        ("communities/communities_level_0", "graph_at_level_0"),
        ("communities/communities_level_0", "communities_by_size"),
    }
    by_level = dict(indexed.rows("SELECT level, count(*) FROM communities GROUP BY level"))
    for level in range(4):
        counts = first_told[f"communities/communities_level_{level}", None]
        assert counts["added"] == counts["dagster/row_count"] == by_level.get(level, 0)


def test_nothing_that_is_only_shown_fails_a_run(
    indexed: Pipeline, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_down(*_: object, **__: object) -> bytes:
        raise ValueError("no paint")

    def ask_in_vain(con: duckdb.DuckDBPyConnection, *_: object) -> None:
        con.execute("SELECT error('no paint')")

    monkeypatch.setattr("graphrag_pipeline.assets.stages.picture", picture)
    for name in ("facts", "column_schema", "markdown_table"):
        monkeypatch.setattr(f"graphrag_pipeline.assets.stages.{name}", ask_in_vain)
    for place in ("pages.pictures.draw_graph", "pages.pictures.degree_picture",
                  "assets.publishing.list_releases", "assets.embeddings._size_mb"):  # fmt: skip
        monkeypatch.setattr(f"graphrag_pipeline.{place}", break_down)
    result = indexed.refresh(instance)
    assert result.success
    assert failed_checks(result) == set()
    entries = instance.all_logs(result.run_id)
    warnings = [entry.user_message for entry in entries if entry.level == logging.WARNING]
    for name in ("counts", "columns", "preview", "looked_alike", "pictures", "graph_at_level_0",
                 "size_mb", "releases"):  # fmt: skip
        lines = [line for line in warnings if line.startswith(f"{name} could not be shown: ")]
        assert lines, name
        assert all(line.endswith("no paint") and "\n" not in line for line in lines)
    told = metadata_of(result)["communities/communities_level_0", None]
    assert told["graph_at_level_0"] == "could not be shown: ValueError: no paint"
    assert "base64" in told["communities_by_size"]
    assert [*(indexed.home / "pictures").glob("communities_by_size-*.svg")]


def test_a_second_batch_reads_and_extracts_only_itself(
    indexed: Pipeline, instance: dg.DagsterInstance
) -> None:
    first = indexed.rows("SELECT DISTINCT batch FROM batch_stages")[0][0]
    ledger = indexed.rows("SELECT * FROM batch_stages ORDER BY ALL")
    release = indexed.release
    indexed.write({"rivers.txt": RIVERS})
    (second,) = indexed.cut()
    told = metadata_of(indexed.ingest(instance, [first, second]))
    for stage in ("documents", "chunks", "extractions"):
        assert told[stage, first]["done_before"] is True
        assert told[stage, second]["done_before"] is False
    assert told["extractions", second]["dagster/partition_row_count"] == 1
    after = indexed.rows(f"SELECT * FROM batch_stages WHERE batch <> '{second}' ORDER BY ALL")
    assert after == ledger
    refreshed = metadata_of(indexed.refresh(instance))
    assert refreshed["graph/entities", None]["batches_taken_in"] == 1
    assert refreshed["embeddings/chunks_vectors", None]["embedded"] == 1
    assert refreshed["embeddings/chunks_vectors", None]["reused"] == 2
    assert indexed.release != release
    published = refreshed["published_index", None]
    assert published["new_release"] is True
    assert "| documents | 2 | 3 | 1 | 0 | 0 |" in published["what_changed"]
    assert (published["documents_entered"], published["documents_changed"]) == (1, 0)
    assert published["compared_with"] == release
    assert f"| {str(indexed.release)[:15]} | yes | 3 |" in published["releases"]


def test_a_run_with_nothing_new_writes_nothing_and_keeps_the_release(
    indexed: Pipeline, instance: dg.DagsterInstance
) -> None:
    indexed.refresh(instance)
    before = _fingerprints(indexed.home)
    release = indexed.release
    result = indexed.refresh(instance)
    assert result.success
    told = metadata_of(result)
    assert told["published_index", None]["new_release"] is False
    assert told["graph/entities", None]["batches_taken_in"] == 0
    assert told["communities/communities_level_0", None]["done"] == "unchanged"
    assert "base64" in told["communities/communities_level_0", None]["graph_at_level_0"]
    assert {m.get("embedded", 0) for m in told.values()} == {0}
    assert {m.get("written", 0) for m in told.values()} == {0}
    assert indexed.release == release
    assert _fingerprints(indexed.home) == before


def _fingerprints(home: Path) -> dict[str, str]:
    """Return the content of all files of the index (Dagster's own history is apart)."""
    return {
        str(path.relative_to(home)): hashlib.sha256(path.read_bytes()).hexdigest()
        for place, _, names in os.walk(home)
        for path in (Path(place) / name for name in names)
        if path.relative_to(home).parts[0] != "dagster"
    }


TAMPERED = {
    "graph/entities:ids_unique": (
        "INSERT INTO entities SELECT * FROM entities ORDER BY id LIMIT 1",
        "communities",
    ),
    "graph/entities:entities_have_sources": (
        "DELETE FROM entity_chunks WHERE entity_id = (SELECT min(id) FROM entities)",
        "communities",
    ),
    "graph/relationships:relationship_ids_unique": (
        "INSERT INTO relationships SELECT * FROM relationships ORDER BY id LIMIT 1",
        "communities",
    ),
    "graph/relationships:endpoints_exist": (
        "UPDATE relationships SET source_id = 'nobody' "
        "WHERE id = (SELECT min(id) FROM relationships)",
        "communities",
    ),
    "communities/communities_level_0:every_entity_covered_once": (
        "DELETE FROM hierarchy_members WHERE level = 0 AND entity_id = "
        "(SELECT min(entity_id) FROM community_members)",
        "community_reports",
    ),
}


@pytest.mark.parametrize("check", TAMPERED)
def test_a_broken_invariant_stops_the_run_before_anything_is_published(
    indexed: Pipeline, instance: dg.DagsterInstance, check: str
) -> None:
    sql, downstream = TAMPERED[check]
    indexed.execute(sql)
    published = (indexed.home / "published.duckdb").read_bytes()
    result = indexed.refresh(instance)
    assert not result.success
    assert check in failed_checks(result)
    reached = {asset.split("/")[0] for asset, _ in metadata_of(result)}
    assert downstream not in reached
    assert "published_index" not in reached
    assert (indexed.home / "published.duckdb").read_bytes() == published


@pytest.mark.parametrize(
    ("check", "broken"),
    [("every_row_has_a_vector", "missing"), ("vectors_are_numbers", "infinite")],
)
def test_a_report_without_a_vector_of_numbers_stops_the_run(
    indexed: Pipeline, instance: dg.DagsterInstance, check: str, broken: str
) -> None:
    _break_a_vector(indexed.home, broken)
    result = indexed.refresh(instance)
    assert not result.success
    assert f"embeddings/community_reports_vectors:{check}" in failed_checks(result)
    assert "published_index" not in {asset for asset, _ in metadata_of(result)}


@pytest.mark.usefixtures("plain_stores")
def test_a_graph_that_is_not_the_fold_of_its_mentions_is_told_at_night_and_made_anew(
    indexed: Pipeline, instance: dg.DagsterInstance
) -> None:
    query = "SELECT * FROM entities ORDER BY id"
    before = indexed.rows(query)
    assert failed_checks(indexed.run(CHECK_JOB, instance, {})) == set()
    indexed.execute("UPDATE entities SET frequency = frequency + 7 WHERE title = 'Orion Labs'")
    checked = indexed.run(CHECK_JOB, instance, {})
    assert checked.success
    (evaluation,) = checked.get_asset_check_evaluations()
    assert not evaluation.passed
    lines = str(evaluation.metadata["lines"].value)
    assert evaluation.metadata["problems"].value == len(lines.splitlines()) - 2
    assert "rows are not those that the mentions make" in lines
    assert evaluation.metadata["next_refresh"].value == "folds the whole graph anew"
    assert indexed.refresh(instance).success
    assert indexed.rows(query) == before


def _break_a_vector(home: Path, broken: str) -> None:
    table = lancedb.connect(home / "vectors").open_table("community_reports")
    row = table.search().limit(1).to_arrow().to_pylist()[0]
    where = f"id = '{row['id']}'"
    table.delete(where)
    if broken == "infinite":
        row = {name: row[name] for name in table.schema.names}
        row["vector"] = [float("inf")] * len(row["vector"])
        table.add(pa.Table.from_pylist([row], schema=table.schema))
