"""Entities whose titles are alike by vector: HippoRAG's synonym edges.

What is embedded is the title alone, as in HippoRAG. The vectors of ``entities`` hold descriptions
too: two names of one thing are described differently, and two things found in one sentence, by
rule, alike.

Only what changed is searched again, and up to :data:`EXACT_PAIRS` comparisons the outcome is that
of a search from nothing. Beyond, rows are compared within windows of rows that lie on the same
sides of random hyperplanes (Charikar 2002), so the cost grows with the number of rows and not with
its square; a pair may then be missed.

Source: Gutiérrez et al., 2024, section 3.1 (similarity at least 0.8), and 2025, appendix. Their
code searches all pairs again for every batch, 2,047 neighbours of each, keeps about 100, and leaves
out names of two letters or digits and fewer; so does this, by Unicode's letters and digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import duckdb
import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_pipeline.core.arrays import distinct
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.core.text import stored_terms
from graphrag_pipeline.store.frames import put_rows
from graphrag_pipeline.store.index_store import (
    IndexStore,
    get_meta,
    insert,
    replace_links,
    set_meta,
)
from graphrag_pipeline.store.vector_store import VectorStore
from graphrag_pipeline.structures.cosines import PAIRS, nearest_of_each, similarities
from graphrag_pipeline.structures.structure import Outcome

MOST_NEIGHBOURS = 100
"""An entity is linked to so many others at most, the nearest."""
EXACT_PAIRS = 100_000_000
"""Up to so many comparisons (10,000 titles with each other, 4 seconds of CPU) all are made.

Beyond, 0.25 ms a title; of 8,000 titles, 99.5 to 99.9 % of the pairs are found that way.
"""

_VERSION = "1"
_TABLE = "entity_titles"
_CONSIDERED = 2047
_BLOCK = 256
_ROUNDING = 1e-4
_BANDS = 24
_BITS = 62
_WINDOW = 64
_WINDOWS_AT_ONCE = 128
_SEED = 11
_NAMED = """
SELECT id, title FROM entities
WHERE length(regexp_replace(title, '[^\\p{L}\\p{N}]', '', 'g')) > 2 ORDER BY id
"""

Places = npt.NDArray[np.int64]


def update_synonyms(store: IndexStore, vectors: VectorStore, least: float) -> Outcome:
    """Bring ``synonym_edges`` up to date with the vectors of the titles.

    Titles of a cosine of at ``least`` so much are synonyms. Does nothing when neither has changed.
    Tells how many titles were ``searched``.
    """
    with store.read() as con:
        state = _state(con, least)
        if get_meta(con, "synonyms") == state:
            return Outcome({"searched": 0})
        made_anew = not (get_meta(con, "synonyms") or "").startswith(_made_with(least))
        titles = con.sql(_NAMED).pl()
        searched = con.sql("SELECT entity_id AS id, title FROM staging.synonyms_searched").pl()
        before = con.sql("FROM synonym_edges").pl()
    if made_anew:
        searched, before = searched.clear(), before.clear()
    titles = _told(titles)
    of_titles = vectors.of(_TABLE, titles["id"])
    n, edges = _edges(titles, searched, before, of_titles, least)
    with store.transaction() as con:
        put_rows(con, "wanted_synonyms", edges)
        put_rows(con, "searched_titles", titles.rename({"id": "entity_id"}))
        replace_links(con, "synonym_edges", "wanted_synonyms", ("source_id", "target_id"))
        replace_links(con, "staging.synonyms_searched", "searched_titles", ("entity_id",))
        set_meta(con, "synonyms", state)
    return Outcome({"searched": n})


def make_synonyms(
    con: duckdb.DuckDBPyConnection,
    vectors_of: Callable[[Sequence[str]], npt.NDArray[np.float32]],
    least: float,
) -> None:
    """Fill ``synonym_edges`` of an index that has none, by the vectors of its titles.

    ``vectors_of`` gives those of entities, one a row; ``least`` is how alike two must be.
    """
    titles = _told(con.sql(_NAMED).pl())
    none = con.sql("FROM synonym_edges LIMIT 0").pl()
    _, edges = _edges(titles, titles.clear(), none, vectors_of(titles["id"].to_list()), least)
    insert(con, "synonym_edges", edges)


def synonyms_current(con: duckdb.DuckDBPyConnection, settings: Settings) -> bool:
    """Whether ``synonym_edges`` are those of the titles' vectors as they are."""
    return get_meta(con, "synonyms") == _state(con, settings.embeddings.synonym_similarity)


def synonyms_version(settings: Settings) -> str:
    """Return what decides the edges besides the vectors."""
    return f"{_VERSION}:{settings.embeddings.synonym_similarity}"


def _made_with(least: float) -> str:
    return f"{_VERSION}:{least}:"


def _state(con: duckdb.DuckDBPyConnection, least: float) -> str:
    return f"{_made_with(least)}{get_meta(con, f'vectors:{_TABLE}')}"


def _told(titles: pl.DataFrame) -> pl.DataFrame:
    """Return the titles that have terms to be told by."""
    terms = pl.Series(stored_terms(titles["title"].to_list()), dtype=pl.String)
    return titles.filter(terms != "")


