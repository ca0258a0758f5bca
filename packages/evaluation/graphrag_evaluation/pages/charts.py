"""Quality against tokens or milliseconds as a drawing: places of dots, labels, ticks and the front.

A condition is on the front if no other is at least as good for as little. Labels are put where they
cover neither each other nor a dot, near their own if they can.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from graphrag_evaluation.pages.model import Chart, Dot, ShownMeasure
from graphrag_pipeline.pages.overview.passages import clip

WIDTH: Final = 420
HEIGHT: Final = 310
LEFT: Final = 42
RIGHT: Final = WIDTH - 14
TOP: Final = 12
BOTTOM: Final = HEIGHT - 42
FONT: Final = 11.5

_LOG_FROM = 8.0
_MOST_NAMED = 14
_MOST_LABEL = 19
_DOT = 6.0
_AWAY = (11, 18, 28, 40, 54, 70, 90, 112)
_ANGLES = (0, 90, 270, 180, 45, 135, 315, 225, 20, 160, 340, 200, 70, 110, 250, 290)
_APART = 18
_HALF_LINE = FONT * 0.62

Box = tuple[float, float, float, float]
Scale = Callable[[float], float]


@dataclass(frozen=True)
class ChartPoint:
    """A condition: what it takes (``across``), how good it is (``up``), and within which limits."""

    number: int
    name: str
    across: float
    up: float
    low: float
    high: float
    said: str


def draw(points: Sequence[ChartPoint], across: ShownMeasure) -> Chart:
    """Return the chart of at least one point."""
    is_log = min(p.across for p in points) > 0 and _span(points) > _LOG_FROM
    x, x_ticks = _x_axis([p.across for p in points], is_log)
    y, y_ticks = _y_axis(min(p.low for p in points), max(p.high for p in points))
    names = {clip(p.name, _MOST_LABEL) for p in points}
    is_numbered = len(points) > _MOST_NAMED or len(names) < len(points)
    best = front(points)
    dots = [
        Dot(
            number=p.number,
            name=p.name,
            x=x(p.across),
            y=y(p.up),
            low=y(p.low),
            high=y(p.high),
            said=p.said,
            is_front=p in best,
        )
        for p in points
    ]
    path = _steps([(x(p.across), y(p.up)) for p in best])
    return Chart(
        across=across,
        dots=_labelled(dots, is_numbered),
        x_ticks=x_ticks,
        y_ticks=y_ticks,
        front=path,
        is_log=is_log,
        is_numbered=is_numbered,
    )


def front(points: Sequence[ChartPoint]) -> list[ChartPoint]:
    """Return the points that no other dominates, from the cheapest to the dearest."""
    best: list[ChartPoint] = []
    for point in sorted(points, key=lambda p: (p.across, -p.up)):
        if not best or point.up > best[-1].up or _same(point, best[-1]):
            best.append(point)
    return best


def _same(first: ChartPoint, second: ChartPoint) -> bool:
    return (first.across, first.up) == (second.across, second.up)


def _span(points: Sequence[ChartPoint]) -> float:
    return max(p.across for p in points) / min(p.across for p in points)


def _x_axis(values: Sequence[float], is_log: bool) -> tuple[Scale, list[tuple[float, str]]]:
    low, high = min(values), max(values)
    if is_log:
        start, end = math.log10(low), math.log10(high)
        room = (end - start) * 0.06
        scale = _scale(start - room, end + room, LEFT, RIGHT)
        at = [v for v in _log_ticks(low, high) if start - room <= math.log10(v) <= end + room]
        return lambda v: scale(math.log10(v)), [(scale(math.log10(v)), short(v)) for v in at]
    room = (high - low) * 0.08 or max(high * 0.2, 1.0)
    start = max(0.0, low - room)
    scale = _scale(start, high + room, LEFT, RIGHT)
    return scale, [(scale(v), short(v)) for v in _ticks(start, high + room)]


def _y_axis(low: float, high: float) -> tuple[Scale, list[tuple[float, str]]]:
    room = (high - low) * 0.06 or 0.05
    scale = _scale(low - room, high + room, BOTTOM, TOP)
    ticks = [v for v in _ticks(low - room, high + room) if v >= -1e-9]
    if high <= 1:
        return scale, [(scale(v), f"{100 * v:.3g}") for v in ticks if v <= 1 + 1e-9]
    return scale, [(scale(v), short(v)) for v in ticks]


def _scale(low: float, high: float, start: float, end: float) -> Scale:
    return lambda value: start + (value - low) / (high - low) * (end - start)


def _ticks(low: float, high: float) -> list[float]:
    """Return some four round numbers between two."""
    raw = (high - low) / 4
    unit = 10 ** math.floor(math.log10(raw))
    step = next(unit * n for n in (1, 2, 2.5, 5, 10) if unit * n >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if high / low < 500 else (1,)
    return [step * 10.0**decade for decade in decades for step in steps]


def short(value: float) -> str:
    """Return a number in few characters: 950, 1.5k, 12k, 3M."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def _steps(places: Sequence[tuple[float, float]]) -> str:
    """Return a path along the front: nothing is better until the next point."""
    (x, y), *rest = places
    parts = [f"M{x:.1f} {y:.1f}", *(f"H{x:.1f}V{y:.1f}" for x, y in rest), f"H{RIGHT}"]
    return "".join(parts)


