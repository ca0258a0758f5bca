"""Algorithm 1 through the loopback server: so many calls, no question twice, and resumable."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from graphrag_evaluation.question_writing.generating import (
    Numbers,
    describe_corpus,
    generate_questions,
    plan_generation,
)
from graphrag_evaluation.question_writing.sampling import sample_passages
from graphrag_evaluation.questions.datasets import read_questions
from graphrag_evaluation.questions.question import get_questions, put_questions
from graphrag_evaluation.store import EvaluationStore
from model_server import ModelServer, unauthorized
from query_fixture import publish, settings_for
from typer.testing import CliRunner

from graphrag_pipeline.cli import app as cli
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.settings import LlmSettings, Settings
from graphrag_pipeline.llm.errors import ModelOutputError, TerminalModelError
from graphrag_pipeline.query import open_release

NUMBERS = Numbers(personas=2, tasks=2, questions=2)
TOPICS = ["harbours", "bridges", "operas", "dams", "ledgers", "eelgrass", "bells", "archives"]


class Mind:
    """A model that answers Algorithm 1; each task asks about two topics of its own."""

    def __init__(self):
        self.asked = Counter()
        self.shown = []

    def __call__(self, messages):
        system, said = messages[0]["content"], messages[1]["content"]
        if "different people" in system:
            return json.dumps({"personas": ["a sailor", {"who": "an editor", "wants": "news"}]})
        if "different tasks" in system:
            who = "sailor" if "a sailor" in said else "editor"
            return json.dumps({"tasks": [f"{who} plans", f"{who} writes"]})
        number = int(re.findall(r"Write (\d+) questions", system)[0])
        return json.dumps({"questions": self.questions(said, number)})

    def questions(self, said, number):
        task = ["sailor plans", "sailor writes", "editor plans", "editor writes"]
        place = next(n for n, each in enumerate(task) if each in said)
        self.asked[task[place]] += 1
        self.shown.append(said)
        return [f"How did {topic} change?" for topic in TOPICS[2 * place : 2 * place + number]]


@pytest.fixture
def settings(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    return Settings(home=str(tmp_path / "home"))


def generate(mind, settings, name="g", description="Old papers."):
    """Generate with a model of this mind; return what was made, and the server."""
    with ModelServer(mind) as server:
        given = settings.model_copy(update={"llm": LlmSettings(base_url=server.base_url)})
        store = EvaluationStore(settings.home_path)
        made = generate_questions(store, given, NUMBERS, name, description)
    return made, server


def test_each_person_has_tasks_and_each_task_questions_in_order(settings) -> None:
    made, server = generate(Mind(), settings)
    assert [question.text for question in made.questions] == [
        f"How did {topic} change?" for topic in TOPICS
    ]
    assert [(q.persona, q.task) for q in made.questions[::2]] == [
        ("a sailor", "sailor plans"), ("a sailor", "sailor writes"),
        ("an editor: news", "editor plans"), ("an editor: news", "editor writes"),
    ]  # fmt: skip
    assert len(server.requests) == NUMBERS.calls == 1 + 2 + 4
    assert all("Old papers." in request.text for request in server.requests)
    assert (made.duplicates, made.failures, made.stored) == (0, (), False)


def test_a_set_that_is_there_is_not_made_again_nor_made_into_another(settings) -> None:
    made, _ = generate(Mind(), settings)
    again, server = generate(Mind(), settings)
    assert (again.questions, again.stored, len(server.requests)) == (made.questions, True, 0)
    with pytest.raises(InputError, match="question set 'g' that was made otherwise"):
        generate(Mind(), settings, description="Other papers.")
    store = EvaluationStore(settings.home_path)
    with store.transaction() as con:
        put_questions(con, "g", made.questions[:1])
    with pytest.raises(InputError, match="made otherwise"):
        generate(Mind(), settings)


class Repeating(Mind):
    """The first answer to each task asks what the first task asked, or nearly."""

    def questions(self, said, number):
        own = super().questions(said, number)
        if "sailor plans" in said or "already:\n<context" not in said or "- " in said:
            return own
        return ["How did HARBOURS change", "And how did the harbours change?"]


def test_what_was_asked_before_is_left_out_and_asked_for_again(settings) -> None:
    mind = Repeating()
    made, server = generate(mind, settings)
    assert [q.text for q in made.questions] == [f"How did {topic} change?" for topic in TOPICS]
    assert made.duplicates == 6
    assert mind.asked == {"sailor plans": 1, "sailor writes": 2, "editor plans": 2,
                          "editor writes": 2}  # fmt: skip
    assert len(server.requests) == NUMBERS.calls + 3
    again = [said for said in mind.shown if "- How did HARBOURS change" in said]
    assert len(again) == 3


class Stubborn(Mind):
    """Every task has the same two questions, whatever it is told."""

    def questions(self, said, number):
        super().questions(said, number)
        return [f"How did {topic} change?" for topic in TOPICS[:2]][:number]


def test_rounds_are_bounded_and_a_set_that_lacks_some_is_asked_for_again(settings) -> None:
    mind = Stubborn()
    made, _ = generate(mind, settings)
    assert len(made.questions) == 2
    assert made.failures == ("6 questions are missing",)
    assert mind.asked["editor writes"] == 3
    with EvaluationStore(settings.home_path).read() as con:
        assert get_questions(con, "g") == list(made.questions)
    again, _ = generate(Mind(), settings)
    assert not again.stored


class Mumbling(Mind):
    """What it first says of each kind cannot be read, and one task's questions never."""

    def __call__(self, messages):
        said = messages[1]["content"]
        if "could not be read" not in said or "editor writes" in said:
            return "I would rather talk about the weather."
        return super().__call__(messages)


