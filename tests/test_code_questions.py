"""Questions for names of code, answered by what defines them, or by who uses them."""

from __future__ import annotations

import pytest

from graphrag_pipeline import Index, Settings
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query.names_of_code import names_of_code
from graphrag_pipeline.query.question import AnalysedQuestion

PYTHON = '''"""Berths, and who may lie at them."""

from tides import depth_at

_FREE = 3
MOST_DAYS = 14


class BerthPlan:
    """Which ship lies where, and until when.

    A plan is for one quay.
    """

    def move_to(self, ship: str) -> None:
        depth_at(ship)


def may_lie(
    ship: str,
    days: int,
) -> bool:
    """Whether a ship may lie so long. It may go when the tide allows it."""
    return days <= MOST_DAYS


def book(ship: str, days: int) -> str:
    if not may_lie(ship, days):
        return "refused"
    return ship
'''
GO = """package tides

// DepthAt says how deep the water is at a quay.
//
// It reads the gauge, which may be out of order.
func (g *Gauge) DepthAt(quay string) float64 {
\treturn g.read(quay) - g.keel()
}

// Gauge measures the tide.
type Gauge struct {
\tport string
}
"""
JAVASCRIPT = """var quay = require('quay');

/**
 * Close the gate of a lock.
 *
 * @param {String} gate
 */

lock.closeGate = function closeGate(gate) {
  quay.warn(gate);
};

module.exports = lock;
lock.closeGate('north');
"""
C = """/* Fill a lock. */
PORT_API(int) fill_lock(lock *which, int level)
{
    if (fill_lock(which, 3)) {
        return 1;
    }
    return 0;
}
"""
CLASS = """export class Ferry {
  /** Leave the quay when all are aboard. */
  async castOff(crew): Promise<void> {
    if (this.castOff(crew)) {
      throw new TooLate(crew);
    }
  }
}
"""
MANUAL = """# Manual

A ship may lie at a quay, and may go when it likes. The master may lie to nobody.

We call `may_lie` before each booking.
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> QueryEngine:
    folder = tmp_path_factory.mktemp("code")
    docs = folder / "docs"
    docs.mkdir()
    texts = {
        "berths.py": PYTHON,
        "tides.go": GO,
        "lock.js": JAVASCRIPT,
        "fill.c": C,
        "ferry.ts": CLASS,
        "manual.md": MANUAL,
        **{f"notes{n}.md": f"# Note {n}\n\nQuay {n} may lie idle: ships may go." for n in range(9)},
    }
    for name, text in texts.items():
        (docs / name).write_text(text)
    index = Index(folder / "home", Settings(chunks={"size": 60, "overlap": 0}))
    index.update(docs)
    return index.open()


@pytest.mark.parametrize(
    ("question", "first"),
    [
        (
            "Where is BerthPlan defined?",
            "class BerthPlan — Which ship lies where, and until when.",
        ),
        (
            "What does may_lie do?",
            "def may_lie(ship: str, days: int) -> bool — Whether a ship may lie so long.",
        ),
        ("What is MOST_DAYS?", "MOST_DAYS = 14"),
        (
            "What does `DepthAt` return?",
            "func (g *Gauge) DepthAt(quay string) float64 — "
            "DepthAt says how deep the water is at a quay.",
        ),
        (
            "What does DepthAt read of a gauge?",
            "func (g *Gauge) DepthAt(quay string) float64 — "
            "DepthAt says how deep the water is at a quay. "
            "It reads the gauge, which may be out of order.",
        ),
        (
            "What does lock.closeGate() do?",
            "lock.closeGate = function closeGate(gate) — Close the gate of a lock.",
        ),
        (
            "What does fill_lock do?",
            "PORT_API(int) fill_lock(lock *which, int level) — Fill a lock.",
        ),
        (
            "What does castOff do?",
            "async castOff(crew): Promise<void> — Leave the quay when all are aboard.",
        ),
    ],
)
@pytest.mark.parametrize("method", ["auto", "bm25"])
def test_what_a_name_of_code_is_says_its_definition(
    engine: QueryEngine, question: str, first: str, method: str
) -> None:
    answer = engine.answer(question, method=method)
    line = answer.text.split("\n- ")[1]
    assert line.strip() == f"{first} [1]"
    [citation] = [each for each in answer.citations if each.number == 1]
    head, _, comment = first.partition(" — ")
    assert head.partition("(")[0] in citation.text
    assert comment.partition(".")[0] in citation.text


def test_who_calls_a_function_is_the_lines_that_do(engine: QueryEngine) -> None:
    lines = engine.answer("Who calls may_lie?", method="bm25").text.split("\n- ")[1:]
    said = [line.rpartition(" [")[0] for line in lines]
    assert "if not may_lie(ship, days):" in said[:2]
    assert "We call may_lie before each booking." in said[:3]


def test_who_throws_an_error_is_the_line_that_does(engine: QueryEngine) -> None:
    lines = engine.answer("Who throws TooLate?", method="bm25").text.split("\n- ")[1:]
    assert lines[0].startswith("throw new TooLate(crew);")


def test_a_name_is_not_the_words_that_it_is_made_of(engine: QueryEngine) -> None:
    found = engine.retrieve("Who calls may_lie?", method="bm25", top_k=3)
    assert all("may_lie" in record.text for record in found.records[:3])


def test_what_is_written_as_prose_is_asked_as_before(engine: QueryEngine) -> None:
    answer = engine.answer("May a master lie?", method="bm25")
    assert answer.text.split("\n- ")[1].startswith("Manual: A ship may lie at a quay")


def test_a_question_of_thousands_of_names_is_soon_answered(engine: QueryEngine) -> None:
    question = " ".join(f"name_{number}" for number in range(3000))
    assert len(names_of_code(question)) == 8
    assert engine.answer(f"{question} may_lie", method="bm25").text
    assert names_of_code("x_" * 200) == []
    assert len(AnalysedQuestion(question).figures) == 50
