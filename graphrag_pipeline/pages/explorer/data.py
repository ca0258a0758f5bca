"""A release as the page holds it: compact columns, where a number stands for an id."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from graphrag_pipeline.pages.explorer.passages import passages_of
from graphrag_pipeline.pages.explorer.texts import (
    DESCRIPTION,
    EXPLANATION,
    SENTENCE,
    SHORTENED,
    SUMMARY,
    choose_texts,
)
from graphrag_pipeline.pages.layout import layout_graph
from graphrag_pipeline.store.index_store import count_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import duckdb
    import polars as pl

    from graphrag_pipeline.core.addresses import PermanentLinks

PAGE_BYTES = 4_450_000
"""About so large is the data of a page at most; a release that takes less is in it whole."""
MOST_ENTITIES = 50_000
"""Most entities that are drawn; of more, each root community shows the same share, by links."""
MOST_RELATIONSHIPS = 150_000

_GRID = 20_000
# How much of a page a byte of text takes, and a row without its texts: measured on names and
# sentences of English (as JSON, gzip, base64).
_PACKED = 0.45
_BARE_BYTES = {"node": 27, "edge": 5, "community": 28, "document": 10}
_ID_BYTES = {"node": 24, "community": 24}
_LINKED = ("entities", "communities")
# Neighbours in a column are neighbours in the graph, for like values pack well.
_NUMBERED = """
CREATE OR REPLACE TEMP TABLE node AS
WITH ranked AS (
    SELECT id, community_id AS root,
           (row_number() OVER (PARTITION BY community_id ORDER BY degree DESC, id) - 0.5)
           / count(*) OVER (PARTITION BY community_id) AS rank
    FROM entities LEFT JOIN community_members m ON m.entity_id = id AND m.level = 0
)
SELECT id, rank, row_number() OVER (ORDER BY root, leaf, id) - 1 AS n
FROM (FROM ranked ORDER BY rank, id LIMIT {most_entities})
LEFT JOIN (SELECT entity_id AS id, arg_max(community_id, level) AS leaf
           FROM community_members GROUP BY ALL) USING (id);
CREATE OR REPLACE TEMP TABLE edge AS
SELECT r.id, s.n AS source, t.n AS target, weight, type, hash(description) AS sentence,
       row_number() OVER (ORDER BY weight DESC, s.n, t.n, r.id) - 1 AS n
FROM relationships r JOIN node s ON s.id = source_id JOIN node t ON t.id = target_id
ORDER BY n LIMIT {most_relationships};
CREATE OR REPLACE TEMP TABLE community AS
SELECT id, row_number() OVER (ORDER BY level, size DESC, id) - 1 AS n
FROM communities c SEMI JOIN (
    SELECT community_id FROM community_members m JOIN node ON node.id = m.entity_id
) shown ON shown.community_id = c.id;
CREATE OR REPLACE TEMP TABLE document AS
SELECT id, row_number() OVER (ORDER BY uri, id) - 1 AS n FROM documents;
"""
_RELEASE = """
SELECT id, strftime(created_at, '%Y-%m-%d %H:%M') AS created_at,
       n_documents, n_chunks, n_entities, n_relationships, n_communities, n_reports
FROM releases ORDER BY releases.created_at DESC, id DESC LIMIT 1
"""
_ENTITIES = f"""
SELECT id, human_readable_id AS number, title, type, degree, frequency,
       CASE WHEN told.n IS NOT NULL THEN shortened(description, {DESCRIPTION}) END AS description,
       coalesce(aliases, []) AS aliases
FROM node JOIN entities USING (id) LEFT JOIN told_entities told USING (n)
LEFT JOIN (SELECT canonical_id AS id, list(title ORDER BY title) AS aliases
           FROM entity_aliases GROUP BY ALL) USING (id)
ORDER BY node.n
"""
# Rules take one sentence for all that stand in it.
_SENTENCES = f"""
CREATE OR REPLACE TEMP TABLE sentence AS
SELECT sentence, arg_min(id, n) AS id, row_number() OVER (ORDER BY min(n)) - 1 AS place
FROM edge SEMI JOIN told_relationships USING (n) GROUP BY sentence;
SELECT shortened(description, {SENTENCE}) AS text
FROM sentence JOIN relationships USING (id) ORDER BY place
"""
_RELATIONSHIPS = """
SELECT source, target, weight, type,
       CASE WHEN told.n IS NULL THEN -1 ELSE place END AS sentence
FROM edge LEFT JOIN told_relationships told USING (n) LEFT JOIN sentence USING (sentence)
ORDER BY edge.n
"""
_COMMUNITIES = f"""
SELECT c.id, c.human_readable_id AS number, coalesce(r.title, c.title) AS title, c.level,
       c.last_level, coalesce(p.n, -1) AS parent, size, n_relationships,
       coalesce(r.writer, '') AS writer, r.rating, r.coverage,
       CASE WHEN told.n IS NOT NULL THEN shortened(r.summary, {SUMMARY}) END AS summary,
       CASE WHEN told.n IS NOT NULL THEN r.rating_explanation END AS rating_explanation
