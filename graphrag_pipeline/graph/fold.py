"""The graph: mentions merged into entities and relationships (paper, 3.1.3).

The graph is a fold over the mentions that are in the index now, each under the entity it is
resolved to, so it depends on the documents that survive and not on the order in which they came.
The fold of the whole index is its definition. Where the state of the last fold is known, the same
queries run over what may differ alone, and the rest stays; what depends on the size of the corpus
(mutual information, and what is left out for it) is computed from counts of all pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import duckdb
import polars as pl

from graphrag_pipeline.core.identity import ID_DIGITS
from graphrag_pipeline.core.prose import readable_sql
from graphrag_pipeline.core.settings import GraphSettings, fingerprint
from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.graph.fold_state import (
    find_changes,
    forget_fold,
    forget_other,
    look_at_mentions,
    note_version,
    spread,
    state_version,
    take_up_all,
    take_up_difference,
)
from graphrag_pipeline.graph.record_links import link_records
from graphrag_pipeline.graph.resolution.aliases import aliases_state, read_words
from graphrag_pipeline.graph.resolution.splits import LINKS, TITLES, split_in_fold
from graphrag_pipeline.graph.titles import update_titles
from graphrag_pipeline.ingest.staging import is_staged, take_in_staged
from graphrag_pipeline.store.frames import drop_rows, put_rows, streamed, value_of
from graphrag_pipeline.store.index_store import (
    IndexStore,
    assign_identifiers,
    count_rows,
    get_meta,
    number_different,
    replace_changed,
    replace_links,
    set_meta,
)
from graphrag_pipeline.store.limits import parts_within

GRAPH_VERSION = "17"
# In fewer chunks than this, nothing is so frequent that chance says with what it meets.
_COMMON_FREQUENCY = 10
# So many texts are handed to the tokeniser at once.
_TEXTS_AT_ONCE = 20_000

_DESCRIBING = f"""
CREATE OR REPLACE TEMP MACRO readable(text, by_rule) AS
CASE WHEN by_rule THEN {readable_sql("text")} ELSE text END;
CREATE OR REPLACE TEMP MACRO ended(text, by_rule) AS
text || CASE WHEN by_rule AND NOT regexp_matches(text, '\\p{{P}}\\s*$') THEN '.' ELSE '' END;
"""

# What a fold makes anew. The statements below serve both the whole index and a difference: they
# ask these conditions. All rows of the whole meet them, and of a difference those that may be
# another than they were. (A parameter of a macro stands for every column of its name, in queries
# within it, too.)
_MADE_ANEW = {
    # An entity that something is said of in a chunk that differs: named, counted and typed again.
    "is_touched(of_id)": "hash(of_id) IN (SELECT entity FROM touched_entities)",
    # Two that meet in such a chunk: their relationship is weighed and described again.
    "is_touched_pair(one_id, two_id)": "pair_of(hash(one_id), hash(two_id)) IN "
    "(SELECT pair FROM touched_pairs)",
    # An entity, by its hash and by its id, whose description may be another.
    "is_retold_hash(of_entity)": "of_entity IN (SELECT entity FROM retold)",
    "is_retold(of_id)": "is_retold_hash(hash(of_id))",
    # An entity whose row is compared: its description, or its degree, may be another.
    "is_wanted(of_id, now, before)": "is_retold(of_id) OR now IS DISTINCT FROM before",
    # A relationship whose row is: it is touched, or an end has another title.
    "is_wanted_edge(one_id, two_id)": "is_touched_pair(one_id, two_id) "
    "OR one_id IN (SELECT id FROM retitled) OR two_id IN (SELECT id FROM retitled)",
    # What is in which chunk, of chunks that differ and of what has come, gone or another alias.
    "is_placed(in_chunk, of_id)": "hash(in_chunk) IN (SELECT chunk FROM changed_chunks) "
    "OR hash(of_id) IN (SELECT entity FROM moved)",
    "is_placed_edge(in_chunk, of_id)": "hash(in_chunk) IN (SELECT chunk FROM changed_chunks) "
    "OR of_id IN (SELECT id FROM moved_edges)",
}
# Those that the conditions read and steps of a difference fill.
_MAY_DIFFER = """
CREATE OR REPLACE TEMP TABLE retold (entity UBIGINT);
CREATE OR REPLACE TEMP TABLE moved (entity UBIGINT);
CREATE OR REPLACE TEMP TABLE retitled (id VARCHAR);
CREATE OR REPLACE TEMP TABLE moved_edges (id VARCHAR);
"""

# Of the spellings of a name the most frequent is its title, but one all in capitals, as of who
# speaks, only where there is no other. An acronym is the title of what it stands for where it is
# written more often: most write API; the initials of a person are not. A title with several types
# takes the most frequent one, a named type before a general one if a tenth of the mentions have it,
# by this name or any: one sentence that misleads does not type a name of a hundred. What is mostly
# written in lower case (a standard library, in a heading a Standard Library) is no person, place or
# organisation, and a Methodist church is a kind.
_ENTITIES = """
CREATE OR REPLACE TEMP TABLE named AS
SELECT entity_id AS id, title, type, mentioned_id = entity_id AS own, count(*) AS n
FROM resolved_entity_mentions WHERE is_touched(entity_id) GROUP BY ALL;

