"""Filling the tables of a paper: one function for each kind, from the results of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from graphrag_evaluation.judging.agreement import agreements
from graphrag_evaluation.paper import TableKind, TableSpec
from graphrag_evaluation.presets.construction import stages_needed
from graphrag_evaluation.presets.experiment_results import ExperimentFindings, overlap
from graphrag_evaluation.presets.storage import needed_by

Cell = float | str | None

_EVEN = 50.0
_MEGABYTE = 1e6
_HIERARCHIES = {"Leiden": "", "Ours": "attributed_"}
_GRAPHS = {"GraphRAG": "", "LightRAG": "", "HiRAG": "hirag_"}


@dataclass(frozen=True)
class Group:
    """Rows under one heading, for the table's columns; ``columns`` are its own, if it has any."""

    label: str
    rows: Mapping[str, Sequence[Cell]]
    columns: tuple[str, ...] = ()


Filler = Callable[[ExperimentFindings, TableSpec], list[Group]]


def scores(found: ExperimentFindings, spec: TableSpec) -> list[Group]:
    """Conditions by metrics."""
    return [
        Group("", {
            row: [_times(found.mean(row, metric), spec.scale) for metric in spec.columns.values()]
            for row in spec.rows
        })
    ]  # fmt: skip


def types(found: ExperimentFindings, spec: TableSpec) -> list[Group]:
    """Conditions by types of questions, of one metric."""
    return [
        Group("", {
            row: [
                _times(found.mean(row, spec.metric, kind), spec.scale)
                for kind in spec.columns.values()
            ]
            for row in spec.rows
        })
    ]  # fmt: skip


def two_ways(found: ExperimentFindings, spec: TableSpec) -> list[Group]:
    """Questions whose type is two words, the first a row and the second a column: NovelQA."""
    firsts = dict.fromkeys(kind.split(" ")[0] for kind in found.types if " " in kind)
    return [
        Group(condition, {
            row: [
                _times(_by_words(found, condition, spec.metric, row, column), spec.scale)
                for column in spec.columns.values()
            ]
            for row in [*firsts, "avg"]
        })
        for condition in spec.rows
    ]  # fmt: skip


def transposed(found: ExperimentFindings, spec: TableSpec) -> list[Group]:
    """Metrics, named by ``metric`` and the row, by conditions."""
    return [
        Group("", {
            row: [
                _times(found.mean(condition, spec.metric + row), spec.scale)
                for condition in spec.columns.values()
            ]
            for row in spec.rows
        })
    ]  # fmt: skip


def win_rates(found: ExperimentFindings, spec: TableSpec) -> list[Group]:
    """Return how often rows win over columns, a group a criterion; against itself it is even."""

    def cell(criterion: str, row: str, column: str) -> Cell:
        if row == column:
            return _EVEN
        return _times(found.win_rate(criterion, row, column), spec.scale)

    return [
        Group(criterion, {
            row: [cell(criterion, row, column) for column in spec.columns.values()]
            for row in spec.rows
        })
        for criterion in spec.criteria
    ]  # fmt: skip


def average_wins(found: ExperimentFindings, spec: TableSpec) -> list[Group]:
    """Return how often each row wins over another row, on average over these, by criterion."""

    def cell(row: str, criterion: str) -> Cell:
        rates = [found.win_rate(criterion, row, other) for other in spec.rows if other != row]
        known = [rate for rate in rates if rate is not None]
        return spec.scale * sum(known) / len(known) if known else None

    return [
        Group("", {row: [cell(row, criterion) for criterion in spec.columns.values()]
                   for row in spec.rows})
    ]  # fmt: skip


def duels(found: ExperimentFindings, spec: TableSpec) -> list[Group]:
    """Criteria by two conditions, a group for each baseline."""

    def cells(criterion: str, baseline: str) -> list[Cell]:
        rate = found.win_rate(criterion, baseline, spec.against)
        return [_times(rate, spec.scale), _times(None if rate is None else 1 - rate, spec.scale)]

    return [
        Group(baseline, {criterion: cells(criterion, baseline) for criterion in spec.criteria})
        for baseline in spec.rows
    ]


