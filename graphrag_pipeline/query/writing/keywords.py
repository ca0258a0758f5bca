"""Answers of methods that have a model take the question apart before they search."""

from __future__ import annotations

from graphrag_pipeline.query.methods.fast_graphrag import (
    FastGraphragParameters,
    fast_graphrag,
    from_entities,
)
from graphrag_pipeline.query.methods.lightrag import (
    LightragParameters,
    by_keywords,
    keywords_by_rule,
    keywords_of,
)
from graphrag_pipeline.query.writing.asking import Asking, Final
from graphrag_pipeline.query.writing.lists import ask_lists
from graphrag_pipeline.query.writing.single import from_records


async def lightrag_answer(asking: Asking, p: LightragParameters) -> Final | None:
    """Ask for the question's keywords, retrieve by them, and answer."""
    names = ("high_level_keywords", "low_level_keywords")
    lists = await ask_lists(asking, "keywords", "question_keywords", names)
    if lists is None:
        found = await asking.retrieve(lambda: keywords_by_rule(asking.index, asking.search_text))
    else:
        found = keywords_of(asking.search_text, lists[1], lists[0])
    asking.trace.step(f"{found} ({'by rule' if lists is None else 'by model'})")
    records = await asking.retrieve(lambda: by_keywords(asking.index, asking.search_text, found, p))
    return from_records(records, "local_answer")


async def fast_graphrag_answer(asking: Asking, p: FastGraphragParameters) -> Final | None:
    """Ask for the question's entities, named and generic, retrieve from them, and answer."""
    names = ("named", "generic")
    lists = await ask_lists(asking, "entities", "named_and_generic", names)
    if lists is None:
        records = await asking.retrieve(lambda: fast_graphrag(asking.index, asking.search_text, p))
        return from_records(records, "local_answer")
    named, generic = lists
    asking.trace.step(
        f"named: {', '.join(named) or 'none'}; generic: {', '.join(generic) or 'none'} (by model)"
    )
    asked = [*generic, asking.search_text]
    records = await asking.retrieve(lambda: from_entities(asking.index, named, asked, p))
    return from_records(records, "local_answer")
