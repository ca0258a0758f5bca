"""Fields that documents begin with: read as front matter is, and answers to who asks for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from asked_files import index_asked
from read_files import only, read

from benchmarks.answers import passages_of
from graphrag_pipeline.ingest.reading.head_fields import head_fields
from graphrag_pipeline.query import QueryEngine

BODY = "\n\nThe lamps are lit at dusk. The warden keeps a log of each lamp.\n"
HEAD = (
    "HEP: 12\nTitle: Lamps of the Quay\nAuthor: Ebba Lund <ebba@kelm.example>,\n"
    "        Ola Norling\nSponsor: Rune Falk\nStatus: Accepted\nCreated: 28-Feb-2021"
)
FILES = {
    "hep-0012.rst": f"{HEAD}\n\n\nAbstract\n========{BODY}",
    "hep-0013.rst": "HEP: 13\nTitle: Depth of the Basin\nAuthor: Mirela Okonski\n"
    "Status: Rejected\nCreated: 03-May-2022\n\nAbstract\n========\n\n"
    "As :hep:`12` is no role and :pep:`8#names` is one, HEP 12 stays. The basin is eight metres "
    "deep at low water, which is more than HEP 12 asks for.\n",
    "hip-7.md": "---\nhip: 7\ntitle: Fees of the Crane\nauthor: Jonas Berg\nstatus: Draft\n---\n"
    "\n## Summary\n\nThe fee is 40 EUR an hour.\n",
    "repairs.rst": "Repairs\n=======\n\n:Author: Ida Holm\n:Approver: Nils Rune\n:Status: Done\n\n"
    "Two crews mended the quay.\n",
    "note.txt": "Titel: Schlüssel der Schleuse\nVerfasser: Jörg Müller\nStand: Entwurf\n\n"
    "Der Schlüssel liegt im Turm bei der Schleuse.\n",
}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryEngine]:
    yield from index_asked(FILES, tmp_path_factory)


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("What is the status of HEP 12?", "HEP 12: Lamps of the Quay — status: Accepted"),
        ("Who sponsors HEP 12?", "HEP 12: Lamps of the Quay — sponsor: Rune Falk"),
        ("What is the status of HEP 13?", "HEP 13: Depth of the Basin — status: Rejected"),
        ("When was HEP 13 created?", "HEP 13: Depth of the Basin — created: 03-May-2022"),
        ("Who wrote HEP 13?", "HEP 13: Depth of the Basin — author: Mirela Okonski"),
        ("What is the status of HIP 7?", "HIP 7: Fees of the Crane — status: Draft"),
        ("Who wrote HIP 7?", "HIP 7: Fees of the Crane — author: Jonas Berg"),
        ("Who is the approver of the repairs?", "Repairs — approver: Nils Rune"),
    ],
)
def test_a_field_of_the_document_that_is_named_comes_first(
    asked: QueryEngine, question: str, told: str
) -> None:
    passages = passages_of(asked.answer(question).text)
    assert passages[0].casefold() == told.casefold()
    assert not [each for each in passages if each.endswith((": 12", ": 13"))]


def test_a_field_that_says_what_the_title_says_is_no_answer(asked: QueryEngine) -> None:
    for question in ("What is HEP 12?", "What does HIP 7 say?"):
        passages = passages_of(asked.answer(question).text)
        assert passages
        assert not [each for each in passages if each.casefold().endswith(("hep: 12", "hip: 7"))]


def test_what_is_called_by_its_number_answers_for_itself(asked: QueryEngine) -> None:
    first = passages_of(asked.answer("How deep is the basin of HEP 13?").text)[0]
    assert "eight metres deep" in first


def test_a_head_may_be_a_list_and_a_first_section_is_no_title() -> None:
    text = "- Feature Name: lamp-modes\n- **Start Date**: 2016-08-12\n\n## Summary" + BODY
    document = only(read("0012-lamp-modes.md", text))
    assert document.title == "0012 lamp modes"
    assert document.metadata == {"feature name": "lamp-modes", "start date": "2016-08-12"}
    assert only(read("README.md", f"# Overview{BODY}")).title == "Overview"


def test_a_head_is_metadata_and_stays_in_the_text() -> None:
    document = only(read("hep-0012.rst", FILES["hep-0012.rst"]))
    assert document.title == "HEP 12: Lamps of the Quay"
    assert document.metadata == {
        "hep": "12",
        "author": "Ebba Lund <ebba@kelm.example>, Ola Norling",
        "sponsor": "Rune Falk",
        "status": "Accepted",
        "created": "28-Feb-2021",
    }
    assert "Sponsor: Rune Falk" in document.text
    german = only(read("note.txt", FILES["note.txt"]))
    assert (german.title, german.metadata["stand"]) == ("Schlüssel der Schleuse", "Entwurf")
    pep = only(read("hep-0013.rst", FILES["hep-0013.rst"]))
    assert "PEP 8 is one" in pep.text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hop-0004.mediawiki", "<pre>\n{}\n</pre>\n\n==Abstract==\n\nLit at dusk.\n"),
        ("hop-0004.md", "```\n{}\n```\n\n## Abstract\n\nLit at dusk.\n"),
    ],
)
def test_a_head_may_be_set_in_a_block(name: str, text: str) -> None:
    head = "  HOP: 4\n  Title: Lamps\n  Authors: Ebba Lund\n           Ola Norling\n  Status: Done"
    document = only(read(name, text.format(head)))
    assert document.title == "HOP 4: Lamps"
    assert document.metadata == {"hop": "4", "authors": "Ebba Lund Ola Norling", "status": "Done"}


@pytest.mark.parametrize(
    "text",
    [
        "KEVIN: Is it lit?\nANNA: It is." + BODY,
        "Title: Lamps" + BODY,
        "Title: Lamps\nAuthor: Ebba Lund",
        "Title: Lamps\nThis is prose.\nAuthor: Ebba Lund" + BODY,
        "# Lamps\n\nIt is said: all are lit. They are, too." + BODY,
        "Title: Lamps\n\nAuthor: Ebba Lund" + BODY,
        "Title: Lamps\nNote: One is lit.\nNote: Two are lit." + BODY,
        "Title: Lamps\nSummary: " + "All are lit. " * 100 + BODY,
    ],
)
def test_what_only_looks_like_a_head_is_text(text: str) -> None:
    assert head_fields(text) == {}


def test_a_title_is_what_is_called_so_before_what_may_be_one() -> None:
    fields = {"name": "Kelm Lamp", "title": "The keeper"}
    assert head_fields("Name: Kelm Lamp\nTitle: The keeper" + BODY) == fields
