"""Answers labelled by people: sheets that tell nothing, labels read with care, and agreement."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from evaluation_fixture import Filled, fill
from graphrag_evaluation.labelling.human_agreement import PEOPLE, PeopleSay, people_say
from graphrag_evaluation.labelling.items import answers_given, text_hash
from graphrag_evaluation.labelling.label_store import bring_labels, drop_labels
from graphrag_evaluation.labelling.reliability import (
    cohen_kappa,
    krippendorff_alpha,
    reliability,
)
from graphrag_evaluation.labelling.sheets import write_sheet
from graphrag_evaluation.pages.gathering import gather
from graphrag_evaluation.pages.page import render
from graphrag_evaluation.questions.question import Question
from graphrag_evaluation.store import EvaluationStore
from typer.testing import CliRunner

from graphrag_pipeline.cli.app import app
from graphrag_pipeline.core.errors import InputError

Row = Mapping[str, Any]

ASKED = [Question(f"Who built mill {n}?", (f"Miller {n}",)) for n in range(6)]
TRIED = Filled(
    "tried",
    ["alpha method", "beta method"],
    ASKED,
    text="={condition} on {question} [Data: Reports (3)]",
    scores={"accuracy": lambda name, n: float(n % 2 == 0)},
    strength={"alpha method": 1000, "beta method": 0.001},
    criteria=("overall",),
)
# Krippendorff (2011), part D: four observers, twelve units, five of the values missing.
WORKED = {
    "A": "123321412...",
    "B": "1233224125.3",
    "C": ".3332342251.",
    "D": "12332441251.",
}


@pytest.fixture
def store(tmp_path: Path) -> EvaluationStore:
    fill(tmp_path, TRIED)
    return EvaluationStore(tmp_path)


def sheet(store: EvaluationStore, file: Path, kind: Any = "score", **more: Any) -> list[Row]:
    """Write a sheet and return its rows, as a spreadsheet reads them."""
    criteria = more.pop("criteria", ["overall"] if kind == "preference" else ["correctness"])
    with store.read() as con:
        write_sheet(file, answers_given(con, "tried"), kind, criteria, **more)
    with file.open(encoding="utf-8-sig", newline="") as opened:
        return list(csv.DictReader(opened))


def filled(
    file: Path, rows: Sequence[Row], cell: Callable[[Row], Row], delimiter: str = ","
) -> Path:
    """Write the rows of a sheet with some cells filled in."""
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.DictWriter(opened, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows({**row, **cell(row)} for row in rows)
    return file


def lines(file: Path, *rows: object) -> Path:
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return file


def said(store: EvaluationStore) -> PeopleSay:
    with store.read() as con:
        return people_say(con, "tried")


def kept(store: EvaluationStore) -> int:
    with store.read() as con:
        (n,) = con.execute("SELECT count(*) FROM human_labels").fetchone() or (0,)
    return n


def labels_of(rated: Mapping[str, str]) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {"item": str(unit), "rater": rater, "value": float(value)}
            for rater, values in rated.items()
            for unit, value in enumerate(values)
            if value != "."
        ]
    )


def is_better(row: Row) -> bool:
    """Whether the first answer of a row is the alpha method's."""
    return "alpha" in row["first_answer"]


@pytest.mark.parametrize(("is_number", "alpha"), [(False, 0.743), (True, 0.849)])
def test_alpha_is_that_of_krippendorffs_own_example(is_number: bool, alpha: float) -> None:
    assert krippendorff_alpha(labels_of(WORKED), is_number=is_number) == pytest.approx(
        alpha, abs=5e-4
    )


def test_alpha_of_two_raters_is_that_of_krippendorffs_first_example() -> None:
    """Two observers, ten units, two values: alpha is .095 (2011, part A)."""
    labels = labels_of({"Meg": "0100000100", "Owen": "1110010000"})
    agreement = reliability(labels, is_number=False)
    assert agreement is not None
    assert agreement.alpha == pytest.approx(0.095, abs=5e-4)
    assert (agreement.raters, agreement.items, agreement.share) == (2, 10, 0.6)


