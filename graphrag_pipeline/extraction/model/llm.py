"""The `llm` extractor: entities, relationships and claims by a model (paper, 3.1.2, A.1, A.2).

In one pass a call gives both entities and relationships; in two (HiRAG, section 4.1 and I) the
first gives entities, and the second relationships between the entities it is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import polars as pl

from graphrag_pipeline.core.prompting import Message, load_examples, load_prompt, prompt_version
from graphrag_pipeline.core.settings import ExtractionSettings
from graphrag_pipeline.core.text import normalize_title
from graphrag_pipeline.core.tokens import get_encoding
from graphrag_pipeline.extraction.mentions import (
    ENTITY_MENTIONS,
    RELATIONSHIP_MENTIONS,
    UNREADABLE,
    Extraction,
)
from graphrag_pipeline.extraction.model.claims import ParsedClaim, claim_subjects, parse_claims
from graphrag_pipeline.extraction.model.passes import entity_examples, relation_examples
from graphrag_pipeline.extraction.model.tuples import ParsedExtraction, example_titles, parse_tuples
from graphrag_pipeline.llm.client import Completion, ModelClient
from graphrag_pipeline.llm.errors import ModelError, ModelOutputError, TerminalModelError
from graphrag_pipeline.llm.parsing import parse_yes_no
from graphrag_pipeline.llm.running import work_through

Read = TypeVar("Read")

LLM_VERSION = "1"
STAGE = "extractions"
_GLEANING = ("glean_check", "glean_continue")
_ASKING = {1: ("extract_graph",), 2: ("extract_entities", "extract_relations")}
_BIAS = 100
_TOKENS_OF_A_WORD = 5

CLAIMS = pl.Schema(
    {
        "chunk_id": pl.String,
        "subject": pl.String,
        "object": pl.String,
        "type": pl.String,
        "status": pl.String,
        "start_date": pl.String,
        "end_date": pl.String,
        "description": pl.String,
        "source_text": pl.String,
    }
)
OUTCOMES = pl.Schema(
    {
        "chunk_id": pl.String,
        "status": pl.String,
        "error": pl.String,
        "prompt_tokens": pl.Int64,
        "completion_tokens": pl.Int64,
    }
)


@dataclass(frozen=True)
class LlmExtraction:
    """What a model found in some chunks.

    ``claims`` has the columns of ``CLAIMS``; ``outcomes`` those of ``OUTCOMES``, a row per chunk:
    ``ok``, or ``failed`` with the reason.
    """

    found: Extraction
    claims: pl.DataFrame
    outcomes: pl.DataFrame


@dataclass
class _ChunkResult:
    chunk_id: str
    extraction: ParsedExtraction | None = None
    claims: tuple[ParsedClaim, ...] = ()
    error: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def pay(self, completion: Completion) -> str:
        """Count a completion's tokens; return its text."""
        self.prompt_tokens += completion.prompt_tokens
        self.completion_tokens += completion.completion_tokens
        return completion.text


def llm_extraction_version(settings: ExtractionSettings, model: str, prompts: Path | None) -> str:
    """Return what decides a model's extractions: model, prompts, examples, settings."""
    names = (*_prompts(settings), *(["extract_claims"] if settings.claims else []))
    shaping = settings.model_dump(exclude={"noun_phrases", "extractor", "passes"})
    version = prompt_version(*names, folder=prompts, domain=settings.domain)
    return f"{LLM_VERSION}:{model}:{version}:{sorted(shaping.items())}"


async def extract_llm(
    chunks: pl.DataFrame,
    client: ModelClient,
    settings: ExtractionSettings,
    *,
    batch: str,
    prompts: Path | None = None,
    on_done: Callable[[int, int], None] = lambda done, total: None,
) -> LlmExtraction:
    """Extract from chunks: columns ``id``, ``text``, ``context``, ``variant``.

    ``context`` is metadata shown before the text, or empty; ``variant`` is null, or what tells this
    attempt from one whose answer is in the cache but could not be read.

    A chunk that fails is an outcome with its error; the others are kept, and so is the graph of a
    chunk of which only the claims failed. Raises the model's error
    when every further call would meet it too (key, model name, quota, budget): what was answered
    until then is in the cache.
    """
    asker = _Asker(client, settings, batch, prompts)
    rows = list(chunks.select("id", "text", "context", "variant").iter_rows())
    results: list[_ChunkResult | None] = [None] * len(rows)
    done = 0

    async def work(index: int) -> None:
        nonlocal done
        results[index] = await asker.extract(*rows[index])
        done += 1
        on_done(done, len(rows))

    await work_through(range(len(rows)), work, 2 * client.options.concurrency)
    return _gather([result for result in results if result is not None])


