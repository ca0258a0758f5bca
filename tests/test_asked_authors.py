"""Questions of what somebody says of something, where documents are theirs or called by them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from asked_files import index_asked

from benchmarks.answers import passages_of
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query.asked_authors import asked_author

SPEECH = "Friends of the harbour, we meet again. {words} The tide is high today. We thank the crew."
FILES = {
    "1861_ada_byrne_n.txt": SPEECH.format(words="The dredge shall be built of iron next spring."),
    "1863_john_orlen_r.txt": SPEECH.format(words="No dredge was ever worth what it costs a town."),
    "1865_mary_orlen_r.txt": SPEECH.format(words="The lighthouse needs a keeper who can read."),
    "1901_tom_vale_d.txt": SPEECH.format(
        words="Ada Byrne was right about the dredge. Byrne and the dredge are one in our memory. "
        "Mary Orlen never liked the lighthouse. The annual report likes the ferry."
    ),
    "annual report.md": "# Annual report\n\nThe ferry lost ninety crowns. Nobody asked why.\n",
    "letter.md": "---\nauthor: Jonas Wieland\n---\n# A letter\n\nThe pump is too small.\n",
    "mail.eml": "From: Rosa Lund <rosa@example.org>\nTo: crew@example.org\nSubject: Pumps\n"
    "Date: Mon, 3 Mar 2025 10:00:00 +0000\n\nThe pump must go to the yard before Easter.\n",
    "song.txt": "The pump sings, the pump rings, and nobody loves the pump as much as the pump.",
    "ferry.txt": "The ferry, the ferry! All sing of the ferry, and of no boat but the ferry.",
}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryEngine]:
    yield from index_asked(FILES, tmp_path_factory)


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("What did Ada Byrne say about the dredge?", "built of iron next spring"),
        ("What did Byrne say about the dredge?", "built of iron next spring"),
        ("What did Mayor Byrne say about the dredge?", "built of iron next spring"),
        ("What did John Orlen think of the dredge?", "No dredge was ever worth"),
        ("What has Mary Orlen written about the lighthouse?", "a keeper who can read"),
        ("What does the annual report say about the ferry?", "lost ninety crowns"),
        ("According to the annual report, what did the ferry lose?", "lost ninety crowns"),
        ("What did the ferry lose according to the annual report?", "lost ninety crowns"),
        ("What did Jonas Wieland write about the pump?", "The pump is too small"),
        ("What does Rosa Lund say about the pump?", "go to the yard before Easter"),
        ("Was sagt Rosa Lund über the pump?", "go to the yard before Easter"),
        ("Was hat Ada Byrne über the dredge gesagt?", "built of iron next spring"),
        ("Que dit Mary Orlen sur the lighthouse?", "a keeper who can read"),
        ("¿Qué dijo Mary Orlen sobre the lighthouse?", "a keeper who can read"),
    ],
)
def test_whose_words_are_asked_for_is_told_first(
    asked: QueryEngine, question: str, told: str
) -> None:
    first, *_ = passages_of(asked.answer(question, "auto").text)
    assert told in first


@pytest.mark.parametrize(
    ("question", "files", "topic"),
    [
        ("What did Orlen say about the dredge?", 2, "the dredge"),
        ("What does the annual report report about the ferry?", 1, "the ferry"),
        ("What did Nobody Known say about the dredge?", 0, ""),
        ("What did the say about the dredge?", 0, ""),
        ("What did Ada Byrne say?", 0, ""),
        ("Who said that the dredge is iron?", 0, ""),
        ("What did Ada Byrne sell?", 0, ""),
    ],
)
def test_documents_are_known_by_names_and_a_question_by_its_form(
    asked: QueryEngine, question: str, files: int, topic: str
) -> None:
    author = asked_author(asked.index, question)
    assert (len(author.documents), author.topic) == (files, topic) if files else author is None


def test_what_nearly_all_documents_are_called_by_tells_none_apart(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    files = {f"byrne {n}.txt": f"In year {n} the dredge of Byrne was mended." for n in range(3)}
    for engine in index_asked(files, tmp_path_factory):
        assert asked_author(engine.index, "What did Byrne say about the dredge?") is None
