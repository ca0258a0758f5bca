"""Chunks with some of the document around them, and the sentences in them with their places."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.prose import LETTERED
from graphrag_pipeline.extraction.rules.sentences import sentence_spans
from graphrag_pipeline.query.evidence.announcements import CAPTION, MESSAGE, OPTION, announcements
from graphrag_pipeline.query.operators.chunks import chunk_records, document_texts
from graphrag_pipeline.query.results import Citation

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

_CONTEXT_CHARS = 400
_NEIGHBOUR_CHARS = 250
_LONGEST_SENTENCE = 600
_WINDOWS_REMEMBERED = 1024
_REST = rf".{{0,{_LONGEST_SENTENCE - 1}}}"
_NUMBER = pattern_of(r"\(?\d{1,3}\.")
_ITEM_NUMBER = pattern_of(rf"\(?(?:\d{{1,3}}[.)]|{LETTERED})\s+")
_PIECE = pattern_of(rf"\S(?:{_REST}(?=\s|$)|{_REST})", re.DOTALL)

# A chunk with some of the document around it, so that sentences at its edges are whole.
_WINDOWS = """
SELECT c.id, c.document_id, d.title, d.uri, c.start_char, c.end_char, d.n_chars,
       greatest(c.start_char - $around, 0) AS window_start,
       substr(d.text, greatest(c.start_char - $around, 0) + 1,
              c.end_char + $around - greatest(c.start_char - $around, 0)) AS text
FROM (SELECT unnest($ids::JSON::VARCHAR[]) AS id,
             generate_subscripts($ids::JSON::VARCHAR[], 1) AS place)
JOIN chunks c USING (id) JOIN documents d ON d.id = c.document_id ORDER BY place
"""


class Sentence(NamedTuple):
    """A sentence of a chunk, and what it announces: the rank of the chunk, and the places around.

    ``last`` is the place of the last sentence that it announces, its own where there is none;
    ``first`` is its own text, ``quote`` that with what it announces. ``is_marked`` says that a mark
    or a list tells what is announced. ``leans`` says whether it cannot be understood without the
    one before.
    """

    rank: int
    window: Window
    place: int
    last: int
    start: int
    end: int
    first: str
    quote: str
    is_marked: bool = False
    leans: bool = False

    @property
    def announces(self) -> bool:
        """Whether what follows belongs to it."""
        return self.last > self.place

    @property
    def read_as(self) -> str:
        """The text that tells prose from code: of a line alone, what it announces."""
        if not self.announces or self.is_marked:
            return self.first
        return self.window.text(*self.window.whole[self.place + 1])

    @property
    def announced(self) -> str:
        """All that it announces."""
        return self.window.text(self.window.whole[self.place + 1][0], self.end)

    @property
    def unnumbered(self) -> str:
        """Its quote, of an item of a list without its number."""
        return without_item_number(self.quote)

    @property
    def is_option(self) -> bool:
        """Whether it says what an option of a command does."""
        return OPTION.match(self.first) is not None and len(self.first.split()) > 1

    def part(self, start: int, end: int) -> Sentence:
        """Return what stands between two places of its window, which announces nothing."""
        text = self.window.text(start, end)
        return self._replace(last=self.place, start=start, end=end, first=text, quote=text)

    @property
    def citation(self) -> Citation:
        """A citation of its place, not numbered."""
        return self.window.cite(self.start, self.end)

    @property
    def document_id(self) -> str:
        """The document that it is in."""
        return self.window.row["document_id"]

    @property
    def chunk_id(self) -> str:
        """The chunk that it is read in."""
        return self.window.row["id"]


@dataclass(frozen=True)
class Window:
    """A chunk and some of the document around it; spans are characters of the document.

    ``whole`` are the spans of the sentences that the window does not cut, by place among all.
    """

    row: dict[str, Any]
    whole: Mapping[int, tuple[int, int]]

    def text(self, start: int, end: int) -> str:
        """Return the text between two places of the document."""
        offset = self.row["window_start"]
        return self.row["text"][start - offset : end - offset]

    def said_by(self, start: int) -> str:
        """Return when and by whom a message is that began before a place in it; else ""."""
        offset = self.row["window_start"]
        begun = deque(MESSAGE.finditer(self.row["text"], 0, start - offset), maxlen=1)
        return begun[0][0] if begun and not MESSAGE.match(self.row["text"], start - offset) else ""

    def holds(self, start: int, end: int) -> bool:
        """Whether the text between two places is in the window."""
        return self.row["window_start"] <= start and end <= self.end

    def line_start(self, start: int) -> int:
        """Return where the line begins that a place is in, or the window."""
        offset = self.row["window_start"]
        return offset + self.row["text"].rfind("\n", 0, max(start - offset, 0)) + 1

    @property
    def end(self) -> int:
        """The place in the document that it ends at."""
        return self.row["window_start"] + len(self.row["text"])

    def next_end(self, end: int) -> int:
        """Return where the sentence after a place ends, if its paragraph or message goes on."""
        following = next((span for span in self.whole.values() if span[0] >= end), None)
        if following is None or "\n\n" in self.text(end, following[0]):
            return 0
        text = self.text(*following)
        if MESSAGE.match(text) or OPTION.match(text):
            return 0
        return following[1]

    def cite(self, start: int, end: int) -> Citation:
        """Return a citation of the text between two places, not numbered."""
        return Citation(
            number=0,
            document_id=self.row["document_id"],
            document_title=self.row["title"],
            uri=self.row["uri"],
            chunk_id=self.row["id"],
            start_char=start,
            end_char=end,
            text=self.text(start, end),
        )


def without_item_number(text: str) -> str:
    """Return a text without the number of a list with which it begins.

    >>> without_item_number("5. Do volunteer work."), without_item_number("5 years")
    ('Do volunteer work.', '5 years')
    """
    number = _ITEM_NUMBER.match(text)
    return text[number.end() :] if number else text


def sentences_of(index: Release, chunks: Sequence[str], context: int = 0) -> Iterator[Sentence]:
    """Yield sentences with the rank of their chunk, each once, whole across a chunk's edges."""
    ends_of: dict[str, set[int]] = {}
    around = _CONTEXT_CHARS + context * _NEIGHBOUR_CHARS
    for rank, row in enumerate(_windows(index, chunks, around)):
        whole, within = _read_window(
            row["text"], row["window_start"], row["n_chars"], row["start_char"], row["end_char"]
        )
        window = Window(row, whole)
        ends = ends_of.setdefault(row["document_id"], set())
        for place, last, start, end, is_marked in within:
            if end not in ends:
                ends.add(end)
                stop = whole[last][1] if last > place else end
                first = window.text(start, end)
                quote = first if stop == end else window.text(start, stop)
                yield Sentence(rank, window, place, last, start, stop, first, quote, is_marked)


