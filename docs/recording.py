"""Every prompt as it is really sent: a small index is built and asked, and a server listens.

The server is the tests' strict one, so what is recorded is a request that a real server would take.
A prompt is told by what was rendered, not by its words: nothing here repeats what a prompt says.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import polars as pl

from graphrag_pipeline.core.prompting import FENCED, Message, Prompt
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm import client
from graphrag_pipeline.llm.requests import ChatRequest

ROOT = Path(__file__).parents[1]
sys.path[:0] = [path for path in (str(ROOT), str(ROOT / "tests")) if path not in sys.path]

CORPUS = ROOT / "examples" / "corpus"
DOCUMENTS = (
    "press/soft-stone-how-we-reported-it.md",
    "press/interview-orsolya-venn.txt",
    "reference/kestrel-bridge.md",
    "reference/aldous-inquiry.md",
)
# Names that are alike, and one that many texts describe.
LETTERS = (
    "Anna Hellwig wrote to Nadia Fenwright and to Leopold Pask of the stone.",
    "Anna Helwig did not answer Nadia Fenwright, nor did Leopold Pask in that year.",
    *(
        f"Nadia Fenwright {did} what the stone of the Kestrel Bridge can bear, said Leopold Pask."
        for did in ("measured", "wrote down", "told others", "forgot", "asked again")
    ),
)
QUESTION = "Who objected to the stone of the Kestrel Bridge, and what came of it?"
MODEL = "gpt-4.1-mini"
OF_DATA = FENCED | {"question", "global_question", "error", "criterion"}
"""Placeholders whose values are another in each call."""

_QUERY = "query"
_MERGED_AT_ONCE = 40
_TUNED = {
    "tune_domain": "local journalism on bridges and dams",
    "tune_language": "English",
    "tune_persona": "You are an engineer who reads what was written on failed structures.",
    "tune_report_rating": "How much a group decided what was built and what became of it.",
    "tune_entity_types": json.dumps({"entity_types": ["person", "firm", "structure", "inquiry"]}),
}
_DRAFT = {
    "question": "Who objected to the stone?",
    "assertions": [{"statement": "Nadia Fenwright objected.", "sources": [1]}],
}
_LISTED = {
    "eval_personas": {"personas": ["an engineer who writes a history of the bridge"]},
    "eval_tasks": {"tasks": ["find out where warnings were not heard"]},
    "eval_questions": {"questions": ["Which warnings were not heard, and by whom?"]},
    "eval_data_local": {"questions": [_DRAFT | {"names": ["Kestrel Bridge"]}]},
    "eval_themes": {"themes": [{"theme": "warnings", "questions": list(range(1, 25))}]},
    "eval_data_global": {"questions": [_DRAFT]},
    "eval_data_linked": {"questions": [_DRAFT]},
    "eval_activity_local": {"questions": [_DRAFT]},
    "eval_claims": {"sentences": [{"number": 1, "claims": ["Nadia Fenwright objected."]}]},
    "rerank_passages": {"passages": [2, 1]},
    "next_questions": {"questions": ["What became of Nadia Fenwright?"]},
    "kag_plan": {
        "steps": [
            {
                "kind": "retrieval",
                "task": "Who objected to the stone?",
                "subject": "Kestrel Bridge",
            },
            {"kind": "deduction", "task": "What came of the objection of #1?", "subject": ""},
        ]
    },
    "judge_answers": {"reasoning": "It says more.", "winner": 1},
    "write_assertions": {"assertions": [{"statement": "Fenwright objected.", "sources": [1]}]},
    "check_assertions": {"met": [1]},
    "check_sentences": {"supported": [1]},
    "label_passage": {"reasoning": "It names her.", "relevant": True},
    "grade_answer": {"reasoning": "It leaves out the year.", "score": 6},
    "find_shared": {"first": [1], "second": [1]},
}

Key = tuple[str, str]
Step = tuple[str, Callable[[], object]]


@dataclass(frozen=True)
class Sent:
    """A prompt in one request.

    ``places`` are the stages and methods that sent it; ``goes_on`` says that a conversation stood
    before it. ``fixed`` is what was sent without the data, ``body`` the rest of the request.
    """

    prompt: Prompt
    messages: Sequence[Message]
    fixed: Sequence[Message]
    goes_on: bool
    places: Sequence[str]
    body: Mapping[str, Any]


@dataclass
class _Recorder:
    """What was rendered, and which parts of the program asked with it."""

    method: str = ""
    rendered: dict[Key, tuple[Prompt, Mapping[str, str], Sequence[Message]]] = field(
        default_factory=dict
    )
    places: dict[str, dict[str, None]] = field(default_factory=dict)

    def prompt_of(self, messages: Sequence[Mapping[str, Any]]) -> Prompt:
        """Return the prompt that the last messages of a request were rendered from."""
        return self.rendered[self.key_of(messages)][0]

    def key_of(self, messages: Sequence[Mapping[str, Any]]) -> Key:
        system, user = _key(messages)
        # What is said after a bad answer stands in one message with the question.
        last = user.rpartition("\n\n")[2]
        return next(key for key in ((system, user), ("", user), ("", last)) if key in self.rendered)

    def hear(self, request: ChatRequest) -> None:
        """Note who makes a request: a stage, or a method of search."""
        place = f"method {self.method}" if request.stage == _QUERY else f"stage {request.stage}"
        self.places.setdefault(self.prompt_of(request.messages).name, {})[place] = None

    def sent(self, bodies: Sequence[Mapping[str, Any]]) -> Iterator[Sent]:
        """Yield a rather short request with each prompt, always the same."""
        by_name: dict[str, dict[str, Mapping[str, Any]]] = {}
        for body in bodies:
            name = self.prompt_of(body["messages"]).name
            by_name.setdefault(name, {})[json.dumps(body, sort_keys=True)] = body
        for name, those in sorted(by_name.items()):
            in_order = sorted(
                those.values(), key=lambda body: (_length(body), json.dumps(body["messages"]))
            )
            body = in_order[len(in_order) // 4]
            prompt, values, messages = self.rendered[self.key_of(body["messages"])]
            blank = {key: "" if key in OF_DATA else value for key, value in values.items()}
            yield Sent(
                prompt,
                messages,
                prompt.render(**blank),
                len(body["messages"]) > len(messages),
                list(self.places[name]),
                {key: value for key, value in body.items() if key not in ("model", "messages")},
            )


def _key(messages: Sequence[Mapping[str, Any]]) -> Key:
    system = messages[0]["content"] if messages[0]["role"] == "system" else ""
    return system, messages[-1]["content"]


def _length(body: Mapping[str, Any]) -> int:
    return sum(len(message["content"]) for message in body["messages"])


def record() -> list[Sent]:
    """Return a request with each prompt that the program sends."""
    from strict_server import StrictServer

    recorder = _Recorder()
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        work = Path(place)
        stack.enter_context(_noting(recorder))
        server = stack.enter_context(StrictServer(lambda messages: _said(recorder, messages)))
        stack.enter_context(mock.patch.dict("os.environ", {"OPENAI_API_KEY": "none"}))
        for recorder.method, do in _steps(_settings(server.base_url, work), work):
            do()
        bodies = [request.body for request in server.asked()]
    return list(recorder.sent(bodies))


@contextmanager
def _noting(recorder: _Recorder) -> Iterator[None]:
    render, make_body = Prompt.render, client.chat_body

    def noted(self: Prompt, **values: str) -> list[Message]:
        messages = render(self, **values)
        recorder.rendered[_key(messages)] = self, values, messages
        return messages

    def heard(request: ChatRequest, options: Any) -> dict[str, Any]:
        recorder.hear(request)
        return make_body(request, options)

    with (
        mock.patch.object(Prompt, "render", noted),
        mock.patch.object(client, "chat_body", heard),
    ):
        yield


def _settings(base_url: str, work: Path) -> Settings:
    return Settings.exactly(
        {
            "profile": "llm",
            "home": str(work / "home"),
            "llm": {"base_url": base_url, "model": MODEL, "max_retries": 2},
            "chunks": {"size": 120, "overlap": 20},
            "extraction": {"claims": True},
            "graph": {"max_description_tokens": 60},
            "resolution": {"method": "llm"},
            "embeddings": {"facts": True, "synonyms": True},
            "hierarchies": {"raptor": True, "attributed": True, "hirag": True},
        }
    )


def _steps(settings: Settings, work: Path) -> Iterator[Step]:
    """Yield all there is to do that asks a model, and the method where it is a question."""
    documents = work / "documents"
    documents.mkdir()
    for name in DOCUMENTS:
        shutil.copy(CORPUS / name, documents)
    for number, text in enumerate(LETTERS, start=1):
        (documents / f"letter-{number}.txt").write_text(text)
    yield "", lambda: _index(settings, documents)
    yield "", lambda: _in_other_ways(settings)
    yield from _questions(settings)
    yield "", lambda: _evaluate(settings)
    yield "", lambda: _tune(settings, documents, work / "prompts")


def _index(settings: Settings, documents: Path) -> None:
    from graphrag_pipeline import Index
    from graphrag_pipeline.graph import descriptions

    with mock.patch.object(descriptions, "_PART_TOKENS", _MERGED_AT_ONCE):
        Index(settings).update(documents)


def _in_other_ways(settings: Settings) -> None:
    from graphrag_pipeline.extraction.extractors import extract

    text = (CORPUS / DOCUMENTS[-1]).read_text()[:800]
    chunks = pl.DataFrame({"id": ["c"], "text": [text], "context": [""]})
    for way in ({"passes": 2}, {"format": "schema"}, {"format": "two_calls"}):
        options = settings.extraction.model_copy(update={**way, "claims": False})
        extract(chunks, settings.model_copy(update={"extraction": options}), "other ways")


def _questions(settings: Settings) -> Iterator[Step]:
    from graphrag_pipeline.query import METHODS, MODEL_METHODS, QueryEngine
    from graphrag_pipeline.query.operators import reranking

    with QueryEngine(settings=settings) as engine:
        for name in METHODS | MODEL_METHODS:
            yield name, lambda name=name: engine.answer(QUESTION, name)
        yield "global, dynamic", lambda: engine.answer(QUESTION, "global", dynamic=True)
        yield "basic, follow_ups", lambda: engine.answer(QUESTION, "basic", follow_ups=3)
        yield "zero_shot, guess", lambda: engine.answer(QUESTION, "zero_shot", guess=True)
        yield "cot, guess", lambda: engine.answer(QUESTION, "cot", guess=True)
        yield "basic, thorough", lambda: engine.answer(QUESTION, "basic", thorough=True)
        yield "archrag, own answer", lambda: engine.answer(QUESTION, "archrag", own_answer=True)
        yield "archrag, direct", lambda: engine.answer(QUESTION, "archrag", prompting="direct")
        yield "global, similarity", lambda: engine.answer(QUESTION, "global", mode="similarity")
    query = settings.query.model_copy(update={"reranker": "llm"})
    reranked = settings.model_copy(update={"query": query})
    with QueryEngine(settings=reranked) as engine, mock.patch.object(reranking, "MOST_SECONDS", 60):
        yield "bm25, reranked", lambda: engine.retrieve(QUESTION, "bm25")


def _evaluate(settings: Settings) -> None:
    from graphrag_evaluation.criteria import CRITERIA
    from graphrag_evaluation.inquiring import EvaluationInquiry, ask_inquiries
    from graphrag_evaluation.judging.claims import Unexamined, examine
    from graphrag_evaluation.judging.judge import FORM
    from graphrag_evaluation.question_writing import question_sets
    from graphrag_evaluation.question_writing.generating import (
        Numbers,
        describe_corpus,
        generate_questions,
    )
    from graphrag_evaluation.question_writing.kinds import KINDS, WantedKinds
    from graphrag_evaluation.store import EvaluationStore

    from graphrag_pipeline.query import open_release

    store = EvaluationStore(settings.home_path)
    with open_release(settings.home_path, settings=settings) as release:
        description = describe_corpus(release)
    generate_questions(store, settings, Numbers(1, 1, 1), "recorded", description)
    question_sets.make_kinds(settings, WantedKinds(KINDS, 2, personas=1, tasks=1), "kinds")
    long = (
        "Nadia Fenwright, the inspector, objected in March 2002. She was dismissed a month later."
    )
    examine(settings, store, [Unexamined("a", QUESTION, long)])
    texts = {"first_answer": long, "second_answer": "Nadia Fenwright did."}
    verdict = EvaluationInquiry(
        id="v",
        values={"criterion": CRITERIA["directness"], "question": QUESTION, **texts},
        columns={"question": QUESTION, "first_answer": "a", "second_answer": "b",
                 "criterion": "directness", "replicate": 0},
    )  # fmt: skip
    ask_inquiries(settings, store, FORM, [verdict])
    _grade(settings, long)


_ONE = {"value": 1.0, "reason": ""}


def _grade(settings: Settings, answer: str) -> None:
    from graphrag_evaluation.criteria import REFERENCE_CRITERIA
    from graphrag_evaluation.inquiring import EvaluationInquiry, ask_inquiries
    from graphrag_evaluation.judging import (
        assertions,
        differential,
        reference,
        relevance,
        self_check,
    )
    from graphrag_evaluation.store import EvaluationStore

    two = {
        "first_answer": "1. Nadia Fenwright objected.\n2. She was dismissed.",
        "second_answer": "1. Nadia Fenwright did.",
    }
    gold = {
        "criterion": REFERENCE_CRITERIA["completeness"],
        "answers": "- Nadia Fenwright, in March 2002",
        "text": answer,
    }
    graded = {"kind": "", "question": "", "answer_id": "", "subject": "", "replicate": 0}
    inquiries = [
        (reference.FORM, gold, graded),
        (relevance.FORM, {"context": answer}, graded),
        (
            assertions.WRITING,
            {"context": two["first_answer"], "number": "8"},
            {"question": "", "chunk_ids": []},
        ),
        (assertions.CHECKING, {"facts": "1. Fenwright objected.", "text": answer}, graded),
        (self_check.FORM, {"facts": two["first_answer"], "text": answer}, graded),
        (differential.FORM, two, {"first_answer": "a", "second_answer": "b"}),
    ]
    store = EvaluationStore(settings.home_path)
    for form, values, columns in inquiries:
        inquiry = EvaluationInquiry(
            id=form.prompt,
            values={"question": QUESTION, **values},
            columns=columns,
            finish=lambda said: said if {*said} - {"met", "supported"} else _ONE,
        )
        ask_inquiries(settings, store, form, [inquiry])


def _tune(settings: Settings, documents: Path, target: Path) -> None:
    from graphrag_pipeline.planning.tuning import tune

    short = settings.chunks.model_copy(update={"size": 60, "overlap": 0})
    tune(settings.model_copy(update={"chunks": short}), documents, target)


def _said(recorder: _Recorder, messages: list[dict[str, Any]]) -> str:
    """Return what the model says: on the prompts of an index what the benchmarks' model does."""
    from llm_helpers import document_in

    from benchmarks.played_answers import played_answer, records_of

    name = recorder.prompt_of(messages).name
    if name in _TUNED:
        return _TUNED[name]
    if name in _LISTED:
        return json.dumps(_LISTED[name])
    if name == "tune_examples":
        return records_of(document_in(messages), missed=False)
    if name == "continue_records":
        return "<|COMPLETE|>"
    answer = played_answer(messages)
    if name == "extract_claims":
        # An answer without its end mark: the model is asked to go on.
        return answer.removesuffix("<|COMPLETE|>")
    # One that cannot be read: it is asked for again, with what was wrong with it.
    return answer.strip("{}") if name == "classify_question" else answer
