"""What a model made of a corpus is told in figures, and garbage is not published."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest
from dagster_helpers import Pipeline, metadata_of
from index_process import by_model, update
from llm_helpers import document_in, stage_of
from model_server import Messages, ModelServer

from conftest import Engine
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm.errors import GarbageError
from graphrag_pipeline.planning.plan import plan_run
from graphrag_pipeline.planning.status import summarise
from graphrag_pipeline.query import open_release
from graphrag_pipeline.releases.quality import (
    FEW_CHUNKS,
    ModelQuality,
    check_floor,
    model_quality,
    quality_line,
)
from graphrag_pipeline.store.workspace import Workspace

MOST = Settings().releases.max_garbage_share
TEXTS = {
    f"{n}.txt": f"Alice Smith went to harbour {n} of the coast and paid Bob Jones {n} pounds there."
    for n in range(FEW_CHUNKS + 4)
}
Extract = Callable[[str, str], list[tuple[str, ...]]]


def records(rows: list[tuple[str, ...]]) -> str:
    lines = ["(" + "<|>".join([f'"{row[0]}"', *row[1:]]) + ")" for row in rows]
    return "\n##\n".join([*lines, "<|COMPLETE|>"])


def good(text: str, number: str) -> list[tuple[str, ...]]:
    return [
        ("entity", "Alice Smith", "PERSON", f"Payer number {number}, a visitor"),
        ("entity", "Bob Jones", "PERSON", f"Somebody who was given {number} pounds by Alice"),
        ("relationship", "Alice Smith", "Bob Jones", f"She gave him {number} pounds", "5"),
    ]


def copying(text: str, number: str) -> list[tuple[str, ...]]:
    return [("entity", "Alice Smith", "PERSON", text)]


def repeating(text: str, number: str) -> list[tuple[str, ...]]:
    rows = good(text, number)
    phrase = "plays an important part in this text"
    return [(*row[:3], f"{row[1]} {number} {phrase}", *row[4:]) for row in rows]


def playing(extract: Extract) -> Callable[[Messages], str]:
    def mind(messages: Messages) -> str:
        if stage_of(messages) == "check":
            return "NO"
        if stage_of(messages) in ("extract", "glean"):
            text = document_in(messages).strip()
            return records(extract(text, text.split("harbour ")[-1].split()[0]))
        finding = {"summary": "They meet.", "explanation": "They did."}
        return json.dumps({"title": "T", "summary": "They meet.", "findings": [finding]})

    return mind


def engine_by(server: ModelServer, folder: Path, **given: object) -> Engine:
    return by_model(folder, server.base_url, extraction={"gleanings": 0}, **given)


def quality_of(engine: Engine) -> ModelQuality:
    with engine.store.read() as con:
        quality = model_quality(con)
    assert quality is not None
    return quality


def test_one_phrase_in_most_descriptions_is_below_the_floor(tmp_path: Path) -> None:
    with ModelServer(playing(repeating)) as server:
        engine = engine_by(server, tmp_path)
        engine.write(TEXTS)
        engine.index()
        quality = quality_of(engine)
    with pytest.raises(GarbageError, match="100% of the descriptions hold the same 5 words"):
        check_floor(quality, MOST)
    check_floor(quality, 1.0)


def test_garbage_is_not_published_until_one_says_so_and_nothing_is_paid_twice(
    tmp_path: Path,
) -> None:
    with ModelServer(playing(copying)) as server:
        engine = engine_by(server, tmp_path)
        engine.write(TEXTS)
        with pytest.raises(GarbageError, match="max_garbage_share = 1") as caught:
            update(engine)
        reasons = ("none has a relationship", "100% have exactly one entity", "only copy the text")
        assert all(reason in str(caught.value) for reason in reasons)
        assert summarise(Workspace(engine.settings))["published"] is None
        server.forget()
        engine = engine_by(server, tmp_path, releases={"max_garbage_share": 1})
        update(engine)
        assert not server.asked()
    summary = summarise(Workspace(engine.settings))
    assert summary["published"]
    assert "1.0 entities and 0.0 relationships a chunk" in quality_line(summary["quality"])


def test_a_good_model_is_far_above_the_floor_and_few_bad_chunks_are_judged_with_the_rest(
    tmp_path: Path,
) -> None:
    minds = [good]
    with ModelServer(lambda messages: playing(minds[-1])(messages)) as server:
        engine = engine_by(server, tmp_path)
        engine.write(TEXTS)
        update(engine)
        quality = quality_of(engine)
        assert (quality.chunks, quality.single, quality.copied) == (len(TEXTS), 0, 0)
        assert quality.alike < MOST / 2
        assert quality.unreferenced == 1
        minds.append(copying)
        text = "Carol Brown sailed to harbour 99 of the coast and sold a boat to Emil Black."
        engine.write({"new.txt": text})
        update(engine)
    assert quality_of(engine).single == 1 / (len(TEXTS) + 1)
    published = summarise(Workspace(engine.settings))["published"]
    assert published["documents"] == len(TEXTS) + 1
    with open_release(engine.log.home, settings=engine.settings) as release:
        rows = release.rows(
            "SELECT q.*, r.n_chunks FROM model_quality q JOIN releases r ON r.id = release"
            " ORDER BY created_at"
        )
    assert [row["single"] for row in rows] == [0, 1 / (len(TEXTS) + 1)]
    for row in rows:
        assert (row["chunks"], row["unreferenced"]) == (row["n_chunks"], 1)


def test_a_run_on_an_index_without_a_report_is_planned_all_the_same(tmp_path: Path) -> None:
    with ModelServer(playing(copying)) as server:
        engine = engine_by(server, tmp_path)
        engine.write(TEXTS)
        engine.index()
        engine.write({"new.txt": "Carol Brown sailed to harbour 99 of the coast."})
        plan = plan_run(Workspace(engine.settings), engine.inbox)
    assert engine.rows("SELECT count(*) FROM community_reports") == [(0,)]
    assert [stage.calls for stage in plan.stages if stage.stage == "extractions"] == [1]


def test_assets_of_extraction_and_reports_say_what_the_model_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer(playing(good)) as server, dg.DagsterInstance.ephemeral() as instance:
        for name, value in {
            "PROFILE": "llm",
            "LLM__BASE_URL": server.base_url,
            "EXTRACTION__GLEANINGS": "0",
            "EMBEDDINGS__EMBEDDER": "hashing",
        }.items():
            monkeypatch.setenv(f"GRAPHRAG_{name}", value)
        pipeline = Pipeline(tmp_path, monkeypatch)
        pipeline.write(dict([*TEXTS.items()][:3]))
        (key,) = pipeline.cut()
        extracted = metadata_of(pipeline.ingest(instance, [key]))["extractions", key]
        refreshed = metadata_of(pipeline.refresh(instance))
    figures = ("entities_a_chunk", "relationships_a_chunk", "single", "cut", "copied", "doubled")
    assert [extracted[name] for name in figures] == [2, 1, 0, 0, 0, 0]
    assert extracted["quality"].startswith("2.0 entities and 1.0 relationships a chunk")
    assert refreshed["reports/reports_level_0", None]["findings_without_a_reference"] == 1


def test_few_chunks_and_what_rules_find_are_published_whatever_they_are(tmp_path: Path) -> None:
    figures = dict.fromkeys(("single", "cut", "copied", "doubled", "alike"), 1.0)
    few = ModelQuality(
        chunks=FEW_CHUNKS, entities_a_chunk=1, relationships_a_chunk=0, phrase="", findings=0,
        unreferenced=0, **figures,
    )  # fmt: skip
    check_floor(few, MOST)
    engine = Engine(tmp_path, Settings(home=str(tmp_path / ".graphrag")))
    engine.write(TEXTS)
    engine.index()
    with engine.store.read() as con:
        assert model_quality(con) is None
