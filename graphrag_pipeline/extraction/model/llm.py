"""The `llm` extractor: entities, relationships and claims by a model (paper, 3.1.2, A.1, A.2).

In one pass a call gives both entities and relationships; in two (HiRAG, section 4.1 and I) the
first gives entities, and the second relationships between the entities it is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import polars as pl

from graphrag_pipeline.core.prompting import Message, load_prompt, prompt_version
from graphrag_pipeline.core.settings import ExtractionSettings
from graphrag_pipeline.core.text import normalize_title
from graphrag_pipeline.core.tokens import word_token
from graphrag_pipeline.extraction.mentions import (
    ENTITY_MENTIONS,
    RELATIONSHIP_MENTIONS,
    Extraction,
)
from graphrag_pipeline.extraction.model.by_schema import SCHEMA_PROMPTS, SCHEMA_VERSION, BySchema
from graphrag_pipeline.extraction.model.claims import (
    CLAIMS_VERSION,
    ParsedClaim,
    ParsedClaims,
    claim_subjects,
    parse_claims,
)
from graphrag_pipeline.extraction.model.passes import entity_examples, relation_examples
from graphrag_pipeline.extraction.model.strength import (
    USUAL,
    asked_in_tuples,
    shown_examples,
    within_scale,
)
from graphrag_pipeline.extraction.model.tuple_fields import COMPLETE, ended
from graphrag_pipeline.extraction.model.tuples import (
    TUPLES_VERSION,
    ParsedExtraction,
    example_titles,
    joined,
    merged,
    parse_tuples,
)
from graphrag_pipeline.llm.answer_purposes import making
from graphrag_pipeline.llm.answers import LOOP
from graphrag_pipeline.llm.completion import Completion
from graphrag_pipeline.llm.errors import (
    ModelError,
    ModelOutputError,
    TerminalModelError,
    TransientModelError,
)
from graphrag_pipeline.llm.parsing import parse_yes_no
from graphrag_pipeline.llm.running import ask_each

if TYPE_CHECKING:
    from graphrag_pipeline.llm.client import ModelClient

LLM_VERSION = "2"
STAGE = "extractions"
_GOING_ON = ("glean_check", "glean_continue", "continue_records")
_ASKING = {1: ("extract_graph",), 2: ("extract_entities", "extract_relations")}
_BIAS = 100
_TOKENS_OF_A_WORD = 5
_MOST_CONTINUED = 2
_CUT = "the answer was cut off at the limit of tokens: raise llm.max_output_tokens"
_NO_END = "the answer did not come to its end, though it was asked to go on: what it said is kept"
_BROKE_OFF = "an answer broke off or repeated itself, twice: the records before that are kept"
_WENT_ROUND = "the model repeated itself and was stopped: what it said before is kept"

CLAIMS = pl.Schema(
    dict.fromkeys(("chunk_id", *(field.name for field in fields(ParsedClaim))), pl.String)
)
OUTCOMES = pl.Schema(
    {
        "chunk_id": pl.String,
        "status": pl.String,
        "error": pl.String,
        "transient": pl.Boolean,
        "prompt_tokens": pl.Int64,
        "completion_tokens": pl.Int64,
    }
)


_Parsed = TypeVar("_Parsed", ParsedExtraction, ParsedClaims)


@dataclass(frozen=True)
class LlmExtraction:
    """The results of a model on some chunks.

    ``claims`` has the columns of ``CLAIMS``; ``outcomes`` those of ``OUTCOMES``, a row per chunk:
    ``ok``; ``cut`` where an answer did not come to its end, or ``failed``, with the reason. A
    ``transient`` failure says nothing of the chunk.
    """

    found: Extraction
    claims: pl.DataFrame
    outcomes: pl.DataFrame


@dataclass
class _ChunkResult:
    chunk_id: str
    extraction: ParsedExtraction | None = None
    claims: tuple[ParsedClaim, ...] = ()
    status: str = "ok"
    error: str | None = None
    transient: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def cut(self, why: str) -> None:
        """Note that an answer did not come to its end."""
        self.status, self.error = "cut", why

    def pay(self, completion: Completion) -> None:
        """Count a completion's tokens."""
        self.prompt_tokens += completion.prompt_tokens
        self.completion_tokens += completion.completion_tokens


