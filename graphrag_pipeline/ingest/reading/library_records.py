"""Entries of libraries and reference managers (CSL JSON, MARCXML) with the fields of BibTeX."""

from __future__ import annotations

from collections.abc import Mapping

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.word_lists import word_pairs
from graphrag_pipeline.ingest.reading.cleaning import one_line
from graphrag_pipeline.ingest.reading.xml_tree import XmlElement, elements_of, text_of

_CSL = word_pairs("fields.txt", "csl")
_MARC = word_pairs("fields.txt", "marc")
_SEVERAL = ("author", "keywords", "isbn")
_FINAL = pattern_of(r"[\s/:;,]+$|(?<=[^\W\d_]{3})\.$|(?<=\d)\.$")


def csl_entries(value: object) -> list[object] | None:
    """Return the entries of a bibliography in CSL JSON as records; None for anything else."""
    items = value if isinstance(value, list) else []
    if not items or not all(map(_is_csl, items)):
        return None
    return [{_CSL.get(name, name): _of_csl(item) for name, item in each.items()} for each in items]


def _is_csl(item: object) -> bool:
    if not isinstance(item, Mapping) or not isinstance(item.get("type"), str):
        return False
    issued = item.get("issued")
    is_dated = isinstance(issued, Mapping) and "date-parts" in issued
    return "title" in item and (is_dated or _people(item.get("author")) is not None)


def _of_csl(value: object) -> object:
    if isinstance(value, Mapping) and isinstance(dates := value.get("date-parts"), list):
        days = ("-".join(f"{p:>02}" for p in day if p) for day in dates if isinstance(day, list))
        return "/".join(filter(None, days))
    people = _people(value)
    return value if people is None else ", ".join(people)


def _people(value: object) -> list[str] | None:
    """Return names, given name first; None for what is no list of people."""
    if not isinstance(value, list) or not value or not all(isinstance(p, Mapping) for p in value):
        return None
    parts = ("given", "dropping-particle", "non-dropping-particle", "family", "suffix", "literal")
    names = [one_line(" ".join(str(p[part]) for part in parts if p.get(part))) for p in value]
    return names if all(names) else None


def marc_entries(root: XmlElement) -> list[Mapping[str, str]] | None:
    """Return the records of MARCXML; None for other XML."""
    records = [root] if root.name == "record" else elements_of(root)
    if not records or not all(map(_is_marc, records)):
        return None
    return [_of_marc(record) for record in records]


def _is_marc(element: XmlElement) -> bool:
    names = {each.name for each in elements_of(element)}
    return element.name == "record" and "datafield" in names


def _of_marc(record: XmlElement) -> Mapping[str, str]:
    fields: dict[str, list[str]] = {}
    for field in elements_of(record):
        tag = field.attributes.get("tag", "")
        if tag == "001":
            fields["id"] = [one_line(text_of(field))]
        for part in elements_of(field):
            name = _MARC.get(tag + part.attributes.get("code", ""))
            said = _FINAL.sub("", one_line(text_of(part)))
            if name and said and (name in _SEVERAL or name not in fields):
                is_person = name == "author" and tag != "110"
                fields.setdefault(name, []).append(_given_first(said) if is_person else said)
    return {name: ", ".join(dict.fromkeys(said)) for name, said in fields.items()}


def _given_first(name: str) -> str:
    return " ".join(reversed([part.strip() for part in name.split(",", 1)]))
