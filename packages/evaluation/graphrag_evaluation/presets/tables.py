"""The tables of a paper, filled from an experiment, with the paper's own figures beside."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

import duckdb

from graphrag_evaluation.judging.verdicts import SIGNIFICANT
from graphrag_evaluation.metrics.computed import script_of
from graphrag_evaluation.paper import Paper, TableSpec, paper_of, preset_names
from graphrag_evaluation.presets.experiment_results import ExperimentFindings
from graphrag_evaluation.presets.kinds import KINDS, Cell, Group

Scorer = Literal["official", "ours"]
"""Whose scores tables show where the authors' own script computes another."""

_SPEC = "SELECT spec FROM experiments WHERE experiment = ?"
_UNANSWERED = "SELECT condition, reason FROM unanswered WHERE experiment = ?"


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """A table or figure by its number: what was measured, and what the paper prints.

    Rows are (heading, name, cells) with a cell for each column, None where there is no value.
    ``notes`` say in a line each what is missing, and why; ``is_empty`` that nothing was measured.
    """

    number: str
    title: str
    columns: tuple[str, ...]
    measured: tuple[tuple[str, str, tuple[Cell, ...]], ...]
    printed: tuple[tuple[str, str, tuple[Cell, ...]], ...]
    notes: tuple[str, ...]
    decimals: int
    is_empty: bool


def preset_of(con: duckdb.DuckDBPyConnection, experiment: str) -> Paper | None:
    """Return the preset that an experiment was made by; None where there was none."""
    preset = _spec(con, experiment).get("preset")
    return paper_of(preset) if preset in preset_names() else None


def tables_of_experiment(
    con: duckdb.DuckDBPyConnection, experiment: str, scorer: Scorer = "official"
) -> list[PaperTable]:
    """Return the tables of the preset that an experiment was made by; none where there was none.

    Scores are those of the authors' own scripts, or ours by ``scorer``.
    """
    paper = preset_of(con, experiment)
    if paper is None:
        return []
    spec = _spec(con, experiment)
    lacking = {str(name): str(reason) for name, reason in spec.get("lacking") or ()}
    unanswered = dict(con.execute(_UNANSWERED, [experiment]).fetchall())
    return tables_of(con, experiment, paper, {**lacking, **unanswered}, scorer)


def tables_of(
    con: duckdb.DuckDBPyConnection,
    experiment: str,
    paper: Paper,
    reasons: Mapping[str, str],
    scorer: Scorer = "official",
) -> list[PaperTable]:
    """Return the tables of a paper from an experiment; ``reasons`` are of absent conditions."""
    found = ExperimentFindings(con, experiment)
    tables = []
    for spec in paper.table:
        found.scorers = {**paper.scorers, **spec.scorers} if scorer == "official" else {}
        tables.append(_table(found, spec, paper, reasons))
    absent = [
        PaperTable(
            number=missing.number,
            title="",
            columns=(),
            measured=(),
            printed=(),
            notes=(f"not made: {missing.why}",),
            decimals=0,
            is_empty=True,
        )
        for missing in paper.missing
    ]
    return [*tables, *absent]


def _spec(con: duckdb.DuckDBPyConnection, experiment: str) -> dict[str, Any]:
    row = con.execute(_SPEC, [experiment]).fetchone()
    return json.loads(row[0]) if row else {}


def _table(
    found: ExperimentFindings, spec: TableSpec, paper: Paper, reasons: Mapping[str, str]
) -> PaperTable:
    groups = KINDS[spec.kind](found, spec)
    cells = [
        cell
        for group in groups
        for name, row in group.rows.items()
        for cell, column in zip_longest(row, spec.columns.values())
        if spec.kind != "win_rates" or name != column
    ]
    is_empty = all(cell is None for cell in cells)
    return PaperTable(
        number=spec.number,
        title=spec.title,
        columns=next((group.columns for group in groups if group.columns), tuple(spec.columns)),
        measured=tuple(_rows(groups)),
        printed=tuple(
            (label, row, tuple(cell if cell != "" else None for cell in cells))
            for label, rows in spec.printed.items()
            for row, cells in rows.items()
        ),
        notes=(*([spec.note] if spec.note else []), *_notes(found, spec, paper, reasons, is_empty)),
        decimals=spec.decimals,
        is_empty=is_empty,
    )


