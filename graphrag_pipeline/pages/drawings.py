"""Drawings of the graph and its numbers as SVG: text that a browser draws, made without a library.

What many marks share, a colour and a size, is one path: a dot is a line of no length with round
ends. Coordinates are pixels.
"""

from __future__ import annotations

import math
import textwrap
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

# Paul Tol's "muted" scheme: told apart with every common colour blindness.
COLOURS: Final = (
    *("#332288", "#44AA99", "#CC6677", "#88CCEE", "#117733"),
    *("#DDCC77", "#882255", "#999933", "#AA4499"),
)
_REST, _INK, _GRID = "#C4C4C4", "#333333", "#E6E6E6"
_FONTS = "DejaVu Sans, Noto Sans, Arial, sans-serif"
_FONT, _LINE = 12, 15
_GRAPH = 1060, 640
_MIDDLE, _RADIUS = (530, 320), 307
_NAMES_AT, _SQUARE = 1.05, 9
_NAME_WIDTH, _NAME_LINES = 22, 3
_CROWDED = 1000
_CHART = 640, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 622, 18, 296
MOST_POINTS = 400
_MOST_BARS = 20
_TICKS = 6

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def graph_drawing(
    at: Floats, edges: pl.DataFrame, community: Ints, degree: Ints, largest: pl.DataFrame
) -> bytes:
    """Return a graph coloured by its largest communities, with their names at both sides.

    ``at`` are places of nodes in the unit circle, shape (n, 2); ``edges`` have rows of it as
    ``source`` and ``target``; ``community`` is a row of ``largest`` (``title``, ``size``), at most
    as many as there are colours, or -1 for all others.
    """
    places = np.asarray(_MIDDLE) + at * np.asarray([_RADIUS, -_RADIUS])
    middles = {
        number: _middle(places[community == number])
        for number in range(len(largest))
        if (community == number).any()
    }
    parts = [
        _edges(edges.select("source", "target").to_numpy(), places, community),
        _nodes(places, community, degree),
        _names(largest, middles),
    ]
    return _svg(*_GRAPH, "".join(parts))


def degrees_drawing(degrees: pl.DataFrame) -> bytes:
    """Return entities ``n`` by ``degree``: bars, or logarithmic where degrees are large."""
    labels = "links of an entity (degree)", "entities"
    most = int(degrees["degree"].to_numpy().max(initial=0))
    if most <= _MOST_BARS:
        x = Axis(-0.6, most + 0.6, _LEFT, _RIGHT, is_whole=True)
        y = Axis(0, 1.05 * float(degrees["n"].to_numpy().max(initial=1)), _BOTTOM, _TOP)
        width = 0.8 * (x.at(1) - x.at(0))
        bars = "".join(
            f"M{x.at(degree) - width / 2:.1f} {_BOTTOM}V{y.at(n):.1f}h{width:.1f}V{_BOTTOM}z"
            for degree, n in degrees.select("degree", "n").iter_rows()
        )
        return _chart(x, y, f'<path d="{bars}" fill="{COLOURS[0]}"/>', labels)
    connected = degrees.filter(pl.col("degree") > 0)
    x = Axis.of_logarithms(connected["degree"].to_numpy(), _LEFT, _RIGHT)
    y = Axis.of_logarithms(connected["n"].to_numpy(), _BOTTOM, _TOP)
    points = [(x.at(degree), y.at(n)) for degree, n in connected.select("degree", "n").iter_rows()]
    return _chart(x, y, _dots(points, COLOURS[0]), labels)


def sizes_drawing(sizes: pl.DataFrame) -> bytes:
    """Return communities ``n`` by ``level`` and ``size``: a dot for each of some, and medians."""
    counts = sizes.group_by("level", maintain_order=True).agg(pl.col("n").sum())
    levels = dict(counts.iter_rows())
    x = Axis(
        min(levels, default=0) - 0.6, max(levels, default=0) + 0.6, _LEFT, _RIGHT, is_whole=True
    )
    y = Axis.of_logarithms(sizes["size"].to_numpy(), _BOTTOM, _TOP)
    parts = []
    for level in levels:
        of_level = sizes.filter(pl.col("level") == level)
        every = np.repeat(of_level["size"].to_numpy(), of_level["n"].to_numpy())
        some = every[np.linspace(0, len(every) - 1, min(len(every), MOST_POINTS)).astype(int)]
        beside = level + 0.6 * ((np.arange(len(some)) * 0.618034) % 1 - 0.5)
        points = [(x.at(a), y.at(b)) for a, b in zip(beside, some, strict=True)]
        parts.append(_dots(points, COLOURS[level % len(COLOURS)]))
        start, end, height = x.at(level - 0.38), x.at(level + 0.38), y.at(float(np.median(every)))
        parts.append(
            f'<path d="M{start:.1f} {height:.1f}H{end:.1f}" stroke="{_INK}" stroke-width="2"/>'
        )
    labels = "level, and its number of communities", "entities in a community"
    return _chart(x, y, "".join(parts), labels, lambda level: f"{levels.get(int(level), 0):,}")


