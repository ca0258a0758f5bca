"""The layers of the hierarchical graph kept up to date with the entities and their vectors.

A layer's mixture stays until more than :data:`layers.REFIT_SHARE` of the layer has changed: new
entities join the clusters there are. A cluster whose members say what they said keeps what a model
made of it. So layers depend on the history of an index, as communities do, but hold nothing of what
was removed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict

import duckdb
import polars as pl

from graphrag_pipeline.core.settings import Settings, fingerprint
from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.llm.configured import configured_embedder
from graphrag_pipeline.store.frames import drop_rows, put_rows
from graphrag_pipeline.store.hashing import rows_hash
from graphrag_pipeline.store.index_store import (
    IndexStore,
    assign_identifiers,
    get_meta,
    insert,
    replace_changed,
    set_meta,
)
from graphrag_pipeline.store.vector_store import VectorStore
from graphrag_pipeline.structures.nested_mixtures import NestedMixture
from graphrag_pipeline.structures.structure import Outcome
from graphrag_pipeline.systems.hirag.layers import (
    Fitted,
    LayeredEntities,
    LayerNodes,
    build_layers,
)
from graphrag_pipeline.systems.hirag.writing import (
    ExtractiveClusters,
    Summary,
    SummaryEntity,
    SummaryLink,
    cluster_writer,
    keeping,
)

_VERSION = "1"
_STATE = "hirag"
_BASE = "SELECT id, title, type, description, n_tokens FROM entities ORDER BY id"
_TYPES = "SELECT " + rows_hash("entities", "id, type")
_WANTED_ENTITIES = """
CREATE OR REPLACE TEMP TABLE wanted_hirag_entities AS
SELECT n.id, i.human_readable_id, n.layer, n.title, n.type, n.description, n.size,
       coalesce(d.n, 0) AS degree, n.n_tokens
FROM new_hirag_entities n JOIN identifiers i ON i.kind = 'entity' AND i.id = n.id
LEFT JOIN (
    SELECT id, count(*) AS n FROM (SELECT unnest([source_id, target_id]) AS id FROM new_hirag_links)
    GROUP BY id) d ON d.id = n.id
"""
_WANTED_LINKS = """
CREATE OR REPLACE TEMP TABLE wanted_hirag_relationships AS
WITH degrees AS (
    SELECT id, sum(n)::BIGINT AS degree FROM (
        SELECT id, degree AS n FROM entities UNION ALL
        SELECT unnest([source_id, target_id]), 1 FROM new_hirag_links) GROUP BY id)
SELECT n.id, i.human_readable_id, n.layer, n.source_id, n.target_id, n.source, n.target,
       n.description, n.weight, s.degree + t.degree AS combined_degree, n.n_tokens
