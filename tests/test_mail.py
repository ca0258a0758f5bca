"""Mail whole: its people and thread, what it carries, and signs that are not what it says."""

from __future__ import annotations

import base64
from email.utils import getaddresses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import build_graph
from graphrag_pipeline.ingest.reading.files import read_file
from graphrag_pipeline.ingest.reading.mail_headers import addresses_in
from graphrag_pipeline.ingest.reading.model import ReadDocument, ReadingOptions, ReadResult

HEAD = b"From: Ida Brandt <ida@x.org>\nTo: Ole Berg <ole@y.org>\nSubject: Pump\nMIME-Version: 1.0\n"
CRANE = b"From: Tor Dahl <tor@z.org>\nSubject: Crane\n\nThe crane broke.\n"
SEPARATOR = b"From a@x.org Mon Jan  2 10:00:00 2023\n"


def read(name: str, data: bytes) -> ReadResult:
    return read_file(Path(name), ReadingOptions(), data=data)


def own(data: bytes) -> ReadDocument:
    return read("a.eml", data).documents[0]


def body(document: ReadDocument) -> str:
    return document.text.rpartition("\n\n")[2]


def test_a_table_of_an_order_in_a_page_that_a_table_lays_out_is_one() -> None:
    rows = "".join(
        f"<tr><td>{item}<td>{price}</tr>" for item, price in (("Cap", "€15"), ("Sock", "€12.50"))
    )
    order = f"<table><tr><th>Item<th>Price</tr>{rows}</table>"
    page = f"<table><tr><td>Hello Freja</tr><tr><td>{order}</tr><tr><td>Bye</tr></table>"
    assert body(own(HEAD + f"Content-Type: text/html; charset=utf-8\n\n{page}".encode())) == (
        "Hello Freja\n| Item | Price |\n| --- | --- |\n| Cap | €15 |\n| Sock | €12.50 |\nBye"
    )


@pytest.mark.parametrize("charset", ["us-ascii", "iso-8859-1", "utf-8", "no-such-charset"])
@pytest.mark.parametrize("encoding", ["cp1252", "utf-8"])
def test_a_charset_that_lies_does_not_spoil_the_text(charset, encoding):
    text = "Renée said “yes” – in München, where the old café is."
    data = HEAD + f"Content-Type: text/plain; charset={charset}\n\n".encode()
    assert body(own(data + text.encode(encoding))) == text


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8"])
def test_headers_with_raw_signs_and_lying_words_are_read(encoding):
    raw = "From: Renée Møller <r@x.org>\nSubject: Café – plans\n\nHello.\n".encode(encoding)
    assert own(raw).title == "Café – plans"
    assert own(raw).metadata["sender"] == "Renée Møller, r@x.org"
    lying = b"From: =?us-ascii?Q?Ren=E9e?= <r@x.org>\nSubject: =?utf-8?Q?Caf=E9?= now\n\nHello.\n"
    assert (own(lying).title, own(lying).metadata["from"]) == ("Café now", "Renée <r@x.org>")


def test_people_and_thread_can_be_asked_for():
    more = b'Message-ID: <m2@x>\nReferences: <m0@x>\n <m1@x>\nCc: "Vik, Una" <UNA@z.org>\n\nHi.\n'
    metadata = own(HEAD + more).metadata
    assert metadata["sender"] == "Ida Brandt, ida@x.org"
    assert metadata["recipients"] == "Ole Berg, ole@y.org, Una Vik, una@z.org"
    assert (metadata["message_id"], metadata["thread"]) == ("m2@x", "m0@x")


def test_a_thread_of_a_mailbox_begins_where_its_first_message_does():
    messages = (
        b"Message-ID: <%d@x>\nSubject: a\n%s\nText.\n\n" % (n, b"In-Reply-To: <%d@x>\n" % (n - 1))
        for n in (3, 2, 1)
    )
    result = read("a.mbox", b"".join(SEPARATOR + message for message in messages))
    assert [each.metadata["thread"] for each in result.documents] == ["0@x"] * 3


def test_threads_that_answer_each_other_end():
    messages = b"".join(
        SEPARATOR + b"Message-ID: <%d@x>\nIn-Reply-To: <%d@x>\n\nText.\n\n" % (n, 1 - n)
        for n in (0, 1)
    )
    assert len(read("a.mbox", messages).documents) == 2


def test_lines_of_a_body_that_begin_with_from_begin_no_message():
    text = b"Hello.\n\nFrom here on: nothing.\nNote: body.\n\nFrom now\nAll: quiet.\n\n>From us.\n"
    box = SEPARATOR + HEAD + b"\n" + text + SEPARATOR + HEAD + b"\nNo blank line above.\n"
    first, second = read("a.mbox", box).documents
    assert all(words in first.text for words in ("From here on", "From now", "\nFrom us."))
    assert body(second) == "No blank line above."


