"""Community reports: one level at a time, deepest first, and only those whose context changed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import duckdb
import polars as pl

from graphrag_pipeline.core.identity import make_id
from graphrag_pipeline.core.settings import ReportSettings, fingerprint
from graphrag_pipeline.core.tokens import DEFAULT_ENCODING, count_tokens
from graphrag_pipeline.reports.contexts import Context
from graphrag_pipeline.reports.digests import (
    CHANGED,
    community_digests,
    find_changed,
    forget_removed,
    graph_digest,
    remember_compared,
    reports_digest,
)
from graphrag_pipeline.reports.evidence import read_evidence, read_sentences
from graphrag_pipeline.reports.extractive import ExtractiveWriter
from graphrag_pipeline.reports.inputs import (
    MIN_SIZE,
    Elements,
    Level,
    Slice,
    level_slices,
    read_elements,
    read_level,
    read_roots,
    with_places,
)
from graphrag_pipeline.reports.text import ReportText, ReportWriter, WrittenReports
from graphrag_pipeline.store.frames import drop_rows, put_rows, value_of
from graphrag_pipeline.store.hierarchy import GRAPH, Hierarchy
from graphrag_pipeline.store.index_store import IndexStore, insert

REPORTS_VERSION = "1"
IMPORTED = "import"

_FINDING = pl.Struct(
    {
        "summary": pl.String,
        "explanation": pl.String,
        "chunk_id": pl.String,
        "start_char": pl.Int64,
        "end_char": pl.Int64,
    }
)
REPORTS = pl.Schema(
    {
        "id": pl.String,
        "community_id": pl.String,
        "level": pl.Int32,
        "title": pl.String,
        "summary": pl.String,
        "rating": pl.Float64,
        "rating_explanation": pl.String,
        "findings": pl.List(_FINDING),
        "full_content": pl.String,
        "n_tokens": pl.Int64,
        "context_hash": pl.String,
        "context_tokens": pl.Int64,
        "coverage": pl.Float64,
        "writer": pl.String,
    }
)
FAILURES = pl.Schema(
    {
        "community_id": pl.String,
        "level": pl.Int32,
        "context_hash": pl.String,
        "error": pl.String,
        "attempts": pl.Int32,
    }
)

# Of no more relationships the sentences are read once for all levels: to look for them takes as
# long as the index is large. Those of more would fill the memory.
_FEW_RELATIONSHIPS = 25_000
_STATE = "reports_state:"
_STATES = "SELECT key, value FROM meta WHERE starts_with(key, ?)"
# How much of what a report was written from is not what it would be written from now. An element
# that has gained some chunks to the many it rests on has changed by that share only.
_OUTDATED = """
WITH compared AS (
    SELECT coalesce(n.community_id, w.community_id) AS community_id,
           coalesce(n.n_tokens, w.n_tokens) AS n_tokens,
           coalesce(n.text_hash = w.text_hash, false) AS same,
           CASE WHEN same THEN 0 WHEN n.support > w.support THEN 1 - w.support / n.support ELSE 1
           END AS change,
           w.element_id IN (FROM staging.lost_evidence) AS lost
    FROM now_told n FULL JOIN (
        SELECT e.* FROM report_elements e SEMI JOIN now_told USING (community_id)) w
    ON w.community_id = n.community_id AND w.element_id = n.element_id)
SELECT community_id, coalesce(sum(n_tokens * change) / sum(n_tokens), 0) AS share
FROM compared SEMI JOIN (
    SELECT community_id FROM community_reports
    WHERE starts_with(context_hash, $version || ':') OR writer = $imported) USING (community_id)
GROUP BY community_id HAVING share <= $most AND NOT bool_or(lost AND NOT same)
"""
# A list of strings takes DuckDB a hundred times as long to take over as their JSON.
_OF_THESE = "community_id IN (SELECT unnest($ids::JSON::VARCHAR[]))"
_ORPHANED = """
level >= $first AND ($last IS NULL OR level <= $last) AND community_id NOT IN (
    SELECT id FROM {communities} WHERE size >= $min_size OR writer = $imported)
