"""Pairs that rules cannot decide, asked of the model: several a call, each answer kept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.core import progress
from graphrag_pipeline.core.prompting import Prompt, load_prompt
from graphrag_pipeline.core.settings import Role, Settings
from graphrag_pipeline.graph.resolution.pairs import Entity, Pair
from graphrag_pipeline.llm.configured import prompts_folder, with_model
from graphrag_pipeline.llm.errors import ModelError
from graphrag_pipeline.llm.parsing import parse_json_list
from graphrag_pipeline.llm.running import ask_each
from graphrag_pipeline.llm.schemas import BOOLEAN, INTEGER, NUMBER, closed, listed, text

if TYPE_CHECKING:
    from graphrag_pipeline.llm.client import ModelClient

STAGE = "resolution"
PROMPT = "same_entity"
ROLE: Role = "extraction"
FAILED = "the model gave no answer"
_PAIRS_PER_CALL = 10
_SURE = 0.7
_DESCRIPTION = 300
_PAIR = closed(pair=INTEGER, same=BOOLEAN, confidence=NUMBER, reason=text(_DESCRIPTION))
_ANSWERS = closed(pairs=listed(_PAIR, _PAIRS_PER_CALL))


def ask_about(pairs: Sequence[Pair], settings: Settings) -> list[Pair]:
    """Return the pairs as the model decides them; where it is not sure, they stay apart.

    A call that fails leaves its pairs apart, with FAILED as their rule. Raises the model's error
    when no further call can succeed; what was answered until then is in the cache.
    """
    if not pairs:
        return []
    prompt = load_prompt(PROMPT, prompts_folder(settings))
    calls = _calls(pairs)

    async def ask(client: ModelClient) -> list[list[Pair] | ModelError]:
        decide = partial(_ask, client=client, prompt=prompt)
        return await ask_each(client, calls, decide, partial(progress.report, STAGE))

    decided = zip(calls, with_model(settings, ask, ROLE), strict=True)
    return [
        pair
        for asked, answer in decided
        for pair in (_failed(asked, answer) if isinstance(answer, ModelError) else answer)
    ]


def _failed(pairs: Sequence[Pair], error: ModelError) -> list[Pair]:
    evidence = {"error": str(error)}
    return [replace(pair, rule=FAILED, method="model", evidence=evidence) for pair in pairs]


def _calls(pairs: Sequence[Pair]) -> list[list[Pair]]:
    """Cut pairs into calls at places that their own ids decide.

    A new pair then changes one call, and the answers to the others are in the cache.
    """
    calls: list[list[Pair]] = []
    for pair in sorted(pairs, key=lambda pair: pair.ids):
        begins = int(pair.ids[0][:4], 16) % _PAIRS_PER_CALL == 0
        if not calls or begins or len(calls[-1]) == _PAIRS_PER_CALL:
            calls.append([])
        calls[-1].append(pair)
    return calls


async def _ask(pairs: Sequence[Pair], client: ModelClient, prompt: Prompt) -> list[Pair]:
    talk = prompt.render(descriptions=_listed(pairs))
    reply = await client.read(talk, _read, stage=STAGE, json_schema=_ANSWERS)
    return [_decided(pair, reply.get(number, {})) for number, pair in enumerate(pairs, 1)]


def _listed(pairs: Sequence[Pair]) -> str:
    """Return the pairs as lines of JSON, which a title cannot break out of."""
    return "\n".join(
        json.dumps(
            {
                "pair": number,
                "a": _told(pair.one),
                "b": _told(pair.two),
                "documents in common": pair.evidence.get("shared_documents", 0),
            },
            ensure_ascii=False,
        )
        for number, pair in enumerate(pairs, 1)
    )


def _told(entity: Entity) -> dict[str, str]:
    return {
        "name": entity.title,
        "type": entity.name.type,
        "description": entity.description[:_DESCRIPTION],
    }


def _read(text: str) -> Mapping[int, Mapping[str, Any]]:
    return {
        row["pair"]: row
        for row in parse_json_list(text, "pairs")
        if isinstance(row, dict) and isinstance(row.get("pair"), int)
    }


def _decided(pair: Pair, reply: Mapping[str, Any]) -> Pair:
    value = reply.get("confidence")
    confidence = min(max(float(value), 0.0), 1.0) if isinstance(value, int | float) else 0.0
    merges = reply.get("same") is True and confidence >= _SURE
    evidence = {
        **pair.evidence,
        "asked_because": pair.rule,
        "reason": str(reply.get("reason") or "")[:_DESCRIPTION],
    }
    rule = "the model says so" if reply else FAILED
    return replace(
        pair,
        rule=rule,
        method="model",
        confidence=round(confidence, 3) if merges else 0.0,
        evidence=evidence,
    )
