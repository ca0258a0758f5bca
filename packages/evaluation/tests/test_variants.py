"""Indexes by other settings: made for what asks them, paid once, gone on with after a kill."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from commands import PATIENCE, ForkedPython
from graphrag_evaluation.evaluating import plan_experiment, run_experiment
from graphrag_evaluation.experiment import Experiment, experiment_of, read_experiment
from graphrag_evaluation.presets.tables import PaperTable, tables_of_experiment
from graphrag_evaluation.store import EvaluationStore
from model_server import Fault, Request
from strict_server import StrictServer

from graphrag_pipeline import Index, Settings
from graphrag_pipeline.core.errors import ConfigError, InputError
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.llm.ledger import calls_since

TEXTS = {
    "mill.txt": "Oskar Kovarna built the mill at Tarn. Oskar Kovarna met Dora Green at the mill. ",
    "bridge.txt": "Dora Green built the bridge at Orlen. Dora Green met Emil Black there. ",
}
ASKED = {"question": "Who built the mill at Tarn?", "answers": ["Oskar Kovarna"],
         "type": "inference_query"}  # fmt: skip
GIVEN = ["Ada", "Bo", "Cleo", "Dag", "Eva", "Finn", "Greta", "Hugo", "Ines", "Jan", "Kira", "Leif"]
YARDS = {
    f"yard{n}.txt": f"{given} Norrvik built the Harbour Yard {chr(65 + n)} at Port {given}stad. "
    f"{given} Norrvik met {GIVEN[n // 3 * 3]} Norrvik at Port {GIVEN[n // 3 * 3]}stad. "
    for n, given in enumerate(GIVEN)
}
"""Towns of three, each its own: the preset of clusterings keeps levels of five communities."""
GLEANED = """
[[condition]]
name = "{n} gleanings"
method = "bm25"
index = {{ extraction = {{ gleanings = {n} }}, reports = {{ writer = "extractive" }} }}
"""
AT_ONCE = 4
pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Bench:
    """Documents in a home within their own folder, and the model that it asks."""

    place: Path
    server: StrictServer
    settings: Settings

    def asked_again(self) -> int:
        """How many calls were made again, but for the length of vectors, which each index asks."""
        asked = [r for r in self.server.requests if r.body.get("input") != ["length"]]
        return len(asked) - len({request.content_hash for request in asked})

    def preset(self, name: str) -> Experiment:
        return experiment_of(name, str(self.place / "asked.jsonl"), [], preset=name)

    def of_file(self, text: str) -> Experiment:
        file = self.place.parent / "experiment.toml"
        file.write_text(text.replace('"asked.jsonl"', f'"{self.place / "asked.jsonl"}"'))
        return read_experiment(file)

    def tables(self, experiment: str) -> dict[str, PaperTable]:
        with EvaluationStore(self.settings.home_path).read() as con:
            return {table.number: table for table in tables_of_experiment(con, experiment)}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Bench, Sequence[Request]]]:
    """A bench whose index is made, and what the model was asked for that."""
    played = importlib.import_module("benchmarks.played_answers")
    place = tmp_path_factory.mktemp("bench") / "docs"
    place.mkdir()
    for name, text in TEXTS.items():
        (place / name).write_text(text * 3)
    (place / "asked.jsonl").write_text(json.dumps(ASKED))
    with pytest.MonkeyPatch.context() as patch, StrictServer(played.played_answer) as server:
        patch.setenv("OPENAI_API_KEY", "sk-test")
        settings = Settings(
            profile="llm",
            home=str(place / "home"),
            llm={"base_url": server.base_url, "retry_seconds": 0.005, "concurrency": AT_ONCE},
            input={"exclude": ["asked.jsonl"]},
            hierarchies={"attributed": True},
        )
        Index(settings).update(place)
        shutil.copytree(place, place.with_name("kept"))
        yield Bench(place, server, settings), [*server.requests]


@pytest.fixture
def bench(built: tuple[Bench, Sequence[Request]]) -> Bench:
    """The bench as it was when its index was made, in the same folder."""
    bench, asked = built
    shutil.rmtree(bench.place)
    shutil.copytree(bench.place.with_name("kept"), bench.place)
    bench.server.forget()
    bench.server.requests += asked
    return bench


@pytest.mark.parametrize(
    ("preset", "n_indexes", "more"),
    [
        ("rag_vs_graphrag-graphs", 2, {}),
        pytest.param("graphrag-gleanings", 12, {}, marks=pytest.mark.nightly),
        pytest.param("archrag-clusterings", 8, YARDS, marks=pytest.mark.nightly),
    ],
)
def test_a_preset_makes_its_indexes_for_no_more_than_planned_and_once(
    bench: Bench, preset: str, n_indexes: int, more: Mapping[str, str]
) -> None:
    for name, text in more.items():
        (bench.place / name).write_text(text)
    Index(bench.settings).update(bench.place)
    experiment = bench.preset(preset)
    before = len(bench.server.requests)
    plan = plan_experiment(bench.settings, experiment)
    assert f"{n_indexes} indexes by other settings: {n_indexes} to make" in plan.notes[0]
    assert plan.errors == ()
    # What methods retrieve for a question is looked at, and so its vector.
    assert {request.endpoint for request in bench.server.requests[before:]} <= {"embeddings"}
    done = run_experiment(bench.settings, experiment)
    assert f"{n_indexes} indexes by other settings, {n_indexes} made now" in done.notes
    assert (done.answered.errors, done.answered.failed) == ({}, {})
    spent = len(bench.server.requests) - before
    assert spent <= sum(stage.calls for stage in plan.stages)
    assert bench.asked_again() == 0
    homes = Home(bench.settings.home_path).variants_of_index()
    assert len({str(Index(str(home)).releases()[0].id) for home in homes}) == n_indexes
    for table in bench.tables(preset).values():
        assert not table.is_empty or "bertscore" in str(table), table.number
    again = plan_experiment(bench.settings, experiment)
    assert sum(stage.calls for stage in again.stages) == 0
    assert "0 made now" in run_experiment(bench.settings, experiment).notes[0]
    assert len(bench.server.requests) == before + spent


def test_what_indexes_ask_alike_is_planned_and_paid_once(bench: Bench) -> None:
    text = 'questions = "asked.jsonl"\nretrieval_only = true\n'
    experiment = bench.of_file(text + "".join(GLEANED.format(n=n) for n in (0, 2)))
    planned = plan_experiment(bench.settings, experiment).stages
    # All that is not gleaned is known of the index there is, which gleans once.
    extracting = [stage.stage for stage in planned if "extractions" in stage.stage]
    assert extracting == ["2 gleanings: extractions"]
    run_experiment(bench.settings, experiment)
    paid = [
        len(calls.filter(~calls["cached"] & (calls["stage"] == "extractions")))
        for calls in map(calls_since, Home(bench.settings.home_path).variants_of_index())
    ]
    assert min(paid) == 0 < max(paid)


def test_a_run_killed_between_indexes_pays_nothing_twice(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = 'questions = "asked.jsonl"\nretrieval_only = true\n' + "".join(
        GLEANED.format(n=n).replace("gleanings = ", "entity_types = ['t'], gleanings = ")
        for n in (1, 2)
    )
    file = bench.place.parent / "experiment.toml"
    bench.of_file(text)
    monkeypatch.chdir(bench.place.parent)
    (bench.place.parent / "graphrag.toml").write_text(
        f'profile = "llm"\nhome = "{bench.settings.home}"\n[input]\nexclude = ["asked.jsonl"]\n'
        f'[llm]\nbase_url = "{bench.server.base_url}"\nconcurrency = {AT_ONCE}\n'
        "retry_seconds = 0.005\n[hierarchies]\nattributed = true\n"
    )
    before = len(bench.server.requests)

    def run(killed_at: int) -> int | None:
        process = ForkedPython(["-m", "graphrag_pipeline.cli", "eval", "run", str(file), "--yes"])

        def kill(request: Request) -> Fault | None:
            if request.number == killed_at:
                os.kill(process.pid, signal.SIGKILL)
            return None

        bench.server.misbehave(kill)
        try:
            process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
            bench.server.misbehave(())
        return process.returncode

    assert run(before + 4) == -signal.SIGKILL
    assert run(0) == 0
    assert len(Home(bench.settings.home_path).variants_of_index()) == 2
    assert bench.asked_again() <= AT_ONCE


def test_a_document_that_is_forgotten_leaves_the_other_indexes_and_what_they_paid(
    bench: Bench,
) -> None:
    cut = GLEANED.format(n=0).replace(
        "extraction", "chunks = { size = 20, overlap = 5 }, extraction"
    )
    text = f'questions = "asked.jsonl"\nretrieval_only = true\n{cut}'
    run_experiment(bench.settings, bench.of_file(text))
    (bench.place / "mill.txt").unlink()
    index = Index(bench.settings)
    index.forget(bench.place / "mill.txt")
    assert not Home(bench.settings.home_path).variants_of_index()
    left = b"".join(file.read_bytes() for file in index.home.rglob("*") if file.is_file())
    assert b"Oskar Kovarna met" not in left
    assert b"Dora Green" in left


def test_settings_that_there_are_not_and_a_folder_that_is_gone_are_told_by_condition(
    bench: Bench,
) -> None:
    wrong = GLEANED.format(n=0).replace("gleanings = 0", "gleaning = 0")
    text = f'questions = "asked.jsonl"\n{wrong}'
    with pytest.raises(ConfigError, match=r"0 gleanings: .*gleaning"):
        plan_experiment(bench.settings, bench.of_file(text))
    with pytest.raises(InputError, match="leave out home"):
        bench.of_file(text + 'home = "other"\n')
    with pytest.raises(InputError, match="leave out home, release and per_document"):
        bench.of_file(f"per_document = true\n{text}")
    text = f'questions = "asked.jsonl"\nmethods = ["bm25"]\n{GLEANED.format(n=0)}'
    shutil.move(bench.place / "mill.txt", bench.place.parent)
    plan = plan_experiment(bench.settings, bench.of_file(text))
    assert plan.errors == (
        f"0 gleanings: {bench.place} has changed: graphrag-pipeline index {bench.place} first",
    )
    alone = bench.of_file(text.replace('methods = ["bm25"]', ""))
    with pytest.raises(InputError, match="has changed"):
        run_experiment(bench.settings, alone)
    assert not Home(bench.settings.home_path).index_variants.exists()
