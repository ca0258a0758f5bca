"""YAML and TOML are read as JSON is: an object is a document, a list is records.

What is none, such as a template that a program fills in, is read as source code.
"""

from __future__ import annotations

import configparser
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.cleaning import with_newlines
from graphrag_pipeline.ingest.reading.code import code_blocks
from graphrag_pipeline.ingest.reading.decoding import decode
from graphrag_pipeline.ingest.reading.model import (
    SMALL_RECORDS,
    FileFormat,
    ReadingOptions,
    ReadResult,
    Unreadable,
    whole_document,
)
from graphrag_pipeline.ingest.reading.tables import read_value

_MOST_DEPTH = 100
_MOST_REPEATED = 100_000
_TAG = "tag:yaml.org,2002:"


class _Loader(yaml.SafeLoader):
    """Makes plain values: a date, ``no`` and ``1:30`` stay as they are written, tags are passed."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - that of the class above would be changed

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Make a dict; a key that is itself a list or mapping is what stands in it, in words."""
        node.value = [(_plain_key(key), value) for key, value in node.value]
        return super().construct_mapping(node, deep)


def _plain_key(node: yaml.Node) -> yaml.Node:
    if isinstance(node, yaml.ScalarNode):
        return node
    return yaml.ScalarNode(f"{_TAG}str", ", ".join(_scalars(node)), node.start_mark, node.end_mark)


def _scalars(node: yaml.Node) -> Iterator[str]:
    if isinstance(node, yaml.ScalarNode):
        yield str(node.value)
        return
    for each in node.value:
        for part in each if isinstance(each, tuple) else (each,):
            yield from _scalars(part)


for _kind, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9]\d{0,17})", "-+0123456789"),
    ("float", r"[-+]?\d{1,18}\.\d{1,18}", "-+0123456789"),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(
        _TAG + _kind, pattern_of(rf"(?:{_pattern})\Z"), ["" if c == "\0" else c for c in _first]
    )


def _untagged(loader: _Loader, _tag: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return node.value


_Loader.add_multi_constructor("!", _untagged)
_Loader.add_multi_constructor("tag:", _untagged)


def _read(
    parse: Callable[[str], object], kind: str, path: Path, data: bytes, options: ReadingOptions
) -> ReadResult:
    """Read the value of a file as JSON is read; what is none is source code: comments are prose."""
    text = decode(data, options.encoding)
    try:
        value = parse(text)
    except RecursionError:
        raise Unreadable(f"the {kind} is nested too deeply") from None
    except (yaml.YAMLError, configparser.Error, ValueError, TypeError, AttributeError):
        text = with_newlines(text)
        blocks = code_blocks(text, "shell")
        return whole_document(path, text, path.name, {"language": kind}, blocks)
    return read_value(path, value, options, kind)


def _of_yaml(text: str) -> object:
    """Return the value of one YAML document, of several a list; comments are not read."""
    nodes = list(yaml.compose_all(text, _Loader))
    _require_bounded([node for node in nodes if node], len(text))
    values = [value for value in yaml.load_all(text, _Loader) if value is not None]
    if not values:
        raise Unreadable("the file holds no values")
    return values[0] if len(values) == 1 else values


def _require_bounded(roots: list[yaml.Node], size: int) -> None:
    """Raise Unreadable where aliases repeat so much that a short text stands for a long one."""
    sizes: dict[int, int] = {}

    def size_of(node: yaml.Node, depth: int) -> int:
        if depth > _MOST_DEPTH:
            raise Unreadable(f"the YAML is nested more than {_MOST_DEPTH} deep")
        if id(node) not in sizes:
            within: list[yaml.Node] = []
            if isinstance(node, yaml.MappingNode):
                within = [each for pair in node.value for each in pair]
            elif isinstance(node, yaml.SequenceNode):
                within = node.value
            own = len(node.value) if isinstance(node, yaml.ScalarNode) else 0
            sizes[id(node)] = 1 + own + sum(size_of(each, depth + 1) for each in within)
        return sizes[id(node)]

    if sum(size_of(root, 0) for root in roots) > 3 * size + _MOST_REPEATED:
        raise Unreadable("aliases in the YAML repeat too much: write out what they stand for")


def _of_ini(text: str) -> object:
    """Return sections and their values as the object that they stand for."""
    parser = configparser.RawConfigParser(strict=False, default_section="")
    parser.read_string(text)
    return {name: dict(parser[name]) for name in parser.sections()}


_VERSIONS = versions.of("configs", "records")
YAML = FileFormat(partial(_read, _of_yaml, "YAML"), _VERSIONS, SMALL_RECORDS)
INI = FileFormat(partial(_read, _of_ini, "INI"), _VERSIONS, SMALL_RECORDS)
TOML = FileFormat(partial(_read, tomllib.loads, "TOML"), _VERSIONS, SMALL_RECORDS)
