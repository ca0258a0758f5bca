"""The graph: mentions merged into entities and relationships (paper, 3.1.3).

The graph is a fold over the mentions that are in the index now, each under the entity it is
resolved to, so it depends on the documents that survive and not on the order in which they came.
It is computed whole, by column, and only rows that differ are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import duckdb
import polars as pl

from graphrag_pipeline.core.identity import ID_DIGITS
from graphrag_pipeline.core.prose import REPEATED_IN
from graphrag_pipeline.core.settings import Settings, fingerprint
from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.graph.record_links import link_records
from graphrag_pipeline.graph.resolution.aliases import aliases_state, read_words
from graphrag_pipeline.graph.titles import update_titles
from graphrag_pipeline.ingest.staging import take_in_staged
from graphrag_pipeline.store.frames import streamed
from graphrag_pipeline.store.index_store import (
    assign_identifiers,
    get_meta,
    replace_changed,
    replace_links,
    set_meta,
)
from graphrag_pipeline.store.workspace import Workspace

GRAPH_VERSION = "10"
# In fewer chunks than this, nothing is so frequent that chance says with what it meets.
_COMMON_FREQUENCY = 10

_FOLDED = """
CREATE OR REPLACE TEMP TABLE mentions AS FROM resolved_entity_mentions;
CREATE OR REPLACE TEMP TABLE links AS FROM resolved_relationship_mentions;

CREATE OR REPLACE TEMP MACRO ended(description, by_rule) AS
description || CASE WHEN by_rule AND NOT regexp_matches(description, '\\p{P}\\s*$') THEN '.'
               ELSE '' END;
"""

# What stands in many documents in the same words (a footer, a licence) says no more than once what
# it says: its names are no hubs for that.
_REPEATED = f"""
CREATE OR REPLACE TEMP TABLE repeated AS
SELECT sentence FROM (
    SELECT DISTINCT hash(l.description) AS sentence, c.document_id
    FROM links l JOIN extractions x ON x.chunk_id = l.chunk_id AND x.extractor = 'nlp'
    JOIN chunks c ON c.id = l.chunk_id WHERE l.description <> '' AND l.type = '')
GROUP BY sentence HAVING count(*) >= {REPEATED_IN};

CREATE OR REPLACE TEMP TABLE weights AS
SELECT source_id, target_id, sum(weight) AS weight FROM (
    SELECT source_id, target_id, CASE WHEN sentence IS NULL THEN sum(weight) ELSE max(weight) END
           AS weight
    FROM links LEFT JOIN repeated ON sentence = hash(description)
    GROUP BY source_id, target_id, sentence)
GROUP BY source_id, target_id;
"""

# Of the spellings of a name the most frequent is its title, but one all in capitals, as of who
# speaks, only where there is no other. A title with several types takes the most frequent one, a
# named type before a general one if a tenth of the mentions have it: one sentence that misleads
# does not type a name of a hundred. What is mostly written in lower case (a standard library, in a
# heading a Standard Library) is no person, place or organisation, and a Methodist church is a kind.
_ENTITIES = """
CREATE OR REPLACE TEMP TABLE titled AS
SELECT entity_id AS id, arg_max(title, (
    own, NOT (contains(title, ' ') AND title = upper(title) AND title <> lower(title)), n, title
)) AS title FROM (
    SELECT entity_id, title, bool_or(mentioned_id = entity_id) AS own, count(*) AS n
    FROM mentions GROUP BY ALL) GROUP BY entity_id;

CREATE OR REPLACE TEMP TABLE typed AS
SELECT entity_id AS id, arg_max(type, (
    type NOT IN ('CONCEPT', 'DATE', 'OTHER') AND 10 * n >= all_n, n, type)) AS type
FROM (SELECT *, sum(n) OVER (PARTITION BY entity_id) AS all_n FROM (
    SELECT entity_id, type, count(*) AS n FROM mentions GROUP BY ALL)) GROUP BY entity_id;

