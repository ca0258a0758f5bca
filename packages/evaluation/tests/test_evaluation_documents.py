"""Questions that are each about one document, asked of an index of it alone."""

from __future__ import annotations

import importlib
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from artefacts import copy_of
from graphrag_evaluation.evaluating import plan_experiment, run_experiment
from graphrag_evaluation.experiment import Assertions, Experiment, experiment_of
from graphrag_evaluation.presets.experiment_results import ExperimentFindings
from graphrag_evaluation.presets.tables import tables_of_experiment
from graphrag_evaluation.questions.datasets import read_questions, write_documents
from graphrag_evaluation.store import EvaluationStore
from strict_server import StrictServer
from typer.testing import CliRunner

from graphrag_pipeline import Index, Settings
from graphrag_pipeline.cli.app import app
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.llm import BudgetExceededError
from graphrag_pipeline.llm.ledger import calls_since
from graphrag_pipeline.query import QueryEngine

TEXTS = {
    "mill.txt": "Oskar Kovarna built the mill at Tarn. Oskar Kovarna met Dora Green at the mill.",
    "bridge.txt": "Dora Green built the bridge at Orlen. Dora Green met Emil Black at the bridge.",
    "ferry.txt": "Emil Black owned the ferry. Max Miller paid Emil Black for the ferry at Orlen.",
}
ASKED = [
    {"question": "Who built it?", "answers": ["Oskar Kovarna"], "document": "mill.txt",
     "passages": [{"title": "mill"}]},
    {"question": "Who built it?", "answers": ["Dora Green"], "document": "bridge"},
    {"question": "Who met Dora Green?", "answers": ["Oskar Kovarna"], "document": "mill"},
]  # fmt: skip
pytestmark = pytest.mark.slow


@dataclass
class Corpus:
    """Documents, questions about them, and the settings of the index of all."""

    folder: Path
    questions: Path
    settings: Settings

    def experiment(self, methods: Sequence[str] = ("bm25", "local"), **more: Any) -> Experiment:
        more = {"per_document": True, **more}
        return experiment_of("apart", str(self.questions), methods, **more)

    @property
    def folders(self) -> set[str]:
        return {folder.name for folder in Home(self.settings.home_path).indexes_of_documents()}

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with EvaluationStore(self.settings.home_path).read() as con:
            return con.execute(sql).fetchall()

    def spent(self) -> int:
        """Calls that were paid in all homes."""
        homes = [self.settings.home_path, *Home(self.settings.home_path).indexes_of_documents()]
        return sum(len(calls.filter(~calls["cached"])) for calls in map(calls_since, homes))


def corpus(place: Path, settings: Settings) -> Corpus:
    folder = place / "docs"
    folder.mkdir(parents=True)
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    questions = place / "asked.jsonl"
    questions.write_text("".join(f"{json.dumps(entry)}\n" for entry in ASKED))
    Index(settings).update(folder)
    return Corpus(folder, questions, settings)


@pytest.fixture
def plain(plain_stores: None, tmp_path: Path) -> Corpus:
    copy_of("documents", lambda made: corpus(made, in_folder(made)), tmp_path)
    return Corpus(tmp_path / "docs", tmp_path / "asked.jsonl", in_folder(tmp_path))


def in_folder(place: Path) -> Settings:
    return Settings(home=str(place / "home"))


@pytest.fixture
def played(tmp_path: Path) -> Iterator[tuple[Corpus, StrictServer]]:
    answer = importlib.import_module("benchmarks.played_answers").played_answer
    with pytest.MonkeyPatch.context() as patch, StrictServer(answer) as server:
        patch.setenv("OPENAI_API_KEY", "sk-test")
        settings = Settings(
            profile="llm",
            home=str(tmp_path / "home"),
            llm={"base_url": server.base_url, "retry_seconds": 0.005},
        )
        yield corpus(tmp_path, settings), server


def test_each_question_is_answered_from_its_own_document_alone(plain: Corpus) -> None:
    planned = plan_experiment(plain.settings, plain.experiment())
    assert (planned.questions, planned.to_make, planned.errors) == (3, 6, ())
    assert "2 to make" in planned.notes[0]
    assert not plain.folders
    done = run_experiment(plain.settings, plain.experiment())
    assert (done.answered.made, done.answered.failed) == (6, {})
    assert len(plain.folders) == 2
    # Blocks of the usual size would make these 11 and 7 MB.
    for folder in Home(plain.settings.home_path).indexes_of_documents():
        files = ("index.duckdb", "published.duckdb")
        assert sum((folder / name).stat().st_size for name in files) < 6e6
    other = {"mill": ("bridge", "ferry"), "mill.txt": ("bridge", "ferry"), "bridge": ("ferry",)}
    for document, context in plain.rows("SELECT document, context FROM answers"):
        assert not any(name in str(context) for name in other[str(document)])
    # Of the same question, each document's answer is scored by its own gold answer.
    scores = dict(
        plain.rows(
            """SELECT a.document, s.value FROM experiment_scores s JOIN answers a USING (answer_id)
               WHERE metric = 'answer_in_context' AND condition = 'local'
               AND a.question = 'Who built it?'"""
        )
    )
    assert scores == {"mill.txt": 1.0, "bridge": 1.0}
    # Results know their index, and its ids are those of the index of all.
    releases = {str(release) for (release,) in plain.rows("SELECT DISTINCT release FROM answers")}
    assert len(releases) == 2
    with QueryEngine(plain.settings.home_path, settings=plain.settings) as engine:
        known = {row["id"] for row in engine.index.rows("SELECT id FROM chunks")}
    chunks = {str(id) for (id,) in plain.rows("SELECT unnest(chunk_ids) FROM answers")}
    assert chunks <= known
    again = run_experiment(plain.settings, plain.experiment())
    assert (again.answered.made, again.answered.reused) == (0, 6)
    assert "0 made now" in again.notes[0]


