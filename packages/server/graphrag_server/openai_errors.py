"""Errors as OpenAI's API says them, for the addresses that its clients call."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

CHAT = "/v1/chat/completions"
"""Where clients of OpenAI's ask."""
_OURS = ("/v1/chat/", "/v1/completions", "/v1/models")
_TEXTS = f"this server answers at {CHAT}: ask there"
_ELSEWHERE = {
    "/v1/responses": _TEXTS,
    "/v1/conversations": _TEXTS,
    "/v1/assistants": _TEXTS,
    "/v1/threads": _TEXTS,
    "/v1/edits": _TEXTS,
    "/v1/engines": f"/v1/models lists the models: ask them at {CHAT}",
    "/v1/embeddings": "this server makes no embeddings: ask /v1/retrieve for the evidence for a "
    f"question, {CHAT} for an answer",
    "/v1/rerank": "this server ranks no texts: ask /v1/retrieve for the evidence for a question",
    "/v1/vector_stores": "documents are listed at /v1/documents, and searched by /v1/retrieve",
    "/v1/files": "documents are listed, and brought in, at /v1/documents",
    "/v1/moderations": f"this server does not moderate: ask questions at {CHAT}",
    "/v1/images": f"this server makes no pictures: ask questions at {CHAT}",
    "/v1/audio": f"this server has no speech: ask questions at {CHAT}",
    "/v1/realtime": f"this server has no speech: ask questions at {CHAT}",
    "/v1/messages": _TEXTS,
    **dict.fromkeys(
        ("/chat/completions", "/completions", "/models", "/responses", "/embeddings"),
        f"set the base URL of your client to an address that ends in /v1: answers are at {CHAT}",
    ),
    "/v1/fine_tuning": f"this server trains no models: ask questions at {CHAT}",
}
"""Addresses of OpenAI's that are none here, and what to do instead."""
_CODES = {
    401: "invalid_api_key",
    403: "insufficient_permissions",
    404: "model_not_found",
    413: "request_too_large",
    429: "rate_limit_exceeded",
}
_NO_MORE = "insufficient_quota"
_NO_ADDRESS = "unknown_url"


class OpenAIProblem(BaseModel):
    """A problem: what is wrong, and what to do."""

    message: str
    type: str
    param: str | None
    code: str | None


class OpenAIError(BaseModel):
    """An error as OpenAI's API sends it."""

    error: OpenAIProblem


def speaks_openai(path: str) -> bool:
    """Return whether a path is one that clients of OpenAI's call."""
    return path.startswith(_OURS) or _elsewhere(path) is not None


def no_such_address(path: str) -> str:
    """Return what to say of an address that there is not."""
    return _elsewhere(path) or "there is no such address: /openapi.json lists all"


def openai_status(status: int) -> int:
    """Return the status that is sent there for one of ours: what is not valid is 400."""
    return 400 if status == 422 else status


def _elsewhere(path: str) -> str | None:
    """Return where to go instead of an address of OpenAI's that is none here."""
    return _ELSEWHERE.get("/".join(path.split("/")[:3]))


def openai_error(
    status: int, detail: str, *, place: str | None, comes_back: bool, path: str
) -> dict[str, Any]:
    """Return an error in OpenAI's form.

    ``place`` is the part of the request that is not valid; ``comes_back``: a 429 will be over;
    ``path`` is the address that was called.
    """
    code, kind = _CODES.get(status), "invalid_request_error" if status < 500 else "server_error"
    if status == 429:
        code, kind = (code, "requests") if comes_back else (_NO_MORE, _NO_MORE)
    if status == 404 and place != "model":
        code = None if place else _NO_ADDRESS
    return {"error": {"message": detail, "type": kind, "param": place, "code": code}}
