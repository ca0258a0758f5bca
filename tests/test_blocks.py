"""Blocks lead to characters of their document, and of each chunk they are in."""

from __future__ import annotations

import polars as pl
import pytest

from graphrag_pipeline.ingest.chunk_blocks import chunk_blocks
from graphrag_pipeline.ingest.reading.blocks import Block, clean_blocks
from graphrag_pipeline.ingest.reading.line_blocks import line_blocks


def spans(*rows, **columns):
    names = ("document_id", "start_char", "end_char", *columns)
    return pl.DataFrame(rows, schema=list(names), orient="row").with_columns(**columns)


def blocks(*rows):
    schema = {
        "document_id": pl.String,
        "start_char": pl.Int64,
        "end_char": pl.Int64,
        "kind": pl.String,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


@pytest.mark.parametrize(
    ("chunk", "found"),
    [
        (("d", 0, 5), []),
        (("d", 0, 11), [(10, 11, "code")]),
        (("d", 12, 35), [(0, 8, "code"), (18, 23, "list")]),
        (("d", 20, 30), []),
        (("e", 0, 9), [(2, 4, "heading")]),
        (("f", 10, 20), []),
    ],
)
def test_a_chunk_has_the_blocks_that_overlap_it_cut_off_at_its_ends(chunk, found):
    given = blocks(("e", 2, 4, "heading"), ("d", 30, 40, "list"), ("d", 10, 20, "code"))
    chunks = spans(("d", 0, 100), chunk, ("e", 90, 99))
    column = chunk_blocks(chunks, given).to_list()
    assert [tuple(block.values()) for block in column[1]] == found
    assert [len(blocks) for blocks in column[::2]] == [2, 0]


def test_without_blocks_every_chunk_has_an_empty_list():
    assert chunk_blocks(spans(("d", 0, 5)), blocks()).to_list() == [[]]


def test_cleaning_a_text_moves_its_blocks_along():
    text = "\r\n a\x00b \r\ncode\r\n\x07line\r\n\r\nend\r\n"
    start, stop = text.index("code"), text.index("\r\n\r\nend")
    cleaned, kept = clean_blocks(text, [Block(start, stop, "code")])
    assert cleaned == "ab \ncode\nline\n\nend"
    assert [(cleaned[b.start : b.end], b.kind) for b in kept] == [("code\nline", "code")]


def test_blocks_at_the_ends_of_a_text_lose_its_white_space():
    cleaned, kept = clean_blocks("\n\ncode\n\n\n", [Block(0, 4, "heading"), Block(4, 9, "code")])
    assert (cleaned, kept) == ("code", (Block(0, 2, "heading"), Block(2, 4, "code")))


def test_blocks_of_white_space_are_left_out():
    assert clean_blocks("a \n\n b", [Block(1, 5, "code")]) == ("a \n\n b", ())


def kinds(text, *, markdown=True):
    return [(b.kind, text[b.start : b.end]) for b in line_blocks(text, markdown=markdown)]


def test_markdown_has_headings_code_tables_and_lists():
    text = (
        "# The plan\nProse.\n\n```sh\nmake\n\n# no heading\n```\n- one\n  more of one\n- two\n\n"
        "Prose.\n\n    x = 1\n\n    y = 2\n\n| a | b |\n| - | - |\n\nOther\n=====\nProse."
    )
    assert kinds(text) == [
        ("heading", "# The plan"),
        ("code", "```sh\nmake\n\n# no heading\n```"),
        ("list", "- one\n  more of one\n- two"),
        ("code", "    x = 1\n\n    y = 2"),
        ("table", "| a | b |\n| - | - |"),
        ("heading", "Other\n====="),
    ]


def test_a_fence_closes_with_as_many_marks_or_with_the_text():
    assert kinds("````\n```\nx\n````\nProse.") == [("code", "````\n```\nx\n````")]
    assert kinds("Prose.\n\n```\nx\n") == [("code", "```\nx\n")]


def test_plain_text_has_underlined_headings_and_lists():
    text = "Notes\n=====\n\n * One thing\n   goes on.\n\n * Another.\n\nProse - so."
    assert kinds(text, markdown=False) == [
        ("heading", "Notes\n====="),
        ("list", " * One thing\n   goes on.\n\n * Another."),
    ]
