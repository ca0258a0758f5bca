"""Markdown stays as it is, without front matter and comments."""

from __future__ import annotations

import re
from pathlib import Path

from graphrag_pipeline.ingest.reading.cleaning import clean_text, one_line
from graphrag_pipeline.ingest.reading.decoding import decode
from graphrag_pipeline.ingest.reading.model import (
    ReadingOptions,
    ReadResult,
    Scalar,
    whole_document,
)

_INTEGER = re.compile(r"[+-]?\d{1,18}")
_DECIMAL = re.compile(r"[+-]?\d{1,18}\.\d{1,18}")


def read_markdown(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read one markdown file; the title is the front matter's, else the first heading's."""
    metadata, body = split_front_matter(clean_text(decode(data, options.encoding)))
    text = _without_comments(body)
    title = metadata.pop("title", "") or _first_heading(text)
    return whole_document(path, text, str(title), metadata)


def split_front_matter(text: str) -> tuple[dict[str, Scalar], str]:
    """Return the `key: value` lines between two leading "---" lines, and the text after them.

    Items of a list below a key are joined by ", ". Anything else between the lines means that
    they are ruled lines, not front matter.
    """
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return {}, text
    ends = (n for n, line in enumerate(lines) if n and line.rstrip() in ("---", "..."))
    end = next(ends, None)
    if end is None:
        return {}, text
    metadata = _front_matter(lines[1:end])
    return ({}, text) if metadata is None else (metadata, "\n".join(lines[end + 1 :]))


def _front_matter(lines: list[str]) -> dict[str, Scalar] | None:
    values: dict[str, list[str]] = {}
    key = ""
    for line in filter(str.strip, lines):
        name, colon, value = line.partition(":")
        if line.startswith("#"):
            continue
        if key and (line[0] == " " or line.startswith("- ")):
            values[key].append(line.strip().removeprefix("- "))
        elif colon and (not value or value[0] == " ") and not line.startswith(("- ", " ")):
            key = name.strip()
            values[key] = [value.strip()]
        else:
            return None
    return {name: _scalar(", ".join(filter(None, parts))) for name, parts in values.items()}


def _scalar(value: str) -> Scalar:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    if value.startswith("[") and value.endswith("]"):
        return ", ".join(item.strip().strip("\"'") for item in value[1:-1].split(","))
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    if _INTEGER.fullmatch(value):
        return int(value)
    return float(value) if _DECIMAL.fullmatch(value) else value


def _without_comments(text: str) -> str:
    """Remove HTML comments outside fenced code; one that is never closed is text."""
    kept: list[str] = []
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
            kept.append(line)
            continue
        visible, still = _visible(line, in_comment, last_close - start)
        if visible or not (in_comment or "<!--" in line):
            kept.append(visible)
        in_comment = still
    return "\n".join(kept)


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
