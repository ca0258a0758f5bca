"""How many of the names found by rule are proper nouns in real texts that others have tagged.

    python -m benchmarks.treebanks FILE.conllu ...

A file is a treebank of Universal Dependencies (https://universaldependencies.org, most under CC
BY-SA; none is in this repository). A name is right if half of its signs or more are tagged PROPN or
NNP. Treebanks differ in what they tag so: few tag bodies (Supreme Court is two common nouns), some
no foreign words, so compare two versions of the rules by one file.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from graphrag_pipeline.extraction.rules.nlp import NlpOptions, extract_nlp

_TYPES = ("PERSON", "GEO", "ORGANIZATION")

Sentence = tuple[str, bytes]
"""A sentence and, for each of its signs, whether it stands in a proper noun."""


def sentences(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of a treebank in the CoNLL-U format."""
    for block in path.read_text("utf-8").split("\n\n"):
        lines = block.splitlines()
        text = next((line[9:].strip() for line in lines if line.startswith("# text = ")), "")
        if text:
            tokens = [line.split("\t") for line in lines if not line.startswith("#")]
            yield text, _proper(text, tokens)


def _proper(text: str, tokens: list[list[str]]) -> bytes:
    proper = bytearray(len(text))
    place, last_of_joined = 0, 0
    for number, form, _, tag, other, *_ in tokens:
        first, is_joined, last = number.partition("-")
        if "." in number or (not is_joined and int(first) <= last_of_joined):
            continue
        tags = {tag, *other.split("+")}
        if is_joined:
            last_of_joined = int(last)
            within = range(int(first), last_of_joined + 1)
            tags = {token[3] for token in tokens if token[0].isdigit() and int(token[0]) in within}
        start = text.find(form, place)
        if start < 0:
            continue
        place = start + len(form)
        if tags & {"PROPN", "NNP"}:
            proper[start:place] = b"\x01" * len(form)
    return bytes(proper)


def score(path: Path) -> tuple[Counter[str], Counter[str]]:
    """Return how many names of each type are found in a treebank, and how many are proper nouns."""
    read = list(sentences(path))
    texts = [text for text, _ in read]
    chunks = pl.DataFrame({"id": [str(n) for n in range(len(read))], "text": texts})
    entities = extract_nlp(chunks, NlpOptions(noun_phrases=False, dates=False)).entities
    found, right = Counter[str](), Counter[str]()
    for chunk, kind, title in entities.select("chunk_id", "type", "title").iter_rows():
        text, proper = read[int(chunk)]
        start = text.find(title)
        if kind in _TYPES and start >= 0:
            found[kind] += 1
            right[kind] += 2 * sum(proper[start : start + len(title)]) >= len(
                title.replace(" ", "")
            )
    return found, right


def main() -> None:
    """Print a line for each file: the share of proper nouns among the names of each type."""
    for name in sys.argv[1:]:
        found, right = score(Path(name))
        shares = (f"{kind} {right[kind]}/{found[kind]}" for kind in _TYPES if found[kind])
        print(f"{Path(name).stem:24}", *shares, sep="  ")


if __name__ == "__main__":
    main()
