"""What a comparison comes to, in words: who has won, and what the order of answers did to it."""

from __future__ import annotations

from graphrag_pipeline.evaluation.verdicts import FAIR, SIGNIFICANT, Comparison

_SMALLEST = 1e-6


def explain(one: Comparison) -> str:
    """Return the verdict on two conditions, the judge's bias, and what that does to the test."""
    return " ".join(filter(None, [_outcome(one), _bias(one), _apart(one), _naive(one)]))


def percent(share: float | None) -> str:
    """Return a share as a percentage with one digit, "-" where there is none."""
    return "-" if share is None else f"{100 * share:.1f} %"


def p_value(p: float) -> str:
    """Return a p value with two digits that count."""
    return f"p < {_SMALLEST:g}" if p < _SMALLEST else f"p = {p:.2g}"


def _outcome(one: Comparison) -> str:
    found = (
        f"{one.condition_a} against {one.condition_b}: {percent(one.win_rate)} "
        f"({_interval(one.win_rate_low, one.win_rate_high)}), "
        f"corrected {p_value(one.p_corrected)}"
    )
    if one.winner:
        return f"{found}: {one.winner} wins."
    if one.p_corrected >= SIGNIFICANT:
        return f"{found}: no winner."
    return (
        f"{found}, but no winner, for order may explain it: of {one.agreed} questions on which "
        f"both orders name the same one, {one.condition_a} has {one.agreed_wins} "
        f"({p_value(one.p_agreed)})."
    )


def _bias(one: Comparison) -> str:
    if one.first_chosen is None or one.first_chosen_low is None or one.first_chosen_high is None:
        return "All verdicts are ties."
    interval = _interval(one.first_chosen_low, one.first_chosen_high)
    chosen = f"the answer shown first was chosen in {percent(one.first_chosen)} ({interval})"
    if not one.is_biased:
        return f"No position bias is seen: {chosen}."
    which = "first" if one.first_chosen > FAIR else "second"
    return f"The judge is biased towards the answer shown {which}: {chosen}; 50 is fair."


def _apart(one: Comparison) -> str:
    """Say what is left to test, and what either order alone would have found."""
    apart = one.questions - round(one.consistent * one.questions)
    if not apart:
        return ""
    a = one.condition_a
    return (
        f"On {apart} of {one.questions} questions the two orders differ, and as far as they "
        f"contradict each other they cancel out; both name {a} on {one.agreed_wins} and "
        f"{one.condition_b} on {one.agreed - one.agreed_wins}. Shown first {a} has "
        f"{percent(one.win_rate_first)} ({p_value(one.p_first)}), shown second "
        f"{percent(one.win_rate_second)} ({p_value(one.p_second)}): {_one_order(one)}."
    )


def _one_order(one: Comparison) -> str:
    first, second = one.p_first < SIGNIFICANT, one.p_second < SIGNIFICANT
    if first and second:
        turned = (one.win_rate_first > FAIR) != (one.win_rate_second > FAIR)
        which = "not the same one" if turned else "the same one"
        return f"either order alone would have found a winner, {which}"
    if first or second:
        return f"only the {'first' if first else 'second'} of these would have found a winner"
    return "neither order alone would have found a winner"


def _naive(one: Comparison) -> str:
    naive, found = p_value(one.p_naive), p_value(one.p)
    if naive == found:
        return ""
    why = (
        "too sure, for verdicts on one question are no observations of their own"
        if one.p_naive < one.p
        else "not sure enough, for it takes for chance that the judge turns round with the order"
    )
    return (
        f"To take all {one.verdicts} verdicts as independent would give {naive} instead of "
        f"{found}: {why}."
    )


def _interval(low: float, high: float) -> str:
    return f"95 % interval {100 * low:.1f} to {100 * high:.1f}"
