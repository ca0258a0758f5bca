"""The version of each reader: one that changes has only files of its formats read again.

``READER_VERSION`` (``ingest/documents.py``) stands for what all readers share.
"""

from __future__ import annotations

from importlib.util import find_spec

FIRST = "1"
"""A reader of ours of this version is not named in versions: indexes made before they were told
apart stay valid. Of readers that came later the second is the first: before, files of their endings
were refused, and so they are read again."""
VERSIONS = {
    "bank statements": "2",
    "bibliographies": "3",
    "calendars": "7",
    "catalogues": "2",
    "chat pages": "2",
    "code": "1",
    "components": "2",
    "configs": "5",
    "family trees": "2",
    "graphs": "2",
    "HTML": "17",
    "LaTeX": "7",
    "mail": "11",
    "manual pages": "4",
    "maps": "3",
    "Markdown": "14",
    "named": "18",  # files without an ending, known by their whole name
    "notebook": "2",
    "office": "19",
    "outlines": "8",
    "Outlook": "3",
    "packed": "2",
    "PDF": "12",
    "plain": "21",
    "records": "32",
    "references": "2",
    "reStructuredText": "8",
    "RTF": "6",
    "subtitles": "2",
    "text": "21",  # of .txt alone, which once stood for what all readers share
    "web archives": "2",
    "wikis": "4",
    "XLS": "7",
    "XML": "13",
}
"""The version of the reader of each kind of files."""
_LIBRARIES = {"Outlook": "oxmsg", "RTF": "striprtf", "XLS": "xlrd"}

KINDS = {
    "bank statements": "statements of banks",
    "bibliographies": "bibliographies",
    "calendars": "calendars and contacts",
    "catalogues": "catalogues of translations",
    "chat pages": "web pages",
    "components": "components of Vue and Svelte",
    "configs": "YAML and TOML files",
    "family trees": "family trees",
    "graphs": "graphs of Graphviz",
    "maps": "places and tracks of maps",
    "named": "files without an ending",
    "outlines": "AsciiDoc and Org files",
    "packed": "packed files",
    "plain": "plain text and logs",
    "records": "tables and records",
    "references": "bibliographies in RIS",
    "subtitles": "subtitles",
    "text": "plain text files",
    "web archives": "saved web pages",
    "wikis": "pages of wikis",
}
"""What the files of a reader are called, where its own name does not say it."""


def of(*kinds: str) -> dict[str, str]:
    """Return the versions of the readers of some kinds of files.

    Of a reader that needs a library it is the first without that: nothing is read yet.
    """
    lacking = {kind for kind, module in _LIBRARIES.items() if not find_spec(module)}
    return {kind: FIRST if kind in lacking else VERSIONS[kind] for kind in kinds}


WITHIN = of(*VERSIONS)
"""Of all kinds that a file within another may be: attached to mail, or packed."""
