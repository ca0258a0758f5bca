"""Odd, empty, huge and hostile input: a right result or one clear error, and the release stays."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest
from commands import command
from index_process import SMALL, STAGES, faults, update
from typer.testing import CliRunner

from conftest import Engine, workspace_of
from graphrag_pipeline.cli.app import app
from graphrag_pipeline.core.errors import InputError, StorageError
from graphrag_pipeline.core.settings import InputSettings, Settings
from graphrag_pipeline.ingest.stages import INGESTION
from graphrag_pipeline.pipeline.stages import ingest
from graphrag_pipeline.query import QueryEngine, open_release, retrieve
from graphrag_pipeline.query.release import Release
from graphrag_pipeline.releases.kept_releases import published_release
from graphrag_pipeline.releases.publishing import publish
from graphrag_pipeline.structures.updating import embed_table
from graphrag_pipeline.structures.vector_tables import TABLES

CORPUS = Path(__file__).parents[1] / "examples" / "corpus"
METHODS = ("basic", "bm25", "hybrid", "local", "global")
SENTENCE = "Nadia Fenwright met Orsolya Venn in Kelmouth."


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path, SMALL)


@contextlib.contextmanager
def published(engine: Engine) -> Iterator[Release]:
    with open_release(engine.log.home, settings=engine.settings) as release:
        assert faults(release) == []
        yield release


def count(release: Release, table: str) -> int:
    return release.rows(f"SELECT count(*) AS n FROM {table}")[0]["n"]


def ask_everything(engine: Engine, question: str) -> list[str]:
    with QueryEngine(engine.log.home, settings=engine.settings) as opened:
        return [opened.answer(question, method).text for method in METHODS]


# Little or nothing


def test_no_documents_give_an_empty_release(engine: Engine) -> None:
    update(engine)
    with published(engine) as release:
        assert set(release.facts.counts.values()) == {0}
    assert all("Nothing in the index" in text for text in ask_everything(engine, "Who?"))


def test_the_command_refuses_an_empty_folder_where_nothing_is_indexed_yet(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    home = {"GRAPHRAG_HOME": str(tmp_path / "home")}
    result = CliRunner().invoke(app, ["index", str(tmp_path / "empty")], env=home)
    assert result.exit_code == 2
    assert "holds no file that can be indexed" in result.output
    assert not (tmp_path / "home" / "published.duckdb").exists()


def test_a_folder_of_what_cannot_be_read_gives_an_empty_release_and_reasons(
    engine: Engine,
) -> None:
    engine.write({"a.txt": "", "b.txt": " \n\n ", "c.pdf": "%PDF-1.4", "d.bin": bytes(range(256))})
    update(engine)
    with published(engine) as release:
        assert release.facts.counts["n_documents"] == 0
        reasons = release.rows("SELECT uri, reason FROM quarantine ORDER BY uri")
    assert [row["uri"][-5:] for row in reasons] == ["a.txt", "b.txt", "c.pdf", "d.bin"]
    assert all(row["reason"] and "\n" not in row["reason"] for row in reasons)


def test_one_sentence_is_an_index_until_it_is_removed(engine: Engine) -> None:
    engine.write({"a.txt": SENTENCE})
    first = update(engine)
    with published(engine) as release:
        assert release.facts.counts["n_documents"] == release.facts.counts["n_chunks"] == 1
        assert release.facts.counts["n_entities"] == 3
        assert release.facts.counts["n_reports"] == 1
    assert all(SENTENCE in text for text in ask_everything(engine, "Who met Orsolya Venn?"))
    # A folder that is not there is no folder of which everything was removed.
    shutil.rmtree(engine.inbox)
    with pytest.raises(InputError, match="documents is not a folder"):
        engine.cut()
    with published(engine) as release:
        assert release.facts.id == first
    engine.inbox.mkdir()
    update(engine)
    with published(engine) as release:
        assert set(release.facts.counts.values()) == {0}


@pytest.mark.parametrize("texts", [["aaa bbb."], ["...", "1", "。", "\ufeff?"]])
def test_documents_without_entities_are_found_all_the_same(
    engine: Engine, texts: list[str]
) -> None:
    engine.write({f"{number}.txt": text for number, text in enumerate(texts)})
    update(engine)
    with published(engine) as release:
        assert release.facts.counts["n_documents"] == len(texts)
        assert count(release, "entities") == count(release, "communities") == 0
    ask_everything(engine, "aaa?")
    found = retrieve("aaa", "basic", home=engine.log.home, settings=SMALL)
    assert len(found.records) == len(texts)


# Much


def test_identical_files_are_one_document_of_many_names(engine: Engine) -> None:
    engine.write({f"{number}.txt": SENTENCE for number in range(50)})
    update(engine)
    with published(engine) as release:
        assert release.facts.counts["n_documents"] == release.facts.counts["n_chunks"] == 1
        assert release.facts.counts["n_entities"] == 3
        assert release.rows("SELECT min(frequency) AS n FROM entities")[0]["n"] == 1
        assert release.rows("SELECT count(*) AS n FROM document_names")[0]["n"] == 50


def giant(megabytes: float) -> str:
    text = "\n\n".join(path.read_text() for path in sorted(CORPUS.rglob("*.md")))
    size = int(megabytes * 1e6)
    return (text * (size // len(text) + 1))[:size]


def cpu_seconds(work: Callable[[], object]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


@pytest.mark.slow
@pytest.mark.parametrize(
    "giants", [(0.125, 0.5), pytest.param((0.5, 2), marks=pytest.mark.nightly)]
)
def test_one_giant_file_costs_in_proportion_to_its_size(
    tmp_path: Path, giants: tuple[float, float]
) -> None:
    spent = {}
    for megabytes in giants:
        engine = Engine(tmp_path / str(megabytes), SMALL)
        engine.write({"giant.txt": giant(megabytes)})
        spent[megabytes] = cpu_seconds(lambda engine=engine: update(engine))
        with published(engine) as release:
            last = release.rows("SELECT max(end_char) AS n FROM chunks")[0]["n"]
            length = release.rows("SELECT n_chars AS n FROM documents")[0]["n"]
        assert last == length
    assert spent[giants[1]] < 7 * spent[giants[0]], spent


@pytest.mark.parametrize(
    ("letters", "megabytes"),
    [("x", 1.5), ("abcdefghijklmnopqrstuvwxyz0123456789", 0.7), ("字", 0.3)],
)
def test_one_giant_line_without_spaces_is_cut_into_chunks(
    engine: Engine, letters: str, megabytes: float
) -> None:
    size = int(megabytes * 1e6) // len(letters[0].encode())
    engine.write({"line.txt": "".join(random.Random(1).choices(letters, k=size))})
    spent = cpu_seconds(lambda: update(engine))
    with published(engine) as release:
        assert release.rows("SELECT max(n_tokens) AS n FROM chunks")[0]["n"] <= 600
        assert release.rows("SELECT max(end_char) AS n FROM chunks")[0]["n"] == size
    assert spent < 12


def test_a_file_over_the_limit_is_left_out_unread(tmp_path: Path) -> None:
    engine = Engine(tmp_path, Settings(input=InputSettings(max_file_mb=0.1)))
    engine.write({"small.txt": SENTENCE, "large.txt": "a" * 100_001})
    update(engine)
    with published(engine) as release:
        (left_out,) = release.rows("SELECT uri, reason FROM quarantine")
        assert release.facts.counts["n_documents"] == 1
    assert left_out["uri"] == "documents/large.txt"
    assert "0.1 MB" in left_out["reason"]


@pytest.mark.slow
@pytest.mark.parametrize("files", [1_500, pytest.param(10_000, marks=pytest.mark.nightly)])
def test_thousands_of_tiny_files_take_seconds(engine: Engine, files: int) -> None:
    def note(number: int) -> str:
        person = f"Person{chr(65 + number % 26)}{chr(97 + number % 23)}"
        return f"Note {number}. Nadia Fenwright wrote to {person} about the Orlen Dam."

    engine.write({f"{n % 100}/{n}.txt": note(n) for n in range(files)})
    spent = cpu_seconds(lambda: update(engine))
    with published(engine) as release:
        assert release.facts.counts["n_documents"] == files
    print(f"{files:,} files: {spent:.1f} s of CPU")
    # About 3 ms a file; the same takes a third more beside other work.
    assert spent < 5 * files / 1000
    again = cpu_seconds(lambda: update(engine))
    print(f"again, unchanged: {again:.1f} s of CPU")
    assert again < max(2, files / 2000)


# Names


HOSTILE = [
    "commas, and; semicolons.txt",
    "it's \"quoted\" 'twice'.txt",
    "emoji 😀🏔.txt",
    "名前.txt",
    "per%cent #hash ?query &amp;.txt",
    "[bold]rich[/bold] :smile:.txt",
    "-- DROP TABLE documents; --.txt",
    "line\nbreak\tand\x1b[31mred.txt",
    "trailing space .txt",
    "x" * 251 + ".txt",
    "deep/" * 60 + "est.txt",
]


def test_names_of_files_may_hold_anything(engine: Engine) -> None:
    engine.write({name: f"{SENTENCE} {number}." for number, name in enumerate(HOSTILE)})
    (engine.inbox / os.fsdecode(b"latin-\xe9\xff.txt")).write_text(SENTENCE)
    update(engine)
    with published(engine) as release:
        assert release.rows("SELECT reason FROM quarantine") == []
        uris = {row["uri"] for row in release.rows("SELECT uri FROM documents")}
    assert {f"documents/{name}" for name in HOSTILE} < uris
    assert len(uris) == len(HOSTILE) + 1
    assert all(SENTENCE in text for text in ask_everything(engine, "Who met Orsolya Venn?"))
    engine.write({name: None for name in HOSTILE})
    update(engine)
    with published(engine) as release:
        assert release.facts.counts["n_documents"] == 1


def test_titles_and_entities_may_hold_anything(engine: Engine) -> None:
    long = "Very " * 60 + "Long Company"
    people = ["O'Brien", 'Anna "Nan" Marisol', "Müller-Lüdenscheidt", "Zoë 😀 Quill"]
    rows = [
        f'"{"".join(p.replace(chr(34), chr(34) * 2))}, Esq.","{long} hired Anna Marisol and '
        f'Smith, Jones, and Brown in Kelmouth."'
        for p in people
    ]
    engine.write({"people.csv": "\n".join(["title,text", *rows])})
    update(engine)
    with published(engine) as release:
        titles = {row["title"] for row in release.rows("SELECT title FROM documents")}
        assert titles == {f"{person}, Esq." for person in people}
        assert "Anna Marisol" in {r["title"] for r in release.rows("SELECT title FROM entities")}
    assert all(ask_everything(engine, "What of \"Anna, 'Marisol'\" 😀? [1] {x} %s"))


# Full and read-only disks


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own, which can be filled and made read-only."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.geteuid() != 0 or not mount("-t", "tmpfs", "-o", "size=96m", "tmpfs", str(place)):
        pytest.skip("only root can mount a small disk (and not in every container)")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


def mount(*arguments: str) -> bool:
    done = subprocess.run(["mount", *arguments], capture_output=True, check=False)
    return done.returncode == 0


@contextlib.contextmanager
def full(disk: Path) -> Iterator[None]:
    filler = disk / ".filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(size))
    try:
        yield
    finally:
        filler.unlink()


@contextlib.contextmanager
def read_only(disk: Path) -> Iterator[None]:
    assert mount("-o", "remount,ro", str(disk))
    try:
        yield
    finally:
        mount("-o", "remount,rw", str(disk))


def run_stage(engine: Engine, stage: str) -> None:
    workspace = engine.workspace
    home, settings = workspace.home, engine.settings
    if stage == "cut":
        engine.cut()
    if stage in INGESTION:
        ingest(workspace, stage, engine.log.batches()[-1].key)
    if stage == "graph":
        engine.merge()
    if stage == "communities":
        engine.cluster()
    if stage == "reports":
        engine.report()
    if stage == "vectors":
        for table in TABLES:
            embed_table(workspace_of(home, settings), table)
    if stage == "publish":
        publish(workspace_of(home, settings))


def test_a_disk_that_takes_nothing_is_one_error_at_any_stage_and_the_release_stays(
    disk: Path,
) -> None:
    engine = Engine(disk, SMALL)
    texts = {path.name: path.read_bytes()[:1500] for path in sorted(CORPUS.rglob("*.md"))[:5]}
    engine.write(dict([*texts.items()][:2]))
    first = update(engine)
    engine.write(texts)
    for stage, trouble in product(("cut", *STAGES), (full, read_only)):
        with trouble(disk):
            with pytest.raises(StorageError) as caught:
                run_stage(engine, stage)
            assert "\n" not in str(caught.value), stage
            assert str(disk) in str(caught.value), stage
            assert published_release(engine.log.home) == first
            if stage in ("cut", "publish"):
                with published(engine) as release:
                    assert release.facts.id == first
                assert retrieve("A dam?", "basic", home=engine.log.home, settings=SMALL).records
        if trouble is read_only:
            run_stage(engine, stage)
    with published(engine) as release:
        assert release.facts.id != first
        assert release.facts.counts["n_documents"] == 5


@pytest.mark.slow
def test_the_command_says_in_one_line_that_a_disk_takes_nothing(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents, home = disk / "documents", disk / ".graphrag"
    monkeypatch.setenv("GRAPHRAG_HOME", str(home))
    monkeypatch.setenv("DAGSTER_HOME", str(home / "dagster"))

    def refused() -> str:
        done = command("index", str(documents))
        assert (done.returncode, done.stdout) == (5, ""), done
        (line,) = done.stderr.splitlines()
        return line

    documents.mkdir()
    (documents / "a.txt").write_text(SENTENCE)
    for trouble in (full, read_only):
        with trouble(disk):
            assert refused().startswith("error: cannot write")
    assert command("index", str(documents)).returncode == 0
    (documents / "b.txt").write_text("Oskar Kovarna built the Orlen Dam.")
    for trouble in (full, read_only):
        with trouble(disk):
            assert refused().startswith("error: ")
    with read_only(disk):
        asked = command("sql", "SELECT count(*) AS n FROM documents", "--format", "csv")
        assert (asked.returncode, asked.stdout) == (0, "n\n1\n"), asked
