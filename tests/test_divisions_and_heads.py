"""Questions for divisions by their numbers, for what heads of paragraphs name, and of plays."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from asked_files import index_asked
from read_files import only, read

from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query.asked_themes import asks_for_themes

PLAY = """<?xml version="1.0"?><TEI xmlns="http://www.tei-c.org/ns/1.0"><teiHeader><fileDesc>
<titleStmt><title>The Ferrymen</title><author><persName><forename>Ida</forename>
 <surname>Varde</surname></persName><idno>Q7</idno></author><editor>Bo Lund</editor></titleStmt>
<publicationStmt><publisher>Sarn Press</publisher></publicationStmt></fileDesc></teiHeader>
<text><front><castList><castItem><role>Tord</role><roleDesc>a pilot of Sarn</roleDesc></castItem>
<castItem><role>Ebba</role></castItem></castList></front><body>
<div type="act"><head>Act 1</head><div type="scene"><head>Scene 1</head>
<stage>Enter Tord.</stage>
<sp><speaker>TORD.</speaker><l>The tide is late,</l><l>and so is she.</l>
<stage>He sits.</stage><p>I wait<note>In Q: stay.</note>.</p></sp></div>
<div type="scene"><head>Scene 2</head><sp><speaker>Ebba</speaker><p>Who calls the ferry?</p></sp>
</div></div>
<div type="act"><head>Act 2</head>The lamps are out.<div type="scene"><head>Scene 1</head>
<stage>(A quay.)</stage><sp><speaker>Ebba</speaker><p>The ropes are wet.</p></sp></div></div>
</body></text></TEI>"""
RULES = """# Rules of the harbour

## Article 4. Berths

A berth is let for a week.

## Article 5. Fees

The fee is paid on arrival. Late boats pay twice.

## 6.2 Noise

Engines are stopped after ten.
"""
LOG = """Repairs are told here, one after the other.

Brandvik. The lamp went out at noon. The cause was a broken fuse in the mast.

Svarthorn. Two pumps stopped at once. The cause was a bed of sand in the inlet.

[Kelm Yard](https://kelm.example/1). The crane fell, as its feet had been built on clay.

The first keeper of the light was Ulla Storm, a sailor from Sarn. Ulla Storm, the wind is high!
"""
SERIES = [(20, "Tarred ropes", "Ropes are tarred each spring."), (21, "Wet ropes", "All dry.")]
SERIES += [
    (n, f"Knots {n}", f"Bo wrote knot {n} for SRP-20, as SRP-20 asks.") for n in range(22, 40)
]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryEngine]:
    files = {
        f"srp-{n}.txt": f"SRP: {n}\nTitle: {title}\nAuthor: Ida Varde\nStatus: Draft\n\n{text}\n"
        for n, title, text in SERIES
    }
    files |= {"ferrymen.xml": PLAY, "rules.md": RULES, "log.md": LOG}
    files["other.xml"] = PLAY.replace("Ferrymen", "Wreckers").replace("The ropes", "Sails")
    yield from index_asked(files, tmp_path_factory)


def points(engine: QueryEngine, question: str) -> list[str]:
    return [each.rstrip() for each in engine.answer(question).text.split("\n- ")[1:]]


def test_tei_has_its_divisions_and_who_speaks():
    play = only(read("a.xml", PLAY))
    assert (play.title, play.metadata) == (
        "The Ferrymen",
        {"author": "Ida Varde", "editor": "Bo Lund"},
    )
    heads = ["Cast of characters", "Act 1", "Act 1, Scene 1", "Act 1, Scene 2"]
    found = [play.text[start:end] for start, end, kind in play.blocks if kind == "heading"]
    assert found == [*heads, "Act 2", "Act 2, Scene 1"]
    assert "- Tord: a pilot of Sarn\n- Ebba\n" in play.text
    said = "[Enter Tord.]\nTORD: The tide is late,\nand so is she.\n[He sits.]\nTORD: I wait"
    assert f"{said} (In Q: stay.).\n" in play.text
    assert "Act 2\n\nThe lamps are out.\n\nAct 2, Scene 1" in play.text
    assert "Sarn Press" not in play.text


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Who speaks first in act 2 scene 1 of The Ferrymen?", "EBBA: The ropes are wet."),
        ("Who speaks in scene 2 of act I of The Ferrymen?", "EBBA: Who calls the ferry?"),
        ("What does Article 5 of the rules say?", "Fees: The fee is paid on arrival. Late boats"),
        ("What does section 6.2 say?", "6.2 Noise: Engines are stopped after ten."),
    ],
)
def test_what_a_numbered_division_begins_with_is_told(engine, question, said):
    assert said in points(engine, question)[0]


def test_sentences_are_of_the_head_that_their_paragraph_runs_in_from(engine):
    (first, *_) = points(engine, "What was the cause of the trouble at Svarthorn?")
    assert first.startswith("Svarthorn: The cause was a bed of sand in the inlet.")
    (first, *_) = points(engine, "What happened at Kelm Yard?")
    assert first.startswith("Kelm Yard: The crane fell")


def test_who_somebody_is_may_be_said_before_the_name(engine):
    (first, *_) = points(engine, "Who is Ulla Storm?")
    assert first.startswith("The first keeper of the light was Ulla Storm")


def test_lines_below_the_title_of_asciidoc_say_who_wrote_it_and_when():
    book = only(read("a.adoc", "= Ropes\nAnn Lee <a@b.example>; Bo Li\nv2, 2024-03-01\n\nText.\n"))
    assert book.metadata == {"author": "Ann Lee, Bo Li", "date": "2024-03-01"}
    assert only(read("a.adoc", "= Ropes\nThey are replaced each spring.\n")).metadata == {}


def test_one_of_a_series_is_called_with_a_hyphen_or_a_blank(engine):
    assert points(engine, "Who wrote SRP-20?")[0].startswith(
        "SRP 20: Tarred ropes — Author: Ida Varde"
    )


def test_who_speaks_is_no_label_of_a_form(engine):
    said = points(engine, "Who is Ebba in The Ferrymen?")
    assert not [each for each in said if "— EBBA:" in each]
    assert not asks_for_themes('Who says "What is all this about"?')
