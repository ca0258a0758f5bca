"""The command line: what it prints, and the exit codes a script can rely on."""

from __future__ import annotations

import contextlib
import csv
import fcntl
import io
import itertools
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from commands import ForkedPython
from rich.cells import cell_len

from graphrag_pipeline.cli import app as cli
from graphrag_pipeline.cli import console, index_views, tables
from graphrag_pipeline.cli import progress as cli_progress
from graphrag_pipeline.cli.progress import progress as shown_progress
from graphrag_pipeline.core import progress
from graphrag_pipeline.core.extras import how_to_install
from graphrag_pipeline.core.hardening.locks import locked
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.releases.measuring import MEASURES

REFERENCE = Path(__file__).parents[1] / "docs" / "reference" / "cli.md"
GROUP = typer.main.get_command(cli.app)
COMMANDS = sorted(GROUP.commands)  # type: ignore[attr-defined]
PRINTS_RESULTS = [
    *("backup", "cache", "check", "forget", "purge", "restore"),
    "compare",
    "diff",
    "explore",
    "export",
    "feedback",
    "import-extractions",
    "import-graphrag",
    "index",
    "marts",
    "methods",
    "plan",
    "query",
    "releases",
    "report",
    "rollback",
    "sql",
    "status",
    "tune",
]
DOCUMENTS = {
    "dam.md": "# Orlen Dam\n\nOskar Kovarna built the Orlen Dam for the Vessa Valley Power Board. "
    "Nadia Fenwright of the Lysander Marine Institute tested its concrete.",
    "bridge.txt": "Nadia Fenwright wrote to Orsolya Venn about the Kestrel Bridge. Orsolya Venn "
    "of the Courier told the Vessa Valley Power Board.",
    "list.csv": 'id,title,text\n1,"Pier, 4","The Kestrel Bridge, ""our bridge"", was closed."\n'
    "2,Nothing,\n",
    "broken.pdf": "%PDF-1.4 and nothing more",
}


@dataclass
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


