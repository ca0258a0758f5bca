"""A server that is killed while files are brought to it: each is there whole, or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
import requests
from commands import ForkedPython, command
from query_fixture import published

STEP = int(os.environ.get("STRIDE", "3"))
"""At every how many steps the server is killed in the nightly test."""
FILES: Mapping[str, bytes] = {
    f"{name}.txt": f"Ada Lovelace wrote {name} to Charles Babbage in London.\n".encode() * 400
    for name in ("one", "two", "three")
}
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")


@pytest.fixture
def inbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of documents of which a part is for uploads, beside an index that is published."""
    published(tmp_path / "home")
    uploads = tmp_path / "inbox" / "uploads"
    uploads.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "GRAPHRAG_HOME": tmp_path / "home",
        "GRAPHRAG_INPUT__FOLDER": tmp_path / "inbox",
        "GRAPHRAG_SERVER__UPLOADS": uploads,
    }.items():
        monkeypatch.setenv(name, str(value))
    return uploads


@contextlib.contextmanager
def serving(*program: str) -> Iterator[tuple[ForkedPython, str]]:
    """Serve in a process of its own; yield it and its address."""
    arguments = ["-m", *program, "serve", "--port", "0"]
    with ForkedPython(arguments, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            lines = iter(process.stderr.readline, "")
            yield process, next(url[0] for line in lines if (url := re.search(r"http://\S+", line)))
        finally:
            process.kill()


def bring(url: str, names: Sequence[str]) -> list[str]:
    """Bring files until the server is gone; return the names of those that it said it has."""
    taken: list[str] = []
    with contextlib.suppress(requests.ConnectionError), requests.Session() as session:
        session.trust_env = False
        for name in names:
            answer = session.post(
                f"{url}/v1/documents", params={"name": name}, data=FILES[name], timeout=60
            )
            assert answer.status_code == 202, answer.text
            taken.append(name)
    return taken


def whole_files(uploads: Path) -> list[str]:
    """Return the names of the files that a run would see, which must be whole."""
    places = [path for path in uploads.rglob("*") if path.is_file()]
    seen = [path for path in places if not path.relative_to(uploads).parts[0].startswith(".")]
    for path in seen:
        assert path.read_bytes() == FILES[path.name]
        assert hashlib.sha256(path.read_bytes()).hexdigest().startswith(path.parent.name)
    return sorted(path.name for path in seen)


def killed_while_it_takes(uploads: Path, step: int) -> bool:
    """Bring files to a server that is killed before a step, then the rest to another one."""
    with serving("killed_command", str(step), str(uploads)) as (process, url):
        taken = bring(url, [*FILES])
        was_killed = process.poll() is not None or len(taken) < len(FILES)
        if was_killed:
            assert process.wait(60) == -signal.SIGKILL
    assert set(taken) <= set(whole_files(uploads))
    with serving("graphrag_pipeline.cli") as (_, url):
        assert not [path for path in uploads.iterdir() if path.name.startswith(".")]
        assert bring(url, [*FILES]) == [*FILES]
    assert whole_files(uploads) == sorted(FILES)
    return was_killed


@pytest.mark.waits
def test_a_server_killed_while_it_takes_files_has_them_whole_or_not_at_all(inbox: Path) -> None:
    assert killed_while_it_takes(inbox, 12)


@pytest.mark.nightly
@pytest.mark.slow
def test_so_has_one_killed_at_any_step_and_the_next_run_reads_them(
    inbox: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, number = 0, 0
    while killed_while_it_takes(inbox, step):
        for path in sorted(inbox.rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
        step, number = step + STEP, number + 1
    print(f"serve: {number} kills at {step} steps")
    assert number > 5
    monkeypatch.setenv("GRAPHRAG_HOME", str(tmp_path / "new"))
    indexed = command("index", "inbox")
    assert indexed.returncode == 0, indexed.stderr
    assert re.search(r"documents\s+3\b", indexed.stdout + indexed.stderr)
