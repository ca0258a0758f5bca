"""Chunking: documents in, spans of about equal token length out (paper, 3.1.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_pipeline.core.identity import content_hash, make_id
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.settings import ChunkSettings
from graphrag_pipeline.core.tokens import get_encoding
from graphrag_pipeline.ingest.edges import is_in_sign, may_cut

CHUNKER_VERSION = "2"
CHUNKS = pl.Schema(
    {
        "id": pl.String,
        "document_id": pl.String,
        "ordinal": pl.Int64,
        "start_char": pl.Int64,
        "end_char": pl.Int64,
        "n_tokens": pl.Int64,
        "text": pl.String,
    }
)
_SENTENCE_END = pattern_of(r"[.!?]['\")\]»”’]*(?=\s)|[。！？][」』”’）]*|\n(?=\s*\n)")
_SEARCH_BACK = 0.25
_SLICE = 1_000_000
_MOST_ROWS = 2_000
# No encoding has a token that goes on over these places: what stands before and after them has the
# same tokens apart as together.
_BETWEEN_TOKENS = pattern_of(r"\S(?= )|[^\W_](?=[\n。，、！？])")


Places = npt.NDArray[np.signedinteger[Any]]


@dataclass(frozen=True)
class Span:
    """A chunk of a text: characters [start, end) and its number of tokens."""

    start: int
    end: int
    n_tokens: int


def chunk_documents(documents: pl.DataFrame, settings: ChunkSettings) -> pl.DataFrame:
    """Cut documents (columns ``id``, ``text``) into chunks; rows of ``CHUNKS``.

    ``text[start_char:end_char]`` of the document is the chunk's text, in code points.
    """
    frames = [pl.DataFrame(schema=CHUNKS)]
    for part in documents.select("id", "text").iter_slices(_MOST_ROWS):
        if (part["text"].str.len_bytes() <= settings.size).all():
            frames.append(_whole(part, settings))
            continue
        rows = (row for key, text in part.iter_rows() for row in _rows(key, text, settings))
        # As Python objects, the chunks of a large batch would take several times their memory.
        while some := list(islice(rows, _MOST_ROWS)):
            frames.append(pl.DataFrame(some, schema=CHUNKS, orient="row"))
    return pl.concat(frames)


def _whole(documents: pl.DataFrame, settings: ChunkSettings) -> pl.DataFrame:
    """Return what :func:`_rows` does of documents with no more bytes, so tokens, than a chunk."""
    counts = {text: 0 for text in documents["text"] if text.strip()}
    encode = get_encoding(settings.encoding).encode_ordinary
    counts = {text: len(encode(text)) for text in counts}
    said = documents.filter(pl.col("text").is_in(counts))
    ids = [
        make_id("chunk", document_id, 0, len(text), content_hash(text))
        for document_id, text in said.iter_rows()
    ]
    return said.select(
        pl.Series("id", ids, dtype=pl.String),
        pl.col("id").alias("document_id"),
        ordinal=pl.lit(0, pl.Int64),
        start_char=pl.lit(0, pl.Int64),
        end_char=pl.col("text").str.len_chars().cast(pl.Int64),
        n_tokens=pl.col("text").replace_strict(counts, return_dtype=pl.Int64),
        text="text",
    )


def _rows(
    document_id: str, text: str, settings: ChunkSettings
) -> Iterator[tuple[str, str, int, int, int, int, str]]:
    for ordinal, span in enumerate(split(text, settings)):
        piece = text[span.start : span.end]
        chunk_id = make_id("chunk", document_id, span.start, span.end, content_hash(piece))
        yield chunk_id, document_id, ordinal, span.start, span.end, span.n_tokens, piece


def split(text: str, settings: ChunkSettings) -> list[Span]:
    """Return the spans of one text: windows of ``size`` tokens that overlap by ``overlap``.

    None begins or ends inside a word, so a window may have up to a quarter less, and the overlap
    too. A word of more tokens is cut, between two signs.
    With ``sentences``, a window ends at the last sentence end of its last quarter, if any.
    Windows of white space alone are left out, and those that only repeat a character of several
    tokens.
    """
    if len(text) <= _SLICE:
        tokens = get_encoding(settings.encoding).encode_ordinary(text)
        if len(tokens) <= settings.size:
            return [Span(0, len(text), len(tokens))] if text.strip() else []
        starts, ends = _character_bounds(text, tokens, settings.encoding)
    else:
        starts, ends = _bounds_by_slices(text, settings.encoding)
    # Of one type, or a search would copy one of them each time.
    found = [match.end() for match in _SENTENCE_END.finditer(text)] if settings.sentences else []
    sentence_ends = np.array(found, dtype=ends.dtype) if settings.sentences else None
    spans: list[Span] = []
    for first, last in _windows(text, settings, starts, ends, sentence_ends):
        start, end = int(starts[first]), int(ends[last - 1])
        repeated = bool(spans) and (spans[-1].start, spans[-1].end) == (start, end)
        if not repeated and not text[start:end].isspace():
            spans.append(Span(start, end, last - first))
    return spans


def _windows(
    text: str,
    settings: ChunkSettings,
    starts: Places,
    ends: Places,
    sentence_ends: Places | None,
) -> Iterator[tuple[int, int]]:
    first, n_tokens, before = 0, len(starts), 0
    while first < n_tokens:
        last = min(first + settings.size, n_tokens)
        if sentence_ends is not None and last < n_tokens:
            last = _back_to_sentence_end(first, last, settings, ends, sentence_ends)
        begin = _on_to_edge(text, first, before, starts)
        end = last if last == n_tokens else _back_to_edge(text, begin, last, settings, ends)
        yield begin, end
        if last == n_tokens:
            return
        # What an edge moved changes no other chunk, as long as they overlap.
        first, before = min(max(last - settings.overlap, first + 1), end), end


def _back_to_edge(text: str, first: int, last: int, settings: ChunkSettings, ends: Places) -> int:
    """Return the last token before a place where the text may be cut; else where a sign ends."""
    earliest = max(last - int(settings.size * _SEARCH_BACK), first + settings.overlap + 1)
    for allowed in (may_cut, _ends_sign):
        for place in range(last, max(earliest, first + 1) - 1, -1):
            if allowed(text, int(ends[place - 1])):
                return place
    return last


def _ends_sign(text: str, place: int) -> bool:
    return not is_in_sign(text, place)


def _on_to_edge(text: str, first: int, last: int, starts: Places) -> int:
    """Return the first token, from one on to the end of the chunk before, that may begin one."""
    for allowed in (may_cut, _ends_sign):
        for place in range(first, last + 1):
            if allowed(text, int(starts[place])):
                return place
    return first


def _back_to_sentence_end(
    first: int,
    last: int,
    settings: ChunkSettings,
    ends: Places,
    sentence_ends: Places,
) -> int:
    earliest = max(last - int(settings.size * _SEARCH_BACK), first + settings.overlap + 1)
    sentence = int(np.searchsorted(sentence_ends, ends[last - 1], side="right")) - 1
    if sentence < 0 or earliest >= last or sentence_ends[sentence] < ends[earliest - 1]:
        return last
    return int(np.searchsorted(ends, sentence_ends[sentence], side="left")) + 1


def _bounds_by_slices(text: str, encoding: str) -> tuple[Places, Places]:
    """Return what :func:`_character_bounds` does: a token takes far more memory than its bounds."""
    starts: list[Places] = []
    ends: list[Places] = []
    place = 0
    kind = np.int32 if len(text) <= np.iinfo(np.int32).max else np.int64
    for part in _slices(text):
        tokens = get_encoding(encoding).encode_ordinary(part)
        part_starts, part_ends = _character_bounds(part, tokens, encoding)
        starts.append((part_starts + place).astype(kind))
        ends.append((part_ends + place).astype(kind))
        place += len(part)
    return np.concatenate(starts), np.concatenate(ends)


def _slices(text: str) -> Iterator[str]:
    """Yield parts of about ``_SLICE`` characters of a text, each with tokens of its own."""
    place = 0
    while between := _BETWEEN_TOKENS.search(text, place + _SLICE):
        yield text[place : between.end()]
        place = between.end()
    yield text[place:]


def _character_bounds(text: str, tokens: list[int], encoding: str) -> tuple[Places, Places]:
    """Return each token's first character and the end of its last, in code points.

    A token may hold a part of a character: its bounds then reach out to the whole one.
    """
    lengths = [len(piece) for piece in get_encoding(encoding).decode_tokens_bytes(tokens)]
    byte_ends = np.cumsum(np.array(lengths, dtype=np.int64))
    byte_starts = byte_ends - np.array(lengths, dtype=np.int64)
    if text.isascii():
        return byte_starts, byte_ends
    data = np.frombuffer(text.encode(), dtype=np.uint8)
    starts = np.concatenate(([0], np.cumsum((data & 0xC0) != 0x80)))
    return starts[byte_starts + 1] - 1, starts[byte_ends]