Run = Callable[..., Done]
Python = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run a command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for name in [name for name in os.environ if name.startswith("GRAPHRAG_")]:
        monkeypatch.delenv(name)
    # What --config and a run set must not outlive the test.
    for name in ("GRAPHRAG_CONFIG", "DAGSTER_HOME"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)

    def call(*arguments: str, home: Path | None = None) -> Done:
        if home is not None:
            monkeypatch.setenv("GRAPHRAG_HOME", str(home))
        monkeypatch.setattr(sys, "argv", ["graphrag-pipeline", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        printed = capsys.readouterr()
        code = stopped.value.code
        return Done(code if isinstance(code, int) else 0, printed.out, printed.err)

    return call


def new_python(arguments: list[str], **options: object) -> subprocess.Popen[str]:
    """Start Python as a user does, where what it imports and how it ends is what counts."""
    return subprocess.Popen([sys.executable, *arguments], **options)


def start(
    *arguments: str, home: Path, python: Python = ForkedPython, **options: object
) -> subprocess.Popen[str]:
    environment = {k: v for k, v in os.environ.items() if k != "DAGSTER_HOME"}
    return python(
        ["-m", "graphrag_pipeline.cli", *arguments],
        env={**environment, "GRAPHRAG_HOME": str(home), "COLUMNS": "80"},
        text=True,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
    )


def finish(process: subprocess.Popen[str]) -> Done:
    out, err = process.communicate(timeout=180)
    return Done(process.returncode, out or "", err or "")


@dataclass
class Indexed:
    """A home made by the command `index`, and what the command said."""

    home: Path
    folder: Path
    first: Done


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Indexed:
    place = tmp_path_factory.mktemp("cli")
    folder = place / "documents"
    folder.mkdir()
    for name, text in DOCUMENTS.items():
        (folder / name).write_text(text)
    home = place / ".graphrag"
    return Indexed(home, folder, finish(start("index", str(folder), home=home)))


def only_line(done: Done, code: int) -> str:
    """Return the one line of an error, which stands on standard error and alone."""
    assert done.code == code, done
    assert done.out == ""
    lines = done.err.splitlines()
    assert len(lines) == 1, done.err
    assert lines[0].startswith("error: ")
    return lines[0].removeprefix("error: ")


# Help


def test_the_list_of_commands_has_every_command() -> None:
    text = REFERENCE.read_text().partition("## All commands")[2].partition("## graphrag")[0]
    assert [name for name in COMMANDS if f"graphrag-pipeline {name}" not in text] == []


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_every_command_has_help(run: Run, command: str, option: str) -> None:
    done = run(command, option)
    assert done.code == 0
    assert done.err == ""
    about = GROUP.commands[command].help  # type: ignore[attr-defined]
    assert about
    assert about.split()[0] in done.out
    assert ("--json" in done.out) == (command in PRINTS_RESULTS)
    assert max(map(len, done.out.splitlines())) <= 80


def test_help_says_what_the_exit_codes_mean(run: Run) -> None:
    done = run("--help")
    text = " ".join(done.out.split())
    assert all(f"{code} " in text for code in (0, 1, 2, 3, 4, 5, 130))
    assert [name for name in COMMANDS if name not in done.out] == []


def test_version_is_one_word(run: Run) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*\n", run("--version").out)


# Usage and settings


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["query"], "question"),
        (["nonsense"], "nonsense"),
        (["sql", "SELECT 1", "--format", "xml"], "xml"),
        (["query", "Who?", "--level", "deep"], "level = 'deep'"),
        (["ui", "--port", "99999"], "--port"),
    ],
)
def test_wrong_usage_is_exit_code_2(run: Run, arguments: list[str], named: str) -> None:
    done = run(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert named in done.err


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ("[chunks\nsize = 5", ["graphrag.toml", "TOML"]),
        ("[chunks]\nsizes = 5", ["chunks.sizes", "did you mean chunks.size?"]),
        ("[chunk]\nsize = 5", ["unknown setting chunk", "did you mean chunks?"]),
        ('[chunks]\nsize = "many"', ["chunks.size", "'many'", "integer"]),
        ("[chunks]\nsize = 100\noverlap = 100", ["overlap (100)", "smaller", "size (100)"]),
        ('[embeddings]\nembedder = "magic"', ["embeddings.embedder", "'magic'", "'hashing'"]),
    ],
)
def test_a_wrong_setting_is_one_line(
    run: Run, tmp_path: Path, settings: str, named: list[str]
) -> None:
    (tmp_path / "graphrag.toml").write_text(settings)
    line = only_line(run("status"), 2)
    assert [word for word in named if word not in line] == []


@pytest.mark.parametrize("command", ["plan", "index", "ui"])
def test_a_wrong_schedule_is_one_line_before_anything_runs(
    run: Run, tmp_path: Path, command: str
) -> None:
    (tmp_path / "documents").mkdir()
    (tmp_path / "graphrag.toml").write_text("[schedule]\nrefresh_cron = 'often'")
    assert "schedule.refresh_cron = 'often': must be five cron" in only_line(run(command), 2)
    assert not (tmp_path / ".graphrag").exists()


def test_a_wrong_environment_variable_is_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHRAG_CHUNKS__SIZ", "5")
    assert "did you mean GRAPHRAG_CHUNKS__SIZE?" in only_line(run("status"), 2)


def test_config_names_the_settings_file(run: Run, tmp_path: Path) -> None:
    assert "other.toml is not a file" in only_line(run("--config", "other.toml", "status"), 2)
    (tmp_path / "other.toml").write_text('home = "elsewhere"')
    done = run("--config", "other.toml", "status")
    assert done.code == 0
    assert str(tmp_path / "elsewhere") in done.out


def test_init_writes_settings_that_are_read_and_refuses_to_overwrite(
    run: Run, tmp_path: Path
) -> None:
    assert run("init").code == 0
    written = (tmp_path / "graphrag.toml").read_text()
    assert run("status").code == 0
    (tmp_path / "graphrag.toml").write_text("# mine")
    assert "graphrag.toml is there already" in only_line(run("init"), 2)
    assert (tmp_path / "graphrag.toml").read_text() == "# mine"
    assert run("init", "--force").code == 0
    assert (tmp_path / "graphrag.toml").read_text() == written