def test_a_malformed_answer_is_asked_for_once_more_and_costs_at_most_its_own(settings) -> None:
    made, server = generate(Mumbling(), settings)
    assert [q.text for q in made.questions] == [f"How did {t} change?" for t in TOPICS[:6]]
    assert made.failures[0] == "2 questions are missing"
    assert 'the list "questions"' in made.failures[1] or "no JSON object" in made.failures[1]
    # The seven calls, each twice, and the task that gave nothing twice more in two rounds more.
    assert len(server.requests) <= 2 * NUMBERS.calls + 4
    with pytest.raises(ModelOutputError):
        generate(lambda messages: "No.", settings, name="h")


def test_a_run_that_ends_early_goes_on_where_it_was(settings) -> None:
    with ModelServer(Mind(), faults=lambda r: unauthorized() if r.number > 3 else None) as server:
        given = settings.model_copy(update={"llm": LlmSettings(base_url=server.base_url)})
        store = EvaluationStore(given.home_path)
        with pytest.raises(TerminalModelError):
            generate_questions(store, given, NUMBERS, "g", "Old papers.")
        server.misbehave(())
        server.forget()
        made = generate_questions(store, given, NUMBERS, "g", "Old papers.")
        assert len(made.questions) == 8
        assert len(server.requests) == 4


def test_the_plan_counts_the_calls_and_numbers_have_bounds(settings) -> None:
    planned = plan_generation(settings, Numbers(), "Old papers.")
    assert planned.calls == 31
    assert 31 * 100 < planned.prompt_tokens < 31 * 1000
    assert planned.completion_tokens > 125 * 20
    with pytest.raises(InputError, match="from 1 to 100"):
        replace(NUMBERS, personas=0)


def test_the_command_describes_the_corpus_keeps_the_set_and_writes_it(
    tmp_path, monkeypatch
) -> None:
    home = publish(tmp_path / "home")
    with open_release(home, settings=settings_for(home)) as release:
        described = describe_corpus(release)
    assert described.startswith("A collection of ")
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    monkeypatch.setenv("GRAPHRAG_HOME", str(home))

    def run(*arguments):
        result = CliRunner().invoke(cli.app, ["eval", "questions", *arguments])
        assert result.exit_code == 0, result.output
        return result.stdout

    with ModelServer(Mind()) as server:
        monkeypatch.setenv("GRAPHRAG_LLM__BASE_URL", server.base_url)
        few = ("--personas", "2", "--tasks", "2", "--questions-per-task", "2")
        assert "7 calls of" in run("--plan", *few)
        assert server.requests == []
        out = tmp_path / "made.jsonl"
        assert "8 questions" in run("--generate", *few, "-o", str(out))
        assert all(described[:60] in request.text for request in server.requests)
    assert len(read_questions(out)) == 8
    assert [each["set"] for each in json.loads(run("--json"))] == ["generated"]
    run(str(out), "--set", "copy")
    copied, made = (json.loads(run("--set", name, "--json")) for name in ("copy", "generated"))
    assert copied["questions"] == made["questions"]


