"""What people say of answers is a mart: what stands under bad ones, until it is purged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from artefacts import copy_of
from graphrag_server.conversations import Conversations
from graphrag_server.paths import ServerFiles
from http_server import Served
from marts_fixture import build_some

from graphrag_pipeline import Index
from graphrag_pipeline.assets import Names
from graphrag_pipeline.core.settings import load_settings
from graphrag_pipeline.marts import build as marts
from graphrag_pipeline.marts.inputs import MART_TABLES
from graphrag_pipeline.marts.sql import query_published
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.sensors import build_marts_sensor

pytestmark = pytest.mark.slow
DOCUMENTS = {
    "mill.txt": "Alba Crane met Dorian Feld at Halden Mill. Dorian Feld repaired Halden Mill.",
    "court.txt": "Judge Imre Tolliver sued Marek Vale over the vexlegal case. Marek Vale lost it.",
}
MARTS = ("answer_feedback", "feedback_sources")
QUESTION = "Who repaired Halden Mill with Dorian Feld?"
OF_COURT = "What was the vexlegal case of Imre Tolliver?"
WORDS = "The xylotomy is missing."
"""What somebody says of the answer about the court; it is nowhere else."""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A copy of a home of two documents with three judged answers, its marts built."""
    assert "feedback" in MART_TABLES.names(), "install it again: pip install -e packages/server"
    copy_of("judged", _make, tmp_path)
    with _at_home(tmp_path) as place:
        yield place


def _make(folder: Path) -> None:
    (folder / "in").mkdir(parents=True)
    for name, text in DOCUMENTS.items():
        (folder / "in" / name).write_text(text)
    with _at_home(folder) as place:
        Index(load_settings()).update(folder / "in")
        with Served({"default": load_settings()}) as server:
            judged(server, QUESTION, "bm25", "bad", "It names nobody.")
            judged(server, OF_COURT, "bm25", "bad", WORDS)
            judged(server, QUESTION, "global", "good", "")
        build_some(place, *MARTS)


@contextmanager
def _at_home(folder: Path) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        place = folder / "home"
        patch.setenv("GRAPHRAG_HOME", str(place))
        patch.setenv("DAGSTER_HOME", str(place / "dagster"))
        patch.chdir(folder)
        yield place


def judged(server: Served, question: str, method: str, verdict: str, words: str) -> None:
    """Ask something and say whether the answer is good."""
    body = {"question": question, "method": method, "conversation": ""}
    asked = server.post("/v1/query", **body)
    assert asked.ok, asked.text
    path = f"/v1/answers/{asked.headers['x-answer']}/feedback"
    assert server.post(path, verdict=verdict, words=words).ok


def feedback(home: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of the marts of feedback."""
    rows = {}
    for name in MARTS:
        columns, values = query_published(home, f"FROM marts.{name} ORDER BY ALL")
        rows[name] = [dict(zip(columns, row, strict=True)) for row in values]
    return rows


def test_the_marts_say_what_stands_under_bad_answers(home: Path) -> None:
    rows = feedback(home)
    said = {(row["question"], row["method"]): row for row in rows["answer_feedback"]}
    court, whole = said[OF_COURT, "bm25"], said[QUESTION, "global"]
    assert (court["verdict"], court["words"]) == ("bad", WORDS)
    assert [Path(uri).name for uri in court["documents"]] == ["court.txt"]
    assert whole["communities"]
    assert whole["release_id"] == query_published(home, "SELECT id FROM releases")[1][0][0]
    bad = {
        Path(row["name"]).name: (row["n_bad"], row["n_good"], row["bad_questions"])
        for row in rows["feedback_sources"]
        if row["kind"] != "community"
    }
    assert bad["bm25"] == (2, 0, sorted([QUESTION, OF_COURT]))
    assert bad["court.txt"] == (1, 0, [OF_COURT])
    communities = [row for row in rows["feedback_sources"] if row["kind"] == "community"]
    assert {row["name"] for row in communities} == set(whole["communities"])
    assert {row["bad_share"] for row in communities} == {0.0}


def test_each_word_makes_the_marts_outdated_and_the_sensor_waits_for_an_hour(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert marts.marts_outdated(home) is None
    file = Conversations(ServerFiles(home).conversations, 90)
    (first, *_) = file.feedback()
    file.judge(first["answer_id"], first["said_by"], None, "")
    wanted = marts.marts_outdated(home)
    assert wanted is not None
    sensor = build_marts_sensor(IndexResource.of(load_settings()), Names(), "RUNNING")
    with dg.DagsterInstance.ephemeral() as instance:
        tick = lambda: sensor(dg.build_sensor_context(instance))  # noqa: E731
        assert isinstance(tick(), dg.SkipReason)
        monkeypatch.setattr("graphrag_pipeline.sensors.marts._BETWEEN_JUDGEMENTS", timedelta(0))
        assert isinstance(tick(), dg.RunRequest)


def test_a_purge_leaves_no_mart_with_words_on_what_is_gone(home: Path) -> None:
    assert WORDS in {row["words"] for row in feedback(home)["answer_feedback"]}
    (home.parent / "in" / "court.txt").unlink()
    Index(load_settings()).forget(home.parent / "in" / "court.txt")
    held = b"".join(file.read_bytes() for file in home.rglob("*") if file.is_file())
    assert b"xylotomy" not in held
    build_some(home, *MARTS)
    said = {(row["question"], row["method"]): row for row in feedback(home)["answer_feedback"]}
    court, mill = said[OF_COURT, "bm25"], said[QUESTION, "bm25"]
    assert (court["verdict"], court["words"], court["documents"]) == ("bad", "", [])
    assert court["document_ids"] == []
    assert mill["words"] == "It names nobody."
    assert [Path(uri).name for uri in mill["documents"]] == ["mill.txt"]
