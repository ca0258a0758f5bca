"""Question files: our own formats, those of the papers' data sets, and what cannot be read."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from graphrag_evaluation.metrics.answers import NO_ANSWER
from graphrag_evaluation.questions.datasets import (
    read_questions,
    write_documents,
    write_questions,
)
from graphrag_evaluation.questions.natural_questions import page_of
from graphrag_evaluation.questions.question import Passage, Question

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.ingest.documents import reading_options
from graphrag_pipeline.ingest.reading import read_file

EXAMPLES = Path(__file__).parents[3] / "examples"


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
        Question("Summarise.", ("All of it.",), type="general", document="questions"),
        Question("A?", ("B.",), type="specific", document="questions"),
    ]
    story = {
        "metadata": {"passage_id": "1"}, "document": "Once.",
        "questions": [{"question_text": "What is the plot?", "question_number": 1,
                       "responses": [{"response_text": "P."}, {"response_text": "Q."}]}],
    }  # fmt: skip
    assert read(json.dumps(story), "dev.jsonl") == [
        Question("What is the plot?", ("P.", "Q."), document="1")
    ]


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
        ('question\nA?\n"B?\nC?\n', "q.csv", "line 3: no row of a table: unexpected end"),
        ('question\n"A\n?"\n"B" and C?\n', "q.csv", "line 4: no row of a table: ',' expected"),
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


# The page of the toy example in the documentation of Natural Questions, cut short.
PAGE = (
    "<H1> Google inc . </H1> <P> Google was founded in 1998 by Larry and Sergey </P> "
    "<Ul> <Li> search </Li> </Ul>"
)
ANNOTATION = {
    "long_answer": {"start_token": 5, "end_token": 15},
    "short_answers": [
        {"start_token": 12, "end_token": 13},
        {"start_token": 14, "end_token": 15},
    ],
    "yes_no_answer": "NONE",
}
NO_ONE = {"long_answer": {"start_token": -1, "end_token": -1}, "short_answers": []}
GOOGLE = {
    "example_id": "797803103760793766",
    "question_text": "who founded google",
    "document_url": "https://en.wikipedia.org//w/index.php?title=Google_Inc.&amp;oldid=1",
    "annotations": [ANNOTATION, NO_ONE, {**NO_ONE, "yes_no_answer": "YES"}],
}
FOUNDED = Question(
    "who founded google",
    ("Larry, Sergey", "yes"),
    (Passage(text="Google was founded in 1998 by Larry and Sergey"),),
    document="Google Inc.",
)


def test_natural_questions_are_read_simplified_or_as_tokens_also_packed(read, tmp_path) -> None:
    simplified = {**GOOGLE, "document_text": PAGE}
    assert read(f"{json.dumps(simplified)}\n", "nq-dev.jsonl") == [FOUNDED]
    tokens = [{"token": t, "html_token": t.startswith("<")} for t in PAGE.split(" ")]
    packed = tmp_path / "nq-dev-00.jsonl.gz"
    packed.write_bytes(gzip.compress(json.dumps({**GOOGLE, "document_tokens": tokens}).encode()))
    assert read_questions(packed) == [FOUNDED]
    assert page_of(simplified) == page_of({**GOOGLE, "document_tokens": tokens})
    assert page_of(simplified) == (
        "Google Inc.",
        "Google inc .\nGoogle was founded in 1998 by Larry and Sergey\nsearch",
    )
    packed.write_bytes(packed.read_bytes()[:40])
    with pytest.raises(InputError, match=r"cannot read .*nq-dev-00.jsonl.gz: .*ended"):
        read_questions(packed)
    beyond = {**simplified, "annotations": [{"long_answer": {"start_token": 5, "end_token": 99}}]}
    with pytest.raises(InputError, match="line 2: an answer from token 5 to 99 is not in the page"):
        read(f"{json.dumps(simplified)}\n{json.dumps(beyond)}", "nq.jsonl")
    with pytest.raises(InputError, match="line 1: no page: document_text or document_tokens"):
        read(json.dumps(GOOGLE), "nq.jsonl", "nq")


NOVEL = {
    "Aspect": "times", "Complexity": "mh", "Question": "How many letters?",
    "Options": {"A": "11", "B": "9", "C": "12", "D": "10"},
}  # fmt: skip


def test_novelqa_shows_options_and_takes_the_text_of_the_gold_one_in_both_its_layouts(read) -> None:
    text = "How many letters? Options: A. 11; B. 9; C. 12; D. 10"
    wanted = Question(text, ("9",), type="mh times", document="questions")
    assert read({"Q0148": {**NOVEL, "Gold": "B"}, "Q0149": {**NOVEL, "Answer": "9"}}) == [wanted]
    earlier = [{**NOVEL, "QID": "Q0148", "Complex": "mh", "Answer": "B"}]
    assert read(earlier, "Frankenstein.json") == [replace(wanted, document="Frankenstein")]
    assert read({"Q0148": NOVEL})[0].answers == ()
    assert read({"Q0148": {**NOVEL, "Options": {}}})[0].text == "How many letters?"
    open_ended = read({"Q0148": {**NOVEL, "Gold": "B"}}, format="novelqa-generative")
    assert open_ended == [replace(wanted, text="How many letters?")]
    with pytest.raises(InputError, match=r"entry Q0002: no question: .* field Question"):
        read({"Q0001": NOVEL, "Q0002": {**NOVEL, "Question": ""}})
    with pytest.raises(InputError, match="entry Q1: Options must hold objects"):
        read({"Q1": {**NOVEL, "Options": ["11"]}})
    with pytest.raises(InputError, match="entry Q1: Options are A to D, and one is called 1"):
        read({"Q1": {**NOVEL, "Options": {"1": "11"}}})


def test_a_folder_of_books_is_read_book_by_book(tmp_path) -> None:
    folder = tmp_path / "Data" / "PublicDomain"
    folder.mkdir(parents=True)
    (folder / "B01.json").write_text(json.dumps({"Q2": NOVEL}))
    (folder / "B00.json").write_text(json.dumps({"Q1": NOVEL}))
    (tmp_path / "Data" / "bookmeta.json").write_text(json.dumps({"B00": {"title": "Emma"}}))
    assert [each.document for each in read_questions(tmp_path / "Data")] == ["B00", "B01"]
    with pytest.raises(InputError, match=r"holds no \.json"):
        read_questions(_made(tmp_path / "empty"))


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_a_file_of_no_known_form_is_refused_with_the_forms_there_are(read) -> None:
    with pytest.raises(InputError, match=r"no question: .*of which there are own, musique, "):
        read([{"Q": "How many?", "A": "9"}])
    with pytest.raises(InputError, match=r"answers in gold_label: .*of which there are own, "):
        read([{"question": "How many?", "gold_label": "9"}])


def test_odsum_takes_every_summary_and_the_meetings(read) -> None:
    meeting = {"query": "Why so?", "answer": "Thus.", "meetings_list": ["ES2011d", "TS3005b"]}
    gold = (Passage("ES2011d.txt"), Passage("TS3005b.txt"))
    assert read({"0": meeting}, "queries.json") == [Question("Why so?", ("Thus.",), gold)]
    story = {
        "question_text": "What is the plot?", "question_number": 1, "title": "EXCHANGE",
        "responses": [{"response_text": "P."}, {"response_text": "Q."}],
    }  # fmt: skip
    wanted = Question("What is the plot?", ("P.", "Q."), (Passage("EXCHANGE"),))
    # The file's name says lines, and it holds a list.
    assert read([story], "queries.jsonl") == [wanted]
    oracle = {"Query": "Who?", "Article": "...", "Summary_1": "A.", "Summary_2": "B."}
    assert read([oracle], "dev.json") == [Question("Who?", ("A.", "B."))]


def test_a_line_of_odsums_stories_has_all_questions_of_a_story(read) -> None:
    def story(title: str) -> list[dict[str, Any]]:
        said = [{"worker_id": str(n), "response_text": f"{title} {n}."} for n in range(4)]
        return [
            {"question_text": f"{n}, {title}?", "question_number": n, "responses": said,
             "title": title}
            for n in (1, 2)
        ]  # fmt: skip

    lines = "".join(json.dumps(story(title)) + "\n" for title in ("ONE", "TWO"))
    questions = read(lines, "queries.jsonl")
    assert [q.text for q in questions] == ["1, ONE?", "2, ONE?", "1, TWO?", "2, TWO?"]
    assert all(len(q.answers) == 4 for q in questions)
    broken = json.dumps([{"question_text": "", "responses": []}])
    with pytest.raises(InputError, match="line 2, 1: no question"):
        read(lines.splitlines()[0] + "\n" + broken, "queries.jsonl")


def test_narrativeqa_has_both_answers_and_its_document_in_either_form(read) -> None:
    table = (
        "document_id,set,question,answer1,answer2,question_tokenized,answer1_tokenized,"
        "answer2_tokenized\n0025577,train,Who is Mark?,He hunts.,A hunter.,x,y,z\n"
    )
    wanted = Question("Who is Mark?", ("He hunts.", "A hunter."), document="0025577", type="train")
    assert read(table, "qaps.csv") == [wanted]
    as_object = {
        "document": {"id": "0025577", "kind": "movie", "summary": {"text": "Mark hunts."}},
        "question": {"text": "Who is Mark?", "tokens": ["Who"]},
        "answers": [{"text": "He hunts."}, {"text": "A hunter."}],
    }
    assert read([as_object]) == [replace(wanted, type="")]


def test_ultradomain_and_rag_qa_arena_are_read_as_published(read, tmp_path: Path) -> None:
    book = {
        "input": "What is a hive?", "answers": ["A house of bees."], "context": "Bees live so.",
        "length": 4, "context_id": "f3", "_id": "a1", "label": "agriculture",
        "meta": {"title": "Bees", "authors": "A. B."},
    }  # fmt: skip
    wanted = Question("What is a hive?", ("A house of bees.",), type="agriculture", document="f3")
    assert read([book]) == [wanted]
    arena = {
        "qid": "science-search-test-512", "question": "can it be negative?", "answer": "No. \nYes.",
        "citation_numbers": [[1], [2]], "faithful_answer_w_citation": "No. [1]\nYes. [2]",
        "gold_doc_ids": [1534523, 1542657],
    }  # fmt: skip
    gold = (Passage("1534523"), Passage("1542657"))
    assert read([arena]) == [Question("can it be negative?", ("No. Yes.",), gold, "science")]
    file = tmp_path / "agriculture.jsonl"
    file.write_text(json.dumps(book))
    (written,) = write_documents(file, tmp_path / "out")
    assert (written.name, written.read_text()) == ("f3.txt", "Bees live so.")


def test_a_form_that_is_not_known_is_refused_and_never_read_without_its_answers(read) -> None:
    for name in ("gold_answer", "reference", "answer_text", "target"):
        with pytest.raises(InputError, match=f"its answers in {name}: .*narrativeqa"):
            read([{"question": "Who?", name: "She."}])
    assert read([{"question": "Who?", "note": "none"}]) == [Question("Who?")]
