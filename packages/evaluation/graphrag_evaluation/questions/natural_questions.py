"""Natural Questions (Kwiatkowski et al. 2019): its published lines, original or simplified.

The original gives the page as tokens with their HTML tags marked, the simplified one as a text of
such tokens between single spaces. Answers and passages are spans of tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from graphrag_evaluation.questions.fields import (
    Entry,
    UnreadableEntryError,
    clean,
    list_of,
    object_of,
    question_text,
)
from graphrag_evaluation.questions.question import Passage, Question

_TAG = re.compile(r"</?[A-Za-z][A-Za-z0-9]*(?:_[^>]*)?/?>")
_BLOCKS = re.compile(r"</?(?:P|Table|Tr|Ul|Ol|Dl|Li|Dd|Dt|H[1-6])\b.*>", re.IGNORECASE)
_YES_NO = {"YES": "yes", "NO": "no"}


def nq(entry: Entry) -> Iterator[Question]:
    """A question: one gold answer for each annotator who gave one, a list joined by commas.

    Long answers are the passages. A question that no one answered has neither.
    """
    tokens = _tokens(entry)
    annotations = [object_of(value, "annotations") for value in list_of(entry, "annotations")]
    answers = filter(None, (_answer(annotation, tokens) for annotation in annotations))
    spans = [object_of(a.get("long_answer") or {}, "long_answer") for a in annotations]
    texts = dict.fromkeys(filter(None, (_span(span, tokens) for span in spans)))
    yield Question(
        question_text(entry, "question_text", "question"),
        tuple(dict.fromkeys(answers)),
        tuple(Passage(text=text) for text in texts),
    )


def page_of(entry: Entry) -> tuple[str, str]:
    """Return the title of an entry's page, and its text: a line for each block of the page."""
    lines: list[list[str]] = [[]]
    for token, is_tag in _tokens(entry):
        if not is_tag:
            lines[-1].append(token)
        elif _BLOCKS.fullmatch(token) and lines[-1]:
            lines.append([])
    return title_of(entry), "\n".join(" ".join(line) for line in lines if line)


def title_of(entry: Entry) -> str:
    """Return the title of an entry's page."""
    if title := clean(entry.get("document_title")):
        return title
    address = urlsplit(clean(entry.get("document_url")))
    named = parse_qs(address.query).get("title") or [unquote(address.path.rpartition("/")[2])]
    return named[0].replace("_", " ")


def _tokens(entry: Entry) -> list[tuple[str, bool]]:
    """Return each token, and whether it is an HTML tag."""
    if isinstance(text := entry.get("document_text"), str):
        return [(token, bool(_TAG.fullmatch(token))) for token in text.split(" ")]
    tokens = [object_of(value, "document_tokens") for value in list_of(entry, "document_tokens")]
    if not tokens:
        raise UnreadableEntryError("no page: document_text or document_tokens was expected")
    return [(clean(token.get("token")), bool(token.get("html_token"))) for token in tokens]


def _answer(annotation: Entry, tokens: list[tuple[str, bool]]) -> str:
    shorts = [object_of(value, "short_answers") for value in list_of(annotation, "short_answers")]
    spans = filter(None, (_span(short, tokens) for short in shorts))
    return ", ".join(spans) or _YES_NO.get(str(annotation.get("yes_no_answer")), "")


def _span(span: Entry, tokens: list[tuple[str, bool]]) -> str:
    start, end = _place(span, "start_token"), _place(span, "end_token")
    if start < 0:
        return ""
    if not start <= end <= len(tokens):
        raise UnreadableEntryError(
            f"an answer from token {start} to {end} is not in the page, which has {len(tokens)}"
        )
    return clean(" ".join(token for token, is_tag in tokens[start:end] if not is_tag))


def _place(span: Entry, name: str) -> int:
    value: Any = span.get(name, -1)
    if not isinstance(value, int):
        raise UnreadableEntryError(f"{name} must be a number")
    return value
