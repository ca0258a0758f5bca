"""Questions of a time, and of how things stand now: answered by when documents were written."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import pytest

from graphrag_pipeline import Index
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query.asked_dates import asked_periods
from graphrag_pipeline.query.evidence.latest import version_of

DOCUMENTS = {
    "minutes/spring.md": ("Minutes of spring", "2022-04-05", "Pia Lorne was elected treasurer."),
    "minutes/other.md": ("Minutes of autumn", "2024-04-10", "Tom Hask was elected treasurer."),
    "bike.md": ("Bicycle", "", "The brakes were changed by Osman Yildiz in May 2022."),
    "fr/1.md": ("Le club", "2019-04-04", "La présidente du club est Solène Rigaud."),
    "fr/2.md": ("Le bureau", "2022-04-04", "La présidente du club est Maud Tellier."),
    "notes/a.md": (
        "Corvus",
        "2022-02-01",
        "# Latest version of Corvus\n\nCorvus 1.9 was published in January.",
    ),
    "notes/b.md": (
        "News",
        "2024-02-01",
        "# Latest version of Corvus\n\nCorvus 1.10 was published in January.",
    ),
    "manuals/one.md": ("Manual of Mistral 1.9", "", "Mistral listens on port 2100."),
    "manuals/two.md": ("Manual of Mistral 1.10", "", "Mistral listens on port 2200."),
    "manuals/three.md": ("Manual of Mistral 2.0-rc1", "", "Mistral listens on port 2300."),
    "winch_v1.2.md": ("Winch", "", "The winch pulls 30 tonnes at most."),
    "winch_v1.10.md": ("Winch", "", "The winch pulls 60 tonnes at most."),
    "2021-plan.md": ("", "", "The crane stands at berth 4."),
    "2023-plan.md": ("", "", "The crane stands at berth 9."),
    "mail.md": ("Release", "2024-05-01", "Version 3.2 of Halden is out since this week."),
    "tools.md": (
        "Tools",
        "2024-01-01",
        "| Tool | Latest version |\n|---|---|\n| Pelikan | 7.4 |",
    ),
    "apps.csv": ("", "", "tool,version,owner\nLumen,1.10.0,Osman Yildiz\nQuarto,1.4.2,Pia Lorne"),
    "lumen-1.10.md": ("Lumen 1.10 notes", "2024-03-01", "The default port of Lumen 1.10 is 8090."),
    "lumen-2.0.md": ("Lumen 2.0-rc1 notes", "2024-05-02", "The default port of Lumen is 9000."),
    "insurance.md": (
        "Insurance",
        "",
        "Policy number: HM-448213\n\nYour household policy was renewed. The number of claims is 2.",
    ),
    "lease.md": ("Lease", "", "## Pets\nNo dogs may live here.\n\n## Term\nIt ends in 2028."),
    "soup.md": (
        "",
        "",
        "# Lentil soup\n\nServes: 4\n\n## Ingredients\n- 200 g red lentils\n- 1 onion\n"
        "- 1 litre of stock\n\n## Method\nSimmer for 25 minutes. Season with cumin and lemon.",
    ),
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryEngine]:
    folder = tmp_path_factory.mktemp("now")
    for name, (title, when, text) in DOCUMENTS.items():
        path = folder / "documents" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        head = (f"title: {title}\n" if title else "") + (f"date: {when}\n" if when else "")
        path.write_text(f"---\n{head}---\n{text}\n" if head else f"{text}\n")
    settings = Settings.exactly({"home": str(folder / "home")})
    Index(settings).update(folder / "documents")
    with QueryEngine(folder / "home", settings=settings) as engine:
        yield engine


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Who was elected treasurer in 2022?", "Pia Lorne"),
        ("Who was elected treasurer in April 2024?", "Tom Hask"),
        ("Who is the elected treasurer now?", "Tom Hask"),
        ("Qui est actuellement la présidente du club ?", "Maud Tellier"),
        ("What is the latest version of Corvus?", "1.10"),
        ("On which port does the newest version of Mistral listen?", "2300"),
        ("How many tonnes does the winch pull by the latest version?", "60"),
        ("What is the default port of the most recent version of Lumen?", "9000"),
        ("At which berth does the crane currently stand?", "berth 9"),
        ("What is the most recent version of Halden?", "3.2"),
        ("What is the policy number of the household insurance?", "HM-448213"),
        ("Which pets may live here?", "No dogs"),
        ("How long does the lentil soup simmer?", "25 minutes"),
    ],
)
def test_the_first_line_is_of_the_time_that_is_asked_for(
    engine: QueryEngine, question: str, answer: str
):
    lines = [line for line in engine.answer(question).text.splitlines() if line[:2] == "- "]
    assert answer in lines[0]


def test_a_time_that_a_question_says_is_read_with_its_words():
    for question, expected in {
        "Who was elected in May 2019?": [("may 2019", "2019-05")],
        "Was geschah am 3. März 2021?": [("3. marz 2021", "2021-03-03")],
        "¿Quién fue elegido en 2021?": [("2021", "2021")],
        "Minutes of 2024-03-05": [("2024-03-05", "2024-03-05")],
        "Who was elected since 2019?": [],
        "What costs 2019.50 or 1,2019?": [],
    }.items():
        assert asked_periods(question, date(2024, 3, 15)) == expected, question


def test_versions_are_compared_number_by_number_and_a_draft_comes_before_what_is_done():
    named = ["Lumen 1.9", "v1.10", "Lumen 2.0-rc1 notes", "Lumen 2.0-rc2", "2.0", "Lumen 2.0.1"]
    versions = [version_of(text) for text in named]
    assert None not in versions
    assert versions == sorted(versions)  # pyright: ignore
    numbers = [version_of(text) for text in ("Rules v2", "Rules v10", "Rules, version 11")]
    assert numbers == sorted(numbers)  # pyright: ignore
    assert version_of("It costs 1,200.50") is version_of("In 2 days of 2024") is None
