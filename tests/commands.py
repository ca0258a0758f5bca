"""The command line in processes of their own, which need not import everything again."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory

from llm_helpers import in_environment, processes

from graphrag_pipeline.cli import app as cli

PATIENCE = 300


def command(*arguments: str) -> CompletedProcess[str]:
    """Run a command in this folder and environment; return its exit code and what it printed."""
    with TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        given = (dict(os.environ), _run, arguments, os.getcwd(), out, err)
        process = processes.Process(target=in_environment, args=given)
        process.start()
        process.join(PATIENCE)
        if process.exitcode is None:
            process.kill()
            process.join()
        assert process.exitcode is not None
        return CompletedProcess(arguments, process.exitcode, out.read_text(), err.read_text())


def _run(arguments: tuple[str, ...], folder: str, out: Path, err: Path) -> None:
    os.chdir(folder)
    for path, stream in ((out, 1), (err, 2)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), stream)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    sys.argv = ["graphrag-pipeline", *arguments]
    cli.main()
