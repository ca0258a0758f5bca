"""Exports of other programs: feeds, notes, boards, maps in JSON."""

import json

from read_files import only, read

NOTE = """<en-export><note><title>Insurance</title><created>20240311T090000Z</created><content>
<![CDATA[<?xml version="1.0"?><en-note><div>The policy is <b>HM-4482</b>.</div></en-note>]]>
</content><resource><data encoding="base64">iVBORw0KGgoAAAANSUhEUg</data></resource></note>{}
</en-export>"""


def test_notes_of_evernote_are_their_words_without_files() -> None:
    assert "The policy is HM-4482." in only(read("a.enex", NOTE.format(""))).text
    two = read("a.enex", NOTE.format("<note><title>Garden</title><content>Roses.</content></note>"))
    assert [document.title for document in two.documents] == ["Insurance", "Garden"]
    assert all("iVBOR" not in document.text for document in two.documents)


def test_what_names_an_element_of_others_is_said() -> None:
    outline = "<opml><body><outline text='Sea'><outline text='Harbour'/></outline></body></opml>"
    assert only(read("a.opml", outline)).text == "Sea\ntext: Harbour"


def test_a_list_of_names_and_values_is_fields() -> None:
    task = {
        "name": "Paint buoy 12",
        "custom_fields": [
            {"gid": "7", "name": "Priority", "display_value": "High"},
            {"gid": "8", "name": "Cost", "display_value": None},
        ],
        "people": [{"name": "Ida"}, {"name": "Per"}],
        "tags": [{"Key": "Site", "Value": "Osvik"}],
    }
    assert only(read("a.json", json.dumps(task))).text.split("\n") == [
        "name: Paint buoy 12",
        "custom_fields.Priority: High",
        "people.1.name: Ida",
        "people.2.name: Per",
        "tags.Site: Osvik",
    ]
    twice = {"title": "T", "tags": [{"key": "a", "value": "b"}, {"key": "a", "value": "c"}]}
    assert "tags.2.value: c" in only(read("a.json", json.dumps(twice))).text


def test_arrays_of_numbers_are_one_line() -> None:
    places = [
        {"name": "Mole", "at": [[5, 60.5], [6, 61]], "vector": [0.5] * 900, "mixed": [1, "a"]}
    ]
    assert only(read("a.geojson", json.dumps(places))).text.split("\n") == [
        "name: Mole",
        "at: 5, 60.5, 6, 61",
        "vector: " + "0.5, " * 29 + "0.5 and 870 more",
        "mixed.1: 1",
        "mixed.2: a",
    ]


def test_an_event_says_its_time_zone() -> None:
    event = "BEGIN:VEVENT\nSUMMARY:Standup\nDTSTART;TZID=Europe/Oslo:20240506T090000\nEND:VEVENT\n"
    assert "time zone: Europe/Oslo" in only(read("a.ics", event)).text.split("\n")