def llm_extraction_version(settings: ExtractionSettings, model: str, prompts: Path | None) -> str:
    """Return what decides a model's extractions: model, prompts, examples, settings, parsers."""
    names = (*_prompts(settings), *(["extract_claims"] if settings.claims else []))
    unsaid = {"noun_phrases", "extractor", "passes", "format"}
    # What was made before it could be asked for stays as it is.
    unsaid |= set() if settings.strength else {"strength"}
    shaping = settings.model_dump(exclude=unsaid)
    examples = shown_examples(settings.domain, prompts)
    version = prompt_version(*names, folder=prompts, examples=examples)
    reader = TUPLES_VERSION if settings.format not in SCHEMA_PROMPTS else f"json{SCHEMA_VERSION}"
    parsers = f"{reader}:{CLAIMS_VERSION}" if settings.claims else reader
    return f"{LLM_VERSION}:{parsers}:{model}:{version}:{sorted(shaping.items())}"


async def extract_llm(
    chunks: pl.DataFrame,
    client: ModelClient,
    settings: ExtractionSettings,
    *,
    batch: str,
    prompts: Path | None = None,
    on_done: Callable[[int, int], None] = lambda done, total: None,
) -> LlmExtraction:
    """Extract from chunks: columns ``id``, ``text``, ``context``.

    ``context`` is metadata shown before the text, or empty.

    A chunk that fails is an outcome with its error; the others are kept, and so is the graph of a
    chunk of which only the claims failed. Raises the model's error
    when every further call would meet it too (key, model name, quota, budget): what was answered
    until then is in the cache.
    """
    asker = _Asker(client, settings, batch, prompts)
    rows = list(chunks.select("id", "text", "context").iter_rows())
    results = await ask_each(client, rows, lambda row: asker.extract(*row), on_done)
    return _gather(
        [result for result in results if not isinstance(result, ModelError)], settings.strength
    )


def calls_of_chunk(settings: ExtractionSettings) -> int:
    """Return the calls that a chunk usually takes: each gleaning is one, and claims are."""
    if settings.format in SCHEMA_PROMPTS:
        return len(SCHEMA_PROMPTS[settings.format]) + settings.claims
    return settings.passes * (1 + settings.gleanings) + settings.claims


def _prompts(settings: ExtractionSettings) -> tuple[str, ...]:
    if settings.format in SCHEMA_PROMPTS:
        return (*SCHEMA_PROMPTS[settings.format], *(_GOING_ON if settings.claims else ()))
    return (*_ASKING[settings.passes], *_GOING_ON)


