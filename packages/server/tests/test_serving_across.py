"""One question to several collections over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from graphrag_server.keys import SCOPES, Keyring, add_key
from graphrag_server.paths import ServerFiles
from http_server import Served, bearer
from test_across import QUESTION
from test_across import indexes as indexes

from graphrag_pipeline import Index
from graphrag_pipeline.core.settings import Settings


@pytest.fixture(scope="module")
def served(
    indexes: dict[str, Index], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Served, dict[str, str]]]:
    home = tmp_path_factory.mktemp("keys")
    ring = Settings.exactly({"home": str(home)})
    given = {
        "both": {"collections": {"mill", "court"}, "labels": {"mill", "court"}},
        "mill": {"collections": {"mill"}, "labels": {"mill"}},
        "unlabelled": {"collections": {"mill", "court"}, "labels": {"mill"}},
    }
    keys = {n: add_key(ring, n, scopes=set(SCOPES), **allowed)[1] for n, allowed in given.items()}
    settings = {name: index.settings for name, index in indexes.items()}
    with Served(settings, Keyring(ServerFiles(home).keys)) as server:
        yield server, keys


def test_several_collections_are_asked_over_http(served):
    server, keys = served
    both = ["mill", "court"]
    body = {"question": QUESTION, "method": "bm25", "collections": both}
    answer = server.post("/v1/query", keys["both"], **body).json()
    assert {citation["collection"] for citation in answer["citations"]} == set(both)
    found = server.post("/v1/retrieve", keys["both"], **body).json()
    assert {r["attributes"]["collection"] for r in found["records"]} == set(both)
    metrics = server.get("/metrics", headers=bearer(keys["both"])).text
    assert 'collection="(several)"' in metrics


@pytest.mark.parametrize(
    ("key", "more", "status", "why"),
    [
        ("mill", {}, 403, "is not for the collection court"),
        ("unlabelled", {}, 403, "this index is not open to the label mill"),
        ("both", {"collections": ["mill", "none"]}, 403, "is not for the collection none"),
        ("both", {"collections": []}, 422, "collections"),
        ("both", {"collections": ["mill", "mill"]}, 422, "names one twice"),
        ("both", {"collection": "mill"}, 422, "neither collection nor release"),
        ("both", {"release": "2"}, 422, "neither collection nor release"),
    ],
)
def test_collections_that_may_not_be_asked_together(served, key, more, status, why):
    server, keys = served
    body = {"question": QUESTION, "method": "bm25", "collections": ["mill", "court"], **more}
    response = server.post("/v1/query", keys[key], **body)
    assert response.status_code == status
    assert why in response.json()["detail"]
    assert "Dorian" not in response.text


def test_a_stream_of_several_collections_is_refused(served):
    server, keys = served
    response = server.post(
        "/v1/query/stream", keys["both"], question=QUESTION, collections=["mill", "court"]
    )
    assert response.status_code == 422
    assert "asked by /v1/query and /v1/retrieve alone" in response.json()["detail"]