def _windows(index: Release, chunks: Sequence[str], around: int) -> Iterator[dict[str, Any]]:
    """Yield chunks, each with so many characters of its document around it as ``text``."""
    records = chunk_records(index, dict.fromkeys(chunks, 1.0))
    ids = dict.fromkeys(record.attributes["document_id"] for record in records)
    texts = document_texts(index, ids)
    if texts is None:
        yield from index.rows(_WINDOWS, ids=list(chunks), around=around)
        return
    for record in records:
        text = texts[record.attributes["document_id"]]
        start = max(0, record.attributes["start_char"] - around)
        yield {
            **record.attributes,
            "id": record.id,
            "title": record.title,
            "n_chars": len(text),
            "window_start": start,
            "text": text[start : record.attributes["end_char"] + around],
        }


@lru_cache(_WINDOWS_REMEMBERED)
def _read_window(
    text: str, offset: int, n_chars: int, chunk_start: int, chunk_end: int
) -> tuple[Mapping[int, tuple[int, int]], Sequence[tuple[int, int, int, int, bool]]]:
    """Return a window's whole sentences, and (place, last, start, end, is_marked) of the chunk's.

    The window begins at ``offset`` of a document of ``n_chars``. The sentences that touch the chunk
    are cut only if they are far longer than it. Some chunks come with many questions.
    """
    cut_end = offset + len(text) if offset + len(text) < n_chars else -1
    whole: dict[int, tuple[int, int]] = {}
    own: list[tuple[int, int, int]] = []
    spans = _short_spans(text)
    for place, (start, end) in enumerate(spans):
        begin, stop = offset + start, offset + end
        if (begin > offset or offset == 0) and stop != cut_end:
            whole[place] = (begin, stop)
        if begin == offset > 0:
            begin = max(begin, chunk_start)
        if stop == cut_end:
            stop = min(stop, chunk_end)
        if max(begin, chunk_start) < min(stop, chunk_end):
            own.append((place, begin, stop))
    announced = announcements(text, spans)
    within: list[tuple[int, int, int, int, bool]] = []
    for place, begin, stop in own:
        last, is_marked = announced.get(place, (place, False))
        last = last if place in whole and last in whole else place
        within.append((place, last, begin, stop, is_marked))
    return whole, within


def _short_spans(text: str) -> Sequence[tuple[int, int]]:
    """Return the spans of sentences, long ones in pieces, items of lists with their numbers."""
    spans: list[tuple[int, int]] = []
    number = -1
    for begin, end in sentence_spans(text):
        if _NUMBER.fullmatch(text, begin, end) or CAPTION.fullmatch(text, begin, end):
            number = begin
            continue
        start = number if number >= 0 and "\n" not in text[number:begin] else begin
        number = -1
        if end - start <= _LONGEST_SENTENCE:
            spans.append((start, end))
        else:
            spans += (match.span() for match in _PIECE.finditer(text, start, end))
    return spans
