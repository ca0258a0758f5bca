"""The page of an experiment: a template filled with what was gathered, everything escaped."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from graphrag_evaluation.pages import charts
from graphrag_evaluation.pages.gathering import gather
from graphrag_evaluation.pages.model import EvaluationPage, Kind
from graphrag_evaluation.store import EvaluationStore
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.hardening.files import write_output
from graphrag_pipeline.pages.overview.page import page_environment, written_time
from graphrag_pipeline.pages.overview.passages import clip

_TEMPLATE = "evaluation.html.j2"


@dataclass(frozen=True, kw_only=True)
class WrittenEvaluation:
    """A written page: its place and its subject; ``finding`` is what came out, in sentences."""

    path: str
    experiment: str
    n_bytes: int
    conditions: int
    questions: int
    finding: tuple[str, ...]


def write_evaluation(home: Path, output: Path, experiment: str | None = None) -> WrittenEvaluation:
    """Write the page of an experiment (default: the latest) as one HTML file.

    Raises InputError when ``output`` is a folder or there is no such experiment, StorageError when
    it cannot be written.
    """
    if output.is_dir():
        raise InputError(f"{output} is a folder: name the file to write, such as evaluation.html")
    contents = gather(EvaluationStore(home), experiment)
    page = render(contents).encode()
    write_output(output, page)
    return WrittenEvaluation(
        path=str(output),
        experiment=contents.experiment,
        n_bytes=len(page),
        conditions=len(contents.conditions),
        questions=contents.n_questions,
        finding=tuple(contents.finding or contents.advice),
    )


def render(page: EvaluationPage) -> str:
    """Return the page of an experiment. It is self-contained: nothing comes from elsewhere."""
    environment = page_environment("graphrag_evaluation.pages")
    environment.filters["value"] = value_text
    environment.filters["clip"] = clip
    environment.filters["shell"] = shlex.quote
    return environment.get_template(_TEMPLATE).render(
        e=page, drawn=charts, started=written_time(page.started_at)
    )


def value_text(value: float | None, kind: Kind) -> str:
    """Return a value as a table has it, shares in percent; a dash where there is none."""
    if value is None:
        return "–"
    if kind == "share":
        return f"{100 * value:.1f}"
    if kind == "dollars":
        return f"{value:.4f}" if value < 1 else f"{value:,.2f}"
    if kind == "count":
        return f"{value:,.0f}"
    if kind == "milliseconds":
        return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
    return f"{value:,.1f}" if abs(value) >= 10 else f"{value:.2f}"
