"""Names in Japanese text: people by surname and by honorific, bodies and places by their ends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.word_lists import alternatives, word_lists

Place = tuple[int, int, str]

_KANA = pattern_of("[\u3041-\u3096]")
_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_KATAKANA = "\u30a1-\u30fa\u30fc"
_LEAST_KANA = 8
_RUN = pattern_of(f"[{_HAN}]+")
_KATAKANA_SIGN = pattern_of(f"[{_KATAKANA}]")
_NAME_RUN = pattern_of(f"[{_HAN}{_KATAKANA}]+")
_MOST_GIVEN = 3
_LEAST_SIGNS = 2
_MOST_SIGNS = 5
_SURE_OF_ONE_SIGN = "林森堀岸柳辻"
# They end or stand in words, and hardly in given names.
_NO_GIVEN = pattern_of("[的性付者化用等側型式系以上下前後間時数率法各毎]")
# What may be written together with the place after it: 来月札幌, 現在東京.
_BEFORE_PLACES = "月年日週在"
_LONGEST_SURNAME = 3
_LONGEST_BODY = 16


def is_japanese(text: str, n_cjk: int) -> bool:
    """Say whether a text with so many signs of Han and kana is Japanese: an eighth is hiragana."""
    return _LEAST_KANA * len(_KANA.findall(text)) > n_cjk


def japanese_names(text: str) -> Iterator[Place]:
    """Yield (start, end, type) of names, the surest first; some overlap."""
    yield from _bodies(text)
    people = dict((*_people(text), *_people_in_kana(text), *_kin(text)))
    yield from ((start, end, "PERSON") for (start, end) in people)
    surnames = {surname for (start, end), surname in people.items() if end - start > len(surname)}
    yield from _again(text, {text[start:end] for start, end in people}, surnames)
    yield from _places(text)
    for match in _kana_place().finditer(text):
        yield match.start(), match.end(), "GEO"


def katakana_bodies(text: str) -> Iterator[Place]:
    """Yield the organisations that begin in katakana, ヤマダ電機: a run of it is but their part.

    What ends in 会社 alone is hardly called so: バス会社 is a bus company.
    """
    for start, end, kind in _bodies(text):
        is_generic = text[start:end].endswith("会社") and "株式" not in text[start:end]
        if _KATAKANA_SIGN.match(text, start) and not is_generic:
            yield start, end, kind


def _bodies(text: str) -> Iterator[Place]:
    """Yield the organisations: a run of Han and katakana up to the last end of one in it."""
    for run in _NAME_RUN.finditer(text):
        written = run.group()
        if written.startswith("株式会社") and len(written) > len("株式会社"):
            yield run.start(), run.end(), "ORGANIZATION"
            continue
        ends = [match.end() for match in _organisation().finditer(written)]
        name = written[: ends[-1]] if ends else ""
        is_name = name and (name not in _lists()["organisation"] or name.endswith(("省", "庁")))
        if is_name and ends[-1] <= _LONGEST_BODY:
            yield run.start(), run.start() + ends[-1], "ORGANIZATION"


def _people(text: str) -> Iterator[tuple[tuple[int, int], str]]:
    for run in _RUN.finditer(text):
        written, follows = run.group(), text[run.end() : run.end() + 3]
        name = _without_honorific(written)
        by_kana = follows.startswith(("さん", "くん", "ちゃん"))
        is_called = name != written or by_kana
        surname = _surname(name)
        given = len(name) - len(surname)
        if surname and _is_full_or_called(given, name, is_called=is_called):
            yield (run.start(), run.start() + len(name)), surname
        elif (by_kana or written == f"{name}氏") and _may_be_person(name):
            yield (run.start(), run.start() + len(name)), ""


def _people_in_kana(text: str) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield people whose given name is in hiragana, behind a surname: 内山さくらさん."""
    for match in _kana_given().finditer(text):
        surname = _surname(match["surname"])
        if surname == match["surname"]:
            yield match.span("name"), surname