def test_init_makes_the_folder_it_is_given(run: Run, tmp_path: Path) -> None:
    assert run("init", "new/project").code == 0
    assert (tmp_path / "new" / "project" / "graphrag.toml").is_file()
    (tmp_path / "file").write_text("")
    assert "file is not a folder" in only_line(run("init", "file"), 2)


def test_every_setting_stands_commented_in_the_settings_file(run: Run, tmp_path: Path) -> None:
    from graphrag_pipeline.core.settings_template import setting_rows

    run("init")
    text = (tmp_path / "graphrag.toml").read_text()
    assert [name for _, name, _, _ in setting_rows() if f"\n#{name} = " not in text] == []


# Nothing there, busy, damaged


@pytest.mark.parametrize("arguments", [["query", "Who?"], ["sql", "SELECT 1"]])
def test_reading_before_anything_is_published_is_exit_code_3(
    run: Run, arguments: list[str]
) -> None:
    assert "graphrag-pipeline index" in only_line(run(*arguments), 3)


def test_status_before_anything_is_indexed(run: Run, tmp_path: Path) -> None:
    done = run("status", home=tmp_path / "some where")
    assert done.code == 0
    assert str(tmp_path / "some where") in done.out
    assert "Nothing is indexed yet" in done.out
    assert json.loads(run("status", "--json").out)["published"] is None
    assert not (tmp_path / "some where").exists()


def test_a_folder_that_is_not_there_is_one_line(run: Run) -> None:
    assert "nowhere is not a folder" in only_line(run("index", "nowhere"), 2)
    assert "documents is not a folder" in only_line(run("index"), 2)


@pytest.mark.parametrize("command", ["import-graphrag", "import-extractions"])
def test_importing_what_is_not_there_is_one_line(run: Run, command: str) -> None:
    assert "nowhere does not exist" in only_line(run(command, "nowhere"), 2)


