"""Links by file: what a link calls by a document's file is what the document's title names.

A link to ``notes/q4.md`` makes a mention of "q4". Where that document is in the corpus and titled
"Quay 4 handbook", both are one, called by the title, as if ``aliases.csv`` said so. A name that is
not of one file alone, or that the text says where it links to nothing, stays what it is. So do the
labels within a document that a link may call it by, as those of reStructuredText.
"""

from __future__ import annotations

from collections import Counter

import duckdb

from graphrag_pipeline.core.identity import make_id
from graphrag_pipeline.core.text import normalize_title
from graphrag_pipeline.extraction.rules.links import LINKS_TO, title_of_file
from graphrag_pipeline.graph.resolution.user_aliases import RENAME, UserRow

# The ends of a mention are in the order of their ids.
_LINKED = """
WITH linked AS MATERIALIZED (
    SELECT DISTINCT unnest([source_id, target_id]) AS id, chunk_id
    FROM {prefix}relationship_mentions WHERE type = $type)
SELECT DISTINCT id FROM linked WHERE id NOT IN (
    SELECT m.entity_id FROM {prefix}entity_mentions m SEMI JOIN linked l ON l.id = m.entity_id
    ANTI JOIN linked l ON l.id = m.entity_id AND l.chunk_id = m.chunk_id)
"""
_FILES = """
SELECT source, title, json_extract_string(metadata, '$.labels') AS labels
FROM {prefix}documents WHERE uri = source ORDER BY source
"""


def linked_files(con: duckdb.DuckDBPyConnection, prefix: str = "") -> list[UserRow]:
    """Return a row for each file that is linked to, from what it is called to its document's title.

    ``prefix`` is that of the tables, or of the views that show them as they will be.
    """
    linked = con.execute(_LINKED.format(prefix=prefix), {"type": LINKS_TO}).fetchall()
    if not linked:
        return []
    files = con.execute(_FILES.format(prefix=prefix)).fetchall()
    called = (
        (title_of_file(name), title, source)
        for source, title, labels in files
        for name in (source, *(f"{label}.rst" for label in (labels or "").split(", ") if label))
    )
    names = list(dict.fromkeys(called))
    keys = [(normalize_title(name), normalize_title(title)) for name, title, _ in names]
    files_of = {(key, file[2]) for file, pair in zip(names, keys, strict=True) for key in pair}
    n_called = Counter(key for key, _ in files_of)
    ids = {id for (id,) in linked}
    return [
        UserRow(line=0, action=RENAME, a=name, b=title, note=source)
        for (name, title, source), (called, titled) in zip(names, keys, strict=True)
        if called != titled and n_called[called] == n_called[titled] == 1
        if called and titled and make_id("entity", called) in ids
    ]
