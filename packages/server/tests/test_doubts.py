"""What is amiss with the references of an answer, as each kind of client is told it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from graphrag_server.citing import cited
from graphrag_server.mcp.outputs import answered_fields
from graphrag_server.mcp.quoting import answer_text

from graphrag_pipeline.query.results import Answer, Citation, Retrieval

SHOWN = Citation(
    number=1,
    document_id="d",
    document_title="The clerk",
    uri="clerk.txt",
    chunk_id="c",
    start_char=0,
    end_char=9,
    text="Bob did it",
)
DOUBT = "The answer names no source."
SILENT = Answer(
    query="Who?",
    method="basic",
    text="Bob.",
    citations=(),
    retrieval=Retrieval("basic", "Who?", (), (SHOWN,), {}, {}, "r"),
    generated=True,
    model_calls=1,
    prompt_tokens=1,
    completion_tokens=1,
    cost=None,
    timings={},
    release="r",
    names_no_source=True,
    doubts=(DOUBT,),
)


def test_an_assistant_is_told_that_no_source_is_named_and_what_the_writer_was_shown() -> None:
    fields = answered_fields(SILENT)
    assert (fields.names_no_source, fields.doubts) == (True, [DOUBT])
    assert [each.text for each in fields.citations] == [SHOWN.text]
    text = answer_text(SILENT)
    assert text.index(DOUBT) < text.index("What its writer was shown:") < text.index(SHOWN.text)


def test_a_chat_program_shows_it_below_the_answer() -> None:
    notes = cited(SILENT, SILENT.text, lambda _: "https://kb/d").notes
    assert notes.index(DOUBT) < notes.index("**Shown to the model**") < notes.index("The clerk")


@pytest.mark.parametrize("notes", [True, False])
def test_an_answer_that_cites_has_its_sources_and_no_doubts(notes: bool) -> None:
    citing = replace(SILENT, citations=(SHOWN,), names_no_source=False, doubts=())
    below = cited(citing, citing.text, lambda _: "https://kb/d", noted=notes).notes
    assert ("**Sources**" in below, "Shown" in below) == (notes, False)
