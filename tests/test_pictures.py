"""Pictures of the graph: real PNGs, small, the same each time, and drawn only when they differ."""

from __future__ import annotations

import io
import itertools
import random
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from graphrag_pipeline.assets.common import inert, markdown_rows, picture
from graphrag_pipeline.pages import pictures
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


def pixels(png: bytes) -> np.ndarray:
    image = Image.open(io.BytesIO(png))
    image.load()
    assert image.format == "PNG"
    return np.asarray(image.convert("RGB"))


@pytest.mark.parametrize("communities", [[], [1], [3, 2], [40, 30] + [20] * 250])
def test_a_graph_of_any_size_is_a_small_picture_and_the_same_each_time(
    tmp_path: Path, communities: list[int]
) -> None:
    store = index_of(tmp_path, communities)
    png = drawn(store)
    seen = pixels(png)
    assert seen.shape == (640, 1060, 3)
    assert len(png) < 60_000
    assert (seen.min() < 250) == bool(communities)
    assert drawn(store) == png


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
    seen = pixels(drawn(store))
    for colour in pictures.COLOURS:
        rgb = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
        assert np.all(seen == rgb, axis=2).sum() > 100, colour
    for side in (slice(0, 195), slice(865, 1060)):
        inked = np.any(seen[:, side] < 200, axis=(1, 2))
        assert not inked[:3].any()
        assert not inked[-3:].any()
        blocks = np.diff(np.flatnonzero(np.diff(inked.astype(int)) == 1))
        assert len(blocks) >= 8


def test_a_name_is_wrapped_and_only_what_a_font_can_write_is_kept() -> None:
    letters = {ord(c) for c in "ABCdefgh ,<>$"}
    assert pictures._wrapped("ABC\x07def, 城市, <fed>", letters) == "ABC def, <fed>"
    assert pictures._wrapped("城市", letters) == "(in letters not\ninstalled)"
    long = pictures._wrapped("A" * 500, {ord("A")}).split("\n")
    assert len(long) == 3
    assert max(map(len, long)) <= 22
    assert max(map(len, pictures._wrapped("城" * 40, {ord("城")}).split("\n"))) <= 11


def test_heights_of_names_keep_their_order_and_a_gap() -> None:
    heights = pictures._apart([-0.9, 0.1, 0.11, 0.12, 0.95], 0.35, 0.9)
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
        lambda: pictures.draw_degrees(pl.DataFrame({"degree": [0, 2], "n": [1, 4]})),
        lambda: pictures.draw_degrees(HUBS),
        lambda: pictures.draw_sizes(pl.DataFrame({"level": [0], "size": [2], "n": [1]})),
        lambda: pictures.draw_sizes(
            pl.DataFrame({"level": [0, 0, 1], "size": [500, 90, 7], "n": [1, 20, 3000]})
        ),
        lambda: pictures.draw_updates(UPDATES),
    ],
)
def test_plots_are_small_pictures_and_the_same_each_time(draw: Callable[[], bytes]) -> None:
    png = draw()
    seen = pixels(png)
    assert seen.shape == (360, 640, 3)
    assert len(png) < 15_000
    assert len(np.unique(seen.reshape(-1, 3), axis=0)) > 3
    assert draw() == png


def test_a_picture_is_drawn_again_only_if_what_it_shows_differs(tmp_path: Path) -> None:
    times = []

    def shown(frame: pl.DataFrame) -> bytes:
        def draw() -> bytes:
            times.append(frame)
            return pictures.draw_degrees(frame)

        return pictures.Picture("degrees", "", (frame,), draw).png(tmp_path)

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
    assert picture(tmp_path, broken) == {"degrees": "could not be drawn: ValueError: no paint"}
    (tmp_path / pictures.PICTURES_FOLDER).write_text("in the way")
    unkept = pictures.Picture("degrees", "", (), lambda: b"")
    assert "could not be drawn" in str(picture(tmp_path, unkept)["degrees"])


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


def test_importing_does_not_load_matplotlib() -> None:
    code = "import sys, graphrag_pipeline.pages.pictures; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_hierarchy_of_one_level_has_no_second_picture(tmp_path: Path) -> None:
    store = index_of(tmp_path, [3, 2])
    with store.transaction() as con:
        con.execute("DELETE FROM hierarchy_members WHERE level = 1")
    with store.read() as con:
        assert pictures.read_names(con, 1).n == 0
        assert pictures.read_graph(con).positions.shape == (5, 2)
