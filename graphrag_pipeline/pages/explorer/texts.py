"""Choice of texts for a page of limited size: communities and entities by rank, whole ones only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from graphrag_pipeline.pages.explorer.passages import PASSAGES

if TYPE_CHECKING:
    import duckdb

DESCRIPTION, SENTENCE, SUMMARY, EXPLANATION = 1500, 400, 2000, 1500
"""Most characters of the text of an entity, a relationship, a report and a finding."""

SHORTENED = """
CREATE OR REPLACE TEMP MACRO shortened(words, most) AS
CASE WHEN length(words) > most THEN rtrim(left(words, most - 1)) || '…' ELSE words END
"""

# Passages share much of their text where many are told.
_PASSAGE_BYTES = 220
# The rank of an entity is its place in its root community, as a share of it: so each community has
# the same share of its entities told. A relationship has the rank of the end where it stands first,
# times its place there.
_COSTS = f"""
CREATE OR REPLACE TEMP TABLE text_costs AS
WITH strongest AS (
    SELECT r.n, r.id, r.sentence, least(
        s.rank * row_number() OVER (PARTITION BY r.source ORDER BY r.n),
        t.rank * row_number() OVER (PARTITION BY r.target ORDER BY r.n)) AS rank
    FROM edge r JOIN node s ON s.n = r.source JOIN node t ON t.n = r.target
)
SELECT 'entities' AS kind, n, rank, least(strlen(description), {DESCRIPTION})
       + {_PASSAGE_BYTES} * least(frequency, {PASSAGES}) AS cost
FROM node JOIN entities USING (id)
UNION ALL
SELECT 'communities', k.n, -c.size, least(strlen(r.summary), {SUMMARY})
       + strlen(r.rating_explanation) + coalesce(list_sum(list_transform(r.findings, f ->
           strlen(f.summary) + least(strlen(f.explanation), {EXPLANATION}))), 0)
FROM community k JOIN communities c USING (id) JOIN community_reports r ON r.community_id = c.id
UNION ALL
SELECT 'relationships', n, rank, CASE
    WHEN row_number() OVER (PARTITION BY sentence ORDER BY rank, n) > 1 THEN 0
    ELSE least(strlen(description), {SENTENCE}) END
FROM strongest JOIN relationships USING (id)
"""
_KINDS = ("entities", "communities", "relationships")
_TOTALS = "SELECT kind, sum(cost)::DOUBLE FROM text_costs GROUP BY ALL"
_TOLD = """
CREATE OR REPLACE TEMP TABLE told_{kind} AS
SELECT n FROM (
    SELECT n, sum(cost) OVER (ORDER BY rank, n ROWS UNBOUNDED PRECEDING) AS reached
    FROM text_costs WHERE kind = '{kind}'
) WHERE reached <= $share
"""


def choose_texts(con: duckdb.DuckDBPyConnection, n_bytes: float) -> None:
    """Make the tables ``told_entities``, ``told_communities`` and ``told_relationships`` (n).

    ``con`` has the numbered ``node``, ``edge`` and ``community``. The texts of what is told take
    ``n_bytes`` at most; where all fit, all is told.
    """
    con.execute(_COSTS)
    wanted: dict[str, float] = dict.fromkeys(_KINDS, 0.0)
    wanted |= dict(con.execute(_TOTALS).fetchall())
    for kind, share in shared(wanted, n_bytes).items():
        con.execute(_TOLD.format(kind=kind), {"share": share})


def shared(wanted: Mapping[str, float], available: float) -> dict[str, float]:
    """Return how much each gets of what is available: what one does not need goes to the others."""
    shares: dict[str, float] = {}
    by_need = sorted(wanted, key=lambda name: (wanted[name], name))
    for place, name in enumerate(by_need):
        shares[name] = min(wanted[name], available / (len(by_need) - place))
        available -= shares[name]
    return shares
