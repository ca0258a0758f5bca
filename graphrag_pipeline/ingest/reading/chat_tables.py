"""Chats that are exported as tables: rows of who, when and a message, as of Teams or Discord."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.ingest.reading.chat_logs import chat_in_lines
from graphrag_pipeline.ingest.reading.cleaning import one_line
from graphrag_pipeline.ingest.reading.model import ReadResult, readable_name, whole_document

_WORDS = word_lists("nlp_records.txt")
_TIMES = ("chat_when", "chat_hour")
_LATER = pattern_of(r"(?<=\d)T(?=\d)|(?<=:\d\d)(?:\.\d+)?(?:Z| ?[+-]\d\d:?\d\d| UTC)$")
_NO_LETTER = pattern_of(r"[\W\d_]")


def chat_in_rows(
    path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, object]]
) -> ReadResult | None:
    """Return the conversation that rows of a table are, if all of its columns are those of one.

    Who wrote is *From*, or what is written a *Message*, or has *Reactions*: a table of authors and
    texts is no chat.
    """
    named: dict[str, str] = {}
    for column in columns:
        bare = _NO_LETTER.sub("", column.lower())
        kind = next((each for each in _KINDS if bare in _WORDS[each]), None)
        if kind is None:
            return None
        named.setdefault(kind, column)
    is_message = not named.keys().isdisjoint(("chat_message", "chat_sender", "chat_mark"))
    who, said = (
        next((named[kind] for kind in kinds if kind in named), "") for kinds in (_SENDERS, _SAID)
    )
    when = [named[kind] for kind in _TIMES if kind in named]
    if not (is_message and who and said and when):
        return None
    cells = [[row.get(each) or "" for each in (who, said, *when)] for row in rows]
    parts = [[cell for cell in row if isinstance(cell, str)] for row in cells]
    if [*map(len, parts)] != [*map(len, cells)]:
        return None
    lines = [
        f"[{_LATER.sub(' ', ' '.join(times)).strip()}] {one_line(by)}: {words}"
        for by, words, *times in parts
        if words
    ]
    chat = chat_in_lines("\n".join(lines))
    return whole_document(path, chat[0], readable_name(path), chat[1]) if chat else None


_SENDERS, _SAID = ("chat_sender", "chat_author"), ("chat_message", "chat_text")
_KINDS = (*_SENDERS, *_SAID, *_TIMES, "chat_mark", "chat_beside")
