"""Words that stand before a name with a capital and are no part of it."""

from __future__ import annotations

from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.extraction.rules import entity_types as types
from graphrag_pipeline.extraction.rules.nouns import BY_ARTICLE, BY_CAPITAL
from graphrag_pipeline.extraction.rules.organisations import (
    is_article_before,
    is_body_word,
    is_known_body,
)
from graphrag_pipeline.extraction.rules.tokens import Tokens
from graphrag_pipeline.extraction.rules.words import usually_lower

_PARTS_OF = word_lists("nlp_names.txt")["of_part"]
_PATRONYMIC_ENDS = tuple(word_lists("nlp_names.txt")["patronymic_end"])
_BEFORE_A_SENTENCE = '|:#"('


def words_before_name(tokens: Tokens, first: int, stop: int) -> int:
    """Return how many of the first words are no part of the name that follows them."""
    if stop - first < 2:
        return 0
    words = tokens.texts[first:stop]
    if _opens(tokens, first) and (n := _words_before_body(tokens.language, words)):
        return n
    n = int(_is_noun_before_name(tokens, first, stop))
    n += is_marked(words[n:])
    return n + 2 * _is_part_of_person(words[n:])


def is_marked(words: list[str]) -> bool:
    """Say whether a word in capitals is set before others, as in logs: ERROR Ebba Storm."""
    return (
        len(words) > 2
        and len(words[0]) > 3
        and words[0].isupper()
        and not any(map(str.isupper, words[1:]))
        and usually_lower(words[0].lower())
    )


def _is_part_of_person(words: list[str]) -> bool:
    """Say whether a part of something stands before a person: End of Ann Lee."""
    return (
        len(words) > 2
        and words[1] == "of"
        and words[0].casefold() in _PARTS_OF
        and types.may_be_given(words[2])
    )


def _is_noun_before_name(tokens: Tokens, first: int, stop: int) -> bool:
    """Say whether a word has its capital for another reason than the name that follows it.

    In German it is a noun (Künstlerin Käthe Kollwitz, Stadt Köln). In other languages it opens a
    sentence (Burgemeester Jan Bakker), where it may be a verb or an adjective as well. English
    settles what opens its sentences by the usual case of a word.
    """
    words = tokens.texts[first:stop]
    if tokens.language == "en" or types.is_place(words[0]):
        return False
    if tokens.language in BY_CAPITAL:
        if types.begins_name(words[0]) or is_body_word(words[0]):
            return False
        return types.is_place(" ".join(words[1:])) or _begins_person(words[1:])
    return _opens(tokens, first) and not types.begins_name(words[0]) and _follows_person(words)


def _opens(tokens: Tokens, first: int) -> bool:
    return tokens.classes[first - 1] in _BEFORE_A_SENTENCE and tokens.classes[first] == "N"


def _words_before_body(language: str, words: list[str]) -> int:
    """Return how many words that open a sentence lead to a body: El Banco, Ieri la Croce Rossa."""
    if language not in BY_ARTICLE or types.begins_name(words[0]):
        return 0
    for n, article in enumerate(words[:2], 1):
        body = words[n:]
        is_body = body and (types.begins_name_of_body(body[0]) or is_known_body(body))
        if is_body and is_article_before(article) and not is_known_body(words):
            return n
    return 0


def _follows_person(words: list[str]) -> bool:
    """Say whether a full name follows the first word, which is no family's name set first."""
    if not _begins_person(words[1:]) or words[-1].endswith(_PATRONYMIC_ENDS):
        return False
    return not types.is_surname(words[0]) or types.is_surname(words[-1])


def _begins_person(words: list[str]) -> bool:
    return len(words) > 1 and types.may_be_given(words[0])


def is_office_before_name(tokens: Tokens, first: int, stop: int) -> bool:
    """Say whether the first word is an office or nationality set before a person's name."""
    rest = tokens.classes[first + 1 : stop]
    if "o" in rest:
        return False
    if tokens.classes[first] == "R":
        words = tokens.texts[first + 1 : stop]
        is_name = types.is_given_name(words[0]) or not any(usually_lower(w.lower()) for w in words)
        return rest[0] in "NI" and len(rest) >= 2 and is_name
    return types.is_demonym(tokens.texts[first]) and rest[0] in "RH"