CREATE OR REPLACE TEMP TABLE counted AS
SELECT entity, count(DISTINCT chunk) AS frequency, bool_and(by_rule) AS by_rule
FROM placed WHERE by_rule IS NOT NULL GROUP BY entity;

CREATE OR REPLACE TEMP TABLE new_kept AS
WITH titled AS (
    SELECT id, arg_max(title, (
        own OR coalesce(n > own_n AND n = written_n AND regexp_full_match(title, '[A-Z]{2,7}')
                        AND NOT is_person, false),
        NOT (contains(title, ' ') AND title = upper(title) AND title <> lower(title)), n, title
    )) AS title
    FROM (SELECT *, sum(n) FILTER (own) OVER (PARTITION BY id) AS own_n,
                 bool_or(is_named_person) OVER (PARTITION BY id) AS is_person,
                 max(n) OVER (PARTITION BY id, lower(title)) AS written_n FROM (
        SELECT id, title, bool_or(own) AS own, sum(n) AS n,
               bool_or(own AND type = 'PERSON') AS is_named_person
        FROM named GROUP BY ALL)) GROUP BY id),
typed AS (
    SELECT id, arg_max(type, (
        type NOT IN ('CONCEPT', 'DATE', 'OTHER') AND (10 * n >= all_n OR 10 * own_n >= all_own_n),
        n, type)) AS type
    FROM (SELECT *, sum(n) OVER of_id AS all_n, sum(own_n) OVER of_id AS all_own_n FROM (
        SELECT id, type, sum(n) AS n, sum(n) FILTER (own) AS own_n FROM named GROUP BY ALL)
        WINDOW of_id AS (PARTITION BY id)) GROUP BY id)
SELECT * FROM (
    SELECT id, title, frequency, by_rule, CASE
        WHEN by_rule AND type IN ('PERSON', 'GEO', 'ORGANIZATION') AND title = lower(title)
             AND title <> upper(title) THEN 'CONCEPT'
        WHEN by_rule AND type = 'ORGANIZATION' AND regexp_matches(title, ' \\p{Ll}[^ ]*$')
             THEN 'OTHER' ELSE type END AS type
    FROM titled JOIN typed USING (id) JOIN counted ON entity = hash(id))
WHERE NOT by_rule OR frequency >= $min_frequency OR type NOT IN ('CONCEPT', 'DATE');
"""

# What the user calls an entity, or of what type he says it is, is his word alone.
_USER_WORDS = """
UPDATE new_kept SET
    title = coalesce(w.title, new_kept.title), type = coalesce(w.type, new_kept.type)
FROM user_words w WHERE w.id = new_kept.id
"""
_KEPT = "CREATE OR REPLACE TEMP TABLE kept AS FROM new_kept"
_KEPT_BEFORE = """
INSERT INTO kept BY NAME
SELECT e.id, e.title, e.frequency, f.id IS NULL AS by_rule, e.type
FROM entities e LEFT JOIN staging.folded_descriptions f ON f.id = e.id WHERE NOT is_touched(e.id);

