"""What files, documents and models name things: no terminal or spreadsheet does as it says."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import duckdb
import pytest
from query_fixture import publish
from typer.testing import CliRunner

from graphrag_pipeline.cli import console
from graphrag_pipeline.cli.app import app
from graphrag_pipeline.core.rows import one_line, printable, to_json, write_csv

# A cursor that moves, a title that is set, a name that reads backwards, a line of its own.
HOSTILE = [
    "\x1b[2J",
    "\x9b2J",
    "\x9d0;title\x9c",
    "\u202etxt.exe",
    "\u2067x\u2069",
    "\u2028",
    "\x07\x7f",
]
UNSEEN = {sign for text in HOSTILE for sign in text if not sign.isprintable()}
FORMULAS = ["=1+1", "+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "＝1", "＋1", "－1", "＠x"]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_printed_moves_nothing(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    for show in (console.say, console.say_whole, console.note, console.write, one_line, printable):
        sys.stdout.write(show(f"before {text} after\tand\nmore") or "")
    console.show_rows([f"a{text}"], [[f"b{text}"]])
    console.show_json({f"a{text}": f"b{text}"})
    said = "".join(capsys.readouterr())
    assert said.count("before ") == said.count(" after") == 6
    assert not UNSEEN & set(said)


def test_a_text_keeps_its_lines_tabs_and_signs() -> None:
    text = "one\ttwo\n\tthree – العربية 😀 \u200f\u200d"
    assert printable(text) == text


@pytest.mark.parametrize("text", [*HOSTILE, *FORMULAS])
def test_json_says_all_of_a_text_in_signs_that_are_seen(text: str) -> None:
    encoded = to_json({text: [text]})
    assert json.loads(encoded) == {text: [text]}
    assert not UNSEEN & set(encoded)


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_in_csv_is_a_text_unless_it_is_asked_for(text: str) -> None:
    inert, raw = io.StringIO(), io.StringIO()
    write_csv(inert, [text], [[text], [f"x{text}"], [-1], [-1.5]])
    write_csv(raw, [text], [[text]], raw=True)
    read = [row[0] for row in csv.reader(io.StringIO(inert.getvalue(), newline=""))]
    assert read == [f"'{text}", f"'{text}", f"x{text}", "-1", "-1.5"]
    assert [row[0] for row in csv.reader(io.StringIO(raw.getvalue(), newline=""))] == [text] * 2


def test_csv_of_commands_is_inert_unless_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [*HOSTILE, *FORMULAS]
    publish(tmp_path)
    with duckdb.connect(str(tmp_path / "published.duckdb")) as con:
        con.executemany("INSERT INTO quarantine VALUES ('b', ?, '')", [[text] for text in texts])
    monkeypatch.setenv("GRAPHRAG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.output
        return done.stdout

    asked = ("sql", "SELECT uri FROM quarantine", "--format", "csv")
    run("export", "csv", "-o", "inert", "--table", "quarantine")
    run("export", "csv", "-o", "raw", "--table", "quarantine", "--raw")
    inert, raw = (
        (tmp_path / name / "quarantine.csv").read_bytes().decode() for name in ("inert", "raw")
    )
    for written in (run(*asked), inert):
        read = [row["uri"] for row in csv.DictReader(io.StringIO(written, newline=""))]
        assert not UNSEEN & set(written)
        assert read[-len(FORMULAS) :] == [f"'{text}" for text in FORMULAS]
    for written in (run(*asked, "--raw"), raw):
        read = [row["uri"] for row in csv.DictReader(io.StringIO(written, newline=""))]
        assert {"=1+1", "\u202etxt.exe"} < set(read)