def updates_drawing(updates: pl.DataFrame) -> bytes:
    """Return ``modularity`` above ``drift`` in per cent, update by update, with their days."""
    drift = 100 * updates["drift"].fill_null(0).to_numpy()
    modularity = updates["modularity"].to_numpy()
    x = Axis(1 - 0.05 * len(drift), len(drift) * 1.05, _LEFT, _RIGHT, is_whole=True)
    low, high = float(modularity.min()), float(modularity.max())
    room = 0.2 * (high - low) or 0.01
    most_drift = max(1.0, 1.2 * float(drift.max()))
    panels = [
        (Axis(low - room, high + room, 158, _TOP), modularity, COLOURS[0], "modularity"),
        (Axis(0, most_drift, _BOTTOM, 196), drift, COLOURS[2], "drift, %"),
    ]
    parts = []
    for y, values, colour, label in panels:
        points = [(x.at(number), y.at(value)) for number, value in enumerate(values, 1)]
        line = "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
        parts.append(_frame(x, y, label))
        parts.append(f'<path d="M{line}" fill="none" stroke="{colour}"/>{_dots(points, colour, 1)}')
    days = updates["updated_at"]
    span = f"{days[0]:%Y-%m-%d} to {days[-1]:%Y-%m-%d}" if len(days) else ""
    below = _text((_LEFT + _RIGHT) / 2, 344, f"updates of the communities, {span}", "middle")
    return _svg(*_CHART, "".join(parts) + below)


@dataclass(frozen=True)
class Axis:
    """A scale of values from ``low`` to ``high``, drawn from ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False
    is_whole: bool = False

    @classmethod
    def of_logarithms(cls, values: npt.ArrayLike, start: float, end: float) -> Axis:
        """Return the logarithmic scale of values above 0, with some room at both ends."""
        places = np.asarray(values, np.float64)
        low, high = (float(places.min()), float(places.max())) if len(places) else (1.0, 1.0)
        room = max((high / low) ** 0.05, 1.2)
        return cls(low / room, high * room, start, end, is_log=True)

    def at(self, value: float) -> float:
        """Return where a value is."""
        low, high = (math.log(v) if self.is_log else v for v in (self.low, self.high))
        place = math.log(value) if self.is_log else value
        return self.start + (self.end - self.start) * (place - low) / (high - low)

    @property
    def ticks(self) -> list[float]:
        """Round values between the ends: powers of ten, or few even steps."""
        if self.is_log:
            steps = (1, 2, 5) if self.high < 200 * self.low else (1,)
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            values = [step * 10.0**power for power in powers for step in steps]
            return [value for value in values if self.low <= value <= self.high]
        size = 10.0 ** math.floor(math.log10((self.high - self.low) / _TICKS))
        step = next(s * size for s in (1, 2, 5, 10) if s * size * _TICKS >= self.high - self.low)
        step = max(step, 1.0) if self.is_whole else step
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return [number * step for number in range(first, last + 1)]


def _edges(ends: Ints, places: Floats, community: Ints) -> str:
    """Return lines in the colour of the community that both ends are in."""
    if not len(ends):
        return ""
    of_ends = community[ends]
    inside = np.where(of_ends[:, 0] == of_ends[:, 1], of_ends[:, 0], -1)
    faint = min(0.5, max(0.25, 150 / len(ends)))
    starts = places[ends[:, 0]].round().astype(int)
    steps = places[ends[:, 1]].round().astype(int) - starts
    lines = np.concatenate([starts, steps], axis=1)
    return "".join(
        f'<path d="{_each("M{} {}l{} {}", lines[inside == number])}" '
        f'stroke="{_colour(number)}" stroke-width=".7" stroke-opacity="{faint:.2f}"/>'
        for number in np.unique(inside)
    )


def _nodes(places: Floats, community: Ints, degree: Ints) -> str:
    """Return dots, the larger the more links; those of a community over the others."""
    if not len(places):
        return ""
    room = 60_000 / max(len(places), 300)
    area = room * (0.1 + degree / max(int(degree.max()), 1)) + 6
    diameter = np.maximum(np.sqrt(area) * 100 / 72, 2).round().astype(int)
    corners = places.round(1)
    parts = []
    for number, width in sorted({*zip(community, diameter, strict=True)}, key=_larger_first):
        dots = _each("M{} {}h0", corners[(community == number) & (diameter == width)])
        path = f'<path d="{dots}" stroke-linecap="round" '
        if len(places) < _CROWDED:
            parts.append(f'{path}stroke="#fff" stroke-width="{width + 1}"/>')
        parts.append(f'{path}stroke="{_colour(number)}" stroke-width="{width}"/>')
    return "".join(parts)


def _larger_first(kind: tuple[int, int]) -> tuple[bool, int, int]:
    community, width = kind
    return community >= 0, -width, community


def _middle(points: Floats) -> Floats:
    """Return the point nearest to the mean of them."""
    return points[np.argmin(((points - points.mean(axis=0)) ** 2).sum(axis=1))]


def _names(largest: pl.DataFrame, middles: Mapping[int, Floats]) -> str:
    """Return names at both sides of the graph, a line from each to its community."""
    by_x = sorted(middles, key=lambda number: (middles[number][0], number))
    half = (len(by_x) + 1) // 2
    parts = []
    for side, numbers in ((-1, by_x[:half]), (1, by_x[half:])):
        numbers = sorted(numbers, key=lambda number: (middles[number][1], number))
        wanted = [float(middles[number][1] - _MIDDLE[1]) / _RADIUS for number in numbers]
        for number, height in zip(numbers, apart(wanted, 0.35, 0.9), strict=True):
            title, size = largest["title"][number], largest["size"][number]
            x, y = _MIDDLE[0] + side * _NAMES_AT * _RADIUS, _MIDDLE[1] + height * _RADIUS
            end = "{:.1f} {:.1f}".format(*middles[number])
            colour = _colour(number)
            line = f'<path d="M{x:.1f} {y:.1f}L{end}" '
            parts.append(
                f'{line}stroke="#fff" stroke-width="3.6"/>'
                f'{line}stroke="{colour}" stroke-width="1.7"/>'
                f'<rect x="{x - _SQUARE / 2:.1f}" y="{y - _SQUARE / 2:.1f}" width="{_SQUARE}" '
                f'height="{_SQUARE}" fill="{colour}"/>'
            )
            lines = [*wrapped(title), f"{size:,} entities"]
            top = y + _FONT / 3 - (len(lines) - 1) * _LINE / 2
            anchor = "end" if side < 0 else "start"
            parts += [
                _text(x + side * 14, top + place * _LINE, line, anchor)
                for place, line in enumerate(lines)
            ]
    return "".join(parts)


def apart(places: Sequence[float], gap: float, most: float) -> list[float]:
    """Return heights near those wanted, which ascend, at least ``gap`` from one to the next."""
    steps = gap * np.arange(len(places))
    level = np.asarray(places) - steps
    # Pushed up by those below, and down by those above: half way between, all gaps are kept.
    pushed = np.maximum.accumulate(level) + np.minimum.accumulate(level[::-1])[::-1]
    top = most - (len(places) - 1) * gap
    return (np.clip(pushed / 2, -most, max(top, -most)) + steps).tolist()


def wrapped(title: str) -> list[str]:
    """Return a name in lines that fit beside the graph."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in title).split())
    is_wide = any(unicodedata.east_asian_width(c) in "WF" for c in plain)
    width = _NAME_WIDTH // 2 if is_wide else _NAME_WIDTH
    return textwrap.wrap(plain, width, max_lines=_NAME_LINES, placeholder="…")


