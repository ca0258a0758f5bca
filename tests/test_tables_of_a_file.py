"""A file of several tables is asked of each by itself: sheets, and files within an archive."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator

import pytest
from test_formats import make_xlsx

from benchmarks.answers import passages_of
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.index import Index
from graphrag_pipeline.query import QueryEngine

SHEETS = {
    "Crew": [["Name", "Pay"], ["Ole Vik", "$10"], ["Per Rud", "$20"], ["Nils Aas", "$30"]],
    "Boats": [["Boat", "Seats"], ["Ravn", 4], ["Terne", 8], ["Svale", 2], ["Alke", 6]],
    "Flats": [
        ["Flats of Storgata 5"],
        [],
        ["Flat", "Tenant", "Rent"],
        ["1A", "Ellen Vang", 812.5],
        ["1B", "Ida Moe", 790],
        ["2A", "Ines Roth", 1010],
        ["Sum", "", 2612.5],
    ],
}  # fmt: skip
PACKED = {
    "x/rota.csv": "Guard,Hours\nNadia Ferreira,3\nJoost de Wit,4\nPavel Novak,5\n",
    "x/keys.csv": "Key,Door\nK1,north\nK2,south\nK3,gate\nK4,hall\n",
    "x/readme.md": "# Note\n\nAlarm: on\n",
}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryEngine]:
    folder, home = tmp_path_factory.mktemp("files"), tmp_path_factory.mktemp("home")
    (folder / "ship.xlsx").write_bytes(make_xlsx(**SHEETS))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in PACKED.items():
            archive.writestr(name, text)
    (folder / "hut.zip").write_bytes(packed.getvalue())
    settings = Settings(home=str(home))
    Index(settings).update(folder)
    with QueryEngine(home, settings=settings) as engine:
        yield engine


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("How many boats are there?", "ship.xlsx Boats — 4 records"),
        ("What is the average pay?", "ship.xlsx Crew — Pay: $20 on average, in 3 records"),
        ("What are the total seats?", "ship.xlsx Boats — Seats: 20 in all, in 4 records"),
        ("How many guards are there?", "rota.csv — 3 records"),
        ("How many keys are there?", "keys.csv — 4 records"),
        ("What is the average rent?", "ship.xlsx Flats — Rent: 870.83 on average, in 3 records"),
    ],
)
def test_a_figure_is_that_of_one_table_of_the_file(
    asked: QueryEngine, question: str, told: str
) -> None:
    assert passages_of(asked.answer(question, "bm25").text)[0] == told


def test_the_most_of_a_sheet_is_no_total_of_it(asked: QueryEngine) -> None:
    answer = asked.answer("Which flat has the highest rent?", "bm25")
    assert passages_of(answer.text)[0].endswith("Rent: 1010")