CREATE OR REPLACE TEMP TABLE retitled AS
SELECT k.id FROM new_kept k JOIN entities e ON e.id = k.id WHERE e.title <> k.title;
"""

# Found by rule, a description is made of the distinct sentences that say most, each with its end
# and without the marks of Markdown and HTML:
# those that name most entities, repeated ones last, in an order that does not depend on history.
# Otherwise it is all distinct descriptions, or what a model has made of exactly these.
_ENTITY_DESCRIPTIONS = """
CREATE OR REPLACE TEMP TABLE sentence_scores AS
SELECT chunk, sentence, count(DISTINCT entity) AS n_entities FROM placed
SEMI JOIN (SELECT chunk, sentence FROM placed WHERE is_retold_hash(entity)) told
    USING (chunk, sentence)
WHERE entity IN (SELECT hash(id) FROM kept) GROUP BY ALL;

CREATE OR REPLACE TEMP TABLE described AS
SELECT id, string_agg(ended(readable(description, by_rule), by_rule), ' ' ORDER BY place)
       AS description,
       sha256(string_agg(description, chr(10) ORDER BY description)
              FILTER (WHERE NOT by_rule)) AS input_hash FROM (
    SELECT id, description, by_rule, row_number() OVER (
        PARTITION BY id ORDER BY CASE WHEN by_rule THEN is_repeated END,
        CASE WHEN by_rule THEN n_entities END DESC,
        CASE WHEN by_rule THEN first_char END, description) AS place
    FROM (
        SELECT m.entity_id AS id, any_value(m.description) AS description,
               max(s.n_entities) AS n_entities, min(m.start_char) AS first_char,
               bool_or(r.sentence IS NOT NULL) AS is_repeated
        FROM resolved_entity_mentions m
        JOIN sentence_scores s ON s.chunk = hash(m.chunk_id) AND s.sentence = hash(m.description)
        LEFT JOIN repeated r ON r.sentence = hash(m.description)
        WHERE m.description <> '' AND is_retold(m.entity_id)
        GROUP BY m.entity_id, hash(m.description)) JOIN kept USING (id))
WHERE place <= $max_sentences OR NOT by_rule GROUP BY id;
"""

# Weights are added as decimals: what a sum of floating-point numbers is depends on their order. An
# import may share a weight among many chunks: parts of it come to the whole again once rounded.
_COUNTED_MEETINGS = f"""
CREATE OR REPLACE TEMP TABLE links AS
SELECT chunk_id, source_id, target_id, hash(description) AS sentence, type,
       least(greatest(weight, -1e18), 1e18)::DECIMAL(38, 12) AS weight
FROM resolved_relationship_mentions WHERE is_touched_pair(source_id, target_id);

DELETE FROM {{state}}.folded_meetings
WHERE is_touched_pair(source_id, target_id);

INSERT INTO {{state}}.folded_meetings BY NAME
WITH weights AS (
    SELECT source_id, target_id, round(sum(weight), 6)::DOUBLE AS weight FROM (
        SELECT source_id, target_id,
               CASE WHEN r.sentence IS NULL THEN sum(weight) ELSE max(weight) END AS weight
        FROM links LEFT JOIN repeated r ON r.sentence = links.sentence
        GROUP BY source_id, target_id, r.sentence)
    GROUP BY source_id, target_id),
met AS (
    SELECT source_id, target_id, count(DISTINCT chunk_id) AS n_chunks,
           bool_and(extractor = 'nlp') AS by_rule, bool_or(type <> '') AS stated
    FROM links JOIN extractions USING (chunk_id)
    SEMI JOIN kept s ON source_id = s.id SEMI JOIN kept t ON target_id = t.id
    GROUP BY source_id, target_id)
