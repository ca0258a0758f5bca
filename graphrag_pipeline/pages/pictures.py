"""Pictures of the graph and its communities: small PNGs, drawn once and kept until they differ.

A ``Picture`` knows what it shows, read with a connection, and how that is drawn, without one; its
``png`` draws only what is not in the folder of pictures yet. Importing matplotlib takes half a
second, so only drawing does.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import textwrap
import unicodedata
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_pipeline.core.files import write_beside
from graphrag_pipeline.pages.layout import layout_graph
from graphrag_pipeline.store.frames import drop_rows, put_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

PICTURES_FOLDER = "pictures"
MOST_NODES = 2500
MOST_EDGES = 2500
MOST_UPDATES = 200
# Paul Tol's "muted" scheme: told apart with every common colour blindness.
COLOURS = (
    *("#332288", "#44AA99", "#CC6677", "#88CCEE", "#117733"),
    *("#DDCC77", "#882255", "#999933", "#AA4499"),
)
_VERSION = "1"
_REST = "#C4C4C4"
_INK = "#333333"
_DPI = 100
_TINTS = (0.2, 0.4, 0.6, 0.8, 1.0)
_LEVELS = 3
_NAME_WIDTH, _NAME_LINES = 22, 3
_MOST_POINTS = 400
_MOST_BARS = 20
_CROWDED = 1000
# The first comes with matplotlib and has no Chinese, Japanese or Korean; any of the others has.
_FONTS = (
    *("DejaVu Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Source Han Sans SC"),
    *("WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "Droid Sans Fallback", "Arial Unicode MS"),
    *("PingFang SC", "Hiragino Sans"),
)

Floats = npt.NDArray[np.float64]

_NODES = """
WITH drawn AS (
    SELECT id, title, degree FROM entities ORDER BY degree DESC, title, id LIMIT $most
), placed AS (
    PIVOT (SELECT entity_id, level, community_id FROM community_members WHERE level < 3)
    ON level IN (0, 1, 2) USING any_value(community_id) GROUP BY entity_id
)
SELECT d.id, d.degree, p."0" AS level_0, p."1" AS level_1, p."2" AS level_2
FROM drawn d JOIN placed p ON p.entity_id = d.id ORDER BY d.degree DESC, d.title, d.id
"""
_EDGES = """
SELECT s.place AS source, t.place AS target, r.weight FROM relationships r
JOIN drawn_places s ON s.id = r.source_id JOIN drawn_places t ON t.id = r.target_id
ORDER BY r.weight DESC, r.combined_degree DESC, r.id LIMIT $most
"""
_NAMES = """
SELECT id, title, size FROM communities WHERE size > 1
AND id IN (SELECT community_id FROM community_members WHERE level = $level)
ORDER BY size DESC, title, id LIMIT $most
"""
_TOTALS = """
SELECT (SELECT count(*) FROM entities) AS entities,
       (SELECT count(*) FROM relationships) AS relationships
"""
_COMMUNITIES = """
SELECT count(DISTINCT community_id) FROM community_members WHERE level = $level
AND community_id IN (SELECT id FROM communities WHERE size > 1)
"""
_DEGREES = "SELECT degree, count(*) AS n FROM entities GROUP BY degree ORDER BY degree"
_SIZES = """
SELECT level, size, count(*) AS n FROM communities WHERE size > 1 GROUP BY ALL ORDER BY ALL
"""
_UPDATES = """
SELECT * FROM (SELECT updated_at, how, modularity, drift FROM community_updates
               WHERE modularity IS NOT NULL ORDER BY updated_at DESC LIMIT $most)
