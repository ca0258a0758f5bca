"""Types of names by rule: what the words of a name and the words beside it say.

A type needs evidence: a list that has the name, a word that says what it is, or how the sentence
speaks of it. Without any, and for what looks like code, the type is OTHER.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import chain

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.text import fold
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.extraction.rules.declensions import declensions
from graphrag_pipeline.extraction.rules.nouns import (
    BY_ARTICLE,
    BY_CAPITAL,
    ends_as_german_place,
    is_address,
)
from graphrag_pipeline.extraction.rules.organisations import (
    ends_as_body,
    is_article_before,
    is_known_body,
    is_workplace,
    leads_to_body,
)
from graphrag_pipeline.extraction.rules.words import usually_lower

PERSON = "PERSON"
ORGANIZATION = "ORGANIZATION"
GEO = "GEO"
EVENT = "EVENT"
DATE = "DATE"
WORK = "WORK"
CONCEPT = "CONCEPT"
OTHER = "OTHER"

_GEO_ENDS = ("land", "stan", "shire", "ville", "burg", "berg", "borough", "ford", "polis", "grad")
_SMALL_CAMEL = pattern_of(r"[^\W\d_][^\W\d_]*[a-zß-ÿ][A-ZÀ-Þ]")
_CAMEL_SURNAME = pattern_of(r"(?:Mc|Mac|De|Di|Du|La|Le|Van|Von|Fitz|Ó|O['’]?)[A-Z][a-zß-ÿ]+$")
_DOTTED = pattern_of(r"[^\W_]\.[^\W_]")
_ABBREVIATION = pattern_of(r"(?:[^\W\d_]\.){2,}[^\W\d_]?\.?$")
_INITIALS = pattern_of(r"(?:[^\W\d_]\.){2,3}$")
_SAINTS = ("st.", "st", "saint")
_LAST_OF_A_NAME = "NAI"
_LEAST_GERMAN_NOUN = 8
_LEAST_GERMAN_COMPOUND = 13
_INFLECTED = ("er", "es", "en", "em", "ende")
_GERMAN_ADJECTIVE_ENDS = ("ische", "ischen", "ischer", "liche", "lichen", "licher", "dige", "digen")
_MOST_ADDRESSED = 4


@dataclass(frozen=True, slots=True)
class NameContext:
    """Surroundings of a name in its sentence, as written: the nearest words, and what it is.

    ``second_after`` is all the words of a name that stands there. ``head`` is the noun of "Name is
    a ... noun", and empty where the sentence does not say so. ``language`` is that of the text.
    """

    before: str = ""
    second_before: str = ""
    after: str = ""
    second_after: str = ""
    head: str = ""
    language: str = "en"


NO_CONTEXT = NameContext()


@cache
def _cues(section: str) -> frozenset[str]:
    return word_lists("nlp_names.txt")[section]


@cache
def _firm_ends() -> tuple[str, ...]:
    return tuple(_cues("firm_end"))


@cache
def _lower_cues(section: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in _cues(section))


@cache
def _places() -> frozenset[str]:
    lists = word_lists("nlp_places.txt")
    sections = ("country", "region", "large_city", "city")
    names = [_place_key(name) for section in sections for name in lists[section]]
    kept = (name for name in names if " " in name or not usually_lower(name))
    declined = chain.from_iterable(map(declensions, _cues("place_declined")))
    return frozenset((*kept, *map(_place_key, chain(_cues("place"), declined))))


@cache
def _places_abroad(language: str) -> frozenset[str]:
    """Return places in languages other than English, and the small towns where one is spoken."""
    towns = word_lists("nlp_places.txt").get(f"town_{language}", frozenset())
    return frozenset(map(_place_key, chain(_cues("place_abroad"), towns)))


@cache
def _namesakes(language: str) -> frozenset[str]:
    """Return the places where a language is spoken that are called like people."""
    return frozenset(map(_place_key, word_lists("nlp_places.txt").get(f"namesake_{language}", ())))


def _place_key(name: str) -> str:
    return name.replace("_", " ").replace(" ,", ",").replace(".", "").casefold()


@cache
def _people(section: str) -> frozenset[str]:
    people = word_lists("nlp_people.txt")
    women = people["given_of_women"] if section == "given" else frozenset()
    abroad = word_lists("nlp_names.txt").get(f"{section}_abroad", frozenset())
    return frozenset(map(_plain, people[section] | women | abroad))


def _plain(name: str) -> str:
    """Return a name in lower case and without the dots that Russian may leave out: Артём."""
    return name.casefold().replace("ё", "е")


def is_demonym(word: str) -> bool:
    """Say whether a word is a listed adjective of nationality or creed."""
    return word in _cues("demonym")


def is_place(name: str) -> bool:
    """Say whether a name is a listed country, region or city."""
    return _place_key(name) in _places()


def is_place_in(word: str, language: str) -> bool:
    """Say whether a word is a listed place of the world, or one in texts of a language."""
    return is_place(word) or _place_key(word) in _places_abroad(language)


def is_known_alone(word: str, language: str) -> bool:
    """Say whether a word is a known body, or a listed place of the world or of a language."""
    folded = word.casefold()
    is_word = folded in _cues("place_or_word")
    is_name = is_place_in(word, language) and not usually_lower(folded)
    return not is_word and (is_name or is_known_body([word]))


def is_noun_in_german(word: str) -> bool:
    """Say whether a word is a listed place that mostly is a noun in German: Waren, Landes."""
    return word.casefold() in _cues("place_or_noun")


def leads_to_place(word: str) -> bool:
    """Say whether a word of a language other than English stands before places: nach, bei."""
    return word.casefold() in _cues("foreign_place_before")


@cache
def _cities() -> frozenset[str]:
    lists = word_lists("nlp_places.txt")
    return lists["large_city"] | lists["city"] | lists["town_de"]


def is_city(word: str) -> bool:
    """Say whether a word is a listed city, and no country or region."""
    return word in _cities()


def is_given_name(word: str) -> bool:
    """Say whether a word is a frequent given name, in any case."""
    return word.casefold() in _lower_cues("given")


def has_organisation_word(words: list[str]) -> bool:
    """Say whether one of the words names a kind of organisation."""
    return any(word.casefold() in _lower_cues("org") for word in words)


@cache
def begins_name(word: str) -> bool:
    """Say whether a word, in any case, may begin a name: a given name, a kind of body or place."""
    return may_be_given(word) or begins_name_of_body(word) or is_place_kind(word)


@cache
def is_kind_of_body(word: str) -> bool:
    """Say whether a word, in any case, names a kind of body."""
    folded = word.casefold()
    return any(folded in _lower_cues(name) for name in ("org", "org_first", "foreign_org_first"))


def begins_name_of_body(word: str) -> bool:
    """Say whether a word, in any case, names a kind of body or of event."""
    return is_kind_of_body(word) or is_event_word(word)


@cache
def is_place_kind(word: str) -> bool:
    """Say whether a word, in any case, names a kind of place."""
    folded = word.casefold()
    return any(folded in _lower_cues(name) for name in ("geo", "geo_first", "foreign_geo_first"))


def is_firm(words: list[str]) -> bool:
    """Say whether words, as written, are a well-known body's name or end in a firm's legal form."""
    return words[-1:] != [] and (words[-1] in _cues("firm") or is_known_body(words))


def ends_as_firm(name: str) -> bool:
    """Say whether a word of a name ends as what firms are called: Hausverwaltung, Bäckerei."""
    words = name.casefold().split()
    return any(w.endswith(_firm_ends()) for w in words if not (is_surname(w) or is_listed_given(w)))


def is_trade(word: str) -> bool:
    """Say whether a last word says what a firm deals in: it is a common one, and no surname."""
    return usually_lower(word.casefold()) and not is_surname(word)


def is_listed_given(word: str) -> bool:
    """Say whether a word is a listed given name, in any case, whatever else it is."""
    return is_given_name(word) or word.casefold() in _people("given")


@cache
def _womens_names() -> frozenset[str]:
    return frozenset(map(fold, word_lists("nlp_people.txt")["given_of_women"]))


def is_womans(given: str) -> bool:
    """Say whether a given name, folded, is listed as that of women alone."""
    return given in _womens_names()


def is_surname(word: str) -> bool:
    """Say whether a word is a listed surname, in any case."""
    return _plain(word) in _people("surname")


def is_event_word(word: str) -> bool:
    """Say whether a word names a kind of event."""
    return word.casefold() in _lower_cues("event")


def looks_like_code(word: str) -> bool:
    """Say whether a word is an identifier, a file, a version or an address rather than a name."""
    if word in _cues("org") or word in _cues("firm"):
        return False
    if word.isalpha():
        return bool(_SMALL_CAMEL.match(word)) and not _CAMEL_SURNAME.match(word)
    if "_" in word or "@" in word or "/" in word:
        return True
    if "." in word and _DOTTED.search(word):
        return not _ABBREVIATION.match(word) or not is_place(word)
    return any(map(str.isdigit, word)) and any(map(str.isalpha, word)) and not word[0].isdigit()


def name_type(words: list[str], codes: str, context: NameContext = NO_CONTEXT) -> str:
    """Return the type of a name from its words, their classes and its neighbours in the text."""
    if is_known_body(words):
        return ORGANIZATION
    begin = codes.startswith("H")
    if codes[begin : begin + 1] == "F" and len(words) > 1 and is_given_name(words[begin]):
        codes = codes[:begin] + "N" + codes[begin + 1 :]  # Will Berg
    if "F" in codes[1:-1] and context.language != "en":
        codes = "".join(map(_as_particle, words, codes))
    if context.language != "en" and (kind := _by_foreign_words(words, codes, context)):
        return kind
    if is_place(" ".join(words[codes[0] == "I" and words[0][0] in "NSEW" :])):
        return GEO
    codes = _with_initials(words, codes)
    if any(looks_like_code(word) for word, code in zip(words, codes, strict=True) if code != "I"):
        return OTHER
    kind = _by_own_words(words, codes) or _by_context(words, codes, context) or OTHER
    is_noun = context.language in BY_CAPITAL and kind == PERSON and _is_of_nouns(words, context)
    return OTHER if is_noun else kind


def _as_particle(word: str, code: str) -> str:
    """Return the class of a word of a name, in which an article is a particle: Yann Le Floch."""
    return "w" if code == "F" and is_article_before(word) else code


def _is_of_nouns(words: list[str], context: NameContext) -> bool:
    """Say whether German nouns look like a person's name: 7 Tage Erholung, Osmanische Reich."""
    first, last = words[0].casefold(), words[-1]
    before = context.before.casefold()
    if before[:1].isdigit() or first in _cues("counted_de"):
        return True
    is_side = last.casefold() in _cues("direction") and before in _cues("german_article")
    if first.endswith(_GERMAN_ADJECTIVE_ENDS) or is_side:
        return True
    is_name = may_be_given(words[0]) or is_surname(first)
    if not is_name and (_is_german_noun(words[0]) or first.endswith(_INFLECTED)):
        return True
    if words[0].endswith(".") and len(first) == 2 and not is_surname(last):
        return True  # A. Vorbemerkungen
    return _is_german_noun(last) and not is_surname(last)


