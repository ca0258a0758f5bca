"""Contexts are filled with records up to a number of tokens, and no more; rankings are merged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from query_fixture import publish, settings_for

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.operators.budget import tokens_of
from graphrag_pipeline.query.release import Release, open_release
from graphrag_pipeline.query.results import Record, render_context

SHORT, LONG = "Scrooge signed the register.", "Fezziwig gave a merry ball. " * 40


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    home: Path = publish(tmp_path_factory.mktemp("published"))
    with open_release(home, settings=settings_for(home)) as release:
        yield release


def report(number: int, text: str) -> Record:
    return Record("report", f"r{number}", number, f"Title {number}", text, 1.0)


def titles(records: list[Record]) -> list[str]:
    return [record.title for record in records]


def shorter(record: Record) -> Record:
    return replace(record, text=SHORT)


def test_a_budget_is_used_to_its_last_token_and_only_the_first_record_is_cut(
    index: Release,
) -> None:
    records = [report(1, SHORT), report(2, SHORT), report(3, LONG), report(4, SHORT)]
    whole = op.fill(index, records, 10_000)
    assert titles(whole) == ["Title 1", "Title 2", "Title 3", "Title 4"]
    (exact,) = count_tokens([render_context(whole[:2])], index.encoding)
    assert titles(op.fill(index, records, tokens_of(index, whole[:2]))) == ["Title 1", "Title 2"]
    assert exact <= tokens_of(index, whole[:2])
    assert titles(op.fill(index, records, tokens_of(index, whole[:2]) - 1)) == ["Title 1"]
    assert titles(op.fill(index, records, tokens_of(index, whole[:2]) + 90)) == titles(whole[:2])
    (first,) = op.fill(index, [report(3, LONG)], 60)
    assert first.text.endswith("…")
    assert LONG.startswith(first.text[:-1])
    assert tokens_of(index, [first]) <= 60


def test_a_record_that_does_not_fit_is_shown_in_its_shorter_form(index: Release) -> None:
    records = [report(1, LONG), report(2, LONG), report(3, LONG)]
    two = tokens_of(index, op.fill(index, [report(1, LONG), report(2, SHORT)], 10_000))
    filled = op.fill(index, records, two, shorter=shorter)
    assert [record.text for record in filled] == [LONG, SHORT]


def test_groups_hold_every_record_once_in_order_and_each_fits(index: Release) -> None:
    records = [report(n, SHORT) for n in range(7)]
    pair = tokens_of(index, op.fill(index, records[:2], 10_000))
    parts = op.groups(index, records, pair)
    assert [len(part) for part in parts] == [2, 2, 2, 1]
    assert titles([record for part in parts for record in part]) == titles(records)
    assert op.groups(index, [], pair) == []
    with pytest.raises(InputError, match=r"max_context_tokens = 5: too few for one record"):
        op.groups(index, records, 5)


def test_of_ranked_chunks_those_are_read_that_begin_within_a_budget(index: Release) -> None:
    rows = index.rows("SELECT id, n_tokens FROM chunks ORDER BY n_tokens DESC LIMIT 3")
    ranking = {row["id"]: 1.0 for row in rows}
    first, second, _ = (row["n_tokens"] for row in rows)
    for budget, n in ((1, 1), (first, 1), (first + 1, 2), (first + second + 1, 3), (0, 0)):
        assert list(op.chunks_within(index, ranking, budget)) == list(ranking)[:n]


def test_what_has_no_word_of_a_question_follows_by_how_like_it_is_and_scores_no_more(
    index: Release,
) -> None:
    assert index.lexical
    by_words = op.fulltext_search(index, "chunks", "Fezziwig", 50)
    near = op.nearest(index, "chunks", "Fezziwig", 50)
    assert list(near)[: len(by_words)] == list(by_words)
    similar = op.vector_search(index, "chunks", "Fezziwig", 50)
    further = {key: score for key, score in near.items() if key not in by_words}
    assert further
    assert all(score <= similar[key] for key, score in further.items())


def test_no_less_than_a_score_is_that_score_and_more() -> None:
    assert op.at_least({"a": 0.7, "b": 0.5, "c": 0.4}, 0.5) == {"a": 0.7, "b": 0.5}
