from __future__ import annotations

import json
import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.llm import ModelOutputError
from graphrag_pipeline.llm.parsing import parse_json_object

WELL_FORMED = [
    '{"a": 1}',
    '  \n{"a": 1}\n',
    '```json\n{"a": 1}\n```',
    '```\n{"a": 1}```',
    'Here is the report {as asked}:\n\n{"a": 1}\n\nI hope it helps.',
    'First {"not": this} then\n```json\n{"a": 1}\n```',
    '<think>{"b": 2}</think>\n{"a": 1}',
]
REPAIRED = [
    ('{"a": [1, 2,], "b": {"c": 3,},}', {"a": [1, 2], "b": {"c": 3}}),
    ("{'a': 'it', 'b': True, 'c': None}", {"a": "it", "b": True, "c": None}),
    ('{"a": 1, // one\n /* two */ "b": 2}', {"a": 1, "b": 2}),
    ('{"a": True // yes\n}', {"a": True}),
    ('{"a": "two\nlines\tand a tab"}', {"a": "two\nlines\tand a tab"}),
    ('{"a": "he said "no" to it", "b": 1}', {"a": 'he said "no" to it', "b": 1}),
    ('{"a": "he said "no", and left", "b": 1}', {"a": 'he said "no", and left', "b": 1}),
    ('{a: 1, b_c: "x"}', {"a": 1, "b_c": "x"}),
    ('{"a": 1\n "b": 2}', {"a": 1, "b": 2}),
    ('{"a": "x"\n "b": "y"}', {"a": "x", "b": "y"}),
    ("{“a”: “curly”}", {"a": "curly"}),
    (r'{"a": "under\_score \'quoted\'"}', {"a": "under_score 'quoted'"}),
    ('{"a": NaN, "b": +5, "c": .5}', {"a": None, "b": 5, "c": 0.5}),
    ('{"a": "half \\ud83d pair"}', {"a": "half � pair"}),
    ('{"a": , "b": 2}', {"a": None, "b": 2}),
]
CUT_OFF = [
    ('{"a": 1, "b": "half a sen', {"a": 1, "b": "half a sen"}),
    ('{"a": [{"b": 1}, {"b"', {"a": [{"b": 1}, {"b": None}]}),
    ('{"a": [1, 2', {"a": [1, 2]}),
    ('{"a": 1, "b":', {"a": 1}),
    ('{"a": 1, "b": tr', {"a": 1, "b": None}),
    ('{"a": 1,', {"a": 1}),
    ('```json\n{"a": {"b": "c"}, "d": ["e', {"a": {"b": "c"}, "d": ["e"]}),
    ('{"a": "ends in an escape \\', {"a": "ends in an escape "}),
]
NO_OBJECT = ["", "   ", "I cannot do that.", "[1, 2]", "use {braces} please", "{" * 5000]


@pytest.mark.parametrize("text", WELL_FORMED)
def test_an_object_is_found_wherever_it_stands(text: str) -> None:
    assert parse_json_object(text) == {"a": 1}


@pytest.mark.parametrize(("text", "value"), REPAIRED)
def test_what_only_looks_like_json_is_repaired(text: str, value: dict) -> None:
    assert parse_json_object(text) == value


@pytest.mark.parametrize(("text", "value"), CUT_OFF)
def test_what_was_cut_off_is_kept_as_far_as_it_goes(text: str, value: dict) -> None:
    found = parse_json_object(text)
    if text.endswith('{"b"'):
        assert found in (value, {"a": [{"b": 1}, {}]})
    else:
        assert found == value


@pytest.mark.parametrize("text", NO_OBJECT)
def test_an_answer_without_an_object_is_an_error_that_quotes_nothing(text: str) -> None:
    with pytest.raises(ModelOutputError) as caught:
        parse_json_object(text)
    assert caught.value.position <= len(text)
    for word in ("braces", "cannot do"):
        assert word not in str(caught.value)


def test_a_number_too_long_to_be_one_makes_an_answer_unreadable() -> None:
    with pytest.raises(ModelOutputError) as caught:
        parse_json_object('{"a": 1, "b": ' + "9" * 5000 + "}")
    assert caught.value.position == 14
    assert parse_json_object('{"a": 1e999}') == {"a": None}


def test_an_error_tells_nothing_of_the_answer() -> None:
    with pytest.raises(ModelOutputError) as caught:
        parse_json_object("I cannot do that.")
    assert "cannot" not in str(caught.value)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(st.dictionaries(st.text(min_size=1), values, max_size=5), st.booleans())
def test_proper_json_is_read_exactly(value: dict, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert parse_json_object(text) == value


def test_a_fence_within_proper_json_is_a_text() -> None:
    assert parse_json_object('{"```": {"a": "```json {} ```"}}') == {"```": {"a": "```json {} ```"}}


@given(st.text(alphabet=string.printable + "“”é\\\"'{}[],:", max_size=200))
def test_any_answer_is_read_or_refused(text: str) -> None:
    try:
        value = parse_json_object("{" + text)
    except ModelOutputError:
        return
    json.dumps(value, ensure_ascii=False).encode()


@given(st.dictionaries(st.text(alphabet=string.ascii_letters, min_size=1), values), st.data())
def test_any_cut_of_an_object_is_read_or_refused(value: dict, data: st.DataObject) -> None:
    text = json.dumps(value)
    cut = text[: data.draw(st.integers(0, len(text)))]
    try:
        found = parse_json_object(cut)
    except ModelOutputError:
        return
    assert set(found) <= set(value) | {cut.rpartition('"')[2]} or len(found) <= len(value)


def test_long_answers_take_no_long_time() -> None:
    began = time.process_time()
    for text in (
        '{"a": "' + 'x" ' * 50_000,
        "{" * 20_000 + '"a": 1',
        '{"a": [' + "1 " * 50_000,
        '{"a": ' + "[" * 50_000,
        "{'a': '" + " ' " * 20_000,
        '{"a"' + " " * 100_000,
    ):
        try:
            parse_json_object(text)
        except ModelOutputError:
            continue
    assert time.process_time() - began < 5