def test_a_changed_document_rebuilds_its_index_and_a_removed_one_loses_it(plain: Corpus) -> None:
    experiment = plain.experiment(["bm25"])
    run_experiment(plain.settings, experiment)
    before = plain.folders
    (plain.folder / "mill.txt").write_text("Oskar Kovarna built two mills at Tarn for Dora Green.")
    Index(plain.settings).update(plain.folder)
    done = run_experiment(plain.settings, experiment)
    assert (done.answered.made, done.answered.reused) == (2, 1)
    assert "1 made now" in done.notes[0]
    assert "1 removed" in done.notes[0]
    assert len(plain.folders & before) == 1
    only = plain.questions.with_name("only.jsonl")
    only.write_text(f"{json.dumps(ASKED[1])}\n")
    fewer = experiment_of("only", str(only), ["bm25"], per_document=True)
    assert "1 of documents not asked about stay" in run_experiment(plain.settings, fewer).notes[0]
    (plain.folder / "mill.txt").unlink()
    index = Index(plain.settings)
    kept = len(plain.folders)
    told = index.forget(plain.folder / "mill.txt")
    assert [name for name in told.dropped_files if name.startswith("document_indexes/")]
    assert len(plain.folders) == kept - 1
    left = b"".join(
        path.read_bytes()
        for path in Home(plain.settings.home_path).document_indexes.rglob("*")
        if path.is_file()
    )
    assert b"Kovarna built" not in left
    # What was asked of documents that stay is still there.
    assert plain.rows("SELECT DISTINCT experiment FROM experiments") == [("only",)]


def test_a_model_is_paid_once_whichever_index_needs_it(
    played: tuple[Corpus, StrictServer], tmp_path: Path
) -> None:
    whole, server = played
    whole.questions.write_text(json.dumps(ASKED[0]))
    experiment = whole.experiment(("local",), assertions=Assertions(replicates=1))
    planned = plan_experiment(whole.settings, experiment)
    stages = {stage.stage: stage.calls for stage in planned.stages}
    assert "document indexes: extractions" not in stages
    assert stages["document indexes: community_reports"] > 0
    done = run_experiment(whole.settings, experiment)
    assert done.answered.made == 1
    extracted = [
        len(calls.filter((calls["stage"] == "extractions") & ~calls["cached"]))
        for calls in map(calls_since, Home(whole.settings.home_path).indexes_of_documents())
    ]
    assert extracted == [0]
    assert whole.rows("SELECT count(*) FROM answers WHERE citations_resolved > 0") != [(0,)]
    # Indexes and answers that are lost are made again from what was paid: in the home of all.
    spent, requests = whole.spent(), len(server.requests)
    for folder in Home(whole.settings.home_path).indexes_of_documents():
        shutil.rmtree(folder)
    with EvaluationStore(whole.settings.home_path).transaction() as con:
        con.execute("DELETE FROM answers")
    assert run_experiment(whole.settings, experiment).answered.made == 1
    assert len(server.requests) == requests
    assert spent > 0


def test_the_budget_bounds_the_indexes_too_and_a_larger_one_goes_on(
    played: tuple[Corpus, StrictServer],
) -> None:
    whole, server = played
    limited = whole.settings.llm.model_copy(update={"max_tokens": 1800})
    settings = whole.settings.model_copy(update={"llm": limited})
    with pytest.raises(BudgetExceededError):
        run_experiment(settings, whole.experiment(("local",)))
    # Gone on with from where it ended.
    n_requests = len(server.requests)
    done = run_experiment(whole.settings, whole.experiment(("local",)))
    assert done.answered.made + done.answered.reused == 3
    assert len(server.requests) > n_requests


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"question": "Who?"}, r"asked.jsonl, line 2: 'Who\?' names no document"),
        ({"question": "Who?", "document": "no.txt"}, r"line 2: no document 'no.txt' is in the"),
        ({"question": "Who?", "document": "twice"}, r"line 2: 2 documents are called 'twice'"),
    ],
)
def test_a_question_without_its_document_is_told_by_file_and_line(
    plain: Corpus, entry: dict[str, str], said: str
) -> None:
    for name in ("a", "b"):
        (plain.folder / name).mkdir()
        (plain.folder / name / "twice.txt").write_text(f"Text of {name}, which is short.")
    Index(plain.settings).update(plain.folder)
    plain.questions.write_text(f"{json.dumps(ASKED[0])}\n{json.dumps(entry)}\n")
    with pytest.raises(InputError, match=said):
        plan_experiment(plain.settings, plain.experiment())
    with pytest.raises(InputError, match=said):
        run_experiment(plain.settings, plain.experiment())
    assert not plain.folders


