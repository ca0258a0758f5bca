"""Rows of a release, for addresses that look something up."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Query

from graphrag_pipeline.query.control import Control
from graphrag_pipeline.releases.kept_releases import UnknownReleaseError
from graphrag_server.callers import caller_of
from graphrag_server.inquiry import record_failure, record_reading
from graphrag_server.limits import MOST_ROWS, attended
from graphrag_server.problems import HttpProblem
from graphrag_server.state import holder_of, server_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import Request

    from graphrag_pipeline.query.release import Release

CollectionName = Annotated[
    str | None, Query(description="The collection; without it, the default one.")
]
ReleaseName = Annotated[
    str | None,
    Query(
        max_length=128,
        description="The release, as an answer names it; without it, the published one.",
    ),
]
MostRows = Annotated[int, Query(ge=1, le=MOST_ROWS, description="At most so many rows.")]
_NOT_KEPT = "release {} is not kept: leave it out to read what is published now"


async def read(
    request: Request,
    collection: str | None,
    work: Callable[[Release], Any],
    release: str | None = None,
) -> Any:
    """Return what some reading of a release gives, within the limits; None: the published one.

    Raises a 404 Problem for a release that is not kept: another would say something else.
    """
    server = server_of(request)
    holder = holder_of(request, collection)
    control = Control()

    def reading() -> Any:
        return holder.use(lambda engine: work(engine.index.controlled(control)), release)

    try:
        with server.limits.place(caller_of(request).key_id):
            seconds = server.limits.seconds
            result = await attended(request, control, asyncio.to_thread(reading), seconds)
    except UnknownReleaseError as error:
        problem = HttpProblem(404, _NOT_KEPT.format(release))
        record_failure(request, problem, holder.name)
        raise problem from error
    except BaseException as error:
        record_failure(request, error, holder.name)
        raise
    record_reading(request, holder.name)
    return result
