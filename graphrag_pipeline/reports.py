"""Community reports: one level at a time, deepest first, and only those whose context changed.

Without a writer they are extractive; a model's writer is handed in (``report_writing``).
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import duckdb
import polars as pl

from graphrag_pipeline.config import ReportSettings, fingerprint
from graphrag_pipeline.extractive import (
    EXTRACTIVE_VERSION,
    ReportText,
    Sentence,
    write_extractive,
)
from graphrag_pipeline.identity import content_hash, make_id
from graphrag_pipeline.report_contexts import Context, SubReport, build_context, intra_edges
from graphrag_pipeline.store import IndexStore, get_meta, insert, set_meta
from graphrag_pipeline.tokens import DEFAULT_ENCODING, count_tokens

if TYPE_CHECKING:
    from graphrag_pipeline.report_writing import ModelWriter

REPORTS_VERSION = "1"
IMPORTED = "import"
_MIN_SIZE = 2
_CANDIDATES = 40
_SUB_FINDINGS = 3
# A sentence that begins or ends at the edge of its chunk is likely only half a sentence.
_CUT_OFF = 0.3

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

_COMMUNITIES = """
SELECT id, level, title, size, n_relationships FROM communities
WHERE level BETWEEN $first AND $last AND size >= $min_size
"""
_MEMBERS = """
SELECT m.community_id, m.entity_id, c.level, c.parent_id FROM community_members m
JOIN communities c ON c.id = m.community_id AND c.level = m.level
WHERE c.level BETWEEN $first AND $last + 1
"""
_ENTITIES = """
SELECT id, title, n_tokens, left(sha256(title || chr(10) || type || chr(10) || description), 16)
    AS text_hash FROM entities
"""
# A model is told the claims about an entity together with it.
_ENTITIES_WITH_CLAIMS = """
SELECT e.id, e.title, e.n_tokens + coalesce(c.n_tokens, 0) AS n_tokens,
       left(sha256(concat_ws(chr(10), title, type, description, c.told)), 16) AS text_hash
