"""The result of a pair in words: who has won, and what the order of answers did to it."""

from __future__ import annotations

from graphrag_evaluation.judging.verdicts import FAIR, SIGNIFICANT, Comparison

_SMALLEST = 1e-6


def explain(pair: Comparison) -> str:
    """Return the verdict on two conditions, the judge's bias, and what that does to the test."""
    return " ".join(filter(None, [_outcome(pair), _bias(pair), _apart(pair), _naive(pair)]))


def percent(share: float | None) -> str:
    """Return a share as a percentage with one digit, "-" where there is none."""
    return "-" if share is None else f"{100 * share:.1f} %"


def p_value(p: float) -> str:
    """Return a p value with two digits that count."""
    return f"p < {_SMALLEST:g}" if p < _SMALLEST else f"p = {p:.2g}"


def _outcome(pair: Comparison) -> str:
    outcome = (
        f"{pair.condition_a} against {pair.condition_b}: {percent(pair.win_rate)} "
        f"({_interval(pair.win_rate_low, pair.win_rate_high)}), "
        f"corrected {p_value(pair.p_corrected)}"
    )
    if pair.winner:
        return f"{outcome}: {pair.winner} wins."
    if pair.p_corrected >= SIGNIFICANT:
        return f"{outcome}: no winner."
    return (
        f"{outcome}, but no winner, for order may explain it: of {pair.agreed} questions on which "
        f"both orders name the same one, {pair.condition_a} has {pair.agreed_wins} "
        f"({p_value(pair.p_agreed)})."
    )


def _bias(pair: Comparison) -> str:
    if pair.first_chosen is None or pair.first_chosen_low is None or pair.first_chosen_high is None:
        return "All verdicts are ties."
    interval = _interval(pair.first_chosen_low, pair.first_chosen_high)
    sentence = f"the answer shown first was chosen in {percent(pair.first_chosen)} ({interval})"
    if not pair.is_biased:
        return f"No position bias is seen: {sentence}."
    place = "first" if pair.first_chosen > FAIR else "second"
    return f"The judge is biased towards the answer shown {place}: {sentence}; 50 is fair."


def _apart(pair: Comparison) -> str:
    """Say what is left to test, and what either order alone would have found."""
    apart = pair.questions - round(pair.consistent * pair.questions)
    if not apart:
        return ""
    a = pair.condition_a
    return (
        f"On {apart} of {pair.questions} questions the two orders differ, and as far as they "
        f"contradict each other they cancel out; both name {a} on {pair.agreed_wins} and "
        f"{pair.condition_b} on {pair.agreed - pair.agreed_wins}. Shown first {a} has "
        f"{percent(pair.win_rate_first)} ({p_value(pair.p_first)}), shown second "
        f"{percent(pair.win_rate_second)} ({p_value(pair.p_second)}): {_one_order(pair)}."
    )


def _one_order(pair: Comparison) -> str:
    first, second = pair.p_first < SIGNIFICANT, pair.p_second < SIGNIFICANT
    if first and second:
        turned = (pair.win_rate_first > FAIR) != (pair.win_rate_second > FAIR)
        winner = "not the same one" if turned else "the same one"
        return f"either order alone would have found a winner, {winner}"
    if first or second:
        return f"only the {'first' if first else 'second'} of these would have found a winner"
    return "neither order alone would have found a winner"


def _naive(pair: Comparison) -> str:
    naive, p = p_value(pair.p_naive), p_value(pair.p)
    if naive == p:
        return ""
    why = (
        "too sure, for verdicts on one question are no observations of their own"
        if pair.p_naive < pair.p
        else "not sure enough, for it takes for chance that the judge turns round with the order"
    )
    return (
        f"To take all {pair.verdicts} verdicts as independent would give {naive} instead of "
        f"{p}: {why}."
    )


def _interval(low: float, high: float) -> str:
    return f"95 % interval {100 * low:.1f} to {100 * high:.1f}"
