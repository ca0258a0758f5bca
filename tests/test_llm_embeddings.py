from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from llm_helpers import paid, with_client
from model_server import (
    Fault,
    ModelServer,
    embedding_of,
    half_body,
    server_error,
    unsupported,
)

from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.llm import (
    ModelClient,
    ModelError,
    TerminalModelError,
    TransientModelError,
    calls_since,
)
from graphrag_pipeline.llm.embeddings import batches, pieces


def embed(server: ModelServer, home: Path, texts: list[str], **given) -> np.ndarray:
    return with_client(server, home, lambda c: c.embed(texts, stage="embed"), **given)


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def test_vectors_come_in_order_at_length_one(tmp_path: Path) -> None:
    texts = [f"text number {n}" for n in range(600)]
    with ModelServer() as server:
        vectors = embed(server, tmp_path, texts)
    assert vectors.dtype == np.float32
    assert vectors.shape == (600, 64)
    assert np.allclose(vectors[17], unit(embedding_of(texts[17], 64)), atol=1e-6)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert sorted(len(r.body["input"]) for r in server.requests) == [88, 256, 256]


def test_no_text_is_asked_twice(tmp_path: Path) -> None:
    with ModelServer() as server:
        first = embed(server, tmp_path, ["a b", "c", "a b", "d"])
        second = embed(server, tmp_path, ["d", "new", "c"])
    asked = [text for request in server.requests for text in request.body["input"]]
    assert sorted(asked) == ["a b", "c", "d", "new"]
    assert np.array_equal(first[3], second[0])
    assert np.array_equal(first[0], first[2])
    assert paid(tmp_path)["prompt_tokens"].sum() == server.prompt_tokens
    assert calls_since(tmp_path)["cached"].to_list() == [False, True, False]


def test_texts_asked_at_one_time_are_asked_once(tmp_path: Path) -> None:
    async def use(client: ModelClient) -> list[np.ndarray]:
        lists = [["a", "b"], ["b", "c"], ["c", "a"]]
        return await asyncio.gather(*(client.embed(texts, stage="e") for texts in lists))

    with ModelServer(latency=0.05) as server:
        ab, bc, ca = with_client(server, tmp_path, use)
    asked = [text for request in server.requests for text in request.body["input"]]
    assert sorted(asked) == ["a", "b", "c"]
    assert np.array_equal(ab[1], bc[0])
    assert np.array_equal(bc[1], ca[0])


def test_another_model_or_width_is_another_vector(tmp_path: Path) -> None:
    with ModelServer() as server:
        embed(server, tmp_path, ["a"])
        assert embed(server, tmp_path, ["a"], embedding_dimensions=32).shape == (1, 32)
        embed(server, tmp_path, ["a"], embedding_model="other")
    assert len(server.requests) == 3


def test_a_long_text_is_the_mean_of_its_pieces_by_length(tmp_path: Path) -> None:
    text = " ".join(f"{'alpha' if n < 150 else 'beta'} {n}" for n in range(200))
    with ModelServer() as server:
        (vector,) = embed(server, tmp_path, [text], embedding_max_tokens=100)
        sent = server.requests[0].body["input"]
    assert "".join(sent) == text
    assert max(count_tokens(sent)) <= 100
    assert len(sent) > 3
    mean = np.sum([len(part) * unit(embedding_of(part, 64)) for part in sent], axis=0)
    assert np.allclose(vector, unit(mean), atol=1e-5)


def test_a_text_without_words_has_a_vector(tmp_path: Path) -> None:
    with ModelServer() as server:
        vectors = embed(server, tmp_path, ["", "  \n", "half \udc80 a pair"])
        assert embed(server, tmp_path, []).shape[0] == 0
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_what_arrived_is_kept_when_another_request_fails(tmp_path: Path) -> None:
    texts = [f"text {n}" for n in range(600)]

    def faults(request):
        return server_error() if "text 300" in request.body["input"] else None

    with ModelServer(faults=faults) as server:
        with pytest.raises(TransientModelError):
            embed(server, tmp_path, texts, max_retries=1)
        server.misbehave(())
        server.forget()
        embed(server, tmp_path, texts)
        assert [len(request.body["input"]) for request in server.requests] == [256]


