"""Types of names by the names beside them, and by the same name elsewhere."""

from __future__ import annotations

from typing import NamedTuple

from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.extraction.rules import entity_types as types
from graphrag_pipeline.extraction.rules.organisations import ends_as_body, is_known_body
from graphrag_pipeline.extraction.rules.tokens import Tokens

_MIN_LISTED = 3
_FULL = 2
_UNSURE = (types.OTHER, types.PERSON)
_LISTS = word_lists("nlp_names.txt")
_OF, _GERMANIC_OF, _ARTICLES = (
    _LISTS[section] for section in ("body_before", "body_before_germanic", "body_article")
)


class Mention(NamedTuple):
    """A span of the text that names something, with its sentence's index."""

    start: int
    end: int
    type: str
    sentence: int


Piece = tuple[int, int]


def type_by_neighbours(tokens: Tokens, mentions: list[Mention], places: list[Piece]) -> None:
    """Give the mentions, found at the places, the types that other mentions say they have."""
    _type_listed(tokens, mentions, places)
    _type_short(tokens, mentions, places)
    _type_bodies(tokens, mentions, places)


def is_person_of(tokens: Tokens, first: int, position: int, stop: int) -> bool:
    """Say whether a person's full name ends where a word leads to what the person is of.

    That is a place or a body: Ida Lind of Varde Shipping, Jan de Boer van Stena Lijn.
    """
    link = tokens.texts[position]
    if link not in _OF and link not in _GERMANIC_OF:
        return False
    before = [word for word in tokens.texts[first:position] if word[:1].isupper()]
    if tokens.language != "en" and len(before) > _FULL and not types.begins_name(before[0]):
        before = before[1:]
    after = _after_articles(tokens, position + 1, stop)
    if tokens.classes[first] != "N":
        return False
    if not _is_full_name(before):
        may_be_full = len(before) == _FULL and not any(map(_is_kind, before))
        return may_be_full and link in _GERMANIC_OF and _names_kind(tokens, after, stop)
    if _is_place(tokens.texts[after:stop]):
        # Families are named by places as well: Anna Maria van Gent.
        return link in _OF or not types.may_be_given(before[-1])
    return _is_body(tokens, link, after, stop)


def _is_full_name(words: list[str]) -> bool:
    """Say whether words are a given name and a family's, and none a kind of body."""
    return (
        len(words) >= _FULL
        and types.may_be_given(words[0])
        and not any(types.begins_name_of_body(word) or types.is_place_kind(word) for word in words)
        and (types.is_surname(words[-1]) or not types.may_be_given(words[-1]))
    )


def _is_kind(word: str) -> bool:
    return types.begins_name_of_body(word) or types.is_place_kind(word) or ends_as_body(word)


def _names_kind(tokens: Tokens, first: int, stop: int) -> bool:
    """Say whether words are a body's by what they say, or the first letters of one."""
    words = tokens.texts[first:stop]
    is_kind = any(types.begins_name_of_body(word) or ends_as_body(word) for word in words)
    return is_kind or is_known_body(words) or tokens.classes[first:stop] == "A"


def _after_articles(tokens: Tokens, place: int, stop: int) -> int:
    while place < stop and tokens.texts[place].casefold() in _ARTICLES:
        place += 1
    return place


def _is_body(tokens: Tokens, link: str, first: int, stop: int) -> bool:
    """Say whether words name a body, and no place, where they say what a person is of."""
    words, codes = tokens.texts[first:stop], tokens.classes[first:stop]
    if link in _GERMANIC_OF and _names_kind(tokens, first, stop):
        return True
    if len(words) < 2 or set(codes) - set("NAJ&") or types.may_be_given(words[0]):
        return False
    if _is_place(words):
        return False
    if link in _GERMANIC_OF:
        return not types.is_place(words[-1])
    return not types.is_common(words[0]) and types.is_trade(words[-1])


def _is_place(words: list[str]) -> bool:
    has_kind = len(words) > 1 and any(map(types.is_place_kind, words))
    return has_kind or types.is_place(" ".join(words))


def _type_bodies(tokens: Tokens, mentions: list[Mention], places: list[Piece]) -> None:
    """Take what a person is of for a body, if it is no place: Ida Lind from Varde Shipping."""
    for number in range(1, len(places)):
        (_, before), (first, stop) = places[number - 1], places[number]
        if mentions[number - 1].type != types.PERSON or mentions[number].type not in _UNSURE:
            continue
        link = tokens.texts[before]
        is_link = before < first and (link in _OF or link in _GERMANIC_OF)
        is_of = is_link and _after_articles(tokens, before + 1, first) == first
        if is_of and _is_body(tokens, link, first, stop):
            mentions[number] = mentions[number]._replace(type=types.ORGANIZATION)


def _type_listed(tokens: Tokens, mentions: list[Mention], places: list[Piece]) -> None:
    """Take for people those of unknown type whose names are listed with names of people."""
    begin = 0
    for number in range(1, len(places) + 1):
        if number < len(places) and _listed_with(tokens, places[number - 1], places[number]):
            continue
        if number - begin >= _MIN_LISTED:
            _type_list(tokens, mentions, places, range(begin, number))
        begin = number


def _listed_with(tokens: Tokens, before: Piece, after: Piece) -> bool:
    between = tokens.classes[before[1] : after[0]]
    return between in (",", "a", ",a", ";")


def _type_list(
    tokens: Tokens, mentions: list[Mention], places: list[Piece], members: range
) -> None:
    known = sum(mentions[number].type == types.PERSON for number in members)
    if 2 * known < len(members):
        return
    for number in members:
        first, stop = places[number]
        words, codes = tokens.texts[first:stop], tokens.classes[first:stop]
        if mentions[number].type == types.OTHER and types.like_full_name(words, codes):
            mentions[number] = mentions[number]._replace(type=types.PERSON)


def _type_short(tokens: Tokens, mentions: list[Mention], places: list[Piece]) -> None:
    """Take a word alone for a person that the text names in full elsewhere: Ann Lee, then Lee.

    Speakers' names may be in capitals. The particles of a family's name are part of it there as
    well: Ann de Vries, then De Vries.
    """
    parts: dict[str, list[str]] = {}
    for mention, (first, stop) in zip(mentions, places, strict=True):
        if mention.type == types.PERSON and stop - first > 1 and tokens.classes[stop - 1] == "N":
            if tokens.classes[first] == "N":
                parts.setdefault(tokens.texts[first].casefold(), [])
            parts[tokens.texts[stop - 1].casefold()] = _particles(tokens, first, stop)
    for number, (first, stop) in enumerate(places):
        if stop - first > 1 or (particles := parts.get(tokens.texts[first].casefold())) is None:
            continue
        begin = first - len(particles)
        led = [word.casefold() for word in tokens.texts[begin:first]] == particles
        if particles and led:
            places[number] = begin, stop
            start = tokens.starts[begin]
            mentions[number] = mentions[number]._replace(start=start, type=types.PERSON)
        elif mentions[number].type in (types.OTHER, types.ORGANIZATION):
            mentions[number] = mentions[number]._replace(type=types.PERSON)


def _particles(tokens: Tokens, first: int, stop: int) -> list[str]:
    """Return the particles right before the last word of a name, case folded."""
    begin = stop - 1
    while begin > first and tokens.classes[begin - 1] == "w":
        begin -= 1
    return [word.casefold() for word in tokens.texts[begin : stop - 1]]
