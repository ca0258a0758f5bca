"""Messages pasted from Slack, Teams and Discord are conversations, and little else is."""

from __future__ import annotations

import polars as pl
import pytest
from read_files import only, read

from graphrag_pipeline.extraction.rules.nlp import NlpOptions, extract_nlp

SLACK = "[09:00] Osman Yildiz: Morning all.\nThe backup failed.\n[13:04] Pia Lorne: I restarted it."


@pytest.mark.parametrize(
    ("pasted", "read_as"),
    [
        (
            "Osman Yildiz  9:00 AM\nMorning all.\nThe backup failed.\n"
            "Pia Lorne  1:04 PM\nI restarted it.\n",
            SLACK,
        ),
        (
            "Osman Yildiz\n  9:00 AM\nMorning all.\nThe backup failed.\n\n"
            "Pia Lorne\n  1:04 PM\nI restarted it.\n",
            SLACK,
        ),
        (
            "Osman Yildiz [9:00 AM]\nMorning all.\nThe backup failed.\n"
            "Pia Lorne [1:04 PM]\nI restarted it.\n",
            SLACK,
        ),
        (
            "[9:00 AM] Osman Yildiz: Morning all.\nThe backup failed.\n"
            "[1:04 PM] Pia Lorne: I restarted it.\n",
            SLACK,
        ),
        (
            "Osman Yildiz 09:00\nMorning all.\nThe backup failed.\n\n"
            "Pia Lorne 13:04\nI restarted it.\n\nOsman Yildiz 13:06\nThanks.\n",
            SLACK + "\n[13:06] Osman Yildiz: Thanks.",
        ),
        (
            "Ebba Storm — Today at 9:00 AM\nAye.\n9:03 AM\nOr no.\n"
            "Olaf Vik — 14/03/2024 9:05 PM\nNo.\n",
            "[09:00] Ebba Storm: Aye.\n[09:03] Ebba Storm: Or no.\n"
            "[2024-03-14 21:05] Olaf Vik: No.",
        ),
        (
            "[3/14/2024 9:00 AM] Ebba Storm: Aye.\n[3/14/2024 9:05 PM] Olaf Vik: No.\n",
            "[2024-03-14 09:00] Ebba Storm: Aye.\n[2024-03-14 21:05] Olaf Vik: No.",
        ),
    ],
)
def test_pasted_messages_are_told_by_whom_and_when(pasted: str, read_as: str):
    for ends in (pasted, pasted.replace("\n", "\r\n")):
        chat = only(read("paste.txt", ends))
        assert chat.text == read_as
        assert len(str(chat.metadata["from"]).split(", ")) == 2


def test_who_says_something_at_a_time_is_related_to_it():
    found = extract_nlp(pl.DataFrame({"id": ["c"], "text": [SLACK]}), NlpOptions())
    people = dict(found.entities.select("title", "type").iter_rows())
    assert people["Osman Yildiz"] == people["Pia Lorne"] == "PERSON"


@pytest.mark.parametrize(
    "text",
    [
        "John 3:16\nFor God so loved the world.\nJohn 3:17\nNot to condemn.\n",
        "Keynote 9:00 AM\nOpening words.\nLunch 12:30 PM\nSoup and bread.\n",
        "Train to Bergen 09:00\nPlatform 4.\nTrain to Oslo 10:00\nPlatform 2.\n",
        "[10:12] main: started\n[10:13] main: stopped\n",
        "[10:12] Error: no disk\n[10:13] Error: no disk\n",
        "Osman Yildiz  9:00 AM\nMorning all.\n\nThe rest is prose.\n",
        "We meet on Monday at 9:00 AM\nBring bread.\nWe meet on Friday at 9:00 AM\nBring salt.\n",
    ],
)
def test_verses_timetables_logs_and_one_message_are_no_chat(text: str):
    read_text = only(read("notes.txt", text)).text
    assert "from" not in only(read("notes.txt", text)).metadata
    assert read_text.split() == text.split()


@pytest.mark.parametrize(
    "text",
    ["A " * 50_000, "Ab  9:00 AM\n" * 9_000, "Ab\n9:00\n" * 9_000, "[9:00" * 20_000],
)
def test_hostile_text_is_looked_at_once(text: str):
    assert only(read("paste.txt", text)).text
