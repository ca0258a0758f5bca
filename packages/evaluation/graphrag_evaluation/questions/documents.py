"""The document that an entry of a data set asks about, and its text where the entry has it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from graphrag_evaluation.questions.fields import (
    Entry,
    UnreadableEntryError,
    clean,
    list_of,
    object_of,
)
from graphrag_evaluation.questions.natural_questions import page_of, title_of

_FIRST = "entry 1"
_UNSAFE = re.compile(r"[^\w.() -]+")
_LONGEST = 120


def document_of(format: str, entry: Entry, file: Path, place: str) -> str:
    """Return what the questions of an entry are about; empty where they are about no document.

    An entry of QMSum or NovelQA does not say: it is called as its file is, and a further meeting of
    one file by the file and its number.
    """
    if format == "nq":
        return title_of(entry)
    if format == "squality":
        metadata = object_of(entry.get("metadata") or {}, "metadata")
        return clean(metadata.get("passage_id") or metadata.get("uid"))
    if format in ("novelqa", "novelqa-generative"):
        return clean(entry.get("Book") or entry.get("BID")) or _stem(file)
    if format == "narrativeqa":
        document = entry.get("document")
        own = document.get("id") if isinstance(document, Mapping) else entry.get("document_id")
        return clean(own)
    if format == "ultradomain":
        return clean(entry.get("context_id") or entry.get("_id"))
    if format == "qmsum":
        number = place.rpartition(" ")[2]
        own = clean(entry.get("meeting_id") or entry.get("id"))
        return own or (_stem(file) if place == _FIRST else f"{_stem(file)}-{number}")
    return ""


def text_and_name(format: str, entry: Entry, file: Path, place: str) -> tuple[str, str]:
    """Return the name of the document that an entry holds, and its text.

    Raises UnreadableEntryError where it holds none.
    """
    name, text = document_of(format, entry, file, place), ""
    if format == "nq":
        name, text = page_of(entry)
    elif format == "squality":
        text = str(entry.get("document") or "")
    elif format == "ultradomain":
        text = str(entry.get("context") or "")
    elif format == "narrativeqa" and isinstance(document := entry.get("document"), Mapping):
        summary = object_of(document.get("summary") or {}, "summary")
        text = str(document.get("text") or summary.get("text") or "")
    elif format == "qmsum":
        turns = [object_of(turn, "meeting_transcripts") for turn in _turns(entry)]
        lines = (f"{clean(turn.get('speaker'))}: {clean(turn.get('content'))}" for turn in turns)
        text = "\n".join(lines)
    if not name or not text.strip():
        raise UnreadableEntryError(
            "it holds no document: those of nq, qmsum, squality, narrativeqa (as objects) and "
            "ultradomain do"
        )
    return name, text.encode("utf-8", "replace").decode()


def file_name(name: str) -> str:
    """Return a name as that of a file in one folder, whatever stands in it.

    >>> file_name("../etc/passwd"), file_name("The Daily Show (U.S.)")
    ('_etc_passwd', 'The Daily Show (U.S.)')
    """
    return _UNSAFE.sub("_", name).lstrip(".")[:_LONGEST].strip() or "_"


def _turns(entry: Entry) -> list[object]:
    return list_of(entry, "meeting_transcripts")


def _stem(file: Path) -> str:
    return file.name.partition(".")[0]
