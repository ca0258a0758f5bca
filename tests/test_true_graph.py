"""Rules on pages whose entities and relationships were written down by hand."""

from __future__ import annotations

from benchmarks.true_graph import measured, pages, scores
from graphrag_pipeline.core.settings import Settings


def test_rules_name_what_the_pages_name_and_relate_what_they_relate() -> None:
    total, _ = measured(Settings(profile="embedded"))
    assert total["right_names"] >= 0.93 * total["names"]
    assert total["right_names"] >= 0.95 * total["true_names"]
    assert total["right_pairs"] >= 0.65 * total["pairs"]
    assert total["right_pairs"] >= 0.33 * total["true_pairs"]


def test_what_is_true_of_a_page_is_all_right_and_nothing_else_is() -> None:
    for truth in pages().values():
        names = [forms[0] for forms in truth["names"]]
        total = scores(truth, names, truth["pairs"])
        assert total["names"] == total["right_names"] == total["true_names"] == len(names)
        assert total["pairs"] == total["right_pairs"] == total["true_pairs"]
        wrong = scores(truth, ["Nobody"], [("Nobody", "Nowhere")])
        assert (wrong["names"], wrong["right_names"]) == (1, 0)
        assert (wrong["pairs"], wrong["right_pairs"]) == (1, 0)
