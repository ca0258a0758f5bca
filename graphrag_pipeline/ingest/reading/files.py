"""The reader's front door: a path in, documents or a reason out."""

from __future__ import annotations

import csv
import re
import stat
from pathlib import Path

from graphrag_pipeline.core.doors import PartError
from graphrag_pipeline.core.errors import is_interrupt
from graphrag_pipeline.core.hardening.memory import as_out_of_memory, memory_is_short
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.broken_words import with_whole_words
from graphrag_pipeline.ingest.reading.chat_logs import as_chat, chat_in_lines
from graphrag_pipeline.ingest.reading.cleaning import clean_text, one_line, with_newlines
from graphrag_pipeline.ingest.reading.code import CODE_BY_NAME, CODE_NAMES, CODE_SUFFIXES
from graphrag_pipeline.ingest.reading.decoding import decode
from graphrag_pipeline.ingest.reading.facts import with_facts, with_fields_apart
from graphrag_pipeline.ingest.reading.formats import FORMATS, format_of, supported_suffixes
from graphrag_pipeline.ingest.reading.head_fields import head_fields, take_title
from graphrag_pipeline.ingest.reading.irc_logs import irc_messages
from graphrag_pipeline.ingest.reading.line_blocks import line_blocks
from graphrag_pipeline.ingest.reading.markdown_markup import without_files
from graphrag_pipeline.ingest.reading.model import (
    SMALL,
    FileFormat,
    Quarantined,
    ReadingOptions,
    ReadResult,
    Unreadable,
    clean_result,
    convert_first,
    readable_name,
    whole_document,
)
from graphrag_pipeline.ingest.reading.table_head import LOOKED_AT, head_of
from graphrag_pipeline.ingest.reading.text_tables import with_tables
from graphrag_pipeline.store.sources import ending_of

_CONVERTED = {".doc": "docx", ".ppt": "pptx", ".pps": "pptx"}
"""Older formats of office programs that no library under a free licence is kept to read."""
_LOG = ".log"
"""Lines of programs begin as those of chats do."""
_BEGINS_MAIL = rb"From [^\r\n]{3,300}\d\d:\d\d:\d\d[^\r\n]{0,100}\r?\n(?:>?From |[!-9;-~]+:)"
_MAILBOX = pattern_of(_BEGINS_MAIL)
"""Archives of mailing lists are mailboxes, whatever they are called."""
_DOKUWIKI = pattern_of(rb"\s*={5,6} [^=\r\n]{1,300} ={5,6}\s*\n")
"""Pages of DokuWiki are kept as plain text."""
_HOLDS_FILES = pattern_of(
    rb"\A" + _BEGINS_MAIL + rb".*?(?:name[*\d]{0,4}\s{0,9}=|base64)", re.I | re.S
)
_LOOKED_AT, _FEWEST_TABS, _FEWEST_ROWS = 2_000, 2, 3
_NOT_READ = "are not read, only"
_OUT_OF_MEMORY = "there is not enough memory to read the file"