def test_questions_have_a_model_of_their_own_with_its_address_key_and_temperature(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("GRAPHRAG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-answers")
    monkeypatch.setenv("WRITERS_KEY", "sk-of-the-writer")
    few = ("--personas", "2", "--tasks", "2", "--questions-per-task", "2",
           "--description", "Old papers.")  # fmt: skip

    def run(*arguments):
        return CliRunner().invoke(cli.app, ["eval", "questions", *few, *arguments])

    with ModelServer(Mind()) as main, ModelServer(Mind()) as own:
        monkeypatch.setenv("GRAPHRAG_LLM__BASE_URL", main.base_url)
        writer = ("--model", "gpt-4o", "--base-url", own.base_url, "--temperature", "0.7",
                  "--api-key-env", "WRITERS_KEY")  # fmt: skip
        assert "7 calls of gpt-4o" in run("--plan", *writer).output
        assert "8 questions" in run("--generate", *writer).output
        sent = {(r.headers["authorization"], r.body["model"], r.body["temperature"])
                for r in own.requests}  # fmt: skip
        assert sent == {("Bearer sk-of-the-writer", "gpt-4o", 0.7)}
        assert (len(own.requests), main.requests) == (7, [])
        other = run("--generate", "--model", "gpt-4o")
        assert (other.exit_code, main.requests) == (2, [])
        assert "made otherwise" in other.output
    refused = {
        ("--generate", "--temperature", "3"): "--temperature: ",
        ("--generate", "--base-url", "http://me:word@host/v1"): "--base-url: must hold no password",
        ("--generate", "--api-key-env", "sk-secret"): "--api-key-env: must be",
        ("--model", "gpt-4o"): "with --generate or --plan alone",
    }
    for arguments, message in refused.items():
        result = run(*arguments)
        assert (result.exit_code, message in result.output) == (2, True), result.output
        assert "sk-secret" not in result.output


class Corpus:
    """A release of chunks alone."""

    def __init__(self, texts):
        self.texts = texts

    def rows(self, sql, *, most):
        assert "community" not in sql
        return [{"title": f"t{n}", "text": text} for n, text in enumerate(self.texts)][:most]


def test_a_sample_has_a_passage_of_every_part_of_the_corpus_the_largest_first():
    parts = {
        "tide harbour pilots ships moor quay anchor": 12,
        "soprano aria overture curtain orchestra stage": 8,
        "eelgrass meadow sediment larvae salinity": 4,
    }
    texts = [f"{words} {words} note {n}" for words, size in parts.items() for n in range(size)]
    corpus: Any = Corpus(texts)
    sampled = sample_passages(corpus, len(parts))
    assert [passage.text.split()[0] for passage in sampled] == ["tide", "soprano", "eelgrass"]
    assert sample_passages(corpus, 3) == sampled
    few: Any = Corpus(texts[:2])
    assert len(sample_passages(few, 3)) == 2


def test_a_description_quotes_documents_and_not_the_reports_of_the_index(tmp_path) -> None:
    home = publish(tmp_path / "home")
    with open_release(home, settings=settings_for(home)) as release:
        described = describe_corpus(release)
        summaries = release.rows("SELECT summary FROM community_reports")
        chunks = release.rows("SELECT text FROM chunks")
    assert summaries
    assert not any(row["summary"] in described for row in summaries)
    starts = [" ".join(row["text"].split())[:80] for row in chunks]
    assert sum(start in described for start in starts) >= min(len(starts), 5)
