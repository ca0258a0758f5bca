"""Documents and questions about them whose documents are known: gold documents, by key."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.chats import chats
from benchmarks.index_speed import podcast_files
from graphrag_pipeline.core.text import terms
from graphrag_pipeline.extraction.rules.sentences import sentence_spans

SAMPLE = Path(__file__).resolve().parents[1] / "examples"
GRAPHS = ("rule", "recorded")
"""Where the graph of MuSiQue's passages comes from: rules, or a model's recorded extractions."""
PODCASTS = 600
_ROWS = "passages.jsonl"
_SEED = 16
_KNOWN_ITEMS = 100
_ASKED_WORDS = 6


@dataclass(frozen=True)
class Asked:
    """A question, the keys of the documents that answer it, and what the answer may be."""

    question: str
    gold: frozenset[str]
    answers: tuple[str, ...] = ()


@dataclass(frozen=True)
class QuestionSet:
    """Questions and their corpus.

    ``write`` writes the corpus into a new folder and returns the command that indexes it; ``key``
    returns the key of a row of ``documents``.
    """

    name: str
    questions: Sequence[Asked]
    write: Callable[[Path], Sequence[str | Path]]
    key: Callable[[Mapping[str, Any]], str]


def musique(data: Path, graph: str = "rule") -> QuestionSet:
    """Return 100 questions of several steps over 1,890 passages of an encyclopedia."""
    folder = data / "musique"
    entries = json.loads((folder / "questions.json").read_text("utf-8"))
    asked = [
        Asked(
            entry["question"],
            frozenset(
                _passage(passage["title"], passage["paragraph_text"])
                for passage in entry["paragraphs"]
                if passage["is_supporting"]
            ),
            (entry["answer"], *entry.get("answer_aliases", ())),
        )
        for entry in entries
    ]

    def write(target: Path) -> Sequence[str | Path]:
        recorded = json.loads((folder / "openie_gpt35.json").read_text("utf-8"))["docs"]
        file = target / "passages.jsonl"
        line_of = _extracted if graph == "recorded" else _plain
        file.write_text("".join(f"{json.dumps(line_of(e))}\n" for e in recorded), "utf-8")
        return ["import-extractions", file] if graph == "recorded" else ["index", "-y", target]

    return QuestionSet("MuSiQue", asked, write, lambda row: _passage(row["title"], row["text"]))


def nature(data: Path, name: str) -> QuestionSet:
    """Return a set in the folder ``natures``: a file of documents and of questions about them."""
    made = json.loads((data / "natures" / f"{name}.json").read_text("utf-8"))
    row_of = {doc["id"]: f"{_ROWS}#row-{n}" for n, doc in enumerate(made["docs"], start=1)}
    asked = [
        Asked(entry["question"], frozenset(row_of[key] for key in entry["gold"]))
        for entry in made["questions"]
    ]

    def write(target: Path) -> Sequence[str | Path]:
        lines = (f"{json.dumps(_plain(doc))}\n" for doc in made["docs"])
        (target / _ROWS).write_text("".join(lines), "utf-8")
        return ["index", "-y", target]

    return QuestionSet(name, asked, write, _below_folder)


def sample() -> QuestionSet:
    """Return the questions on the sample corpus that have an answer in known documents."""
    lines = (SAMPLE / "questions.jsonl").read_text("utf-8").splitlines()
    entries = [entry for entry in map(json.loads, lines) if entry.get("passages")]
    asked = [
        Asked(
            entry["question"],
            frozenset(passage["title"] for passage in entry["passages"]),
            tuple(entry["answers"]),
        )
        for entry in entries
    ]

    def write(target: Path) -> Sequence[str | Path]:
        shutil.copytree(SAMPLE / "corpus", target, dirs_exist_ok=True)
        return ["index", "-y", target]

    return QuestionSet("sample corpus", asked, write, _below_folder)


def podcasts(data: Path) -> QuestionSet:
    """Return questions made by seed of words in sentences of 600 transcripts, named by numbers.

    Each has up to six content words of one sentence, in their order; gold is its transcript.
    """
    with tempfile.TemporaryDirectory() as place:
        files = podcast_files(data, Path(place))[:PODCASTS]
        texts = {f"{n:04}.txt": file.read_text("utf-8") for n, file in enumerate(files)}
    asked = _known_items(texts)
    return QuestionSet("podcasts", asked, lambda target: _written(texts, target), _below_folder)


def chat_logs() -> QuestionSet:
    """Return questions on chat logs made by seed, in files named by their time."""
    made = chats(_SEED)
    asked = [Asked(question, gold) for question, gold in made.questions]
    files = made.files
    return QuestionSet("chat logs", asked, lambda target: _written(files, target), _below_folder)


def _written(files: Mapping[str, str], target: Path) -> Sequence[str | Path]:
    for name, text in files.items():
        (target / name).write_text(text, "utf-8")
    return ["index", "-y", target]


def _known_items(texts: Mapping[str, str]) -> list[Asked]:
    chance = random.Random(_SEED)
    asked: list[Asked] = []
    for name in chance.sample(sorted(texts), _KNOWN_ITEMS):
        spans = sentence_spans(texts[name])
        sentences = [texts[name][start:end] for start, end in spans]
        words = [
            [word for word in sentence.split() if terms(word)]
            for sentence in sentences
            if len(terms(sentence)) >= _ASKED_WORDS
        ]
        if words:
            chosen = chance.choice(words)
            places = sorted(chance.sample(range(len(chosen)), min(_ASKED_WORDS, len(chosen))))
            question = " ".join(chosen[place] for place in places)
            asked.append(Asked(question, frozenset([name])))
    return asked


def _below_folder(row: Mapping[str, Any]) -> str:
    """Return the name of a file below the folder ``documents``, which was indexed."""
    return row["uri"].rpartition("documents/")[2]


def _passage(title: str, text: str) -> str:
    """Return what tells passages apart however their white space was cleaned."""
    return " ".join(title.split()) + "\n" + " ".join(text.split())[:100]


def _plain(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"title": entry["title"], "text": entry["text"]}


def _extracted(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "document": entry["title"],
        "text": entry["text"],
        "entities": entry["extracted_entities"],
        "triples": entry["extracted_triples"],
    }
