"""Messages within the text of others: forwarded and answered, in the languages of mail programs."""

from __future__ import annotations

import pytest
from read_files import read

from graphrag_pipeline.ingest.reading.mail import own_words
from graphrag_pipeline.ingest.reading.mail_quoted import iso_time
from graphrag_pipeline.ingest.reading.model import ReadDocument

OUTER = "From: Ann Lee <ann@x.org>\nTo: Bo Vik <bo@x.org>\nMessage-ID: <9@x>\n"
QUOTED = {
    "Outlook, Danish": "Fra: Lars Krogh <lars@x.org>\nSendt: 4. marts 2024 15:12\n"
    "Til: Mette Holm <mette@x.org>; Juhl, Bo <juhl@x.org>\nEmne: Kranen",
    "Outlook, German": "________________________________\nVon: Lars Krogh <lars@x.org>\n"
    "Gesendet: Montag, 4. März 2024 15:12\nAn: Mette Holm <mette@x.org>; Juhl, Bo <juhl@x.org>\n"
    "Betreff: Kranen",
    "Outlook, Dutch, bold": "**Van:** Lars Krogh <[lars@x.org](mailto:lars@x.org)>\n"
    "**Verzonden:** maandag 4 maart 2024 15:12\n"
    "**Aan:** Mette Holm <mette@x.org>; Bo Juhl <juhl@x.org>\n**Onderwerp:** Kranen",
    "Outlook, Swedish": "Från: Lars Krogh <lars@x.org>\nSkickat: den 4 mars 2024 15:12\n"
    "Till: Mette Holm <mette@x.org>;\n Bo Juhl <juhl@x.org>\nÄmne: Kranen",
    "Outlook, French": "De\xa0: Lars Krogh [mailto:lars@x.org]\n"
    "Envoyé\xa0: lundi 4 mars 2024 15:12\n"
    "À\xa0: Mette Holm <mette@x.org>; Bo Juhl <juhl@x.org>\nObjet\xa0: Kranen",
    "Outlook, Spanish": "De: Lars Krogh <lars@x.org>\nEnviado el: lunes, 4 de marzo de 2024 15:12\n"
    "Para: Mette Holm <mette@x.org>; Bo Juhl <juhl@x.org>\nAsunto: Kranen",
    "Outlook, Italian": "Da: Lars Krogh <lars@x.org>\nInviato: lunedì 4 marzo 2024 15:12\n"
    "A: Mette Holm <mette@x.org>; Bo Juhl <juhl@x.org>\nOggetto: Kranen",
    "Outlook, Polish": "Od: Lars Krogh <lars@x.org>\nWysłano: poniedziałek, 4 marca 2024 15:12\n"
    "Do: Mette Holm <mette@x.org>; Bo Juhl <juhl@x.org>\nTemat: Kranen",
    "Gmail, Portuguese": "---------- Forwarded message ---------\nDe: Lars Krogh <lars@x.org>\n"
    "Date: seg., 4 de mar. de 2024 às 15:12\nSubject: Kranen\n"
    "To: Mette Holm <mette@x.org>, Bo Juhl <juhl@x.org>\n",
    "Gmail, English": "---------- Forwarded message ---------\nFrom: Lars Krogh <lars@x.org>\n"
    "Date: Mon, Mar 4, 2024 at 3:12 PM\nSubject: Kranen\n"
    "To: Mette Holm <mette@x.org>, Bo Juhl <juhl@x.org>\n",
    "Thunderbird, German": "-------- Weitergeleitete Nachricht --------\nBetreff: Kranen\n"
    "Datum: Mon, 4 Mar 2024 15:12:05 +0100\nVon: Lars Krogh <lars@x.org>\n"
    "An: Mette Holm <mette@x.org>, Bo Juhl <juhl@x.org>\n",
}
APPLE = """Début du message transféré :

> De: Lars Krogh <lars@x.org>
> Objet: Kranen
> Date: 4 mars 2024 à 15:12:09 UTC+1
> À: Mette Holm <mette@x.org>, Bo Juhl <juhl@x.org>
>
> The crane broke.
>
> Karen pays."""