def _labelled(dots: Sequence[Dot], is_numbered: bool) -> list[Dot]:
    boxes: list[Box] = [_around(dot) for dot in dots]
    labelled = {}
    for dot in sorted(dots, key=lambda dot: (not dot.is_front, dot.x, dot.number)):
        text = str(dot.number) if is_numbered else clip(dot.name, _MOST_LABEL)
        other_dots = [
            neighbour for neighbour in dots if (neighbour.x, neighbour.y) != (dot.x, dot.y)
        ]
        free = [
            (away, x, y, _is_mistakable(label_box(text, x, y), dot, other_dots))
            for away, x, y in _places(dot, text_width(text) / 2)
            if _is_free(label_box(text, x, y), boxes)
        ]
        if free:
            away, x, y, is_mistakable = min(free, key=lambda place: (place[3], place[0]))
            is_apart = is_mistakable or away > _APART
            labelled[dot.number] = replace(dot, label=text, label_x=x, label_y=y, is_apart=is_apart)
            boxes.append(label_box(text, x, y))
    return [labelled.get(dot.number, dot) for dot in dots]


def _is_free(box: Box, boxes: Sequence[Box]) -> bool:
    return _is_inside(box) and not any(overlap(box, neighbour) for neighbour in boxes)


def _is_mistakable(box: Box, dot: Dot, dots: Sequence[Dot]) -> bool:
    """Whether a label stands nearer to another dot than to its own."""
    own = _distance(box, dot)
    return own > _AWAY[-3] or any(_distance(box, neighbour) <= own + 2 for neighbour in dots)


def _distance(box: Box, dot: Dot) -> float:
    x_min, top, right, bottom = box
    across = max(x_min - dot.x, dot.x - right, 0.0)
    return math.hypot(across, max(top - dot.y, dot.y - bottom, 0.0))


def _places(dot: Dot, half: float) -> Iterator[tuple[int, float, float]]:
    """Yield how far away a label may be, and its middle; ``half`` is half its width."""
    for away in _AWAY:
        for angle in map(math.radians, _ANGLES):
            x = dot.x + (away + half) * math.cos(angle)
            yield away, x, dot.y - (away + _HALF_LINE / 2) * math.sin(angle)


def label_box(text: str, x: float, y: float) -> Box:
    """Return left, top, right and bottom of a label with its middle at a place."""
    half = text_width(text) / 2
    return x - half, y - _HALF_LINE, x + half, y + _HALF_LINE


def text_width(text: str) -> float:
    """Return about how wide a label is, in a bold sans-serif letter."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    capitals = sum(letter.isupper() for letter in text)
    return FONT * (0.6 * (len(text) - wide - capitals) + 0.75 * capitals + 1.04 * wide)


def _around(dot: Dot) -> Box:
    return dot.x - _DOT, dot.y - _DOT, dot.x + _DOT, dot.y + _DOT


def _is_inside(box: Box) -> bool:
    return box[0] >= LEFT + 2 and box[1] >= TOP - 8 and box[2] <= WIDTH - 2 and box[3] <= BOTTOM - 1


def overlap(first: Box, second: Box) -> bool:
    """Return whether two boxes have a place in common."""
    across = first[0] < second[2] and second[0] < first[2]
    return across and first[1] < second[3] and second[1] < first[3]
