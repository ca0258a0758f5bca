"""Questions for a section of the document that they call by its title: the steps, what it takes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from asked_files import index_asked

from benchmarks.answers import passages_of
from graphrag_pipeline.query import QueryEngine

FILES = {
    "barley-bread.md": """# How to make barley bread

A dense loaf with a nutty crumb, popular in the north.

Difficulty: ★★★

## Ingredients and tools

- 400 g barley flour
- 8 g yeast
- a large pot

## Steps

1. Mix flour, water and yeast
2. Let it rise for 2 hours
3. Bake at 220 degrees for 40 minutes

## More

Open an issue where this guide is wrong.
""",
    "plum-cake.md": """# How to make plum cake

A plum cake is what one bakes in September.

Difficulty: ★

## Ingredients and tools

- 1 kg plums
- 4 eggs

## Steps

1. Beat the eggs
2. Lay the plums on top and bake for 50 minutes
""",
    "0042-restarting-the-gateway.md": """# Restarting the payment gateway

The gateway must be restarted after a change of certificates.

## Requirements of auditors

Auditors want a log.

## Prerequisites

- access to the bastion host

## Procedure

1. Drain the node.
2. Restart the service and wait until it is healthy.

## Limits

No more than three nodes may restart at once.
""",
    "mooring.md": """# Mooring a barge

Barges moor at the north quay.

## Procedure

### Call the harbour

On channel 12.

### Bring out the lines

First at the bow.

## Fees

120 a day.
""",
    "lamp.txt": """Trimming the lamp

1. Turn the flame down.
2. Cut the wick straight.
""",
    "payments.md": """# Payments

Payments go through the payment gateway, which talks to two banks. How to restart the payment
gateway was asked twice in May.
""",
    "reset.md": """# Resetting a password

Passwords can be reset by their owners, who need nobody for it.

1. Open the sign-in page.
2. Choose another one.
""",
    "suppe.md": """# Rezept: Kartoffelsuppe

Eine einfache Suppe für kalte Tage.

## Zutaten

- 1 kg Kartoffeln
- 1 Liter Brühe

## Zubereitung

1. Kartoffeln schälen und würfeln.
2. Mit Brühe 25 Minuten kochen.
""",
    "biscuits.md": """# Grandma's easy oat biscuits

Nobody leaves one on the plate.

## Ingredients

- 200 g oats

## Steps

1. Mix all
2. Bake for 12 minutes
""",
    "eintopf.md": """# Unser schneller Linseneintopf

Ein Eintopf für kalte Tage, der auch am nächsten Tag noch schmeckt und mit der Zeit besser wird.

## Zubereitung

1. Linsen waschen.
2. Mit Wasser 30 Minuten kochen.
""",
    "git.md": """# Git

Git keeps versions of files, and many ask for the GitHub limits of Git.

## GitHub limits

A file has at most 100 MB there.

## Limits

None is known.
""",
    "hongshao.md": """# 家常红烧肉的做法

家常红烧肉是一道味道浓郁的家常菜。

预估卡路里：1348 大卡

## 必备原料和工具

- 五花肉
- 冰糖

## 操作

