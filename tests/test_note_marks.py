"""Notes of Obsidian, Logseq and Notion: links of properties are kept, marks of programs are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from read_files import only, read

from conftest import build_graph
from graphrag_pipeline.extraction.rules.links import title_of_file

HEX = "0123456789abcdef0123456789abcdef"
PROPERTIES = """---
owner: "[[firms/Baltor Freight|the firm]]"
crew:
  - "[[Ana Lindqvist]]"
  - "[[people/Bo Lindqvist#Work|Bo]]"
parent: [[Port Rowan]]
cover: "[[cover.png]]"
sizes: [[1, 2]]
---
# Quay 4

It was built in 1930.
"""


def test_properties_keep_the_notes_that_they_link_to():
    note = only(read("Quay 4.md", PROPERTIES))
    facts = [note.text[b.start : b.end] for b in note.blocks if b.kind == "fact"]
    assert facts == [
        "owner: Baltor Freight",
        "crew: Ana Lindqvist; Bo Lindqvist",
        "parent: Port Rowan",
    ]
    (heading,) = [note.text[b.start : b.end] for b in note.blocks if b.kind == "heading"]
    assert heading == "# Quay 4"
    assert dict(note.metadata) == {
        "owner": "Baltor Freight",
        "crew": "Ana Lindqvist, Bo Lindqvist",
        "parent": "Port Rowan",
        "cover": "cover.png",
        "sizes": "1, 2",
    }


def test_links_of_properties_are_relationships_of_the_note(tmp_path: Path):
    engine = build_graph(tmp_path, {"Quay 4.md": PROPERTIES})
    with engine.store.read() as con:
        pairs = con.execute("SELECT lower(source), lower(target) FROM relationships").fetchall()
    linked = {frozenset(map(str, pair)) for pair in pairs}
    for name in ("baltor freight", "ana lindqvist", "bo lindqvist", "port rowan"):
        assert frozenset(("quay 4", name)) in linked


def test_a_note_of_properties_alone_is_read():
    assert only(read("a.md", '---\nowner: "[[Baltor]]"\n---\n')).text == "owner: Baltor"


BLOCK = "65e5a1b2-1111-4222-8333-abcdefabcdef"
LOGSEQ = f"""title:: Crane Seven
owner:: [[Baltor Freight]]

- The crane was built by Halvorsen Lift
  id:: {BLOCK}
  collapsed:: true
\t- Look: (({BLOCK})), [there]((({BLOCK})))
\t- {{{{embed (({BLOCK}))}}}}
\t- {{{{query (todo TODO)}}}}
\t- ((no-block)) f((x))
- {{{{[[TODO]]}}}} repair it
  :LOGBOOK:
  CLOCK: [2024-03-05 Tue 10:00:00]--[2024-03-05 Tue 11:00:00] =>  01:00:00
  :END:
  SCHEDULED: <2024-03-07 Thu 09:00 .+1d>
  #+BEGIN_QUERY
  {{:title "x"}}
  #+END_QUERY
```
id:: 1
```
"""


def test_marks_of_an_outliner_are_no_text_and_references_are_what_they_refer_to():
    note = only(read("pages/Cranes___Crane 7.md", LOGSEQ))
    assert note.title == "Crane Seven"
    assert note.text == (
        "owner: Baltor Freight\n\n"
        "- The crane was built by Halvorsen Lift\n"
        "\t- Look: The crane was built by Halvorsen Lift, there\n"
        "\t- The crane was built by Halvorsen Lift\n"
        "\t- ((no-block)) f((x))\n"
        "- TODO repair it\n"
        "  scheduled: 2024-03-07 09:00\n"
        "```\nid:: 1\n```"
    )


def test_queries_of_roam_are_no_text_and_its_tasks_are_words():
    text = "- [[Crane 7]] is {{[[TODO]]}} checked ((aB3-x_9Zq))\n- {{[[query]]: {and: [[TODO]]}}}\n"
    assert only(read("a.md", text)).text == "- [Crane 7](Crane%207.md) is TODO checked"


def test_pages_of_logseq_and_notion_are_called_without_what_is_not_their_name():
    assert only(read("Cranes___Crane 7.md", "Text.")).title == "Crane 7"
    assert only(read(f"Crane 7 {HEX}.md", "Text.")).title == "Crane 7"
    assert title_of_file(f"Cranes/Crane-7-{HEX}.md") == "Crane 7"
    assert title_of_file(f"{HEX}.md") == HEX


@pytest.mark.parametrize("end", [f"https://www.notion.so/Baltor-{HEX}?pvs=4", f"Baltor%20{HEX}.md"])
def test_properties_of_notion_are_names_without_addresses(end: str):
    page = only(read("a.md", f"# Crane 7\n\nOwner: Baltor Freight ({end})\nBuilt: 1998\n\nOld."))
    assert "Owner: Baltor Freight\nBuilt: 1998\n" in page.text
    rows = read("a.csv", f"Name,Owner,Yard\nC7,Baltor ({end}),Quay (old)\nC8,Vik ({end}),B\n")
    assert rows.documents[0].text == "Name: C7\nOwner: Baltor\nYard: Quay (old)"
