"""The command `query`: its options, what it prints below an answer, and what it refuses."""

from __future__ import annotations

import json
import re
import sys
from functools import partial
from pathlib import Path

import pytest
from model_server import Fault, ModelServer, half_stream, slow_stream
from query_fixture import publish
from query_player import play, step_of

from graphrag_pipeline.cli import app as cli
from graphrag_pipeline.core.home import Home

QUESTION = "Who was the clerk of Scrooge?"


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    return publish(tmp_path_factory.mktemp("published"))


@pytest.fixture
def server(published, monkeypatch, tmp_path):
    """A model, the published index with no call made yet, and settings that bring them together."""
    for file in published.glob(f"{Home(Path()).calls.name}*"):
        file.unlink()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRAPHRAG_HOME", str(published))
    monkeypatch.setenv("GRAPHRAG_QUERY__ANSWERS", "llm")
    monkeypatch.setenv("GRAPHRAG_LLM__MAX_RETRIES", "0")
    with ModelServer(play) as running:
        monkeypatch.setenv("GRAPHRAG_LLM__BASE_URL", running.base_url)
        yield running


@pytest.fixture
def run(monkeypatch, capfd):
    """Run a command in this process; returns its exit code, its output and its errors."""

    def run_command(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["graphrag-pipeline", *arguments])
        capfd.readouterr()
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        code = stopped.value.code
        return code if isinstance(code, int) else 0, *capfd.readouterr()

    return run_command


@pytest.fixture
def query(run):
    return partial(run, "query")


def refused(done: tuple[int, str, str]) -> str:
    """Return the one line of a refusal."""
    code, out, err = done
    assert (code, out) == (2, ""), done
    (line,) = err.splitlines()
    return line


def test_an_answer_that_names_no_source_is_followed_by_what_the_model_was_shown(query, server):
    server.misbehave(lambda _: Fault(text="Bob Cratchit was his clerk."))
    code, out, err = query(QUESTION, "--method", "basic")
    assert (code, err) == (0, "")
    text, shown, amiss, _ = out.rstrip().split("\n\n")
    assert text == "Bob Cratchit was his clerk."
    assert re.match(r"Shown to the model:\n\[1\] .*\n    docs/\d\.txt ", shown)
    assert amiss.startswith("The answer names no source.")
    answer = json.loads(query(QUESTION, "--method", "basic", "--json")[1])
    assert answer["names_no_source"] is True
    assert answer["doubts"] == [amiss]


def test_an_answer_is_followed_by_places_removed_references_and_costs(server, query):
    code, out, err = query(QUESTION)
    assert (code, err) == (0, "")
    text, cited, amiss, costs = out.rstrip().split("\n\n")
    assert text.startswith("Bob Cratchit was his clerk [Data: Sources (")
    assert re.match(
        r"\[1\] A Christmas Carol · Sources \(\d+\).*\n    docs/0\.txt \d+–\d+\n\[2\] ", cited
    )
    assert re.search(r"· Claims \(\d+\)\n    docs/0\.txt \d+–\d+$", cited, re.MULTILINE)
    assert amiss.splitlines() == [
        "4 of 5 references share no word with their sentences: Entities (0), Relationships (1), "
        "Claims (0), Reports (1).",
        "2 references removed that named nothing the model was shown.",
    ]
    method, spent = costs.splitlines()
    assert method == "local search, release r1"
    tokens = f"{server.prompt_tokens:,} tokens in, {server.completion_tokens:,} out"
    assert re.fullmatch(
        rf"1 model call, {tokens}, \$0\.\d{{4}}, \d+\.\d\d s "
        r"\(retrieval \d+\.\d\d s, first words after \d+\.\d\d s\)",
        spent,
    )


def test_a_streamed_answer_prints_what_the_plain_one_does(server, query):
    def without_seconds(out: str) -> str:
        return re.sub(r"\d+\.\d\d s", "", out)

    assert without_seconds(query(QUESTION, "--stream")[1]) == without_seconds(query(QUESTION)[1])
    # The server is a private one: whole answers are read as they come, too.
    assert [request.body.get("stream", False) for request in server.asked()] == [True, True]


def test_a_stream_is_printed_while_it_is_written(server, query, monkeypatch):
    server.misbehave([slow_stream(0.02)])
    flushed = []
    monkeypatch.setattr(sys.stdout, "flush", lambda: flushed.append(server.answered))
    query(QUESTION, "--stream")
    assert flushed.count(0) > 5


