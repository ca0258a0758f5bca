"""Facts that a question asks for: by the name of the field, or by what the document is about.

Each fact of a note is quoted with the note's title. It counts as what says something of that title
only where it is asked for: otherwise all facts of Quay 4 would stand before what is said of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence, Set
from functools import cache
from typing import TYPE_CHECKING

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.records import (
    SEPARATOR,
    column_of,
    field_head,
    parted,
    record_line,
    relation_of,
)
from graphrag_pipeline.core.text import asked_language, fold, terms, terms_batch
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.query.evidence.asked_figures import is_within_bounds
from graphrag_pipeline.query.evidence.latest import without_latest
from graphrag_pipeline.query.evidence.units import CELL_END, ITEM, KEY, TOLD_BY_FIELD, VALUE, Unit
from graphrag_pipeline.query.question import AnalysedQuestion, words_pattern

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

_LEAST, _MOST_MORE = 3, 5  # characters of a stem, and of the ending after it
_LEAST_OF_COMPOUND = 5  # characters: Rechnungsbetrag is a Betrag
_MEASURES = {
    **{"deep": "depth", "long": "length", "high": "height", "tall": "height", "wide": "width"},
    **{"broad": "breadth", "heavy": "weight", "old": "age", "fast": "speed"},
}
_ROLES = {
    **{"wrote": "author", "written": "author", "sent": "sender", "sold": "seller"},
    **{"bought": "buyer", "made": "maker", "paid": "payment", "payment": "paid", "pay": "paid"},
}
"""What fields are called that answer to a word of another stem."""
_WORDS = word_lists("questions.txt")
_HOW_MUCH = pattern_of(words_pattern("how_much"))
_COSTS = pattern_of(words_pattern("costs"))
_SHARE, _OF_SHARE = pattern_of(r"[\d.,]+ ?%"), pattern_of(words_pattern("share"))
_HOW_MANY = pattern_of(words_pattern("how_many"))
_BY_ROLE = ("in_charge", "took_part", "arranges", "reports", "makes", "repeats", "lasts")
_LABELLED = pattern_of(
    r"([^\W\d_][^:：\n.,!?。，]{1,39})(?:: |：\s?)([^\n]{0,99}[^\n.!?:;,。，；：])"
    r"|([^\W\d_]\w{1,19} [^\W\d_A-Z][^:\n.,!?]{1,29}): ((?:[^\n.!?]|[.](?! )){1,99}\.)"
)
_OF_VERSION = pattern_of(r"v\d{1,3}")
_WIDE_COLON = "："
_LONGEST_HEAD = 4  # words
_IS_VALUE = pattern_of(r"\d|[A-ZÀ-ÖØ-ÞА-Я]|\A[^\w\s]+\Z")
_PARTS = pattern_of("[!/]")
_FIGURE = pattern_of(r"[^\w\s]?\s?\d")
_TITLE_END = record_line("", "")[-3:]
_PLACES = word_lists("nlp_records.txt")["place"]


def asks_for_fact(question: AnalysedQuestion, title: str, line: str) -> bool:
    """Whether a question asks for a fact ``field: value`` about a document's title.

    Nothing of Quay 7 is asked for by a question about Quay 4. Who "owns" something is asked for by
    its "owner". Where a question says no more than the title, all facts are asked for, or those of
    places.
    """
    field = line.partition(SEPARATOR)[0]
    own = set(terms(title))
    asked = set(question.terms) - own
    figures = {word for word in question.terms if word.isdigit()}
    if figures and not figures.issuperset(filter(str.isdigit, own)):
        return False
    if not asked:
        return question.asks_for != "place" or field_head(field) in _PLACES
    return _names_field(asked, field)


def _said_names(question: AnalysedQuestion, lines: Sequence[str]) -> frozenset[str]:
    """Return the terms of the names in a question, words with a capital, that some line says."""
    words = " ".join(word for word in question.split()[1:] if word[:1].isupper())
    names = frozenset(terms(words))
    if not names or any(map(str.isdigit, question.folded)):
        return frozenset()
    return names.intersection(" ".join(terms_batch(lines)).split())


def says_asked_field(
    question: AnalysedQuestion, title: str, line: str, told: str, names: Set[str]
) -> int:
    """Return 1 for a line ``title - field: value`` whose field a question names, of rows any.

    By a word of its stem or by a measure: who "owns" it, how "long" it is. What the title says
    names no field. Nor need one be named that is of the kind asked for, as when or where something
    is, where the line says all else of the question. Where the bounds of the question leave out the
    value (over 100), that is -1; and 0 where no field is named, or none of the ``names`` of which
    it is asked is in what is ``told`` by the line, with its record. A share is not how many.
    """
    asked = set(question.terms).difference(terms(title))
    cells = [cell.partition(SEPARATOR) for cell in line.rpartition(_TITLE_END)[2].split(CELL_END)]
    fields = [field for field, mark, _ in cells if mark]
    named = [cell for cell in cells if cell[1] and _names_field(asked, cell[0])]
    of_kind = [cell for cell in cells if cell[1] and _is_of_kind(question, cell[0])]
    if not named and of_kind and not _is_said(question, terms(f"{title} {told}")):
        return 0
    about = {name for name in names if not any(_names_field({name}, field) for field in fields)}
    if not (named or of_kind) or (about and about.isdisjoint(terms(f"{title} {told}"))):
        return 0
    values = [(field, value) for field, _, value in named or of_kind]
    asks_share = _is_share(question.folded)
    if asks_share or _HOW_MANY.search(question.folded):
        values = [(f, v) for f, v in values if asks_share == _is_share(fold(f), v)]
        if asks_share and not values:
            return 0
    return 1 if any(is_within_bounds(question, value) for _, value in values) else -1


def _is_share(words: str, value: str = "") -> bool:
    """Whether a question or the name of a field is about a share, or a value is one."""
    return "%" in words or _SHARE.fullmatch(value) is not None or bool(_OF_SHARE.search(words))


def _is_of_kind(question: AnalysedQuestion, field: str) -> bool:
    """Whether a field says when, where, how much or what something is, as a question asks it."""
    if question.asks_for == "place":
        return field_head(field) in _PLACES
    words = question.read(_words_of_kind)
    field = field.partition(" (")[0]
    last = [*terms(parted(field))[-1:], *terms(field_head(field))]
    return bool(words) and any(
        said == word or (len(word) >= _LEAST_OF_COMPOUND and said.endswith(word))
        for said in last
        for word in words
    )


def _words_of_kind(question: str) -> frozenset[str]:
    """Return the last words of fields that say what a question asks for; none of most."""
    asked = AnalysedQuestion.of(question)
    kind = "time_field" if asked.asks_for == "time" else ""
    if asked.asks_for == "number":
        kind = "amount_field" if _HOW_MUCH.search(asked.folded) else "count_field"
    elif not asked.asks_for and asked.asks_what:
        kind = "amount_field" if _COSTS.search(asked.folded) else "result_field"
    return _last_words(kind, asked_language()) if kind else frozenset()


def _is_said(question: AnalysedQuestion, words: Iterable[str]) -> bool:
    """Whether some words say all that a question is about, but for words such as "take place".

    Nor need they say what stands before a key that they say: "order" of order 1003.
    """
    said = {*words, *_last_words("happens", asked_language())}
    keys = question.without_quantity.read(_keys_of)
    said.update(word for before, key in keys if said.issuperset(key) for word in before)
    return said.issuperset(question.without_quantity.terms)


def _keys_of(question: str) -> list[tuple[list[str], list[str]]]:
    """Return the terms of each word with a figure, and those of the word before it."""
    words = [(word, terms(word)) for word in question.split()]
    pairs = itertools.pairwise(words)
    return [(before, key) for (_, before), (word, key) in pairs if any(map(str.isdigit, word))]


@cache
def _last_words(kind: str, language: str | None) -> frozenset[str]:
    """Return the terms of a list, which are other ones in each language that is asked in."""
    return frozenset(terms(" ".join(_WORDS[kind])))


def tell_owners(index: Release, question: AnalysedQuestion, units: Sequence[Unit]) -> None:
    """Tell units that say whose something is with the question's words for that."""
    owning = _last_words("owns", asked_language())
    asked = sorted(owning.intersection(question.terms))
    lines = terms_batch([unit.told for unit in units]) if asked else ()
    for unit, words in zip(units, lines, strict=False):
        if not owning.isdisjoint(words.split()):
            unit.told = " ".join((unit.told, *asked))


