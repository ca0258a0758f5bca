"""The page on methods: each is described as it is, and what no longer holds is told."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from docs import generate, method_entries
from docs.flow_pictures import picture
from docs.method_entries import Step, entry_of, faults
from graphrag_pipeline.query.methods import Method, method_named
from graphrag_pipeline.query.methods.method import number
from graphrag_pipeline.query.methods.registry import ALL_METHODS

ENTRY = """\
# A system

[Its paper](https://example.org), 2024.

## kg_triplets

It asks. It reads. It answers.

Source: a paper.

**When to use it.** Always.

Calls of a model for an answer: 2.

### Steps

|  | step | asks the model with | again |
| --- | --- | --- | --- |
| 1 | Name the question's entities | `question_entities` |  |
| 2 | Answer | `local_answer` |  |

### Parameters

| parameter | source | meaning |
| --- | --- | --- |
| `depth` | 3 | how deep |

### What differs, and why

Nothing.

### In detail

It is [fast](../../../docs/methods.md#operators).

## The index

It has one.
"""
FILE = "graphrag_pipeline/systems/kg/README.md"


@dataclass(frozen=True)
class Parameters:
    """Two parameters, one of them described for several methods."""

    depth: int = number(3)
    reranked: int = number(40)


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """What is told of a method that sends what ``kg_triplets`` sends, described by this text."""
    shutil.copytree(method_entries.ROOT / "docs" / "methods", tmp_path / "docs" / "methods")
    for path in (tmp_path / "docs" / "methods").glob("[!_]*"):
        path.unlink()
    (tmp_path / FILE).parent.mkdir(parents=True)
    method = replace(method_named("kg_triplets"), parameters=Parameters)

    def of(text: str | None, **changes: Any) -> list[str]:
        if text is not None:
            (tmp_path / FILE).write_text(text)
        monkeypatch.setattr(method_entries, "ROOT", tmp_path)
        methods: dict[str, Method[Any]] = {"kg_triplets": replace(method, **changes)}
        return [line.removeprefix(f"{FILE}, kg_triplets: ") for line in faults(methods)]

    return of


def test_every_method_is_described_as_it_is() -> None:
    assert list(faults({name: method_named(name) for name in ALL_METHODS.own})) == []


def test_a_right_entry_has_no_fault(told: Callable[..., list[str]]) -> None:
    assert told(ENTRY) == []


def test_a_method_without_an_entry_is_told(told: Callable[..., list[str]]) -> None:
    assert told(None) == [
        "docs/methods/kg_triplets.md: is not there; write it as the others beside it, "
        "then: make docs"
    ]


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("It reads. ", "", "idea has 2 sentences; say it in 3"),
        ("answer: 2.", "answer:", "calls is empty"),
        (
            "`depth`",
            "`width`",
            "add a row to the table of parameters: | `depth` | source | meaning |",
        ),
        ("`depth`", "`width`", "the method has no parameter width any more; take it out"),
        ("| 3 |", "| 4 |", "depth is 3 here, not 4: say why in differs"),
        (
            "`question_entities`",
            "",
            "the method asks the model with question_entities: no step has that",
        ),
        (
            "| 2 | Answer |",
            "| 2 | Test | `lazy_test` |  |\n| 3 | Answer |",
            "step 2 asks the model, but the method sends no lazy_test",
        ),
        (
            "`local_answer` |  |",
            "`local_answer` | twice |",
            "step 2: again must be written as from 3: until when",
        ),
    ],
)
def test_what_no_longer_holds_is_told(
    told: Callable[..., list[str]], old: str, new: str, fault: str
) -> None:
    assert old in ENTRY
    assert fault in told(ENTRY.replace(old, new))


def test_another_default_is_told(told: Callable[..., list[str]]) -> None:
    @dataclass(frozen=True)
    class Deeper:
        depth: int = number(4)

    assert told(ENTRY, parameters=Deeper) == ["depth is 4 here, not 3: say why in differs"]


def test_an_entry_of_no_method_is_told(told: Callable[..., list[str]], tmp_path: Path) -> None:
    (tmp_path / "docs" / "methods" / "gone.md").write_text("## gone\n")
    assert told(ENTRY) == ["docs/methods/gone.md: there is no method gone any more; take it out"]


def test_a_file_that_is_no_entry_is_told_by_name(told: Callable[..., list[str]]) -> None:
    for text in (
        ENTRY.replace("**When to use it.**", "When."),
        ENTRY.replace("### In detail", "### Detail"),
        ENTRY.replace("| 2 | Answer |", "| Answer |"),
    ):
        with pytest.raises(ValueError, match=rf"{FILE}, kg_triplets: "):
            told(text)


def test_the_page_has_what_a_system_says_of_itself_beyond_its_methods(
    told: Callable[..., list[str]],
) -> None:
    assert told(ENTRY) == []
    entry = entry_of("kg_triplets")
    assert entry is not None
    assert entry.paper == "[Its paper](https://example.org), 2024."
    assert entry.details == "It is [fast](../methods.md#operators).\n\n**The index.** It has one."


def test_a_picture_shows_every_step_within_its_card() -> None:
    for name in ALL_METHODS.own:
        entry = entry_of(name)
        assert entry is not None
        root = ElementTree.fromstring(picture(name, entry.flow))
        texts = [element for element in root.iter() if element.tag.endswith("}text")]
        shown = " ".join(element.text or "" for element in texts)
        assert [step.does for step in entry.flow if step.does not in shown] == []
        assert shown.count("asks the model") == sum(bool(step.prompts) for step in entry.flow)
        # The widest of common fonts takes 0.6 of a letter's size on average.
        for element in texts:
            wide = 0.6 * float(element.attrib["font-size"]) * len(element.text or "")
            assert float(element.attrib["x"]) + wide < 377, element.text


def test_text_in_a_picture_is_escaped() -> None:
    drawn = picture("<b>", [Step(does='<script>"&'), Step(does="x", again="y", since=1)])
    root = ElementTree.fromstring(drawn)
    assert {element.tag.rpartition("}")[2] for element in root.iter()} == {
        "svg", "rect", "text", "path",
    }  # fmt: skip
    assert '<script>"&' in [element.text for element in root.iter()]
    assert "href" not in drawn


@pytest.mark.beside
def test_the_page_has_what_was_measured_and_what_each_parameter_is_by_default() -> None:
    page = generate.page("methods")
    ppr = page.partition("\n## ppr\n")[2].partition("\n## ")[0]
    assert "| `damping` | `0.6` | 0.5 (HippoRAG 2) |" in ppr
    assert "\n| MuSiQue, graph rule, hashing | 76.2 | 70 to 82 | 56 | 1,237 |" in ppr
