"""KG-GraphRAG's answers: a model names the question's entities, the graph has what follows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.kg_search import KgTripletsParameters, named_entities
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.writing.asking import Asking, Final
from graphrag_pipeline.query.writing.lists import ask_lists
from graphrag_pipeline.query.writing.single import from_records


def kg_answer(
    retrieve: Callable[..., list[Record]],
) -> Callable[[Asking, Any], Awaitable[Final | None]]:
    """Return how an answer is prepared from what ``retrieve`` finds around matched entities."""

    async def prepare(asking: Asking, p: KgTripletsParameters) -> Final | None:
        names = await _names(asking, p)
        return from_records(await asking.retrieve(lambda: found(asking, names, p)), "local_answer")

    def found(asking: Asking, names: list[str] | None, p: KgTripletsParameters) -> list[Record]:
        if names is None:
            entities = named_entities(asking.index, asking.search_text, p)
        else:
            entities = op.entities_titled(asking.index, names)
        return retrieve(asking.index, entities, p)

    return prepare


async def _names(asking: Asking, p: KgTripletsParameters) -> list[str] | None:
    """Return the names to look for, of entities before synonyms, or None if none can be read."""
    lists = await ask_lists(
        asking,
        "entities",
        "question_entities",
        ("entities", "synonyms"),
        max_entities=str(p.entities),
        max_synonyms=str(p.synonyms),
    )
    if lists is None:
        return None
    names = [*lists[0][: p.entities], *lists[1][: p.synonyms]]
    asking.trace.step(f"entities: {', '.join(names) or 'none'}")
    return names
