"""What `lazy` takes beside `global`, at equal coverage: calls and tokens on a strict stand-in.

    python -m benchmarks.lazy [data_dir]

The corpus are 300 podcast transcripts, the graph and the reports made by rule; the questions the
first five of the corpus' own that have gold assertions. Gold assertions are made by a rule: of all
sentences, the 20 that hold the largest part of the question's terms, by rarity, and at least two
of them, each once. What a method covers is the share of them that the calls which write its answer
were shown as a claim, word for word.

The mind of the stand-in is a rule too, and the only thing that is not real: a sentence is relevant
if it holds two terms of the question; a report is rated 5 where it has such a sentence, 2 for one
term and else 0; claims are the relevant sentences that it is shown. A question of four terms or
more is broken up into its halves.

CPU time is that of the process for the same question again, the least of three, with the answers of
the stand-in given from memory: neither client nor transport nor stand-in is in it.
"""

from __future__ import annotations

import argparse
import csv
import functools
import io
import json
import os
import re
import shutil
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from model_server import Messages
from query_player import NUMBERED, step_of
from strict_server import StrictServer

from benchmarks.index_speed import podcast_files
from benchmarks.latency import podcast_questions
from graphrag_pipeline import Index, Settings
from graphrag_pipeline.core.text import terms
from graphrag_pipeline.extraction.rules.sentences import sentence_spans
from graphrag_pipeline.llm import client
from graphrag_pipeline.llm.client import ModelClient
from graphrag_pipeline.llm.completion import Completion
from graphrag_pipeline.llm.requests import ChatRequest
from graphrag_pipeline.query import Answer, QueryEngine
from graphrag_pipeline.query import operators as op

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
METHODS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "global": ("global", {}),
    "global:dynamic": ("global", {"dynamic": True}),
    **{f"lazy:budget={n}": ("lazy", {"budget": n}) for n in (100, 500, 1500)},
}
_DOCUMENTS = 300
_QUESTIONS = 5
_GOLD, _FEWEST_GOLD = 20, 10
_MOST_CLAIMS = 40
_REPEATS = 3
_SENTENCE = re.compile(r"[^.!?]+[.!?]?")


@dataclass(frozen=True)
class Taken:
    """What a method took for a question, what it covered, and its own CPU milliseconds."""

    method: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    covered: float
    milliseconds: float


def gold_assertions(engine: QueryEngine, question: str, sentences: Sequence[str]) -> list[str]:
    """Return the sentences that hold most of a question's terms, by rarity; at least two terms."""
    weights = op.rarity(engine.index, question)
    held = {text: weights.keys() & set(terms(text)) for text in dict.fromkeys(sentences)}
    worth = {text: sum(weights[t] for t in of) for text, of in held.items() if len(of) > 1}
    return sorted(worth, key=lambda text: (-worth[text], text))[:_GOLD]


