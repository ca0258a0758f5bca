"""Subjects of chunks: the titles of their documents and the headings of their sections.

A text hardly ever says its own title; who asks, does. Titles are names of the graph that ``ppr``
walks: each stands at the entity of that name, or is a node of its own.
"""

from __future__ import annotations

import duckdb

from graphrag_pipeline.core.identity import make_id
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.text import fold, normalize_title, terms
from graphrag_pipeline.store.index_store import insert, replace_links

_LONGEST = 200  # characters; a longer line names nothing that anyone asks for

# A heading stands in the first chunk that has it whole; the chunks that follow are of its section
# up to the next heading.
_TITLED = f"""
CREATE OR REPLACE TEMP TABLE headings AS
SELECT h.document_id, h.start_char,
       substring(arg_min(c.text, c.start_char), h.start_char - min(c.start_char) + 1,
                 h.end_char - h.start_char) AS title
FROM (FROM blocks WHERE kind = 'heading' AND end_char - start_char <= {_LONGEST}) h
JOIN chunks c ON c.document_id = h.document_id
    AND c.start_char <= h.start_char AND c.end_char >= h.end_char
GROUP BY h.document_id, h.start_char, h.end_char;

CREATE OR REPLACE TEMP TABLE chunk_titled AS
SELECT c.id AS chunk_id, d.title, 'document' AS kind
FROM chunks c JOIN documents d ON d.id = c.document_id WHERE length(d.title) <= {_LONGEST}
UNION ALL
SELECT c.id, h.title, 'section' FROM chunks c JOIN headings h ON h.document_id = c.document_id
    AND h.start_char > c.start_char AND h.start_char < c.end_char
UNION ALL
SELECT c.id, h.title, 'section' FROM chunks c ASOF JOIN headings h
    ON h.document_id = c.document_id AND h.start_char <= c.start_char;
"""
# A title that is no more is not kept: it may have been the only trace of a document.
_NEW_TITLES = """
DELETE FROM staging.folded_titles
WHERE (written, kind) NOT IN (SELECT (title, kind) FROM chunk_titled);
SELECT DISTINCT t.title, t.kind FROM chunk_titled t
ANTI JOIN staging.folded_titles f ON f.written = t.title AND f.kind = t.kind
"""
# A heading that several documents have ("See also") is a form, not a name.
_WANTED = """
CREATE OR REPLACE TEMP TABLE wanted_titles AS
WITH keyed AS (
    SELECT t.chunk_id, k.entity_id, k.title, k.key, k.kind, c.document_id
    FROM chunk_titled t JOIN staging.folded_titles k ON k.written = t.title AND k.kind = t.kind
    JOIN chunks c ON c.id = t.chunk_id),
names AS (
    SELECT entity_id FROM keyed GROUP BY entity_id
    HAVING bool_or(kind = 'document') OR count(DISTINCT document_id) = 1)
SELECT chunk_id, entity_id, arg_min(title, (kind, title)) AS title, key, min(kind) AS kind
FROM keyed SEMI JOIN names USING (entity_id) GROUP BY chunk_id, entity_id, key;
"""
_BRACKETED = pattern_of(r"\s*[(\[（【][^()\[\]（）【】]*[)\]）】]\s*$")
NUMBERED = pattern_of(r"^[^\W\d_]{2,6}[ -]\d{1,6}(?=: )")
"""What one of a series is called, in its title: "PEP 8" of "PEP 8: Style Guide"."""
_PLACED = pattern_of(r",\s[^,]+$")
# What Markdown and reStructuredText mark a heading by: signs before it, or a line of signs around.
_MARKS = pattern_of(r"^[^\w\n]+\n|\n[^\w\n]+$|^#+\s+|\s+#+$")


def names_of_title(title: str, kind: str = "document") -> list[str]:
    """Return what a title is called, normalised: itself, without a bracketed ending, and more.

    The title of a document also without what follows its last comma: both tell apart things of
    one name; and by its number in a series. None for stop words or signs alone.

    >>> names_of_title("Mercury (planet)")
    ['mercury (planet', 'mercury']
    >>> names_of_title("Springfield, Illinois")
    ['springfield, illinois', 'springfield']
    >>> names_of_title("PEP 8: Style Guide")
    ['pep 8: style guide', 'pep 8']
    """
    forms = [title, _BRACKETED.sub("", title)]
    if kind == "document":
        forms += [_PLACED.sub("", title), *NUMBERED.findall(title)]
    names = dict.fromkeys(normalize_title(form) for form in forms)
    return [name for name in names if terms(name)]


def update_titles(con: duckdb.DuckDBPyConnection) -> None:
    """Bring ``chunk_titles`` up to date with documents, their headings and chunks.

    What a title stands for is looked up where it was a title before.
    """
    import polars as pl

    con.execute(_TITLED)
    titles = con.execute(_NEW_TITLES).fetchall()
    shown = [(written, " ".join(_MARKS.sub("", written).split()), kind) for written, kind in titles]
    keys = [
        (written, kind, title, make_id("entity", name), fold(name))
        for written, title, kind in shown
        for name in names_of_title(title, kind)
    ]
    columns = [(name, pl.String) for name in ("written", "kind", "title", "entity_id", "key")]
    insert(con, "staging.folded_titles", pl.DataFrame(keys, schema=columns, orient="row"))
    con.execute(_WANTED)
    replace_links(con, "chunk_titles", "wanted_titles", ("chunk_id", "entity_id"))
