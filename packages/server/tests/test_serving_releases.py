"""A citation opens on what was cited: every address that takes characters names a release."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from graphrag_server.collections import VisibleCollection
from graphrag_server.keys import Keyring, add_key
from graphrag_server.paths import ServerFiles
from http_server import Served, bearer
from query_fixture import DOCUMENTS, published, settings_for

from graphrag_pipeline.core.errors import AccessError, GraphRAGError
from graphrag_pipeline.core.settings import AccessSettings, Settings
from graphrag_pipeline.query.open_engine import LOOK_SECONDS, Holder
from graphrag_pipeline.releases.kept_releases import (
    UnknownReleaseError,
    changing_releases,
    keep_only,
    keep_published,
)

QUESTION = "Who worked as a clerk for Scrooge?"
CAROL = "A Christmas Carol"
CHANGED = {**DOCUMENTS, CAROL: f"A new first line moves all characters. {DOCUMENTS[CAROL]}"}


def publish(home: Path, release: str, **options: Any) -> None:
    with changing_releases(home):
        published(home, release, **options)
        keep_published(home)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    publish(tmp_path, "r1")
    with Served({"default": tmp_path}) as server:
        yield server


def publish_changed(server: Served, home: Path) -> None:
    publish(home, "r2", documents=CHANGED)
    server.holders["default"]._looked -= LOOK_SECONDS


def passage(server: Served, citation: dict[str, Any], **options: Any) -> Any:
    span = {"start": citation["start_char"], "end": citation["end_char"], **options}
    return server.get(f"/v1/documents/{citation['document_id']}/text", params=span)


def cited(server: Served) -> tuple[dict[str, Any], str]:
    answer = server.post("/v1/query", question=QUESTION, method="bm25").json()
    return answer["citations"][0], answer["release"]


def test_a_citation_opens_on_the_text_it_cites_after_the_document_has_changed(
    served: Served, tmp_path: Path
) -> None:
    citation, release = cited(served)
    publish_changed(served, tmp_path)
    now = passage(served, citation).json()
    assert now["release"] == "r2"
    assert now["text"] != citation["text"]
    then = passage(served, citation, release=release).json()
    assert (then["release"], then["text"]) == ("r1", citation["text"])


def test_a_citation_of_a_release_that_is_gone_says_so_and_shows_no_other_text(
    served: Served, tmp_path: Path
) -> None:
    citation, release = cited(served)
    publish_changed(served, tmp_path)
    assert passage(served, citation, release=release).status_code == 200
    keep_only(tmp_path, "r2")
    gone = passage(served, citation, release=release)
    assert gone.status_code == 404
    assert gone.json()["detail"] == (
        "release r1 is not kept: leave it out to read what is published now"
    )


def test_what_is_linked_from_an_answer_is_that_of_its_release(
    served: Served, tmp_path: Path
) -> None:
    publish_changed(served, tmp_path)
    (entity,) = served.get("/v1/entities?q=Scrooge&release=r1").json()["entities"]
    facts = served.get(f"/v1/entities/{entity['id']}?release=r1").json()
    community = facts["communities"][0]
    for path in (
        "documents",
        f"documents/{facts['places'][0]['document_id']}",
        f"entities/{entity['id']}/neighbourhood",
        f"communities/{community['id']}",
        f"reports/{community['report_id']}",
    ):
        assert served.get(f"/v1/{path}", params={"release": "r1"}).json()["release"] == "r1"
        assert served.get(f"/v1/{path}").json()["release"] == "r2"
        assert served.get(f"/v1/{path}", params={"release": "r0"}).status_code == 404


def test_the_release_that_is_open_is_not_opened_a_second_time(served: Served) -> None:
    holder = served.holders["default"]
    with holder.lease() as engine, holder.lease("r1") as named:
        assert named is engine


def test_a_caller_with_labels_names_his_release_by_how_it_begins(tmp_path: Path) -> None:
    publish(tmp_path, "r1")
    access = AccessSettings(mode="filtered", metadata="labels")
    settings = settings_for(tmp_path).model_copy(update={"access": access})
    holder = Holder("default", settings)
    seen = VisibleCollection(holder, frozenset({"staff"}))
    for named in ("1", "r2", "r1x"):
        with pytest.raises(AccessError, match="leave out the release"), seen.lease(named):
            pass
    assert seen._release_of("r") == seen._release_of("r1") == "r1"
    holder.close()


def test_a_release_that_is_purged_is_closed_within_a_second(tmp_path: Path) -> None:
    now = 0.0
    publish(tmp_path, "r1")
    publish(tmp_path, "r2")
    holder = Holder("default", settings_for(tmp_path), clock=lambda: now)
    with holder.lease(), holder.lease("r1") as older:
        pass
    keep_only(tmp_path, "r2")
    now = LOOK_SECONDS
    with holder.lease():
        pass
    with pytest.raises(GraphRAGError, match="this release was closed"):
        older.retrieve(QUESTION, "bm25")
    with pytest.raises(UnknownReleaseError), holder.lease("r1"):
        pass
    holder.close()


def test_labels_open_the_published_release_by_its_name_and_tell_of_no_other(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    publish(home, "r1")
    publish(home, "r2", documents=CHANGED)
    settings = Settings(home=str(home), access={"mode": "separate", "labels": ["staff"]})
    filtered = Settings(home=str(home), access={"mode": "filtered", "metadata": "label"})
    _, key = add_key(
        Settings(home=str(tmp_path)), "anna", collections={"*"}, labels={"staff"}, scopes={"read"}
    )
    homes = {"separate": settings, "filtered": filtered}
    with Served(homes, Keyring(ServerFiles(tmp_path).keys)) as server:

        def listed(collection: str, release: str) -> Any:
            asked = {"collection": collection, "release": release}
            return server.get("/v1/documents", params=asked, headers=bearer(key))

        assert listed("separate", "r2").json()["release"] == "r2"
        refused = [listed("filtered", release) for release in ("r1", "r0")]
        assert {(each.status_code, each.json()["detail"]) for each in refused} == {
            (403, "callers with labels see only the published release: leave out the release")
        }
        # Two are kept whose ids begin so: it is taken for the only one that he knows of.
        assert "no document is open to" in listed("filtered", "r").json()["detail"]


def test_an_assistant_reads_a_document_of_the_release_that_its_answer_names(
    served: Served, tmp_path: Path
) -> None:
    pytest.importorskip("mcp")
    from test_mcp import connected, text_of

    citation, release = cited(served)
    publish_changed(served, tmp_path)
    place = {
        "document": citation["document_id"],
        "start": citation["start_char"],
        "end": citation["end_char"],
    }

    async def talk() -> None:
        async with connected(served) as client:
            then = await text_of(client, "read_document", **place, release=release)
            assert citation["text"] in then
            assert "release r1" in then
            now = await text_of(client, "read_document", **place)
            assert citation["text"] not in now

    asyncio.run(talk())
