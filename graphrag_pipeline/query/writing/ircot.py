"""IRCoT's answers: a sentence of reasoning, a retrieval for it, and so on; then the answer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from graphrag_pipeline.extraction.rules.sentences import sentence_spans
from graphrag_pipeline.llm.errors import ModelError
from graphrag_pipeline.query.methods.ircot import IrcotParameters, fitted, merged, one_step
from graphrag_pipeline.query.results import Record, render_context
from graphrag_pipeline.query.writing.asking import Asking, Final
from graphrag_pipeline.query.writing.lists import one_line_of
from graphrag_pipeline.query.writing.single import from_records

_LAST = re.compile(r".* answer is:? (.*)\.?", re.IGNORECASE | re.DOTALL)


async def ircot_answer(asking: Asking, p: IrcotParameters) -> Final | None:
    """Reason and retrieve by turns, and answer from all that was found."""
    thoughts: list[str] = []
    records = await _retrieve(asking, asking.search_text, [], p)
    for step in range(p.steps):
        thought = await _think(asking, records, thoughts)
        if not thought or thought in thoughts:
            break
        thoughts.append(thought)
        if _LAST.match(thought) or step + 1 == p.steps:
            break
        records = await _retrieve(asking, thought, records, p)
    asking.trace.steps += thoughts
    kept = await asking.retrieve(lambda: fitted(asking.index, records, p))
    is_text = all(record.kind == "chunk" for record in kept)
    return from_records(kept, "basic_answer" if is_text else "local_answer")


async def _retrieve(
    asking: Asking, text: str, records: Sequence[Record], p: IrcotParameters
) -> list[Record]:
    def more() -> list[Record]:
        return fitted(asking.index, merged(records, one_step(asking.index, text, p), p), p)

    return await asking.retrieve(more)


async def _think(asking: Asking, records: Sequence[Record], thoughts: Sequence[str]) -> str:
    """Return the next sentence of reasoning, empty if the model gives none."""
    values = {"context": render_context(records), "text": "\n".join(thoughts)}
    try:
        said = (await asking.say("reason", "ircot_step", **values)).strip()
    except ModelError as error:
        if error.stops_everything:
            raise
        asking.failures.append(f"reason: {error}")
        return ""
    first = next(iter(sentence_spans(said)), (0, len(said)))
    return one_line_of(said[slice(*first)])
