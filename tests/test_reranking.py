"""Passages put in order once more: by a cross-encoder, by a model's list, and by neither."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import sys
import threading
import time
from importlib.util import find_spec
from random import Random
from types import ModuleType

import pytest
from llm_helpers import paid
from model_server import ModelServer, unauthorized
from query_fixture import publish

from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.core.text import terms
from graphrag_pipeline.llm import calls_since, rerankers
from graphrag_pipeline.query import METHODS, QueryEngine, compare
from graphrag_pipeline.query.methods import method_named, parameter_rows
from graphrag_pipeline.query.operators import reranking

QUESTION = "Who was the clerk of Scrooge?"
LAST_WORDS = "second father"


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    return publish(tmp_path_factory.mktemp("published"))


@pytest.fixture
def home(published):
    """The published index, with nothing kept yet."""
    for file in published.glob(f"{Home(published).calls.name}*"):
        file.unlink()
    return published


class Encoder:
    """The part of sentence-transformers' CrossEncoder that is used; prefers the last words."""

    made: list[Encoder] = []

    def __init__(self, model: str, *, max_length: int, local_files_only: bool) -> None:
        assert local_files_only
        if "absent" in model:
            raise OSError(f"{model} is not a local folder")
        self.pairs: list[tuple[str, str]] = []
        Encoder.made.append(self)

    def predict(self, pairs, *, batch_size: int, show_progress_bar: bool):
        self.pairs += pairs
        return [float(LAST_WORDS in passage) for _, passage in pairs]


@pytest.fixture
def encoder(monkeypatch):
    library = ModuleType("sentence_transformers")
    monkeypatch.setattr(library, "CrossEncoder", Encoder, raising=False)
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)
    monkeypatch.setattr(Encoder, "made", [])
    rerankers.cross_encoder.cache_clear()
    yield Encoder
    rerankers.cross_encoder.cache_clear()


def engine_for(home, reranker: str, **sections) -> QueryEngine:
    query = {"reranker": reranker, **sections.pop("query", {})}
    return QueryEngine(home, settings=Settings(home=str(home), query=query, **sections))


def chunks(result) -> list[str]:
    return [record.id for record in result.records if record.kind in ("chunk", "summary")]


@pytest.mark.parametrize("method", sorted(METHODS))
def test_whatever_a_method_finds_of_text_is_reranked(home, encoder, method):
    takes = "reranked" in {name for name, *_ in parameter_rows(method_named(method))}
    with engine_for(home, "") as plain, engine_for(home, "local:some/model") as engine:
        before, after = (each.retrieve(QUESTION, method) for each in (plain, engine))
        without = engine.retrieve(QUESTION, method, **({"reranked": 0} if takes else {}))
    shared = [key for key in chunks(after) if key in chunks(before)]
    if not takes or len(chunks(before)) < 2:
        assert without == before or not takes
        return
    assert "passages reranked by local:some/model" in "\n".join(after.steps)
    assert len(shared) > 1
    holding = [LAST_WORDS in record.text for record in after.records if record.id in chunks(after)]
    assert holding == sorted(holding, reverse=True)
    assert chunks(without) == chunks(before)


def test_passages_beyond_the_first_can_come_first(home, encoder):
    with engine_for(home, "local:some/model") as engine:
        last = engine.retrieve(QUESTION, "bm25").records[-1]
        assert LAST_WORDS not in last.text
        few = engine.retrieve(QUESTION, "bm25", top_k=1)
        fewer = engine.retrieve(QUESTION, "bm25", top_k=1, reranked=1)
    assert LAST_WORDS in few.records[0].text
    assert LAST_WORDS not in fewer.records[0].text
    assert not fewer.steps


def test_scores_are_kept_and_counted_as_calls(home, encoder):
    with engine_for(home, "local:some/model") as engine:
        first, again = engine.answer(QUESTION, "bm25"), engine.answer(QUESTION, "bm25")
    assert (first.calls, first.model_calls, first.cost) == ({"rerank": 1}, 1, 0.0)
    assert (again.calls, again.model_calls, again.cached_calls) == ({"rerank": 1}, 0, 1)
    assert again.retrieval.records == first.retrieval.records
    (model,) = encoder.made
    assert len(model.pairs) == len(set(model.pairs))
    ledger = calls_since(home)
    assert ledger["model"].unique().to_list() == ["local:some/model"]
    assert ledger["cached"].to_list() == [False, True]


def test_what_is_kept_but_is_no_list_of_numbers_is_made_again(home, encoder):
    with engine_for(home, "local:some/model") as engine:
        first = engine.retrieve(QUESTION, "bm25")
        with contextlib.closing(sqlite3.connect(Home(home).calls)) as kept:
            kept.execute("UPDATE responses SET text = '[1, null]', digest = NULL")
            kept.commit()
        assert engine.answer(QUESTION, "bm25").retrieval.records == first.records
    assert calls_since(home)["cached"].to_list() == [False, False]


