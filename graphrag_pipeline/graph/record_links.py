"""Keys in records that are those of other records: foreign keys, looked up among all documents.

What a key means depends on files of its folder that may come later, so it is decided anew for each
folder of which a document has come, changed or gone: whatever the order in which files came, the
same links.
"""

from __future__ import annotations

import re

import duckdb
import polars as pl

from graphrag_pipeline.core.identity import make_id
from graphrag_pipeline.core.records import field_head, field_words, relation_of
from graphrag_pipeline.core.text import normalize_title
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.store.index_store import insert, replace_links

_WORDS = word_lists("nlp_records.txt")

# The folders that hold records, and a hash of these; those that differ from the last fold. A table
# within a file, as a sheet of a book, is a file of its own here.
_FOLDERS = """
CREATE OR REPLACE TEMP TABLE record_documents AS
SELECT id, source, uri, title, batch, regexp_replace(source, '[^/]*$', '') AS folder,
       source || coalesce('!' || nullif(regexp_extract(
           substr(uri, length(source) + 2), '^([^!/]{1,80})!', 1), ''), '') AS file,
       hash(id, source, uri, title, content_hash, batch) AS content
FROM documents
WHERE uri <> source OR id IN (SELECT document_id FROM blocks WHERE kind = 'key');

CREATE OR REPLACE TEMP TABLE record_chunks AS
SELECT c.id AS chunk_id, d.folder, hash(c.id, c.start_char, c.end_char) AS content
FROM chunks c JOIN record_documents d ON d.id = c.document_id;

CREATE OR REPLACE TEMP TABLE record_folders AS
SELECT folder, hash(sum(content), count(*)) AS content FROM (
    SELECT folder, content FROM record_documents UNION ALL
    SELECT folder, content FROM record_chunks)
GROUP BY folder;

CREATE OR REPLACE TEMP TABLE changed_folders AS
SELECT coalesce(n.folder, f.folder) AS folder
FROM record_folders n FULL JOIN staging.folded_records f ON f.folder = n.folder
WHERE n.content IS DISTINCT FROM f.content;
"""
_NOTHING_CHANGED = """
SELECT (SELECT count(*) FROM changed_folders) = 0 AND (SELECT count(*) FROM staging.folded) > 0
"""
_TAKEN_UP = """
DELETE FROM staging.folded_records;
INSERT INTO staging.folded_records FROM record_folders;
"""
# What is linked in other folders stays as it is.
_WITHIN = """chunk_id NOT IN (
    SELECT chunk_id FROM record_chunks ANTI JOIN changed_folders USING (folder))"""

# The lines of records that may link them, and what each record is called.
_LINES = """
CREATE OR REPLACE TEMP TABLE record_lines AS
SELECT document_id, file, folder, kind, start_char, end_char, batch,
       regexp_extract(line, '^(.*?): ', 1) AS path,
       trim(regexp_replace(regexp_replace(line, '^.*?: ', ''), '\\s+', ' ', 'g')) AS value
FROM (
    SELECT b.document_id, r.file, r.folder, b.kind, b.start_char, b.end_char, d.batch,
           substr(d.text, b.start_char + 1, b.end_char - b.start_char) AS line
    FROM blocks b JOIN documents d ON d.id = b.document_id
    JOIN record_documents r ON r.id = d.id AND r.folder IN (SELECT folder FROM changed_folders)
    WHERE b.kind IN ('title', 'key', 'field')
    AND b.document_id IN (SELECT document_id FROM blocks WHERE kind = 'key'));

CREATE OR REPLACE TEMP TABLE keyed_records AS
SELECT file, folder, substr(uri, length(file) + 2) AS key, title
FROM record_documents SEMI JOIN changed_folders USING (folder)
WHERE uri <> source AND NOT ends_with(title, ': ' || key);
"""
# The file that a column's keys are those of: the one it is named after, else the column's own file
# where the name says so (a manager's id), else the only one in the folder that has them all, unless
# they are bare numbers, which any file may have.
_COLUMNS = """
CREATE OR REPLACE TEMP TABLE key_columns AS
WITH used AS (
    SELECT DISTINCT file, folder, path, regexp_replace(value, '^(\\d+)\\.0$', '\\1') AS value
    FROM record_lines WHERE kind = 'key'),
sizes AS (
    SELECT file, path, count(*) AS n, bool_and(regexp_full_match(value, '\\d+')) AS bare
    FROM used GROUP BY ALL),
met AS (
    SELECT u.file, u.path, r.file AS other, count(*) AS n_met FROM used u
    JOIN (SELECT DISTINCT file, folder, key FROM keyed_records) r
      ON r.folder = u.folder AND r.key = u.value
    GROUP BY ALL),
judged AS (
    SELECT m.file, m.path, m.other,
           CASE WHEN p.head = f.head THEN 1
                WHEN m.other = m.file AND p.within AND n_met >= 0.9 * n THEN 2
                WHEN NOT bare AND n > 1 AND n_met = n AND m.other <> m.file THEN 3 END AS judgment
    FROM met m JOIN sizes USING (file, path) JOIN key_names p USING (path)
    JOIN file_names f ON f.file = m.other)
SELECT file, path, any_value(other) AS other FROM judged j
WHERE judgment = (SELECT min(judgment) FROM judged WHERE file = j.file AND path = j.path)
GROUP BY file, path HAVING count(*) = 1;
"""
# A record without a name of its own, as in a table that joins two others, is about the first
# record that it refers to.
_LINKS = """
CREATE OR REPLACE TEMP TABLE record_pairs AS
WITH resolved AS (
    SELECT l.document_id, l.start_char, l.end_char, l.batch, p.label, r.title, true AS is_key
    FROM record_lines l JOIN key_columns k USING (file, path) JOIN key_names p USING (path)
    JOIN keyed_records r
      ON r.file = k.other AND r.key = regexp_replace(l.value, '^(\\d+)\\.0$', '\\1')
    WHERE l.kind = 'key'),
named AS (
    SELECT document_id, any_value(value) AS source FROM record_lines WHERE kind = 'title'
    GROUP BY ALL),
firsts AS (
    SELECT document_id, arg_min(title, start_char) AS source, min(start_char) AS start_char
    FROM resolved ANTI JOIN named USING (document_id) GROUP BY document_id),
others AS (
    SELECT l.document_id, l.start_char, l.end_char, l.batch, l.path AS label, l.value AS title,
           false AS is_key
    FROM record_lines l SEMI JOIN firsts USING (document_id) WHERE l.kind = 'field')
SELECT r.*, n.source, false AS names_source FROM resolved r JOIN named n USING (document_id)
UNION ALL
SELECT r.*, f.source, true FROM (FROM resolved UNION ALL FROM others) r
JOIN firsts f ON f.document_id = r.document_id AND f.start_char <> r.start_char;
"""
_WANTED = """
CREATE OR REPLACE TEMP TABLE wanted_record_links AS
SELECT DISTINCT c.id AS chunk_id, s.id AS source_id, t.id AS target_id, p.source, p.title AS target,
       p.names_source, p.is_key AS names_target,
       p.source || ' — ' || p.label || ': ' || p.title AS description,
       p.start_char - c.start_char AS start_char, p.end_char - c.start_char AS end_char, p.batch,
       p.label AS type
FROM record_pairs p JOIN linked_titles s ON s.title = p.source
JOIN linked_titles t ON t.title = p.title
JOIN chunks c ON c.document_id = p.document_id AND c.start_char <= p.start_char
             AND c.end_char >= p.end_char
WHERE s.id <> t.id
"""


