"""Reports, points and ratings are read from what models write, and their references checked."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.llm.errors import ModelOutputError
from graphrag_pipeline.llm.parsing import parse_yes_no
from graphrag_pipeline.reports.parsing import (
    DRIFT_SCHEMA,
    POINTS_SCHEMA,
    RATING_SCHEMA,
    DriftAnswer,
    Point,
    parse_drift,
    parse_points,
    parse_rating,
    parse_report,
    report_schema,
)
from graphrag_pipeline.reports.references import check_references
from graphrag_pipeline.reports.text import Finding

REPORT = {
    "title": "Ada and the Engine",
    "summary": "Ada programs it [Data: Entities (5, 99)].",
    "rating": 7.5,
    "rating_explanation": "It matters.",
    "findings": [{"summary": "She writes", "explanation": "Notes [Data: Relationships (23)]."}],
}


def answer_to(schema, name="answer"):
    """Return the smallest answer that a schema takes, each text saying what it is."""
    if schema["type"] == "object":
        assert schema["required"] == list(schema["properties"])
        assert schema["additionalProperties"] is False
        return {key: answer_to(part, key) for key, part in schema["properties"].items()}
    if schema["type"] == "array":
        return [answer_to(schema["items"], name)]
    return {"string": f"the {name}", "number": 3}[schema["type"]]


def test_what_a_schema_asks_for_is_read_whole():
    report = parse_report(json.dumps(answer_to(report_schema(5))), {})
    assert (report.title, report.rating) == ("the title", 3.0)
    assert report.findings == (Finding("the summary", "the explanation", None, None, None),)
    points = parse_points(json.dumps(answer_to(POINTS_SCHEMA)))
    assert points == (Point("the description", 3.0),)
    drift = parse_drift(json.dumps(answer_to(DRIFT_SCHEMA)))
    assert drift == DriftAnswer("the intermediate_answer", 3.0, ("the follow_up_queries",))
    assert parse_rating(json.dumps(answer_to(RATING_SCHEMA)), 5) == 3.0


ALLOWED = {"Entities": {5, 7}, "Relationships": {23}, "Reports": {1}}


@pytest.mark.shared_data
def test_every_recorded_report_is_read_whole(shared_data):
    cassette = shared_data / "llm_outputs" / "gpt4o_carol_cassette.json"
    outputs = [call["return"] for call in json.loads(cassette.read_text("utf-8")).values()]
    reports = [output for output in outputs if output.lstrip().startswith("{")]
    assert len(reports) == 101
    n_findings = 0
    for output in reports:
        raw, report = json.loads(output), parse_report(output, {})
        assert report.title == raw["title"]
        assert report.summary == raw["summary"]
        assert report.rating == raw["rating"]
        assert report.rating_explanation == raw["rating_explanation"]
        n_findings += len(report.findings)
    assert n_findings == 646


def test_a_report_is_read_and_its_references_checked():
    report = parse_report(f"Here it is:\n```json\n{json.dumps(REPORT)}\n```", ALLOWED)
    assert report.summary == "Ada programs it [Data: Entities (5)]."
    assert report.findings[0].explanation == "Notes [Data: Relationships (23)]."
    assert report.full_content.startswith("# Ada and the Engine\n")


@pytest.mark.parametrize(
    ("findings", "read"),
    [
        (["She writes. Much."], (("She writes.", "She writes. Much."),)),
        ([{"title": "A", "description": ["b", "c"]}], (("A", "b\n\nc"),)),
        ({"A": "b", "C": "d"}, (("A", "b"), ("C", "d"))),
        ({"summary": "A", "explanation": "b"}, (("A", "b"),)),
        ("One.\n\nTwo.", (("One.", "One."), ("Two.", "Two."))),
        ([{}, "", None, {"summary": "A"}], (("A", "A"),)),
        (None, ()),
    ],
)
def test_findings_are_read_in_any_shape(findings, read):
    report = parse_report(json.dumps({**REPORT, "findings": findings}), ALLOWED)
    assert tuple((each.summary, each.explanation) for each in report.findings) == read


def test_missing_parts_are_filled():
    report = parse_report('{"findings": ["Ada writes. Daily."]}', {})
    assert (report.title, report.summary, report.rating) == ("Ada writes.", "Ada writes.", 5.0)


def test_a_report_under_a_key_of_its_own_or_other_names_is_found():
    given_report = {"report": {"Title": "A", "Executive Summary": "b", "ratingExplanation": "c"}}
    report = parse_report(json.dumps(given_report), {})
    assert (report.title, report.summary, report.rating_explanation) == ("A", "b", "c")


def test_a_report_that_is_cut_off_keeps_what_there_is():
    report = parse_report(json.dumps(REPORT)[:-20], ALLOWED)
    assert report.title == "Ada and the Engine"


@pytest.mark.parametrize(
    "text", ["", "I cannot.", "[]", "{}", '{"title": "A"}', "{{{{", "[" * 9999]
)
def test_what_is_no_report_is_an_error_for_the_model_to_read(text):
    with pytest.raises(ModelOutputError) as error:
        parse_report(text, {})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "checked", "n_removed"),
    [
        (
            "a [Data: Entities (5, 7); Relationships (23); +more].",
            "a [Data: Entities (5, 7); Relationships (23, +more)].",
            0,
        ),
        ("a [Data: Entities(5,9), Relationships (99)] b", "a [Data: Entities (5)] b", 2),
        ("a [data: Reports (1)]", "a [Data: Reports (1)]", 0),
        ("a [records: Entities 5 and 7]", "a [Data: Entities (5, 7)]", 0),
        ("a (Data: Reports (1, 2))", "a [Data: Reports (1)]", 1),
        ("a [Reports: 1]", "a [Data: Reports (1)]", 0),
        ("a 【Data: Reports (1)】", "a [Data: Reports (1)]", 0),
        ("a [Data: Claims (2)].", "a.", 1),
        ("a [Data: Entities (" + "9" * 5000 + ")].", "a.", 1),
        ("a [Data: Reports (1); Entities (5", "a", 2),
        ("a [1] [see Reports of 1843] [x](y)", "a [1] [see Reports of 1843] [x](y)", 0),
    ],
)
def test_references_hold_only_what_was_in_the_context(text, checked, n_removed):
    found = check_references(text, ALLOWED)
    assert (found.text, found.n_removed) == (checked, n_removed)


@given(st.text("[]()Data: Reports(1,2);+more", max_size=60))
def test_checking_references_twice_changes_nothing_more(text):
    once = check_references(text, ALLOWED)
    assert all(number in ALLOWED[kind] for kind, number in once.cited)
    assert check_references(once.text, ALLOWED).cited == once.cited


def test_points_are_read_with_scores_from_0_to_100():
    answer = '{"points": [{"description": "a", "score": "85/100"}, {"description": "b"}, "c", '
    answer += '{"answer": "d", "score": 150}, {"description": "e", "score": -1}, {"score": 3}]}'
    expected = (Point("a", 85), Point("b", 1), Point("c", 1), Point("d", 100), Point("e", 0))
    assert parse_points(answer) == expected
    assert parse_points('{"points": []}') == ()
    assert parse_points('```json\n[{"description": "a", "score": 2}, "b"]\n```') == (
        Point("a", 2),
        Point("b", 1),
    )
    assert parse_points("<ANSWER_HELPFULNESS> 80 </ANSWER_HELPFULNESS>\nText") == (
        Point("Text", 80),
    )


@pytest.mark.parametrize("text", ["", "no", '{"a": 1}', '{"points": 3}'])
def test_an_answer_without_points_is_an_error(text):
    with pytest.raises(ModelOutputError):
        parse_points(text)


def test_a_step_of_drift_is_read():
    step = parse_drift('{"intermediate_answer": "a", "score": 80, "follow_up_queries": ["b", "b"]}')
    assert (step.answer, step.score, step.follow_ups) == ("a", 80, ("b",))
    with pytest.raises(ModelOutputError):
        parse_drift('{"score": 3}')


def test_a_step_of_drift_without_a_score_is_kept_last():
    assert parse_drift('{"intermediate_answer": "a"}').score == 1


@pytest.mark.parametrize(
    ("text", "rating"),
    [
        ("8.5/10", 8.5),
        (8, 8.0),
        ("85 %", 8.5),
        ("4/5", 8.0),
        ("8,5", 8.5),
        ("High (7)", 7.0),
        (-3, 0.0),
        (10**400, 10.0),
        (float("nan"), None),
        (True, None),
        (None, None),
        ("high", None),
        ('{"reason": "x", "rating": 4}', 4.0),
    ],
)
def test_ratings_are_numbers_from_0_to_10(text, rating):
    assert parse_rating(text) == rating


def test_a_rating_of_relevance_ends_at_five():
    assert parse_rating('{"rating": 9}', 5) == 5


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ("Y", True),
        ("**No**, nothing.", False),
        ("I think yes", True),
        ("はい", True),
        ("", None),
        ("maybe", None),
        ("either yes or no", None),
    ],
)
def test_a_decision_is_yes_or_no_or_none(text, decision):
    assert parse_yes_no(text) is decision


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from(["title", "summary", "rating", "findings", "points", "x"]), inner
        ),
    ),
)


@given(st.one_of(JSON.map(json.dumps), st.text()))
def test_any_answer_is_read_or_refused_with_one_kind_of_error(text):
    for parse in (lambda answer: parse_report(answer, ALLOWED), parse_points, parse_drift):
        try:
            parse(text)
        except ModelOutputError:
            continue
    parse_rating(text)
    parse_yes_no(text)
