"""A server for programs of others: an index without a model, and one with; what they answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from http_server import Served
from model_server import Messages, ModelServer
from query_fixture import published

from graphrag_pipeline.core.settings import Settings

QUESTION = "Who worked as a clerk for Scrooge?"
ANSWER = "Bob Cratchit worked as a clerk for Scrooge in a dismal little cell."
WRITTEN = "Bob Cratchit did [Data: Sources (0)]."
OBJECT: dict[str, Any] = {
    "name": "Bob Cratchit",
    "who": "Bob Cratchit",
    "year": 1843,
    "title": "Scrooge's clerk",
    "tags": ["Fiction"],
    "follow_ups": ["Who is Fezziwig?"],
    "queries": [],
    "text": "",
    "prompt": "A clerk in a cell.",
}
"""What the model writes where JSON is asked for: it has the keys of all who ask."""


def _written(messages: Messages) -> str:
    prompt = "".join(str(message["content"]) for message in messages)
    return json.dumps(OBJECT) if "JSON" in prompt else WRITTEN


@contextmanager
def served_to_programs(folder: Path) -> Iterator[tuple[Served, ModelServer]]:
    """Serve ``default``, where no model writes, and ``book``, where one does."""
    home = published(folder / "home")
    with ModelServer(_written) as model, pytest.MonkeyPatch.context() as patched:
        patched.setenv("OPENAI_API_KEY", "sk-test")
        writing = Settings(
            home=str(home),
            query={"answers": "llm"},  # type: ignore[arg-type]
            llm={"base_url": model.base_url, "model": "gpt-4o-mini"},  # type: ignore[arg-type]
        )
        with Served({"default": home, "book": writing}) as server:
            yield server, model