def pairs(found: ExperimentFindings, spec: TableSpec) -> list[Group]:
    """Pairs of conditions by means, Z and p, a group for each criterion."""

    def cells(criterion: str, row: str) -> list[Cell]:
        one, _, other = row.partition(" - ")
        duel, rate = found.duel(criterion, one, other), found.win_rate(criterion, one, other)
        if duel is None or rate is None:
            return [None] * 4
        comparison, _ = duel
        return [rate * spec.scale, (1 - rate) * spec.scale, comparison.z, comparison.p_corrected]

    return [
        Group(criterion, {row: cells(criterion, row) for row in spec.rows})
        for criterion in spec.criteria
    ]


def orders(found: ExperimentFindings, spec: TableSpec) -> list[Group]:
    """Return how often each of two conditions is preferred, shown first and shown second."""

    def cells(criterion: str, row: str) -> list[Cell]:
        duel = found.duel(criterion, spec.against, row)
        if duel is None:
            return [None] * 4
        comparison, is_first = duel
        # Rates of the comparison's own first condition: shown first, and shown second.
        rates = (comparison.win_rate_first, comparison.win_rate_second)
        first, second = rates if is_first else (1 - rates[1], 1 - rates[0])
        return [value * spec.scale for value in (first, 1 - first, second, 1 - second)]

    return [
        Group(criterion, {row: cells(criterion, row) for row in spec.rows})
        for criterion in spec.criteria
    ]


def units(found: ExperimentFindings, spec: TableSpec) -> list[Group]:
    """Return what is read at each level, against all text."""
    names = list(spec.columns.values())
    counts = [found.fact("units", name) for name in names]
    tokens = [found.fact("unit_tokens", name) for name in names]
    known = [value for value in tokens if value]
    most = max(known) if known else None
    shares: list[Cell] = [None if not most or t is None else 100 * t / most for t in tokens]
    return [Group("", {"Units": counts, "Tokens": tokens, "% Max": shares})]


def corpus(found: ExperimentFindings, spec: TableSpec) -> list[Group]:
    """Counts of the corpus."""
    names = spec.columns.values()
    cells = [
        float(found.questions) if name == "questions" else found.fact("corpus", name)
        for name in names
    ]
    return [Group("", {"all": cells})]


def indexing(found: ExperimentFindings, spec: TableSpec) -> list[Group]:
    """Return what indexing took, of the whole index; and its seconds by what conditions need."""

    def cell(row: str, name: str) -> Cell:
        if name != "seconds":
            return found.fact("indexing", name) if row == "all" else None
        return _construction(found, row) if row != "all" else sum(found.of_kind(name).values())

    names = spec.columns.values()
    return [Group("", {row: [cell(row, name) for name in names] for row in ("all", *spec.rows)})]


def costs(found: ExperimentFindings, spec: TableSpec) -> list[Group]:
    """Conditions by what an answer of theirs took."""
    return [
        Group("", {row: [_cost(found, row, name) for name in spec.columns.values()]
                   for row in spec.rows})
    ]  # fmt: skip


def storage(found: ExperimentFindings, spec: TableSpec) -> list[Group]:
    """Conditions by parts of the index, in megabytes: what each needs."""
    parts = found.of_kind("bytes")

    def cells(row: str) -> list[Cell]:
        if row not in found.methods:
            return [None] * (len(parts) + 1)
        needs = needed_by(found.methods[row], list(parts))
        sizes = [parts[part] / _MEGABYTE if part in needs else None for part in parts]
        return [*sizes, sum(size for size in sizes if size)]

    return [Group("", {row: cells(row) for row in spec.rows}, (*parts, "in all"))]


def hierarchies(found: ExperimentFindings, spec: TableSpec) -> list[Group]:
    """Hierarchies of communities by how close together their members are."""
    return [Group("", dict(_of_index(found, spec, _HIERARCHIES)))]


