"""Extraction by a model: which calls a chunk takes, and what is kept when one of them fails."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from llm_helpers import with_client
from model_server import Fault, Messages, ModelServer, Request, too_long, truncated

from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.settings import ExtractionSettings, Settings
from graphrag_pipeline.extraction.extractors import extraction_version
from graphrag_pipeline.extraction.model.llm import LlmExtraction, extract_llm
from graphrag_pipeline.llm.estimates import Chunks, Growth
from graphrag_pipeline.planning.estimates import estimate

RECORD = '("entity"<|>Alice Smith<|>PERSON<|>a person)\n<|COMPLETE|>'
MISSED = '("entity"<|>Late Comer<|>PERSON<|>missed at first)\n<|COMPLETE|>'


def step_of(messages: Messages) -> str:
    last = messages[-1]["content"]
    if "Answer with one word" in last:
        return "check"
    return "glean" if "MANY records were missed" in last else "extract"


def mind(messages: Messages) -> str:
    return {"check": "YES", "glean": MISSED, "extract": RECORD}[step_of(messages)]


def when(step: str, fault: Fault) -> Any:
    return lambda request: fault if step_of(request.messages) == step else None


def extract(
    server: ModelServer, home: Path, texts: list[str], model: str = "gpt-4.1-mini", **given: Any
) -> LlmExtraction:
    chunks = pl.DataFrame({"id": [f"c{n}" for n in range(len(texts))], "text": texts})
    chunks = chunks.with_columns(context=pl.lit(""))
    settings = ExtractionSettings(extractor="llm", **given)
    return with_client(
        server,
        home,
        lambda client: extract_llm(chunks, client, settings, batch="b"),
        concurrency=1,
        model=model,
    )


def steps(server: ModelServer) -> list[str]:
    return [step_of(request.messages) for request in server.asked()]


def titles(found: LlmExtraction) -> set[str]:
    return set(found.found.entities["title"])


def test_nothing_is_asked_about_a_first_answer_that_cannot_be_read(tmp_path: Path) -> None:
    with ModelServer(mind, faults=when("extract", Fault(text="I am sorry."))) as server:
        found = extract(server, tmp_path, ["Alice Smith spoke."], claims=True)
    assert steps(server) == ["extract"]
    (outcome,) = found.outcomes.iter_rows(named=True)
    assert outcome["status"] == "failed"
    assert outcome["prompt_tokens"] == server.prompt_tokens
    assert "sorry" not in outcome["error"]


def test_what_was_read_stays_when_the_gleaning_cannot_go_on(tmp_path: Path) -> None:
    for step, asked in (("check", 2), ("glean", 3)):
        with ModelServer(mind, faults=when(step, too_long())) as server:
            found = extract(server, tmp_path / step, ["Alice Smith spoke."])
        assert len(server.requests) == asked
        assert found.outcomes["status"].to_list() == ["ok"]
        assert titles(found) == {"Alice Smith"}


def test_a_model_that_thinks_before_a_word_is_given_room_once_that_is_known(
    tmp_path: Path,
) -> None:
    def faults(request: Request) -> Fault | None:
        return truncated("") if "max_tokens" in request.body else None

    with ModelServer(mind, faults=faults) as server:
        found = extract(server, tmp_path, ["one", "two", "three", "four"])
    assert titles(found) == {"Alice Smith", "Late Comer"}
    assert found.outcomes["status"].to_list() == ["ok"] * 4
    checks = [request for request in server.asked() if step_of(request.messages) == "check"]
    assert sum("max_tokens" in request.body for request in checks) <= 2


TWO = (
    '("entity"<|>Alice Smith<|>PERSON<|>a person)\n##\n'
    '("entity"<|>Ulm<|>GEO<|>a town)\n<|COMPLETE|>'
)
LINK = '("relationship"<|>Alice Smith<|>Ulm<|>lives there<|>7)\n<|COMPLETE|>'


def pass_of(messages: Messages) -> str:
    system = messages[0]["content"]
    asked = "relations" if "between these entities" in system else "entities"
    return f"{asked} {step_of(messages)}"


def in_passes(messages: Messages) -> str:
    return {"entities extract": TWO, "entities glean": MISSED, "relations extract": LINK}.get(
        pass_of(messages), "YES" if "entities check" in pass_of(messages) else "NO"
    )


def test_in_two_passes_relationships_are_asked_for_between_the_entities_found_first(
    tmp_path: Path,
) -> None:
    with ModelServer(in_passes) as server:
        found = extract(server, tmp_path, ["Alice Smith lives in Ulm."], passes=2)
    assert [pass_of(request.messages) for request in server.asked()] == [
        "entities extract",
        "entities check",
        "entities glean",
        "relations extract",
        "relations check",
    ]
    assert titles(found) == {"Alice Smith", "Ulm", "Late Comer"}
    (related,) = found.found.relationships.select("source", "target", "description").rows()
    assert related == ("Alice Smith", "Ulm", "lives there.")
    first, last = (server.asked()[n].messages for n in (0, 3))
    assert re.search(r"<names id=\w+>\nAlice Smith\nUlm\nLate Comer\n</names", last[1]["content"])
    assert '("relationship"' not in first[0]["content"]
    assert '("entity"' not in last[0]["content"]
    assert "Tamsin Orrelby" in first[0]["content"]
    assert "Tamsin Orrelby" in last[0]["content"]
    assert found.outcomes["prompt_tokens"].to_list() == [server.prompt_tokens]


def test_one_entity_has_no_relationships_to_ask_for_and_a_failed_pass_fails_the_chunk(
    tmp_path: Path,
) -> None:
    with ModelServer(lambda m: RECORD if step_of(m) == "extract" else "NO") as server:
        found = extract(server, tmp_path / "one", ["Alice Smith spoke."], passes=2)
    assert (steps(server), titles(found)) == (["extract", "check"], {"Alice Smith"})
    refused = Fault(text="I am sorry.")

    def faults(request: Request) -> Fault | None:
        return refused if pass_of(request.messages) == "relations extract" else None

    with ModelServer(in_passes, faults=faults) as server:
        found = extract(server, tmp_path / "two", ["Alice Smith lives in Ulm."], passes=2)
        assert found.outcomes["status"].to_list() == ["failed"]
        server.misbehave(())
        server.forget()
        found = extract(server, tmp_path / "two", ["Alice Smith lives in Ulm."], passes=2)
    assert [pass_of(request.messages) for request in server.asked()] == [
        "relations extract",
        "relations check",
    ]
    assert found.outcomes["status"].to_list() == ["ok"]


MANY = [f'("entity"<|>Person {n}<|>PERSON<|>one of many, number {n})' for n in range(12)]
WHOLE = "\n##\n".join(
    [*MANY, '("relationship"<|>Person 1<|>Person 2<|>they met<|>5)\n<|COMPLETE|>']
)


def in_pieces(tokens: int, *, restart: bool) -> Any:
    """A mind whose answers end after so many characters, as at a limit of tokens."""

    def faults(request: Request) -> Fault | None:
        if step_of(request.messages) == "check":
            return Fault(text="NO")
        said = "".join(m["content"] for m in request.messages[2:] if m["role"] == "assistant")
        left = WHOLE[WHOLE.rfind("##", 0, len(said)) + 2 if restart and said else len(said) :]
        return truncated(left[:tokens]) if len(left) > tokens else Fault(text=left)

    return faults


@pytest.mark.parametrize("restart", [False, True])
def test_an_answer_that_is_cut_off_is_asked_to_go_on(tmp_path: Path, restart: bool) -> None:
    with ModelServer(mind, faults=in_pieces(400, restart=restart)) as server:
        found = extract(server, tmp_path, ["Many persons met."])
    assert steps(server).count("check") == 1
    assert "was cut off" in server.asked()[1].messages[-1]["content"]
    assert found.outcomes["status"].to_list() == ["ok"]
    assert titles(found) == {f"Person {n}" for n in range(12)}
    assert found.found.entities["description"].to_list() == [
        f"one of many, number {n}." for n in range(12)
    ]
    assert len(found.found.relationships) == 1


def test_what_is_still_cut_off_is_said_to_be_and_asked_again(tmp_path: Path) -> None:
    with ModelServer(mind, faults=in_pieces(150, restart=True)) as server:
        found = extract(server, tmp_path, ["Many persons met."])
        assert found.outcomes["status"].to_list() == ["cut"]
        assert "raise llm.max_output_tokens" in found.outcomes["error"][0]
        assert "Person 1" in titles(found)
        server.misbehave(lambda request: None if step_of(request.messages) == "check" else
                         Fault(text=WHOLE))  # fmt: skip
        found = extract(server, tmp_path, ["Many persons met."], gleanings=0)
    assert found.outcomes["status"].to_list() == ["ok"]
    assert len(titles(found)) == 12


def test_an_answer_without_its_end_mark_is_asked_once_whether_it_ends(tmp_path: Path) -> None:
    open_end = RECORD.removesuffix("<|COMPLETE|>")
    with ModelServer(lambda m: "NO" if step_of(m) == "check" else open_end) as server:
        found = extract(server, tmp_path, ["Alice Smith spoke."])
    assert steps(server) == ["extract", "extract", "check"]
    assert found.outcomes["status"].to_list() == ["ok"]
    assert len(found.found.entities) == 1


def test_an_answer_that_goes_on_with_the_same_is_not_asked_a_third_time(tmp_path: Path) -> None:
    same = f"{MANY[0]}\n##\n{MANY[1][:-9]}"
    with ModelServer(lambda m: "NO" if step_of(m) == "check" else same) as server:
        found = extract(server, tmp_path, ["Many persons met."])
    assert steps(server).count("extract") == 2
    assert found.outcomes["status"].to_list() == ["cut"]
    assert "repeated itself" in found.outcomes["error"][0]
    assert "Person 0" in titles(found)


@pytest.mark.parametrize(
    ("model", "bias"),
    [
        ("gpt-4.1-mini", {"14695": 100, "31958": 100}),
        ("gpt-4", {"9173": 100, "14331": 100}),
        ("llama3.1", None),
    ],
)
def test_yes_or_no_is_forced_in_the_encoding_of_the_model(
    tmp_path: Path, model: str, bias: dict[str, int] | None
) -> None:
    def faults(request: Request) -> Fault | None:
        is_check = step_of(request.messages) == "check"
        return Fault(text="YES" * request.body["max_tokens"]) if is_check else None

    with ModelServer(mind, faults=faults) as server:
        found = extract(server, tmp_path, ["Alice Smith spoke."], model=model)
        check = next(r for r in server.asked() if step_of(r.messages) == "check")
    assert check.body.get("logit_bias") == bias
    assert check.body["max_tokens"] == (1 if bias else 5)
    assert titles(found) == {"Alice Smith", "Late Comer"}


def test_who_says_neither_yes_nor_no_is_asked_once_for_what_is_missing(tmp_path: Path) -> None:
    with ModelServer(mind, faults=when("check", Fault(text="iatiatiatiatiat"))) as server:
        found = extract(server, tmp_path, ["Alice Smith spoke."], "llama3.1", gleanings=3)
    assert steps(server) == ["extract", "check", "glean", "check"]
    assert titles(found) == {"Alice Smith", "Late Comer"}


def test_who_can_say_nothing_but_yes_or_no_and_does_not_is_asked_again_later(
    tmp_path: Path,
) -> None:
    with ModelServer(mind, faults=when("check", Fault(text="I am sorry."))) as server:
        found = extract(server, tmp_path, ["Alice Smith spoke."])
        assert found.outcomes["status"].to_list() == ["cut"]
        assert titles(found) == {"Alice Smith"}
        server.misbehave(())
        server.forget()
        found = extract(server, tmp_path, ["Alice Smith spoke."])
    assert steps(server) == ["check", "glean"]
    assert found.outcomes["status"].to_list() == ["ok"]


@pytest.mark.parametrize("words", ["I am sorry.", "There is no more."])
def test_what_is_said_instead_of_going_on_gets_into_no_record(tmp_path: Path, words: str) -> None:
    cut = '("entity"<|>Alice Smith<|>PERSON<|>a person)\n##\n("entity"<|>Bob<|>PERSON<|>a per'

    def faults(request: Request) -> Fault | None:
        if step_of(request.messages) != "extract":
            return Fault(text="NO")
        return Fault(text=words) if len(request.messages) > 2 else truncated(cut)

    with ModelServer(mind, faults=faults) as server:
        found = extract(server, tmp_path, ["Alice Smith spoke."])
    assert titles(found) == {"Alice Smith"}
    assert found.outcomes["status"].to_list() == ["cut"]


def test_what_the_gleaning_repeats_counts_once(tmp_path: Path) -> None:
    both = f"{TWO.removesuffix('<|COMPLETE|>')}##\n{LINK}"
    with ModelServer(lambda m: "YES" if step_of(m) == "check" else both) as server:
        found = extract(server, tmp_path, ["Alice Smith lives in Ulm."])
    assert steps(server) == ["extract", "check", "glean"]
    assert len(found.found.entities) == 2
    assert len(found.found.relationships) == 1


def test_an_answer_that_cannot_be_read_is_never_kept(tmp_path: Path) -> None:
    with ModelServer(mind, faults=[Fault(text="I am sorry.")]) as server:
        assert extract(server, tmp_path, ["one"]).outcomes["status"].to_list() == ["failed"]
        assert extract(server, tmp_path, ["one"]).outcomes["status"].to_list() == ["ok"]
        with contextlib.closing(sqlite3.connect(Home(tmp_path).calls)) as con, con:
            con.execute(
                "UPDATE responses SET text = 'I am sorry.', digest = NULL WHERE text LIKE '%Alice%'"
            )
        server.forget()
        assert extract(server, tmp_path, ["one"]).outcomes["status"].to_list() == ["ok"]
    assert steps(server) == ["extract"]


def test_passes_decide_the_version_and_the_estimate() -> None:
    one, two = (Settings(profile="llm", extraction={"passes": n}) for n in (1, 2))
    plain = Settings(profile="llm", extraction={"domain": "general"})
    assert extraction_version(one) == extraction_version(plain) != extraction_version(two)
    growth = Growth(unasked=Chunks(100, 60_000))
    (asked_once,), (asked_twice,) = (list(estimate(s, growth)) for s in (one, two))
    assert asked_twice.calls == 2 * asked_once.calls
    assert asked_once.prompt_tokens < asked_twice.prompt_tokens < 2.2 * asked_once.prompt_tokens
    assert asked_twice.completion_tokens < 1.2 * asked_once.completion_tokens
