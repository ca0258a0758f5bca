"""An index made by microsoft/graphrag, taken over with its communities and reports."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import duckdb
import polars as pl

from graphrag_pipeline.core.identity import ID_DIGITS, make_id
from graphrag_pipeline.core.progress import report
from graphrag_pipeline.core.settings import ReportSettings, Settings, fingerprint
from graphrag_pipeline.core.text import normalize_title
from graphrag_pipeline.exchange.importing.batch import (
    ImportedDocument,
    ImportResult,
    chunk_frame,
    document_of_passages,
    number,
    save_manifest,
    stage_import,
    unique_uris,
)
from graphrag_pipeline.exchange.importing.hierarchy import ImportedHierarchy, complete_hierarchy
from graphrag_pipeline.exchange.importing.passages import locate
from graphrag_pipeline.exchange.importing.tables import ImportedTables, read_tables
from graphrag_pipeline.extraction.mentions import ENTITY_MENTIONS, RELATIONSHIP_MENTIONS, Extraction
from graphrag_pipeline.graph.communities import adopt_hierarchy
from graphrag_pipeline.graph.fold import merge_within
from graphrag_pipeline.ingest.chunking import CHUNKS
from graphrag_pipeline.reports.levels import adopt_reports
from graphrag_pipeline.store.frames import drop_rows, put_rows
from graphrag_pipeline.store.hierarchy import GRAPH
from graphrag_pipeline.store.index_store import IndexStore, get_meta, insert, set_meta
from graphrag_pipeline.store.workspace import Workspace

IMPORT_VERSION = "1"
UNTYPED = "OTHER"
_STEPS = 5
_PARTS = float(1 << 20)
_GENERAL_NAMES = ("output", "artifacts", "")
_OTHERS_MENTION = """
SELECT entity_id FROM entity_mentions WHERE batch <> $batch UNION
SELECT source_id FROM relationship_mentions WHERE batch <> $batch UNION
SELECT target_id FROM relationship_mentions WHERE batch <> $batch
"""


def import_graphrag(directory: Path, workspace: Workspace) -> ImportResult:
    """Take over the index that microsoft/graphrag wrote in a folder. All of it, or nothing.

    Documents, text units, entities, relationships, claims, communities and reports become rows of
    the index, so that the stages that follow leave them as they are until documents change, and
    no model is paid again:

    - Documents keep their text, and every text unit is a span of it. Where the text is not there,
      or is not what the units were cut from, the units themselves become the document's text.
    - Every entity and relationship becomes one mention for each of its text units, and a
      relationship's weight is shared among them; the ordinary fold then gives the graph back. The
      two directions of an edge are one relationship: weights add up, both descriptions are kept.
      A relationship whose end is no entity is left out. An entity or relationship without a text
      unit gets a passage of its own, made of its title and description.
    - Communities keep their members, levels and reports. Entities that are in none are clustered
      among themselves; the report stage then writes what is missing.
    - The numbers that reports cite, ``[Data: Entities (5)]``, are kept in an index that is new.
    - Vectors are not taken over: a question is embedded by the embedder of this index, and its
      vector says nothing beside those of another model.

    Beside other documents the graph differs, since entities of the same title merge. Communities
    are then clustered anew, and an imported report survives only where its community comes out
    with the same members and nothing in it is told of in other documents.

    The same folder name (``output`` counts as its parent's) replaces what it brought before; the
    same files again do nothing. Raises InputError if a table or column that is needed is missing.
    """
    start = time.perf_counter()
    label = label_of(directory)
    source = _Source(label, read_tables(directory), workspace.settings)
    report("import", 1, _STEPS)
    batch = _imported_before(workspace.store, source)
    done_before = batch is not None
    counts: Mapping[str, int] = {}
    if batch is None:
        batch, counts = _import(workspace, source)
    save_manifest(workspace, batch)
    seconds = time.perf_counter() - start
    return ImportResult(batch, counts, source.warnings, seconds, done_before)


def label_of(directory: Path) -> str:
    """Return the name of an import: the folder's, or that of the project it is the output of."""
    resolved = directory.expanduser().resolve()
    names = (place.name for place in (resolved, *resolved.parents))
    return next((name for name in names if name not in _GENERAL_NAMES), "graphrag")


def _imported_before(store: IndexStore, source: _Source) -> str | None:
    """Return the batch of the same files, if the index still holds what they brought."""
    with store.read() as con:
        raw = get_meta(con, source.meta_key)
        mark = json.loads(raw) if raw else {}
        state = mark.get("communities") in (None, GRAPH.get_state(con, "communities_state"))
    return mark["batch"] if mark.get("fingerprint") == source.fingerprint and state else None


def _import(workspace: Workspace, source: _Source) -> tuple[str, Mapping[str, int]]:
    chunks = source.chunks
    extraction = Extraction(source.entity_mentions, source.relationship_mentions)
    report("import", 2, _STEPS)
    with workspace.store.transaction() as con:
        batch = stage_import(
            con, workspace, source.label, source.documents, chunks, chunks["id"], extraction
        )
        _stage_claims(con, source, batch.key)
        _keep_numbers(con, source)
        report("import", 3, _STEPS)
        merge_within(con, workspace.settings.graph, workspace.settings.chunks.encoding)
        report("import", 4, _STEPS)
        shared = {e for (e,) in con.execute(_OTHERS_MENTION, {"batch": batch.key}).fetchall()}
        n_communities = _keep_communities(con, source, shared)
        mark = {
            "fingerprint": source.fingerprint,
            "batch": batch.key,
            "communities": None if shared else GRAPH.get_state(con, "communities_state"),
        }
        set_meta(con, source.meta_key, json.dumps(mark))
    report("import", _STEPS, _STEPS)
    return batch.key, {**source.counts, **n_communities}


def _keep_communities(
    con: duckdb.DuckDBPyConnection, source: _Source, shared: set[str]
) -> Mapping[str, int]:
    settings, tables = source.settings, source.tables
    if tables.communities.is_empty():
        return {"communities": 0, "reports": 0}
    everyone = [e for (e,) in con.execute("SELECT id FROM entities ORDER BY id").fetchall()]
    edges = con.execute("SELECT source_id, target_id, weight FROM relationships").fetchall()
    hierarchy = complete_hierarchy(
        tables.communities, source.entity_ids, everyone, edges, settings.communities
    )
    reports = _report_frame(tables.reports, hierarchy)
    number(con, "community", [(own, foreign) for foreign, own in hierarchy.ids.items()])
    titles = dict(reports.select("community_id", "title").iter_rows())
    adopt_hierarchy(con, hierarchy.clusters, titles, settings.communities, settled=not shared)
    untouched = [c.id for c in hierarchy.clusters if not shared.intersection(c.members)]
    current = reports.filter(pl.col("community_id").is_in(untouched))
    adopted = _adopt_reports(con, settings.reports, current)
    return {"communities": len(hierarchy.ids), "reports": adopted}


def _report_frame(reports: pl.DataFrame, hierarchy: ImportedHierarchy) -> pl.DataFrame:
    """Return the rows of ``community_reports`` that a writer makes, and the community's level."""
    ids = pl.DataFrame(
        list(hierarchy.ids.items()),
        schema={"community": pl.Int64, "community_id": pl.String},
        orient="row",
    )
    levels = pl.DataFrame(
        [(c.id, c.level) for c in hierarchy.clusters],
        schema={"community_id": pl.String, "level": pl.Int32},
        orient="row",
    )
    place = pl.lit(None, pl.Int64)
    finding = pl.struct(
        pl.element().struct.field("summary"),
        pl.element().struct.field("explanation"),
        pl.lit(None, pl.String).alias("chunk_id"),
        place.alias("start_char"),
        place.alias("end_char"),
    )
    texts = ("title", "summary", "rating_explanation", "full_content")
    return (
        reports.unique("community", keep="first", maintain_order=True)
        .join(ids, "community")
        .join(levels, "community_id")
        .with_columns(
            pl.col(texts).fill_null(""),
            pl.col("rating").fill_nan(None).fill_null(0.0),
            pl.col("findings").list.eval(finding),
        )
        .drop("community")
    )


def _adopt_reports(
    con: duckdb.DuckDBPyConnection, settings: ReportSettings, reports: pl.DataFrame
) -> int:
    levels = sorted(set(reports["level"]), reverse=True)
    return sum(
        adopt_reports(con, settings, level, reports.filter(pl.col("level") == level).drop("level"))
        for level in levels
    )


def _stage_claims(con: duckdb.DuckDBPyConnection, source: _Source, batch: str) -> None:
    claims = source.claims
    number(con, "claim", list(claims.select("id", "human_readable_id").iter_rows()))
    put_rows(con, "new_claims", claims.drop("human_readable_id"))
    numbered = con.sql(
        """SELECT c.*, i.human_readable_id FROM new_claims c
           JOIN identifiers i ON i.kind = 'claim' AND i.id = c.id"""
    ).pl()
    drop_rows(con, "new_claims")
    insert(con, "staging.claims", numbered.with_columns(batch=pl.lit(batch)))


def _keep_numbers(con: duckdb.DuckDBPyConnection, source: _Source) -> None:
    tables, ids = source.tables, source.ids_by_title
    entities = tables.entities.select("title", "human_readable_id").iter_rows()
    number(con, "entity", [(ids[title], n) for title, n in entities if title in ids])
    edges = source.relationships.select("source", "target", "human_readable_id").iter_rows()
    number(con, "relationship", [(_edge_id(ids[s], ids[t]), n) for s, t, n in edges])


def _edge_id(source_id: str, target_id: str) -> str:
    """Return a relationship's id as the graph gives it."""
    first, second = sorted((source_id, target_id))
    return hashlib.sha256(f"relationship{first}{second}".encode()).hexdigest()[:ID_DIGITS]


@dataclass(frozen=True)
class _Source:
    """Another index's tables, seen as rows of this one."""

    label: str
    tables: ImportedTables
    settings: Settings

    @property
    def meta_key(self) -> str:
        return f"import:{self.label}"

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(IMPORT_VERSION, self.tables.fingerprint)

    @cached_property
    def ids_by_title(self) -> Mapping[str, str]:
        """Our entity id by title as written; titles with nothing in them are left out."""
        keys = {title: normalize_title(title) for title in self.tables.entities["title"] if title}
        return {title: make_id("entity", key) for title, key in keys.items() if key}

    @cached_property
    def entity_ids(self) -> Mapping[str, str]:
        """Our entity id by the other index's id; of titles that merge, the first one counts."""
        first = self.tables.entities.with_columns(
            own=pl.col("title").replace_strict(self.ids_by_title, default=None)
        ).drop_nulls(("id", "own"))
        return dict(
            first.unique("own", keep="first", maintain_order=True).select("id", "own").iter_rows()
        )

    @cached_property
    def located(self) -> tuple[list[ImportedDocument], Mapping[str, str]]:
        """The documents, and the chunk id of each text unit."""
        units = self.tables.text_units.drop_nulls("text").filter(
            pl.col("text").str.strip_chars() != ""
        )
        of_document = {
            str(key[0] or ""): list(rows.select("id", "text").iter_rows())
            for key, rows in units.group_by("document_id", maintain_order=True)
        }
        documents, chunks = [], {}
        for uri, title, metadata in self._titled(of_document):
            own = of_document.get(str(metadata["id"] or ""), [])
            document = _document(uri, title, metadata, [text for _, text in own])
            documents.append(document)
            names = (unit for unit, _ in own)
            chunks |= dict(zip(names, document.chunk_ids, strict=True))
        return documents, chunks

    def _titled(
        self, of_document: Mapping[str, object]
    ) -> list[tuple[str, str, dict[str, object]]]:
        """Return (uri, title, row) of the documents, also of those that only units tell of."""
        rows = self.tables.documents.to_dicts()
        ids = {row["id"] for row in rows}
        rows += [{"id": id} for id in of_document if id not in ids]
        titles = [str(row.get("title") or row["id"] or self.label) for row in rows]
        return list(zip(unique_uris(self.label, titles), titles, rows, strict=True))

    @cached_property
    def documents(self) -> list[ImportedDocument]:
        documents, _ = self.located
        return [*documents, *([self.sourceless] if self.sourceless.spans else [])]

    @cached_property
    def sourceless(self) -> ImportedDocument:
        """A document of the entities and relationships for which no text unit is given."""
        title = f"{self.label}: entities and relationships without a source"
        titles = [document.title for document in self.located[0]]
        uri = unique_uris(self.label, [*titles, title])[-1]
        entities = self._entities.filter(pl.col("chunk_id").is_null())
        edges = self._relationships.filter(pl.col("chunk_id").is_null())
        passages = [
            *(f"{t}: {d}" for t, d in entities.select("title", "description").iter_rows()),
            *(
                f"{s} – {t}: {d}"
                for s, t, d in edges.select("source", "target", "description").iter_rows()
            ),
        ]
        return document_of_passages(uri, title, passages, {"import": self.label})

    @cached_property
    def chunks(self) -> pl.DataFrame:
        if not self.documents:
            return CHUNKS.to_frame()
        return chunk_frame(self.documents, self.settings.chunks.encoding)

    @cached_property
    def _units(self) -> pl.DataFrame:
        return pl.DataFrame(
            list(self.located[1].items()),
            schema={"unit": pl.String, "chunk_id": pl.String},
            orient="row",
        )

    def _in_units(self, things: pl.DataFrame) -> pl.DataFrame:
        """Return one row for each thing and chunk; ``chunk_id`` is null for things without one."""
        numbered = things.with_row_index("thing")
        links = (
            numbered.select("thing", unit="text_unit_ids")
            .explode("unit")
            .join(self._units, "unit")
            .unique(("thing", "chunk_id"), maintain_order=True)
            .drop("unit")
        )
        return numbered.drop("text_unit_ids").join(
            links, "thing", "left", maintain_order="left_right"
        )

    @cached_property
    def _entities(self) -> pl.DataFrame:
        listed = self.tables.entities.filter(pl.col("title").is_in(list(self.ids_by_title)))
        return self._in_units(
            listed.with_columns(
                pl.col("description").fill_null(""),
                pl.col("type").replace("", None).fill_null(UNTYPED),
            )
        )

    @cached_property
    def relationships(self) -> pl.DataFrame:
        """The relationships whose ends are two entities, under the entities' own titles.

        Both directions of an edge are described by what either says, as one text: a limit on how
        many texts describe a relationship then takes nothing away.
        """
        key = {title: normalize_title(title) for title in self.ids_by_title}
        titles = {key[title]: title for title in reversed(list(key))}
        ends = {
            end: titles.get(normalize_title(end))
            for column in ("source", "target")
            for end in self.tables.relationships[column].drop_nulls().unique()
        }
        pair = (pl.min_horizontal("source", "target"), pl.max_horizontal("source", "target"))
        descriptions = pl.col("description").replace("", None).drop_nulls()
        return (
            self.tables.relationships.with_columns(
                pl.col("source", "target").replace_strict(
                    ends, default=None, return_dtype=pl.String
                ),
                weight=pl.when(pl.col("weight").is_finite() & (pl.col("weight") > 0))
                .then(pl.col("weight"))
                .otherwise(1.0),
            )
            .drop_nulls(("source", "target"))
            .with_columns(
                description=descriptions.unique(maintain_order=True).str.join(" ").over(pair)
            )
        )

    @cached_property
    def _relationships(self) -> pl.DataFrame:
        apart = self.relationships.filter(pl.col("source") != pl.col("target"))
        return self._in_units(apart)

    def _with_chunks(self, things: pl.DataFrame, first: int) -> pl.DataFrame:
        """Fill null ``chunk_id`` with the passages of the document without a source."""
        is_missing = things["chunk_id"].is_null()
        own = self.sourceless.chunk_ids[first : first + int(is_missing.sum())]
        places = is_missing.cast(pl.Int64).cum_sum() - 1
        passages = pl.Series(own, dtype=pl.String)
        fill = passages.gather(places.clip(0)) if own else things["chunk_id"]
        return things.with_columns(
            chunk_id=pl.when(is_missing).then(fill).otherwise(pl.col("chunk_id"))
        )

    @cached_property
    def entity_mentions(self) -> pl.DataFrame:
        return _shaped(self._with_chunks(self._entities, 0), ENTITY_MENTIONS)

    @cached_property
    def relationship_mentions(self) -> pl.DataFrame:
        before = int(self._entities["chunk_id"].is_null().sum())
        return _shaped(
            _share_weights(self._with_chunks(self._relationships, before)).with_columns(
                type=pl.lit("")
            ),
            RELATIONSHIP_MENTIONS,
        )

    @cached_property
    def claims(self) -> pl.DataFrame:
        texts = ("subject_id", "object_id", "type", "status", "start_date", "end_date")
        texts_or_null = pl.col(*texts, "source_text").replace(["NONE", ""], [None, None])
        keyed = {t: normalize_title(t) for t in self.tables.covariates["subject_id"].drop_nulls()}
        entity_ids = set(self.ids_by_title.values())
        subjects = {t: make_id("entity", key) for t, key in keyed.items()}
        subjects = {title: entity for title, entity in subjects.items() if entity in entity_ids}
        rows = (
            self.tables.covariates.join(
                self._units, left_on="text_unit_id", right_on="unit", maintain_order="left"
            )
            .with_columns(
                pl.col("description").fill_null(""),
                texts_or_null,
                subject=pl.col("subject_id").fill_null(""),
            )
            .rename({"object_id": "object"})
            .with_columns(
                subject_id=pl.col("subject").replace_strict(
                    subjects, default=None, return_dtype=pl.String
                )
            )
        )
        return rows.select(_claim_ids(rows), "human_readable_id", *_CLAIM_COLUMNS)

    @cached_property
    def counts(self) -> Mapping[str, int]:
        return {
            "documents": len(self.documents),
            "chunks": len(self.chunks),
            "entities": len(set(self.ids_by_title.values())),
            "relationships": len(self.relationships),
            "relationships_without_entity": len(self.tables.relationships)
            - len(self.relationships),
            "without_source": len(self.sourceless.spans),
            "claims": len(self.claims),
            "claims_without_source": len(self.tables.covariates) - len(self.claims),
        }

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        absent = [name for name in self.tables.missing if name != "covariates"]
        messages = [f"there is no {name}.parquet" for name in absent]
        if not self.tables.reports.is_empty() and self.tables.communities.is_empty():
            messages.append("reports were left out: without communities nothing says what of")
        return tuple(messages)


_CLAIM_COLUMNS = (
    "chunk_id",
    "subject_id",
    "subject",
    "object",
    "type",
    "status",
    "start_date",
    "end_date",
    "description",
    "source_text",
)


def _claim_ids(claims: pl.DataFrame) -> pl.Series:
    """Return an id for each claim from what it says; the same said again counts on."""
    keys = claims.select(_CLAIM_COLUMNS).with_columns(
        again=pl.int_range(pl.len()).over(_CLAIM_COLUMNS)
    )
    ids = [make_id("claim", *("" if v is None else v for v in row)) for row in keys.iter_rows()]
    return pl.Series("id", ids, dtype=pl.String)


def _document(
    uri: str, title: str, fields: Mapping[str, object], units: list[str]
) -> ImportedDocument:
    facts = {"original_id": fields["id"], "creation_date": fields.get("creation_date")}
    metadata = {name: value for name, value in facts.items() if value}
    text = str(fields.get("text") or "")
    spans = locate(text, units)
    if spans is None:
        return document_of_passages(uri, title, units, metadata)
    return ImportedDocument(uri, title, text, tuple(spans), metadata)


def _shaped(things: pl.DataFrame, columns: Iterable[str]) -> pl.DataFrame:
    place = pl.lit(None, pl.Int64)
    return things.with_columns(start_char=place, end_char=place).select(list(columns))


def _share_weights(things: pl.DataFrame) -> pl.DataFrame:
    """Share each relationship's weight among its chunks.

    The shares are whole multiples of a power of two and the first has what is left, so that they
    add up to the weight exactly, in whatever order.
    """
    share = (pl.col("weight") / pl.len().over("thing") * _PARTS).floor() / _PARTS
    rest = pl.col("weight") - share * (pl.len().over("thing") - 1)
    first = pl.int_range(pl.len()).over("thing") == 0
    return things.with_columns(weight=pl.when(first).then(rest).otherwise(share))