def _edges(
    titles: pl.DataFrame,
    searched: pl.DataFrame,
    before: pl.DataFrame,
    vectors: npt.NDArray[np.float32],
    least: float,
) -> tuple[int, pl.DataFrame]:
    """Return how many titles were searched, and the edges there should be.

    An edge of another title stays as it is; where an entity that had as many edges as it may loses
    one, the next nearest takes its place, so that entity is searched again too.
    """
    place = titles.select("id").with_row_index("place").cast({"place": pl.Int64})
    changed_places = _places(titles.join(searched, on=["id", "title"], how="anti"), place)
    numbered = _numbered(before, place)
    unchanged = numbered.filter(
        ~pl.col("source").is_in(changed_places), ~pl.col("target").is_in(changed_places)
    )
    again = np.union1d(changed_places, _no_longer_full(before, unchanged, place))
    unchanged = unchanged.filter(~pl.col("source").is_in(again))
    edges = pl.concat([unchanged.clear(), *_near(vectors, again, least)])
    back = edges.filter(pl.col("source").is_in(changed_places), ~pl.col("target").is_in(again))
    back = back.select(source="target", target="source", similarity="similarity")
    nearest = nearest_of_each(pl.concat([unchanged, edges, back]), MOST_NEIGHBOURS)
    ids = titles["id"]
    return len(again), pl.DataFrame(
        {
            "source_id": ids.gather(nearest["source"]),
            "target_id": ids.gather(nearest["target"]),
            "similarity": nearest["similarity"],
        }
    )


def _places(rows: pl.DataFrame, place: pl.DataFrame) -> Places:
    return rows.join(place, on="id")["place"].to_numpy()


def _numbered(edges: pl.DataFrame, place: pl.DataFrame) -> pl.DataFrame:
    """Return the edges whose ends both still exist, by the places of these."""
    return (
        edges.join(place.rename({"place": "source"}), left_on="source_id", right_on="id")
        .join(place.rename({"place": "target"}), left_on="target_id", right_on="id")
        .select(list(PAIRS))
    )


def _no_longer_full(edges: pl.DataFrame, unchanged: pl.DataFrame, place: pl.DataFrame) -> Places:
    full = edges.group_by("source_id").len().filter(pl.col("len") >= MOST_NEIGHBOURS)
    before = full.join(place, left_on="source_id", right_on="id")["place"]
    still = unchanged.group_by("source").len().filter(pl.col("len") >= MOST_NEIGHBOURS)["source"]
    return np.setdiff1d(before.to_numpy(), still.to_numpy())


def _near(
    vectors: npt.NDArray[np.float32], searched: Places, least: float
) -> Iterator[pl.DataFrame]:
    """Yield (source, target, similarity) of the rows near each searched one, the nearest first."""
    if len(searched) * len(vectors) <= EXACT_PAIRS:
        for start in range(0, len(searched), _BLOCK):
            part = searched[start : start + _BLOCK]
            first, second = np.nonzero(vectors[part] @ vectors.T >= least - _ROUNDING)
            yield _measured(vectors, part[first], second, least)
        return
    is_searched = np.zeros(len(vectors), bool)
    is_searched[searched] = True
    pairs = np.concatenate([*_in_windows(vectors, is_searched, least)])
    yield _measured(vectors, *np.divmod(distinct(pairs), len(vectors)), least)


def _measured(
    vectors: npt.NDArray[np.float32], first: Places, second: Places, least: float
) -> pl.DataFrame:
    """Return pairs as edges, each row's nearest, measured alike whatever block they were in."""
    different = first != second
    first, second = first[different], second[different]
    similarity = similarities(vectors, first, second)
    columns = {"source": first, "target": second, "similarity": similarity}
    pairs = pl.DataFrame(columns, schema=PAIRS)
    return nearest_of_each(pairs.filter(pl.col("similarity") >= least), _CONSIDERED)


def _in_windows(
    vectors: npt.NDArray[np.float32], is_searched: npt.NDArray[np.bool_], least: float
) -> Iterator[Places]:
    """Yield likely near pairs, as one x rows + two, of rows whose neighbourhood is searched.

    In each band rows are sorted by the sides of hyperplanes they lie on, so that near rows stand
    together, and are compared within windows that overlap by half.
    """
    n = len(vectors)
    random = np.random.default_rng(_SEED)
    powers = 1 << np.arange(_BITS, dtype=np.int64)
    starts = np.unique(np.clip(np.arange(0, n, _WINDOW // 2), 0, n - _WINDOW))
    for _ in range(_BANDS):
        planes = random.standard_normal((vectors.shape[1], _BITS)).astype(np.float32)
        order = np.argsort((vectors @ planes > 0) @ powers, kind="stable")
        windows = order[starts[:, None] + np.arange(_WINDOW)]
        windows = windows[is_searched[windows].any(axis=1)]
        for start in range(0, len(windows), _WINDOWS_AT_ONCE):
            rows = windows[start : start + _WINDOWS_AT_ONCE]
            near = vectors[rows]
            alike = near @ near.transpose(0, 2, 1) >= least - _ROUNDING
            alike &= is_searched[rows][:, :, None]
            window, first, second = np.nonzero(alike)
            yield rows[window, first] * n + rows[window, second]