def test_kappa_is_worked_out_by_hand() -> None:
    """Of 50: both yes 20, both no 15. By chance .5 * .6 + .5 * .4 = .5: (.7 - .5) / .5."""
    first = [1.0] * 25 + [0.0] * 25
    second = [1.0] * 20 + [0.0] * 5 + [1.0] * 10 + [0.0] * 15
    assert cohen_kappa(first, second, is_number=False) == pytest.approx(0.4)
    # Marks 1, 2, 5 against 1, 5, 5, by squares: seen 9, by chance (0+16+16 + 1+9+9 + 16) / 3.
    kappa = cohen_kappa([1, 2, 5], [1, 5, 5], is_number=True)
    assert kappa == pytest.approx(1 - 9 / ((0 + 16 + 16 + 1 + 9 + 9 + 16 + 0 + 0) / 3))


def test_where_all_labels_are_the_same_only_their_share_says_something() -> None:
    agreement = reliability(labels_of({"a": "111", "b": "111"}), is_number=True)
    assert agreement is not None
    assert (agreement.share, agreement.kappa, agreement.alpha) == (1.0, None, None)
    assert reliability(labels_of({"a": "11.", "b": "..1"}), is_number=True) is None


def test_a_sheet_tells_nothing_of_conditions_and_calculates_nothing(
    store: EvaluationStore, tmp_path: Path
) -> None:
    with store.transaction() as con:
        con.execute("UPDATE answers SET text = replace(text, ' method', '')")
    rows = sheet(store, tmp_path / "sheet.csv")
    assert len(rows) == len({row["item"] for row in rows}) == 12
    assert "Reports" not in (tmp_path / "sheet.csv").read_text()
    assert "method" not in (tmp_path / "sheet.csv").read_text()
    assert all(row["answer"].startswith("'=") for row in rows)
    assert all(re.fullmatch("item-[0-9a-f]{16}", row["item"]) for row in rows)


def test_the_order_is_random_and_follows_from_the_seed(
    store: EvaluationStore, tmp_path: Path
) -> None:
    one, again, other = (
        sheet(store, tmp_path / f"{n}.csv", "preference", seed=seed)
        for n, seed in enumerate((1, 1, 2))
    )
    assert one == again
    assert [row["question"] for row in one] != [row["question"] for row in other]
    assert {is_better(row) for row in (*one, *other)} == {True, False}
    part = sheet(store, tmp_path / "part.csv", "preference", seed=1, limit=2)
    assert {row["question"] for row in part} == {row["question"] for row in one[:2]}


def test_what_several_conditions_gave_is_labelled_once_and_counts_for_each(
    store: EvaluationStore, tmp_path: Path
) -> None:
    with store.transaction() as con:
        con.execute("UPDATE answers SET text = 'The same.' WHERE question = ?", [ASKED[0].text])
    rows = sheet(store, tmp_path / "sheet.csv")
    assert len(rows) == 11
    assert len(sheet(store, tmp_path / "pairs.csv", "preference")) == 5
    file = filled(tmp_path / "a.csv", rows, lambda row: {"correctness": "7"})
    bring_labels(store, "tried", [file], labeller="ana")
    assert [(row.condition, row.items, row.people) for row in said(store).beside] == [
        ("alpha method", 6, 7.0), ("beta method", 6, 7.0),
    ]  # fmt: skip