def with_part(head: bytes, data: bytes) -> bytes:
    mixed = b"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nSee.\n"
    return (
        HEAD
        + b"Date: Mon, 2 Jan 2023 10:00:00 +0100\n"
        + mixed
        + b"--b\n%s\n%s\n--b--\n"
        % (
            head,
            data,
        )
    )


@pytest.mark.parametrize(
    ("head", "data", "key"),
    [
        (b"Content-Type: message/rfc822\n", CRANE, "attachment-1"),
        (
            b"Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n",
            base64.encodebytes(CRANE),
            "attachment-1",
        ),
        (
            b"Content-Type: application/mbox\nContent-Disposition: attachment\n",
            SEPARATOR + CRANE,
            "attachment-1/message-1",
        ),
        (
            b"Content-Type: multipart/digest; boundary=d\n",
            b"--d\n\n" + CRANE + b"--d--\n",
            "attachment-1",
        ),
    ],
)
def test_messages_within_a_message_are_documents_with_their_own_sender_and_date(head, data, key):
    outer, inner = read("a.eml", with_part(head, data)).documents
    assert (body(outer), inner.key, inner.title) == ("See.", key, "Crane")
    assert body(inner) == "The crane broke."
    assert inner.metadata["sender"] == "Tor Dahl, tor@z.org"
    # It does not say when it was written, and not when the other one was.
    assert inner.metadata["message"] == "Pump"
    assert "date" not in inner.metadata


def test_a_file_without_an_ending_is_read_by_its_type():
    part = b"Content-Type: text/csv\nContent-Disposition: attachment\n"
    documents = read("a.eml", with_part(part, b"name,town\nUna Vik,Odense\n")).documents
    assert [each.title for each in documents] == ["Pump", "Una Vik"]


def test_messages_of_a_digest_of_plain_text_are_documents():
    rule, short = "-" * 70, "-" * 30
    text = (
        f"Topics:\n\n   1. Valve\n\n{rule}\n\nMessage: 1\nDate: Sun, 1 Jan 2023 10:00:00 +0100\n"
        f"From: Tor Dahl <t@z.org>\nSubject: Valve\n\nThe valve leaks.\n\n{short}\n\n"
        f"From: Una Vik <u@z.org>\nSubject: Seal\n\nThe séal is new.\n\n{short}\n\nEnd of Digest\n"
    )
    documents = read("a.eml", HEAD + b"\n" + text.encode()).documents
    assert [each.key for each in documents] == ["", "message-1", "message-2"]
    assert [body(each) for each in documents[1:]] == ["The valve leaks.", "The séal is new."]
    assert "valve leaks" not in documents[0].text


def test_a_rule_in_a_message_makes_no_digest():
    text = f"Hello.\n\n{'-' * 30}\n\nNote: this is mine.\n"
    (document,) = read("a.eml", HEAD + b"\n" + text.encode()).documents
    assert "Note: this is mine." in document.text


def test_what_is_forwarded_in_the_text_is_kept_and_what_is_answered_is_not():
    text = b"\nFyi.\n\n-----Original Message-----\nFrom: Tor Dahl\n\nThe crane broke.\n"
    assert "The crane broke." in own(HEAD.replace(b"Pump", b"FW: Pump") + text).text
    assert "The crane broke." not in own(HEAD.replace(b"Pump", b"RE: Pump") + text).text


def test_who_writes_to_whom_is_in_the_graph(tmp_path: Path):
    engine = build_graph(tmp_path, {"a.mbox": SEPARATOR + HEAD + b"\nThe pump fails.\n"})
    with engine.store.read() as con:
        pairs = con.execute("SELECT lower(source), lower(target) FROM relationships").fetchall()
    assert frozenset(("ida brandt", "ole berg")) in {frozenset(pair) for pair in pairs}


NAMES = st.lists(
    st.sampled_from(["Ana", "O'Neil", "J.", '"Li, Wei"', "=?utf-8?q?Ren=C3=A9?=", "(x)", "", "é"])
)
ADDRESSES = st.sampled_from(["a@x.org", "a.b@x-y.org", "<a@x.org>", "<a.b+c@x>", "<a@>", "a", ""])


@given(st.lists(st.lists(st.tuples(NAMES, ADDRESSES), max_size=3), max_size=2))
def test_people_are_those_that_the_library_finds(headers):
    written = [
        ", ".join(" ".join([*names, address]) for names, address in header) for header in headers
    ]
    assert addresses_in(written) == getaddresses(written)


def test_parts_without_a_boundary_are_read_as_they_are_written():
    head = b"From: Ada <a@b.se>\nSubject: Returned\nContent-Type: multipart/report;\n\tbo\n\n"
    (document,) = read(
        "a.eml", head + b"--x\n\nIt could not be delivered to Bo Lind.\n\n--x--\n"
    ).documents
    assert "It could not be delivered to Bo Lind." in document.text
