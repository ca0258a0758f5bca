"""Older formats of office programs: RTF, workbooks of Excel 97, messages of Outlook."""

import importlib
import struct
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from compound import compound
from read_files import only, read, reason

from graphrag_pipeline.core.extras import missing_modules
from graphrag_pipeline.ingest.reading import versions

pytestmark = pytest.mark.skipif(bool(missing_modules("legacy")), reason="the extra legacy")

LETTER = rb"""{\rtf1\ansi\ansicpg1251\deff0{\fonttbl{\f0 Arial;}}
{\info{\title The lease of Ardglen}{\author \'c8\'e2\'e0\'ed}{\*\company Hidden Ltd}}
{\*\generator Hidden 1.0;}\pard Dear \b Marta Fenwick\b0 , \'c8\'e2\'e0\'ed wrote of \u246?res.\par
See {\field{\*\fldinst HYPERLINK "https://x.org"}{\fldrslt the site}}.{\pict\pngblip 89504e47}\par
\trowd\cellx100\cellx200 Name\cell Tons\cell\row
\trowd\cellx100\cellx200 Frida\cell 120\cell\row
\pard End.\par}"""


def properties(strings: dict[int, str], more: dict[tuple[int, int], bytes], head: int):
    """Yield the streams of a storage of Outlook: what it says of itself, and each of it."""
    listed = bytes(head)
    for number, text in strings.items():
        listed += struct.pack("<HHIQ", 0x1F, number, 6, len(text) * 2 + 2)
        yield f"__substg1.0_{number:04X}001F", text.encode("utf-16-le")
    for (kind, number), value in more.items():
        size = len(value) if kind == 0x102 else int.from_bytes(value, "little")
        listed += struct.pack("<HHIQ", kind, number, 6, size)
        if kind == 0x102:
            yield f"__substg1.0_{number:04X}0102", value
    yield "__properties_version1.0", listed


def ticks(time: datetime) -> bytes:
    return int((time.timestamp() + 11_644_473_600) * 10**7).to_bytes(8, "little")


def item(strings: dict[int, str], more: dict[tuple[int, int], bytes]) -> dict[str, bytes]:
    """Return the streams of an item; numbers from 0x8200 on are kept under others, as named."""
    numbers = sorted({number for number in (*strings, *(n for _, n in more)) if number > 0x8200})
    own = {number: 0x8000 + place for place, number in enumerate(numbers)}
    listed = [struct.pack("<IHH", number, 6, place) for place, number in enumerate(numbers)]
    kept = {own.get(number, number): text for number, text in strings.items()}
    rest = {(kind, own.get(number, number)): value for (kind, number), value in more.items()}
    names = {"__nameid_version1.0/__substg1.0_00030102": b"".join(listed)} if listed else {}
    return {**dict(properties(kept, rest, 32)), **names}


def outlook(body: str, attached: dict[str, bytes]) -> bytes:
    sent = ticks(datetime(2024, 5, 1, 10, tzinfo=UTC))
    strings = {
        0x1A: "IPM.Note",
        0x37: "Lease of Ardglen: ö",
        0xC1A: "Hester Quill",
        0xC1F: "hester@x.org",
        0x1000: body,
    }
    streams = dict(properties(strings, {(0x40, 0x39): sent}, 32))
    people = {0x3001: "Bo Li", 0x39FE: "bo@x.org"}
    parts = {"__recip_version1.0_#00000000": (people, dict[tuple[int, int], bytes]())}
    for number, (name, data) in enumerate(attached.items()):
        more = {(0x102, 0x3701): data, (0x3, 0x3705): b"\1"}
        parts[f"__attach_version1.0_#{number:08X}"] = ({0x3707: name}, more)
    for storage, (said, more) in parts.items():
        streams |= {f"{storage}/{n}": data for n, data in properties(said, more, 8)}
    return compound(streams)


PRICES = b"name,tons\nFrida,120\nAlma,90\n"
SOUND = {
    ".rtf": LETTER,
    ".xls": (Path(__file__).parent / "data" / "boats.xls").read_bytes(),
    ".msg": outlook("Bo sails.", {"prices.csv": PRICES}),
}


def test_rtf_is_its_text_without_what_programs_note() -> None:
    document = only(read("letter.rtf", LETTER))
    assert (document.title, document.metadata) == ("The lease of Ardglen", {"author": "Иван"})
    assert document.text == (
        "Dear Marta Fenwick, Иван wrote of öres.\nSee the site.\n"
        "| Name | Tons |\n| Frida | 120 |\nEnd."
    )
    assert [document.text[b.start : b.end] for b in document.blocks] == [
        "| Name | Tons |\n| Frida | 120 |"
    ]
    assert "does not begin" in reason(read("a.rtf", b"Only words."))


def test_a_share_in_an_old_workbook_is_said_as_the_sheet_shows_it() -> None:
    file = Path(__file__).parent / "data" / "shares.xls"
    assert [document.text for document in read(file.name, file.read_bytes()).documents] == [
        "Name: Alder\nShare: 25%\nRise: -3.5%\nN: 3",
        "Name: Birch\nShare: n/a\nRise: 150%\nN: 4",
    ]


def test_hours_in_an_old_workbook_may_be_more_than_a_day() -> None:
    file = Path(__file__).parent / "data" / "hours.xls"
    documents = read(file.name, file.read_bytes()).documents
    hours = [document.text.rpartition("Hours: ")[2] for document in documents]
    assert hours == ["30:15", "8:00", "100:00"]


