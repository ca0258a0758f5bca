"""A process that does one thing to copies of an index, killed before one step after another.

Run as ``python -m release_steps publish|rollback TEMPLATE FOLDER STRIDE``: a copy is killed before
the change number ``STRIDE`` of a file's name or of a LanceDB tag, another so many later, and
so on until nothing is left to kill. A copy is called by the number of changes that it has made.
Prints the number that no copy reached. Each is done in a fork, which saves importing everything.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

from index_process import SMALL
from lancedb.table import LanceTable, Tags

from conftest import Engine
from graphrag_pipeline.core.settings import ReleaseSettings
from graphrag_pipeline.releases.kept_releases import release_ids
from graphrag_pipeline.releases.publishing import publish
from graphrag_pipeline.releases.rollback import rollback

KEEP = SMALL.model_copy(update={"releases": ReleaseSettings(keep=1)})
_NAMES_CHANGE = ("os.rename", "os.link", "os.remove", "os.chmod")
_PATIENCE = 240


class _Killer:
    def __init__(self, fatal: int) -> None:
        self._left = fatal

    def step(self) -> None:
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1

    def watch(self, home: Path) -> None:
        def hear(event: str, arguments: tuple[object, ...]) -> None:
            if event in _NAMES_CHANGE and str(arguments[0]).startswith(str(home)):
                self.step()

        sys.addaudithook(hear)
        for owner, name in ((Tags, "create"), (Tags, "delete"), (LanceTable, "optimize")):
            setattr(owner, name, self._stepping(getattr(owner, name)))

    def _stepping(self, method: Callable[..., object]) -> Callable[..., object]:
        def stepping(*arguments: object, **named: object) -> object:
            self.step()
            return method(*arguments, **named)

        return stepping


def act(what: str, folder: Path, fatal: int) -> None:
    """Publish, or roll back to the oldest release; do not survive step ``fatal``."""
    engine = Engine(folder, KEEP)
    home = engine.log.home
    _Killer(fatal).watch(home)
    if what == "publish":
        publish(engine.workspace)
    else:
        rollback(engine.workspace, release_ids(home)[-1])


def _is_killed(what: str, template: Path, folder: Path, fatal: int) -> bool:
    shutil.copytree(template, folder)
    child = os.fork()
    if not child:
        signal.alarm(_PATIENCE)
        act(what, folder, fatal)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status not in (0, -signal.SIGKILL):
        raise SystemExit(f"step {fatal} ended with {status}")
    return status != 0


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    task, place, into = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    stride = int(sys.argv[4])
    number = stride - 1
    while _is_killed(task, place, into / str(number), number):
        number += stride
    sys.stdout.write(f"{number}\n")
