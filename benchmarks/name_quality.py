"""How many of the most connected people, places and organisations, found by rule, are such.

    python -m benchmarks names [--data folder]

The labels are in ``tests/data/name_labels.tsv`` (corpus, type, title, right), given by this rule:

- PERSON is right for one human being, real or told of, by a name: given name, surname, both, or
  a title with a name or a place (Mrs. Cratchit, Duke of York). A title alone, a family, a people,
  a kind of being (Ghost), an office, a work, and a cut that joins two names are wrong.
- GEO is right for one place with a name: state, region, town, building, street, water, mountain.
  A kind of place (congressional district), a direction, an organisation and a union of states,
  a version, a section and a planet are wrong.
- ORGANIZATION is right for one body of people with a name that acts as one: firm, office, school,
  army, party, band, team, paper, union of states. A kind of body (standard library), a heading, a
  person, a place and a cut that joins or halves names are wrong.
- A title that stands for several things is right if most sentences of the corpus mean one that is.
"""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from graphrag_pipeline import Index

LABELS = Path(__file__).resolve().parents[1] / "tests" / "data" / "name_labels.tsv"
TYPES = ("PERSON", "GEO", "ORGANIZATION")
_MOST = 100

Label = tuple[str, str, str]


def read_labels(path: Path = LABELS) -> dict[Label, bool]:
    """Return whether a title of a corpus is of a type: (corpus, type, title) to right or not."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t")
        return {(row["corpus"], row["type"], row["title"]): row["right"] == "yes" for row in rows}


def score(corpus: str, kind: str, titles: list[str]) -> tuple[int, int, list[str]]:
    """Return how many titles are labelled, how many of these right, and those not labelled."""
    labels = read_labels()
    known = [labels[label] for title in titles if (label := (corpus, kind, title)) in labels]
    return len(known), sum(known), [t for t in titles if (corpus, kind, t) not in labels]


def most_connected(index: Index, kind: str) -> list[str]:
    """Return the titles of the entities of a type that have most relationships."""
    _, rows = index.sql(
        f"SELECT title FROM entities WHERE type = '{kind}'"
        f" ORDER BY degree DESC, title LIMIT {_MOST}"
    )
    return [str(row[0]) for row in rows]


def _corpora(data_dir: Path, work: Path) -> Iterator[tuple[str, Path]]:
    yield "technical", data_dir / "technical"
    passages = json.loads((data_dir / "musique" / "corpus.json").read_text("utf-8"))
    texts = [f"{passage['title']}\n{passage['text']}" for passage in passages]
    yield "musique", _written(work / "musique", texts)
    book = pl.read_parquet(data_dir / "carol_index" / "documents.parquet")["text"]
    yield "carol", _written(work / "carol", book.to_list())


def _written(folder: Path, texts: list[str]) -> Path:
    folder.mkdir()
    for number, text in enumerate(texts):
        (folder / f"{number:05}.txt").write_text(text, encoding="utf-8")
    return folder


def main(data_dir: Path) -> None:
    """Index three corpora by rule and print precision and number right for each type."""
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        for corpus, folder in _corpora(data_dir, work):
            index = Index(str(work / f"{corpus}-index"))
            index.update(str(folder))
            for kind in TYPES:
                n, right, unlabelled = score(corpus, kind, most_connected(index, kind))
                share = right / max(n, 1)
                print(f"  {corpus:<10} {kind:<12} {right:>4} right of {n:>4}  {share:.2f}")
                if unlabelled:
                    print(f"    not labelled: {', '.join(unlabelled)}")
