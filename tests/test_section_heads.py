"""Questions that say a heading, a length of time, how often, a column: a handbook of a company."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from asked_files import index_asked

from benchmarks.answers import passages_of
from graphrag_pipeline.query import QueryEngine

FILES = {
    "leave.md": """# Leave and allowances

## Sabbatical

Every third year employees may take a 6-week paid sabbatical. Tell your crew early.

If you resign with an unused sabbatical, it is paid out where it was earned within 12 months.

## &nbsp; **[Shanties](songs.md)**

The whole yard gathers on the slip twice a year. We meet in another harbour each time.

Shanties last 1 week. Most people come on a Sunday.

## Why we have tide tutors

A tide tutor was missed by those who came in May.

## Tide tutors

A tide tutor is a colleague who shows a new one around the yard in the first month.

## How long does a warning typically last?

Warnings are written with care. They stay in the file for 8 weeks.

## How long does a reprimand typically last?

It lasts for 4 weeks (30 days).

## Reviews of the crew

You’ll meet with the master for formal crew reviews. New ones meet at the 3-month mark.

The master is expected to write down the outcomes of crew reviews.

The scale of wages is looked through by the purser once a year, at the end of November.
""",
    "wreck-pay.md": """# Wreck pay

Whoever has been with the yard for over 1 year gets 2 weeks of wreck pay for each year.
""",
    "side-work.md": """# A note about side work

With that in mind, here are examples of side work that is fine, and that is not fine:

## Fine

1. An occasional job for a friend.

## Not fine

5. Take on anything that pulls attention from the yard.
6. Do unpaid work of more than five hours.
""",
    "grades.md": """# Grades of riggers

| Category | Junior Rigger (R1) | Rigger (R2) | Lead Rigger (R3) |
| --- | --- | --- | --- |
| Scope | Works on tightly bounded, routine jobs of one mast, and is shown how. | Works on \
clearly described jobs of one ship, and asks where it is not sure of the way. | Owns the rigging \
of whole fleets, and plans the work of others for a season. |
| Judgement | Learns from the craft of others, and tries to mend what is broken alone at first. | \
Leaves ropes in better shape than they were found, and pays attention to detail. | Sets the \
standards of the yard, and is asked for advice by other trades. |
""",
    "kran.md": """# Kranführer

## Einarbeitung

Neue Kranführer haben eine sechswöchige Einarbeitung am Nordkai.

Zur Einarbeitung gehört ein Heft, das man nach dem Ausscheiden abgibt.

## Prüfung

Die Prüfung der Seile geschieht vierteljährlich durch den Kranmeister.

Wer die Prüfung nicht besteht, hat noch 3 Versuche.
""",
}

FILES["steam.html"] = """<html><head><title>Steam at the quay</title></head><body>
<h1>Steam at the quay</h1><p>Whoever wants to fire the second boiler should ask the master first. To
sound the whistle of the old boiler is not allowed since it burst.</p>
<h2>4.1. Firing the Boiler</h2><p>Lay coal on the grate, open the draught, and wait until the needle
trembles.</p><p>Coal is in the shed.</p>
<h2>4.2. Sounding the Whistle</h2><p>Before the tide turns, pull the cord for as long as a breath
lasts.</p></body></html>"""


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryEngine]:
    yield from index_asked(FILES, tmp_path_factory)


@pytest.mark.parametrize(
    ("question", "begins"),
    [
        ("How long is the sabbatical?", "Sabbatical: Every third year employees may take a 6-week"),
        ("How often are shanties held?", "Shanties: The whole yard gathers on the slip twice"),
        ("What is a tide tutor?", "Tide tutors: A tide tutor is a colleague"),
        ("How long does a warning typically last?", "How long does a warning typically last? Warn"),
        ("When are crew reviews?", "Reviews of the crew: You’ll meet with the master for formal"),
        ("How much wreck pay do I get after 5 years?", "Wreck pay: Whoever has been with the yard"),
        ("How do I fire the boiler?", "Firing the Boiler: Lay coal on the grate"),
        ("When should I sound the whistle?", "Sounding the Whistle: Before the tide turns"),
        ("Wie lange dauert die Einarbeitung?", "Neue Kranführer haben eine sechswöchige"),
        ("Wie oft ist die Prüfung der Seile?", "Die Prüfung der Seile geschieht viertel"),
    ],
)
def test_what_stands_below_a_heading_answers_a_question_that_says_it(
    asked: QueryEngine, question: str, begins: str
) -> None:
    assert passages_of(asked.answer(question, "bm25").text)[0].startswith(begins)


def test_a_long_row_is_shown_by_the_columns_that_a_question_says(asked: QueryEngine) -> None:
    told = passages_of(asked.answer("What is the scope of a lead rigger?", "bm25").text)[0]
    assert told == (
        "Grades of riggers — Category: Scope; Lead Rigger (R3): Owns the rigging of whole fleets, "
        "and plans the work of others for a season."
    )
    both = "What is the difference in scope between a junior rigger and a lead rigger?"
    told = passages_of(asked.answer(both, "bm25").text)[0]
    assert "Junior Rigger (R1): Works on" in told
    assert "Lead Rigger (R3): Owns" in told
    assert "; Rigger (R2)" not in told


def test_a_list_below_a_heading_is_whole_and_no_other_than_the_one_asked_for(
    asked: QueryEngine,
) -> None:
    passages = passages_of(asked.answer("What kinds of side work are not fine?", "bm25").text)
    assert " ".join(passages[0].split()) == (
        "Not fine: 5. Take on anything that pulls attention from the yard. "
        "6. Do unpaid work of more than five hours."
    )
    assert not any("#" in passage for passage in passages)
    passages = passages_of(asked.answer("What side work is fine?", "bm25").text)
    assert " ".join(passages[0].split()) == "Fine: 1. An occasional job for a friend."
