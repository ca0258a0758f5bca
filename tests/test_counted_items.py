"""Items of lists have the marks that their programs show: numbers, letters, and those of Rome."""

import pytest
from read_files import only, read
from test_docx_notes import paragraph, part, run, text_of

from graphrag_pipeline.core.prose import readable_list
from graphrag_pipeline.extraction.rules.sentences import sentence_spans

LETTERED = "Rules:\n\na) Dogs stay out.\nb) Phones rest.\n  i) by day\n  ii) by night\nc) Pay."
PAGE = (
    '<p>Rules:</p><ol type="a"><li>Dogs stay out.</li><li>Phones rest.<ol type=i>'
    "<li>by day</li><li>by night</li></ol></li><li>Pay.</li></ol>"
)
_SPACES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{space}:1.0"'
    for name, space in (("office", "office"), ("style", "style"), ("text", "text"))
)
_P = "<text:p>{}</text:p>"
TEXT = (
    f'<office:document {_SPACES} office:mimetype="application/vnd.oasis.opendocument.text">'
    '<office:automatic-styles><text:list-style style:name="L1">'
    '<text:list-level-style-number text:level="1" style:num-format="a"/>'
    '<text:list-level-style-number text:level="2" style:num-format="i"/>'
    "</text:list-style></office:automatic-styles><office:body><office:text>"
    + _P.format("Rules:")
    + '<text:list text:style-name="L1">'
    + f"<text:list-item>{_P.format('Dogs stay out.')}</text:list-item>"
    + f"<text:list-item>{_P.format('Phones rest.')}<text:list>"
    + "".join(
        f"<text:list-item>{_P.format(said)}</text:list-item>" for said in ("by day", "by night")
    )
    + f"</text:list></text:list-item><text:list-item>{_P.format('Pay.')}</text:list-item>"
    "</text:list></office:text></office:body></office:document>"
)
GUIDE = """= Crane

. Close the valve.
. Fill:
.. with water
.. by hand
* slowly
. Open it.
+
----
open
----
. Wait.

Later on.

. Rest.

[start=4]
. Go.
"""
PAPER = r"""\begin{document}Steps:
\begin{enumerate}
\item Moor.
\item Lower:
\begin{enumerate} \item slowly \item by hand \end{enumerate}
\item Raise.
\end{enumerate}
\begin{itemize} \item bare \end{itemize}
\begin{enumerate}[label=(\roman*), start=3] \item third \item fourth \end{enumerate}
\begin{enumerate}[resume] \item goes on \end{enumerate}
\begin{enumerate}[(A)] \item first \end{enumerate}
\end{document}"""
NOTES = """Notes
=====

#. Stop.
#. Drain:

   #. one
   #. two

#. Fill
   slowly.

Then:

3. Third
#. Fourth
"""


@pytest.mark.parametrize(("name", "content"), [("a.html", PAGE), ("a.fodt", TEXT)])
def test_items_of_pages_and_texts_that_are_counted_by_letters_keep_these(
    name: str, content: str
) -> None:
    assert only(read(name, content)).text == LETTERED


def test_items_of_word_that_are_counted_by_letters_keep_these() -> None:
    levels = "".join(
        f'<w:lvl w:ilvl="{depth}"><w:start w:val="1"/><w:numFmt w:val="{kind}"/></w:lvl>'
        for depth, kind in enumerate(("upperLetter", "lowerRoman"))
    )
    numbering = f'<w:abstractNum w:abstractNumId="0">{levels}</w:abstractNum>'
    numbering += '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'

    def item(text: str, depth: int) -> str:
        place = f'<w:ilvl w:val="{depth}"/><w:numId w:val="1"/>'
        return paragraph(f"<w:pPr><w:numPr>{place}</w:numPr></w:pPr>{run(text)}")

    body = item("Opening", 0) + item("Budget", 0) + item("Cranes", 1) + item("Berths", 1)
    shown = ["A) Opening", "B) Budget", "  i) Cranes", "  ii) Berths"]
    assert text_of(body, numbering=part("numbering", numbering)) == shown


@pytest.mark.parametrize(
    ("name", "content", "shown"),
    [
        (
            "a.adoc",
            GUIDE,
            "1. Close the valve.|2. Fill:|  1. with water|  2. by hand|- slowly|3. Open it."
            "|```|open|```|4. Wait.|Later on.|1. Rest.|4. Go.",
        ),
        (
            "a.tex",
            PAPER,
            "1. Moor.|2. Lower:|  a) slowly|  b) by hand|3. Raise.|- bare|iii) third|iv) fourth"
            "|- goes on|A) first",
        ),
        (
            "a.rst",
            NOTES,
            "1. Stop.|2. Drain:|  1. one|  2. two|3. Fill|  slowly.|Then:|3. Third|4. Fourth",
        ),
    ],
)
def test_items_that_signs_count_have_their_numbers(name: str, content: str, shown: str) -> None:
    lines = [line.rstrip() for line in only(read(name, content)).text.split("\n")]
    first = next(n for n, line in enumerate(lines) if line in (shown.split("|")[0], "Steps:"))
    said = [line for line in lines[first:] if line and line != "Steps:"]
    assert said == shown.split("|")


def test_an_item_that_a_letter_counts_is_a_sentence_and_a_line() -> None:
    spans = sentence_spans(LETTERED)
    assert [LETTERED[start:end] for start, end in spans][1:] == [
        "a) Dogs stay out.",
        "b) Phones rest.",
        "i) by day",
        "ii) by night",
        "c) Pay.",
    ]
    assert readable_list("It takes\na) *salt*\niv) two\neggs") == "It takes\na) salt\niv) two eggs"
