"""Content of the overview, read from a release by column and kept small whatever its size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from graphrag_pipeline.core.errors import GraphRAGError
from graphrag_pipeline.pages.overview.chapters import read_chapters
from graphrag_pipeline.pages.overview.model import Excerpt, Named, Rows
from graphrag_pipeline.pages.overview.passages import (
    WantedPassages,
    clip,
    most_like,
    passages,
    place_of,
)
from graphrag_pipeline.query.release import Release
from graphrag_pipeline.releases.diff import diff_releases
from graphrag_pipeline.releases.silent_languages import SILENT_LANGUAGES, silent_lines

_KEY_ENTITIES = 24
_RELATIONSHIPS = 12
_EACH_ENTITY = 2
_CANDIDATES = 6
_TYPES = 10
_LISTED = 20
_MOST_DESCRIPTION = 420
_MOST_WORDS = 2_000

_TYPE_NAMES = {
    "PERSON": ("person", "people"),
    "GEO": ("place", "places"),
    "LOCATION": ("place", "places"),
    "ORGANIZATION": ("organisation", "organisations"),
    "EVENT": ("event", "events"),
    "CONCEPT": ("idea or term", "ideas and terms"),
    "DATE": ("date", "dates"),
    "WORK": ("work", "works"),
    "OTHER": ("name", "other names"),
}

_FACTS = """
SELECT r.created_at, r.modularity,
       (SELECT coalesce(sum(len(regexp_extract_all(text,
           '[\\p{Han}\\p{Hiragana}\\p{Katakana}\\p{Thai}]|[\\p{L}\\p{N}]+(?:[''’-][\\p{L}\\p{N}]+)*'
           ))), 0)::BIGINT FROM documents) AS words,
       (SELECT count(*) FROM entity_aliases) AS merged_names,
       (SELECT coalesce(max(level) + 1, 0) FROM community_members) AS levels
FROM releases r WHERE r.id = $id
"""
_FILE_TYPES = """
SELECT lower(regexp_extract(source, '\\.([A-Za-z0-9]{1,8})$', 1)) AS kind, count(*) AS n
FROM documents GROUP BY kind ORDER BY n DESC, kind
"""
_ROOTS = "SELECT DISTINCT root FROM batches SEMI JOIN documents USING (batch) ORDER BY root"
_ENTITY_TYPES = "SELECT type, count(*) AS n FROM entities GROUP BY type ORDER BY n DESC, type"
_ENTITIES = """
WITH key AS (
    SELECT id, title, type, description, frequency, degree FROM entities
    ORDER BY (type IN ('CONCEPT', 'DATE')), degree DESC, frequency DESC, title LIMIT $most),
places AS (
    SELECT entity_id, document_id, count(*) AS n FROM entity_chunks
    JOIN key ON key.id = entity_id JOIN chunks c ON c.id = chunk_id GROUP BY ALL),
named AS (
    SELECT entity_id, count(*) AS n_documents,
           list(d.title ORDER BY n DESC, d.human_readable_id)[:3] AS titles
    FROM places JOIN documents d ON d.id = document_id GROUP BY entity_id)
SELECT key.*, n_documents, titles, m.community_id FROM key
LEFT JOIN named ON named.entity_id = key.id
LEFT JOIN community_members m ON m.entity_id = key.id AND m.level = 0
ORDER BY degree DESC, frequency DESC, title
"""
# Releases that older programs made have no type.
_TELLING = "SELECT * FROM relationships ORDER BY weight * (1 + pmi) / 2 DESC, id LIMIT $most"
_EVIDENCE = """
SELECT * FROM (
    SELECT relationship_id, chunk_id, start_char, end_char,
           count(*) OVER (PARTITION BY relationship_id) AS n_chunks,
           row_number() OVER (PARTITION BY relationship_id
               ORDER BY start_char IS NULL, n_mentions DESC, chunk_id) AS place
    FROM relationship_chunks
    SEMI JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS relationship_id) USING (relationship_id))
WHERE place = 1 OR (start_char IS NULL AND place <= $most) ORDER BY relationship_id, place
"""
_COVERAGE = """
SELECT (SELECT count(*) FROM extractions WHERE status = 'failed') AS failed_chunks,
       (SELECT count(*) FROM report_failures) AS failed_reports,
       (SELECT count(*) FROM entities WHERE degree = 0) AS isolated,
       (SELECT count(DISTINCT element_id) FROM report_elements
        SEMI JOIN relationships ON relationships.id = element_id WHERE kind = 'relationship')
           AS told
"""
_SILENT = """
SELECT title, count(*) OVER () AS n FROM documents d
ANTI JOIN (SELECT DISTINCT document_id FROM entity_chunks JOIN chunks ON chunks.id = chunk_id) x
    ON x.document_id = d.id ORDER BY human_readable_id LIMIT $most
