"""What the methods found when it was last recorded: compared question by question, and shown.

`methods.json` holds the record. The table and the picture of docs/how-to/compare.md are made from
it and nothing else.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import TypeAlias

import numpy as np
from graphrag_evaluation.pages import charts
from graphrag_evaluation.pages.charts import ChartPoint
from graphrag_evaluation.pages.model import Chart, Dot, ShownMeasure
from graphrag_evaluation.results import interval

RECORD = Path(__file__).with_name("methods.json")
_DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = _DOCS / "how-to" / "compare.md"
PICTURE = _DOCS / "images" / "methods.svg"
BEGIN, END = "[//]: # (from benchmarks/methods.json)\n", "[//]: # (end)\n"
COLUMNS = "R@5 | 95 % | all@5 | tokens | ms | answers | ms more"
_LEAST_CHANGE = {"recall@5": 0.001, "tokens": 0.02}
"""Changes of the mean up to this share of it are none, however sure."""
_SHOWN = "MuSiQue"
_NOT_DRAWN = ("auto", "selection", "integration", "ircot", "text_summary")
"""They do what others do, or read all there is."""
_UNDER = charts.BOTTOM + 16
_INK, _GRID, _DOT, _OTHER = "#57606a", "#d0d7de", "#2f6db5", "#7d8590"
_PAPER = "#fff"


@dataclass(frozen=True)
class Recorded:
    """What a method found and took: shares from 0 to 1, medians of milliseconds of CPU.

    ``recall`` is by number of documents looked at; ``recall_at_5`` and ``tokens`` are by question.
    """

    recall: Mapping[int, float]
    all_at_5: float
    holds_answer: float | None
    milliseconds: float
    answer_milliseconds: float
    recall_at_5: Sequence[float]
    tokens: Sequence[int]


Run: TypeAlias = dict[str, Recorded]
"""By method."""


def interval_of(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of a mean, by bootstrap over questions."""
    return interval(np.asarray(values, float))


def read_record(path: Path = RECORD) -> dict[str, Run]:
    """Return the runs recorded, by what was asked of what."""
    if not path.is_file():
        return {}
    return {
        label: {
            method: Recorded(
                **{**row, "recall": {int(k): share for k, share in row["recall"].items()}}
            )
            for method, row in run.items()
        }
        for label, run in json.loads(path.read_text("utf-8")).items()
    }


def write_record(runs: Mapping[str, Run], path: Path = RECORD) -> None:
    """Record runs in place of those of the same labels, and write the table and the picture."""
    every = read_record(path) | dict(runs)
    rows = {
        label: {method: _rounded(row) for method, row in run.items()}
        for label, run in sorted(every.items())
    }
    lines = ",\n".join(
        f"{json.dumps(label)}: {{\n"
        + ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in run.items())
        + "\n}"
        for label, run in rows.items()
    )
    path.write_text(f"{{\n{lines}\n}}\n", "utf-8")
    recorded = read_record(path)
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{shown(recorded)}{after}", "utf-8")
    PICTURE.write_text(picture(recorded), "utf-8")


def _rounded(row: Recorded) -> dict[str, object]:
    return json.loads(json.dumps(asdict(row)), parse_float=lambda text: round(float(text), 4))


def moved(runs: Mapping[str, Run], recorded: Mapping[str, Run]) -> list[str]:
    """Say what differs from the record by more than chance: a line for each number.

    That is where the 95 % interval of the difference, question by question, leaves out 0; and a
    method that only one of them has.
    """
    return [line for label, run in runs.items() for line in _moved(label, run, recorded.get(label))]


def _moved(label: str, run: Run, before: Run | None) -> Iterator[str]:
    if before is None:
        yield f"{label}: nothing is recorded of this; write it with --record"
        return
    for method, row in run.items():
        old = before.get(method)
        if old is None or len(old.recall_at_5) != len(row.recall_at_5):
            yield f"{label}: {method} is not in the record, or was asked other questions"
            continue
        pairs = {
            "recall@5": (old.recall_at_5, row.recall_at_5),
            "tokens": (old.tokens, row.tokens),
        }
        for measure, (one, two) in pairs.items():
            was, now = statistics.fmean(one), statistics.fmean(two)
            low, high = interval_of(np.subtract(two, one).tolist())
            if (low > 0 or high < 0) and abs(now - was) > _LEAST_CHANGE[measure] * was:
                yield (
                    f"{label}: {measure} of {method} was {was:.4g} and is {now:.4g} "
                    f"(95 % of the difference: {low:+.3g} to {high:+.3g})"
                )


def shown(recorded: Mapping[str, Run]) -> str:
    """Return the tables, as Markdown, between the marks that stand around them."""
    runs = {label: run for label, run in recorded.items() if label.startswith(_SHOWN)}
    tables = "\n".join(_table(label, run) for label, run in runs.items())
    return f"{BEGIN}{tables}\n{END}"


def _table(label: str, run: Run) -> str:
    lines = [
        f"\n{label}:\n",
        f"| | method | {COLUMNS} |",
        "| ---: | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {number} | `{method}` | {_cells(row)} |"
        for number, (method, row) in enumerate(run.items(), start=1)
    ]
    return "\n".join(lines) + "\n"