def _is_german_noun(word: str) -> bool:
    """Say whether a word is a noun by its end, or a compound by its length."""
    ends = word.endswith(tuple(_cues("noun_end_de"))) and len(word) >= _LEAST_GERMAN_NOUN
    return ends or (len(word) >= _LEAST_GERMAN_COMPOUND and word.isalpha())


def _by_foreign_words(words: list[str], codes: str, context: NameContext) -> str:
    """Return the type that forms of address, and ends of words, give in other languages."""
    is_name = not set(codes) - set("NAIw") and len(words) <= _MOST_ADDRESSED
    before = context.before.casefold()
    if is_name and before in _cues("title_before"):
        return PERSON
    is_addressed = before in _cues("kin_before") or is_address(before)
    if is_name and is_addressed and may_be_given(words[0]):
        return PERSON
    name = _place_key(" ".join(words))
    if name in _places_abroad(context.language):
        return GEO
    if leads_to_body(context.before) and codes[0] in "NAF" and not may_be_given(words[0]):
        return ORGANIZATION
    if is_name and before in _cues("foreign_geo_first") and context.before.islower():
        return GEO
    if before in _cues("namesake_before") and name in _namesakes(context.language):
        return GEO
    is_led = before in _cues("foreign_place_before") and _may_be_place(words, codes)
    if is_led and (context.language not in BY_CAPITAL or ends_as_german_place(words[-1])):
        return GEO
    first = words[0].casefold()
    is_long = len(words) > 1 and codes[0] in "NA"
    if is_long and first in _cues("foreign_geo_first") and not is_given_name(first):
        return GEO
    return ORGANIZATION if _is_foreign_body(words, codes, context) else ""