def is_asked_label(question: AnalysedQuestion, line: str) -> bool:
    """Whether a line of text is a label that a question names, and what it says.

    ``Policy number: HM-448213`` in a letter answers as the field of a record does. What it says has
    a figure, a capital or signs alone: words alone are said of a term. It ends as a sentence only
    where the label is no name of who says it: ``Mooring fee: 120 NOK.`` The rate of a tax need not
    be named, nor more than the end of a label in Chinese or Japanese.
    """
    match = _LABELLED.fullmatch(line)
    label, value = (match[1] or match[3], match[2] or match[4]) if match else ("", "")
    words = terms(_SHARE.sub("", label)) if _IS_VALUE.search(value) else []
    if _WIDE_COLON in line:
        words = words[-1:]
    return _names_whole(frozenset(question.terms), words)


def is_asked_head(question: AnalysedQuestion, line: str) -> bool:
    """Whether a heading says in another word what is asked for: Present, of who attended."""
    words = terms(line)
    asked = frozenset(question.terms)
    return 0 < len(words) <= _LONGEST_HEAD and any(_has_role(word, line) for word in asked)


def is_asked_key(question: AnalysedQuestion, line: str) -> bool:
    """Whether a question asks what the record of a key is: B-2, of ``Buoy: B-2``."""
    if question.asks_for:
        return False
    key = frozenset(terms(line.partition(SEPARATOR)[2]))
    return bool(key) and key.issubset(question.terms)


