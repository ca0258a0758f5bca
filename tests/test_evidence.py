"""Answers without a model: whole sentences, with what they lean on and what is asked for."""

import pyarrow as pa
import pytest
from query_fixture import publish, settings_for

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.prose import grade_of, read_prose
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query.citations import cite_report, numbered
from graphrag_pipeline.query.evidence.passages import _led_to
from graphrag_pipeline.query.evidence.sentences import Sentence, Window
from graphrag_pipeline.query.evidence.units import Unit
from graphrag_pipeline.query.memory import rows_in_memory as kept_rows
from graphrag_pipeline.query.question import AnalysedQuestion

SHIP = (
    "The Anna Marisol was a barquentine of the Brandvik Line. She sank off Svarthorn Island in "
    "November 1909. Her crew wintered in a hut. The owner of the barquentine wrote many letters. "
    "The barquentine carried 312 barrels. The barquentine came from the Gudrun Yard in 1884.\n\n"
    '>>> ship = Ship("Anna Marisol", barrels=312)  # barquentine sank\n\n'
    "barquentine: sank, wintered\n"
)


@pytest.fixture(scope="module")
def ship(tmp_path_factory):
    home = tmp_path_factory.mktemp("ship")
    publish(home, documents={"Ship": SHIP, "Hill": "Nobody climbed the hill in spring."})
    with QueryEngine(home, settings=settings_for(home)) as engine:
        yield engine


def points(answer):
    return [line[2:].rpartition(" [")[0] for line in answer.text.splitlines() if line[:2] == "- "]


def test_a_sentence_brings_those_it_leans_on(ship):
    (point,) = points(ship.answer("Her crew wintered in a hut", "bm25", sentences=1))
    assert point.startswith("The Anna Marisol was")
    assert point.endswith("in a hut.")


def test_a_place_cited_is_the_text_shown(ship):
    (cited,) = ship.answer("Her crew wintered in a hut", "bm25", sentences=1).citations
    assert SHIP[cited.start_char : cited.end_char] == cited.text


def test_context_brings_sentences_on_either_side_once(ship):
    found = points(ship.answer("Who wrote many letters?", "bm25", sentences=1, context=1))
    assert len(found) == 1
    assert found[0].startswith("Her crew")
    assert found[0].endswith("312 barrels.")


@pytest.mark.parametrize("most", [1, 2, 3])
def test_an_answer_has_as_many_sentences_as_are_asked_for(ship, most):
    assert len(points(ship.answer("barquentine letters barrels", "bm25", sentences=most))) == most


def test_sentences_that_meet_by_what_they_lean_on_are_one_point(ship):
    found = points(ship.answer("In 1909 the crew wintered; she sank", "bm25", sentences=3))
    whole = [point for point in found if "Svarthorn" in point or "wintered" in point]
    assert len(whole) == 1
    assert whole[0].startswith("The Anna Marisol was")
    assert "Her crew wintered in a hut." in whole[0]


def test_who_is_compared_is_told_of_and_who_only_speaks_is_not(tmp_path):
    texts = {
        "Halcyon": "The Halcyon is a ferry of 900 tons. The Halcyon is fast. The Halcyon is white.",
        "Petrel": "Some say that in her time the old Petrel was seldom late with her mail.",
        "Talk": "ADA BERG: Well, so who knows? PER LUND: I met Ada Berg, the mayor of Kelmouth.",
    }
    publish(tmp_path, documents=texts)
    with QueryEngine(tmp_path, settings=settings_for(tmp_path)) as engine:
        compared = points(
            engine.answer("Compare the ferry Halcyon and Petrel", "bm25", sentences=2)
        )
        mayor = points(engine.answer("Who is Ada Berg?", "bm25", sentences=1))
    assert [("Halcyon" in point, "Petrel" in point) for point in compared] == [
        (True, False),
        (False, True),
    ]
    assert mayor == ["PER LUND: I met Ada Berg, the mayor of Kelmouth."]


def test_code_and_headings_are_no_answer_where_sentences_are(ship):
    found = points(ship.answer("Which barquentine sank?", "bm25", sentences=9))
    assert found
    assert not any(">>>" in point or "sank, wintered" in point for point in found)


