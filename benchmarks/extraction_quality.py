"""Quality and speed of the key-less extractor against recorded model extractions.

Run ``python benchmarks/extraction_quality.py [data folder]``. Gold is what a model listed, so a
perfect score is neither possible nor wanted; the bare rule (every run of capitalised words) is
the yardstick.
"""

from __future__ import annotations

import json
import re
import sys
import time
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import polars as pl

from graphrag_pipeline.core.text import normalize_title
from graphrag_pipeline.extraction.rules.nlp import NlpOptions, extract_nlp

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
_CAPITALISED = re.compile(r"\b[A-Z]\w*(?:\s+[A-Z]\w*)*")
_THE = re.compile(r"^(?:the|a|an) ")
_PUNCTUATION = re.compile(r"[^\w\s]")


def comparable(title: str) -> str:
    """Return a title without case, leading article and punctuation."""
    text = unicodedata.normalize("NFKC", title).casefold()
    return " ".join(_THE.sub("", _PUNCTUATION.sub(" ", text).strip()).split())


def is_capitalised(title: str) -> bool:
    """Say whether some word of a title begins with a capital."""
    return any(word[:1].isupper() for word in re.findall(r"\w+", title))


def bare_rule(text: str) -> set[str]:
    """Return every run of capitalised words of a text, the yardstick."""
    return {comparable(match) for match in _CAPITALISED.findall(text)} - {""}


def musique_quality(data_dir: Path) -> dict[str, float]:
    """Return precision and recall of names, and recall of related pairs, on MuSiQue passages."""
    docs = json.loads((data_dir / "musique" / "openie_gpt35.json").read_text("utf-8"))["docs"]
    chunks = pl.DataFrame(
        {"id": [str(i) for i in range(len(docs))], "text": [doc["passage"] for doc in docs]}
    )
    result = extract_nlp(chunks, NlpOptions())
    titles: dict[int, set[str]] = {i: set() for i in range(len(docs))}
    named: dict[int, set[str]] = {i: set() for i in range(len(docs))}
    for chunk, title, kind in result.entities.select("chunk_id", "title", "type").iter_rows():
        titles[int(chunk)].add(comparable(title))
        if kind != "CONCEPT" and is_capitalised(title):
            named[int(chunk)].add(comparable(title))
    edges: dict[int, set[frozenset[str]]] = {i: set() for i in range(len(docs))}
    for chunk, source, target in result.relationships.select(
        "chunk_id", "source", "target"
    ).iter_rows():
        edges[int(chunk)].add(frozenset((comparable(source), comparable(target))))
    score: Counter[str] = Counter()
    for i, doc in enumerate(docs):
        gold_all = {comparable(title) for title in doc["extracted_entities"]} - {""}
        gold = {comparable(t) for t in doc["extracted_entities"] if is_capitalised(t)} - {""}
        bare = bare_rule(doc["passage"])
        score["gold"] += len(gold)
        score["gold_all"] += len(gold_all)
        score["named"] += len(named[i])
        score["named_hit"] += len(named[i] & gold)
        score["all"] += len(titles[i])
        score["all_hit"] += len(titles[i] & gold_all)
        score["bare"] += len(bare)
        score["bare_hit"] += len(bare & gold)
        score["edges"] += len(edges[i])
        for pair in _gold_pairs(doc["extracted_triples"]):
            score["pairs"] += 1
            score["pairs_possible"] += pair <= titles[i]
            score["pairs_hit"] += pair in edges[i]
    return {
        "recall": score["named_hit"] / score["gold"],
        "precision": score["named_hit"] / score["named"],
        "bare_recall": score["bare_hit"] / score["gold"],
        "bare_precision": score["bare_hit"] / score["bare"],
        "recall_all_titles": score["all_hit"] / score["gold_all"],
        "precision_all_titles": score["all_hit"] / score["all"],
        "pair_recall": score["pairs_hit"] / score["pairs"],
        "pair_recall_of_found": score["pairs_hit"] / max(1, score["pairs_possible"]),
        "pairs_per_passage": score["edges"] / len(docs),
    }


def _gold_pairs(triples: Iterable[list[str]]) -> set[frozenset[str]]:
    pairs = {
        frozenset((comparable(triple[0]), comparable(triple[2])))
        for triple in triples
        if len(triple) == 3
    }
    return {pair for pair in pairs if len(pair) == 2 and "" not in pair}


def carol_quality(data_dir: Path) -> dict[str, float]:
    """Return recall and precision of a novel's titles against a model's GraphRAG index of it."""
    folder = data_dir / "carol_index"
    units = pl.read_parquet(folder / "text_units.parquet").select("id", "text")
    gold_titles = pl.read_parquet(folder / "entities.parquet")["title"].to_list()
    corpus = normalize_title(" ".join(units["text"]))
    gold = {
        comparable(title)
        for title in gold_titles
        if re.search(rf"(?<!\w){re.escape(normalize_title(title))}(?!\w)", corpus)
    }
    counts = Counter(comparable(t) for t in extract_nlp(units, NlpOptions()).entities["title"])
    frequent = {title for title, count in counts.items() if count >= 2}
    bare = {title for text in units["text"] for title in bare_rule(text)}
    return {
        "gold": len(gold),
        "titles": len(counts),
        "recall": len(gold & counts.keys()) / len(gold),
        "precision": len(gold & counts.keys()) / len(counts),
        "titles_frequent": len(frequent),
        "recall_frequent": len(gold & frequent) / len(gold),
        "precision_frequent": len(gold & frequent) / len(frequent),
        "bare_recall": len(gold & bare) / len(gold),
        "bare_precision": len(gold & bare) / len(bare),
    }


def podcast_speed(data_dir: Path) -> dict[str, float]:
    """Return the processor seconds and the yield for the Podcast corpus, one thread."""
    with zipfile.ZipFile(data_dir / "podcast" / "transcripts.zip") as archive:
        texts = [
            archive.read(name).decode("utf-8-sig")
            for name in sorted(archive.namelist())
            if name.endswith(".txt")
        ]
    chunks = pl.DataFrame({"id": [str(i) for i in range(len(texts))], "text": texts})
    began = time.process_time()
    result = extract_nlp(chunks, NlpOptions())
    seconds = time.process_time() - began
    return {
        "chunks": len(texts),
        "megabytes": sum(map(len, texts)) / 1e6,
        "cpu_seconds": seconds,
        "mentions": result.entities.height,
        "distinct_titles": len(set(map(normalize_title, result.entities["title"]))),
        "relationship_mentions": result.relationships.height,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print each measure as a small table; the only argument is the data folder."""
    given = sys.argv[1:] if arguments is None else arguments
    data_dir = Path(given[0]) if given else DATA
    for measure in (musique_quality, carol_quality, podcast_speed):
        print(measure.__name__)
        for name, value in measure(data_dir).items():
            shown = f"{value:.3f}" if isinstance(value, float) else f"{value:,}"
            print(f"  {name:<24}{shown:>12}")


if __name__ == "__main__":
    main()
