"""Bodies whose names go on in lower case: Fédération de handball, cour d'appel de Colmar."""

from __future__ import annotations

from collections.abc import Iterator

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.extraction.rules.entity_types import is_kind_of_body
from graphrag_pipeline.extraction.rules.nouns import BY_ARTICLE
from graphrag_pipeline.extraction.rules.tokens import Tokens

_LISTS = word_lists("nlp_bodies.txt")
_CAPITALS = pattern_of("(?:[NAJ&]|w{1,2}(?=[NA])){0,12}[NAJ]")
_AGREES = pattern_of("(?:ées|[iy]ques|ales|elles|ives|aires|ières|euses|icas|ivas|arias)$")
_MOST_PARTS = 4


def foreign_bodies(tokens: Tokens) -> Iterator[tuple[int, int]]:
    """Yield the first token of each such name in a Romance language, and the one behind it."""
    if tokens.language not in BY_ARTICLE - {"nl"}:
        return
    behind = 0
    for first, word in enumerate(tokens.texts):
        if first < behind or tokens.classes[first] not in "Nn" or tokens.classes[first - 1] in "NA":
            continue
        is_name = tokens.classes[first] == "N"
        if is_kind_of_body(word) if is_name else word in _LISTS["lower"]:
            behind = _end(tokens, first, is_name=is_name)
            if behind > first + 1:
                yield first, behind


def _end(tokens: Tokens, first: int, *, is_name: bool) -> int:
    """Return where a name ends that begins with a kind of body; its beginning if it is none."""
    texts, classes = tokens.texts, tokens.classes
    stop = _behind_adjectives(texts, first + 1)
    may_follow = is_name or texts[first] in _LISTS["lower_named"]
    for _ in range(_MOST_PARTS):
        place = _behind_link(texts, stop)
        capitals = _CAPITALS.match(classes, place) if may_follow or place > stop else None
        if capitals:
            return capitals.end()
        is_noun = place > stop and classes[place : place + 1] == "n"
        if not is_noun or texts[place] in _LISTS["no_body"]:
            break
        if not is_name and texts[place] not in _LISTS["lower_second"]:
            break
        stop, may_follow = _behind_adjectives(texts, place + 1), False
    return stop if is_name else first


def _behind_link(words: list[str], place: int) -> int:
    """Return the place behind "of the" in one of the languages, or the same place."""
    if words[place : place + 1] and words[place] in _LISTS["of"]:
        place += 1
        while words[place : place + 1] and words[place].lower() in _LISTS["article"]:
            place += 1
    return place


def _behind_adjectives(words: list[str], place: int) -> int:
    while place < len(words) and (
        words[place] in _LISTS["adjective"] or _AGREES.search(words[place])
    ):
        place += 1
    return place
