"""The corpora that scale is measured on, and how what was measured is continued."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from itertools import islice
from pathlib import Path
from zipfile import ZipFile

import pytest

from benchmarks.scale import RUNS, Size, continued, described, drawing, slopes
from benchmarks.synthetic import NAMES_DISCOUNT, documents, sentences_of, write_corpus

SENTENCES = [
    "We spoke with Ada Lovelace about the machine and its many wheels.",
    "She moved to Turin, where nobody had heard of her before that year.",
    "It was raining all the week, and the harbour was closed for the ships.",
    "Nobody knew what to do with the letters that came in every morning.",
]
NAME = re.compile(r"\b[A-Z][a-z]{6,}\b")


def test_sentences_are_whole_and_without_their_speaker(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "texts.zip", "w") as archive:
        archive.writestr("b.txt", "ADA L.: What a machine that is, everybody there said. Yes.\n")
        archive.writestr("a.txt", "a_file_name_that_is_long_enough.txt ../ and so on and so on\n")
        archive.writestr("c.md", "This is a sentence in another kind of file, not to be read.\n")
    assert sentences_of(tmp_path / "texts.zip") == ["What a machine that is, everybody there said."]


def test_a_smaller_corpus_is_the_beginning_of_a_larger_one(tmp_path: Path) -> None:
    write_corpus(SENTENCES, tmp_path / "at once", 0, 30)
    for first, last in ((0, 20), (20, 30)):
        write_corpus(SENTENCES, tmp_path / "in two", first, last)
    texts = [
        [(file.name, file.read_text()) for file in sorted((tmp_path / folder).rglob("*.txt"))]
        for folder in ("at once", "in two")
    ]
    assert texts[0] == texts[1]
    assert len({text for _, text in texts[0]}) == 30
    assert next(documents(SENTENCES, 2)) != next(documents(SENTENCES, 1))


def test_distinct_names_grow_as_a_power_of_the_text() -> None:
    texts = list(islice(documents(SENTENCES, 3), 3000))
    few, many = (len({n for text in texts[:n] for n in NAME.findall(text)}) for n in (300, 3000))
    power = math.log10(many / few)
    assert NAMES_DISCOUNT - 0.15 < power < NAMES_DISCOUNT + 0.15


def test_sentences_without_a_name_are_not_enough() -> None:
    with pytest.raises(ValueError, match="with and without names"):
        next(documents(SENTENCES[2:], 1))


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_a_power_is_found_and_continued(power: float) -> None:
    points = [(size, 3 * size**power) for size in (100.0, 1000.0, 4000.0)]
    assert continued(points, to=1e6) == pytest.approx((power, 3 * 1e6**power))


def test_of_one_size_nothing_is_continued() -> None:
    assert all(map(math.isnan, continued([(10, 1.0), (10, 2.0)])))


def test_tables_and_drawing_show_every_run() -> None:
    sizes = [Size(n, {run: _measured(n, place) for place, run in enumerate(RUNS)}) for n in (9, 90)]
    assert re.search(r"outside stages, CPU s +4\.00 +3\.00 +2\.00", described(sizes[0]))
    assert re.search(r"graph, CPU s +1\.00 +1,000,000 ", slopes(sizes))
    drawn = ElementTree.fromstring(drawing(sizes))
    titles = [title.text for title in drawn.iter("{http://www.w3.org/2000/svg}title")]
    assert "+1 %: 12.0 at 9 chunks" in titles
    assert len(titles) == 1 + 3 * len(sizes) * len(RUNS)


def _measured(n: int, place: int) -> dict[str, object]:
    stages = {"graph": {"cpu": float(n)}}
    return {
        "stages": stages,
        "cpu": n + 4.0 - place,
        "peak_mb": 100.0,
        "disk_mb": 10.0 * n,
        "counts": {"documents": n, "chunks": n},
    }
