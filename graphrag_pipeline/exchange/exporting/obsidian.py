"""The index as a vault of Obsidian: a note for each entity, report and document, linked.

Texts of documents and models are inert in it: they make no links, tags, code or HTML.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.exchange.exporting.writing import Exporter, Writer

_ENTITIES = """
WITH ends AS (
    SELECT source_id AS entity_id, target_id AS other_id, type, description, weight
    FROM relationships
    UNION ALL SELECT target_id, source_id, type, description, weight FROM relationships),
related AS (
    SELECT entity_id, list([other_id, r.type, r.description] ORDER BY weight DESC, title) AS ends
    FROM ends r JOIN entities e ON e.id = other_id GROUP BY entity_id),
sources AS (
    SELECT entity_id, list(DISTINCT document_id) AS documents
    FROM entity_chunks JOIN chunks ON chunks.id = chunk_id GROUP BY entity_id),
reported AS (
    SELECT entity_id, arg_max(r.id, (m.level, r.id)) AS report_id
    FROM community_members m JOIN community_reports r USING (community_id) GROUP BY entity_id)
SELECT id, title, type, degree, description, report_id, ends, documents
FROM entities LEFT JOIN related ON related.entity_id = id
LEFT JOIN sources ON sources.entity_id = id LEFT JOIN reported ON reported.entity_id = id
ORDER BY human_readable_id
"""
_REPORTS = """
WITH members AS (
    SELECT community_id, list(entity_id ORDER BY degree DESC, title) AS entities FROM (
        SELECT DISTINCT community_id, entity_id FROM community_members) m
    JOIN entities e ON e.id = m.entity_id GROUP BY community_id)
SELECT id, title, r.level, rating, summary,
       list_transform(findings, lambda f: [f.summary, f.explanation]), entities
FROM community_reports r LEFT JOIN members USING (community_id) ORDER BY r.level, id
"""
_DOCUMENTS = """
WITH named AS (
    SELECT document_id, list(entity_id ORDER BY degree DESC, title) AS entities FROM (
        SELECT DISTINCT document_id, entity_id
        FROM entity_chunks JOIN chunks ON chunks.id = chunk_id) m
    JOIN entities e ON e.id = m.entity_id GROUP BY document_id)
