"""Questions to files as people have them: what the first line of the answer says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from asked_files import index_asked

from benchmarks.answers import passages_of
from graphrag_pipeline.ingest.reading import ReadingOptions, read_file
from graphrag_pipeline.query import QueryEngine


def _issue(number: int, title: str, body: str, **more: object) -> dict[str, object]:
    opened = {"number": number, "title": title, "state": "open", "closed_at": None}
    return {**opened, "created_at": f"2021-03-0{number}T08:00:00Z", **more, "body": body}


ISSUES = [
    _issue(
        **{"number": 7, "title": "Winch stops in frost", "state": "closed", "comments": 4},
        body="In frost the winch stops after a minute. We think that the oil is too thick then.",
        **{"closed_at": "2021-04-19T10:00:00Z", "user": {"name": "Ada Berg"}},
    ),
    _issue(
        **{"number": 8, "title": "Map shows no buoys", "comments": 0},
        body="The new map of the bay shows no buoys at all. The one of last year has them.",
        **{"user": {"name": "Per Lund"}, "assignee": {"name": "Ida Moen"}},
        **{"milestone": {"title": "3.1"}, "sizes": [1, 2]},
    ),
]
MARKUP = """<table class="dataframe">
<thead><tr><th></th><th>island</th><th>puffins</th></tr></thead>
<tbody><tr><th>0</th><td>Runde</td><td>5200</td></tr><tr><th>1</th><td>Hornøya</td><td>310</td></tr>
</tbody></table>"""


def _cell(source: str, *outputs: Mapping[str, object]) -> dict[str, object]:
    return {"cell_type": "code", "source": source, "outputs": list(outputs)}


def _result(**data: str) -> dict[str, object]:
    named = {name.replace("_", "/"): text for name, text in data.items()}
    return {"output_type": "execute_result", "data": named}


def _printed(text: str, name: str = "stdout") -> dict[str, object]:
    return {"output_type": "stream", "name": name, "text": [text]}


NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "source": "# Birds of the coast\n\nWe count in 2021."},
        _cell("birds.head()", _result(text_html=MARKUP, text_plain="  island  puffins\n0 ...")),
        _cell("median_weight", _result(text_plain="0.41")),
        _cell("fit()", _printed("1%\r50%\rShare of young birds: 0.23\n")),
        _cell("print(eggs)", _printed("  cliff  eggs\n0  North face  91\n1  Kap Blank  17\n")),
        _cell("fit()", _printed("FutureWarning: old", name="stderr")),
        _cell("1/0", {"output_type": "error", "ename": "ZeroDivisionError", "traceback": ["x"]}),
        _cell("plot()", _result(text_plain="<Figure size 640x480>", image_png="iVBORw0KGgo=")),
        _cell("steps()", _printed("".join(f"step {n}\n" for n in range(30)))),
    ],
    "metadata": {"language_info": {"name": "python"}},
}


def _note(name: str, text: str) -> str:
    return read_file(Path(name), ReadingOptions(), data=text.encode()).documents[0].text


PAYMENTS = """Buchungstag;Buchungstext;Auftraggeber / Empfänger;Verwendungszweck;Betrag
04.06.2021;Kartenzahlung;Rewe Markus Hahn;REWE HAHN SAGT DANKE;-31,80
07.06.2021;Lastschrift;McFit;Beitrag Juni;-19,90
09.06.2021;Überweisung;Imke Hansen;Miete Juni;-710,00
"""
WARD = """# Ward 8

## Siri Dahl

| Test | Result |
|---|---|
| Folate | 12 |
| Zinc | 90 |

## Odd Vik

| Test | Result |
|---|---|
| Folate | 4 |
| Zinc | 71 |
"""
SERVICE = """kind: Deployment
metadata: {name: tide-clock, namespace: coast}
spec:
  replicas: 4
