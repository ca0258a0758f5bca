"""SQL: source code, and of a dump the rows that it loads as records of its tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.cleaning import one_line, with_newlines
from graphrag_pipeline.ingest.reading.code import code_blocks, read_code
from graphrag_pipeline.ingest.reading.decoding import decode
from graphrag_pipeline.ingest.reading.model import (
    SMALL_RECORDS,
    FileFormat,
    ReadingOptions,
    ReadResult,
    joined,
    whole_document,
)
from graphrag_pipeline.ingest.reading.records import read_records

_NAME = (
    r"""(?:[`"\[]?\w{1,80}[`"\]]?\.)?"""
    r"""(?:[`"\[](?P<quoted>[^`"\[\]\n]{1,80})[`"\]]|(?P<bare>\w{1,80}))"""
)
_STATEMENT = pattern_of(
    r"^[ \t]{0,9}(?:(?P<create>CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?)|(?P<copy>COPY\s+)"
    r"|(?:INSERT|REPLACE)\s+(?:IGNORE\s+|OR\s+\w{1,9}\s+)?(?:INTO\s+)?)"
    rf"{_NAME}\s*(?(create)\(|(?:\((?P<columns>[^()]{{1,9999}})\)\s*)?"
    r"(?(copy)FROM\s+stdin[^;\n]{0,99};[ \t]*\r?\n|VALUES\s*))",
    re.IGNORECASE | re.MULTILINE,
)
_OF_MYSQL = pattern_of("MySQL|MariaDB")
_NO_COLUMN = pattern_of(
    r"(?:PRIMARY|UNIQUE|FOREIGN|CONSTRAINT|KEY|INDEX|CHECK|FULLTEXT|SPATIAL|EXCLUDE|LIKE)\b",
    re.IGNORECASE,
)
_COLUMN = pattern_of(rf"(?:\s|--[^\n]*+)*+{_NAME}")
_PART = pattern_of(r"'[^']*'|\"[^\"]*\"|`[^`]*`|--[^\n]*|[(),]")


def _values(plain_text: str) -> re.Pattern[str]:
    """Return the pattern of a value; ``plain_text`` is that of what stands between quotes.

    SQLite wraps a text of several lines in calls, SQL Server a date. Bytes are no text.
    """
    return re.compile(
        r"\s*(?:(?P<cast>CAST\()|(?P<unistr>unistr\()|(?P<replace>replace\(){0,2})"
        rf"(?:E'(?P<escaped>(?:[^'\\]|''|\\.)*+)'|(?:N|_\w{{1,20}}\s?)?'(?P<said>{plain_text})'"
        r"|(?P<plain>[-+]?\d[\d.]*+(?:E[-+]?\d+)?(?!\w)|TRUE|FALSE)"
        r"|NULL|0x[\dA-F]*+|[XB]'[\dA-F]*+')"
        r"(?(cast)\s+AS\s+\w{1,20}(?:\([\d, ]{1,9}\))?\)"
        r"|(?(unistr)\)|(?(replace)(?:,'\\[nr]',char\(1[03]\)\)){1,2}|)))\s*(?P<end>[,)])",
        re.IGNORECASE | re.DOTALL,
    )


_STANDARD, _ESCAPED = _values(r"(?:[^']|'')*+"), _values(r"(?:[^'\\]|''|\\.)*+")
_OPEN, _NEXT = pattern_of(r"\s*\("), pattern_of(r"\s*([,;]|\Z)|[ \t]*\r?\n|\s*ON\s+CONFLICT[^;]*;")
_LETTER = pattern_of(r"\\(.)", re.DOTALL)
_LETTERS = {"n": "\n", "r": "", "t": "\t", "b": "", "f": "", "v": "", "0": "", "Z": ""}
_CODE_POINT = pattern_of(r"\\u([0-9a-f]{4})", re.IGNORECASE)

_Rows = list[dict[str, object]]


def read_sql(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read the rows of a dump as records of their tables, and what else it has as source code.

    They stand in ``INSERT ... VALUES``, or below ``COPY ... FROM stdin``. Rows whose columns nobody
    names, in the statement or above it where the table is created, and those that are reckoned stay
    code.
    """
    text = with_newlines(decode(data, options.encoding))
    dump = _Dump(text)
    if not dump.tables:
        return read_code(path, data, options)
    read = [
        read_records(Path(f"{table}.sql"), rows, options).under(f"{table}!")
        for table, rows in dump.tables.items()
    ]
    if dump.rest.strip():
        blocks = code_blocks(dump.rest, "sql")
        code = whole_document(path, dump.rest, path.name, {"language": "SQL"}, blocks)
        read.append(code.under("schema!"))
    return joined(read)


class _Dump:
    """The rows of each table of a dump, and what else stands in it. Nothing is looked at twice."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.tables: dict[str, _Rows] = {}
        self._columns: dict[str, list[str]] = {}
        self._is_escaped = bool(_OF_MYSQL.search(text, 0, 999))
        rest, begin = list[str](), 0
        while statement := _STATEMENT.search(text, self.at):
            self.at = statement.end()
            if self._is_read(statement):
                rest.append(text[begin : statement.start()])
                begin = self.at
        self.rest = "".join((*rest, text[begin:]))

    def _is_read(self, statement: re.Match[str]) -> bool:
        """Take in a statement, and say whether all that it holds is rows of a table."""
        self._is_escaped |= "`" in statement[0]
        table = _called(statement)
        if statement["create"]:
            self._columns[table] = self._created()
            return False
        listed = statement["columns"]
        names = self._columns.get(table, [])
        if listed:
            names = [name.strip().strip('`"[]') for name in listed.split(",")]
        rows = self._copied(names) if statement["copy"] else self._inserted(names)
        if rows:
            self.tables.setdefault(table, []).extend(rows)
        return bool(rows)

    def _created(self) -> list[str]:
        """Return the columns of a table that is created, in their order."""
        names, depth, begin = list[str](), 1, self.at
        for part in _PART.finditer(self.text, self.at):
            self.at = part.end()
            depth += {"(": 1, ")": -1}.get(part[0], 0)
            if depth == 0 or (part[0] == "," and depth == 1):
                column = _COLUMN.match(self.text, begin, part.start())
                if column and not (column["bare"] and _NO_COLUMN.match(column["bare"])):
                    names.append(_called(column))
                begin = self.at
            if depth == 0:
                break
        return names

    def _copied(self, names: list[str]) -> _Rows:
        """Return the rows of lines with tabs, up to the one that ends them; none if one differs."""
        end = self.text.find("\n\\.", self.at - 1)
        end = len(self.text) if end < 0 else end
        lines = self.text[self.at : end].split("\n")
        self.at = min(end + len("\n\\.\n"), len(self.text))
        return _rows([list(map(_copied, line.split("\t"))) for line in lines if line], names)

    def _inserted(self, names: list[str]) -> _Rows:
        """Return the rows of a statement from its first one on; none if one cannot be read."""
        value = _ESCAPED if self._is_escaped else _STANDARD
        rows = list[list[object]]()
        while begin := _OPEN.match(self.text, self.at):
            self.at, row, cell = begin.end(), list[object](), None
            while cell := value.match(self.text, self.at):
                self.at = cell.end()
                row.append(_value(cell, is_escaped=self._is_escaped))
                if cell["end"] == ")":
                    break
            following = _NEXT.match(self.text, self.at)
            if not row or not cell or not following:
                return []
            rows.append(row)
            self.at = following.end()
            if following[1] != ",":
                return _rows(rows, names)
        return []


def _rows(rows: Sequence[list[object]], names: list[str]) -> _Rows:
    if any(len(row) != len(names) for row in rows):
        return []
    return [dict(zip(names, row, strict=True)) for row in rows]


def _called(match: re.Match[str]) -> str:
    return one_line(match["quoted"] or match["bare"])


def _copied(cell: str) -> object:
    return None if cell == r"\N" else _unescaped(cell)


def _value(cell: re.Match[str], *, is_escaped: bool) -> object:
    said = cell["escaped"] or cell["said"]
    if said is None:
        return cell["plain"]
    said = said.replace("''", "'")
    if cell["unistr"]:
        return _CODE_POINT.sub(lambda c: chr(int(c[1], 16)), said)
    return _unescaped(said) if is_escaped or cell["escaped"] or cell["replace"] else said


def _unescaped(text: str) -> str:
    return _LETTER.sub(lambda c: _LETTERS.get(c[1], c[1]), text) if "\\" in text else text


SQL = FileFormat(read_sql, versions.of("code", "records"), SMALL_RECORDS)
"""Dumps of databases in SQL: their rows are records, and the rest is code."""