def test_the_preset_asks_documents_apart_where_the_questions_name_them(plain: Corpus) -> None:
    experiment = plain.experiment((), preset="rag_vs_graphrag", per_document=None)
    done = run_experiment(plain.settings, experiment)
    assert "2 documents with an index each" in done.notes[0]
    # What is lacking of each index is said once.
    errors = done.answered.errors
    assert set(errors) == {
        f"{name}, 2 documents" for name in ("IRCoT+RAG", "IRCoT+GraphRAG", "HippoRAG2")
    }
    assert "has no facts" in errors["HippoRAG2, 2 documents"]
    assert any(
        line.startswith("IRCoT+RAG, 2 documents: ircot needs a language model")
        for line in plan_experiment(plain.settings, experiment).errors
    )
    store = EvaluationStore(plain.settings.home_path)
    with store.read() as con:
        assert tables_of_experiment(con, "apart")
        assert ExperimentFindings(con, "apart").fact("corpus", "documents") == 2
    whole = plain.experiment((), preset="rag_vs_graphrag", per_document=False)
    assert not run_experiment(plain.settings, whole).notes


def test_the_command_has_it(plain: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHRAG_HOME", str(plain.settings.home_path))
    options = ["-q", str(plain.questions), "-m", "bm25", "--per-document"]
    runner = CliRunner()
    assert "2 to make" in runner.invoke(app, ["eval", "plan", *options]).output
    assert "2 made now" in runner.invoke(app, ["eval", "run", *options]).output
    file = plain.questions.with_name("experiment.toml")
    file.write_text('questions = "asked.jsonl"\nmethods = ["bm25"]\nper_document = true\n')
    assert "0 made now" in runner.invoke(app, ["eval", "run", str(file)]).output
    other = file.with_name("other.toml")
    table = '[[condition]]\nname = "x"\nmethod = "bm25"\nhome = "elsewhere"\n'
    other.write_text(f'questions = "asked.jsonl"\nper_document = true\n{table}')
    assert "it names an index" in runner.invoke(app, ["eval", "run", str(other)]).output


MEETING = {
    "general_query_list": [{"query": "Summarize the meeting.", "answer": "They met."}],
    "meeting_transcripts": [{"speaker": "Ann", "content": "We begin ."}],
}
STORY = {
    "metadata": {"passage_id": "52845"},
    "document": "It was a dark night.",
    "questions": [{"question_text": "What is it about?", "responses": [{"response_text": "A"}]}],
}
PAGE = {
    "document_title": "AC/DC",
    "document_text": "<H1> AC/DC </H1> <P> A band . </P>",
    "question_text": "what is ac/dc",
    "annotations": [],
}


def test_data_sets_name_their_documents_and_write_them(tmp_path: Path) -> None:
    lines = tmp_path / "test.jsonl"
    lines.write_text("".join(f"{json.dumps(entry)}\n" for entry in (MEETING, MEETING)))
    assert [q.document for q in read_questions(lines)] == ["test-1", "test-2"]
    assert len({q.id for q in read_questions(lines)}) == 2
    single = tmp_path / "Bdb001.json"
    single.write_text(json.dumps(MEETING))
    assert [q.document for q in read_questions(single)] == ["Bdb001"]
    story = tmp_path / "story.jsonl"
    story.write_text(json.dumps(STORY))
    assert [q.document for q in read_questions(story)] == ["52845"]
    book = tmp_path / "B01.json"
    book.write_text(json.dumps({"Q1": {"Question": "Who?", "Aspect": "plot", "Complexity": "sh"}}))
    assert [q.document for q in read_questions(book)] == ["B01"]
    page = tmp_path / "nq.jsonl"
    page.write_text(json.dumps(PAGE))
    assert [q.document for q in read_questions(page)] == ["AC/DC"]
    written = [
        file.name
        for source in (lines, single, story, page)
        for file in write_documents(source, tmp_path / "out")
    ]
    assert written == ["test-1.txt", "test-2.txt", "Bdb001.txt", "52845.txt", "AC_DC.txt"]
    assert (tmp_path / "out" / "test-1.txt").read_text() == "Ann: We begin ."
    assert (tmp_path / "out" / "AC_DC.txt").read_text() == "AC/DC\nA band ."
    with pytest.raises(InputError, match="holds no document"):
        write_documents(book, tmp_path / "out")


def test_a_page_is_found_by_the_name_its_file_was_given(tmp_path: Path) -> None:
    page = tmp_path / "nq.jsonl"
    page.write_text(json.dumps(PAGE))
    write_documents(page, tmp_path / "docs")
    settings = Settings(home=str(tmp_path / "home"))
    Index(settings).update(tmp_path / "docs")
    done = run_experiment(settings, experiment_of("p", str(page), ["bm25"], per_document=True))
    assert done.answered.made == 1
