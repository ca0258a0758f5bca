"""Our readers beside kreuzberg and markitdown, on a folder of real files.

Run as ``python -m benchmarks.readers FOLDER PYTHON``: FOLDER has a folder of files for each kind,
PYTHON is the interpreter of an environment with kreuzberg and markitdown. Prints a table.
"""

from __future__ import annotations

import bisect
import json
import re
import subprocess
import sys
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from statistics import fmean, median

SECONDS = 120
READERS = ("ours", "kreuzberg", "markitdown")
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_]+")
_TARGET = re.compile(r"\]\([^)\s]*(?: \"[^\"]*\")?\)")
"""The address in a Markdown link, which is not said to a reader."""


@dataclass(frozen=True)
class Reading:
    """What one reader made of a file: its text, CPU seconds, and the process's peak in MB."""

    text: str = ""
    cpu: float = 0.0
    peak_mb: float = 0.0
    words: Sequence[str] = field(init=False)

    def __post_init__(self) -> None:
        folded = unicodedata.normalize("NFKC", _TARGET.sub("]", self.text)).casefold()
        object.__setattr__(self, "words", _WORD.findall(folded))


def kept_and_beyond(readings: Sequence[Reading]) -> list[tuple[float, float]]:
    """Return for each reading the share kept of the words that most readings have, and of its own
    words the share that no majority has: furniture and markup, or what the others lost."""
    counts = [Counter(reading.words) for reading in readings]
    shared = Counter({w: int(median(c[w] for c in counts)) for w in set().union(*counts)})
    common = [(count & shared).total() for count in counts]
    return [
        (n / max(1, shared.total()), 1 - n / max(1, count.total()))
        for n, count in zip(common, counts, strict=True)
    ]


def same_order(left: Sequence[str], right: Sequence[str]) -> float:
    """Return which part of the words that stand once in either text is in the same order.

    >>> same_order("a b c d".split(), "b c d a".split())
    0.75
    """
    once = {word for word, n in Counter(left).items() if n == 1}
    once &= {word for word, n in Counter(right).items() if n == 1}
    place = {word: at for at, word in enumerate(right) if word in once}
    ends: list[int] = []
    for word in left:
        if word in once:
            at = bisect.bisect(ends, place[word])
            ends[at : at + 1] = [place[word]]
    return len(ends) / len(once) if once else 1.0


def said_again(text: str) -> float:
    """Return the share of words in lines that stand three times or more, whatever their numbers:
    page heads, page numbers, menus; of records also their values."""
    lines = [re.sub(r"\d+", "0", " ".join(line.split())) for line in text.splitlines()]
    times = Counter(lines)
    words = {line: len(_WORD.findall(line)) for line in times}
    again = sum(n * words[line] for line, n in times.items() if n > 2)
    return again / max(1, sum(n * words[line] for line, n in times.items()))


def read(reader: str, file: Path, python: str) -> Reading | None:
    """Read one file in a process of its own; None if it gives nothing, fails or takes too long."""
    command = [python, "-W", "ignore", __file__, reader, str(file)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
        return Reading(**json.loads(done.stdout.splitlines()[-1]))
    except (subprocess.SubprocessError, IndexError, ValueError):
        return None


def _text_of(reader: str) -> Callable[[Path], str]:
    if reader == "kreuzberg":
        from kreuzberg import ExtractionConfig, extract_file_sync

        config = ExtractionConfig(use_cache=False)
        return lambda file: extract_file_sync(str(file), config=config).content
    if reader == "markitdown":
        from markitdown import MarkItDown

        converter = MarkItDown()
        return lambda file: converter.convert(str(file)).text_content
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from graphrag_pipeline.ingest.reading import ReadingOptions, read_file

    options = ReadingOptions()
    return lambda file: "\n\n".join(
        document.text if document.title in document.text else f"{document.title}\n{document.text}"
        for document in read_file(file, options).documents
    )


def measure(reader: str, file: Path) -> None:
    """Print what a reader makes of a file, as JSON. The CPU is that of reading it again, without
    what is imported at first."""
    text_of = _text_of(reader)
    text = text_of(file)
    began = time.process_time()
    text_of(file)
    cpu = time.process_time() - began
    peak = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    peak_mb = int(peak[1]) / 1024 if peak else 0.0
    if not text.strip():
        raise SystemExit("no text")
    print(json.dumps({"text": text, "cpu": cpu, "peak_mb": peak_mb}))


def row_of(readings: Sequence[Sequence[Reading | None]]) -> list[str]:
    """Return the cells of a kind from the readings of its files: ours / kreuzberg / markitdown."""
    cells: dict[str, list[str]] = {name: [] for name in HEADER[1:]}
    shares = [
        kept_and_beyond([reading or Reading() for reading in of_file])
        if sum(reading is not None for reading in of_file) > 1
        else None
        for of_file in readings
    ]
    for at in range(len(READERS)):
        done = [(i, reading) for i, of in enumerate(readings) if (reading := of[at])]
        orders = [
            same_order(reading.words, other.words)
            for i, reading in done
            for n, other in enumerate(readings[i])
            if other and n != at
        ]
        beyond = [of[at][1] for i, _ in done if (of := shares[i])]
        again = [said_again(reading.text) for _, reading in done]
        cells["words kept"].append(_mean([of[at][0] for of in shares if of], 3))
        cells["beyond"].append(_mean(beyond, 2))
        cells["order"].append(_mean(orders, 3))
        cells["lines again"].append(_mean(again, 2))
        cells["CPU s"].append(f"{sum(reading.cpu for _, reading in done):.2f}")
        cells["peak MB"].append(f"{max([0.0, *(reading.peak_mb for _, reading in done)]):.0f}")
        cells["not read"].append(str(len(readings) - len(done)))
    return [" / ".join(of) for of in cells.values()]


def _mean(values: Sequence[float], places: int) -> str:
    return f"{fmean(values):.{places}f}" if values else "-"


HEADER = (
    "kind (files)",
    *("words kept", "beyond", "order", "lines again", "CPU s", "peak MB", "not read"),
)


def main(folder: Path, python: str) -> None:
    """Print the table, and to stderr each file by which readers keep less than 95 % of words."""
    print("|", " | ".join(HEADER), "|\n|", " | ".join("---" for _ in HEADER), "|")
    for kind in sorted(path for path in folder.iterdir() if path.is_dir()):
        files = sorted(kind.iterdir())
        pythons = (sys.executable, python, python)
        readings = [[read(r, f, p) for r, p in zip(READERS, pythons, strict=True)] for f in files]
        for file, of_file in zip(files, readings, strict=True):
            shares = kept_and_beyond([reading or Reading() for reading in of_file])
            told = [f"{kept:.3f} {beyond:.2f}" for kept, beyond in shares]
            if min(chain.from_iterable(shares)) < 0.95:
                print(file.name, *told, sep="\t", file=sys.stderr)
        print("|", " | ".join([f"{kind.name} ({len(files)})", *row_of(readings)]), "|", flush=True)


if __name__ == "__main__":
    if sys.argv[1] in READERS:
        measure(sys.argv[1], Path(sys.argv[2]))
    else:
        main(Path(sys.argv[1]), sys.argv[2])
