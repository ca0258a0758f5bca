"""Pages of the settings: every setting with its default and description, and a template."""

from __future__ import annotations

import ast
import functools
import inspect
import json
import textwrap
from collections.abc import Iterator, Mapping
from itertools import pairwise

from pydantic import BaseModel

from graphrag_pipeline.core.package_settings import SECTIONS
from graphrag_pipeline.core.setting_values import Section
from graphrag_pipeline.core.settings import MODELS, ModelSettings, Settings, setting_fields


def setting_rows() -> Iterator[tuple[str, str, object, str]]:
    """Yield (section, name, default, description) of every setting, in order."""
    for owner, group, name, default in setting_fields():
        yield group, name, default, _descriptions(owner)[name]


def model_rows() -> Iterator[tuple[str, str]]:
    """Yield (name, description) of every setting of a section ``[models.NAME]``, in order."""
    descriptions = _descriptions(ModelSettings)
    yield from ((name, descriptions[name]) for name in ModelSettings.model_fields)


@functools.cache
def _descriptions(owner: type[BaseModel]) -> Mapping[str, str]:
    """Return what is written below each field: read here, since few commands ask for it."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
    assert isinstance(tree, ast.ClassDef)
    descriptions = dict.fromkeys(owner.model_fields, "")
    for base in owner.__bases__:
        descriptions |= _descriptions(base) if issubclass(base, Section) else {}
    for field, below in pairwise(tree.body):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                descriptions[name] = " ".join(text.split())
    return descriptions


def template() -> str:
    """Return a ``graphrag.toml`` with every setting at its default, commented out."""
    lines = [
        "# Settings of the GraphRAG pipeline. Every line shows a default: remove the # to change",
        "# it. Environment variables win, for example GRAPHRAG_CHUNKS__SIZE=300.",
    ]
    section = ""
    for group, name, default, description in setting_rows():
        if group != section:
            section = group
            about = type(Settings.model_fields[group].default).__doc__ or ""
            lines += ["", f"[{group}]", f"# {' '.join(about.split())}"]
        if name == MODELS:
            lines += _EXAMPLE_OFMODELS
        lines += [f"# {description}", f"#{name} = {_toml(default)}"]
    return "\n".join([*lines, *_sections_of_packages()]) + "\n"


_EXAMPLE_OFMODELS = (
    "# Instead of the next line, sections at the end of the file, such as",
    "#   [models.chat]",
    '#   base_url = "http://localhost:8080/v1"',
    "#   [models.vectors]",
    '#   base_url = "http://localhost:8081/v1"',
)


def _sections_of_packages() -> Iterator[str]:
    """Yield the lines of the sections of packages that are installed, like those of our own."""
    for name, model in SECTIONS.usable().items():
        yield from ("", f"[packages.{name}]")
        values = model().model_dump(mode="json")
        for setting, field in model.model_fields.items():
            about = " ".join((field.description or "").split())
            default = "" if values[setting] is None else _toml(values[setting])
            yield from ([f"# {about}"] if about else [])
            yield f"#{setting} = {default}".rstrip()


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return "[" + ", ".join(_toml(part) for part in value) + "]"
    return json.dumps(value, ensure_ascii=False)