CREATE OR REPLACE TEMP TABLE counted AS
SELECT entity_id AS id, count(DISTINCT chunk_id) AS frequency,
       bool_and(extractor = 'nlp') AS by_rule
FROM mentions JOIN extractions USING (chunk_id) GROUP BY entity_id;

CREATE OR REPLACE TEMP TABLE kept AS
SELECT * FROM (
    SELECT id, title, frequency, by_rule, CASE
        WHEN by_rule AND type IN ('PERSON', 'GEO', 'ORGANIZATION') AND title = lower(title)
             AND title <> upper(title) THEN 'CONCEPT'
        WHEN by_rule AND type = 'ORGANIZATION' AND regexp_matches(title, ' \\p{Ll}[^ ]*$')
             THEN 'OTHER' ELSE type END AS type
    FROM counted JOIN titled USING (id) JOIN typed USING (id))
WHERE NOT by_rule OR frequency >= $min_frequency OR type NOT IN ('CONCEPT', 'DATE');
"""

# What the user calls an entity, or of what type he says it is, is his word alone.
_USER_WORDS = """
UPDATE kept SET title = coalesce(w.title, kept.title), type = coalesce(w.type, kept.type)
FROM user_words w WHERE w.id = kept.id
"""

# Found by rule, a description is made of the distinct sentences that say most, each with its end:
# those that name most entities, repeated ones last, in an order that does not depend on history.
# Otherwise it is all distinct descriptions, or what a model has made of exactly these.
_ENTITY_DESCRIPTIONS = """
CREATE OR REPLACE TEMP TABLE sentence_scores AS
SELECT chunk_id, description, count(DISTINCT entity_id) AS n_entities
FROM mentions SEMI JOIN kept ON mentions.entity_id = kept.id GROUP BY ALL;

CREATE OR REPLACE TEMP TABLE described AS
SELECT id, string_agg(ended(description, by_rule), ' ' ORDER BY place) AS description,
       sha256(string_agg(description, chr(10) ORDER BY description)) AS input_hash FROM (
    SELECT id, description, by_rule, row_number() OVER (
        PARTITION BY id ORDER BY CASE WHEN by_rule THEN is_repeated END,
        CASE WHEN by_rule THEN n_entities END DESC,
        CASE WHEN by_rule THEN first_char END, description) AS place
    FROM (
        SELECT m.entity_id AS id, m.description, max(s.n_entities) AS n_entities,
               min(m.start_char) AS first_char, bool_or(sentence IS NOT NULL) AS is_repeated
        FROM mentions m
        JOIN sentence_scores s ON s.chunk_id = m.chunk_id AND s.description = m.description
        LEFT JOIN repeated ON sentence = hash(m.description)
        WHERE m.description <> '' GROUP BY m.entity_id, m.description) JOIN kept USING (id))
WHERE place <= $max_sentences OR NOT by_rule GROUP BY id;
"""

# Normalised PMI over chunks: ln(p(x,y) / (p(x) p(y))) / -ln p(x,y), and 1 for a pair that is
# together in every chunk. An import may name fewer chunks for an entity than for its relationship.
_MEETINGS = """
CREATE OR REPLACE TEMP TABLE meetings AS
WITH total AS MATERIALIZED (
    SELECT count(*)::DOUBLE AS n FROM extractions WHERE status <> 'failed' OR n_entities > 0),
met AS (
    SELECT source_id, target_id, count(DISTINCT chunk_id) AS n_chunks,
           bool_and(extractor = 'nlp') AS by_rule, bool_or(type <> '') AS stated
    FROM links JOIN extractions USING (chunk_id)
    SEMI JOIN kept s ON source_id = s.id SEMI JOIN kept t ON target_id = t.id
    GROUP BY source_id, target_id)
