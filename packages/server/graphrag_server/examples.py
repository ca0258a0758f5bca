"""Questions to begin with, made of what a caller may see of a release: names and how they meet."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

MOST = 3
THEMES = "What are the main themes of these documents?"

_MOST_KEPT = 64
_MOST_LOOKED_AT = 2000
# What reads as a name, in a script with capitals or one without; markup and code do not.
_NAME = r"[\p{Lu}\p{Lo}][\p{L}\p{M}\p{Nd} ''’&.-]{0,38}[\p{L}\p{M}\p{Nd}]"
_READS = f"regexp_full_match(title, '{_NAME}') AND regexp_matches(title, '[\\p{{Ll}}\\p{{Lo}}]')"
_NAMED = f"""
SELECT title FROM entities
WHERE {_READS} AND type NOT IN ('DATE', 'CONCEPT') ORDER BY degree DESC, title LIMIT $most
"""
_PAIRS = f"""
WITH named AS (
    SELECT id, title FROM entities WHERE {_READS} AND type NOT IN ('DATE', 'CONCEPT')
),
strongest AS (
    SELECT source_id, target_id, weight, id FROM relationships
    ORDER BY weight DESC, combined_degree DESC, id LIMIT {_MOST_LOOKED_AT}
)
SELECT s.title AS source, t.title AS target
FROM strongest JOIN named s ON s.id = source_id JOIN named t ON t.id = target_id
WHERE NOT contains(lower(s.title), lower(t.title)) AND NOT contains(lower(t.title), lower(s.title))
ORDER BY $taken IN (s.title, t.title), weight DESC, strongest.id LIMIT 1
"""
_TITLED = f"""
SELECT title FROM documents WHERE {_READS} ORDER BY n_chars DESC, title LIMIT $most
"""


class Examples:
    """The questions of each release, kept for callers who may see the same of it."""

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[str, frozenset[str] | None], tuple[str, list[str]]] = (
            OrderedDict()
        )

    def of(self, index: Release, collection: str, labels: frozenset[str] | None) -> dict[str, Any]:
        """Return at most three questions, and the release that they are made of."""
        release = index.facts.id
        made = self._made.get((collection, labels))
        if made is None or made[0] != release:
            made = self._made[collection, labels] = release, questions_on(index)
            while len(self._made) > _MOST_KEPT:
                self._made.popitem(last=False)
        return {"questions": made[1], "release": release}


def questions_on(index: Release) -> list[str]:
    """Return at most three questions that a release can answer, in plain English.

    They ask for the best connected name, for the strongest relationship of two others, and for the
    themes; where there is no such thing, for further names and for documents by their titles.
    """
    names = [row["title"] for row in index.rows(_NAMED, most=MOST)]
    pairs = index.rows(_PAIRS, taken=names[0]) if names else []
    questions = [
        *(f"What do the documents say about {name}?" for name in names[:1]),
        *(f"How are {pair['source']} and {pair['target']} connected?" for pair in pairs),
        *([THEMES] if index.facts.counts["n_reports"] else []),
        *(f"What do the documents say about {name}?" for name in names[1:]),
    ]
    if len(questions) < MOST:
        titles = index.rows(_TITLED, most=MOST)
        questions += [f"What is {row['title']} about?" for row in titles]
    return list(dict.fromkeys(questions))[:MOST]
