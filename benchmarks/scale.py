"""How cost grows with the corpus: CPU, memory and disk of full builds, of 1 % more, of nothing new.

Corpora are those of :mod:`benchmarks.synthetic`. What is measured at two sizes or more is drawn on
logarithmic scales and continued, as a power of the number of chunks, to a million chunks. That is a
guess, the better the nearer its sizes are to a million.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from graphrag_evaluation.pages import charts

from benchmarks.index_speed import index_speed
from benchmarks.synthetic import sentences_of, write_corpus

RUNS = ("full", "+1 %", "unchanged")
SIZES = (500, 2000)
MANY_CHUNKS = 1_000_000

_OUTSIDE = "outside stages"
_COLOURS = {"full": "#1f6f8b", "+1 %": "#c2571a", "unchanged": "#6b6b6b"}
_INK, _GRID, _PAPER = "#333333", "#d8d8d8", "#ffffff"
_MEASURES = (("cpu", "CPU seconds"), ("peak_mb", "peak memory, MB"), ("disk_mb", "disk, MB"))


@dataclass(frozen=True)
class Size:
    """What :func:`index_speed` measured at one size, for each of :data:`RUNS`."""

    documents: int
    runs: Mapping[str, Mapping[str, Any]]

    @property
    def chunks(self) -> int:
        """How many chunks the full corpus has."""
        return int(self.runs["full"]["counts"]["chunks"])


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what this measurement takes."""
    group = parser.add_argument_group("scale")
    group.add_argument("--sizes", default=",".join(map(str, SIZES)), help="documents, by commas")
    group.add_argument("--drawing", type=Path, help="write the curves here, as SVG")


def main(options: argparse.Namespace) -> None:
    """Measure each size, print a table for each and the slopes, and draw the curves."""
    sentences = sentences_of(options.data / "podcast" / "transcripts.zip")
    sizes = []
    for n_documents in sorted(int(size) for size in options.sizes.split(",")):
        sizes.append(measure(sentences, n_documents))
        print(described(sizes[-1]), flush=True)
    if len(sizes) > 1:
        print(slopes(sizes))
        if options.drawing:
            options.drawing.write_text(drawing(sizes), encoding="utf-8")


