"""The build back end of the core: setuptools, which pip tells where the packages beside lie.

Some extras are packages of this repository, such as ``server``. In a checkout pip takes them from
their folders. A wheel names them by their version: it may be installed anywhere. (uv takes the
folders from ``tool.uv.sources``.)
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from setuptools import build_meta

# What is not said here anew is setuptools' own.
from setuptools.build_meta import *  # noqa: F403

BESIDE = Path(__file__).resolve().parent


def prepare_metadata_for_build_wheel(directory: str, config_settings: Any = None) -> str:
    """Write what pip reads before it installs; return the name of the folder in ``directory``."""
    made = build_meta.prepare_metadata_for_build_wheel(directory, config_settings)
    return _from_folders(directory, made)


def prepare_metadata_for_build_editable(directory: str, config_settings: Any = None) -> str:
    """Write what pip reads before it installs; return the name of the folder in ``directory``."""
    made = build_meta.prepare_metadata_for_build_editable(directory, config_settings)
    return _from_folders(directory, made)


def build_wheel(directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    """Build a wheel; return its name. What was written for pip alone is not put into it."""
    return build_meta.build_wheel(directory, config_settings)


def _from_folders(directory: str, made: str) -> str:
    path = Path(directory, made, "METADATA")
    text = path.read_text()
    for project in BESIDE.glob("*/pyproject.toml"):
        name, folder = f"graphrag-pipeline-{project.parent.name}", project.parent.as_uri()
        text = re.sub(
            rf"(?m)^(Requires-Dist: {name}(\[.*?\])?) ?==[^;\n]*", rf"\1 @ {folder} ", text
        )
    path.write_text(text)
    return made
