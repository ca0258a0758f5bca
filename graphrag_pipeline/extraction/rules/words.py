"""Word classes: what a token is, by shipped lists, by spelling and by its usual case."""

from __future__ import annotations

from binascii import a2b_base64
from collections import Counter
from functools import cache
from unicodedata import normalize

from graphrag_pipeline.core.languages import function_words as content_free
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.tokens import shipped_tokens
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.extraction.rules.cjk import is_cjk
from graphrag_pipeline.extraction.rules.nouns import BY_ARTICLE, BY_CAPITAL, is_month

_VOWELS = "aeiou"

_CLASS_OF_SECTION = {
    "noun_verb": "b",
    "verb_form": "v",
    "adjective": "j",
    "noun_ly": "n",
    "noun_ed": "n",
    "noun_ing": "n",
    "noun_suffix_exception": "n",
    "adjective_ly": "j",
    "weak_noun": "z",
    "weak_alone": "y",
    "kin": "y",
    "weak_adjective": "k",
    "adverb": "r",
    "number": "u",
    "preposition": "p",
    "conjunction": "c",
    "pronoun": "q",
    "auxiliary": "x",
    "determiner": "d",
    "and": "a",
    "of": "o",
    "to": "t",
}
_ADJECTIVE_ENDS = ("ous", "ful", "less", "able", "ible", "ive", "ic", "ical", "al", "ary", "ish")
_ADVERB_END = "ly"
_COMMON_ENDS = (
    "tion", "sion", "ness", "ment", "ance", "ence", "ings", "ists", "isms", "ability", "ibility",
    "ities", "tions", "ments", "ously", "ally", "ingly", "edly", "fully", "less", "ful", "ous",
)  # fmt: skip
_NAME_LISTS = word_lists("nlp_names.txt")
_PARTICLES = _NAME_LISTS["particle"]
_TITLES = _NAME_LISTS["title_before"]
_PEOPLE = word_lists("nlp_people.txt")
_GIVEN = _PEOPLE["given"] | _PEOPLE["given_of_women"]
MONTHS = _NAME_LISTS["month"]
WEEKDAYS = _NAME_LISTS["weekday"]
_SUFFIXES = _NAME_LISTS["suffix"]
_NOT_NAMES = _NAME_LISTS["not_name"]
_COMPOUND_ENDS = _NAME_LISTS["compound_end"]
_YEAR = pattern_of(r"(?:1\d|20)\d\d")
_FILE_NAME = pattern_of(r"[^\W_]\.[a-z]{2,4}$")
_IDENTIFIER = pattern_of(
    r"`{1,2}[^\W\d](?:[\w.]|::|->)+(?:\(\))?`{1,2}|[^\W\d][\w.-]*(?:_[\w.-]*|\(\))"
    r"|(?!www\.)[^\W\d_]\w+(?:\.[^\W\d_]\w*)*\.[^\W\d_]\w{4,}"
)
_CODE = pattern_of(r"`.|https?://|--?[a-z][\w-]|[~.]{0,2}/\w|[a-z]\w*\.\d")
_PUNCTUATION = {
    ",": ",", "&": "&", "-": "-", "–": "-", "—": "-", "(": "(", ")": ")", "[": "(", "]": ")",
    ":": ":", ";": ";",
    "'s": "S", "’s": "S", "'S": "S", "’S": "S", "' ": "S", "’ ": "S",
    "/": "/", ".": ".", "…": ".", "!": ".", "?": ".",
    "#": "#", "*": "#", "_": "#",
}  # fmt: skip
# A space, or one of the three signs after it, in base64.
_BEFORE_WORDS = b"I"
_ELIDED_NAME = pattern_of(r"(?!o'clock|o'er|d'ya|d'you)[odl]'[^\W\d_]{2}")
"""O'Brien, D'Angelo."""
QUOTES = frozenset("\"'“”‘’«»„‚`´「」『』《》〈〉")


@cache
def _case_ranks() -> tuple[dict[str, int], dict[str, int]]:
    """Return rank by word of lower-case and of capitalised words in the shipped BPE vocabulary.

    A vocabulary learnt from web text lists a word earlier the more often it was seen, so
    comparing the ranks of " london" and " London" says which of the two people write.
    """
    lower: dict[str, int] = {}
    capital: dict[str, int] = {}
    for rank, token in enumerate(shipped_tokens()):
        if not token.startswith(_BEFORE_WORDS):
            continue
        word = a2b_base64(token)[1:].decode("utf-8", "ignore")
        if word.isalpha():
            (lower if word.islower() else capital).setdefault(word, rank)
    return lower, {word.lower(): rank for word, rank in capital.items() if word.istitle()}


