"""What a server holds in memory, beside what it answers from."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from graphrag_server import app as serving
from graphrag_server.collections import open_collections
from query_fixture import published, settings_for

ASKED = """
import sys
from fastapi.testclient import TestClient
from graphrag_pipeline.core.settings import load_settings
from graphrag_server.server import worker_app

app = worker_app(load_settings(home=sys.argv[1]), None, needs_keys=False)
with TestClient(app, "http://127.0.0.1") as client:
    question = {"question": "Who worked as a clerk for Scrooge?", "method": "auto"}
    assert "Cratchit" in client.post("/v1/query", json=question).text
    print("polars" in sys.modules)
    assert client.get("/v1/explorer").json()["entities"]
    print("polars" in sys.modules)
"""


def test_a_server_answers_without_polars_which_the_picture_needs(tmp_path: Path) -> None:
    home = published(tmp_path / "home")
    command = [sys.executable, "-c", ASKED, str(home)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_a_server_gives_back_what_loading_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_for(published(tmp_path / "home"))
    collections = open_collections(settings)
    monkeypatch.setattr(serving, "_TIDYING_SECONDS", 0.05)

    def cached() -> int:
        sql = "SELECT memory_usage_bytes AS n FROM duckdb_memory() WHERE tag = 'BASE_TABLE'"
        return int(collections.holders["default"].use(lambda e: e.index.rows(sql))[0]["n"])

    with TestClient(serving.create_app(collections, settings.server), "http://127.0.0.1") as client:
        question = {"question": "Who worked as a clerk for Scrooge?", "method": "local"}
        assert client.post("/v1/query", json=question).status_code == 200
        until = time.monotonic() + 60
        while cached() > 2**20 and time.monotonic() < until:
            time.sleep(0.05)
        assert cached() <= 2**20
