"""Windows of models: what does not fit is said before it is asked; nothing is cut in silence."""

from __future__ import annotations

import importlib
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from index_process import by_model
from llm_helpers import ask, said
from model_server import Fault, echo
from query_fixture import publish, settings_for
from strict_server import Served, StrictServer

from conftest import Engine
from graphrag_pipeline import Index, Settings
from graphrag_pipeline.core.errors import ConfigError, InputError
from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.llm import LlmOptions, ModelError
from graphrag_pipeline.llm.configured import model_options
from graphrag_pipeline.llm.windows import check_fits, evidence_room, history_tokens, window_of
from graphrag_pipeline.planning.plan import plan_run
from graphrag_pipeline.planning.windows import check_windows
from graphrag_pipeline.query import open_release
from graphrag_pipeline.query.methods.registry import METHODS
from graphrag_pipeline.query.results import render_context
from graphrag_pipeline.query.writing.map_reduce import Scored, render_answers, within
from graphrag_pipeline.systems.ircot.method import IrcotParameters, fitted

CORPUS = Path(__file__).parents[1] / "examples" / "corpus" / "press"
OWN = "http://127.0.0.1:9/v1"


def small(window: int = 4096, **sections: Any) -> Settings:
    llm = {"model": "llama3.1", "base_url": OWN, "context_window": window}
    return Settings(profile="llm", llm=llm, **sections)


@pytest.mark.parametrize(
    ("model", "window"),
    [("gpt-4.1-mini", 1_047_576), ("gpt-4", 8192), ("gpt-4o-2024-08-06", 128_000),
     ("openai/gpt-4o-mini", 128_000), ("o3-mini", 200_000), ("llama3.1", None)],
)  # fmt: skip
def test_a_window_is_known_by_the_models_name(model: str, window: int | None) -> None:
    assert window_of(LlmOptions(model=model)) == window
    assert window_of(LlmOptions(model=model, context_window=500)) == 500


@pytest.mark.parametrize(
    ("sections", "setting"),
    [
        ({}, "reports.max_context_tokens"),
        ({"chunks": {"size": 3000}}, "chunks.size"),
        ({"hierarchies": {"raptor": True}}, "hierarchies.raptor_cluster_tokens"),
    ],
)
def test_what_cannot_fit_is_refused_with_a_number_that_does(
    sections: dict[str, Any], setting: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        check_windows(small(**sections))
    line = next(line for line in str(refused.value).splitlines() if line.startswith(setting))
    size = int(line.split(f"set {setting} to ")[1].split()[0])
    section, _, name = setting.partition(".")
    rest = {"reports": {"max_context_tokens": 500}, "hierarchies": {}}
    check_windows(small(**(rest | {section: {**sections.get(section, {}), name: size}})))
    with pytest.raises(ConfigError, match=f"{setting} = {size + 1}"):
        check_windows(small(**(rest | {section: {**sections.get(section, {}), name: size + 1}})))


def test_where_the_room_for_answers_is_the_cause_less_of_it_is_offered() -> None:
    def settings(answer: int) -> Settings:
        llm = {"model": "m", "base_url": OWN, "context_window": 4096, "max_output_tokens": answer}
        rest = {"reports": {"max_words": 150, "max_context_tokens": 500}}
        return Settings(profile="llm", llm=llm, chunks={"size": 600}, **rest)

    with pytest.raises(ConfigError) as refused:
        check_windows(settings(3000))
    (line,) = str(refused.value).splitlines()
    answer = int(line.split("set llm.max_output_tokens to ")[1].split()[0])
    check_windows(settings(answer))
    with pytest.raises(ConfigError, match=r"chunks\.size = 600"):
        check_windows(settings(answer + 2))
    # Whatever the answer, 3,000 tokens of text and the instructions do not fit.
    with pytest.raises(ConfigError) as refused:
        check_windows(small(chunks={"size": 3000}))
    assert "max_output_tokens" not in str(refused.value)


def test_a_report_longer_than_an_answer_may_be_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"set max_words to 400 or less"):
        check_windows(Settings(profile="llm", llm={"max_output_tokens": 600}))


def test_a_plan_refuses_what_would_not_fit_and_says_where_a_window_is_not_known(
    tmp_path: Path,
) -> None:
    engine = by_model(tmp_path, OWN, llm={"model": "llama3.1"})
    engine.write({"a.txt": "Alice Smith met Bob Jones."})
    said_of = plan_run(engine.workspace, engine.inbox).assumptions
    assert any("window of llama3.1 is not known: set llm.context_window" in s for s in said_of)
    engine = Engine(tmp_path, small(home=str(tmp_path / ".graphrag")))
    with pytest.raises(ConfigError, match=r"reports\.max_context_tokens"):
        plan_run(engine.workspace, engine.inbox)


def test_a_prompt_beyond_the_window_is_not_sent(tmp_path: Path) -> None:
    with StrictServer() as server:
        with pytest.raises(ModelError, match=r"do not fit into the window of llama3\.1") as refused:
            ask(server, tmp_path, "word " * 300, model="llama3.1", context_window=200)
        assert server.requests == []
        ask(server, tmp_path, "word " * 150, model="llama3.1", context_window=200)
        assert len(server.requests) == 1
    assert "word" not in str(refused.value)


def test_a_prompt_that_a_server_cuts_in_silence_is_an_error_and_nothing_is_kept(
    tmp_path: Path,
) -> None:
    served = Served(window=2048, most_answer=20, cuts_prompts=True)
    with StrictServer(lambda messages: "fine", models={"llama3.1": served}) as server:
        for _ in range(2):
            with pytest.raises(ModelError, match=r"read 2,048 of about 6,\d{3} tokens"):
                ask(server, tmp_path, "word " * 6000, model="llama3.1")
        assert len(server.requests) == 2
        assert ask(server, tmp_path, "word " * 1500, model="llama3.1").text == "fine"