SELECT *, left(sha256('relationship' || source_id || target_id), {ID_DIGITS}) AS id
FROM met JOIN weights USING (source_id, target_id);
DROP TABLE links;
"""

_TOTAL = "SELECT count(*) FROM extractions WHERE status <> 'failed' OR n_entities > 0"
# Normalised PMI over chunks: ln(p(x,y) / (p(x) p(y))) / -ln p(x,y), and 1 for a pair that is
# together in every chunk. An import may name fewer chunks for an entity than for its relationship.
_MEETINGS = """
CREATE OR REPLACE TEMP TABLE meetings AS
SELECT m.*, CASE WHEN n_chunks >= $total THEN 1.0 ELSE least(1.0, round(
           ln(n_chunks * $total / (s.frequency::DOUBLE * t.frequency))
           / -ln(n_chunks / $total), 6)) END AS pmi
FROM {state}.folded_meetings m
JOIN kept s ON s.id = source_id JOIN kept t ON t.id = target_id;
"""

# A concept or date that stands in many chunks meets nearly everything by chance. Of what is rarer
# than itself, it keeps what it meets more often than that, what has no closer neighbour, and what a
# record says. Differences are compared with 0, for DuckDB joins by what it takes for a range.
_CHANCE_MEETINGS = """
CREATE OR REPLACE TEMP TABLE chance_meetings AS
WITH common AS MATERIALIZED (
    SELECT id, frequency FROM kept
    WHERE by_rule AND type IN ('CONCEPT', 'DATE') AND frequency >= $common_frequency),
ends AS MATERIALIZED (
    SELECT id, source_id AS common_id, target_id AS other, pmi FROM meetings
    WHERE by_rule AND NOT stated AND pmi < $min_pmi
    UNION ALL
    SELECT id, target_id, source_id, pmi FROM meetings
    WHERE by_rule AND NOT stated AND pmi < $min_pmi),
unlikely AS MATERIALIZED (
    SELECT e.* FROM ends e JOIN common c ON c.id = e.common_id JOIN kept o ON o.id = e.other
    WHERE o.frequency - c.frequency <= 0),
closest AS MATERIALIZED (
    SELECT id, max(pmi) AS pmi FROM (
        SELECT source_id AS id, pmi FROM meetings UNION ALL SELECT target_id, pmi FROM meetings)
    GROUP BY id)
SELECT DISTINCT u.id FROM unlikely u JOIN closest c ON c.id = u.other WHERE u.pmi - c.pmi < 0;
"""

_EDGES = """
CREATE OR REPLACE TEMP TABLE edges AS FROM meetings ANTI JOIN chance_meetings USING (id);
DROP TABLE meetings; DROP TABLE chance_meetings;

CREATE OR REPLACE TEMP TABLE degrees AS
SELECT id, count(*) AS degree FROM (
    SELECT source_id AS id FROM edges UNION ALL SELECT target_id FROM edges) GROUP BY id;
"""

# An edge may come and go for what the size of the corpus does to its mutual information.
_OTHER_EDGES = """
CREATE OR REPLACE TEMP TABLE other_edges AS
SELECT id, source_id, target_id FROM edges ANTI JOIN relationships USING (id)
UNION ALL
SELECT id, source_id, target_id FROM relationships ANTI JOIN edges USING (id);

INSERT INTO touched_pairs SELECT pair_of(hash(source_id), hash(target_id)) FROM other_edges;

CREATE OR REPLACE TEMP TABLE moved_edges AS
SELECT id FROM other_edges
UNION
SELECT id FROM edges WHERE hash(source_id) IN (SELECT entity FROM moved)
                        OR hash(target_id) IN (SELECT entity FROM moved);
"""

_EDGE_DESCRIPTIONS = """
CREATE OR REPLACE TEMP TABLE edge_types AS
SELECT source_id, target_id, string_agg(type, '; ' ORDER BY n DESC, type) AS type FROM (
    SELECT source_id, target_id, type, count(*) AS n FROM resolved_relationship_mentions
    SEMI JOIN edges USING (source_id, target_id)
    WHERE type <> '' AND is_touched_pair(source_id, target_id) GROUP BY ALL)
GROUP BY source_id, target_id;

CREATE OR REPLACE TEMP TABLE edge_descriptions (
    id VARCHAR, description VARCHAR, input_hash VARCHAR);
