"""Tables that are drawn with characters in plain text, said again as those of Markdown.

Databases and reports draw them: columns under a rule of dashes, as ``---- ----`` or ``---+---``,
and grids of ``+----+``. Columns are where the rule has them; what does not keep to these is no row.
Frames of box characters are grids, too, and records of which a client of a database writes each
field on a line of its own, below ``-[ RECORD 1 ]-`` or ``*** 1. row ***``, are rows.
Under a rule of one piece, as invoices draw it, they are where the head has words, and without any
where figures end the rows below. What stands alone with an amount at the end of its line, as a
total does, is a field: ``Total: 4.50``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.ingest.reading.table_head import kind_of

Row = list[list[str]]
"""The lines of each cell."""

_RULE = pattern_of(r" *(?:-{2,}(?: +-{2,})+|={2,}(?: +={2,})+|-+(?:\+-+)+) *$")
_GROUP = pattern_of(r"-+|=+")
_WHOLE_RULE = pattern_of(r" *[-=_]{12,} *$")
_APART = pattern_of(r"\S+(?: \S+)*")
_AMOUNT = pattern_of(
    r"\s*+((?=(?:\d[\d.,]* ?%? )?[^\W\d_])\S+(?: \S+){0,6}?):?(?: {2,}|\t+| ?\.{4,} *)"
    r"((?:[A-Z]{3} ?|[$€£¥] ?)?-?\d+(?:[.,' ]\d{3})*[.,]\d\d-?(?: ?(?:[A-Z]{3}|[$€£¥]))?)\s*$"
)
_WORDS = word_lists("nlp_records.txt")
_BORDER = pattern_of(r" *\+(?:[-=]+\+)+ *$")
_BOXES = str.maketrans(
    {
        **dict.fromkeys("│┃║┆┊╎", "|"),
        **dict.fromkeys("─━═", "-"),
        **dict.fromkeys("┌┐└┘├┤┬┴┼┏┓┗┛┣┫┳┻╋┡┩┢┪╇╈╔╗╚╝╠╣╦╩╬╒╕╘╛╞╡╤╧╪╓╖╙╜╟╢╥╨╫╭╮╯╰", "+"),
    }
)
_IN_BOXES = pattern_of(r"\s*[│┃║┆┌┏╔╒╓╭├┣╠╞╟┡┢└┗╚╘╙╰]")
_RECORD = pattern_of(r"-\[ RECORD \d+ \]-*(?:\+-*)?|\*{9,} \d+\. row \*{9,}")
_FIELD = pattern_of(r" *([^\s|:](?:[^|:]*[^\s|:])?) *[|:] ?(.*)")
_TYPE = pattern_of(
    r"(?:u?(?:tiny|small|big|huge)?int(?:eger)?\d*|varchar|char|text|str|date|time|boolean|bool"
    r"|double|float\d*|[iu]\d+|f\d+|real|decimal|numeric|timestamp|datetime|blob|uuid|-{3})"
    r"(?:\(.*\)|\[.*\])?",
    re.I,
)
"""What DuckDB and Polars write below the names of columns."""
_MOST_HEAD = 3  # lines
_LONGEST = 10_000  # characters of a line
_ENDLESS = 1 << 30
_BORDERS_OF_DATABASES = 3
_APART_BY = " " * 3
_LEAST_COLUMNS = 3

_Span = tuple[int, int]


def with_tables(text: str) -> str:
    """Return a text in which its drawn tables are written as Markdown's; all else stays."""
    lines = text.split("\n")
    if max(map(len, lines)) > _LONGEST:
        return text
    if "│" in text or "┃" in text or "║" in text:
        lines = [line.translate(_BOXES) if _IN_BOXES.match(line) else line for line in lines]
    if any(map("".join(lines).__contains__, ("--", "==", "__", "**", _APART_BY))):
        lines = _drawn(lines)
    return "\n".join(_with_amounts(lines))


