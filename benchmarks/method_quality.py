"""How well every method finds the gold passages of 100 MuSiQue questions, and what it costs.

    python -m benchmarks.method_quality [data_dir] [--model name-or-folder] [--methods a,b]

Two indexes of the same 1,890 passages: with a graph found by rule, and with recorded extractions by
a model. The questions play no part in either, nor in any parameter: each method has the defaults of
its paper; of `ppr`, which is ours, docs/methods.md says where they come from.

A passage is the document of a chunk. Recall@k is the share of a question's gold passages among the
first k, averaged over questions; `all@5` the share of questions with all of them among the first 5.
Both are read from a retrieval widened to 20 chunks where the method has a number of chunks; tokens
and milliseconds are those of the defaults. `gold` is the share of questions whose answer without a
model, sentences of the passages, holds a gold answer, and `answer` what writing it adds in
milliseconds.

With `--home` an index of these passages that is there is asked, and none is built.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.evaluation.answer_metrics import bare, is_accurate
from graphrag_pipeline.query import METHODS, Answer, QueryEngine, Retrieval

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
CUTOFFS = (2, 5, 10, 20)
SOURCES = {"rule": "graph found by rule", "recorded": "recorded extractions of a model"}
_GIVEN = {
    "embeddings": {"facts": True, "synonyms": True},
    "hierarchies": {"raptor": True, "hirag": True, "attributed": True},
}
_RANKING_CHUNKS = ("basic", "bm25", "hybrid", "hipporag", "hipporag2", "ppr")
_WIDENED = {name: {"top_k": 20} for name in _RANKING_CHUNKS} | {"fast_graphrag": {"chunks": 20}}


@dataclass(frozen=True)
class Asked:
    """A question and the (title, text) of the passages that answer it."""

    question: str
    gold: frozenset[tuple[str, str]]
    answers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Quality:
    """What a method found and cost: recall by cut-off, tokens and p50 milliseconds a question."""

    method: str
    recall: Mapping[int, float]
    all_at_5: float
    tokens: float
    milliseconds: float
    answered: float
    """Share of the questions whose answer without a model holds a gold answer."""
    answer_milliseconds: float


def questions(data_dir: Path) -> list[Asked]:
    """Read the questions of the MuSiQue sample under the shared data folder."""
    found = json.loads((data_dir / "musique" / "questions.json").read_text("utf-8"))
    return [
        Asked(
            entry["question"],
            frozenset(
                _key(passage["title"], passage["paragraph_text"])
                for passage in entry["paragraphs"]
                if passage["is_supporting"]
            ),
            (entry["answer"], *entry.get("answer_aliases", ())),
        )
        for entry in found
    ]


def build(data_dir: Path, home: Path, source: str, embeddings: Mapping[str, Any]) -> Settings:
    """Index the passages in ``home``, their graph from one of :data:`SOURCES`."""
    given = {**_GIVEN, "embeddings": {**_GIVEN["embeddings"], **embeddings}}
    settings = Settings.model_validate({"home": str(home), **given})
    recorded = json.loads((data_dir / "musique" / "openie_gpt35.json").read_text("utf-8"))["docs"]
    file = home / "documents" / "passages.jsonl"
    file.parent.mkdir(parents=True)
    lines = (_recorded(entry) if source == "recorded" else _plain(entry) for entry in recorded)
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    asked = ["import-extractions", file] if source == "recorded" else ["index", "-y", file.parent]
    environment = {
        f"GRAPHRAG_{section}__{name}".upper(): str(value)
        for section, values in given.items()
        for name, value in values.items()
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "graphrag_pipeline.cli", *map(str, asked)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment, "GRAPHRAG_HOME": str(home)},
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return settings


def method_quality(
    home: Path, settings: Settings, asked: Sequence[Asked], methods: Sequence[str]
) -> Iterator[Quality]:
    """Yield the quality of each method that returns chunks and can be asked of this index."""
    with QueryEngine(home, settings=settings) as engine:
        rows = engine.index.rows("SELECT id, title, text FROM documents")
        passage_of = {row["id"]: _key(row["title"], row["text"]) for row in rows}
        for name in methods:
            try:
                engine.retrieve(asked[0].question, name)
            except InputError as error:
                print(f"{name}: {error}")
                continue
            plain = [_timed(engine, one.question, name) for one in asked]
            widened = _WIDENED.get(name)
            wide = [
                engine.retrieve(one.question, name, **widened) if widened else retrieval
                for one, (retrieval, _) in zip(asked, plain, strict=True)
            ]
            found = [_passages(retrieval, passage_of) for retrieval in wide]
            if any(found):
                answers = [engine.answer(one.question, name) for one in asked]
                yield _quality(name, asked, found, plain, answers)


def _timed(engine: QueryEngine, question: str, method: str) -> tuple[Retrieval, float]:
    began = time.perf_counter()
    return engine.retrieve(question, method), 1000 * (time.perf_counter() - began)


def _passages(
    retrieval: Retrieval, passage_of: Mapping[str, tuple[str, str]]
) -> list[tuple[str, str]]:
    documents = [r.attributes["document_id"] for r in retrieval.records if r.kind == "chunk"]
    return list(dict.fromkeys(passage_of[key] for key in documents))


def _quality(
    name: str,
    asked: Sequence[Asked],
    found: Sequence[Sequence[tuple[str, str]]],
    plain: Sequence[tuple[Retrieval, float]],
    answers: Sequence[Answer],
) -> Quality:
    pairs = [(one.gold, list(passages)) for one, passages in zip(asked, found, strict=True)]
    return Quality(
        method=name,
        recall={
            k: statistics.fmean(
                len(gold & set(passages[:k])) / len(gold) for gold, passages in pairs
            )
            for k in CUTOFFS
        },
        all_at_5=statistics.fmean(gold <= set(passages[:5]) for gold, passages in pairs),
        tokens=statistics.fmean(sum(r.n_tokens for r in found.records) for found, _ in plain),
        milliseconds=statistics.median(taken for _, taken in plain),
        answered=statistics.fmean(
            is_accurate(bare(answer.text), one.answers)
            for one, answer in zip(asked, answers, strict=True)
        ),
        answer_milliseconds=1000 * statistics.median(a.timings["answer"] for a in answers),
    )


def _plain(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"title": entry["title"], "text": entry["text"]}


def _recorded(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "document": entry["title"],
        "text": entry["text"],
        "entities": entry["extracted_entities"],
        "triples": entry["extracted_triples"],
    }


def _key(title: str, text: str) -> tuple[str, str]:
    """Return what tells passages apart however their white space was cleaned."""
    return " ".join(title.split()), " ".join(text.split())[:100]


def describe(quality: Quality) -> str:
    """Return one line of the table, shares in percent."""
    recalls = "".join(f"{100 * share:7.1f}" for share in quality.recall.values())
    cost = f"{quality.tokens:8.0f}{quality.milliseconds:8.1f}"
    cost += f"{100 * quality.answered:7.0f}{quality.answer_milliseconds:8.1f}"
    return f"{quality.method:18}{recalls}{100 * quality.all_at_5:7.0f}{cost}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table for each index."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data_dir", nargs="?", type=Path, default=DATA)
    parser.add_argument("--model", help="a local embedding model instead of hashing")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--home", type=Path, help="an index of the passages to ask")
    options = parser.parse_args(arguments)
    embeddings = {"embedder": "local", "model": options.model} if options.model else {}
    asked = questions(options.data_dir)
    if options.home:
        settings = Settings.model_validate({"home": str(options.home), **_GIVEN})
        _print_table(str(options.home), settings, asked, options.methods.split(","))
        return
    for source, title in SOURCES.items():
        with tempfile.TemporaryDirectory() as place:
            settings = build(options.data_dir, Path(place), source, embeddings)
            _print_table(title, settings, asked, options.methods.split(","))


def _print_table(
    title: str, settings: Settings, asked: Sequence[Asked], methods: Sequence[str]
) -> None:
    header = "".join(f"{f'@{k}':>7}" for k in CUTOFFS)
    header += f"{'all@5':>7}{'tokens':>8}{'ms':>8}{'gold':>7}{'answer':>8}"
    print(f"\n{title}\n{'method':18}{header}")
    for row in method_quality(Path(settings.home), settings, asked, methods):
        print(describe(row), flush=True)


if __name__ == "__main__":
    main()
