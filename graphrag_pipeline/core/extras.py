"""Libraries that not everybody installs: which are missing, and how to get them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.patterns import pattern_of

MODULES = {
    "cluster": (
        "graphrag_cluster",
        "dagster_celery",
        "dagster_k8s",
        "dagster_postgres",
        "psycopg",
    ),
    "dg": ("dagster_dg_cli",),
    "evaluation": ("graphrag_evaluation",),
    "legacy": ("oxmsg", "striprtf", "xlrd"),
    "local": ("sentence_transformers",),
    "marts": ("dagster_dbt", "dbt"),
    "metrics": ("graphrag_evaluation", "bert_score", "nltk", "sacrebleu"),
    "office": ("openpyxl", "pptx"),
    "server": ("graphrag_server", "fastapi", "uvicorn", "prometheus_client", "mcp"),
    "ui": ("dagster_webserver",),
}
"""What each extra of the project brings, by the names of modules."""
_PROJECT = "graphrag-pipeline"
_ASKED_FOR = pattern_of(r"install the extra \[(\w+)\]")


def missing_modules(extra: str) -> tuple[str, ...]:
    """Return the modules of an extra that are not installed."""
    return tuple(name for name in MODULES[extra] if find_spec(name) is None)


def require_extra(extra: str, purpose: str) -> None:
    """Raise ConfigError where an extra is not installed, which ``purpose`` needs."""
    for name in missing_modules(extra):
        raise ConfigError(f"{purpose} needs {name}: {how_to_install(extra)}")


def how_to_install(extra: str) -> str:
    """Return how to install an extra, in words that end a sentence.

    The project is on no package index: it is installed again from where it came.
    """
    place, options = _origin()
    if place is None:
        return f"install {_PROJECT} again, from where you have it, with the extra [{extra}]"
    return f"pip install {options}{shlex.quote(f'{place}[{extra}]')}"


def commands_for(reasons: Iterable[str]) -> list[str]:
    """Return how to install each extra that reasons ask for as ``install the extra [NAME]``.

    A reason is kept in the index, which may be read elsewhere, so that it has no command itself.
    """
    asked = {name for reason in reasons for name in _ASKED_FOR.findall(reason)}
    return [how_to_install(name) for name in sorted(asked & MODULES.keys())]


def _origin() -> tuple[Path | None, str]:
    """Return the wheel or folder that the project was installed from, and pip's options for it."""
    from importlib.metadata import distribution

    record = json.loads(distribution(_PROJECT).read_text("direct_url.json") or "{}")
    address = urlsplit(record.get("url", ""))
    # It brings a client of HTTP along, which every command would wait for.
    from urllib.request import url2pathname

    place = Path(url2pathname(address.path))
    if address.scheme != "file" or not place.exists():
        return None, ""
    if place.is_file():
        # What an extra brings may be another wheel, beside this one.
        return place, f"--find-links {shlex.quote(str(place.parent))} "
    return place, "-e " if record.get("dir_info", {}).get("editable") else ""
