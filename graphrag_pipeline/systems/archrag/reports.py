"""Reports on attributed communities, by those who write the reports on communities.

A report is written from what the paper on GraphRAG says (3.1.5, :mod:`~graphrag_pipeline.
report_contexts`): relationships within the community by combined degree; where they do not fit,
reports on members in their stead. Entities that no relationship joins to the others follow.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import polars as pl

from graphrag_pipeline.core.settings import Settings, fingerprint
from graphrag_pipeline.reports.contexts import Context
from graphrag_pipeline.reports.evidence import read_evidence
from graphrag_pipeline.reports.inputs import (
    Elements,
    Level,
    level_contexts,
    read_elements,
    with_places,
)
from graphrag_pipeline.reports.levels import (
    FAILURES,
    REPORTS,
    failed_before,
    failure_rows,
    report_rows,
)
from graphrag_pipeline.reports.model_writer import report_writer
from graphrag_pipeline.store.frames import drop_rows, put_rows
from graphrag_pipeline.store.hierarchy import Hierarchy
from graphrag_pipeline.store.index_store import IndexStore, assign_identifiers

_KIND = "attributed_community"
ATTRIBUTED_COMMUNITIES = Hierarchy("attributed", ("attributed_communities", "attributed_members"))
_DRAFT = replace(ATTRIBUTED_COMMUNITIES, tables="draft_")
_DESCRIBED = """
WITH of_source AS MATERIALIZED (
    SELECT s.community_id, r.target_id FROM relationships r
    JOIN own s ON s.entity_id = r.source_id),
inside AS (
    SELECT s.community_id, count(*) AS n_relationships FROM of_source s
    JOIN own t ON t.entity_id = s.target_id AND t.community_id = s.community_id GROUP BY ALL),
described AS (
    SELECT community_id, count(*) AS size,
           list(title ORDER BY type IN ('CONCEPT', 'DATE'), degree DESC, frequency DESC, title)[:3]
               AS titles
    FROM own JOIN entities e ON e.id = entity_id GROUP BY ALL)
SELECT i.id, human_readable_id, $level::INTEGER AS level, array_to_string(titles, ', ') AS title,
       size, coalesce(n_relationships, 0) AS n_relationships
