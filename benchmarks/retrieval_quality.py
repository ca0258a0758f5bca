"""How well each kind of search finds the gold passages of 100 MuSiQue questions.

    python benchmarks/retrieval_quality.py [data_dir] [--model name-or-folder]

Recall@k is the share of a question's supporting passages among the first k found, averaged over
questions, among 1,890 passages. Every row goes through the real store.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import pyarrow as pa

from graphrag_pipeline.llm.embedders import (
    DEFAULT_DIMENSIONS,
    Embedder,
    HashingEmbedder,
    SentenceTransformerEmbedder,
)
from graphrag_pipeline.store.vector_store import VectorSnapshot, VectorStore, row_schema

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
CUTOFFS = (2, 5, 10)
DIMENSIONS = (256, 384, 512, DEFAULT_DIMENSIONS, 768, 1024, 2048)
_DEPTH = 50
_RRF_K = 60


@dataclass(frozen=True)
class Questions:
    """Questions, the passages to search, and which passages each question needs."""

    questions: list[str]
    passages: pa.Table
    gold: list[set[str]]


def load(data_dir: Path) -> Questions:
    """Read the MuSiQue sample under the shared data folder."""
    musique = data_dir / "musique"
    corpus = json.loads((musique / "corpus.json").read_text("utf-8"))
    asked = json.loads((musique / "questions.json").read_text("utf-8"))
    texts = [_passage(entry["title"], entry["text"]) for entry in corpus]
    ids = [blake2b(text.encode(), digest_size=8).hexdigest() for text in texts]
    columns = [ids, texts, [None] * len(ids), [None] * len(ids), ids]
    passages = pa.table(
        [pa.array(c, f.type) for c, f in zip(columns, row_schema(), strict=True)],
        schema=row_schema(),
    )
    id_of = dict(zip(texts, ids, strict=True))
    gold = [
        {
            id_of[_passage(p["title"], p["paragraph_text"])]
            for p in question["paragraphs"]
            if p["is_supporting"]
        }
        for question in asked
    ]
    return Questions([question["question"] for question in asked], passages, gold)


def retrieval_quality(data_dir: Path, embedders: Sequence[Embedder] = ()) -> list[dict]:
    """Return one row per method: method, dimensions, recall@2, recall@5, recall@10, ms.

    Compared are hashing at several dimensions, full text, their reciprocal rank fusion, and the
    embedders given, alone and fused with full text.
    """
    data = load(data_dir)
    rows: list[dict] = []
    for dimensions in sorted(set(DIMENSIONS)):
        embedder = HashingEmbedder(dimensions)
        rows += _measure(data, embedder, with_text=dimensions == DEFAULT_DIMENSIONS)
    for embedder in embedders:
        rows += [row for row in _measure(data, embedder, with_text=True) if row["dimensions"]]
    return rows


def _passage(title: str, text: str) -> str:
    return f"{title}\n{text}"


def _measure(data: Questions, embedder: Embedder, *, with_text: bool) -> list[dict]:
    with tempfile.TemporaryDirectory() as folder:
        store = VectorStore(folder)
        store.sync("chunks", data.passages, embedder)
        snapshot = store.at({"chunks": store.version("chunks")})
        by_vector = _vector_search(snapshot, embedder)
        methods = [(f"vectors: {embedder.name}", embedder.dimensions, by_vector)]
        if with_text:
            by_text = _text_search(snapshot)
            methods.append(("full text (BM25)", 0, by_text))
            fused = _fused(by_vector, by_text)
            methods.append((f"both, fused: {embedder.name}", embedder.dimensions, fused))
        return [_row(name, dimensions, search, data) for name, dimensions, search in methods]


def _vector_search(snapshot: VectorSnapshot, embedder: Embedder) -> Callable[[str], list[str]]:
    def search(question: str) -> list[str]:
        vector = embedder.embed([question])[0]
        return snapshot.search("chunks", vector, _DEPTH)["id"].to_pylist()

    return search


def _text_search(snapshot: VectorSnapshot) -> Callable[[str], list[str]]:
    return lambda question: snapshot.fulltext("chunks", question, _DEPTH)["id"].to_pylist()


def _fused(*searches: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    def search(question: str) -> list[str]:
        scores: dict[str, float] = {}
        for one in searches:
            for rank, key in enumerate(one(question), start=1):
                scores[key] = scores.get(key, 0.0) + 1.0 / (_RRF_K + rank)
        return sorted(scores, key=lambda key: (-scores[key], key))

    return search


def _row(name: str, dimensions: int, search: Callable[[str], list[str]], data: Questions) -> dict:
    started = time.perf_counter()
    found = [search(question) for question in data.questions]
    elapsed = time.perf_counter() - started
    recalls = {f"recall@{k}": _recall(found, data.gold, k) for k in CUTOFFS}
    return {"method": name, "dimensions": dimensions, **recalls, "ms": 1000 * elapsed / len(found)}


def _recall(found: list[list[str]], gold: list[set[str]], k: int) -> float:
    pairs = zip(found, gold, strict=True)
    shares = [len(wanted & set(ids[:k])) / len(wanted) for ids, wanted in pairs]
    return sum(shares) / len(shares)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data_dir", nargs="?", type=Path, default=DATA)
    parser.add_argument("--model", action="append", default=[], help="a local model to compare")
    options = parser.parse_args(arguments)
    embedders = [SentenceTransformerEmbedder(model) for model in options.model]
    print(f"{'method':62}{'recall@2':>10}{'@5':>7}{'@10':>7}{'ms':>7}")
    for row in retrieval_quality(options.data_dir, embedders):
        shares = "".join(f"{100 * row[f'recall@{k}']:7.1f}" for k in CUTOFFS)
        print(f"{row['method']:65}{shares}{row['ms']:7.1f}")


if __name__ == "__main__":
    main()
