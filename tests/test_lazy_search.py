"""The method `lazy`: what is tested, what that costs, and what comes of a model's misbehaviour."""

from __future__ import annotations

import asyncio
import math
import re
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_server import Fault, server_error
from query_fixture import publish
from query_player import LONG_WORD, NUMBERED, play, step_of
from strict_server import StrictServer

from benchmarks import lazy
from graphrag_pipeline import Index
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm import BudgetExceededError, ModelOutputError
from graphrag_pipeline.query import Answer, QueryEngine
from graphrag_pipeline.query.methods.registry import method_named
from graphrag_pipeline.query.writer import NOTHING_RELEVANT
from graphrag_pipeline.systems.lazy.chunk_tree import chunk_tree
from graphrag_pipeline.systems.lazy.descent import Descent

QUESTION = "Who was the clerk of Scrooge?"


# The descent


def walk(descent: Descent, is_relevant) -> list[list[str]]:
    waves = []
    while wave := descent.wave():
        waves.append(wave)
        descent.take({chunk for chunk in wave if is_relevant(chunk)})
    return waves


def test_communities_are_visited_by_their_best_chunk_and_left_after_misses_in_a_row() -> None:
    chunks = ["a1", "b1", "a2", "c1", "d1", "e1"]
    paths = [(ord(chunk[0]),) for chunk in chunks]
    descent = Descent(chunks, paths, budget=99, each=1, patience=2)
    assert walk(descent, lambda chunk: chunk == "a1") == [["a1", "b1"], ["c1"], ["a2"]]
    assert list(descent.relevant) == ["a1"]
    assert (descent.n_tested, descent.n_communities) == (4, 4)


def test_the_search_goes_on_below_communities_that_had_a_relevant_chunk_only() -> None:
    paths = {"x1": (1, 3), "y1": (2, 5), "x2": (1, 4), "x3": (1, 3), "y2": (2, 5), "x4": (1, 4)}
    descent = Descent(list(paths), list(paths.values()), budget=99, each=1, patience=3)
    waves = walk(descent, lambda chunk: chunk.startswith("x"))
    assert waves == [["x1", "y1"], ["x2", "x3"], ["x4"]]
    assert not descent.ended_by_budget


@given(
    st.integers(0, 2**16), st.integers(0, 40), st.integers(1, 4), st.integers(1, 4),
    st.integers(1, 30),
)  # fmt: skip
def test_no_more_is_tested_than_the_budget_and_nothing_twice(seed, n, each, patience, budget):
    chance = Random(seed)
    chunks = [str(number) for number in range(n)]
    paths = [(root := chance.randrange(3), 10 * root + chance.randrange(3)) for _ in chunks]
    relevant = {chunk for chunk in chunks if chance.random() < 0.5}
    descent = Descent(chunks, paths, budget=budget, each=each, patience=patience)
    tested = [chunk for wave in walk(descent, relevant.__contains__) for chunk in wave]
    assert len(tested) == len(set(tested)) == descent.n_tested <= budget
    assert set(descent.relevant) == relevant & set(tested)
    # One chunk a visit and one visit a wave: nothing else is tested, nor in another order.
    assert tested == _one_by_one(chunks, paths, relevant, budget, each, patience)


def _one_by_one(chunks, paths, relevant, budget, each, patience) -> list[str]:
    """The same search without waves: community after community."""
    path_of = dict(zip(chunks, paths, strict=True))
    tested: list[str] = []
    inside, depth = None, 0
    while True:
        groups: dict[int, list[str]] = {}
        for chunk in chunks:
            above = path_of[chunk][min(max(depth - 1, 0), 1)]
            if chunk not in tested and (inside is None or above in inside):
                groups.setdefault(path_of[chunk][min(depth, 1)], []).append(chunk)
        inside, misses = set(), 0
        for community, members in groups.items():
            visit = members[:each][: budget - len(tested)]
            tested += visit
            hit = bool(relevant.intersection(visit))
            inside |= {community} if hit else set()
            misses = 0 if hit else misses + 1
            if misses == patience or len(tested) == budget:
                break
        if not inside or len(tested) == budget:
            return tested
        depth += 1


# Questions


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    return publish(tmp_path_factory.mktemp("published"))


@pytest.fixture
def home(published):
    for file in published.glob(f"{Home(Path()).calls.name}*"):
        file.unlink()
    return published


def settings_for(home: Path, server: StrictServer, **llm) -> Settings:
    given = {"base_url": server.base_url, "max_retries": 0, **llm}
    return Settings.model_validate({"home": str(home), "query": {"answers": "llm"}, "llm": given})


def ask(home: Path, server: StrictServer, *, llm=None, **options) -> Answer:
    with QueryEngine(home, settings=settings_for(home, server, **(llm or {}))) as engine:
        return engine.answer(QUESTION, "lazy", **options)


def asked_of(server: StrictServer, step: str) -> list[str]:
    return [r.messages[-1]["content"] for r in server.asked() if step_of(r.messages) == step]