def test_an_old_workbook_is_read_as_a_new_one() -> None:
    result = read("boats.xls", SOUND[".xls"])
    texts = {document.key: document.text for document in result.documents}
    assert texts["Boats!caption"] == "Boats of Tarnfjord"
    assert texts["Boats!row-1"] == "Town: Tarnfjord\n2025 Tons: 140\n2025 Boats: 4"
    assert texts["People!p1"] == "name: Søren Vik\nid: p1\nsince: 2020-01-02\nactive: true"
    assert "cannot be read" in reason(read("a.xls", b"\x09\x08 no workbook"))
    page = b"<table><tr><th>Client<th>Sum</tr><tr><td>Nordkyst<td>1200</tr></table>"
    assert "| Nordkyst | 1200 |" in only(read("a.xls", page)).text
    assert (
        only(read("a.xls", b"Boat\tOwner\nFalk\tAda Holm\n")).text == "Boat: Falk\nOwner: Ada Holm"
    )


def test_a_message_of_outlook_is_mail() -> None:
    body = "Bo Li keeps the quay. " * 300
    message, row, _ = read("m.msg", outlook(body, {"prices.csv": PRICES})).documents
    assert (message.title, message.text) == (
        "Lease of Ardglen: ö",
        f"[2024-05-01 10:00] Hester Quill to Bo Li:\n\n{body.strip()}",
    )
    assert message.metadata == {
        "from": "Hester Quill <hester@x.org>",
        "to": "Bo Li <bo@x.org>",
        "date": "2024-05-01T10:00:00+00:00",
        "sender": "Hester Quill, hester@x.org",
        "recipients": "Bo Li, bo@x.org",
        "attachments": "prices.csv",
    }
    assert row.key == "attachment-1/row-1"
    assert "Frida" in row.text
    assert "no message of Outlook" in reason(read("a.msg", b'::msgcat::mcset it "Abort"'))
    # An entry of a directory has 128 bytes, and ends with the size of its stream.
    sound = outlook("Bo sails.", {})
    entry = sound.index("__substg1.0_001A001F".encode("utf-16-le"))
    damaged = sound[: entry + 120] + b"\xff" * 4 + sound[entry + 124 :]
    assert "larger than the whole" in reason(read("a.msg", damaged))


def test_a_message_attached_to_one_of_outlook_is_a_document_of_its_own() -> None:
    said = {0x37: "Fwd: Slip", 0xC1A: "Åse Lie", 0xC1F: "/O=EXCHANGE/CN=ASE", 0x1000: "See below."}
    inner = {0x37: "Slip", 0xC1A: "Bo Li", 0x5D01: "bo@x.org", 0x1000: "The slip is closed."}
    never = {(0x40, 0x39): bytes(8)}
    part = "__attach_version1.0_#00000000"
    streams = dict(properties(said, never, 32))
    streams |= {f"{part}/{n}": d for n, d in properties({0x3001: "Slip"}, {}, 8)}
    streams |= {
        f"{part}/__substg1.0_3701000D/{name}": data for name, data in properties(inner, never, 24)
    }
    outer, slip = read("m.msg", compound(streams)).documents
    assert (outer.title, outer.metadata["sender"]) == ("Fwd: Slip", "Åse Lie")
    assert "date" not in outer.metadata
    assert (slip.key, slip.title, slip.text) == (
        "attachment-1",
        "Slip",
        "Bo Li:\n\nThe slip is closed.",
    )
    assert slip.metadata["sender"] == "Bo Li, bo@x.org"


def test_an_event_and_a_contact_of_outlook_are_records() -> None:
    times = {
        0x820D: datetime(2024, 5, 2, 22, tzinfo=UTC),
        0x820E: datetime(2024, 5, 3, 22, tzinfo=UTC),
    }
    said = {0x1A: "IPM.Appointment", 0x37: "Regatta", 0xC1A: "Bo Li", 0x8208: "Quay 4"}
    event = item(said, {(0x40, number): ticks(time) for number, time in times.items()})
    assert only(read("e.msg", compound(event))).text == (
        "title: Regatta\nstarts: 2024-05-02T22:00:00Z\nends: 2024-05-03T22:00:00Z\n"
        "location: Quay 4\norganizer: Bo Li"
    )
    days = {(0x40, number): ticks(time) for number, time in times.items()} | {(0xB, 0x8215): b"\1"}
    text, whole = read("e.msg", compound(item({**said, 0x1000: "Bring oars."}, days))).documents
    assert (text.text, whole.key) == ("Bo Li:\n\nBring oars.", "event")
    assert "starts: 2024-05-03\nends: 2024-05-03\n" in whole.text
    card = {0x1A: "IPM.Contact", 0x3001: "Åse Lie", 0x3A16: "Lie AS", 0x3A1C: "+47 900 00 000"}
    contact = only(read("c.msg", compound(item(card, {}))))
    assert (contact.title, contact.text) == (
        "Åse Lie",
        "title: Åse Lie\norganization: Lie AS\nmobile phone: +47 900 00 000",
    )


@pytest.mark.parametrize("name", ["a.doc", "a.PPT"])
def test_what_no_library_reads_says_how_to_convert_it(name: str) -> None:
    why = reason(read(name, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"))
    assert f"soffice --headless --convert-to {name[-3:].lower()}x" in why


def test_without_the_extra_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("oxmsg", "oxmsg.storage", "striprtf", "striprtf.striprtf", "xlrd"):
        monkeypatch.setitem(sys.modules, module, None)
    for suffix, data in SOUND.items():
        assert "install the extra [legacy], then run `index` again" in reason(
            read(f"a{suffix}", data)
        )


def test_files_are_read_again_once_the_extra_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert versions.of("RTF") == {"RTF": versions.VERSIONS["RTF"]}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    try:
        assert importlib.reload(versions).of("RTF") == {"RTF": versions.FIRST}
    finally:
        monkeypatch.undo()
        importlib.reload(versions)