1. 五花肉切块，煮沸捞出。
2. 加水没过肉，焖 30 分钟。
""",
}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryEngine]:
    yield from index_asked(FILES, tmp_path_factory)


@pytest.mark.parametrize(
    ("question", "first"),
    [
        (
            "How do I make barley bread?",
            "Steps: 1. Mix flour, water and yeast 2. Let it rise for 2 hours "
            "3. Bake at 220 degrees for 40 minutes",
        ),
        (
            "What are the steps for plum cake?",
            "Steps: 1. Beat the eggs 2. Lay the plums on top and bake for 50 minutes",
        ),
        (
            "How can we restart the payment gateway?",
            "Procedure: 1. Drain the node. 2. Restart the service and wait until it is healthy.",
        ),
        (
            "How do I reset my password?",
            "Resetting a password: Passwords can be reset by their owners, who need nobody for it. "
            "1. Open the sign-in page. 2. Choose another one.",
        ),
        (
            "How do I moor a barge?",
            "Procedure: Call the harbour: On channel 12. Bring out the lines: First at the bow.",
        ),
        (
            "How do I trim the lamp?",
            "Trimming the lamp: 1. Turn the flame down. 2. Cut the wick straight.",
        ),
        (
            "Wie kocht man Kartoffelsuppe?",
            "Zubereitung: 1. Kartoffeln schälen und würfeln. 2. Mit Brühe 25 Minuten kochen.",
        ),
        ("How do I make oat biscuits?", "Steps: 1. Mix all 2. Bake for 12 minutes"),
        (
            "Wie kocht man Linseneintopf?",
            "Zubereitung: 1. Linsen waschen. 2. Mit Wasser 30 Minuten kochen.",
        ),
        (
            "家常红烧肉的步骤是什么？",
            "操作: 1. 五花肉切块，煮沸捞出。 2. 加水没过肉，焖 30 分钟。",
        ),
    ],
)
def test_how_something_is_done_is_answered_by_the_steps(
    asked: QueryEngine, question: str, first: str
) -> None:
    assert passages_of(asked.answer(question, "bm25").text)[0] == first


@pytest.mark.parametrize(
    ("question", "first"),
    [
        (
            "What do I need for barley bread?",
            "Ingredients and tools: - 400 g barley flour - 8 g yeast - a large pot",
        ),
        (
            "What do we need to restart the payment gateway?",
            "Prerequisites: - access to the bastion host",
        ),
        (
            "Welche Zutaten brauche ich für Kartoffelsuppe?",
            "Zutaten: - 1 kg Kartoffeln - 1 Liter Brühe",
        ),
        ("What are the GitHub limits of Git?", "GitHub limits: A file has at most 100 MB there."),
        ("What are the limits of Git?", "Limits: None is known."),
        ("家常红烧肉需要哪些原料？", "必备原料和工具: - 五花肉 - 冰糖"),
        (
            "What are the limits of restarting the payment gateway?",
            "Limits: No more than three nodes may restart at once.",
        ),
    ],
)
def test_a_section_is_found_by_the_title_of_its_document_and_its_heading(
    asked: QueryEngine, question: str, first: str
) -> None:
    assert passages_of(asked.answer(question, "bm25").text)[0] == first


def test_steps_stand_one_on_a_line(asked: QueryEngine) -> None:
    steps = (
        "- Steps:\n  1. Mix flour, water and yeast\n  2. Let it rise for 2 hours\n"
        "  3. Bake at 220 degrees for 40 minutes [1]\n"
    )
    assert steps in asked.answer("How do I make barley bread?", "bm25").text
    streamed = "".join(asked.stream_answer("How do I make barley bread?", "bm25"))
    assert steps in streamed


def test_a_section_is_cited_where_it_stands(asked: QueryEngine) -> None:
    source = asked.answer("How do I make barley bread?", "bm25").citations[0]
    text = FILES["barley-bread.md"]
    assert source.uri.endswith("barley-bread.md")
    assert text[source.start_char : source.end_char] == source.text
    assert source.text.startswith("## Steps")
    assert source.text.endswith("40 minutes")


@pytest.mark.parametrize(
    "question",
    [
        "How do I sell barley bread?",
        "How do I make nut biscuits?",
        "How many banks does the payment gateway talk to?",
        "Who restarted the payment gateway?",
    ],
)
def test_steps_answer_nothing_else(asked: QueryEngine, question: str) -> None:
    answer = passages_of(asked.answer(question, "bm25").text)
    assert not answer or not answer[0].startswith(("Steps:", "Procedure:"))


def test_labels_with_signs_alone_and_a_wide_colon_are_fields(asked: QueryEngine) -> None:
    for question, first in {
        "What is the difficulty of barley bread?": "How to make barley bread — Difficulty: ★★★",
        "家常红烧肉的卡路里是多少？": "家常红烧肉的做法 — 预估卡路里: 1348 大卡",
    }.items():
        assert passages_of(asked.answer(question, "bm25").text)[0] == first


def test_how_long_is_answered_within_the_document_that_the_question_calls(
    asked: QueryEngine,
) -> None:
    first = asked.answer("How long does barley bread bake?", "bm25").citations[0]
    assert first.uri.endswith("barley-bread.md")
    assert "for 40 minutes" in first.text