class _Asker:
    def __init__(
        self, client: ModelClient, settings: ExtractionSettings, batch: str, prompts: Path | None
    ) -> None:
        self._client = client
        self._settings = settings
        self._batch = batch
        names = (*_prompts(settings), *_GOING_ON)
        self._prompts = {name: load_prompt(name, prompts) for name in names}
        self._claims = load_prompt("extract_claims", prompts)
        self._examples = shown_examples(settings.domain, prompts, strengths=settings.strength)
        self._example_titles = example_titles(self._examples)
        self._claim_subjects = claim_subjects(self._claims.system)
        self._yes_or_no = _yes_no_bias(client.options.model)
        self._in_a_word = True
        self._by_schema = (
            BySchema(client, settings, prompts, self._examples, stage=STAGE, batch=batch)
            if settings.format in SCHEMA_PROMPTS
            else None
        )

    async def extract(self, chunk_id: str, text: str, context: str) -> _ChunkResult:
        result = _ChunkResult(chunk_id)
        shown = f"{context}{text}"
        try:
            with making(chunk_id):
                result.extraction = await self._graph(shown, result)
                if self._settings.claims:
                    result.claims = await self._claims_of(shown, result)
        except ModelError as error:
            if error.stops_everything:
                raise
            result.status, result.error = "failed", str(error)
            result.transient = isinstance(error, TransientModelError)
        return result

    async def _graph(self, shown: str, result: _ChunkResult) -> ParsedExtraction:
        if self._by_schema is not None:
            graph = await self._by_schema.graph(shown, result.pay)
            if not graph.completed:
                result.cut(_BROKE_OFF)
            return graph
        types, strength = ", ".join(self._settings.entity_types), asked_in_tuples(self._settings)
        if self._settings.passes == 1:
            messages = self._prompts["extract_graph"].render(
                entity_types=types, examples=self._examples, document=shown, **strength
            )
            return await self._records(messages, shown, result)
        messages = self._prompts["extract_entities"].render(
            entity_types=types, examples=entity_examples(self._examples), document=shown
        )
        first = await self._records(messages, shown, result)
        if len(first.entities) < 2:
            return replace(first, relationships=())
        messages = self._prompts["extract_relations"].render(
            names="\n".join(dict.fromkeys(entity.title for entity in first.entities)),
            examples=relation_examples(self._examples),
            document=shown,
            **strength,
        )
        related = await self._records(messages, shown, result)
        return replace(first, relationships=related.relationships)

    async def _records(
        self, messages: Sequence[Message], shown: str, result: _ChunkResult
    ) -> ParsedExtraction:
        def parse(answer: str) -> ParsedExtraction:
            return parse_tuples(answer, chunk_text=shown, example_titles=self._example_titles)

        nothing = "the model's answer held no records of entities"
        return merged(await self._parsed(messages, result, parse, nothing))

    async def _claims_of(self, shown: str, result: _ChunkResult) -> tuple[ParsedClaim, ...]:
        messages = self._claims.render(
            entities=", ".join(self._settings.entity_types),
            claim_description=self._settings.claim_description,
            document=shown,
        )

        def parse(answer: str) -> ParsedClaims:
            return parse_claims(answer, chunk_text=shown, example_titles=self._claim_subjects)

        nothing = "the model's answer held no claims and did not say so"
        answers = await self._parsed(messages, result, parse, nothing)
        return tuple(dict.fromkeys(claim for answer in answers for claim in answer.claims))

    async def _parsed(
        self,
        messages: Sequence[Message],
        result: _ChunkResult,
        parse: Callable[[str], _Parsed],
        nothing: str,
    ) -> list[_Parsed]:
        """Return what answers say; raises ModelOutputError, with ``nothing``, for a first none."""
        parse = cache(parse)

        def read(answer: str) -> None:
            if not parse(answer).answered:
                raise ModelOutputError(nothing)

        return [parse(answer) for answer in await self._converse(messages, result, read)]

    async def _converse(
        self,
        messages: Sequence[Message],
        result: _ChunkResult,
        read: Callable[[str], object],
    ) -> list[str]:
        """Ask, then ask for what was missed for as long as the model says that some is.

        Returns the answers, each whole or as far as it came. A first answer that cannot be read
        raises its error at once. What was read stays when the conversation becomes too long for
        the model, and, marked as cut, when it does not go on for another reason.
        """
        talk = list(messages)
        answers = await self._whole(talk, result, read)
        if result.error == _WENT_ROUND:
            return answers
        try:
            for turn in range(self._settings.gleanings):
                decided = await self._something_missing(talk, result)
                # One that does not say is asked once all the same.
                if decided is False or (decided is None and turn):
                    break
                talk += self._prompts["glean_continue"].render()
                answers += await self._whole(talk, result, read)
        except (TerminalModelError, ModelOutputError) as error:
            if error.stops_everything:
                raise
            if error.kind != "context_length":
                result.cut(str(error))
        return answers

    async def _whole(
        self,
        talk: list[Message],
        result: _ChunkResult,
        read: Callable[[str], object],
    ) -> list[str]:
        """Return an answer, in one text or several; the talk grows by what was said.

        An answer without its end mark is asked to go on once, one that was cut off twice. If that
        is not its end either, the chunk is marked as cut and the pieces are not kept, so that a
        later run asks again. One that went round in circles is not asked to go on, nor is one that
        says the same again.
        """
        pieces: list[Completion] = []
        while True:
            try:
                piece = await self._ask(talk, result, None if pieces else read)
            except TerminalModelError as error:
                if error.stops_everything or not pieces:
                    raise
                result.cut(f"{_CUT}: {error}")
                break
            if pieces and _was_closed(pieces[-1]) and not _is_read(piece.text, read):
                break
            if pieces and piece.text == pieces[-1].text and not _was_closed(piece):
                result.cut(_WENT_ROUND)
                break
            pieces.append(piece)
            talk.append({"role": "assistant", "content": piece.text})
            if piece.finish_reason == LOOP:
                result.cut(_WENT_ROUND)
                break
            if piece.finish_reason != "length" and COMPLETE.search(piece.text):
                break
            if len(pieces) > 1 and piece.finish_reason != "length" and _was_closed(piece):
                break
            if len(pieces) > _MOST_CONTINUED:
                result.cut(_CUT if piece.finish_reason == "length" else _NO_END)
                await self._client.forget(pieces)
                break
            talk += self._prompts["continue_records"].render()
        return joined([each.text for each in pieces], is_cut=result.status == "cut")

    async def _ask(
        self,
        talk: Sequence[Message],
        result: _ChunkResult,
        read: Callable[[str], object] | None,
    ) -> Completion:
        try:
            completion = await self._client.complete(
                talk, stage=STAGE, batch=self._batch, check=read, keeps_sound_part=True
            )
        except ModelOutputError as error:
            if error.completion is not None:
                result.pay(error.completion)
            raise
        result.pay(completion)
        return completion

    async def _something_missing(
        self, talk: Sequence[Message], result: _ChunkResult
    ) -> bool | None:
        """Ask for yes or no; return None if the model says neither.

        It answers in one token where its encoding is known and the two words can be forced: an
        answer that is neither raises ModelOutputError then. Else it answers in a few tokens, or in
        as many as a model takes that thinks first.
        """
        question = [*talk, *self._prompts["glean_check"].render()]
        check = _check_decided if self._yes_or_no else None
        if self._in_a_word:
            try:
                said = await self._client.complete(
                    question,
                    stage=STAGE,
                    batch=self._batch,
                    logit_bias=self._yes_or_no,
                    max_output_tokens=1 if self._yes_or_no else _TOKENS_OF_A_WORD,
                    check=check,
                )
                result.pay(said)
                return parse_yes_no(said.text)
            except TerminalModelError as error:
                if error.kind != "length":
                    raise
                self._in_a_word = False
        return parse_yes_no((await self._ask(question, result, check)).text)


