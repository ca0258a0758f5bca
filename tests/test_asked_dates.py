"""Questions on documents of a time, and on the newest of several versions."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from asked_files import index_asked

from benchmarks.answers import passages_of
from graphrag_pipeline import Index
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query.asked_dates import asked_bounds, asked_periods

TODAY = date(2024, 3, 15)
LETTERS = {
    "letters/1948.md": ("The first letter", "1948-04-02", "The board built a harbour at Sarn."),
    "letters/1955.md": ("Note to the mayor", "1955-04-03", "The board built the harbour of Sund."),
    "letters/1961.md": ("Word from the pier", "1961", "The board built the harbour of Dunholm."),
    "letters/1975.md": ("A last report", "1975-01-31", "The board built the harbour of Lund."),
    "policy/2019/remote.md": ("Remote work v1", "2019-03-01", "Work one day from home."),
    "policy/2023/remote.md": ("Remote work v2 draft", "2023-09-12", "Work three days from home."),
    "minutes/march.md": ("Minutes of March 2022", "2022-03-09", "The pump is to be mended."),
    "minutes/april.md": ("Minutes of April 2022", "2022-04-06", "The pump is mended."),
    "undated.md": ("The harbours", "", "The board built the harbour of Nowhere."),
}  # fmt: skip


def test_a_time_is_read_from_a_question():
    for question, expected in {
        "What happened before 1960?": {"<": "1959"},
        "Which mails came since May?": {">": "2023-05"},
        "Which mails came since February?": {">": "2024-02"},
        "Who left after 3 May 2021?": {">": "2021-05-04"},
        "Who left before 1 March 2020?": {"<": "2020-02-29"},
        "Who left before January 2020?": {"<": "2019-12"},
        "Who led between 2018 and 2020?": {">": "2018", "<": "2020"},
        "Who led from January 2019 to March 2020?": {">": "2019-01", "<": "2020-03"},
        "What came after December 25, 2020, and until 2021?": {">": "2020-12-26", "<": "2021"},
        "What was paid in the last two months?": {">": "2024-01-14"},
        "What changed since yesterday?": {">": "2024-03-14"},
        "Who wrote yesterday?": {">": "2024-03-14", "<": "2024-03-14"},
        "What was decided last year in Bergen?": {">": "2023", "<": "2023"},
        "What was paid last month?": {">": "2024-02", "<": "2024-02"},
        "What did we decide last year, and why?": {">": "2023", "<": "2023"},
        "Which letters came this week?": {">": "2024-03-11", "<": "2024-03-17"},
        "Was wurde letzte Woche beschlossen?": {">": "2024-03-04", "<": "2024-03-10"},
        "Was wurde in den letzten drei Jahren gebaut?": {">": "2021-03-15"},
        "Was kam seit dem letzten Jahr?": {">": "2023"},
        "Qui a écrit le mois dernier ?": {">": "2024-02", "<": "2024-02"},
        "Qu'a-t-on payé ces trois derniers mois ?": {">": "2023-12-15"},
        "Qui a écrit avant l'année dernière ?": {"<": "2022"},
        "¿Qué se decidió el año pasado?": {">": "2023", "<": "2023"},
        "Che cosa fu pagato quest'anno?": {">": "2024", "<": "2024"},
        "Wat is er vorige maand betaald?": {">": "2024-02", "<": "2024-02"},
        "Who sailed in the last year of the war?": {},
        "How long did the last days take?": {},
        "Was wurde seit dem Jahr 2015 beschlossen?": {">": "2015"},
        "Was geschah vor dem 3. Mai 2019?": {"<": "2019-05-02"},
        "Qu'a-t-on décidé depuis l'année 2015 ?": {">": "2015"},
        "¿Qué pasó después de mayo de 2020?": {">": "2020-06"},
        "Che cosa fu deciso prima del 1990?": {"<": "1989"},
        "Wat gebeurde er vóór 12.5.2019?": {"<": "2019-05-11"},
        "Who came before 300 others, at the latest?": {},
        "Which prices rose after 2.5 years?": {},
        "Who may come after Christmas?": {},
    }.items():
        assert asked_bounds(question, TODAY) == expected, question


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dates")
    for name, (title, when, text) in LETTERS.items():
        path = folder / "documents" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        head = f"title: {title}\n" + (f"date: {when}\n" if when else "")
        access = "staff" if name == "policy/2023/remote.md" else "public"
        path.write_text(f"---\n{head}labels: [{access}]\n---\n{text}\n")
    settings = Settings.exactly(
        {"home": str(folder / "home"), 
         "access": {"mode": "filtered", "metadata": "labels"}}
    )  # fmt: skip
    Index(settings).update(folder / "documents")
    return folder / "home"


def found(home: Path, question: str, dates: bool = True, **options: object) -> set[str]:
    settings = Settings.exactly({"home": str(home), "query": {"dates": dates}})
    labels = options.pop("labels", None)
    with QueryEngine(home, settings=settings, labels=labels) as engine:
        places = engine.retrieve(question, "bm25", **options).citations
    return {place.uri.partition("documents/")[2] for place in places}


@pytest.mark.parametrize(
    ("question", "period"),
    [
        ("Che cosa vale il 1° marzo 2024?", "2024-03-01"),
        ("Что решили 14 марта 2024 года?", "2024-03-14"),
        ("O que foi decidido em 3 de fevereiro de 2024?", "2024-02-03"),
    ],
)
def test_a_day_is_read_as_its_language_writes_it(question: str, period: str):
    assert [when for _, when in asked_periods(question, TODAY)] == [period]


def test_a_question_of_a_time_is_asked_of_documents_of_that_time(home: Path):
    built = "What harbour was built by the board"
    assert found(home, f"{built} before 1960?") == {"letters/1948.md", "letters/1955.md"}
    assert found(home, f"{built} after 1955?") == {"letters/1961.md", "letters/1975.md"}
    assert found(home, f"{built} until May 1961?") >= {"letters/1961.md"}
    assert "undated.md" in found(home, f"{built}?")


def test_the_latest_version_is_the_newest_of_those_that_differ_by_number_or_month(home: Path):
    days = "How many days a week may one work from home"
    assert found(home, f"{days}?") == {"policy/2019/remote.md", "policy/2023/remote.md"}
    assert found(home, f"{days} by the latest version?") == {"policy/2023/remote.md"}
    assert found(home, f"{days} by the latest version before 2020?") == {"policy/2019/remote.md"}
    assert found(home, "Is the pump mended, by the most recent minutes?") == {"minutes/april.md"}
    assert "undated.md" in found(home, "Which harbour is the latest that the board built?")


def test_a_newer_version_that_one_may_not_see_hides_no_older_one(home: Path):
    question = "How many days a week may one work from home by the latest version?"
    assert found(home, question, labels=["public"]) == {"policy/2019/remote.md"}
    assert found(home, question, labels=["staff"]) == {"policy/2023/remote.md"}


def test_what_is_of_another_time_comes_after_where_few_documents_have_one(
    tmp_path_factory: pytest.TempPathFactory,
):
    chosen = {
        "march.md": "---\ndate: 2024-03-11\n---\nThe council chose Tuva Rask as treasurer.\n",
        "may.md": "---\ndate: 2024-05-20\n---\nThe council chose Nils Aker as treasurer.\n",
        "old.md": "# Old\n\nIn 1988 the council chose Pia Holt as treasurer.\n",
    }
    notes = {f"note-{n}.md": f"# Note {n}\n\nThe pump has {n} bolts.\n" for n in range(9)}
    engines = index_asked(chosen | notes, tmp_path_factory)
    engine = next(engines)
    asked = "Who was chosen as treasurer"
    for question, named in {
        f"{asked} before April 2024?": "Tuva Rask",
        f"{asked} after April 2024?": "Nils Aker",
        f"{asked} before 1990?": "Pia Holt",
    }.items():
        assert named in passages_of(engine.answer(question, "bm25").text)[0], question


def test_a_time_of_no_document_is_said_and_all_are_looked_at(home: Path):
    question = "What harbour was built by the board since 2024?"
    with QueryEngine(home, settings=Settings.exactly({"home": str(home)})) as engine:
        found_at_all = engine.retrieve(question, "bm25")
    assert len(found_at_all.citations) >= 4
    assert "no document has date >= '2024': all are looked at" in found_at_all.steps


def test_what_is_asked_for_expressly_and_a_setting_come_before_words(home: Path):
    question = "What harbour was built by the board before 1960?"
    assert found(home, question, where={"date>": "1960"}) == {"letters/1961.md", "letters/1975.md"}
    within = found(home, question, where={"uri": "*1948*"})
    assert within == {"letters/1948.md"}
    assert len(found(home, question, dates=False)) >= 5


def test_words_of_time_do_nothing_where_few_documents_have_a_date(tmp_path: Path):
    (tmp_path / "documents").mkdir()
    for number, head in enumerate(["", "", "---\ndate: 1950-01-01\n---\n"]):
        text = f"{head}The board built harbour {number}."
        (tmp_path / "documents" / f"{number}.md").write_text(text)
    Index(Settings.exactly({"home": str(tmp_path / "home")})).update(tmp_path / "documents")
    assert len(found(tmp_path / "home", "What harbour did the board build before 1960?")) == 3
