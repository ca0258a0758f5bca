"""Descriptions merged by a model: many of one entity or relationship become one (paper, 3.1.3).

Only where several distinct descriptions are longer together than a token budget, and only when
their set has changed since they were last merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import polars as pl

from graphrag_pipeline.core import progress
from graphrag_pipeline.core.prompting import Prompt, load_prompt
from graphrag_pipeline.core.settings import Role, Settings
from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.graph.fold import GraphChanges, fold_again, merge_graph
from graphrag_pipeline.llm.answer_purposes import making
from graphrag_pipeline.llm.configured import model_of, prompts_folder, with_model
from graphrag_pipeline.llm.errors import ModelError
from graphrag_pipeline.llm.running import ask_each
from graphrag_pipeline.llm.speed import foretell
from graphrag_pipeline.llm.windows import prompt_room
from graphrag_pipeline.store.frames import drop_rows, put_rows
from graphrag_pipeline.store.index_store import IndexStore, insert

if TYPE_CHECKING:
    from graphrag_pipeline.llm.client import ModelClient

STAGE = "summaries"
ROLE: Role = "summaries"
_PART_TOKENS = 6000
_WORDS_PER_TOKEN = 0.6

# Descriptions of what a model or an import found, sorted, as the graph's fold joins them.
_MANY = """
WITH told AS (
    SELECT e.id, e.title AS name, m.description FROM resolved_entity_mentions m
    JOIN entities e ON e.id = m.entity_id JOIN extractions x USING (chunk_id)
    WHERE m.description <> '' AND x.extractor <> 'nlp' UNION
    SELECT r.id, r.source || ' and ' || r.target, m.description
    FROM resolved_relationship_mentions m
    JOIN relationships r USING (source_id, target_id) JOIN extractions x USING (chunk_id)
    WHERE m.description <> '' AND x.extractor <> 'nlp'),
grouped AS (
    SELECT id, any_value(name) AS name, list(description ORDER BY description) AS parts,
           sha256(string_agg(description, chr(10) ORDER BY description)) AS input_hash
    FROM told GROUP BY id
    HAVING count(*) > 1 AND sum(strlen(description)) > $budget)
SELECT * FROM grouped ANTI JOIN description_summaries USING (id, input_hash) ORDER BY id
"""


@dataclass(frozen=True)
class Descriptions:
    """The distinct descriptions (``parts``) of an entity or relationship."""

    id: str
    name: str
    parts: Sequence[str]
    input_hash: str


def update_graph(store: IndexStore, settings: Settings) -> tuple[GraphChanges, dict[str, int]]:
    """Merge the graph, then long descriptions where a model is to; return what both did."""
    options, encoding = settings.graph, settings.chunks.encoding
    changes = merge_graph(store, options, encoding)
    if options.summaries != "llm":
        return changes, {}
    counts = summarise_descriptions(store, settings)
    if counts["summarised"]:
        merge_graph(store, options, encoding)
    return changes, counts


def summarise_descriptions(store: IndexStore, settings: Settings) -> dict[str, int]:
    """Merge long sets of descriptions; the next fold of the graph puts the results in.

    Returns how many were ``summarised`` and ``failed``; one that failed keeps all its
    descriptions and is tried again by the next run.
    """
    budget = settings.graph.max_description_tokens
    with store.read() as con:
        todo = descriptions_to_merge(con, budget)
    if not todo:
        return {"summarised": 0, "failed_summaries": 0}
    prompts = prompts_folder(settings)
    foretell(settings, ROLE, STAGE, STAGE, len(todo), len(todo))
    texts = with_model(settings, lambda client: _summarise(todo, client, budget, prompts), ROLE)
    rows = [
        (descriptions.id, descriptions.input_hash, text, model_of(settings, ROLE))
        for descriptions, text in zip(todo, texts, strict=True)
        if text
    ]
    with store.transaction() as con:
        _store(con, rows)
    return {"summarised": len(rows), "failed_summaries": len(todo) - len(rows)}


def descriptions_to_merge(con: duckdb.DuckDBPyConnection, budget: int) -> list[Descriptions]:
    """Return what is longer than ``budget`` tokens and was not merged as it is now."""
    rows = con.execute(_MANY, {"budget": budget}).fetchall()
    candidates = [Descriptions(*row) for row in rows]
    return [
        descriptions
        for descriptions in candidates
        if sum(count_tokens(descriptions.parts)) > budget
    ]


async def _summarise(
    todo: Sequence[Descriptions], client: ModelClient, budget: int, prompts: Path | None
) -> list[str | None]:
    words = str(max(50, int(budget * _WORDS_PER_TOKEN)))
    ask = load_prompt("summarise_descriptions", prompts)
    reduce = load_prompt("summarise_descriptions_reduce", prompts)

    async def merge(descriptions: Descriptions) -> str:
        with making(descriptions.input_hash):
            return await _merge(descriptions, client, words, ask, reduce)

    texts = await ask_each(client, todo, merge, partial(progress.report, STAGE))
    return [None if isinstance(text, ModelError) else text for text in texts]


async def _merge(
    descriptions: Descriptions, client: ModelClient, words: str, ask: Prompt, reduce: Prompt
) -> str:
    most = min(_PART_TOKENS, prompt_room(client.options) or _PART_TOKENS)
    texts = [
        await _ask(
            client, ask.render(descriptions=_listed(descriptions.name, part), max_words=words)
        )
        for part in _parts(descriptions.parts, most)
    ]
    while len(texts) > 1:
        texts = [
            await _ask(
                client,
                reduce.render(descriptions=_listed(descriptions.name, part), max_words=words),
            )
            for part in _parts(texts, most)
        ]
    return texts[0]


async def _ask(client: ModelClient, messages: list[dict[str, str]]) -> str:
    completion = await client.complete(messages, stage=STAGE)
    return completion.text.strip()


def _listed(name: str, parts: Sequence[str]) -> str:
    return "\n".join([name, *(f"- {part}" for part in parts)])


def _parts(descriptions: Sequence[str], most: int) -> list[list[str]]:
    """Cut descriptions into parts of ``most`` tokens; two at least in each, so that it ends."""
    parts: list[list[str]] = [[]]
    n_used = 0
    for text, n_tokens in zip(descriptions, count_tokens(descriptions), strict=True):
        if len(parts[-1]) > 1 and n_used + n_tokens > most:
            parts.append([])
            n_used = 0
        parts[-1].append(text)
        n_used += n_tokens
    if len(parts) > 1 and len(parts[-1]) == 1:
        last = parts.pop()
        parts[-1] += last
    return parts


def _store(con: duckdb.DuckDBPyConnection, rows: Sequence[tuple[str, str, str, str]]) -> None:
    names = ("id", "input_hash", "description", "model")
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    put_rows(con, "new_summaries", frame)
    con.execute("DELETE FROM description_summaries WHERE id IN (SELECT id FROM new_summaries)")
    drop_rows(con, "new_summaries")
    insert(con, "description_summaries", frame)
    # In the same transaction: a run killed before the fold would never put them in.
    fold_again(con)
