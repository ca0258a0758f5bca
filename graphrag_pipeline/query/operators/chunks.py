"""Chunks: the text that entities and relationships were found in."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.query.operators.ranking import Ranking, decoded
from graphrag_pipeline.query.results import Citation, Record
from graphrag_pipeline.query.trace import operator

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from graphrag_pipeline.query.memory.rows_in_memory import KeptRows
    from graphrag_pipeline.query.release import Release

_OF_ENTITIES = "SELECT entity_id AS id, chunk_id FROM entity_chunks"
_OF_RELATIONSHIPS = "SELECT relationship_id AS id, chunk_id FROM relationship_chunks"
_DECIMALS = 9
_WHOLE = """
SELECT id, title, uri, text FROM documents
SEMI JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS id) USING (id)
"""
_LENGTHS = "SELECT id, n_tokens FROM chunks"
_DOCUMENTS = "SELECT id, text FROM documents"
_RECORDS = """
SELECT c.id, c.human_readable_id, c.document_id, d.title, d.uri, c.start_char, c.end_char, c.text
FROM chunks c JOIN documents d ON d.id = c.document_id
"""
_FIRST_MENTIONS = """
SELECT arg_min(c.id, c.start_char) AS id FROM entity_chunks e JOIN chunks c ON c.id = e.chunk_id
WHERE e.entity_id IN (SELECT unnest($ids::JSON::VARCHAR[]))
GROUP BY c.document_id ORDER BY count(*) DESC, id LIMIT $limit
"""
_HAVING = """
SELECT id FROM chunks SEMI JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS id) USING (id)
WHERE regexp_matches(text, $pattern)
"""
_OF_DOCUMENTS = """
SELECT id FROM chunks SEMI JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS id) USING (id)
SEMI JOIN (SELECT unnest($documents::JSON::VARCHAR[]) AS document_id) USING (document_id)
"""
_CHUNK_AT = """
SELECT arg_max(id, start_char) AS id FROM chunks
WHERE document_id = $document AND start_char <= $start
"""

KEPT = (_OF_ENTITIES, _OF_RELATIONSHIPS, _LENGTHS)
"""Queries whose rows are kept for all questions."""


@operator
def chunks_of(
    index: Release, entities: Ranking, relationships: Ranking | None = None, *, limit: int
) -> Ranking:
    """Rank chunks by occurrence: the summed scores of the entities and relationships in each."""
    import numpy as np

    parts = [
        _support(index.kept(_OF_ENTITIES), entities),
        _support(index.kept(_OF_RELATIONSHIPS), relationships or {}),
    ]
    ids, where = np.unique(np.concatenate([ids for ids, _ in parts]), return_inverse=True)
    summed = np.bincount(where, np.concatenate([weights for _, weights in parts]))
    # Else the last digits would decide between equal ones.
    scores = np.round(summed, _DECIMALS)
    order = np.argsort(-scores, kind="stable")[:limit]
    return dict(zip(decoded(ids[order]), scores[order].tolist(), strict=True))


def _support(
    links: KeptRows, ranking: Ranking
) -> tuple[npt.NDArray[np.bytes_], npt.NDArray[np.float64]]:
    """Return the chunks of what is ranked, one for each link, and the score that each brings."""
    import numpy as np

    rows, places = links.having("id", ranking)
    return links.ids("chunk_id")[rows], np.array(list(ranking.values()), np.float64)[places]


@operator
def entities_in(index: Release, chunks: Ranking, limit: int) -> Ranking:
    """Rank the entities that chunks name, by the summed scores of these and by rarity.

    One that few chunks name tells more of them: ln(1 + N / df), over all chunks.
    """
    import numpy as np

    links = index.kept(_OF_ENTITIES)
    rows, places = links.having("chunk_id", chunks)
    scores = np.array(list(chunks.values()), np.float64)[places]
    ids, where = np.unique(links.ids("id")[rows], return_inverse=True)
    _, named = links.having("id", decoded(ids))
    frequency = np.bincount(named, minlength=len(ids))
    rarity = np.log1p(index.facts.counts["n_chunks"] / np.maximum(frequency, 1))
    summed = np.round(np.bincount(where, scores, minlength=len(ids)) * rarity, _DECIMALS)
    order = np.argsort(-summed, kind="stable")[:limit]
    return dict(zip(decoded(ids[order]), summed[order].tolist(), strict=True))


@operator
def first_mentions(index: Release, entities: Iterable[str], limit: int) -> Ranking:
    """Return the chunk in which each document first mentions one of some entities; scores are 0.

    Of the ``limit`` documents that mention them in most chunks: there a thing is introduced.
    """
    rows = index.rows(_FIRST_MENTIONS, ids=list(entities), limit=limit)
    return {row["id"]: 0.0 for row in rows}


@operator
def chunks_having(index: Release, chunks: Ranking, pattern: str, limit: int) -> Ranking:
    """Return the first ``limit`` of ranked chunks in which a pattern (of RE2) is found."""
    found = {row["id"] for row in index.rows(_HAVING, ids=list(chunks), pattern=pattern)}
    return dict(islice(((key, score) for key, score in chunks.items() if key in found), limit))


@operator
def chunks_of_documents(
    index: Release, chunks: Ranking, documents: Collection[str], limit: int
) -> Ranking:
    """Return the first ``limit`` of ranked chunks that are of some documents."""
    rows = index.rows(_OF_DOCUMENTS, ids=list(chunks), documents=list(documents))
    found = {row["id"] for row in rows}
    return dict(islice(((key, score) for key, score in chunks.items() if key in found), limit))


@operator
def chunk_lengths(index: Release, chunks: Iterable[str]) -> list[int]:
    """Return the tokens of distinct chunks, in their order, as counted when they were cut."""
    table, keys = index.kept(_LENGTHS), list(chunks)
    rows, places = table.having("id", keys)
    lengths = dict(zip(places.tolist(), table.values("n_tokens")[rows].tolist(), strict=True))
    return [int(lengths.get(place, 0)) for place in range(len(keys))]


@operator
def mean_chunk_length(index: Release) -> float:
    """Return the tokens of a chunk on average, 0 where there is none."""
    lengths = index.kept(_LENGTHS).values("n_tokens")
    return float(lengths.mean()) if len(lengths) else 0.0


@operator
def every_chunk(index: Release) -> Ranking:
    """Return all chunks, in the order of documents and within them; scores are 1."""
    rows = index.rows("SELECT id FROM chunks ORDER BY human_readable_id, id")
    return {row["id"]: 1.0 for row in rows}


@operator
def chunks_within(index: Release, chunks: Ranking, budget: int) -> Ranking:
    """Return the first of ranked chunks, as many as could fit in a budget of tokens."""
    table = index.kept(_LENGTHS)
    rows, places = table.having("id", chunks)
    lengths = table.values("n_tokens")[rows]
    keys = list(chunks)
    fitting = places[lengths.cumsum() - lengths < budget]
    return {keys[place]: chunks[keys[place]] for place in fitting.tolist()}


@operator
def document_texts(index: Release, ids: Iterable[str]) -> dict[str, str] | None:
    """Return the texts of distinct documents, or None where all texts are too large to keep."""
    table = index.held(_DOCUMENTS)
    if table is None:
        return None
    keys, texts = list(ids), table.texts("text")
    rows, places = table.having("id", keys)
    columns = zip(rows.tolist(), places.tolist(), strict=True)
    return {keys[place]: texts[row] for row, place in columns}


@operator
def documents_of(index: Release, ids: Collection[str]) -> list[dict[str, Any]]:
    """Return the id, title, uri and text of distinct documents."""
    return list(index.rows(_WHOLE, ids=list(ids))) if ids else []


@operator
def chunk_records(index: Release, chunks: Ranking) -> list[Record]:
    """Return the records of ranked chunks, in their order; the title is the document's."""
    rows = index.records(_RECORDS, chunks)
    return [
        Record(
            kind="chunk",
            id=key,
            number=row["human_readable_id"],
            title=row["title"],
            text=row["text"],
            score=score,
            attributes={
                name: row[name] for name in ("document_id", "uri", "start_char", "end_char")
            },
        )
        for key, score in chunks.items()
        if (row := rows.get(key))
    ]


def cite_text(index: Release, document: Mapping[str, Any], start: int, end: int) -> Citation:
    """Return a citation, not numbered, of the text between two places of a document.

    ``document`` has its id, title, uri and text.
    """
    chunk = index.rows(_CHUNK_AT, document=document["id"], start=start)[0]["id"]
    return Citation(
        number=0,
        document_id=document["id"],
        document_title=document["title"],
        uri=document["uri"],
        chunk_id=chunk,
        start_char=start,
        end_char=end,
        text=document["text"][start:end],
    )
