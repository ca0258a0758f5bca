"""Equations of Word are said where they stand, on one line."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from bombs import zipped
from read_files import only, read

from graphrag_pipeline.ingest.reading.equations import with_equations

MAIN = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"


def document(body: str) -> str:
    return f'<w:document xmlns:w="{MAIN}" xmlns:m="{MATH}"><w:body>{body}</w:body></w:document>'


def docx(body: str, parts: Mapping[str, str] | None = None) -> bytes:
    return zipped(
        {
            **(parts or {}),
            "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default '
            'Extension="xml" ContentType="application/xml"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r1" '
            f'Type="{OFFICE}" Target="word/document.xml"/></Relationships>',
            "word/document.xml": document(body),
        }
    )


def said(text: str) -> str:
    return f"<m:r><m:t>{text}</m:t></m:r>"


def equation(inside: str) -> str:
    words = '<w:r><w:t xml:space="preserve">{}</w:t></w:r>'
    before, after = words.format("The catch is "), words.format(" tons.")
    return f"<w:p>{before}<m:oMath>{inside}</m:oMath>{after}</w:p>"


@pytest.mark.parametrize(
    ("inside", "line"),
    [
        (said("C=3b+7"), "C=3b+7"),
        (
            f"<m:f><m:num>{said('a+b')}</m:num><m:den>{said('2')}</m:den></m:f>",
            "(a+b)/2",
        ),
        (
            f"<m:sSubSup><m:e>{said('x')}</m:e><m:sub>{said('1')}</m:sub>"
            f"<m:sup>{said('n+1')}</m:sup></m:sSubSup>",
            "x_1^(n+1)",
        ),
        (f"<m:rad><m:deg/><m:e>{said('x')}</m:e></m:rad>", "√(x)"),
        (
            f'<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub>{said("i=1")}</m:sub>'
            f"<m:sup>{said('n')}</m:sup><m:e>{said('i')}</m:e></m:nary>",
            "∑_(i=1)^n i",
        ),
        (
            f'<m:d><m:dPr><m:begChr m:val="["/><m:endChr m:val="]"/></m:dPr>'
            f"<m:e>{said('a')}</m:e><m:e>{said('b')}</m:e></m:d>",
            "[a|b]",
        ),
    ],
)
def test_an_equation_is_text_where_it_stands(inside: str, line: str) -> None:
    assert only(read("a.docx", docx(equation(inside)))).text == f"The catch is {line} tons."


def test_a_part_without_equations_stays_as_it_is() -> None:
    xml = document("<w:p/>").encode()
    assert with_equations(xml) is xml


def test_an_equation_that_is_nested_without_end_is_its_letters() -> None:
    deep = f"{'<m:e>' * 3_000}{said('x')}{'</m:e>' * 3_000}"
    assert only(read("a.docx", docx(equation(deep)))).text == "The catch is x tons."


FORMULA = (
    "<semantics><mrow><mi>P</mi><mo>=</mo><mfrac><mn>1</mn><mn>2</mn></mfrac><mi>ρ</mi>"
    "<mo>&InvisibleTimes;</mo><msubsup><mi>v</mi><mn>0</mn><mn>3</mn></msubsup><mo>+</mo>"
    "<msqrt><mi>k</mi></msqrt></mrow><annotation>P</annotation></semantics>"
)
LINEAR = "P=1/2 ρ v_0^3+√(k)"


@pytest.mark.parametrize("before", ["", '<span style="display: none;">'])
def test_an_equation_of_a_web_page_is_text_where_it_stands(before: str) -> None:
    page = f"<p>The power is {before}<math alttext='P'>{FORMULA}</math>, at <math><mi>x</math>.</p>"
    assert only(read("a.html", page)).text == f"The power is {LINEAR}, at ."


def test_a_formula_and_a_chart_of_libreoffice_are_said_where_they_stand() -> None:
    names = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{space}:1.0"'
        for name, space in (
            *(("office", "office"), ("text", "text")),
            *(("draw", "drawing"), ("table", "table")),
        )
    )
    frame = '<draw:frame><draw:object xlink:href="./Object {}"/></draw:frame>'
    body = f"<text:p>The power is {frame.format(1)}.</text:p><text:p>{frame.format(2)}</text:p>"
    rows = "".join(
        "<table:table-row>"
        + "".join(f"<table:table-cell><text:p>{c}</text:p></table:table-cell>" for c in cells)
        + "</table:table-row>"
        for cells in (("", "Ships"), ("Q1", "12"), ("Q2", "19"))
    )
    xlink = 'xmlns:xlink="http://www.w3.org/1999/xlink"'
    parts = {
        "content.xml": f"<office:document-content {names} {xlink}><office:body><office:text>{body}"
        "</office:text></office:body></office:document-content>",
        "Object 1/content.xml": f'<?xml version="1.0"?><math>{FORMULA}</math>',
        "Object 2/content.xml": f"<office:document-content {names}><office:body><table:table>{rows}"
        "</table:table></office:body></office:document-content>",
    }
    text = only(read("a.odt", zipped(parts))).text
    assert text.startswith(f"The power is {LINEAR}.")
    assert "| Q2 | 19 |" in text