def _chart(
    x: Axis,
    y: Axis,
    marks: str,
    labels: tuple[str, str],
    below: Callable[[float], str] | None = None,
) -> bytes:
    """Return a chart with labels below and beside; ``below`` is told of each tick, too."""
    seconds = [_text(x.at(t), _BOTTOM + 31, below(t), "middle") for t in x.ticks] if below else []
    label = _text((_LEFT + _RIGHT) / 2, 348, labels[0], "middle")
    return _svg(*_CHART, _frame(x, y, labels[1]) + marks + "".join(seconds) + label)


def _frame(x: Axis, y: Axis, beside: str) -> str:
    """Return the lines and ticks of two axes, and what stands beside them."""
    middle = (y.start + y.end) / 2
    rules = "".join(f"M{_LEFT} {y.at(tick):.1f}H{_RIGHT}" for tick in y.ticks)
    notches = "".join(f"M{x.at(tick):.1f} {y.start}v4" for tick in x.ticks)
    return "".join(
        [
            f'<path d="{rules}" stroke="{_GRID}"/>',
            f'<path d="M{_LEFT} {y.end}V{y.start}H{_RIGHT}{notches}" fill="none" stroke="{_INK}"/>',
            *(_text(_LEFT - 6, y.at(t) + 4, f"{round(t, 6):,.10g}", "end") for t in y.ticks),
            *(_text(x.at(t), y.start + 17, f"{t:,.0f}", "middle") for t in x.ticks),
            f'<text x="18" y="{middle:.0f}" transform="rotate(-90 18 {middle:.0f})" '
            f'text-anchor="middle">{escape(beside)}</text>',
        ]
    )


def _dots(points: Sequence[tuple[float, float]], colour: str, opacity: float = 0.6) -> str:
    path = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in dict.fromkeys(points))
    return (
        f'<path d="{path}" stroke="{colour}" stroke-width="5.5" stroke-linecap="round" '
        f'stroke-opacity="{opacity}"/>'
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _each(form: str, rows: npt.NDArray[np.generic]) -> str:
    """Return each row in this form, one after the other."""
    return (form * len(rows)).format(*(f"{value:g}" for value in rows.ravel().tolist()))


def _colour(number: int) -> str:
    return COLOURS[number] if number >= 0 else _REST


def _svg(width: int, height: int, body: str) -> bytes:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="{_FONTS}" font-size="{_FONT}" '
        f'fill="{_INK}"><path d="M0 0H{width}V{height}H0z" fill="#fff"/>{body}</svg>\n'
    ).encode()