def _is_foreign_body(words: list[str], codes: str, context: NameContext) -> bool:
    """Say whether a name is a body's by its words, or by what leads to it."""
    if codes[0] not in "NA" or may_be_given(words[0]) or is_place(" ".join(words)):
        return False
    before = context.before.casefold()
    if is_workplace(before, context.second_before.casefold(), context.after):
        return not is_surname(words[0])
    alone = len(words) < 2
    ends = any(ends_as_body(w, alone=alone) and not is_surname(w) for w in words)
    if ends and (len(words) > 1 or "-" in words[0] or context.language not in BY_CAPITAL):
        return True
    if len(words) < 2:
        return False
    first = words[0].casefold()
    does = codes[1] in "NA" and first.endswith(_firm_ends())
    kinds = _cues("foreign_org_first")
    if context.language not in BY_ARTICLE - {"nl"} and words[-1].casefold() in kinds:
        return True
    return does or first in kinds


def _may_be_place(words: list[str], codes: str) -> bool:
    """Say whether a name that a preposition of place leads to is nothing else by its words."""
    is_other = has_organisation_word(words) or any(map(looks_like_code, words))
    folded = words[0].casefold()
    return not (
        is_other
        or set(codes) - set("N")
        or len(words) > _MOST_ADDRESSED
        or may_be_given(words[0])
        or is_surname(words[-1])
        or folded in _cues("foreign_org_first")
        or folded.endswith(_firm_ends())
        or any(map(ends_as_body, words))
    )