@cache
def usually_lower(word: str, ratio: float = 1.6) -> bool:
    """Say whether a word (in lower case) is one that people mostly write in lower case."""
    lower, capital = _case_ranks()
    rank = lower.get(word)
    if rank is not None:
        return word not in capital or rank < ratio * capital[word]
    if word in english_words() or word in verb_forms():
        return True
    if word in capital:
        return False
    stem = word[:-1] if word.endswith("s") and not word.endswith("ss") else word
    return (
        (stem in lower and stem not in capital)
        or word.endswith(_COMMON_ENDS)
        or (len(word) > 5 and word.endswith(("ed", "ing")))
    )


def _names_somebody(word: str) -> bool:
    """Say whether a word (in lower case) is a listed name, and not mostly in lower case: Emily."""
    lower, capital = _case_ranks()
    rank, named = lower.get(word), capital.get(word)
    is_lower = rank is not None and (named is None or rank < named)
    return word in _people() and not is_lower


@cache
def _people() -> frozenset[str]:
    return frozenset(map(str.casefold, _GIVEN | _PEOPLE["surname"]))


def _inflections(verb: str) -> set[str]:
    stem = verb[:-1] if verb.endswith("e") else verb
    forms = {stem + "ed", stem + "ing"}
    forms.add(verb + ("es" if verb.endswith(("s", "x", "z", "ch", "sh", "o")) else "s"))
    if verb.endswith("y") and verb[-2:-1] not in _VOWELS:
        forms |= {verb[:-1] + "ies", verb[:-1] + "ied"}
    if verb[-1] not in _VOWELS + "wxy" and verb[-2:-1] in _VOWELS:
        forms |= {verb + verb[-1] + "ed", verb + verb[-1] + "ing"}
    return forms


@cache
def verb_forms() -> dict[str, str]:
    """Return the class of every inflected form of the shipped verbs."""
    lists = word_lists("nlp_english.txt")
    classes: dict[str, str] = {}
    for verb in lists["verb"] | lists["noun_verb"]:
        either = verb in lists["noun_verb"]
        for form in _inflections(verb):
            if form.endswith("ed"):
                classes[form] = "e"
            elif form.endswith("ing"):
                classes[form] = "g"
            else:
                classes.setdefault(form, "B" if either else "v")
        classes.setdefault(verb, "b" if either else "v")
    return classes


@cache
def english_words() -> dict[str, str]:
    """Return the class of every listed English word; closed classes take precedence."""
    lists = word_lists("nlp_english.txt")
    return {word: code for section, code in _CLASS_OF_SECTION.items() for word in lists[section]}


@cache
def _titles() -> dict[str, str]:
    roles, titles = _NAME_LISTS["role"], _NAME_LISTS["civil_title"]
    return dict.fromkeys(roles, "R") | dict.fromkeys(titles, "H")


@cache
def _languages_of_word() -> dict[str, tuple[str, ...]]:
    english = [word for word, code in english_words().items() if code in _ENGLISH_FUNCTION]
    languages: dict[str, tuple[str, ...]] = {}
    for language, words in (*word_lists("nlp_languages.txt").items(), ("en", english)):
        for word in words:
            languages[word] = (*languages.get(word, ()), language)
    return languages


_ENGLISH_FUNCTION = frozenset("dpocqxta")


