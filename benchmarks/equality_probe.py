"""Ask what is published in this environment: every method, every question. Used by `equality`.

Reads a JSON list of questions from standard input and prints one JSON object a question and method.
It runs in the environment of the checkout that is probed, and is the one place that knows how to
open a release there.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any


def open_release() -> Any:
    """Return what answers questions on the published release, a context manager."""
    try:
        from graphrag_pipeline import Index  # pyright: ignore[reportAttributeAccessIssue]
    except ImportError:
        from graphrag_pipeline.query import QueryEngine

        return QueryEngine()
    return Index().open()


def method_names() -> list[str]:
    """Return the names of all methods, those that need a model among them."""
    from graphrag_pipeline import query

    return sorted({**query.METHODS, **getattr(query, "MODEL_METHODS", {})})


def reply(ask: Callable[..., Any], question: str, method: str) -> dict[str, Any]:
    """Return what comes of a question as plain values; of one that fails, the error."""
    try:
        return ask(question, method).to_dict()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def main() -> None:
    """Ask everything."""
    questions = json.load(sys.stdin)
    with open_release() as engine:
        for method in method_names():
            for question in questions:
                replies = {
                    "retrieve": reply(engine.retrieve, question, method),
                    "answer": reply(engine.answer, question, method),
                }
                line = {"method": method, "question": question, **replies}
                print(json.dumps(line, default=str))


if __name__ == "__main__":
    main()
