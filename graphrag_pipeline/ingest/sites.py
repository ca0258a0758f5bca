"""Web addresses and sitemaps as a source of documents.

What is fetched is kept as files in the home, and indexed from there like any folder. A page goes
only when its server says that it is gone (404 or 410), never because a server fails.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit
from xml.parsers import expat

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.hardening.files import make_folder, write_beside
from graphrag_pipeline.core.home import make_home
from graphrag_pipeline.core.rows import one_line
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.core.word_lists import word_pairs
from graphrag_pipeline.ingest.fetching import (
    FetchedAnswer,
    Fetcher,
    FetchError,
    FetchOptions,
    canonical,
    origin,
    unpacker,
)
from graphrag_pipeline.ingest.reading.archives import parse_xml
from graphrag_pipeline.ingest.reading.model import Unreadable
from graphrag_pipeline.store.snapshots import SUFFIXES, file_name, file_of, snapshot_folder

_STATE = ".state.json"
_MOST_SITEMAPS = 200
_MOST_REASONS = 3
_MOST_SITEMAP_BYTES = 50_000_000  # of the protocol, unpacked
_GONE = (404, 410)
_TEXTUAL = (".html", ".txt", ".md", ".rst", ".csv", ".tsv")
_TYPES = word_pairs("fields.txt", "content_type")


@dataclass
class Fetched:
    """The result of fetching: numbers of pages, and why others are as they were, by address."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    gone: int = 0
    problems: dict[str, str] = field(default_factory=dict)


def fetch_options(settings: Settings) -> FetchOptions:
    """Return how pages are fetched, as configured."""
    options = settings.input
    return FetchOptions(
        max_bytes=options.max_file_bytes,
        seconds_between=options.urls_seconds,
        private=options.urls_private,
        other_hosts=options.urls_other_hosts,
    )


def fetch_sites(home: Path, addresses: Sequence[str], settings: Settings) -> Fetched:
    """Bring the snapshot in a home up to date with some addresses and the pages of sitemaps.

    Pages that an address named before and no longer names are asked for too. Nothing is removed
    but what its server says is gone. Raises InputError, with the first reasons, where the snapshot
    holds no page and none could be fetched.
    """
    make_home(settings)
    with Fetcher(fetch_options(settings)) as fetcher:
        snapshot = _Snapshot(home, fetcher, settings.input.urls_most)
        try:
            for address in addresses:
                snapshot.follow(address)
        finally:
            snapshot.save()
    if not snapshot.known and not snapshot.result.gone:
        raise InputError(f"no page could be fetched: {_first_reasons(snapshot.result.problems)}")
    return snapshot.result


def _first_reasons(problems: Mapping[str, str]) -> str:
    if not problems:
        return "a sitemap names none, or their servers say that they are not there"
    said = [f"{one_line(address)[:200]}: {one_line(why)}" for address, why in problems.items()]
    more = f"; and {len(said) - _MOST_REASONS:,} more" if len(said) > _MOST_REASONS else ""
    return f"{'; '.join(said[:_MOST_REASONS])}{more}"


class _Snapshot:
    """The files of the snapshot, and what their servers said of each."""

    def __init__(self, home: Path, fetcher: Fetcher, most_pages: int) -> None:
        self.home, self.fetcher, self.room = home, fetcher, most_pages
        self.folder = snapshot_folder(home)
        self.result = Fetched()
        self.known = _read_state(self.folder / _STATE)
        self.asked: set[str] = set()

    def save(self) -> None:
        make_folder(self.folder)
        text = json.dumps(self.known, indent=1, sort_keys=True)
        write_beside(self.folder / _STATE, text.encode())

    def follow(self, written: str) -> None:
        """Fetch an address: a page, or all pages that a sitemap and those below it name."""
        try:
            start = canonical(written)
        except FetchError as error:
            self.result.problems[written] = str(error)
            return
        before = [page for page, about in self.known.items() if about.get("start") == start]
        for page in (*self._pages(start), *before):
            if page not in self.asked:
                self.asked.add(page)
                self._update(page, start)

    def _pages(self, start: str) -> Iterator[str]:
        """Yield the pages behind an address; the answer for a page itself is not thrown away."""
        pending, seen = [start], set[str]()
        while pending:
            address = pending.pop(0)
            if address in seen:
                continue
            seen.add(address)
            try:
                found = self._sitemap(address, is_start=address == start)
            except FetchError as error:
                self.result.problems[address] = str(error)
                continue
            if found is None:
                yield from [address] if address == start else []
                continue
            pages, sitemaps = found
            yield from self._allowed(pages, start)
            pending += list(self._allowed(sitemaps, start))[: _MOST_SITEMAPS - len(seen)]

    def _allowed(self, addresses: Iterable[str], start: str) -> Iterator[str]:
        for written in addresses:
            try:
                address = canonical(written)
            except FetchError:
                continue
            if origin(address) == origin(start) or self.fetcher.options.other_hosts:
                yield address

    def _sitemap(self, address: str, *, is_start: bool) -> tuple[list[str], list[str]] | None:
        """Return the pages and sitemaps that a sitemap names; None where it is a page."""
        path = urlsplit(address).path.lower()
        if is_start and not path.endswith((".xml", ".xml.gz", ".gz")):
            return None
        answer = self.fetcher.get(address)
        if answer.status != 200:
            raise FetchError(f"the server answered {answer.status}")
        body = answer.body
        return parse_sitemap(unpacked(body) if body.startswith(b"\x1f\x8b") else body)

    def _update(self, address: str, start: str) -> None:
        about = self.known.get(address, {})
        path = file_of(self.home, address)
        if not path.exists() and self.room <= 0:
            self.result.problems[address] = "there are more pages than input.urls_most"
            return
        self.room -= 1
        try:
            answer = self.fetcher.get(address, _conditions(about) if path.exists() else None)
            self._take(address, path, answer, start)
        except FetchError as error:
            self.result.problems[address] = str(error)

    def _take(self, address: str, path: Path, answer: FetchedAnswer, start: str) -> None:
        if answer.status in _GONE:
            if address == start and not path.exists():
                raise FetchError(f"its server says that it is not there ({answer.status})")
            self.result.gone += path.exists()
            path.unlink(missing_ok=True)
            self.known.pop(address, None)
        elif answer.status == 304:
            self.result.unchanged += 1
        elif answer.status == 200:
            self._keep(address, path, answer)
            told = ((name, answer.headers.get(name, "")) for name in ("etag", "last-modified"))
            self.known[address] = {"start": start, **{name: value for name, value in told if value}}
        else:
            raise FetchError(f"the server answered {answer.status}")

    def _keep(self, address: str, path: Path, answer: FetchedAnswer) -> None:
        suffix = _suffix(address, answer)
        name = file_name(address, suffix)
        if name is None:
            raise FetchError("its address is too long to be a file's name")
        body = _as_utf8(answer, suffix)
        was_there = path.exists()
        target = self.folder / name
        if was_there and path == target and path.read_bytes() == body:
            self.result.unchanged += 1
            return
        make_folder(self.folder)
        write_beside(target, body)
        if was_there and path != target:
            path.unlink(missing_ok=True)
        self.result.changed += was_there
        self.result.new += not was_there