@pytest.mark.parametrize(
    ("reranker", "predicted", "why"),
    [
        ("local:absent/model", [], "no cross-encoder absent/model is on disk"),
        ("local:some/model", RuntimeError("a\nb"), "some/model failed (RuntimeError)"),
        ("local:some/model", [float("nan")] * 99, "no one number for each passage"),
        ("local:some/model", ["x"], "no one number for each passage"),
        ("local:some/model", None, "no one number for each passage"),
    ],
)
def test_a_reranker_that_fails_leaves_the_order(
    home, encoder, monkeypatch, reranker, predicted, why
):
    def predict(self, pairs, **_):
        if isinstance(predicted, Exception):
            raise predicted
        return predicted and predicted[: len(pairs)]

    monkeypatch.setattr(encoder, "predict", predict)
    with engine_for(home, "") as plain, engine_for(home, reranker) as engine:
        before, after = plain.retrieve(QUESTION, "bm25"), engine.retrieve(QUESTION, "bm25")
    assert after.records == before.records
    (step,) = after.steps
    assert step.startswith("passages not reranked: ")
    assert why in step
    assert "\n" not in step


def test_one_that_takes_too_long_leaves_the_order_and_is_not_waited_for(home, encoder, monkeypatch):
    end = threading.Event()

    def predict(self, pairs, **_):
        end.wait(30)
        return [0.0] * len(pairs)

    monkeypatch.setattr(encoder, "predict", predict)
    monkeypatch.setattr(rerankers, "MOST_SECONDS", 0.05)
    with engine_for(home, "local:some/model") as engine:
        late, busy = (engine.retrieve(QUESTION, "bm25") for _ in range(2))
    end.set()
    assert late.steps == ("passages not reranked: some/model took over 0.05 s",)
    assert busy.steps == ("passages not reranked: some/model is still busy with other questions",)
    assert chunks(late) == chunks(busy)


@pytest.mark.skipif(find_spec("sentence_transformers") is not None, reason="it is installed")
def test_without_the_library_it_is_said_what_to_install(home):
    rerankers.cross_encoder.cache_clear()
    with engine_for(home, "local:some/model") as engine:
        (step,) = engine.answer(QUESTION, "bm25").retrieval.steps
    assert "install the extra [local]" in step


