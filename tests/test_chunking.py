import time
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphrag_pipeline.core.settings import ChunkSettings
from graphrag_pipeline.core.tokens import get_encoding
from graphrag_pipeline.ingest.chunking import CHUNKS, chunk_documents, split

LATIN = "ab Z.!?\n\t'"
OTHER = "éßя漢字。」😀👩‍👩‍👧e\u0301\u200b\ufeff\u2028"
TEXTS = st.one_of(
    st.text(max_size=300), st.text(LATIN, max_size=400), st.text(LATIN + OTHER, max_size=300)
)


@st.composite
def chunk_settings(draw):
    size = draw(st.integers(1, 40))
    overlap = draw(st.integers(0, size - 1))
    return ChunkSettings(size=size, overlap=overlap, sentences=draw(st.booleans()))


@given(TEXTS, chunk_settings())
@example("😀😀", ChunkSettings(size=1, overlap=0))
def test_the_spans_cover_everything_that_is_not_white_space(text, settings):
    covered = set()
    for span in split(text, settings):
        covered |= set(range(span.start, span.end))
    assert {i for i, character in enumerate(text) if not character.isspace()} <= covered


@given(TEXTS, chunk_settings())
def test_no_span_is_larger_than_the_size_and_none_is_empty_or_blank(text, settings):
    for span in split(text, settings):
        assert 0 < span.n_tokens <= settings.size
        assert text[span.start : span.end].strip()


@given(TEXTS, chunk_settings())
@example("😀😀", ChunkSettings(size=1, overlap=0))
@example("👩‍👩‍👧", ChunkSettings(size=2, overlap=1))
def test_spans_go_forward_and_none_comes_twice(text, settings):
    spans = [(span.start, span.end) for span in split(text, settings)]
    assert spans == sorted(set(spans))


@given(st.text("abZ.!?'0,", max_size=400), chunk_settings())
def test_a_window_starts_as_many_tokens_before_the_last_ones_end_as_the_overlap(text, settings):
    encoding = get_encoding()
    tokens = encoding.encode_ordinary(text)
    first = 0
    for span in split(text, settings):
        last = first + span.n_tokens
        assert text[: span.start] == encoding.decode(tokens[:first])
        assert text[: span.end] == encoding.decode(tokens[:last])
        first = max(last - settings.overlap, first + 1)


@given(st.integers(20, 200), st.integers(5, 30), st.integers(0, 4))
def test_words_of_one_token_are_cut_and_repeated_exactly(n_words, size, overlap):
    words = ["cat", *[" dog"] * (n_words - 1)]
    spans = split("".join(words), ChunkSettings(size=size, overlap=overlap))
    assert all(span.n_tokens == size for span in spans[:-1])
    repeated = [a.end - b.start for a, b in pairwise(spans)]
    assert repeated == [overlap * len(" dog")] * (len(spans) - 1)


@given(TEXTS, chunk_settings())
def test_chunks_are_what_the_document_says_at_their_offsets_and_the_same_each_time(text, settings):
    documents = pl.DataFrame({"id": ["d1", "d2"], "text": [text, f"{text} more"]})
    chunks = chunk_documents(documents, settings)
    assert chunks.schema == CHUNKS
    texts = dict(documents.iter_rows())
    for row in chunks.iter_rows(named=True):
        assert texts[row["document_id"]][row["start_char"] : row["end_char"]] == row["text"]
    for _, own in chunks.group_by("document_id"):
        assert own["ordinal"].to_list() == list(range(len(own)))
    assert chunks["id"].n_unique() == len(chunks)
    assert chunk_documents(documents, settings).equals(chunks)


@pytest.mark.parametrize(
    "sentence",
    [
        "The cat sat on the mat.",
        'He said: "No!"',
        "Was it (perhaps?)",
        "猫坐在垫子上。",
        "「行こう。」",
    ],
)
def test_in_sentence_mode_chunks_end_at_sentence_ends(sentence):
    text = " ".join([sentence] * 200)
    spans = split(text, ChunkSettings(size=60, overlap=10, sentences=True))
    assert len(spans) > 10
    for span in spans:
        assert text[: span.end].rstrip().endswith(sentence)


