"""Files that have not changed and are read again: why, and what comes out otherwise."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import duckdb
import polars as pl

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.ingest.documents import BatchDocuments
from graphrag_pipeline.ingest.reading.versions import KINDS
from graphrag_pipeline.ingest.stages import IMPORTED, READ_AGAIN, batch_versions
from graphrag_pipeline.llm.pricing import StagePlan
from graphrag_pipeline.store.batches import BatchLog

UNKNOWN = "the program or its settings have changed"
_EXAMPLES = 10
_LEDGER = """
SELECT batch, version FROM batch_stages WHERE stage IN ('documents', 'chunks')
AND version <> $imported AND batch IN (SELECT unnest($batches))
ORDER BY batch, stage DESC
"""
_INDEXED = """
SELECT id, arg_max(content_hash, batch) AS indexed_hash FROM (
    SELECT id, content_hash, batch FROM documents UNION ALL
    SELECT id, content_hash, batch FROM staging.documents)
WHERE id IN (SELECT unnest($ids)) GROUP BY id
"""
_INDEXED_BLOCKS = """
SELECT document_id, start_char, end_char, kind FROM blocks
WHERE document_id IN (SELECT unnest($ids)) UNION
SELECT document_id, start_char, end_char, kind FROM staging.blocks
WHERE document_id IN (SELECT unnest($ids) EXCEPT SELECT id FROM documents)
"""


@dataclass(frozen=True, kw_only=True)
class Rereading:
    """Files that the next run reads again though they have not changed since they were indexed.

    ``reasons`` say why. ``changed`` of their ``documents`` come out otherwise than they are in the
    index: ``kinds`` counts these by the ending of their files, and ``examples`` names the first.
    ``to_extract`` of the ``chunks`` of these are to be extracted again, for about ``cost`` US
    dollars (None if no model is asked, or its price is not known).
    """

    reasons: Sequence[str]
    documents: int
    changed: int
    kinds: Mapping[str, int]
    examples: Sequence[str]
    chunks: int
    to_extract: int
    cost: float | None


def reasons_by_batch(
    con: duckdb.DuckDBPyConnection, settings: Settings, log: BatchLog, batches: Sequence[str]
) -> dict[str, list[str]]:
    """Return why the files of batches are read or cut again.

    Batches that were never read, or whose files are as they would be read now, are not in it.
    """
    version_of = batch_versions(settings)
    endings = log.endings()
    now = {key: version_of(endings[key])["chunks"].split(".") for key in batches}
    rows = con.execute(_LEDGER, {"imported": IMPORTED, "batches": list(batches)}).fetchall()
    reasons: dict[str, list[str]] = {}
    for batch, version in rows:
        for reason in _reasons(version.split("."), now[batch]):
            if reason not in reasons.setdefault(batch, []):
                reasons[batch].append(reason)
    return {batch: why for batch, why in reasons.items() if why}


def _reasons(then: Sequence[str], now: Sequence[str]) -> list[str]:
    """Compare the parts of two versions; one of the stage documents has the first parts alone."""
    if len(then) < len(READ_AGAIN) - 2:
        return [UNKNOWN]
    changed = [(why, a, b) for why, a, b in zip(READ_AGAIN, then, now, strict=False) if a != b]
    return [_of_readers(a, b) if why == READ_AGAIN[0] else why for why, a, b in changed]


def _of_readers(then: str, now: str) -> str:
    """Say which readers have changed: what all share, or those of some kinds of files."""
    (before, *old), (after, *new) = then.split("-"), now.split("-")
    kinds = {reader.rstrip("0123456789") for reader in set(old) ^ set(new)}
    if before != after or not kinds:
        return READ_AGAIN[0]
    files = ", ".join(KINDS.get(kind, f"{kind} files") for kind in sorted(kinds))
    return f"the {'readers' if len(kinds) > 1 else 'reader'} of {files} changed"


def find_rereading(
    con: duckdb.DuckDBPyConnection,
    read: BatchDocuments,
    sources: Mapping[str, Sequence[str]],
    chunks: pl.DataFrame,
    todo: pl.DataFrame,
    stages: Collection[StagePlan],
) -> Rereading | None:
    """Return what of what was ``read`` is read again; None if nothing is.

    ``sources`` are the files that have not changed, with the reasons to read them again;
    ``chunks`` (id, document_id) those of all documents read, ``todo`` (id, n_tokens) those of them
    to extract from, ``stages`` what these cost.
    """
    documents = read.documents.select("id", "uri", "source", "content_hash")
    documents = documents.filter(pl.col("source").is_in(list(sources)))
    if documents.is_empty():
        return None
    changed = _changed(con, documents, read.blocks)
    own = chunks.join(changed, left_on="document_id", right_on="id", how="semi")
    to_extract = todo.join(own, on="id", how="semi")
    return Rereading(
        reasons=list(dict.fromkeys(why for reasons in sources.values() for why in reasons)),
        documents=len(documents),
        changed=len(changed),
        kinds=_kinds(changed["source"]),
        examples=changed["uri"].sort().head(_EXAMPLES).to_list(),
        chunks=len(own),
        to_extract=len(to_extract),
        cost=_share_of_cost(to_extract, todo, stages),
    )


def _changed(
    con: duckdb.DuckDBPyConnection, documents: pl.DataFrame, blocks: pl.DataFrame
) -> pl.DataFrame:
    """Return those of the documents whose title, metadata, text or blocks the index has not."""
    ids = {"ids": documents["id"].to_list()}
    with_hashes = documents.join(con.execute(_INDEXED, ids).pl(), on="id", how="left")
    before = con.execute(_INDEXED_BLOCKS, ids).pl()
    place = before.columns
    other_blocks = pl.concat(
        [
            blocks.join(before, on=place, how="anti").select("document_id"),
            before.join(blocks, on=place, how="anti").select("document_id"),
        ]
    )
    return with_hashes.filter(
        pl.col("content_hash").ne_missing(pl.col("indexed_hash"))
        | pl.col("id").is_in(other_blocks["document_id"].unique().to_list())
    )


def _kinds(sources: pl.Series) -> dict[str, int]:
    """Count files by ending, the most frequent first."""
    endings = [PurePosixPath(source).suffix.lower() for source in sources]
    counts = pl.Series("kind", endings, dtype=pl.String).value_counts()
    return dict(counts.sort(pl.col("count"), "kind", descending=[True, False]).iter_rows())


def _share_of_cost(
    part: pl.DataFrame, whole: pl.DataFrame, stages: Collection[StagePlan]
) -> float | None:
    cost = next((stage.cost for stage in stages if stage.stage == "extractions"), None)
    tokens = int(whole["n_tokens"].sum())
    return cost * int(part["n_tokens"].sum()) / tokens if cost is not None and tokens else None
