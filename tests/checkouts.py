"""A copy of what is tracked, pip and uv in environments of their own, for tests of installation."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
_COMMAND = re.compile(r"pip install ([^`\n]+)")
_COMMENT = re.compile(r"\s+#.*")


def tracked() -> list[str]:
    """Return the names of the files of the project."""
    command = ["git", "ls-files"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return sorted(listed.stdout.splitlines())


def copy_to(folder: Path, *without: str) -> Path:
    """Copy the files of the project, links as links, but for some folders; return the folder."""
    for name in tracked():
        if name.startswith(without or "\0"):
            continue
        source, place = ROOT / name, folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            place.symlink_to(os.readlink(source))
        elif source.is_file():
            place.write_bytes(source.read_bytes())
    return folder


def run(command: Sequence[str | Path], folder: Path, **variables: str) -> str:
    """Run a command that must work, without what the caller has set; return what it printed."""
    private = ("GRAPHRAG_", "PYTHONPATH", "PYTEST_", "DAGSTER_", "COV_", "PIP_", "VIRTUAL_ENV")
    bare = {n: v for n, v in os.environ.items() if not n.startswith(private)}
    ended = subprocess.run(
        [str(each) for each in command],
        cwd=folder,
        env={**bare, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, f"{command}\n{ended.stdout[-8000:]}{ended.stderr[-4000:]}"
    return ended.stdout


def environment(folder: Path) -> Path:
    """Make a virtual environment; return its Python."""
    run([sys.executable, "-m", "venv", folder], folder.parent)
    return folder / "bin" / "python"


@cache
def an_index_answers() -> bool:
    """Whether packages can be had here."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--retries", "0"]
    with tempfile.TemporaryDirectory() as folder:
        command = [
            *pip,
            "--timeout",
            "10",
            "download",
            "--no-deps",
            "-q",
            "-d",
            folder,
            "iniconfig",
        ]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


def pip_arguments() -> Iterator[tuple[str, str]]:
    """Yield each page that has a line ``pip install``, and the arguments that it gives."""
    pages = [ROOT / name for name in tracked() if name.endswith(".md")]
    for page in pages:
        for match in _COMMAND.finditer(page.read_text()):
            yield page.relative_to(ROOT).as_posix(), _COMMENT.sub("", match[1]).strip()
