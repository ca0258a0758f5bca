"""Answers of a model in JSON (reports, points, ratings) as plain data, checked and made whole.

Models leave parts out, name them otherwise, write "8.5/10" for a number and a list for a text. What
can be understood is; what cannot raises ModelOutputError, whose message is written to be shown to
the model, which then tries again, and holds nothing of the answer itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.llm.errors import ModelOutputError
from graphrag_pipeline.llm.parsing import has_words, parse_json_object
from graphrag_pipeline.llm.schemas import LONGEST_TEXT, NUMBER, Schema, closed, listed
from graphrag_pipeline.llm.schemas import text as a_text
from graphrag_pipeline.reports.references import check_references
from graphrag_pipeline.reports.text import Finding, ReportText

REPORT_PARSING_VERSION: Final = "1"
"""Part of a report's version: another parser may read another report in the same answer."""

MAX_RATING: Final = 10.0
MAX_SCORE: Final = 100.0
_MIDDLE_RATING = 5.0
_LOWEST_SCORE = 1.0
_MAX_TITLE_CHARS = 300
_HEADLINE_CHARS = 120

_MAX_SENTENCE_CHARS = 600
_MOST_POINTS, _MOST_FOLLOW_UPS = 20, 10
POINTS_SCHEMA: Final = closed(
    points=listed(closed(description=a_text(_MAX_SENTENCE_CHARS), score=NUMBER), _MOST_POINTS)
)
"""The JSON schema of what :func:`parse_points` reads."""
DRIFT_SCHEMA: Final = closed(
    intermediate_answer=a_text(LONGEST_TEXT),
    score=NUMBER,
    follow_up_queries=listed(a_text(_MAX_TITLE_CHARS), _MOST_FOLLOW_UPS),
)
"""The JSON schema of what :func:`parse_drift` reads."""
RATING_SCHEMA: Final = closed(reason=a_text(_MAX_SENTENCE_CHARS), rating=NUMBER)
"""The JSON schema of what :func:`parse_rating` reads."""

_ALIASES = {
    "title": ("title", "name", "reporttitle"),
    "summary": ("summary", "executivesummary", "reportsummary", "abstract", "overview"),
    "rating": ("rating", "impactseverityrating", "importancerating", "score", "severity"),
    "rating_explanation": ("ratingexplanation", "explanation", "ratingreason", "reason"),
    "findings": ("findings", "detailedfindings", "keyfindings", "insights", "keyinsights"),
    "headline": ("summary", "title", "headline", "finding", "insight", "name"),
    "explanation": ("explanation", "description", "details", "detail", "text", "content"),
    "point": ("description", "point", "answer", "text", "content"),
    "score": ("score", "importance", "importancescore", "helpfulness", "rating"),
    "answer": ("intermediateanswer", "answer", "response", "summary"),
    "follow_ups": ("followupqueries", "followupquestions", "followups", "queries", "questions"),
}
_UNWANTED = pattern_of(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff\ufffe\uffff\ud800-\udfff]")
_NUMBER = pattern_of(
    r"(?P<number>(?:(?<!\w)[-−])?[0-9]{1,9}(?:[.,][0-9]{1,9})?)"
    r"(?:\s?(?:/|out of|of|von|sur)\s?(?P<most>[0-9]{1,4})(?![0-9])|\s?(?P<percent>%))?"
)
_SENTENCE = pattern_of(r"(?<=[.!?])\s|(?<=[。！？])|\n")
_HELPFULNESS = pattern_of(
    r"<ANSWER[ _]?HELPFULNESS>\s{0,9}([^<]{1,20})</ANSWER[ _]?HELPFULNESS>", re.IGNORECASE
)
_LIST = pattern_of(r"\[\s*[\[{\]\"]")


@dataclass(frozen=True)
class Point:
    """One point of a map answer: what it says, and how much it helps, 0 to 100."""

    description: str
    score: float


@dataclass(frozen=True)
class DriftAnswer:
    """One step of a drift search: an answer, how well it answers (0 to 100), what to ask next."""

    answer: str
    score: float
    follow_ups: tuple[str, ...]


