"""Questions for when, where, how much and who, answered by the field of a record that says it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from asked_files import index_asked

from benchmarks.answers import passages_of
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query.asked_dates import asked_months

EVENTS = """BEGIN:VCALENDAR
BEGIN:VEVENT
SUMMARY:Boat show
DTSTART;VALUE=DATE:20230304
DTEND;VALUE=DATE:20230306
LOCATION:Hall 4
ATTENDEE;CN=Ole Brandt:mailto:ole@x.org
ORGANIZER;CN=Sofie Brun:mailto:sofie@x.org
DESCRIPTION:When the boat show opens\\, all boats of the show are where last year's show was.
END:VEVENT
BEGIN:VEVENT
SUMMARY:Rowing lesson
DTSTART;TZID=Europe/Oslo:20230407T183000
DURATION:PT1H30M
RRULE:FREQ=MONTHLY;BYDAY=1FR
LOCATION:Boathouse
DESCRIPTION:The rowing lesson is held however often it rains\\, and lasts as long as you like.
END:VEVENT
END:VCALENDAR
"""
TESTS = "Test,Unit,Reference,Result\nFerritin,ng/ml,15-150,9\nThyrotropin,mU/l,0.4-4.0,2.4\n"
CUSTOMERS = """Opportunity,Account,Owner,Stage,Notes
Dry dock,Elvik Lines,Ulla Storm,Won,Elvik Lines is responsible for the dry dock itself
New radar,Hellas Lines,Nikos Pappas,Lost,Hellas Lines wants a radar
"""
BILLS = """No,Supplier,Bill date,Due date,Amount,Paid on
B-1,Bolt AG,2023-09-29,2023-10-29,420.00,2023-11-02
B-2,Bolt AG,2023-10-31,2023-11-30,99.50,2023-12-01
B-3,Karlsen GmbH,2023-10-04,2023-11-04,377.00,2023-11-05
"""
CONTRACT = (
    "Contract of storage\n\nBetween Ida Moen and Per Lund.\n\n"
    "Storage begins on 2 May 2022 and ends on 30 June 2027. The fee is due in spring. Either side "
    "may end the storage with two weeks' notice. The end of the storage is told in writing."
)
MEETING = (
    "Minutes of the rowing club\n\nDate: 4 May 2023\nPresent: Ole Brandt, Runa Vik\n\n"
    "1. The club asked who attended the regatta. Runa Vik said that few rowers attended."
)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryEngine]:
    files = {
        **{"show.ics": EVENTS, "deals.csv": CUSTOMERS, "bills.csv": BILLS, "lab.csv": TESTS},
        **{"contract.txt": CONTRACT, "minutes.txt": MEETING},
    }
    yield from index_asked(files, tmp_path_factory)


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("When is the boat show?", "Boat show — starts: 2023-03-04"),
        ("When does the boat show take place?", "Boat show — starts: 2023-03-04"),
        ("When does the boat show end?", "Boat show — ends: 2023-03-05"),
        ("Where is the boat show?", "Boat show — location: Hall 4"),
        ("When is the rowing lesson?", "Rowing lesson — starts: 2023-04-07T18:30:00"),
        ("How long is the rowing lesson?", "Rowing lesson — lasts: 1 hour 30 minutes"),
        (
            "How often is the rowing lesson?",
            "Rowing lesson — repeats: every month on the first Friday",
        ),
        ("Who is responsible for Elvik Lines?", "Dry dock — Owner: Ulla Storm"),
        ("Who is in charge of the new radar?", "New radar — Owner: Nikos Pappas"),
        ("How much was the October bill of Bolt?", "Bills: B-2 — Amount: 99.50"),
        ("When was the October bill of Bolt paid?", "Bills: B-2 — Paid on: 2023-12-01"),
        ("Who organises the boat show?", "Boat show — organizer: Sofie Brun"),
        ("What is the ferritin?", "Ferritin — Result: 9"),
        ("What is thyrotropin?", "Thyrotropin — Result: 2.4"),
        ("Who attended the rowing club?", "Minutes — Present: Ole Brandt, Runa Vik"),
        (
            "When does the storage end?",
            "Storage begins on 2 May 2022 and ends on 30 June 2027.",
        ),
    ],
)
def test_the_field_of_the_kind_asked_for_stands_first(
    asked: QueryEngine, question: str, told: str
) -> None:
    assert passages_of(asked.answer(question).text)[0].startswith(told)


def test_a_field_of_the_kind_answers_for_its_own_record_alone(asked: QueryEngine) -> None:
    """Who asks when a lesson of sailing is gets no time of another lesson before what says it."""
    best = passages_of(asked.answer("When did the club ask who attended the regatta?").text)[0]
    assert "regatta" in best


def test_a_month_counts_with_a_capital_and_without_a_year() -> None:
    assert asked_months("When was the May bill paid, that may be late?") == [("may", "-05-")]
    assert asked_months("What may I pay in May 2023?") == []
    assert asked_months("May I pay?") == []