def _drawn(lines: list[str]) -> list[str]:
    written: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        if _BORDER.match(line):
            table, end = grid_rows(lines, at, by_line=True)
            table = [*_without_types(table)]
        elif _RECORD.fullmatch(line):
            table, end = _expanded(lines, at)
        elif _RULE.match(line):
            table, n_head, end = _ruled(lines, at, written)
            del written[len(written) - n_head :]
        elif _WHOLE_RULE.match(line) and (columns := _columns_of(written)):
            table, end = _aligned(lines, at, columns)
            del written[len(written) - bool(table) :]
        elif _APART_BY in line.strip() and (columns := _columns_of([line])):
            table, end = _aligned(lines, at, columns)
            if not all(any(map(str.isdigit, row[-1][0])) for row in table[1:]):
                table, end = [], at + 1
        else:
            table, end = [], at + 1
        written += _around(table, lines[end : end + 1]) if table else lines[at:end]
        at = end
    return written


def _with_amounts(lines: Sequence[str]) -> Iterator[str]:
    """Yield lines, those of some words and an amount at the end as fields, without rules below.

    Beside a row of more cells an amount is of one of its columns, unless the words are of a total.
    """
    match, is_beside = None, False
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if match and len(line) > 3 and not line.strip(" -=_"):
            continue
        match = _AMOUNT.match(line) if "  " in line or "\t" in line or "...." in line else None
        if match and (is_beside or _is_row(following)):
            is_total = not _WORDS["total"].isdisjoint(match[1].casefold().replace(":", "").split())
            match = match if is_total else None
        is_beside = match is None and _is_row(line)
        yield _field(match) if match else line


def _field(match: re.Match[str]) -> str:
    """Return words and their amount as a field, with a currency at the end of these before it."""
    words, _, last = match[1].rstrip(" .").rpartition(" ")
    is_unit = words and last.isalpha() and last.casefold() in _WORDS["unit"]
    return f"{words}: {last} {match[2]}" if is_unit else f"{words} {last}: {match[2]}".lstrip()


def _is_row(line: str) -> bool:
    return "  " in line.strip() and len(_APART.findall(line)) >= _LEAST_COLUMNS


def _columns_of(above: Sequence[str]) -> list[re.Match[str]]:
    """Return the cells of the line above, if they are several and name columns."""
    cells = list(_APART.finditer(above[-1])) if above else []
    is_head = len(cells) >= _LEAST_COLUMNS and all(kind_of(c[0]) in ("", "time") for c in cells)
    return cells if is_head and len("".join(c[0] for c in cells)) < len(above[-1]) else []


def _aligned(lines: Sequence[str], at: int, head: Sequence[re.Match[str]]) -> tuple[list[Row], int]:
    """Return the rows below a rule, each cell between the names beside its own, and their end."""
    edges = [(0, 0), *(cell.span() for cell in head), (_ENDLESS, _ENDLESS)]
    rows: list[Row] = []
    end = at + 1
    while end < len(lines):
        cells = list(_APART.finditer(lines[end]))
        around = zip(cells, edges, edges[2:], strict=False)
        is_row = len(cells) == len(head) and all(
            before[1] <= cell.start() and cell.end() <= after[0] for cell, before, after in around
        )
        if not is_row:
            break
        rows.append([[cell[0]] for cell in cells])
        end += 1
    if not rows:
        return [], at + 1
    end += end < len(lines) and bool(_WHOLE_RULE.match(lines[end]))
    return [[[cell[0]] for cell in head], *rows], end


def grid_rows(lines: Sequence[str], at: int, *, by_line: bool = False) -> tuple[list[Row], int]:
    """Return the rows of the grid that begins at a line, and the line after it.

    A border stands below each row; ``by_line``, if there is but one between head and end, as
    databases draw it, each line is a row.
    """
    depth = len(lines[at]) - len(lines[at].lstrip())
    marks = [place for place, sign in enumerate(lines[at].strip()) if sign == "+"]
    end = at
    while end < len(lines) and lines[end].strip().startswith(("+", "|")):
        end += 1
    drawn = [line[depth:].rstrip() for line in lines[at:end]]
    by_line &= sum(line.startswith("+") for line in drawn) == _BORDERS_OF_DATABASES
    rows: list[Row] = [[]]
    for number, line in enumerate(drawn):
        if line.startswith("+"):
            rows.append([])
            continue
        if by_line and number > 1 and rows[-1]:
            rows.append([])
        extend(rows[-1], _between(line, marks))
    return [row for row in rows if row], end


