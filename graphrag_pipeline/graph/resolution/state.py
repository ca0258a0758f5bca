"""State of resolution between runs: names, the keys they share, what the text explains.

Titles are compared within blocks, those that share a key. A block whose titles, and what is said of
them, are as they were is decided as it was. So the work of a run follows what has changed, and what
it decides is what it would decide from nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import duckdb
import polars as pl

from graphrag_pipeline.graph.resolution.names import take_apart
from graphrag_pipeline.graph.resolution.pairs import Entity
from graphrag_pipeline.store.frames import put_rows, value_of
from graphrag_pipeline.store.hash_memory import digest_of
from graphrag_pipeline.store.index_store import insert

SPELLING, PLURAL, LAST, ACRONYM, INITIALS, EXPLAINED = (
    "spelling", "plural", "last", "acronym", "initials", "explained",
)  # fmt: skip
"""The kinds of keys by which rules compare; by all others, titles are looked through for likeness.
"""
STATE = ("names", "keys", "pairs", "refusals", "stated", "endings", "vectors")
_MOST_WORDS = 8
_SLICE = 20_000

_SIGNATURE = (
    "sum(hash(m.chunk_id, m.entity_id, m.title, m.type, m.description, x.extractor)) AS signature"
)
_SEEN = f"""
CREATE OR REPLACE TEMP TABLE seen AS
SELECT entity_id AS id, {_SIGNATURE}
FROM next_entity_mentions m JOIN next_extractions x USING (chunk_id) GROUP BY entity_id
"""
_TOUCHED = """
CREATE OR REPLACE TEMP TABLE touched AS
SELECT s.* FROM seen s LEFT JOIN staging.resolution_names n USING (id)
WHERE n.signature IS DISTINCT FROM s.signature;

CREATE OR REPLACE TEMP TABLE gone AS
SELECT id FROM staging.resolution_names ANTI JOIN seen USING (id);
"""
# The type as the graph's fold chooses it; the title that most chunks give.
_TITLED = """
WITH told AS MATERIALIZED (
    SELECT m.entity_id, m.chunk_id, m.title, m.type FROM next_entity_mentions m
    SEMI JOIN {ids} i ON i.id = m.entity_id),
titled AS (
    SELECT entity_id AS id, arg_max(title, (n, length(title), title)) AS title FROM (
        SELECT entity_id, title, count(DISTINCT chunk_id) AS n FROM told GROUP BY ALL)
    GROUP BY entity_id),
typed AS (
    SELECT entity_id AS id, arg_max(type, (type NOT IN ('CONCEPT', 'DATE', 'OTHER'), n, type))
           AS type FROM (SELECT entity_id, type, count(*) AS n FROM told GROUP BY ALL)
    GROUP BY entity_id),
imported AS (
    SELECT entity_id AS id, bool_or(extractor = 'import') AS imported
    FROM told JOIN next_extractions USING (chunk_id) GROUP BY entity_id)
SELECT id, title, type, NOT (imported AND {closed}) AS is_open
FROM titled JOIN typed USING (id) JOIN imported USING (id)
"""
_RENAMED = """
CREATE OR REPLACE TEMP TABLE renamed AS
SELECT t.* FROM ({titled}) t LEFT JOIN staging.resolution_names n USING (id)
WHERE n.id IS NULL OR n.title <> t.title OR n.type <> t.type OR n.is_open <> t.is_open;

CREATE OR REPLACE TEMP TABLE changed AS
SELECT id FROM renamed UNION ALL SELECT id FROM gone;

DELETE FROM staging.resolution_vectors WHERE id IN (SELECT id FROM changed);
CREATE OR REPLACE TEMP TABLE new_keys AS FROM staging.resolution_keys LIMIT 0;
CREATE OR REPLACE TEMP TABLE new_words (id VARCHAR, words VARCHAR);
"""
_STORE_NAMES = """
CREATE OR REPLACE TEMP TABLE old_keys AS
FROM staging.resolution_keys SEMI JOIN changed USING (id);

CREATE OR REPLACE TEMP TABLE named_blocks AS
SELECT b.kind, b.key, count(k.id) AS n_before FROM (
    SELECT kind, key FROM old_keys UNION SELECT kind, key FROM new_keys) b
LEFT JOIN staging.resolution_keys k ON k.kind = b.kind AND k.key = b.key GROUP BY ALL;

DELETE FROM staging.resolution_keys WHERE id IN (SELECT id FROM changed);
INSERT INTO staging.resolution_keys FROM new_keys;
DELETE FROM staging.resolution_names WHERE id IN (SELECT id FROM changed);
UPDATE staging.resolution_names n SET signature = t.signature FROM touched t WHERE t.id = n.id;
INSERT INTO staging.resolution_names BY NAME
SELECT r.*, w.words, t.signature
FROM renamed r JOIN new_words w USING (id) JOIN touched t USING (id);
"""
# "World Health Organization (WHO)" and "WHO (World Health Organization)". What may stand in a name
# is asked of the few that are found: to repeat \p{L} takes longer than to search a small corpus.
_STATED = r"""
DELETE FROM staging.resolution_stated WHERE chunk_id NOT IN (SELECT id FROM next_chunks);

