"""The snapshot of web pages: files in the home whose names say which address each came from."""

from __future__ import annotations

from pathlib import Path

SITES = "web:"
"""What a batch of fetched pages names as its folder."""
SUFFIXES = (
    *(".html", ".txt", ".md", ".rst", ".pdf", ".csv", ".tsv", ".json", ".jsonl", ".docx"),
    *(".pptx", ".xlsx", ".odt", ".odp", ".ods", ".epub", ".eml", ".ipynb", ".parquet"),
)
"""Suffixes, by which readers are chosen, that a fetched file may have."""
_MOST_BYTES = 240


def is_address(text: str) -> bool:
    """Whether this is a web address, and no path or uri of another kind.

    >>> is_address("https://example.org/a"), is_address("documents/https")
    (True, False)
    """
    return text[:8].lower().startswith(("http://", "https://"))


def snapshot_folder(home: Path) -> Path:
    """Return the folder of fetched files in a home."""
    return home / "web"


def file_name(address: str, suffix: str) -> str | None:
    """Return the name under which an address in canonical form is kept; None if it is too long.

    >>> file_name("https://example.org/a/b", ".html")
    'https:!!example.org!a!b@.html'
    """
    name = f"{address.replace('!', '%21').replace('/', '!')}@{suffix}"
    return name if len(name.encode()) <= _MOST_BYTES else None


def address_of(name: str) -> str:
    """Return the address that a file of the snapshot came from."""
    return name.rpartition("@")[0].replace("!", "/")


def file_of(home: Path, address: str) -> Path:
    """Return where the file of an address is, or would be."""
    folder = snapshot_folder(home)
    names = [name for suffix in SUFFIXES if (name := file_name(address, suffix))]
    found = (path for name in names if (path := folder / name).exists())
    return next(found, folder / (names[0] if names else "none@.html"))


def shown_path(path: Path) -> Path:
    """Return a path with a name that a title can be made of: for a page the end of its address."""
    address, at, suffix = path.name.rpartition("@")
    if not at or not is_address(address.replace("!", "/")):
        return path
    last = address.partition("?")[0].rstrip("!").rpartition("!")[2]
    return path.with_name(f"{last.removesuffix(suffix) or 'page'}{suffix}")
