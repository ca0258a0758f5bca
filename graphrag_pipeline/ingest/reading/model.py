"""Input and output of reading a file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, overload

from graphrag_pipeline.core.text import without_page_id
from graphrag_pipeline.ingest.reading.blocks import Block, clean_blocks, clean_places
from graphrag_pipeline.ingest.reading.cleaning import clean_text, one_line

if TYPE_CHECKING:
    import polars as pl

Scalar = str | int | float | bool
"""A value that JSON holds as it is and a column of a table can hold too."""


@dataclass(frozen=True)
class ReadDocument:
    """One document found in a file.

    `key` is "" when the file is the document; in a file of records it is the record's id, or
    "row-<n>" (1-based; in jsonl the line number) where it has none, and unique in the file.
    `text` is never empty, has only "\\n" as newline and can be encoded as UTF-8. `blocks` are the
    spans of it that are no running prose, in order, none over another. `page_starts` are the first
    characters of its pages, in order; none where it has no pages.
    """

    key: str
    title: str
    text: str
    metadata: dict[str, Scalar] = field(default_factory=dict)
    blocks: tuple[Block, ...] = ()
    page_starts: tuple[int, ...] = ()


class DocumentTable(Sequence[ReadDocument]):
    """Many documents of one file, kept by column: objects of them are made when asked for.

    ``rows`` has ``key``, ``title``, ``text``, ``metadata`` (JSON, with its names in order), and
    the blocks as lists of equal length: ``starts``, ``ends`` and ``kinds``, null for none.
    """

    def __init__(self, rows: pl.DataFrame) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[ReadDocument]:
        for key, title, text, metadata, *spans in self.rows.iter_rows():
            blocks = tuple(map(Block, *(span or () for span in spans)))
            yield ReadDocument(key, title, text, json.loads(metadata), blocks)

    @overload
    def __getitem__(self, place: int) -> ReadDocument: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[ReadDocument]: ...
    def __getitem__(self, place: int | slice) -> ReadDocument | Sequence[ReadDocument]:
        if isinstance(place, slice):
            return [*DocumentTable(self.rows[place])]
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        return next(iter(DocumentTable(self.rows[place % len(self) :][:1])))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and [*self] == [*other]

    def __hash__(self) -> int:
        raise TypeError("a table of documents has no hash")


@dataclass(frozen=True)
class Quarantined:
    """A file (`key` is "") or one of its records that gave no document, and why."""

    key: str
    reason: str


@dataclass(frozen=True)
class ReadResult:
    """Everything one file gave."""

    documents: Sequence[ReadDocument]
    quarantined: list[Quarantined]

    def under(self, prefix: str) -> ReadResult:
        """Return what a part of a file gave, with its keys below a prefix that ends in a mark."""
        whole = prefix[:-1]
        return ReadResult(
            [replace(d, key=f"{prefix}{d.key}" if d.key else whole) for d in self.documents],
            [replace(q, key=f"{prefix}{q.key}" if q.key else whole) for q in self.quarantined],
        )


def joined(results: Sequence[ReadResult]) -> ReadResult:
    """Return what the parts of a file gave as one result."""
    return ReadResult(
        [document for read in results for document in read.documents],
        [refusal for read in results for refusal in read.quarantined],
    )


@dataclass(frozen=True)
class OcrOptions:
    """Options for scanned pages: tesseract's languages, the most seconds and pixels a page.

    `cache` is the folder in which the texts of recognised pages are kept.
    """

    cache: Path
    languages: str = "eng"
    seconds: float = 60.0
    most_pixels: int = 12_000_000


@dataclass(frozen=True)
class SlackDay:
    """A day of a channel: what the day is called, the channel, and names by ids in its export."""

    title: str
    channel: str
    names: Mapping[str, str]


@dataclass(frozen=True)
class ReadingOptions:
    """Options for reading files.

    Column names are compared without regard to case; of several, the first that is not empty in
    a record is used. `encoding` is the encoding of files without a byte-order mark; None detects
    it. Without `ocr` scanned pages have no text. `slack_day` is what lists beside the file say of
    it. Raises ValueError for an encoding that Python does not know.
    """

    max_file_bytes: int = 50_000_000
    text_columns: tuple[str, ...] = ("text", "content", "body")
    title_columns: tuple[str, ...] = ("title", "name", "headline")
    id_columns: tuple[str, ...] = ("id",)
    encoding: str | None = None
    ocr: OcrOptions | None = None
    slack_day: SlackDay | None = None

    def __post_init__(self) -> None:
        if self.encoding is not None:
            try:
                b"a".decode(self.encoding, "replace")
            except LookupError as error:
                message = f"encoding {self.encoding!r} is not known: use a name such as utf-8"
                raise ValueError(message) from error

    @property
    def allowed(self) -> str:
        """Return the message for more bytes than a file, and what comes out of it, may have."""
        return f"input.max_file_mb allows ({self.max_file_bytes / 1e6:g} MB)"


class Unreadable(Exception):
    """The file gives no document; the message is the reason shown to the user."""


Reader = Callable[[Path, bytes, ReadingOptions], ReadResult]
"""Reads the bytes of a file, of which only the name may be used; it may raise anything."""

SMALL = 1_000_000
"""Bytes of plain text, which take little more memory than they are."""
SMALL_RECORDS = 20_000
"""Bytes of records, where names are said again with each value."""


@dataclass(frozen=True)
class FileFormat:
    """A format of files and its reader; comes in by the door ``formats``.

    Parameters
    ----------
    read
        Makes documents of a file. It raises :class:`Unreadable` with the reason for what is none.
    versions
        The versions of what reads it, by what its files are called, such as ``{"subtitles": "1"}``.
        Raise one where the same bytes give other documents: only batches with files of this format
        are read again.
    safe_bytes
        Files up to so many bytes are read in the program's own process, as what they can become
        is bounded by their size. Others are read in a process with limits of memory and time, and
        all files unless this is given.
    holds_files
        Found in a file that holds others, which may be of any kind: it is read there in any case.
    """

    read: Reader
    versions: Mapping[str, str]
    safe_bytes: int = 0
    holds_files: re.Pattern[bytes] | None = None


def whole_document(
    path: Path,
    text: str,
    title: str = "",
    metadata: Mapping[str, Scalar] | None = None,
    blocks: Iterable[Block] = (),
    page_starts: Sequence[int] = (),
) -> ReadResult:
    """Return the one document that the file is; raises Unreadable if it has no text.

    `blocks` are in order, none over another; they and `page_starts` are in characters of `text` as
    it is given.
    """
    title = one_line(title) or readable_name(path)
    given = ReadDocument("", title, text, dict(metadata or {}), tuple(blocks), tuple(page_starts))
    result = clean_result(ReadResult([given], []))
    if not result.documents:
        raise Unreadable("the file holds no text")
    return result


def clean_result(result: ReadResult) -> ReadResult:
    """Return what a reader of another package gives as ours do: see :class:`ReadDocument`.

    Documents without text are left out. Raises TypeError for what is no result.
    """
    if not isinstance(result, ReadResult):
        raise TypeError(f"its reader returned {type(result).__name__}, not ReadResult")
    documents = []
    for document in result.documents:
        text, blocks = clean_blocks(document.text, document.blocks)
        pages = clean_places(document.text, document.page_starts)
        title, metadata = one_line(document.title), clean_metadata(document.metadata)
        if text:
            documents.append(ReadDocument(document.key, title, text, metadata, blocks, pages))
    return ReadResult(documents, result.quarantined)


def clean_metadata(metadata: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return the metadata with clean names and strings, without empty strings."""
    cleaned: dict[str, Scalar] = {}
    for name, value in metadata.items():
        clean_value = clean_text(value) if isinstance(value, str) else value
        if clean_value != "":
            cleaned[one_line(name) or "value"] = clean_value
    return cleaned


def convert_first(ending: str) -> str:
    """Return what is said of an older file of an office program: save it in a newer format."""
    return f"save it as {ending}, or: soffice --headless --convert-to {ending} FILE"


def readable_name(path: Path) -> str:
    """Return the file's stem as a title, without the id of a page of Notion.

    Of a page of Logseq that is below another one, "Quays___Quay 4", it is the last name.

    >>> readable_name(Path("annual_report-2023.txt"))
    'Annual report-2023'
    """
    spaced = without_page_id(path.stem).rpartition("___")[2].replace("_", " ")
    if " " not in spaced:
        spaced = spaced.replace("-", " ")
    name = one_line(spaced) or one_line(path.name) or "untitled"
    return name[0].upper() + name[1:] if name.islower() else name
