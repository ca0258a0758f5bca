"""Labels of documents: who may read each, as rules and the documents' own metadata say.

They are written when a release is published, and are no part of any content: what was paid for a
document stays good whoever may read it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import duckdb
import polars as pl

from graphrag_pipeline.core.service_settings import AccessRule
from graphrag_pipeline.core.settings import AccessSettings
from graphrag_pipeline.releases.kept_releases import ACCESS
from graphrag_pipeline.store.frames import drop_rows, put_rows
from graphrag_pipeline.store.index_store import replace_links, set_meta

if TYPE_CHECKING:
    from pathspec import PathSpec

# A copy of a file is a name of the same document: who reads it must be allowed each of its places.
_PLACES = """
SELECT source, id FROM documents UNION SELECT source, document_id FROM document_names ORDER BY ALL
"""
_ROOTS = "SELECT DISTINCT root FROM batches"
_OWN = """
SELECT id AS document_id, list_distinct(list_transform(labels, x -> trim(x))) AS labels
FROM (SELECT id, CASE json_type(metadata, $key)
             WHEN 'ARRAY' THEN json_extract(metadata, $key)::VARCHAR[]
             ELSE string_split(json_extract_string(metadata, $key), ',') END AS labels
      FROM documents)
WHERE labels IS NOT NULL
"""
_SCHEMA = pl.Schema({"document_id": pl.String, "labels": pl.List(pl.String)})


def label_documents(con: duckdb.DuckDBPyConnection, access: AccessSettings) -> None:
    """Bring ``document_labels``, and how access goes by them, up to date, within a transaction."""
    set_meta(con, ACCESS, json.dumps({"mode": access.mode, "labels": [*access.labels]}))
    demands = pl.DataFrame([*_by_rules(con, access.rules)], schema=_SCHEMA, orient="row")
    if access.metadata:
        key = "/" + access.metadata.replace("~", "~0").replace("/", "~1")
        demands = pl.concat([demands, con.execute(_OWN, {"key": key}).pl().cast(_SCHEMA)])
    put_rows(con, "wanted_labels", demands.with_columns(pl.col("labels").list.sort()).unique())
    replace_links(con, "document_labels", "wanted_labels", ("document_id", "labels"))
    drop_rows(con, "wanted_labels")


def _by_rules(
    con: duckdb.DuckDBPyConnection, rules: Sequence[AccessRule]
) -> Iterator[tuple[str, list[str]]]:
    """Yield what each rule demands. A pattern is of the folder that was indexed, or of the uri."""
    specs = [(_spec(rule.match), [*rule.labels]) for rule in rules]
    roots = [f"{root}/" for (root,) in con.execute(_ROOTS).fetchall()] if specs else []
    for source, document in con.execute(_PLACES).fetchall() if specs else ():
        paths = [source, *(source[len(r) :] for r in roots if source.startswith(r))]
        for spec, labels in specs:
            if any(spec.match_file(path) for path in paths):
                yield document, labels


def _spec(pattern: str) -> PathSpec:
    from pathspec import PathSpec

    return PathSpec.from_lines("gitwildmatch", [pattern])
