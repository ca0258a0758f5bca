"""Records as the text a model reads: one section per kind, one CSV row per record.

Documents are data: whatever stands in them, a row stays a row and a section a section.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

from graphrag_pipeline.query.results import Kind, Record

_SECTIONS: dict[Kind, tuple[str, str]] = {
    "report": ("Reports", "id,title,content"),
    "finding": ("Reports", "id,title,content"),
    "entity": ("Entities", "id,entity,description"),
    "relationship": ("Relationships", "id,relationship,description"),
    "claim": (
        "Claims",
        "id,entity,object,type,status,start_date,end_date,description",
    ),
    "summary": ("Summaries", "id,title,text"),
    "chunk": ("Sources", "id,title,text"),
}
"""The name of each kind's section, and its columns: number, title, attributes, text."""

_FORGED_SECTION = re.compile(r"^(\s*)-{5}", re.MULTILINE)


def render_context(records: Sequence[Record]) -> str:
    """Return the context of a retrieval, sections in the order Reports to Sources.

    The first column of a row is the number it is cited by, as in ``[Data: Sources (3)]``.
    """
    parts: list[str] = []
    for name in dict.fromkeys(section for section, _ in _SECTIONS.values()):
        rows = [r for r in records if section_of(r.kind) == name]
        if rows:
            parts += [render_header(rows[0].kind), *map(render_row, rows)]
    return "".join(parts)


def section_of(kind: Kind) -> str:
    """Return the name of the section that holds records of a kind, by which they are cited."""
    return _SECTIONS[kind][0]


def render_header(kind: Kind) -> str:
    """Return the lines that open the section of a kind."""
    name, columns = _SECTIONS[kind]
    return f"\n-----{name}-----\n{columns}\n"


def render_row(record: Record) -> str:
    """Return a record's row, its line end included."""
    named = _SECTIONS[record.kind][1].split(",")[2:-1]
    attributes = [str(record.attributes[name] or "") for name in named]
    line = io.StringIO()
    writer = csv.writer(line, lineterminator="\n")
    writer.writerow([record.number, *map(_plain, [record.title, *attributes, record.text])])
    return line.getvalue()


def _plain(text: str) -> str:
    unified = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").strip()
    return _FORGED_SECTION.sub(r"\1- ----", unified) if "-----" in unified else unified
