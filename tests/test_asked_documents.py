"""Who wrote a document and when, asked of an index of documents that say so in their metadata."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from asked_files import index_asked

from graphrag_pipeline.query import QueryEngine

FILES = {
    "silting.md": "---\ntitle: Harbour silting 2023\nauthor: Ann Leverton\ndate: 2024-03-05\n---\n"
    "The harbour basin lost 40 cm. Tom Birk wrote to the quay's owner.\n",
    "hamlet.md": "---\ntitle: Hamlet\nauthor: Pia Lorne\ndate: 2019-02-01\n---\n"
    "Hamlet is a play. Shakespeare wrote it about 1600.\n",
    "survey.md": "---\ntitle: Depth survey\ndate: 2024-01-09\n---\n# Depth survey\n\nIda Holm\n\n"
    "3 May 2021\n\nAbstract. The survey measured the depth of the basin at low water.\n",
    "tides.md": "---\ntitle: Tides\n---\nThe tide is 1.2 m. Gauges stand at Varde.\n",
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryEngine]:
    yield from index_asked(FILES, tmp_path_factory)


def first_line(engine: QueryEngine, question: str) -> str:
    return engine.answer(question).text.partition("\n- ")[2].partition("\n")[0]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Who wrote the report on harbour silting?", "author: Ann Leverton"),
        ("Wer hat den Bericht über Harbour Silting geschrieben?", "author: Ann Leverton"),
        ("Who is the author of the silting report?", "author: Ann Leverton"),
        ("When was the report on harbour silting published?", "date: 2024-03-05"),
        ("Who wrote the article on Hamlet?", "author: Pia Lorne"),
        ("When was the report on the depth survey published?", "date: 2021-05-03"),
    ],
)
def test_who_wrote_a_document_and_when_is_told_by_its_metadata(
    engine: QueryEngine, question: str, said: str
) -> None:
    answer = engine.answer(question)
    assert said in first_line(engine, question)
    assert answer.citations[0].document_title in ("Harbour silting 2023", "Hamlet", "Depth survey")


@pytest.mark.parametrize(
    "question",
    [
        "Who wrote Hamlet?",
        "When was Hamlet written?",
        "Who wrote the note on tides?",
        "Who wrote the report on ferries, bridges and cranes of the harbour?",
    ],
)
def test_metadata_are_not_of_what_a_document_is_about(engine: QueryEngine, question: str) -> None:
    text = engine.answer(question).text
    assert "author:" not in text
    assert "date:" not in text