"""
_UNREADABLE = """
SELECT q.uri, q.reason, coalesce(b.root, '') AS root, count(*) OVER () AS n FROM quarantine q
JOIN (SELECT uri, max(batch) AS batch FROM batch_sources WHERE status <> 'superseded' GROUP BY uri)
    newest ON newest.batch = q.batch
    AND (q.uri = newest.uri OR starts_with(q.uri, newest.uri || '#'))
LEFT JOIN batches b ON b.batch = q.batch ORDER BY q.uri LIMIT $most
"""
_COSTS = """
SELECT stage, count(*) FILTER (NOT cached) AS calls, count(*) FILTER (cached) AS cached,
       count(*) FILTER (error IS NOT NULL) AS failed,
       coalesce(sum(prompt_tokens) FILTER (NOT cached), 0)::BIGINT AS prompt_tokens,
       coalesce(sum(completion_tokens) FILTER (NOT cached), 0)::BIGINT AS completion_tokens,
       CASE WHEN bool_and(cost IS NOT NULL OR cached OR error IS NOT NULL)
            THEN coalesce(sum(cost) FILTER (NOT cached), 0) END AS cost
FROM llm_calls GROUP BY stage ORDER BY min(called_at)
"""
_MADE_BY = {
    "extractors": "SELECT extractor AS name, count(*) AS n FROM extractions GROUP BY name",
    "writers": "SELECT writer AS name, count(*) AS n FROM community_reports GROUP BY name",
}
_CHANGED = {
    "documents": "documents",
    "entities": "names",
    "relationships": "connections",
    "communities": "themes of all levels",
    "community_reports": "reports",
}


def gather(index: Release, title: str | None = None) -> Rows:
    """Read everything that the overview of a release shows, by the names that its template has.

    ``title`` heads the page in place of one made from the folder's name. Of what grows with the
    corpus the most important is taken, so the page stays small.
    """
    facts = index.rows(_FACTS, id=index.facts.id)[0]
    key = index.rows(_ENTITIES, most=_KEY_ENTITIES)
    anchors = {row["id"]: f"entity-{n}" for n, row in enumerate(key, 1)}
    chapters = read_chapters(index, anchors)
    since, changes = _changes(index)
    sizes = [(c["title"], c["size"], f"chapter-{c['number']}") for c in chapters["chapters"]]
    return {
        **facts,
        **chapters,
        "title": title or _title(index),
        "release": index.facts.id,
        "counts": {name[2:]: n for name, n in index.facts.counts.items()},
        "file_types": [(row["kind"] or "other", row["n"]) for row in index.rows(_FILE_TYPES)],
        "entity_types": _type_bars(index),
        "sizes": _bars(sizes),
        "entities": _entities(key, anchors, chapters["chapters"]),
        "relationships": _relationships(index, anchors),
        "coverage": _coverage(index),
        "costs": index.rows(_COSTS),
        "making": _making(index, facts),
        "changed_since": since,
        "changes": changes,
    }


# Names of folders that do not say what is in them without the folder around.
_SAYS_LITTLE = frozenset(
    ["data", "doc", "docs", "documents", "files", "html", "input", "pdf", "text", "txt"]
)


def _title(index: Release) -> str:
    """Return a title from the folder that was read, or from what was imported."""
    roots = [row["root"] for row in index.rows(_ROOTS)]
    name = folder_name(roots[0]) if len(roots) == 1 else ""
    return f"What is in “{name}”" if name else "What is in these documents"


def folder_name(root: str) -> str:
    """Return what a folder that was read, or an import, is called.

    >>> folder_name("/srv/handbook"), folder_name("/usr/share/doc/valgrind/html")
    ('handbook', 'valgrind/html')
    """
    folder = PurePath(root.removeprefix("import:"))
    says_little = folder.name.lower() in _SAYS_LITTLE and folder.parent.name
    return f"{folder.parent.name}/{folder.name}" if says_little else folder.name


def _bars(rows: Sequence[tuple[str, int, str]]) -> list[Rows]:
    """Return bars of a chart: ``share`` is that of the longest, ``anchor`` where more is told."""
    longest = max((n for _, n, _ in rows), default=1) or 1
    return [
        {"label": label, "value": n, "share": n / longest, "anchor": anchor}
        for label, n, anchor in rows
    ]


def _type_bars(index: Release) -> list[Rows]:
    rows = [(row["type"], row["n"], "") for row in index.rows(_ENTITY_TYPES)]
    rest = sum(n for _, n, _ in rows[_TYPES:])
    bars = [(_type_names(label)[1], n, a) for label, n, a in rows[:_TYPES]]
    return _bars([*bars, *([("all others", rest, "")] if rest else [])])


def _type_names(kind: str) -> tuple[str, str]:
    """Return what one thing of a type is called, and what several are."""
    name = kind.replace("_", " ").lower()
    return _TYPE_NAMES.get(kind, (name, name))


def _entities(
    rows: Sequence[Rows], anchors: Mapping[str, str], chapters: Sequence[Rows]
) -> list[Rows]:
    named = {c["id"]: Named(c["title"], f"chapter-{c['number']}") for c in chapters}
    return [
        {
            **row,
            "anchor": anchors[row["id"]],
            "type": _type_names(row["type"])[0],
            "description": clip(row["description"], _MOST_DESCRIPTION),
            "chapter": named.get(row["community_id"]),
            "documents": row["titles"] or [],
            "n_documents": row["n_documents"] or 0,
        }
        for row in rows
    ]


def _relationships(index: Release, anchors: Mapping[str, str]) -> list[Rows]:
    rows = {row["id"]: row for row in _varied(index.rows(_TELLING, most=_RELATIONSHIPS * 20))}
    evidence = index.rows(_EVIDENCE, ids=list(rows), most=_CANDIDATES)
    spans = [_wanted(rows[piece["relationship_id"]], piece) for piece in evidence]
    candidates: dict[str, list[Excerpt]] = {}
    n_chunks = {piece["relationship_id"]: piece["n_chunks"] for piece in evidence}
    for piece, place in zip(evidence, passages(index, spans), strict=True):
        if place is not None:
            candidates.setdefault(piece["relationship_id"], []).append(place)
    return [
        {
            "source": Named(row["source"], anchors.get(row["source_id"], "")),
            "target": Named(row["target"], anchors.get(row["target_id"], "")),
            "type": row.get("type") or "",
            "description": clip(row["description"], _MOST_DESCRIPTION),
            "n_chunks": n_chunks.get(edge, 0),
            "passage": most_like(f"{row['source']} {row['target']}", candidates[edge])
            if edge in candidates
            else None,
        }
        for edge, row in rows.items()
    ]


def _wanted(row: Mapping[str, Any], piece: Mapping[str, Any]) -> WantedPassages:
    names = f"{row['source']} {row['target']}"
    span = (piece["start_char"], piece["end_char"])
    return WantedPassages(piece["chunk_id"], *span, clip(row["description"], _MOST_WORDS), names)


def _varied(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the first relationships, no entity being an end of more than a few."""
    counts: dict[str, int] = {}
    selection = []
    for row in rows:
        ends = (row["source_id"], row["target_id"])
        if len(selection) < _RELATIONSHIPS and all(counts.get(e, 0) < _EACH_ENTITY for e in ends):
            selection.append(row)
            counts.update({e: counts.get(e, 0) + 1 for e in ends})
    return selection