def test_a_held_index_is_exit_code_4(
    run: Run, indexed: Indexed, monkeypatch: pytest.MonkeyPatch
) -> None:
    from graphrag_pipeline.store import index_store as store

    waiting = store.IndexStore.__init__
    monkeypatch.setattr(
        store.IndexStore, "__init__", lambda self, path, *_: waiting(self, path, wait_seconds=0.1)
    )
    with (indexed.home / "index.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "another process" in only_line(run("status", home=indexed.home), 4)


def test_a_damaged_index_is_exit_code_5(run: Run, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "index.duckdb").write_bytes(b"this is no database" * 1000)
    (home / "published.duckdb").write_bytes(b"this is no database" * 1000)
    assert "index.duckdb" in only_line(run("status", home=home), 5)
    for arguments in (["sql", "SELECT 1"], ["query", "Who?"]):
        assert "published.duckdb" in only_line(run(*arguments), 5)


# Index and status


def test_index_says_what_it_built(indexed: Indexed) -> None:
    done = indexed.first
    assert done.code == 0, done.err
    assert "4 files added" in done.out
    for name in ("documents", "chunks", "entities", "relationships"):
        assert re.search(rf"^{name} +[1-9]\d*$", done.out, re.MULTILINE), done.out
    assert re.search(r"^level +communities +reports +largest\n +0 ", done.out, re.MULTILINE)
    assert re.search(r"^seconds +\d+\.\d$", done.out, re.MULTILINE)
    assert "1 file and 1 record could not be read" in done.out
    assert "broken.pdf: the PDF is damaged" in done.out
    assert re.search(r"^published +release \d{8}T", done.out, re.MULTILINE)
    assert re.search(r"^ +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$", done.out, re.MULTILINE)


def test_records_of_a_file_with_the_same_fault_are_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [
        {"uri": f"{file}#row-{n}", "reason": f"the quotes in line {n + 1} do not match",
         "is_record": True, "is_other_kind": False}
        for file in ("a.csv", "b.csv") for n in range(1, 1301)
    ]  # fmt: skip
    index_views.show_unread([*rows, {**rows[0], "uri": "c.csv#row-9"}])
    assert capsys.readouterr().out.splitlines() == [
        "2,601 records could not be read (see the table quarantine):",
        "  a.csv#row-1: the quotes in line 2 do not match (and 1,299 more like it)",
        "  b.csv#row-1: the quotes in line 2 do not match (and 1,299 more like it)",
        "  c.csv#row-9: the quotes in line 2 do not match",
    ]


def test_what_an_extra_would_read_is_told_with_the_command_that_installs_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    reason = "xlsx files need openpyxl: install the extra [office], then run `index` again"
    index_views.show_unread(
        [
            {"uri": f"{name}.xlsx", "reason": reason, "is_record": False, "is_other_kind": False}
            for name in ("a", "b")
        ],
        where="",
    )
    assert capsys.readouterr().out.splitlines() == [
        "2 files could not be read:",
        f"  a.xlsx: {reason}",
        f"  b.xlsx: {reason}",
        f"  to read more of them: {how_to_install('office')}",
    ]


def test_progress_that_nobody_reads_any_more_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        with shown_progress("Indexing"):
            for stage in ("documents", "chunks"):
                progress.report(stage, 1, 1)
        monkeypatch.undo()


def test_a_command_that_is_started_without_streams_writes_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    monkeypatch.setattr(sys, "stdout", None)
    cli._open_what_is_closed()
    with sys.stderr, sys.stdout, shown_progress("Indexing"):
        progress.report("documents", 1, 1)
        console.say("4 files added")


def test_what_is_left_out_is_said_with_its_first_names_and_the_setting(
    run: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "a.txt").write_text("Alice Smith met Bob Jones.")
    (tmp_path / "secret.txt").write_text("Carol White")
    (folder / "link.txt").symlink_to("../secret.txt")
    (folder / ".hidden").touch()
    os.mkfifo(folder / "pipe.txt")
    lines = [
        "left out   3 files and folders",
        "       1  .* (input.default_excludes): .hidden",
        "       1  links out of the folder (input.follow_links): link.txt",
        "       1  pipes, sockets and devices, which are never read: pipe.txt",
    ]
    for command in (("plan", str(folder)), ("index", str(folder)), ("status",)):
        said = run(*command).out.splitlines()
        assert [line for line in said if line in lines] == lines, command
    (folder / "pipe.txt").unlink()
    run("index", str(folder))
    assert "left out   2 files and folders" in run("status").out.splitlines()


def test_status_names_the_titles_of_aliases_that_no_document_mentions(
    run: Run, indexed: Indexed, tmp_path: Path
) -> None:
    (tmp_path / "aliases.csv").write_text("action,a,b\nmerge,The Smoke,Lundun\n")
    said = run("status", home=indexed.home).out
    assert "aliases.csv has titles that no document mentions: Lundun, The Smoke" in said


def test_index_says_each_stage_once_on_standard_error_and_nothing_else(indexed: Indexed) -> None:
    lines = indexed.first.err.splitlines()
    stages = ["documents", "chunks", "extractions", "resolution", "graph", "communities", "reports"]
    measures = [measure.label for measure in MEASURES.usable().values()]
    assert sorted(line.split()[0] for line in lines) == sorted(
        [*stages, "embeddings", "publish", *measures]
    )
    assert all(re.fullmatch(r"\w+ +\d+/\d+ +\d+\.\d s", line) for line in lines), lines


def test_the_numbers_of_stages_stand_below_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_progress("start"):
        for stage in ("graph", "hirag communities", "attributed communities"):
            progress.report(stage, 1, 1)
    assert len({line.index(" 1/1 ") for line in capsys.readouterr().err.splitlines()}) == 1


def test_a_long_stage_says_every_half_minute_how_long_it_still_takes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.count(0, 10)
    timed = SimpleNamespace(perf_counter=lambda: float(next(clock)))
    monkeypatch.setattr(cli_progress, "time", timed)
    with shown_progress("start"):
        for done in range(9):
            progress.report("chunks_vectors", done, 8)
    *lines, last = capsys.readouterr().err.splitlines()
    assert lines
    assert all(re.search(r" \d/8 +\d+\.\d s, about \d+ (s|min) left$", line) for line in lines)
    assert re.search(r" 8/8 +\d+\.\d s$", last)


def test_index_again_as_json_is_all_that_standard_output_holds_and_a_terminal_has_bars(
    indexed: Indexed,
) -> None:
    ours, theirs = pty.openpty()
    arguments = ("index", str(indexed.folder), "--recluster", "--json")
    run = start(*arguments, home=indexed.home, stderr=theirs)
    os.close(theirs)
    drawn = b""
    # A terminal that nobody writes to any more is an error to read.
    with contextlib.suppress(OSError):
        while block := os.read(ours, 4096):
            drawn += block
    os.close(ours)
    done = finish(run)
    assert done.code == 0
    assert "━" in drawn.decode()
    assert "\x1b" not in done.out
    told = json.loads(done.out)
    assert told["changes"] == {"add": 0, "change": 0, "remove": 0, "rename": 0}
    assert told["batches_run"] == 0
    assert told["documents"] == 3
    assert told["seconds"]["total"] > 0
    assert len(told["runs"]) == 1
    assert [row["reason"] for row in told["quarantined"] if row["uri"].endswith(".pdf")]


def test_status_shows_the_same_as_text_and_as_json(run: Run, indexed: Indexed) -> None:
    text = run("status", home=indexed.home).out
    told = json.loads(run("status", "--json").out)
    assert told["indexed"] is True
    assert told.keys() == json.loads(run("status", "--json", home=indexed.home / "no").out).keys()
    assert told["pending_batches"] == []
    assert told["refresh_needed"] is False
    assert told["published"]["id"] in text
    assert f"entities      {told['entities']:>10,}" in text
    assert "pending    0 batches" in text


def test_status_names_a_batch_that_was_cut_but_not_run(
    run: Run, tmp_path: Path, engine_home: Path
) -> None:
    text = run("status", home=engine_home).out
    assert "pending    1 batch\n" in text
    assert "run graphrag-pipeline index" in text


@pytest.fixture
def engine_home(tmp_path: Path) -> Path:
    from conftest import Engine

    engine = Engine(tmp_path / "engine")
    engine.write({"a.txt": "Nadia Fenwright met Orsolya Venn."})
    engine.cut()
    with engine.store.read():
        pass
    return engine.log.home


@pytest.mark.parametrize("stage", ["documents", "graph"])
def test_ctrl_c_ends_a_run_with_one_line_and_the_next_goes_on(
    run: Run, indexed: Indexed, tmp_path: Path, stage: str
) -> None:
    home = tmp_path / ".graphrag"
    home.mkdir()
    # A run that does not hear the signal can never publish: it would wait for this lock.
    with locked(Home(home).release_lock):
        # A session of its own: the terminal sends Ctrl-C to the whole group of processes.
        first = start("index", str(indexed.folder), home=home, start_new_session=True)
        assert first.stderr is not None
        while not first.stderr.readline().startswith(stage):
            pass
        os.killpg(first.pid, signal.SIGINT)
        done = finish(first)
    assert done.code in (130, -signal.SIGINT)
    assert done.out == ""
    lines = [line for line in done.err.splitlines() if not re.match(r"\w+ +\d+/\d+ ", line)]
    assert lines == ["stopped; what was finished is kept: run the command again to continue"]
    again = run("index", str(indexed.folder), home=home)
    assert again.code == 0, again.err
    assert re.search(r"^documents +3$", again.out, re.MULTILINE), again.out


# Query


def test_an_answer_shows_where_it_stands(run: Run, indexed: Indexed) -> None:
    done = run("query", "Who built the Orlen Dam?", "--method", "basic", home=indexed.home)
    assert done.code == 0
    assert done.err == ""
    assert re.search(r"^\[1\] .+\n +\S+dam\.md \d+–\d+$", done.out, re.MULTILINE), done.out
    assert re.search(r"^0 model calls, \$0\.0000, \d+\.\d\d s$", done.out, re.MULTILINE)


@pytest.mark.parametrize("method", ["basic", "bm25", "hybrid", "local", "global"])
def test_an_answer_as_json_cites_spans_of_documents(
    run: Run, indexed: Indexed, method: str
) -> None:
    done = run("query", "Who built the Orlen Dam?", "-m", method, "--json", home=indexed.home)
    told = json.loads(done.out)
    assert told["method"] == method
    assert told["citations"]
    cited = [c for c in told["citations"] if c["uri"]]
    assert all(c["start_char"] < c["end_char"] for c in cited)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["Who?", "--method", "magic"], "'magic'"),
        (["   "], "empty"),
        (["Who?", "--top-k", "0"], "top_k"),
        (["Who?", "--level", "-1"], "level"),
    ],
)
def test_a_question_that_cannot_be_asked_is_one_line(
    run: Run, indexed: Indexed, arguments: list[str], named: str
) -> None:
    assert named in only_line(run("query", *arguments, home=indexed.home), 2)


