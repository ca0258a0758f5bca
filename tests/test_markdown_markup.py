"""Markdown as its readers see it: no tags, badges, tables of contents and addresses of links."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from graphrag_pipeline.ingest.reading import ReadingOptions, read_file
from graphrag_pipeline.ingest.reading.markdown_markup import without_markup
from graphrag_pipeline.ingest.reading.model import ReadDocument

README = """<h1 align="center">
  <img src="logo.svg" alt="logo"><br>
  Halcyon
</h1>

<p align="center">
  <a href="https://ci.example.org"><img src="ci.svg"></a>
</p>

[![Build](https://ci.example.org/b.svg)](https://ci.example.org) ![Licence][licence]
[![Docs][docs-badge]][docs]

Halcyon measures <b>silt</b> in rivers.<!-- once a day --> It is kept by `<b>` and [Tarn][tarn].

## Table of Contents

- [Install](#install)
  - [From source](#from-source)
- [Use](#use)

## Install

```html
<p>[![kept](a.svg)](b)</p>
```

    <b>kept too</b>

![A map of the rivers](map.png)

- [Install](#install) it first
- [Handbook](handbook.md)

[tarn]: https://tarn.example.org "The Tarn Board"
[^1]: A note stays.
"""


def only(text: str) -> ReadDocument:
    (document,) = read_file(Path("readme.md"), ReadingOptions(), data=text.encode()).documents
    return document


@pytest.mark.parametrize(
    "head", ["Kelm [![Build](b.svg?style=x)](https://ci.example.org)", "[![Kelm](b.svg)](ci.md)"]
)
def test_a_badge_is_no_part_of_a_title(head: str) -> None:
    assert only(f"# {head}\n\nThe fair is in May.").title == "Kelm"


def test_a_readme_is_left_with_its_words_and_its_code() -> None:
    document = only(README)
    assert document.title == "Halcyon"
    assert document.text == (
        "# Halcyon\n\n"
        "Halcyon measures silt in rivers. It is kept by `<b>` and [Tarn][tarn].\n\n"
        "## Install\n\n```html\n<p>[![kept](a.svg)](b)</p>\n```\n\n    <b>kept too</b>\n\n"
        "![A map of the rivers](map.png)\n\n"
        "- [Install](#install) it first\n- [Handbook](handbook.md)\n\nA note stays."
    )
    code = [document.text[b.start : b.end] for b in document.blocks if b.kind == "code"]
    assert "".join(code).count("kept") == 2


@pytest.mark.parametrize(
    "text",
    [
        "If a < b and b > c, then Map<String, Person> and <name> stay.",
        "Write to <alice@example.org> or see <https://example.org/a>.",
        "# Title\n\n\n\nTwo blank lines stay.",
        "- [Install](#install)\n- [Use](#use)\n\nTwo links are no table of contents.",
        "A table of contents may be [asked](#for) in a sentence.",
        "[a]: b is no definition of a link, for it goes on.",
    ],
)
def test_what_is_no_markup_stays_as_it_is(text: str) -> None:
    assert without_markup(text) == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<table><tr><td>Marigold</td><td>1923</td></tr></table>", "Marigold | 1923 |"),
        ("<ul><li>one</li><li>two</li></ul>", "- one\n- two"),
        ("One<br/>two", "One\ntwo"),
        ("<style>p { color: red }</style>Seen.", "Seen."),
        ("<script>alert(1)", "alert(1)"),
        ("[TOC]\n\nSeen.", "Seen."),
        ("<H2 class='a'>Big\nwords</H2>Seen.", "## Big words\n\nSeen."),
        ("# A\n\n![b](c(d).svg)\n\nSeen.", "# A\n\nSeen."),
    ],
)
def test_html_is_written_as_lines(text: str, left: str) -> None:
    assert without_markup(text).strip() == left


@pytest.mark.parametrize(
    "part",
    [
        "<h1>",
        "<script>",
        "<p ",
        "`",
        "``a",
        "[![",
        "[![a](b)](",
        "- [a](#",
        "[a]: b\n",
        "<b>`",
        "![a]((",
    ],
)
def test_markup_takes_time_in_proportion_to_its_length(part: str) -> None:
    took = []
    for number in (2_000, 16_000):
        start = time.process_time()
        without_markup(part * number)
        took.append(time.process_time() - start)
    assert took[1] < 8 * 4 * max(took[0], 0.01)


def test_what_generators_of_sites_read_is_left_out() -> None:
    text = (
        "# Lamps {#lamps}\n\n:::warning Mind the step\nIt is wet.\n:::\n\n"
        '<VideoLink href="https://a.example" title="Watch"/>\n\n<Tabs>\nOne.\n</Tabs>\n\n'
        "Set `<Lamp size=1>` and snake\\_case, a List<Name> or <YourName>. "
        f"[Try](https://play.example/#{'eNp9' * 60}) it &amp; &quot;go&#34;.\n\n"
        "## \\<script setup> {#setup}\n\nIt runs.\n"
    )
    assert [part.strip() for part in only(text).text.split("\n\n")] == [
        "# Lamps",
        "Mind the step\nIt is wet.",
        "One.",
        "Set `<Lamp size=1>` and snake_case, a List<Name> or <YourName>. "
        '[Try](https://play.example/) it & "go".',
        "## <script setup>",
        "It runs.",
    ]
