"""NovelQA's answers as its competition takes them: by book, in the order of its questions."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from evaluation_fixture import Filled, fill
from graphrag_evaluation.cli import app
from graphrag_evaluation.paper import paper_of
from graphrag_evaluation.presets.tables import tables_of
from graphrag_evaluation.questions.datasets import read_questions
from graphrag_evaluation.questions.novelqa import chosen, write_submission
from graphrag_evaluation.store import EvaluationStore
from typer.testing import CliRunner

from graphrag_pipeline.core.errors import InputError

OPTIONS = {"A": "11", "B": "9", "C": "Not 9", "D": "He wept"}
EMMA = {
    "Q0001": {"Question": "How many letters?", "Options": OPTIONS, "Aspect": "times",
              "Complexity": "mh"},
    "Q0002": {"Question": "Who proposes?", "Options": {"A": "Knightley", "B": "Elton"},
              "Aspect": "character", "Complexity": "sh"},
    "Q0003": {"Question": "Does it rain?", "Options": {"A": "Yes", "B": "No"},
              "Aspect": "plot", "Complexity": "dtl"},
}  # fmt: skip
SAID = {"How many": "The letters were 9 [1].", "Who": "(A) Knightley", "Does": "Nobody can say"}


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("B", "B"), ("b.", "B"), ("(C) Not 9", "C"), ("**D**", "D"), ("B: 9", "B"),
        ("The answer is C.", "C"), ("Answer: (A)", "A"), ("There were 11 of them.", "A"),
        ("It is not 9.", "C"), ("9 [Data: Sources (1)]", "B"), ("He wept, 11 times", ""),
        ("A man came", ""), ("I do not know", ""), ("", ""), ("Option E", ""), ("Be that so", ""),
    ],
)  # fmt: skip
def test_the_option_that_an_answer_chooses(answer: str, letter: str) -> None:
    assert chosen(answer, OPTIONS) == letter


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "NovelQA" / "Data" / "PublicDomain"
    folder.mkdir(parents=True)
    (folder / "B08.json").write_text(json.dumps(EMMA))
    (folder / "B09.json").write_text(json.dumps({"Q0009": EMMA["Q0003"]}))
    titles = {"B08": {"title": "Emma", "tokenlen": 1}, "B09": {"title": "Mrs. Dalloway"}}
    (tmp_path / "NovelQA" / "bookmeta.json").write_text(json.dumps(titles))
    return folder


def asked(home: Path, data: Path, format: str = "") -> None:
    """Let a condition have answered the questions on Emma, and none on Mrs. Dalloway."""
    questions = read_questions(data / "B08.json", format)
    fill(home, Filled("e", conditions=["RAG"], questions=questions))
    with EvaluationStore(home).transaction() as con:
        for beginning, text in SAID.items():
            con.execute(
                "UPDATE answers SET text = ? WHERE starts_with(question, ?)", [text, beginning]
            )


def unpacked(path: Path) -> dict[str, object]:
    with zipfile.ZipFile(path) as archive:
        return {name: json.loads(archive.read(name)) for name in archive.namelist()}


def test_letters_stand_by_title_in_the_order_of_the_questions(tmp_path: Path, data: Path) -> None:
    asked(tmp_path / "home", data)
    with EvaluationStore(tmp_path / "home").read() as con:
        written = write_submission(con, "e", "", data, tmp_path / "s.zip")
    letters = {"Emma": ["B", "A", ""], "Mrs. Dalloway": [""]}
    assert unpacked(tmp_path / "s.zip") == {"res_mc/res_mc.json": letters}
    assert (written.questions, written.unanswered, written.unread) == (4, 1, 1)


def test_whole_answers_are_written_where_no_options_were_shown(tmp_path: Path, data: Path) -> None:
    asked(tmp_path / "home", data, "novelqa-generative")
    with EvaluationStore(tmp_path / "home").read() as con:
        write_submission(con, "e", "RAG", data / "B08.json", tmp_path / "s.zip")
    said = ["The letters were 9.", "(A) Knightley", "Nobody can say"]
    assert unpacked(tmp_path / "s.zip") == {"res_gen/res_gen.json": {"Emma": said}}


def test_the_command_writes_the_file_and_says_what_is_empty(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHRAG_HOME", str(tmp_path / "home"))
    asked(tmp_path / "home", data)
    target = tmp_path / "s.zip"
    run = CliRunner().invoke(app, ["submission", str(data), "-o", str(target)])
    assert run.exit_code == 0, run.output
    assert "4 answers of RAG to 2 books" in " ".join(run.output.split())
    assert "as they have no answer: 1" in run.output
    assert target.is_file()
    with EvaluationStore(tmp_path / "home").read() as con, pytest.raises(InputError, match="RAG"):
        write_submission(con, "e", "other", data, target)
    (data / "B10.json").write_text(json.dumps([{"question": "Who?"}]))
    with EvaluationStore(tmp_path / "home").read() as con:
        with pytest.raises(InputError, match=r"B10\.json, entry 1: no question of NovelQA"):
            write_submission(con, "e", "RAG", data, target)
        with pytest.raises(InputError, match="asked no question of"):
            write_submission(con, "e", "RAG", data / "B09.json", target)


def test_tables_of_novelqa_say_where_its_gold_is(tmp_path: Path, data: Path) -> None:
    asked(tmp_path, data)
    with EvaluationStore(tmp_path).read() as con:
        by_number = {t.number: t for t in tables_of(con, "e", paper_of("rag_vs_graphrag"), {})}
    assert any("eval submission" in note for note in by_number["Table 3"].notes)
