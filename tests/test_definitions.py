"""Questions for what something is, answered where a text brings it in for who does not know it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from asked_files import index_asked

from benchmarks.answers import passages_of
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.evidence.definitions import _introduces

_RESULTS = (
    "Tidenet beats Ebbmap in week {n} and Tidenet takes less time than Ebbmap. With Tidenet, a "
    "pilot of harbour {n} waited less. Tidenet and T-NET were compared in table {n}, where T is "
    "the number of tides. The error of Tidenet fell by {n} percent, and Tidenet won by far. "
)
PAPER = (
    "Pilots wait for tides in every harbour of the north. In this paper we introduce a graph of "
    "currents, called Tidenet, which learns from buoys. For its search we propose T-NET (Tidal "
    "Network), a layered index of buoys. T is the number of tides. It was made from data of the "
    "Water Survey League (WSL) and of Ebbmap (i.e., a map of ebbs).\n\n"
    + "\n\n".join(_RESULTS.format(n=n) * 4 for n in range(2, 40))
)
NOTES = (
    "Das Ebbwerk misst viel. Mit Ebbwerk, einer Pumpe und einem Rohr wurde gearbeitet. Die Firma "
    "baut ein Verfahren namens Ebbwerk, das die Tide misst. Das Ebbwerk wird im Mai geprüft."
)

GUIDE = (
    "## 3.1. Tools\n\n"
    + "More on dredge is told by dredge(1). Passing --fast to dredge makes dredge log. " * 3
    + "\n\n### 3.1.2. dredge\n\nThis is the main program for mud. Many options are there.\n\n"
    "If the sieve pattern is a string, mud passes. Nobody wrote of sieves before.\n\n"
    "A sieve is a plate with holes. The sieve of Bergen is old.\n"
)

LICENCE = (
    'The "Mud Source" for a work in wet form means all the mud that is needed to make it.\n\n'
    'A "dry work" is either the sand or a work based on the sand. The Mud Source need not hold '
    "any water. No dry work shall be wet, and a dry work in Mud Source stays a dry work.\n\n"
    '"Warden" shall mean the owner of the mud. A copy goes to the Warden.\n\n'
    '"Flow Notes" for a Tide Product means any notes that a sailor needs with the Tide Product. '
    "Whoever sells a Tide Product, or the part which is the dry work, tells the Warden.\n\n"
    'A "Tide Product" is any good that floats. The "Fixed Parts" are certain parts of the mud '
    "whose names are listed. Nobody renames any Fixed Part, and each Fixed Part stays.\n"
)

DICTIONARY = (
    "Words of the harbour\n\n"
    + "".join(f"quayling\nmudlark {n}\n\n" for n in range(3))
    + "Every quayling sings, says the song of the quayling, and no quayling is old.\n\n"
    ":quayling: /kee'ling/, n.\n\n[from Port Rowan] A young gull that lives below a quay.\n\n"
    ":OLG: /O-L-G/, imp.\n\nAbbreviation for oars leave gulls.\n\n"
    "The OLG is said by pilots, for an OLG is short, and each OLG is loud.\n\n"
    "cleat: A horn of wood to which ropes are tied. Every cleat holds, and no cleat of a quay, "
    "nor the cleat of a boat, is ever a cleat alone.\n\nUna: A cleat is wet. Una Berg is a pilot.\n"
)
MANUAL = {
    "dredge.md": "dredge\n\ndredge-log - show what was dredged\n\nNobody calls dredge-log twice.\n",
    "brush.md": (
        "# 3.12. Sponge\n\nFigure 14.90. Sponge icon in the box\n\nIt takes water from a picture. "
        "Use it well.\n\n# 3.13. Others\n\nThe Sponge tool goes with the sponge tool of others.\n"
    ),
    "names.md": (
        "# Strictly\n\nThese are bins. However, they are not normally called GNU, and no GNU of "
        "theirs is a GNU.\n\n# Others\n\nSome send a parcel at night. These parcels are called "
        "Guests of the Night Unit (GNU).\n\n# Is Ebbix on a Boat?\n\nFor Ebbix Boat there was "
        "Ebbix, and with Ebbix Boat the Ebbix of the Boat.\n\n# What is Ebbix Boat?\n\nA ferry "
        "of three decks. It is blue.\n\n"
        "# Gear\n\nSuch a crab pot is set as a lone crab pot or as a named crab pot.\n\n"
        "A crab pot is an object of net and wire that is known to the office and lies on the mud "
        "below a buoy of the same colour as the boat from which it was set in the spring.\n"
    ),
    "fields.md": (
        "# Fields\n\nThere are some.\n\n# Tide\n\nThis says how high the water stands. It is a "
        "number.\n\n# Files\n\nThe value of the Tide field is taken from the log, and "
        "the Tide field is always there.\n\nSeen:\n\n"
        "Rain\nTide\n\nHowever, sailors forget to fill in the tide field of the log.\n"
    ),
}
PROGRAMS = {
    f"{name}.html": f"""<html><head><title>{name} - Harbour Tools</title></head><body>
