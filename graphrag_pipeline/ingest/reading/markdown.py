"""Markdown stays as it is, without front matter, comments, HTML, badges and contents."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import yaml

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.records import SEPARATOR
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.cleaning import clean_text, one_line
from graphrag_pipeline.ingest.reading.decoding import decode
from graphrag_pipeline.ingest.reading.facts import with_facts, with_properties
from graphrag_pipeline.ingest.reading.head_fields import head_fields, take_title
from graphrag_pipeline.ingest.reading.markdown_markup import (
    code_parts,
    without_data,
    without_markup,
)
from graphrag_pipeline.ingest.reading.model import (
    SMALL,
    FileFormat,
    ReadingOptions,
    ReadResult,
    Scalar,
    readable_name,
    whole_document,
)
from graphrag_pipeline.ingest.reading.note_marks import without_marks, without_page_addresses
from graphrag_pipeline.ingest.reading.table_head import markdown_lines, n_over
from graphrag_pipeline.ingest.reading.wiki_links import (
    as_notes,
    notes_linked,
    with_links,
    without_links,
)

_MOST_FRONT_MATTER = 65_536  # characters
_ENDS = {"---": ("---", "..."), "+++": ("+++",)}
_TITLE = pattern_of(r"^title:: +(\S[^\n]{0,300})$", re.M)
_TOP = 1_000
_FORMS = word_lists("documents.txt")["first_heading"]
"""Headings of a first section, by which no document is called; it is by its file's name."""
_STARTS = ("index", "readme")
_NOTE = pattern_of(r"^ {0,3}\[\^([^\]\s]{1,50})\]:[ \t]+", re.M)
_NOTE_MARK = pattern_of(r"\[\^([^\]\s]{1,50})\]")
_TERM = pattern_of(r"^([^\s#>|:*+-][^\n]{0,100})\n(?:[ \t]*\n)?:[ \t]+(?=\S)", re.M)
_FURTHER = pattern_of(r"(?<=\S)\n:[ \t]+(?=\S)")
_WIDE_HEAD = pattern_of(
    r"^\|(?:[^|\n]*\|){1,200}?[ \t]*\|[^\n]*\n\|[-:| ]+\|[ \t]*(?:\n\|[^\n]*){2,8}", re.M
)
"""The first lines of a table whose head has a name and an empty cell after it."""
_INTEGER = pattern_of(r"[+-]?\d{1,18}")
_DECIMAL = pattern_of(r"[+-]?\d{1,18}\.\d{1,18}")