CREATE OR REPLACE TEMP TABLE unread AS
SELECT id, text FROM next_chunks
WHERE id NOT IN (SELECT chunk_id FROM staging.resolution_stated);

INSERT INTO staging.resolution_stated
WITH before AS (
    SELECT id, unnest(regexp_extract_all(
        text, '(?:[^\s()]+\s+){1,8}\((?:[A-Z]\.?){2,7}s?\)')) AS phrase FROM unread
), after AS (
    SELECT id, unnest(regexp_extract_all(
        text, '\b(?:[A-Z]\.?){2,7}\s+\([^()]{5,90}\)')) AS phrase FROM unread
), found AS (
    SELECT id, regexp_extract(phrase, '\(([^)]*)\)', 1) AS acronym, trim(regexp_extract(
        phrase, '([\p{L}\d''’&-][\p{L}\d''’&\s-]*)\(', 1)) AS text FROM before
    UNION
    SELECT id, trim(regexp_extract(phrase, '^([^(]*)\(', 1)),
           regexp_extract(phrase, '\(([^)]*)\)', 1)
    FROM after WHERE regexp_matches(phrase, '\([\p{L}\d''’& -]+\)'))
FROM found WHERE text <> '' UNION ALL
SELECT id, NULL, NULL FROM unread WHERE id NOT IN (SELECT id FROM found WHERE text <> '');

DELETE FROM staging.resolution_endings WHERE (acronym, text) NOT IN (
    SELECT (acronym, text) FROM staging.resolution_stated WHERE acronym IS NOT NULL);
"""
_UNREAD_PAIRS = """
SELECT DISTINCT acronym, text FROM staging.resolution_stated
WHERE acronym IS NOT NULL AND (acronym, text) NOT IN (
    SELECT (acronym, text) FROM staging.resolution_endings) ORDER BY ALL
"""
# The longest ending of what stands before the bracket that is a title.
_EXPLAINED = """
CREATE OR REPLACE TEMP TABLE explained AS
WITH spelled AS (SELECT key, id FROM staging.resolution_keys WHERE kind = 'spelling'),
fitting AS (
    SELECT e.* FROM staging.resolution_endings e WHERE key IN (SELECT key FROM spelled)),
longest AS (SELECT acronym, text, min(place) AS place FROM fitting GROUP BY ALL)
SELECT DISTINCT s.id, 'explained' AS kind, f.short AS key
FROM fitting f SEMI JOIN longest USING (acronym, text, place) JOIN spelled s ON s.key = f.key;

CREATE OR REPLACE TEMP TABLE explained_otherwise AS
WITH before AS (FROM staging.resolution_keys WHERE kind = 'explained')
SELECT DISTINCT key FROM (
    (FROM explained EXCEPT FROM before) UNION ALL (FROM before EXCEPT FROM explained));

DELETE FROM staging.resolution_keys WHERE kind = 'explained';
INSERT INTO staging.resolution_keys FROM explained;
"""
# What rules decide depends on the names of a block; of people and acronyms, also on where each is
# mentioned.
_BLOCKS = """
CREATE OR REPLACE TEMP TABLE open_blocks AS
SELECT kind, key FROM named_blocks WHERE kind IN ('spelling', 'plural', 'last') UNION
SELECT kind, key FROM staging.resolution_keys SEMI JOIN touched USING (id) WHERE kind = 'last' UNION
SELECT 'acronym', key FROM (
    SELECT key FROM named_blocks WHERE kind IN ('acronym', 'initials') UNION
    SELECT key FROM staging.resolution_keys SEMI JOIN touched USING (id)
    WHERE kind IN ('acronym', 'initials') UNION
    FROM explained_otherwise)
WHERE key IN (SELECT key FROM staging.resolution_keys WHERE kind = 'acronym')
   OR key IN (SELECT key FROM staging.resolution_pairs WHERE kind = 'acronym');

CREATE OR REPLACE TEMP TABLE scope AS
SELECT id FROM touched UNION SELECT id FROM gone UNION
SELECT unnest([one_id, two_id])
FROM staging.resolution_pairs SEMI JOIN open_blocks USING (kind, key)
WHERE confidence > 0;