def n_shown(tests: list[str]) -> int:
    return sum(len(re.findall(r"^# ", text, re.MULTILINE)) for text in tests)


def test_a_question_is_broken_up_tested_claimed_and_reduced(home):
    with StrictServer(play) as server:
        found = ask(home, server)
        first, *tests, claims, last = [step_of(r.messages) for r in server.asked()]
    assert (first, set(tests), claims, last) == ("break up", {"test"}, "lazy_map", "reduce")
    assert found.generated
    assert found.failures == ()
    assert found.calls == {"break up": 1, "test": len(tests), "map": 1, "reduce": 1}
    steps = found.retrieval.steps
    assert [step.partition(":")[0] for step in steps[:3]] == [
        QUESTION, "Who was Bob Cratchit?", "Whom did Scrooge employ?",
    ]  # fmt: skip
    assert all("tested on" in step and "no branch was left" in step for step in steps[:3])


def test_the_benchmark_measures_what_is_neither_client_nor_stand_in(home):
    with StrictServer(lazy.mind) as server:
        settings = settings_for(home, server)
        with QueryEngine(home, settings=settings) as engine:
            taken = lazy.taken(engine, server, "lazy:budget=100", QUESTION, ["Bob Cratchit"])
        assert 0 < taken.calls == len(server.asked())
    assert 0 < taken.milliseconds < math.inf


def test_citations_are_the_sentences_found_and_what_stands_before_them(home):
    with StrictServer(play) as server:
        found = ask(home, server, sub_queries=0)
        relevant = {
            sentence
            for request in server.asked()
            if step_of(request.messages) == "test"
            for _, sentence in NUMBERED.findall(request.messages[-1]["content"])
            if {"clerk", "scrooge"}.intersection(LONG_WORD.findall(sentence.casefold()))
        }
    with QueryEngine(home, settings=Settings(home=str(home))) as engine:
        rows = engine.index.rows("SELECT id, text FROM documents")
    texts = {row["id"]: row["text"] for row in rows}
    assert found.citations
    for citation in found.citations:
        place = slice(citation.start_char, citation.end_char)
        assert texts[citation.document_id][place] == citation.text
        assert any(" ".join(citation.text.split()).endswith(sentence) for sentence in relevant)


@pytest.mark.parametrize("budget", [1, 2, 3, 5, 7])
def test_no_more_chunks_are_tested_than_the_budget_however_many_searches(home, budget):
    with StrictServer(play) as server:
        ask(home, server, budget=budget, each=2)
        assert n_shown(asked_of(server, "test")) <= budget
        assert len(asked_of(server, "break up")) == (budget > 1)


def test_a_call_has_no_more_chunks_and_tokens_than_it_may(home):
    with StrictServer(play) as server:
        ask(home, server, batch=2)
        assert max(n_shown([text]) for text in asked_of(server, "test")) == 2
        server.forget()
        ask(home, server, max_context_tokens=60)
        assert {n_shown([text]) for text in asked_of(server, "test")} == {1}


def test_a_chunk_longer_than_a_call_is_shown_in_part(home):
    with StrictServer(play) as server:
        ask(home, server, max_context_tokens=40, sub_queries=0, budget=1)
        (text,) = asked_of(server, "test")
    assert 0 < len("".join(sentence for _, sentence in NUMBERED.findall(text))) < 200


def test_equal_questions_have_equal_answers_whichever_call_ends_first(home):
    chance = Random(7)

    def late(request) -> Fault:
        return Fault(delay=chance.random() / 50)

    with StrictServer(play, faults=late) as server:
        answers = [ask(home, server, batch=1) for _ in range(3)]
    assert len({answer.text for answer in answers}) == 1
    assert len({answer.retrieval.steps for answer in answers}) == 1
    assert len({answer.citations for answer in answers}) == 1


def test_a_test_that_cannot_be_read_is_asked_again_then_left_out(home):
    def nonsense(request) -> Fault | None:
        is_test = step_of(request.messages) == "test"
        return (
            Fault(text="I cannot help with that.") if is_test and bad[0] in request.text else None
        )

    with StrictServer(play) as server:
        ask(home, server, batch=1, sub_queries=0)
        bad = [NUMBERED.findall(asked_of(server, "test")[0])[0][1]]
        server.forget()
        server.misbehave(nonsense)
        found = ask(home, server, batch=1, sub_queries=0)
    assert found.generated
    assert len(found.failures) == 1
    assert found.failures[0].startswith("test: ")


@pytest.mark.parametrize(
    ("said", "read"),
    [('{"sentences": [1', {1}), ('{"sentences": ["2", "[1]", 77, -3]}', {1, 2}), ("{}", None)],
)
def test_tests_are_read_leniently(home, said, read):
    def cut(messages: list[dict]) -> str:
        return said if step_of(messages) == "test" else play(messages)

    with StrictServer(cut) as server:
        if read is None:
            with pytest.raises(ModelOutputError, match="no answer of the test step could be read"):
                ask(home, server, sub_queries=0)
            return
        found = ask(home, server, sub_queries=0)
        assert found.generated
        assert found.failures == ()