def report_schema(findings: int) -> Schema:
    """Return the JSON schema of what :func:`parse_report` reads, of at most so many findings."""
    finding = closed(summary=a_text(_MAX_TITLE_CHARS), explanation=a_text(LONGEST_TEXT))
    return closed(
        title=a_text(_MAX_TITLE_CHARS),
        summary=a_text(LONGEST_TEXT),
        rating=NUMBER,
        rating_explanation=a_text(_MAX_SENTENCE_CHARS),
        findings=listed(finding, findings),
    )


def parse_report(text: str, allowed: Mapping[str, Collection[int]]) -> ReportText:
    """Read a community report (paper, E.2); its findings have no spans.

    ``allowed`` has the human-readable ids that were in the context by kind, such as
    ``{"Entities": {5, 7}}``; references to others are taken out, and all in a title.

    Raises
    ------
    ModelOutputError
        If the answer is no JSON object, or holds neither a summary nor a finding.
    """
    outer = parse_json_object(text)
    fields = _unwrap(outer, ("summary", "findings"))
    title, summary = _text(_get(fields, "title")), _text(_get(fields, "summary"))
    findings = _findings(_get(fields, "findings"))
    rating = parse_rating(_get(fields, "rating"))
    explanation = _text(_get(fields, "rating_explanation"))
    if not has_words(" ".join([summary, *(text for _, text in findings)])):
        raise ModelOutputError('the JSON object has neither a "summary" nor any "findings"')

    def checked(text: str) -> str:
        return check_references(text, allowed).text.strip()

    title = title or _headline(findings[0][0] if findings else summary)
    title = check_references(title, {}).text.strip()[:_MAX_TITLE_CHARS]
    return ReportText(
        title=" ".join(title.split()) or "Community",
        summary=checked(summary or " ".join(headline for headline, _ in findings)),
        rating=_MIDDLE_RATING if rating is None else rating,
        rating_explanation=checked(explanation),
        findings=tuple(
            Finding(checked(headline), checked(text), None, None, None)
            for headline, text in findings
        ),
    )


def parse_points(text: str) -> tuple[Point, ...]:
    """Read a map answer, ``{"points": [{"description": ..., "score": 0-100}]}`` (paper, 3.1.6).

    Points of score 0 are among the result; one whose score cannot be read counts 1, so that it is
    kept, last. An answer in prose that states its helpfulness as in E.4 is one point.

    Raises
    ------
    ModelOutputError
        If the answer is no JSON with points.
    """
    if match := _HELPFULNESS.search(text):
        prose = _plain(text[: match.start()] + text[match.end() :])
        return _points([{"description": prose, "score": match[1]}])
    answer = parse_json_object(_list_as_json_object(text))
    items = answer.get("points", [answer] if _get(answer, "point") is not None else None)
    if isinstance(items, Mapping):
        items = list(items.values()) if all(map(_is_mapping, items.values())) else [items]
    if not isinstance(items, list):
        raise ModelOutputError('the answer must be a JSON object with a list "points"')
    return _points(items)


def parse_drift(text: str) -> DriftAnswer:
    """Read a step of a drift search: an answer, its score and follow-up questions.

    Raises
    ------
    ModelOutputError
        If the answer is no JSON object with an answer in it.
    """
    fields = parse_json_object(text)
    answer = _text(_get(fields, "answer"))
    if not has_words(answer):
        raise ModelOutputError('the JSON object has no "intermediate_answer"')
    score = parse_rating(_get(fields, "score"), MAX_SCORE)
    follow_ups = _get(fields, "follow_ups")
    questions = map(_text, follow_ups if isinstance(follow_ups, list) else [follow_ups])
    return DriftAnswer(
        answer,
        _LOWEST_SCORE if score is None else score,
        tuple(dict.fromkeys(filter(None, questions))),
    )


