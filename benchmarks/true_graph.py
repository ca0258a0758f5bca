"""Entities and relationships of twenty texts beside what is true: by rules, and by a model.

Run ``python -m benchmarks.true_graph [address of a server [model [file of results]]]``. What the
file of results has is not asked again. What is true was written by hand (``true_graph.json``): the
organisations, persons, places and events that a text names, in the forms that it has them, and the
pairs that it relates. ``others`` are names of other things, which count neither as right nor as
wrong. Twelve texts are pages of the sample corpus; eight stand with their truth, of other natures:
news, a match, a letter, minutes, a history, a guide, a biography and an e-mail, all invented.
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
FORMATS = ("two_calls", "schema", "tuples")
_BLOCKS = pl.List(pl.Struct({"start": pl.Int64, "end": pl.Int64, "kind": pl.String}))
_NO_NAMES = ["CONCEPT", "DATE"]
_BEFORE_A_NAME = re.compile(r"^(?:the|dr\.?|mr\.?|miss|captain|judge|river|lake|province of) ")

Truth = Mapping[str, Any]


def pages() -> dict[str, Truth]:
    """Return what is true of each text, by its name; names of the corpus are those of its files."""
    return json.loads(TRUTH.read_text("utf-8"))


def texts() -> dict[str, str]:
    """Return each text by its name."""
    return {
        name: truth.get("text") or (CORPUS / name).read_text("utf-8")
        for name, truth in pages().items()
    }


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


def graphs(named_texts: Mapping[str, str], settings: Settings) -> dict[str, dict[str, Any]]:
    """Return what an extractor finds in texts, by their names.

    Of each text ``entities`` (title, type), ``pairs`` of titles and, of a model, ``status`` ("ok"
    where its answers ended and were read) and the tokens ``prompt_tokens``, ``completion_tokens``.
    """
    chunks = pl.DataFrame({"id": [*named_texts], "text": [*named_texts.values()]})
    chunks = chunks.with_columns(
        context=pl.lit(""),
        blocks=pl.lit(None, _BLOCKS),
        subject=pl.lit(None, pl.String),
        is_first=True,
        is_last=True,
    )
    extracted = extract(chunks, settings, "true graph")
    parts = list(extracted.found)
    entities = pl.concat([part.entities.select("chunk_id", "title", "type") for part in parts])
    related = pl.concat([part.relationships for part in parts])
    related = related.select("chunk_id", "source", "target")
    found: dict[str, dict[str, Any]] = {}
    for name in named_texts:
        found[name] = {
            "entities": entities.filter(chunk_id=name).drop("chunk_id").rows(),
            "pairs": related.filter(chunk_id=name).drop("chunk_id").rows(),
        }
    if extracted.outcomes is not None:
        for row in extracted.outcomes.drop("transient").iter_rows(named=True):
            found[row.pop("chunk_id")] |= row
    return found


def total(found: Mapping[str, Mapping[str, Any]]) -> Counter[str]:
    """Return the scores of graphs, summed, with ``texts``, those ``ok`` and their tokens."""
    truth, summed = pages(), Counter[str]()
    for page, graph in found.items():
        named = [title for title, kind in graph["entities"] if kind not in _NO_NAMES]
        known = {normalize_title(title) for title in named}
        pairs = [pair for pair in graph["pairs"] if {*map(normalize_title, pair)} <= known]
        summed += scores(truth[page], named, pairs)
        summed += Counter(texts=1, ok=int(graph.get("status") == "ok"))
        tokens = ("prompt_tokens", "completion_tokens")
        summed += Counter({name: graph.get(name, 0) for name in tokens})
    return summed


def asked(
    named_texts: Mapping[str, str], settings: Settings, results: Path
) -> tuple[dict[str, dict[str, Any]], float]:
    """Return what a model finds, text by text, and the seconds; keep each in a file of results.

    What the file has of the same text by the same model and format is not asked again.
    """
    key = [settings.llm.model, settings.extraction.format]
    rows = results.read_text("utf-8").splitlines() if results.exists() else ()
    known = {(*row["of"],): row for row in map(json.loads, rows)}
    found: dict[str, dict[str, Any]] = {}
    for name, text in named_texts.items():
        of = (*key, name, text)
        if of not in known:
            began = time.perf_counter()
            graph = graphs({name: text}, settings)[name]
            known[of] = {**graph, "of": of, "seconds": time.perf_counter() - began}
            with results.open("a", encoding="utf-8") as file:
                print(json.dumps(known[of]), file=file)
        found[name] = known[of]
    return found, sum(graph["seconds"] for graph in found.values())


def described(found: Mapping[str, Mapping[str, Any]], seconds: float) -> str:
    """Return scores as a line; pairs, tokens and seconds are those of a text."""
    summed = total(found)
    n = max(1, summed["texts"])
    names, pairs = (
        f"{summed[f'right_{what}'] / max(1, summed[what]):.2f} "
        f"{summed[f'right_{what}'] / max(1, summed[f'true_{what}']):.2f}"
        for what in ("names", "pairs")
    )
    return (
        f"{summed['texts']} texts, {summed['ok']} ended and read, names {names}, "
        f"pairs {summed['pairs'] / n:.1f} {pairs}, tokens {summed['prompt_tokens'] / n:,.0f} "
        f"{summed['completion_tokens'] / n:,.0f}, {seconds / n:.2f} s"
    )


def by_rule() -> tuple[dict[str, dict[str, Any]], float]:
    """Return what rules find in all texts, and their seconds."""
    began = time.perf_counter()
    found = graphs(texts(), Settings(profile="embedded"))
    return found, time.perf_counter() - began


def by_model(base_url: str, model: str, form: str, home: Path) -> Settings:
    """Return settings of a model that is asked in a format, one call at a time."""
    return Settings(
        home=str(home),
        profile="local",
        llm={"base_url": base_url, "model": model, "concurrency": 1, "timeout_seconds": 3600},
        extraction={"extractor": "llm", "format": form, "gleanings": 0},
    )


def main(base_url: str = "", model: str = "local", results: str = "") -> None:
    """Print precision and recall of names and of pairs: rules, and each format of a model."""
    print("rules", described(*by_rule()))
    with tempfile.TemporaryDirectory() as home:
        kept = Path(results or f"{home}/results.jsonl")
        for form in FORMATS if base_url else ():
            settings = by_model(base_url, model, form, Path(home))
            print(form, described(*asked(texts(), settings, kept)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
