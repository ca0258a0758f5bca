"""ArchRAG's answers: each layer filtered for points, the best of them merged."""

from __future__ import annotations

from collections.abc import Sequence

from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.archrag_search import ArchRagParameters, archrag_layers
from graphrag_pipeline.query.writing.asking import Asking, Final
from graphrag_pipeline.query.writing.map_reduce import MAP_WORDS, Scored, checked, reduced
from graphrag_pipeline.query.writing.references import Shown
from graphrag_pipeline.reports.parsing import POINTS_SCHEMA, parse_points


async def archrag_answer(asking: Asking, p: ArchRagParameters) -> Final | None:
    """Filter what was retrieved of each layer, and merge (adaptive filtering-based generation)."""
    index = asking.index
    layers = await asking.retrieve(lambda: archrag_layers(index, asking.search_text, p))
    groups = await asking.retrieve(
        lambda: [part for layer in layers for part in op.groups(index, layer, p.filter_tokens)]
    )
    parts = [lambda: _from_the_model_alone(asking)] if p.direct else []
    direct = await asking.each("direct", parts, one_at_least=False)
    more = [point for points in direct for point in points or ()]
    return await reduced(asking, groups, p.filter_tokens, "archrag", "context", more)


async def _from_the_model_alone(asking: Asking) -> Sequence[Scored]:
    """Return the points of an answer that the model gives, step by step, without any record."""
    text = await asking.say("direct", "cot_answer")
    values = {"context": f"\n-----Direct answer-----\n{text}\n", "max_words": str(MAP_WORDS)}
    points = await asking.read("map", parse_points, POINTS_SCHEMA, "archrag_map", **values)
    return [checked(asking, point.description, point.score, Shown()) for point in points]
