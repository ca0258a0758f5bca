"""What a server holds in memory, beside what it answers from."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from query_fixture import published

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
