"""Every model call, made or answered from the cache, and what it took."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import astuple, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from graphrag_pipeline.core.scopes import within
from graphrag_pipeline.llm.budget import BudgetAmount
from graphrag_pipeline.llm.cache import day_of, today
from graphrag_pipeline.llm.database import CallDatabase, Place, Rows, Write, reading

if TYPE_CHECKING:
    import polars as pl

_PUT_CALL = (
    "INSERT INTO llm_calls (stage, model, batch, prompt_tokens, completion_tokens, cost, seconds,"
    " cached, error, id, called_at, cached_tokens)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING"
)


Role = Literal["step", "taken", "caller", "stage"]
_NO_LISTENERS: Mapping[Role, Callable[[Call], object]] = {}
_listeners: ContextVar[Mapping[Role, Callable[[Call], object]]] = ContextVar(
    "call_listeners", default=_NO_LISTENERS
)


@dataclass(frozen=True, slots=True)
class Call:
    """A row of the table ``llm_calls``: one HTTP request, or one answer found in the cache.

    The tokens of a cached call are those it once took; its cost is 0. Those of cached embeddings
    are counted only for a listener of the role "taken". The cost is None where the model's price is
    not known. ``error`` is why there is no answer. ``cached_tokens`` are those of the prompt that
    the provider still had, and took less for; None for calls of older programs.
    """

    stage: str
    model: str
    batch: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0
    seconds: float = 0.0
    cached: bool = False
    error: str | None = None
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    called_at: float = field(default_factory=time.time)
    cached_tokens: int | None = 0


def put_calls(*calls: Call) -> Write:
    """Return the write that records calls."""
    for listener in _listeners.get().values():
        for call in calls:
            listener(call)
    return Write(_PUT_CALL, [astuple(replace(call, cached=int(call.cached))) for call in calls])


def hearing(
    listener: Callable[[Call], object], role: Role = "step"
) -> AbstractContextManager[None]:
    """Let ``listener(call)`` hear of each call recorded within this context.

    Of several listeners of one role the innermost hears.
    """
    return within(_listeners, {**_listeners.get(), role: listener})


def is_heard(role: Role) -> bool:
    """Whether a listener of this role hears what is recorded now."""
    return role in _listeners.get()


def last_position(home: Place) -> int:
    """Return the position of the newest call, 0 if there is none: note it as a run begins."""
    with reading(home) as tables:
        if tables is None:
            return 0
        return tables.read("SELECT coalesce(max(position), 0) FROM llm_calls")[0][0]


def calls_since(home: Place, position: int = 0) -> pl.DataFrame:
    """Return the calls after a position, oldest first, as rows of ``llm_calls``.

    The extra column ``position`` is where to go on from next time.
    """
    import polars as pl

    schema: dict[str, pl.DataType | type[pl.DataType]] = {
        "position": pl.Int64,
        "id": pl.String,
        "called_at": pl.Float64,
        "stage": pl.String,
        "batch": pl.String,
        "model": pl.String,
        "prompt_tokens": pl.Int64,
        "completion_tokens": pl.Int64,
        "cost": pl.Float64,
        "seconds": pl.Float64,
        "cached": pl.Int64,
        "error": pl.String,
        "cached_tokens": pl.Int64,
    }
    rows = []
    with reading(home) as tables:
        if tables is not None:
            sql = f"SELECT {', '.join(schema)} FROM llm_calls WHERE position > $1 ORDER BY position"
            rows = tables.read(sql, (position,))
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(
        (pl.col("called_at") * 1e6).cast(pl.Int64).cast(pl.Datetime("us", "UTC")),
        pl.col("cached").cast(pl.Boolean),
    )


def day_since(read: Callable[[str, Sequence[Any]], Rows], position: int) -> int:
    """Return the day of the first call after a position, made or cached; today if there is none."""
    rows = read(
        "SELECT called_at FROM llm_calls WHERE position > $1 ORDER BY position LIMIT 1", (position,)
    )
    return min(today(), day_of(rows[0][0])) if rows else today()


def spent_since(database: CallDatabase, position: int) -> BudgetAmount:
    """Return what calls after a position have taken; calls of unknown price count no money."""
    ((tokens, cost),) = database.read(
        "SELECT coalesce(sum(prompt_tokens + completion_tokens), 0), coalesce(sum(cost), 0.0)"
        " FROM llm_calls WHERE position > $1 AND cached = 0",
        (position,),
    )
    return BudgetAmount(tokens, cost)
