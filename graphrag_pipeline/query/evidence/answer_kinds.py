"""Kinds of things that questions ask for, and the sentences that hold one: by rule."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.text import UNSPACED, fold
from graphrag_pipeline.query.asked_series import asked_series
from graphrag_pipeline.query.evidence.definitions import says_what_is
from graphrag_pipeline.query.evidence.latest import asks_for_version, version_of
from graphrag_pipeline.query.question import AnalysedQuestion, ends_pattern, words_pattern

if TYPE_CHECKING:
    from graphrag_pipeline.query.evidence.sentences import Sentence
    from graphrag_pipeline.query.release import Release


@dataclass(frozen=True)
class AskedFor:
    """Kind of answer that a question wants: ``holds`` says how much a sentence counts for it.

    ``defines`` says that it asks who or what something is.
    """

    holds: Callable[[Sentence], float]
    defines: bool = False


_KINDS = {"person": ("PERSON",), "place": ("GEO", "LOCATION")}
_YEAR = r"\b(?:1\d{3}|20\d{2})\b"
_CJK_DATE = r"\d\s*[年月日년월일]|[一二三四五六七八九十]+[年月日]"
_CJK_NUMBER = r"[一二三四五六七八九十百千万亿]+"

# The names of a type in each chunk. `entity_chunks` has each once.
_NAMES = """
SELECT chunk_id, list(DISTINCT title) AS titles FROM entity_chunks
SEMI JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS chunk_id) USING (chunk_id)
JOIN entities ON entities.id = entity_id
WHERE type IN (SELECT unnest($types::JSON::VARCHAR[])) GROUP BY chunk_id
"""


# "the maximum number" or "the default page size", but not "the city of a large population".
_WORDS_BEFORE = rf"(?:(?!(?:{words_pattern('leads_to_name')}))\w+ ){{0,3}}"
_MEASURES = pattern_of(rf"(?:the )?{_WORDS_BEFORE}(?:{words_pattern('quantity')})")
_ASKS_LIMIT = pattern_of(words_pattern("asks_limit"))
# Whoever is asked for by "the architect of the bridge" has a name; "a contributor" is a word.
_ANY = pattern_of(words_pattern("one"))
_DESCRIBED = pattern_of(rf"(?!{words_pattern('one')})(?:{words_pattern('articles')})")
_CLOCK = r"\b\d{1,2}(?:[:h]\d\d|(?:[.:]\d\d)?\s?(?:h|uhr|uur|am|pm))\b|\d\s*[時点时시]"
_A_TIME = f"{_YEAR}|{_CLOCK}|{_CJK_DATE}|{words_pattern('date_words')}"
_HOW_LONG, _HOW_OFTEN = (pattern_of(words_pattern(each)) for each in ("how_long", "how_often"))
_A_FREQUENCY = words_pattern("frequency_words")
_COUNTED = pattern_of(
    rf"(?:{words_pattern('how_many')})\s+(?!(?:{words_pattern('leads_to_name')}))([^\W\d_]{{4,}})"
)
"""How many boats: what is counted."""
# "In 2023" says when, and not how many.
_FIGURE = r"(?<!\d)(?!(?<=\bin )(?:1\d|20)\d\d\b)\d"
_A_NUMBER = rf"{_FIGURE}|{_CJK_NUMBER}|{words_pattern('number_words')}"
# Also "a 6-week break", "one month".
_A_DURATION = (
    rf"{words_pattern('duration_words')}|\w(?:{ends_pattern('duration_ends')})|"
    rf"(?:\d|{words_pattern('number_words')})[\s-]*(?:{words_pattern('duration_units')})"
)
_IS_A_NUMBER = pattern_of(
    rf"\b(?:is|are|was|were)\s+(?:(?:about|only|set to|now)\s+)?(?:{_A_NUMBER})|"
    rf"\b(?:ist|sind|est|sont|es|son)\s+(?:{_A_NUMBER})"
)
_NUMBERED = pattern_of(r"\b([^\W\d_a-z][^\W\d_]+) (\d+)\b")
"""What is named by a word and a figure."""


def wanted_of(index: Release, question: AnalysedQuestion, chunks: Sequence[str]) -> AskedFor | None:
    """Return what says whether a sentence holds what a question asks for; None if that is nothing.

    Who asks who "Ada King" is wants to know what she is, who asks for "the source" wants a name.
    A person or a place is an entity of that type in the sentence's chunk, whose name the question
    does not say itself. Who asks what a number is wants a sentence that says "is 16" or the like.
    """
    if asks_for_version(question):
        return AskedFor(lambda sentence: version_of(sentence.quote) is not None)
    if series := asked_series(index, question):
        said = re.compile(rf"\b{re.escape(series)}[ -]\d")
        return AskedFor(lambda sentence: said.search(fold(sentence.quote)) is not None)
    kind, subject = question.asks_for, question.subject
    if kind == "person" and _DESCRIBED.match(subject):
        subject = ""
    if subject and not _MEASURES.match(subject):
        is_person = kind == "person" and not _ANY.match(subject)
        says = says_what_is(subject, is_person=is_person, asks_does=question.asks_does)
        return AskedFor(says, defines=True)
    if subject or kind in ("time", "number"):
        patterns = (_IS_A_NUMBER,) if subject else _said_where(question.folded, kind)
        return AskedFor(partial(_share_held, patterns))
    return AskedFor(_names_another(index, question, chunks, kind)) if kind in _KINDS else None


def _said_where(asked: str, kind: str) -> tuple[re.Pattern[str], ...]:
    """Return what a sentence says where a question asks for a time or a number, the best first.

    *When* may be answered by *after two years*, or by *every three years*, if by no date; how many
    there can be is a limit.
    """
    patterns = (_A_NUMBER,)
    if kind == "number" and _ASKS_LIMIT.search(asked):
        limits = words_pattern("limits")
        patterns = (f"(?s:{limits}).*(?:{_A_NUMBER})|(?:{_A_NUMBER}).*(?:{limits})", _A_NUMBER)
    elif _HOW_OFTEN.search(asked):
        patterns = (_A_FREQUENCY,)
    elif counted := _COUNTED.search(asked):
        # Boats, a boat, and what German calls sailing boats; forty of them, or forty new ones.
        some = rf"(?:{_A_NUMBER})[^\s;:()]*\s+(?:[^\s.,;:()]+\s+){{0,2}}?\S*{counted[1][:-1]}"
        patterns = (some, _A_NUMBER)
    elif kind == "time" and _HOW_LONG.search(asked):
        patterns = (f"{_A_TIME}|{_A_DURATION}",)
    elif kind == "time":
        patterns = (_A_TIME, f"{_A_DURATION}|{_A_FREQUENCY}")
    # Long ones, compiled for the questions that need them.
    return tuple(map(re.compile, patterns))


def asks_limit(question: AnalysedQuestion) -> bool:
    """Whether a question asks how many there can be."""
    return question.asks_for == "number" and _ASKS_LIMIT.search(question.folded) is not None


def _share_held(patterns: Sequence[re.Pattern[str]], sentence: Sentence) -> float:
    """Return 1 where a sentence holds the first pattern, half of that for the second."""
    said = fold(sentence.unnumbered)
    found = (n for n, pattern in enumerate(patterns) if pattern.search(said))
    return 0.5 ** next(found, math.inf)


def _names_another(
    index: Release, question: AnalysedQuestion, chunks: Sequence[str], kind: str
) -> Callable[[Sentence], bool]:
    asked = question.folded
    names = {
        row["chunk_id"]: [name for title in row["titles"] if (name := fold(title)) not in asked]
        for row in index.rows(_NAMES, ids=list(chunks), types=list(_KINDS[kind]))
    }

    def holds(sentence: Sentence) -> bool:
        text = fold(sentence.quote)
        return any(name in text for name in names.get(sentence.chunk_id, ()))

    return holds


def shares_written(question: AnalysedQuestion, texts: Sequence[str]) -> list[float]:
    """Return what share of the figures in a question each text has as they are written there.

    Version 3.3a is not version 3.3: search terms do not tell them apart. An option of a command
    counts, twice, where a text begins with it: that says what it does.
    """
    # Signs of scripts without spaces may stand beside a figure.
    before, after = rf"(?<![^\W{UNSPACED}])(?<!\.)", rf"(?![^\W{UNSPACED}]|\.\d)"
    patterns = [re.compile(f"{before}{re.escape(word)}{after}") for word in question.figures]
    if not patterns:
        return [0.0] * len(texts)
    return [
        sum(_is_written(pattern.search(text), text) for pattern in patterns) / len(patterns)
        for text in map(fold, texts)
    ]


def _is_written(match: re.Match[str] | None, text: str) -> int:
    """Return 1 where a word is found; of an option 2 where nothing but others comes before it."""
    if match is None or match[0][0] != "-":
        return int(match is not None)
    before = text[: match.start()].replace(",", " ").split()
    return 2 * all(part.strip("`*")[:1] in ("-", "<", "") for part in before)


def name_another(question: AnalysedQuestion, texts: Sequence[str]) -> list[bool]:
    """Return which texts name by another figure what a question names by one: Quay 5, not 4."""
    asked = _NUMBERED.findall(question)
    others = [
        (re.compile(rf"\b{re.escape(fold(word))} (?!{figure}\b)\d"), re.compile(rf"\b{figure}\b"))
        for word, figure in asked
    ]
    return [
        any(other.search(text) and not own.search(text) for other, own in others)
        for text in (map(fold, texts) if others else texts)
    ]