<h1>{name}</h1><p>From the tools of Port Rowan</p>
<table><tr><td>{name} [ -v ] [ nets, ... ]</td><td>(1)</td></tr>
<tr><td>{name} --help</td><td>(2)</td></tr></table><p>{says}</p>
<p>Whoever runs {name} twice, and {name} again, sees that {name} waits for {name}.</p>
</body></html>"""
    for name, says in {
        "netlift": "Brings all nets aboard that are full. Empty ones stay.",
        "ropeway": "Winds up whatever rope lies on deck. It needs no crew.",
        "mudgate": "Opens the gate when the tide falls. It closes by itself.",
    }.items()
}
FAQ = (
    "Questions\n\nWhat is Haulix?\n\nHaulix is not said here, see below.\n\n"
    "For the newest Tarnix, please see section 9 of Tarnix.\n\n"
    "What is Tarnix GNU/Boat?\n\nTarnix GNU/Boat is the system that steers all boats.\n\n"
    "What is a Tarnix file?\n\nIt holds what Tarnix writes. "
    "The Tarnix Crew is a club of Tarnix.\n\n"
    "Then, tideview(8) creates a list, as tideview does. With tideview, tideview is fast.\n\n"
    "The Tarnix tideview(8) daemon provides a picture of the tide. Some tideview is old.\n\n"
    ': ends = splice (rope, eye)\n: ends = splice (rope, eye, "long")\n\n'
    "Join both ends of a rope in an eye.\n\nSee also splice (rope).\n\nA splice is no knot. "
    "Sailors splice, and splice again, and every splice holds what splices hold.\n\n"
    "coil (rope)\n\nSee section 4 for what coil does.\n\n"
    "Now this brinesalt is a very curious thing. Some sell brinesalt, and brinesalt is dear.\n"
)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryEngine]:
    yield from index_asked(
        {
            "paper.txt": PAPER,
            "notizen.txt": NOTES,
            "guide.md": GUIDE,
            "licence.txt": LICENCE,
            "dictionary.txt": DICTIONARY,
            "faq.txt": FAQ,
            **MANUAL,
            **PROGRAMS,
        },
        tmp_path_factory,
    )


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("What is Tidenet?", "a graph of currents, called Tidenet"),
        ("What is Tidenet about?", "a graph of currents, called Tidenet"),
        ("What is the T-NET?", "we propose T-NET (Tidal Network), a layered index"),
        ("What is Ebbmap?", "Ebbmap (i.e., a map of ebbs)"),
        ("What does WSL stand for?", "the Water Survey League (WSL)"),
        ("What is dredge?", "This is the main program for mud"),
        ("What does dredge do?", "This is the main program for mud"),
        ("What is a sieve?", "A sieve is a plate with holes"),
        ("What is Mud Source?", "means all the mud that is needed"),
        ("What is a dry work?", "is either the sand or"),
        ('What does "Warden" mean?', "shall mean the owner of the mud"),
        ("What is a Tide Product?", "any good that floats"),
        ("What is a Fixed Part?", "are certain parts of the mud"),
        ("Who is a warden under the Mud Licence?", "shall mean the owner of the mud"),
        ("What is a quayling?", "A young gull that lives below a quay"),
        ("What does OLG stand for?", "Abbreviation for oars leave gulls"),
        ("What is a cleat?", "A horn of wood"),
        ("Who is Una?", "Una Berg is a pilot"),
        ("What does dredge-log do?", "show what was dredged"),
        ("What does the sponge tool do?", "It takes water from a picture"),
        ("What is the tide field for?", "how high the water stands"),
        ("What does netlift do?", "netlift: Brings all nets aboard"),
        ("What is mudgate?", "mudgate: Opens the gate when the tide falls"),
        ("What is Tarnix?", "is the system that steers all boats"),
        ("What is tideview?", "daemon provides a picture of the tide"),
        ("What does the tideview daemon do?", "daemon provides a picture of the tide"),
        ("What is brinesalt?", "is a very curious thing"),
        ("What does splice do?", "splice: Join both ends of a rope"),
        ("What is a GNU?", "Guests of the Night Unit (GNU)"),
        ("What is Ebbix Boat?", "A ferry of three decks"),
        ("What is a crab pot?", "an object of net and wire"),
        ("Was ist das Ebbwerk?", "ein Verfahren namens Ebbwerk"),
    ],
)
def test_where_something_is_introduced_stands_first(
    asked: QueryEngine, question: str, told: str
) -> None:
    first, *_ = passages_of(asked.answer(question, "auto").text)
    assert told in first


def test_the_first_mention_of_a_document_is_found_among_many(asked: QueryEngine) -> None:
    index = asked.index
    (found,) = op.first_mentions(index, op.entities_titled(index, ["Tidenet"]), 3)
    (record,) = op.chunk_records(index, {found: 0.0})
    assert record.attributes["start_char"] == 0
    assert op.first_mentions(index, [], 3) == {}


@pytest.mark.parametrize("name", ["42", "x", "(((", "C++"])
def test_a_name_of_no_or_few_letters_is_asked_for_as_well(name: str) -> None:
    text = f"The great harbour bureau ({name}) is here, and {name} (the other) as well."
    assert _introduces(name)(text.lower(), text) == 0
