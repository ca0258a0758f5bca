"""Files that are left out: patterns as git has them, of the settings and of ignore files.

A pattern is matched against one entry (a file or a folder) of the folder that holds its ignore
file; what lies in a folder that is left out is never looked at. The last pattern that matches
decides, and the one nearest to the entry before others, as in ``gitignore(5)``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

from graphrag_pipeline.core.errors import ConfigError, InputError
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.settings import InputSettings

GIT_FILE, OWN_FILE = ".gitignore", ".graphragignore"
BY_DEFAULT = "default"

_DEFAULT_FILE = Path(__file__).parents[1] / "data" / "default_excludes.txt"
"""What is left out unless ``input.default_excludes`` is off, as an ignore file has it."""

_SPECIAL = pattern_of(r"[*?\[\]\\]")


@dataclass(frozen=True)
class Decision:
    """Verdict of the line that decides on an entry; ``place`` is the line's among the others."""

    line: str
    place: int
    matches: bool


@dataclass(frozen=True)
class _Pattern:
    """A line of patterns. ``regex`` matches a path from the folder of the patterns."""

    decision: Decision
    regex: re.Pattern[str]
    is_anchored: bool

    def matches(self, name: str, path: str) -> bool:
        """Whether this is the entry that the pattern names, and not one within it."""
        text = path if self.is_anchored else name
        match = self.regex.match(text)
        if match is None:
            return False
        within = match.groupdict().get("ps_d")
        return within is None or match.end("ps_d") == len(text)


class Patterns:
    """The patterns of one place: a setting, or the ignore file of a folder.

    ``folder`` is the folder's path from the root of the scan, empty for the root itself; ``origin``
    says where they stand, for whoever asks what was left out and why.
    """

    def __init__(self, lines: Sequence[str], *, origin: str, folder: str = "") -> None:
        self.origin = origin
        self._above = f"{folder}/" if folder else ""
        self._plain: dict[str, list[_Pattern]] = {}
        self._rest: list[_Pattern] = []
        for place, line in enumerate(lines):
            if pattern := _compile(line, place):
                name = _plain_name(line)
                if name is None:
                    self._rest.append(pattern)
                else:
                    self._plain.setdefault(name, []).append(pattern)
        self._rest.reverse()

    @cached_property
    def is_empty(self) -> bool:
        """Whether there is no pattern."""
        return not self._plain and not self._rest

    def decide(self, name: str, path: str, *, is_folder: bool) -> Decision | None:
        """Return what the patterns say of an entry; None if none of them names it."""
        if self.is_empty:
            return None
        best: Decision | None = None
        slash = "/" if is_folder else ""
        candidates = reversed(self._plain.get(name, ()))
        name, path = f"{name}{slash}", f"{path[len(self._above) :]}{slash}"
        for pattern in candidates:
            if pattern.matches(name, path):
                best = pattern.decision
                break
        for pattern in self._rest:
            if best is not None and pattern.decision.place < best.place:
                break
            if _matches_entry(pattern, name, path):
                return pattern.decision
        return best


def _matches_entry(pattern: _Pattern, name: str, path: str) -> bool:
    # "a/**" names what is in a, and not a itself: a folder is tried without its slash, too.
    if pattern.decision.line.endswith("/**"):
        name, path = name.rstrip("/"), path.rstrip("/")
    return pattern.matches(name, path)


def _plain_name(line: str) -> str | None:
    """Return the one name that a line is about, None where it has wildcards or a path."""
    name = line.rstrip().removeprefix("!").removesuffix("/")
    return None if "/" in name or name[:1].isspace() or _SPECIAL.search(name) else name


def _compile(line: str, place: int) -> _Pattern | None:
    """Return the pattern of a line, None for one that says nothing. Raises ValueError."""
    from pathspec.patterns.gitwildmatch import GitWildMatchPattern, GitWildMatchPatternError

    try:
        regex, matches = GitWildMatchPattern.pattern_to_regex(line)
    except (GitWildMatchPatternError, re.error) as error:
        raise ValueError(f"{line!r} is no pattern") from error
    if regex is None or matches is None:
        return None
    stripped = line.strip().removeprefix("!")
    is_anchored = "/" in stripped.removesuffix("/")
    decision = Decision(line.rstrip(), place, matches)
    return _Pattern(decision, re.compile(regex, re.DOTALL), is_anchored)