def _read_text(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    if _MAILBOX.match(data) and (mailbox := FORMATS.find("mbox")):
        return mailbox.read(path, data, options)
    if _DOKUWIKI.match(data) and (dokuwiki := FORMATS.find("dokuwiki")):
        return dokuwiki.read(path, data, options)
    written = with_newlines(decode(data, options.encoding))
    title = readable_name(path)
    chat = chat_in_lines(written) if path.suffix.lower() != _LOG else None
    if chat := (as_chat(irc_messages(written, path.stem)) or chat):
        return whole_document(path, chat[0], title, chat[1], line_blocks(chat[0], markdown=False))
    if path.suffix.lower() != _LOG:
        if _is_tabbed(written) and (table := FORMATS.find("tsv")):
            return table.read(path.with_suffix(".tsv"), data, options)
        written = with_whole_words(written)
    text = with_tables(without_files(clean_text(written)))
    metadata = head_fields(text)
    title = take_title(metadata, path) or title
    text, blocks = with_facts(with_fields_apart(text), title, markdown=False)
    return whole_document(path, text, title, metadata, blocks)


def _is_tabbed(text: str) -> bool:
    """Whether a text is a table as Excel saves it as text: columns with names, a tab between."""
    if text.count("\t", 0, _LOOKED_AT) < _FEWEST_TABS * _FEWEST_ROWS:
        return False
    lines = text.rstrip("\n").split("\n")
    rows = list(csv.reader(lines, delimiter="\t"))
    is_even = len(rows) >= _FEWEST_ROWS and {*map(len, rows)} == {len(rows[0])}
    if not is_even or len(rows[0]) <= _FEWEST_TABS or not all(map(str.strip, rows[0])):
        return False
    return bool(head_of(rows[:LOOKED_AT]).names)


TEXT = FileFormat(_read_text, versions.of("text"), SMALL, _HOLDS_FILES)
PLAIN = FileFormat(_read_text, versions.of("plain"), SMALL, _HOLDS_FILES)
_TEXT_BY_NAME = FileFormat(_read_text, versions.of("named"), SMALL)
_NAMES_OF_TEXT = (
    *("inbox", "sent", "drafts", "archives"),  # of Thunderbird, which are mailboxes
    *("readme", "news", "changes", "changelog", "history", "todo", "install", "authors", "faq"),
    *("license", "licence", "copying", "copyright", "notice", "thanks", "credits", "bugs", "notes"),
    *("contributors", "maintainers", "contributing", "hacking", "releases", "minutes", "agenda"),
    *("gpl", "lgpl", "agpl", "gfdl", "apache", "mpl", "bsd", "mit", "artistic", "cc0", "unlicense"),
    *("syslog", "messages", "dmesg", "kern", "auth"),
)
_NAMED: dict[str, FileFormat] = {
    **dict.fromkeys(_NAMES_OF_TEXT, _TEXT_BY_NAME),
    **dict.fromkeys(CODE_NAMES, CODE_BY_NAME),
}
"""Formats of files without an ending, by their names in lower case."""


def read_file(path: Path, options: ReadingOptions, *, data: bytes | None = None) -> ReadResult:
    """Read one file into clean documents.

    `data`, when given, are the file's bytes, and the disk is not touched. Never raises for the
    file's content or for what the operating system says about it: the result then holds the
    reason, with the key "" when it concerns the whole file. What is raised is want of memory, where
    other work would get none either: a file that asks for too much is at fault itself.
    """
    try:
        format_ = _format(path)
        if data is None:
            data = _bytes_on_disk(path, options)
        _require_size(len(data), options)
        if not data.strip():
            raise Unreadable("the file is empty" if not data else "the file is only white space")
        result = format_.read(path, data, options)
        is_own = not path.suffix or path.suffix.lower()[1:] in FORMATS.own
        return result if is_own else clean_result(result)
    except Unreadable as error:
        return refused(str(error))
    except MemoryError:
        if memory_is_short():
            raise
        return refused(_OUT_OF_MEMORY)
    except Exception as error:  # whatever a parser makes of untrusted bytes is the file's fault
        if is_interrupt(error) or (memory_is_short() and as_out_of_memory(error)):
            raise
        kind = path.suffix.lower().lstrip(".")
        details = one_line(f"{type(error).__name__}: {error}"[:300])
        return refused(f"the file could not be read as {kind} ({details})")


def is_out_of_memory(result: ReadResult) -> bool:
    """Whether a file was refused because there was no memory left to read it."""
    return [refusal.reason for refusal in result.quarantined] == [_OUT_OF_MEMORY]


def is_of_other_kind(reason: str) -> bool:
    """Whether a file was refused for its kind alone: nothing is wrong with it."""
    return reason.startswith("files with") and f" {_NOT_READ} " in reason


def refused(reason: str) -> ReadResult:
    """Return that a whole file was not read, and why."""
    return ReadResult([], [Quarantined("", reason)])


def _format(path: Path) -> FileFormat:
    suffix = ending_of(path.name)
    try:
        format_ = format_of(suffix) if suffix else _named(path.name.lower())
    except PartError as error:
        raise Unreadable(one_line(str(error))) from None
    if format_ is None and (convert := _CONVERTED.get(suffix.lower())):
        raise Unreadable(convert_first(convert))
    if format_ is None:
        raise of_other_kind(suffix)
    return format_


def of_other_kind(suffix: str) -> Unreadable:
    """Return the reason that files with an ending are refused for: see `is_of_other_kind`."""
    extensions = " ".join(sorted(supported_suffixes() - CODE_SUFFIXES))
    kind = f"with suffix {one_line(suffix.lower())!r}" if suffix else "without a suffix"
    return Unreadable(f"files {kind} {_NOT_READ} {extensions} and source code")


def _named(name: str) -> FileFormat | None:
    """Return how a file without an ending is read: README, and README-fr, too; GPL-3."""
    by_word = _TEXT_BY_NAME if re.split("[-_ ]", name)[0] in _NAMES_OF_TEXT else None
    return _NAMED.get(name, by_word)


def _bytes_on_disk(path: Path, options: ReadingOptions) -> bytes:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable("it is not a regular file")
        _require_size(status.st_size, options)
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise Unreadable(why_not_opened(error)) from None


def why_not_opened(error: OSError | ValueError) -> str:
    """Return in words why the operating system gave no bytes of a file."""
    if isinstance(error, FileNotFoundError):
        return "the file is no longer there"
    if isinstance(error, PermissionError):
        return "permission to read the file was denied"
    reason = getattr(error, "strerror", None) or error
    return f"the file could not be read from disk ({reason})"


def too_large(size: int, options: ReadingOptions) -> str:
    """Return what is said of a file of too many bytes."""
    return f"the file has {size:,} bytes, more than {options.allowed}"


def _require_size(size: int, options: ReadingOptions) -> None:
    if size > options.max_file_bytes:
        raise Unreadable(too_large(size, options))
