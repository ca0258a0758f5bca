"""State of the last fold of the graph, so that the next one takes up only what differs.

The tables ``staging.folded_*`` hold hashes: which chunk mentions what in which sentence, before
aliases are resolved, and the aliases. Compared with the index as it is now, they say which entities
and pairs may differ. Everything else of the graph is as it was.

A hash stands for an id where it says what to look at again, so that two ids of one hash cost time
and nothing else, and where names of a sentence or chunks of an entity are counted.
"""

from __future__ import annotations

import json

import duckdb

from graphrag_pipeline.core.prose import REPEATED_IN
from graphrag_pipeline.core.settings import fingerprint
from graphrag_pipeline.graph.resolution.aliases import read_words
from graphrag_pipeline.store.frames import value_of

STATE_VERSION = "2"
STATE_TABLES = (
    "folded_chunks",
    "folded_mentions",
    "folded_links",
    "folded_aliases",
    "folded_repeated",
    "folded_meetings",
    "folded_descriptions",
)
_BY_CHUNK = ("folded_chunks", "folded_mentions", "folded_links")
# Above this share of chunks that differ, to fold all of them is less work.
_MOST_CHANGED = 0.25

# The mentions of the index before aliases are resolved, and a hash of each chunk's.
_NOW = """
CREATE OR REPLACE TEMP VIEW found_mentions AS
SELECT chunk_id, entity_id, title, type, description, start_char, end_char FROM entity_mentions
UNION ALL
SELECT chunk_id, target_id, target, 'OTHER', description, start_char, end_char
FROM record_links WHERE names_target
UNION ALL
SELECT chunk_id, source_id, source, 'OTHER', description, start_char, end_char
FROM record_links WHERE names_source;

CREATE OR REPLACE TEMP VIEW found_links AS
SELECT chunk_id, source_id, target_id, description, weight, start_char, end_char, type
FROM relationship_mentions
UNION ALL
SELECT chunk_id, source_id, target_id, description, 1.0, start_char, end_char, type
FROM record_links;

CREATE OR REPLACE TEMP TABLE chunks_now AS
SELECT chunk_id, hash(chunk_id) AS chunk, hash(sum(part), count(*)) AS content FROM (
    SELECT chunk_id, hash(extractor, document_id, start_char) AS part
    FROM extractions JOIN chunks ON id = chunk_id
    UNION ALL
    SELECT chunk_id, hash(entity_id, title, type, description, start_char, end_char)
    FROM found_mentions
    UNION ALL
    SELECT chunk_id, hash(source_id, target_id, description, weight, type, start_char, end_char)
    FROM found_links)
GROUP BY chunk_id;

CREATE OR REPLACE TEMP TABLE aliases_now AS
SELECT DISTINCT hash(entity_id) AS entity, hash(canonical_id) AS canonical FROM entity_aliases;

CREATE OR REPLACE TEMP MACRO pair_of(an_end, another) AS
    hash(least(an_end, another), greatest(an_end, another));
"""

_CHANGED = """
CREATE OR REPLACE TEMP TABLE changed_chunks AS
SELECT coalesce(n.chunk, f.chunk) AS chunk, n.chunk_id
FROM chunks_now n FULL JOIN staging.folded_chunks f ON f.chunk = n.chunk
WHERE n.content IS DISTINCT FROM f.content;

CREATE OR REPLACE TEMP TABLE changed_aliases AS
SELECT DISTINCT entity FROM (
    (FROM aliases_now EXCEPT FROM staging.folded_aliases) UNION ALL
    (FROM staging.folded_aliases EXCEPT FROM aliases_now));

CREATE OR REPLACE TEMP TABLE realiased AS SELECT entity FROM changed_aliases;
CREATE OR REPLACE TEMP TABLE touched_entities (entity UBIGINT);
CREATE OR REPLACE TEMP TABLE touched_pairs (pair UBIGINT);
"""

# What the chunks and aliases that differ resolve to: asked of the state before and after it is
# brought up to date.
_TOUCHED = """
INSERT INTO realiased
SELECT canonical FROM staging.folded_aliases SEMI JOIN changed_aliases USING (entity);

INSERT INTO touched_entities
SELECT DISTINCT coalesce(a.canonical, m.entity) FROM staging.folded_mentions m
LEFT JOIN staging.folded_aliases a ON a.entity = m.entity
WHERE m.chunk IN (SELECT chunk FROM changed_chunks)
   OR m.entity IN (SELECT entity FROM changed_aliases);

INSERT INTO touched_pairs
SELECT DISTINCT pair_of(coalesce(s.canonical, l.source), coalesce(t.canonical, l.target))
FROM staging.folded_links l
LEFT JOIN staging.folded_aliases s ON s.entity = l.source
LEFT JOIN staging.folded_aliases t ON t.entity = l.target
WHERE l.chunk IN (SELECT chunk FROM changed_chunks)
   OR l.source IN (SELECT entity FROM changed_aliases)
   OR l.target IN (SELECT entity FROM changed_aliases);
"""