def graphs(found: ExperimentFindings, spec: TableSpec) -> list[Group]:
    """Graphs by a metric of theirs."""
    return [Group("", dict(_of_index(found, spec, _GRAPHS)))]


def indexes(found: ExperimentFindings, spec: TableSpec) -> list[Group]:
    """Conditions by facts of the index that each is asked of, written fact.item."""

    def cell(row: str, column: str) -> Cell:
        fact, _, item = column.partition(".")
        return found.fact(fact, item, row)

    return [
        Group("", {row: [cell(row, column) for column in spec.columns.values()]
                   for row in spec.rows})
    ]  # fmt: skip


def right_and_wrong(found: ExperimentFindings, spec: TableSpec) -> list[Group]:
    """Return which questions both, one and none of two conditions answers right, in percent."""
    first, second = spec.rows
    counts = overlap(found.con, found.experiment, first, second, spec.metric)
    n = counts.questions

    def share(value: int) -> Cell:
        return 100 * value / n if n else None

    rows = {
        f"{first} right": [share(counts.both), share(counts.only_first)],
        f"{first} wrong": [share(counts.only_second), share(counts.neither)],
    }
    return [Group(f"{n} questions", rows, (f"{second} right", f"{second} wrong"))]


def judge_and_claims(found: ExperimentFindings, spec: TableSpec) -> list[Group]:
    """Return how often the majority of verdicts on a pair agrees with the count of claims."""
    known = agreements(found.con, found.experiment)
    shares = {(each.criterion, each.metric): each.share for each in known}
    return [
        Group("", {row: [_times(shares.get((row, metric)), spec.scale)
                         for metric in spec.columns.values()] for row in spec.rows})
    ]  # fmt: skip


KINDS: Final[Mapping[TableKind, Filler]] = {
    "scores": scores,
    "types": types,
    "two_ways": two_ways,
    "transposed": transposed,
    "win_rates": win_rates,
    "average_wins": average_wins,
    "duels": duels,
    "pairs": pairs,
    "orders": orders,
    "units": units,
    "corpus": corpus,
    "indexing": indexing,
    "costs": costs,
    "storage": storage,
    "hierarchies": hierarchies,
    "graphs": graphs,
    "indexes": indexes,
    "overlap": right_and_wrong,
    "agreement": judge_and_claims,
}
"""The kinds of tables by name."""


def _times(value: float | None, scale: float) -> Cell:
    return None if value is None else value * scale


def _by_words(
    found: ExperimentFindings, condition: str, metric: str, row: str, column: str
) -> float | None:
    """Return a mean over the questions whose type has a first and a second word; avg is any."""
    kinds = [
        kind
        for kind in found.types
        if " " in kind
        and row in (kind.split(" ")[0], "avg")
        and (column == "avg" or kind.split(" ")[1].startswith(column))
    ]
    return found.mean_of_types(condition, metric, kinds)


def _of_index(
    found: ExperimentFindings, spec: TableSpec, prefixes: Mapping[str, str]
) -> Iterator[tuple[str, list[Cell]]]:
    for row in spec.rows:
        prefix = prefixes.get(row, "")
        yield row, [found.fact("index", prefix + name) for name in spec.columns.values()]


def _cost(found: ExperimentFindings, row: str, name: str) -> Cell:
    if name == "accuracy":
        return _times(found.mean(row, name), 100)
    if name == "construction_s":
        return _construction(found, row)
    if name == "megabytes":
        parts = found.of_kind("bytes")
        method = found.methods.get(row)
        needs = needed_by(method, list(parts)) if method else []
        return sum(parts[part] for part in needs) / _MEGABYTE if needs else None
    return found.cost(row, name)


def _construction(found: ExperimentFindings, condition: str) -> Cell:
    """Return the seconds of the stages that a condition needs; None where they were not kept."""
    seconds = found.of_kind("seconds", condition)
    method = found.methods.get(condition)
    stages = stages_needed(method, seconds) if method and "graph" in seconds else []
    return sum(seconds[stage] for stage in stages) if stages else None
