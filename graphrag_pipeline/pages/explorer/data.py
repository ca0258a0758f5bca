"""What the page knows of a release: compact columns, where a number stands for an id."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_pipeline.pages.layout import layout_graph

if TYPE_CHECKING:
    import duckdb

PASSAGES = 5
"""Most passages of source text kept for one entity."""

_BEFORE, _AFTER = 140, 180
_GRID = 20_000
_NUMBERED = """
CREATE OR REPLACE TEMP TABLE node AS
SELECT id, row_number() OVER (ORDER BY id) - 1 AS n FROM entities;
CREATE OR REPLACE TEMP TABLE community AS
SELECT id, row_number() OVER (ORDER BY level, size DESC, id) - 1 AS n FROM communities;
CREATE OR REPLACE TEMP TABLE document AS
SELECT id, row_number() OVER (ORDER BY uri, id) - 1 AS n FROM documents;
CREATE OR REPLACE TEMP MACRO shortened(words, most) AS
CASE WHEN length(words) > most THEN rtrim(left(words, most - 1)) || '…' ELSE words END;
"""
_RELEASE = """
SELECT id, strftime(created_at, '%Y-%m-%d %H:%M') AS created_at,
       n_documents, n_chunks, n_entities, n_relationships, n_communities, n_reports
FROM releases ORDER BY releases.created_at DESC, id DESC LIMIT 1
"""
_ENTITIES = """
SELECT human_readable_id AS number, title, type, shortened(description, 1500) AS description,
       frequency, coalesce(aliases, []) AS aliases
FROM node JOIN entities USING (id)
LEFT JOIN (SELECT canonical_id AS id, list(title ORDER BY title) AS aliases
           FROM entity_aliases GROUP BY ALL) USING (id)
ORDER BY n
"""
_RELATIONSHIPS = """
SELECT s.n AS source, t.n AS target, weight, type, shortened(description, 400) AS description
FROM relationships JOIN node s ON s.id = source_id JOIN node t ON t.id = target_id
ORDER BY weight DESC, relationships.id
"""
_COMMUNITIES = """
SELECT c.human_readable_id AS number, coalesce(r.title, c.title) AS title, c.level, c.last_level,
       coalesce(p.n, -1) AS parent, size, n_relationships, coalesce(r.writer, '') AS writer,
       coalesce(shortened(r.summary, 2000), '') AS summary, r.rating, r.coverage,
       coalesce(r.rating_explanation, '') AS rating_explanation
FROM community k JOIN communities c USING (id) LEFT JOIN community p ON p.id = c.parent_id
LEFT JOIN community_reports r ON r.community_id = c.id
ORDER BY k.n
"""
_FINDINGS = """
WITH said AS (
    SELECT k.n AS community, f.summary, shortened(f.explanation, 1500) AS explanation, f.place,
           f.chunk_id, f.start_char, f.end_char
    FROM (SELECT community_id AS id, unnest(findings, recursive := true),
                 generate_subscripts(findings, 1) AS place FROM community_reports) f
    JOIN community k USING (id)
)
SELECT community, summary, explanation, coalesce(d.n, -1) AS document,
       coalesce(said.start_char, -1) AS start
FROM said LEFT JOIN chunks c ON c.id = said.chunk_id LEFT JOIN document d ON d.id = c.document_id
ORDER BY community, place
"""
_MEMBERS = """
SELECT m.level, node.n AS node, community.n AS community
FROM community_members m JOIN node ON node.id = entity_id
JOIN community ON community.id = community_id
"""
_DOCUMENTS = "SELECT title, uri FROM document JOIN documents USING (id) ORDER BY n"
# An import may not say where in a chunk an entity stands: then its title is looked for, or else
# the longest of its words.
_PASSAGES = f"""
WITH found AS (
    SELECT node.n AS node, c.id AS chunk, document.n AS document, c.start_char AS offset_, c.text,
           e.n_mentions, entities.title,
           row_number() OVER (PARTITION BY node.n, c.document_id
                              ORDER BY e.n_mentions DESC, c.ordinal) AS nth_of_document,
           count(*) OVER (PARTITION BY node.n) AS n_chunks,
           e.start_char - c.start_char AS spot, e.end_char - e.start_char AS n_chars
    FROM entity_chunks e JOIN node ON node.id = e.entity_id JOIN entities ON entities.id = node.id
    JOIN chunks c ON c.id = e.chunk_id JOIN document ON document.id = c.document_id
), best AS (
    FROM found
    QUALIFY row_number() OVER (PARTITION BY node ORDER BY nth_of_document, n_mentions DESC,
                               document, offset_) <= {PASSAGES}
), named AS (
    SELECT *, CASE WHEN spot IS NOT NULL THEN NULL
                   WHEN contains(lower(text), lower(title)) THEN lower(title)
                   ELSE (SELECT arg_max(word, length(word))
                         FROM unnest(string_split(lower(title), ' ')) AS words(word)
                         WHERE length(word) > 3 AND contains(lower(best.text), word)) END AS sought
    FROM best
), placed AS (
    SELECT * REPLACE (coalesce(spot, strpos(lower(text), sought) - 1, -1) AS spot,
                      coalesce(n_chars, length(sought), 0) AS n_chars)
    FROM named
)
SELECT node, chunk, document, offset_, n_chunks, text,
       greatest(spot, 0) AS marked, CASE WHEN spot < 0 THEN 0 ELSE n_chars END AS n_marked,
       greatest(spot - {_BEFORE}, 0) AS first, least(greatest(spot, 0) + n_chars + {_AFTER},
       length(text)) AS last
