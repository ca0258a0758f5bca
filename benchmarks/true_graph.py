"""Entities and relationships of sample pages beside what is true: by rules, and by a model.

Run ``python -m benchmarks.true_graph [address of a server [model]]``. What is true was written by
hand (``true_graph.json``): the organisations, persons, places and events that a page names, in the
forms that it has them, and the pairs that it relates. ``others`` are names of other things, which
count neither as right nor as wrong.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.core.text import normalize_title
from graphrag_pipeline.extraction.extractors import extract

TRUTH = Path(__file__).with_suffix(".json")
CORPUS = Path(__file__).resolve().parents[1] / "examples" / "corpus"
FORMATS = ("tuples", "schema", "two_calls")
_BLOCKS = pl.List(pl.Struct({"start": pl.Int64, "end": pl.Int64, "kind": pl.String}))
_NO_NAMES = ["CONCEPT", "DATE"]
_BEFORE_A_NAME = re.compile(r"^(?:the|dr\.?|mr\.?|miss|captain|judge|river|lake|province of) ")

Truth = Mapping[str, Any]


def pages() -> dict[str, Truth]:
    """Return what is true of each page, by its name in the corpus."""
    return json.loads(TRUTH.read_text("utf-8"))


def comparable(name: str) -> str:
    """Return a name without what may stand before it."""
    return _BEFORE_A_NAME.sub("", normalize_title(name))


def scores(truth: Truth, names: Iterable[str], pairs: Iterable[tuple[str, str]]) -> Counter[str]:
    """Return how many names and pairs there are, are right, and would be, on one page."""
    first = {comparable(form): forms[0] for forms in truth["names"] for form in forms}
    others = {comparable(form): forms[0] for forms in truth["others"] for form in forms}
    known = others | first
    own_names = {comparable(name) for name in names} - others.keys()
    true_pairs = {frozenset(pair) for pair in truth["pairs"]}
    ends = [[known.get(comparable(end), comparable(end)) for end in pair] for pair in pairs]
    own_pairs = {frozenset(pair) for pair in ends if pair[0] != pair[1]}
    right = {first[name] for name in own_names if name in first}
    return Counter(
        names=len(right) + len(own_names - first.keys()),
        right_names=len(right),
        true_names=len(truth["names"]),
        pairs=len(own_pairs),
        right_pairs=len(own_pairs & true_pairs),
        true_pairs=len(true_pairs),
    )


def measured(settings: Settings) -> tuple[Counter[str], float]:
    """Return the scores of an extractor on all pages, and its seconds."""
    texts = {name: (CORPUS / name).read_text("utf-8") for name in pages()}
    chunks = pl.DataFrame({"id": [*texts], "text": [*texts.values()]})
    chunks = chunks.with_columns(
        context=pl.lit(""),
        blocks=pl.lit(None, _BLOCKS),
        subject=pl.lit(None, pl.String),
        is_first=True,
        is_last=True,
    )
    began = time.perf_counter()
    parts = list(extract(chunks, settings, "true graph").found)
    seconds = time.perf_counter() - began
    entities = pl.concat([part.entities.select("chunk_id", "title", "type") for part in parts])
    related = pl.concat([part.relationships for part in parts]).select(
        "chunk_id", "source", "target"
    )
    total: Counter[str] = Counter()
    for page, truth in pages().items():
        named = entities.filter(chunk_id=page).filter(~pl.col("type").is_in(_NO_NAMES))
        names = {normalize_title(title) for title in named["title"]}
        pairs = [
            (source, target)
            for _, source, target in related.filter(chunk_id=page).iter_rows()
            if {normalize_title(source), normalize_title(target)} <= names
        ]
        total += scores(truth, named["title"], pairs)
    return total, seconds


def described(total: Counter[str], seconds: float) -> str:
    """Return scores as a line."""
    names, pairs = (
        f"{total[f'right_{what}'] / max(1, total[what]):.2f} "
        f"{total[f'right_{what}'] / total[f'true_{what}']:.2f}"
        for what in ("names", "pairs")
    )
    return f"names {names}, pairs {pairs} ({total['pairs']}), {seconds:.2f} s"


def main(base_url: str = "", model: str = "local") -> None:
    """Print precision and recall of names and of pairs: rules, and each format of a model."""
    print("rules", described(*measured(Settings(profile="embedded"))))
    for form in FORMATS if base_url else ():
        with tempfile.TemporaryDirectory() as home:
            settings = Settings(
                home=home,
                profile="local",
                llm={"base_url": base_url, "model": model, "concurrency": 1},
                extraction={"extractor": "llm", "format": form, "gleanings": 0},
            )
            print(form, described(*measured(settings)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