def mind(messages: Messages) -> str:
    """Return what the stand-in says: by the words that a question and a text share."""
    content, step = messages[-1]["content"], step_of(messages)
    wanted = frozenset(terms(_question(content)))
    if step == "break up":
        words = _question(content).split()
        halves = [" ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])]
        return json.dumps({"queries": halves if len(wanted) > 3 else []})
    if step == "test":
        chosen = [int(n) for n, text in NUMBERED.findall(content) if _n_held(wanted, text) > 1]
        return json.dumps({"sentences": chosen})
    if step == "rate":
        most = max((_n_held(wanted, text) for text in _SENTENCE.findall(content)), default=0)
        return json.dumps({"reason": "so", "rating": {0: 0, 1: 2}.get(most, 5)})
    if step in ("lazy_map", "global_map"):
        return json.dumps({"points": _claims(content, wanted)})
    return "Done."


def _question(content: str) -> str:
    return (
        content.rpartition("\nQuestion: ")[2].partition("\n")[0]
        or (content.partition("Question: ")[2].partition("\n")[0])
    )


@functools.lru_cache(1 << 16)
def _n_held(wanted: frozenset[str], text: str) -> int:
    return len(wanted.intersection(terms(text)))


def _claims(content: str, wanted: frozenset[str]) -> list[dict[str, Any]]:
    """Return the sentences of the rows shown that hold two terms, those with most terms first."""
    match = re.search(r"-----(Sources|Reports)-----\n(.*?)\n</", content, re.DOTALL)
    if match is None:
        return []
    rows = list(csv.reader(io.StringIO(match[2])))[1:]
    points = [
        {"description": f"{text} [Data: {match[1]} ({row[0]})]", "score": 10 * held}
        for row in rows
        for start, end in sentence_spans(row[-1])
        if (held := _n_held(wanted, text := " ".join(row[-1][start:end].split()))) > 1
    ]
    return sorted(points, key=lambda point: -point["score"])[:_MOST_CLAIMS]


class _FromMemory(ModelClient):
    """A client that gives answers it was told, and makes no call."""

    answers: Mapping[str, str] = {}

    async def __aenter__(self) -> ModelClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def ask(self, request: ChatRequest) -> Completion:
        text = self.answers[json.dumps(request.messages)]
        if request.check is not None:
            request.check(text)
        return Completion(text, 0, 0, cached=False, cost=0.0, finish_reason="stop", seconds=0.0)


def compared(home: Path, data: Path) -> list[Taken]:
    """Return what each method takes for each question on the index in a home folder."""
    rows: list[Taken] = []
    with StrictServer(mind) as server:
        settings = Settings.model_validate(
            {
                "home": str(home),
                "query": {"answers": "llm"},
                "llm": {"base_url": server.base_url, "model": "gpt-4.1-mini"},
            }
        )
        with QueryEngine(home, settings=settings) as engine:
            sentences = _sentences(engine)
            questions = podcast_questions(data)
            golds = {q: gold_assertions(engine, q, sentences) for q in questions}
            asked = [q for q, gold in golds.items() if len(gold) >= _FEWEST_GOLD][:_QUESTIONS]
            for question in asked:
                for name in METHODS:
                    server.forget()
                    rows.append(taken(engine, server, name, question, golds[question]))
    return rows


def _sentences(engine: QueryEngine) -> list[str]:
    texts = (row["text"] for row in engine.index.rows("SELECT text FROM documents ORDER BY id"))
    return [" ".join(text[a:b].split()) for text in texts for a, b in sentence_spans(text)]


def taken(
    engine: QueryEngine, server: StrictServer, name: str, question: str, gold: Sequence[str]
) -> Taken:
    """Return what a method takes for a question, and which of its gold assertions it covers."""
    method, options = METHODS[name]
    answer: Answer = engine.answer(question, method, **options)
    asked = server.asked()
    written = asked[-1].messages[-1]["content"] if asked else ""
    covered = sum(sentence in written for sentence in gold) / len(gold)
    _FromMemory.answers = {json.dumps(r.messages): mind(r.messages) for r in asked}
    return Taken(
        name,
        answer.model_calls,
        answer.prompt_tokens,
        answer.completion_tokens,
        covered,
        _own_milliseconds(engine, question, method, options),
    )


def _own_milliseconds(
    engine: QueryEngine, question: str, method: str, options: Mapping[str, Any]
) -> float:
    with mock.patch.object(client, "ModelClient", _FromMemory):
        return min(_milliseconds(engine, question, method, options) for _ in range(_REPEATS))


def _milliseconds(
    engine: QueryEngine, question: str, method: str, options: Mapping[str, Any]
) -> float:
    began = time.process_time()
    engine.answer(question, method, **options)
    return 1000 * (time.process_time() - began)


def describe(taken: Sequence[Taken]) -> str:
    """Return a table of means over the questions, and the cheapest `lazy` of equal coverage."""
    lines = [f"{'':18}{'calls':>7}{'read':>10}{'written':>9}{'covered':>9}{'CPU ms':>8}"]
    means = {name: _mean([row for row in taken if row.method == name]) for name in METHODS}
    lines += [
        f"{name:18}{row.calls:7,}{row.prompt_tokens:10,}{row.completion_tokens:9,}"
        f"{row.covered:9.2f}{row.milliseconds:8.1f}"
        for name, row in means.items()
    ]
    for name in ("global", "global:dynamic"):
        equal = [
            n for n, row in means.items() if "lazy" in n and row.covered >= means[name].covered
        ]
        if equal:
            share = means[equal[0]].prompt_tokens / max(1, means[name].prompt_tokens)
            lines.append(
                f"{equal[0]} covers as much as {name}, and reads {share:.2f} of its tokens"
            )
    return "\n".join(lines)


def _mean(rows: Sequence[Taken]) -> Taken:
    figures = ("calls", "prompt_tokens", "completion_tokens")
    means = {name: round(statistics.fmean(getattr(row, name) for row in rows)) for name in figures}
    return Taken(
        method=rows[0].method,
        **means,
        covered=statistics.fmean(row.covered for row in rows),
        milliseconds=statistics.median(row.milliseconds for row in rows),
    )


def main(data: Path = DATA, home: Path | None = None) -> None:
    """Print the table; an index is built where none is given."""
    os.environ.setdefault("OPENAI_API_KEY", "none")
    with tempfile.TemporaryDirectory() as place:
        if home is None:
            home, folder = Path(place) / "home", Path(place) / "documents"
            folder.mkdir()
            for file in podcast_files(data, Path(place) / "all")[:_DOCUMENTS]:
                shutil.copy(file, folder)
            Index(Settings(home=str(home))).update(folder)
        print(describe(compared(home, data)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data_dir", nargs="?", type=Path, default=DATA)
    parser.add_argument("--home", type=Path, help="ask this index, and build none")
    options = parser.parse_args()
    main(options.data_dir, options.home)