@pytest.mark.parametrize(
    ("question", "holds"),
    [("When was the barquentine launched?", "1884"), ("How many had the barquentine?", "312")],
)
def test_a_question_for_a_time_or_number_prefers_sentences_with_one(ship, question, holds):
    assert holds in points(ship.answer(question, "bm25"))[0]


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("When did she sink?", "time"),
        ("In what year did the man who owned her die?", "time"),
        ("How many barrels were there when she sank?", "number"),
        ("What percentage was lost?", "number"),
        ("By whom was it written?", "person"),
        ("In which city did he live?", "place"),
        ("Wo wohnte er?", "place"),
        ("这艘船是什么时候沉没的？", "time"),
        ("What is a barquentine?", ""),
        ("Whenever it rains", ""),
    ],
)
def test_a_question_says_what_it_asks_for(question, kind):
    assert AnalysedQuestion(question).asks_for == kind


@pytest.mark.parametrize("method", ["bm25", "global"])
def test_an_answer_is_the_same_where_texts_are_too_large_to_keep(ship, method, monkeypatch):
    question = "Which barquentine wintered in 1909?"
    kept = ship.answer(question, method, context=1)
    monkeypatch.setattr(kept_rows, "MOST_BYTES", 0)
    home = ship.index.home
    with QueryEngine(home, settings=settings_for(home)) as engine:
        stored = engine.answer(question, method, context=1)
    assert stored.citations
    assert (stored.text, stored.citations) == (kept.text, kept.citations)


@pytest.mark.parametrize("options", [{"sentences": 0}, {"context": -1}, {"sentences": "5"}])
def test_what_is_no_number_of_sentences_is_refused(ship, options):
    with pytest.raises(InputError, match="must be a whole number from"):
        ship.answer("Who?", "bm25", **options)


def test_what_every_page_says_comes_after_what_one_says_and_still_answers(tmp_path):
    footer = "The museum of Svarthorn keeps the log of every whaler."
    says = {"Log": "The log of the whaler Solveig is kept in a safe."}
    says |= {f"Page {n}": f"Ship number {n} was built of oak." for n in range(3)}
    publish(tmp_path, documents={title: f"{text} {footer}" for title, text in says.items()})
    with QueryEngine(tmp_path, settings=settings_for(tmp_path)) as engine:
        first, *_ = points(engine.answer("Which museum keeps the log of the whaler?", "bm25"))
        assert first.startswith("The log of the whaler Solveig")
        assert footer in points(engine.answer("museum of Svarthorn", "bm25"))


def test_what_is_remembered_reads_the_same_and_is_let_go_in_time():
    texts = [f"{start} sold {n} boats in the harbour." for n in range(9) for start in ("He", "Ann")]
    texts += [*texts[:5], "x = f(y)", ""]
    table = read_prose(texts)
    readings = list(zip(table["grade"].to_pylist(), table["leans"].to_pylist(), strict=True))
    for part in (slice(None), slice(3, 12), slice(None)):
        assert list(map(grade_of, texts[part])) == readings[part]
    assert grade_of.cache_info().maxsize == 1 << 14


def test_rows_taken_again_are_as_they_were_read_and_few_are_remembered(monkeypatch):
    monkeypatch.setattr(kept_rows, "ROWS_REMEMBERED", 3)
    read = [{"id": f"{n}", "text": f"Text {n}", "size": n} for n in range(9)]
    rows = kept_rows.KeptRows(pa.Table.from_pylist(read))
    for wanted_rows in ([4, 1, 4], [1, 2], [], range(9), [8, 0, 1], [1, 8]):
        taken = rows.take(list(wanted_rows))
        assert taken == [read[n] for n in wanted_rows]
        for row in taken:
            row["text"] = "changed by who took it"
        assert len(rows._taken) <= 3


def test_rows_with_lists_are_not_shared():
    rows = kept_rows.KeptRows(pa.Table.from_pylist([{"id": "a", "names": ["x"]}]))
    rows.take([0])[0]["names"].append("y")
    assert rows.take([0]) == [{"id": "a", "names": ["x"]}]


def test_a_sentence_leads_to_no_document_that_the_question_names_itself() -> None:
    titles = {"a": "Anna Marisol", "b": "Gudrun Yard (Bergen)"}
    quotes = ("The Anna Marisol was built at the Gudrun Yard.", "It was owned by Ole Moen.")
    units = [
        Unit(
            Sentence(rank, Window({"document_id": key, "title": title}, {}), 0, 0, 0, 0, "", quote)
        )
        for rank, ((key, title), quote) in enumerate(zip(titles.items(), quotes, strict=True))
    ]
    for question, led in (
        ("Who owned the yard that built the Anna Marisol?", {"b"}),
        ("Who owned the Gudrun Yard that built the Anna Marisol?", set()),
    ):
        assert _led_to(AnalysedQuestion.of(question), units, [1.0, 0.5]) == led