"""
# What is aggregated and joined takes so much for each edge and each mention, about, of which DuckDB
# puts little on disk.
_EDGE_BYTES, _MENTION_BYTES = 4_000, 400
_DESCRIBE_EDGES = """
INSERT INTO edge_descriptions
SELECT id, string_agg(ended(readable(description, by_rule), by_rule), ' ' ORDER BY place)
       AS description,
       sha256(string_agg(description, chr(10) ORDER BY description)
              FILTER (WHERE NOT by_rule)) AS input_hash FROM (
    SELECT id, description, by_rule, row_number() OVER (
        PARTITION BY id ORDER BY CASE WHEN by_rule THEN n END DESC, description) AS place
    FROM (
        SELECT source_id, target_id, any_value(description) AS description,
               CASE WHEN bool_or(r.sentence IS NOT NULL) THEN 0 ELSE count(*) END AS n
        FROM resolved_relationship_mentions
        LEFT JOIN repeated r ON r.sentence = hash(description)
        WHERE hash(source_id, target_id) % $parts = $part
        AND description <> '' AND is_touched_pair(source_id, target_id)
        GROUP BY source_id, target_id, hash(description))
    JOIN edges USING (source_id, target_id))
WHERE place <= $max_sentences OR NOT by_rule GROUP BY id;
"""

_WANTED_ENTITIES = """
CREATE OR REPLACE TEMP TABLE made_entities AS
SELECT k.id, i.human_readable_id, k.title, k.type,
       CASE WHEN is_retold(k.id) THEN coalesce(x.description, d.description, '')
            ELSE o.description END AS description,
       k.frequency, coalesce(g.degree, 0) AS degree
FROM kept k LEFT JOIN identifiers i ON i.kind = 'entity' AND i.id = k.id
LEFT JOIN described d ON d.id = k.id LEFT JOIN degrees g ON g.id = k.id
LEFT JOIN description_summaries x ON x.id = k.id AND x.input_hash = d.input_hash
LEFT JOIN entities o ON o.id = k.id
WHERE is_wanted(k.id, coalesce(g.degree, 0), o.degree);
"""

_WANTED_RELATIONSHIPS = """
CREATE OR REPLACE TEMP VIEW edges_to_write AS
SELECT e.*, g.degree + h.degree AS combined_degree,
       is_touched_pair(e.source_id, e.target_id) AS touched,
       is_wanted_edge(e.source_id, e.target_id) AS wanted
FROM edges e JOIN degrees g ON g.id = e.source_id JOIN degrees h ON h.id = e.target_id;

CREATE OR REPLACE TEMP TABLE made_relationships AS
SELECT * EXCLUDE (n_tokens) FROM relationships LIMIT 0;
"""
_WANT_RELATIONSHIPS = """
INSERT INTO made_relationships BY NAME
SELECT e.id, i.human_readable_id, e.source_id, e.target_id, s.title AS source, t.title AS target,
       CASE WHEN touched THEN coalesce(x.description, d.description, '')
            ELSE o.description END AS description,
       e.weight, e.pmi, e.combined_degree,
       CASE WHEN touched THEN coalesce(k.type, '') ELSE o.type END AS type
FROM (FROM edges_to_write WHERE wanted AND hash(id) % $parts = $part) e
LEFT JOIN identifiers i ON i.kind = 'relationship' AND i.id = e.id
JOIN kept s ON s.id = e.source_id JOIN kept t ON t.id = e.target_id
LEFT JOIN (FROM edge_descriptions WHERE hash(id) % $parts = $part) d ON d.id = e.id
LEFT JOIN description_summaries x ON x.id = e.id AND x.input_hash = d.input_hash
LEFT JOIN edge_types k ON k.source_id = e.source_id AND k.target_id = e.target_id
LEFT JOIN (FROM relationships WHERE hash(id) % $parts = $part) o ON o.id = e.id;
"""

# What is of all pairs is set by column; the other columns of these rows are as they were.
_RECOMPUTED = """
UPDATE relationships r SET pmi = n.pmi, combined_degree = n.combined_degree
FROM (FROM edges_to_write WHERE NOT wanted) n
WHERE n.id = r.id AND (r.pmi <> n.pmi OR r.combined_degree <> n.combined_degree);

