"""Claims are read from whatever shape a model's answer takes."""

from __future__ import annotations

import time
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.core.prompting import load_prompt
from graphrag_pipeline.extraction.model.claims import (
    ParsedClaim,
    claim_subjects,
    parse_claims,
    parse_date,
)

FRAUD = "(Ada<|>Bell<|>FRAUD<|>TRUE<|>2031-04-09<|>2031-04-10<|>Ada cheated Bell.<|>She cheated.)"
CLAIM = ParsedClaim(
    "Ada", "Bell", "FRAUD", "TRUE", "2031-04-09", "2031-04-10", "Ada cheated Bell.", "She cheated."
)
OTHER = "(Cy<|>NONE<|>DEBT<|>perhaps<|>NONE<|>soon<|>Cy (a clerk) owes money.<|>NONE)"
DEBT = ParsedClaim("Cy", None, "DEBT", "SUSPECTED", None, None, "Cy (a clerk) owes money.", "")


@pytest.mark.parametrize(
    "answer",
    [
        f"{FRAUD}\n##\n{OTHER}\n<|COMPLETE|>",
        f"{FRAUD}##{OTHER}",
        f"```\n{FRAUD}\n{OTHER}\n```",
        f"**Claims:**\n\n1. {FRAUD}\n2. {OTHER}\n",
        f"{FRAUD}<|COMPLETE|>\n{OTHER}<|COMPLETE|>",
        f"{FRAUD}\n##\n{OTHER.removesuffix(')')}",
        f'("claim"<|>{FRAUD[1:]}##("claim"<|>{OTHER[1:]}',
        "\n##\n".join(
            "(" + "<|>".join(f'"{field}"' for field in record[1:-1].split("<|>")) + ")"
            for record in (FRAUD, OTHER)
        ),
        f"{FRAUD}##{OTHER}".replace("<|>", " | "),
    ],
)
def test_format_variants_give_the_same_claims(answer):
    parsed = parse_claims(answer)
    assert parsed.claims == (CLAIM, DEBT)


@pytest.mark.shared_data
def test_the_claims_of_a_real_index_come_back_from_tuple_format(shared_data):
    rows = pl.read_parquet(shared_data / "carol_index" / "covariates.parquet")
    named = ["subject_id", "object_id", "type", "status", "start_date", "end_date"]
    named += ["description", "source_text"]
    records = [f"({'<|>'.join(map(str, row))})" for row in rows.select(named).iter_rows()]
    parsed = parse_claims("\n##\n".join(records))
    whole = rows.filter(pl.col("description").is_not_null())
    assert len(parsed.claims) == 381
    assert [claim.subject for claim in parsed.claims] == whole["subject_id"].to_list()
    said = [" ".join(text.split()) for text in whole["description"]]
    assert [claim.description for claim in parsed.claims] == said
    dates = [None if day == "NONE" else day[:10] for day in whole["start_date"]]
    assert [claim.start_date for claim in parsed.claims] == dates


def test_a_claim_that_quotes_no_text_is_a_claim_and_one_without_a_description_is_none():
    whole = FRAUD[1:-1].split("<|>")
    parsed = parse_claims("\n##\n".join(f"({'<|>'.join(whole[:n])})" for n in (7, 6)))
    assert parsed.claims == (replace(CLAIM, source_text=""),)


def test_malformed_claims_are_left_out():
    parsed = parse_claims(f"{FRAUD}\n##\n(Ada<|>Bell)\n##\n(NONE{'<|>x' * 7})")
    assert parsed.claims == (CLAIM,)


@pytest.mark.parametrize(("status", "read"), [("false", "FALSE"), ('"TRUE"', "TRUE"), ("?", None)])
def test_a_status_that_is_neither_true_nor_false_is_suspected(status, read):
    (claim,) = parse_claims(FRAUD.replace("TRUE", status)).claims
    assert claim.status == (read or "SUSPECTED")


@pytest.mark.parametrize(
    ("given_date", "iso"),
    [
        ("2031-04-09", "2031-04-09"),
        ("2031-04-09T00:00:00Z", "2031-04-09"),
        ("2031-04-09T13:05:00", "2031-04-09T13:05:00"),
        ("2031/4/9", "2031-04-09"),
        ("2031-04", "2031-04"),
        ("1843", "1843"),
        ("December 19th, 1843", "1843-12-19"),
        ("19 Dec 1843", "1843-12-19"),
        ("Sept. 1843", "1843-09"),
        ("2031-02-30", None),
        ("03/04/1843", None),
        ("NONE", None),
        ("last week", None),
        ("", None),
    ],
)
def test_dates_become_iso_as_precise_as_they_were(given_date, iso):
    assert parse_date(given_date) == iso


def test_example_claims_never_leak_but_what_the_chunk_names_is_kept():
    examples = load_prompt("extract_claims").system
    subjects = claim_subjects(examples)
    assert "ilse drummelin" in subjects
    assert parse_claims(examples, chunk_text="Ada.", example_titles=subjects).claims == ()
    kept = parse_claims(examples, chunk_text="Ilse  Drummelin", example_titles=subjects).claims
    assert [claim.subject for claim in kept] == ["Ilse Drummelin"]


def test_prose_is_no_answer_but_the_marker_alone_is():
    assert not parse_claims("I cannot do that.").answered
    assert parse_claims("<|COMPLETE|>").answered


PIECES = st.sampled_from(["<|>", "|", "##", "(", ")", '"', "\n", "1. ", "<|COMPLETE|>", "\ud800"])


@given(st.one_of(st.text(), st.lists(st.one_of(PIECES, st.text(max_size=4))).map("".join)))
def test_any_text_is_read_as_claims_about_somebody(text):
    assert all(claim.subject and claim.description for claim in parse_claims(text).claims)


@given(st.text())
def test_any_date_is_read(text):
    parse_date(text)


@pytest.mark.parametrize("piece", ["(", "<|>", ")\n", "##", " ", "\n(", "(a<|>"])
def test_hostile_answers_take_linear_time(piece):
    begun = time.process_time()
    parse_claims("(a<|>b<|>" + piece * (1_000_000 // len(piece)))
    assert time.process_time() - begun < 10
