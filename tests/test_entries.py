"""Questions about an entry of a reference page: a setting's default, what an option does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from asked_files import index_asked

from benchmarks.answers import passages_of
from graphrag_pipeline.query import QueryEngine

FILES = {
    "winch.html": """<html><head><title>Winch settings</title></head><body><h1>Winch settings</h1>
<dl>
<dt><code>rope_slack</code> (<code>integer</code>)</dt>
<dd><p>Sets how much rope is left loose between two pulls of the winch.</p>
<p>The default is forty feet. A smaller rope_slack wears the drum.</p></dd>
<dt><code>drum_heat</code> (<code>floating point</code>)</dt>
<dd><p>Sets at which heat of the drum the winch stops by itself, beside what rope_slack does.</p>
<p>The default is 81.5 degrees, which is above what the usual rope_slack brings about.</p></dd>
<dt><code>brake</code> (<code>boolean</code>)</dt><dd>Holds the drum when nobody is near. On by
default. It is let go by hand.</dd>
<dt><code>slack_alarm</code> (<code>enum</code>)</dt><dd><p>Rings where the rope is too loose.
Bell, whistle (the default) and none are possible.</p></dd>
<dt>Hand crank</dt>
<dd><p>Turns the drum where there is no steam at all.</p><p>The default is two men.</p></dd>
</dl></body></html>""",
    "haul.html": """<html><head><title>haul</title></head><body><h1>haul</h1>
<p>haul is a program that brings in nets.</p><dl>
<dt>-s <em>nets</em></dt><dt>--side=<em>nets</em></dt>
<dd><p>Bring in the nets of one side first, and those of the other when these are empty.</p>
<p>At most nine are taken at a time.</p></dd>
<dt>--no-count</dt><dd>Leave out the tally of the fish.</dd></dl></body></html>""",
    "mend.md": """# mend

## Options

### `netSize`

How large the mended nets are. Defaults to 12 fathoms where nothing else is said.

### `--side`

Mends the torn side of a net only, and leaves the other as it is.

## Notes

Nothing here is about nets. The default is to wait.
""",
}

FILES["directives.html"] = """<html><head><title>Directives</title></head><body>
<h1>Directives</h1>
<h2>RopeLength Directive</h2><table><tr><th><a href="help.html#d">Description:</a></th>
<td>How long ropes are</td></tr><tr><th><a href="help.html#f">Default:</a></th><td>RopeLength 30
</td></tr><tr><th><a href="help.html#c">Context:</a></th><td>boat, quay</td></tr></table>
<p>Ropes are cut by this. A longer RopeLength needs more room than the quay has.</p>
<h2>Mooring Directive</h2><table><tr><th><a href="help.html#d">Description:</a></th>
<td>Where boats lie</td></tr><tr><th><a href="help.html#f">Default:</a></th><td>Mooring east</td>
</tr><tr><th><a href="help.html#c">Context:</a></th><td>harbour</td></tr></table>
<p>A boat lies there by default.</p></body></html>"""
FILES["orders.csv"] = """order_id,customer,unit_price,status
4711,Haldor Nets,12.50,open
4712,Brine and Sons,9.75,sent
4713,Quayside Ropes,31.00,open
"""


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryEngine]:
    yield from index_asked(FILES, tmp_path_factory)


def first(asked: QueryEngine, question: str) -> str:
    return passages_of(asked.answer(question, "bm25").text)[0]


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("What is the default value of rope_slack?", "The default is forty feet."),
        ("What is the default drum_heat?", "The default is 81.5 degrees"),
        ("What is the default of netSize?", "Defaults to 12 fathoms"),
        ("What does netSize default to?", "Defaults to 12 fathoms"),
        ("How many nets does --side take at most?", "At most nine are taken at a time."),
        ("What is the default of RopeLength?", "Default: RopeLength 30"),
        ("What is the context of RopeLength?", "RopeLength — Context: boat, quay"),
        ("What is the context of Mooring?", "Mooring — Context: harbour"),
    ],
)
def test_what_an_entry_says_answers_a_question_that_says_its_name(
    asked: QueryEngine, question: str, told: str
) -> None:
    assert told in first(asked, question)


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("What does rope_slack do?", "rope_slack (integer): Sets how much rope"),
        ("What does the brake setting do?", "Holds the drum when nobody is near."),
        ("What does the --side option of haul do?", "-s nets --side=nets: Bring in the nets of"),
        ("What does the -s option of haul do?", "-s nets --side=nets: Bring in the nets of"),
        ("What does haul --no-count do?", "Leave out the tally of the fish."),
        ("What does the --side option of mend do?", "Mends the torn side of a net only"),
        ("What does the RopeLength directive do?", "Description: How long ropes are"),
    ],
)
def test_what_an_entry_begins_with_says_what_it_is_about(
    asked: QueryEngine, question: str, told: str
) -> None:
    assert told in first(asked, question)


def test_what_another_entry_says_is_not_told_of_one(asked: QueryEngine) -> None:
    for question, others in {
        "What is the default value of rope_slack?": ("81.5", "two men", "12 fathoms"),
        "What is the default of brake?": ("two men", "forty", "81.5"),
        "What is the default of slack_alarm?": ("two men", "forty", "81.5", "to wait"),
        "What is the default of netSize?": ("to wait", "forty"),
    }.items():
        told = first(asked, question)
        assert not any(other in told for other in others), told


def test_fields_of_records_are_no_entries(asked: QueryEngine) -> None:
    for question, told in {
        "What is the status of order_id 4712?": "status: sent",
        "What is the unit_price of Quayside Ropes?": "unit_price: 31.00",
        "Which customer has order_id 4711?": "Haldor Nets — order_id: 4711",
    }.items():
        assert told in first(asked, question)