# SQL


@pytest.fixture
def on_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command as if its output went to a terminal of 80 columns."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")

    def call(*arguments: str, home: Path) -> Done:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        return run(*arguments, home=home)

    return call


def test_what_a_list_says_is_wrapped_below_its_first_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "24")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    console.say(
        "- Steps of the harbour:\n  1. Bring out all the lines\n  2. Call\n\nAs said above, at dawn"
    )
    assert capsys.readouterr().out == (
        "- Steps of the harbour:\n  1. Bring out all the\n     lines\n  2. Call\n\n"
        "As said above, at dawn\n"
    )


def test_sql_as_a_table_fits_the_terminal(on_terminal: Run, indexed: Indexed) -> None:
    query = "SELECT title, uri, text FROM documents ORDER BY uri"
    done = on_terminal("sql", query, home=indexed.home)
    assert done.code == 0
    assert done.out.splitlines()[0].split() == ["title", "uri", "text"]
    assert len(done.out.splitlines()) == 4
    assert max(map(len, done.out.splitlines())) == 80
    assert "…" in done.out
    assert "--format csv or json" in done.err


def test_a_pipe_gets_every_value_whole_in_one_line_a_row(run: Run, indexed: Indexed) -> None:
    done = run("sql", "FROM documents ORDER BY uri", home=indexed.home)
    assert len(done.out.splitlines()) == 4
    for text in ("tested its concrete.", "told the Vessa Valley Power Board."):
        assert text in done.out
    assert re.search("[0-9a-f]{64}", done.out)
    assert "…" not in done.out
    assert done.err == ""


