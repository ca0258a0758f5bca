"""The version of each reader: one that changes has only files of its formats read again.

``READER_VERSION`` (``ingest/documents.py``) stands for what all readers share.
"""

from __future__ import annotations

CODE_VERSION = "1"
HTML_VERSION = "2"
MAIL_VERSION = "2"
MARKDOWN_VERSION = "3"
NAMED_VERSION = "2"
"""Of files without an ending, known by their whole name."""
NOTEBOOK_VERSION = "1"
OFFICE_VERSION = "2"
PDF_VERSION = "1"
RECORDS_VERSION = "2"
RST_VERSION = "1"
FIRST = "1"
"""A reader of ours of this version is not named in versions: indexes made before they were told
apart stay valid."""
KINDS = {"named": "files without an ending", "records": "tables and records"}
"""What the files of a reader are called, where its own name does not say it."""

CODE = {"code": CODE_VERSION}
HTML = {"HTML": HTML_VERSION}
MAIL = {"mail": MAIL_VERSION}
MARKDOWN = {"Markdown": MARKDOWN_VERSION}
NAMED = {"named": NAMED_VERSION}
NOTEBOOK = {"notebook": NOTEBOOK_VERSION}
OFFICE = {"office": OFFICE_VERSION}
PDF = {"PDF": PDF_VERSION}
RECORDS = {"records": RECORDS_VERSION}
RST = {"reStructuredText": RST_VERSION}
