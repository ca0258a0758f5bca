"""Entities of some types, the best connected first, each with a sentence that says what it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphrag_pipeline.core.languages import language_of_document
from graphrag_pipeline.core.text import fold
from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.evidence.definitions import says_what_is
from graphrag_pipeline.query.evidence.sentences import Sentence, sentences_of
from graphrag_pipeline.query.evidence.themes import best_first, is_name
from graphrag_pipeline.query.results import Citation, Record
from graphrag_pipeline.query.trace import operator

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

_MOST, _FIRST_EACH, _FULL_EACH, _SAYS_WHAT = 20, 3, 4, 0.5
# Where documents that mention an entity in most chunks do so first, and where it is named most.
_CHUNKS = """
SELECT entity_id, chunk_id FROM (
    SELECT e.entity_id, e.chunk_id, e.n_mentions, count(*) OVER own AS n,
           c.start_char = min(c.start_char) OVER own AS is_first
    FROM entity_chunks e JOIN chunks c ON c.id = e.chunk_id
    SEMI JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS entity_id) wanted USING (entity_id)
    WINDOW own AS (PARTITION BY e.entity_id, c.document_id))
WINDOW firsts AS (PARTITION BY entity_id ORDER BY is_first DESC, n DESC, chunk_id),
       fullest AS (PARTITION BY entity_id ORDER BY n_mentions DESC, chunk_id)
QUALIFY row_number() OVER firsts <= $first OR row_number() OVER fullest <= $full
ORDER BY entity_id, is_first DESC, n_mentions DESC, chunk_id
"""


@operator
def told_of_types(index: Release, question: str, types: Sequence[str]) -> list[Record]:
    """Return findings of the best connected entities of some types, one of each.

    It is a sentence that says what the entity is, where one does, and else the one that reads best
    in the question's language. An entity that no sentence names by its title, or only one that is
    told of another, is left out.
    """
    ranked = op.entity_records(index, op.best_connected(index, types, _MOST))
    entities = [entity for entity in ranked if is_name(entity.title)]
    naming = _sentences_naming(index, entities)
    language = language_of_document(question)
    told: dict[str, Record] = {}
    taken: set[Citation] = set()
    for least in (_SAYS_WHAT, 0.0):
        for entity in entities:
            said = [(s, sure) for s, sure in naming[entity.id] if s.citation not in taken]
            best = max((sure for _, sure in said), default=-1.0)
            if entity.id not in told and best >= least:
                findings = [_finding(entity, s) for s, sure in said if sure == best]
                told[entity.id] = best_first(findings, [entity.title], language)[0][0]
                start = told[entity.id].attributes["start_char"]
                taken |= {s.citation for s, _ in said if s.start == start}
    return [told[entity.id] for entity in entities if entity.id in told]


def _sentences_naming(
    index: Release, entities: Sequence[Record]
) -> dict[str, list[tuple[Sentence, float]]]:
    """Return the sentences that name each entity, and how surely each says what it is."""
    ids = [entity.id for entity in entities]
    chunks_of: dict[str, list[str]] = {key: [] for key in ids}
    for row in index.rows(_CHUNKS, ids=ids, first=_FIRST_EACH, full=_FULL_EACH):
        chunks_of[row["entity_id"]].append(row["chunk_id"])
    chunks = dict.fromkeys(chunk for own in chunks_of.values() for chunk in own)
    sentences: dict[str, list[Sentence]] = {}
    for sentence in sentences_of(index, list(chunks)):
        sentences.setdefault(sentence.chunk_id, []).append(sentence)
    naming: dict[str, list[tuple[Sentence, float]]] = {}
    for entity in entities:
        title = fold(entity.title)
        says = says_what_is(title, is_person=entity.attributes["type"] == "PERSON")
        own = (s for chunk in chunks_of[entity.id] for s in sentences.get(chunk, ()))
        naming[entity.id] = [(s, says(s)) for s in own if title in fold(s.first)]
    return naming


def _finding(entity: Record, sentence: Sentence) -> Record:
    start, text = sentence.start, sentence.first
    place = {"start_char": start, "end_char": start + len(text)}
    return Record(
        kind="finding",
        id=f"{entity.id}#{start}",
        number=entity.number,
        title=entity.title,
        text=text,
        score=1.0,
        attributes={"report_id": "", "community_id": "", "chunk_id": sentence.chunk_id, **place},
    )
