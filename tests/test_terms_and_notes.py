"""Terms with their definitions, marks of notes, and words that stand for others."""

from read_files import only, read


def lines(name: str, text: str) -> list[str]:
    return [line for line in only(read(name, text)).text.split("\n") if line]


def test_a_term_stands_in_the_line_of_its_definition() -> None:
    assert lines("a.md", "# Fees\n\nMooring\n:   120 NOK\n\nPower\n\n: 9 NOK\n") == [
        "# Fees",
        "Mooring: 120 NOK",
        "Power: 9 NOK",
    ]
    two = "Monday\n: Ida 3.5 h\n: Per 2 h\n"
    assert only(read("a.md", two)).text == "Monday: Ida 3.5 h; Per 2 h"
    code = "```\nif x\n: then\n```"
    assert only(read("a.md", code)).text == code
    assert lines("a.adoc", "Ropes:: replaced\nKeys:: with Greta\n") == [
        "Ropes: replaced",
        "Keys: with Greta",
    ]


def test_notes_leave_no_mark_in_sentences() -> None:
    text = "Go 5 knots[^1]. Match `a`[^b].\n\n[^1]: Inside, 3 knots.\n"
    assert lines("a.md", text) == ["Go 5 knots. Match `a`[^b].", "Inside, 3 knots."]
    text = "Made in Kiel. [#f1]_ By [Vik20]_.\n\n.. [#f1] Since 1998.\n.. [Vik20] A book.\n"
    assert lines("a.rst", text) == ["Made in Kiel. By [Vik20]_.", "Since 1998.", "[Vik20] A book."]


def test_words_that_stand_for_others_and_tables_of_csv_are_said() -> None:
    text = ".. |pump| replace:: Kessler K9\n\nThe |pump| and |its| valve.\n"
    assert lines("a.rst", text) == ["The Kessler K9 and its valve."]
    table = '.. csv-table:: Speeds\n   :header: "Mode", rpm\n\n   "slow, wet", 300\n'
    assert lines("a.rst", table) == [
        "Speeds",
        "| Mode | rpm |",
        "|---|---|",
        "| slow, wet | 300 |",
    ]
