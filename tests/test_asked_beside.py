"""Of fields called alike, that of what is asked for; labels in texts; records by their keys."""

from collections.abc import Iterator

import pytest
from asked_files import index_asked
from test_asked_kinds import passages_of

from graphrag_pipeline.query import QueryEngine

MEMBERS = (
    "Ada Berg",
    "Nils Falk",
    "Rune Holm",
    "Siv Aas",
    "Mirela Okonski",
    "Kai Moe",
    "Per Strand",
)
PRESENT = "".join(f"* {name} (voting member)\n" for name in MEMBERS)
FILES = {
    "sloop-hire.csv": "name,day,price,crew\nOsvik,2019-07-09,42,7\nOsvik,2020-01-14,53,7\n"
    "Kelm,2019-07-09,61,9\n",
    "faults.yaml": "- fault: 2021-0417\n  title: Seal of the pump leaks\n  ghsa: q7x2-11ab\n"
    "  score_v3: 8.5\n  url: https://kelm.example/2021-0417\n"
    "- fault: 2021-0588\n  title: Crane brake slips\n  ghsa: w3k9-77cd\n  score_v3: 4.1\n"
    "  url: https://kelm.example/2021-0588\n",
    "2024-05-15.md": f"# Quay council 2024-05-15\n\n## Present\n\n{PRESENT}\n## Agenda\n\n"
    "* The meeting talked of members who attended no meeting.\n* No member objected.\n",
    "2024-05-22.md": "# Quay council 2024-05-22\n\n## Present\n\n* Ida Holm\n\n## Agenda\n\n"
    "* Fees were raised.\n",
    "budget.csv": "Item,Cost\nMast,450\nSail,1200\n",
    "parts.md": "# Parts\n\n| Part | Price |\n|---|---|\n| Impeller | 89 |\n| Valve | 12 |\n",
    "ships.csv": "Field,Astrid,Marlin\nLength,12,31\nBuilt,1974,2003\n",
    "crew.csv": "Name,Ship,Role\nEva Friis,Marlin,Captain\nKai Moe,Marlin,Mate\n",
    "buoys.csv": "Buoy,Colour\nB-1,red\nB-2,green\nB-3,white\n",
    "fees.csv": "Member,Fee\nIda Holm,45\nPer Lund,60\n",
    "club.csv": "Club,Harbour\nOsvik Club,Osvik\n",
    "bylaws.md": "# Bylaws of Osvik\n\nFines are set by the harbour master.\n\n"
    "Mooring fee: 120 NOK a night for boats.\n\nHarbour master: Olav Strand, since 2019.\n",
    "marlin.html": "<h1>Marlin</h1><table><tr><th>Last service</th><td>4 March 2024</td></tr>"
    "<tr><th>Surveyor</th><td>Kelm</td></tr></table><p>It leaks.</p>",
}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryEngine]:
    yield from index_asked(FILES, tmp_path_factory)


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("What does the impeller cost?", "Parts — Part: Impeller; Price: 89"),
        ("What does the mast cost?", "Mast — Cost: 450"),
        ("Who is the captain of the Marlin?", "Eva Friis — Role: Captain"),
        ("What colour has B-2?", "green — Buoy: B-2"),
        ("What is the mooring fee?", "Bylaws of Osvik — Mooring fee: 120 NOK a night for boats."),
        ("What did a sloop cost in Osvik in July 2019?", "Osvik — day: 2019-07-09; price: 42"),
        ("What is the GHSA id of fault 2021-0417?", "Seal of the pump leaks — ghsa: q7x2-11ab"),
        ("What is the score of fault 2021-0588?", "Crane brake slips — score_v3: 4.1"),
        ("What fee does Ida Holm pay?", "Ida Holm — Fee: 45"),
        ("Who is harbour master?", "Bylaws of Osvik — Harbour master: Olav Strand, since 2019."),
        ("When was the last service of the Marlin?", "Marlin — Last service: 4 March 2024"),
    ],
)
def test_what_is_asked_for_stands_before_what_is_called_alike(
    asked: QueryEngine, question: str, told: str
) -> None:
    assert passages_of(asked.answer(question).text)[0] == told


def test_who_attended_is_everybody_who_was_present(asked: QueryEngine) -> None:
    first = passages_of(asked.answer("Who attended the meeting on 2024-05-15?").text)[0]
    assert first == "Present: " + " ".join(PRESENT.split())
