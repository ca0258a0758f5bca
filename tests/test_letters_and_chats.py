"""Greetings and closings name nobody, those who sign do; chats in lines are conversations."""

from __future__ import annotations

import polars as pl
import pytest
from read_files import only, read

from graphrag_pipeline.extraction.rules.nlp import NlpOptions, extract_nlp


def entities(text: str) -> dict[str, str]:
    found = extract_nlp(pl.DataFrame({"id": ["c"], "text": [text]}), NlpOptions()).entities
    return dict(found.select("title", "type").iter_rows())


def related(text: str) -> set[frozenset[str]]:
    found = extract_nlp(pl.DataFrame({"id": ["c"], "text": [text]}), NlpOptions()).relationships
    return {frozenset(pair) for pair in found.select("source", "target").iter_rows()}


@pytest.mark.parametrize(
    ("greeting", "whom", "closing", "signed"),
    [
        ("Dear Ann,", "Ann", "Kind regards,\nTrine Voss", "Trine Voss"),
        ("Dear Mr Brandt,", "Mr Brandt", "Yours sincerely\n\nTrine Voss", "Trine Voss"),
        ("Liebe Ann,", "Ann", "Mit freundlichen Grüßen\nTrine Voss", "Trine Voss"),
        ("Liebe Ann, lieber Karl,", "Ann", "Herzliche Grüße\nDeine Trine Voss", "Trine Voss"),
        ("Sehr geehrte Frau Brandt,", "Frau Brandt", "Viele Gruesse,\nTrine Voss", "Trine Voss"),
        ("Hej Lars", "Lars", "Med venlig hilsen\nTrine Voss", "Trine Voss"),
        ("Bonjour Jean,", "Jean", "Bien cordialement,\nClaire Morel", "Claire Morel"),
        ("Estimado Pedro:", "Pedro", "Un cordial saludo,\nIsabel Vega", "Isabel Vega"),
        ("Cara Maria,", "Maria", "Cordiali saluti\nPaolo Conti", "Paolo Conti"),
        ("Beste Jan,", "Jan", "Met vriendelijke groet,\nTrine Voss", "Trine Voss"),
        ("Drogi Adam,", "Adam", "Z poważaniem\nJan Nowak", "Jan Nowak"),
    ],
)
def test_greetings_and_closings_are_no_names_and_who_signs_is_a_person(
    greeting: str, whom: str, closing: str, signed: str
):
    found = entities(f"{greeting}\n\n12 boats: 30.\n\n{closing}\nHarbour Office, Bergen")
    assert {whom, signed} <= found.keys() - {"12", "30"}
    assert found[whom] == found[signed] == "PERSON"
    words = (greeting + " " + closing).replace(whom, "").replace(signed, "").lower()
    assert not [title for title in found if title.lower() in words and title != "Karl"]


@pytest.mark.parametrize("line", ["Caro Emerald", "Dag Hammarskjöld", "Cher Lloyd", "Dear Evan"])
def test_a_line_that_may_be_a_name_is_no_greeting(line: str):
    assert line in entities(f"{line}\n\nThe song was long.")


GERMAN = """12.03.24, 18:04 - Nachrichten und Anrufe sind Ende-zu-Ende-verschlüsselt.
12.03.24, 18:04 - Jörg Petersen hat die Gruppe „Bootsverein: Krummhörn“ erstellt.
12.03.24, 18:06 - Jörg Petersen: Die Seestern liegt jetzt in Greetsiel
12.03.24, 18:09 - Antje Wübben: <Medien ausgeschlossen>
12.03.24, 18:10 - Antje Wübben: Sehr schön!
Hat Onno Fokken bezahlt?
12.03.24, 18:13 - Onno Fokken: Diese Nachricht wurde gelöscht.
12.03.24, 18:13 - Onno Fokken: IMG-20240312-WA0001.jpg (Datei angehängt)
13.03.24, 07:44 - Antje Wübben hat Hinrich Saathoff hinzugefügt.
13.03.24, 07:50 - Hinrich Saathoff: Danke: morgen.
"""


def test_service_lines_of_a_german_chat_are_no_messages():
    chat = only(read("WhatsApp Chat mit Boot.txt", GERMAN))
    assert chat.text.split("\n") == [
        "[2024-03-12 18:06] Jörg Petersen: Die Seestern liegt jetzt in Greetsiel",
        "[2024-03-12 18:10] Antje Wübben: Sehr schön!",
        "Hat Onno Fokken bezahlt?",
        "[2024-03-13 07:50] Hinrich Saathoff: Danke: morgen.",
    ]
    assert chat.metadata["from"] == "Jörg Petersen, Antje Wübben, Hinrich Saathoff"
    assert chat.metadata["date"] == "2024-03-12T18:06"
    assert frozenset(("Seestern", "Antje Wübben")) not in related(chat.text)
    assert entities(chat.text)["Hinrich Saathoff"] == "PERSON"


APPLE = (
    "\u200e[{0}, 9:14:02\u202fPM] Walks: \u200eMessages and calls are end-to-end encrypted.\r\n"
    "[{0}, 9:15:10\u202fPM] ~\u202fRuth Adler: Shall we meet? \u200e<This message was edited>\r\n"
    "\u200e[{0}, 9:16:00\u202fPM] Tom Birch: \u200eimage omitted\r\n"
    "[{1}, 12:17:30\u202fAM] Tom Birch: Yes.\r\n"
)