@pytest.mark.parametrize(
    "fault",
    [
        half_body(),
        Fault(raw=b'{"data": []}'),
        Fault(raw=b'{"data": [{"index": 0, "embedding": [NaN, 1]}]}'),
        Fault(raw=b'{"data": [{"index": 0, "embedding": null}]}'),
        Fault(raw=b'{"data": [{"index": 1, "embedding": [1, 2]}]}'),
    ],
)
def test_broken_vectors_are_asked_again(tmp_path: Path, fault: Fault) -> None:
    with ModelServer(faults=[fault]) as server:
        assert embed(server, tmp_path, ["a"]).shape == (1, 64)
    assert len(server.requests) == 2


def test_a_server_that_knows_only_lists_of_numbers_is_served(tmp_path: Path) -> None:
    def faults(request):
        known = "encoding_format" not in request.body
        return None if known else unsupported("encoding_format")

    with ModelServer(faults=faults) as server:
        vectors = embed(server, tmp_path, ["a", "b"])
    assert np.allclose(vectors[1], unit(embedding_of("b", 64)), atol=1e-6)


def short_vector(numbers: str = "[1, 2, 3]") -> Fault:
    return Fault(raw=b'{"data": [{"index": 0, "embedding": %s}]}' % numbers.encode())


def test_vectors_of_the_wrong_width_are_refused(tmp_path: Path) -> None:
    with ModelServer(faults=[short_vector()]) as server:
        assert embed(server, tmp_path, ["a"], embedding_dimensions=32).shape == (1, 32)
        server.misbehave([short_vector()] * 3)
        with pytest.raises(TerminalModelError, match="vectors of 3 numbers, not 32"):
            embed(server, tmp_path, ["b"], embedding_dimensions=32)


@pytest.mark.parametrize("broken", ["[]", "[0, 0]", "[1, 2, 3]", '"!!!"', '"AAAA"'])
def test_a_broken_vector_is_never_kept(tmp_path: Path, broken: str) -> None:
    with ModelServer() as server:
        embed(server, tmp_path, ["a"])
        server.misbehave(lambda request: short_vector(broken))
        with pytest.raises(TransientModelError):
            embed(server, tmp_path, ["b"], max_retries=1)
        server.misbehave(())
        assert embed(server, tmp_path, ["a", "b"]).shape == (2, 64)


def test_a_broken_first_vector_does_not_decide_the_width(tmp_path: Path) -> None:
    with ModelServer(faults=[short_vector()]) as server:
        assert embed(server, tmp_path, ["a"]).shape == (1, 3)
        assert embed(server, tmp_path, ["a", "b"]).shape == (2, 64)
        server.forget()
        assert embed(server, tmp_path, ["b", "a"]).shape == (2, 64)
        assert not server.requests


def test_another_model_of_the_same_name_is_noticed(tmp_path: Path) -> None:
    with ModelServer() as server:
        embed(server, tmp_path, ["a", "b"])
        server.dimensions = 48
        assert embed(server, tmp_path, ["a", "c"]).shape == (2, 48)
        assert embed(server, tmp_path, ["a", "b", "c"]).shape == (3, 48)


def test_broken_vectors_in_the_cache_are_dropped_and_bought_again(tmp_path: Path) -> None:
    with ModelServer() as server:
        embed(server, tmp_path, ["a", "b", "c"])
        with contextlib.closing(sqlite3.connect(Home(tmp_path).calls)) as con, con:
            keys = [key for (key,) in con.execute("SELECT key FROM embeddings")]
            for key, blob in zip(keys, [b"", b"\0" * 256, b"123"], strict=True):
                con.execute(
                    "UPDATE embeddings SET vector = ?, digest = NULL WHERE key = ?", [blob, key]
                )
        vectors = embed(server, tmp_path, ["a", "b", "c"])
        assert np.allclose(vectors[1], unit(embedding_of("b", 64)), atol=1e-6)
        server.forget()
        embed(server, tmp_path, ["c", "b", "a"])
        assert not server.requests