_TAKEN_UP = """
INSERT INTO {state}.folded_chunks
SELECT n.chunk, hash(c.document_id), x.extractor = 'nlp', n.content
FROM chunks_now n SEMI JOIN {chunks} t ON t.chunk_id = n.chunk_id
LEFT JOIN chunks c ON c.id = n.chunk_id LEFT JOIN extractions x ON x.chunk_id = n.chunk_id;

INSERT INTO {state}.folded_mentions
SELECT DISTINCT hash(chunk_id), hash(entity_id), hash(description)
FROM found_mentions SEMI JOIN {chunks} USING (chunk_id);

INSERT INTO {state}.folded_links
SELECT DISTINCT hash(chunk_id), hash(source_id), hash(target_id), hash(description),
       coalesce(extractor = 'nlp' AND description <> '' AND type = '', false)
FROM found_links LEFT JOIN extractions USING (chunk_id) SEMI JOIN {chunks} USING (chunk_id);

DELETE FROM {state}.folded_aliases;
INSERT INTO {state}.folded_aliases FROM aliases_now;
"""

# What stands in many documents in the same words (a footer, a licence) says no more than once what
# it says: its names are no hubs for that.
_RESOLVED = f"""
CREATE OR REPLACE TEMP TABLE repeated AS
SELECT sentence FROM (
    SELECT DISTINCT l.sentence, c.document FROM {{state}}.folded_links l
    JOIN {{state}}.folded_chunks c ON c.chunk = l.chunk
    LEFT JOIN {{state}}.folded_aliases s ON s.entity = l.source
    LEFT JOIN {{state}}.folded_aliases t ON t.entity = l.target
    WHERE l.is_sentence AND coalesce(s.canonical, l.source) <> coalesce(t.canonical, l.target))
GROUP BY sentence HAVING count(*) >= {REPEATED_IN};

CREATE OR REPLACE TEMP TABLE placed AS
SELECT m.chunk, coalesce(a.canonical, m.entity) AS entity, m.sentence, c.by_rule
FROM {{state}}.folded_mentions m JOIN {{state}}.folded_chunks c ON c.chunk = m.chunk
LEFT JOIN {{state}}.folded_aliases a ON a.entity = m.entity;
"""

_CHANGED_SENTENCES = """
CREATE OR REPLACE TEMP TABLE changed_sentences AS
(FROM repeated EXCEPT FROM staging.folded_repeated) UNION ALL
(FROM staging.folded_repeated EXCEPT FROM repeated);
"""

# Whose description may differ: what is touched, what shares a sentence with a name that is now kept
# or no longer is, or is another's now, and whose merged description is another.
_SPREAD = """
CREATE OR REPLACE TEMP TABLE flipped AS
SELECT hash(id) AS entity FROM new_kept ANTI JOIN entities USING (id)
UNION ALL
SELECT hash(id) FROM entities ANTI JOIN new_kept USING (id)
WHERE hash(id) IN (SELECT entity FROM touched_entities);

CREATE OR REPLACE TEMP TABLE moved AS FROM flipped UNION FROM realiased;

CREATE OR REPLACE TEMP TABLE other_summaries AS
SELECT f.id FROM staging.folded_descriptions f
LEFT JOIN description_summaries x ON x.id = f.id AND x.input_hash = f.input_hash
WHERE hash(x.description) IS DISTINCT FROM f.summary;

CREATE OR REPLACE TEMP TABLE retold AS
WITH shared AS (
    SELECT DISTINCT chunk, sentence FROM placed WHERE entity IN (SELECT entity FROM flipped)
    UNION
    SELECT chunk, sentence FROM staging.folded_mentions SEMI JOIN changed_aliases USING (entity))
FROM touched_entities
UNION SELECT entity FROM placed SEMI JOIN shared USING (chunk, sentence)
UNION SELECT entity FROM placed SEMI JOIN changed_sentences USING (sentence)
UNION SELECT hash(id) FROM other_summaries;

INSERT INTO touched_pairs
SELECT DISTINCT pair FROM (
    SELECT l.source, l.target, l.sentence, coalesce(s.canonical, l.source) AS one,
           coalesce(t.canonical, l.target) AS two, pair_of(one, two) AS pair
    FROM staging.folded_links l
    LEFT JOIN staging.folded_aliases s ON s.entity = l.source
    LEFT JOIN staging.folded_aliases t ON t.entity = l.target)
WHERE one IN (SELECT entity FROM flipped) OR two IN (SELECT entity FROM flipped)
   OR sentence IN (SELECT sentence FROM changed_sentences);

INSERT INTO touched_pairs
SELECT pair_of(hash(source_id), hash(target_id))
FROM relationships SEMI JOIN other_summaries USING (id);
"""


