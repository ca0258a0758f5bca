"""Root communities as chapters: their reports, the notes in them, and what is beneath."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from graphrag_pipeline.pages.overview.model import FindingEntry, Named, Note
from graphrag_pipeline.pages.overview.passages import Notes, WantedPassages, clip
from graphrag_pipeline.query.operators.communities import Facts, about_communities
from graphrag_pipeline.query.release import Release

_FULL = 12
_OTHERS = 150
_CHILDREN = 6
_FINDINGS = 6
_NAMES = 8
_MOST_SUMMARY = 1_200
_MOST_FINDING = 1_500
_MOST_BRIEF = 420
_MOST_TITLE = 160

_ROOTS = """
SELECT c.id, c.human_readable_id AS number, coalesce(r.title, c.title) AS title, c.size,
       c.n_relationships, r.rating, r.rating_explanation, r.summary, r.findings, r.writer,
       count(*) OVER () AS n_roots
FROM communities c LEFT JOIN community_reports r ON r.community_id = c.id
WHERE c.level = 0 AND c.size > 1
ORDER BY (r.id IS NULL), c.size DESC, r.rating DESC, c.human_readable_id LIMIT $most
"""
_BENEATH = """
SELECT * FROM (
    SELECT c.parent_id, c.id, c.human_readable_id AS number, coalesce(r.title, c.title) AS title,
           c.size, c.n_relationships, r.rating, r.rating_explanation, r.summary, r.writer,
           count(*) OVER (PARTITION BY c.parent_id) AS n_sisters,
           row_number() OVER (PARTITION BY c.parent_id
               ORDER BY c.size DESC, r.rating DESC, c.human_readable_id) AS place
    FROM communities c LEFT JOIN community_reports r ON r.community_id = c.id
    SEMI JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS parent_id) wanted
        ON wanted.parent_id = c.parent_id
    WHERE c.size > 1)
WHERE place <= $most ORDER BY parent_id, place
"""
_SINGLETONS = "SELECT count(*) AS n FROM communities WHERE level = 0 AND size = 1"


def read_chapters(index: Release, anchors: Mapping[str, str]) -> dict[str, Any]:
    """Read the root communities and their reports; ``anchors`` are of entities on the page.

    The largest are ``chapters`` in full, ``others`` in brief; of the rest only the number is told.
    """
    roots = index.rows(_ROOTS, most=_FULL + _OTHERS)
    reported = [row for row in roots if row["summary"]]
    # Two names alone are a theme of their own only where there are hardly others.
    full = [r for n, r in enumerate(reported[:_FULL]) if n < _CHILDREN or r["size"] > 2]
    ids = [row["id"] for row in full]
    beneath: dict[str, list[dict[str, Any]]] = {}
    for row in index.rows(_BENEATH, ids=ids, most=_CHILDREN):
        beneath.setdefault(row["parent_id"], []).append(row)
    about = about_communities(index, ids, _NAMES)
    notes = Notes(index, anchors)
    for row in full:
        _announce(notes, row, beneath.get(row["id"], []))
    notes.resolve()
    total = roots[0]["n_roots"] if roots else 0
    return {
        "chapters": [
            _chapter(
                row,
                beneath.get(row["id"], []),
                about.get(row["id"], Facts(0, 0, ())),
                notes,
                anchors,
            )
            for row in full
        ],
        "others": [_facts(row) for row in roots if row["id"] not in set(ids)],
        "n_more_others": total - len(roots),
        "n_themes": total,
        "singletons": index.rows(_SINGLETONS)[0]["n"],
    }


def _announce(notes: Notes, row: dict[str, Any], beneath: Sequence[dict[str, Any]]) -> None:
    for text in (_summary(row), *(_brief_summary(child) for child in beneath)):
        notes.announce(text)
    for text, span in _told(row):
        notes.announce(text, span)


def _chapter(
    row: dict[str, Any],
    beneath: Sequence[dict[str, Any]],
    about: Facts,
    notes: Notes,
    anchors: Mapping[str, str],
) -> dict[str, Any]:
    summary, summary_notes = notes.cut(_summary(row))
    findings = []
    for finding, (text, span) in zip(row["findings"], _told(row), strict=False):
        pieces, own = ([text, note := notes.at(span)], [note]) if span else notes.cut(text)
        findings.append(FindingEntry(_heading(finding, span), pieces, span is not None))
        summary_notes += own
    children = [_child(child, notes, summary_notes) for child in beneath]
    return {
        **_facts(row),
        "summary": summary,
        "n_documents": about.n_documents,
        "findings": findings,
        "notes": summary_notes,
        "children": children,
        "n_more_children": beneath[0]["n_sisters"] - len(beneath) if beneath else 0,
        "top_entities": [Named(title, anchors.get(entity, "")) for entity, title in about.names],
    }


def _child(row: dict[str, Any], notes: Notes, notes_of_chapter: list[Note]) -> dict[str, Any]:
    summary, own = notes.cut(_brief_summary(row))
    notes_of_chapter += own
    return {**_facts(row), "summary": summary}


def _facts(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **row,
        "title": clip(row["title"], _MOST_TITLE),
        "rating_explanation": clip(row["rating_explanation"] or "", _MOST_BRIEF),
    }


def _summary(row: Mapping[str, Any]) -> str:
    return clip(_told_of(row), _MOST_SUMMARY)


def _brief_summary(row: Mapping[str, Any]) -> str:
    return clip(_told_of(row), _MOST_BRIEF)


def _told_of(row: Mapping[str, Any]) -> str:
    """Return a summary; of an extractive one without its first sentence, which only counts."""
    summary = row["summary"] or ""
    if row["writer"] != "extractive":
        return summary
    return summary.partition(f" around {row['title']}.")[2].strip()


def _told(row: Mapping[str, Any]) -> Iterator[tuple[str, WantedPassages | None]]:
    """Yield the text of each finding, and for an extractive one the place it is from."""
    for finding in row["findings"][:_FINDINGS]:
        text, chunk = finding["explanation"], finding["chunk_id"]
        if chunk and finding["start_char"] is not None:
            span = WantedPassages(chunk, finding["start_char"], finding["end_char"], text)
            yield clip(text, _MOST_FINDING), span
        else:
            yield clip(text, _MOST_FINDING), None


def _heading(finding: Mapping[str, Any], span: WantedPassages | None) -> str:
    """Return what a finding is called; a quote under no name of its own is called nothing."""
    heading = finding["summary"]
    return (
        "" if span and (heading == "Evidence" or heading.islower()) else clip(heading, _MOST_TITLE)
    )