def _kin(text: str) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield people by given names behind what kin they are: 弟の翔太は."""
    for match in _given_of_kin().finditer(text):
        yield match.span("name"), ""


def _is_full_or_called(given: int, name: str, *, is_called: bool) -> bool:
    if given == 0:
        return is_called
    if _NO_GIVEN.search(name[-given:]):
        return False
    has_end = _organisation().search(name) or (name[-1] in _place_signs() and not is_called)
    return given <= _MOST_GIVEN and not has_end


def _may_be_person(name: str) -> bool:
    """Say whether somebody whose name is not listed may be called so."""
    lists = _lists()
    return _LEAST_SIGNS <= len(name) <= _MOST_SIGNS and not (
        name in lists["no_person"]
        or name in lists["honorific"]
        or name[-1] in "長者員家人手師方様名"
        or bool(_organisation().search(name))
    )


def _without_honorific(written: str) -> str:
    for honorific in _honorifics():
        if written.endswith(honorific) and len(written) > len(honorific):
            return written[: -len(honorific)]
    return written


def _surname(name: str) -> str:
    """Return the listed surname that a name begins with."""
    for length in range(min(_LONGEST_SURNAME, len(name)), 0, -1):
        surname = name[:length]
        if surname in _lists()["surname"] and (length > 1 or surname in _SURE_OF_ONE_SIGN):
            return surname
    return ""


def _again(text: str, names: set[str], surnames: set[str]) -> Iterator[Place]:
    """Yield the other occurrences of people's full names, and of their surnames alone."""
    for run in _RUN.finditer(text) if surnames else ():
        if run.group() in surnames and len(run.group()) > 1:
            yield run.start(), run.end(), "PERSON"
    full = sorted((name for name in names if len(name) > 2), key=lambda name: (-len(name), name))
    if full:
        for match in re.finditer("|".join(map(re.escape, full)), text):
            yield match.start(), match.end(), "PERSON"


def _places(text: str) -> Iterator[Place]:
    for run in _NAME_RUN.finditer(text):
        written, begin = run.group(), run.start()
        place = 0
        for match in _place().finditer(written):
            name = match.group()
            begins = match.start() == place or written[match.start() - 1] in _BEFORE_PLACES
            if begins and name not in _lists()["no_place"]:
                yield begin + match.start(), begin + match.end(), "GEO"
                place = match.end()


@cache
def _lists() -> dict[str, frozenset[str]]:
    return word_lists("nlp_japanese.txt")


@cache
def _honorifics() -> tuple[str, ...]:
    return tuple(sorted(_lists()["honorific"], key=lambda word: (-len(word), word)))


@cache
def _place_signs() -> frozenset[str]:
    return frozenset(word for word in _lists()["place"] if len(word) == 1)


@cache
def _kana_given() -> re.Pattern[str]:
    return re.compile(
        f"(?<![{_HAN}])(?P<name>(?P<surname>[{_HAN}]{{2,3}})(?!さん|くん|ちゃん)[\u3041-\u3096]{{2,3}}?)"
        "(?=さん|くん|ちゃん|様|氏)"
    )


@cache
def _given_of_kin() -> re.Pattern[str]:
    given = alternatives(
        name for name in word_lists("nlp_script_names.txt")["ja_first"] if len(name) > 1
    )
    kin = alternatives(_lists()["kin"])
    ends = "[子美太郎介也斗香奈恵代江雄夫彦樹輝]"
    return re.compile(f"(?:{kin})の(?P<name>{given}|(?!紹介)[{_HAN}]{{1,2}}{ends})(?![{_HAN}])")


@cache
def _kana_place() -> re.Pattern[str]:
    """Return the pattern of towns in hiragana, of which most are words without their sign."""
    return re.compile(
        f"(?:さいたま|つくば|いわき|ひたちなか)市?|(?:{alternatives(_lists()['kana_place'])})[市町]"
    )


@cache
def _known_places() -> frozenset[str]:
    """Return places that are no surnames, too."""
    lists = _lists()
    public = word_lists("nlp_script_names.txt")["ja_place"]
    return lists["known_place"] | (public - lists["surname"] - lists["no_place"])


@cache
def _organisation() -> re.Pattern[str]:
    return re.compile(f"(?:{alternatives(_lists()['organisation'])})")


@cache
def _place() -> re.Pattern[str]:
    lists = _lists()
    ends = alternatives(lists["place"])
    # A name that ends in the sign of a place once more is longer: 京都府, 市川市.
    return re.compile(
        f"(?:{alternatives(_known_places())})(?:{ends})?"
        f"|[{_HAN}{_KATAKANA}]{{2,6}}?(?:{ends})(?![場況街販並歩家域間分画脈頂道荘])|(?![一二三四五六七八九十各])[{_HAN}](?:県|市|町|村|区|郡|島)"
    )
