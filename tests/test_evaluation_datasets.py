"""Question files: our own formats, those of the papers' data sets, and what cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.evaluation.metrics.answers import NO_ANSWER
from graphrag_pipeline.evaluation.questions.datasets import read_questions, write_questions
from graphrag_pipeline.evaluation.questions.question import Passage, Question
from graphrag_pipeline.ingest.documents import reading_options
from graphrag_pipeline.ingest.reading import read_file

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def read(tmp_path):
    """Write a file and read its questions; what is not text is written as JSON."""

    def written(content, name="questions.json", format=""):
        path = tmp_path / name
        text = content if isinstance(content, str) else json.dumps(content)
        path.write_text(text, encoding="utf-8-sig")
        return read_questions(path, format)

    return written


FULL = Question(
    text="Who keeps the light?",
    answers=("Marta Kolb", "Kolb"),
    passages=(Passage("orn.txt", "Marta Kolb keeps"),),
    type="fact",
    persona="a sailor",
    task="planning",
)


def test_our_own_format_is_read_back_as_it_was_written(tmp_path) -> None:
    asked = [FULL, Question("Ünd why?", passages=(Passage(text="because"),))]
    write_questions(tmp_path / "own.jsonl", asked)
    assert read_questions(tmp_path / "own.jsonl") == asked


def test_one_answer_texts_as_passages_and_truth_values_are_understood(read) -> None:
    assert read([{"question": " Is\nit? ", "answer": True, "passages": ["It  is."]}]) == [
        Question("Is it?", ("yes",), (Passage(text="It is."),))
    ]
    lines = '{"query": "A?", "answer": 7}\n\n{"query": "B?"}\n{"query": "A?", "answer": "8"}'
    assert read(lines, "q.jsonl") == [
        Question("A?", ("7", "8")), Question("B?"),
    ]  # fmt: skip


def test_tables_and_lines_of_text_are_read(read) -> None:
    table = 'question_text,answers,type\nWho?,"[""Ada"", ""A. L.""]",fact\nWhat?,a list,\n'
    assert read(table, "q.csv") == [
        Question("Who?", ("Ada", "A. L."), type="fact"), Question("What?", ("a list",)),
    ]  # fmt: skip
    assert read("Who?\n\n  What? \nWho?\n", "q.txt") == [Question("Who?"), Question("What?")]


def test_musique_gives_supporting_paragraphs_aliases_and_hops(read) -> None:
    entry = {
        "id": "2hop__1_2", "question": "Who?", "answer": "Ada", "answer_aliases": ["A. Lovelace"],
        "paragraphs": [
            {"idx": 0, "title": "X", "paragraph_text": "No.", "is_supporting": False},
            {"idx": 1, "title": "Y", "paragraph_text": "Ada did.", "is_supporting": True},
        ],
    }  # fmt: skip
    lines = [entry, {**entry, "question": "Whence?", "answerable": False}]
    assert read("\n".join(map(json.dumps, lines)), "musique.jsonl") == [
        Question("Who?", ("Ada", "A. Lovelace"), (Passage("Y", "Ada did."),), "2hop"),
        Question("Whence?", NO_ANSWER, type="unanswerable"),
    ]


HOTPOT = {
    "_id": "h", "question": "Same?", "answer": "yes", "type": "comparison", "level": "hard",
    "supporting_facts": [["Y", 2], ["X", 0], ["Y", 0], ["Y", 9], ["Z", 0]],
    "context": [["X", ["First.", " Second."]], ["Y", ["One.", " Two.", " Three.", " Four."]]],
}  # fmt: skip
OF_TITLES = (Passage("Y", "One. Two. Three."), Passage("X", "First."), Passage("Z"))


def test_hotpotqa_gives_one_passage_a_title_that_stands_in_its_paragraph(read) -> None:
    wanted = [Question("Same?", ("yes",), OF_TITLES, "comparison")]
    assert read([HOTPOT]) == wanted
    columns = {
        "supporting_facts": {"title": ["Y", "X", "Y", "Y", "Z"], "sent_id": [2, 0, 0, 9, 0]},
        "context": {"title": ["X", "Y"], "sentences": [each[1] for each in HOTPOT["context"]]},
    }
    assert read([{**HOTPOT, **columns}]) == wanted


def test_2wikimultihopqa_takes_aliases_from_the_file_beside_it(read, tmp_path) -> None:
    aliases = '{"Q_id": "Q30", "aliases": ["USA", "America"]}\n{"Q_id": "Q1", "aliases": []}\n'
    (tmp_path / "id_aliases.json").write_text(aliases)
    more = {"answer": "United States", "answer_id": "Q30", "evidences": [["a", "b", "c"]]}
    assert read([{**HOTPOT, **more}])[0].answers == ("United States", "USA", "America")


def test_multihop_rag_gives_evidence_and_null_queries_have_no_answer(read) -> None:
    evidence = [{"title": "News", "fact": "It fell.", "url": "u"}]
    entries = [
        {"query": "What?", "answer": "It", "question_type": "inference_query",
         "evidence_list": evidence},
        {"query": "Why?", "answer": "Insufficient information.", "question_type": "null_query",
         "evidence_list": []},
    ]  # fmt: skip
    first, second = read(entries)
    assert first == Question("What?", ("It",), (Passage("News", "It fell."),), "inference_query")
    assert second.answers == ("Insufficient information.", *NO_ANSWER)
    assert second.type == "null_query"


def test_qmsum_and_squality_give_reference_summaries_as_answers(read) -> None:
    meeting = {
        "topic_list": [], "meeting_transcripts": [{"speaker": "A", "content": "Hi."}],
        "general_query_list": [{"query": "Summarise.", "answer": "All of it."}],
        "specific_query_list": [
            {"query": "A?", "answer": "B.", "relevant_text_span": [["0", "1"]]}
        ],
    }  # fmt: skip
    assert read(meeting) == [
        Question("Summarise.", ("All of it.",), type="general"),
        Question("A?", ("B.",), type="specific"),
    ]
    story = {
        "metadata": {"passage_id": "1"}, "document": "Once.",
        "questions": [{"question_text": "What is the plot?", "question_number": 1,
                       "responses": [{"response_text": "P."}, {"response_text": "Q."}]}],
    }  # fmt: skip
    assert read(json.dumps(story), "dev.jsonl") == [Question("What is the plot?", ("P.", "Q."))]


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        ("", "q.txt", "q.txt holds no question"),
        ("[]", "q.json", "q.json holds no question"),
        ('[{"question": "A?"}, {"answer": "B"}]', "q.json",
         r"entry 2: no question: a text .* question or question_text or query"),
        ('{"question": "A?"}\n{"question": ', "q.jsonl", "q.jsonl, line 2: not valid JSON"),
        ('[{"question": "A?"},]', "q.json", "q.json is not valid JSON"),
        ('{"question": "A?", "passages": "x"}', "q.jsonl", "line 1: passages must be a list"),
        ('{"question": "A?", "passages": [{}]}', "q.jsonl", "needs a title or a text"),
        ('{"question": "A?", "answers": [{"a": 1}]}', "q.jsonl", "answers must be a text or"),
        ('["A?"]', "q.json", "entry 1: an object with a question was expected"),
        ('[{"question": "A?", "supporting_facts": ["T"], "context": []}]', "q.json",
         "supporting_facts must hold pairs of title and sent_id"),
        ("question,answers\nA?,[broken\n", "q.csv", "line 2: a cell is not valid JSON"),
        ("answers\nA\n", "q.csv", "line 2: no question"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named_with_its_place(read, content, name, said) -> None:
    with pytest.raises(InputError, match=said):
        read(content, name)


def test_a_format_may_be_named_and_must_be_one_of_them(read, tmp_path) -> None:
    with pytest.raises(InputError, match="no format 'squad' of questions: choose one of own, mus"):
        read("[]", format="squad")
    with pytest.raises(InputError, match="entry 1: no question"):
        read([{"question": "A?"}], format="multihop-rag")
    (tmp_path / "latin.txt").write_bytes(b"Wer k\xf6nnte?")
    with pytest.raises(InputError, match="not UTF-8"):
        read_questions(tmp_path / "latin.txt")
    with pytest.raises(InputError, match=r"cannot read .*: No such file"):
        read_questions(tmp_path / "none.json")


def test_every_gold_passage_of_the_sample_corpus_stands_in_its_document() -> None:
    asked = read_questions(EXAMPLES / "questions.jsonl")
    options = reading_options(Settings())
    paths = [path for path in (EXAMPLES / "corpus").rglob("*") if path.is_file()]
    texts = [
        (f"{path.as_posix()}#{document.key}".rstrip("#"), " ".join(document.text.split()))
        for path in paths
        for document in read_file(path, options).documents
    ]
    assert len(asked) == 22
    assert {question.type for question in asked} == {
        "fact", "multi-hop", "yes/no", "comparison", "global", "unanswerable",
    }  # fmt: skip
    for question in asked:
        assert question.answers
        for passage in question.passages:
            named = [text for place, text in texts if place.endswith(f"/{passage.title}")]
            assert [passage.text in text for text in named] == [True], passage


@pytest.mark.shared_data
def test_the_public_question_files_are_read(shared_data) -> None:
    musique = read_questions(shared_data / "musique" / "questions.json")
    passages = {passage for question in musique for passage in question.passages}
    corpus = json.loads((shared_data / "musique" / "corpus.json").read_text())
    known = {(each["title"], " ".join(each["text"].split())) for each in corpus}
    assert (len(musique), sum(len(question.passages) for question in musique)) == (100, 237)
    assert {(passage.title, passage.text) for passage in passages} <= known
    assert musique[0].answers == ("G. Stanley Hall", "Stanley Hall")
    podcast = read_questions(shared_data / "podcast" / "questions.csv")
    assert len(podcast) == 125
    assert podcast[0].text.startswith("What recurring topics do tech leaders")