FROM community k JOIN communities c USING (id) LEFT JOIN community p ON p.id = c.parent_id
LEFT JOIN community_reports r ON r.community_id = c.id
LEFT JOIN told_communities told ON told.n = k.n
ORDER BY k.n
"""
_FINDINGS = f"""
WITH said AS (
    SELECT k.n AS community, f.summary, shortened(f.explanation, {EXPLANATION}) AS explanation,
           f.place, f.chunk_id, f.start_char, f.end_char
    FROM community k SEMI JOIN told_communities told ON told.n = k.n JOIN (
        SELECT community_id AS id, unnest(findings, recursive := true),
               generate_subscripts(findings, 1) AS place FROM community_reports) f USING (id)
)
SELECT community, summary, explanation, coalesce(d.n, -1) AS document,
       coalesce(said.start_char, -1) AS start, coalesce(said.end_char, -1) AS "end"
FROM said LEFT JOIN chunks c ON c.id = said.chunk_id LEFT JOIN document d ON d.id = c.document_id
ORDER BY community, place
"""
_MEMBERS = """
SELECT m.level, node.n AS node, community.n AS community
FROM community_members m JOIN node ON node.id = entity_id
JOIN community ON community.id = community_id
"""
_DOCUMENTS = "SELECT title, uri{link} FROM document JOIN documents USING (id) ORDER BY n"
_PASSAGES = f"""
SELECT node.n AS node, chunk_id AS chunk, document.n AS document, offset_, n_chunks, text, marked,
       n_marked, first, last
FROM ({passages_of("SELECT id FROM node JOIN told_entities USING (n)")}) p
JOIN node ON node.id = p.entity_id JOIN document ON document.id = p.document_id
ORDER BY node, nth_of_document, n_mentions DESC, document, offset_
"""
# Where an entity stands whose passages are left out.
_ORIGINS = """
SELECT node.n AS node, document.n AS document, start FROM (
    SELECT entity_id, unnest(arg_max(
        {'document_id': document_id, 'start': coalesce(e.start_char, c.start_char)},
        (n_mentions, -c.human_readable_id)))
    FROM entity_chunks e JOIN chunks c ON c.id = e.chunk_id
    ANTI JOIN (SELECT id FROM node JOIN told_entities USING (n)) told ON told.id = e.entity_id
    GROUP BY entity_id
) JOIN node ON node.id = entity_id JOIN document ON document.id = document_id
ORDER BY node
"""


def page_data(
    con: duckdb.DuckDBPyConnection,
    n_bytes: int = PAGE_BYTES,
    links: Callable[[str], PermanentLinks | None] | None = None,
) -> dict[str, Any]:
    """Return the columns of one release, ready to be written as JSON.

    ``con`` is a connection of ``connect_published``. Entities and communities are numbered from
    0; ``leaf`` holds the deepest community of each entity, those above follow from ``parent``.
    Relationships come strongest first. Where all texts would take more than about ``n_bytes``,
    those of the lower ranks are null (``sentence`` -1), and ``origins`` says where to find them.
    Where ``links`` gives those of the release, documents have their permanent links; entities and
    communities have ids, and ``links`` says what stands before and after these.
    """
    # A server imports this module, and answers questions without polars.
    import polars as pl

    release = con.execute(_RELEASE).pl().to_dicts()[0]
    linked = links and links(release["id"])
    con.execute(
        _NUMBERED.format(most_entities=MOST_ENTITIES, most_relationships=MOST_RELATIONSHIPS)
    )
    con.execute(SHORTENED)
    bare = _n_bytes(con, _BARE_BYTES) + (_n_bytes(con, _ID_BYTES) if linked else 0)
    choose_texts(con, max(0, n_bytes - bare) / _PACKED)
    sentences = con.execute(_SENTENCES).pl()["text"]
    entities = con.execute(_ENTITIES).pl()
    edges = con.execute(_RELATIONSHIPS).pl()
    members = _members(con, len(entities))
    places = layout_graph(len(entities), edges["source"], edges["target"], edges["weight"], members)
    types = entities["type"].unique().sort()
    link = f", {linked.sql('documents', 'id')} AS link" if linked else ""
    communities = con.execute(_COMMUNITIES).pl()
    unlinked = [] if linked else ["id"]
    on_grid = np.rint(places * _GRID).astype(int)
    return {
        "release": release,
        "links": {kind: linked.around(kind) for kind in _LINKED} if linked else {},
        "types": types.to_list(),
        "entities": {
            **_lists(entities.drop("type", "aliases", *unlinked)),
            "type": entities["type"].replace_strict(types, range(len(types))).to_list(),
            "x": on_grid[:, 0].tolist(),
            "y": on_grid[:, 1].tolist(),
            "leaf": members[-1].tolist() if len(members) else [],
        },
        "aliases": _aliases(entities),
        "relationships": _lists(edges.with_columns(pl.col("weight").round(3))),
        "sentences": sentences.to_list(),
        "communities": _lists(communities.drop(*unlinked)),
        "findings": _lists(con.execute(_FINDINGS).pl()),
        "documents": _lists(con.execute(_DOCUMENTS.format(link=link)).pl()),
        "origins": _lists(con.execute(_ORIGINS).pl()),
        **_source_text(con.execute(_PASSAGES).pl()),
    }


def _n_bytes(con: duckdb.DuckDBPyConnection, each: Mapping[str, int]) -> int:
    """Return how much of a page tables take of which each row takes so many bytes."""
    return sum(count_rows(con, name) * size for name, size in each.items())


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
    import polars as pl

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