def test_people_stand_beside_the_judge_whatever_order_they_were_shown(
    store: EvaluationStore, tmp_path: Path
) -> None:
    for name, seed in (("ana", 1), ("ben", 2)):
        rows = sheet(store, tmp_path / f"{name}.csv", "preference", seed=seed)
        # ben takes the other one in one of six.
        wrong = rows[0]["item"] if name == "ben" else ""
        file = filled(
            tmp_path / f"{name}-filled.csv",
            rows,
            lambda row, wrong=wrong: {
                "overall": "first" if is_better(row) != (row["item"] == wrong) else "second"
            },
        )
        bring_labels(store, "tried", [file], labeller=name)
    says = said(store)
    (beside,) = says.beside
    assert (beside.condition, beside.rival, beside.items) == ("alpha method", "beta method", 6)
    # Where the two differ it is a tie for people; the judge of the fixture prefers alpha always.
    assert beside.people == pytest.approx(5.5 / 6)
    assert (beside.model, beside.model_mean) == ("gpt-x", 1.0)
    rows_of = {(row.one, row.other): row.reliability for row in says.agreements}
    assert set(rows_of) == {
        (PEOPLE, ""), (PEOPLE, "gpt-x"), ("ana", "gpt-x"), ("ben", "gpt-x"),
    }  # fmt: skip
    assert rows_of[PEOPLE, ""].share == pytest.approx(5 / 6)
    assert rows_of["ana", "gpt-x"].share == 1
    assert rows_of["ben", "gpt-x"].share == pytest.approx(5 / 6)


def test_verdicts_stand_beside_the_metric_of_their_name(
    store: EvaluationStore, tmp_path: Path
) -> None:
    rows = [
        {"question": question.text, "condition": "beta method", "criterion": "accuracy",
         "verdict": n % 2 == 0 or n == 1, "labeller": "ana"}
        for n, question in enumerate(ASKED)
    ]  # fmt: skip
    bring_labels(store, "tried", [lines(tmp_path / "own.jsonl", *rows)])
    (beside,) = said(store).beside
    assert (beside.condition, beside.people, beside.model, beside.model_mean) == (
        "beta method", pytest.approx(4 / 6), "accuracy", 0.5,
    )  # fmt: skip
    (agreement,) = said(store).agreements
    assert agreement.reliability.share == pytest.approx(5 / 6)
    # By chance 4/6 * 1/2 + 2/6 * 1/2 = 1/2: (5/6 - 1/2) / (1/2).
    assert agreement.reliability.kappa == pytest.approx(2 / 3)


def test_labels_are_of_the_text_that_was_read(store: EvaluationStore, tmp_path: Path) -> None:
    rows = sheet(store, tmp_path / "sheet.csv")
    file = filled(tmp_path / "a.csv", rows, lambda row: {"correctness": "3"})
    bring_labels(store, "tried", [file], labeller="ana")
    assert said(store).labels == 12
    with store.transaction() as con:
        con.execute("UPDATE answers SET text = 'Another answer.' WHERE question = ?",
                    [ASKED[0].text])  # fmt: skip
        (hashed,) = con.execute("SELECT md5('Ü')").fetchone() or ("",)
    assert hashed == text_hash("Ü")
    assert (kept(store), said(store).labels) == (12, 10)
    with pytest.raises(InputError, match=r"a\.csv, line \d+: item-\w+ is no answer of tried as it"):
        bring_labels(store, "tried", [file], labeller="ana")


def test_a_label_that_is_given_again_is_replaced_and_one_labeller_can_leave(
    store: EvaluationStore, tmp_path: Path
) -> None:
    rows = sheet(store, tmp_path / "sheet.csv")
    # As a spreadsheet writes it where a comma is decimal.
    file = filled(tmp_path / "a.csv", rows, lambda row: {"correctness": "3,5"}, delimiter=";")
    first = bring_labels(store, "tried", [file], labeller="ana")
    assert (first.new, first.changed) == (12, 0)
    bring_labels(store, "tried", [file], labeller="ben")
    filled(file, rows, lambda row: {"correctness": "3.5" if row == rows[0] else "4"})
    again = bring_labels(store, "tried", [file], labeller="ana")
    assert (again.labels, again.new, again.changed) == (12, 0, 11)
    assert kept(store) == 24
    with store.transaction() as con:
        assert drop_labels(con, "ana") == 12
        with pytest.raises(InputError, match=r"nobody called 'ana'.*there are ben"):
            drop_labels(con, "ana")