def _read_state(path: Path) -> dict[str, dict[str, str]]:
    """Return what servers said before; without it pages are fetched whole once more."""
    try:
        state = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    is_known = isinstance(state, dict) and all(isinstance(v, dict) for v in state.values())
    return state if is_known else {}


def _conditions(about: Mapping[str, str]) -> dict[str, str]:
    names = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}
    return {header: about[name] for name, header in names.items() if about.get(name)}


def _suffix(address: str, answer: FetchedAnswer) -> str:
    """Return the suffix by which a reader is chosen: by the content type, else by the address."""
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    written = PurePosixPath(urlsplit(address).path).suffix.lower()
    is_vague = kind in ("", "text/plain", "application/octet-stream", "binary/octet-stream")
    if is_vague and written in SUFFIXES:
        return written
    if kind not in _TYPES:
        raise FetchError(f"content of type {kind[:60] or 'none'!r} is not read")
    return _TYPES[kind]


def _as_utf8(answer: FetchedAnswer, suffix: str) -> bytes:
    """Return the body, in UTF-8 where the server names another encoding of a text."""
    named = answer.headers.get("content-type", "").lower().partition("charset=")[2]
    charset = named.partition(";")[0].strip(" \"'")
    if suffix not in _TEXTUAL or charset in ("", "utf-8", "utf8", "punycode", "idna"):
        return answer.body
    try:
        return answer.body.decode(charset, "replace").encode("utf-8", "replace")
    except (LookupError, UnicodeError):
        return answer.body


def unpacked(data: bytes) -> bytes:
    """Return a gzipped sitemap unpacked; raises FetchError where it is broken or too large."""
    try:
        body = unpacker().decompress(data, _MOST_SITEMAP_BYTES + 1)
    except zlib.error as error:
        raise FetchError(f"the sitemap's gzip is broken ({error})") from None
    if len(body) > _MOST_SITEMAP_BYTES:
        raise FetchError(f"the sitemap unpacks to more than {_MOST_SITEMAP_BYTES:,} bytes")
    return body


def parse_sitemap(xml: bytes) -> tuple[list[str], list[str]] | None:
    """Return the pages and the sitemaps that a sitemap names; None where it is none."""
    root, names, text = list[str](), list[str](), list[str]()
    found: dict[str, list[str]] = {"urlset": [], "sitemapindex": []}

    def start(name: str, _: object) -> None:
        names.append(name.rpartition(" ")[2])
        root[:] = names[:1]
        text.clear()
        if len(names) > 20:
            raise Unreadable("it is nested too deep")

    def end(_: str) -> None:
        if names.pop() == "loc" and len(names) == 2 and names[0] in found:
            found[names[0]].append("".join(text).strip())

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = text.append
    try:
        for _ in parse_xml(xml, parser):
            if root and root[0] not in found:
                return None
    except (expat.ExpatError, Unreadable) as error:
        if not any(found.values()) and b"<urlset" not in xml and b"<sitemapindex" not in xml:
            return None
        raise FetchError(f"the sitemap is broken ({error})") from None
    return found["urlset"], found["sitemapindex"]
