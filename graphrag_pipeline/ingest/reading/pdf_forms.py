"""Values of the fields of a PDF form, which PDFium has apart from the page's text.

A field stands in the line of text at its height, after what is to its left; a checked box is ☒.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from ctypes import POINTER, byref, c_ushort, cast, create_string_buffer
from itertools import groupby, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.core.records import SEPARATOR
from graphrag_pipeline.ingest.reading.blocks import Block
from graphrag_pipeline.ingest.reading.cleaning import one_line
from graphrag_pipeline.ingest.reading.facts import outside
from graphrag_pipeline.ingest.reading.pdf_lines import LinePiece
from graphrag_pipeline.ingest.reading.pdf_rules import turned_back

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage

_CHECKED, _UNCHECKED = "☒", "☐"
_LINE = 10.0  # points: the height of a line in a field
_WIDTH = 0.5  # of its height: about as wide is a character
_MOST_FIELDS = 5_000  # of a page
_MOST_FACTS, _LONGEST_FACT = 500, 200  # of a document, and characters of one
_LONGEST = 1 << 20  # bytes of a field
_LABEL_ENDS = (":", "?", ".", "…", "_")


def with_fields(
    document: PdfDocument,
    page: PdfPage,
    pieces: Sequence[LinePiece],
    turns: int,
    filled: list[str],
) -> Sequence[LinePiece]:
    """Return the pieces of a page's lines with those of its form's fields that have a value.

    The form of the document has to be opened before the page is (``init_forms``). What is filled in
    is added to ``filled``, as lines of a label and a value.
    """
    fields = list(_fields(document, page, turns)) if document.formenv else []
    if not fields:
        return pieces
    lines = [list(line) for _, line in groupby(pieces, key=lambda piece: piece.line)]
    heights = sorted(((ln[0].bottom + ln[0].top) / 2, n) for n, ln in enumerate(lines))
    beside: dict[int, list[LinePiece]] = {}
    below: dict[int, list[LinePiece]] = {}
    for field in sorted(fields, key=lambda field: -field.top):
        # The lowest line that is not below the field: at its height, or above it.
        at = bisect_left(heights, (field.bottom, -1))
        middle, number = heights[at] if at < len(heights) else (field.top + 1, len(lines))
        (beside if middle <= field.top else below).setdefault(number, []).append(field)
    written: list[list[LinePiece]] = []
    for number in range(len(lines) + 1):
        line = lines[number] if number < len(lines) else []
        added = [_in_line(field, line) for field in beside.get(number, ())]
        labelled = _labelled(sorted([*line, *added], key=attrgetter("left"))) if added else line
        filled += _filled(labelled)
        written.append(labelled)
        written += ([field] for field in below.get(number, ()))
    return [p._replace(line=n) for n, line in enumerate(written) for p in line]


def _in_line(field: LinePiece, line: Sequence[LinePiece]) -> LinePiece:
    _, _, _, bottom, top, height, *_ = line[0]
    right = min(field.right, field.left + _WIDTH * height * len(field.text))
    return field._replace(right=right, bottom=bottom, top=top, height=height)


def _labelled(line: Sequence[LinePiece]) -> list[LinePiece]:
    """Return a line in which a colon stands between a label and what is filled in after it."""
    ends = [
        piece._replace(text=f"{piece.text}:")
        if after.line < 0 <= piece.line and not piece.text.endswith(_LABEL_ENDS)
        else piece
        for piece, after in pairwise(line)
    ]
    return [*ends, line[-1]]


def _filled(line: Sequence[LinePiece]) -> Iterator[str]:
    """Yield each label of a line that ends in a colon, with what is filled in after it."""
    for piece, after in pairwise(line):
        label = piece.text.removesuffix(":").strip()
        is_field = after.line < 0 <= piece.line and piece.text.endswith(":") and ":" not in label
        if is_field and label and after.text not in (_CHECKED, _UNCHECKED):
            yield f"{label}{SEPARATOR}{after.text}"


def with_facts(text: str, blocks: Sequence[Block], filled: Sequence[str]) -> list[Block]:
    """Return the blocks of a text and those of what is filled into its form: facts of its title."""
    facts: list[Block] = []
    at = 0
    for line in filled[:_MOST_FACTS]:
        start = text.find(line, at)
        if start >= 0 and len(line) <= _LONGEST_FACT:
            at = start + len(line)
            facts.append(Block(start, at, "fact"))
    return outside(blocks, facts)


def _fields(document: PdfDocument, page: PdfPage, turns: int) -> Iterator[LinePiece]:
    """Yield a piece for each field with a value, of line -1."""
    from pypdfium2 import raw

    for number in range(min(raw.FPDFPage_GetAnnotCount(page), _MOST_FIELDS)):
        annotation = raw.FPDFPage_GetAnnot(page, number)
        box = raw.FS_RECTF()
        if (
            raw.FPDFAnnot_GetSubtype(annotation) == raw.FPDF_ANNOT_WIDGET
            and (value := _value(document, annotation))
            and raw.FPDFAnnot_GetRect(annotation, byref(box))
        ):
            sides = (*sorted((box.left, box.right)), *sorted((box.bottom, box.top)))
            left, right, bottom, top = turned_back(sides, turns)
            height = min(top - bottom, _LINE)
            yield LinePiece(value, left, right, bottom, top, height, -1)
        raw.FPDFPage_CloseAnnot(annotation)


def _value(document: PdfDocument, annotation: Any) -> str:
    from pypdfium2 import raw

    form = document.formenv
    kind = raw.FPDFAnnot_GetFormFieldType(form, annotation)
    if kind in (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON):
        return _CHECKED if raw.FPDFAnnot_IsChecked(form, annotation) else _UNCHECKED
    if kind not in (
        raw.FPDF_FORMFIELD_TEXTFIELD,
        raw.FPDF_FORMFIELD_COMBOBOX,
        raw.FPDF_FORMFIELD_LISTBOX,
    ):
        return ""
    size = raw.FPDFAnnot_GetFormFieldValue(form, annotation, None, 0)
    if not 2 < size <= _LONGEST:
        return ""
    buffer = create_string_buffer(size)
    raw.FPDFAnnot_GetFormFieldValue(form, annotation, cast(buffer, POINTER(c_ushort)), size)
    return one_line(buffer.raw[: size - 2].decode("utf-16-le", "replace"))
