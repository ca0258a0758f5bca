"""Tokens of a text with their spans and one-letter classes, sentence by sentence.

The classes of a text's tokens, joined, are a string over which phrases are found by regular
expressions, so that grammar is written as patterns and runs at the speed of ``re``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.extraction.rules.cjk import CJK
from graphrag_pipeline.extraction.rules.entity_types import (
    begins_name,
    is_known_alone,
    is_listed_given,
    is_place,
    is_surname,
    may_be_given,
)
from graphrag_pipeline.extraction.rules.nouns import (
    BY_ARTICLE,
    BY_CAPITAL,
    is_address,
    is_month,
    no_noun,
)
from graphrag_pipeline.extraction.rules.sentences import Span
from graphrag_pipeline.extraction.rules.words import Lexicon, recognise_language, usually_lower

_MARKS = (
    "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f\u0951-\u0957"
    "\u0962-\u0963\u0981-\u0983\u09bc-\u09d7\u0a01-\u0a4d\u0b82-\u0bcd\u0c00-\u0c4d\u0d00-\u0d4d"
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u200c\u200d"
)
_LETTERS = rf"[^\W_{CJK}]+(?:[{_MARKS}]+[^\W_{CJK}]*)*"
# White space is passed in one step, and what is most frequent comes first.
_TOKEN = pattern_of(
    rf"""
    \s*+(
    [A-Za-z]+(?=[ ,;\n])
    | [,;:()\[\]{{}}"=<>*+?!]
    | (?:[^\W\d_{CJK}]\.){{2,}}(?![^\W_])
    | \b(?:Mr|Mrs|Ms|Dr|St|Mt|Prof|Jr|Sr|Inc|Ltd|Co|Corp|Rev|Hon|Capt|Lt|Col|Gen|Sgt|Maj|Gov|Sen
        |Rep|Adm|Mme|Mlle|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec|vs|e\.g|i\.e|etc)\.
    | \b[^\W\d_{CJK}]\.(?=\s*[^\W\d_])
    | (?:[LldDcjmnst]|[Qq]u|[DdNnSsCc]?[eoau]ll|[Aa]ll|[Uu]n)['’](?=[^\W\d_]{{2}})
    | https?://[^\s<>"'()\[\]]+
    | {_LETTERS}
      (?:(?:[-&‐‑·]|_+|['’](?![sS]\b)|\.(?=[a-z\d])|(?<=\d)\.(?=[^\W_])|(?<=\d),(?=\d{{3}})){_LETTERS})*
      (?:\(\))?
    | ['’][sS]\b | (?<=[a-z]s)['’]\ (?=[A-Z])
    | [{CJK}]+
    | ``[^`'\n]{{1,80}}`` | (?<!`)`[^`'\n]{{1,80}}`(?!`)
    | (?<![\w-])--?[a-z][\w-]+
    | (?<![\w</])[~.]{{0,2}}/[a-z.][\w.+-]*(?:/[\w.+-]*)*
    | \S
    )
    """,
    re.VERBOSE,
)
SENTENCE = "|"
_SHOUTED_SHARE = 0.6


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """Parallel lists of token texts and spans, and their classes as one string.

    Every sentence begins with an empty token of class ``|``; ``sentence_of`` gives each token's
    sentence by its index.
    """

    texts: list[str]
    starts: list[int]
    ends: list[int]
    classes: str
    sentence_of: list[int]
    language: str


def read_tokens(text: str, sentences: list[Span], lexicons: dict[str, Lexicon]) -> Tokens:
    """Cut sentences into classified tokens; ``lexicons`` is a cache, filled as needed."""
    texts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    sentence_of: list[int] = []
    for number, (begin, stop) in enumerate(sentences):
        found = _TOKEN.findall(text, begin, stop)
        texts.append("")
        texts += found
        starts.append(begin)
        ends.append(begin)
        end = begin
        for token in found:
            start = text.find(token, end)
            end = start + len(token)
            starts.append(start)
            ends.append(end)
        sentence_of += [number] * (len(found) + 1)
    lower = list(compress(texts, map(_is_lower, texts)))
    language = recognise_language(lower)
    lexicon = lexicons.setdefault(language, Lexicon(language))
    lexicon.setdefault("", SENTENCE)
    classes = _settle_case(texts, list(map(lexicon.__getitem__, texts)), lexicon, set(lower))
    return Tokens(
        texts=texts,
        starts=starts,
        ends=ends,
        classes=classes,
        sentence_of=sentence_of,
        language=language,
    )


@lru_cache(maxsize=1 << 16)
def _is_lower(token: str) -> bool:
    return token[:1].isalpha() and token == token.lower()


def _settle_case(texts: list[str], classes: list[str], lexicon: Lexicon, lower: set[str]) -> str:
    """Decide what capitals mean where they say little: at starts and in shouted sentences."""
    _settle_shouting(texts, classes, lexicon)
    raw = "".join(classes)
    for match in _BETWEEN_NAMES.finditer(raw) if lexicon.language == "en" else ():
        if texts[match.start()] == "do":
            classes[match.start()] = "w"
    if lexicon.language == "en":
        _settle_pairs(texts, classes, lexicon)
        raw = "".join(classes)
    else:
        raw = _AFTER_PARTICLE.sub("N", raw)
        classes = list(raw)
    opening = [match.end() for match in _OPENING.finditer(raw)]
    at_start = set(opening)
    name_words = {
        texts[position]
        for match in _NAME.finditer(raw)
        if (position := match.start()) not in at_start
    }
    for position in opening:
        code = classes[position]
        following = _following(classes, position)
        word = texts[position].lower()
        if code == "F":
            is_name = following == "N" and texts[position] in name_words
            classes[position] = "N" if is_name else lexicon.lower_class(word)
        else:
            classes[position] = _start_class(texts[position], following, lexicon, lower, name_words)
    return _NUMERAL.sub("J", "".join(classes)).replace("i", "q")


def _settle_pairs(texts: list[str], classes: list[str], lexicon: Lexicon) -> None:
    """Read as names the function words or months that begin or end two words for one thing.

    Will Smith, Thomas More, Jan Berg, Fort Worth; not among other capitals, as in a heading.
    """
    for match in _PAIR.finditer("".join(classes)):
        first, last = texts[match.start() : match.end()]
        is_person = is_listed_given(first) and is_surname(last)
        if is_place(f"{first} {last}") or (is_person and lexicon.lower_class(last) != "x"):
            classes[match.start() : match.end()] = "NN"


_PAIR = pattern_of("(?:NF(?<![NFAIHR]NF)|FN(?<![NFAIHR|:#.]FN)|MN(?<![NFAIHRpDOY]MN))(?![NFAIHR])")
_NUMERAL = pattern_of(r"(?<=[NR])i(?=[.,|)pxoaS(-])")
_NAME = pattern_of("N")
# A capital after the particle of a name: Jan van der Meer, though "meer" is a word of its own.
_AFTER_PARTICLE = pattern_of("(?<=w)F")
_BETWEEN_NAMES = pattern_of("(?<=N)x(?=N)")
"""Rio do Sul."""
_WITH_CAPITALS = pattern_of(r"\|[^|A]*A[^|]*")
_OPENING = pattern_of(r'(?:[|:#]|(?<=[.:,-])")["#(]{0,6}(?=[NF])')


def _following(classes: list[str], position: int) -> str:
    """Return the class of what follows a token; of a particle in a name, that of the name."""
    place = position + 1
    while place < len(classes) and place < position + 4 and classes[place] == "w":
        place += 1
    return classes[place] if place < len(classes) else SENTENCE


def _start_class(
    token: str, following: str, lexicon: Lexicon, lower: set[str], name_words: set[str]
) -> str:
    """Return the class of a capitalised word that opens a sentence."""
    word = token.lower()
    if lexicon.language != "en":
        if following in "NAI":
            is_name = not _is_led_by_word(word, lexicon.language, lower)
        else:
            is_known = may_be_given(token) or is_known_alone(token, lexicon.language)
            is_name = is_known and not _is_word(word, lexicon, lower)
        return "N" if is_name or token in name_words else lexicon.lower_class(word)
    as_lower = lexicon.lower_class(word)
    if following in "NAI":
        return as_lower if as_lower in "vegkrx" else "N"
    if token in name_words:
        return "N"
    # A word that is a whole sentence may be a cry: Humbug!
    if word in lower or usually_lower(word) or following == ".":
        return as_lower
    return "N"


def _is_word(word: str, lexicon: Lexicon, lower: set[str]) -> bool:
    """Say whether a given name may be a word of the language, too: Ken je hem? Caro Rui."""
    known = word in lower or lexicon.is_function(word) or no_noun(word, lexicon.language)
    return known or is_address(word) or is_month(word)


def _is_led_by_word(word: str, language: str, lower: set[str]) -> bool:
    """Say whether what opens a sentence before a name is no part of it: Neue Pakete, Muere Ian."""
    if is_address(word):
        return True
    if language not in BY_ARTICLE | BY_CAPITAL or begins_name(word):
        return False
    return word in lower or no_noun(word, language)


def _settle_shouting(texts: list[str], classes: list[str], lexicon: Lexicon) -> None:
    """Read the words of sentences in capitals by what they would be in lower case."""
    for sentence in _WITH_CAPITALS.finditer("".join(classes)):
        _settle_sentence(texts, classes, lexicon, sentence.start() + 1, sentence.end())


def _settle_sentence(
    texts: list[str], classes: list[str], lexicon: Lexicon, begin: int, end: int
) -> None:
    capitals = [i for i in range(begin, end) if classes[i] == "A" and len(texts[i]) > 1]
    words = sum(1 for i in range(begin, end) if texts[i][0].isalpha())
    if not capitals or len(capitals) == 1 < words:
        return
    shouted = len(capitals) >= _SHOUTED_SHARE * words
    for i in capitals if shouted else _leading(capitals, begin):
        if (lexicon.is_function(texts[i]) and texts[i].lower() not in ("us", "it", "who")) or (
            len(capitals) == 1 and usually_lower(texts[i].lower())
        ):
            classes[i] = lexicon.lower_class(texts[i])
        else:
            classes[i] = "N"


def _leading(capitals: list[int], begin: int) -> list[int]:
    """Return the capitals that run on from the start of the sentence."""
    run: list[int] = []
    for offset, position in enumerate(capitals):
        if position != begin + offset:
            break
        run.append(position)
    return run if len(run) > 1 else []
