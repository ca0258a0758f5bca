"""The extractor that the settings name, and the version of what it makes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from graphrag_pipeline.core import progress
from graphrag_pipeline.core.errors import is_interrupt
from graphrag_pipeline.core.settings import Settings, fingerprint
from graphrag_pipeline.extraction.mentions import Extraction
from graphrag_pipeline.extraction.model.llm import (
    STAGE,
    LlmExtraction,
    calls_of_chunk,
    extract_llm,
    llm_extraction_version,
)
from graphrag_pipeline.extraction.rules.nlp import NLP_VERSION, NlpOptions, chunk_names, extract_nlp
from graphrag_pipeline.extraction.rules.records import extract_records, prose_of
from graphrag_pipeline.llm.configured import (
    answered_by,
    calls_place,
    model_options,
    prompts_folder,
    with_model,
)
from graphrag_pipeline.llm.errors import TerminalModelError
from graphrag_pipeline.llm.probing import is_there
from graphrag_pipeline.llm.speed import foretell

if TYPE_CHECKING:
    from graphrag_pipeline.llm.client import ModelClient

log = logging.getLogger("graphrag_pipeline")

_SLICE_BYTES = 1_000_000
_BYTES_OF_ROW = 40
_MAY_BE_AT_FAULT = 2


@dataclass(frozen=True)
class Extracted:
    """The results of an extractor on some chunks.

    ``found`` comes slice by slice and can be gone through once; rules look only then. ``claims``
    and ``outcomes`` are those of ``extraction.llm.LlmExtraction``, None where the extractor finds
    no claims and cannot fail. ``names`` are those that rules find in the same chunks, (chunk_id,
    title), None where the extractor is that rule.
    """

    found: Iterable[Extraction]
    claims: pl.DataFrame | None = None
    outcomes: pl.DataFrame | None = None
    names: pl.DataFrame | None = None


def extraction_version(settings: Settings) -> str:
    """Return the version of the extractor as configured: a hash of all that shapes its rows."""
    options = settings.extraction
    if options.extractor != "llm":
        return fingerprint("extraction", NLP_VERSION, options.extractor, options.noun_phrases)
    fields = settings.chunks.prepend_metadata
    model = ":".join(map(str, answered_by(settings.llm_for("extraction"))))
    return fingerprint(
        "extraction", llm_extraction_version(options, model, prompts_folder(settings)), fields
    )


def extract(chunks: pl.DataFrame, settings: Settings, batch: str) -> Extracted:
    """Extract from chunks: ``id``, ``text``, ``context``, ``blocks``; of records also ``subject``.

    The context is the metadata to be shown. Blocks are what of the text is no running prose:
    structs of ``start``, ``end`` (characters of the text) and ``kind``, in order. ``subject`` is
    what a record is called; ``is_first`` and ``is_last`` say whether a chunk begins and ends where
    its document does.

    Raises the model's error when no further call can succeed.
    """
    extractor = settings.extraction.extractor
    if extractor == "import":
        return Extracted((), names=chunk_names(chunks))
    if extractor == "llm":
        return _by_model(chunks, settings, batch)
    options = NlpOptions(noun_phrases=settings.extraction.noun_phrases)
    return Extracted(
        _together([_of_prose(prose_of(part), options), extract_records(part)])
        for part in _slices(chunks)
    )


def _slices(chunks: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the chunks in order, by slices of bounded size."""
    costs = pl.col("text").str.len_bytes().fill_null(0).cast(pl.Int64) + _BYTES_OF_ROW
    so_far = chunks.select(costs.cum_sum()).to_series()
    place = 0
    while place < len(chunks):
        before = so_far[place - 1] if place else 0
        end = max(int(so_far.search_sorted(before + _SLICE_BYTES, side="right")), place + 1)
        yield chunks[place:end]
        place = end


def _of_prose(chunks: pl.DataFrame, options: NlpOptions) -> Extraction:
    """Return what rules find; a chunk at which they fail has none, and the log says which it is."""
    try:
        return extract_nlp(chunks, options)
    except Exception as error:
        if isinstance(error, MemoryError) or is_interrupt(error):
            raise
        if len(chunks) == 1:
            why = f"{type(error).__name__}: {error}"
            log.warning(
                "rules failed at chunk %s, it stays without names (%s)", chunks["id"][0], why
            )
            return extract_nlp(chunks.clear(), options)
    half = len(chunks) // 2
    return _together([_of_prose(part, options) for part in (chunks[:half], chunks[half:])])


def _together(parts: Sequence[Extraction]) -> Extraction:
    return Extraction(
        pl.concat([part.entities for part in parts]),
        pl.concat([part.relationships for part in parts]),
    )


def _by_model(chunks: pl.DataFrame, settings: Settings, batch: str) -> Extracted:
    if chunks.is_empty():
        return Extracted(())

    async def ask(client: ModelClient) -> LlmExtraction:
        result = await extract_llm(
            chunks,
            client,
            settings.extraction,
            batch=batch,
            prompts=prompts_folder(settings),
            on_done=lambda done, total: progress.report(STAGE, done, total),
        )
        await _check_is_there(settings, result.outcomes)
        return result

    calls = len(chunks) * calls_of_chunk(settings.extraction)
    foretell(settings, "extraction", STAGE, STAGE, len(chunks), calls)
    result = with_model(settings, ask, "extraction")
    return Extracted((result.found,), result.claims, result.outcomes, chunk_names(chunks))


async def _check_is_there(settings: Settings, outcomes: pl.DataFrame) -> None:
    """Raise the error of an outage where no chunk has had an answer.

    Of one or two the text may be at fault: the model is then asked whether it is there.
    """
    if not outcomes["transient"].all():
        return
    error = f"{outcomes['error'][-1]} (no chunk of {len(outcomes)} had an answer)"
    options, place = model_options(settings, "extraction"), calls_place(settings)
    if len(outcomes) <= _MAY_BE_AT_FAULT and await is_there(options, place):
        return
    raise TerminalModelError(error, "unreachable")