def read_markdown(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read one markdown file; the title is the front matter's, else the first heading's."""
    metadata, body = split_front_matter(clean_text(decode(data, options.encoding)))
    body = without_page_addresses(_without_comments(body))
    if not metadata.get("title") and (titled := _TITLE.search(body, 0, _TOP)):
        metadata["title"] = titled[1]
        body = body[: titled.start()] + body[titled.end() :].lstrip("\n")
    parts = (
        part if is_code else _with_definitions(without_marks(part))
        for part, is_code in code_parts(body)
    )
    text = _with_whole_heads(
        _without_note_marks(with_links(without_markup(without_data("".join(parts)))))
    ).strip()
    linked = {
        one_line(key).replace(SEPARATOR, ":"): notes_linked(value)
        for key, value in metadata.items()
        if isinstance(value, str) and "[[" in value and key != "title"
    }
    metadata = {key: _plain(value) for key, value in metadata.items()} or head_fields(text)
    title = take_title(metadata, path) or one_line(without_links(_first_heading(text)))
    if not title or (title.casefold() in _FORMS and path.stem.casefold() not in _STARTS):
        title = readable_name(path)
    text, blocks = with_facts(text, title, markdown=True)
    text, blocks = with_properties(text, blocks, linked)
    return whole_document(path, text, title, metadata, blocks)


def read_as_markdown(path: Path, text: str, options: ReadingOptions) -> ReadResult:
    """Read a file of another format that was said again in Markdown."""
    return read_markdown(path, text.encode("utf-8", "replace"), replace(options, encoding="utf-8"))


def _with_definitions(text: str) -> str:
    """Return a text in which a term and its definitions are one line."""
    return _FURTHER.sub("; ", _TERM.sub(r"\1: ", text)) if "\n:" in text else text


def _without_note_marks(text: str) -> str:
    """Return a text without the marks of its notes."""
    if "[^" not in text or not (notes := set(_NOTE.findall(text))):
        return text
    return _NOTE_MARK.sub(
        lambda mark: "" if mark[1] in notes else mark.group(), _NOTE.sub("", text)
    )


def _with_whole_heads(text: str) -> str:
    """Return a text in which a head that goes on in the first row of its table is one line."""
    return _WIDE_HEAD.sub(_whole_head, text) if "\n|" in text else text


def _whole_head(match: re.Match[str]) -> str:
    first, _, *others = (
        [cell.strip() for cell in row.strip().strip("|").split("|")]
        for row in match.group().split("\n")
    )
    n_heads = n_over([first, *others])
    return "\n".join(markdown_lines([first, *others], n_heads)) if n_heads > 1 else match.group()


def _plain(value: Scalar) -> Scalar:
    return as_notes(value) if isinstance(value, str) and "[[" in value else value


def split_front_matter(text: str) -> tuple[dict[str, Scalar], str]:
    """Return the YAML between two leading "---" lines, or TOML between "+++", and the text below.

    Lists and mappings below a key become text. What is not a mapping, or is broken, is part of the
    text.
    """
    lines = text.split("\n")
    mark = lines[0].rstrip()
    if mark not in _ENDS:
        return {}, text
    ends = (n for n, line in enumerate(lines) if n and line.rstrip() in _ENDS[mark])
    end = next(ends, None)
    if end is None:
        return {}, text
    block = "\n".join(lines[1:end])
    metadata = _toml_matter(block) if mark == "+++" else _front_matter(block)
    return ({}, text) if metadata is None else (metadata, "\n".join(lines[end + 1 :]))


class _Loader(yaml.BaseLoader):
    """Builds nodes only, never an object, and follows no alias: ten of them can stand for 10^10."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("front matter with an alias is not read")
        return super().compose_node(parent, index)


def _front_matter(text: str) -> dict[str, Scalar] | None:
    if len(text) > _MOST_FRONT_MATTER:
        return None
    try:
        root = yaml.compose(text, _Loader)
        if root is None:
            return {}
        if not isinstance(root, yaml.MappingNode):
            return None
        return {_as_text(key): _scalar(value) for key, value in root.value}
    except (yaml.YAMLError, RecursionError):
        return None


def _toml_matter(text: str) -> dict[str, Scalar] | None:
    if len(text) > _MOST_FRONT_MATTER:
        return None
    try:
        values = tomllib.loads(text)
        return {
            name: value if isinstance(value, Scalar) else _toml_text(value)
            for name, value in values.items()
        }
    except (ValueError, RecursionError):
        return None


def _toml_text(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_toml_text(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(_toml_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _scalar(node: yaml.Node) -> Scalar:
    text = _as_text(node)
    if not isinstance(node, yaml.ScalarNode) or node.style is not None:
        return text
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else text


def _as_text(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return ", ".join(f"{_as_text(key)}: {_as_text(value)}" for key, value in node.value)
    if isinstance(node, yaml.SequenceNode):
        if _is_link(node):
            return f"[[{_as_text(node.value[0])}]]"
        return ", ".join(map(_as_text, node.value))
    return str(node.value)


def _is_link(node: yaml.SequenceNode) -> bool:
    """Say whether a list is a link as Obsidian writes it, without quotation marks: [[Harbour]]."""
    inner = node.value[0] if len(node.value) == 1 else None
    if not (node.flow_style and isinstance(inner, yaml.SequenceNode) and inner.flow_style):
        return False
    return all(isinstance(each, yaml.ScalarNode) for each in inner.value) and bool(
        re.search(r"[^\W\d_]", _as_text(inner))
    )


def _without_comments(text: str) -> str:
    """Remove HTML comments outside fenced code; one that is never closed is text."""
    lines: list[str] = []
    in_comment = False
    fence = ""
    last_close = text.rfind("-->")
    position = 0
    for line in text.split("\n"):
        start = position
        position += len(line) + 1
        if not in_comment:
            fence = _fence_after(line, fence)
        if fence:
            lines.append(line)
            continue
        visible, still = _visible(line, in_comment, last_close - start)
        if visible or not (in_comment or "<!--" in line):
            lines.append(visible)
        in_comment = still
    return "\n".join(lines)


def _fence_after(line: str, fence: str) -> str:
    mark = line.strip()[:3]
    if fence:
        return "" if mark == fence else fence
    return mark if mark in ("```", "~~~") else ""


def _visible(line: str, in_comment: bool, last_close: int) -> tuple[str, bool]:
    """Return what of the line is outside comments, and whether a comment goes on after it."""
    visible: list[str] = []
    position = 0
    while True:
        if in_comment:
            close = line.find("-->", position)
            if close < 0:
                return "".join(visible).rstrip(), True
            position, in_comment = close + 3, False
        opening = line.find("<!--", position)
        if opening < 0 or opening > last_close:
            return "".join((*visible, line[position:])), False
        visible.append(line[position:opening])
        position, in_comment = opening + 4, True


def _first_heading(text: str) -> str:
    fence = previous = ""
    for line in text.split("\n"):
        fence = _fence_after(line, fence)
        level = len(line) - len(line.lstrip("#"))
        if not fence and 1 <= level <= 6 and line[level : level + 1] in (" ", "\t"):
            return one_line(line[level:]).rstrip("#").strip(" *_`")
        if not fence and previous.strip() and line.strip() and not line.strip().strip("="):
            return one_line(previous).strip(" *_`")
        previous = line
    return ""


MARKDOWN = FileFormat(read_markdown, versions.of("Markdown"), SMALL)
