"""Pictures of the graph: small SVGs, the same each time, and drawn only when they differ."""

from __future__ import annotations

import itertools
import random
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from graphrag_pipeline.assets.common import inert, markdown_rows, picture
from graphrag_pipeline.pages import drawings, pictures
from graphrag_pipeline.store.index_store import IndexStore

NAMES = ("Berg & Sons $x_1$", "城市 Rivers\x07", "<b>A</b> very long name " * 4)


def index_of(folder: Path, communities: Sequence[int]) -> IndexStore:
    """An index whose communities have these sizes; each is a ring, and rings are chained."""
    starts = np.cumsum([0, *communities])
    n = int(starts[-1])
    group = np.repeat(np.arange(len(communities)), communities)
    rng = random.Random(7)
    edges = {
        (int(starts[g] + i), int(starts[g] + (i + 1) % size))
        for g, size in enumerate(communities)
        for i in range(size)
        if size > 1
    }
    edges |= {(int(a), int(b)) for a, b in itertools.pairwise(starts[:-1])}
    edges |= {(0, rng.randrange(1, n)) for _ in range(n // 10)}
    ends = np.asarray(sorted({tuple(sorted(e)) for e in edges if e[0] != e[1]}), np.int64)
    ends = ends.reshape(-1, 2)
    degree = np.bincount(ends.ravel(), minlength=n)
    tables = {
        "entities": pl.DataFrame({"n": np.arange(n), "degree": degree, "g": group}),
        "ends": pl.DataFrame({"a": ends[:, 0], "b": ends[:, 1]}),
        "sizes": pl.DataFrame(
            {
                "g": np.arange(len(communities)),
                "size": list(communities),
                "title": [NAMES[g % len(NAMES)] for g in range(len(communities))],
            },
            schema={"g": pl.Int64, "size": pl.Int64, "title": pl.String},
        ),
    }
    store = IndexStore(folder / "index.duckdb")
    with store.transaction() as con:
        for name, frame in tables.items():
            con.register(f"given_{name}", frame)
        con.execute(
            """INSERT INTO entities SELECT 'e' || n, n, 'Entity ' || n, 'PERSON', '', 1, degree, 1
               FROM given_entities;
               INSERT INTO relationships SELECT 'r' || a || '-' || b, 0, 'e' || a, 'e' || b,
               'Entity ' || a, 'Entity ' || b, '', 1 + (a + b) % 3, 0, 2, 1, '' FROM given_ends;
               INSERT INTO hierarchy_communities
               SELECT 'graph', 'c' || g, g, 0, 1, NULL, title, size, size FROM given_sizes;
               INSERT INTO hierarchy_members SELECT 'graph', 'c' || g, 'e' || n, level
               FROM given_entities CROSS JOIN (VALUES (0), (1)) levels(level)"""
        )
        for name in tables:
            con.unregister(f"given_{name}")
    return store


def drawn(store: IndexStore, level: int = 0) -> bytes:
    with store.read() as con:
        graph, names = pictures.read_graph(con), pictures.read_names(con, level)
    return pictures.draw_graph(graph, names)


def seen(svg: bytes) -> ET.Element:
    """The drawing, which must be well-formed and of the size it says."""
    root = ET.fromstring(svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
    return root


def texts(svg: bytes) -> list[str]:
    return [element.text or "" for element in seen(svg) if element.tag.endswith("text")]


def coordinates(svg: bytes) -> np.ndarray:
    """Where lines and dots begin."""
    paths = [element.get("d", "") for element in seen(svg) if element.tag.endswith("path")]
    starts = [found for path in paths for found in re.findall(r"M([-0-9.]+) ([-0-9.]+)", path)]
    return np.asarray(starts, float).reshape(-1, 2)


@pytest.mark.parametrize("communities", [[], [1], [3, 2], [40, 30] + [20] * 250])
def test_a_graph_of_any_size_is_a_small_picture_and_the_same_each_time(
    tmp_path: Path, communities: list[int]
) -> None:
    store = index_of(tmp_path, communities)
    svg = drawn(store)
    assert seen(svg).get("width") == "1060"
    assert len(svg) < 100_000
    places = coordinates(svg)
    assert (len(places) > 1) == bool(communities)
    assert np.all((places >= 0) & (places <= [1060, 640]))
    assert drawn(store) == svg


def test_of_a_large_graph_the_most_linked_are_drawn_and_the_caption_says_so(
    tmp_path: Path,
) -> None:
    store = index_of(tmp_path, [40, 30] + [20] * 250)
    with store.read() as con:
        graph, names = pictures.read_graph(con), pictures.read_names(con, 0)
    shown = pictures.graph_picture(graph, names)
    assert (len(graph.nodes), len(graph.edges)) <= (pictures.MOST_NODES, pictures.MOST_EDGES)
    assert graph.nodes["degree"].to_numpy().min() >= 2
    assert shown is not None
    assert "5,070 entities" in shown.caption
    assert "drawn: the 2,500 entities with most links" in shown.caption
    assert "the 9 largest of 252 communities" in shown.caption


def test_the_largest_communities_have_colours_and_names_beside_each_other(tmp_path: Path) -> None:
    store = index_of(tmp_path, [12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2])
    svg = drawn(store)
    squares = [e for e in seen(svg) if e.tag.endswith("rect")]
    assert {e.get("fill") for e in squares} == set(pictures.COLOURS)
    assert {float(e.get("x", 0)) < 530 for e in squares} == {True, False}
    heights = {
        side: sorted(float(e.get("y", 0)) for e in squares if (float(e.get("x", 0)) < 530) == side)
        for side in (True, False)
    }
    assert min(np.diff(of_side).min() for of_side in heights.values()) > 100
    assert "Berg & Sons $x_1$" in texts(svg)
    assert "12 entities" in texts(svg)
    assert b"<b>" not in svg


def test_a_name_is_wrapped_to_fit_beside_the_graph() -> None:
    assert drawings.wrapped("ABC\x07def, <fed>") == ["ABC def, <fed>"]
    long = drawings.wrapped("A" * 500)
    assert len(long) == 3
    assert max(map(len, long)) <= 22
    assert max(map(len, drawings.wrapped("城" * 40))) <= 11
    assert drawings.wrapped("") == []


def test_heights_of_names_keep_their_order_and_a_gap() -> None:
    heights = drawings.apart([-0.9, 0.1, 0.11, 0.12, 0.95], 0.35, 0.9)
    assert heights == sorted(heights)
    assert min(np.diff(heights)) >= 0.35 - 1e-9
    assert max(abs(height) for height in heights) <= 0.9 + 1e-9


UPDATES = pl.DataFrame(
    {
        "updated_at": [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=d) for d in range(3)],
        "how": ["clustered", "repaired", "repaired"],
        "modularity": [0.6, 0.58, 0.59],
        "drift": [0.0, 0.01, None],
    }
)
HUBS = pl.DataFrame({"degree": [0, 1, 5, 300], "n": [7, 2000, 40, 1]})


@pytest.mark.parametrize(
    "draw",
    [
        lambda: drawings.degrees_drawing(pl.DataFrame({"degree": [0, 2], "n": [1, 4]})),
        lambda: drawings.degrees_drawing(HUBS),
        lambda: drawings.degrees_drawing(pl.DataFrame({"degree": [30], "n": [1]})),
        lambda: drawings.sizes_drawing(pl.DataFrame({"level": [0], "size": [2], "n": [1]})),
        lambda: drawings.sizes_drawing(
            pl.DataFrame({"level": [0, 0, 1], "size": [500, 90, 7], "n": [1, 20, 3000]})
        ),
        lambda: drawings.updates_drawing(UPDATES),
    ],
)
def test_plots_are_small_pictures_and_the_same_each_time(draw: Callable[[], bytes]) -> None:
    svg = draw()
    assert (seen(svg).get("width"), seen(svg).get("height")) == ("640", "360")
    assert len(svg) < 20_000
    assert len(texts(svg)) >= 3
    places = coordinates(svg)
    assert np.all((places >= 0) & (places <= [640, 360]))
    assert draw() == svg


def test_a_picture_is_drawn_again_only_if_what_it_shows_differs(tmp_path: Path) -> None:
    times = []

    def shown(frame: pl.DataFrame) -> bytes:
        def draw() -> bytes:
            times.append(frame)
            return drawings.degrees_drawing(frame)

        return pictures.Picture("degrees", "", (frame,), draw).svg(tmp_path)

    first = shown(HUBS)
    assert shown(HUBS.clone()) == first
    assert len(times) == 1
    other = shown(HUBS.with_columns(n=pl.col("n") + 100))
    assert other != first
    (kept,) = (tmp_path / pictures.PICTURES_FOLDER).iterdir()
    assert kept.read_bytes() == other


def test_a_picture_that_cannot_be_drawn_is_told_in_its_place(tmp_path: Path) -> None:
    def draw() -> bytes:
        raise ValueError("no paint")

    broken = pictures.Picture("degrees", "", (), draw)
    assert picture(tmp_path, broken) == {"degrees": "could not be shown: ValueError: no paint"}
    (tmp_path / pictures.PICTURES_FOLDER).write_text("in the way")
    unkept = pictures.Picture("degrees", "", (), lambda: b"")
    assert "could not be shown" in str(picture(tmp_path, unkept)["degrees"])


def test_nothing_is_shown_of_an_empty_index(tmp_path: Path) -> None:
    with IndexStore(tmp_path / "index.duckdb").read() as con:
        graph, names = pictures.read_graph(con), pictures.read_names(con, 0)
        assert pictures.graph_picture(graph, names) is None
        assert pictures.degree_picture(con) is None
        assert pictures.sizes_picture(con) is None
        assert pictures.updates_picture(con) is None


HOSTILE = [
    "![seen](http://evil.example/x.png)",
    "[click](javascript:alert(1)) <http://evil.example>",
    "<img src=x onerror=alert(1)> &lt;b&gt; a|b",
    "http://evil.example www.evil.example WWW.evil.example me@evil.example",
    "`code` **bold** _it_ ~~gone~~ $x$ \\| \\",
    "a\n\n# heading\n- list | cell\r\n",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_others_is_shown_and_does_nothing_else(text: str) -> None:
    shown = inert(text)
    assert "\n" not in shown
    markup = re.sub(r"\\[!-/:-@\[-`{-~]", "", shown)
    assert not re.search(r"[\\`*_~\[\]<>|!&#$@]", markup)
    assert not re.search(r"://|www\.|\w@", shown.replace("\\", ""), re.IGNORECASE)
    assert re.sub(r"\\([!-/:-@\[-`{-~])|\u2060", r"\1", shown) == " ".join(text.split())


def test_a_cell_cut_short_leaves_the_table_whole() -> None:
    table = markdown_rows(("a", "b"), [("x" * 88 + "|||", "![](http://e.x/)|" * 20)]).value
    _, _, row = str(table).splitlines()
    assert len(re.findall(r"(?<!\\)\|", row)) == 3


def test_a_hierarchy_of_one_level_has_no_second_picture(tmp_path: Path) -> None:
    store = index_of(tmp_path, [3, 2])
    with store.transaction() as con:
        con.execute("DELETE FROM hierarchy_members WHERE level = 1")
    with store.read() as con:
        assert pictures.read_names(con, 1).n == 0
        assert pictures.read_graph(con).positions.shape == (5, 2)


@pytest.mark.parametrize(
    ("axis", "ticks"),
    [
        (drawings.Axis(0, 10, 0, 100), [0, 2, 4, 6, 8, 10]),
        (drawings.Axis(0.4, 3.6, 0, 100, is_whole=True), [1, 2, 3]),
        (drawings.Axis(0.7, 0.71, 0, 100), [0.7, 0.702, 0.704, 0.706, 0.708, 0.71]),
        (drawings.Axis(0.9, 2000, 0, 100, is_log=True), [1, 10, 100, 1000]),
        (drawings.Axis(1, 60, 0, 100, is_log=True), [1, 2, 5, 10, 20, 50]),
    ],
)
def test_the_ticks_of_a_scale_are_few_and_round(axis: drawings.Axis, ticks: list[float]) -> None:
    assert axis.ticks == pytest.approx(ticks)
    assert axis.at(axis.low) == pytest.approx(0)
    assert axis.at(axis.high) == pytest.approx(100)
