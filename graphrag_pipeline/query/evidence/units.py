"""Units of evidence: a sentence, a row of a table, an item or line of a record, a line of code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.query.evidence.sentences import Sentence
from graphrag_pipeline.query.memory.rows_in_memory import KeptRows

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

ROW, ITEM, OPTION, DEFINITION = "row", "item", "option", "definition"
"""Kinds beside those of blocks: a row of a table, an item of a record's list, what an option of a
command does, what defines a name of code that is asked for."""
FACT, FIELD, KEY, VALUE, TITLE = "fact", "field", "key", "value", "title"
LINES = frozenset((FIELD, KEY, VALUE))
TOLD_BY_FIELD = LINES | {ROW, ITEM}
OF_RECORDS = TOLD_BY_FIELD | {FACT}
HEADING = pattern_of(r"^#{1,6} +(.*)$", re.MULTILINE)
"""A line that is a heading."""
CELL_END = "; "
"""What stands between the cells of a row that is told with its heads."""

# More than a document has characters: places in several documents, one after the other.
_FAR = 2**40
_BLOCKS = """
SELECT document_id, start_char, end_char, kind FROM blocks ORDER BY document_id, start_char
"""
BLOCKS_OF = f"""
SELECT * FROM ({_BLOCKS})
SEMI JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS document_id) USING (document_id)
ORDER BY document_id, start_char
"""


@dataclass(slots=True)
class Unit:
    """A part of a text that may answer by itself, its kind, and what it says.

    The kind is that of the block in which it begins, "" of prose, or one of those above. ``line``
    is what it says, of a row of a table with the heads of its cells; ``shown`` that as an answer
    shows it, with the title of its record; ``said`` that without who speaks it; ``told`` that with
    the words of the question that it stands for, by which it is compared with the question.
    ``gain`` is 1 where the question asks for its field, -1 where it is beyond what is asked for;
    ``section`` the share of the question that is the heading above it.
    """

    sentence: Sentence
    kind: str = ""
    line: str = ""
    shown: str = ""
    said: str = ""
    told: str = ""
    gain: int = 0
    section: float = 0.0

    @property
    def row(self) -> dict[str, Any]:
        """The chunk that it is read in, with its document's title and uri."""
        return self.sentence.window.row

    @property
    def title(self) -> str:
        """The title of its document."""
        return self.row["title"]

    @property
    def document_id(self) -> str:
        """Its document."""
        return self.sentence.document_id

    @property
    def record(self) -> str:
        """Its document, where it is a line of a record; else ""."""
        is_of_record = self.kind in LINES or self.kind in (FACT, TITLE, ITEM)
        return self.document_id if is_of_record else ""


def units_of(index: Release, sentences: Sequence[Sentence]) -> list[Unit]:
    """Return sentences with the kinds of the blocks in which they begin, if any."""
    import numpy as np

    units = [Unit(sentence) for sentence in sentences]
    if not index.has_rows("blocks"):
        return units
    place_of: dict[str, int] = {}
    own = [place_of.setdefault(unit.document_id, len(place_of)) for unit in units]
    blocks = index.held(_BLOCKS)
    if blocks is None:
        blocks = KeptRows(index.columns(BLOCKS_OF, ids=list(place_of)))
    rows, documents = blocks.having("document_id", place_of)
    begins = documents * _FAR + blocks.values("start_char")[rows]
    ends = documents * _FAR + blocks.values("end_char")[rows]
    starts = [sentence.start for sentence in sentences]
    at = np.array(own, np.int64) * _FAR + np.array(starts, np.int64)
    before = np.searchsorted(begins, at, "right") - 1
    inside = np.flatnonzero((before >= 0) & (at < np.append(ends, 0)[before]))
    names = blocks.texts("kind")
    for place, row in zip(inside.tolist(), rows[before[inside]].tolist(), strict=True):
        units[place].kind = names[row]
    return units