CREATE OR REPLACE TEMP TABLE gone AS
SELECT id FROM entities ANTI JOIN kept USING (id) UNION ALL
SELECT id FROM relationships ANTI JOIN edges USING (id);
"""

_DESCRIBED = """
DELETE FROM {state}.folded_descriptions
WHERE is_retold(id) OR id NOT IN (SELECT id FROM kept UNION ALL SELECT id FROM edges)
   OR id IN (SELECT id FROM edges WHERE is_touched_pair(source_id, target_id));

INSERT INTO {state}.folded_descriptions
SELECT n.id, n.input_hash, hash(x.description) FROM (
    SELECT k.id, d.input_hash FROM kept k LEFT JOIN described d ON d.id = k.id
    WHERE NOT k.by_rule AND is_retold(k.id)
    UNION ALL
    SELECT e.id, d.input_hash FROM edges e LEFT JOIN edge_descriptions d ON d.id = e.id
    WHERE NOT e.by_rule AND is_touched_pair(e.source_id, e.target_id)) n
LEFT JOIN description_summaries x ON x.id = n.id AND x.input_hash = n.input_hash;
"""

# A summary tells of the documents it was made from, also once they are gone.
_FORGOTTEN = """
DELETE FROM description_summaries WHERE (id, input_hash) NOT IN (
    SELECT (id, input_hash) FROM staging.folded_descriptions WHERE input_hash IS NOT NULL)
"""

_PROVENANCE = """
CREATE OR REPLACE TEMP TABLE wanted_entity_chunks AS FROM entity_chunks LIMIT 0;
CREATE OR REPLACE TEMP TABLE wanted_relationship_chunks AS FROM relationship_chunks LIMIT 0;
"""
_PLACE_ENTITIES = """
INSERT INTO wanted_entity_chunks BY NAME
SELECT m.entity_id, m.chunk_id, count(*) AS n_mentions,
       min(c.start_char + m.start_char) AS start_char,
       arg_min(c.start_char + m.end_char, (c.start_char + m.start_char, m.end_char))
           FILTER (WHERE m.start_char IS NOT NULL) AS end_char
FROM resolved_entity_mentions m JOIN chunks c ON c.id = m.chunk_id
SEMI JOIN kept ON kept.id = m.entity_id
WHERE hash(m.chunk_id) % $parts = $part AND hash(c.id) % $parts = $part
AND is_placed(m.chunk_id, m.entity_id) GROUP BY m.entity_id, m.chunk_id;
"""
_PLACE_RELATIONSHIPS = """
INSERT INTO wanted_relationship_chunks BY NAME
SELECT e.id AS relationship_id, m.chunk_id, count(*) AS n_mentions,
       min(c.start_char + m.start_char) AS start_char,
       arg_min(c.start_char + m.end_char, (c.start_char + m.start_char, m.end_char))
           FILTER (WHERE m.start_char IS NOT NULL) AS end_char