def test_a_wide_row_is_set_as_a_block_in_which_ids_stay_whole(
    on_terminal: Run, indexed: Indexed
) -> None:
    done = on_terminal("sql", "FROM documents ORDER BY uri LIMIT 2", home=indexed.home)
    assert done.out.startswith("row 1\n")
    assert "\n\nrow 2\n" in done.out
    assert re.search(r"^content_hash +[0-9a-f]{64}$", done.out, re.MULTILINE)


def test_sql_as_csv_comes_back_as_it_was(run: Run, indexed: Indexed) -> None:
    hostile = """SELECT 'a,b' AS "x,""y", 'he said "no"' AS q, e'two\\nlines' AS n, NULL AS nothing,
                 true AS yes, '😀' AS face"""
    done = run("sql", hostile, "--format", "csv", home=indexed.home)
    assert list(csv.reader(io.StringIO(done.out, newline=""))) == [
        ['x,"y', "q", "n", "nothing", "yes", "face"],
        ["a,b", 'he said "no"', "two\nlines", "", "true", "😀"],
    ]


def test_nested_values_are_json_in_every_format(run: Run, indexed: Indexed) -> None:
    query = """SELECT findings, created_at, vector_versions FROM community_reports, releases
               ORDER BY len(findings) DESC LIMIT 1"""
    (row,) = json.loads(run("sql", query, "--json", home=indexed.home).out)
    assert set(row["findings"][0]) >= {"summary", "explanation", "chunk_id"}
    assert set(row["vector_versions"]) >= {"chunks"}
    (line,) = csv.DictReader(io.StringIO(run("sql", query, "-f", "csv").out))
    assert json.loads(line["findings"]) == row["findings"]
    assert json.loads(line["vector_versions"]) == row["vector_versions"]
    assert '{"summary": ' in run("sql", query).out


