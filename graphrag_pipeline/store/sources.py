"""Source files, their changes, and which of them are names of one document.

Files of the same bytes and the same ending are one document with several names; the first name, in
the order of their characters, is the one it is read by: that of a link only where all are links.
Which name that is depends on the files that are there alone. What the document's id is made from,
its ``identity``, is the name it was first seen under: it stays while its content is anywhere, and
with a file that is changed in place. So a document that is moved, copied or loses a name keeps its
id, and with it its chunks, what was extracted from them and their vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.text import counted
from graphrag_pipeline.store.snapshots import is_address

_COUNTED = {
    "add": "file added",
    "change": "file changed",
    "remove": "file removed",
    "rename": "file renamed",
}
ACTIONS = tuple(_COUNTED)
_IMPORT = "import:"
SLACK_LISTS = tuple(
    f"{name}.json" for name in ("users", "org_users", "channels", "groups", "mpims", "dms")
)
"""What the lists of names in an export of Slack are called; direct messages have only members."""
_IN_MAILDIR = pattern_of(
    r"\d{10}\.(?:\w{0,40}[MPQ]\d\w{0,40}|\d+_\d+)\.[\w.,=+~-]{1,200}(?:[:;!]2,[A-Za-z]*)?"
)
_ASIDE = pattern_of(r"\.log[.-](?:\d{4}-?\d\d-?\d\d[\w-]{0,9}|\d{1,14}|old)$")
_SLACK_DAY = pattern_of(r"(?<![^/])[^/]+/\d{4}-\d\d-\d\d\.json$")


@dataclass(frozen=True)
class SourceChange:
    """One source file of a manifest.

    ``action`` is ``add``, ``change``, ``remove``, ``rename`` (from ``origin``) or ``name``: the
    file is as it was, and has become the first name of its document, or no longer is it.
    ``sha256`` is None where the file was removed, could not be read, or is over-large.
    ``identity`` is what the ids of its documents are made from, None for its uri.
    """

    uri: str
    action: str
    sha256: str | None
    n_bytes: int
    mtime_ns: int
    identity: str | None = None
    origin: str | None = None
    is_link: bool = False


@dataclass(frozen=True)
class Source:
    """A source file that is there, as the fold of all manifests has it."""

    batch: str
    root: str
    sha256: str | None
    n_bytes: int
    mtime_ns: int
    identity: str
    is_link: bool = False


def changed_files(changes: Mapping[str, int]) -> str:
    """Return how many files were added, changed, removed, renamed; nothing if none was."""
    return ", ".join(counted(number, _COUNTED[name]) for name, number in changes.items() if number)


def is_import(root: str) -> bool:
    """Whether the sources of a root were imported, and are no files of a folder."""
    return root.startswith(_IMPORT)


def apply_changes(
    sources: dict[str, Source], changes: Iterable[SourceChange], *, batch: str, root: str
) -> None:
    """Bring the sources, by uri, up to date with the changes of a batch."""
    for change in changes:
        if change.origin is not None:
            sources.pop(change.origin, None)
        if change.action == "remove":
            sources.pop(change.uri, None)
        else:
            before = sources.get(change.uri)
            sources[change.uri] = Source(
                batch=batch,
                root=before.root if before is not None and change.action == "name" else root,
                sha256=change.sha256,
                n_bytes=change.n_bytes,
                mtime_ns=change.mtime_ns,
                identity=change.identity or change.uri,
                is_link=change.is_link,
            )


def first_names(sources: Mapping[str, Source]) -> dict[str, str]:
    """Return, for the uri of each source, the first name of its document."""
    return {
        uri: first
        for names in _names(sources).values()
        for first in [_first(names, sources)]
        for uri in names
    }


def _content(uri: str, source: Source) -> tuple[str, str]:
    """Return what the names of one document have in common: bytes and ending.

    What is imported, and web pages, which are removed by rules of their own, have one name each.
    """
    if source.sha256 is None or is_import(source.root) or is_address(uri):
        return "", uri
    return source.sha256, ending_of(uri).lower()


def ending_of(uri: str) -> str:
    """Return what ``PurePosixPath.suffix`` is, at a tenth of its time: there may be many.

    Of a message in a maildir, which is called by its time, host and marks, that of mail; of a log
    that has been put aside, as app.log-20240304, that of logs.
    """
    name = uri[uri.rfind("/") + 1 :]
    if name[:10].isdigit() and _IN_MAILDIR.fullmatch(name):
        return ".eml"
    if ".log" in name and _ASIDE.search(name):
        return ".log"
    place = name.rfind(".")
    return name[place:] if 0 < place < len(name) - 1 else ""


def _names(sources: Mapping[str, Source]) -> dict[tuple[str, str], list[str]]:
    """Return the names of each document, by what they have in common."""
    names: dict[tuple[str, str], list[str]] = {}
    for uri, source in sources.items():
        names.setdefault(_content(uri, source), []).append(uri)
    return names


def _first(names: Sequence[str], sources: Mapping[str, Source]) -> str:
    return min(names, key=lambda name: (sources[name].is_link, name))


def _firsts(sources: Mapping[str, Source]) -> dict[tuple[str, str], str]:
    return {content: _first(names, sources) for content, names in _names(sources).items()}


def with_names(
    changes: Iterable[SourceChange], sources: Mapping[str, Source], root: str
) -> list[SourceChange]:
    """Return what a scan saw, with files that were renamed, identities and changes of first names.

    ``sources`` are all that were there before. A file that is gone and one that is new are one
    renamed file where they are names of one document.
    """
    listed = list(_with_renames(changes, sources))
    if not listed:
        return []
    sources = _around(listed, sources)
    after = dict(sources)
    apply_changes(after, listed, batch="", root=root)
    firsts_before, firsts = _firsts(sources), _firsts(after)
    identities = _identities(listed, sources, after, firsts_before, firsts)
    named = [
        replace(change, identity=_unless(identities.get(change.uri), change.uri))
        for change in listed
    ]
    listed_uris = {change.uri for change in listed}
    for content in _touched(listed, sources, after):
        for side, other in ((firsts_before, firsts), (firsts, firsts_before)):
            uri = side.get(content)
            if uri in after and uri != other.get(content) and uri not in listed_uris:
                named.append(_relisted(uri, after[uri], identities.get(uri)))
    return named


def _around(changes: Sequence[SourceChange], sources: Mapping[str, Source]) -> Mapping[str, Source]:
    """Return those sources that may be names of a document that changes touch.

    And of one whose identity is what a new document would be called by: see :func:`_unused`.
    """
    uris = _uris_of(changes)
    near = {
        uri
        for uri, source in sources.items()
        if uri in uris or not uris.isdisjoint((source.identity, _named_for(source.identity)))
    }
    sums = {change.sha256 for change in changes} | {sources[uri].sha256 for uri in near}
    return {
        uri: source
        for uri, source in sources.items()
        if uri in near or (source.sha256 in sums and source.sha256 is not None)
    }


def with_days(changes: Sequence[SourceChange], sources: Mapping[str, Source]) -> list[SourceChange]:
    """Return changes with the days of the exports of Slack whose lists of names they change."""
    exports = {
        f"{above}{slash}"
        for above, slash, name in (change.uri.rpartition("/") for change in changes)
        if name in SLACK_LISTS
    }
    listed = {change.uri for change in changes}
    days = (
        uri
        for uri in sources
        if exports and uri not in listed and (day := _SLACK_DAY.search(uri))
        if uri[: day.start()] in exports
    )
    relisted = (_relisted(uri, sources[uri], sources[uri].identity) for uri in days)
    return [*changes, *(replace(change, action="change") for change in relisted)]


def _unless(identity: str | None, uri: str) -> str | None:
    return None if identity == uri else identity


def _relisted(uri: str, source: Source, identity: str | None) -> SourceChange:
    return SourceChange(
        uri=uri,
        action="name",
        sha256=source.sha256,
        n_bytes=source.n_bytes,
        mtime_ns=source.mtime_ns,
        identity=_unless(identity, uri),
        is_link=source.is_link,
    )


def _with_renames(
    changes: Iterable[SourceChange], sources: Mapping[str, Source]
) -> Iterator[SourceChange]:
    changes = list(changes)
    gone: dict[tuple[str, str], list[str]] = {}
    for change in reversed(changes):
        if change.action == "remove" and sources[change.uri].sha256 is not None:
            gone.setdefault(_content(change.uri, sources[change.uri]), []).append(change.uri)
    renamed: dict[str, str] = {}
    for change in changes:
        if change.action == "add" and change.sha256 is not None:
            new: dict[str, Source] = {}
            apply_changes(new, [change], batch="", root="")
            if uris := gone.get(_content(change.uri, new[change.uri])):
                renamed[change.uri] = uris.pop()
    origins = set(renamed.values())
    for change in changes:
        if change.uri in renamed:
            yield replace(change, action="rename", origin=renamed[change.uri])
        elif change.action != "remove" or change.uri not in origins:
            yield change


def _uris_of(changes: Iterable[SourceChange]) -> set[str]:
    return {uri for change in changes for uri in (change.uri, change.origin) if uri is not None}


def _touched(
    changes: Iterable[SourceChange], before: Mapping[str, Source], after: Mapping[str, Source]
) -> list[tuple[str, str]]:
    """Return the contents that have got or lost a name."""
    return sorted(
        {
            _content(uri, side[uri])
            for uri in _uris_of(changes)
            for side in (before, after)
            if uri in side
        }
    )  # fmt: skip


def _identities(
    changes: Iterable[SourceChange],
    before: Mapping[str, Source],
    after: Mapping[str, Source],
    firsts_before: Mapping[tuple[str, str], str],
    firsts: Mapping[tuple[str, str], str],
) -> dict[str, str]:
    """Return the identities of the documents that changes concern, by their first names."""
    todo = {content for content in _touched(changes, before, after) if content in firsts}
    staying = {content for content in firsts if content in firsts_before}
    used = {before[firsts_before[content]].identity for content in staying}
    identities = {
        firsts[content]: before[firsts_before[content]].identity for content in todo & staying
    }
    in_place: dict[tuple[str, str], str] = {}
    for uri in sorted({c.uri for c in changes} & before.keys() & after.keys()):
        old, new = _content(uri, before[uri]), _content(uri, after[uri])
        is_first = firsts_before[old] == uri and old not in staying
        if is_first and new not in staying and new not in in_place:
            in_place[new] = before[uri].identity
    used.update(in_place.values())
    for content in sorted(todo - staying):
        identity = in_place.get(content) or _unused(firsts[content], used)
        used.add(identity)
        identities[firsts[content]] = identity
    return identities


def _unused(uri: str, used: set[str]) -> str:
    """Return a name for a new document: that of its file, unless another document has that."""
    number, name = 1, uri
    while name in used:
        number += 1
        name = f"{uri}?{number}"
    return name


def _named_for(identity: str) -> str:
    """Return the name of the file for which :func:`_unused` made an identity, if it did."""
    return identity.rpartition("?")[0]
