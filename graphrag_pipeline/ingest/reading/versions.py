"""The version of each reader: one that changes has only files of its formats read again.

``READER_VERSION`` (``ingest/documents.py``) stands for what all readers share.
"""

from __future__ import annotations

from importlib.util import find_spec

BIBLIOGRAPHIES_VERSION = "3"
"""The second is the first of readers that came later: before, files of their endings were refused,
and so they are read again."""
CALENDARS_VERSION = "4"
CODE_VERSION = "1"
CONFIGS_VERSION = "2"
HTML_VERSION = "6"
LATEX_VERSION = "3"
MAIL_VERSION = "6"
MARKDOWN_VERSION = "5"
NAMED_VERSION = "3"
"""Of files without an ending, known by their whole name."""
NOTEBOOK_VERSION = "1"
OFFICE_VERSION = "6"
OUTLINES_VERSION = "3"
OUTLOOK_VERSION = "2"
PACKED_VERSION = "2"
PDF_VERSION = "2"
PLAIN_VERSION = "5"
RECORDS_VERSION = "12"
RST_VERSION = "3"
RTF_VERSION = "2"
SUBTITLES_VERSION = "2"
TEXT_VERSION = "5"
"""Of `.txt` alone, which once stood for what all readers share."""
WEB_ARCHIVES_VERSION = "2"
XLS_VERSION = "3"
XML_VERSION = "3"
FIRST = "1"
"""A reader of ours of this version is not named in versions: indexes made before they were told
apart stay valid."""


def _with_library(module: str, version: str) -> str:
    """Return the version of a reader that needs a library: without it nothing is read yet."""
    return version if find_spec(module) else FIRST


KINDS = {
    "bibliographies": "bibliographies",
    "calendars": "calendars and contacts",
    "configs": "YAML and TOML files",
    "named": "files without an ending",
    "outlines": "AsciiDoc and Org files",
    "packed": "packed files",
    "plain": "plain text and logs",
    "records": "tables and records",
    "subtitles": "subtitles",
    "text": "plain text files",
    "web archives": "saved web pages",
}
"""What the files of a reader are called, where its own name does not say it."""

BIBLIOGRAPHIES = {"bibliographies": BIBLIOGRAPHIES_VERSION}
CALENDARS = {"calendars": CALENDARS_VERSION}
CODE = {"code": CODE_VERSION}
CONFIGS = {"configs": CONFIGS_VERSION}
HTML = {"HTML": HTML_VERSION}
LATEX = {"LaTeX": LATEX_VERSION}
MAIL = {"mail": MAIL_VERSION}
MARKDOWN = {"Markdown": MARKDOWN_VERSION}
NAMED = {"named": NAMED_VERSION}
NOTEBOOK = {"notebook": NOTEBOOK_VERSION}
OFFICE = {"office": OFFICE_VERSION}
OUTLINES = {"outlines": OUTLINES_VERSION}
OUTLOOK = {"Outlook": _with_library("oxmsg", OUTLOOK_VERSION)}
PACKED = {"packed": PACKED_VERSION}
PDF = {"PDF": PDF_VERSION}
PLAIN = {"plain": PLAIN_VERSION}
RECORDS = {"records": RECORDS_VERSION}
RST = {"reStructuredText": RST_VERSION}
RTF = {"RTF": _with_library("striprtf", RTF_VERSION)}
SUBTITLES = {"subtitles": SUBTITLES_VERSION}
TEXT = {"text": TEXT_VERSION}
WEB_ARCHIVES = {"web archives": WEB_ARCHIVES_VERSION}
XLS = {"XLS": _with_library("xlrd", XLS_VERSION)}
XML = {"XML": XML_VERSION}
WITHIN = {
    **(
        TEXT
        | PLAIN
        | SUBTITLES
        | LATEX
        | OUTLINES
        | HTML
        | MARKDOWN
        | RST
        | NOTEBOOK
        | CODE
        | NAMED
    ),
    **(CONFIGS | XML | BIBLIOGRAPHIES | CALENDARS | WEB_ARCHIVES | RECORDS),
    **(MAIL | OFFICE | PDF | PACKED | OUTLOOK | RTF | XLS),
}
"""Of all kinds that a file within another may be: attached to mail, or packed."""
