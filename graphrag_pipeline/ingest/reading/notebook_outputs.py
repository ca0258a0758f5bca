"""Results of a notebook's cells as Markdown: tables, lines that were printed, values.

Pictures, warnings and tracebacks say nothing of what the notebook is about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.records import SEPARATOR
from graphrag_pipeline.ingest.reading.html import parse_html
from graphrag_pipeline.ingest.reading.text_tables import table_lines

_MOST = 20_000  # characters of what a cell printed
_MOST_LINES = 12
_LONGEST_VALUE = 200
_NAMED = pattern_of(r"[A-Za-z_][\w.\[\]'\"]{0,60}(?:\(\))?")
_NUMBERED_ROW = pattern_of(r"\|[ \t]*(?:\d{1,9}|-{3})?[ \t]*(?=\|)")
_CELLS = pattern_of(r"[ \t]{2,}")
_OF_SERIES = pattern_of(r"(?:Name: ([^\n,]{1,100}), |Length: \d+, )?(?:Length: \d+, )?dtype: \w+$")
_IS_MARKUP = pattern_of(r"\s*(?:[#<`=>*|{\[-]|\d+[.)] )")
_LOOKS_OF_OBJECT = pattern_of(r"<[^\n]{0,300}>$|[\w.]{1,80}\([^\n]{0,300}\)$")


def outputs_of(outputs: Any, source: str) -> Iterator[str]:
    """Yield what the outputs of a cell of code say; ``source`` is its code."""
    for output in outputs if isinstance(outputs, list) else ():
        if not isinstance(output, dict):
            continue
        kind, data = output.get("output_type"), output.get("data", output)
        if kind == "stream" and (output.get("name") or output.get("stream")) != "stderr":
            yield _printed(_text(output.get("text")))
        elif kind in ("execute_result", "display_data", "pyout") and isinstance(data, dict):
            yield _result(data, source)


def _result(data: dict[str, Any], source: str) -> str:
    """Return a result in the form that says most: Markdown, a table, or its text."""
    markdown = _text(data.get("text/markdown"))
    markup = _text(data.get("text/html", data.get("html")))
    plain = _text(data.get("text/plain", data.get("text"))).strip("\n")
    if markdown:
        return markdown
    if "<table" in markup and (table := _of_html(markup)):
        return table
    last = source.rstrip().rpartition("\n")[2]
    if _LOOKS_OF_OBJECT.match(plain):
        return ""
    if "\n" not in plain and _NAMED.fullmatch(last) and plain[:_LONGEST_VALUE] == plain:
        return f"{last}{SEPARATOR}{plain}" if plain else ""
    return _printed(plain)


def _of_html(markup: str) -> str:
    """Return what markup says, a table without the numbers that pandas gives its rows."""
    lines = [line for line in parse_html(markup).text.split("\n") if line.strip()]
    is_numbered = len(lines) > 1 and all(map(_NUMBERED_ROW.match, lines))
    return "\n".join(_NUMBERED_ROW.sub("", line, 1) if is_numbered else line for line in lines)


def _printed(text: str) -> str:
    """Return lines as they were last seen where one was written over, as of a bar of progress."""
    lines = [line.rpartition("\r")[2].rstrip() for line in text[:_MOST].rstrip().split("\n")]
    if table := _table(lines):
        return "\n".join(table_lines(table))
    written = "\n".join(lines).strip("\n")
    is_prose = len(lines) <= _MOST_LINES and not any(map(_IS_MARKUP.match, lines))
    return written if is_prose or not written else f"```\n{written.replace('```', '')}\n```"


def _table(lines: Sequence[str]) -> list[list[str]]:
    """Return the rows of a printed table of pandas, the head first; none where it is no such."""
    rows = [_CELLS.split(line.strip()) for line in lines]
    if len(lines) > 1 and lines[0][:1].isspace():
        body = rows[1:]
        if all(len(row) == len(rows[0]) + 1 for row in body):
            is_numbered = [row[0] for row in body] == list(map(str, range(len(body))))
            return [rows[0], *(row[1:] for row in body)] if is_numbered else [["", *rows[0]], *body]
    about = _OF_SERIES.match(lines[-1])
    if about and len(rows) > 1:
        head = rows[0] if len(rows[0]) == 1 else [""]
        body = rows[len(rows[0]) == 1 : -1]
        if body and all(len(row) == 2 for row in body):
            return [[*head, about[1] or "value"], *body]
    return []


def _text(value: Any) -> str:
    lines = value if isinstance(value, list) else [value]
    return "".join(line for line in lines if isinstance(line, str))