def state_version(graph_version: str) -> str:
    """Return under which version a state can be taken up: hashes are those of a DuckDB version."""
    return fingerprint(STATE_VERSION, duckdb.__version__, graph_version)


def look_at_mentions(con: duckdb.DuckDBPyConnection) -> None:
    """Hash what is found in each chunk now, and the aliases."""
    con.execute(_NOW)


def find_changes(con: duckdb.DuckDBPyConnection) -> bool:
    """Look for the chunks that differ; return whether to fold by difference.

    Call it after :func:`look_at_mentions`. Not so where there is no state, or where
    much differs. ``changed_chunks`` and ``changed_aliases`` are made where a state is there.
    """
    if not con.execute("SELECT version FROM staging.folded").fetchone():
        return False
    con.execute(_CHANGED)
    row = con.execute(
        """SELECT (SELECT count(*) FROM changed_chunks), (SELECT count(*) FROM changed_aliases),
                  (SELECT count(*) FROM chunks_now), (SELECT count(*) FROM aliases_now)"""
    ).fetchone() or (0, 0, 0, 0)
    return row[0] <= _MOST_CHANGED * row[2] and row[1] <= max(row[3], 1)


def take_up_difference(con: duckdb.DuckDBPyConnection) -> None:
    """Bring the state up to date; what may differ is in ``touched_entities, touched_pairs``."""
    con.execute(_TOUCHED)
    for table in _BY_CHUNK:
        con.execute(
            f"DELETE FROM staging.{table} WHERE chunk IN (SELECT chunk FROM changed_chunks)"
        )
    con.execute(_TAKEN_UP.format(state="staging", chunks="changed_chunks"))
    con.execute(_TOUCHED)
    con.execute("INSERT INTO touched_entities SELECT hash(unnest($ids))", {"ids": _told_of(con)})
    con.execute(_RESOLVED.format(state="staging"))
    con.execute(_CHANGED_SENTENCES)
    _keep_repeated(con, "staging")


def take_up_all(con: duckdb.DuckDBPyConnection, state: str) -> None:
    """Make the state anew from the whole index, in ``staging`` or, to compare, in ``temp``."""
    for table in STATE_TABLES:
        if state == "temp":
            con.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS FROM staging.{table} LIMIT 0")
        else:
            con.execute(f"DELETE FROM staging.{table}")
    con.execute(_TAKEN_UP.format(state=state, chunks="chunks_now"))
    con.execute(_RESOLVED.format(state=state))
    _keep_repeated(con, state)


def spread(con: duckdb.DuckDBPyConnection) -> None:
    """Say whose description may differ now that ``new_kept`` is known: ``retold``, ``moved``."""
    con.execute(_SPREAD)


def note_version(con: duckdb.DuckDBPyConnection, version: str) -> None:
    """Say that the state is that of the graph, under the words of the user there are now."""
    con.execute("DELETE FROM staging.folded")
    words = json.dumps(sorted(read_words(con)))
    con.execute("INSERT INTO staging.folded VALUES (?, ?)", [version, words])


def forget_fold(con: duckdb.DuckDBPyConnection) -> None:
    """Let the next fold be one of the whole index."""
    for table in ("folded", "folded_records", "folded_titles"):
        con.execute(f"DELETE FROM staging.{table}")


def forget_other(con: duckdb.DuckDBPyConnection, version: str) -> None:
    """Forget the state where it is not of this version."""
    if value_of(con, "SELECT version FROM staging.folded") != version:
        forget_fold(con)


def _keep_repeated(con: duckdb.DuckDBPyConnection, state: str) -> None:
    con.execute(f"DELETE FROM {state}.folded_repeated")
    con.execute(f"INSERT INTO {state}.folded_repeated FROM repeated")


def _told_of(con: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the ids of entities that the user names or types, or did at the last fold."""
    before = json.loads(value_of(con, "SELECT words FROM staging.folded") or "[]")
    return sorted({*read_words(con), *before})
