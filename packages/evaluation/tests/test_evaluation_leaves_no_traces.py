"""What was forgotten stands in no evaluation, nor in the bytes of their file."""

from __future__ import annotations

from pathlib import Path

from evaluation_fixture import Filled, fill
from graphrag_evaluation.questions.question import Question
from traces import stores, traces_of

from conftest import Engine
from graphrag_pipeline.pipeline.updating import cut_batches, run_stages
from graphrag_pipeline.upkeep.purging import plan_purge, purge

ENTITY, QUESTION = "Zqvkaperson Zqvkbperson", "zqvkquestion6614"
SECRET = f"{ENTITY} met Alice Smith. Alice Smith paid {ENTITY} twice, said Bob Jones."
STAYING = "Alice Smith met Bob Jones. Bob Jones paid Carol Brown. Carol Brown met Alice Smith."


def update(engine: Engine) -> None:
    with engine.workspace.turn():
        cut_batches(engine.workspace, engine.inbox, remove_all=True)
        run_stages(engine.workspace)


def test_nothing_of_a_forgotten_document_is_left_of_evaluations(
    plain_stores: None, engine: Engine, tmp_path: Path
) -> None:
    home = engine.log.home
    engine.write({"a.txt": STAYING, "secret.txt": SECRET})
    update(engine)
    fill(home, Filled("zq", ("basic", "local"), [Question(f"Who is {QUESTION}?", (ENTITY,))]))
    before = traces_of(home, (ENTITY, QUESTION), tmp_path)
    assert "evaluation.duckdb" in stores(before[ENTITY])
    assert stores(before[QUESTION]) == {"evaluation.duckdb"}
    engine.write({"secret.txt": None})
    planned = plan_purge(engine.workspace, [str(engine.inbox / "secret.txt")])
    done = purge(engine.workspace, [str(engine.inbox / "secret.txt")])
    assert done.experiments == planned.experiments
    assert (done.experiments.kept, done.experiments.dropped) == (0, 1)
    assert traces_of(home, (ENTITY, QUESTION), tmp_path) == {ENTITY: set(), QUESTION: set()}