FROM resolved_relationship_mentions m JOIN chunks c ON c.id = m.chunk_id
JOIN edges e USING (source_id, target_id)
WHERE hash(m.chunk_id) % $parts = $part AND hash(c.id) % $parts = $part
AND is_placed_edge(m.chunk_id, e.id) GROUP BY e.id, m.chunk_id;
"""
_WRITTEN = ("entities", "relationships", "entity_chunks", "relationship_chunks")


@dataclass(frozen=True)
class GraphChanges:
    """Rows added, changed, removed and reused, and the batches that were taken in.

    Where only what depends on the size of the corpus is another, ``relationships`` are ``reused``.
    """

    entities: Mapping[str, int]
    relationships: Mapping[str, int]
    batches: tuple[str, ...]


def merge_graph(store: IndexStore, options: GraphSettings, encoding: str) -> GraphChanges:
    """Take in the staged batches and bring ``entities`` and ``relationships`` up to date.

    Tokens are counted in ``encoding``. Does nothing when no batch is staged, no alias has changed
    and no descriptions were merged.
    """
    with store.read() as con:
        if not is_staged(con) and graph_current(con, options, encoding):
            return GraphChanges({}, {}, ())
    with store.transaction() as con:
        return merge_within(con, options, encoding)


def merge_within(
    con: duckdb.DuckDBPyConnection, options: GraphSettings, encoding: str
) -> GraphChanges:
    """Do what :func:`merge_graph` does within a transaction that is open already."""
    batches = take_in_staged(con)
    if not batches and graph_current(con, options, encoding):
        return GraphChanges({}, {}, ())
    version = state_version(_rules(options, encoding))
    forget_other(con, version)
    link_records(con)
    split_in_fold(con, LINKS)
    look_at_mentions(con)
    by_difference = find_changes(con)
    if by_difference:
        take_up_difference(con)
    else:
        take_up_all(con, "staging")
    _fold(con, options, encoding, "staging", by_difference=by_difference)
    entities, relationships = _write(con, by_difference=by_difference)
    update_titles(con)
    split_in_fold(con, TITLES)
    con.execute(_FORGOTTEN)
    note_version(con, version)
    set_meta(con, "graph_version", _version(con, options, encoding))
    return GraphChanges(entities, relationships, batches)


def graph_differences(
    con: duckdb.DuckDBPyConnection, options: GraphSettings, encoding: str
) -> dict[str, int]:
    """Fold the whole index beside the graph; return how many rows of each table differ.

    Nothing is written but temporary tables: the index may be open for reading alone.
    """
    look_at_mentions(con)
    take_up_all(con, "temp")
    _fold(con, options, encoding, "temp", by_difference=False)
    return {
        table: number
        for table in _WRITTEN
        if (number := number_different(con, table, f"wanted_{table}"))
    }


def graph_current(con: duckdb.DuckDBPyConnection, options: GraphSettings, encoding: str) -> bool:
    """Whether the graph was folded with the aliases there are now, under these settings."""
    return get_meta(con, "graph_version") == _version(con, options, encoding)


def _rules(options: GraphSettings, encoding: str) -> str:
    shaping = options.model_dump(
        include={"min_concept_frequency", "min_concept_pmi", "max_description_sentences"}
    )
    return fingerprint(GRAPH_VERSION, shaping, encoding)


def _version(con: duckdb.DuckDBPyConnection, options: GraphSettings, encoding: str) -> str:
    return f"{_rules(options, encoding)}:{aliases_state(con)}"


def outdate_graph(con: duckdb.DuckDBPyConnection) -> None:
    """Let the next merge fold the whole index, also when no batch is staged."""
    fold_again(con)
    forget_fold(con)


def fold_again(con: duckdb.DuckDBPyConnection) -> None:
    """Let the next merge fold what differs, also when no batch is staged."""
    set_meta(con, "graph_version", "")


def _fold(
    con: duckdb.DuckDBPyConnection,
    options: GraphSettings,
    encoding: str,
    state: str,
    *,
    by_difference: bool,
) -> None:
    """Make the tables ``wanted_*``: all rows of the graph, or those that may differ."""
    limits = {"max_sentences": options.max_description_sentences}
    con.execute(_DESCRIBING)
    _say_what_is_made_anew(con, by_difference=by_difference)
    con.execute(_ENTITIES, {"min_frequency": options.min_concept_frequency})
    _apply_words(con)
    con.execute(_KEPT)
    drop_rows(con, "named", "counted")
    if by_difference:
        con.execute(_KEPT_BEFORE)
        spread(con)
    con.execute(_ENTITY_DESCRIPTIONS, limits)
    drop_rows(con, "sentence_scores", "placed")
    con.execute(_COUNTED_MEETINGS.format(state=state))
    con.execute(_MEETINGS.format(state=state), {"total": float(value_of(con, _TOTAL))})
    con.execute(
        _CHANCE_MEETINGS,
        {"common_frequency": _COMMON_FREQUENCY, "min_pmi": options.min_concept_pmi},
    )
    con.execute(_EDGES)
    if by_difference:
        con.execute(_OTHER_EDGES)
    by_edge = _parts_of(con, "edges", _EDGE_BYTES)
    con.execute(_EDGE_DESCRIPTIONS)
    for part in by_edge:
        con.execute(_DESCRIBE_EDGES, part | limits)
    if state == "staging":
        assign_identifiers(con, "entity", "SELECT id FROM kept ORDER BY frequency DESC, id")
        assign_identifiers(con, "relationship", "SELECT id FROM edges ORDER BY weight DESC, id")
    con.execute(_WANTED_ENTITIES)
    con.execute(_WANTED_RELATIONSHIPS)
    for part in by_edge:
        con.execute(_WANT_RELATIONSHIPS, part)
    con.execute(_DESCRIBED.format(state=state))
    drop_rows(con, "described", "edge_descriptions", "edge_types")
    _add_tokens(con, "entities", "{0}.title || ' ' || {0}.description", encoding)
    _add_tokens(
        con,
        "relationships",
        "{0}.source || ' ' || {0}.target || ' ' || {0}.description",
        encoding,
    )
    con.execute(_PROVENANCE)
    for part in _parts_of(con, "relationship_mentions", _MENTION_BYTES):
        con.execute(_PLACE_ENTITIES, part)
        con.execute(_PLACE_RELATIONSHIPS, part)


def _say_what_is_made_anew(con: duckdb.DuckDBPyConnection, *, by_difference: bool) -> None:
    if by_difference:
        con.execute(_MAY_DIFFER)
    for condition, of_a_difference in _MADE_ANEW.items():
        meaning = of_a_difference if by_difference else "true"
        con.execute(f"CREATE OR REPLACE TEMP MACRO {condition} AS {meaning}")


def _parts_of(
    con: duckdb.DuckDBPyConnection, table: str, row_bytes: int
) -> list[dict[str, duckdb.Value]]:
    """Return the parts in which the rows of a table fit in memory: one, where there is enough.

    They divide hashes. By a number of another type DuckDB takes fifty times as long.
    """
    number = partial(duckdb.Value, type=duckdb.sqltype("UBIGINT"))
    parts = parts_within(con, count_rows(con, table) * row_bytes)
    return [{"parts": number(parts), "part": number(part)} for part in range(parts)]


def _write(
    con: duckdb.DuckDBPyConnection, *, by_difference: bool
) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Put the rows that were made in place of those that differ; return what was done to both."""
    within = "true"
    if by_difference:
        within = "id IN (SELECT id FROM made_{} UNION ALL FROM gone)"
        con.execute(_RECOMPUTED)
    entities, relationships = (
        replace_changed(con, table, f"wanted_{table}", within.format(table))
        for table in ("entities", "relationships")
    )
    replace_links(
        con,
        "entity_chunks",
        "wanted_entity_chunks",
        ("entity_id", "chunk_id"),
        "is_placed(chunk_id, entity_id)",
    )
    replace_links(
        con,
        "relationship_chunks",
        "wanted_relationship_chunks",
        ("relationship_id", "chunk_id"),
        "is_placed_edge(chunk_id, relationship_id)",
    )
    return entities, relationships


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
    """Show the rows that were made with their tokens, as ``wanted_*``; known texts are not counted.

    The transaction would hold a second copy of the rows to its end: only their counts are written.
    """
    new = con.execute(
        f"""SELECT w.id, {text.format("w")} AS text FROM made_{table} w
            LEFT JOIN {table} o ON o.id = w.id AND {text.format("o")} = {text.format("w")}
            WHERE o.id IS NULL"""
    )
    counts = pl.DataFrame(schema={"id": pl.String, "n": pl.Int64})
    while rows := new.fetchmany(_TEXTS_AT_ONCE):
        ids, texts = zip(*rows, strict=True)
        counted = {"id": ids, "n": count_tokens(texts, encoding)}
        counts.vstack(pl.DataFrame(counted, schema=counts.schema), in_place=True)
    put_rows(con, "new_counts", counts)
    con.execute(
        f"""CREATE OR REPLACE TEMP TABLE {table}_tokens AS
            SELECT w.id, coalesce(n.n, o.n_tokens) AS n_tokens FROM made_{table} w
            LEFT JOIN new_counts n ON n.id = w.id LEFT JOIN {table} o ON o.id = w.id;
            CREATE OR REPLACE TEMP VIEW wanted_{table} AS
            FROM made_{table} JOIN {table}_tokens USING (id)"""
    )
    drop_rows(con, "new_counts")
