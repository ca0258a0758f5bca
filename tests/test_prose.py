"""Whole sentences are told from headings, list items and code."""

import random
import re

import pytest

from graphrag_pipeline.core import prose
from graphrag_pipeline.core.prose import Prose, read_prose, readable, readable_list

SENTENCES = [
    "The leader was Captain Augustin Sorrel, a former pilot of Tarn Sound.",
    "Groups are numbered\nstarting with 0.",
    "C'est elle qui nous a sauvés : elle a partagé les rations, soigné les gelures.",
    "2016年10月，她独自前往维萨河谷（Vessa Valley），拜访了安东·布雷克。",
    "KEVIN SCOTT: I think we need more organizational support.",
    "“Marley was dead,” said the clerk, and closed the door.",
    "Moe recommends slate from Delabole.",
    "The clock chimes three times.",
    "Employees get 25 days of leave.",
    "The older seals rest at the point in winter.",
    "Crews carry the boats to the northern shed.",
    "Logging is provided by the method debug() of each logger in the tree.",
    "Limit all lines to a maximum of 79 characters.",
    "Never use tabs for indentation here.",
    "You’re eligible to share in it after two years of work.",
    "There’s a waiting period for all of it.",
]
FRAGMENTS = [
    "Section 7.4: Customizing your Debian GNU/Linux system",
    "What are all those directories inside dists/stable/main?",
    "and the Choosing a Debian distribution FAQ, which was graciously released.",
    "See Section 6.1 for more information about it.",
    "The full path to the file, including directory and full filename.",
    "The tower (which the lake had covered was seen again in 1957.",
    "Created using Sphinx 5.3.0.",
    "Introduction To The Debian Package Management Tools For Everyone.",
    "Yes, so it is.",
    "The Kestrel Bridge repairs of Rurik Astley.",
    "Moorings and lanterns north from Marlow.",
    "Moorings list of the older boats.",
    "Limit switch of the second crane.",
    "",
]
CODE = [
    ">>> print(re.match('From\\s+', 'Fromage amk'))",
    "logger.debug('debug message') logger.info('info message')",
    "Software available in the Debian system | | Chapter 7.",
    "$ git log -2 --pretty=%h > log_of_changes.txt",
    "Movie('Star Wars').director == 'J.J. Abrams'",
    "12, 14, 15, 16, 19, 23, 24.",
]
ITEMS = [
    "* The test framework learned a new helper to check an exit code.",
    "3. Anton Breck opened the meeting and recalled the year 1956.",
]


@pytest.mark.parametrize(
    ("texts", "grades"),
    [
        (SENTENCES, {Prose.SENTENCE}),
        (FRAGMENTS, {Prose.FRAGMENT, Prose.CODE}),
        (CODE, {Prose.CODE}),
        (ITEMS, {Prose.ITEM}),
    ],
)
def test_a_text_is_graded_by_what_it_reads_as(texts, grades):
    found = dict(zip(texts, read_prose(texts)["grade"].to_pylist(), strict=True))
    assert {text: grade for text, grade in found.items() if grade not in grades} == {}


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("* The *Anna Marisol* was\n  a [barquentine](https://a.example/b).[12]", None),
        ("- The **Anna Marisol** was a `barquentine`.¶", None),
        ("> The Anna Marisol was\n> > a barquentine.", None),
        ("The Anna Marisol was a&nbsp;barquentine [1, 3].", None),
        ('The Anna Marisol was a [barquentine](https://a.example/b "Ships").', None),
        ('The Anna Marisol was a [barquentine]({% page "/ships/" %}).', None),
        ("The [[id:7][Anna Marisol]] was a [[barquentine]].", None),
        ("x [0] &lt; y_1 and *two * stars", "x < y_1 and *two * stars"),
    ],
)
def test_a_reader_sees_no_marks(text, plain):
    assert readable([text])[0] == (plain or "The Anna Marisol was a barquentine.")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1. Drain\n\n2. Restart\nit", "1. Drain\n2. Restart it"),
        ("Take:\n  • salt\n    ◦ *fine*\n  • eggs", "Take:\n- salt\n  - fine\n- eggs"),
        ("(1) Drain\n(2) Restart", "1) Drain\n2) Restart"),
        ("- one item\nof two lines", "one item of two lines"),
        ("It cost\n12. That was\n-3 less", "It cost\n12. That was -3 less"),
        ("# Moor\na) bow\nb) stern", "Moor\na) bow\nb) stern"),
    ],
)
def test_items_of_a_list_stand_one_on_a_line(text, shown):
    assert readable_list(text) == shown


def test_a_sentence_with_the_name_of_its_file_before_it_is_none():
    name = "EP-07_ Behind_the_Tech_Kevin Scott_Podcast_with_Dio_Gonzalez_TRANSCRIPT.txt"
    texts = [f"{name} DIO GONZALEZ: Yes, many people know.", f"{name} : For years I was late."]
    assert read_prose(texts)["grade"].to_pylist() == [Prose.FRAGMENT] * 2


def test_what_is_looked_for_first_hides_nothing_from_a_pattern(monkeypatch):
    signs = random.Random(7)
    pieces = [*"()[]*_`&<>=|-/$:;~+'\"", "  ", " has ", "don't", "[1]", "&amp;", "**a**", "a.b.c"]
    texts = ["The word" + "".join(signs.choices(pieces, k=n % 9)) + " was it." for n in range(400)]
    quick = read_prose([*texts, *SENTENCES, *FRAGMENTS, *CODE])
    monkeypatch.setattr(prose, "_may_find", lambda pattern: bool)
    monkeypatch.setattr(prose, "_MARK", re.compile(""))
    assert read_prose([*texts, *SENTENCES, *FRAGMENTS, *CODE]).equals(quick)


def test_a_rule_of_hyphens_around_words_of_any_script_is_code():
    assert read_prose(["---目标---", "---aim---"])["grade"].to_pylist() == [Prose.CODE] * 2


def test_a_sentence_that_begins_with_a_pronoun_leans_on_the_one_before():
    texts = [
        "He sold it.",
        "This was in 1910.",
        "Therefore nobody came.",
        "她在那里。",
        "ADA: It is.",
        "Её построил Марк.",
        "그는 배를 샀다.",
    ]
    assert read_prose(texts)["leans"].to_pylist() == [True] * 7
    texts = [
        "Hebrew is old.",
        "Thistles grow.",
        "Okker sold it.",
        "Sound travels.",
        "凯尔茅斯在海边。",
        "Онежское озеро велико.",
        "그래프가 크다.",
    ]
    assert read_prose(texts)["leans"].to_pylist() == [False] * 7


def test_a_short_sentence_is_one_in_languages_other_than_english():
    texts = ["Hier können große Schiffe gut wenden.", "Wir fuhren nach Bergen hinauf."]
    assert read_prose(texts)["grade"].to_pylist() == [Prose.SENTENCE] * 2