FROM described d LEFT JOIN inside USING (community_id)
JOIN identifiers i ON i.kind = $kind AND i.id = d.community_id ORDER BY i.id
"""
_ENTITIES = pl.Schema({"community_id": pl.String, "entity_id": pl.String})
_DESCRIPTIONS = pl.Schema(
    {
        "id": pl.String,
        "human_readable_id": pl.Int64,
        "level": pl.Int32,
        "title": pl.String,
        "size": pl.Int64,
        "n_relationships": pl.Int64,
    }
)


def reports_version(settings: Settings) -> str:
    """Return what decides a report besides the graph."""
    return fingerprint(report_writer(settings).version, settings.reports.max_context_tokens)


class ReportDraft:
    """Attributed communities as they are found, level by level, with the reports on them.

    ``communities`` has (id, human_readable_id, level, title, size, n_relationships), ``entities``
    (community_id, entity_id), ``reports`` the columns of ``REPORTS``, ``failures`` those of
    ``FAILURES``. ``kept`` are the communities whose report stays as it was.
    """

    def __init__(self, con: duckdb.DuckDBPyConnection, settings: Settings) -> None:
        self.communities = pl.DataFrame(schema=_DESCRIPTIONS)
        self.entities = pl.DataFrame(schema=_ENTITIES)
        self.reports = pl.DataFrame(schema=REPORTS)
        self.failures = pl.DataFrame(schema=FAILURES)
        self.kept: set[str] = set()
        self._writer = report_writer(settings)
        self._budget = settings.reports.max_context_tokens
        self._version = reports_version(settings)
        self._elements = read_elements(con, self._writer)
        before = con.sql(ATTRIBUTED_COMMUNITIES.sql("FROM {reports}"))
        self._before = before.pl().select(list(REPORTS))

    def add(
        self, store: IndexStore, level: int, members: pl.DataFrame, entities: pl.DataFrame
    ) -> None:
        """Take in the communities of the next level and bring their reports up to date.

        ``members`` has (community_id, member_id), only of communities that are new at this level;
        ``entities`` (node_id, entity_id) what is in each member.
        """
        within = members.join(entities, left_on="member_id", right_on="node_id")
        own = within.select("community_id", "entity_id")
        self.communities = pl.concat([self.communities, _described(store, level, own)])
        self.entities = pl.concat([self.entities, own])
        if level == 1:
            self._elements = _with_those_alone(self._elements, own)
        held = self._level(level, members, within)
        contexts = level_contexts(self._elements, held, self._budget, self._version)
        if not self._writer.is_model:
            with _DraftStore(store.path, self._tables()).read() as con:
                contexts = with_places(contexts, read_evidence(con, contexts, _DRAFT))
        before = dict(self._before.select("community_id", "context_hash").iter_rows())
        changed = [each for each in contexts if before.get(each.community_id) != each.hash]
        stay = {each.community_id for each in contexts} - {c.community_id for c in changed}
        self.kept |= stay
        unchanged = self._before.filter(pl.col("community_id").is_in(sorted(stay)))
        self.reports = pl.concat([self.reports, unchanged])
        self._write(store, level, changed)

    def _level(self, level: int, members: pl.DataFrame, within: pl.DataFrame) -> Level:
        """Return the level as it is known where contexts are made: deeper has a higher number."""
        number = -level
        own = within.select(
            "community_id",
            "entity_id",
            level=pl.lit(number),
            parent_id=pl.lit(None, pl.String),
        )
        below = within.select(
            "entity_id",
            community_id="member_id",
            level=pl.lit(number + 1),
            parent_id="community_id",
        ).select(own.columns)
        several = members.group_by("community_id").len().filter(pl.col("len") > 1)
        held = pl.concat([own, below]) if level > 1 else own
        reports = self.reports.join(members, left_on="community_id", right_on="member_id")
        reports = reports.with_columns(level=pl.lit(number + 1), support=pl.lit(1, pl.Int64))
        return Level(number, sorted(several["community_id"]), held, reports)

    def _write(self, store: IndexStore, level: int, contexts: Sequence[Context]) -> None:
        with store.read() as con:
            failed = failed_before(con, ATTRIBUTED_COMMUNITIES, contexts)
        written = self._writer.write(_DraftStore(store.path, self._tables()), contexts, _DRAFT)
        rows = report_rows(contexts, written.reports, level, self._writer.name)
        self.reports = pl.concat([self.reports, rows])
        failures = failure_rows(contexts, written.failures, level, failed)
        self.failures = pl.concat([self.failures, failures])

    def _tables(self) -> Mapping[str, pl.DataFrame]:
        levels = self.communities.select(community_id="id", level="level")
        frames = {
            "communities": self.communities,
            "members": self.entities.join(levels, on="community_id"),
            "reports": self.reports,
        }
        return {f"{_DRAFT.tables}{name}": _DRAFT.own(rows) for name, rows in frames.items()}


class _DraftStore(IndexStore):
    """The index with the communities of a draft beside it, which a report writer reads."""

    def __init__(self, path: Path, tables: Mapping[str, pl.DataFrame]) -> None:
        super().__init__(path)
        self._tables = tables

    @contextlib.contextmanager
    def read(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a connection for reading, on which the draft has tables, too."""
        with super().read() as con:
            for name, rows in self._tables.items():
                put_rows(con, name, rows)
            yield con


def _described(store: IndexStore, level: int, own: pl.DataFrame) -> pl.DataFrame:
    """Return what is known of communities before they have a report, each with its number."""
    with store.transaction() as con:
        put_rows(con, "own", own)
        assign_identifiers(con, _KIND, "SELECT DISTINCT community_id AS id FROM own ORDER BY id")
        found = con.execute(_DESCRIBED, {"level": level, "kind": _KIND}).pl()
        drop_rows(con, "own")
    return found.cast(dict(_DESCRIPTIONS))  # type: ignore[arg-type]


def _with_those_alone(elements: Elements, own: pl.DataFrame) -> Elements:
    """Return elements with a relationship to itself for each entity that has none within.

    So that what is only alike is told of, too, after all that is linked.
    """
    relationships = elements.relationships
    of_source = relationships.join(own, left_on="source_id", right_on="entity_id")
    inside = of_source.join(
        own, left_on=["target_id", "community_id"], right_on=["entity_id", "community_id"]
    )
    joined = pl.concat([inside["source_id"], inside["target_id"]])
    alone = own.filter(~pl.col("entity_id").is_in(joined.implode())).select(
        id="entity_id",
        source_id="entity_id",
        target_id="entity_id",
        combined_degree=pl.lit(0),
        n_tokens=pl.lit(0),
        text_hash=pl.lit(""),
        support=pl.lit(1),
    )
    alone = alone.cast(dict(relationships.select(alone.columns).schema))  # type: ignore[arg-type]
    return replace(elements, relationships=pl.concat([relationships.select(alone.columns), alone]))
