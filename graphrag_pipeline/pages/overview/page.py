"""The overview as a page: a template filled with what was gathered, everything escaped."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.hardening.files import write_output
from graphrag_pipeline.core.text import counted
from graphrag_pipeline.pages.overview.gathering import gather
from graphrag_pipeline.pages.overview.model import Rows
from graphrag_pipeline.pages.policy import policy
from graphrag_pipeline.query.release import open_release

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATE = "report.html.j2"


@dataclass(frozen=True)
class WrittenReport:
    """The page as written: its place, and what it tells of."""

    path: str
    release: str
    n_bytes: int
    chapters: int


def write_report(
    home: Path, output: Path, release: str | None = None, *, title: str | None = None
) -> WrittenReport:
    """Write the overview of a release (default: the published one) as one HTML file.

    Raises InputError when ``output`` is a folder or there is no such release,
    NothingPublishedError when there is none at all, StorageError when it cannot be written.
    """
    if output.is_dir():
        raise InputError(f"{output} is a folder: name the file to write, such as report.html")
    with open_release(home, release=release) as index:
        overview = gather(index, title)
    page = render(overview).encode()
    write_output(output, page)
    return WrittenReport(str(output), overview["release"], len(page), len(overview["chapters"]))


def render(overview: Rows) -> str:
    """Return the page of an overview. It is self-contained: no script or style from elsewhere."""
    return (
        page_environment()
        .get_template(_TEMPLATE)
        .render(o=overview, created=written_time(overview["created_at"]))
    )


def page_environment(*packages: str) -> Environment:
    """Return what fills templates of pages: those of ``packages`` first, then the overview's own.

    All that is filled in is escaped.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    own = "graphrag_pipeline.pages.overview"
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in (*packages, own)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["policy"] = policy
    environment.filters["count"] = counted
    environment.filters["number"] = lambda n: f"{n:,}"
    environment.filters["about"] = _about
    return environment


def written_time(time: datetime) -> str:
    """Return a time as a page says it."""
    time = time.astimezone(UTC)
    return f"{time.day} {time:%B %Y, %H:%M} UTC"


def _about(n: int) -> str:
    """Return a number to two or three digits, as a person would say it."""
    if n < 1_000:
        return f"{n:,}"
    digits = 10 ** (len(str(n)) - 3)
    return f"{round(n / digits) * digits:,}"
