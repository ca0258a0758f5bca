"""Named entities: capitalised sequences, dates and quoted titles, by rule."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.word_lists import word_lists, word_set
from graphrag_pipeline.extraction.rules import entity_types as types
from graphrag_pipeline.extraction.rules.foreign_bodies import foreign_bodies
from graphrag_pipeline.extraction.rules.name_neighbours import (
    Mention,
    Piece,
    is_person_of,
    type_by_neighbours,
)
from graphrag_pipeline.extraction.rules.name_starts import (
    is_marked,
    is_office_before_name,
    words_before_name,
)
from graphrag_pipeline.extraction.rules.nouns import BY_CAPITAL, is_month
from graphrag_pipeline.extraction.rules.numbers import (
    ends_in_sum,
    is_money,
    without_number,
    without_sum,
)
from graphrag_pipeline.extraction.rules.organisations import (
    ends_as_body,
    is_body_word,
    is_known_body,
)
from graphrag_pipeline.extraction.rules.sentences import Span
from graphrag_pipeline.extraction.rules.tokens import Tokens
from graphrag_pipeline.extraction.rules.words import usually_lower

_DATE = r"[DO]o?M(?:,?Y)?|M[DO](?:,?Y)?|M,?Y|MoY|W"
_LINK = r"(?:od?(?=[NARF])|&(?=[NAI])|w{1,2}(?=[NA])|S(?=[NA])|a(?=[NA])|p(?=[NA])|,(?=J)|oY)"
_HEAD = r"(?:[YO](?=[NA]))?(?:F{1,3}(?=[NA]))?[NAIHR]"
_TAIL = r"(?:F{0,2}[NAIHRJM]|D(?![bBnmzjMO])|Y(?![M-]))"
_NAME = rf"{_HEAD}(?:{_LINK}?{_TAIL})*(?:oY)?"
_PHRASE = pattern_of(rf"(?P<date>{_DATE})|(?P<name>{_NAME})|(?P<year>Y)|(?P<code>X)")
_IS = ("is", "was")
_WITHIN_HEAD = "jkngebBzymNAuYE-"
_HEAD_NOUN = "nbBzym"
_MAX_HEAD_WORDS = 8
_QUOTED = pattern_of(
    r"“([^“”\n]{2,90})”|" r"``([^`'\n]{2,90})''|\"([^\"\n]{2,90})\"|«([^«»\n]{2,90})»"
)
_TOPIC = pattern_of(r"(?:(?:The|A|An) )?([^\W\d_a-z][^(,|:]*[^\s(,|:])")
_MAX_TITLE_WORDS = 6
_BEFORE_A_YEAR = word_lists("nlp_names.txt")["before_year"]
_MAX_NAME_TOKENS = 14
_FULL_NAME = 4
_ABBREVIATED = ("z.", "i.", "u.", "o.", "d.", "m.", "s.")
_MAX_NAME_CHARACTERS = 120
_WHOLE_HEADS = word_lists("nlp_names.txt")["whole_head"]
_FOR_HEADS = word_lists("nlp_names.txt")["for_head"]
_CONSTANTS = word_lists("nlp_names.txt")["constant"]
_ROLES = word_lists("nlp_names.txt")["role_in_brackets"]
_PARTS = word_lists("nlp_names.txt")["part"]
_NUMBERS = word_lists("nlp_english.txt")["number"]
_SPEECH = word_lists("nlp_names.txt")["speech"] | word_lists("nlp_names.txt")["speech_before"]
_DETERMINERS = word_set("The A An This That These His Her Their Its My Our Your All Both Some")
_FOR_IN_GERMAN = "für"
_GERMAN_ARTICLES = word_lists("nlp_names.txt")["german_article"]


def find_names(text: str, tokens: Tokens, sentences: list[Span], *, dates: bool) -> list[Mention]:
    """Return named entities in order of appearance; of overlapping ones, the quoted title."""
    titles = list(_quoted_titles(text, tokens))
    whole = outside(list(_headings(text, tokens, sentences)), titles)
    whole = sorted(titles + whole, key=lambda mention: mention.start)
    spans = foreign_bodies(tokens)
    bodies = [_mention(tokens, first, stop, types.ORGANIZATION) for first, stop in spans]
    whole = sorted(whole + outside(bodies, whole), key=lambda mention: mention.start)
    mentions: list[Mention] = []
    places: list[Piece] = []
    for match in _PHRASE.finditer(tokens.classes):
        if match.lastgroup == "code" or (dates and match.lastgroup == "date"):
            date = match.lastgroup == "date"
            found = _mention(tokens, *match.span(), types.DATE if date else types.OTHER)
            mentions.append(found if date else _unquoted(text, found))
            places.append(match.span())
        if match.lastgroup != "name":
            continue
        for first, stop in _pieces(tokens, match.start(), match.end()):
            end = without_number(tokens.classes, first, stop)
            mentions.append(_mention(tokens, first, end, _type_of(tokens, first, end)))
            places.append((first, end))
    type_by_neighbours(tokens, mentions, places)
    named = whole + outside(mentions, whole)
    return sorted(
        (each for each in named if 2 <= each.end - each.start <= _MAX_NAME_CHARACTERS),
        key=lambda mention: (mention.start, -mention.end),
    )


def _mention(tokens: Tokens, first: int, stop: int, kind: str) -> Mention:
    return Mention(tokens.starts[first], tokens.ends[stop - 1], kind, tokens.sentence_of[first])


def outside(
    mentions: list[Mention], covering: Sequence[Mention | tuple[int, int, str]]
) -> list[Mention]:
    """Return the mentions that do not begin in one of the spans, which are in order."""
    starts = [span[0] for span in covering]
    return [
        mention
        for mention in mentions
        if not (index := bisect_right(starts, mention.start))
        or covering[index - 1][1] <= mention.start
    ]


def _pieces(tokens: Tokens, first: int, stop: int) -> Iterator[Piece]:
    """Cut a permissive match at the connectors that do not belong inside a name, and trim it."""
    if stop - first > 10 * _MAX_NAME_TOKENS:
        return
    begin = first
    for position in range(first + 1, stop - 1):
        if position >= begin and _cuts(tokens, begin, position, stop):
            yield from _trimmed(tokens, begin, position)
            begin = position + 1
    yield from _trimmed(tokens, begin, stop)


def _cuts(tokens: Tokens, first: int, position: int, stop: int) -> bool:
    code = tokens.classes[position]
    before = tokens.texts[first:position]
    if code == "a":
        return not _joins_and(tokens, first, position, stop)
    if code == "p":
        return not (tokens.texts[position] == "for" and before[-1].lower() in _FOR_HEADS)
    if code == "S":
        return not _joins_possessive(
            before, tokens.classes[first], tokens.texts[position + 1 : stop]
        )
    if code == "o":
        return _cuts_of(tokens, first, position, stop)
    if code == "w" and tokens.texts[position] == "y":
        return not _is_double_surname(before, tokens.texts[position + 1 : stop])
    if tokens.texts[position] == _FOR_IN_GERMAN:
        return bool(before) and not is_body_word(before[-1])
    if code == "w" and (types.is_firm(before) or is_person_of(tokens, first, position, stop)):
        return True
    if tokens.texts[position] == "der" and tokens.language == "de":
        return tokens.classes[position - 1] != "w" and not types.is_given_name(before[-1])
    if code == "w" and tokens.language == "de":
        return tokens.classes[position - 1] not in "wHI" and not types.may_be_given(before[-1])
    if code == "w":
        return tokens.language == "en" and tokens.texts[position] in ("d", "y", "al", "ten")
    return False


def _is_double_surname(before: list[str], after: list[str]) -> bool:
    """Say whether a Spanish "y" is within a name (Ortega y Gasset), and not between two."""
    one = len(after) == 1 and not types.may_be_given(after[0]) and not after[0].isupper()
    return one and len(before) >= 2 and types.may_be_given(before[0])


def _joins_possessive(before: list[str], code: str, right: list[str]) -> bool:
    """Say whether a possessive is part of one name: St. Paul's Cathedral, People's Republic."""
    if code == "H" or usually_lower(before[-1].lower()):
        return True
    return (
        len(before) == 1
        and not types.is_place(before[0])
        and all(usually_lower(word.lower()) for word in right)
    )


def _cuts_of(tokens: Tokens, first: int, position: int, stop: int) -> bool:
    """Say whether "of" relates two names (Ann Lee of Ohio) and is not part of one."""
    before = tokens.texts[first:position]
    if len(before) < 2:
        return False
    if tokens.classes[first] == "H" or types.is_given_name(before[0]):
        return True
    if is_person_of(tokens, first, position, stop):
        return True
    if "of" not in before and types.joins_names(before):
        return True
    right = tokens.classes[position + 1 : stop]
    return right[:1] == "d" and len(right) > 2


def _joins_and(tokens: Tokens, first: int, position: int, stop: int) -> bool:
    before = tokens.texts[first:position]
    right = tokens.texts[position + 1 : stop]
    if "of" in before and types.has_organisation_word(before[: before.index("of")]):
        return not any(word.casefold() in _WHOLE_HEADS for word in right)
    return (
        len(before) <= 2
        and types.has_organisation_word(right[-1:])
        and all(usually_lower(word.lower()) for word in (*before, right[0]))
    )


def _trimmed(tokens: Tokens, first: int, stop: int) -> Iterator[Piece]:
    classes = tokens.classes
    while first < stop and classes[first] in "oadSwp&":
        first += 1
    while first < stop and classes[first] == "F" and tokens.texts[first] in _DETERMINERS:
        first += 1
    if classes[first:stop][:1] == "F" and _follows_a_number(tokens, first):
        first += 1
    while stop > first and classes[stop - 1] in "oaSpFdw&,":
        stop -= 1
    while stop - first > 1 and tokens.texts[first] == "O":
        first += 1
    if classes[first] == "I" and tokens.texts[first - 1] in _ABBREVIATED and stop - first > 1:
        first += 1  # z. B. Tankstellen
    first, stop = without_sum(tokens, first, stop)
    if classes[first : first + 1] in ("Y", "O") and not _is_numbered(tokens, first, stop):
        first += 1
    first += words_before_name(tokens, first, stop)
    while stop - first > 2 and is_office_before_name(tokens, first, stop):
        if classes[first] == "N":
            yield first, first + 1
        first += 1
    if first >= stop or stop - first > _MAX_NAME_TOKENS:
        return
    if not any(code in "NAHR" for code in classes[first:stop]) or classes[first:stop] in ("F", "I"):
        return
    if stop - first == 1 and not _stands_alone(tokens, first):
        return
    if _is_number_of_part(tokens, first, stop):
        return
    if tokens.language in BY_CAPITAL and stop - first > 2 and _is_body_of_place(tokens, first):
        stop = first + 2
    if classes[first - 1] in "wF" and is_known_body(tokens.texts[first - 1 : stop]):
        first -= 1  # La Poste
    yield first, stop


def _is_body_of_place(tokens: Tokens, first: int) -> bool:
    """Say whether a body and its place are named before another noun: Zollamt Bremen Bescheid."""
    body, place, noun = tokens.texts[first : first + 3]
    return is_body_word(body) and types.is_place_in(place, "de") and not types.is_place(noun)


def _is_numbered(tokens: Tokens, first: int, stop: int) -> bool:
    """Say whether a leading year or ordinal belongs to the name (14th Street)."""
    return (
        stop - first > 1
        and not types.is_demonym(tokens.texts[stop - 1])
        and not _says_when(tokens, first, tokens.texts[stop - 1])
    )


def _says_when(tokens: Tokens, position: int, last_word: str) -> bool:
    """Say whether a year is the time of a clause that a name follows: In 2004 Lee moved."""
    return (
        tokens.classes[position] == "Y"
        and position > 0
        and tokens.texts[position - 1].lower() in _BEFORE_A_YEAR
        and not types.is_event_word(last_word)
    )


def _is_role(tokens: Tokens, position: int) -> bool:
    """Say whether a word in brackets after a name is what somebody does: Jens Thomsen (Vorsitz)."""
    opened, *word = tokens.texts[position - 1 : position + 2]
    return opened == "(" and word[1:] == [")"] and word[0].casefold() in _ROLES


def _stands_alone(tokens: Tokens, position: int) -> bool:
    """Say whether one word is a name: no constant of programs, and no short form of address."""
    word, code = tokens.texts[position], tokens.classes[position]
    if code == "N" and _follows_a_number(tokens, position) and usually_lower(word.lower()):
        return False
    if is_money(tokens, position) or _is_role(tokens, position):
        return False
    if word in _CONSTANTS or (code == "N" and word.isupper() and usually_lower(word.lower())):
        return False
    return code not in "HR" or len(word) > 3


def _follows_a_number(tokens: Tokens, position: int) -> bool:
    """Say whether only a number, key or dash is before it in the sentence: 3451 Fix the build."""
    if position < 2 or tokens.classes[position - 2] != "|":
        return False
    before = tokens.texts[position - 1]
    return (
        before[:1].isdigit() or before == "-" or ("-" in before.strip("-") and before[0].islower())
    )


def _is_number_of_part(tokens: Tokens, first: int, stop: int) -> bool:
    """Say whether words count the parts of a text: Chapter 3, PART TWO, Appendix B."""
    if stop - first > 1 and tokens.classes[first] == "Y":
        first += 1  # a paragraph, and no year: § 1371 Abs. 2
    words = [word.casefold() for word in tokens.texts[first:stop]]
    numbers = all(
        code in "DYJIu" or len(word) == 1 or word in _NUMBERS or word in _PARTS
        for word, code in zip(words[1:], tokens.classes[first + 1 : stop], strict=True)
    )
    is_counted = stop - first > 1 or _is_counted(tokens, stop)
    return is_counted and numbers and words[0] in _PARTS


def _is_counted(tokens: Tokens, stop: int) -> bool:
    """Say whether a number follows a word, after a point or not: Abs. 2."""
    after = tokens.texts[stop : stop + 2]
    return any(word[:1].isdigit() for word in after[: 1 + (after[:1] == ["."])])


def _unquoted(text: str, mention: Mention) -> Mention:
    """Leave out the grave accents around code."""
    quotes = text[mention.start : mention.start + 2].count("`")
    return mention._replace(start=mention.start + quotes, end=mention.end - quotes)


def _type_of(tokens: Tokens, first: int, stop: int) -> str:
    classes = tokens.classes[first:stop]
    words = tokens.texts[first:stop]
    if tokens.language == "de" and stop - first == 1 and _is_german_noun(tokens, first):
        if is_known_body(words) or ("-" in words[0] and ends_as_body(words[0])):
            return types.ORGANIZATION
        is_place = types.is_place(words[0]) and not types.is_city(words[0])  # das Essen
        return types.GEO if is_place else types.CONCEPT
    if tokens.language == "de" and stop - first == 1 and types.is_noun_in_german(words[0]):
        is_place = tokens.texts[stop].casefold() not in _GERMAN_ARTICLES  # nach Lage der Akten
        is_led = types.leads_to_place(tokens.texts[first - 1])
        return types.GEO if is_led and is_place else types.OTHER
    if _has_handle(tokens, first, stop):
        return types.PERSON
    speaks = tokens.texts[stop : stop + 1] == [":"] and tokens.classes[first - 1] == "|"
    if speaks and types.like_full_name(words, classes.replace("A", "N")):
        return types.PERSON
    return types.name_type(words, classes, _context(tokens, first, stop))


def _has_handle(tokens: Tokens, first: int, stop: int) -> bool:
    """Say whether what somebody is called on a site follows the name: Ebba Storm @ebba."""
    if tokens.texts[stop : stop + 1] != ["@"] or tokens.starts[stop + 1] > tokens.ends[stop]:
        return False
    is_name = set(tokens.classes[first:stop]) <= set("NI") and 2 <= stop - first <= _FULL_NAME
    return is_name and not types.has_organisation_word(tokens.texts[first:stop])


def _is_german_noun(tokens: Tokens, position: int) -> bool:
    """Say whether an article or adjective before a capital, which says nothing there, does."""
    before = tokens.texts[position - 1]
    if is_month(tokens.texts[position].casefold()):
        return False
    is_led = before.lower() in _GERMAN_ARTICLES or tokens.classes[position - 1] == "n"
    return tokens.classes[position] == "N" and is_led


def _context(tokens: Tokens, first: int, stop: int) -> types.NameContext:
    texts, classes = tokens.texts, tokens.classes
    after = texts[stop] if stop < len(texts) else ""
    last = stop + 1
    while last < stop + 4 and classes[last : last + 1] in ("N", "A"):
        last += 1
    return types.NameContext(
        before=texts[first - 1],
        second_before=texts[first - 2] if texts[first - 1] else "",
        after=after,
        second_after=" ".join(texts[stop + 1 : max(last, stop + 2)]) if after else "",
        head=_head(tokens, stop),
        language=tokens.language,
    )


def _head(tokens: Tokens, stop: int) -> str:
    """Return the noun that a sentence says a name is: Horta is a small port on Faial."""
    texts, classes = tokens.texts, tokens.classes
    code = classes[stop : stop + 1]
    if code == "(":
        if texts[stop + 1 : stop + 2] == ["born"] or _is_role(tokens, stop + 1):
            return texts[stop + 1].casefold()
        opened, close = stop, classes.find(")", stop, stop + 40)
        stop = close + 1
        if close < 0 or "|" in classes[opened:close]:
            return ""
        code = classes[stop : stop + 1]
    if code != "x" or texts[stop] not in _IS or classes[stop + 1 : stop + 2] not in ("d", "e"):
        return ""
    if classes[stop + 1] == "e":
        return texts[stop + 1]
    position = stop + 2
    head = ""
    while classes[position : position + 1] and classes[position] in _WITHIN_HEAD:
        if classes[position] in _HEAD_NOUN:
            head = texts[position]
        position += 1
        if position - stop > _MAX_HEAD_WORDS:
            break
    return head.rpartition("-")[2]


def _quoted_titles(text: str, tokens: Tokens) -> Iterator[Mention]:
    """Yield titles of works in quotation marks: every longer word in them is capitalised."""
    for match in _QUOTED.finditer(text):
        group = match.lastindex or 1
        start, end = match.span(group)
        while end > start and text[end - 1] in ",.;:":
            end -= 1
        first = bisect_left(tokens.starts, start)
        stop = bisect_left(tokens.starts, end)
        words = tokens.texts[first:stop]
        if first < stop and _reads_as_title(words) and not _is_spoken(text, match):
            several = sum(map(str.isalpha, (word[:1] for word in words))) > 1
            kind = types.WORK if several else types.OTHER
            yield Mention(start, end, kind, tokens.sentence_of[first])


def _is_spoken(text: str, quoted: re.Match[str]) -> bool:
    """Say whether somebody says what is quoted: "Come, Ned!" cried Ann; or a whole line says it."""
    if quoted[0][-2] not in ",!?—":
        return False
    after = text[quoted.end() : quoted.end() + 40].partition("\n")[0].casefold().split()[:3]
    is_line = not after and text[quoted.start() - 1 : quoted.start()] in ("", "\n")
    return (is_line and quoted[0][-2] != ",") or any(w.strip(",.;:") in _SPEECH for w in after)


def _reads_as_title(words: list[str]) -> bool:
    if "" in words or any(word in ".!?" for word in words[:-1]):
        return False
    letters = [word for word in words if word[0].isalpha()]
    if not letters or not letters[0][0].isupper() or len(letters) > 10:
        return False
    long = [word for word in letters if len(word) > 3]
    capital = sum(word[0].isupper() for word in long)
    if len(letters) == 1 and types.is_common(letters[0]):
        return False
    return bool(long) and capital == len(long)


def _headings(text: str, tokens: Tokens, sentences: list[Span]) -> Iterator[Mention]:
    """Yield the topic of a heading: the line's own words up to a bracket or comma."""
    for number, (start, end) in enumerate(sentences[:-1]):
        if end - start > _MAX_NAME_CHARACTERS or not _is_own_line(text, start, end):
            continue
        topic = _TOPIC.match(text, start, end)
        if topic is None:
            continue
        first = bisect_left(tokens.starts, topic.start(1))
        while not tokens.texts[first]:
            first += 1
        stop = bisect_left(tokens.starts, topic.end(1))
        words = tokens.texts[first:stop]
        if _is_shouted_clause(tokens, first, stop) or _is_number_of_part(tokens, first, stop):
            continue
        is_byline = tokens.classes.startswith("ep", first)  # Created by Mina Ostrova
        is_hour = words[-1:] and words[-1].isdigit() and text.startswith(":", topic.end(1))
        if is_marked(words) or ends_in_sum(words) or is_hour or is_byline:
            continue
        if _reads_as_title(words) or (number == 0 and 1 < len(words) <= _MAX_TITLE_WORDS):
            kind = types.name_type(words, tokens.classes[first:stop])
            yield Mention(topic.start(1), topic.end(1), kind, number)


def _is_shouted_clause(tokens: Tokens, first: int, stop: int) -> bool:
    """Say whether words in capitals have a verb: DO NOT REMOVE THE COVER."""
    return "x" in tokens.classes[first:stop] and all(map(str.isupper, tokens.texts[first:stop]))


def _is_own_line(text: str, start: int, end: int) -> bool:
    before = text[max(start - 80, 0) : start].rstrip(" \t#*_")[-1:]
    return (
        before in ("", "\n", "\ufeff")
        and text[end : end + 1] in ("\n", "\r")
        and text[end - 1] not in ".:;,。：；，、！？।،؛؟"
    )