def recognise_language(words: list[str]) -> str:
    """Return "en", another listed language or "" for what the lower-case words look like."""
    languages = _languages_of_word()
    counts = {"en": 0}
    said = Counter(words[:2000])
    for word in said.keys() & languages.keys():
        for language in languages[word]:
            counts[language] = counts.get(language, 0) + said[word]
    best = max(counts, key=lambda language: (counts[language], language == "en", language))
    if counts[best] >= max(1, min(len(words), 2000) // 12):
        return best
    return "en" if all(map(str.isascii, words)) else ""


def _code(token: str) -> str:
    """Return X for an identifier, ~ for other code, and nothing for what may be a word."""
    if token.isalpha():
        return ""
    if _IDENTIFIER.fullmatch(token):
        return "X"
    return "~" if _CODE.match(token) or _FILE_NAME.search(token) else ""


class Lexicon(dict[str, str]):
    """Token to one-letter class in one language, worked out once for each distinct token.

    Lower case: d determiner, p preposition, o of, a and, c conjunction, q pronoun (i the word I),
    x auxiliary, t to, v verb, b noun or verb, B its -s form, n noun, m plural noun, z weak noun,
    y noun weak unless qualified, j adjective, k weak adjective, r adverb, u number word, g -ing,
    e -ed, f function word of another language, w particle in names. Capitals: N name, A acronym,
    I initial, H civil title, R office, M month, W weekday, F function word, J junior. Others:
    D number, Y year, O ordinal, E decade or unit, X identifier of code, C CJK, S possessive,
    punctuation as itself, quotes as ", anything else as ~.
    """

    def __init__(self, language: str) -> None:
        super().__init__()
        self.language = language
        self._function = content_free(language)
        self._particles = _PARTICLES | _NAME_LISTS.get(f"particle_{language}", frozenset())

    def __missing__(self, token: str) -> str:
        code = self[token] = self._classify(token)
        return code

    def lower_class(self, word: str) -> str:
        """Return the class of a word as if it were written in lower case."""
        return self[word.lower()] if word.lower() != word else self[word]

    def is_function(self, word: str) -> bool:
        """Say whether a word, whatever its case, belongs to a closed class."""
        return self.lower_class(word) in "dpocqxtarufw"

    def _classify(self, token: str) -> str:
        first = token[0]
        if token in _PUNCTUATION:
            return _PUNCTUATION[token]
        if token in QUOTES:
            return '"'
        if token.startswith("www."):
            return "N"
        if code := _code(token):
            return code
        if first.isdecimal():
            return self._number(token)
        if is_cjk(first):
            return "C"
        if not first.isalpha():
            return "~"
        if first.isupper():
            # ℝ and 𝐀 have no small letter.
            if first.lower() == first:
                return self[normalize("NFKC", token)]
            return self._capital(token)
        if token[1:] != token[1:].lower() and not token.endswith("."):
            return "N"
        return self._english(token) if self.language == "en" else self._foreign(token)

    @staticmethod
    def _number(token: str) -> str:
        if _YEAR.fullmatch(token):
            return "Y"
        if token.endswith("s"):
            return "E"
        return "D" if token.replace(",", "").replace(".", "").isdecimal() else "O"

    def _capital(self, token: str) -> str:
        if self._is_month(token):
            return "M"
        if token in WEEKDAYS:
            return "W"
        if token in _SUFFIXES:
            return "J"
        if token in _NOT_NAMES:
            return "E"
        if code := _titles().get(token):
            return code
        if "-" in token and self._is_adjective(token.rpartition("-")[2]):
            return "E"
        if token.endswith("."):
            return "I" if len(token) == 2 else ("N" if token.count(".") == 1 else "A")
        lower = token.lower()
        if self.language != "en" and lower in _TITLES:
            return "H"
        if token == "I":
            return "i"
        if lower[:2] in ("i'", "i’"):
            return "q"
        if self.language != "en" and token[-1] in "'’" and self._is_function_lower(lower):
            return "F"
        if len(token) > 1 and token == token.upper():
            return "A"
        if len(token) == 1 and lower != "a":
            return "A"
        return "F" if self._is_function_lower(lower) else "N"

    def _is_month(self, token: str) -> bool:
        if self.language not in BY_ARTICLE | BY_CAPITAL:
            return token in MONTHS
        # A month with a capital is a given name where months have none: Julio, Jan, August.
        if self.language in BY_ARTICLE and token in _GIVEN:
            return False
        return is_month(token.lower()) or (token in MONTHS and len(token) > 4)

    def _is_adjective(self, last: str) -> bool:
        """Say whether the last part of a compound makes it one: Debian-derived, Read-only."""
        return last.islower() and (last in _COMPOUND_ENDS or self[last] in "eg")

    def _is_function_lower(self, lower: str) -> bool:
        if self.language == "en":
            return self[lower] in "dpocqxtaru"
        return lower.rstrip("'’") in self._function

    def _foreign(self, token: str) -> str:
        bare = token.rstrip("'’")
        if bare in self._particles:
            return "w"
        return "f" if bare in self._function or len(token) == 1 else "n"

    def _english(self, token: str) -> str:
        token = token.replace("’", "'")
        if token.endswith("."):
            return "r"
        if code := english_words().get(token):
            return code
        if token in _PARTICLES:
            return "w"
        if code := verb_forms().get(token):
            return code
        return self._by_spelling(token)

    def _by_spelling(self, token: str) -> str:
        if "'" in token:
            return "n" if _ELIDED_NAME.match(token) else "r"
        if "-" in token:
            return self._compound(token)
        if len(token) > 4 and token.endswith(_ADVERB_END) and not _names_somebody(token):
            return "r"
        if len(token) > 4 and token.endswith("ed") and not token.endswith("eed"):
            return "e"
        if len(token) > 4 and token.endswith("ing"):
            return "g"
        if len(token) > 5 and token.endswith("est") and usually_lower(token):
            return "k" if self[token[:-3]] in "kjr" else "n"
        if len(token) > 4 and token.endswith(_ADJECTIVE_ENDS):
            return "j"
        plural = len(token) > 3 and token.endswith("s") and not token.endswith(("ss", "us", "is"))
        if plural and english_words().get(token[:-1]) == "z":
            return "z"
        return "m" if plural else "n"

    def _compound(self, token: str) -> str:
        last = self[token.rsplit("-", 1)[1] or "x"]
        if last in "jkge":
            return "j"
        return "m" if last in "mB" else "n"