QUESTION = ASKED[0].text
GOOD = {"question": QUESTION, "condition": "beta method", "criterion": "tone", "score": 2,
        "labeller": "ana"}  # fmt: skip


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a text", "line 2: an object with an item"),
        ({**GOOD, "item": "item-0"}, "line 2: item-0 is no answer of tried"),
        ({**GOOD, "question": ""}, "line 2: neither item nor question"),
        ({**GOOD, "question": "Who?"}, "line 2: 'Who.' was not answered in tried"),
        ({**GOOD, "condition": "C0"}, "line 2: condition 'C0' gave no answer: there are alpha"),
        ({**GOOD, "tone": 2}, "line 2: unknown field 'tone'"),
        ({**GOOD, "labeller": ""}, "line 2: nobody is named"),
        ({**GOOD, "score": "good"}, "line 2: tone = 'good': write a number"),
        ({**GOOD, "score": float("nan")}, "line 2: tone = 'nan': write a number"),
        ({**GOOD, "criterion": "correctness", "score": 0}, "line 2: .*: it is marked from 1 to 10"),
        (GOOD, "line 2: ana has labelled this by tone before, in .*line 1"),
        ({**GOOD, "first": "alpha method", "second": "C0"}, "line 2: second 'C0' gave no"),
        ({**GOOD, "first": "beta method", "second": "beta method"}, "line 2: .* the same answer"),
        ({**GOOD, "first": "beta method", "second": "alpha method", "score": "left"},
         "line 2: tone = 'left': write first, second or tie"),
    ],
)  # fmt: skip
def test_a_broken_file_is_told_with_its_row_and_changes_nothing(
    store: EvaluationStore, tmp_path: Path, row: object, message: str
) -> None:
    file = lines(tmp_path / "own.jsonl", GOOD, row)
    with pytest.raises(InputError, match=message) as told:
        bring_labels(store, "tried", [file])
    assert str(file) in str(told.value)
    assert kept(store) == 0


def test_a_sheet_with_nothing_filled_in_is_told(store: EvaluationStore, tmp_path: Path) -> None:
    file = tmp_path / "sheet.csv"
    rows = sheet(store, file)
    with pytest.raises(InputError, match="holds no label"):
        bring_labels(store, "tried", [file], labeller="ana")
    filled(file, rows, lambda row: {"correctness": " 8 " if row == rows[3] else ""})
    assert bring_labels(store, "tried", [file], labeller="ana").labels == 1
    with pytest.raises(InputError, match="cannot be called 'note'"):
        sheet(store, file, criteria=["note"])


def test_a_question_of_several_documents_needs_its_document(tmp_path: Path) -> None:
    both = [replace(ASKED[0], document=name) for name in ("mill.txt", "bridge.txt")]
    fill(tmp_path, replace(TRIED, questions=both, strength=None))
    store = EvaluationStore(tmp_path)
    file = lines(tmp_path / "own.jsonl", GOOD)
    with pytest.raises(InputError, match="asked of several documents: name the document"):
        bring_labels(store, "tried", [file])
    lines(file, {**GOOD, "document": "mill.txt"})
    assert bring_labels(store, "tried", [file]).labels == 1


def test_the_command_writes_a_sheet_takes_it_back_and_shows_what_it_says(
    store: EvaluationStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHRAG_HOME", str(tmp_path))
    file = tmp_path / "pairs.csv"

    def run(*words: object) -> str:
        done = CliRunner().invoke(app, ["eval", *map(str, words)])
        assert done.exit_code == 0, done.output
        return " ".join(done.output.split())

    assert "first, second or tie. Overall:" in run("labels", "--export", file, "--pairs")
    with file.open(encoding="utf-8-sig", newline="") as opened:
        rows = list(csv.DictReader(opened))
    filled(file, rows, lambda row: {"overall": "first" if is_better(row) else "second"})
    assert "6 labels of <b>ana</b> read: 6 new" in run("labels", file, "--labeller", "<b>ana</b>")
    assert "100.0 % gpt-x" in run("labels")
    assert "overall: people and gpt-x say the same of 100 % of 6" in run("results")
    values = json.loads(run("labels", "--json"))
    assert values["agreements"][0]["reliability"]["share"] == 1
    page = render(gather(store, "tried"))
    assert "What people say" in page
    assert "<b>ana" not in page
