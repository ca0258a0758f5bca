"""What all methods find is compared with what was recorded, and the docs show the record."""

from dataclasses import replace

from benchmarks.chats import chats
from benchmarks.method_record import PAGE, PICTURE, Recorded, moved, picture, read_record, shown
from benchmarks.methods import Found, recall
from benchmarks.question_sets import Asked, sample

ROW = Recorded(
    recall={5: 0.5},
    all_at_5=0.5,
    holds_answer=None,
    milliseconds=1.0,
    answer_milliseconds=0.0,
    recall_at_5=[1.0, 0.0] * 20,
    tokens=[100, 200] * 20,
)


def test_the_page_shows_the_table_and_the_picture_of_the_record():
    recorded = read_record()
    assert recorded
    assert shown(recorded) in PAGE.read_text("utf-8")
    assert picture(recorded) == PICTURE.read_text("utf-8")


def test_what_is_as_recorded_has_not_moved():
    slower = replace(ROW, milliseconds=9.0)
    one_less = replace(ROW, recall_at_5=[0.5, *ROW.recall_at_5[1:]])
    rounded = replace(ROW, recall_at_5=[round(share - 1e-5, 5) for share in ROW.recall_at_5])
    run = {"ppr": slower, "bm25": one_less, "lazy": rounded}
    assert moved({"a": run}, {"a": dict.fromkeys(run, ROW)}) == []


def test_what_moves_by_more_than_chance_is_said():
    worse = replace(ROW, recall_at_5=[0.5, 0.0] * 20)
    longer = replace(ROW, tokens=[110, 220] * 20)
    run = {"local": worse, "ppr": longer, "new": ROW}
    lines = moved({"a": run, "b": {}}, {"a": {"local": ROW, "ppr": ROW}})
    assert ["recall@5 of local was 0.5 and is 0.25" in lines[0], "tokens of ppr" in lines[1]] == [
        True,
        True,
    ]
    assert [line.partition(": ")[0] for line in lines] == ["a", "a", "a", "b"]


def test_recall_is_the_share_of_gold_documents_among_the_first():
    asked = [Asked("?", frozenset("ab"))]
    found = [Found(["c", "a", "b"], 0, 0.0, None, 0.0)]
    assert [recall(asked, found, k) for k in (1, 2, 3)] == [[0.0], [0.5], [1.0]]


def test_questions_on_chats_are_answered_in_their_gold_files():
    made = chats()
    assert made == chats()
    assert made != chats(seed=1)
    for question, gold in made.questions:
        texts = " ".join(made.files[name] for name in gold)
        _, is_known, relation = question.removesuffix("?").partition("'s ")
        if is_known:
            assert len(gold) == 2
            assert f"my {relation.split()[0]}" in texts
        else:
            assert any(word in texts for word in question[1:-1].split() if word[0].isupper())


def test_the_sample_corpus_has_the_gold_documents_of_its_questions(tmp_path):
    asked = sample()
    assert len(asked.questions) > 15
    asked.write(tmp_path)
    names = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    files = {key.partition("#")[0] for one in asked.questions for key in one.gold}
    assert files <= names