def test_a_stream_cut_off_ends_its_line_before_the_error(server, query):
    server.misbehave([half_stream()])
    code, out, err = query(QUESTION, "--stream")
    assert code == 6
    assert out.startswith("Bob Cratchit")
    assert out.endswith("\n")
    assert len(err.splitlines()) == 1


def test_parts_that_could_not_be_answered_are_named(server, query):
    unread = Fault(text="never JSON")
    server.misbehave(lambda r: unread if step_of(r.messages) == "follow up" else None)
    _, out, _ = query(QUESTION, "-m", "drift", "--depth", "1", "--width", "2")
    assert "\n2 model steps failed:\n  follow up: " in out


@pytest.mark.parametrize("stream", [[], ["--stream"]])
def test_what_a_model_says_cannot_steer_the_terminal(server, query, stream):
    server.misbehave([Fault(text="Red \x1b[31mwine\x07\x9b2J\nand water.")])
    assert query(QUESTION, *stream)[1].startswith("Red [31mwine2J\nand water.\n")


def test_the_form_and_the_history_are_handed_on(server, query, tmp_path):
    turns = [
        {"role": "user", "content": "What do you know of Marie Curie?"},
        {"role": "assistant", "content": "Little."},
    ]
    (tmp_path / "talk.json").write_text(json.dumps(turns))
    query("And where was that?", "--history", "talk.json", "--response-type", "one haiku")
    (request,) = server.asked()
    assert request.messages[1:-1] == turns
    assert "Length and form: one haiku" in request.messages[0]["content"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "cannot read the history: No such file or directory"),
        (b"{", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"role": "user", "content": "x"}', 'the history must be a JSON list of {"role"'),
        (b'[{"role": "user", "content": "x"}, {"role": "user"}]', "turn 2 is not valid"),
        (b'[{"role": "system", "content": "obey"}]', "turn 1 is not valid"),
        (b'[{"role": ["user"], "content": "x"}]', "turn 1 is not valid"),
        (b'[["user", "x"]]', "turn 1 is not valid"),
    ],
)
def test_a_malformed_history_is_one_line(server, query, content, complaint):
    if content is not None:
        Path("talk.json").write_bytes(content)
    line = refused(query(QUESTION, "--history", "talk.json"))
    assert line.startswith("error: talk.json: ")
    assert complaint in line
    assert not server.requests


@pytest.mark.parametrize(
    ("arguments", "takers"),
    [
        (["-m", "local", "--dynamic"], "--dynamic is for global;"),
        (["-m", "local", "--seed", "1"], "--seed is for global, text_summary;"),
        (["-m", "global", "--depth", "1"], "--depth is for drift;"),
        (["-m", "basic", "--width", "1"], "--width is for drift;"),
        (["-m", "basic", "--level", "1"], "--level is for local, global, hirag, auto, selection,"),
        (["-m", "global", "--top-k", "1"], "--top-k is for basic, bm25, hybrid, local,"),
    ],
)
def test_an_option_that_the_method_does_not_take_names_those_that_do(
    server, query, arguments, takers
):
    line = refused(query(QUESTION, *arguments))
    assert line.startswith(f"error: {takers}")
    assert line.endswith(f"; {arguments[1]} does not take it")
    assert not server.requests


def test_options_of_a_method_reach_it(server, query):
    told = json.loads(query(QUESTION, "-m", "drift", "--depth", "0", "--width", "3", "--json")[1])
    assert (told["retrieval"]["parameters"]["depth"], told["calls"].get("follow up")) == (0, None)
    arguments = ["-m", "global", "--dynamic", "--seed", "7", "--level", "C1", "--json"]
    told = json.loads(query(QUESTION, *arguments)[1])
    assert told["retrieval"]["parameters"]["seed"] == 7
    assert told["retrieval"]["parameters"]["level"] == 1
    assert told["calls"]["rate"] > 0


def test_a_stream_is_no_json(server, query):
    assert "--stream" in refused(query(QUESTION, "--stream", "--json"))


def test_without_a_model_evidence_streams_and_what_does_not_count_is_said(
    server, query, monkeypatch
):
    monkeypatch.setenv("GRAPHRAG_QUERY__ANSWERS", "extractive")
    code, out, err = query(QUESTION, "--stream", "--response-type", "a haiku")
    assert (code, err.count("\n")) == (0, 1)
    assert "--response-type have no effect" in err
    assert out.startswith("No model is configured")
    assert "\n[1] A Christmas Carol\n    docs/0.txt " in out
    assert not server.requests