def measure(sentences: Sequence[str], n_documents: int) -> Size:
    """Index so many documents, then one per cent more, then the same again."""
    runs = {}
    more = max(1, n_documents // 100)
    with tempfile.TemporaryDirectory() as place:
        folder, home = Path(place) / "documents", Path(place) / "home"
        folder.mkdir()
        for run, (first, last) in zip(
            RUNS, [(0, n_documents), (n_documents, n_documents + more), (0, 0)], strict=True
        ):
            write_corpus(sentences, folder, first, last)
            runs[run] = index_speed(folder, home)
    return Size(n_documents, runs)


def described(size: Size) -> str:
    """Return a table: CPU seconds of each stage and all, memory and disk, by run."""
    counts = ", ".join(f"{n:,} {name}" for name, n in size.runs["full"]["counts"].items())
    lines = [f"\n{counts}", f"    {'':<24}" + "".join(f"{run:>11}" for run in RUNS)]
    stages = [*dict.fromkeys(name for run in size.runs.values() for name in run["stages"])]
    for name in (*stages, _OUTSIDE):
        lines.append(_line(f"{name}, CPU s", [_stage(size, run, name) for run in RUNS], "11.2f"))
    for key, label in _MEASURES:
        lines.append(_line(label, [size.runs[run][key] for run in RUNS], "11,.1f"))
    return "\n".join(lines)


def slopes(sizes: Sequence[Size]) -> str:
    """Return, for CPU of each stage and for all, the power of chunks, and what a million take."""
    stages = [*dict.fromkeys(name for size in sizes for name in size.runs["full"]["stages"])]
    lines = [
        f"\nAs a power of the chunks, and at {MANY_CHUNKS:,} chunks (continued, not measured)",
        f"    {'':<24}" + "".join(f"{run:>20}" for run in RUNS),
    ]
    measures: list[tuple[str, Callable[[Size, str], float]]] = [
        (f"{name}, CPU s", lambda size, run, name=name: _stage(size, run, name))
        for name in (*stages, _OUTSIDE)
    ]
    measures += [
        (label, lambda size, run, key=key: float(size.runs[run][key])) for key, label in _MEASURES
    ]
    for label, value in measures:
        cells = []
        for run in RUNS:
            power, then = continued([(size.chunks, value(size, run)) for size in sizes])
            cells.append(f"{power:8.2f} {then:11,.0f}")
        lines.append(f"    {label:<24}" + "".join(cells))
    return "\n".join(lines)


def continued(
    points: Sequence[tuple[float, float]], to: float = MANY_CHUNKS
) -> tuple[float, float]:
    """Return the power that fits (size, value) best on logarithmic scales, and the value at ``to``.

    Values below a hundredth count as one; of fewer than two sizes nothing can be said (NaN).
    """
    if len({size for size, _ in points}) < 2:
        return float("nan"), float("nan")
    across = np.log([size for size, _ in points])
    up = np.log([max(value, 0.01) for _, value in points])
    power, start = np.polyfit(across, up, 1)
    return float(power), float(np.exp(start + power * np.log(to)))


def drawing(sizes: Sequence[Size]) -> str:
    """Return CPU, memory and disk by chunks on logarithmic scales, side by side, as SVG."""
    title = "CPU seconds, peak memory and disk by chunks"
    panels = "".join(
        _panel(sizes, key, label, place * charts.WIDTH)
        for place, (key, label) in enumerate(_MEASURES)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {3 * charts.WIDTH} {charts.HEIGHT}" '
        f'role="img" aria-label="{title}" font-family="system-ui, sans-serif" '
        f'font-size="{charts.FONT}">\n<title>{title}</title>\n'
        f'<rect width="100%" height="100%" rx="4" fill="{_PAPER}"/>\n{panels}</svg>\n'
    )


def _panel(sizes: Sequence[Size], key: str, label: str, left: float) -> str:
    lines = {run: [(s.chunks, float(s.runs[run][key])) for s in sizes] for run in RUNS}
    points = [point for line in lines.values() for point in line]
    across = _log_scale([x for x, _ in points], charts.LEFT, charts.RIGHT)
    up = _log_scale([y for _, y in points], charts.BOTTOM, charts.TOP)
    parts = [
        f'<path d="M{charts.LEFT} {up(y):.1f}H{charts.RIGHT}" stroke="{_GRID}"/>'
        f'<text x="{charts.LEFT - 6}" y="{up(y) + 4:.1f}" text-anchor="end" fill="{_INK}">'
        f"{charts.short(y)}</text>"
        for y in _powers([y for _, y in points])
    ]
    parts += [
        f'<text x="{across(x):.1f}" y="{charts.BOTTOM + 16}" text-anchor="middle" fill="{_INK}">'
        f"{charts.short(x)}</text>"
        for x in (size.chunks for size in sizes)
    ]
    for place, (run, line) in enumerate(lines.items()):
        path = "L".join(f"{across(x):.1f} {up(y):.1f}" for x, y in line)
        colour = _COLOURS[run]
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [
            f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="3.5" fill="{colour}">'
            f"<title>{escape(run)}: {y:,.1f} at {x:,} chunks</title></circle>"
            for x, y in line
        ]
        parts.append(
            f'<text x="{charts.LEFT + 8}" y="{charts.TOP + 14 + 15 * place}" fill="{colour}">'
            f"{escape(run)}</text>"
        )
    middle = (charts.LEFT + charts.RIGHT) / 2
    parts.append(
        f'<text x="{middle}" y="{charts.HEIGHT - 8}" text-anchor="middle" fill="{_INK}">'
        f"{escape(label)}, by chunks</text>"
    )
    return f'<g transform="translate({left} 0)">{"".join(parts)}</g>\n'


def _log_scale(values: Sequence[float], start: float, end: float) -> Callable[[float], float]:
    """Return the place of a value; the powers of ten around all values lie within."""
    powers = _powers(values)
    low, high = np.log(powers[0]), np.log(powers[-1])
    return lambda value: start + (end - start) * float(np.log(value) - low) / float(high - low)


def _powers(values: Sequence[float]) -> list[float]:
    low = int(np.floor(np.log10(min(values))))
    high = max(low + 1, int(np.ceil(np.log10(max(values)))))
    return [10.0**power for power in range(low, high + 1)]


def _stage(size: Size, run: str, name: str) -> float:
    """Return the CPU seconds of a stage, or of what is outside of all."""
    stages = size.runs[run]["stages"]
    if name == _OUTSIDE:
        return float(size.runs[run]["cpu"] - sum(spent["cpu"] for spent in stages.values()))
    return float(stages.get(name, {"cpu": 0.0})["cpu"])


def _line(label: str, values: Sequence[float], form: str) -> str:
    return f"    {label:<24}" + "".join(format(value, form) for value in values)
