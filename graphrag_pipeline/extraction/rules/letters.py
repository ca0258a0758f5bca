"""Greetings and closings of letters and mail, which name nobody by themselves: "Dear", "Regards".

Whom a greeting is for, and who signs below a closing, are people.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.extraction.rules.sentences import Span

_WORDS = {
    section: frozenset(word.casefold() for word in words)
    for section, words in word_lists("nlp_letters.txt").items()
}
_GREETINGS = _WORDS["greeting"] | _WORDS["greeting_with_mark"]
_CLOSINGS = _WORDS["closing"] | _WORDS["closing_with_comma"]
_MOST_WORDS = 5
_LONGEST = 80
_WORD = pattern_of(r"[^\s,;:!.]+")
_WHOM = pattern_of(r"[^\W\d_][^\n,;:!]{0,60}")
_AFTER_WHOM = pattern_of(r"[,!:]|[ \t]*$")
_OWN = pattern_of(r"\s{0,9}([^\W\d_]{2,6}) +")
_SIGNED = pattern_of(
    r"\s{0,9}(?P<name>[^\W\d_a-z][^\W\d_]*\.?(?:[ -](?:[^\W\d_]{1,3} )?"
    r"[^\W\d_a-z][^\W\d_'’-]*\.?){0,3})(?=[ \t]*(?:$|[,(|/]))",
    re.M,
)


_GERMAN = ("Grü", "Grue", "Dank", "Wochenende", "Feierabend", "Weihnachten", "Ostern", "Alles Gute")
_GREETED = pattern_of(
    r"\b(?P<two>[^\W\d_]{3,12}[ \t])?(?P<one>[^\W\d_]{4,15}[ \t])"
    r"(?:Gr(?:ü|ue)(?:ß|ss)en?|Dank|Wochenende|Feierabend|Weihnachten|Ostern|Gute)\b"
)


def _first_words(phrases: Iterable[str]) -> re.Pattern[str]:
    """Return what finds lines that begin with the first word of a phrase, by its first letter."""
    by_letter: dict[str, list[str]] = {}
    for word in sorted({phrase.split("_")[0].replace("ss", "(?:ss|ß)") for phrase in phrases}):
        by_letter.setdefault(word[0], []).append(word[1:])
    branches = (
        f"[{letter}{letter.upper()}](?:{'|'.join(rests)})" for letter, rests in by_letter.items()
    )
    return pattern_of(rf"\n[ \t>]*(?:{'|'.join(branches)})(?!\w)")


_OPENS = _first_words(_GREETINGS | _CLOSINGS)


def letter_parts(text: str) -> tuple[list[Span], list[Span]]:
    """Return the words of greetings and closings in a text, and whom they name.

    They stand at the beginning of short lines; what may begin a name (Caro, Dear) or a sentence is
    one only before a comma.
    """
    words: list[Span] = []
    people: list[Span] = []
    for match in _OPENS.finditer(f"\n{text}"):
        start = match.start()
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        if end - start <= _LONGEST:
            _read_line(text, start, end, words, people)
    words += [
        (start, end)
        for start, end in _greetings_within(text)
        if not any(start < last and first < end for first, last in words)
    ]
    return words, people


def _greetings_within(text: str) -> Iterator[Span]:
    """Yield the words of closings that stand within a line: Viele Grüße aus Kiel."""
    for match in _GREETED.finditer(text) if any(word in text for word in _GERMAN) else ():
        begins = (match.start(name) for name in ("two", "one") if match.start(name) >= 0)
        written = (text[begin : match.end()] for begin in begins)
        phrase = next((p for p in written if _as_listed(p) in _CLOSINGS), None)
        if phrase:
            yield match.end() - len(phrase), match.end()


def _as_listed(phrase: str) -> str:
    return "_".join(phrase.split()).casefold().replace("grueß", "grüß").replace("gruess", "grüss")


def _read_line(text: str, start: int, end: int, words: list[Span], people: list[Span]) -> None:
    """Write down what a line has of a greeting, or of a closing and who signs below it."""
    found = [match.span() for match in _WORD.finditer(text, start, end)]
    found = [span for span in found if text[span[0]] != ">"]
    n_greeting, n_words = (_n_words(text, found, phrases) for phrases in (_GREETINGS, _CLOSINGS))
    is_all = n_words < n_greeting == len(found)
    if is_all and (text[end - 1] in ",!" or _phrase(text, found) in _WORDS["greeting"]):
        words.append((start, end))
    if n_greeting and n_words <= n_greeting < len(found):
        _read_greeting(text, (start, end), found, n_greeting, words, people)
        return
    if not n_words:
        return
    close = found[n_words - 1][1]
    mark = text[close : close + 1]
    is_whole = n_words == len(found)
    if not (is_whole or mark == ",") or (
        mark != "," and _phrase(text, found[:n_words]) in _WORDS["closing_with_comma"]
    ):
        return
    close += mark in (",", ".", "!")
    signed = _SIGNED.match(text, _after_own(text, close))
    if is_whole or signed:
        words.append((found[0][0], signed.start("name") if signed else close))
        people += [signed.span("name")] if signed else []


def _after_own(text: str, place: int) -> int:
    """Return where a name begins that "Deine" or "Votre" may stand before."""
    own = _OWN.match(text, place)
    return own.end() if own and own[1].casefold() in _WORDS["own"] else place


def _read_greeting(
    text: str,
    line: Span,
    found: list[Span],
    n_words: int,
    words: list[Span],
    people: list[Span],
) -> None:
    called = [_phrase(text, [span]) for span in found[n_words:]]
    if all(word in _WORDS["group"] or word in _WORDS["and"] for word in called):
        words.append((found[0][0], line[1]))
        return
    whom = _WHOM.match(text, found[n_words][0], line[1])
    if whom is None or len(whom.group().split()) > _MOST_WORDS:
        return
    after = _AFTER_WHOM.match(text, whom.end(), line[1])
    is_marked = text[whom.end() : whom.end() + 1] in (",", "!", ":")
    needs_mark = _phrase(text, found[:n_words]) in _WORDS["greeting_with_mark"]
    between = text[found[n_words - 1][1] : whom.start()]
    if not after or (needs_mark and not is_marked) or between.strip():
        return
    words.append((found[0][0], found[n_words - 1][1]))
    parts = [span for span in found[n_words:] if span[0] < whom.end()]
    joins = [n for n, span in enumerate(parts) if _phrase(text, [span]) in _WORDS["and"]]
    if joins and joins[0] + 1 < len(parts):
        join = joins[0]
        if _phrase(text, [parts[join + 1]]) in _GREETINGS:
            words.append((parts[join][0], parts[join + 1][1]))
    elif text[whom.start()].isupper():
        people.append((whom.start(), whom.start() + len(whom.group().rstrip())))
    if is_marked and text[whom.end()] == ",":
        rest = [span for span in found if span[0] > whom.end()]
        if rest and _phrase(text, rest[:1]) in _GREETINGS:
            _read_greeting(text, line, rest, 1, words, people)


def _n_words(text: str, found: list[Span], phrases: frozenset[str]) -> int:
    """Return how many words at the beginning of a line are one of some phrases."""
    most = min(len(found), _MOST_WORDS)
    return next((n for n in range(most, 0, -1) if _phrase(text, found[:n]) in phrases), 0)


def _phrase(text: str, words: list[Span]) -> str:
    return "_".join(text[start:end] for start, end in words).casefold()


def without(text: str, spans: list[Span]) -> str:
    """Return a text of the same length in which spans are blank; ends of lines stay."""
    parts: list[str] = []
    place = 0
    for begin, end in sorted(spans):
        start = max(begin, place)
        blank = "".join("\n" if sign == "\n" else " " for sign in text[start:end])
        parts += [text[place:start], blank]
        place = max(place, end)
    return "".join([*parts, text[place:]])