# Several methods


@pytest.fixture
def compare(run):
    return partial(run, "compare")


def test_a_method_is_given_with_its_parameters(server, query):
    told = json.loads(query(QUESTION, "-m", "lightrag:mode=local:top-k=3", "--json")[1])
    assert told["method"] == "lightrag"
    assert told["retrieval"]["parameters"]["mode"] == "local"
    assert told["retrieval"]["parameters"]["top_k"] == 3
    line = refused(query(QUESTION, "-m", "lightrag:mode=naive"))
    assert line == "error: mode = 'naive': must be one of local, global, hybrid, mix"
    assert refused(query(QUESTION, "-m", "bm25:hops=2")).startswith(
        "error: method bm25 has no parameter hops: it has top_k"
    )


def test_each_method_has_a_block_with_answer_citations_and_cost(server, compare):
    code, out, err = compare(QUESTION, "--methods", "bm25,auto,cot")
    assert (code, err) == (0, "")
    blocks = re.split(r"^── (\S+) ─+$", out, flags=re.MULTILINE)[1:]
    assert blocks[::2] == ["bm25", "auto", "cot"]
    words, selected, alone = blocks[1::2]
    assert "Bob Cratchit was his clerk [Data: Sources (" in words
    assert re.search(r"^\[1\] .*\n    docs/0\.txt \d+–\d+$", words, re.MULTILINE)
    assert re.search(
        r"^\d+ chunks\n[\d,]+ tokens of context; 1 model call, [\d,]+ tokens in, "
        r"\d+ out, \$0\.\d{4}; \d+\.\d\d s$",
        words,
        re.MULTILINE,
    )
    assert "fact-based: basic search (by model)\n" in selected
    assert "2 model calls" in selected
    assert "\n2 references removed that named nothing the model was shown.\n" in selected
    assert "no records\n0 tokens of context; 1 model call" in alone
    assert max(map(len, re.findall("^──.*$", out, re.MULTILINE))) == 80


def test_a_comparison_can_be_limited_to_documents(server, compare):
    asked = (QUESTION, "-m", "basic", "--retrieval-only", "--json")
    found = json.loads(compare(*asked, "--where", "title=Marie Curie")[1])
    assert {c["document_title"] for each in found for c in each["citations"]} == {"Marie Curie"}
    assert {each["steps"][0] for each in found} == {"limited to 1 document: title = 'Marie Curie'"}
    assert refused(compare(*asked, "--where", "title")) == (
        "error: --where 'title': write it as KEY=VALUE, as year=2020 or date>=2020-05"
    )


def test_a_comparison_fits_a_narrow_terminal(server, compare, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    _, out, _ = compare(QUESTION, "-m", "bm25,basic", "--retrieval-only")
    assert {len(line) for line in out.splitlines() if line.startswith("──")} == {40}


def test_a_comparison_tells_of_failed_steps_and_several_summaries(server, compare):
    unread = Fault(text="Hm.")
    server.misbehave(lambda r: unread if step_of(r.messages) == "classify" else None)
    _, out, _ = compare(QUESTION, "-m", "selection,raptor")
    assert "\n1 model step failed:\n  classify: " in out
    assert re.search(r"^(\d+ chunks?, )?\d+ summaries\b", out, re.MULTILINE)


def test_retrieval_alone_is_compared_without_a_call(server, compare):
    code, out, _ = compare(QUESTION, "-m", "local,kg_triplets:hops=1,cot", "--retrieval-only")
    assert code == 0
    assert "── kg_triplets:hops=1 ──" in out
    assert "relationship 1 · Scrooge – Bob Cratchit: " in out
    assert "nothing found" in out
    assert max(map(len, out.splitlines())) <= 80
    assert not server.requests


def test_a_comparison_is_json_for_scripts(server, compare):
    found = json.loads(compare(QUESTION, "--methods", "basic,cot", "--json")[1])
    assert [each["method"] for each in found] == ["basic", "cot"]
    assert found[0]["citations"][0]["document_title"] == "A Christmas Carol"
    assert found[0]["prompt_tokens"] > found[0]["context_tokens"] > 0
    assert found[1]["text"].startswith("Bob Cratchit was his clerk")
    assert found[0]["cost"] > found[1]["cost"] > 0
    refusal = refused(compare(QUESTION, "--methods", "basic,magic"))
    assert refusal.startswith("error: unknown method 'magic': use one of basic, bm25")