"""
FILES = {
    "ward.md": WARD,
    "lab.csv": "Patient: Elin Rask\nPage: Two\n\nTest,Result\nFolate,8\nZinc,66\n",
    "nets.csv": "SKU,Net,Price (EUR),Stock\nN-4,Herring,310.00,5\nN-9,Cod,455.50,2\n",
    "clock.yaml": SERVICE,
    "refs.bib": "@book{a, title={Rafts of the Glomma}, publisher={Aker}, year={1987}}",
    "umsatz.csv": PAYMENTS,
    "issues/issues.json": json.dumps(ISSUES),
    "birds.ipynb": json.dumps(NOTEBOOK),
}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryEngine]:
    yield from index_asked(FILES, tmp_path_factory)


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("When was issue 7 closed?", "Winch stops in frost — closed_at: 2021-04-19T10:00:00Z"),
        ("When was issue 8 created?", "Map shows no buoys — created_at: 2021-03-08T08:00:00Z"),
        ("Who is assigned to issue 8?", "Map shows no buoys — assignee.name: Ida Moen"),
        ("Who opened issue 7?", "Winch stops in frost — user.name: Ada Berg"),
        ("Which milestone has issue 8?", "Map shows no buoys — milestone.title: 3.1"),
        ("How many comments has issue 7?", "Winch stops in frost — comments: 4"),
        ("How many puffins has Hornøya?", "Birds of the coast — island: Hornøya; puffins: 310"),
        ("How many puffins did you count on Runde?", "Birds of the coast — island: Runde; "),
        ("What is the median weight?", "Birds of the coast — median_weight: 0.41"),
        ("What is the share of young birds?", "Birds of the coast — Share of young birds: 0.23"),
        ("How many eggs has the North face?", "Birds of the coast — cliff: North face; eggs: 91"),
        ("What is the folate of Odd Vik?", "Ward 8 — Odd Vik; Test: Folate; Result: 4"),
        ("What is the zinc of Siri Dahl?", "Ward 8 — Siri Dahl; Test: Zinc; Result: 90"),
        ("What is the folate of Elin Rask?", "Folate — Result: 8"),
        ("How much does N-9 cost?", "Cod — Price (EUR): 455.50"),
        ("What is the namespace of tide-clock?", "Clock — metadata.namespace: coast"),
        ("When was Rafts of the Glomma published?", "Rafts of the Glomma — year: 1987"),
        ("Wie viel habe ich bei Rewe bezahlt?", "Rewe Markus Hahn — Betrag: -31,80"),
        ("Wie hoch ist der Beitrag von McFit?", "McFit — Betrag: -19,90"),
        ("Wann wurde die Miete überwiesen?", "Imke Hansen — Buchungstag: 09.06.2021"),
    ],
)
def test_what_is_asked_stands_first(asked: QueryEngine, question: str, told: str) -> None:
    assert passages_of(asked.answer(question, method="bm25").text)[0].startswith(told)


def test_shops_are_no_people(asked: QueryEngine) -> None:
    rows = asked.index.rows("SELECT title, type FROM entities")
    types = {row["title"]: row["type"] for row in rows}
    assert types["Rewe Markus Hahn"] == types["McFit"] == "ORGANIZATION"
    assert types["Imke Hansen"] == "PERSON"


def test_a_row_is_related_to_the_person_named_above_its_table(asked: QueryEngine) -> None:
    rows = asked.index.rows("SELECT source, target, type FROM relationships")
    of_elin = {row["type"] for row in rows if "Elin Rask" in (row["source"], row["target"])}
    assert of_elin == {"Patient"}


def test_a_notebook_says_results_and_no_warnings_tracebacks_or_pictures() -> None:
    text = _note("birds.ipynb", FILES["birds.ipynb"])
    assert not [word for word in ("Future", "Zero", "Figure", "iVBOR", "50%") if word in text]
    assert text.index("birds.head()") < text.index("| Runde | 5200 |") < text.index("median_weight")
    assert "```\nstep 0\nstep 1\n" in text


def test_a_series_is_a_table_of_its_name() -> None:
    series = "island\nRunde      5200\nHornøya     310\nName: puffins, dtype: int64"
    text = _note("n.ipynb", json.dumps({"cells": [_cell("s()", _result(text_plain=series))]}))
    assert text.endswith("| island | puffins |\n|---|---|\n| Runde | 5200 |\n| Hornøya | 310 |")


def test_beside_a_text_stand_short_values_of_the_record_itself() -> None:
    many = [_issue(1, f"Rope {n}", "It is torn.", sha=f"{n:040}", n=n) for n in range(20)]
    text = _note("issues.json", json.dumps(many))
    assert text == "It is torn.\n\nn: 0"