def test_json_of_any_value_is_valid(run: Run, indexed: Indexed) -> None:
    query = """SELECT 'nan'::DOUBLE AS a, 'inf'::FLOAT AS a, 1.50 AS d, DATE '2026-01-02' AS day,
               '\\x00ff'::BLOB AS b, MAP {1: [2.0, NULL]} AS m, 2::HUGEINT ** 70 AS h,
               INTERVAL 1 DAY AS i, '12:30'::TIME AS t"""
    done = run("sql", query, "--format", "json", home=indexed.home)
    (row,) = json.loads(done.out, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert (row["a"], row["a_1"]) == (None, None)
    assert (row["d"], row["day"], row["m"]) == (1.5, "2026-01-02", {"1": [2.0, None]})


def test_a_query_of_no_rows_shows_its_columns(run: Run, indexed: Indexed) -> None:
    done = run("sql", "SELECT id, title FROM entities WHERE false", home=indexed.home)
    assert (done.code, done.out, done.err) == (0, "id  title\n", "no rows\n")
    assert json.loads(run("sql", "SELECT id FROM entities WHERE false", "--json").out) == []


def test_of_very_many_rows_the_table_shows_the_first(run: Run, indexed: Indexed) -> None:
    done = run("sql", "FROM range(1000)", home=indexed.home)
    assert len(done.out.splitlines()) == 201
    assert "first 200 of 1,000 rows" in done.err


@pytest.mark.parametrize(
    "statement", ["SELEC 1", "SELECT titel FROM entities", "SELECT 'x'::INTEGER", "", "/* hello */"]
)
def test_a_wrong_statement_is_a_few_lines(run: Run, indexed: Indexed, statement: str) -> None:
    done = run("sql", statement, home=indexed.home)
    assert done.code == 2
    assert done.out == ""
    assert 1 <= len(done.err.splitlines()) <= 5
    assert all(line.startswith("error: ") for line in done.err.splitlines())


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_text('{file}')",
        "FROM '{file}'",
        "ATTACH '{folder}/other.duckdb'",
        "COPY entities TO '{folder}/new.csv'",
        "EXPLAIN ANALYZE COPY entities TO '{folder}/new.csv'",
        "SET lock_configuration = false",
        "CALL enable_logging(storage = 'file', storage_path = '{folder}/new')",
        "DELETE FROM entities",
        "SELECT * FROM statement",
    ],
)
def test_sql_cannot_leave_the_published_index(
    run: Run, indexed: Indexed, tmp_path: Path, statement: str
) -> None:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.csv").write_text("a,b\n1,2\n")
    before = (indexed.home / "published.duckdb").stat().st_mtime_ns
    text = statement.format(file=folder / "secret.csv", folder=folder)
    done = run("sql", text, home=indexed.home)
    assert done.code == 2, done
    assert done.out == ""
    assert [path.name for path in folder.iterdir()] == ["secret.csv"]
    assert (indexed.home / "published.duckdb").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    "statement",
    [
        "FROM entities LIMIT 1",
        "WITH e AS (FROM entities) SELECT count(*) FROM e",
        "SHOW TABLES",
        "DESCRIBE entities",
        "SUMMARIZE entities",
        "PIVOT entities ON type USING count(*) GROUP BY degree",
        "EXPLAIN SELECT 1",
        "PRAGMA table_info('entities')",
    ],
)
def test_queries_of_every_kind_run(run: Run, indexed: Indexed, statement: str) -> None:
    done = run("sql", statement, home=indexed.home)
    assert done.code == 0, done.err
    assert done.out


