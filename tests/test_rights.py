"""Who may read a home, and settings that somebody else left where they are found."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conftest import without_privileges
from graphrag_pipeline import Index
from graphrag_pipeline.cli.app import app
from graphrag_pipeline.core.errors import ConfigError, StorageError
from graphrag_pipeline.core.hardening.files import make_folder, private_temporary
from graphrag_pipeline.core.home import Home, exposed, make_home
from graphrag_pipeline.core.settings import Settings, load_settings
from graphrag_pipeline.ingest.sites import fetch_sites
from graphrag_pipeline.llm.database import open_database
from graphrag_pipeline.orchestration.runs import dagster_home
from graphrag_pipeline.pipeline.updating import cut_batches
from graphrag_pipeline.store.batches import BatchLog
from graphrag_pipeline.store.index_store import IndexStore, memory_database
from graphrag_pipeline.store.workspace import Workspace

pytestmark = pytest.mark.skipif(os.name == "nt", reason="rights of a path are POSIX's")
ELSEWHERE = "https://elsewhere.example/v1"
TEXT = "Ada Lovelace met Charles Babbage in London."


def rights(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _fetch_nothing(home: Path, settings: Settings) -> None:
    with pytest.raises(Exception, match="no page could be fetched"):
        fetch_sites(home, ["http://127.0.0.1:9/"], settings)


FIRST_WRITERS: dict[str, Callable[[Path, Settings], object]] = {
    "a run": lambda home, settings: Workspace(settings).turn().__enter__(),
    "a batch": lambda home, settings: cut_batches(Workspace(settings), home.parent / "inbox"),
    "Dagster": lambda home, settings: dagster_home(settings),
    "web pages": _fetch_nothing,
}
WITHOUT_SETTINGS: dict[str, Callable[[Path], object]] = {
    "tables": lambda home: IndexStore(Home(home).index).read().__enter__(),
    "manifests": lambda home: BatchLog(home)._lock().__enter__(),
}


@pytest.mark.parametrize("umask", [0o022, 0o077, 0], ids=oct)
@pytest.mark.parametrize("mode", ["0700", "0750", "750", "02750"])
@pytest.mark.parametrize("first", FIRST_WRITERS)
def test_whatever_writes_first_makes_the_home_with_the_rights_that_are_set(
    tmp_path: Path, monkeypatch, first: str, mode: str, umask: int
) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    home = tmp_path / "home"
    (tmp_path / "inbox").mkdir()
    before = os.umask(umask)
    try:
        FIRST_WRITERS[first](home, Settings(home=str(home), home_mode=mode))
    finally:
        os.umask(before)
    assert rights(home) == int(mode, 8)


@pytest.mark.parametrize("first", WITHOUT_SETTINGS)
def test_a_home_that_is_made_without_settings_is_its_owners_alone(
    tmp_path: Path, first: str
) -> None:
    WITHOUT_SETTINGS[first](tmp_path / "home")
    assert rights(tmp_path / "home") == 0o700


def test_a_whole_index_is_closed_to_others_and_paid_answers_to_readers_too(tmp_path: Path) -> None:
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "a.txt").write_text(TEXT)
    index = Index(tmp_path / "home", Settings(home_mode="0750"))
    index.update(documents)
    open_database(Home(index.home).calls).close()
    assert rights(index.home) == 0o750
    for path in (Home(index.home).published, Home(index.home).releases, Home(index.home).vectors):
        assert rights(path) & 0o040, path
    for path in (Home(index.home).batches, Home(index.home).calls):
        assert not rights(path) & 0o077, path


def test_paid_answers_are_the_owners_alone_also_in_an_older_home(tmp_path: Path) -> None:
    file = Home(tmp_path).calls
    con = open_database(file)
    con.execute("SELECT 1")
    con.close()
    file.chmod(0o644)
    con = open_database(file)
    con.execute("CREATE TABLE t (a)")
    assert {rights(path) for path in tmp_path.glob(f"{file.name}*")} == {0o600}
    con.close()


def test_a_home_that_is_there_is_told_of_and_not_changed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o775)
    settings = Settings(home=str(home))
    make_home(settings)
    make_folder(home)
    assert rights(home) == 0o775
    assert [line.partition(":")[0] for line in exposed(settings)] == [
        f"others may read and change {home}, which holds your documents"
    ]
    home.chmod(0o755)
    assert exposed(settings)[0].startswith(f"others may read {home}")
    assert "chmod 0700" in exposed(settings)[0]
    home.chmod(0o750)
    assert not exposed(Settings(home=str(home), home_mode="0750"))
    home.chmod(0o700)
    assert not exposed(settings)


def test_status_and_index_tell_that_others_may_read(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".graphrag").mkdir(mode=0o755)
    (tmp_path / ".graphrag").chmod(0o755)
    result = CliRunner().invoke(app, ["status"])
    assert result.exit_code == 0
    assert "warning: others may read" in result.output


def test_keys_that_others_may_read_are_told_of(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    env_file = tmp_path / ".env"
    env_file.write_text("OPENAI_API_KEY=sk-mine\n")
    env_file.chmod(0o644)
    (warning,) = exposed(load_settings())
    assert f"chmod 600 {env_file}" in warning
    assert "sk-mine" not in warning
    env_file.chmod(0o600)
    assert not exposed(load_settings())


def test_a_home_of_somebody_else_is_one_line(open_folder: Path, monkeypatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a folder that is closed to us")
    monkeypatch.chdir(open_folder)
    (open_folder / ".graphrag").mkdir(mode=0o700)
    for arguments in (["status"], ["query", "Who?"], ["sql", "SELECT 1"], ["index", "."]):
        with without_privileges():
            result = CliRunner().invoke(app, arguments)
        assert result.exit_code == StorageError.exit_code, arguments
        (line,) = result.output.strip().splitlines()
        assert line.lower().endswith("permission denied"), line


@pytest.fixture
def found(tmp_path: Path, monkeypatch) -> Callable[[str, str], None]:
    """Write a file into the current folder that belongs to somebody else."""
    monkeypatch.chdir(tmp_path)

    def write(name: str, text: str) -> None:
        file = tmp_path / name
        file.write_text(text)
        if os.geteuid() == 0:
            os.chown(file, 65534, 65534)
        else:
            us = os.geteuid()
            monkeypatch.setattr(os, "geteuid", lambda: us + 1)

    return write


@pytest.mark.parametrize(
    ("name", "text", "danger"),
    [
        ("graphrag.toml", f"[llm]\nbase_url = '{ELSEWHERE}'", "send your OPENAI_API_KEY to"),
        (
            "graphrag.toml",
            f"[llm]\nbase_url = '{ELSEWHERE}'\napi_key_env = ''",
            "send your OPENAI_API_KEY to",
        ),
        (
            "graphrag.toml",
            f"[models.chat]\nbase_url = '{ELSEWHERE}'\napi_key_env = ''",
            "send your OPENAI_API_KEY to",
        ),
        (".env", f"GRAPHRAG_LLM__BASE_URL={ELSEWHERE}", "send your OPENAI_API_KEY to"),
        (".env", "OPENAI_BASE_URL=https://u:pw@elsewhere.example", "send your OPENAI_API_KEY to"),
        ("graphrag.toml", "[notify]\ncommand = ['sh', '-c', 'true']", "run sh"),
        (".env", """GRAPHRAG_NOTIFY__COMMAND='["sh"]'""", "run sh"),
    ],
)
def test_settings_of_somebody_else_do_not_send_our_key_away_nor_run_programs(
    found, monkeypatch, name: str, text: str, danger: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
    found(name, text)
    with pytest.raises(ConfigError) as caught:
        load_settings()
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(name)
    assert danger in message
    assert "--config" in message
    assert "sk-mine" not in message
    assert "pw" not in message


def test_settings_of_somebody_else_are_taken_where_they_are_named_or_harmless(
    found, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
    file = tmp_path / "graphrag.toml"
    found(file.name, "[chunks]\nsize = 300")
    assert load_settings().chunks.size == 300
    found(file.name, f"[llm]\nbase_url = '{ELSEWHERE}'")
    assert load_settings(file).llm.base_url == ELSEWHERE
    monkeypatch.setenv("GRAPHRAG_CONFIG", str(file))
    assert load_settings().llm.base_url == ELSEWHERE
    monkeypatch.delenv("GRAPHRAG_CONFIG")
    monkeypatch.delenv("OPENAI_API_KEY")
    assert load_settings().llm.base_url == ELSEWHERE


def test_our_own_address_beats_that_of_somebody_else(found, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://ours.example")
    found(".env", f"OPENAI_BASE_URL={ELSEWHERE}")
    assert load_settings().llm.base_url == ""


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"llm": {"base_url": "file:///etc/passwd"}}, "http:// or https://"),
        ({"llm": {"base_url": "ftp://user:secret@host/v1?key=secret"}}, "'host/v1'"),
        ({"input": {"urls": ["file:///etc/passwd"]}}, "http:// or https://"),
        ({"home": "file:///tmp/x"}, "a path of this machine"),
        ({"input": {"folder": "s3://bucket/x"}}, "a path of this machine"),
        ({"home": "a\0b"}, "NUL"),
        ({"input": {"folder": "a\0b"}}, "NUL"),
        ({"input": {"include": ["a", "b\0"]}}, "NUL"),
        ({"llm": {"extra": {"stop": ["\0"]}}}, "NUL"),
        ({"home_mode": "0640"}, '"0700"'),
        ({"home_mode": 0o750}, "in quotes"),
        ({"home_mode": "rwx"}, "rights"),
        ({"home_mode": "0777"}, "not everybody may write"),
    ],
)
def test_addresses_of_files_nul_and_wrong_rights_are_refused(values, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Settings(**values)
    message = str(caught.value)
    assert "\n" not in message
    assert said in message
    assert "secret" not in message


def test_what_does_not_fit_in_memory_is_spilled_where_nobody_else_may_look(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    con = memory_database()
    place = Path(con.execute("SELECT current_setting('temp_directory')").fetchone()[0])
    (ours,) = tmp_path.iterdir()
    assert ours in place.parents
    assert rights(ours) == 0o700
    con.execute("SET memory_limit = '40MB'; SET threads = 1")
    con.execute("CREATE TABLE t AS SELECT i, md5(i::VARCHAR) AS x FROM range(1500000) r(i)")
    assert [*place.iterdir()], "nothing was spilled: the test shows nothing"
    con.close()
    assert not place.exists()


def test_temporary_files_go_elsewhere_where_somebody_else_was_there_first(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ours = private_temporary()
    assert private_temporary() == ours
    ours.chmod(0o755)
    other = private_temporary()
    assert other != ours
    assert rights(other) == 0o700
    ours.rmdir()
    ours.symlink_to(tmp_path)
    assert private_temporary() == other
