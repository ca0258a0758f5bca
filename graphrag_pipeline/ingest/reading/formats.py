"""The formats that are read, by the endings of files: a door."""

from __future__ import annotations

import re
from collections.abc import Iterable

from graphrag_pipeline.core.doors import Door, PartError, require_takes
from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.code import CODE_SUFFIXES
from graphrag_pipeline.ingest.reading.model import FileFormat

_ENDING = re.compile(r"[a-z0-9][a-z0-9_+-]*")
_KIND = re.compile(r"[A-Za-z][A-Za-z ]*")


def _check(ending: str, format_: FileFormat) -> None:
    if not _ENDING.fullmatch(ending):
        raise ConfigError("call it as the ending is written in small letters, without the dot")
    require_takes(format_.read, "path", "data", "options")
    is_sound = all(_KIND.fullmatch(kind) and v.isdigit() for kind, v in format_.versions.items())
    if not format_.versions or not is_sound:
        raise ConfigError('versions must be as {"subtitles": "1"}: words, and a whole number')


FORMATS: Door[FileFormat] = Door(
    "formats",
    FileFormat,
    "format",
    own={
        "txt": "files:TEXT",
        "text": "files:PLAIN",
        **dict.fromkeys(
            ("log", "out", "err", "weechatlog", "debian", "patch", "diff"), "files:PLAIN"
        ),
        **dict.fromkeys(("conf", "properties"), "files:PLAIN"),
        **dict.fromkeys(("ini", "cfg"), "configs:INI"),
        **dict.fromkeys(("md", "markdown", "mdx", "qmd", "rmd"), "markdown:MARKDOWN"),
        "html": "chat_pages:HTML",
        "htm": "chat_pages:HTML",
        "xhtml": "xml_text:XHTML",
        **dict.fromkeys(
            ("xml", "rss", "atom", "opml", "enex", "fb2", "svg", "plist"), "xml_text:XML"
        ),
        "mhtml": "mail:MHTML",
        "mht": "mail:MHTML",
        "srt": "subtitles:SUBTITLES",
        "vtt": "subtitles:SUBTITLES",
        "tex": "latex:LATEX",
        "adoc": "outlines:ASCIIDOC",
        "asciidoc": "outlines:ASCIIDOC",
        "org": "outlines:ORG",
        **dict.fromkeys(("wiki", "mediawiki"), "wikitext:WIKI"),
        "tid": "wikitext:TIDDLER",
        "yaml": "configs:YAML",
        "yml": "configs:YAML",
        "toml": "configs:TOML",
        **dict.fromkeys(("po", "pot"), "catalogues:CATALOGUE"),
        "bib": "bibtex:BIBTEX",
        "ris": "ris:RIS",
        "ged": "gedcom:GEDCOM",
        "sta": "bank_statements:MT940",
        "mt940": "bank_statements:MT940",
        "gpx": "map_places:MAP",
        "kml": "map_places:MAP",
        "ics": "calendars:CALENDAR",
        "vcf": "calendars:CONTACTS",
        **dict.fromkeys(("csv", "tsv", "tab", "psv"), "tables:CSV"),
        **dict.fromkeys(("json", "geojson", "jsonld"), "tables:JSON"),
        "jsonl": "tables:JSONL",
        "ndjson": "tables:JSONL",
        "parquet": "tables:PARQUET",
        "pdf": "pdf:PDF",
        "docx": "docx:DOCX",
        "docm": "docx:DOCX",
        "pptx": "pptx:PPTX",
        "pptm": "pptx:PPTX",
        "ppsx": "pptx:PPTX",
        "xlsx": "sheets:XLSX",
        "xlsm": "sheets:XLSX",
        "rtf": "rtf:RTF",
        "xls": "sheets:XLS",
        "odt": "opendocument:OPENDOCUMENT",
        "odp": "opendocument:OPENDOCUMENT",
        "ods": "opendocument:ODS",
        "fodt": "opendocument:OPENDOCUMENT",
        "fodp": "opendocument:OPENDOCUMENT",
        "fods": "opendocument:ODS",
        "epub": "epub:EPUB",
        "msg": "outlook:MSG",
        "eml": "mail:EML",
        **dict.fromkeys(("mbox", "mbx"), "mail:MBOX"),
        "emlx": "mail:EMLX",
        "zip": "packed:PACKED",
        "tar": "packed:PACKED",
        **dict.fromkeys(("gz", "tgz", "bz2", "tbz2", "xz", "txz"), "packed:PACKED"),
        **dict.fromkeys((*"0123456789", "man"), "manual_pages:MANUAL"),
        "rst": "rst:RST",
        "ipynb": "notebook:NOTEBOOK",
        **{suffix[1:]: "code:CODE" for suffix in sorted(CODE_SUFFIXES)},
        "js": "script_archives:SCRIPT",
        "dot": "code:GRAPHVIZ",
        "gv": "code:GRAPHVIZ",
        "sql": "sql_dumps:SQL",
    },
    beside=__name__,
    check=_check,
)
"""The formats, by the ending of a file in lower case and without its dot."""


def supported_suffixes() -> frozenset[str]:
    """Return the endings, lower case and with their dot, of the files that are read."""
    names = FORMATS.names()
    # No file's ending is called as one of these: it would be left out without a word.
    FORMATS.usable(name for name in names if not _ENDING.fullmatch(name))
    return frozenset(f".{ending}" for ending in names)


def format_of(suffix: str) -> FileFormat | None:
    """Return how files with an ending, given with its dot, are read; None if they are not.

    Raises PartError where the package that brings the format cannot be used.
    """
    return FORMATS.find(suffix.lower()[1:]) if suffix else None


def reader_versions(endings: Iterable[str] | None = None) -> str:
    """Return the readers of files with these endings, or all, that have changed since the first.

    Those of other packages are always in it: before, their files were not read.

    >>> reader_versions([".txt", ".md"])
    '-Markdown4'
    """
    if endings is None:
        endings = ["", *(f".{ending}" for ending in FORMATS.names())]
    changed = {f"{kind}{v}" for ending in set(endings) for kind, v in _versions(ending)}
    return "".join(f"-{version}" for version in sorted(changed))


def _versions(suffix: str) -> list[tuple[str, str]]:
    """Return the versions of the readers of an ending; none where nothing can read it."""
    is_own = not suffix or suffix.lower()[1:] in FORMATS.own
    try:
        format_ = format_of(suffix)
    except PartError:
        return []
    own = format_.versions if format_ else {} if suffix else versions.of("named")
    return [(kind, v) for kind, v in own.items() if v != versions.FIRST or not is_own]
