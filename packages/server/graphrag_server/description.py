"""`/openapi.json`: what programs may send, and what they are answered, errors and keys included."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI
from pydantic.json_schema import models_json_schema

from graphrag_server.guard import is_open
from graphrag_server.openai_errors import OpenAIError, openai_status, speaks_openai
from graphrag_server.problems import MEDIA_TYPE, ProblemDetails

_WHEN = {
    400: "A header came twice; at addresses of OpenAI's, or a part of the request cannot be used.",
    401: "A key is needed, or the one that is shown opens nothing.",
    403: "The key is not for this; or a stranger asks, from another machine or page.",
    404: "There is no such collection, release, document, entity, community, report or model.",
    408: "The body did not come in time.",
    409: "What is in the file of aliases says otherwise.",
    413: "The body is too large.",
    415: "A file of that kind is not read.",
    422: "A part of the request cannot be used.",
    429: "The key has had its share for now, or its budget is spent.",
    431: "The head of the request is too large.",
    500: "It failed: the log of the server says why.",
    502: "The model refused the call, or cannot be asked.",
    503: "Not now: nothing is published, there are too many questions, or it took too long.",
    507: "There is no room for what is sent.",
}
_ERRORS = models_json_schema(
    [(ProblemDetails, "serialization"), (OpenAIError, "serialization")],
    ref_template="#/components/schemas/{model}",
)[1]
_ALWAYS = (400, 401, 403, 413, 429, 431, 500, 503)
_KEYS: dict[str, dict[str, str]] = {
    "key": {"type": "http", "scheme": "bearer", "description": "A key: grp_<id>_<secret>."},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The same."},
}


def describe_by(app: FastAPI, needs_keys: Callable[[], bool]) -> None:
    """Let an application describe itself as it is; ``needs_keys``: whether a caller needs one."""
    plain = app.openapi

    @functools.cache
    def described(with_keys: bool) -> dict[str, Any]:
        document = plain()
        schemas = {**document["components"]["schemas"], **_ERRORS["$defs"]}
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        keys = {"securitySchemes": _KEYS} if with_keys else {}
        paths = {
            path: {method: _answers(path, each, with_keys) for method, each in methods.items()}
            for path, methods in document["paths"].items()
        }
        return {**document, "paths": paths, "components": {"schemas": schemas, **keys}}

    app.openapi = lambda: described(needs_keys())


def _answers(path: str, operation: Mapping[str, Any], with_keys: bool) -> dict[str, Any]:
    """Return an operation with all that it may be answered, and the keys that it takes."""
    good = {n: each for n, each in operation["responses"].items() if n.startswith("2")}
    statuses = {int(n) for n in operation["responses"]} - {int(n) for n in good}
    statuses |= {*_ALWAYS, *_mistakes(operation)}
    problems = {
        str(status): {
            "description": _WHEN[status],
            "content": _content(path),
        }
        for status in sorted({openai_status(n) if speaks_openai(path) else n for n in statuses})
    }
    needed = [{name: []} for name in _KEYS] if with_keys and not is_open(path, "GET") else []
    security = {"security": needed} if needed else {}
    return {**operation, "responses": {**good, **problems}, **security}


def _mistakes(operation: Mapping[str, Any]) -> set[int]:
    """Return the statuses of what a caller can get wrong."""
    parameters = operation.get("parameters", [])
    has_body = "requestBody" in operation
    names = any(each["in"] == "path" or each["name"] == "collection" for each in parameters)
    return (
        ({404} if names or has_body else set())
        | ({408} if has_body else set())
        | ({422} if parameters or has_body else set())
    )


def _content(path: str) -> dict[str, Any]:
    """Return the form of an error of a path."""
    name, kind = (
        ("OpenAIError", "application/json")
        if speaks_openai(path)
        else ("ProblemDetails", MEDIA_TYPE)
    )
    return {kind: {"schema": {"$ref": f"#/components/schemas/{name}"}}}