def test_two_findings_of_a_report_without_a_place_are_two_citations() -> None:
    said = [cite_report("r", "Inns", text) for text in ("It burnt.", "It was sold.", "It burnt.")]
    assert [citation.number for citation in numbered(said)] == [1, 2, 1]


def test_what_is_said_within_a_message_stands_with_who_says_it_and_when(tmp_path):
    chat = (
        "[2024-03-12 09:16] Jonas Brandt: I booked the blue room.\n"
        "[2024-03-12 10:02] Miriam Voss: The projector broke yesterday.\n"
        "We asked the workshop on Monday. The repair costs 240 euros.\n"
        "[2024-03-12 10:05] Jonas Brandt: I take the one from the library.\n"
    )
    publish(tmp_path, documents={"Chat": chat, "Notes": "Miriam repairs the lamp."})
    with QueryEngine(tmp_path, settings=settings_for(tmp_path)) as engine:
        answer = engine.answer("What does the repair cost in euros?", "bm25", sentences=1)
        first = engine.answer("Who booked the blue room?", "bm25", sentences=1)
    assert points(answer) == ["[2024-03-12 10:02] Miriam Voss: The repair costs 240 euros."]
    assert answer.citations[0].text == "The repair costs 240 euros."
    assert points(first) == ["[2024-03-12 09:16] Jonas Brandt: I booked the blue room."]


def test_a_message_of_a_chat_is_quoted_without_those_after_it_but_with_the_question_before(
    tmp_path,
):
    chat = (
        "[2024-03-12 09:16] Jonas Brandt: I booked the blue room.\n"
        "[2024-03-12 10:02] Miriam Voss: Fine with me.\n"
        "[2024-03-12 10:03] Jonas Brandt: Who has the lamp?\n"
        "[2024-03-12 10:04] Miriam Voss: Runa took it home. She brings it on Monday.\n"
        "[2024-03-12 10:05] Jonas Brandt: Perfect, then all is ready.\n"
    )
    publish(tmp_path, documents={"Chat": chat})
    with QueryEngine(tmp_path, settings=settings_for(tmp_path)) as engine:
        booked = points(engine.answer("Who booked the blue room?", "bm25"))
        lamp = points(engine.answer("Who has the lamp?", "bm25"))
    assert booked[0] == "[2024-03-12 09:16] Jonas Brandt: I booked the blue room."
    assert lamp[0] == (
        "[2024-03-12 10:03] Jonas Brandt: Who has the lamp? "
        "[2024-03-12 10:04] Miriam Voss: Runa took it home. She brings it on Monday."
    )


def test_a_number_in_brackets_before_a_name_begins_no_message(tmp_path):
    notes = (
        "[12345] Petersen: The pier was drawn by Ole Brandt. The toll was four pence in those "
        "days. The council sold the pier to a brewery, which let it fall into the sea."
    )
    publish(tmp_path, documents={"Notes": notes})
    with QueryEngine(tmp_path, settings=settings_for(tmp_path)) as engine:
        answer = engine.answer("What was the toll in pence?", "bm25", sentences=1)
    assert points(answer) == ["The toll was four pence in those days."]


def test_what_only_its_title_names_answers_where_no_text_does(tmp_path):
    texts = {"Offer for the roof": "We can go down to 48,500 euro.", "Hill": "Nobody climbed it."}
    publish(tmp_path, documents=texts)
    with QueryEngine(tmp_path, settings=settings_for(tmp_path)) as engine:
        roof = engine.answer("What is said about the roof?", "basic", where={"title": "*roof"})
        assert points(roof) == ["We can go down to 48,500 euro."]
        assert not engine.answer("What of elephants?", "basic").citations


@pytest.mark.parametrize(
    "question",
    ["Combien coûte la chaudière ?", "Quel est le dernier prix de la chaudière aujourd'hui ?"],
)
def test_what_is_asked_by_number_or_time_is_found_by_words_with_accents(tmp_path, question):
    text = "Le conseil décide de remplacer la chaudière pour 18 400 euros. Marc est absent."
    publish(tmp_path, documents={"Note": text, "Autre": "Le conseil se réunit en juin."})
    with QueryEngine(tmp_path, settings=settings_for(tmp_path)) as engine:
        assert "18 400 euros" in points(engine.answer(question, "bm25", sentences=1))[0]
