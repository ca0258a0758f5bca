"""Groundedness: are the findings of reports borne out by the text that they cite?

A finding is grounded if it cites something that exists, and at least half of its content words
(search terms, so that case, plural and stop words do not count) stand in the cited text. An
extractive finding cites the chunk that it stands in; a model's cites records by their numbers, as
``[Data: Entities (5); Relationships (2)]``: what the index says of these, and the text of a source,
is the cited text. It is a test of words, which a false statement in the right words passes: a
measure of the index over time rather than a proof of any finding.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.core.text import terms
from graphrag_pipeline.reports.references import check_references

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

BORNE_OUT = 0.5
"""So much of a finding's content words stands in what it cites, or it is not grounded."""
MOST = 2000
"""Of more findings so many are drawn, always the same: the share is then within 2 %."""

_FINDINGS = """
SELECT coalesce(nullif(finding.explanation, ''), finding.summary) AS said, finding.chunk_id
FROM (SELECT id, unnest(findings) AS finding, generate_subscripts(findings, 1) AS place
      FROM community_reports)
ORDER BY md5(id || ' ' || place) LIMIT $most
"""
_CHUNKS = "SELECT id, text FROM chunks"
_RECORDS = {
    "Entities": "SELECT human_readable_id AS n, title || ' ' || description AS text FROM entities",
    "Relationships": """
        SELECT human_readable_id AS n, source || ' ' || target || ' ' || description AS text
        FROM relationships""",
    "Claims": """
        SELECT human_readable_id AS n, concat_ws(' ', subject, object, description) AS text
        FROM claims""",
    "Sources": "SELECT human_readable_id AS n, text FROM chunks",
    "Reports": """
        SELECT c.human_readable_id AS n, r.full_content AS text
        FROM community_reports r JOIN communities c ON c.id = r.community_id""",
}
_CITED = """
SELECT n, text FROM ({}) SEMI JOIN (SELECT unnest($numbers::JSON::BIGINT[]) AS n) USING (n)
"""
_NUMBER = re.compile(r"[0-9]{1,15}")


def groundedness(release: Release, most: int = MOST) -> float | None:
    """Return the share of findings that are grounded, None where there is no finding."""
    findings = release.rows(_FINDINGS, most=most)
    if not findings:
        return None
    texts = release.records(_CHUNKS, {f["chunk_id"] for f in findings if f["chunk_id"]})
    without = [finding["said"] for finding in findings if not finding["chunk_id"]]
    records = _records(release, without)
    grounded = sum(
        _is_said(f["said"], texts[f["chunk_id"]]["text"] if f["chunk_id"] in texts else "")
        if f["chunk_id"]
        else _is_borne_out(*_statement_and_sources(f["said"], records))
        for f in findings
    )
    return grounded / len(findings)


Records = Mapping[str, Mapping[int, frozenset[str]]]
"""The terms of each record, by kind and number."""


def _is_said(statement: str, text: str) -> bool:
    """Whether a text bears a statement out: one that stands in it word for word, without a look."""
    if statement in text:
        return bool(terms(statement))
    return _is_borne_out(statement, [frozenset(terms(text))])


def _is_borne_out(statement: str, sources: Iterable[frozenset[str]]) -> bool:
    words = set(terms(statement))
    stems = frozenset[str]().union(*sources)
    return bool(words and stems) and len(words & stems) >= BORNE_OUT * len(words)


def _statement_and_sources(answer: str, records: Records) -> tuple[str, list[frozenset[str]]]:
    """Return a finding without its references, and the terms of what they lead to."""
    references = check_references(answer, {kind: of.keys() for kind, of in records.items()}).cited
    return check_references(answer, {}).text, [records[kind][number] for kind, number in references]


def _records(release: Release, answers: Sequence[str]) -> Records:
    """Return the records that texts may refer to: those with a number that stands in them."""
    numbers: list[Any] = sorted({int(n) for text in answers for n in _NUMBER.findall(text)})
    if not numbers:
        return {}
    return {
        kind: {
            row["n"]: frozenset(terms(row["text"]))
            for row in release.rows(_CITED.format(rows), numbers=numbers)
        }
        for kind, rows in _RECORDS.items()
    }
