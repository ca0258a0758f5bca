"""References of a written answer that share no word with the sentence that makes them."""

from __future__ import annotations

import re

import pytest

from graphrag_pipeline.core.prompting import fence, load_prompt, prompt_names
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.writing.references import Shown
from graphrag_pipeline.query.writing.support import (
    numbers_nowhere,
    reference_fields,
    support_of,
)
from graphrag_pipeline.reports.references import check_references

IDS_OF_EXAMPLES = {987654321, 987654322, 987654323}
"""An index counts from 0: it has one of these once it has nearly a thousand million records."""
RECORDS = Shown(
    Record("chunk", f"c{number}", number, title, text, 1.0)
    for number, (title, text) in enumerate(
        [
            ("dam.md", "Oskar Kovarna designed the dam in 1953."),
            ("bridge.md", "The bridges were closed for cracks."),
            ("海草.txt", "林若澜在海湾研究海草。"),
            ("Brücken.txt", "Die Brücke wurde im Herbst von der Stadt gesperrt, und das war gut."),
        ]
    )
)


def whole(name: str) -> str:
    prompt = load_prompt(name)
    return f"{prompt.system}\n{prompt.user}"


def without_support(text: str) -> list[str]:
    return [each.reference for each in support_of(text, RECORDS).unsupported]


@pytest.mark.parametrize(
    ("text", "references"),
    [
        ("Kovarna planned it [Data: Sources (0)].", []),
        ("A bridge closed in 1953 [Data: Sources (0, 1)].", []),
        ("It was a warm day [Data: Sources (0)].", ["Sources (0)"]),
        ("The and of it was that [Data: Sources (0)].", []),
        ("Kovarna did. It was a warm day. [Data: Sources (0)] Kovarna did.", ["Sources (0)"]),
        ("It was warm.\n\n[Data: Sources (0)] Kovarna planned it.", []),
        ("Kovarna planned it.\n\nWarm days came.\n\n[Data: Sources (0)]", []),
        ("Warm days came.\n\n[Data: Sources (0)]", ["Sources (0)"]),
        ("- Kovarna did [Data: Sources (0)]\n- Kovarna did [Data: Sources (1)]", ["Sources (1)"]),
        ("她研究海草。[Data: Sources (2)]", []),
        ("水坝很高。[Data: Sources (2)]", ["Sources (2)"]),
        ("Im Jahr 1953 sperrte die Stadt die Brücken [Data: Sources (3)].", []),
    ],
)
def test_a_reference_without_a_word_of_its_sentence_is_counted(text, references):
    assert without_support(text) == references


@pytest.mark.parametrize(
    "text",
    ["水坝很高。[Data: Sources (0)]", "Der Damm ist sehr hoch und alt [Data: Sources (0)]."],
)
def test_a_record_in_another_script_or_language_is_not_compared(text):
    assert without_support(text) == []


def test_what_is_amiss_with_references_is_said_in_words_and_numbers():
    fields = reference_fields("Warm [Data: Sources (0)]. Kovarna [Data: Sources (0)].", RECORDS, 3)
    assert (fields["references"], fields["references_removed"]) == (2, 3)
    assert not fields["names_no_source"]
    assert [each.sentence for each in fields["unsupported"]] == ["Warm."]
    assert fields["doubts"] == (
        "1 of 2 references shares no word with their sentences: Sources (0).",
        "3 references removed that named nothing the model was shown.",
    )


def test_an_answer_that_names_no_source_says_so_unless_it_was_told_to_name_none():
    fields = reference_fields("Kovarna.", RECORDS, 0)
    assert fields["names_no_source"]
    assert "names no source" in fields["doubts"][0]
    alone = reference_fields("Kovarna.", Shown(), 0)
    assert alone["doubts"] == ("The answer names no source, for the model was shown none.",)
    plain = reference_fields("Kovarna.", RECORDS, 0, may_refer=False)
    assert (plain["names_no_source"], plain["doubts"]) == (False, ())


@pytest.mark.parametrize("name", [name for name in prompt_names() if "[Data: " in whole(name)])
def test_examples_of_references_have_one_id_that_no_index_has_and_never_stand_last(name):
    prompt = load_prompt(name)
    examples = re.findall(r"\[Data: ([^]]*)\]", prompt.system)
    numbers = [n for example in examples for n in re.findall(r"\(([^()]*)\)", example)]
    assert {int(n) for n in numbers if n != "..."} <= IDS_OF_EXAMPLES
    assert "[Data" not in prompt.user


def test_reports_of_the_wording_before_are_not_paid_for_again():
    assert load_prompt("community_report").version == "41b0afa4bcfd8f56a623af851d7d8bac"


def test_the_mark_of_a_fence_is_no_source():
    records = {"Sources": set(range(100))}
    for text in (f"chunk {n}" for n in range(200)):
        mark = fence("context", text).partition("id=")[2].partition(">")[0]
        for written in (
            f"[Data: Sources ({mark})]",
            f"[Sources ({mark[:6]})]",
            f"[Data: id={mark}]",
        ):
            assert check_references(f"So{written}.", records).cited == (), written


@pytest.mark.parametrize(
    ("answer", "numbers"),
    [
        ("The number is 207-555-1234 [Data: Sources (404)].", ["207", "555", "1234"]),
        ("It was closed on 9 September 2012.", []),
        ("It was closed on 2012-09-09, in 2012.", []),
        ("It cost 46,000, 46.000, 46 000 or 46\u202f500 crowns.", []),
        ("It cost 1.5 million, and 61 million.", ["61"]),
        ("٤٦٠٠٠ crowns", []),
        ("1. Closed in 2012\n2) Open in 2017\n12. Closed again", ["2017"]),
        ("Two of 3 of its 4 piers, A4 paper, EN1992 and pier10.", []),
        ("12 of 19 in 2012", ["19"]),
    ],
)
def test_numbers_that_the_model_was_not_shown_are_told_as_they_are_written(answer, numbers):
    shown = ["Sources\n7,bridge.md,Closed on 2012-09-12 for 46000, 46,500 and 1,500,000 crowns."]
    assert numbers_nowhere(answer, shown) == numbers


def test_a_made_up_number_is_a_doubt_where_there_was_something_to_read():
    text = "Call 207-555-1234 in 1953 [Data: Sources (0)]."

    def doubts(records, **more):
        return reference_fields(text, records, 0, told=["in 1953"], **more)["doubts"]

    told = (
        "3 numbers of the answer stand nowhere in what the model was shown, worked out or made up"
    )
    assert [line for line in doubts(RECORDS) if "number" in line] == [f"{told}: 207, 555, 1234."]
    assert not [line for line in doubts(Shown()) if "number" in line]
    assert not doubts(RECORDS, may_refer=False)
