"""How well every method finds the gold documents of known questions, and what it costs.

    python -m benchmarks methods [--embedder hashing] [--embedder FOLDER] [--graph recorded]
                                 [--home HOME] [--methods a,b] [--record]

One index, all methods of the registry, 100 MuSiQue questions over 1,890 passages; where these are
not there, the questions on the sample corpus. The graph is found by rule, or by a model whose
recorded extractions are imported. The questions play no part in the index. Each method has the
defaults of its paper; of `ppr`, which is ours, docs/methods.md says where they come from.

Recall@k is the share of a question's gold documents among the first k that a method finds, by its
chunks, or by what it cites where it shows none; `all@5` the share of questions with all of them
among the first 5. Both are read from a retrieval widened to 20 chunks where the method has a number
of chunks; tokens and milliseconds (CPU, medians) are those of the defaults. `gold` is the share of
questions whose answer without a model, sentences of the documents, holds a gold answer, and
`answer` what writing it adds in milliseconds. Intervals are of 95 %, by bootstrap over questions.

Embedders are `hashing`, that of the settings where it is `local`, and those named: folders of
models on this machine. With `--home` an index that is there is asked. `--record` writes the record,
the table and the picture of docs/how-to/compare.md; without it, what was recorded of the same
questions is compared, question by question, and what has moved further than chance makes the
command fail. Milliseconds depend on the machine and are not compared.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphrag_evaluation.metrics.answers import bare, is_accurate

from benchmarks.method_record import Recorded, Run, interval_of, moved, read_record, write_record
from benchmarks.question_sets import GRAPHS, Asked, QuestionSet, musique, sample
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.settings import Settings, load_settings
from graphrag_pipeline.query import METHODS, MODEL_METHODS, QueryEngine, Retrieval, read_method
from graphrag_pipeline.query.answering import extractive_answer
from graphrag_pipeline.query.trace import Trace

CUTOFFS = (2, 5, 10, 20)
HASHING = "hashing"
SENTENCES = 5
STRUCTURES = {
    "embeddings": {"facts": True, "synonyms": True},
    "hierarchies": {"raptor": True, "hirag": True, "attributed": True},
}
_RANKING_CHUNKS = ("auto", "basic", "bm25", "hybrid", "hipporag", "hipporag2", "ppr")
_WIDENED = {name: {"top_k": 20} for name in _RANKING_CHUNKS} | {"fast_graphrag": {"chunks": 20}}


@dataclass(frozen=True)
class Found:
    """What a method found for a question, as keys of documents, and what it took."""

    documents: Sequence[str]
    tokens: int
    milliseconds: float
    holds_answer: bool | None
    """Whether the answer without a model holds a gold answer; None where there is no such."""
    answer_milliseconds: float


def build(
    asked: QuestionSet,
    home: Path,
    embeddings: Mapping[str, Any],
    structures: Mapping[str, Mapping[str, Any]] = STRUCTURES,
) -> Settings:
    """Index the documents of a set in ``home``, by default with all that any method needs."""
    given = _given(structures, embeddings)
    folder = home / "documents"
    folder.mkdir(parents=True)
    command = asked.write(folder)
    environment = {
        f"GRAPHRAG_{section}__{name}".upper(): str(value)
        for section, values in given.items()
        for name, value in values.items()
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "graphrag_pipeline.cli", *map(str, command)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment, "GRAPHRAG_HOME": str(home)},
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return Settings.model_validate({"home": str(home), **given})


def _given(
    structures: Mapping[str, Mapping[str, Any]], embeddings: Mapping[str, Any]
) -> dict[str, Mapping[str, Any]]:
    return {**structures, "embeddings": {**structures.get("embeddings", {}), **embeddings}}


def measured(
    home: Path, settings: Settings, asked: QuestionSet, specs: Sequence[str]
) -> Iterator[tuple[str, list[Found]]]:
    """Yield what each method, with parameters as on the command line, found for each question."""
    with QueryEngine(home, settings=settings) as engine:
        rows = engine.index.rows("SELECT id, uri, title, text FROM documents")
        key_of = {row["id"]: asked.key(row) for row in rows}
        for spec in specs:
            name, options = read_method(spec)
            try:
                engine.retrieve(asked.questions[0].question, name, **options)
            except InputError as error:
                print(f"{spec}: {error}")
                continue
            yield spec, [_found(engine, one, name, options, key_of) for one in asked.questions]


def _found(
    engine: QueryEngine,
    asked: Asked,
    name: str,
    options: Mapping[str, Any],
    key_of: Mapping[str, str],
) -> Found:
    began = time.process_time()
    plain = engine.retrieve(asked.question, name, **options)
    milliseconds = 1000 * (time.process_time() - began)
    wider = _WIDENED.get(name)
    wide = engine.retrieve(asked.question, name, **{**wider, **options}) if wider else plain
    holds_answer, answer_milliseconds = None, 0.0
    if asked.answers and name not in MODEL_METHODS:
        began = time.process_time()
        index = engine.index.traced(Trace())
        answer = extractive_answer(index, plain, sentences=SENTENCES, context=0)
        answer_milliseconds = 1000 * (time.process_time() - began)
        holds_answer = is_accurate(bare(answer.text), asked.answers)
    return Found(
        documents=_documents(wide, key_of),
        tokens=sum(record.n_tokens for record in plain.records),
        milliseconds=milliseconds,
        holds_answer=holds_answer,
        answer_milliseconds=answer_milliseconds,
    )


def _documents(retrieval: Retrieval, key_of: Mapping[str, str]) -> list[str]:
    ids = [r.attributes["document_id"] for r in retrieval.records if r.kind == "chunk"]
    ids = ids or [c.document_id for c in retrieval.citations if c.document_id]
    return list(dict.fromkeys(key_of[key] for key in ids))


def recall(asked: Sequence[Asked], found: Sequence[Found], k: int) -> list[float]:
    """Return the share of each question's gold documents among the first ``k``."""
    return [
        len(one.gold & set(own.documents[:k])) / len(one.gold)
        for one, own in zip(asked, found, strict=True)
    ]


