"""Texts that stand beside the running text of a file, or are made by it: none is lost."""

from __future__ import annotations

import io
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches
from test_equations import docx
from test_formats import make_epub

from graphrag_pipeline.ingest.reading import ReadingOptions, read_file

FLEET = r"""\documentclass{article}
\newcommand{\comp}{Norddal Rederi}
\newcommand{\both}[2][Fjordkongen]{#1 and #2 of \comp{}}
\def\metres#1{#1~m}
\title{The fleet of \comp}
\begin{document}\maketitle
We describe \both{Vestferje}, and \both[Solvind]{Nordlys}, \metres{84} long.
\begin{verbatim}
\newcommand{\shown}{as it is \comp}
\end{verbatim}
\begin{thebibliography}{99}\bibitem{a} K. Ulstein, Ships.\end{thebibliography}
\end{document}
"""


def text(name: str, data: bytes) -> str:
    (document,) = read_file(Path(name), ReadingOptions(), data=data).documents
    return document.text


def test_macros_that_a_latex_file_defines_are_written_out_and_code_stays() -> None:
    written = text("fleet.tex", FLEET.encode())
    assert written.startswith("# The fleet of Norddal Rederi\n")
    assert (
        "We describe Fjordkongen and Vestferje of Norddal Rederi, and "
        "Solvind and Nordlys of Norddal Rederi, 84 m long." in written
    )
    assert r"\newcommand{\shown}{as it is \comp}" in written
    assert "99" not in written


@pytest.mark.parametrize(
    "source",
    [
        "".join(rf"\def\a{n}{{\b\b\b\b}}" for n in "abcdefgh") + r"\def\b{\ab\ab\ab\ab}" + r"\ab",
        r"\newcommand{\loop}{\loop\loop} \loop " * 2_000,
        r"\newcommand{\x}[9]{#1}" + r"\x" * 50_000,
        r"\newcommand" + " " * 100_000,
        r"\def\x" + "{" * 50_000 + r"\x" * 10_000,
    ],
)
def test_macros_of_macros_end_soon(source: str) -> None:
    begin = time.process_time()
    read_file(Path("x.tex"), ReadingOptions(), data=f"Harbour. {source}".encode())
    assert time.process_time() - begin < 5


def test_notes_in_the_asides_of_a_book_are_read() -> None:
    page = "<p>Cast by Amrhein.</p><aside epub:type='footnote'><p>He died in 1601.</p></aside>"
    assert "He died in 1601." in text("book.epub", make_epub([page]))


def test_notes_of_rtf_are_read_and_the_head_of_its_tables_is_told() -> None:
    pytest.importorskip("striprtf")
    rows = (("Item", "Qty", "Price"), ("Bolt", "200", "0.12"), ("Nut", "180", "0.05"))
    table = "".join("\\pard\\intbl " + "\\cell ".join(row) + "\\cell\\row" for row in rows)
    notes = r"The offer{\footnote \pard Valid until June.} stands{\*\footnote Of Vektor.}.\par "
    written = text("offer.rtf", (r"{\rtf1\ansi " + notes + table + r"\pard Bye\par}").encode())
    assert "Valid until June." in written
    assert "Of Vektor." in written
    assert "| Item | Qty | Price |\n| --- | --- | --- |\n| Bolt | 200 | 0.12 |" in written


def test_items_of_rtf_have_the_marks_that_wordpad_and_word_write() -> None:
    pytest.importorskip("striprtf")
    old = r"{\pntext\f0 a.\tab}{\*\pn\pnlvlbody{\pntxta.}}Tar\par{\pntext\f1\'B7\tab}Rope\par"
    new = r"{\listtext 2.\tab}Oakum\par" + "\n" + r"{\listtext iv.\tab}Paint\par"
    written = r"{\rtf1\ansi " + old + new + "}"
    assert text("list.rtf", written.encode()) == "a) Tar\n- Rope\n2. Oakum\niv) Paint"


def test_what_was_deleted_while_changes_were_tracked_is_no_text_of_rtf() -> None:
    pytest.importorskip("striprtf")
    change = r"{\deleted\revauthdel1 2.80}{\revised\revauth1 3.10}{\deleted0  metres}"
    source = r"{\rtf1\ansi The draught is " + change + r".\par}"
    assert text("rules.rtf", source.encode()) == "The draught is 3.10 metres."


def test_a_chart_is_its_title_and_a_table_of_its_numbers() -> None:
    presentation = Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    data: Any = CategoryChartData()
    data.categories = ["2022", "2023"]
    data.add_series("Touring", (150, 210))
    data.add_series("Racing <1>", (28, None))
    place = (Inches(1), Inches(1), Inches(4), Inches(3))
    shape: Any = slide.shapes.add_chart(XL_CHART_TYPE.LINE, *place, data)
    shape.chart.has_title = True
    shape.chart.chart_title.text_frame.text = "Boats sold"
    file = io.BytesIO()
    presentation.save(file)
    assert text("sales.pptx", file.getvalue()).split("\n") == [
        "Boats sold",
        "",
        "|  | Touring | Racing <1> |",
        "| --- | --- | --- |",
        "| 2022 | 150 | 28 |",
        "| 2023 | 210 |",
    ]


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_chart_of_word_is_read_and_a_damaged_one_does_no_harm(
    is_damaged: bool,
) -> None:
    points = '<c:pt idx="0"><c:v>{}</c:v></c:pt>'.format
    chart = (
        '<c:chartSpace xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart">'
        f"<c:chart><c:ser><c:tx>{points('Tons')}</c:tx><c:cat>{points('May')}</c:cat>"
        f"<c:val>{points('41')}</c:val></c:ser></c:chart></c:chartSpace>"
    )
    file = io.BytesIO(docx("<w:p><w:r><w:t>The catch.</w:t></w:r></w:p>"))
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("word/charts/chart1.xml", chart[: -20 if is_damaged else None])
    written = text("catch.docx", file.getvalue())
    assert written.startswith("The catch.")
    assert ("| May | 41 |" in written) is not is_damaged
