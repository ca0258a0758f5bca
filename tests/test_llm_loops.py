"""Answers that go round in circles are seen as they come, and nothing else is."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from graphrag_pipeline.llm.loops import LoopFinder, loop_in

ROOT = Path(__file__).parents[1]
RECORD = '("entity"<|>JANE DOE<|>PERSON<|>Jane Doe keeps the books of the mill on the river)##\n'
OTHERS = "".join(
    f'("entity"<|>NAME {n}<|>PERSON<|>The one who came as number {n * 37 % 101})##\n'
    for n in range(12)
)
SENTENCE = "The mill was sold to the bank in the spring. "
SOUND = "Jane Doe owned a mill by the river, and her brother kept the books until he left. "
CYCLE = "".join(
    f'{{"title": "{name}", "type": "PERSON", "description": "{name} is at the mill."}},'
    for name in ("Jane", "John", "Mary", "Max")
)
LOOPS = {
    "a record": (OTHERS, RECORD),
    "a sentence": (SOUND, SENTENCE),
    "a cycle of records": (OTHERS, CYCLE),
    "a word": (SOUND, "mill "),
    "one letter without end": (SOUND, "a" * 16),
    "a paragraph of two hundred words": (SOUND, " ".join(f"word{n}" for n in range(200)) + ". "),
    "a sentence in Chinese": (SOUND, "磨坊在春天被卖给了银行，简和约翰离开了这座城市。"),
    "noughts": (SOUND, "0.0, "),
    "blanks": (SOUND + "{", "\n" * 20),
}


def position_of(text: str, piece: int = 5) -> int | None:
    """Return where a text that comes in small pieces is found to go round."""
    finder = LoopFinder()
    for begin in range(0, len(text), piece):
        if (position := finder.feed(text[begin : begin + piece])) is not None:
            return position
    return finder.finish()


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_is_seen_soon_and_what_came_before_it_is_sound(name: str) -> None:
    before, cycle = LOOPS[name]
    text = before + cycle * (30_000 // len(cycle))
    position = position_of(text)
    assert position is not None
    assert len(before) - len(cycle) <= position <= len(before) + 2 * len(cycle) + 16
    assert loop_in(text) == position
    # It is stopped after a few rounds, not at the end.
    rounds = 20 if len(cycle) > 40 else 1300
    assert position_of(text[: len(before) + rounds * len(cycle)]) == position


def reports() -> str:
    """A JSON report with many findings of one shape, whose words are drawn anew."""
    draw = random.Random(3)
    words = ["mill", "river", "bank", "spring", "brother", "books", "town", "council", "flood"]
    findings = [
        {
            "summary": f"{draw.choice(words)} and {draw.choice(words)}",
            "explanation": " ".join(draw.choices(words, k=30)) + " [Data: Entities (5, 7)]",
            "rating": 7.5,
        }
        for _ in range(60)
    ]
    return json.dumps({"title": "The mill", "rating": 7.5, "findings": findings}, indent=1)


def tables() -> str:
    rows = [f"| {n} | mill | yes | - | - | 0 | {n % 7} |" for n in range(300)]
    return "\n".join(["| a | b | c | d | e | f | g |", "|---|---|---|---|---|---|---|", *rows])


HARMLESS = {
    "records": "".join(OTHERS.replace("NAME", f"N{n}") for n in range(40)),
    "a JSON report": reports(),
    "a table of like rows": tables(),
    "a rule": "=" * 150 + "\n" + SOUND + "-" * 150,
    "the same sentence three times": SOUND + SENTENCE * 3,
    "a refrain": "".join(f"Verse {n} tells of day {n}.\n{SENTENCE * 2}\n" for n in range(40)),
    "numbers": json.dumps({"recall": [n % 2 for n in range(600)]}),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_merely_repeats_keys_and_rows_is_no_loop(name: str) -> None:
    assert position_of(HARMLESS[name]) is None


def test_no_page_of_the_documentation_goes_round() -> None:
    pages = list((ROOT / "docs").rglob("*.md"))
    assert len(pages) > 20
    assert not [page.name for page in pages if position_of(page.read_text("utf-8"), 4096)]


@pytest.mark.shared_data
def test_no_recorded_answer_of_a_real_model_goes_round(shared_data: Path) -> None:
    cassette = json.loads((shared_data / "llm_outputs/gpt4o_carol_cassette.json").read_text())
    answers = [text for text in _texts(cassette) if len(text) > 200]
    assert len(answers) > 150
    assert not [text[:80] for text in answers if position_of(text, 50) is not None]


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in values for text in _texts(each)]