def read_mail(body: str, subject: str) -> list[ReadDocument]:
    head = f"{OUTER}Subject: {subject}\nContent-Type: text/plain; charset=utf-8\n\n"
    return [*read("a.eml", head + body).documents]


def is_krogh(document: ReadDocument) -> bool:
    people = (document.metadata["sender"], document.metadata["recipients"])
    return people == ("Lars Krogh, lars@x.org", "Mette Holm, mette@x.org, Bo Juhl, juhl@x.org")


@pytest.mark.parametrize("subject", ["WG: Kranen", "SV: Kranen"])
@pytest.mark.parametrize("written", QUOTED.values(), ids=QUOTED)
def test_a_message_below_headers_of_any_language_is_one_of_its_own(written: str, subject: str):
    outer, inner = read_mail(f"See below.\n\n{written}\n\nThe crane broke.\n\nKaren pays.", subject)
    assert outer.text.endswith("Ann Lee to Bo Vik:\n\nSee below.")
    assert (inner.key, inner.title) == ("quoted-1", "Kranen")
    assert inner.text == (
        "[2024-03-04 15:12] Lars Krogh to Mette Holm, Bo Juhl:\n\nThe crane broke.\n\nKaren pays."
    )
    assert is_krogh(inner)
    assert inner.metadata["thread"] == "9@x"


def test_a_message_that_is_quoted_as_apple_mail_forwards_it_is_one_of_its_own():
    outer, inner = read_mail(f"For you.\n\n{APPLE}", "Fwd: Kranen")
    assert outer.text.endswith("\n\nFor you.")
    assert inner.text.startswith("[2024-03-04 15:12] Lars Krogh")
    assert inner.text.endswith("\n\nThe crane broke.\n\nKaren pays.")
    assert is_krogh(inner)


def test_each_message_of_a_chain_is_its_own_and_once_in_a_mailbox():
    first = "From: Lars Krogh <lars@x.org>\nTo: Ann Lee <a@x.org>\nSubject: Kranen\n\nIt broke.\n\n"
    chain = (
        f"{OUTER}Subject: SV: Kranen\n\nWho pays?\n\nFra: Karen Vinther <k@x.org>\nSendt: i dag\n"
        "Til: Ann Lee\nEmne: Kranen\n\nNot me.\n\nFra: Lars Krogh <lars@x.org>\n"
        "Sendt: 4. marts 2024\nTil: Karen Vinther\nEmne: Kranen\n\nIt broke.\n\n"
    )
    separator = "From a@x.org Mon Jan  2 10:00:00 2023\n"
    documents = read("a.mbox", separator + first + separator + chain + separator + chain).documents
    said = [document.text.rpartition("\n\n")[2] for document in documents]
    assert said == ["It broke.", "Who pays?", "Not me.", "Who pays?"]
    assert documents[2].metadata["sender"] == "Karen Vinther, k@x.org"


def test_a_message_that_is_only_forwarded_says_who_did_so_to_whom():
    outer, _ = read_mail(QUOTED["Gmail, English"] + "\nThe crane broke.", "Fwd: Kranen")
    assert outer.text == "Ann Lee to Bo Vik:\n\nFwd: Kranen"


def test_who_is_sent_an_attachment_alone_is_told():
    mail = (
        f"{OUTER}Subject: Crew\nContent-Type: text/csv; name=crew.csv\n"
        "Content-Disposition: attachment\n\nname,town\nUna Vik,Odense\n"
    )
    own, row = read("a.eml", mail).documents
    assert own.text == "Ann Lee to Bo Vik:\n\nCrew"
    assert row.metadata["recipients"] == own.metadata["recipients"] == "Bo Vik, bo@x.org"