def _coverage(index: Release) -> Rows:
    row = index.rows(_COVERAGE)[0]
    silent = index.rows(_SILENT, most=_LISTED)
    unreadable = index.rows(_UNREADABLE, most=_LISTED)
    counts = index.facts.counts
    edges = counts["n_relationships"]
    return {
        **row,
        "documents": counts["n_documents"],
        "unreadable": [(place_of(r["uri"], r["root"]), r["reason"]) for r in unreadable],
        "n_unreadable": unreadable[0]["n"] if unreadable else 0,
        "chunks": counts["n_chunks"],
        "silent_documents": [r["title"] for r in silent],
        "n_silent_documents": silent[0]["n"] if silent else 0,
        "silent_languages": list(silent_lines(index.rows(SILENT_LANGUAGES))),
        "told": row["told"] / edges if edges else None,
    }


def _making(index: Release, facts: Rows) -> Rows:
    counts = {
        name: {row["name"]: row["n"] for row in index.rows(f"{query} ORDER BY n DESC, name")}
        for name, query in _MADE_BY.items()
    }
    models = index.rows("SELECT DISTINCT model FROM llm_calls ORDER BY model")
    return {
        **facts,
        **counts,
        "models": [row["model"] for row in models],
        "embedder": index.facts.embedder,
    }


def _changes(index: Release) -> tuple[str | None, list[Rows]]:
    """Return the release before and how it differs; nothing where there is none to compare."""
    try:
        diff = diff_releases(index.home, after=index.facts.id, most=8)
    except GraphRAGError:
        return None, []
    return diff.before, [
        {
            **vars(t),
            "what": _CHANGED.get(name, name),
            "names": {change: names for change, names in t.first.items() if names},
        }
        for name, t in diff.tables.items()
    ]