def test_where_no_test_finds_anything_there_are_no_claims(home):
    def none(messages: list[dict]) -> str:
        return '{"sentences": []}' if step_of(messages) == "test" else play(messages)

    with StrictServer(none) as server:
        found = ask(home, server)
    assert found.text == NOTHING_RELEVANT
    assert set(found.calls) == {"break up", "test"}


def test_without_sub_queries_of_the_model_the_question_alone_is_searched_for(home):
    def fails(request) -> Fault | None:
        return server_error() if step_of(request.messages) == "break up" else None

    with StrictServer(play, faults=fails) as server:
        found = ask(home, server)
    assert found.generated
    assert len(found.retrieval.steps) == 2
    assert found.failures[0].startswith("break up: ")


def test_the_budget_of_money_ends_a_question_in_the_middle(home):
    with StrictServer(play) as server:
        whole = ask(home, server)
        tokens = whole.prompt_tokens + whole.completion_tokens
        server.forget()
        with pytest.raises(BudgetExceededError):
            ask(home, server, llm={"max_tokens": tokens // 2})
        assert 0 < len(server.asked()) < whole.model_calls


def test_a_caller_who_leaves_leaves_no_call_behind(home):
    def slow(request) -> Fault | None:
        return Fault(delay=5.0) if step_of(request.messages) == "test" else None

    async def leave(server: StrictServer) -> int:
        with QueryEngine(home, settings=settings_for(home, server)) as engine:
            task = asyncio.create_task(engine.aanswer(QUESTION, "lazy", batch=1))
            while not asked_of(server, "test"):
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        return len(asyncio.all_tasks())

    with StrictServer(play, faults=slow) as server:
        assert asyncio.run(leave(server)) == 1


def test_its_answer_streams_and_its_steps_are_told(home):
    with (
        StrictServer(play) as server,
        QueryEngine(home, settings=settings_for(home, server)) as engine,
    ):
        stream = engine.stream_answer(QUESTION, "lazy")
        pieces = list(stream)
    assert len(pieces) > 1
    assert "".join(pieces) == stream.answer.text
    assert stream.answer.retrieval.steps


def test_a_budget_for_no_passage_is_an_error_before_any_call(home):
    with StrictServer(play) as server:
        with pytest.raises(InputError, match="max_context_tokens = 3"):
            ask(home, server, max_context_tokens=3)
        assert server.asked() == []


def test_it_refuses_to_answer_without_a_model_and_shows_what_it_would_test(home):
    settings = Settings.model_validate({"home": str(home), "query": {"answers": "extractive"}})
    with QueryEngine(home, settings=settings) as engine:
        with pytest.raises(InputError, match='lazy needs a language model: set profile = "llm"'):
            engine.answer(QUESTION, "lazy")
        records = engine.retrieve(QUESTION, "lazy", budget=4).records
    assert [record.kind for record in records] == ["chunk"] * 4


def test_it_is_never_dearer_than_was_told_before(home):
    method = method_named("lazy")
    assert method.estimate is not None
    with StrictServer(play) as server:
        for budget in (1, 4, 100):
            found = ask(home, server, budget=budget)
            with QueryEngine(home, settings=settings_for(home, server)) as engine:
                parameters = method.parametrise({"budget": budget}, engine.index.settings)
                calls, prompt, _ = method.estimate(engine.index, parameters)
            assert found.model_calls <= calls
            assert found.prompt_tokens <= prompt


@pytest.mark.parametrize(
    "text",
    [
        "no names stand here, only small words.",
        "Scrooge met Bob Cratchit. Bob Cratchit was the clerk.",
    ],
)
def test_a_corpus_of_one_community_or_none_is_searched_by_similarity(tmp_path, text):
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "a.txt").write_text(f"{text} A clerk wrote small words of Scrooge all day.")
    Index(Settings(home=str(tmp_path / "home"))).update(folder)
    with StrictServer(play) as server:
        found = ask(tmp_path / "home", server)
        (claimed,) = asked_of(server, "lazy_map")
    assert "clerk" in claimed
    assert found.failures == ()


def test_a_chunk_stands_in_one_community_of_each_level_within_the_one_above(home):
    with QueryEngine(home, settings=Settings(home=str(home))) as engine:
        index = engine.index
        parents = {
            row["id"]: row["parent_id"]
            for row in index.rows("SELECT id, parent_id FROM communities")
        }
        ids = sorted(parents)
        chunks = [row["id"] for row in index.rows("SELECT id FROM chunks")]
        named = {row["chunk_id"] for row in index.rows("SELECT chunk_id FROM entity_chunks")}
        paths = dict(zip(chunks, chunk_tree(index).paths(chunks), strict=True))
    assert {len(path) for path in paths.values()} == {3}
    for chunk, path in paths.items():
        assert (path == (-1, -1, -1)) == (chunk not in named)
        for above, below in pairwise(path):
            assert above == below or parents[ids[below]] == ids[above]