def weigh_fields(
    question: AnalysedQuestion, units: Sequence[Unit], scores: Sequence[float]
) -> None:
    """Set the ``gain`` of lines of records: 1 of those whose field is asked for, -1 beyond bounds.

    A line that the question itself says (the CVE of CVE-2021-7) gains nothing beside others. What
    stands below a heading gains where that is asked for in another word. A key that gains answers.
    """
    names = _said_names(question, [unit.said for unit in units])
    about = without_latest(question)
    by_field: list[Unit] = []
    for unit, score in zip(units, scores, strict=True):
        if score and unit.kind in TOLD_BY_FIELD:
            unit.gain = says_asked_field(about, unit.title, unit.shown, unit.told, names)
            by_field.append(unit)
        elif score and unit.sentence.announces:
            unit.gain = int(is_asked_head(about, unit.sentence.first))
    again: list[Unit] = []
    others: set[str] = set()
    for unit in units:
        if unit.gain and _says_only_asked(about, unit.shown):
            again.append(unit)
        elif unit.gain > 0:
            others.add(unit.document_id)
    for unit in again:
        unit.gain *= unit.document_id not in others
    _keep_what_is_asked(about, by_field)
    for unit in by_field:
        unit.kind = VALUE if unit.kind == KEY and unit.gain > 0 else unit.kind


def _says_only_asked(question: AnalysedQuestion, line: str) -> bool:
    """Whether the field of a record's line and its value are both said by a question."""
    return set(terms(line.rpartition(_TITLE_END)[2])).issubset(question.terms)


def _keep_what_is_asked(question: AnalysedQuestion, units: Sequence[Unit]) -> None:
    """Take the gain of lines of records that say only their fields of the question.

    That holds where other lines of records say more of it: of all costs, that of the impeller is
    asked for, also where it is called a price. A field that answers to a word of another stem, as
    an owner to who is responsible, stays.
    """
    if not any(unit.gain > 0 for unit in units):
        return
    asked = frozenset(question.terms)
    says_more, of_field = False, []
    told = terms_batch([f"{unit.title} {unit.told}" for unit in units])
    for unit, words in zip(units, told, strict=True):
        said = asked.intersection(words.split())
        cells = unit.shown.rpartition(_TITLE_END)[2].split(CELL_END) if said else ()
        fields = terms(" ".join(cell.partition(SEPARATOR)[0] for cell in cells))
        named = {word for word in said if any(are_of_one_stem(word, f) for f in fields)}
        says_more |= said > named
        if said == named and said and said != asked:
            of_field.append(unit)
    for unit in of_field if says_more else ():
        unit.gain = min(unit.gain, 0)


def _names_whole(asked: Set[str], words: Sequence[str]) -> bool:
    """Whether each word of a field is asked for, but for its version: cvss_v3."""
    named = [word for word in words if not _OF_VERSION.fullmatch(word)]
    return bool(named) and all(_names_field(asked, word) for word in named)


def _names_field(asked: Set[str], field: str) -> bool:
    measured = {
        measure
        for stem, measure in _MEASURES.items()
        if any(are_of_one_stem(word, stem) for word in asked)
    }
    fields_of = _roles(asked_language())
    roles = {name for word in asked for name in fields_of.get(word, ())}
    names = asked | measured | roles
    return any(are_of_one_stem(word, said) for said in terms(parted(field)) for word in names)


