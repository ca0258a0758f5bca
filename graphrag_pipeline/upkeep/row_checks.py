"""Rules for the rows of an index or of a release: each query finds the rows against it.

All of them go over whole tables, by joins; a query yields the ids, or the like, of broken rows in
its first column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import duckdb

from graphrag_pipeline.core.identity import content_hash, make_id
from graphrag_pipeline.store.frames import value_of
from graphrag_pipeline.store.hierarchy import COMMUNITIES_REPORTED, ENTITIES_COVERED_ONCE, Hierarchy
from graphrag_pipeline.upkeep.problems import Problem

_DOCUMENTS_AT_ONCE = 16
_ROWS_AT_ONCE = 1_000


@dataclass(frozen=True)
class RowCheck:
    """An invariant of the rows of ``table``: ``broken`` selects the rows against it."""

    table: str
    what: str
    broken: str


@dataclass(frozen=True)
class Broken:
    """Rows of a table that are against an invariant."""

    table: str
    what: str
    number: int = 0
    example: str = ""

    def problem(self, check: str, file: str, **more: Any) -> Problem:
        """Return the problem that this is of a file."""
        return Problem(
            check=check,
            where=f"{file}, {self.table}" if self.table else file,
            what=self.what,
            number=self.number,
            example=self.example,
            **more,
        )


def _no_such(table: str, column: str, other: str, key: str = "id") -> RowCheck:
    return RowCheck(
        table,
        f"rows whose {column} is not in {other}",
        f"SELECT t.{column} FROM {table} t ANTI JOIN {other} o ON o.{key} = t.{column} "
        f"WHERE t.{column} IS NOT NULL",
    )


def _repeated(table: str, *columns: str) -> RowCheck:
    key = ", ".join(columns)
    return RowCheck(
        table,
        f"values of {key} that stand there more than once",
        f"SELECT {columns[0]} FROM {table} GROUP BY {key} HAVING count(*) > 1",
    )


_IN_CHUNKS = (
    *("extractions", "entity_mentions", "relationship_mentions", "claims", "chunk_names"),
    *("chunk_titles", "record_links", "entity_chunks", "relationship_chunks"),
)
_BY_BATCH = ("documents", "chunks", "extractions", "entity_mentions", "relationship_mentions")
_SPANS = ("entity_mentions", "relationship_mentions", "record_links")

DOCUMENT_CHECKS = (
    _repeated("documents", "id"),
    RowCheck(
        "documents",
        "documents whose text, title or metadata is not that of their hash",
        """SELECT id FROM documents WHERE content_hash <>
           sha256(title || chr(10) || metadata::VARCHAR || chr(10) || text)""",
    ),
    RowCheck(
        "documents",
        "documents whose text has another length than is noted",
        "SELECT id FROM documents WHERE n_chars <> length(text)",
    ),
    RowCheck(
        "documents",
        "documents of a file that no batch has brought",
        "SELECT uri FROM documents ANTI JOIN batch_sources s ON s.uri = documents.source",
    ),
    _no_such("blocks", "document_id", "documents"),
    RowCheck(
        "blocks",
        "blocks that end outside of their document",
        """SELECT document_id FROM blocks b JOIN documents d ON d.id = b.document_id
           WHERE start_char < 0 OR start_char > end_char OR end_char > n_chars""",
    ),
    _no_such("chunks", "document_id", "documents"),
    _repeated("chunks", "id"),
    RowCheck(
        "chunks",
        "documents whose chunks are not numbered without a gap",
        """SELECT document_id FROM chunks GROUP BY document_id
           HAVING count(*) <> max(ordinal) + 1 OR min(ordinal) <> 0""",
    ),
    RowCheck(
        "chunks",
        "documents with a text and no chunk",
        """SELECT d.id FROM documents d ANTI JOIN chunks c ON c.document_id = d.id
           WHERE regexp_matches(d.text, '\\S')""",
    ),
)
"""Documents and the chunks they are cut into."""

MENTION_CHECKS = (
    *(_no_such(table, "chunk_id", "chunks") for table in _IN_CHUNKS),
    _repeated("extractions", "chunk_id"),
    RowCheck(
        "extractions",
        "chunks without an extraction",
        "SELECT id FROM chunks ANTI JOIN extractions x ON x.chunk_id = chunks.id",
    ),
    *(
        RowCheck(
            f"{kind}_mentions",
            "chunks that have another number of mentions than was extracted",
            f"""SELECT x.chunk_id FROM extractions x LEFT JOIN (
                    SELECT chunk_id, count(*) AS n FROM {kind}_mentions GROUP BY chunk_id) m
                ON m.chunk_id = x.chunk_id WHERE coalesce(n, 0) <> x.n_{plural}""",
        )
        for kind, plural in (("entity", "entities"), ("relationship", "relationships"))
    ),
    *(
        RowCheck(
            table,
            "spans that end outside of their chunk",
            f"""SELECT chunk_id FROM {table} m JOIN chunks c ON c.id = m.chunk_id
                WHERE m.start_char < 0 OR m.start_char > m.end_char
                   OR m.end_char > c.end_char - c.start_char""",
        )
        for table in _SPANS
    ),
    *(_no_such(table, "batch", "batches", "batch") for table in _BY_BATCH),
)
"""What was extracted from chunks."""

GRAPH_CHECKS = (
    _repeated("entities", "id"),
    _repeated("relationships", "id"),
    _repeated("identifiers", "kind", "id"),
    _repeated("identifiers", "kind", "human_readable_id"),
    *(_no_such("relationships", end, "entities") for end in ("source_id", "target_id")),
    _no_such("entity_chunks", "entity_id", "entities"),
    _no_such("relationship_chunks", "relationship_id", "relationships"),
    *(
        RowCheck(
            table,
            "rows without a chunk",
            f"SELECT id FROM {table} ANTI JOIN {kind}_chunks c ON c.{kind}_id = {table}.id",
        )
        for table, kind in (("entities", "entity"), ("relationships", "relationship"))
    ),
    *(
        RowCheck(
            table,
            "rows whose small number is not the one they were given",
            f"""SELECT t.id FROM {table} t LEFT JOIN identifiers i
                ON i.kind = '{kind}' AND i.id = t.id
                WHERE i.human_readable_id IS DISTINCT FROM t.human_readable_id""",
        )
        for table, kind in (
            *(("documents", "document"), ("chunks", "chunk")),
            *(("entities", "entity"), ("relationships", "relationship")),
        )
    ),
    RowCheck(
        "relationships",
        "rows that call an end by another title than it has",
        """SELECT r.id FROM relationships r JOIN entities s ON s.id = r.source_id
           JOIN entities t ON t.id = r.target_id
           WHERE r.source <> s.title OR r.target <> t.title""",
    ),
    RowCheck(
        "entities",
        "entities whose degree is not the number of their neighbours",
        """SELECT e.id FROM entities e LEFT JOIN (
               SELECT id, count(DISTINCT other) AS n FROM (
                   SELECT source_id AS id, target_id AS other FROM relationships UNION ALL
                   SELECT target_id, source_id FROM relationships) GROUP BY id) n
           ON n.id = e.id WHERE e.degree <> coalesce(n, 0)""",
    ),
    RowCheck(
        "entity_aliases",
        "entities folded into one that is folded itself",
        """SELECT a.entity_id FROM entity_aliases a
           SEMI JOIN entity_aliases b ON b.entity_id = a.canonical_id""",
    ),
)
"""The graph, and what it rests on."""


def _of_a_community(table: str) -> RowCheck:
    return RowCheck(
        f"hierarchy_{table}",
        "rows of {name} whose community is not there",
        f"""SELECT t.community_id FROM {{{table}}} t
            ANTI JOIN {{communities}} c ON c.id = t.community_id""",
    )


HIERARCHY_CHECKS = (
    _of_a_community("members"),
    RowCheck(
        "hierarchy_members",
        "members of {communities} that are no entities",
        "SELECT m.entity_id FROM {members} m ANTI JOIN {entities} e ON e.id = m.entity_id",
    ),
    RowCheck(
        "hierarchy_communities",
        "{communities} whose parent is not there",
        """SELECT c.id FROM {communities} c ANTI JOIN {communities} p ON p.id = c.parent_id
           WHERE c.parent_id IS NOT NULL""",
    ),
    RowCheck(
        "hierarchy_communities",
        "{communities} with another number of members than is noted",
        """SELECT c.id FROM {communities} c LEFT JOIN (
               SELECT community_id, count(DISTINCT entity_id) AS n FROM {members}
               GROUP BY community_id) m ON m.community_id = c.id
           WHERE coalesce(n, 0) <> c.size""",
    ),
    RowCheck(
        "hierarchy_members",
        "entities that are not in one of {communities} at each level",
        ENTITIES_COVERED_ONCE,
    ),
)
"""Members and parents of the communities of a hierarchy, of which :func:`checks_of` makes them."""

REPORTED_CHECKS = (_of_a_community("reports"), _of_a_community("failures"))
"""Reports, and those that failed, are of communities."""

_CITED = "(SELECT id, unnest(findings) AS finding FROM {reports} WHERE len(findings) > 0)"
REPORT_CHECKS = (
    *REPORTED_CHECKS,
    RowCheck("hierarchy_reports", "{communities} without a report", COMMUNITIES_REPORTED),
    RowCheck(
        "hierarchy_reports",
        "findings that cite a chunk that is not there",
        f"""SELECT f.id FROM {_CITED} f ANTI JOIN chunks c ON c.id = f.finding.chunk_id
            WHERE f.finding.chunk_id IS NOT NULL""",
    ),
    RowCheck(
        "hierarchy_reports",
        "findings that cite a place outside of their document",
        f"""SELECT f.id FROM {_CITED} f JOIN chunks c ON c.id = f.finding.chunk_id
            JOIN documents d ON d.id = c.document_id
            WHERE f.finding.start_char > f.finding.end_char OR f.finding.end_char > d.n_chars""",
    ),
    RowCheck(
        "report_elements",
        "rows of a community without a report",
        """SELECT e.community_id FROM report_elements e
           ANTI JOIN {reports} r ON r.community_id = e.community_id""",
    ),
)
"""The reports on the communities of the graph, and what they cite."""


def checks_of(hierarchy: Hierarchy, checks: Iterable[RowCheck]) -> Iterator[RowCheck]:
    """Yield checks whose words and queries stand for any hierarchy as those of one."""
    for check in checks:
        what = check.what.format(communities=hierarchy.views[0], name=hierarchy.name)
        yield RowCheck(check.table, what, hierarchy.sql(check.broken))


def broken_rows(con: duckdb.DuckDBPyConnection, checks: Iterable[RowCheck]) -> Iterator[Broken]:
    """Yield what is found by checks, each with its number and an example."""
    for check in checks:
        row = con.execute(
            f"SELECT count(*), min(broken::VARCHAR) FROM ({check.broken}) AS found(broken)"
        ).fetchone()
        if row and row[0]:
            yield Broken(check.table, check.what, row[0], row[1] or "")


def broken_chunks(con: duckdb.DuckDBPyConnection) -> Iterator[Broken]:
    """Yield chunks that are not the span of their document that their id is made from.

    Documents and chunks are read side by side, some at a time, for to look a span up in SQL means
    to count the characters before it.
    """
    texts = _read_aside(con, "SELECT id, text FROM documents ORDER BY id")
    spans = _rows(
        _read_aside(
            con,
            """SELECT document_id, id, start_char, end_char, text FROM chunks
               SEMI JOIN documents d ON d.id = document_id ORDER BY document_id, start_char""",
        )
    )
    wrong: list[str] = []
    row = next(spans, None)
    while documents := texts.fetchmany(_DOCUMENTS_AT_ONCE):
        for document, text in documents:
            while row is not None and row[0] == document:
                _, chunk, start, end, own = row
                if own != text[start:end] or chunk != chunk_id(document, start, end, own):
                    wrong.append(chunk)
                row = next(spans, None)
    if wrong:
        what = "chunks that are not the span of their document"
        yield Broken("chunks", what, len(wrong), min(wrong))


def chunk_id(document: str, start: int, end: int, text: str) -> str:
    """Return the id that a chunk of this span and text has."""
    return make_id("chunk", document, start, end, content_hash(text))


def _read_aside(con: duckdb.DuckDBPyConnection, query: str) -> duckdb.DuckDBPyConnection:
    """Begin a query whose rows are read while the connection does other things."""
    beside = con.cursor()
    beside.execute(f'USE "{value_of(con, "SELECT current_database()")}"')
    return beside.execute(query)


def _rows(result: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    while rows := result.fetchmany(_ROWS_AT_ONCE):
        yield from rows
