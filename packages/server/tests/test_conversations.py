"""Conversations are kept for their callers alone until they delete them; answers have links."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from graphrag_server.conversations import Conversations
from graphrag_server.keys import Keyring, add_key
from graphrag_server.paths import ServerFiles
from http_server import Served, bearer
from query_fixture import published, settings_for
from test_access import index as index
from typer.testing import CliRunner

from graphrag_pipeline import Index
from graphrag_pipeline.cli.app import app
from graphrag_pipeline.store.index_store import connect_published
from graphrag_pipeline.upkeep.home_files import HOME_FILES

QUESTION = "Who worked as a clerk for Scrooge?"
DAY = 86_400.0


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return published(tmp_path_factory.mktemp("talked") / "home")


@pytest.fixture(scope="module")
def keys(home: Path) -> dict[str, str]:
    settings = settings_for(home)
    allowed: dict[str, Any] = {"collections": {"default"}, "scopes": {"query", "read"}}
    return {name: add_key(settings, name, **allowed)[1] for name in ("anna", "bert")}


@pytest.fixture(scope="module")
def served(home: Path, keys: dict[str, str]) -> Iterator[Served]:
    assert keys
    with Served({"default": home}, Keyring(ServerFiles(home).keys)) as server:
        yield server


def get(server: Served, path: str, key: str) -> Any:
    return server.get(path, headers=bearer(key))


def ask(
    server: Served, key: str, conversation: str = "", question: str = QUESTION
) -> tuple[str, str]:
    """Ask something that is to be kept; return the ids of conversation and answer."""
    body = {"question": question, "conversation": conversation, "method": "bm25"}
    response = server.post("/v1/query", key, **body)
    assert response.status_code == 200, response.text
    return response.headers["x-conversation"], response.headers["x-answer"]


def test_a_conversation_has_its_questions_and_whole_answers_in_their_order(
    served: Served, keys: dict[str, str]
) -> None:
    talk, first = ask(served, keys["anna"])
    again, second = ask(served, keys["anna"], talk, "Where was Marie Curie born?")
    assert again == talk
    turns = get(served, f"/v1/history/{talk}", keys["anna"]).json()["answers"]
    assert [turn["id"] for turn in turns] == [first, second]
    assert turns[0]["answer"]["citations"]
    assert turns[0]["answer"]["release"] == turns[0]["release"] == "r1"


def test_a_stream_tells_where_its_answer_is_kept_and_nothing_is_kept_unasked(
    served: Served, keys: dict[str, str], home: Path
) -> None:
    before = len(get(served, "/v1/history", keys["anna"]).json()["conversations"])
    body = {"question": QUESTION, "method": "bm25"}
    plain = served.post("/v1/query/stream", keys["anna"], **body).text
    assert "event: kept" not in plain
    assert "x-answer" not in served.post("/v1/query", keys["anna"], **body).headers
    kept = served.post("/v1/query/stream", keys["anna"], **body, conversation="").text
    assert kept.index("event: kept") < kept.index("event: done")
    now = get(served, "/v1/history", keys["anna"]).json()["conversations"]
    assert len(now) == before + 1


def test_nobody_else_lists_reads_renames_continues_or_deletes_a_conversation(
    served: Served, keys: dict[str, str]
) -> None:
    talk, _ = ask(served, keys["anna"])
    path = f"/v1/history/{talk}"
    unknown = get(served, "/v1/history/none", keys["bert"])
    tries = [
        get(served, path, keys["bert"]),
        served.post(path, keys["bert"], title="mine"),
        served.http.delete(served.url + path, headers=bearer(keys["bert"])),
    ]
    assert {each.status_code for each in (*tries, unknown)} == {404}
    assert {each.json()["detail"] for each in tries} == {unknown.json()["detail"]}
    assert served.get(path).status_code == 401
    listed = get(served, "/v1/history", keys["bert"]).json()["conversations"]
    assert talk not in {each["id"] for each in listed}
    assert ask(served, keys["bert"], talk)[0] != talk
    assert len(get(served, path, keys["anna"]).json()["answers"]) == 1


def test_conversations_are_found_by_words_and_have_the_title_they_are_given(
    served: Served, keys: dict[str, str]
) -> None:
    talk, _ = ask(served, keys["bert"], question="Where was Marie Curie born?")
    assert served.post(f"/v1/history/{talk}", keys["bert"], title=" On a chemist ").ok

    def titles(q: str) -> list[str]:
        listed = get(served, f"/v1/history?q={q}", keys["bert"]).json()["conversations"]
        return [each["title"] for each in listed]

    assert titles("CHEMIST") == titles("marie") == ["On a chemist"]
    assert titles("100%") == []


def test_what_is_deleted_is_on_the_disk_no_more(
    served: Served, keys: dict[str, str], home: Path
) -> None:
    words = "Did the zymurgist of Quarrelton ever confess to it?"
    talk, answer = ask(served, keys["anna"], question=words)
    said = served.post(
        f"/v1/answers/{answer}/feedback", keys["anna"], verdict="bad", words="xylotomy"
    )
    assert said.ok
    held = lambda: b"".join(file.read_bytes() for file in home.glob("conversations.sqlite*"))  # noqa: E731
    assert b"zymurgist" in held()
    assert b"xylotomy" in held()
    path = f"{served.url}/v1/history/{talk}"
    assert served.http.delete(path, headers=bearer(keys["anna"])).ok
    assert b"zymurgist" not in held()
    assert b"xylotomy" not in held()
    assert get(served, f"/v1/answers/{answer}", keys["anna"]).status_code == 404


def test_an_answer_opens_by_its_link_for_who_may_see_all_it_tells_and_for_nobody_else(
    index: Index, tmp_path: Path
) -> None:
    ring = settings_for(tmp_path)
    labels = {"all": {"*"}, "both": {"hr", "staff"}, "staff": {"staff"}, "hr": {"hr"}}
    keys = {
        name: add_key(ring, name, collections={"*"}, scopes={"query"}, labels=each)[1]
        for name, each in labels.items()
    }
    with Served({"default": index.settings}, Keyring(ServerFiles(tmp_path).keys)) as server:
        answers = {name: ask(server, key)[1] for name, key in keys.items()}

        def opens(whose: str) -> set[str]:
            path = f"/v1/answers/{answers[whose]}"
            return {name for name, key in keys.items() if get(server, path, key).ok}

        assert opens("staff") == {"all", "both", "staff"}
        assert opens("both") == {"all", "both"}
        assert opens("all") == {"all"}
        refused = get(server, f"/v1/answers/{answers['all']}", keys["staff"])
        missing = get(server, "/v1/answers/none", keys["staff"])
        assert refused.status_code == missing.status_code == 404
        assert refused.json()["detail"] == missing.json()["detail"]
        judged = f"/v1/answers/{answers['all']}/feedback"
        assert server.post(judged, keys["staff"], verdict="good").status_code == 404


def test_what_people_say_of_answers_is_a_table_and_can_be_taken_back(
    served: Served, keys: dict[str, str], home: Path
) -> None:
    _, answer = ask(served, keys["anna"])
    path = f"/v1/answers/{answer}/feedback"
    assert served.post(path, keys["anna"], verdict="bad", words="It names no year.").ok
    assert served.post(path, keys["bert"], verdict="good").ok
    file = Conversations(ServerFiles(home).conversations, 90)
    said = {row["said_by"]: row for row in file.feedback() if row["answer_id"] == answer}
    assert {(row["verdict"], row["words"]) for row in said.values()} == {
        ("bad", "It names no year."), ("good", "")
    }  # fmt: skip
    assert all(row["question"] == QUESTION and row["answer"] for row in said.values())
    assert get(served, f"/v1/answers/{answer}", keys["anna"]).json()["verdict"] == "bad"
    assert served.post(path, keys["anna"], verdict=None).ok
    assert get(served, f"/v1/answers/{answer}", keys["anna"]).json()["verdict"] is None


def kept(file: Conversations, chunks: list[str] | None, question: str = "?") -> str:
    return file.keep(
        "k", "", question, b'{"text": "t"}', method="m", release="r", labels=None, chunks=chunks
    )[1]


def test_a_purge_removes_answers_that_rest_on_what_is_gone_and_leaves_the_questions(
    home: Path, tmp_path: Path
) -> None:
    release = home / "published.duckdb"
    with connect_published(release) as con:
        there = con.execute("SELECT min(id) FROM chunks").fetchone()
    assert there is not None
    path = tmp_path / "conversations.sqlite"
    file = Conversations(path, 90)
    ids = [kept(file, chunks) for chunks in ([there[0]], [there[0], "gone"], None)]
    purge = HOME_FILES.usable()["conversations.sqlite"].purge
    assert purge is not None
    purge(path, release)
    left = [file.answer(id, "k") for id in ids]
    assert [each and each.answer for each in left] == [{"text": "t"}, None, None]
    assert [each and each.question for each in left] == ["?"] * 3


def test_a_conversation_goes_some_days_after_its_last_question(tmp_path: Path) -> None:
    now = [0.0]
    file = Conversations(tmp_path / "c.sqlite", 2, clock=lambda: now[0])
    answer = kept(file, [], "an antediluvian question")
    now[0] = 1.9 * DAY
    assert file.answer(answer, "k")
    now[0] = 2.1 * DAY
    assert file.listed("k") == []
    assert file.answer(answer, "k") is None
    kept(file, [])
    assert b"antediluvian" not in (tmp_path / "c.sqlite").read_bytes()


def test_where_no_days_are_set_nothing_is_kept(tmp_path: Path) -> None:
    home = published(tmp_path / "home")
    settings = settings_for(home)
    server = settings.server.model_copy(update={"conversation_days": 0.0})
    with Served({"default": settings.model_copy(update={"server": server})}) as served:
        response = served.post("/v1/query", question=QUESTION, method="bm25", conversation="")
        assert response.ok
        assert "x-answer" not in response.headers
        assert served.get("/v1/history").status_code == 403
    assert not ServerFiles(home).conversations.exists()


def test_the_address_of_a_thing_with_json_behind_it_is_that_of_its_data(
    served: Served, keys: dict[str, str]
) -> None:
    document = get(served, "/v1/documents?most=1", keys["anna"]).json()["documents"][0]["id"]
    response = get(served, f"/documents/{document}.json?release=r1", keys["anna"])
    assert response.json()["id"] == document
    away = served.http.get(f"{served.url}/documents///evil.example.json", allow_redirects=False)
    assert "evil" not in away.headers.get("location", "") or away.headers["location"].startswith(
        "/v1/"
    )


def test_what_people_said_becomes_questions_that_an_evaluation_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets = pytest.importorskip("graphrag_evaluation.questions.datasets")
    home = published(tmp_path / "home")
    file = Conversations(ServerFiles(home).conversations, 90)
    for verdict in ("good", "bad"):
        file.judge(kept(file, [], f"Is it {verdict}?"), "k", verdict, "")
    monkeypatch.setenv("GRAPHRAG_HOME", str(home))
    written = tmp_path / "asked.jsonl"
    shown = CliRunner().invoke(app, ["feedback", "--questions", str(written)])
    assert shown.exit_code == 0, shown.output
    questions = {each.text: each.answers for each in datasets.read_questions(written)}
    assert questions == {"Is it good?": ("t",), "Is it bad?": ()}
