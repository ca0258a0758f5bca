"""Facts that notes tell of themselves, ``Owner:: Name`` and ``Owner: Name``, are their records."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from asked_files import index_asked
from read_files import only, read

from benchmarks.answers import passages_of
from graphrag_pipeline.core.text import asked_in
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query.evidence.asked_fields import asks_for_fact, says_asked_field
from graphrag_pipeline.query.question import AnalysedQuestion

NOTES = {
    "Quay 4.md": "---\ntags: [port]\n---\n# Quay 4\n\nSee [[Crane 7]]. Owner:: [[Baltor Freight]]"
    "\n\n- [ ] repair [[Crane 7]]\n\nMirela Okonski inspects it.\n",
    "qa.md": "Q: Who owns Quay 5?\nA: Trine Voss owns it.\n",
    "Quay 7.txt": "Owner: Solveig Marsh\nDepth: 12 m\nBuilt: 1998\n\nThe quay is old.\n",
    "Quay 8.md": "# Quay 8\n\n**Owner:** Nordwind Freight Ltd.\n**Built:** 2004\n\nIt is new.\n",
}


def facts(text: str, name: str = "Quay 4.md") -> list[str]:
    document = only(read(name, text))
    return [document.text[b.start : b.end] for b in document.blocks if b.kind == "fact"]


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("Owner:: [[Baltor Freight]]", ["Owner: Baltor Freight"]),
        ("See it. Owner:: [[firms/Baltor|the firm]]", ["Owner: Baltor"]),
        (
            "- Crew:: [[Ana Li]], [[Bo Li]]\n- status:: active",
            ["Crew: Ana Li; Bo Li", "status: active"],
        ),
        ("Owner: Baltor Ltd.\nDepth: 12 m", ["Owner: Baltor Ltd.", "Depth: 12 m"]),
        ("**Owner:** Baltor\n\nThe quay.", ["Owner: Baltor"]),
        ("# Quay 4\n\nOwner:: Baltor", ["Owner: Baltor"]),
    ],
)
def test_a_field_in_a_line_of_its_own_is_a_fact_about_the_note(written: str, told: list[str]):
    assert facts(written) == told


@pytest.mark.parametrize(
    "written",
    [
        "# Quays\n\n## Quay 5\n\nOwner:: Trine Voss",
        "---\ntitle: Quays\n---\n# Quay 5\n\nOwner:: Trine Voss",
        "Quay 5\n\nOwner: Trine Voss",
        "Quay 5:\nOwner: Trine Voss",
        "- Quay 5\n  - Owner:: Trine Voss",
        "Owner: Trine Voss\n\nIt is old.\n\nOwner: Baltor Freight",
        "Owner: It belongs to the town. Nobody else asked.",
        "Owner: Yes\nHost: Hello.",
        "Note: This is important",
        "```\nOwner:: Baltor\n```\n\n    Owner:: Baltor",
        "std::vector and std:: Vector are meant.",
        "| Owner:: X | 2 |",
        "- [ ] paint [due:: 2024-01-01]",
    ],
)
def test_what_may_be_about_something_else_is_no_fact(written: str):
    assert facts(written) == []


def test_facts_and_the_blocks_around_them_stand_apart():
    document = only(read("Quay 4.md", "- See it\n\nIt is.\n\n- Owner:: Baltor\n- [ ] paint\n"))
    blocks = [(document.text[b.start : b.end], b.kind) for b in document.blocks]
    assert blocks == [("- See it", "list"), ("Owner: Baltor", "fact"), ("- [ ] paint", "list")]


@pytest.mark.parametrize(
    ("question", "line", "asks"),
    [
        ("Who owns Quay 4?", "Owner: Baltor", True),
        ("Who owns Quay 5?", "Owner: Baltor", False),
        ("Who supplies Quay 4?", "Supplier: Baltor", True),
        ("Who inspects Quay 4?", "Owner: Baltor", False),
        ("Where is Quay 4?", "Location: Elvik", True),
        ("Where is Quay 4?", "Owner: Baltor", False),
        ("How deep is Quay 4?", "Depth: 12 m", True),
        ("How long is the crane of Quay 4?", "Depth: 12 m", False),
    ],
)
def test_a_question_asks_for_a_fact_by_its_field(question: str, line: str, asks: bool):
    assert asks_for_fact(AnalysedQuestion.of(question), "Quay 4", line) is asks


@pytest.fixture(scope="module")
def asked(tmp_path_factory) -> Iterator[QueryEngine]:
    yield from index_asked(NOTES, tmp_path_factory)


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("Who owns Quay 4?", "Quay 4 — Owner: Baltor Freight"),
        ("Who owns Quay 5?", "Q: Who owns Quay 5? A: Trine Voss owns it."),
        ("Who owns Quay 8?", "Quay 8 — Owner: Nordwind Freight Ltd."),
        ("When was Quay 8 built?", "Quay 8 — Built: 2004"),
        ("How deep is Quay 7?", "Quay 7 — Depth: 12 m"),
    ],
)
def test_a_note_answers_what_it_tells_of_itself(asked: QueryEngine, question: str, told: str):
    assert passages_of(asked.answer(question).text)[0] == told


def test_facts_do_not_stand_before_what_is_said_in_sentences(asked: QueryEngine):
    shown = passages_of(asked.answer("Who inspects Quay 4?").text)
    assert any("Mirela Okonski inspects it." in passage for passage in shown)


def test_facts_are_relationships_of_the_note_with_what_is_told(asked: QueryEngine):
    rows = asked.index.rows("SELECT source, target, type, description FROM relationships")
    told = {frozenset((row["source"], row["target"])): row for row in rows}
    owned = told[frozenset(("Quay 4", "Baltor Freight"))]
    assert owned["type"] == "Owner"
    assert owned["description"] == "Quay 4 — Owner: Baltor Freight."
    assert not {"12 m", "1998"} & {row["target"] for row in rows}


def test_which_field_is_asked_for_does_not_hang_on_the_language_asked_in_before():
    told = "Boot — Verantwortliche: Ida Lind"
    asked = "Wer ist zuständig für das Boot?"
    for language in ("fr", "de"):
        with asked_in(language):
            question = AnalysedQuestion(asked)
            said = says_asked_field(question, "Boot", told, told, frozenset())
    assert said == 1
