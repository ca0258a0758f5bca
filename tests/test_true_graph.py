"""Texts whose entities and relationships were written down by hand: rules, and a model, scored."""

from __future__ import annotations

import json
from pathlib import Path

from model_server import Messages, ModelServer

from benchmarks.true_graph import asked, by_model, by_rule, pages, scores, texts, total


def test_rules_name_what_the_texts_name_and_relate_what_they_relate() -> None:
    scored = total(by_rule()[0])
    assert scored["texts"] == 20
    assert scored["right_names"] >= 0.90 * scored["names"]
    assert scored["right_names"] >= 0.93 * scored["true_names"]
    assert scored["right_pairs"] >= 0.53 * scored["pairs"]
    assert scored["right_pairs"] >= 0.38 * scored["true_pairs"]


def test_a_truth_names_what_its_text_has_and_relates_what_it_names() -> None:
    for name, text in texts().items():
        words = " ".join(text.split()).casefold()
        truth = pages()[name]
        for forms in truth["names"]:
            assert any(form.casefold() in words for form in forms), (name, forms)
        known = {forms[0] for forms in [*truth["names"], *truth["others"]]}
        assert {end for pair in truth["pairs"] for end in pair} <= known, name


def test_a_model_is_scored_text_by_text_and_what_is_in_the_results_is_not_asked_again(
    tmp_path: Path,
) -> None:
    entities = [{"name": name, "type": "PERSON", "description": name} for name in ("Aldous", "Bo")]
    related = [{"source": "Aldous", "target": "Bo", "description": "Aldous knows Bo."}]

    def mind(messages: Messages) -> str:
        if "match" in messages[-1]["content"]:
            return "no"
        return json.dumps({"entities": entities, "relationships": related})

    named_texts = {"news": "Aldous knows Bo.", "match": "A match."}
    with ModelServer(mind) as server:
        settings = by_model(server.base_url, "played", "schema", tmp_path)
        found, seconds = asked(named_texts, settings, tmp_path / "results.jsonl")
        n_calls = len(server.requests)
        again, same_seconds = asked(named_texts, settings, tmp_path / "results.jsonl")
        assert len(server.requests) == n_calls
    scored = total(found)
    assert (scored["texts"], scored["ok"], scored["names"], scored["pairs"]) == (2, 1, 2, 1)
    assert scored["completion_tokens"] > 0
    assert total(again) == scored
    assert seconds == same_seconds > 0


def test_what_is_true_of_a_page_is_all_right_and_nothing_else_is() -> None:
    for truth in pages().values():
        names = [forms[0] for forms in truth["names"]]
        total = scores(truth, names, truth["pairs"])
        assert total["names"] == total["right_names"] == total["true_names"] == len(names)
        assert total["pairs"] == total["right_pairs"] == total["true_pairs"]
        wrong = scores(truth, ["Nobody"], [("Nobody", "Nowhere")])
        assert (wrong["names"], wrong["right_names"]) == (1, 0)
        assert (wrong["pairs"], wrong["right_pairs"]) == (1, 0)