ORDER BY updated_at
"""


@dataclass(frozen=True)
class GraphToDraw:
    """The part of the graph that is drawn: the entities of most links, their strongest edges.

    ``nodes`` has ``id``, ``degree`` and a column of community ids per level; ``edges`` have
    ``source`` and ``target``, rows of ``nodes``, and ``weight``.
    """

    nodes: pl.DataFrame
    edges: pl.DataFrame
    n_entities: int
    n_relationships: int

    @cached_property
    def positions(self) -> npt.NDArray[np.float32]:
        """A place for each node, the same for every level."""
        levels = [
            self.nodes[f"level_{level}"].rank("dense").fill_null(0).to_numpy()
            for level in range(_LEVELS)
        ]
        sources, targets = (self.edges[end].to_numpy() for end in ("source", "target"))
        strengths = np.maximum(self.edges["weight"].to_numpy(), 1e-9)
        return layout_graph(
            len(self.nodes), sources, targets, strengths, np.asarray(levels, np.int64)
        )


@dataclass(frozen=True)
class PictureNames:
    """The largest communities of a level (``id``, ``title``, ``size``), of ``n`` in all."""

    level: int
    largest: pl.DataFrame
    n: int


def read_graph(con: duckdb.DuckDBPyConnection) -> GraphToDraw:
    """Return the part of the graph to draw: at most MOST_NODES entities and MOST_EDGES edges."""
    nodes = con.execute(_NODES, {"most": MOST_NODES}).pl()
    put_rows(con, "drawn_places", nodes.select("id").with_row_index("place"))
    edges = con.execute(_EDGES, {"most": MOST_EDGES}).pl()
    drop_rows(con, "drawn_places")
    totals = con.execute(_TOTALS).fetchone() or (0, 0)
    return GraphToDraw(nodes, edges, *totals)


def read_names(con: duckdb.DuckDBPyConnection, level: int) -> PictureNames:
    """Return the communities of a level that get a colour and a name."""
    largest = con.execute(_NAMES, {"level": level, "most": len(COLOURS)}).pl()
    row = con.execute(_COMMUNITIES, {"level": level}).fetchone()
    return PictureNames(level, largest, row[0] if row else 0)


@dataclass(frozen=True)
class Picture:
    """A picture that may have been drawn already.

    ``shown`` are the frames and plain values that decide it: as long as they are what they were,
    it is not drawn again.
    """

    name: str
    caption: str
    shown: Sequence[object]
    draw: Callable[[], bytes]

    def png(self, home: Path) -> bytes:
        """Return the PNG from the folder of pictures, or draw it and put it there in place of the
        last one of this name.

        Raises StorageError when the folder cannot be written.
        """
        folder = home / PICTURES_FOLDER
        file = folder / f"{self.name}-{_digest(self.shown)}.png"
        with contextlib.suppress(FileNotFoundError):
            return file.read_bytes()
        png = self.draw()
        write_beside(file, png)
        for old in folder.glob(f"{self.name}-*.png"):
            if old != file:
                old.unlink(missing_ok=True)
        return png


def graph_picture(graph: GraphToDraw, names: PictureNames) -> Picture | None:
    """Return the graph coloured by the communities of one level; None if there are none."""
    if not names.n:
        return None
    nodes, edges = len(graph.nodes), len(graph.edges)
    caption = f"{graph.n_entities:,} entities, {graph.n_relationships:,} relationships"
    if nodes < graph.n_entities or edges < graph.n_relationships:
        caption += f"; drawn: the {nodes:,} entities with most links, {edges:,} strongest links"
    caption += (
        f". Colours and names: the {len(names.largest)} largest of {names.n:,} communities at "
        f"level {names.level}; the rest is grey. The larger a dot, the more links."
    )
    content = (graph.nodes, graph.edges, names.level, names.largest)
    return Picture(
        f"graph_at_level_{names.level}", caption, content, lambda: draw_graph(graph, names)
    )


def degree_picture(con: duckdb.DuckDBPyConnection) -> Picture | None:
    """Return how many entities have how many links; None without entities."""
    degrees = con.execute(_DEGREES).pl()
    if not len(degrees):
        return None
    isolated = degrees.filter(pl.col("degree") == 0)["n"].sum()
    caption = f"How many entities have how many links; {isolated:,} have none."
    return Picture("degree_distribution", caption, (degrees,), lambda: draw_degrees(degrees))


def sizes_picture(con: duckdb.DuckDBPyConnection) -> Picture | None:
    """Return how many communities there are by level and size; None without any of two or more."""
    sizes = con.execute(_SIZES).pl()
    if not len(sizes):
        return None
    caption = (
        "A dot is a community of two or more entities, at the level where it begins; "
        f"of a level at most {_MOST_POINTS} are drawn. A bar is the median."
    )
    return Picture("communities_by_size", caption, (sizes,), lambda: draw_sizes(sizes))


def updates_picture(con: duckdb.DuckDBPyConnection) -> Picture | None:
    """Return modularity and drift over the last updates; None before the second."""
    updates = con.execute(_UPDATES, {"most": MOST_UPDATES}).pl()
    if len(updates) < 2:
        return None
    caption = (
        f"The last {len(updates)} times that communities changed. Drift is the share of a fresh "
        "clustering's modularity that these communities lack."
    )
    return Picture("modularity_over_time", caption, (updates,), lambda: draw_updates(updates))


def draw_graph(graph: GraphToDraw, names: PictureNames) -> bytes:
    """Return the PNG of a graph coloured by the communities of one level."""
    figure, axes = _canvas(1060, 640)
    axes.set_position((0.2, 0.0, 0.6, 1.0))
    axes.set_axis_off()
    axes.set_xlim(-1.04, 1.04)
    axes.set_ylim(-1.04, 1.04)
    at = graph.positions.astype(np.float64)
    place = {community: number for number, community in enumerate(names.largest["id"])}
    column = graph.nodes[f"level_{names.level}"]
    community = column.replace_strict(place, default=-1, return_dtype=pl.Int64).to_numpy()
    _draw_edges(axes, graph.edges, at, community)
    _draw_nodes(axes, at, community, graph.nodes["degree"].to_numpy())
    middles = {
        number: _middle(at[community == number])
        for number in range(len(place))
        if (community == number).any()
    }
    _draw_names(axes, names.largest, middles)
    return _png(figure)


def draw_degrees(degrees: pl.DataFrame) -> bytes:
    """Return the PNG of entities ``n`` by ``degree``: bars, or log-log where degrees are large."""
    figure, axes = _canvas(640, 360)
    connected = degrees.filter(pl.col("degree") > 0)
    if degrees["degree"].to_numpy().max(initial=0) <= _MOST_BARS:
        axes.bar(degrees["degree"], degrees["n"], color=COLOURS[0], width=0.8)
        _whole_numbers(axes.xaxis, axes.yaxis)
    elif len(connected):
        axes.loglog(
            connected["degree"], connected["n"], "o", color=COLOURS[0], alpha=0.6, ms=4, mew=0
        )
        _plain_numbers(axes.xaxis, axes.yaxis)
    _label(axes, "links of an entity (degree)", "entities")
    return _png(figure)


def draw_sizes(sizes: pl.DataFrame) -> bytes:
    """Return the PNG of communities ``n`` by ``level`` and ``size``."""
    figure, axes = _canvas(640, 360)
    levels = sizes["level"].unique(maintain_order=True).to_list()
    for level in levels:
        of_level = sizes.filter(pl.col("level") == level)
        every = np.repeat(of_level["size"].to_numpy(), of_level["n"].to_numpy())
        points = every[np.linspace(0, len(every) - 1, min(len(every), _MOST_POINTS)).astype(int)]
        beside = (np.arange(len(points)) * 0.618034) % 1 - 0.5
        colour = COLOURS[level % len(COLOURS)]
        axes.plot(level + 0.6 * beside, points, "o", color=colour, alpha=0.55, ms=4, mew=0)
        axes.plot([level - 0.38, level + 0.38], [np.median(every)] * 2, color=_INK, lw=1.5)
    if levels:
        axes.set_yscale("log")
        _plain_numbers(axes.yaxis)
        counts = sizes.group_by("level", maintain_order=True).agg(pl.col("n").sum())["n"]
        axes.set_xticks(levels, [f"{at}\n{n:,}" for at, n in zip(levels, counts, strict=True)])
        axes.set_xlim(min(levels) - 0.6, max(levels) + 0.6)
    _label(axes, "level, and its number of communities", "entities in a community")
    return _png(figure)


def draw_updates(updates: pl.DataFrame) -> bytes:
    """Return the PNG of ``modularity`` and ``drift``, update by update."""
    figure, upper = _canvas(640, 360)
    upper.set_position((0.12, 0.56, 0.85, 0.38))
    lower = figure.add_axes((0.12, 0.15, 0.85, 0.28))
    number = np.arange(1, len(updates) + 1)
    drift = 100 * updates["drift"].fill_null(0).to_numpy()
    for axes, values, colour in (
        (upper, updates["modularity"].to_numpy(), COLOURS[0]),
        (lower, drift, COLOURS[2]),
    ):
        axes.plot(number, values, "o-", color=colour, ms=4, lw=1)
        _whole_numbers(axes.xaxis)
        axes.margins(y=0.2)
    lower.set_ylim(bottom=0, top=max(1.0, 1.2 * float(drift.max(initial=0))))
    days = updates["updated_at"]
    span = f"{days[0]:%Y-%m-%d} to {days[-1]:%Y-%m-%d}" if len(days) else ""
    _label(upper, "", "modularity")
    _label(lower, f"updates of the communities, {span}", "drift, %")
    return _png(figure)


def _digest(content: Sequence[object]) -> str:
    digest = hashlib.sha256(_VERSION.encode())
    for part in content:
        if isinstance(part, pl.DataFrame):
            part.write_ipc(stream := io.BytesIO(), compression="uncompressed")
            digest.update(stream.getbuffer())
        else:
            digest.update(repr(part).encode())
    return digest.hexdigest()[:16]


def _canvas(width: int, height: int) -> tuple[Figure, Axes]:
    # It warns where it can keep no cache of fonts (no home folder): not a user's business here.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI, facecolor="white")
    FigureCanvasAgg(figure)
    return figure, figure.add_axes((0.12, 0.18, 0.85, 0.77))


def _png(figure: Figure) -> bytes:
    """Return a PNG in the few colours there are and tints of them: a third of the size."""
    from PIL import Image

    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[:, :, :3]  # type: ignore[attr-defined]
    palette = Image.new("P", (1, 1))
    palette.putpalette(_palette())
    image = Image.fromarray(pixels).quantize(palette=palette, dither=Image.Dither.NONE)
    image.save(stream := io.BytesIO(), format="PNG", optimize=True)
    return stream.getvalue()


def _palette() -> list[int]:
    hues = np.asarray([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in (*COLOURS, _REST, _INK)])
    tints = [255 + share * (hues - 255) for share in _TINTS]
    return [255, 255, 255, *np.concatenate(tints).round().astype(int).ravel().tolist()]


def _draw_edges(
    axes: Axes, edges: pl.DataFrame, at: Floats, community: npt.NDArray[np.int64]
) -> None:
    from matplotlib.collections import LineCollection

    ends = edges.select("source", "target").to_numpy()
    if not len(ends):
        return
    own_community = community[ends]
    inside = np.where(own_community[:, 0] == own_community[:, 1], own_community[:, 0], -1)
    palette = np.asarray([*COLOURS, _REST])
    faint = min(0.5, max(0.12, 150 / len(ends)))
    lines = LineCollection(list(at[ends]), colors=list(palette[inside]), linewidths=0.5, zorder=1)
    lines.set_alpha(faint)
    axes.add_collection(lines)


def _draw_nodes(
    axes: Axes, at: Floats, community: npt.NDArray[np.int64], degree: npt.NDArray[np.int64]
) -> None:
    if not len(at):
        return
    most = max(int(degree.max()), 1)
    room = 60_000 / max(len(at), 300)
    area = room * (0.1 + degree / most) + 6
    palette = np.asarray([*COLOURS, _REST])
    order = np.argsort(community >= 0, kind="stable")
    axes.scatter(
        *at[order].T,
        s=area[order],
        c=list(palette[community[order]]),
        zorder=2,
        linewidths=0.4 if len(at) < _CROWDED else 0,
        edgecolors="white",
    )


def _middle(points: Floats) -> Floats:
    """Return the point nearest to the mean of them."""
    return points[np.argmin(((points - points.mean(axis=0)) ** 2).sum(axis=1))]


def _draw_names(axes: Axes, largest: pl.DataFrame, middles: dict[int, Floats]) -> None:
    """Write names at both sides of the graph, a line from each to its community."""
    fonts, drawable = _fonts()
    by_x = sorted(middles, key=lambda number: (middles[number][0], number))
    half = (len(by_x) + 1) // 2
    for side, numbers in ((-1, by_x[:half]), (1, by_x[half:])):
        numbers = sorted(numbers, key=lambda number: (middles[number][1], number))
        heights = _apart([float(middles[number][1]) for number in numbers], 0.35, 0.9)
        for number, height in zip(numbers, heights, strict=True):
            title, size = largest["title"][number], largest["size"][number]
            edge, end = 1.05 * side, middles[number]
            line = [edge, end[0]], [height, end[1]]
            for colour, width in (("white", 2.6), (COLOURS[number], 1.2)):
                axes.plot(*line, color=colour, lw=width, clip_on=False, zorder=3)
            axes.plot(edge, height, "s", color=COLOURS[number], ms=9, clip_on=False, zorder=3)
            axes.text(
                1.1 * side,
                height,
                f"{_wrapped(title, drawable)}\n{size:,} entities",
                ha="right" if side < 0 else "left",
                va="center",
                fontsize=9,
                fontfamily=list(fonts),
                color=_INK,
                parse_math=False,
            )


def _apart(places: Sequence[float], gap: float, most: float) -> list[float]:
    """Return heights near those wanted, which ascend, at least ``gap`` from one to the next."""
    steps = gap * np.arange(len(places))
    level = np.asarray(places) - steps
    # Pushed up by those below, and down by those above: half way between, all gaps are kept.
    pushed = np.maximum.accumulate(level) + np.minimum.accumulate(level[::-1])[::-1]
    top = most - (len(places) - 1) * gap
    return (np.clip(pushed / 2, -most, max(top, -most)) + steps).tolist()


def _wrapped(title: str, drawable: Set[int]) -> str:
    """Return a name in lines that fit beside the graph, without the parts no font can write."""
    plain = "".join(c if c.isprintable() else " " for c in title)
    parts = [part for part in plain.split(", ") if all(ord(c) in drawable for c in part)]
    is_wide = any(unicodedata.east_asian_width(c) in "WF" for part in parts for c in part)
    lines = textwrap.wrap(
        ", ".join(parts) or "(in letters not installed)",
        _NAME_WIDTH // 2 if is_wide else _NAME_WIDTH,
        max_lines=_NAME_LINES,
        placeholder="…",
    )
    return "\n".join(lines)


@cache
def _fonts() -> tuple[Sequence[str], Set[int]]:
    """Return the fonts to write names in, and the characters that one of them has."""
    from matplotlib.font_manager import fontManager, get_font

    installed = {font.name: font.fname for font in fontManager.ttflist}
    names = [name for name in _FONTS if name in installed]
    return names, {code for name in names for code in get_font(installed[name]).get_charmap()}


def _label(axes: Axes, below: str, beside: str) -> None:
    axes.set_xlabel(below, color=_INK, fontsize=9)
    axes.set_ylabel(beside, color=_INK, fontsize=9)
    axes.tick_params(colors=_INK, labelsize=9)
    axes.grid(axis="y", color="#E6E6E6", lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _whole_numbers(*scales: Axis) -> None:
    from matplotlib.ticker import MaxNLocator

    for scale in scales:
        scale.set_major_locator(MaxNLocator(integer=True))


def _plain_numbers(*scales: Axis) -> None:
    """Write 2, 10, 1,000 at the ticks of logarithmic scales, not powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for scale in scales:
        scale.set_major_locator(LogLocator(subs=(1, 2, 5) if _is_short(scale) else (1,)))
        scale.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        scale.set_minor_formatter(NullFormatter())


def _is_short(scale: Axis) -> bool:
    low, high = scale.get_view_interval()
    return high < 200 * low
