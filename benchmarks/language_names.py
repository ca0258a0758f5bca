"""Precision and recall of names found by rule, by language, type and half.

    python -m benchmarks names

The texts and the rule of their labels are in ``benchmarks/names``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from graphrag_pipeline.core.text import normalize_title
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.extraction.rules.nlp import NlpOptions, extract_nlp

FOLDER = Path(__file__).parent / "names"
TYPES = {"PER": "PERSON", "LOC": "GEO", "ORG": "ORGANIZATION"}
HALVES = ("dev", "held", "fresh", "late")
_LABEL = re.compile(r"\[\[(PER|LOC|ORG):([^\[\]]+)\]\]")
_HEAD = re.compile(r"^# (dev|held|fresh|late) (\w+)\n", re.MULTILINE)

Name = tuple[str, str]
"""A type and a name, normalised and without titles."""


@dataclass(frozen=True)
class Labelled:
    """A text, its half, and the names that it has."""

    half: str
    text: str
    names: frozenset[Name]


@dataclass(frozen=True)
class Score:
    """Counts of the names of one type: right ones, those found, those marked."""

    right: int
    n_found: int
    n_marked: int

    def __str__(self) -> str:
        """Return precision and recall, empty where nothing is divided by."""
        shares = (self.right / n if n else None for n in (self.n_found, self.n_marked))
        return " ".join("  - " if share is None else f"{share:.2f}" for share in shares)


def languages() -> list[str]:
    """Return the languages that have texts."""
    return sorted(path.stem for path in FOLDER.glob("*.txt"))


def read_texts(language: str) -> Iterator[Labelled]:
    """Yield the texts of a language with their names."""
    parts = _HEAD.split((FOLDER / f"{language}.txt").read_text("utf-8"))
    for half, marked in zip(parts[1::3], parts[3::3], strict=True):
        names = frozenset((TYPES[kind], _bare(name)) for kind, name in _LABEL.findall(marked))
        yield Labelled(half=half, text=_LABEL.sub(r"\2", marked).strip(), names=names)


def scores(language: str, half: str) -> dict[str, Score]:
    """Return how rules do on one half of the texts of a language, by type."""
    texts = [text for text in read_texts(language) if text.half == half]
    counts: Counter[tuple[str, str]] = Counter()
    for text, names in zip(texts, _found_in([text.text for text in texts]), strict=True):
        counts.update(("right", kind) for kind, _ in names & text.names)
        counts.update(("found", kind) for kind, _ in names)
        counts.update(("marked", kind) for kind, _ in text.names)
    return {
        kind: Score(counts["right", kind], counts["found", kind], counts["marked", kind])
        for kind in TYPES.values()
    }


def _found_in(texts: list[str]) -> Iterator[frozenset[Name]]:
    chunks = pl.DataFrame({"id": [str(n) for n in range(len(texts))], "text": texts})
    entities = extract_nlp(chunks, NlpOptions(noun_phrases=False, dates=False)).entities
    for n in range(len(texts)):
        rows = entities.filter(pl.col("chunk_id") == str(n)).select("type", "title").iter_rows()
        yield frozenset((kind, _bare(title)) for kind, title in rows if kind in TYPES.values())


def _bare(name: str) -> str:
    """Return a name without the titles around it, normalised."""
    lists = word_lists("nlp_names.txt")
    titles = lists["civil_title"] | lists["role"]
    words = name.split()
    titles |= frozenset(map(str.capitalize, lists["title_before"]))
    while len(words) > 1 and words[0] in titles:
        words = words[1:]
    return normalize_title(" ".join(words))


def main() -> None:
    """Print a table: precision and recall of each type, for each language and half."""
    print(f"{'':4}" + "".join(f"{half} {kind:22}" for half in HALVES for kind in TYPES))
    for language in languages():
        cells = [
            f"{score} ({score.right}/{score.n_found}/{score.n_marked})"
            for half in HALVES
            for score in scores(language, half).values()
        ]
        print(f"{language:4}" + "".join(f"{cell:27}" for cell in cells))


if __name__ == "__main__":
    main()
