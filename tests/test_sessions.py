"""Sessions at the terminal: `ask`, `sql` without a statement, and `methods`, which helps both."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import ForkedPython
from model_server import ModelServer, slow_stream
from query_fixture import published, settings_for
from typer.testing import CliRunner, Result

from graphrag_pipeline.cli.app import app
from graphrag_pipeline.marts.sql import PublishedSql, split_statements
from graphrag_pipeline.query.methods import list_methods

QUESTION = "Who worked as a clerk for Scrooge?"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return published(tmp_path_factory.mktemp("sessions") / "home")


def run(home: Path, *arguments: str, lines: str = "", **environment: str) -> Result:
    given = {"GRAPHRAG_HOME": str(home), "COLUMNS": "80", **environment}
    return CliRunner().invoke(app, arguments, input=lines, env=given)


def by_model(address: str) -> dict[str, str]:
    return {
        "GRAPHRAG_QUERY__ANSWERS": "llm",
        "GRAPHRAG_LLM__BASE_URL": address,
        "GRAPHRAG_LLM__MODEL": "gpt-4o-mini",
        "OPENAI_API_KEY": "sk-test",
    }


class Typed:
    """A command whose standard streams are one terminal."""

    def __init__(self, home: Path, *arguments: str, **environment: str) -> None:
        self._ours, theirs = pty.openpty()
        plain = {name: value for name, value in os.environ.items() if name != "PYTHONSTARTUP"}
        self.process = ForkedPython(
            ["-m", "graphrag_pipeline.cli", *arguments],
            env={**plain, "GRAPHRAG_HOME": str(home), "TERM": "dumb", **environment},
            **dict.fromkeys(("stdin", "stdout", "stderr"), theirs),
        )
        os.close(theirs)
        self.seen = ""

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def wait_for(self, text: str) -> None:
        """Read until a text has come since the last that was waited for."""
        while text not in self.seen:
            self.seen += os.read(self._ours, 4096).decode()
        self.seen = self.seen.partition(text)[2]

    def interrupt_until(self, text: str) -> None:
        """Interrupt, as Ctrl-C does, until a text has come.

        Readline does not see a signal that comes just before it waits; somebody presses it again.
        """
        while text not in self.seen:
            self.process.send_signal(signal.SIGINT)
            while text not in self.seen and select.select([self._ours], [], [], 2.0)[0]:
                self.seen += os.read(self._ours, 4096).decode()
        self.seen = self.seen.partition(text)[2]

    def cpu_ticks(self) -> int:
        stat = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return int(stat[11]) + int(stat[12])

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


# ask


def test_each_line_of_a_pipe_is_a_question_and_a_failure_ends_nothing(home: Path) -> None:
    lines = (
        f"{QUESTION}\n:sources 1\n\n:method drift\n:nonsense\n:sources 99\n:method bm25:top_k=1\n"
    )
    done = run(home, "ask", lines=f"{lines}Who discovered radium?\n")
    assert done.exit_code == 2
    first, second = done.stdout.split("auto search, release r1")
    assert "Bob Cratchit worked as a clerk for Scrooge" in first
    assert "bm25 search, release r1" in second
    passage = "Bob Cratchit worked as a clerk for Scrooge in a dismal little cell."
    assert re.search(rf"^\[1\] A Christmas Carol\n    docs/0.txt 164–\d+\n{passage}", second, re.M)
    assert "radium" in second
    errors = done.stderr.splitlines()
    assert [line.startswith("error: ") for line in errors] == [True] * 3
    assert "drift needs a language model" in errors[0]
    assert "there is no command :nonsense" in errors[1]
    assert "no citation 99" in errors[2]


def test_one_question_beside_the_command_is_answered_and_nothing_is_read(home: Path) -> None:
    done = run(home, "ask", "-m", "bm25", QUESTION, lines="Who discovered radium?\n")
    assert done.exit_code == 0, done.stderr
    assert "Bob Cratchit worked as a clerk for Scrooge" in done.stdout
    assert "radium" not in done.stdout
    failed = run(home, "ask", "-m", "bm25", ":nonsense")
    assert failed.exit_code == 2
    assert "there is no command :nonsense" in failed.stderr


def test_a_session_needs_a_release_and_a_method_that_can_answer(tmp_path: Path, home: Path) -> None:
    assert run(tmp_path, "ask", lines="Who?\n").exit_code == 3
    assert "unknown method 'nonsense'" in run(home, "ask", "-m", "nonsense").stderr
    assert run(home, "ask", "--release", "r9").exit_code == 2


def test_a_question_follows_up_those_before_it_until_reset(home: Path) -> None:
    with ModelServer(lambda _: "It was Bob. [Data: Sources (1)]") as model:
        lines = f"{QUESTION}\nAnd his son?\n:reset\nWho was Marley?\n"
        done = run(home, "ask", "-m", "basic", lines=lines, **by_model(model.base_url))
        texts = [request.text for request in model.asked()]
    assert done.exit_code == 0, done.stderr
    assert QUESTION in texts[1]
    assert "It was Bob." in texts[1]
    assert QUESTION not in texts[-1]


def test_what_a_model_writes_does_not_move_the_terminal(home: Path) -> None:
    with ModelServer(lambda _: "It was\x1b[2J Bob\x9b1A. \u202eboB") as model:
        done = run(home, "ask", "-m", "basic", lines=QUESTION, **by_model(model.base_url))
    assert "Bob" in done.stdout
    assert not set(done.stdout) & {"\x1b", "\x9b", "\u202e"}


@pytest.fixture
def typed_ask(home: Path) -> Iterator[tuple[Typed, ModelServer]]:
    with (
        ModelServer(lambda _: "word " * 500, faults=lambda _: slow_stream(0.1)) as model,
        contextlib.closing(Typed(home, "ask", "-m", "basic", **by_model(model.base_url))) as typed,
    ):
        yield typed, model


def test_ctrl_c_stops_the_answer_and_not_the_session(
    typed_ask: tuple[Typed, ModelServer],
) -> None:
    typed, model = typed_ask
    typed.wait_for("basic> ")
    typed.type(f"{QUESTION}\n")
    typed.wait_for("word word")
    typed.process.send_signal(signal.SIGINT)
    typed.wait_for("stopped")
    typed.wait_for("basic> ")
    while model.in_flight:
        time.sleep(0.01)
    # At the prompt it clears the line.
    typed.type("half a line")
    typed.wait_for("half a line")
    typed.interrupt_until("basic> ")
    typed.type(":sources\n")
    typed.wait_for("there is no answer yet")
    # Before the prompt the terminal itself takes Ctrl-D, and readline never sees it.
    typed.wait_for("basic> ")
    typed.type("\x04")
    assert typed.process.wait(timeout=60) == 0


# sql


@pytest.mark.parametrize(
    ("text", "statements", "rest"),
    [
        ("SELECT 1; SELECT 2", ["SELECT 1"], " SELECT 2"),
        ("SELECT ';'; x", ["SELECT ';'"], " x"),
        ("SELECT 'é;é'; ;é;", ["SELECT 'é;é'", "é"], ""),
        ('SELECT ";', [], 'SELECT ";'),
        ("SELECT $$;$$ -- ;\n;", ["SELECT $$;$$ -- ;"], ""),
        ("/* ; */", [], "/* ; */"),
    ],
)
def test_statements_end_with_a_semicolon_of_their_own(
    text: str, statements: list[str], rest: str
) -> None:
    assert split_statements(text) == (statements, rest)


def test_a_session_of_sql_takes_statements_of_several_lines(home: Path) -> None:
    lines = "SELECT count(*) AS n\n  FROM entities; SELECT ';' AS s;\nSELECT no;\nSELECT 3 AS last"
    done = run(home, "sql", "--format", "csv", lines=lines)
    assert done.stdout.split() == ["n", "14", "s", ";", "last", "3"]
    assert done.exit_code == 2
    assert done.stderr.startswith("error: SQL: Binder Error")


def test_a_session_of_sql_is_in_the_same_sandbox(home: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("canary")
    statements = (
        f"FROM read_text('{tmp_path / 'secret.txt'}')",
        "SET enable_external_access = true",
        f"ATTACH '{tmp_path / 'x.db'}'",
        "CREATE TEMP TABLE t AS SELECT 1",
        "DELETE FROM entities",
    )
    done = run(home, "sql", lines=";\n".join(statements))
    assert done.stdout == ""
    assert done.stderr.count("error: ") >= len(statements)
    assert "canary" not in done.stderr


def test_tables_are_those_for_readers(home: Path) -> None:
    with PublishedSql(home) as published:
        everything = {row[2] for row in published.query("SHOW ALL TABLES")[1]}
        shown = [row[0] for row in published.query("show tables ;")[1]]
        told = {str(name): about for name, about in published.tables()[1]}
    assert set(shown) < everything
    assert list(told) == shown
    assert {"entities", "edges", "macros", "attributed_communities"} <= set(shown)
    assert all(told.values())
    # Nobody asked for edges of like entities, and a ledger is the pipeline's own.
    assert not {"similarity_edges", "graph_batches", "meta"} & set(shown)
    assert told == dict(run_rows(home, ".tables\n"))


def run_rows(home: Path, lines: str) -> list[tuple[str, str]]:
    rows = json.loads(run(home, "sql", "--format", "json", lines=lines).stdout)
    return [(row["name"], row["about"]) for row in rows]


def test_a_typed_statement_is_stopped_by_ctrl_c_and_the_session_goes_on(home: Path) -> None:
    with contextlib.closing(Typed(home, "sql")) as typed:
        typed.wait_for("sql> ")
        typed.type("SELECT 'be' || 'gun'; SELECT count(*)\n")
        typed.wait_for("begun")
        typed.wait_for("...> ")
        before = typed.cpu_ticks()
        typed.type("FROM range(1000000) a, range(1000000) b WHERE a.range * b.range = 7;\n")
        while typed.cpu_ticks() < before + os.sysconf("SC_CLK_TCK"):
            time.sleep(0.02)
        typed.process.send_signal(signal.SIGINT)
        typed.wait_for("stopped")
        typed.type("SELECT 40 + 2 AS sum;\n")
        typed.wait_for("42")
        typed.type(".quit\n")
        assert typed.process.wait(timeout=60) == 0


# methods


def test_methods_are_listed_with_what_a_question_gets_by_default(home: Path) -> None:
    done = run(home, "methods", "--json", GRAPHRAG_QUERY__TOP_K="3")
    methods = {each["name"]: each for each in json.loads(done.stdout)}
    assert set(methods) == {each["name"] for each in list_methods(settings_for(home))}
    assert methods["bm25"]["parameters"][0] == {
        **{"name": "top_k", "type": "int", "default": 3, "least": 1}
    }
    assert methods["drift"]["needs_model"]
    assert not methods["drift"]["can_answer"]
    listed = run(home, "methods").stdout
    assert all(name in listed for name in methods)
    assert "drift (needs a model; none is set)" in listed


def test_one_method_is_told_with_the_values_it_takes(home: Path) -> None:
    told = run(home, "methods", "lightrag").stdout
    assert "local, global, hybrid, mix" in told
    assert "a number from 0 to 1" in told
    assert "-m lightrag:mode=mix" in told
    assert run(home, "methods", "lightrg").exit_code == 2