DELETE FROM staging.resolution_pairs WHERE (kind, key) IN (SELECT (kind, key) FROM open_blocks);
"""


def forget_state(con: duckdb.DuckDBPyConnection) -> None:
    """Let everything be decided anew."""
    for table in STATE:
        con.execute(f"DELETE FROM staging.resolution_{table}")


def look_at_mentions(con: duckdb.DuckDBPyConnection) -> None:
    """Make the table ``seen``: each entity the next graph is told of, and its signature."""
    con.execute(_SEEN)


def mentions_hash(con: duckdb.DuckDBPyConnection, prefix: str = "") -> str:
    """Return a hash of all mentions of entities, in the tables of names with this prefix."""
    return digest_of(
        con,
        f"""SELECT {_SIGNATURE} FROM {prefix}entity_mentions m
            JOIN {prefix}extractions x USING (chunk_id)""",
    )


def seen_hash(con: duckdb.DuckDBPyConnection) -> str:
    """Return the hash of all mentions by what :func:`look_at_mentions` has made of them."""
    return str(value_of(con, "SELECT sum(signature) FROM seen"))


def find_renamed(con: duckdb.DuckDBPyConnection, *, keep_imported: bool) -> pl.DataFrame:
    """Return (id, title, type, is_open) of what is new or has another title, by id."""
    con.execute(_TOUCHED)
    con.execute(_RENAMED.format(titled=titled("touched", keep_imported=keep_imported)))
    return con.sql("FROM renamed ORDER BY id").pl()


def titled(ids: str, *, keep_imported: bool) -> str:
    """Return a query for (id, title, type, is_open) of the entities in a table of ids."""
    return _TITLED.format(ids=ids, closed=str(keep_imported).lower())


def add_keys(con: duckdb.DuckDBPyConnection, rows: pl.DataFrame) -> None:
    """Take the titles of a slice of what was renamed apart, and put their keys in ``new_keys``."""
    keys: list[tuple[str, str, str]] = []
    words: list[tuple[str, str]] = []
    for id, title, kind, is_open in rows.iter_rows():
        name = take_apart(title, kind)
        words.append((id, " ".join(name.words)))
        keys += ((id, kind, key) for kind, key in _keys(Entity(id, name, is_open=is_open)))
    _append(con, "new_keys", keys, ("id", "kind", "key"))
    _append(con, "new_words", words, ("id", "words"))


def _keys(entity: Entity) -> Iterator[tuple[str, str]]:
    name = entity.name
    yield from ((SPELLING, key) for key in name.spellings if key)
    yield from ((INITIALS, key) for key in name.initials)
    yield from ((LAST, part) for part in name.parts)
    likely = (
        (PLURAL, name.singular),
        (ACRONYM, name.acronym),
    )
    yield from (pair for pair in likely if pair[1])
    if entity.is_open:
        if name.skeleton:
            yield "skeleton", name.skeleton
        if name.words:
            yield "ending", name.words[-1]
        yield "words", " ".join(sorted(name.words))


def store_names(con: duckdb.DuckDBPyConnection) -> None:
    """Keep what was found of the renamed, and find out which acronyms the text explains."""
    con.execute(_STORE_NAMES)
    con.execute(_STATED)
    endings: list[tuple[str, str, str, int, str]] = []
    for acronym, text in con.execute(_UNREAD_PAIRS).fetchall():
        short = take_apart(acronym, "").acronym
        keys = [*_endings(text, short)] or [""]
        endings += ((acronym, text, short, place, key) for place, key in enumerate(keys))
    frame = pl.DataFrame(
        endings,
        schema={
            "acronym": pl.String,
            "text": pl.String,
            "short": pl.String,
            "place": pl.Int64,
            "key": pl.String,
        },
        orient="row",
    )
    insert(con, "staging.resolution_endings", frame)
    con.execute(_EXPLAINED)


def _endings(text: str, acronym: str) -> Iterator[str]:
    """Yield the spellings of the endings of a text that begin as an acronym, the longest first."""
    words = text.split()
    for start in range(max(0, len(words) - _MOST_WORDS), len(words) - 1):
        if words[start][:1].casefold() == acronym[:1]:
            yield from sorted(take_apart(" ".join(words[start:]), "").spellings)


def find_blocks(con: duckdb.DuckDBPyConnection) -> None:
    """Make the tables ``open_blocks``, to be decided again, and ``scope``, whom that is about.

    The pairs of these blocks are taken away.
    """
    con.execute(_BLOCKS)


def slices(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Return rows in slices of bounded size."""
    return rows.iter_slices(_SLICE)


def put_ids(con: duckdb.DuckDBPyConnection, table: str, ids: Iterable[str]) -> None:
    """Make a temporary table of ids."""
    put_rows(con, table, pl.DataFrame({"id": sorted(set(ids))}, schema={"id": pl.String}))


def _append(
    con: duckdb.DuckDBPyConnection,
    table: str,
    rows: Sequence[tuple[str, ...]],
    names: Sequence[str],
) -> None:
    insert(con, table, pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row"))