def summary(asked: Sequence[Asked], found: Sequence[Found]) -> Recorded:
    """Return what is recorded of a method."""
    at_5 = recall(asked, found, 5)
    held = [own.holds_answer for own in found if own.holds_answer is not None]
    return Recorded(
        recall={k: statistics.fmean(recall(asked, found, k)) for k in CUTOFFS},
        all_at_5=statistics.fmean(share == 1 for share in at_5),
        holds_answer=statistics.fmean(held) if held else None,
        milliseconds=statistics.median(own.milliseconds for own in found),
        answer_milliseconds=statistics.median(own.answer_milliseconds for own in found),
        recall_at_5=at_5,
        tokens=[own.tokens for own in found],
    )


def add_options(parser: ArgumentParser) -> None:
    """Add what this part of the benchmarks takes."""
    group = parser.add_argument_group("methods")
    group.add_argument("--embedder", action="append", default=[], help="hashing, or a folder")
    group.add_argument("--graph", choices=GRAPHS, default=GRAPHS[0], help="by rule, or recorded")
    group.add_argument("--home", type=Path, help="ask this index of the passages, build none")
    group.add_argument("--methods", help="methods with parameters, separated by commas")
    group.add_argument("--record", action="store_true", help="write record, table and picture")


def main(options: Namespace) -> bool:
    """Print a table for each embedder; return whether nothing has moved."""
    is_there = (options.data / "musique").is_dir()
    asked = musique(options.data, options.graph) if is_there else sample()
    print(f"{len(asked.questions)} questions: {asked.name}")
    runs: dict[str, Run] = {}
    for label, embeddings in _embedders(options.embedder).items():
        runs[f"{asked.name}, graph {options.graph}, {label}"] = _run(asked, embeddings, options)
    if options.record:
        write_record(runs)
        return True
    lines = moved(runs, read_record())
    print("\n".join(lines) or "Nothing has moved from the record.")
    return not lines


def _embedders(named: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Return the settings of each embedder to compare, by its label."""
    settings = load_settings().embeddings
    local = [settings.model] if settings.embedder == "local" and settings.model else []
    if not (named or local):
        print("By hashing alone: no local model is set; name the folder of one with --embedder")
    return {
        Path(name).name: {} if name == HASHING else {"embedder": "local", "model": name}
        for name in named or [HASHING, *local]
    }


def _run(asked: QuestionSet, embeddings: Mapping[str, Any], options: Namespace) -> Run:
    specs = options.methods.split(",") if options.methods else [*METHODS, *MODEL_METHODS]
    with tempfile.TemporaryDirectory() as place:
        home = options.home or Path(place) / "home"
        if options.home:
            given = _given(STRUCTURES, embeddings)
            settings = Settings.model_validate({"home": str(home), **given})
        else:
            settings = build(asked, home, embeddings)
        print(describe_header())
        run: Run = {}
        for spec, found in measured(home, settings, asked, specs):
            run[spec] = summary(asked.questions, found)
            print(describe(spec, run[spec]), flush=True)
        return run


def describe_header() -> str:
    """Return the head of the table."""
    recalls = "".join(f"{f'@{k}':>7}" for k in CUTOFFS)
    rest = f"{'all@5':>7}{'tokens':>8}{'ms':>8}{'gold':>7}{'answer':>8}"
    return f"\n{'method':18}{recalls}{'@5, 95 %':>12}{rest}"


def describe(name: str, one: Recorded) -> str:
    """Return one line of the table, shares in percent."""
    low, high = interval_of(one.recall_at_5)
    recalls = "".join(f"{100 * share:7.1f}" for share in one.recall.values())
    gold = "" if one.holds_answer is None else f"{100 * one.holds_answer:.0f}"
    cost = f"{statistics.fmean(one.tokens):8.0f}{one.milliseconds:8.1f}"
    between = f"{100 * low:.0f}-{100 * high:.0f}"
    shares = f"{recalls}{between:>12}{100 * one.all_at_5:7.0f}"
    return f"{name:18}{shares}{cost}{gold:>7}{one.answer_milliseconds:8.1f}"
