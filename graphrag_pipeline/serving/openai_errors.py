"""Errors as OpenAI's API says them, for the addresses that its clients call."""

from __future__ import annotations

from typing import Any

_PLACES = ("/v1/chat/", "/v1/models")
_CODES = {
    401: "invalid_api_key",
    403: "insufficient_permissions",
    404: "model_not_found",
    413: "request_too_large",
    429: "rate_limit_exceeded",
}
_NO_MORE = "insufficient_quota"


def speaks_openai(path: str) -> bool:
    """Return whether a path is one that clients of OpenAI's call."""
    return path.startswith(_PLACES)


def openai_status(status: int) -> int:
    """Return the status that is sent there for one of ours: what is not valid is 400."""
    return 400 if status == 422 else status


def openai_error(
    status: int, detail: str, *, place: str | None, comes_back: bool
) -> dict[str, Any]:
    """Return an error in OpenAI's form.

    ``place`` is the part of the request that is not valid; ``comes_back``: a 429 will be over.
    """
    code, kind = _CODES.get(status), "invalid_request_error" if status < 500 else "server_error"
    if status == 429:
        code, kind = (code, "requests") if comes_back else (_NO_MORE, _NO_MORE)
    param = place or ("model" if status == 404 else None)
    return {"error": {"message": detail, "type": kind, "param": param, "code": code}}
