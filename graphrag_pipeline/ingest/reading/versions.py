"""The version of each reader: one that changes has only files of its formats read again.

``READER_VERSION`` (``ingest/documents.py``) stands for what all readers share.
"""

from __future__ import annotations

from collections.abc import Iterable

CODE_VERSION = "1"
HTML_VERSION = "2"
MAIL_VERSION = "1"
MARKDOWN_VERSION = "2"
NAMED_VERSION = "2"
"""Of files without an ending, known by their whole name."""
NOTEBOOK_VERSION = "1"
OFFICE_VERSION = "1"
PDF_VERSION = "1"
RECORDS_VERSION = "1"
RST_VERSION = "1"
KINDS = {"named": "files without an ending", "records": "tables and records"}
"""What the files of a reader are called, where its own name does not say it."""
_FIRST = "1"
"""A reader of this version is not named in versions: indexes made before it were told apart stay
valid."""

_CODE = {"code": CODE_VERSION}
_HTML = {"HTML": HTML_VERSION}
_MARKDOWN = {"Markdown": MARKDOWN_VERSION}
_OFFICE = {"office": OFFICE_VERSION}
_RECORDS = {"records": RECORDS_VERSION}
_BY_SUFFIX = {
    ".txt": {},
    **dict.fromkeys((".md", ".markdown"), _MARKDOWN),
    **dict.fromkeys((".html", ".htm"), _HTML),
    **dict.fromkeys((".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet"), _RECORDS),
    **dict.fromkeys((".xlsx", ".xlsm", ".ods"), _OFFICE | _RECORDS),
    **dict.fromkeys((".docx", ".pptx", ".odt", ".odp", ".epub"), _OFFICE | _HTML),
    **dict.fromkeys((".eml", ".mbox"), _HTML | {"mail": MAIL_VERSION}),
    ".pdf": {"PDF": PDF_VERSION},
    ".rst": _MARKDOWN | {"reStructuredText": RST_VERSION},
    ".ipynb": _MARKDOWN | {"notebook": NOTEBOOK_VERSION},
}


def reader_versions(endings: Iterable[str] | None = None) -> str:
    """Return the readers of files with these endings, or all, that have changed since the first.

    >>> reader_versions([".txt", ".md"])
    '-Markdown2'
    """
    if endings is None:
        readers = [*_BY_SUFFIX.values(), _CODE, {"named": NAMED_VERSION}]
    else:
        readers = [_readers(ending) for ending in set(endings)]
    changed = {kind: v for versions in readers for kind, v in versions.items() if v != _FIRST}
    return "".join(f"-{kind}{version}" for kind, version in sorted(changed.items()))


def _readers(suffix: str) -> dict[str, str]:
    return _BY_SUFFIX.get(suffix.lower(), _CODE if suffix else {"named": NAMED_VERSION})
