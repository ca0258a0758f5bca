"""Entities and relationships are read from whatever shape a model's answer takes."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.core.prompting import domains, load_examples
from graphrag_pipeline.extraction.model.tuples import (
    ParsedEntity,
    ParsedRelationship,
    example_titles,
    merged,
    parse_tuples,
)

ENTITY = '("entity"<|>"Ada"<|>"person"<|>"She writes.")'
RELATIONSHIP = '("relationship"<|>"Ada"<|>"Engine"<|>"She programs it.")'
ADA = ParsedEntity("Ada", "PERSON", "She writes.")
PROGRAMS = ParsedRelationship("Ada", "Engine", "She programs it.")


def recorded(shared_data: Path) -> list[str]:
    cassette = shared_data / "llm_outputs" / "gpt4o_carol_cassette.json"
    outputs = [call["return"] for call in json.loads(cassette.read_text("utf-8")).values()]
    return [output for output in outputs if "<|>" in output]


@pytest.mark.shared_data
def test_every_record_of_the_recorded_extractions_is_kept(shared_data):
    outputs = recorded(shared_data)
    assert len(outputs) == 84
    entities = relationships = 0
    for output in outputs:
        parsed = parse_tuples(output)
        assert len(parsed.entities) == len(re.findall(r'\(["“]entity["”]<\|>', output))
        found = re.findall(r'\(["“]relation(?:ship)?["”]<\|>', output)
        assert len(parsed.relationships) == len(found)
        entities += len(parsed.entities)
        relationships += len(parsed.relationships)
    assert (entities, relationships) == (654, 520)


@pytest.mark.shared_data
def test_recorded_records_hold_no_trace_of_the_format(shared_data):
    for output in recorded(shared_data):
        parsed = parse_tuples(output)
        for entity in parsed.entities:
            text = f"{entity.title} {entity.type} {entity.description}"
            assert not re.search(r'<|>|##|\||"$|^"|```', text)
            assert entity.description
        for relationship in parsed.relationships:
            assert not re.search(r"<|>|##|\||```", relationship.description)
            assert relationship.description
            assert not re.search(r"\d$", relationship.description)


@pytest.mark.shared_data
def test_cutting_a_recorded_extraction_anywhere_loses_only_the_record_that_is_cut(shared_data):
    for output in recorded(shared_data)[:12]:
        whole = parse_tuples(output)
        for end in range(0, len(output), 211):
            cut = parse_tuples(output[:end])
            n_whole = max(0, len(cut.entities) - 1)
            assert cut.entities[:n_whole] == whole.entities[:n_whole]
            n_begun = len(re.findall(r'"(?:entity|relation(?:ship)?)"<\|>', output[:end]))
            assert n_begun - 1 <= len(cut.entities) + len(cut.relationships) <= n_begun


@pytest.mark.parametrize(
    "answer",
    [
        f"{ENTITY}##\n{RELATIONSHIP}##\n<|COMPLETE|>",
        f"{ENTITY}{RELATIONSHIP}",
        f"{ENTITY}\n{RELATIONSHIP}\n",
        f"```\n{ENTITY}##\n{RELATIONSHIP}\n```",
        f"**Entities:**\n\n1. {ENTITY}\n\n**Relationships:**\n\n1. {RELATIONSHIP}\n\nGood luck!",
        f"{ENTITY}\n<|COMPLETE|>\n{RELATIONSHIP}##<|complete|>",
        f"Entities: {ENTITY} ## {RELATIONSHIP}",
        "(“entity”<|>“Ada”<|>“person”<|>“She writes.”)##(“relationship”<|>“Ada”<|>“Engine”"
        "<|>“She programs it.”<|>8)",
        '"entity"<|>"Ada"<|>"person"<|>"She writes."\n##\n'
        '"relationship"<|>"Ada"<|>"Engine"<|>"She programs it."<|>8',
        "entity<|>Ada<|>person<|>She writes.\nrelationship<|>Ada<|>Engine<|>She programs it.<|>8\n",
        "(entity<|>Ada<|>person<|>She writes.)##(RELATIONSHIP<|>Ada<|>Engine<|>She programs it."
        "<|>8/10)",
        '("entity" < | > "Ada" <|> "person" <||> "She writes.")##\n'
        '("relation"<|>"Ada"<|>"Engine"<|>"She programs it."|>8)',
        "(entity|Ada|person|She writes.)##(relationship|Ada|Engine|She programs it.|8)",
        '("entity", "Ada", "person", "She writes.")\n'
        '("relationship", "Ada", "Engine", "She programs it.", 8)',
        "('Entity'<|>'Ada'<|>'Person'<|>'She writes.')##\n"
        "('Relationship'<|>'Ada'<|>'Engine'<|>'She programs it.'<|>'strength: 8.0')",
        '("entity"<|>"Ada"<|>"per\x00son"<|>"She\nwrites.")##'
        '("relationship"<|>"Ada"<|>"Engine"<|>"She\n\n programs it."<|>8',
        f"{ENTITY}##\n{RELATIONSHIP.removesuffix(')')}##",
    ],
)
def test_format_variants_give_the_same_records(answer):
    parsed = parse_tuples(answer)
    assert parsed.entities == (ADA,)
    assert parsed.relationships == (PROGRAMS,)


@pytest.mark.parametrize(
    ("description", "read"),
    [
        ('"Founded (in 1843) by two (perhaps three) people"', None),
        ("Founded (in 1843)\nand closed", "Founded (in 1843) and closed"),
        ('"see section ##2"', "see section ##2"),
        ('"the operator <|> of Haskell"', "the operator <|> of Haskell"),
        ('"a | b"', "a | b"),
        ('"{braces} {{input_text}} %s $x"', "{braces} {{input_text}} %s $x"),
        ('"it is an entity"', "it is an entity"),
        ('"he said "no") and left"', 'he said "no") and left'),
        ('"AT&amp;T &#38; co"', "AT&T & co"),
        (
            '"the text says: ("entity"<|>"Evil"<|>"X"<|>"y") there"',
            'the text says: ("entity"<|>"Evil"<|>"X"<|>"y") there',
        ),
    ],
)
def test_what_stands_in_a_description_is_description(description, read):
    parsed = parse_tuples(f'("entity"<|>"A"<|>"t"<|>{description})##\n{ENTITY}')
    expected = description.strip('"') if read is None else read
    assert parsed.entities == (ParsedEntity("A", "T", expected), ADA)


def test_a_field_that_is_the_word_entity_begins_no_record():
    parsed = parse_tuples(
        '("entity"<|>"Entity"<|>"concept"<|>"An entity")##'
        '("relationship"<|>"Ada"<|>"Entity"<|>"Ada is an entity"<|>2)'
    )
    assert [entity.title for entity in parsed.entities] == ["Entity"]
    assert parsed.relationships == (ParsedRelationship("Ada", "Entity", "Ada is an entity"),)


@pytest.mark.parametrize(
    ("strength", "number"),
    [
        ("<|>8", 8),
        ("<|>8/10", 8),
        ("<|>6.5", 6.5),
        ("<|>6,5", 6.5),
        ("<|>-3", -3),
        ("<|>high", None),
        ('<|>"strength: 8"', 8),
        ("", None),
    ],
)
@pytest.mark.parametrize("description", ["In 1843 they met", "Met in 1843", "x <|> y, as they say"])
def test_a_strength_is_no_part_of_a_description(description, strength, number):
    parsed = parse_tuples(f'("relationship"<|>"A"<|>"B"<|>"{description}"{strength})')
    assert parsed.relationships == (ParsedRelationship("A", "B", description),)
    assert parsed.relationships[0].strength == number


def test_a_bare_number_is_no_description():
    parsed = parse_tuples('("relationship"<|>"A"<|>"B"<|>8)')
    assert parsed.relationships == (ParsedRelationship("A", "B", ""),)
    assert parsed.relationships[0].strength == 8


def test_a_type_that_is_missing_is_other_and_a_foreign_one_is_kept():
    answer = '("entity"<|>"A"<|>""<|>"x")##("entity"<|>"B"<|>"sea monster"<|>"y")'
    assert [entity.type for entity in parse_tuples(answer).entities] == ["OTHER", "SEA MONSTER"]


def test_what_is_too_long_to_be_a_type_is_other():
    answer = "##".join(f'("entity"<|>"A{n}"<|>"{"t" * n}"<|>"x")' for n in (20, 200))
    assert [entity.type for entity in parse_tuples(answer).entities] == ["T" * 20, "OTHER"]


@pytest.mark.parametrize(
    "malformed",
    [
        '("person"<|>"A"<|>"x"<|>"y")',
        '("entity"<|>"B")',
        '("entity"<|>""<|>"t"<|>"d")',
        f'("entity"<|>"{"B" * 301}"<|>"t"<|>"d")',
        '("relationship"<|>"A"<|>"<target_entity>"<|>"x"<|>1)',
    ],
)
def test_a_malformed_record_is_left_out_and_the_next_is_read(malformed):
    parsed = parse_tuples(f"{malformed}##\n{ENTITY}")
    assert (parsed.entities, parsed.relationships) == ((ADA,), ())


@pytest.mark.parametrize("answer", ["", "I'm sorry, I can't help with that.", '("entity"<|>"A'])
def test_an_answer_without_records_is_none(answer):
    assert not parse_tuples(answer).answered


def test_an_empty_list_is_an_answer():
    assert parse_tuples("<|COMPLETE|>").answered


def test_examples_never_leak_but_what_the_chunk_names_is_kept():
    examples = load_examples()
    titles = example_titles(examples)
    leaked = parse_tuples(examples + ENTITY, chunk_text="Ada writes.", example_titles=titles)
    assert leaked.entities == (ADA,)
    assert leaked.relationships == ()
    named = parse_tuples(
        '("entity"<|>"Port Issimer"<|>"geo"<|>"A port")##("entity"<|>"Kessenhaven"<|>"geo"<|>"x")',
        chunk_text="We sailed from PORT\nIssimer to Kessenhavenstadt.",
        example_titles=titles,
    )
    assert [entity.title for entity in named.entities] == ["Port Issimer"]


@pytest.mark.parametrize("domain", domains())
def test_shipped_examples_parse_without_fault(domain):
    examples = load_examples(domain)
    parsed = parse_tuples(examples)
    assert len(parsed.entities) == examples.count('("entity"<|>')
    assert len(parsed.relationships) == examples.count('("relationship"<|>')
    assert parsed.completed
    titles = {entity.title for entity in parsed.entities}
    assert all({edge.source, edge.target} <= titles for edge in parsed.relationships)


RECORD_START = '("relationship"<|>"a"<|>"b"<|>'
WORDS = ("entity", "relation", "8", "1.", "```", "\n", "\x00", "\ud800", "&lt;|&gt;", RECORD_START)
MARKS = ('("entity"', "<|>", "|", "##", "(", ")", '"', "<|COMPLETE|>", "“", ":", ",")
PIECES = st.sampled_from(WORDS + MARKS)


def test_what_a_later_answer_repeats_of_any_earlier_one_counts_once():
    first, second = parse_tuples(ENTITY), parse_tuples(f"{ENTITY}##{RELATIONSHIP}")
    together = merged([first, second, second])
    assert (together.entities, together.relationships) == ((ADA,), (PROGRAMS,))


@given(st.one_of(st.text(), st.lists(st.one_of(PIECES, st.text(max_size=4))).map("".join)))
def test_any_text_is_read_as_proper_records(text):
    parsed = parse_tuples(text, chunk_text="a", example_titles={"b"})
    for relationship in parsed.relationships:
        assert relationship.source
        f"{relationship.description}{relationship.target}".encode()
    for entity in parsed.entities:
        assert entity.title == " ".join(entity.title.split())
        assert entity.type == entity.type.upper()


@given(st.lists(st.text(st.characters(categories=["L", "N", "Zs"]), min_size=1, max_size=20)))
def test_records_with_plain_fields_come_back_as_they_were(fields):
    fields = [" ".join(field.split()) for field in fields if any(map(str.isalnum, field))]
    answer = "##\n".join(f'("entity"<|>"{field}"<|>"t"<|>"{field}")' for field in fields)
    assert parse_tuples(answer).entities == tuple(ParsedEntity(f, "T", f) for f in fields)


@pytest.mark.parametrize("piece", ["(", "<|>", '("entity"<|>', ")\n", '"', "##", " ", "\n", '" )'])
@pytest.mark.parametrize(
    "start", ["", '("entity"<|>"a"<|>"b"<|>', '("relationship"<|>"a"<|>"b"<|>c']
)
def test_hostile_answers_take_linear_time(start, piece):
    begun = time.process_time()
    parse_tuples(start + piece * (500_000 // len(piece)))
    assert time.process_time() - begun < 5