def test_a_server_that_numbers_every_vector_nought_is_read_in_order(tmp_path: Path) -> None:
    answer = b'{"data": [{"index": 0, "embedding": [1, 0]}, {"index": 0, "embedding": [0, 1]}]}'
    with ModelServer(faults=[Fault(raw=answer)]) as server:
        assert embed(server, tmp_path, ["a", "b"]).tolist() == [[1, 0], [0, 1]]


def test_a_file_of_calls_made_before_is_brought_up_to_date(tmp_path: Path) -> None:
    with ModelServer() as server:
        embed(server, tmp_path, ["a"])
        with contextlib.closing(sqlite3.connect(Home(tmp_path).calls)) as con, con:
            con.execute("DROP TABLE embedding_widths")
            con.execute("ALTER TABLE responses DROP COLUMN made_for")
            con.execute("ALTER TABLE responses DROP COLUMN used_on")
            con.execute("ALTER TABLE embeddings DROP COLUMN used_on")
            con.execute("ALTER TABLE responses DROP COLUMN stage")
            con.execute("ALTER TABLE embeddings DROP COLUMN stage")
            con.execute("ALTER TABLE responses DROP COLUMN digest")
            con.execute("ALTER TABLE embeddings DROP COLUMN digest")
            con.execute("ALTER TABLE llm_calls DROP COLUMN cached_tokens")
            con.execute("PRAGMA user_version = 1")
        server.forget()
        embed(server, tmp_path, ["a"])
        assert not server.requests


def test_an_embedding_budget_is_kept(tmp_path: Path) -> None:
    with ModelServer() as server, pytest.raises(ModelError, match="budget reached"):
        embed(server, tmp_path, ["word " * 50] * 3, max_tokens=40)
    assert not server.requests


def test_requests_hold_no_more_than_a_server_takes() -> None:
    sizes = (10, 7000, 7000, 10) * 200 + (5,) * 300
    given = [piece for size in sizes for piece in pieces("x" * size, 8000)]
    groups = list(batches(given))
    assert [piece for group in groups for piece in group] == given
    assert max(len(group) for group in groups) == 256
    assert max(sum(piece.n_bytes for piece in group) for group in groups) <= 400_000


def test_the_pieces_of_a_huge_text_that_were_bought_are_kept_and_accounted_for(
    tmp_path: Path,
) -> None:
    text = " ".join(f"word{n}" for n in range(3000))
    with ModelServer(faults=lambda r: server_error() if r.number > 1 else None) as server:
        with pytest.raises(TransientModelError):
            embed(server, tmp_path, [text], embedding_max_tokens=10, max_retries=0, concurrency=1)
        assert paid(tmp_path)["prompt_tokens"].sum() == server.prompt_tokens > 0
        (bought,) = [r.body["input"] for r in server.requests if r.number == 1]
        server.misbehave(())
        server.forget()
        embed(server, tmp_path, [text], embedding_max_tokens=10)
        asked = {piece for request in server.requests for piece in request.body["input"]}
    assert len(bought) == 256
    assert not asked & set(bought)


def test_another_length_of_pieces_asks_again_only_for_what_is_cut(tmp_path: Path) -> None:
    with ModelServer() as server:
        embed(server, tmp_path, ["short", "long " * 60])
        server.forget()
        embed(server, tmp_path, ["short", "long " * 60], embedding_max_tokens=50)
    (request,) = server.requests
    assert len(request.body["input"]) == 2
    assert "short" not in request.body["input"]
