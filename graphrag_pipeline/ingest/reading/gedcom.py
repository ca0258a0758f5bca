"""GEDCOM: each person is a record, with birth, death, marriages, parents and children as fields."""

from __future__ import annotations

import calendar
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.cleaning import one_line
from graphrag_pipeline.ingest.reading.decoding import decode
from graphrag_pipeline.ingest.reading.model import (
    SMALL_RECORDS,
    FileFormat,
    ReadingOptions,
    ReadResult,
)
from graphrag_pipeline.ingest.reading.records import filled, read_records

_LINE = pattern_of(r"[ \t]*(\d{1,2})[ \t]+(?:@([^@\s]{1,40})@[ \t]+)?(\w{1,31})(?: (.*))?")
_POINTER = pattern_of(r"@([^@\s]{1,40})@")
_MONTHS = {name[:3].upper(): n for n, name in enumerate(calendar.month_name) if name}
_DAY = pattern_of(rf"(?:(\d\d?) )?({'|'.join(_MONTHS)}) (\d{{3,4}})\b")
_YEAR = pattern_of(r"\b\d{3,4}\b")
_CALENDAR = pattern_of(r"@#D[A-Z ]{1,20}@ ?|\((?=[^)]*\)$)|\)$")
_QUALIFIERS = {
    **{"ABT": "about", "EST": "about", "CAL": "about", "BEF": "before", "AFT": "after"},
    **{"BET": "between", "AND": "and", "FROM": "from", "TO": "to", "INT": ""},
}
_EVENTS = {
    **{"BIRT": ("born", "birthplace"), "CHR": ("christened", "place of christening")},
    **{"BAPM": ("baptised", "place of baptism"), "DEAT": ("died", "place of death")},
    **{"BURI": ("buried", "place of burial"), "EMIG": ("emigrated", "emigrated from")},
    **{"IMMI": ("immigrated", "immigrated to"), "RESI": ("resided", "residence")},
}
_FACTS = {"OCCU": "occupation", "TITL": "honorific", "RELI": "religion", "NOTE": "note"}
_MARRIAGE = (("MARR", "married", "place of marriage"), ("DIV", "divorced", "place of divorce"))
_SEXES = {"M": "male", "F": "female"}
_MOST_DEEP, _LONGEST_DATE = 20, 100
_MOST_FAMILIES, _MOST_CALLED = 20, 40
"""More of one person are none that a family tree holds: each says all others."""


@dataclass
class _Node:
    tag: str
    parts: list[str]
    key: str = ""
    below: list[_Node] = field(default_factory=list)

    @property
    def value(self) -> str:
        return "".join(self.parts)

    def all(self, tag: str) -> list[_Node]:
        return [node for node in self.below if node.tag == tag]

    def said(self, tag: str) -> str:
        return next((one_line(node.value) for node in self.all(tag) if node.value.strip()), "")