def _prompts(settings: ExtractionSettings) -> tuple[str, ...]:
    return (*_ASKING[settings.passes], *_GLEANING)


class _Asker:
    def __init__(
        self, client: ModelClient, settings: ExtractionSettings, batch: str, prompts: Path | None
    ) -> None:
        self._client = client
        self._settings = settings
        self._batch = batch
        self._prompts = {name: load_prompt(name, prompts) for name in _prompts(settings)}
        self._claims = load_prompt("extract_claims", prompts)
        self._examples = load_examples(settings.domain, prompts)
        self._example_titles = example_titles(self._examples)
        self._claim_subjects = claim_subjects(self._claims.system)
        self._yes_or_no = _yes_no_bias()
        self._in_a_word = True

    async def extract(
        self, chunk_id: str, text: str, context: str, variant: str | None
    ) -> _ChunkResult:
        result = _ChunkResult(chunk_id)
        shown = f"{context}{text}"
        try:
            result.extraction = await self._graph(shown, result, variant)
            if self._settings.claims:
                result.claims = await self._claims_of(shown, result, variant)
        except ModelError as error:
            if error.stops_everything:
                raise
            result.error = str(error)
        return result

    async def _graph(
        self, shown: str, result: _ChunkResult, variant: str | None
    ) -> ParsedExtraction:
        types = ", ".join(self._settings.entity_types)
        if self._settings.passes == 1:
            messages = self._prompts["extract_graph"].render(
                entity_types=types, examples=self._examples, document=shown
            )
            return await self._records(messages, shown, result, variant)
        messages = self._prompts["extract_entities"].render(
            entity_types=types, examples=entity_examples(self._examples), document=shown
        )
        found = await self._records(messages, shown, result, variant)
        if len(found.entities) < 2:
            return replace(found, relationships=())
        messages = self._prompts["extract_relations"].render(
            names="\n".join(dict.fromkeys(entity.title for entity in found.entities)),
            examples=relation_examples(self._examples),
            document=shown,
        )
        related = await self._records(messages, shown, result, variant)
        return replace(found, relationships=related.relationships)

    async def _records(
        self, messages: Sequence[Message], shown: str, result: _ChunkResult, variant: str | None
    ) -> ParsedExtraction:
        def read(answer: str) -> ParsedExtraction:
            parsed = parse_tuples(answer, chunk_text=shown, example_titles=self._example_titles)
            if not parsed.answered:
                raise ModelOutputError(f"{UNREADABLE} records of entities")
            return parsed

        return await self._read(messages, result, variant, read)

    async def _claims_of(
        self, shown: str, result: _ChunkResult, variant: str | None
    ) -> tuple[ParsedClaim, ...]:
        messages = self._claims.render(
            entities=", ".join(self._settings.entity_types),
            claim_description=self._settings.claim_description,
            document=shown,
        )

        def read(answer: str) -> tuple[ParsedClaim, ...]:
            parsed = parse_claims(answer, chunk_text=shown, example_titles=self._claim_subjects)
            if not parsed.answered:
                raise ModelOutputError(f"{UNREADABLE} claims and did not say so")
            return parsed.claims

        return await self._read(messages, result, variant, read)

    async def _read(
        self,
        messages: Sequence[Message],
        result: _ChunkResult,
        variant: str | None,
        read: Callable[[str], Read],
    ) -> Read:
        """Return what a conversation gave; one that is there and can be read is not paid again."""
        paid = (result.prompt_tokens, result.completion_tokens)
        try:
            return await self._converse(messages, result, None, read)
        except ModelOutputError:
            if variant is None:
                raise
        result.prompt_tokens, result.completion_tokens = paid
        return await self._converse(messages, result, variant, read)

    async def _converse(
        self,
        messages: Sequence[Message],
        result: _ChunkResult,
        variant: str | None,
        read: Callable[[str], Read],
    ) -> Read:
        """Ask, then ask for what was missed for as long as the model says that some is.

        A first answer that cannot be read raises its error at once. What was read stays when the
        model then refuses to go on, or the conversation becomes too long for it.
        """
        talk = list(messages)
        answers = [await self._ask(talk, result, variant)]
        found = read(answers[0])
        try:
            for _ in range(self._settings.gleanings):
                talk.append({"role": "assistant", "content": answers[-1]})
                if not await self._something_missing(talk, result, variant):
                    break
                talk += self._prompts["glean_continue"].render()
                answers.append(await self._ask(talk, result, variant))
        except TerminalModelError as error:
            if error.stops_everything:
                raise
        return read("\n##\n".join(answers)) if len(answers) > 1 else found

    async def _ask(self, talk: Sequence[Message], result: _ChunkResult, variant: str | None) -> str:
        completion = await self._client.complete(
            talk, stage=STAGE, batch=self._batch, variant=variant
        )
        return result.pay(completion)

    async def _something_missing(
        self, talk: Sequence[Message], result: _ChunkResult, variant: str | None
    ) -> bool:
        """Ask for yes or no: in a few tokens, or in as many as a model takes that thinks first."""
        question = [*talk, *self._prompts["glean_check"].render()]
        if self._in_a_word:
            try:
                said = await self._client.complete(
                    question,
                    stage=STAGE,
                    batch=self._batch,
                    logit_bias=self._yes_or_no,
                    max_output_tokens=_TOKENS_OF_A_WORD,
                    variant=variant,
                )
                return parse_yes_no(result.pay(said)) is True
            except TerminalModelError as error:
                if error.kind != "length":
                    raise
                self._in_a_word = False
        return parse_yes_no(await self._ask(question, result, variant)) is True


