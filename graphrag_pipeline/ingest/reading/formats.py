"""The formats that are read, by the endings of files: a door."""

from __future__ import annotations

from collections.abc import Iterable

from graphrag_pipeline.core.doors import Door, PartError, require_takes
from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.code import CODE_SUFFIXES
from graphrag_pipeline.ingest.reading.model import FileFormat

_READERS = {
    "files:TEXT": "txt",
    "files:PLAIN": "text log out err weechatlog debian patch diff conf properties",
    "configs:INI": "ini cfg",
    "configs:YAML": "yaml yml",
    "configs:TOML": "toml",
    "markdown:MARKDOWN": "md markdown mdx qmd rmd",
    "chat_pages:HTML": "html htm",
    "xml_text:XHTML": "xhtml",
    "xml_text:XML": "xml rss atom opml enex fb2 svg plist",
    "mail:MHTML": "mhtml mht",
    "mail:EML": "eml",
    "mail:MBOX": "mbox mbx",
    "mail:EMLX": "emlx",
    "subtitles:SUBTITLES": "srt vtt",
    "latex:LATEX": "tex",
    "outlines:ASCIIDOC": "adoc asciidoc",
    "outlines:ORG": "org",
    "wikitext:WIKI": "wiki mediawiki",
    "wikitext:TIDDLER": "tid",
    "light_wikis:DOKUWIKI": "dokuwiki",
    "light_wikis:TEXTILE": "textile",
    "catalogues:CATALOGUE": "po pot",
    "bibtex:BIBTEX": "bib",
    "ris:RIS": "ris",
    "gedcom:GEDCOM": "ged",
    "bank_statements:MT940": "sta mt940",
    "map_places:MAP": "gpx kml",
    "calendars:CALENDAR": "ics",
    "calendars:CONTACTS": "vcf",
    "components:COMPONENT": "vue svelte",
    "tables:CSV": "csv tsv tab psv",
    "tables:JSON": "json geojson jsonld",
    "tables:JSONL": "jsonl ndjson",
    "tables:PARQUET": "parquet",
    "pdf:PDF": "pdf",
    "docx:DOCX": "docx docm",
    "pptx:PPTX": "pptx pptm ppsx",
    "sheets:XLSX": "xlsx xlsm",
    "old_workbooks:XLS": "xls",
    "rtf:RTF": "rtf",
    "opendocument:OPENDOCUMENT": "odt odp fodt fodp",
    "opendocument:ODS": "ods fods",
    "epub:EPUB": "epub",
    "outlook:MSG": "msg",
    "packed:PACKED": "zip tar gz tgz bz2 tbz2 xz txz",
    "manual_pages:MANUAL": "0 1 2 3 4 5 6 7 8 9 man",
    "rst:RST": "rst",
    "notebook:NOTEBOOK": "ipynb",
}
"""Our formats, each by its module and name, and the endings of the files that it reads."""
_ENDING = pattern_of(r"[a-z0-9][a-z0-9_+-]*")
_KIND = pattern_of(r"[A-Za-z][A-Za-z ]*")


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
        **{ending: place for place, endings in _READERS.items() for ending in endings.split()},
        **dict.fromkeys((suffix[1:] for suffix in sorted(CODE_SUFFIXES)), "code:CODE"),
        **{"js": "script_archives:SCRIPT", "dot": "code:GRAPHVIZ", "gv": "code:GRAPHVIZ"},
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