SELECT met.*, weights.weight, CASE WHEN n_chunks >= (FROM total) THEN 1.0 ELSE least(1.0, round(
           ln(n_chunks * (FROM total) / (s.frequency::DOUBLE * t.frequency))
           / -ln(n_chunks / (FROM total)), 6)) END AS pmi
FROM met JOIN weights USING (source_id, target_id)
JOIN kept s ON s.id = source_id JOIN kept t ON t.id = target_id;
"""

# A concept or date that stands in many chunks meets nearly everything by chance. Of what is rarer
# than itself, it keeps what it meets more often than that, what has no closer neighbour, and what a
# record says.
_CHANCE_MEETINGS = """
CREATE OR REPLACE TEMP TABLE chance_meetings AS
WITH closest AS (
    SELECT id, max(pmi) AS pmi FROM (
        SELECT source_id AS id, pmi FROM meetings UNION ALL SELECT target_id, pmi FROM meetings)
    GROUP BY id),
common AS (
    SELECT id, frequency FROM kept
    WHERE by_rule AND type IN ('CONCEPT', 'DATE') AND frequency >= $common_frequency)
SELECT DISTINCT source_id, target_id FROM (
    SELECT *, source_id AS id, target_id AS other FROM meetings
    UNION ALL SELECT *, target_id, source_id FROM meetings) e
JOIN common USING (id) JOIN kept o ON o.id = other JOIN closest c ON c.id = other
WHERE e.by_rule AND NOT stated
      AND o.frequency <= common.frequency AND e.pmi < $min_pmi AND e.pmi < c.pmi;
"""

_RELATIONSHIPS = """
CREATE OR REPLACE TEMP TABLE edges AS
FROM meetings ANTI JOIN chance_meetings USING (source_id, target_id);

CREATE OR REPLACE TEMP TABLE edge_types AS
SELECT source_id, target_id, string_agg(type, '; ' ORDER BY n DESC, type) AS type FROM (
    SELECT source_id, target_id, type, count(*) AS n
    FROM links SEMI JOIN edges USING (source_id, target_id) WHERE type <> '' GROUP BY ALL)
GROUP BY source_id, target_id;

CREATE OR REPLACE TEMP TABLE degrees AS
SELECT id, count(*) AS degree FROM (
    SELECT source_id AS id FROM edges UNION ALL SELECT target_id FROM edges) GROUP BY id;

CREATE OR REPLACE TEMP TABLE edge_descriptions AS
SELECT source_id, target_id,
       string_agg(ended(description, by_rule), ' ' ORDER BY place) AS description,
       sha256(string_agg(description, chr(10) ORDER BY description)) AS input_hash FROM (
    SELECT source_id, target_id, description, by_rule, row_number() OVER (
        PARTITION BY source_id, target_id ORDER BY CASE WHEN by_rule THEN n END DESC,
        description) AS place
    FROM (
        SELECT source_id, target_id, description,
               CASE WHEN bool_or(sentence IS NOT NULL) THEN 0 ELSE count(*) END AS n
        FROM links SEMI JOIN edges USING (source_id, target_id)
        LEFT JOIN repeated ON sentence = hash(description)
        WHERE description <> '' GROUP BY source_id, target_id, description)
    JOIN edges USING (source_id, target_id))
WHERE place <= $max_sentences OR NOT by_rule GROUP BY source_id, target_id;
"""

_WANTED_ENTITIES = """
CREATE OR REPLACE TEMP TABLE wanted_entities AS
SELECT k.id, i.human_readable_id, k.title, k.type,
       coalesce(x.description, d.description, '') AS description,
       k.frequency, coalesce(g.degree, 0) AS degree