def _without_types(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the rows of a table without those that say the types of its columns below their names.

    Where these stand in one cell they are lines of it.
    """
    is_below = True
    for number, row in enumerate(rows):
        is_below &= all(parts and all(map(_TYPE.fullmatch, parts)) for parts in row) or not number
        if not number and all(len(parts) > 1 and _TYPE.fullmatch(parts[-1]) for parts in row):
            yield [parts[:1] for parts in row]
        elif not (number and is_below):
            yield row


def _expanded(lines: Sequence[str], at: int) -> tuple[list[Row], int]:
    """Return records of one field a line as rows of a table, and the line after them.

    A line that is no field goes on with the value above it.
    """
    records: list[dict[str, list[str]]] = []
    last: list[str] = []
    end = at
    while end < len(lines) and lines[end].strip():
        if _RECORD.fullmatch(lines[end]):
            records.append({})
        elif field := _FIELD.fullmatch(lines[end]):
            last = records[-1].setdefault(field[1], [])
            last.append(field[2].strip())
        elif records[-1] and lines[end].startswith(" "):
            last.append(lines[end].strip(" |+"))
        else:
            break
        end += 1
    names = list(dict.fromkeys(name for record in records for name in record))
    rows = [[record.get(name, []) for name in names] for record in records]
    return ([[[name] for name in names], *rows], end) if names else ([], at + 1)


def _between(line: str, marks: Sequence[int]) -> list[str]:
    """Return the cells of a line of a grid: where its border has them, if they are there."""
    if len(line) == marks[-1] + 1 and all(line[mark] == "|" for mark in marks):
        return [line[a + 1 : b] for a, b in pairwise(marks)]
    return line.strip("|").split("|")


def extend(row: Row, cells: Sequence[str]) -> None:
    """Add a further line of a row to its cells."""
    row.extend([] for _ in range(len(cells) - len(row)))
    for parts, cell in zip(row, cells, strict=False):
        if cell.strip():
            parts.append(cell.strip())


def table_lines(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table of Markdown, whose first row is its head."""
    for number, row in enumerate(rows):
        yield f"| {' | '.join(cell.replace('|', BAR) for cell in row)} |"
        if not number:
            yield f"|{'---|' * len(row)}"


BAR = r"\|"


def _around(rows: Sequence[Row], following: Sequence[str]) -> list[str]:
    cells = [[" ".join(parts) for parts in row] for row in rows]
    after = [""] * bool(following and following[0].strip())
    return ["", *table_lines(cells), *after]


def _ruled(lines: Sequence[str], at: int, above: Sequence[str]) -> tuple[list[Row], int, int]:
    """Return the rows of the table whose rule is a line, the lines of its head, and its end.

    Without a head or a row that keep to its columns it is none.
    """
    rule = lines[at]
    groups = [match.span() for match in _GROUP.finditer(rule)]
    ends = [start for start, _ in groups[1:]] + [_ENDLESS]
    columns = [(start, end) for (start, _), end in zip(groups, ends, strict=True)]
    bar = "|" * ("+" in rule)
    gaps = {(end, start): bar for (_, end), (start, _) in pairwise(groups)}
    columns[0] = (0, columns[0][1])
    n_head = 0
    while n_head < min(_MOST_HEAD, len(above)) and _keeps(above[-1 - n_head], gaps):
        n_head += 1
    head: Row = []
    for line in above[len(above) - n_head :]:
        extend(head, _cells(line, columns))
    end = at + 1
    rows: list[Row] = []
    while end < len(lines) and _keeps(lines[end], gaps):
        if not _RULE.match(lines[end]):
            row: Row = []
            extend(row, _cells(lines[end], columns))
            rows.append(row)
        end += 1
    is_headed = sum(map(bool, head)) == len(columns)
    if not is_headed or not any(sum(map(bool, row)) > 1 for row in rows):
        return [], 0, at + 1
    return [head, *rows], n_head, end


def _keeps(line: str, gaps: Mapping[_Span, str]) -> bool:
    """Whether a line has what the rule has between the columns: blanks, or bars."""
    return bool(line.strip()) and all(line[a:b].strip(" +") == bar for (a, b), bar in gaps.items())


def _cells(line: str, columns: Sequence[_Span]) -> list[str]:
    return [line[start:end].strip(" |") for start, end in columns]
