"""Dollars of a question: the same in whatever order its calls end."""

from __future__ import annotations

from itertools import permutations

from graphrag_pipeline.llm.completion import Completion
from graphrag_pipeline.query.trace import Spending

COSTS = (0.0001108, 0.0004164, 0.0007007, 0.0001, 0.0002, 0.0003)


def test_the_order_in_which_calls_end_is_not_seen_in_their_sum() -> None:
    sums = set()
    for order in permutations(COSTS):
        spending = Spending()
        for cost in order:
            spending.add("answer", Completion("", 1, 1, False, cost, "stop", 0.0))
        sums.add(spending.cost)
    assert sums == {0.0018279}
    assert len({sum(order) for order in permutations(COSTS)}) > 1, "floats alone would differ"
