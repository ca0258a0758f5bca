"""How much of what is retrieved is in the answers that no model writes, on folders of your own.

    python -m benchmarks answers FOLDER QUESTIONS.jsonl [FOLDER QUESTIONS.jsonl ...] [--show]

Each folder is indexed, with the settings as they are, in a home of its own; with `--homes` the
index that lies in that folder under the name of the documents' folder is asked, and made where it
is not there. A line of QUESTIONS.jsonl is `{"question": ..., "answers": [...]}`: strings of the
documents of which one is gold, whatever its spaces and capitals.

Counted are the questions with gold in what is retrieved, and in the answer; how long an answer is
on average, in characters, without numbers of citations; and the share of passages that are
unrelated: that hold no gold and fewer than half of the question's words. Even and odd questions, by
their place in the file, are also shown apart: choose a rule on the even ones. `--show` prints the
answers to questions whose gold is retrieved and not in the answer.
"""

from __future__ import annotations

import json
import re
import statistics
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.index_speed import index_speed
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.core.text import fold, terms
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query.answering import NOT_WRITTEN

_CITED = re.compile(r" \[\d+\]$")
_COUNTS = ("retrieved", "answer", "characters", "unrelated")


@dataclass(frozen=True)
class Answered:
    """What came of a question: the passages of its answer, and where its gold is."""

    question: str
    passages: Sequence[str]
    is_retrieved: bool
    is_answered: bool
    n_unrelated: int


def answers(home: Path, questions: Path, method: str = "auto") -> Iterator[Answered]:
    """Yield what an index answers to the questions of a file, without a model."""
    with QueryEngine(home, settings=Settings(home=str(home))) as engine:
        for line in questions.read_text("utf-8").splitlines():
            asked = json.loads(line)
            answer = engine.answer(asked["question"], method)
            retrieved = " ".join(f"{r.title} {r.text}" for r in answer.retrieval.records)
            gold = [_plain(string) for string in asked["answers"]]
            passages = passages_of(answer.text)
            yield Answered(
                question=asked["question"],
                passages=passages,
                is_retrieved=_holds(retrieved, gold) or _holds(" ".join(passages), gold),
                is_answered=_holds(" ".join(passages), gold),
                n_unrelated=sum(is_unrelated(p, asked["question"], gold) for p in passages),
            )


def passages_of(text: str) -> list[str]:
    """Return the points of an answer without a model, bare of the numbers of their citations.

    Each in one line.
    """
    lines = text.removeprefix(NOT_WRITTEN).replace("\n  ", " ").splitlines()
    return [_CITED.sub("", line[2:]) for line in lines if line.startswith("- ")]


def is_unrelated(passage: str, question: str, gold: Sequence[str]) -> bool:
    """Whether a passage holds no gold, and fewer than half of the words of the question."""
    asked = set(terms(question))
    return not _holds(passage, gold) and 2 * len(asked.intersection(terms(passage))) < len(asked)


def _holds(text: str, gold: Sequence[str]) -> bool:
    plain = _plain(text)
    return any(string in plain for string in gold)


def _plain(text: str) -> str:
    """Return the letters and digits of a text: a reader may take marks and spaces for others."""
    return " ".join(re.findall(r"\w+", fold(text)))


def add_options(parser: ArgumentParser) -> None:
    """Add what this part of the benchmarks takes."""
    group = parser.add_argument_group("answers")
    group.add_argument("--show", action="store_true", help="print answers without their gold")


def main(pairs: Sequence[Path], options: Namespace) -> None:
    """Print a line for each folder, and one for all."""
    if len(pairs) < 2 or len(pairs) % 2:
        raise SystemExit("answers: name a folder of documents, then a JSONL file of questions")
    print(f"{'':14}{''.join(f'{name:>12}' for name in _COUNTS)}{'even':>12}{'odd':>12}")
    every: list[list[Answered]] = []
    for folder, questions in zip(pairs[::2], pairs[1::2], strict=True):
        with tempfile.TemporaryDirectory() as place:
            home = (options.homes or Path(place)) / folder.name
            _index(folder, home)
            every.append(list(answers(home, questions, (options.methods or "auto"))))
        print(describe(folder.name, [every[-1]]), flush=True)
        if options.show:
            print("\n".join(_lines(every[-1])))
    print(describe("all", every))


def _index(folder: Path, home: Path) -> None:
    try:
        with QueryEngine(home, settings=Settings(home=str(home))):
            return
    except InputError:
        index_speed(folder, home)


def describe(name: str, every: Sequence[Sequence[Answered]]) -> str:
    """Return one line of the table; even and odd are gold in answers, of gold that is retrieved."""
    all_of_them = [one for group in every for one in group]
    n_passages = sum(len(one.passages) for one in all_of_them) or 1
    length = statistics.fmean(sum(map(len, one.passages)) for one in all_of_them)
    halves = [[one for group in every for one in group[parity::2]] for parity in (0, 1)]
    counts = [
        f"{sum(one.is_retrieved for one in all_of_them)}/{len(all_of_them)}",
        f"{sum(one.is_answered for one in all_of_them)}",
        f"{length:.0f}",
        f"{sum(one.n_unrelated for one in all_of_them) / n_passages:.2f}",
        *(f"{sum(a.is_answered for a in h)}/{sum(a.is_retrieved for a in h)}" for h in halves),
    ]
    return f"{name:14}{''.join(f'{count:>12}' for count in counts)}"


def _lines(group: Sequence[Answered]) -> Iterator[str]:
    for one in group:
        if one.is_retrieved and not one.is_answered:
            yield f"  {one.question}"
            yield from (f"    - {passage}" for passage in one.passages)