def _yes_no_bias() -> dict[int, int]:
    encode = get_encoding().encode_ordinary
    return {encode(word)[0]: _BIAS for word in ("YES", "NO")}


def _gather(results: Sequence[_ChunkResult]) -> LlmExtraction:
    return LlmExtraction(
        Extraction(
            pl.DataFrame(list(_entity_rows(results)), schema=ENTITY_MENTIONS, orient="row"),
            pl.DataFrame(
                list(_relationship_rows(results)), schema=RELATIONSHIP_MENTIONS, orient="row"
            ),
        ),
        pl.DataFrame(list(_claim_rows(results)), schema=CLAIMS, orient="row"),
        pl.DataFrame(
            [
                (r.chunk_id, "failed" if r.error else "ok", r.error, r.prompt_tokens,
                 r.completion_tokens)
                for r in results
            ],
            schema=OUTCOMES,
            orient="row",
        ),
    )  # fmt: skip


def _entity_rows(results: Sequence[_ChunkResult]) -> Iterator[tuple[object, ...]]:
    for result in results:
        if result.extraction is not None:
            for entity in result.extraction.entities:
                yield result.chunk_id, entity.title, entity.type, entity.description, None, None
            listed = {normalize_title(entity.title) for entity in result.extraction.entities}
            ends = [end for r in result.extraction.relationships for end in (r.source, r.target)]
            # A relationship names an entity that the list left out: it is one all the same.
            for title in {normalize_title(e): e for e in ends}.values():
                if normalize_title(title) not in listed:
                    yield result.chunk_id, title, "OTHER", "", None, None


def _relationship_rows(results: Sequence[_ChunkResult]) -> Iterator[tuple[object, ...]]:
    for result in results:
        if result.extraction is not None:
            for r in result.extraction.relationships:
                yield result.chunk_id, r.source, r.target, r.description, 1.0, None, None


def _claim_rows(results: Sequence[_ChunkResult]) -> Iterator[tuple[object, ...]]:
    for result in results:
        if result.error is None:
            for c in result.claims:
                yield (
                    result.chunk_id, c.subject, c.object, c.type, c.status, c.start_date,
                    c.end_date, c.description, c.source_text,
                )  # fmt: skip
