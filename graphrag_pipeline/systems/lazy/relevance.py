"""The relevance tests of a lazy search: numbered sentences of chunks, and which of them matter."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.extraction.rules.sentences import Span, sentence_spans
from graphrag_pipeline.llm.errors import ModelOutputError
from graphrag_pipeline.llm.parsing import parse_json_list
from graphrag_pipeline.llm.schemas import INTEGER, closed, listed
from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.systems.lazy.descent import Descent

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release
    from graphrag_pipeline.query.writing.asking import Asking

_CHUNKS_REMEMBERED = 4096
MARKED = 1.3
"""What numbers add to the tokens of a text's sentences, at most."""
_NUMBER = pattern_of(r"\[?(\d{1,9})(?:\.0)?\]?")


@dataclass(frozen=True)
class ChunkSentences:
    """A chunk as it is tested: its record, and its sentences, each with its place in the text."""

    record: Record
    sentences: Sequence[tuple[Span, str]]


@dataclass
class SubSearch:
    """One of the searches of a question: what is asked, how far it is, and what it has found.

    ``found`` are the places of relevant sentences, by chunk.
    """

    query: str
    descent: Descent
    found: dict[str, set[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class RelevanceTest:
    """Some chunks to be tested for one search in one call, and the place of each sentence shown."""

    search: SubSearch
    passages: str
    places: Sequence[tuple[str, int]]


def tests_of(
    index: Release,
    waves: Sequence[tuple[SubSearch, Sequence[str]]],
    chunks: dict[str, ChunkSentences],
    *,
    most: int,
    room: int,
) -> list[RelevanceTest]:
    """Return the calls that test waves of chunks, at most so many chunks and tokens in each.

    The sentences of chunks are added to those in ``chunks``, as they are needed.
    """
    new = dict.fromkeys(key for _, wave in waves for key in wave if key not in chunks)
    for record in op.chunk_records(index, dict.fromkeys(new, 1.0)):
        chunks[record.id] = ChunkSentences(record, _sentences(record.text))
    return [
        _numbered(search, [(chunks[key], part) for key, part in batch])
        for search, wave in waves
        for batch in _batches(index, [key for key in wave if key in chunks], most, room)
    ]


def _batches(
    index: Release, keys: Sequence[str], most: int, room: int
) -> Iterator[list[tuple[str, float]]]:
    """Yield the chunks of each call, and what part of each fits: less than all of a long one."""
    batch: list[tuple[str, float]] = []
    left = float(room)
    for key, length in zip(keys, op.chunk_lengths(index, keys), strict=True):
        tokens = max(1.0, MARKED * length)
        if batch and (len(batch) == most or tokens > left):
            yield batch
            batch, left = [], float(room)
        batch.append((key, min(1.0, left / tokens)))
        left -= tokens
    if batch:
        yield batch


def _numbered(search: SubSearch, batch: Sequence[tuple[ChunkSentences, float]]) -> RelevanceTest:
    lines: list[str] = []
    places: list[tuple[str, int]] = []
    for chunk, part in batch:
        most = math.ceil(part * len(chunk.record.text))
        lines.append(f"# {_one_line(chunk.record.title)}")
        for place, ((start, _), sentence) in enumerate(chunk.sentences):
            if start < most:
                places.append((chunk.record.id, place))
                lines.append(f"{len(places)}. {sentence[: most - start]}")
    return RelevanceTest(search, "\n".join(lines), places)


@functools.lru_cache(_CHUNKS_REMEMBERED)
def _sentences(text: str) -> tuple[tuple[Span, str], ...]:
    """Return the sentences of a chunk; many questions come to the same ones."""
    return tuple((span, _one_line(text[slice(*span)])) for span in sentence_spans(text))


def _one_line(text: str) -> str:
    return " ".join(text.split())


async def ask_test(asking: Asking, test: RelevanceTest) -> set[int]:
    """Return the numbers of the sentences that a model finds relevant."""
    return await asking.read(
        "test",
        partial(_read_numbers, count=len(test.places)),
        closed(sentences=listed(INTEGER, len(test.places))),
        "lazy_test",
        question=test.search.query,
        passages=test.passages,
    )


def _read_numbers(text: str, *, count: int) -> set[int]:
    listed = parse_json_list(text, "sentences")
    matches = (_NUMBER.fullmatch(str(item).strip()) for item in listed)
    numbers = {int(match[1]) for match in matches if match}
    known = {n for n in numbers if 1 <= n <= count}
    if listed and not known:
        raise ModelOutputError(f'"sentences" must be a list of numbers from 1 to {count}')
    return known


def around(chunk: ChunkSentences, places: set[int]) -> Record:
    """Return the part of a chunk from the sentence before the first relevant one to the last."""
    record, first = chunk.record, max(0, min(places) - 1)
    start, end = chunk.sentences[first][0][0], chunk.sentences[max(places)][0][1]
    begin = record.attributes["start_char"]
    span = {"start_char": begin + start, "end_char": begin + end}
    return replace(record, text=record.text[start:end], attributes={**record.attributes, **span})
