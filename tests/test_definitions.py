"""The asset graph that Dagster is told of."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from graphrag_pipeline.assets.embeddings import embedding_key
from graphrag_pipeline.assets.reports import report_key
from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.settings import (
    ChunkSettings,
    CommunitySettings,
    EmbeddingSettings,
    HierarchySettings,
    ReportSettings,
    Settings,
)
from graphrag_pipeline.definitions import build_definitions, defs

SNAPSHOT = Path(__file__).parent / "snapshots" / "asset_graph.json"
UPDATE = "UPDATE_SNAPSHOTS=1 python -m pytest tests/test_definitions.py"


def _described(defs: dg.Definitions) -> dict[str, Any]:
    graph = defs.resolve_asset_graph()
    assets = {}
    for key in sorted(graph.get_all_asset_keys()):
        node = graph.get(key)
        assets[key.to_user_string()] = {
            "deps": sorted(parent.to_user_string() for parent in node.parent_keys),
            "group": node.group_name,
            "kinds": sorted(node.kinds),
            "owners": sorted(node.owners),
            "described": bool(node.description),
            "code_version": node.code_version is not None,
            "partitions": getattr(node.partitions_def, "name", None),
            "pools": sorted(node.pools or ()),
            "blocking_checks": _checks(graph, key, blocking=True),
            "warning_checks": _checks(graph, key, blocking=False),
        }
    return {
        "assets": assets,
        "jobs": {
            job.name: sorted(key.to_user_string() for key in job.asset_layer.selected_asset_keys)
            for job in (defs.resolve_job_def("ingest_batch"), defs.resolve_job_def("refresh_index"))
        },
        "sensors": sorted(sensor.name for sensor in defs.sensors or ()),
        "schedules": sorted(schedule.name for schedule in defs.schedules or ()),
    }


def _checks(graph: Any, key: dg.AssetKey, *, blocking: bool) -> list[str]:
    specs = [graph.get_check_spec(check) for check in graph.get(key).check_keys]
    return sorted(spec.name for spec in specs if spec.blocking == blocking)


@pytest.mark.beside
def test_the_asset_graph_is_as_written_down() -> None:
    described = _described(build_definitions(Settings()))
    if os.environ.get("UPDATE_SNAPSHOTS"):
        SNAPSHOT.write_text(json.dumps(described, indent=2) + "\n")
    written = json.loads(SNAPSHOT.read_text())
    assert described == written, f"the asset graph changed; if that is meant, run: {UPDATE}"


@pytest.mark.parametrize("levels", [1, 2, 6])
def test_there_are_as_many_level_assets_as_configured(levels: int) -> None:
    given = Settings(communities=CommunitySettings(levels=levels))
    graph = build_definitions(given).resolve_asset_graph()
    keys = {key.to_user_string() for key in graph.get_all_asset_keys()}
    for kind in ("communities", "reports"):
        found = {key for key in keys if key.startswith(f"{kind}/{kind}_level_")}
        assert found == {f"{kind}/{kind}_level_{level}" for level in range(levels)}
    reports = graph.get(dg.AssetKey(["embeddings", "community_reports_vectors"])).parent_keys
    assert len(reports) == levels
    last = graph.get(dg.AssetKey(["communities", f"communities_level_{levels - 1}"])).description
    assert last is not None
    assert "all deeper levels" in last


@pytest.mark.parametrize("methods", [["bm25"], ["basic", "ppr"]])
def test_what_is_published_waits_for_all_reports_even_where_no_method_has_vectors_of_them(
    methods: list[str],
) -> None:
    given = EmbeddingSettings(embedder="local", model="some-model", methods=methods)
    asked = Settings(embeddings=given)
    graph = build_definitions(asked).resolve_asset_graph()
    assert (
        dg.AssetKey(["embeddings", "community_reports_vectors"]) not in graph.get_all_asset_keys()
    )
    before = graph.get_ancestor_asset_keys(dg.AssetKey("published_index"))
    levels = Settings().communities.levels
    assert before >= {report_key(level) for level in range(levels)}


def test_the_graph_of_all_layers_are_assets_where_it_is_asked_for() -> None:
    asked = Settings(hierarchies=HierarchySettings(hirag=True))
    before, after = _versions(Settings()), _versions(asked)
    added = {key.to_user_string() for key in after.keys() - before.keys()}
    assert added == {
        "hierarchies/hirag_entities",
        "hierarchies/hirag_communities",
        "embeddings/hirag_entities_vectors",
    }
    graph = build_definitions(asked).resolve_asset_graph()
    published = graph.get(dg.AssetKey("published_index")).parent_keys
    assert published >= after.keys() - before.keys()
    vectors = {dg.AssetKey(["embeddings", "entities_vectors"])}
    assert graph.get(dg.AssetKey(["hierarchies", "hirag_entities"])).parent_keys == vectors


def test_facts_and_synonyms_are_assets_where_they_are_asked_for() -> None:
    asked = Settings(embeddings=EmbeddingSettings(facts=True, synonyms=True))
    before, after = _versions(Settings()), _versions(asked)
    assert {key.to_user_string() for key in after.keys() - before.keys()} == {
        "embeddings/facts_vectors",
        "embeddings/entity_titles_vectors",
        "embeddings/synonyms",
    }
    assert {key.path[0] for key in before if before[key] != after[key]} == {"published_index"}
    graph = build_definitions(asked).resolve_asset_graph()
    published = graph.get(dg.AssetKey("published_index")).parent_keys
    assert published >= after.keys() - before.keys()
    titles = {dg.AssetKey(["embeddings", "entity_titles_vectors"])}
    assert graph.get(dg.AssetKey(["embeddings", "synonyms"])).parent_keys == titles


def test_the_raptor_tree_is_an_asset_where_it_is_asked_for() -> None:
    asked = Settings(hierarchies=HierarchySettings(raptor=True))
    before, after = _versions(Settings()), _versions(asked)
    tree, vectors = dg.AssetKey(["hierarchies", "raptor_tree"]), embedding_key("raptor_nodes")
    assert after.keys() - before.keys() == {tree, vectors}
    graph = build_definitions(asked).resolve_asset_graph()
    assert graph.get(tree).parent_keys == {embedding_key("chunks")}
    assert graph.get(vectors).parent_keys == {tree}
    assert vectors in graph.get(dg.AssetKey("published_index")).parent_keys


@pytest.mark.parametrize(
    ("changed", "outdated"),
    [
        ({"chunks": ChunkSettings(size=300)}, {"chunks", "extractions"}),
        ({"communities": CommunitySettings(seed=1)}, {"communities"}),
        ({"reports": ReportSettings(max_findings=3)}, {"reports"}),
        ({"embeddings": EmbeddingSettings(dimensions=64)}, {"embeddings"}),
    ],
)
def test_a_setting_changes_the_code_version_of_what_it_shapes(
    changed: dict[str, Any], outdated: set[str]
) -> None:
    before, after = _versions(Settings()), _versions(Settings(**changed))
    differ = {key.path[0] for key, version in after.items() if version != before[key]}
    assert differ == outdated | {"published_index"}


def _versions(settings: Settings) -> dict[dg.AssetKey, str | None]:
    graph = build_definitions(settings).resolve_asset_graph()
    return {key: graph.get(key).code_version for key in graph.get_all_asset_keys()}


def test_every_job_sensor_schedule_and_check_says_what_it_is() -> None:
    defs = build_definitions(Settings())
    named = [*(defs.sensors or ()), *(defs.schedules or ()), *(defs.jobs or ())]
    assert [thing.name for thing in named if not getattr(thing, "description", None)] == []
    graph = defs.resolve_asset_graph()
    silent = [
        key.name for key in graph.asset_check_keys if not graph.get_check_spec(key).description
    ]
    assert silent == []


def test_no_two_assets_have_names_that_end_alike(tmp_path: Path) -> None:
    everything = {
        "home": str(tmp_path),
        "embeddings": {"facts": True, "synonyms": True},
        "hierarchies": {"raptor": True, "hirag": True, "attributed": True},
        "evaluation": {"experiment": "e.toml"},
    }
    graph = build_definitions(Settings.exactly(everything), marts=True).resolve_asset_graph()
    last = Counter(key.path[-1] for key in graph.get_all_asset_keys())
    assert [name for name, number in last.items() if number > 1] == []
    staging = {
        graph.get(key).group_name for key in graph.get_all_asset_keys() if "stg_" in str(key)
    }
    assert staging == {"marts_staging"}


def test_the_shipped_dagster_settings_are_those_of_the_repository() -> None:
    root = Path(__file__).parents[1]
    for name in ("dagster.yaml", "workspace.yaml"):
        shipped = (root / "graphrag_pipeline" / "data" / name).read_text()
        assert shipped == (root / name).read_text()


EVERYTHING = {"input": {"urls": ["https://example.org/a"]}}
"""Settings under which there is every sensor and schedule."""


def _begins(definitions: dg.Definitions) -> dict[str, str]:
    """Return how each sensor and schedule begins."""
    started = [*(definitions.sensors or ()), *(definitions.schedules or ())]
    return {each.name: each.default_status.value for each in started}


def test_in_a_project_of_ones_own_no_sensor_or_schedule_begins_switched_on(tmp_path: Path) -> None:
    given = Settings.exactly({"home": str(tmp_path), **EVERYTHING})
    begins = _begins(build_definitions(given, marts=True))
    assert len(begins) == 8
    assert set(begins.values()) == {"STOPPED"}


def test_in_our_own_ui_all_begin_switched_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHRAG_HOME", str(tmp_path))
    monkeypatch.setenv("GRAPHRAG_INPUT__URLS", '["https://example.org/a"]')
    begins = _begins(defs())
    assert len(begins) == 8
    assert set(begins.values()) == {"RUNNING"}


def test_another_word_for_automation_is_refused_in_one_line() -> None:
    with pytest.raises(ConfigError, match="automation = 'maybe': must be 'off' or 'on'"):
        build_definitions(Settings(), automation="maybe")  # pyright: ignore[reportArgumentType]


def test_settings_that_are_none_are_refused_in_one_line() -> None:
    with pytest.raises(ConfigError, match="takes Settings, not dict"):
        build_definitions({"home": "x"})  # pyright: ignore[reportArgumentType]
