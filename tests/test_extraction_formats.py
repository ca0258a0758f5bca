"""Extraction in JSON: what is asked in one call and in two, and what is kept of the answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from llm_helpers import with_client
from model_server import Messages, ModelServer, Request

from graphrag_pipeline.core.settings import ExtractionSettings, Settings
from graphrag_pipeline.extraction.extractors import extraction_version
from graphrag_pipeline.extraction.model.by_schema import most_entities, parse_graph
from graphrag_pipeline.extraction.model.llm import LlmExtraction, extract_llm
from graphrag_pipeline.llm.errors import ModelOutputError
from graphrag_pipeline.llm.estimates import Chunks, Growth
from graphrag_pipeline.planning.estimates import estimate

TEXT = "Alice Smith sold the mill at Ferrow to Bob Jones."
ENTITIES = [
    {"name": "Alice Smith", "type": "PERSON", "description": "Alice Smith sold a mill."},
    {"name": "Ferrow", "type": "GEO", "description": "Ferrow has a mill."},
    # The prompt's own example, which a text that does not name it cannot hold.
    {"name": "Tamsin Orrelby", "type": "PERSON", "description": "She founded something."},
]
RELATED = {
    "source": "Alice Smith",
    "target": "Ferrow",
    "description": "Alice Smith sold the mill at Ferrow.",
}


def mind(messages: Messages) -> str:
    system = messages[0]["content"]
    rows: dict[str, Any] = {}
    if "entities that were found in it" not in system:
        rows["entities"] = [*ENTITIES, ENTITIES[0]]
    if "how they are related" in system or "how these entities are related" in system:
        rows["relationships"] = [RELATED, RELATED]
    return json.dumps(rows)


def extract(server: ModelServer, home: Path, **options: Any) -> LlmExtraction:
    chunks = pl.DataFrame({"id": ["c"], "text": [TEXT], "context": [""]})
    settings = ExtractionSettings(extractor="llm", **options)
    return with_client(
        server, home, lambda client: extract_llm(chunks, client, settings, batch="b")
    )


def properties(request: Request) -> dict[str, Any]:
    return request.body["response_format"]["json_schema"]["schema"]["properties"]


@pytest.mark.parametrize(("form", "calls"), [("schema", 1), ("two_calls", 2)])
def test_a_text_is_asked_about_once_and_every_list_and_text_of_the_answer_ends(
    tmp_path: Path, form: str, calls: int
) -> None:
    with ModelServer(mind) as server:
        extraction = extract(server, tmp_path, format=form, gleanings=3)
    assert len(server.requests) == calls
    assert set(extraction.found.entities["title"]) == {"Alice Smith", "Ferrow"}
    assert extraction.found.relationships.select("source", "target").rows() == [
        ("Alice Smith", "Ferrow")
    ]
    assert extraction.outcomes["status"].to_list() == ["ok"]
    for request in server.requests:
        for rows in properties(request).values():
            assert rows["maxItems"] > 0
            texts = rows["items"]["properties"].values()
            assert all("maxLength" in text or "enum" in text for text in texts)


STRENGTHS = [
    {**RELATED, "strength": 7},
    {**RELATED, "source": "Bob Jones", "description": "Bob Jones is at Ferrow.", "strength": 99},
    {**RELATED, "target": "Bob Jones", "description": "Alice Smith sold it to Bob Jones."},
]


def strong(messages: Messages) -> str:
    """Answer in the form that is asked for, with strengths, whether they are asked for or not."""
    if "<|>" not in messages[0]["content"]:
        return json.dumps({**json.loads(mind(messages)), "relationships": STRENGTHS})
    records = ['("entity"<|>Alice Smith<|>PERSON<|>x)', '("entity"<|>Ferrow<|>GEO<|>y)'] + [
        "<|>".join(
            ['("relationship"', row["source"], row["target"], row["description"]]
            + ([str(row["strength"])] if "strength" in row else [])
        )
        + ")"
        for row in STRENGTHS
    ]
    return "\n##\n".join([*records, "<|COMPLETE|>"])


@pytest.mark.parametrize(
    "form", [{"format": "schema"}, {"format": "two_calls"}, {"passes": 1}, {"passes": 2}]
)
def test_a_relationship_counts_by_its_strength_where_that_is_asked_for(
    tmp_path: Path, form: dict[str, Any]
) -> None:
    counted, asked = {}, {}
    for strength in (False, True):
        with ModelServer(strong) as server:
            options = {**form, "strength": strength, "gleanings": 0}
            found = extract(server, tmp_path / str(strength), **options).found.relationships
        counted[strength] = found["weight"].to_list()
        asked[strength] = server.requests[-1].messages
    assert counted == {False: [1, 1, 1], True: [7, 10, 1]}
    before, after = (" ".join(m["content"] for m in asked[each]) for each in (False, True))
    assert "strength" not in before
    assert "from 1 (" in after
    # The examples have theirs, of this form.
    assert ("2094.<|>9)" in after) if "passes" in form else ('"strength": 9' in after)
    if "format" in form:
        rows = properties(server.requests[-1])["relationships"]["items"]["properties"]
        assert rows["strength"]["enum"] == list(range(1, 11))


@pytest.mark.parametrize(
    ("written", "strength"),
    [
        ("7", 7),
        ("1" + "0" * 400, 10),
        ("1e999", None),
        ("-2.5", 1),
        ("NaN", None),
        ('"high"', None),
    ],
)
def test_a_strength_of_any_size_is_read(written: str, strength: float | None) -> None:
    answer = json.dumps({"relationships": [{**RELATED, "strength": 0}]})
    answer = answer.replace('"strength": 0', f'"strength": {written}')
    (relationship,) = parse_graph(answer, ["relationships"], ()).relationships
    assert relationship.strength == strength


def test_who_asks_for_no_strength_asks_as_before_it_could_be_asked_for() -> None:
    ways: list[dict[str, Any]] = [
        {"format": "tuples"},
        {"format": "tuples", "passes": 2},
        {"format": "schema"},
        {"format": "two_calls"},
    ]
    versions = [
        extraction_version(Settings(profile="llm", llm={"model": "m"}, extraction=way))
        for way in ways
    ]
    # Recorded before: what is in homes stays valid.
    before = ["0537c30522f0c061", "0b4f0cc5f9c7fd66", "3a9eee8bc4f12dc6", "74c8d4c8920284b3"]
    assert versions == before
    with_it = Settings(profile="llm", llm={"model": "m"}, extraction={"strength": True})
    assert extraction_version(with_it) not in before


def test_the_ends_of_a_relationship_can_only_be_names_that_were_found(tmp_path: Path) -> None:
    with ModelServer(mind) as server:
        extract(server, tmp_path, format="two_calls")
    ends = properties(server.requests[1])["relationships"]["items"]["properties"]
    assert ends["source"]["enum"] == ends["target"]["enum"] == ["Alice Smith", "Ferrow"]


@pytest.mark.parametrize("form", ["schema", "two_calls"])
def test_the_front_of_a_prompt_is_the_same_for_a_longer_text(tmp_path: Path, form: str) -> None:
    chunks = pl.DataFrame({"id": ["short", "long"], "text": [TEXT, TEXT * 60], "context": ["", ""]})
    settings = ExtractionSettings(extractor="llm", format=form)
    with ModelServer(mind) as server:
        with_client(
            server, tmp_path, lambda client: extract_llm(chunks, client, settings, batch="b")
        )
    fronts = {request.messages[0]["content"] for request in server.requests}
    assert len(fronts) == len(server.requests) / 2
    ends = {request.messages[-1]["content"].partition("\nNow ")[2] for request in server.requests}
    assert len(ends) == len(server.requests)


def test_an_answer_that_is_no_graph_is_asked_for_once_more_and_then_the_chunk_failed(
    tmp_path: Path,
) -> None:
    with ModelServer(lambda _: '{"people": []}') as server:
        extraction = extract(server, tmp_path, format="schema")
    assert len(server.requests) == 2
    assert extraction.outcomes["status"].to_list() == ["failed"]
    assert '"entities" and "relationships"' in extraction.outcomes["error"][0]


def test_whole_records_before_an_answer_repeats_itself_are_kept_and_the_chunk_is_cut(
    tmp_path: Path,
) -> None:
    row = json.dumps({"name": "Bob Jones", "type": "PERSON", "description": "He buys a mill."})
    said = json.dumps({"entities": ENTITIES[:2]})[:-2] + f", {row}" * 40
    with ModelServer(lambda _: said) as server:
        extraction = extract(server, tmp_path, format="schema")
    assert len(server.requests) == 2
    assert set(extraction.found.entities["title"]) == {"Alice Smith", "Ferrow"}
    assert extraction.outcomes["status"].to_list() == ["cut"]


def test_names_are_kept_where_the_call_for_relationships_fails(tmp_path: Path) -> None:
    with ModelServer(lambda m: "no" if "how these entities" in str(m) else mind(m)) as server:
        extraction = extract(server, tmp_path, format="two_calls")
    assert set(extraction.found.entities["title"]) == {"Alice Smith", "Ferrow"}
    assert extraction.outcomes["status"].to_list() == ["cut"]


@pytest.mark.parametrize(
    ("answer", "n_entities", "n_relationships"),
    [
        ('{"entities": [{"name": "A"}, {"name": ""}, "B", {"type": "GEO"}]}', 1, 0),
        ('{"relationships": [{"source": "A", "target": "a"}]}', 0, 0),
        ('{"entities": [{"name": "A"}], "relationships": null}', 1, 0),
    ],
)
def test_what_is_no_record_is_left_out(answer: str, n_entities: int, n_relationships: int) -> None:
    graph = parse_graph(answer, ["entities", "relationships"], frozenset())
    assert (len(graph.entities), len(graph.relationships)) == (n_entities, n_relationships)
    with pytest.raises(ModelOutputError):
        parse_graph("Here you are.", ["entities"], frozenset())


def test_more_is_asked_of_a_longer_text() -> None:
    assert most_entities("x" * 1_400) == 14
    assert most_entities("x" * 5_000) == 50


def test_the_format_decides_the_version_and_the_estimate_and_tuples_stay_as_they_were() -> None:
    growth = Growth(unasked=Chunks(10, 3_000))
    forms = [Settings(profile="llm", extraction={"format": form}) for form in ("schema", "auto")]
    one_call, tuples = forms
    two_calls = Settings(profile="llm", extraction={"format": "two_calls"})
    assert len({extraction_version(s) for s in (one_call, two_calls, tuples)}) == 3
    assert extraction_version(tuples) == extraction_version(
        Settings(profile="llm", extraction={"format": "tuples"})
    )
    calls = [
        sum(c.calls for c in estimate(s, growth) if c.stage == "extractions")
        for s in (one_call, two_calls)
    ]
    assert calls == [10, 20]