def _by_own_words(words: list[str], codes: str) -> str:
    lowered = [word.casefold() for word in words]
    if len(words) > 1 and (kind := _by_head(words, lowered, codes)):
        return kind
    if "w" in codes and has_organisation_word(words):
        return ORGANIZATION
    return PERSON if _is_person(words, codes) else ""


def _with_initials(words: list[str], codes: str) -> str:
    """Return the classes with initials written as one token as initials: J.K. Rowling."""
    if "A" not in codes[:-1] or codes[-1] not in "NJ" or is_place(words[-1]):
        return codes
    return "".join(
        "I" if code == "A" and _INITIALS.match(word) and not is_place(word) else code
        for word, code in zip(words, codes, strict=True)
    )


def _by_head(words: list[str], lowered: list[str], codes: str) -> str:
    """Return the type that the word says which names the kind of thing."""
    within = "of" in lowered[1:]
    is_firm = words[-1] in _cues("firm") or (
        codes.endswith("J") and has_organisation_word(words[-1:])
    )
    if _is_pair(words) or (lowered[:2] == ["house", "of"] and lowered[-1] in _people("surname")):
        return ""
    if is_firm or (lowered[0] in _lower_cues("org_first") and not within):
        return ORGANIZATION
    head = lowered[-1 - codes.endswith("J")]
    if within or "for" in lowered[1:]:
        head = lowered[next(n for n, word in enumerate(lowered) if n and word in ("of", "for")) - 1]
    if head in _lower_cues("event") or (codes[0] == "Y" and codes != "YA"):
        return EVENT
    if joins_names(words) or _is_organisation(head, words, lowered, within=within):
        return ORGANIZATION
    if lowered[0] in _cues("geo_first") and codes[1] in _LAST_OF_A_NAME and not within:
        return GEO
    if head in _lower_cues("geo") and _is_geo(words, lowered, codes, within=within):
        return GEO
    if lowered[0] in _cues("direction") and is_place(" ".join(words[1:])):
        return GEO
    return WORK if head in _lower_cues("work") else ""