def parse_rating(value: object, most: float = MAX_RATING) -> float | None:
    """Return a rating from 0 to ``most``, or None where there is none.

    ``value`` is a number or the text of one ("8", "8.5/10", "85 %", ``{"rating": 8}``); fractions
    are scaled to ``most``, others clipped to it.
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return _clip(value, most)
    if isinstance(value, Mapping):
        return parse_rating(_get(value, "rating"), most)
    return _rating_in(str(value), most)


def _list_as_json_object(text: str) -> str:
    """Return an answer that is a bare list of points as the object it should have been."""
    match = _LIST.search(text)
    if match is None or "{" in text[: match.start()]:
        return text
    return f'{{"points": {text[match.start() :].split("```")[0]}}}'


def _unwrap(fields: Mapping[str, Any], parts: Iterable[str]) -> Mapping[str, Any]:
    """Return the report itself where it was put under one key, such as "report"."""
    inner = list(fields.values())
    if len(inner) != 1 or not _is_mapping(inner[0]):
        return fields
    return inner[0] if any(_get(inner[0], part) is not None for part in parts) else fields


def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)


def _get(fields: Mapping[str, Any], part: str) -> Any:
    """Return a part of an object under any of its names, however they are spelled."""
    spelled = {re.sub(r"[\W_]", "", str(key)).lower(): value for key, value in fields.items()}
    for name in _ALIASES[part]:
        if spelled.get(name) is not None:
            return spelled[name]
    return None


def _text(value: object) -> str:
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, list):
        return "\n\n".join(filter(None, map(_text, value)))
    if isinstance(value, Mapping):
        return "\n\n".join(filter(None, map(_text, value.values())))
    return _plain(str(value))


def _plain(text: str) -> str:
    return _UNWANTED.sub("", text.replace("\r\n", "\n")).strip()


def _findings(listed: object) -> tuple[tuple[str, str], ...]:
    if isinstance(listed, Mapping):
        is_one = _get(listed, "explanation") is not None or _get(listed, "headline") is not None
        listed = [listed] if is_one else [_named(name, value) for name, value in listed.items()]
    elif isinstance(listed, str):
        listed = [part for part in re.split(r"\n\s*\n", listed) if part.strip()]
    findings = map(_finding, listed if isinstance(listed, list) else [])
    return tuple(finding for finding in findings if finding[0])


def _named(name: object, value: object) -> object:
    return value if _is_mapping(value) else {"summary": name, "explanation": value}


def _finding(value: object) -> tuple[str, str]:
    if not isinstance(value, Mapping):
        text = _text(value)
        return _headline(text), text
    headline, explanation = _text(_get(value, "headline")), _text(_get(value, "explanation"))
    return headline or _headline(explanation), explanation or headline


def _headline(text: str) -> str:
    first = _SENTENCE.split(text, maxsplit=1)[0].strip().strip("#*- ")
    if len(first) <= _HEADLINE_CHARS:
        return first
    return first[:_HEADLINE_CHARS].rsplit(" ", 1)[0] + "…"


def _points(items: Iterable[object]) -> tuple[Point, ...]:
    return tuple(point for point in map(_point, items) if has_words(point.description))


def _point(value: object) -> Point:
    if not isinstance(value, Mapping):
        return Point(_text(value), _LOWEST_SCORE)
    score = parse_rating(_get(value, "score"), MAX_SCORE)
    return Point(_text(_get(value, "point")), _LOWEST_SCORE if score is None else score)


def _rating_in(text: str, most: float) -> float | None:
    if "{" in text:
        try:
            return parse_rating(parse_json_object(text), most)
        except ModelOutputError:
            return None
    match = _NUMBER.search(text)
    if match is None:
        return None
    number = float(match["number"].replace(",", ".").replace("−", "-"))
    scale = 100.0 if match["percent"] else float(match["most"] or 0)
    return _clip(number * most / scale if scale else number, most)


def _clip(number: float, most: float) -> float | None:
    try:
        value = float(number)
    except OverflowError:
        return most
    return None if math.isnan(value) else min(most, max(0.0, value))