def _is_read(text: str, read: Callable[[str], object]) -> bool:
    try:
        read(text)
    except ModelOutputError:
        return False
    return True


def _was_closed(piece: Completion) -> bool:
    """Whether an answer ended of itself, with a whole record."""
    return piece.finish_reason != "length" and piece.text.rstrip(" \n#").endswith((")", "）"))


def _check_decided(text: str) -> None:
    if parse_yes_no(text) is None:
        raise ModelOutputError("the model did not say whether something is missing")


def _yes_no_bias(model: str) -> dict[int, int] | None:
    """Return what forces a model to YES or NO, None where its tokens are not known."""
    tokens = [word_token(model, word) for word in ("YES", "NO")]
    return None if None in tokens else {token: _BIAS for token in tokens if token is not None}


def _gather(results: Sequence[_ChunkResult], has_strengths: bool) -> LlmExtraction:
    return LlmExtraction(
        Extraction(
            pl.DataFrame(list(_entity_rows(results)), schema=ENTITY_MENTIONS, orient="row"),
            pl.DataFrame(
                list(_relationship_rows(results, has_strengths)),
                schema=RELATIONSHIP_MENTIONS,
                orient="row",
            ),
        ),
        pl.DataFrame(list(_claim_rows(results)), schema=CLAIMS, orient="row"),
        pl.DataFrame(
            [
                (r.chunk_id, r.status, r.error, r.transient, r.prompt_tokens, r.completion_tokens)
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
                description = ended(entity.description)
                yield result.chunk_id, entity.title, entity.type, description, None, None
            listed = {normalize_title(entity.title) for entity in result.extraction.entities}
            ends = [end for r in result.extraction.relationships for end in (r.source, r.target)]
            # A relationship names an entity that the list left out: it is one all the same.
            for title in {normalize_title(e): e for e in ends}.values():
                if normalize_title(title) not in listed:
                    yield result.chunk_id, title, "OTHER", "", None, None


def _relationship_rows(
    results: Sequence[_ChunkResult], has_strengths: bool
) -> Iterator[tuple[object, ...]]:
    for result in results:
        if result.extraction is not None:
            for r in result.extraction.relationships:
                weight = within_scale(r.strength) if has_strengths else USUAL
                text = ended(r.description)
                yield result.chunk_id, r.source, r.target, text, weight, None, None, ""


def _claim_rows(results: Sequence[_ChunkResult]) -> Iterator[tuple[object, ...]]:
    for result in results:
        if result.status != "failed":
            yield from ((result.chunk_id, *astuple(claim)) for claim in result.claims)