def _is_pair(words: list[str]) -> bool:
    """Say whether a name is two constants, of which none says what the other is: GET and POST."""
    return len(words) == 3 and words[1] == "and" and words[0].isupper() and words[2].isupper()


def _is_organisation(head: str, words: list[str], lowered: list[str], *, within: bool) -> bool:
    """Say whether the head of a name is a kind of organisation.

    It counts with a capital only, as a church is no Church.
    """
    if not words[lowered.index(head)][:1].isupper():
        return False
    if head not in _lower_cues("org"):
        return within and head in _cues("org_of")
    others = (word for word, low in zip(words, lowered, strict=True) if low != head)
    return head not in _lower_cues("org_weak") or not all(map(is_common, others))


def joins_names(words: list[str]) -> bool:
    """Say whether "&" joins names and not the two topics of a heading: Workflows & Features."""
    return "&" in words and not all(is_common(word) for word in words if word.isalpha())


def _is_geo(words: list[str], lowered: list[str], codes: str, *, within: bool) -> bool:
    """Say whether a name with a word such as River or State in it is a place's."""
    if within:
        return codes[-1] in _LAST_OF_A_NAME and not usually_lower(lowered[-1])
    if codes[0] in "HR" and lowered[0] not in _SAINTS and lowered[-1] not in _cues("geo_sure"):
        return False
    may_be_person = lowered[-1] in _cues("geo_or_surname") and codes == "NN"
    given = words[0]
    if may_be_person and (is_given_name(given) or (may_be_given(given) and not is_place(given))):
        return False
    return lowered[-1] in _cues("geo_sure") or not all(map(_is_ordinary, words[:-1]))


def _is_person(words: list[str], codes: str) -> bool:
    if codes[0] == "H":
        return _is_titled(words, codes)
    if "o" in codes or "S" in codes or len(words) > 6:
        return False
    if codes[0] == "R" and len(words) > 1:
        return codes[1] in "NI" and _has_office(words[0], words[1:])
    if len(words) == 1:
        return codes == "N" and is_given_name(words[0]) and not _is_ordinary(words[0])
    last = words[-2] if codes[-1] == "J" else words[-1]
    if "I" in codes:
        surname = codes.rstrip("J")[-1] == "N" and not is_common(last)
        return surname and (codes[0] == "I" or not is_common(words[0]))
    given = may_be_given(words[0]) and codes[0] == "N"
    if "w" in codes or "J" in codes:
        return given
    if set(codes) != {"N"} or len(words) > 4:
        return False
    known = is_surname(last) and not is_place(last)
    is_name = known or is_given_name(words[0]) or not is_place(words[0])
    if given and is_name and not is_place(last):
        return not is_common(last) or is_given_name(last) or is_surname(last)
    surname = is_surname(last) and not is_demonym(last) and last.lower() not in _cues("direction")
    return len(words) <= 3 and surname and not any(map(_is_ordinary, words[:-1]))


def _has_office(office: str, name: list[str]) -> bool:
    if may_be_given(name[0]) or is_surname(name[-1]):
        return True
    return office not in _cues("role_or_word") and not any(map(is_common, name))