FROM kept k JOIN identifiers i ON i.kind = 'entity' AND i.id = k.id
LEFT JOIN described d ON d.id = k.id LEFT JOIN degrees g ON g.id = k.id
LEFT JOIN description_summaries x ON x.id = k.id AND x.input_hash = d.input_hash;
"""

_WANTED_RELATIONSHIPS = """
CREATE OR REPLACE TEMP TABLE wanted_relationships AS
SELECT e.id, i.human_readable_id, e.source_id, e.target_id, s.title AS source, t.title AS target,
       coalesce(x.description, d.description, '') AS description, e.weight, e.pmi,
       s.degree + t.degree AS combined_degree, coalesce(k.type, '') AS type
FROM identified_edges e
JOIN identifiers i ON i.kind = 'relationship' AND i.id = e.id
JOIN wanted_entities s ON s.id = e.source_id JOIN wanted_entities t ON t.id = e.target_id
LEFT JOIN edge_descriptions d ON d.source_id = e.source_id AND d.target_id = e.target_id
LEFT JOIN description_summaries x ON x.id = e.id AND x.input_hash = d.input_hash
LEFT JOIN edge_types k ON k.source_id = e.source_id AND k.target_id = e.target_id;
"""

_IDENTIFIED_EDGES = f"""
CREATE OR REPLACE TEMP TABLE identified_edges AS
SELECT left(sha256('relationship' || source_id || target_id), {ID_DIGITS}) AS id, * FROM edges;
"""

# A summary tells of the documents it was made from, also once they are gone.
_FORGOTTEN = """
DELETE FROM description_summaries WHERE (id, input_hash) NOT IN (
    SELECT (id, input_hash) FROM described UNION ALL
    SELECT (e.id, d.input_hash) FROM edge_descriptions d
    JOIN identified_edges e USING (source_id, target_id))
"""

_PROVENANCE = """
CREATE OR REPLACE TEMP TABLE wanted_entity_chunks AS
SELECT m.entity_id, m.chunk_id, count(*) AS n_mentions,
       min(c.start_char + m.start_char) AS start_char,
       arg_min(c.start_char + m.end_char, c.start_char + m.start_char) AS end_char
FROM mentions m JOIN chunks c ON c.id = m.chunk_id SEMI JOIN kept ON kept.id = m.entity_id
GROUP BY m.entity_id, m.chunk_id;

CREATE OR REPLACE TEMP TABLE wanted_relationship_chunks AS
SELECT e.id AS relationship_id, m.chunk_id, count(*) AS n_mentions,
       min(c.start_char + m.start_char) AS start_char,
       arg_min(c.start_char + m.end_char, c.start_char + m.start_char) AS end_char
