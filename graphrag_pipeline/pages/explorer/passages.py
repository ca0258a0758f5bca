"""Passages that name an entity: the stretch of a chunk around each."""

from __future__ import annotations

PASSAGES = 5
"""Most passages of source text shown for one entity."""

_BEFORE, _AFTER = 140, 180


def passages_of(entities: str) -> str:
    """Return SQL for the passages of some entities, the best first; ``entities`` gives their ids.

    Positions are characters of ``text``, that of the chunk; ``marked`` is where the name stands,
    ``first`` and ``last`` what is to be shown. The passages of one entity are from as many
    documents as they can be. An import may not say where in a chunk an entity stands: then its
    title is looked for, or else the longest of its words.
    """
    return f"""
WITH found AS (
    SELECT e.entity_id, e.chunk_id, c.document_id, c.start_char AS offset_, e.n_mentions,
           row_number() OVER (PARTITION BY e.entity_id, c.document_id
                              ORDER BY e.n_mentions DESC, c.ordinal) AS nth_of_document,
           count(*) OVER (PARTITION BY e.entity_id) AS n_chunks,
           e.start_char - c.start_char AS spot, e.end_char - e.start_char AS n_chars
    FROM entity_chunks e SEMI JOIN ({entities}) chosen ON chosen.id = e.entity_id
    JOIN chunks c ON c.id = e.chunk_id
), best AS (
    FROM found
    QUALIFY row_number() OVER (PARTITION BY entity_id ORDER BY nth_of_document, n_mentions DESC,
                               document_id, offset_) <= {PASSAGES}
), named AS (
    SELECT best.*, c.text, CASE
               WHEN spot IS NOT NULL THEN NULL
               WHEN contains(lower(c.text), lower(entities.title)) THEN lower(entities.title)
               ELSE (SELECT arg_max(word, length(word))
                     FROM unnest(string_split(lower(entities.title), ' ')) AS words(word)
                     WHERE length(word) > 3 AND contains(lower(c.text), word)) END AS sought
    FROM best JOIN chunks c ON c.id = chunk_id JOIN entities ON entities.id = entity_id
), placed AS (
    SELECT * REPLACE (coalesce(spot, strpos(lower(text), sought) - 1, -1) AS spot,
                      coalesce(n_chars, length(sought), 0) AS n_chars)
    FROM named
)
SELECT entity_id, chunk_id, document_id, offset_, n_chunks, text, nth_of_document, n_mentions,
       greatest(spot, 0) AS marked, CASE WHEN spot < 0 THEN 0 ELSE n_chars END AS n_marked,
       greatest(spot - {_BEFORE}, 0) AS first, least(greatest(spot, 0) + n_chars + {_AFTER},
       length(text)) AS last
FROM placed ORDER BY entity_id, nth_of_document, n_mentions DESC, document_id, offset_
"""