def _is_titled(words: list[str], codes: str) -> bool:
    """Say whether a civil title before the name makes it a person's."""
    rest = codes[1:].removeprefix("o")
    if not rest or set(rest) - set("NAIHRJwo") or rest[0] not in "NIHRw" or len(rest) > 5:
        return False
    if words[0].casefold() in _SAINTS:
        return is_given_name(words[1])
    return words[-1].casefold() not in _lower_cues("geo")


def _by_context(words: list[str], codes: str, context: NameContext) -> str:
    if context.head in _cues("occupation"):
        return PERSON
    if context.head in _cues("place_noun"):
        return GEO
    if _is_named_first(words, codes) and context.before.lower() not in ("the", "a", "an"):
        return PERSON
    if codes == "A" or (len(words) == 1 and (is_demonym(words[0]) or codes in "HR")):
        return OTHER
    if _speaks(words, codes, context):
        return PERSON
    before = context.before.casefold()
    if before in _cues("place_before") and _is_placed(words, context):
        return GEO
    if before == "of" and context.second_before.casefold() in _cues("place_noun"):
        return GEO if not _is_ordinary(words[0]) else OTHER
    by_hand = before == "by" and context.second_before.casefold() in _cues("authored")
    return PERSON if by_hand and like_full_name(words, codes) else ""


def _is_named_first(words: list[str], codes: str) -> bool:
    """Say whether a frequent given name comes before one other word, whatever that means."""
    return codes == "NN" and is_given_name(words[0]) and not _is_ordinary(words[0])


def _speaks(words: list[str], codes: str, context: NameContext) -> bool:
    """Say whether the sentence has the name speak."""
    if set(codes) - set("NAI") or len(words) > 3 or has_organisation_word(words):
        return False
    if len(words) > 1 and is_trade(words[-1]) and not may_be_given(words[0]):
        return False
    said = context.after.casefold() in _cues("speech") or (
        context.before.casefold() in _cues("speech_before")
        and context.after in ("", ",", ".", ";", "—", "-", "“", '"')
    )
    is_told = context.after.casefold() in _cues("who") or context.head in _cues("role_in_brackets")
    return said or (is_told and like_full_name(words, codes))


def _is_placed(words: list[str], context: NameContext) -> bool:
    """Say whether a preposition of place is borne out: in Horta, Portugal; in Huntsville."""
    last = words[-1].casefold()
    if any(map(_is_ordinary, words)):
        return False
    beyond = context.second_after
    if context.after == "," and beyond and (is_place(beyond) or is_place(beyond.split()[0])):
        return True
    by_end = len(words) == 1 and last.endswith(_GEO_ENDS) and len(last) > 6
    return by_end and last not in _people("surname")


def like_full_name(words: list[str], codes: str) -> bool:
    """Say whether words have the form of given names and a surname, none of them known.

    It is no evidence by itself.
    """
    given = may_be_given(words[0])
    ordinary = is_common if given else _is_ordinary
    return (
        2 <= len(words) <= 3
        and not set(codes) - set("NI")
        and not any(map(ordinary, words[given:]))
        and not any(map(looks_like_code, words))
        and not has_organisation_word(words)
        and not is_place(" ".join(words))
    )


@cache
def may_be_given(word: str) -> bool:
    """Say whether a word is a listed given name and no common word besides, or of two such."""
    first, _, last = word.partition("-")
    if last:
        return may_be_given(first) and may_be_given(last)
    return is_given_name(word) or (_plain(word) in _people("given") and not is_common(word))


@cache
def is_common(word: str) -> bool:
    """Say whether people write the word in lower case, or it is of a nation."""
    parts = word.split("-")
    if len(parts) > 1:
        return any(map(str.islower, parts)) or all(usually_lower(part.lower()) for part in parts)
    return usually_lower(word.casefold()) or is_demonym(word)


@cache
def _is_ordinary(word: str) -> bool:
    return is_common(word) or is_place(word)
