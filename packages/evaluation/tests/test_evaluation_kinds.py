"""Kinds of questions: made from the corpus, with what their answers must say, and paid for once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from graphrag_evaluation.evaluating import plan_experiment, run_experiment
from graphrag_evaluation.experiment import experiment_of
from graphrag_evaluation.question_writing import question_sets
from graphrag_evaluation.question_writing.kinds import KINDS, WantedKinds
from graphrag_evaluation.questions.datasets import read_questions
from graphrag_evaluation.questions.question import Question
from graphrag_evaluation.steps import Assertions
from model_server import Messages, unauthorized
from query_fixture import DOCUMENTS, publish
from strict_server import StrictServer
from typer.testing import CliRunner

from benchmarks.played_answers import played_answer
from graphrag_pipeline.cli.app import app
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm.errors import TerminalModelError

LINE = re.compile(r"^(\d+)\. (?:\[place (\d+)\] )?(.+)$", re.MULTILINE)
TEXT = " ".join(" ".join(DOCUMENTS.values()).split())


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return publish(tmp_path / "home")


def settings_for(home: Path, server: StrictServer) -> Settings:
    llm = {"base_url": server.base_url, "max_retries": 0}
    return Settings.model_validate({"home": str(home), "llm": llm})


def draft(question: str, *statements: tuple[str, list[int]], names: tuple[str, ...] = ()) -> dict:
    assertions = [{"statement": text, "sources": numbers} for text, numbers in statements]
    return {"question": question, "names": list(names), "assertions": assertions}


def mind(messages: Messages) -> str:
    """A model that asks about every sentence, and of what it is shown says which lines it used."""
    system, shown = (message["content"] for message in messages[:2])
    lines = LINE.findall(shown)
    if "themes that run through" in system:
        listed = [int(n) for n, *_ in lines]
        themes = {"ghosts": [*listed, 999], "one place": listed[:1]}
        return json.dumps({"themes": [{"theme": t, "questions": n} for t, n in themes.items()]})
    if "different people" in system:
        return json.dumps({"personas": ["a reader", "a physicist"]})
    if "different tasks" in system:
        who = "reader" if "a reader" in shown else "physicist"
        return json.dumps({"tasks": [f"Scrooge for the {who}", f"radium for the {who}"]})
    if '"sources"' not in system:
        number = int(re.findall(r"Write (\d+) questions", system)[0])
        task = re.findall(r"Task: (.*)", shown)[0]
        return json.dumps({"questions": [f"Why {task}, number {n}?" for n in range(number)]})
    if "Write up to" in system and '{"assertions"' in system.split("in this form:")[1][:20]:
        return json.dumps({"assertions": draft("", ("It is so.", [1, 2]))["assertions"]})
    if "Theme:" in shown or "Name:" in shown:
        (first, *_), (last, *_) = lines[0], lines[-1]
        about = re.findall(r"(?:Theme|Name):\n<text id=\w+>\n(.*)", shown)[0]
        return json.dumps({"questions": [
            draft(f"What joins all of {about}?", ("Both.", [int(first), int(last)])),
            draft(f"What is one of {about}?", ("One.", [int(first)])),
        ]})  # fmt: skip
    names = tuple(name for name in ("Scrooge", "Paris", "Atlantis") if name in shown)
    drafts = [
        draft(f"What of: {text}", (f"It says: {text}", [int(n), 999]), names=(*names, "Atlantis"))
        for n, _, text in lines
    ]
    return json.dumps({"questions": [draft("What rests on nothing?", ("No.", [999])), *drafts]})


def make(
    home: Path, wanted: WantedKinds, say: Callable[[Messages], str] = mind
) -> tuple[question_sets.QuestionSet, int]:
    with StrictServer(say) as server:
        made = question_sets.make_kinds(settings_for(home, server), wanted)
        return made, len(server.requests)


def of_kind(questions: tuple[Question, ...], kind: str) -> list[Question]:
    return [question for question in questions if question.type == kind]


def test_each_kind_has_its_questions_with_assertions_that_rest_on_the_corpus(home: Path) -> None:
    made, calls = make(home, WantedKinds(KINDS, 3, personas=2, tasks=2))
    by_kind = {kind: of_kind(made.questions, kind) for kind in KINDS}
    assert {kind: len(of) for kind, of in by_kind.items()} == {
        "data-local": 3, "data-global": 1, "data-linked": 2, "activity-local": 3,
        "activity-global": 3,
    }  # fmt: skip
    assert [q.text for q in by_kind["data-global"]] == ["What joins all of ghosts?"]
    linked = ["What joins all of Scrooge?", "What joins all of Paris?"]
    assert [q.text for q in by_kind["data-linked"]] == linked
    for question in made.questions:
        assert question.assertions
        sources = [text for one in question.assertions for text in one.sources]
        assert sources
        assert all(text in TEXT for text in sources)
        assert {passage.text for passage in question.passages} == set(sources)
        assert bool(question.persona and question.task) == question.type.startswith("activity")
    assert not any("nothing" in question.text for question in made.questions)
    assert made.failures[:2] == (
        "data-global: 1 of 3 questions: no more that need several passages",
        "data-linked: 2 of 3 questions: no more that need several passages that share a name",
    )
    again, more = make(home, WantedKinds(KINDS, 3, personas=2, tasks=2))
    assert (again.questions, more) == (made.questions, calls)


def test_a_question_that_takes_several_passages_rests_on_several(home: Path) -> None:
    made, _ = make(home, WantedKinds(("data-global", "data-linked"), 3))
    assert {question.type for question in made.questions} == {"data-global", "data-linked"}
    for question in made.questions:
        assert len(question.passages) > 1


def test_no_question_is_there_twice_in_whatever_words_or_kind(home: Path) -> None:
    def repeating(messages: Messages) -> str:
        said = json.loads(mind(messages))
        for n, entry in enumerate(said.get("questions", ())):
            if isinstance(entry, dict):
                entry["question"] = ("Who was Bob Cratchit?", "And who WAS Bob Cratchit")[n % 2]
        return json.dumps(said)

    made, _ = make(home, WantedKinds(("data-local", "activity-local"), 3), repeating)
    assert len(made.questions) == 1
    assert made.duplicates > 3


def test_a_run_that_ends_early_pays_for_nothing_twice(home: Path) -> None:
    wanted = WantedKinds(KINDS, 3, personas=2, tasks=2)
    with StrictServer(mind, faults=lambda r: unauthorized() if r.number > 7 else None) as server:
        settings = settings_for(home, server)
        with pytest.raises(TerminalModelError):
            question_sets.make_kinds(settings, wanted)
        answered = server.answered
        server.misbehave(())
        server.forget()
        made = question_sets.make_kinds(settings, wanted)
        bought = len(server.requests)
    _, whole = make(publish(home.parent / "other"), wanted)
    assert len(made.questions) == 12
    assert (answered, answered + bought) == (7, whole)


def test_the_plan_tells_each_stage_and_asks_nothing(home: Path) -> None:
    with StrictServer(mind) as server:
        settings = settings_for(home, server)
        wanted = WantedKinds(KINDS, 3, personas=2, tasks=2)
        stages = {s.stage: s for s in question_sets.plan_of_kinds(settings, wanted)}
        assert server.requests == []
        question_sets.make_kinds(settings, wanted)
        calls = sum(stage.calls for stage in stages.values())
        assert calls - 4 <= len(server.requests) <= calls
        planned = sum(stage.prompt_tokens for stage in stages.values())
        assert server.prompt_tokens / 2 < planned < server.prompt_tokens * 3
    assert list(stages) == ["data-local", "themes", "data-global", "data-linked", "personas",
                            "tasks", "activity-local", "activity-global", "assertions"]  # fmt: skip
    assert all(stage.cost for stage in stages.values())
    few = question_sets.plan_of_kinds(settings, WantedKinds(("data-linked",), 3))
    assert [stage.stage for stage in few] == ["data-local", "data-linked"]


def test_an_experiment_checks_answers_by_the_assertions_that_questions_have(
    home: Path, tmp_path: Path
) -> None:
    make(home, WantedKinds(("data-local",), 2))
    met = json.dumps({"met": [1]})
    with StrictServer(lambda messages: met) as server:
        settings = settings_for(home, server)
        experiment = experiment_of("e", "generated", ["basic"], assertions=Assertions())
        stages = plan_experiment(settings, experiment).stages
        assert [(s.stage, s.calls) for s in stages] == [("assertions", 0), ("assertion checks", 2)]
        assert run_experiment(settings, experiment).gradings == 2
        assert all("It says: " in request.text for request in server.requests)
    own = tmp_path / "own.jsonl"
    own.write_text('{"question": "Who?", "assertions": ["Bob was.", {"statement": "A clerk."}]}')
    (question,) = read_questions(own)
    assert [one.statement for one in question.assertions] == ["Bob was.", "A clerk."]
    own.write_text('{"question": "Who?"}\n{"question": "Why?", "assertions": [{"sources": []}]}')
    with pytest.raises(InputError, match=r"own.jsonl, line 2: an assertion needs a statement"):
        read_questions(own)


def test_the_command_plans_makes_keeps_and_writes_kinds(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHRAG_HOME", str(home))
    monkeypatch.setenv("OPENAI_API_KEY", "test")

    def run(*arguments: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, ["eval", "questions", *arguments])
        assert result.exit_code == code, result.output
        return result.output

    out = tmp_path / "made.jsonl"
    with StrictServer(played_answer) as server:
        monkeypatch.setenv("GRAPHRAG_LLM__BASE_URL", server.base_url)
        few = ("--kind", "data-local, activity-local", "--number", "3")
        planned = run("--plan", *few)
        assert "data-local" in planned
        assert re.search(r"\d+ calls, [\d,]+ tokens, about \$0\.", planned)
        assert server.requests == []
        assert "with assertions" in run("--generate", *few, "-o", str(out))
    assert {question.type for question in read_questions(out)} == {"data-local", "activity-local"}
    kept = json.loads(run("--set", "generated", "--json"))["questions"]
    assert all(question["assertions"][0]["sources"] for question in kept)
    (listed,) = json.loads(run("--json"))
    assert (listed["questions"], listed["with_assertions"]) == (len(kept), len(kept))
    assert "no kind of questions 'data': choose of data-local" in run(
        "--generate", "--kind", "data", code=2
    )
    assert "--kind says what --generate or --plan is about" in run("--kind", "all", code=2)
    assert "must be from 1 to 100" in run("--plan", "--kind", "all", "--number", "0", code=2)
