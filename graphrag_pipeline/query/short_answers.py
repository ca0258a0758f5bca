"""Short answers, whatever the method: the last call is told to give the answer and nothing else.

Exact match and F1 compare an answer with a gold answer of a few words, so they say little of
paragraphs. A short answer holds only what was asked for, or a fixed phrase where the documents do
not say it, which can be counted.
"""

from __future__ import annotations

import re
from typing import Final, Literal, get_args

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.patterns import pattern_of

AnswerStyle = Literal["full", "short"]
STYLES: Final = get_args(AnswerStyle)

NOT_IN_DOCUMENTS: Final = "Not in the documents"
"""What a short answer says where the documents do not hold the answer."""

RESPONSE_TYPE: Final = "the answer alone, in as few words as say it"

_FORM = (
    "Whatever was said of length and form before, answer in as few words as possible: a name, a "
    "date, a number, yes or no, or a short phrase or list, with no sentence around it, no "
    "explanation, no Markdown and no references. If you were told to reason first, do so, and then "
    'write the short answer on a last line that begins with "Answer:".'
)
_UNKNOWN = (
    "If you cannot answer from what you were given, or do not know where you were given nothing, "
    f"write exactly this, in English, and nothing else: {NOT_IN_DOCUMENTS}"
)
_GUESS = "Where you are not sure, write the answer that seems most likely to you."

RULE: Final = f"{_FORM} {_UNKNOWN}"
"""What is added to the last call of a method."""

_LAST_LINE = pattern_of(r"^[ \t*_]*(?:so the )?answer(?: is)?[ \t*_]*:[ \t*_]*(.*)", re.I | re.M)


def check_style(style: str) -> None:
    """Raise InputError for a style of answers that there is not."""
    if style not in STYLES:
        raise InputError(f"answer_style = {style!r}: must be {' or '.join(STYLES)}")


def rule(*, may_guess: bool) -> str:
    """Return what is added to the last call of a method, or of one whose model may guess."""
    return f"{_FORM} {_GUESS}" if may_guess else RULE


def short_form(text: str) -> str:
    """Return a short answer without the reasoning and the word before it."""
    matches = list(_LAST_LINE.finditer(text))
    answer = text[matches[-1].start(1) :].strip().rstrip("*_") if matches else ""
    return f"{answer or text.strip()}\n"