@pytest.mark.parametrize(
    "text",
    [
        "From: the quay\nTo: the crane\n\nIt is 40 m.",
        "Von: 1. Mai\nBis: 2. Mai\n\nDatum: offen",
        "Date: Monday\nSubject: the crane",
        "De: rien\n\nLa grue est belle.\n\nDate: lundi",
    ],
)
def test_lines_that_say_not_who_wrote_what_are_text(text: str):
    (document,) = read_mail(text, "Note")
    assert document.text.endswith(text)


@pytest.mark.parametrize(
    "attribution",
    [
        "Den man. 4. mar. 2024 kl. 15.12 skrev Lars Krogh <lars@x.org>:",
        "Em seg., 4 de mar. de 2024 às 15:12, Lars Krogh <lars@x.org> escreveu:",
        "pon., 4 mar 2024 o 15:12 Lars Krogh <lars@x.org> napisał(a):",
        "ma 4. maalisk. 2024 klo 15.12 Lars Krogh (lars@x.org) kirjoitti:",
        "Op ma 4 mrt 2024 om 15:12 schreef Lars Krogh <lars@x.org>:",
        "Il giorno lun 4 mar 2024 alle ore 15:12 Lars Krogh\n<lars@x.org> ha scritto:",
    ],
)
def test_what_stands_above_a_quotation_goes_with_it(attribution: str):
    (document,) = read_mail(f"It is 4:30.\n\n{attribution}\n\n> The crane broke.", "Re: Kranen")
    assert document.text.endswith("Bo Vik:\n\nIt is 4:30.")


@pytest.mark.parametrize(
    ("written", "is_english", "time"),
    [
        ("mar. 4 juin 2024 09:05", False, "2024-06-04T09:05:00"),
        ("Tuesday, March 5, 2024 12:01 AM", True, "2024-03-05T00:01:00"),
        ("5 lipca 2024 7:00", False, "2024-07-05T07:00:00"),
        ("5 července 2024", False, "2024-07-05"),
        ("5 června 2024", False, "2024-06-05"),
        ("04.03.2024 15:12", False, "2024-03-04T15:12:00"),
        ("2024年3月4日 15:12", False, "2024-03-04T15:12:00"),
        ("3/14/2024 3:12 PM", True, "2024-03-14T15:12:00"),
        ("3/4/2024 3:12 PM", True, "3/4/2024 3:12 PM"),
        ("31 februar 2024", False, "31 februar 2024"),
        ("i dag", False, "i dag"),
    ],
)
def test_times_in_words_are_read_where_they_are_sure(written: str, is_english: bool, time: str):
    assert iso_time(written, is_english=is_english) == time


ASKED = "On Mon, 4 Mar 2024, Ola Berg wrote:\n> Is the crane on Quay 4 sold?\n\n"
LONG = "".join(f"> Line {n}.\n" for n in range(9))


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        (
            f"Hi Ola,\n\n{ASKED}Yes, to Holm AG.\n\n{LONG}>\n> Who pays for the transport\n"
            "> to Eidvik?\nMirela Okonski.\n\n> > older\nNo.\n",
            "Hi Ola,\n\n> Is the crane on Quay 4 sold?\nYes, to Holm AG.\n\n"
            "> Who pays for the transport to Eidvik?\nMirela Okonski.\n\nNo.",
        ),
        (f"{ASKED}Yes.\n-- \nYlva", "> Is the crane on Quay 4 sold?\nYes."),
        (f"Yes.\n\n{ASKED}", "Yes."),
        ("Kari Holm skrev:\n> Hei?\n\nJa.", "> Hei?\nJa."),
        (f"On Mon, 4 Mar 2024, Ola Berg wrote:\n{LONG}\nFine.", "Fine."),
    ],
)
def test_an_answer_is_kept_with_what_it_answers(written: str, read_as: str):
    assert own_words(written) == read_as