@pytest.mark.skipif(find_spec("sentence_transformers") is None, reason="it is not installed")
def test_a_real_cross_encoder_ranks_without_the_network(home, tmp_path, monkeypatch):
    """Two layers of random weights: what is ranked means nothing, that it is ranked does."""
    # PyTorch asks for the place of pandas, which the suite's stand-in refuses to tell.
    finders = [finder for finder in sys.meta_path if "quick_stores" not in repr(finder)]
    monkeypatch.setattr(sys, "meta_path", finders)
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz"]
    (tmp_path / "vocab.txt").write_text("\n".join([*words, *(f"##{word}" for word in words[5:])]))
    folder = tmp_path / "random"
    shape = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = BertConfig(
        vocab_size=57, intermediate_size=48, num_labels=1, initializer_range=1.0, **shape
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    BertTokenizerFast(vocab_file=str(tmp_path / "vocab.txt")).save_pretrained(folder)
    rerankers.cross_encoder.cache_clear()
    with engine_for(home, f"local:{folder}") as engine:
        first = engine.retrieve(QUESTION, "bm25")
    encoder = rerankers.cross_encoder(f"local:{folder}")
    scores = encoder.scores(QUESTION, ["one passage", "another"])
    assert len(set(scores)) == 2
    assert scores == encoder.scores(QUESTION, ["one passage", "another"])
    assert first.steps == (f"{len(first.records)} passages reranked by local:{folder}",)
    with engine_for(home, "local:no/such-model-anywhere") as engine:
        (step,) = engine.retrieve(QUESTION, "bm25").steps
    assert "no cross-encoder no/such-model-anywhere is on disk" in step


@pytest.mark.parametrize("reranker", ["local:", "local: ", "gpt", "LLM", "locals:x"])
def test_a_reranker_there_is_not_is_refused(reranker):
    with pytest.raises(ConfigError, match=r'reranker = .*: must be "llm" or "local:NAME"'):
        Settings(query={"reranker": reranker})


def model(server: ModelServer) -> dict:
    return {"base_url": server.base_url, "max_retries": 0}


def answering(answer: str, seen: list[str]):
    def respond(messages) -> str:
        if "numbered passages" not in messages[0]["content"]:
            return "Bob Cratchit [Data: Sources (1)]."
        seen.append(messages[-1]["content"])
        return answer

    return respond


@pytest.mark.parametrize(
    ("answer", "first"),
    [
        ('{"passages": [3, 1]}', [2, 0]),
        ('{"passages": [3, 3, 1, 99, 0, -1, true, 1.0, "2"]}', [2, 0, 1]),
        ("[3] > [1] > [3]", [2, 0]),
        ('Sure:\n```json\n{"passages": [2]}\n```', [1]),
    ],
)
def test_a_models_list_comes_first_and_the_rest_keeps_its_order(home, answer, first):
    seen: list[str] = []
    with ModelServer(answering(answer, seen)) as server:
        with engine_for(home, "") as plain:
            before = plain.retrieve(QUESTION, "bm25")
        with engine_for(home, "llm", llm=model(server)) as engine:
            after = engine.answer(QUESTION, "bm25")
            again = engine.answer(QUESTION, "bm25")
    expected = [chunks(before)[place] for place in first]
    rest = [key for key in chunks(before) if key not in expected]
    assert chunks(after.retrieval) == [*expected, *rest]
    assert after.calls == {"rerank": 1}
    assert (after.model_calls, again.model_calls, again.cached_calls) == (1, 0, 1)
    assert after.prompt_tokens > 100
    assert len(seen) == 1 == len(paid(home))


@pytest.mark.parametrize(
    "answer",
    ['{"passages": []}', "None of the 2 helps.", "", '{"passages": [77]}', '{"best": 3}', "[99]"],
)
def test_a_list_that_names_no_passage_leaves_the_order(home, answer):
    with ModelServer(answering(answer, [])) as server:
        with engine_for(home, "") as plain:
            before = plain.retrieve(QUESTION, "bm25")
        with engine_for(home, "llm", llm=model(server)) as engine:
            after = engine.answer(QUESTION, "bm25")
    assert after.retrieval.records == before.records
    assert after.retrieval.steps[0].startswith("passages not reranked: ")


def test_a_model_that_is_slow_or_refuses_leaves_the_order(home, monkeypatch):
    monkeypatch.setattr(reranking, "MOST_SECONDS", 0.2)
    with ModelServer(answering('{"passages": [2]}', []), latency=120) as server:
        began = time.perf_counter()
        with engine_for(home, "llm", llm=model(server)) as engine:
            late = engine.answer(QUESTION, "bm25")
        assert time.perf_counter() - began < 60
        server.latency = 0
        server.misbehave([unauthorized()])
        with engine_for(home, "llm", llm=model(server)) as engine:
            refused = engine.answer(QUESTION, "bm25")
    assert late.retrieval.steps == ("passages not reranked: the model took over 0.2 s",)
    assert refused.retrieval.steps[0].startswith("passages not reranked: ")
    assert chunks(late.retrieval) == chunks(refused.retrieval)
    assert calls_since(home)["error"].to_list()[0] == "interrupted"


def test_passages_are_fenced_numbered_lines(home):
    seen: list[str] = []
    server = ModelServer(answering('{"passages": [1]}', seen))
    with server, engine_for(home, "llm", llm=model(server)) as engine:
        engine.retrieve("injected previous instructions of Scrooge", "bm25")
    fenced = seen[0].split("<passages id=")[1].split("</passages id=")[0]
    lines = fenced.splitlines()[1:]
    assert [line.split(".")[0] for line in lines] == [str(n + 1) for n in range(len(lines))]
    assert any("ignore {previous} instructions" in line for line in lines)


def test_an_answer_that_a_model_writes_counts_its_reranking(home):
    with ModelServer(answering('{"passages": [2]}', [])) as server:
        query = {"answers": "llm"}
        with engine_for(home, "llm", llm=model(server), query=query) as engine:
            answer = engine.answer(QUESTION, "bm25")
    assert answer.calls == {"rerank": 1, "answer": 1}
    assert "reranked by llm" in answer.retrieval.steps[0]


def test_a_comparison_asks_the_reranker_for_each_method_once(home, encoder):
    query = {"reranker": "local:some/model"}
    settings = Settings(home=str(home), query=query)
    methods = ["bm25", "bm25:reranked=0"]
    with_it, without = compare(QUESTION, methods, settings=settings)
    assert with_it.answer is not None
    assert with_it.answer.model_calls == 1
    assert without.answer is not None
    assert without.answer.calls == {}
    (loaded,) = encoder.made
    assert len(loaded.pairs) == len(set(loaded.pairs))


def test_an_excerpt_is_the_part_with_the_rarest_words_of_the_question():
    text = "The pier is old. " * 20 + "Oda kept the ferry. Tall ships came. " + "All is well. " * 20
    weights = {"ferry": 3.0, "pier": 0.5, "ship": 1.0}
    assert "Oda kept the ferry. Tall ships came." in reranking._excerpt(text, weights, 10)
    assert reranking._excerpt("", weights, 10) == ""
    assert reranking._excerpt("one two", weights, 10) == "one two"
    assert len(reranking._excerpt("word " * 300 + "ferry", weights, 7).split()) <= 7
    assert reranking._excerpt("x" * 5000, weights, 10) == "x" * 120
    assert json.dumps(reranking._excerpt("长" * 900, weights, 10))


def test_of_two_parts_with_the_same_words_of_the_question_the_excerpt_is_the_first():
    chance = Random(18)
    for _ in range(50):
        words = ["".join(chance.choices("bcdfgk", k=7)) for _ in range(20)]
        weights = {term: chance.random() for word in words for term in terms(word)}
        turned = chance.sample(words, len(words))
        # The sums of floating numbers in two orders differ in their last digit.
        first, last = (
            f"{' '.join(order[:9])}. ".capitalize() + f"{' '.join(order[9:])}.".capitalize()
            for order in (words, turned)
        )
        text = f"{first} {'Nothing of it. ' * 7}{last}"
        assert reranking._excerpt(text, weights, 20) == first