def test_tokens_that_a_server_had_kept_and_does_not_count_are_no_cut_prompt(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 40, "completion_tokens": 3, "total_tokens": 43}
    with StrictServer(faults=lambda request: Fault(reply=lambda body: body | {"usage": usage})) as (
        server
    ):
        text = "word " * 3000
        assert ask(server, tmp_path, text, model="llama3.1").text == echo(said(text))


def test_evidence_is_what_the_reader_has_room_for(tmp_path: Path) -> None:
    settings = small(8192)
    room = evidence_room(settings, model_options(settings, "answers"))
    assert room is not None
    for name in ("local", "hirag", "lightrag"):
        method = METHODS[name]
        assert method.parametrise({}, settings).max_context_tokens == room
        assert method.parametrise({"max_context_tokens": 700}, settings).max_context_tokens == 700
        with pytest.raises(InputError, match=f"has room for {room}; set llm.context_window"):
            method.parametrise({"max_context_tokens": room + 1}, settings)
        extractive = small(8192, query={"answers": "extractive"})
        default = method.parametrise({}, extractive).max_context_tokens
        assert default == method.parametrise({}, Settings()).max_context_tokens > room
    assert history_tokens(model_options(settings, "answers")) < 4000
    assert history_tokens(LlmOptions()) == 4000


def test_a_context_is_counted_as_the_model_that_reads_it_counts(tmp_path: Path) -> None:
    publish(tmp_path, documents={"A": "Скрудж считал деньги. Марли умер. " * 40})
    settings = settings_for(tmp_path)
    by_llm = settings.query.model_copy(update={"answers": "llm"})
    shown = []
    for given in (settings, settings.model_copy(update={"query": by_llm})):
        with open_release(tmp_path, settings=given) as release:
            method = METHODS["basic"]
            p = method.parametrise({"max_context_tokens": 300}, given)
            records = method.retrieve(release, "Марли", p)
            assert count_tokens([render_context(records)], release.encoding)[0] <= 300
            shown.append(len(records))
    # The newer encoding needs fewer tokens for Cyrillic.
    assert shown[1] > shown[0]


def test_the_points_of_a_reduce_step_fit_with_their_headers() -> None:
    parts = [Scored("word " * n, 90, ()) for n in (500, 40, 40, 40)]
    for first in (0, 1):
        for budget in range(30, 200, 7):
            fitting = within(parts[first:], budget, "o200k_base")
            assert fitting
            assert count_tokens([render_answers(fitting)], "o200k_base")[0] <= budget


def test_reasoning_leaves_each_kind_of_record_its_share(tmp_path: Path) -> None:
    publish(tmp_path)
    with open_release(tmp_path, settings=settings_for(tmp_path)) as release:
        p = METHODS["local"].parametrise({}, release.settings)
        records = METHODS["local"].retrieve(release, "Scrooge and Marley", p)
        of_kind = {r.kind: r for r in records}
        for n_chunks in (1, 3, 9):
            chunk = replace(of_kind["chunk"], text="Scrooge was a miser. " * 60)
            many = [replace(chunk, id=str(n)) for n in range(n_chunks)]
            rest = [r for r in records if r.kind != "chunk"]
            kept = fitted(release, [*many, *rest], IrcotParameters(max_context_tokens=1500))
            assert {r.kind for r in kept} == of_kind.keys()
            assert count_tokens([render_context(kept)])[0] <= 1500


@pytest.mark.usefixtures("plain_stores")
def test_the_local_profile_goes_through_a_server_that_cuts_what_does_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(CORPUS.parents[2])
    played_answer = importlib.import_module("benchmarks.played_answers").played_answer
    folder = tmp_path / "docs"
    folder.mkdir()
    for file in sorted(CORPUS.iterdir())[:3]:
        shutil.copy(file, folder)
    served = Served(window=8192, cuts_prompts=True)
    with StrictServer(played_answer, models={"llama3.1": served}) as server:
        settings = Settings(
            home=str(tmp_path / "home"),
            profile="local",
            extraction={"claims": True},
            llm={"base_url": server.base_url},
        )
        index = Index(settings)
        assert [stage.cost for stage in index.plan(folder).stages] == [0.0] * 4
        index.update(folder)
        with index.open() as engine:
            for name in ("local", "global", "basic", "drift"):
                assert engine.answer("Who paid for the harbour?", name).generated
        chats = [request.body for request in server.requests if "messages" in request.body]
    assert {body["model"] for body in chats} == {"llama3.1"}
    for body in chats:
        prompt = sum(count_tokens([message["content"] for message in body["messages"]]))
        assert prompt + body["max_tokens"] <= 8192


def test_a_prompt_and_its_answer_may_take_a_window_to_its_last_token() -> None:
    options = model_options(small(), "answers")
    prompt = "word " * 1000
    with pytest.raises(ModelError) as caught:
        check_fits(options, prompt, 4096)
    (counted,) = re.findall(r"a prompt of ([\d,]+) tokens", str(caught.value))
    room = 4096 - int(counted.replace(",", ""))
    # A server puts marks around a prompt, which take some tokens, too.
    assert room < 4096 - count_tokens([prompt])[0]
    check_fits(options, prompt, room)
    for text, answer in ((prompt, room + 1), ("short", 4096)):
        with pytest.raises(ModelError, match=r"do not fit into the window of llama3\.1 \(4,096\)"):
            check_fits(options, text, answer)
