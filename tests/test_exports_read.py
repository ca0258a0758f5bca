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
        "parts": [{"name": "Iron", "value": 9, "unit": "mg"}],
    }
    assert only(read("a.json", json.dumps(task))).text.split("\n") == [
        "name: Paint buoy 12",
        "custom_fields.Priority: High",
        "people.1.name: Ida",
        "people.2.name: Per",
        "tags.Site: Osvik",
        "parts.Iron.value: 9",
        "parts.Iron.unit: mg",
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


def test_who_declined_an_invitation_is_told_apart() -> None:
    event = (
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Review\n"
        "ATTENDEE;CN=Aksel Moe;PARTSTAT=ACCEPTED:mailto:a@x\n"
        "ATTENDEE;CN=Ragna Lie;PARTSTAT=DECLINED:mailto:r@x\nEND:VEVENT\nEND:VCALENDAR\n"
    )
    text = only(read("a.ics", event)).text
    assert text == "title: Review\nattendee: Aksel Moe\ndeclined: Ragna Lie"


def test_messages_of_meta_are_a_chat_in_its_order_and_its_letters() -> None:
    said = [
        {
            "sender_name": "Ren\u00c3\u00a9",
            "timestamp_ms": 1714644000000,
            "content": "900 kr \u00c3\u00a9\u00e2\u0082\u00ac",
        },
        {"sender_name": "Ida", "timestamp_ms": 1714643000000, "content": "How much is it?"},
    ]
    text = only(read("a.json", json.dumps({"title": "Mast", "messages": said}))).text
    assert text == "[2024-05-02 09:43] Ida: How much is it?\n[2024-05-02 10:00] René: 900 kr é€"
    kept = json.dumps({"title": "\u00e9\u00e8 \u00c3"})
    assert only(read("a.json", kept)).text == "title: \u00e9\u00e8 \u00c3"


def test_conversations_within_an_export_are_chats() -> None:
    message = {"displayName": "Ida", "originalarrivaltime": "2024-05-02T10:00:00Z"}
    lists = [{"id": n, "MessageList": [{**message, "from": n, "content": "Aye."}]} for n in "ab"]
    documents = read("a.json", json.dumps({"userId": "8:per", "conversations": lists})).documents
    assert [(d.key, d.text) for d in documents] == [
        ("a", "[2024-05-02 10:00] Ida: Aye."),
        ("b", "[2024-05-02 10:00] Ida: Aye."),
    ]


def test_a_day_above_who_speaks_is_nobody() -> None:
    said = "May 02, 2024 10:00:00 AM\nIda Holm\nAt noon.\n\nMay 02, 2024 10:01:00 AM\nMe\nWho?\n"
    assert only(read("a.txt", said)).text.startswith("May 02, 2024 10:00:00 AM\nIda Holm")


def test_sections_of_settings_are_within_each_other() -> None:
    text = "; of the harbour\n[database]\nowner = Greta Moss\n[mail]\nport: 25\n"
    assert only(read("a.ini", text)).text == "database.owner: Greta Moss\nmail.port: 25"
    assert only(read("a.cfg", "set x 1\n")).text == "set x 1"


GROUPS = """Region,Shop,Sales
North,,
,Osvik,120
,Subtotal,120
South,,
,Bergen,300
Total,,420
"""


def test_rows_say_of_which_group_they_are() -> None:
    texts = [document.text for document in read("a.csv", GROUPS).documents]
    assert "Region: North\nShop: Subtotal\nSales: 120" in texts
    assert "Region: South\nShop: Bergen\nSales: 300" in texts
    assert "Region: Total\nSales: 420" in texts
    alone = GROUPS.replace(",Subtotal,120\nSouth,,\n", "")
    assert any(d.text == "Shop: Bergen\nSales: 300" for d in read("a.csv", alone).documents)
    lost = GROUPS.replace("South,,", "South,Lerne,9")
    assert any(d.text == "Shop: Bergen\nSales: 300" for d in read("a.csv", lost).documents)
