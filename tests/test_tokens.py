import gc
import socket
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.core.errors import ConfigError, StorageError
from graphrag_pipeline.core.tokens import (
    count_tokens,
    encoding_for,
    get_encoding,
    shipped_ranks,
    word_token,
)


@pytest.fixture
def no_network(monkeypatch):
    import requests

    def refuse(*args, **kwargs):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(requests, "get", refuse)


@pytest.fixture
def emptied_cache():
    get_encoding.cache_clear()
    yield
    get_encoding.cache_clear()


def test_the_shipped_ranks_need_no_network(no_network, emptied_cache):
    assert count_tokens(["A Christmas Carol", ""]) == [3, 0]


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_pattern_and_special_tokens_are_those_of_tiktoken(name, monkeypatch):
    from tiktoken_ext import openai_public

    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", lambda *args, **kwargs: {})
    theirs = getattr(openai_public, name)()
    ours = get_encoding(name)
    assert theirs["pat_str"] == ours._pat_str
    assert theirs["special_tokens"] == ours._special_tokens
    assert theirs["name"] == ours.name


def test_the_shipped_ranks_are_the_whole_vocabulary():
    ranks = shipped_ranks()
    assert sorted(ranks.values()) == list(range(100256))
    assert get_encoding().n_vocab == 100277
    assert all(get_encoding().encode_single_token(token) == rank for token, rank in ranks.items())


def test_the_ranks_are_not_held_beside_the_encoding(emptied_cache):
    tracemalloc.start()
    try:
        assert count_tokens(["A Christmas Carol"]) == [3]
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 5_000_000
    finally:
        tracemalloc.stop()


def test_a_model_is_counted_in_its_own_encoding():
    assert encoding_for("gpt-4.1-mini") == encoding_for("openai/gpt-4o") == "o200k_base"
    assert encoding_for("gpt-4") == "cl100k_base"
    assert encoding_for("llama3.1") == "cl100k_base"
    assert (word_token("gpt-4o-mini", "YES"), word_token("gpt-4o-mini", "NO")) == (31958, 14695)
    assert word_token("gpt-4", "NO") == 9173
    assert word_token("qwen2.5:7b", "YES") is None


def test_a_damaged_file_of_ranks_is_named(monkeypatch, emptied_cache):
    monkeypatch.setattr("gzip.decompress", lambda data: data[:100])
    with pytest.raises(StorageError, match=r"o200k_base\.tiktoken\.gz is damaged"):
        get_encoding("o200k_base")


_MARKUP = sorted(get_encoding()._special_tokens)


@pytest.mark.parametrize("markup", _MARKUP)
def test_special_token_markup_in_a_text_is_plain_text(markup):
    encoded = get_encoding().encode_ordinary(f"before {markup} after")
    assert not set(encoded) & set(get_encoding()._special_tokens.values())
    assert count_tokens([f"before {markup} after"]) == [len(encoded)]
    assert get_encoding().decode(encoded) == f"before {markup} after"


@given(st.lists(st.text(), max_size=5))
def test_counts_are_those_of_the_texts_one_by_one_and_repeat(texts):
    counts = count_tokens(texts)
    assert counts == [count_tokens([text])[0] for text in texts]
    assert [count == 0 for count in counts] == [text == "" for text in texts]


def test_an_unknown_encoding_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match=r"chunks\.encoding = 'cl99k': must be one of .*cl100k"):
        get_encoding("cl99k")


def test_an_encoding_whose_ranks_cannot_be_fetched_names_the_one_that_needs_no_network(
    no_network, monkeypatch, tmp_path
):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    with pytest.raises(ConfigError, match="use cl100k_base or o200k_base, which need no network"):
        get_encoding("p50k_base")
