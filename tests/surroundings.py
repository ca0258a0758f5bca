"""What surrounds the tests: nothing that the caller has set, and a home of their own."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

_THEIRS = ("GRAPHRAG_", "OPENAI_", "DAGSTER_", "DBT_", "XDG_", "HTTP_PROXY", "HTTPS_PROXY",
           "ALL_PROXY", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "TIKTOKEN_CACHE_DIR")  # fmt: skip
_SHARED = "TESTS_HOME"
_MEMORY = Path("/dev/shm")
_ENOUGH = 4_000_000_000


def isolate() -> None:
    """Forget the caller's settings; programs keep what they keep at home in a temporary folder.

    Workers, and processes that tests start, inherit both. Files of tests are in memory where there
    is room for them: a commit that waits for a disk proves nothing more here.
    """
    if "TMPDIR" not in os.environ and _has_room(_MEMORY):
        os.environ["TMPDIR"] = str(_MEMORY)
        tempfile.tempdir = None
    home = os.environ.get(_SHARED) or _temporary_home()
    for name in [name for name in os.environ if name.upper().startswith(_THEIRS)]:
        del os.environ[name]
    os.environ[_SHARED] = os.environ["HOME"] = home
    # Every process would compile every module anew: half of what the shorter tests cost.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    os.environ["DAGSTER_DISABLE_TELEMETRY"] = "1"
    # The workers of the tests take the processors already: more threads only wait for each other.
    os.environ["POLARS_MAX_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    # Processes that tests start run the code of this checkout, wherever the package is installed.
    tests = Path(__file__).parent
    os.environ["PYTHONPATH"] = os.pathsep.join([str(tests.parent), str(tests)])


def _has_room(folder: Path) -> bool:
    return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > _ENOUGH


def _temporary_home() -> str:
    home = tempfile.mkdtemp(prefix="graphrag-tests-home-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return home
