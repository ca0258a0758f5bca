"""Logs: a message is a sentence of its own, and what stands before it names nothing."""

from __future__ import annotations

import polars as pl
import pytest

from graphrag_pipeline.extraction.rules.nlp import NlpOptions, extract_nlp
from graphrag_pipeline.extraction.rules.sentences import sentence_spans

MESSAGE = "Pump of Pier 5 reported by Ida Lund is stuck"


def read(text: str) -> tuple[set[str], set[frozenset[str]]]:
    """Return the names in a text, and which are related."""
    found = extract_nlp(pl.DataFrame({"id": ["c"], "text": [text]}), NlpOptions())
    pairs = found.relationships.select("source", "target").iter_rows()
    return set(found.entities["title"]), {frozenset(pair) for pair in pairs}


@pytest.mark.parametrize(
    "head",
    [
        "2026-03-01T08:00:01Z INFO  [scheduler] ",
        "2026-03-01 08:00:01,114 - root - WARNING - ",
        "[2026-03-01 08:00:01.001] [ERROR] ",
        "08:00:01 WARN  [main] c.e.App - ",
        "ERROR 2026-03-01 08:00:01 ",
        "Mar  1 08:00:01 Web-1 Harbour[1123]: ",
        "01.03.2026 08:00:01 FATAL ",
    ],
)
def test_the_head_of_a_message_names_nothing(head: str) -> None:
    names, _ = read(f"{head}{MESSAGE}\n{head}Lock gate closed by Tor Aune\n")
    assert names >= {"Ida Lund", "Pier 5", "Tor Aune"}
    spoken = f"{MESSAGE} Lock gate closed by Tor Aune".lower()
    assert [name for name in names if name.lower() not in spoken] == []


def test_who_is_in_one_message_is_not_related_to_who_is_in_the_next() -> None:
    day = "2026-03-01T08:00:0"
    _, pairs = read(f"{day}1Z INFO Ida Lund phoned Omar Haddad\n{day}2Z INFO Tor Aune left\n")
    assert frozenset(("Ida Lund", "Omar Haddad")) in pairs
    assert all("Tor Aune" not in pair for pair in pairs)


def test_an_answer_quotes_a_message_alone() -> None:
    lines = [
        "2026-03-01T08:00:01Z INFO Ida Lund opened the lock",
        "[2026-03-01 08:00:02] Tor Aune left",
        "ERROR 2026-03-01 08:00:03 no water",
        "Mar  1 08:00:04 web-1 lock[7]: closed",
        '10.0.0.7 - - [10/Oct/2025:13:55:36 -0700] "GET /quay HTTP/1.0" 200',
        "08:00:05 WARN high water",
    ]
    text = "\n".join(lines)
    assert [text[start:end] for start, end in sentence_spans(text)] == lines


def test_a_line_of_a_web_server_names_nothing() -> None:
    line = '10.0.0.7 - - [10/Oct/2025:13:55:36 -0700] "GET /quay HTTP/1.0" 200 "Mozilla/5.0 (X11)"'
    assert read(f"{line}\n{line}\n") == (set(), set())


def test_a_time_in_prose_stays() -> None:
    names, _ = read("At 08:00:01 Ida Lund rang the bell of Pier 5.")
    assert names >= {"Ida Lund", "Pier 5"}


def test_labels_of_minutes_name_nothing() -> None:
    names, pairs = read("Anwesend: Jens Behnke, Sabine Otto\nOrt: Rathaus Schleswig\n")
    assert names >= {"Jens Behnke", "Sabine Otto"}
    assert names.isdisjoint({"Anwesend", "Ort"})
    assert frozenset(("Jens Behnke", "Sabine Otto")) in pairs


def test_a_name_that_ends_as_a_label_does_is_no_label() -> None:
    names, _ = read("Kelmouth Museum: open daily, says Ida Lund.\n")
    assert names == {"Kelmouth Museum", "Ida Lund"}


def test_who_speaks_is_no_label() -> None:
    names, _ = read("Katrin Ahlers: We met Omar Haddad.\nJens Behnke: Yes.\n")
    assert names >= {"Katrin Ahlers", "Jens Behnke", "Omar Haddad"}