FROM new_hirag_links n JOIN identifiers i ON i.kind = 'relationship' AND i.id = n.id
JOIN degrees s ON s.id = n.source_id JOIN degrees t ON t.id = n.target_id
"""
_LINK_IDS = """
SELECT left(sha256('hirag' || source_id || target_id), 32) AS id, * FROM links ORDER BY ALL
"""
_REPLACED = (
    "hirag_basis",
    "hirag_layers",
    "staging.hirag_mixtures",
    "staging.hirag_nodes",
    "staging.hirag_summaries",
)


def update_hirag(store: IndexStore, vectors: VectorStore, settings: Settings) -> Outcome:
    """Bring layers, summary entities and the links to them up to date with the entities' vectors.

    What is clustered are the vectors of ``entities``, of titles and descriptions; the paper embeds
    descriptions alone. Does nothing when neither they nor what summarises clusters have changed.
    Tells what changed in ``hirag_entities``, and how many clusters were ``summarised`` now; those
    whose answer of a model could not be used have failed.
    """
    writer = cluster_writer(settings)
    with store.read() as con:
        summaries = _kept_summaries(con)
        failed_before = sum(summary.attempts > 0 for summary in summaries.values())
        if hirag_current(con, settings) and not failed_before:
            return Outcome({"summarised": 0})
        state = _state(con, settings)
        rows = con.sql(_BASE).pl()
        is_followed = _vectors_in(get_meta(con, _STATE)) == _vectors_in(state)
        fits = _fitted(con) if is_followed else {}
    is_free = isinstance(writer, ExtractiveClusters)
    themselves = [frozenset([n]) for n in range(len(rows))]
    base = LayerNodes(rows, vectors.of("entities", rows["id"]), themselves, themselves)
    write = keeping(writer, {} if is_free else summaries)
    layered = build_layers(
        base,
        write,
        configured_embedder(settings).embed,
        fits,
        most_tokens=settings.reports.max_context_tokens,
    )
    with store.transaction() as con:
        changes = _store_graph(con, layered)
        _store_state(con, layered, with_summaries=not is_free)
        set_meta(con, _STATE, state)
    summary_of = {summary.hash: summary for summary in layered.summaries}
    anew = [s for key, s in summary_of.items() if key not in summaries or summaries[key].attempts]
    n_failed = sum(summary.attempts > 0 for summary in summary_of.values())
    n_summarised = len(summary_of) if is_free else len(anew)
    return Outcome({**changes, "summarised": n_summarised}, n_failed)


def hirag_current(con: duckdb.DuckDBPyConnection, settings: Settings) -> bool:
    """Whether the layers were made from the entities and vectors as they are, as things are set."""
    return get_meta(con, _STATE) == _state(con, settings)


def hirag_version(settings: Settings) -> str:
    """Return what decides the layers besides the entities and their vectors."""
    writer, limit = cluster_writer(settings), settings.reports.max_context_tokens
    return f"{_VERSION}:{fingerprint(writer.version, limit)}"


def forget_mixtures(con: duckdb.DuckDBPyConnection) -> None:
    """Let the next update cluster every layer anew."""
    con.execute("UPDATE meta SET value = '' WHERE key = ?", [_STATE])


def _state(con: duckdb.DuckDBPyConnection, settings: Settings) -> str:
    types = con.execute(_TYPES).fetchone()
    return f"{hirag_version(settings)}|{types}|{get_meta(con, 'vectors:entities')}"


def _vectors_in(state: str | None) -> tuple[str, str]:
    """Return how vectors were clustered and what made them, as a state tells it."""
    state_text = state or ""
    return state_text.partition(":")[0], state_text.rpartition("|")[2].rsplit(":", 2)[0]


def _fitted(con: duckdb.DuckDBPyConnection) -> dict[int, Fitted]:
    hashes: dict[int, dict[str, str]] = {}
    for layer, node, text_hash in con.execute("FROM staging.hirag_nodes").fetchall():
        hashes.setdefault(layer, {})[node] = text_hash
    return {
        layer: Fitted(NestedMixture.from_bytes(mixture), n_fitted, n_changed, hashes.get(layer, {}))
        for layer, mixture, n_fitted, n_changed in con.execute(
            "FROM staging.hirag_mixtures"
        ).fetchall()
    }


def _kept_summaries(con: duckdb.DuckDBPyConnection) -> dict[str, Summary]:
    rows = con.execute("FROM staging.hirag_summaries").fetchall()
    return {key: _read(key, json.loads(value)) for key, value in rows}


def _read(key: str, values: Mapping[str, list[dict[str, str]]]) -> Summary:
    return Summary(
        key,
        tuple(SummaryEntity(**entity) for entity in values["entities"]),
        tuple(SummaryLink(**link) for link in values["links"]),
        int(str(values["attempts"])),
    )


def _store_graph(con: duckdb.DuckDBPyConnection, layered: LayeredEntities) -> Mapping[str, int]:
    put_rows(con, "links", layered.links)
    links = con.sql(_LINK_IDS).pl()
    drop_rows(con, "links")
    put_rows(con, "new_hirag_entities", layered.entities)
    titles = dict(con.execute("SELECT id, title FROM entities").fetchall())
    titles |= dict(layered.entities.select("id", "title").iter_rows())
    named_links = links.with_columns(
        source=pl.col("source_id").replace_strict(titles, return_dtype=pl.String),
        target=pl.col("target_id").replace_strict(titles, return_dtype=pl.String),
    )
    texts = named_links.select(pl.concat_str("source", "target", "description", separator=" "))
    n_tokens = pl.Series(count_tokens(texts.to_series().to_list()), dtype=pl.Int64)
    put_rows(con, "new_hirag_links", named_links.with_columns(n_tokens=n_tokens))
    order = "SELECT id FROM new_hirag_entities ORDER BY layer, size DESC, id"
    assign_identifiers(con, "entity", order)
    assign_identifiers(con, "relationship", "SELECT id FROM new_hirag_links ORDER BY layer, id")
    con.execute(_WANTED_ENTITIES)
    con.execute(_WANTED_LINKS)
    changes = replace_changed(con, "hirag_entities", "wanted_hirag_entities")
    replace_changed(con, "hirag_relationships", "wanted_hirag_relationships")
    drop_rows(con, "new_hirag_entities", "new_hirag_links")
    return changes


def _store_state(
    con: duckdb.DuckDBPyConnection, layered: LayeredEntities, *, with_summaries: bool
) -> None:
    for table in _REPLACED:
        con.execute(f"DELETE FROM {table}")
    insert(con, "hirag_basis", layered.basis)
    n_of_layer = dict(layered.entities.group_by("layer").len().iter_rows())
    layers = [
        (a.number, a.n_nodes, a.n_clusters, n_of_layer.get(a.number, 0), a.sparsity)
        for a in layered.layers
    ]
    con.executemany("INSERT INTO hirag_layers VALUES (?, ?, ?, ?, ?)", layers) if layers else None
    for layer in layered.layers:
        fit = layer.fitted
        con.execute(
            "INSERT INTO staging.hirag_mixtures VALUES (?, ?, ?, ?)",
            [layer.number, fit.mixture.to_bytes(), fit.n_fitted, fit.n_changed],
        )
        hashes = {"node_id": list(fit.text_hashes), "text_hash": list(fit.text_hashes.values())}
        nodes = pl.DataFrame(hashes, schema={"node_id": pl.String, "text_hash": pl.String})
        insert(con, "staging.hirag_nodes", nodes.with_columns(layer=pl.lit(layer.number)))
    if with_summaries:
        json_of = {s.hash: json.dumps({**asdict(s), "hash": None}) for s in layered.summaries}
        columns = {"hash": list(json_of), "summary": list(json_of.values())}
        schema = {"hash": pl.String, "summary": pl.String}
        insert(con, "staging.hirag_summaries", pl.DataFrame(columns, schema=schema))