@cache
def _roles(language: str | None) -> dict[str, frozenset[str]]:
    """Return what fields are called that answer to a word of another stem, in a language."""
    roles = {word: frozenset((name,)) for word, name in _ROLES.items()}
    for role in _BY_ROLE:
        names = frozenset(terms(" ".join(_WORDS[f"{role}_field"])))
        roles |= dict.fromkeys(terms(" ".join(_WORDS[role])), names)
    return roles


def tell_records(index: Release, question: AnalysedQuestion, units: Sequence[Unit]) -> None:
    """Tell lines of records that a question asks for by their fields with the question's words.

    Those are the ones that other lines of the same record say: the status of order 1003 stands in
    a line without that number, who is assigned to it in one of its "assignee". An item of a list
    says nothing of the others, nor of a figure of the record: the sum is not of one of them. What
    the file is called counts: rows of crane-fees.csv are of fees of cranes.
    """
    asked = frozenset(question.terms)
    is_named = cache(lambda field: _names_whole(asked, terms(parted(_own_name(field)))))
    is_of_kind = cache(lambda field: _is_of_kind(question, field))
    said: dict[str, set[str]] = {}
    said_above: dict[str, set[str]] = {}
    by_name: set[str] = set()
    fields_of = list(map(_fields, units))
    for unit, fields in zip(units, fields_of, strict=True):
        if record := unit.record:
            if record not in said:
                said[record] = set(asked.intersection(terms(parted(_file_name(unit)))))
                said_above[record] = set(said[record])
            words = asked.intersection(terms(unit.told))
            said[record].update(words)
            if unit.kind != ITEM:
                said_above[record].update(words)
            value = unit.told.rpartition(_TITLE_END)[2].partition(SEPARATOR)[2]
            is_value = question.asks_for == "place" or _FIGURE.match(value)
            if is_value and any(map(is_named, fields[:1])):
                by_name.add(record)
    of_kind = {
        record
        for record, words in said_above.items()
        if record not in by_name and _is_said(question, words)
    }
    for unit, fields in zip(units, fields_of, strict=True):
        record = unit.record
        if not record:
            continue
        named = [f for f in fields if is_named(f) or (record in of_kind and is_of_kind(f))]
        # What may stand before its field is the date of the record, or its name.
        value = unit.said.rpartition(f"{named[-1]}{SEPARATOR}")[2] if named else ""
        apart = parted(unit.told)
        words = asked.intersection(terms(apart)) if apart != unit.told else frozenset[str]()
        if named and (unit.kind == ITEM or asked.isdisjoint(terms(value))):
            by_role = {word for word in asked if any(_has_role(word, field) for field in named)}
            is_listed = unit.kind == ITEM or column_of(fields[0]) != fields[0]
            is_alone = is_listed or _FIGURE.match(value)
            words = {*words, *(said_above if is_alone else said)[record], *by_role}
        more = sorted(words.difference(terms(unit.told))) if words else ()
        unit.told = " ".join((unit.told, *more))


def _file_name(unit: Unit) -> str:
    """Return the name of the file that a unit is in, without its ending, and of the sheet."""
    path, _, key = unit.row["uri"].partition("#")
    name = path.rpartition("/")[2]
    return " ".join((name.rpartition(".")[0] or name, *_PARTS.split(key)[:-1]))


def _fields(unit: Unit) -> list[str]:
    """Return the names of the fields of a line, which are several where others tell of what."""
    own = unit.told.rpartition(_TITLE_END)[2]
    cells = own.split(CELL_END) if unit.kind in TOLD_BY_FIELD else [own]
    return [field for field, mark, _ in (cell.partition(SEPARATOR) for cell in cells) if mark]


def _has_role(word: str, field: str) -> bool:
    return word in _roles(asked_language()) and _names_field({word}, field)


def _own_name(field: str) -> str:
    """Return the name of a field without what it is within: memory of spec.limits.memory."""
    return relation_of(field).rpartition(".")[2]


def are_of_one_stem(one: str, other: str) -> bool:
    """Whether two words are one but for their endings."""
    short, long = sorted((one, other), key=len)
    is_ending = len(short) >= _LEAST and len(long) - len(short) <= _MOST_MORE
    stems = (short, f"{short[:-1]}i") if short[-1:] == "y" else short  # supply: supplier
    return one == other or (is_ending and long.startswith(stems))
