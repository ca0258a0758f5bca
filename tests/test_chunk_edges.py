"""No chunk begins or ends inside a word or sign; an edge that moved changes no other chunk."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.core.settings import ChunkSettings
from graphrag_pipeline.core.tokens import get_encoding
from graphrag_pipeline.ingest.chunking import split
from graphrag_pipeline.ingest.edges import is_in_sign, may_cut

WORDS = st.lists(
    st.sampled_from(["Stormgaard", "Kolding", "don't", "3.14", "Überprüfung", "a", "in.", "е́ж"]),
    min_size=1,
    max_size=120,
).map(" ".join)
SIGNS = ("👨‍👩‍👧", "🇩🇪", "👍🏽", "e\u0301", "ก็", "हिं", "漢", "글")


def edges(text: str, settings: ChunkSettings) -> list[int]:
    spans = split(text, settings)
    return [place for span in spans for place in (span.start, span.end)]


@given(WORDS, st.integers(16, 40), st.integers(0, 8), st.booleans())
def test_no_chunk_begins_or_ends_inside_a_word(
    text: str, size: int, overlap: int, sentences: bool
) -> None:
    settings = ChunkSettings(size=size, overlap=overlap, sentences=sentences)
    words = [place for place in edges(text, settings) if 0 < place < len(text)]
    assert all(text[place].isspace() or text[place - 1].isspace() or text[place - 1] == "."
               or text[place] == "." for place in words)  # fmt: skip
    assert all(may_cut(text, place) for place in words)


@given(st.lists(st.sampled_from(SIGNS), min_size=1, max_size=300).map("".join))
def test_text_without_a_space_is_cut_between_signs(text: str) -> None:
    settings = ChunkSettings(size=80, overlap=24)
    assert not any(is_in_sign(text, place) for place in edges(text, settings))


def test_a_chunk_whose_own_edges_were_right_stays_as_it_was() -> None:
    settings = ChunkSettings(size=40, overlap=12)
    text = "The pump at Kolding failed and Ebba Stormgaard fixed it at once. " * 30
    tokens = get_encoding(settings.encoding).encode_ordinary(text)
    ends = [0]
    for token in tokens:
        ends.append(ends[-1] + len(get_encoding(settings.encoding).decode([token])))
    grid = [(ends[n], ends[min(n + 40, len(tokens))]) for n in range(0, len(tokens) - 12, 40 - 12)]
    right = {span for span in grid if all(may_cut(text, place) for place in span)}
    assert 0 < len(right) < len(grid)
    assert right <= {(span.start, span.end) for span in split(text, settings)}


def test_chunks_overlap_or_follow_each_other_without_a_gap() -> None:
    text = "Stormgaardsvej Überprüfungskommission " * 200
    spans = split(text, ChunkSettings(size=16, overlap=0))
    assert all(after.start <= before.end for before, after in pairwise(spans))


def test_a_window_is_not_cut_back_into_what_the_next_one_repeats() -> None:
    text = "bbcqcbffq z dcq. gzxcfxbbb. zqxqccxzc. zxg"
    first, second, *_ = split(text, ChunkSettings(size=7, overlap=6, sentences=False))
    assert (first.start, first.end, first.n_tokens) == (0, 14, 7)
    assert second.start < first.end < second.end