def setting_patterns(setting: str, lines: Sequence[str]) -> Patterns:
    """Return the patterns of a setting. Raises ConfigError for one that can match nothing."""
    for line in lines:
        reason = _why_broken(line)
        if reason:
            raise ConfigError(f"{setting}: {line!r} {reason}")
    return Patterns(lines, origin=setting)


def _why_broken(line: str) -> str | None:
    body = line.removeprefix("!")
    if not body.strip(" /"):
        return "is no pattern: write a name such as *.log, drafts/ or docs/**/*.md"
    if line.startswith("#"):
        return "is a comment: write \\# for a name that begins with #"
    if any(part in (".", "..") for part in body.split("/")):
        return "cannot leave the folder: patterns are names from it downwards, without . and .."
    if "\n" in line or "\0" in line:
        return "is more than one line: write one pattern an item"
    if _has_open_bracket(body):
        return "has a [ that is not closed: write \\[ for the character"
    try:
        _compile(line, 0)
    except ValueError:
        return "is no pattern: see git's rules for .gitignore"
    return None


def _has_open_bracket(text: str) -> bool:
    """Whether a set of characters begins and does not end."""
    rest = re.sub(r"\\.", "", text)
    return "[" in re.sub(r"\[[!^]?\]?[^\]]*\]", "", rest)


def read_ignore_file(path: Path, folder: str, origin: str) -> Patterns:
    """Return the patterns of an ignore file of a folder.

    Raises InputError if it cannot be read, for what it leaves out would be indexed; and for a
    broken line of our own kind of file. Git passes over broken lines of its own, as is done here.
    """
    try:
        text = path.read_bytes().decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    kept = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        reason = _why_broken(line)
        if reason and path.name == OWN_FILE:
            raise InputError(f"{path}, line {number}: {line!r} {reason}")
        if reason is None:
            kept.append(line)
    return Patterns(kept, origin=origin, folder=folder)


@dataclass(frozen=True)
class Selection:
    """Rules for the documents of a folder: the settings of ``[input]``, their patterns ready."""

    include: Patterns = field(default_factory=lambda: Patterns((), origin="input.include"))
    exclude: Patterns = field(default_factory=lambda: Patterns((), origin="input.exclude"))
    default_excludes: bool = True
    ignore_files: bool = True
    follow_links: bool = False

    def why_not(
        self, name: str, path: str, near: Sequence[Patterns], *, is_folder: bool
    ) -> tuple[str, str] | None:
        """Return what leaves an entry out, as origin and pattern; None where nothing does.

        ``near`` are the ignore files of the folders above it, the nearest last.
        """
        for patterns in self._in_order(near):
            decision = patterns.decide(name, path, is_folder=is_folder)
            if decision is not None:
                return (patterns.origin, decision.line) if decision.matches else None
        return None

    def wants(self, name: str, path: str) -> bool:
        """Whether a file that nothing leaves out is one of those to be read."""
        if self.include.is_empty:
            return True
        parts = path.split("/")
        folders = [
            self.include.decide(folder, "/".join(parts[:depth]), is_folder=True)
            for depth, folder in enumerate(parts[:-1], 1)
        ]
        decisions = [self.include.decide(name, path, is_folder=False), *folders]
        last = max((d for d in decisions if d), key=lambda d: d.place, default=None)
        return last is not None and last.matches

    def _in_order(self, near: Sequence[Patterns]) -> Iterator[Patterns]:
        yield self.exclude
        yield from reversed(near)
        if self.default_excludes:
            yield _default_patterns()


@cache
def _default_patterns() -> Patterns:
    # Made when a folder is looked at: a question needs none, and they take time to compile.
    return read_ignore_file(_DEFAULT_FILE, "", BY_DEFAULT)


def selection_of(settings: InputSettings) -> Selection:
    """Return what the settings select. Raises ConfigError for a broken pattern."""
    return Selection(
        include=setting_patterns("input.include", settings.include),
        exclude=setting_patterns("input.exclude", settings.exclude),
        default_excludes=settings.default_excludes,
        ignore_files=settings.ignore_files,
        follow_links=settings.follow_links,
    )