def _rows(groups: Sequence[Group]) -> Iterator[tuple[str, str, tuple[Cell, ...]]]:
    for group in groups:
        for name, cells in group.rows.items():
            yield group.label, name, tuple(cells)


def _notes(
    found: ExperimentFindings,
    spec: TableSpec,
    paper: Paper,
    reasons: Mapping[str, str],
    is_empty: bool,
) -> Iterator[str]:
    """Say which conditions a table lacks and why, or that nothing of it was measured."""
    wanted = dict.fromkeys([*spec.rows, *spec.columns.values(), spec.against])
    asked = [name for name in wanted if name in paper.names]
    absent = [name for name in asked if name not in found.answered]
    yield from (f"{name}: {reasons.get(name, 'gave no answer')}" for name in absent)
    if is_empty and (not asked or len(absent) < len(asked)):
        is_novelqa = spec.kind == "two_ways" and found.asked_of_novels
        yield _NO_GOLD if is_novelqa else _WHY_EMPTY.get(spec.kind, _NO_SCORES)
    if not _TIMED.isdisjoint(spec.columns.values()):
        yield _construction(found)
    if spec.kind == "pairs":
        yield from _normality(found)
    yield from _scorers(found, spec, {**paper.scorers, **spec.scorers})


def _construction(found: ExperimentFindings) -> str:
    """Say what the seconds of construction are the sum of."""
    origin = found.of_kind("indexing")
    if "graph" not in found.of_kind("seconds"):
        return _UNTIMED
    of_what = "of a fresh build"
    if origin["releases"] > origin["indexes"]:
        of_what = f"of all {origin['releases']:,.0f} runs that published, not of a fresh build"
    parts = [
        "seconds of construction: of the finished stages that a method needs, from reading to "
        f"vectors, {of_what}"
    ]
    if origin["untimed"]:
        parts.append(f"those of the first {origin['untimed']:,.0f} runs were not kept")
    if origin["taken_over"]:
        parts.append("what was extracted elsewhere took its time there")
    if origin["cached_calls"]:
        parts.append(f"{origin['cached_calls']:,.0f} calls were answered by what was paid before")
    return "; ".join(parts)


def _normality(found: ExperimentFindings) -> Iterator[str]:
    """Say for how many pairs Shapiro and Wilk's test rejects a normal distribution."""
    tested = [each.p_normal for each in found.comparisons if each.p_normal is not None]
    if tested:
        n_rejected = sum(p < SIGNIFICANT for p in tested)
        yield (
            f"Shapiro-Wilk: the scores of {n_rejected} of {len(tested)} pairs and criteria are not "
            f"normally distributed (p < {SIGNIFICANT})"
        )


def _scorers(
    found: ExperimentFindings, spec: TableSpec, theirs: Mapping[str, str]
) -> Iterator[str]:
    """Say by which script the scores of a table are computed, where the authors' is another."""
    shown = [name for name in (*spec.columns.values(), spec.metric) if name in theirs]
    scripts: dict[str, list[str]] = {}
    for name in dict.fromkeys(shown):
        is_theirs = name in found.scorers and found.is_measured(theirs[name])
        script = script_of(theirs[name])
        by = f"as {script} computes it" if is_theirs else f"ours, not that of {script}"
        scripts.setdefault(by, []).append(name)
    yield from (f"{', '.join(names)}: {by}" for by, names in scripts.items())


_TIMED = {"construction_s", "seconds"}
_UNTIMED = (
    "seconds of construction: this index was made before they were kept; one that is made anew, in "
    "another home, has them"
)
_NO_SCORES = "nothing was measured: the questions have no gold answers, or the metric was left out"
_NO_TYPES = "nothing was measured: no question has a type of two words, as NovelQA's have (mh plot)"
_NO_GOLD = (
    "nothing was measured: the questions have no gold answers; eval submission writes NovelQA's "
    "answers for its competition, which scores them"
)
_NO_JUDGE = "nothing was measured: no judge compared the answers"
_NO_INDEX = "nothing was measured: the index lacks it"
_WHY_EMPTY = {
    "two_ways": _NO_TYPES,
    **dict.fromkeys(
        ("win_rates", "average_wins", "duels", "pairs", "orders", "agreement"), _NO_JUDGE
    ),
    **dict.fromkeys(
        ("hierarchies", "graphs", "indexes", "units", "indexing", "storage"), _NO_INDEX
    ),
}
