"""Errors as RFC 9457 problem details: a status, and what to do about it."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.responses import Response

from graphrag_pipeline.core.errors import (
    AccessError,
    BusyError,
    ConfigError,
    GraphRAGError,
    InputError,
    NothingPublishedError,
    StorageError,
)
from graphrag_pipeline.llm.errors import BudgetExceededError, ModelError, TransientModelError
from graphrag_pipeline.query.control import StoppedError
from graphrag_pipeline.releases.kept_releases import UnknownReleaseError
from graphrag_server.accounts import OverLimitError
from graphrag_server.audit import AuditError
from graphrag_server.collections import UnknownCollectionError
from graphrag_server.keys import without_keys
from graphrag_server.openai_errors import (
    CHAT,
    no_such_address,
    openai_error,
    openai_status,
    speaks_openai,
)

log = logging.getLogger("graphrag_pipeline")

MEDIA_TYPE = "application/problem+json"
_SOON = "5"
_LATER = "30"
_NO_PAGE = """<!doctype html>
<html lang="en"><meta name="viewport" content="width=device-width"><title>No such page</title>
<h1>There is no such page</h1><p><a href="/">Ask a question</a></p></html>
"""


class ProblemDetails(BaseModel):
    """A problem as it is sent."""

    type: str = Field("about:blank", description="Always about:blank: status and title say it.")
    title: str = Field(description="The name of the status.")
    status: int
    detail: str = Field(description="What is wrong, and what to do.")
    errors: list[dict[str, str]] | None = Field(
        None, description="Of a request that is not valid: each place and what is wrong there."
    )


class HttpProblem(Exception):
    """Something that ends a request, with its status; ``headers`` are sent along.

    ``field`` is the one that names what is not there.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        field: str | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})
        self.field = field

    def to_dict(self, errors: Sequence[Mapping[str, str]] = ()) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        title = HTTPStatus(self.status).phrase
        plain = {"type": "about:blank", "title": title, "status": self.status}
        return {
            **plain,
            "detail": without_keys(self.detail),
            **({"errors": [*errors]} if errors else {}),
        }

    def to_openai(
        self, path: str = CHAT, errors: Sequence[Mapping[str, str]] = ()
    ) -> dict[str, Any]:
        """Return plain values in the form of OpenAI's errors, for who has called a path."""
        return openai_error(
            self.status,
            without_keys(self.detail),
            place=errors[0]["place"] if errors else self.field,
            comes_back="Retry-After" in self.headers,
            path=path,
        )


def problem_of(error: GraphRAGError) -> HttpProblem:
    """Return one of the project's own errors as a problem.

    What the caller can mend is told as it is. What only who runs the server can mend goes to the
    log, for it names folders and settings.
    """
    match error:
        case UnknownCollectionError():
            return HttpProblem(404, str(error))
        case UnknownReleaseError():
            return HttpProblem(404, str(error), field="release")
        case AccessError():
            return HttpProblem(403, str(error))
        case InputError():
            return HttpProblem(422, str(error))
        case NothingPublishedError():
            return HttpProblem(
                503,
                "nothing is published yet: run graphrag-pipeline index, and ask again",
                headers={"Retry-After": _LATER},
            )
        case OverLimitError():
            return HttpProblem(429, str(error), headers=_when_again(error.retry_after))
        case AuditError():
            log.error("%s", error)
            detail = (
                "nothing is answered while it cannot be recorded: the log of the server says why"
            )
            return HttpProblem(503, detail, headers={"Retry-After": _LATER})
        case BudgetExceededError():
            return HttpProblem(429, str(error), headers={"Retry-After": _LATER})
        case TransientModelError():
            log.warning("%s", error)
            wait = str(round(error.retry_after)) if error.retry_after else _SOON
            detail = "the model is busy or out of reach: ask again in a moment"
            return HttpProblem(503, detail, headers={"Retry-After": wait})
        case ModelError() if error.stops_everything:
            log.error("%s", error)
            return HttpProblem(502, "the model cannot be asked: the log of the server says why")
        case ModelError():
            return HttpProblem(502, str(error))
        case StoppedError():
            return HttpProblem(503, str(error))
    log.error("%s", without_keys(str(error)))
    if isinstance(error, BusyError | StorageError):
        detail = "the index cannot be read now: the log of the server says why"
        return HttpProblem(503, detail, headers={"Retry-After": _SOON})
    what = "settings do not fit the index" if isinstance(error, ConfigError) else "it failed"
    return HttpProblem(500, f"{what}: the log of the server says why")


