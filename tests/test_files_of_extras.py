"""Files that an extra keeps in a home stay whole where the extra is not installed."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from query_fixture import publish, settings_for

from graphrag_pipeline.core import doors
from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.upkeep.backups import back_up, restore
from graphrag_pipeline.upkeep.home_files import OF_EXTRAS, faults
from graphrag_pipeline.upkeep.purging import plan_purge, purge


@pytest.fixture
def workspace(plain_stores: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """An index with a file of evaluations, where nothing knows what is in it."""
    monkeypatch.setattr(doors, "_installed", lambda path, here: {})
    home = publish(tmp_path / "home")
    with duckdb.connect(str(home / "evaluation.duckdb")) as con:
        con.execute("CREATE TABLE IF NOT EXISTS answers AS SELECT 'Anna Berg' AS text")
    made = Workspace(settings_for(home))
    with made.store.read():
        return made


def test_a_backup_keeps_evaluations_and_a_check_reads_them(
    workspace: Workspace, tmp_path: Path
) -> None:
    back_up(workspace, tmp_path / "index.tar.zst")
    restore(tmp_path / "index.tar.zst", tmp_path / "restored")
    with duckdb.connect(str(tmp_path / "restored" / "evaluation.duckdb")) as con:
        assert con.execute("SELECT text FROM answers").fetchall() == [("Anna Berg",)]
    assert not [*faults(workspace.home)]
    (workspace.home / "evaluation.duckdb").write_bytes(b"broken")
    assert [name for name, _, _ in faults(workspace.home)] == ["evaluation.duckdb"]


@pytest.mark.parametrize("name", sorted(OF_EXTRAS))
def test_a_purge_is_refused_that_could_not_look_into_a_file(
    workspace: Workspace, name: str
) -> None:
    (workspace.home / "evaluation.duckdb").rename(workspace.home / name)
    for act in (plan_purge, purge):
        extra = OF_EXTRAS[name].extra
        with pytest.raises(ConfigError, match=rf"{name} may hold what .* \[{extra}\]"):
            act(workspace)
    (workspace.home / name).unlink()
    assert plan_purge(workspace).release is None