"""
_COMMUNITIES_CHANGED = f"SELECT community_id AS id FROM {CHANGED}"


@dataclass(frozen=True)
class LevelReports:
    """The result of one update: numbers of reports, of one level or of it and all deeper ones.

    ``written`` were written now, ``reused`` stayed, ``removed`` were those of communities that are
    gone, ``failed`` could not be written and are tried again. Of those ``reused``, ``outdated``
    stayed although a little of what they were written from has changed.
    """

    written: int
    reused: int
    removed: int
    failed: int = 0
    outdated: int = 0


def update_reports(
    store: IndexStore,
    settings: ReportSettings,
    level: int,
    *,
    and_deeper: bool,
    writer: ReportWriter,
    hierarchy: Hierarchy = GRAPH,
) -> LevelReports:
    """Bring the reports of a level (and, on request, of all deeper ones) up to date.

    Deeper levels must have been done before: a report may stand on those of its sub-communities.
    Raises what the writer raises; the levels finished until then stay.
    """
    with store.read() as con:
        deepest = _deepest(con, hierarchy)
        last = max(deepest, level) if and_deeper else level
        graph = _graph(store, con, writer, hierarchy)
        state = _state(con, hierarchy, settings, level, last, writer, graph.digest)
        failed = _count(con, hierarchy, "failures", level, last)
        if hierarchy.get_state(con, f"{_STATE}{level}") == state and not failed:
            return LevelReports(0, _count(con, hierarchy, "reports", level, last), 0)
    done = [
        _update_level(store, hierarchy, settings, each, writer, graph)
        for each in range(last, level - 1, -1)
    ]
    graph.n_changes += 1
    with store.transaction() as con:
        removed = _remove_orphans(con, hierarchy, level, None if and_deeper else level)
        hierarchy.set_state(con, f"{_STATE}{level}", state)
        failed = _count(con, hierarchy, "failures", level, last)
        is_known = hierarchy.has_history and _has_lost_evidence(con)
        if is_known and reports_current(con, settings, writer):
            con.execute("DELETE FROM staging.lost_evidence")
    return LevelReports(
        sum(d.written for d in done),
        sum(d.reused for d in done),
        removed,
        failed,
        sum(d.outdated for d in done),
    )


def reports_current(
    con: duckdb.DuckDBPyConnection,
    settings: ReportSettings,
    writer: ReportWriter,
    hierarchy: Hierarchy = GRAPH,
) -> bool:
    """Whether the reports of every level were written for the communities as they are now."""
    states = con.execute(_STATES, [f"{hierarchy.name}:{_STATE}"]).fetchall()
    if not states:
        return False
    graph = graph_digest(con, writer, hierarchy)
    done: set[int] = set()
    for key, value in states:
        first, last = int(key.rsplit(":")[-1]), int(value.split(":")[2])
        if value == _state(con, hierarchy, settings, first, last, writer, graph):
            done |= set(range(first, last + 1))
    return done >= set(range(_deepest(con, hierarchy) + 1))


def outdated_reports(
    con: duckdb.DuckDBPyConnection, settings: ReportSettings, writer: ReportWriter
) -> Mapping[str, int]:
    """Return the communities whose report an update would write, every level.

    Each has the number of tokens of the context that it would be written from.
    """
    outdated: dict[str, int] = {}
    graph = _Graph("", writer, GRAPH)
    version = _version(settings, writer)
    for level in range(_deepest(con, GRAPH) + 1):
        find_changed(con, GRAPH, level, graph.communities(con), version)
        held = read_level(con, level, GRAPH, _COMMUNITIES_CHANGED)
        for part in _slices(graph.elements(con, held, version), held, settings, writer):
            part = _cited(con, part, writer, graph)
            changed = _changed(part, held)
            kept = _tolerated(con, part.elements_of(changed), settings, writer)
            outdated |= {c.community_id: c.n_tokens for c in changed if c.community_id not in kept}
    return outdated


def adopt_reports(
    con: duckdb.DuckDBPyConnection, settings: ReportSettings, level: int, texts: pl.DataFrame
) -> int:
    """Keep reports written elsewhere for communities of a level, in place of any that are there.

    ``texts`` has the columns of ``REPORTS`` that a writer makes: community_id, title, summary,
    rating, rating_explanation, findings, full_content. Such a report stays until something in its
    community changes, whatever the settings: its hash is of all that the community holds. Call it
    for the deepest level first, in a transaction. Returns the number of reports.
    """
    writer = ExtractiveWriter(settings)
    ids = texts["community_id"].to_list()
    put_rows(con, "adopted", texts.select(id="community_id"))
    held = read_level(con, level, communities="SELECT id FROM adopted")
    drop_rows(con, "adopted")
    elements = read_elements(con, writer, members=held.own_members)
    slices = list(_slices(elements, held, settings, writer))
    contexts = _context_frame([context for part in slices for context in part.contexts])
    hashes: dict[str, str] = {}
    for part in slices:
        hashes |= part.whole_hashes([context.community_id for context in part.contexts])
    reports = texts.join(contexts, "community_id", "left", maintain_order="left").with_columns(
        pl.col("context_tokens").fill_null(0),
        pl.col("coverage").fill_null(1.0),
        id=pl.Series([make_id("report", community) for community in ids], dtype=pl.String),
        level=pl.lit(level, pl.Int32),
        n_tokens=pl.Series(count_tokens(texts["full_content"].to_list()), dtype=pl.Int64),
        context_hash=pl.Series([hashes[community] for community in ids], dtype=pl.String),
        writer=pl.lit(IMPORTED),
    )
    GRAPH.delete(con, "reports", _OF_THESE, {"ids": json.dumps(ids)})
    GRAPH.insert(con, "reports", reports.select(list(REPORTS)))
    con.execute(f"DELETE FROM report_elements WHERE {_OF_THESE}", {"ids": json.dumps(ids)})
    for part in slices:
        insert(con, "report_elements", part.elements)
    return len(reports)


def _update_level(
    store: IndexStore,
    hierarchy: Hierarchy,
    settings: ReportSettings,
    level: int,
    writer: ReportWriter,
    graph: _Graph,
) -> LevelReports:
    with store.read() as con:
        communities = graph.communities(con)
        n_all = len(communities.filter(pl.col("level") == level))
        version = _version(settings, writer)
        digests = find_changed(con, hierarchy, level, communities, version)
        if digests.is_empty():
            return LevelReports(0, n_all, 0)
        held = read_level(con, level, hierarchy, _COMMUNITIES_CHANGED)
        elements = graph.elements(con, held, version)
    n_written = n_todo = n_kept = 0
    for part in _slices(elements, held, settings, writer):
        with store.read() as con:
            part = _cited(con, part, writer, graph)
            changed = _changed(part, held)
            kept = _tolerated(con, part.elements_of(changed), settings, writer)
            todo = [context for context in changed if context.community_id not in kept]
            failed = failed_before(con, hierarchy, todo)
        written = WrittenReports()
        if todo:
            written = writer.write(store, todo, hierarchy, part.evidence)
        graph.n_changes += 1
        with store.transaction() as con:
            _store_reports(con, hierarchy, part, todo, written, failed, level, writer.name)
            _settle(con, hierarchy, part.contexts, digests, kept)
        n_written += len(written.reports)
        n_todo += len(todo)
        n_kept += len(kept)
    return LevelReports(n_written, n_all - n_todo, 0, outdated=n_kept)


class _Graph:
    """The graph that reports are written from, as its ``digest`` says, read once for all levels.

    ``n_changes`` is what it is for the store as long as nobody else writes: whoever writes reports
    counts that here, too, for it changes nothing of the graph.
    """

    n_changes = -1

    def __init__(self, digest: str, writer: ReportWriter, hierarchy: Hierarchy) -> None:
        self.digest = digest
        self.hierarchy = hierarchy
        self._writer = writer
        self._communities: pl.DataFrame | None = None
        self._elements: Elements | None = None
        self._sentences: pl.DataFrame | None = None

    def communities(self, con: duckdb.DuckDBPyConnection) -> pl.DataFrame:
        """Return what :func:`community_digests` does."""
        if self._communities is None:
            self._communities = community_digests(con, self.hierarchy, self._writer)
        return self._communities

    def elements(self, con: duckdb.DuckDBPyConnection, level: Level, version: str) -> Elements:
        """Return what the communities of a level are made of, and all that may be asked for then.

        That is what those are made of which are changed at any level now, and those around them.
        """
        members = level.own_members.select(id="entity_id")
        known = self._elements
        if known is None or len(members.join(known.entities, "id", "anti")):
            of_graph = self.communities(con)
            changed = [
                find_changed(con, self.hierarchy, number, of_graph, version)
                for number in of_graph["level"].unique().to_list() or [0]
            ]
            members = read_roots(con, pl.concat(changed), self.hierarchy)
            known = read_elements(con, self._writer, self.hierarchy, members)
            self._elements, self._sentences = known, None
        return known

    def sentences(self, con: duckdb.DuckDBPyConnection) -> pl.DataFrame | None:
        """Return the sentences behind all that :meth:`elements` has, None where these are many."""
        elements = self._elements
        if elements is None or len(elements.relationships) > _FEW_RELATIONSHIPS:
            return None
        if self._sentences is None:
            told = elements.relationships.select(relationship_id="id")
            self._sentences = read_sentences(con, told, self.hierarchy)
        return self._sentences


def _graph(
    store: IndexStore, con: duckdb.DuckDBPyConnection, writer: ReportWriter, hierarchy: Hierarchy
) -> _Graph:
    """Return the graph as it is now: what an earlier level has read of it, where it is the same."""
    key = f"{hierarchy.name}:{_STATE}graph:{writer.is_model}"
    known = store.recall(key)
    if isinstance(known, _Graph) and known.n_changes == store.n_changes:
        return known
    digest = graph_digest(con, writer, hierarchy)
    if not isinstance(known, _Graph) or known.digest != digest:
        known = _Graph(digest, writer, hierarchy)
        store.remember(key, known)
    known.n_changes = store.n_changes
    return known


def _slices(
    elements: Elements, held: Level, settings: ReportSettings, writer: ReportWriter
) -> Iterator[Slice]:
    version = _version(settings, writer)
    return level_slices(elements, held, settings.max_context_tokens, version)


def _cited(
    con: duckdb.DuckDBPyConnection, part: Slice, writer: ReportWriter, graph: _Graph
) -> Slice:
    if writer.is_model:
        return part
    evidence = read_evidence(con, part.contexts, graph.hierarchy, graph.sentences(con))
    return replace(part, contexts=with_places(part.contexts, evidence), evidence=evidence)


def _changed(part: Slice, held: Level) -> list[Context]:
    """Return the contexts that are not those of the reports there are."""
    reports = held.own_reports.select("community_id", "context_hash", "writer")
    imported = reports.filter(pl.col("writer") == IMPORTED)["community_id"]
    now = {context.community_id: context.hash for context in part.contexts}
    now |= part.whole_hashes([community for community in imported if community in now])
    before = dict(reports.select("community_id", "context_hash").iter_rows())
    return [c for c in part.contexts if before.get(c.community_id) != now[c.community_id]]


def _settle(
    con: duckdb.DuckDBPyConnection,
    hierarchy: Hierarchy,
    contexts: Sequence[Context],
    digests: pl.DataFrame,
    kept: Mapping[str, float],
) -> None:
    """Note what is known of the reports on these communities, now that they have been looked at.

    What a context holds of its community changes with the community, though what it tells may not.
    A report that was imported was not written from one.
    """
    shares = pl.DataFrame(
        {"community_id": list(kept), "outdated": list(kept.values())},
        schema={"community_id": pl.String, "outdated": pl.Float64},
    )
    rows = (
        _context_frame(contexts).join(digests, "community_id").join(shares, "community_id", "left")
    )
    put_rows(con, "settled", rows)
    con.execute(
        f"""UPDATE hierarchy_reports r SET outdated = coalesce(s.outdated, 0),
               context_tokens = if(s.is_written, s.context_tokens, r.context_tokens),
               coverage = if(s.is_written, s.coverage, r.coverage)
           FROM (SELECT s.*, outdated IS NULL AND writer <> '{IMPORTED}' AS is_written
                 FROM settled s JOIN (SELECT community_id, writer FROM hierarchy_reports
                                      WHERE {hierarchy.is_own}) USING (community_id)) s
           WHERE s.community_id = r.community_id AND r.{hierarchy.is_own}
               AND (r.outdated IS DISTINCT FROM coalesce(s.outdated, 0)
                    OR (s.is_written AND (r.context_tokens, r.coverage)
                        IS DISTINCT FROM (s.context_tokens, s.coverage)))"""
    )
    remember_compared(con, hierarchy, "settled")
    drop_rows(con, "settled")


def _context_frame(contexts: Iterable[Context]) -> pl.DataFrame:
    return pl.DataFrame(
        [(c.community_id, c.n_tokens, c.coverage) for c in contexts],
        schema={"community_id": pl.String, "context_tokens": pl.Int64, "coverage": pl.Float64},
        orient="row",
    )


def _tolerated(
    con: duckdb.DuckDBPyConnection,
    changed: pl.DataFrame,
    settings: ReportSettings,
    writer: ReportWriter,
) -> Mapping[str, float]:
    """Return how much has changed, by community, for reports that may stay although it has.

    ``changed`` are the elements of the contexts that are not as they were.
    None may that tells of something which has lost evidence: removal leaves no trace.
    """
    if changed.is_empty() or not (writer.is_model and settings.max_outdated):
        return {}
    put_rows(con, "now_told", changed)
    values = {
        "version": _version(settings, writer),
        "imported": IMPORTED,
        "most": settings.max_outdated,
    }
    rows = con.execute(_OUTDATED, values).fetchall()
    drop_rows(con, "now_told")
    return dict(rows)


def failed_before(
    con: duckdb.DuckDBPyConnection, hierarchy: Hierarchy, contexts: Sequence[Context]
) -> Mapping[str, int]:
    """Return how often the report on a community failed, told the same as now."""
    hashes = {context.community_id: context.hash for context in contexts}
    rows = con.execute(hierarchy.sql("SELECT community_id, context_hash, attempts FROM {failures}"))
    return {
        community: attempts
        for community, told, attempts in rows.fetchall()
        if hashes.get(community) == told
    }


def _store_reports(
    con: duckdb.DuckDBPyConnection,
    hierarchy: Hierarchy,
    part: Slice,
    contexts: Sequence[Context],
    written: WrittenReports,
    failed: Mapping[str, int],
    level: int,
    writer: str,
) -> None:
    """Put reports in place of the old ones; a failed one leaves none, for it would be outdated."""
    if not contexts:
        return
    ids = [context.community_id for context in contexts]
    for table in ("reports", "failures"):
        hierarchy.delete(con, table, _OF_THESE, {"ids": json.dumps(ids)})
    hierarchy.insert(con, "reports", report_rows(contexts, written.reports, level, writer))
    if hierarchy.has_history:
        told = [context for context in contexts if context.community_id in written.reports]
        con.execute(f"DELETE FROM report_elements WHERE {_OF_THESE}", {"ids": json.dumps(ids)})
        insert(con, "report_elements", part.elements_of(told))
    hierarchy.insert(con, "failures", failure_rows(contexts, written.failures, level, failed))


def report_rows(
    contexts: Sequence[Context], reports: Mapping[str, ReportText], level: int, writer: str
) -> pl.DataFrame:
    """Return the reports that were written from contexts of a level, as ``REPORTS`` has them."""
    told = [(each, reports[each.community_id]) for each in contexts if each.community_id in reports]
    counts = count_tokens([report.full_content for _, report in told], DEFAULT_ENCODING)
    rows = [
        {
            "id": make_id("report", context.community_id),
            "community_id": context.community_id,
            "level": level,
            "title": report.title,
            "summary": report.summary,
            "rating": report.rating,
            "rating_explanation": report.rating_explanation,
            "findings": [asdict(finding) for finding in report.findings],
            "full_content": report.full_content,
            "n_tokens": n_tokens,
            "context_hash": context.hash,
            "context_tokens": context.n_tokens,
            "coverage": context.coverage,
            "writer": writer,
        }
        for (context, report), n_tokens in zip(told, counts, strict=True)
    ]
    return pl.DataFrame(rows, schema=REPORTS)


def failure_rows(
    contexts: Sequence[Context], failures: Mapping[str, str], level: int, before: Mapping[str, int]
) -> pl.DataFrame:
    """Return why reports could not be written, as ``FAILURES`` has it, with what was ``before``."""
    hashes = {context.community_id: context.hash for context in contexts}
    rows = [
        (community, level, hashes[community], why, before.get(community, 0) + 1)
        for community, why in failures.items()
    ]
    return pl.DataFrame(rows, schema=FAILURES, orient="row")


def _remove_orphans(
    con: duckdb.DuckDBPyConnection, hierarchy: Hierarchy, first: int, last: int | None
) -> int:
    """Delete the reports, at these levels, of communities that are no more."""
    values = {"first": first, "last": last, "min_size": MIN_SIZE, "imported": IMPORTED}
    removed = hierarchy.delete(con, "reports", _ORPHANED, values)
    if hierarchy.has_history:
        con.execute(
            """DELETE FROM report_elements
               WHERE community_id NOT IN (SELECT community_id FROM community_reports)"""
        )
    hierarchy.delete(con, "failures", "community_id NOT IN (SELECT id FROM {communities})", {})
    forget_removed(con, hierarchy)
    return removed


def _version(settings: ReportSettings, writer: ReportWriter) -> str:
    return fingerprint(REPORTS_VERSION, settings.max_context_tokens, writer.version)


def _state(
    con: duckdb.DuckDBPyConnection,
    hierarchy: Hierarchy,
    settings: ReportSettings,
    first: int,
    last: int,
    writer: ReportWriter,
    graph: str,
) -> str:
    """Return all that the reports of some levels depend on: of the graph, it is a digest."""
    below = reports_digest(con, last + 1, hierarchy)
    return f"{_version(settings, writer)}:{first}:{last}:{graph}:{below}"


def _has_lost_evidence(con: duckdb.DuckDBPyConnection) -> bool:
    return con.execute("SELECT 1 FROM staging.lost_evidence LIMIT 1").fetchone() is not None


def _deepest(con: duckdb.DuckDBPyConnection, hierarchy: Hierarchy) -> int:
    query = hierarchy.sql("SELECT coalesce(max(level), 0) FROM {communities}")
    return value_of(con, query)


def _count(
    con: duckdb.DuckDBPyConnection, hierarchy: Hierarchy, table: str, first: int, last: int
) -> int:
    query = f"SELECT count(*) FROM {{{table}}} WHERE level BETWEEN ? AND ?"
    return value_of(con, hierarchy.sql(query), [first, last])