def _when_again(seconds: float | None) -> dict[str, str]:
    """Return the headers that say when to ask again, or that it is in vain."""
    if seconds is None:
        # Clients of OpenAI's try a 429 again otherwise.
        return {"X-Should-Retry": "false"}
    return {"Retry-After": str(max(1, math.ceil(seconds)))}


def response_of(
    problem: HttpProblem, path: str, errors: Sequence[Mapping[str, str]] = ()
) -> Response:
    """Return a problem as it is sent to who has called a path."""
    if speaks_openai(path):
        return Response(
            to_json(problem.to_openai(path, errors)),
            openai_status(problem.status),
            headers=problem.headers,
            media_type="application/json",
        )
    return Response(
        to_json(problem.to_dict(errors)),
        problem.status,
        headers=problem.headers,
        media_type=MEDIA_TYPE,
    )


def add_problem_handlers(app: FastAPI) -> None:
    """Have every error of an application sent as a problem."""

    async def of_problem(request: Request, error: Any) -> Response:
        return response_of(error, request.scope["path"])

    async def of_project(request: Request, error: Any) -> Response:
        return response_of(problem_of(error), request.scope["path"])

    async def of_http(request: Request, error: Any) -> Response:
        # FastAPI's 400 is of a body that JSON cannot be read from: its other mistakes are 422.
        status = 422 if error.status_code == 400 else error.status_code
        if status == 404 and _is_for_a_page(request):
            headers = {"content-security-policy": "default-src 'none'"}
            return Response(_NO_PAGE, status, headers, media_type="text/html")
        headers = {"Allow": _allowed(request, error)} if status == 405 else error.headers
        problem = HttpProblem(status, _detail(error, request.scope["path"]), headers=headers)
        return response_of(problem, request.scope["path"])

    async def of_validation(request: Request, error: Any) -> Response:
        places = [_place(each) for each in error.errors()]
        first = f"{places[0]['place']}: {places[0]['problem']}" if places else "not valid"
        return response_of(HttpProblem(422, first), request.scope["path"], places)

    async def of_anything(request: Request, error: Any) -> Response:
        failure = HttpProblem(500, "it failed: the log of the server says why")
        return response_of(failure, request.scope["path"])

    app.add_exception_handler(HttpProblem, of_problem)
    app.add_exception_handler(GraphRAGError, of_project)
    app.add_exception_handler(HTTPException, of_http)
    app.add_exception_handler(RequestValidationError, of_validation)
    app.add_exception_handler(Exception, of_anything)


def _is_for_a_page(request: Request) -> bool:
    """Whether somebody, and no program, has asked for an address of the page."""
    is_read = "text/html" in request.headers.get("accept", "")
    return is_read and request.method == "GET" and not request.scope["path"].startswith("/v1/")


def _allowed(request: Request, error: HTTPException) -> str:
    """Return the methods that an address takes: of routes that share one, each knows its own."""
    template = getattr(request.scope.get("route"), "path", None)
    described = request.app.openapi()["paths"].get(template, {})
    methods = {*map(str.upper, described), *(error.headers or {}).get("Allow", "GET").split(", ")}
    return ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))


def _detail(error: HTTPException, path: str) -> str:
    if error.status_code == 400:
        return "body: it cannot be read: send JSON in UTF-8, not nested deeply"
    if error.status_code == 404:
        return no_such_address(path)
    if error.status_code == 405:
        return "this address does not take that method: /openapi.json says which it takes"
    return str(error.detail)


def _place(error: Mapping[str, Any]) -> dict[str, str]:
    """Return where a request is not valid, and why; what was sent is not repeated."""
    place = without_keys(".".join(str(part) for part in error["loc"][1:])) or "body"
    if error["type"] == "extra_forbidden":
        return {"place": place, "problem": "there is no such field: remove it"}
    if error["type"] == "json_invalid":
        return {"place": "body", "problem": "it is not JSON"}
    if error["type"] in ("model_attributes_type", "dict_type") and place == "body":
        return {"place": place, "problem": "send a JSON object, as Content-Type: application/json"}
    message = error["msg"]
    return {"place": place, "problem": message[:1].lower() + message[1:]}


def one(rows: list[dict[str, Any]], what: str) -> dict[str, Any]:
    """Return the only row. Raises a 404 Problem, naming ``what``, where there is none."""
    if not rows:
        raise HttpProblem(
            404,
            f"this release has no such {what}: it may be gone, or have another id in a new release",
        )
    return rows[0]