def rows_of(method: str, recorded: Mapping[str, Run]) -> list[tuple[str, str]]:
    """Return what was asked of what, and the cells of :data:`COLUMNS`, of each run of a method."""
    return [(label, _cells(run[method])) for label, run in recorded.items() if method in run]


def _cells(row: Recorded) -> str:
    gold = "–" if row.holds_answer is None else f"{100 * row.holds_answer:.0f}"
    more = "–" if row.holds_answer is None else f"{row.answer_milliseconds:.0f}"
    tokens = f"{statistics.fmean(row.tokens):,.0f}"
    return f"{_shares(row)} | {tokens} | {row.milliseconds:.0f} | {gold} | {more}"


def _shares(row: Recorded) -> str:
    if not any(row.recall.values()):
        return "– | – | –"
    low, high = (100 * share for share in interval_of(row.recall_at_5))
    return f"{100 * row.recall[5]:.1f} | {low:.0f} to {high:.0f} | {100 * row.all_at_5:.0f}"


def picture(recorded: Mapping[str, Run]) -> str:
    """Return quality against tokens and milliseconds of the first run recorded, as SVG.

    Without methods that show no document, and those that do what others do.
    """
    label, run = next(iter(recorded.items()))
    numbered = {
        method: (number, row)
        for number, (method, row) in enumerate(run.items(), start=1)
        if any(row.recall_at_5) and method not in _NOT_DRAWN
    }
    tokens = _points(numbered, lambda row: statistics.fmean(row.tokens))
    milliseconds = _points(numbered, lambda row: row.milliseconds)
    drawings = (
        charts.draw(tokens, ShownMeasure("tokens", "tokens of context", "count")),
        charts.draw(milliseconds, ShownMeasure("ms", "milliseconds of CPU", "count")),
    )
    title = f"Recall of gold documents among the first five, in percent, by cost ({label})"
    panels = "".join(_panel(chart, n * charts.WIDTH) for n, chart in enumerate(drawings))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * charts.WIDTH} {charts.HEIGHT}" '
        f'role="img" aria-label="{escape(title)}" font-family="system-ui, sans-serif" '
        f'font-size="{charts.FONT}">\n<title>{escape(title)}</title>\n'
        f'<rect width="100%" height="100%" rx="4" fill="{_PAPER}"/>\n{panels}</svg>\n'
    )


def _points(
    numbered: Mapping[str, tuple[int, Recorded]], across: Callable[[Recorded], float]
) -> list[ChartPoint]:
    return [
        ChartPoint(
            number=number,
            name=method,
            across=across(row),
            up=row.recall[5],
            low=low,
            high=high,
            said=method,
        )
        for method, (number, row) in numbered.items()
        for low, high in [interval_of(row.recall_at_5)]
    ]


def _panel(chart: Chart, left: float) -> str:
    grid = "".join(
        f'<path d="M{charts.LEFT} {y:.1f}H{charts.RIGHT}" stroke="{_GRID}"/>'
        f'<text x="{charts.LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill="{_INK}">{text}</text>'
        for y, text in chart.y_ticks
    )
    ticks = "".join(
        f'<text x="{x:.1f}" y="{_UNDER}" text-anchor="middle" fill="{_INK}">{text}</text>'
        for x, text in chart.x_ticks
    )
    front = f'<path d="{chart.front}" fill="none" stroke="{_DOT}" stroke-dasharray="3 4"/>'
    middle = (charts.LEFT + charts.RIGHT) / 2
    name = (
        f'<text x="{middle}" y="{charts.HEIGHT - 8}" text-anchor="middle" fill="{_INK}">'
        f"{escape(chart.across.label)}</text>"
    )
    up = f'<text x="4" y="14" fill="{_INK}">recall among the first five, %</text>'
    ranges = "".join(
        f'<path d="M{dot.x:.1f} {dot.low:.1f}V{dot.high:.1f}" stroke="{_GRID}"/>'
        for dot in chart.dots
    )
    dots = "".join(map(_dot, chart.dots))
    labels = "".join(_label(dot) for dot in chart.dots if dot.label)
    drawn = f"{grid}{ticks}{up}{name}{ranges}{front}{dots}{labels}"
    return f'<g transform="translate({left} 0)">{drawn}</g>\n'


def _dot(dot: Dot) -> str:
    fill = _DOT if dot.is_front else _PAPER
    line = (
        f'<path d="M{dot.x:.1f} {dot.y:.1f}L{dot.label_x:.1f} {dot.label_y:.1f}" '
        f'stroke="{_OTHER}" stroke-width=".6"/>'
        if dot.is_apart
        else ""
    )
    return (
        f'{line}<circle cx="{dot.x:.1f}" cy="{dot.y:.1f}" r="4" fill="{fill}" stroke="{_DOT}">'
        f"<title>{escape(dot.name)}</title></circle>"
    )


def _label(dot: Dot) -> str:
    return (
        f'<text x="{dot.label_x:.1f}" y="{dot.label_y + 4:.1f}" text-anchor="middle" fill="{_INK}" '
        f'stroke="{_PAPER}" stroke-width="3" paint-order="stroke">{escape(dot.label)}</text>'
    )
