"""The times that a question says: "since May", "before 1960", "between 2018 and 2020", a day."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from functools import cache

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.text import fold
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.query.asked_spans import as_text, beside, span_from_today
from graphrag_pipeline.query.question import AnalysedQuestion, words_pattern

_MONTHS = {
    fold(word): month
    for month in range(1, 13)
    for word in word_lists("questions.txt")[f"month_{month}"]
}
_YEAR, _DAY = r"(?P<year>1[4-9]\d\d|20\d\d)", r"(?P<day>0?[1-9]|[12]\d|3[01])"
_MONTH, _OF, _TH = (
    r"(?P<name>[^\W\d_]{3,})\.?",
    r"\s+(?:(?:of|de|del|di)\s+)?",
    r"(?:[a-z]{2}|[.°])?",
)
_FORMS = (
    rf"{_YEAR}(?:-(?P<month>0[1-9]|1[0-2])(?:-{_DAY})?)?",
    rf"{_DAY}\.(?P<month>0?[1-9]|1[0-2])\.{_YEAR}",
    rf"{_DAY}{_TH}{_OF}{_MONTH}(?:,?{_OF}{_YEAR})?",
    rf"{_MONTH}\s+{_DAY}{_TH}(?:,?\s+{_YEAR})?",
    rf"{_MONTH}(?:,?{_OF}{_YEAR})?",
)
_ANY = "|".join(re.sub(r"\(\?P<\w+>", "(?:", form) for form in _FORMS)
_BOUNDS = {"since": (">", 0), "after": (">", 1), "before": ("<", -1), "until": ("<", 0)}
_DIGIT, _WORD = pattern_of(r"\d"), pattern_of(r"[^\W\d_]+")
LATEST = pattern_of(rf"(?<!at the )(?:{words_pattern('latest')})")


@cache
def _phrases() -> dict[str, re.Pattern[str]]:
    """Return the phrase of each kind of bound, and "between": made when a question has a time."""
    article, end = rf"(?:{words_pattern('before_a_date')}\s+)?", r"(?![\w%]|[.,-]\d)"
    first, second = (f"{article}(?P<{name}>{_ANY}){end}" for name in ("first", "second"))
    phrases = {name: rf"(?:{words_pattern(name)})\s+{first}" for name in _BOUNDS}
    two = rf"(?:{words_pattern('between')}|{words_pattern('from')})"
    phrases["between"] = rf"{two}\s+{first}\s+(?:{words_pattern('and')})\s+{second}"
    return {name: re.compile(phrase) for name, phrase in phrases.items()}


@cache
def _with_a_year() -> re.Pattern[str]:
    """Return what is written as a date with its year, the longest first."""
    month = "|".join(sorted(map(re.escape, _MONTHS), key=len, reverse=True))
    day, dated = re.sub(r"\(\?P<\w+>", "(?:", _DAY), re.sub(r"\(\?P<\w+>", "(?:", _YEAR)
    named = rf"(?:{day}{_TH}{_OF})?(?:{month})\.?(?:\s+{day}{_TH})?(?:,?{_OF}){dated}"
    iso = rf"{dated}(?:-(?:0[1-9]|1[0-2])(?:-{day})?)?"
    return re.compile(
        rf"(?<![\w.,-])(?:{named}|{day}\.(?:0?[1-9]|1[0-2])\.{dated}|{iso})(?![\w%]|[.,-]\d)"
    )


def asked_bounds(question: str, today: date) -> dict[str, str]:
    """Return the time that a question asks for: its first day, month or year, and its last.

    By ">" and "<", as 1960, 1960-05 or 1960-05-03; a month without a year is the last of its name.

    >>> asked_bounds("What was decided after May 2019 and before 2021?", date(2024, 3, 1))
    {'>': '2019-06', '<': '2020'}
    """
    text = AnalysedQuestion.of(question).folded
    if bounds := span_from_today(text, today):
        return bounds
    if not (_DIGIT.search(text) or _MONTHS.keys() & _WORD.findall(text)):
        return bounds
    for between in _phrases()["between"].finditer(text):
        first, last = (_read(between[name], today) for name in ("first", "second"))
        if first and last:
            return {">": as_text(first), "<": as_text(last)}
    for name, (sign, step) in _BOUNDS.items():
        for found in _phrases()[name].finditer(text):
            if when := _read(found["first"], today):
                bounds[sign] = as_text(beside(when, step))
    return bounds


def asked_periods(question: str, today: date) -> list[tuple[str, str]]:
    """Return the times that a question says and sets no bounds by: its words, and 1960-05.

    >>> asked_periods("Who was elected in May 2019?", date(2024, 3, 1))
    [('may 2019', '2019-05')]
    """
    text = AnalysedQuestion.of(question).folded
    if not _DIGIT.search(text) or asked_bounds(question, today):
        return []
    said = (found[0] for found in _with_a_year().finditer(text))
    return [(words, as_text(when)) for words in said if (when := _read(words, today))]


def with_days(question: str) -> str:
    """Return a question with the days that it says as tables write them.

    >>> with_days("Who paid on 3 June 2025?")
    'Who paid on 3 June 2025? 2025-06-03 03.06.2025 3.6.2025'
    """
    days = [when.split("-") for _, when in asked_periods(question, datetime.now(UTC).date())]
    forms = [
        f"{y}-{m}-{d} {d}.{m}.{y} {int(d)}.{int(m)}.{y}"
        for y, m, d in (day for day in days if len(day) == 3)
    ]
    return " ".join((question, *forms))


def dates_in(line: str) -> list[str]:
    """Return the dates with a year that a line says, as 1960, 1960-05 or 1960-05-03."""
    today = datetime.now(UTC).date()
    said = (_read(found[0], today) for found in _with_a_year().finditer(fold(line)))
    return [as_text(when) for when in said if when]


def asked_months(question: str) -> list[tuple[str, str]]:
    """Return the months that a question says without a year, with a capital: the word, and -05-.

    >>> asked_months("When was the May invoice paid, that may be late?")
    [('may', '-05-')]
    """
    if asked_bounds(question, datetime.now(UTC).date()):
        return []
    named = [fold(word) for word in _WORD.findall(question)[1:] if word[0].isupper()]
    months = [word for word in dict.fromkeys(named) if word in _MONTHS]
    dated = " ".join(_with_a_year().findall(AnalysedQuestion.of(question).folded))
    return [(word, f"-{_MONTHS[word]:02}-") for word in months if word not in dated]


def _read(text: str, today: date) -> tuple[int, ...]:
    """Return a date as year, year and month, or year, month and day; nothing of what is none."""
    forms = (re.fullmatch(form, text) for form in _FORMS)
    parts = next(match for match in forms if match).groupdict()
    name = parts.get("name")
    if name and name not in _MONTHS:
        return ()
    month = _MONTHS[name] if name else int(parts.get("month") or 0)
    day = int(parts.get("day") or 0)
    year = int(parts.get("year") or today.year - ((month, day) > (today.month, today.day)))
    return tuple(filter(None, (year, month, day)))
