"""Strength of a relationship, which a model is asked for where the settings say so (E.1).

The paper's prompt asks for it, and weighs an edge by the number of its instances all the same
(3.1.3); graphrag, LightRAG and HiRAG weigh it by the sum of the strengths, as ``strength`` does.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.prompting import DEFAULT_DOMAIN, PROMPTS, examples_file, load_examples
from graphrag_pipeline.core.settings import ExtractionSettings

STRENGTHS: Final = range(1, 11)
USUAL: Final = 1.0
"""What a relationship counts whose strength is not asked for, or was not given."""

_SCALE = "from 1 (they meet in passing) to 10 (neither can be understood without the other)"
_IN_EXAMPLES = pattern_of(r"(?<=[^>])<\|>\d+(?=\)$)", re.MULTILINE)
_IN_TUPLES = {
    "strength": f"\n- strength: how strongly they are related, a whole number {_SCALE}",
    "strength_field": "<|>strength",
}
_IN_JSON = {
    "strength": f' Say in "strength" how strongly they are related, {_SCALE}.',
    "strength_field": ', "strength"',
}


def shown_examples(
    domain: str = DEFAULT_DOMAIN, folder: Path | None = None, *, strengths: bool = False
) -> str:
    """Return the examples of a domain as a prompt shows them.

    Those that ship are without the strengths of their relationships unless these are asked for; a
    user's own are as they are written. Raises ConfigError where there are none.
    """
    examples = load_examples(domain, folder)
    if strengths or not examples_file(domain, folder).is_relative_to(PROMPTS):
        return examples
    return _IN_EXAMPLES.sub("", examples)


def asked_in_tuples(settings: ExtractionSettings) -> dict[str, str]:
    """Return what prompts in tuple format say of the strength; nothing where it is not asked."""
    return _IN_TUPLES if settings.strength else {}


def asked_in_json(settings: ExtractionSettings) -> dict[str, str]:
    """Return what prompts in JSON say of the strength; nothing where it is not asked for."""
    return _IN_JSON if settings.strength else {}


def within_scale(strength: float | None) -> float:
    """Return what a relationship of this strength counts.

    >>> within_scale(7.5), within_scale(80), within_scale(-3), within_scale(None)
    (7.5, 10.0, 1.0, 1.0)
    """
    if strength is None:
        return USUAL
    return float(min(max(strength, STRENGTHS[0]), STRENGTHS[-1]))