FROM entities e LEFT JOIN (
    SELECT subject_id AS id, sum(strlen(description) // 3 + 30) AS n_tokens,
           string_agg(id, ',' ORDER BY id) AS told
    FROM claims GROUP BY subject_id) c USING (id)
"""
_RELATIONSHIPS = """
SELECT id, source_id, target_id, weight, combined_degree, n_tokens,
       left(sha256(source || chr(10) || target || chr(10) || description), 16) AS text_hash,
       coalesce(evidence, '') AS evidence
FROM relationships LEFT JOIN (
    SELECT source_id, target_id, left(sha256(string_agg(place, ',' ORDER BY place)), 16) AS evidence
    FROM (SELECT *, concat_ws(':', chunk_id, start_char, end_char) AS place
          FROM relationship_mentions)
    GROUP BY source_id, target_id) USING (source_id, target_id)
"""
_OLD_REPORTS = """
SELECT community_id, level, n_tokens, full_content, context_hash, coverage, findings, writer
FROM community_reports WHERE level BETWEEN $first AND $last + 1
"""
# The instances behind relationships, as sentences with their place in the document.
_EVIDENCE = """
SELECT r.id AS relationship_id, m.description AS text, m.chunk_id,
       c.start_char + m.start_char AS start_char, c.start_char + m.end_char AS end_char,
       coalesce((m.start_char < 2 AND c.start_char > 0)
                OR (m.end_char > c.end_char - c.start_char - 2 AND c.end_char < d.n_chars), false)
           AS cut_off
FROM relationship_mentions m
JOIN relationships r ON r.source_id = m.source_id AND r.target_id = m.target_id
JOIN chunks c ON c.id = m.chunk_id
JOIN documents d ON d.id = c.document_id
SEMI JOIN wanted_evidence w ON w.relationship_id = r.id
WHERE m.description <> ''
"""


@dataclass(frozen=True)
class LevelReports:
    """What was done for one level asset (numbers of reports)."""

    written: int
    reused: int
    removed: int
    mean_coverage: float | None
    failed: int = 0


@dataclass(frozen=True)
class _Graph:
    communities: pl.DataFrame
    members: pl.DataFrame
    entities: pl.DataFrame
    relationships: pl.DataFrame
    old: pl.DataFrame


def update_reports(
    store: IndexStore,
    settings: ReportSettings,
    level: int,
    *,
    and_deeper: bool,
    writer: ModelWriter | None = None,
) -> LevelReports:
    """Bring the reports of a level (and, on request, of all deeper ones) up to date.

    Deeper levels must have been done before: a report may stand on those of its sub-communities.
    """
    with store.read() as con:
        deepest = _deepest(con)
        last = max(deepest, level) if and_deeper else level
        state = _state(con, settings, level, last, writer)
        failed = _count(con, level, last, "report_failures")
        if get_meta(con, f"reports_state:{level}") == state and not failed:
            return LevelReports(0, _count(con, level, last), 0, None)
    done = [_update_level(store, settings, each, writer) for each in range(last, level - 1, -1)]
    with store.transaction() as con:
        removed = _remove_orphans(con, level, None if and_deeper else level)
        set_meta(con, f"reports_state:{level}", _state(con, settings, level, last, writer))
        failed = _count(con, level, last, "report_failures")
    coverages = [c for d in done for c in d.coverages]
    return LevelReports(
        sum(d.written for d in done),
        sum(d.reused for d in done),
        removed,
        sum(coverages) / len(coverages) if coverages else None,
        failed,
    )


def reports_current(
    con: duckdb.DuckDBPyConnection, settings: ReportSettings, writer: ModelWriter | None = None
) -> bool:
    """Whether the reports of every level were written for the communities as they are now."""
    states = con.execute("SELECT key, value FROM meta WHERE key LIKE 'reports_state:%'").fetchall()
    done: set[int] = set()
    for key, value in states:
        first, last = int(key.split(":")[1]), int(value.split(":")[2])
        if value == _state(con, settings, first, last, writer):
            done |= set(range(first, last + 1))
    return done >= set(range(_deepest(con) + 1))


@dataclass(frozen=True)
class _Done:
    written: int
    reused: int
    coverages: Sequence[float]


def _update_level(
    store: IndexStore, settings: ReportSettings, level: int, writer: ModelWriter | None
) -> _Done:
    graph = _read_graph(store, level, _ENTITIES_WITH_CLAIMS if writer else _ENTITIES)
    contexts = _contexts(graph, settings, level, writer)
    own = graph.old.filter(pl.col("level") == level)
    before = dict(own.select("community_id", "context_hash").iter_rows())
    imported = set(own.filter(pl.col("writer") == IMPORTED)["community_id"])
    hashes = _element_hashes(graph, level, imported)
    changed = [
        c for c in contexts if before.get(c.community_id) != hashes.get(c.community_id, c.hash)
    ]
    if writer is None:
        reports, failures = _write(store, graph, changed, settings, level), {}
    else:
        reports, failures = _write_by_model(store, changed, writer, level)
    if changed:
        with store.transaction() as con:
            _store_reports(con, changed, reports, failures, level)
    return _Done(len(reports), len(contexts) - len(changed), [c.coverage for c in contexts])


def _write_by_model(
    store: IndexStore, contexts: Sequence[Context], writer: ModelWriter, level: int
) -> tuple[pl.DataFrame, Mapping[str, str]]:
    with store.read() as con:
        failed = _failed_before(con, contexts)
    written = writer.write(store, contexts, failed)
    rows = [
        {**_row(context, written.reports[context.community_id], level), "writer": writer.name}
        for context in contexts
        if context.community_id in written.reports
    ]
    return _with_tokens(rows), written.failures


def _failed_before(
    con: duckdb.DuckDBPyConnection, contexts: Sequence[Context]
) -> Mapping[str, int]:
    """Return how often the report on a community failed, told the same as now."""
    hashes = {context.community_id: context.hash for context in contexts}
    rows = con.execute("SELECT community_id, context_hash, attempts FROM report_failures")
    return {
        community: attempts
        for community, told, attempts in rows.fetchall()
        if hashes.get(community) == told
    }


def _store_reports(
    con: duckdb.DuckDBPyConnection,
    contexts: Sequence[Context],
    reports: pl.DataFrame,
    failures: Mapping[str, str],
    level: int,
) -> None:
    """Put reports in place of the old ones; a failed one leaves none, for it would be outdated."""
    ids = [context.community_id for context in contexts]
    before = _failed_before(con, contexts)
    for table in ("community_reports", "report_failures"):
        con.execute(f"DELETE FROM {table} WHERE community_id IN (SELECT unnest(?))", [ids])
    insert(con, "community_reports", reports)
    hashes = {context.community_id: context.hash for context in contexts}
    failed = [
        (community, level, hashes[community], why, before.get(community, 0) + 1)
        for community, why in failures.items()
    ]
    insert(con, "report_failures", pl.DataFrame(failed, schema=FAILURES, orient="row"))


def _read_graph(store: IndexStore, level: int, entities: str = _ENTITIES) -> _Graph:
    span = {"first": level, "last": level}
    with store.read() as con:
        return _Graph(
            con.sql(_COMMUNITIES, params={**span, "min_size": _MIN_SIZE}).pl(),
            con.sql(_MEMBERS, params=span).pl(),
            con.sql(entities).pl(),
            con.sql(_RELATIONSHIPS).pl(),
            con.sql(_OLD_REPORTS, params=span).pl(),
        )


def _contexts(
    graph: _Graph, settings: ReportSettings, level: int, writer: ModelWriter | None = None
) -> list[Context]:
    version = _version(settings, writer)
    own = graph.members.filter(pl.col("level") == level).select("community_id", "entity_id")
    edges = intra_edges(own, graph.relationships, graph.entities.drop("title"))
    children = _children(graph, level)
    sub_reports = {
        community: SubReport(community, n_tokens, _report_hash(text, findings), coverage)
        for community, n_tokens, text, coverage, findings in graph.old.filter(
            pl.col("level") == level + 1
        )
        .select("community_id", "n_tokens", "full_content", "coverage", "findings")
        .iter_rows()
    }
    evidence = dict(graph.relationships.select("id", "evidence").iter_rows())
    contexts = [
        build_context(
            community,
            edges.get(community, []),
            children.get(community, {}),
            sub_reports,
            settings.max_context_tokens,
            version,
        )
        for community in graph.communities["id"].sort()
    ]
    return contexts if writer else [_with_places(context, evidence) for context in contexts]


def _version(settings: ReportSettings, writer: ModelWriter | None) -> str:
    if writer is not None:
        return fingerprint(REPORTS_VERSION, settings.max_context_tokens, writer.version)
    given = settings.model_dump(include={"max_context_tokens", "max_findings"})
    return fingerprint(REPORTS_VERSION, EXTRACTIVE_VERSION, given)


def _with_places(context: Context, evidence: Mapping[str, str]) -> Context:
    """Let the hash tell where the evidence stands too: an extractive report cites it."""
    places = [evidence[relationship] for relationship in context.relationships]
    return replace(context, hash=make_id("context", context.hash, *places))


def _report_hash(text: str, findings: Sequence[Mapping[str, object]]) -> str:
    places = [(f["chunk_id"], f["start_char"], f["end_char"]) for f in findings]
    return content_hash(f"{text}\n{places}")[:16]


def adopt_reports(
    store: IndexStore, settings: ReportSettings, level: int, given: pl.DataFrame
) -> int:
    """Keep reports written elsewhere for communities of a level, in place of any that are there.

    ``given`` has the columns of ``REPORTS`` that a writer makes: community_id, title, summary,
    rating, rating_explanation, findings, full_content. Such a report stays until something in its
    community changes, whatever the settings: its hash is of all that the community holds. Call it
    for the deepest level first. Returns the number of reports.
    """
    graph = _read_graph(store, level)
    contexts = pl.DataFrame(
        [(c.community_id, c.n_tokens, c.coverage) for c in _contexts(graph, settings, level)],
        schema={"community_id": pl.String, "context_tokens": pl.Int64, "coverage": pl.Float64},
        orient="row",
    )
    hashes = _element_hashes(graph, level, set(given["community_id"]))
    ids = given["community_id"].to_list()
    reports = given.join(contexts, "community_id", "left", maintain_order="left").with_columns(
        pl.col("context_tokens").fill_null(0),
        pl.col("coverage").fill_null(1.0),
        id=pl.Series([make_id("report", community) for community in ids], dtype=pl.String),
        level=pl.lit(level, pl.Int32),
        n_tokens=pl.Series(count_tokens(given["full_content"].to_list()), dtype=pl.Int64),
        context_hash=pl.Series([hashes[community] for community in ids], dtype=pl.String),
        writer=pl.lit(IMPORTED),
    )
    with store.transaction() as con:
        con.execute("DELETE FROM community_reports WHERE community_id IN (SELECT unnest(?))", [ids])
        insert(con, "community_reports", reports.select(list(REPORTS)))
    return len(reports)


def _element_hashes(graph: _Graph, level: int, communities: set[str]) -> Mapping[str, str]:
    """Return a hash of all entities and relationships of each of these communities."""
    own = graph.members.filter(
        (pl.col("level") == level) & pl.col("community_id").is_in(list(communities))
    ).select("community_id", "entity_id")
    edges = intra_edges(own, graph.relationships, graph.entities.drop("title"))
    return {
        c: build_context(c, edges.get(c, []), {}, {}, sys.maxsize, IMPORTED).hash
        for c in communities
    }


def _children(graph: _Graph, level: int) -> Mapping[str, dict[str, frozenset[str]]]:
    children: dict[str, dict[str, frozenset[str]]] = defaultdict(dict)
    below = graph.members.filter(pl.col("level") == level + 1).group_by("parent_id", "community_id")
    for parent, community, nodes in below.agg("entity_id").iter_rows():
        children[parent][community] = frozenset(nodes)
    return children


def _write(
    store: IndexStore,
    graph: _Graph,
    contexts: Sequence[Context],
    settings: ReportSettings,
    level: int,
) -> pl.DataFrame:
    if not contexts:
        return REPORTS.to_frame()
    sentences = _sentences(store, graph, contexts)
    _add_findings(sentences, graph, contexts)
    titles = dict(graph.entities.select("id", "title").iter_rows())
    weights = _weights(graph, level)
    facts = {row[0]: row[1:] for row in graph.communities.drop("level").iter_rows()}
    rows = []
    for context in contexts:
        title, size, n_relationships = facts[context.community_id]
        report = write_extractive(
            title,
            size,
            n_relationships,
            weights.get(context.community_id, 0.0),
            sentences[context.community_id],
            titles,
            settings.max_findings,
        )
        rows.append(_row(context, report, level))
    return _with_tokens(rows)


def _with_tokens(rows: Sequence[Mapping[str, object]]) -> pl.DataFrame:
    counts = count_tokens([str(row["full_content"]) for row in rows], DEFAULT_ENCODING)
    return pl.DataFrame(
        [{**row, "n_tokens": n} for row, n in zip(rows, counts, strict=True)], schema=REPORTS
    )


def _row(context: Context, report: ReportText, level: int) -> dict[str, object]:
    return {
        "id": make_id("report", context.community_id),
        "community_id": context.community_id,
        "level": level,
        "title": report.title,
        "summary": report.summary,
        "rating": report.rating,
        "rating_explanation": report.rating_explanation,
        "findings": [asdict(finding) for finding in report.findings],
        "full_content": report.full_content,
        "context_hash": context.hash,
        "context_tokens": context.n_tokens,
        "coverage": context.coverage,
        "writer": "extractive",
    }


def _weights(graph: _Graph, level: int) -> Mapping[str, float]:
    own = graph.members.filter(pl.col("level") == level).select("community_id", "entity_id")
    inside = graph.relationships.join(own, left_on="source_id", right_on="entity_id").join(
        own, left_on=["target_id", "community_id"], right_on=["entity_id", "community_id"]
    )
    return dict(inside.group_by("community_id").agg(pl.col("weight").sum()).iter_rows())


def _sentences(
    store: IndexStore, graph: _Graph, contexts: Sequence[Context]
) -> dict[str, list[Sentence]]:
    """Return each context's best sentences, scored by the relationships they support.

    A relationship counts by the logarithm of its weight and by how many of the community's
    relationships meet at its ends; a long sentence counts for less, one cut off by its chunk too.
    """
    scored = _scored_relationships(graph, contexts)
    with store.read() as con:
        con.register("wanted_evidence", scored.select("relationship_id").unique())
        evidence = con.sql(_EVIDENCE).pl()
    ranked = (
        scored.join(evidence, "relationship_id")
        .group_by("community_id", "chunk_id", "start_char", "end_char", "text", "cut_off")
        .agg(pl.col("score").sum(), pl.col("source_id"), pl.col("target_id"))
        .with_columns(
            score=pl.col("score")
            * pl.when("cut_off").then(_CUT_OFF).otherwise(1.0)
            / pl.max_horizontal(pl.col("text").str.len_chars(), 60).sqrt(),
            entities=pl.concat_list("source_id", "target_id").list.unique(),
        )
        .sort(["community_id", "score", "text", "chunk_id"], descending=[False, True, False, False])
        .group_by("community_id", maintain_order=True)
        .head(_CANDIDATES)
    )
    found: dict[str, list[Sentence]] = {context.community_id: [] for context in contexts}
    columns = ("community_id", "text", "chunk_id", "start_char", "end_char", "entities", "score")
    for community, text, chunk, start, end, entities, score in ranked.select(columns).iter_rows():
        found[community].append(Sentence(text, chunk, start, end, frozenset(entities), score))
    return found


def _scored_relationships(graph: _Graph, contexts: Sequence[Context]) -> pl.DataFrame:
    wanted = pl.DataFrame(
        [(c.community_id, relationship) for c in contexts for relationship in c.relationships],
        schema={"community_id": pl.String, "relationship_id": pl.String},
        orient="row",
    ).join(graph.relationships, left_on="relationship_id", right_on="id")
    ends = pl.concat(
        [
            wanted.select("community_id", entity_id="source_id"),
            wanted.select("community_id", entity_id="target_id"),
        ]
    )
    degrees = ends.group_by("community_id", "entity_id").agg(degree=pl.len())
    return (
        wanted.join(
            degrees, left_on=["community_id", "source_id"], right_on=["community_id", "entity_id"]
        )
        .join(
            degrees,
            left_on=["community_id", "target_id"],
            right_on=["community_id", "entity_id"],
            suffix="_target",
        )
        .select(
            "community_id",
            "relationship_id",
            "source_id",
            "target_id",
            score=pl.col("weight").log1p() * (pl.col("degree") + pl.col("degree_target")),
        )
    )


def _add_findings(
    sentences: dict[str, list[Sentence]], graph: _Graph, contexts: Sequence[Context]
) -> None:
    """Add the findings of sub-reports, first ones first, each sub-community told apart."""
    findings = dict(graph.old.select("community_id", "findings").iter_rows())
    for context in contexts:
        own = sentences[context.community_id]
        best = max((sentence.score for sentence in own), default=1.0)
        for child in context.sub_reports:
            for place, finding in enumerate(findings.get(child, [])[:_SUB_FINDINGS]):
                own.append(
                    Sentence(
                        finding["explanation"],
                        finding["chunk_id"],
                        finding["start_char"],
                        finding["end_char"],
                        frozenset({child}),
                        best / (1 + place),
                    )
                )


def _remove_orphans(con: duckdb.DuckDBPyConnection, first: int, last: int | None) -> int:
    """Delete the reports, at these levels, of communities that are no more."""
    where = """level >= $first AND ($last IS NULL OR level <= $last) AND community_id NOT IN (
               SELECT id FROM communities WHERE size >= $min_size OR writer = $imported)"""
    values = {"first": first, "last": last, "min_size": _MIN_SIZE, "imported": IMPORTED}
    row = con.execute(f"SELECT count(*) FROM community_reports WHERE {where}", values).fetchone()
    con.execute(f"DELETE FROM community_reports WHERE {where}", values)
    con.execute(
        "DELETE FROM report_failures WHERE community_id NOT IN (SELECT id FROM communities)"
    )
    return row[0] if row else 0


def _state(
    con: duckdb.DuckDBPyConnection,
    settings: ReportSettings,
    first: int,
    last: int,
    writer: ModelWriter | None,
) -> str:
    below = con.execute(
        """SELECT coalesce(bit_xor(hash(community_id, full_content, findings)), 0), count(*),
                  (SELECT sum(hash(chunk_id, source_id, target_id, start_char)::HUGEINT)
                   FROM relationship_mentions),
                  (SELECT sum(hash(id)::HUGEINT) FROM claims)
           FROM community_reports WHERE level = ?""",
        [last + 1],
    ).fetchone()
    version = _version(settings, writer)
    return f"{version}:{first}:{last}:{get_meta(con, 'communities_state')}:{below}"


def _deepest(con: duckdb.DuckDBPyConnection) -> int:
    row = con.execute("SELECT coalesce(max(level), 0) FROM communities").fetchone()
    return row[0] if row else 0


def _count(
    con: duckdb.DuckDBPyConnection, first: int, last: int, table: str = "community_reports"
) -> int:
    row = con.execute(
        f"SELECT count(*) FROM {table} WHERE level BETWEEN ? AND ?", [first, last]
    ).fetchone()
    return row[0] if row else 0