# Processes


def test_a_reader_that_goes_away_is_no_error(indexed: Indexed) -> None:
    query = ("sql", "FROM range(1000000)", "--format", "csv")
    run = start(*query, home=indexed.home, python=new_python)
    assert run.stdout is not None
    run.stdout.readline()
    run.stdout.close()
    assert run.stderr is not None
    assert (run.wait(timeout=60), run.stderr.read()) == (0, "")


def cpu_seconds(run_once: Callable[[], object]) -> float:
    """Return the CPU seconds of a whole process: other load is not counted."""
    before = os.times()
    run_once()
    after = os.times()
    spent = after.children_user + after.children_system
    return spent - before.children_user - before.children_system


@pytest.fixture(scope="module")
def importing() -> float:
    """The CPU seconds that a process takes to import the engines: how fast this machine is."""
    code = "import duckdb, polars, lancedb"
    once = [sys.executable, "-c", code]
    return min(cpu_seconds(lambda: subprocess.run(once, check=True)) for _ in range(2))


def costs_less(than: float, home: Path, *arguments: str) -> bool:
    """Whether a command takes fewer CPU seconds in one of three attempts."""

    def once() -> None:
        assert finish(start(*arguments, home=home, python=new_python)).code == 0

    return any(cpu_seconds(once) < than for _ in range(3))


def test_help_loads_no_engine() -> None:
    code = (
        "import atexit, sys\n"
        "from graphrag_pipeline.cli.app import main\n"
        "sys.argv = ['graphrag-pipeline', '--help']\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"dagster", "duckdb", "lancedb", "numpy", "polars", "pyarrow", "pydantic"}
    assert "query" in done.stdout
    assert not heavy & {*done.stderr.split()}


def test_a_query_costs_little_beyond_its_engines(indexed: Indexed, importing: float) -> None:
    assert costs_less(2 * importing, indexed.home, "query", "Who built the Orlen Dam?")


# Tables


def test_a_table_keeps_to_the_width_of_a_terminal_whatever_the_script(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "80")
    rows = [["大观园" * 30, "😀" * 9], ["a\x1b[31m\nb", 2]]
    text, is_cut = tables.render(["名", "face"], rows, is_terminal=True)
    assert is_cut
    assert max(map(cell_len, text.splitlines())) == 80
    assert len(text.splitlines()) == 3
    assert "\x1b" not in text


def test_a_table_for_a_pipe_is_as_wide_as_its_values() -> None:
    text, is_cut = tables.render(["name", "n"], [["x" * 500, 1], ["y", 22]], is_terminal=False)
    assert not is_cut
    assert text.splitlines() == [f"name{' ' * 499}n", f"{'x' * 500}   1", f"y{' ' * 501}22"]


def test_a_table_for_a_terminal_has_no_colour_where_none_is_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    text, _ = tables.render(["n"], [[1]], is_terminal=True)
    assert not re.search("\x1b\\[[0-9;]*3[0-7]", text)


def test_numbers_stand_at_the_right() -> None:
    rows = [[1, "a"], [None, "b"], [100, "c"]]
    text, _ = tables.render(["n", "s"], rows, is_terminal=False)
    assert text.splitlines() == ["  n  s", "  1  a", "     b", "100  c"]


def test_what_an_import_left_out_is_not_said_to_be_imported(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "made.jsonl"
    row = {"text": "Ann met Bo.", "entities": ["Ann", "Bo"], "triples": [["Ann", "Bo"]]}
    file.write_text(json.dumps(row))
    done = run("import-extractions", str(file), home=tmp_path / "home")
    assert done.code == 0
    assert "left out: malformed triples 1" in done.out.splitlines()
    assert "malformed" not in next(x for x in done.out.splitlines() if x.startswith("imported:"))