SELECT id, title, uri, text, entities
FROM documents LEFT JOIN named ON named.document_id = id ORDER BY human_readable_id
"""
_TITLES = {
    "entity": "SELECT id, title FROM entities ORDER BY human_readable_id",
    "report": "SELECT id, title FROM community_reports ORDER BY level, id",
    "document": "SELECT id, title FROM documents ORDER BY human_readable_id",
}
_UNSEEN = pattern_of("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
_NOT_IN_NAMES = pattern_of(r'[\\/:*?"<>|#^\[\]%\s]+')
_RESERVED = pattern_of(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?", re.I)
_LONGEST_NAME = 120  # bytes of UTF-8
_MARKUP = pattern_of(r"[\[\]<`~#*_$%=|\\^]")
_BATCH = 500
Note = tuple[str, str]
"""The name of a note, without its ending, and its text."""


class _Names(NamedTuple):
    """The names of notes, and the titles they stand for, by kind and id."""

    names: dict[tuple[str, str], str]
    titles: dict[tuple[str, str], str]

    def link(self, kind: str, key: str) -> str:
        name, title = self.names[kind, key], _link_words(self.titles[kind, key])
        return f"[[{name}]]" if title in ("", name) else f"[[{name}|{title}]]"

    def links(self, kind: str, keys: Sequence[str] | None) -> str:
        linked = (key for key in keys or () if (kind, key) in self.names)
        return "".join(f"- {self.link(kind, key)}\n" for key in linked)


def write_obsidian(writer: Writer) -> None:
    """Write three folders of notes, each with a name of its own in the whole vault."""
    names = _name_notes(writer)
    for folder, notes in (
        ("entities", partial(_entities, writer, names)),
        ("reports", partial(_reports, writer, names)),
        ("documents", partial(_documents, writer, names)),
    ):
        writer.notes(folder, notes())


def _name_notes(writer: Writer) -> _Names:
    names: dict[tuple[str, str], str] = {}
    titles: dict[tuple[str, str], str] = {}
    taken: set[str] = set()
    for kind, query in _TITLES.items():
        for key, title in writer.con.execute(query).fetchall():
            titles[kind, key] = title or ""
            names[kind, key] = _free_name(title or "", kind, taken)
    return _Names(names, titles)


def _free_name(title: str, kind: str, taken: set[str]) -> str:
    """Return a name that every file system takes and none has yet, and take it."""
    base = _NOT_IN_NAMES.sub(" ", unicodedata.normalize("NFC", _UNSEEN.sub("", title)))
    base = base.strip(" .") or kind
    base = base.encode()[:_LONGEST_NAME].decode(errors="ignore").strip(" .")
    base = f"{kind} {base}" if _RESERVED.fullmatch(base) else base
    name, number = base, 1
    while _as_compared(name) in taken:
        number += 1
        name = f"{base} ({kind})" if number == 2 else f"{base} ({kind} {number - 1})"
    taken.add(_as_compared(name))
    return name


def _as_compared(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKC", name).casefold())


def _entities(writer: Writer, names: _Names) -> Iterator[Note]:
    for key, title, kind, degree, description, report, ends, documents in _rows(writer, _ENTITIES):
        community = names.link("report", report) if report else ""
        matter = {"title": title, "type": kind, "degree": degree, "community": community}
        matter["link"] = _link(writer, "entities", key)
        related = "".join(
            f"- {names.link('entity', other)}{_relation(label, said)}\n"
            for other, label, said in ends or ()
        )
        sources = sorted(documents or (), key=lambda each: names.names["document", each])
        yield (
            names.names["entity", key],
            _front_matter(matter)
            + _inert(description)
            + _section("Relationships", related)
            + _section("Sources", names.links("document", sources)),
        )


def _reports(writer: Writer, names: _Names) -> Iterator[Note]:
    for key, title, level, rating, summary, findings, entities in _rows(writer, _REPORTS):
        matter = {"title": title, "level": level, "rating": rating}
        matter["link"] = _link(writer, "reports", key)
        said = "".join(_section(_line(head), f"{_inert(body)}\n") for head, body in findings or ())
        yield (
            names.names["report", key],
            _front_matter(matter)
            + _inert(summary)
            + said
            + _section("Entities", names.links("entity", entities)),
        )


def _documents(writer: Writer, names: _Names) -> Iterator[Note]:
    for key, title, uri, text, entities in _rows(writer, _DOCUMENTS):
        yield (
            names.names["document", key],
            _front_matter({"title": title, "uri": uri, "link": _link(writer, "documents", key)})
            + _section("Entities", names.links("entity", entities)).lstrip()
            + _section("Text", f"{_inert(text)}\n"),
        )


def _link(writer: Writer, kind: str, key: str) -> str | None:
    return writer.links and writer.links.of(kind, key)


def _rows(writer: Writer, query: str) -> Iterator[tuple]:
    rows = writer.con.execute(query)
    while batch := rows.fetchmany(_BATCH):
        yield from batch


def _relation(label: str | None, said: str | None) -> str:
    label, said = _line(label), _line(said)
    return f" ({label})" * bool(label) + f": {said}" * bool(said)


def _front_matter(values: dict[str, object]) -> str:
    lines = (
        f"{name}: {json.dumps(_UNSEEN.sub('', v) if isinstance(v, str) else v, ensure_ascii=False)}"
        for name, v in values.items()
        if v not in (None, "")
    )
    return "---\n" + "\n".join(lines) + "\n---\n\n"


def _section(head: str, body: str) -> str:
    return f"\n\n## {head}\n\n{body.rstrip()}" if body.strip() else ""


def _inert(text: str | None) -> str:
    """Return a text of a document or a model as Markdown shows it, whatever it holds."""
    escaped = _MARKUP.sub(r"\\\g<0>", _UNSEEN.sub("", text or ""))
    return "\n".join(line.strip() for line in escaped.split("\n")).strip()


def _line(text: str | None) -> str:
    return " ".join(_inert(text).split())


def _link_words(title: str) -> str:
    return " ".join(re.sub(r"[\[\]|\\<`#^]", " ", _UNSEEN.sub(" ", title)).split())


OBSIDIAN = Exporter(
    "obsidian",
    "open {path} as a vault in Obsidian",
    folder=write_obsidian,
    lost=("claims", "spans and vectors", "weights of relationships"),
)