FROM placed ORDER BY node, nth_of_document, n_mentions DESC, document, offset_
"""


def page_data(con: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Return the columns of one release, ready to be written as JSON.

    ``con`` is a connection of ``connect_published``. Entities and communities are numbered from
    0; ``leaf`` holds the deepest community of each entity, those above follow from ``parent``.
    Relationships come strongest first.
    """
    con.execute(_NUMBERED)
    entities = con.execute(_ENTITIES).pl()
    edges = con.execute(_RELATIONSHIPS).pl()
    members = _members(con, len(entities))
    places = layout_graph(len(entities), edges["source"], edges["target"], edges["weight"], members)
    types = entities["type"].unique().sort()
    on_grid = np.rint(places * _GRID).astype(int)
    return {
        "release": con.execute(_RELEASE).pl().to_dicts()[0],
        "types": types.to_list(),
        "entities": {
            **_lists(entities.drop("type", "aliases")),
            "type": entities["type"].replace_strict(types, range(len(types))).to_list(),
            "x": on_grid[:, 0].tolist(),
            "y": on_grid[:, 1].tolist(),
            "leaf": members[-1].tolist() if len(members) else [],
        },
        "aliases": _aliases(entities),
        "relationships": _lists(edges.with_columns(pl.col("weight").round(3))),
        "communities": _lists(con.execute(_COMMUNITIES).pl()),
        "findings": _lists(con.execute(_FINDINGS).pl()),
        "documents": _lists(con.execute(_DOCUMENTS).pl()),
        **_source_text(con.execute(_PASSAGES).pl()),
    }


def _lists(table: pl.DataFrame) -> dict[str, list[Any]]:
    return table.to_dict(as_series=False)


def _aliases(entities: pl.DataFrame) -> dict[str, list[Any]]:
    listed = entities.select("aliases").with_row_index("entity").explode("aliases").drop_nulls()
    return _lists(listed.rename({"aliases": "title"}))


def _members(con: duckdb.DuckDBPyConnection, n_entities: int) -> npt.NDArray[np.int64]:
    """Return the community of each entity, shape (levels, entities)."""
    rows = con.execute(_MEMBERS).pl()
    n_levels = 0 if rows.is_empty() else int(rows["level"].to_numpy().max()) + 1
    members = np.full((n_levels, n_entities), -1, np.int64)
    members[rows["level"].to_numpy(), rows["node"].to_numpy()] = rows["community"].to_numpy()
    for above, level in itertools.pairwise(members):
        np.copyto(level, above, where=level < 0)
    return members


def _source_text(passages: pl.DataFrame) -> dict[str, dict[str, list[Any]]]:
    """Return stretches of text, each kept once, and the passages of each entity in them."""
    reach = pl.col("last").cum_max().shift().over("chunk").fill_null(-1)
    passages = (
        passages.with_row_index("place")
        .sort("chunk", "first", "last")
        .with_columns((pl.col("first") > reach).cum_sum().alias("excerpt") - 1)
        .with_columns(pl.col("first").min().over("excerpt").alias("begin"))
    )
    excerpts = passages.group_by("excerpt").agg(
        pl.col("document", "begin", "offset_", "text").first(), pl.col("last").max()
    )
    return {
        "excerpts": _lists(
            excerpts.sort("excerpt").select(
                "document",
                (pl.col("offset_") + pl.col("begin")).alias("start"),
                pl.col("text").str.slice(pl.col("begin"), pl.col("last") - pl.col("begin")),
            )
        ),
        "passages": _lists(
            passages.sort("place").select(
                "node",
                "excerpt",
                (pl.col("first", "last", "marked") - pl.col("begin")),
                "n_marked",
                "n_chunks",
            )
        ),
    }
