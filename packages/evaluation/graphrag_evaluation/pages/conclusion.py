"""The result of an experiment in sentences, and what to do where there is none."""

from __future__ import annotations

from collections.abc import Sequence

from graphrag_evaluation.judging.verdict_text import percent
from graphrag_evaluation.pages.model import Matrix
from graphrag_evaluation.pages.qualities import Quality
from graphrag_pipeline.pages.overview.passages import clip

_MOST_NAME = 48
_MOST_NAMES = 60


def finding(
    gold: Sequence[Quality], judge_quality: Quality | None, matrices: Sequence[Matrix]
) -> list[str]:
    """Return what is best by gold, and by the judge, and how sure both are.

    Where the first measure has several conditions equally good, one that tells them apart follows.
    """
    sentences = [_by(quality) for quality in gold[:1]]
    if gold and len(gold[0].lead.equal) > 1:
        sentences += [_by(quality) for quality in gold[1:] if len(quality.lead.equal) == 1][:1]
    if judge_quality:
        sentences += [_by_judge(judge_quality), *_bias(matrices)]
    return sentences


def advice(*, has_gold: bool, is_written: bool, has_answers: bool) -> list[str]:
    """Return what to do with an experiment that says nothing of quality yet."""
    if not has_answers:
        return [
            "No condition has an answer. Run it again to read why: graphrag-pipeline eval run; "
            "what was answered before is not asked again."
        ]
    steps = [
        "Give the questions gold answers or gold passages (answers, passages: "
        "[{title, text}] in a file of JSON Lines) and run the experiment again: the answers "
        "made are scored, not made anew."
        if not has_gold
        else "The questions have gold, but nothing was scored: run the experiment again."
    ]
    if is_written:
        steps.append(
            "Or let a model compare the answers in pairs: graphrag-pipeline eval run --judge."
        )
    return steps


def _by(quality: Quality) -> str:
    lead, label = quality.lead, quality.measure.label
    best, value = clip(lead.best, _MOST_NAME), _value(quality, lead.best)
    if len(lead.conditions) == 1:
        return f"{best} has {value} by {label}; there is no other condition to compare it with."
    if lead.is_sure:
        return f"{best} is best by {label}: {value}, more than chance above every other condition."
    behind = _behind(quality)
    if lead.equal == lead.conditions:
        return f"All conditions are equal by {label}: {value}."
    if len(lead.equal) > 1:
        return (
            f"No condition is best by {label} beyond chance: {_names(quality, lead.equal)} "
            f"share the highest value, {value}{behind}."
        )
    second = max(lead.conditions - {lead.best}, key=lambda name: quality.cells[name].value or 0.0)
    return (
        f"No condition is best by {label} beyond chance: {best} leads with {value}, but its lead "
        f"over {_rival(quality, second)} may be chance{behind}."
    )


def _by_judge(quality: Quality) -> str:
    lead = quality.lead
    best, value = clip(lead.best, _MOST_NAME), _value(quality, lead.best)
    n_rivals = len(lead.conditions) - 1
    if lead.is_sure:
        return (
            f"In the judge's view {best} is best: it has {value} {quality.measure.label}, "
            f"and wins beyond chance against each of the {n_rivals} others."
            if n_rivals > 1
            else f"In the judge's view {best} is best, beyond chance: {value} "
            f"{quality.measure.label}."
        )
    against = f"against {len(lead.behind)} of {n_rivals}" if lead.behind else "against none"
    return (
        f"In the judge's view no condition is best beyond chance: {best} has the highest "
        f"{quality.measure.label}, {value}, and surely wins {against}."
    )


def _bias(matrices: Sequence[Matrix]) -> list[str]:
    biased, void = (
        sum(matrix.biased for matrix in matrices),
        sum(matrix.void for matrix in matrices),
    )
    pairs = sum(matrix.pairs for matrix in matrices)
    if not biased:
        return []
    return [
        f"In {biased} of {pairs} comparisons the judge was led by the order of the answers; "
        f"{void} of them therefore say nothing."
    ]


def _rival(quality: Quality, second: str) -> str:
    """Return the next condition, if that is who may be as good, else whoever may be."""
    lead = quality.lead
    unsure = lead.conditions - lead.behind - {lead.best}
    name = second if second in unsure else min(unsure)
    return f"{clip(name, _MOST_NAME)} ({_short(quality, name)})"


def _behind(quality: Quality) -> str:
    if not quality.lead.behind:
        return ""
    return f"; surely behind {'is' if len(quality.lead.behind) == 1 else 'are'} " + _names(
        quality, quality.lead.behind
    )


def _names(quality: Quality, subset: frozenset[str]) -> str:
    """Return conditions by name in their order, or their number if that is too long to read."""
    names = [clip(name, _MOST_NAME) for name in quality.cells if name in subset]
    if len(names) > 1 and sum(map(len, names)) > _MOST_NAMES:
        return f"{len(names)} conditions"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _value(quality: Quality, name: str) -> str:
    cell = quality.cells[name]
    if cell.low is None or cell.high is None or cell.low == cell.high:
        return _short(quality, name)
    limits = (
        f"{100 * cell.low:.0f} to {100 * cell.high:.0f}"
        if quality.measure.kind == "share"
        else f"{cell.low:.2f} to {cell.high:.2f}"
    )
    return f"{_short(quality, name)} (95 % interval {limits})"


def _short(quality: Quality, name: str) -> str:
    value = quality.cells[name].value
    return percent(value) if quality.measure.kind == "share" else f"{value or 0:.2f}"
