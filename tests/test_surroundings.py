"""The tests themselves: what the caller has set changes nothing, and nothing of his is touched."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
THEIRS = {
    "GRAPHRAG_PROFILE": "llm",
    "GRAPHRAG_LLM__BASE_URL": "http://127.0.0.1:9/v1",
    "GRAPHRAG_CHUNKS__SIZE": "no number",
    "graphrag_query__method": "none",
    "OPENAI_API_KEY": "sk-theirs",
    "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
    "DBT_PROFILES_DIR": "/nowhere",
    "HTTP_PROXY": "http://127.0.0.1:9",
    "COLUMNS": "20",
    "FORCE_COLOR": "1",
}


@pytest.mark.parametrize(
    "modules",
    [
        ["config"],
        pytest.param(
            ["query_command", "event_log", "cli", "pictures", "runs", "docs", "marts"],
            marks=pytest.mark.nightly,
        ),
    ],
    ids=" ".join,
)
def test_what_the_caller_set_changes_nothing_and_nothing_of_his_is_written(
    modules: list[str], tmp_path: Path
) -> None:
    home = tmp_path / "theirs"
    (home / "graphrag").mkdir(parents=True)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    folders = {
        "HOME": home,
        "XDG_CONFIG_HOME": home,
        "XDG_CACHE_HOME": home,
        "GRAPHRAG_HOME": home / "graphrag",
        "DAGSTER_HOME": home / "dagster",
        "TMPDIR": temporary,
    }
    mine = {name: value for name, value in os.environ.items() if name != "TESTS_HOME"}
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider"),
            *(f"tests/test_{module}.py" for module in modules),
        ],
        cwd=CHECKOUT,
        env={**mine, **THEIRS, **{name: str(path) for name, path in folders.items()}},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert [*home.rglob("*")] == [home / "graphrag"]
    assert [path.name for path in temporary.iterdir() if "tests-home" in path.name] == []
