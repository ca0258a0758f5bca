"""Pictures of the graph and its communities: small SVGs, drawn once and kept until they differ.

A ``Picture`` knows what it shows, read with a connection, and how that is drawn, without one; its
``svg`` draws only what is not in the folder of pictures yet.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_pipeline.core.hardening.files import write_beside
from graphrag_pipeline.pages.drawings import (
    COLOURS,
    MOST_POINTS,
    degrees_drawing,
    graph_drawing,
    sizes_drawing,
    updates_drawing,
)
from graphrag_pipeline.pages.layout import layout_graph
from graphrag_pipeline.store.frames import drop_rows, put_rows, value_of

PICTURES_FOLDER = "pictures"
MOST_NODES = 2500
MOST_EDGES = 2500
MOST_UPDATES = 200
_VERSION = "2"
_LEVELS = 3

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


def read_graph(con: duckdb.DuckDBPyConnection, most_nodes: int = MOST_NODES) -> GraphToDraw:
    """Return the part of the graph to draw: at most so many entities and MOST_EDGES edges."""
    nodes = con.execute(_NODES, {"most": most_nodes}).pl()
    put_rows(con, "drawn_places", nodes.select("id").with_row_index("place"))
    edges = con.execute(_EDGES, {"most": MOST_EDGES}).pl()
    drop_rows(con, "drawn_places")
    totals = con.execute(_TOTALS).fetchone() or (0, 0)
    return GraphToDraw(nodes, edges, *totals)


def read_names(con: duckdb.DuckDBPyConnection, level: int) -> PictureNames:
    """Return the communities of a level that get a colour and a name."""
    largest = con.execute(_NAMES, {"level": level, "most": len(COLOURS)}).pl()
    return PictureNames(level, largest, value_of(con, _COMMUNITIES, {"level": level}))


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

    def svg(self, home: Path) -> bytes:
        """Return the SVG from the folder of pictures, or draw it and put it there in place of the
        last one of this name.

        Raises StorageError when the folder cannot be written.
        """
        folder = home / PICTURES_FOLDER
        file = folder / f"{self.name}-{_digest(self.shown)}.svg"
        with contextlib.suppress(FileNotFoundError):
            return file.read_bytes()
        svg = self.draw()
        write_beside(file, svg)
        for old in folder.glob(f"{self.name}-*.*"):
            if old != file:
                old.unlink(missing_ok=True)
        return svg


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
    return Picture("degree_distribution", caption, (degrees,), lambda: degrees_drawing(degrees))


def sizes_picture(con: duckdb.DuckDBPyConnection) -> Picture | None:
    """Return how many communities there are by level and size; None without any of two or more."""
    sizes = con.execute(_SIZES).pl()
    if not len(sizes):
        return None
    caption = (
        "A dot is a community of two or more entities, at the level where it begins; "
        f"of a level at most {MOST_POINTS} are drawn. A bar is the median."
    )
    return Picture("communities_by_size", caption, (sizes,), lambda: sizes_drawing(sizes))


def updates_picture(con: duckdb.DuckDBPyConnection) -> Picture | None:
    """Return modularity and drift over the last updates; None before the second."""
    updates = con.execute(_UPDATES, {"most": MOST_UPDATES}).pl()
    if len(updates) < 2:
        return None
    caption = (
        f"The last {len(updates)} times that communities changed. Drift is the share of a fresh "
        "clustering's modularity that these communities lack."
    )
    return Picture("modularity_over_time", caption, (updates,), lambda: updates_drawing(updates))


def draw_graph(graph: GraphToDraw, names: PictureNames) -> bytes:
    """Return a graph coloured by the communities of one level, as SVG."""
    place = {community: number for number, community in enumerate(names.largest["id"])}
    column = graph.nodes[f"level_{names.level}"]
    community = column.replace_strict(place, default=-1, return_dtype=pl.Int64).to_numpy()
    return graph_drawing(
        graph.positions.astype(np.float64),
        graph.edges,
        community,
        graph.nodes["degree"].to_numpy(),
        names.largest,
    )


def _digest(content: Sequence[object]) -> str:
    digest = hashlib.sha256(_VERSION.encode())
    for part in content:
        if isinstance(part, pl.DataFrame):
            part.write_ipc(stream := io.BytesIO(), compression="uncompressed")
            digest.update(stream.getbuffer())
        else:
            digest.update(repr(part).encode())
    return digest.hexdigest()[:16]