FROM links m JOIN chunks c ON c.id = m.chunk_id
JOIN identified_edges e USING (source_id, target_id)
GROUP BY e.id, m.chunk_id;
"""


@dataclass(frozen=True)
class GraphChanges:
    """Rows added, changed, removed and reused, and the batches that were taken in."""

    entities: Mapping[str, int]
    relationships: Mapping[str, int]
    batches: tuple[str, ...]


def merge_graph(workspace: Workspace) -> GraphChanges:
    """Take in the staged batches and bring ``entities`` and ``relationships`` up to date.

    Does nothing when no batch is staged, no alias has changed and no descriptions were merged.
    """
    with workspace.store.transaction() as con:
        return merge_within(con, workspace.settings)


def merge_within(con: duckdb.DuckDBPyConnection, settings: Settings) -> GraphChanges:
    """Do what :func:`merge_graph` does within a transaction that is open already."""
    batches = take_in_staged(con)
    if not batches and graph_current(con, settings):
        return GraphChanges({}, {}, ())
    link_records(con)
    _fold(con, settings)
    entities = replace_changed(con, "entities", "wanted_entities")
    relationships = replace_changed(con, "relationships", "wanted_relationships")
    replace_links(con, "entity_chunks", "wanted_entity_chunks", ("entity_id", "chunk_id"))
    replace_links(
        con,
        "relationship_chunks",
        "wanted_relationship_chunks",
        ("relationship_id", "chunk_id"),
    )
    update_titles(con)
    con.execute(_FORGOTTEN)
    set_meta(con, "graph_version", _version(con, settings))
    return GraphChanges(entities, relationships, batches)


def graph_current(con: duckdb.DuckDBPyConnection, settings: Settings) -> bool:
    """Whether the graph was folded with the aliases there are now, under these settings."""
    return get_meta(con, "graph_version") == _version(con, settings)


def _version(con: duckdb.DuckDBPyConnection, settings: Settings) -> str:
    shaping = settings.graph.model_dump(
        include={"min_concept_frequency", "min_concept_pmi", "max_description_sentences"}
    )
    version = fingerprint(GRAPH_VERSION, shaping, settings.chunks.encoding)
    return f"{version}:{aliases_state(con)}"


def outdate_graph(con: duckdb.DuckDBPyConnection) -> None:
    """Let the next merge fold the graph also when no batch is staged."""
    set_meta(con, "graph_version", "")


def _fold(con: duckdb.DuckDBPyConnection, settings: Settings) -> None:
    options, encoding = settings.graph, settings.chunks.encoding
    con.execute(_FOLDED)
    con.execute(_REPEATED)
    con.execute(_ENTITIES, {"min_frequency": options.min_concept_frequency})
    _apply_words(con)
    limits = {"max_sentences": options.max_description_sentences}
    con.execute(_ENTITY_DESCRIPTIONS, limits)
    con.execute(_MEETINGS)
    con.execute(
        _CHANCE_MEETINGS,
        {"common_frequency": _COMMON_FREQUENCY, "min_pmi": options.min_concept_pmi},
    )
    con.execute(_RELATIONSHIPS, limits)
    con.execute(_IDENTIFIED_EDGES)
    assign_identifiers(con, "entity", "SELECT id FROM kept ORDER BY frequency DESC, id")
    assign_identifiers(
        con, "relationship", "SELECT id FROM identified_edges ORDER BY weight DESC, id"
    )
    con.execute(_WANTED_ENTITIES)
    con.execute(_WANTED_RELATIONSHIPS)
    _add_tokens(con, "entities", "{0}.title || ' ' || {0}.description", encoding)
    _add_tokens(
        con,
        "relationships",
        "{0}.source || ' ' || {0}.target || ' ' || {0}.description",
        encoding,
    )
    con.execute(_PROVENANCE)


def _apply_words(con: duckdb.DuckDBPyConnection) -> None:
    words = [
        {"id": id, "title": said.get("title"), "type": said.get("type")}
        for id, said in read_words(con).items()
    ]
    if not words:
        return
    schema = {"id": pl.String, "title": pl.String, "type": pl.String}
    with streamed(con, "user_words", pl.DataFrame(words, schema=schema)):
        con.execute(_USER_WORDS)


def _add_tokens(con: duckdb.DuckDBPyConnection, table: str, text: str, encoding: str) -> None:
    """Count the tokens of the wanted rows; rows whose text is as it was keep their count."""
    con.execute(
        f"""CREATE OR REPLACE TEMP TABLE counted_{table} AS
            SELECT w.id, {text.format("w")} AS text, o.n_tokens FROM wanted_{table} w
            LEFT JOIN {table} o ON o.id = w.id AND {text.format("o")} = {text.format("w")}"""
    )
    new = con.sql(f"SELECT id, text FROM counted_{table} WHERE n_tokens IS NULL").pl()
    counts = pl.DataFrame(
        {"id": new["id"], "n": count_tokens(new["text"].to_list(), encoding)},
        schema={"id": pl.String, "n": pl.Int64},
    )
    with streamed(con, "new_counts", counts):
        con.execute(
            f"""CREATE OR REPLACE TEMP TABLE wanted_{table} AS
                SELECT w.*, coalesce(c.n_tokens, n.n) AS n_tokens FROM wanted_{table} w
                JOIN counted_{table} c USING (id) LEFT JOIN new_counts n USING (id)"""
        )