def read_gedcom(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read each person as a record; who has a name that others have is told by years, too."""
    nodes = _nodes(decode(data, options.encoding).lstrip("\ufeff"))
    known = {node.key: node for node in nodes if node.key}
    people = [node for node in nodes if node.tag == "INDI"]
    names = _names(people)
    records = (_as_record(person, known, names) for person in people)
    return read_records(path, records, options, none="the file has no persons, as 0 @I1@ INDI")


def _nodes(text: str) -> list[_Node]:
    """Return the records of a file, each with what stands below it."""
    above: list[_Node] = [_Node("", [])]
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            # Some programs break long lines without saying so.
            above[-1].parts.append(f" {line.strip()}")
            continue
        depth, key, tag, value = int(match[1]), match[2] or "", match[3].upper(), match[4] or ""
        del above[min(depth, _MOST_DEEP) + 1 :]
        if tag in ("CONT", "CONC"):
            above[-1].parts.append(f"\n{value}" if tag == "CONT" else value)
        else:
            node = _Node(tag, [value], key)
            above[-1].below.append(node)
            above.append(node)
    return above[0].below


def _names(people: Sequence[_Node]) -> dict[str, str]:
    """Return what each person is called, by its key."""
    bare = {person.key: _name(person.said("NAME")) or person.key for person in people}
    count = Counter(bare.values())
    names = {
        person.key: _with_years(bare[person.key], person)
        if count[bare[person.key]] > 1
        else bare[person.key]
        for person in people
    }
    told = Counter(names.values())
    return {key: f"{name} [{key}]" if told[name] > 1 else name for key, name in names.items()}


def _name(written: str) -> str:
    return one_line(written.replace("/", " "))


def _with_years(name: str, person: _Node) -> str:
    born, died = (
        year[0] if (year := _YEAR.search(_date_of(person, tag))) else "" for tag in ("BIRT", "DEAT")
    )
    if born and died:
        return f"{name} ({born}–{died})"
    return f"{name} (born {born})" if born else f"{name} (died {died})" if died else name


def _date_of(node: _Node, tag: str) -> str:
    return next((date for event in node.all(tag) if (date := event.said("DATE"))), "")


def _as_record(
    person: _Node, known: Mapping[str, _Node], names: Mapping[str, str]
) -> dict[str, object]:
    record: dict[str, object] = {"id": person.key, "name": names.get(person.key, person.key)}
    others = [_name(node.value) for node in person.all("NAME")[1:]]
    record |= {"also called": others, "sex": _SEXES.get(person.said("SEX"), "")}
    for tag, (when, where) in _EVENTS.items():
        for event in person.all(tag)[:1]:
            record |= {when: _date(event.said("DATE")), where: event.said("PLAC")}
    for tag, name in _FACTS.items():
        record[name] = [one_line(said) for node in person.all(tag) if (said := _text(node, known))]
    record |= _relatives(person, known, names)
    return filled(record)


def _text(node: _Node, known: Mapping[str, _Node]) -> str:
    pointer = _POINTER.fullmatch(node.value.strip())
    return known[pointer[1]].value if pointer and pointer[1] in known else node.value


def _relatives(
    person: _Node, known: Mapping[str, _Node], names: Mapping[str, str]
) -> dict[str, object]:
    found: dict[str, list[str]] = {}

    def add(name: str, *values: str) -> None:
        found.setdefault(name, []).extend(value for value in values if value)

    for family in _families(person, "FAMC", known):
        add("father", *_called(family, "HUSB", names))
        add("mother", *_called(family, "WIFE", names))
    for family in _families(person, "FAMS", known):
        both = [*_called(family, "HUSB", names), *_called(family, "WIFE", names)]
        add("spouse", *(name for name in both if name != names.get(person.key)))
        for tag, when, where in _MARRIAGE:
            for event in family.all(tag)[:1]:
                add(when, _date(event.said("DATE")))
                add(where, event.said("PLAC"))
        add("child", *_called(family, "CHIL", names))
    return {**found}


def _families(person: _Node, tag: str, known: Mapping[str, _Node]) -> Iterator[_Node]:
    for node in person.all(tag)[:_MOST_FAMILIES]:
        pointer = _POINTER.fullmatch(node.value.strip())
        if pointer and pointer[1] in known:
            yield known[pointer[1]]


def _called(family: _Node, tag: str, names: Mapping[str, str]) -> list[str]:
    pointers = (_POINTER.fullmatch(node.value.strip()) for node in family.all(tag)[:_MOST_CALLED])
    return [names[pointer[1]] for pointer in pointers if pointer and pointer[1] in names]


def _date(written: str) -> str:
    """Return a date as ISO 8601 has it, with what qualifies it in words.

    >>> _date("BET 3 MAR 1851 AND APR 1852"), _date("ABT 1850")
    ('between 1851-03-03 and 1852-04', 'about 1850')
    """
    text = _DAY.sub(_iso, _CALENDAR.sub("", written[:_LONGEST_DATE].upper()).strip())
    words = (_QUALIFIERS.get(word.rstrip("."), word) for word in text.split())
    return " ".join(filter(None, words))


def _iso(day: re.Match[str]) -> str:
    number = f"-{int(day[1]):02}" if day[1] else ""
    return f"{int(day[3]):04}-{_MONTHS[day[2]]:02}{number}"


GEDCOM = FileFormat(read_gedcom, versions.of("family trees", "records"), SMALL_RECORDS)
