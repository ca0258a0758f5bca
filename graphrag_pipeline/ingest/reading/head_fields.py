"""The fields that a document begins with, one a line, as those of a proposal or a memo.

They say of the document what front matter says: its title, who wrote it, when, how it stands.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.ingest.reading.cleaning import one_line
from graphrag_pipeline.ingest.reading.model import Scalar

_FIELD = pattern_of(
    r"(?:[-*+] )?(\*\*|__|)([^\W\d_][\w-]{0,30}(?: [\w-]{1,30}){0,2})(?:\1:|:\1)(?:[ \t]+(\S.*))?"
)
_MOST_LINES, _LONGEST = 100, 1_000
_TITLES = word_lists("nlp_records.txt")["label"]
_OF_DOCUMENTS = word_lists("documents.txt")["head_field"]


def head_fields(text: str) -> dict[str, Scalar]:
    """Return the fields, by their names in lower case, what is a title in any language as "title".

    They are the lines up to the first blank one, two fields or more and nothing else, below the
    heading where there is one; else one of them is the title, the author or the like. A line that
    begins with more blanks goes on with the field above. Empty where a text has no such head.
    """
    lines = text[: _MOST_LINES * _LONGEST].lstrip("\n").split("\n", _MOST_LINES)
    first, is_below = 0, lines[0].startswith("# ")
    if is_below:
        first = next((n for n, line in enumerate(lines) if n and line.strip()), len(lines))
    end = next((n for n, line in enumerate(lines) if n > first and not line.strip()), 0)
    if not end or not any(line.strip() for line in lines[end:]):
        return {}
    fields: dict[str, str] = {}
    name = ""
    head = [line for line in lines[first:end] if not line.startswith("```")]
    for line in textwrap.dedent("\n".join(head)).split("\n"):
        field = _FIELD.fullmatch(line.rstrip())
        if field and field[2].lower() not in fields:
            name = field[2].lower()
            fields[name] = field[3] or ""
        elif name and line[0] in " \t":
            fields[name] = f"{fields[name]} {line.strip()}".strip()
        else:
            return {}
    title = next((name for name in ("title", *fields) if name in _TITLES & fields.keys()), "title")
    said: dict[str, Scalar] = {
        ("title" if n == title else n): value for n, value in fields.items() if value
    }
    is_head = len(said) > 1 and max(map(len, fields.values())) <= _LONGEST
    is_known = (
        is_below or "title" in said or any(n.replace(" ", "_") in _OF_DOCUMENTS for n in said)
    )
    return said if is_head and is_known else {}


def take_title(metadata: dict[str, Scalar], path: Path) -> str:
    """Take the title out of the fields of a document, and return it; "" if there is none.

    With the number of one of a series, where it comes first and the file is called by it.

    >>> take_title({"pep": 8, "title": "Style Guide"}, Path("pep-0008.rst"))
    'PEP 8: Style Guide'
    """
    name, number = map(str, next(iter(metadata.items()), ("", "")))
    title = one_line(str(metadata.pop("title", "")))
    called = rf"{re.escape(name)}[-_ ]?0*{re.escape(number)}"
    is_one = title and number.isdecimal() and re.fullmatch(called, path.stem, re.I)
    return f"{name.upper()} {number}: {title}" if is_one else title