def link_records(con: duckdb.DuckDBPyConnection) -> None:
    """Bring ``record_links`` up to date with the documents of the index, within a transaction."""
    con.execute(_FOLDERS)
    if con.execute(_NOTHING_CHANGED).fetchone() == (True,):
        return
    con.execute(_LINES)
    _name_columns(con)
    con.execute(_COLUMNS)
    con.execute(_LINKS)
    rows = con.execute(
        "SELECT source FROM record_pairs UNION SELECT title FROM record_pairs ORDER BY 1"
    ).fetchall()
    keys = [(title, normalize_title(title)) for (title,) in rows]
    ids = [(title, make_id("entity", key)) for title, key in keys if key]
    _make(
        con, "linked_titles", pl.DataFrame(ids, {"title": pl.String, "id": pl.String}, orient="row")
    )
    con.execute(_WANTED)
    replace_links(con, "record_links", "wanted_record_links", ("chunk_id", "description"), _WITHIN)
    con.execute(_TAKEN_UP)


def _name_columns(con: duckdb.DuckDBPyConnection) -> None:
    """Say what the names of columns and files mean: tables ``key_names`` and ``file_names``."""
    paths = con.execute("SELECT DISTINCT path FROM record_lines WHERE kind = 'key'").fetchall()
    heads = [(path, field_head(path), relation_of(path)) for (path,) in paths]
    columns = [(path, head, head in _WORDS["self"], label) for path, head, label in heads]
    _make(
        con,
        "key_names",
        pl.DataFrame(
            columns,
            {"path": pl.String, "head": pl.String, "within": pl.Boolean, "label": pl.String},
            orient="row",
        ),
    )
    files = con.execute("SELECT DISTINCT file FROM keyed_records").fetchall()
    stems = [(file, field_words(_stem(file))[-1:]) for (file,) in files]
    named = [(file, *words) for file, words in stems if words]
    schema = {"file": pl.String, "head": pl.String}
    _make(con, "file_names", pl.DataFrame(named, schema, orient="row"))


def _make(con: duckdb.DuckDBPyConnection, table: str, rows: pl.DataFrame) -> None:
    columns = ", ".join(
        f"{name} {'BOOLEAN' if kind == pl.Boolean else 'VARCHAR'}"
        for name, kind in rows.schema.items()
    )
    con.execute(f"CREATE OR REPLACE TEMP TABLE {table} ({columns})")
    insert(con, table, rows)


def _stem(file: str) -> str:
    """Return a file's name without its ending, whose dots are no path within a record.

    Of a table within a file it is the table's.
    """
    return re.split("[/!]", file)[-1].split(".", 1)[0]