@pytest.mark.parametrize(
    ("first", "second", "days"),
    [
        ("5/1/24", "5/2/24", ("2024-05-01", "2024-05-02")),
        ("01/05/2024", "02/05/2024", ("2024-05-01", "2024-05-02")),
        ("1/12/24", "1/13/24", ("2024-01-12", "2024-01-13")),
        ("13/1/24", "1/2/24", ("2024-01-13", "2024-02-01")),
        ("2024-05-01", "2024-05-02", ("2024-05-01", "2024-05-02")),
    ],
)
def test_days_of_a_chat_are_read_by_the_order_that_they_have(first, second, days):
    chat = only(read("_chat.txt", APPLE.format(first, second)))
    assert chat.text == (
        f"[{days[0]} 21:15] Ruth Adler: Shall we meet?\n[{days[1]} 00:17] Tom Birch: Yes."
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.log", "[2024-05-01 10:00:00] Bo Vik: said\n[2024-05-01 10:00:01] Una Vik: said\n"),
        ("a.txt", "[2024-05-01 10:00:00] main.ERROR: failed\n[2024-05-01 10:00:01] INFO: up\n"),
        ("a.txt", "2024-05-01 10:00 - Start: ok\n2024-05-01 10:01 - x\n2024-05-01 10:02 - y\n"),
        ("a.txt", "12.03.24, 18:06 - Jörg Petersen: Moin.\n\nThe rest is prose.\n"),
    ],
)
def test_logs_and_single_lines_are_no_chats(name: str, text: str):
    assert only(read(name, text)).text == text.strip()


KAKAO = """민수, 지영님과 카카오톡 대화
저장한 날짜 : 2024-03-05 10:12:33

--------------- 2024년 3월 4일 월요일 ---------------
[김민수] [오후 3:14] 내일 부산항에서 만나요
[박지영] [오후 3:16] 사진
--------------- 2024년 3월 5일 화요일 ---------------
[박지영] [오전 9:02] 서류 챙겼어요?
여권도요
박지영님이 나갔습니다.
"""
KAKAO_ENGLISH = """KakaoTalk Chats with Minsu
Date Saved : Mar 5, 2024, 10:12 AM

--------------- Monday, March 4, 2024 ---------------
[Minsu Kim] [3:14 PM] See you at the harbour
--------------- Tuesday, March 5, 2024 ---------------
[Ji Park] [12:02 AM] Yes
"""
KAKAO_OF_A_PHONE = """2024년 3월 4일 월요일
2024년 3월 4일 오후 3:14, 김민수 : 내일 만나요
2024년 3월 4일 오후 3:16, 박지영님이 나갔습니다.
2024년 3월 5일 오전 9:02, 박지영 : 네
"""
LINE = (
    "[LINE] Chat history with Ebba\r\nSaved on: 2024/03/05 10:12\r\n\r\n2024/03/04(Mon)\r\n"
    "15:14\tEbba Storm\tThe Astrid lies at Quay 4\r\n15:16\tOlaf Berg\t[Photo]\r\n\r\n"
    '2024/03/05(Tue)\r\n09:02\tOlaf Berg\t"Two lines\r\nof one"\r\n'
    "09:03\tOlaf unsent a message.\r\n"
)
LINE_JAPANESE = "2024.03.04 月曜日\n15:14 山田太郎 横浜港で会いましょう\n15:15 佐伯健一 了解です\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            KAKAO,
            "[2024-03-04 15:14] 김민수: 내일 부산항에서 만나요\n"
            "[2024-03-05 09:02] 박지영: 서류 챙겼어요?\n여권도요",
        ),
        (
            KAKAO_ENGLISH,
            "[2024-03-04 15:14] Minsu Kim: See you at the harbour\n[2024-03-05 00:02] Ji Park: Yes",
        ),
        (KAKAO_OF_A_PHONE, "[2024-03-04 15:14] 김민수: 내일 만나요\n[2024-03-05 09:02] 박지영: 네"),
        (
            LINE,
            "[2024-03-04 15:14] Ebba Storm: The Astrid lies at Quay 4\n"
            "[2024-03-05 09:02] Olaf Berg: Two lines\nof one",
        ),
        (
            LINE_JAPANESE,
            "[2024-03-04 15:14] 山田太郎: 横浜港で会いましょう\n"
            "[2024-03-04 15:15] 佐伯健一: 了解です",
        ),
    ],
)
def test_a_chat_with_a_line_for_each_day_is_a_conversation(text: str, said: str):
    assert only(read("chat.txt", text)).text == said


@pytest.mark.parametrize(
    "text",
    [
        "2024/03/04\nThe day was long.\nWe met at 15:14 and left.\n",
        "March 4, 2024\n\nDear Ann,\n\n15:14 is the hour.\n",
        "[Ann] [3:14 PM] is a mark without a day\n",
    ],
)
def test_a_diary_is_no_chat(text: str):
    assert only(read("chat.txt", text)).text == text.strip()