def test_in_sentence_mode_a_paragraph_end_is_a_sentence_end():
    text = "\n\n".join(["A heading without a full stop"] * 100)
    for span in split(text, ChunkSettings(size=50, overlap=5, sentences=True)):
        assert text[: span.end].rstrip("\n").endswith("full stop")


def test_in_sentence_mode_text_without_sentence_ends_is_cut_by_size():
    text = "cat" + " dog" * 500
    plain = split(text, ChunkSettings(size=50, overlap=10))
    assert split(text, ChunkSettings(size=50, overlap=10, sentences=True)) == plain


def test_a_sentence_end_far_back_in_the_window_is_not_used():
    text = "A cat." + " dog" * 200
    first = split(text, ChunkSettings(size=50, overlap=0, sentences=True))[0]
    assert first.n_tokens == 50


@pytest.mark.parametrize(("n_tokens", "cut_at"), [(5, 8), (6, 6), (7, 7)])
def test_a_sentence_end_where_the_last_quarter_begins_is_used(n_tokens, cut_at):
    sentence = "cat" + " cat" * (n_tokens - 2) + "."
    first = split(sentence + " dog" * 20, ChunkSettings(size=8, overlap=0, sentences=True))[0]
    assert first.n_tokens == cut_at


def test_a_sentence_end_that_the_next_window_would_begin_at_or_before_is_not_used():
    text = "cat cat cat cat cat." + " dog" * 20
    spans = split(text, ChunkSettings(size=8, overlap=6, sentences=True))
    assert [span.n_tokens for span in spans[:2]] == [8, 8]


@pytest.mark.parametrize("encoding", ["cl100k_base", "o200k_base"])
@given(TEXTS, chunk_settings(), st.integers(1, 30))
@example("a  \n b/\n/c\n\n。d_\n1 23", ChunkSettings(size=3, overlap=0), 1)
def test_a_text_cut_before_it_is_made_tokens_has_the_same_spans(encoding, text, settings, slice_):
    settings = settings.model_copy(update={"encoding": encoding})
    whole = split(text, settings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graphrag_pipeline.ingest.chunking._SLICE", slice_)
        assert split(text, settings) == whole


@pytest.mark.parametrize("text", ["", " ", "\n\n\t  \u2003", " " * 10_000])
def test_a_text_of_nothing_but_white_space_has_no_chunks(text):
    assert split(text, ChunkSettings(size=10, overlap=2)) == []


def test_texts_no_longer_than_a_chunk_are_cut_the_same_with_longer_ones_and_without():
    texts = ["One line.", " \n\u2003", "长 texts of bytes", "\x1f", "One line.", "e\u0301 " * 5, ""]
    short = pl.DataFrame({"id": [f"d{n}" for n in range(len(texts))], "text": texts})
    longer = pl.DataFrame({"id": ["long"], "text": ["word " * 90]})
    settings = ChunkSettings(size=30, overlap=2)
    alone = chunk_documents(short, settings)
    together = chunk_documents(pl.concat([short, longer]), settings)
    assert alone["document_id"].to_list() == ["d0", "d2", "d4", "d5"]
    assert together.filter(pl.col("document_id") != "long").equals(alone)


def test_no_documents_give_a_table_without_rows():
    empty = chunk_documents(
        pl.DataFrame(schema={"id": pl.String, "text": pl.String}), ChunkSettings()
    )
    assert empty.schema == CHUNKS
    assert empty.is_empty()


@pytest.mark.parametrize(("unit", "megabytes"), [("a", 2), ("😀", 1), ("漢字", 1), ("e\u0301", 1)])
def test_megabytes_without_a_space_are_chunked_in_bounded_time(unit, megabytes):
    text = unit * (megabytes * 1_000_000 // len(unit.encode()))
    started = time.process_time()
    spans = split(text, ChunkSettings(sentences=True))
    assert time.process_time() - started < 2 + 2 * megabytes
    assert spans[0].start == 0
    assert spans[-1].end == len(text)
    assert all(later.start <= span.end for span, later in pairwise(spans))
