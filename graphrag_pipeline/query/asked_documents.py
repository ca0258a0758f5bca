"""The documents that a question is about, by its filter and by its words of time.

"Since May", "before 1960" and "between 2018 and 2020" ask for documents of that time, "the latest
version" for the newest of those that are versions of one. They count where at least half of the
documents have a date in their metadata, or their names, and where some documents are of that time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.query.asked_dates import LATEST, asked_bounds
from graphrag_pipeline.query.limited_release import (
    NAMED,
    NEWEST,
    Where,
    checked_where,
    described,
)
from graphrag_pipeline.query.question import AnalysedQuestion

if TYPE_CHECKING:
    from graphrag_pipeline.query.ask import Ask
    from graphrag_pipeline.query.release import Release

KEYS = ("date", "published", "published_at", "created", "created_at", "sent", "updated", "modified")
"""Keys of metadata that may hold the date of a document. That of half of them counts."""

_N_DATED = """
SELECT count(*) AS n, {counts} FROM documents
"""
_COUNT = r"""
count(*) FILTER (regexp_matches(json_extract_string(metadata, '/{key}'), '^\d{{4}}(-|$)'))
    AS "{key}"
"""
_NAMED = rf"""
count(*) FILTER (regexp_matches(title || ' ' || uri, '(^|[^0-9.,-])(19|20)\d\d([^0-9]|$)'))
    AS "{NAMED}"
"""


def limited_as_asked(index: Release, ask: Ask) -> Release:
    """Return a release with the documents that a question is about, by its filter and its words.

    Raises InputError where no document matches its filter.
    """
    limited = index.limited(ask.where)
    if not index.settings.query.dates:
        return limited
    question = AnalysedQuestion.of(ask.question)
    bounds = asked_bounds(question, datetime.now(UTC).date())
    is_latest = LATEST.search(question.folded) is not None
    if not (bounds or is_latest):
        return limited
    key = limited.once("key of dates", _key_of_dates)
    is_latest = is_latest and key != NAMED
    if not key or any(name.startswith((key, NEWEST)) for name in ask.where):
        return limited
    where: Where = {}
    for where in _narrowest_first(key, bounds, is_latest=is_latest):
        try:
            narrowed = index.limited(checked_where({**ask.where, **where}))
        except InputError:
            continue
        return limited if _n_documents(narrowed) == _n_documents(limited) else narrowed
    return limited.saying(f"no document has {described(checked_where(where))}: all are looked at")


def _narrowest_first(key: str, bounds: Mapping[str, str], *, is_latest: bool) -> Iterator[Where]:
    of_time = {f"{key}{sign}": (value,) for sign, value in bounds.items()}
    if is_latest:
        yield {**of_time, NEWEST: (key,)}
    if of_time:
        yield of_time


def _n_documents(index: Release) -> int:
    return index.facts.counts["n_documents"]


def _key_of_dates(index: Release) -> str:
    """Return the key of metadata that holds the dates of documents; empty where few have one.

    Where few have one there and many in their names, these count.
    """
    counts = ", ".join(_COUNT.format(key=key) for key in KEYS)
    counted = index.rows(_N_DATED.format(counts=f"{counts}, {_NAMED}"))[0]
    half = max(1, counted.pop("n") / 2)
    return next((key for key in (*KEYS, NAMED) if counted[key] >= half), "")
