"""The fold by difference: whatever the history, the graph is that of a fold of the whole index."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest
from artefacts import copy_of
from hypothesis import given
from hypothesis import strategies as st
from killed_fold import killed_fold

from conftest import Engine, examples
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.graph import fold
from graphrag_pipeline.graph.fold import graph_differences, merge_graph, outdate_graph
from graphrag_pipeline.graph.fold_state import STATE_TABLES
from graphrag_pipeline.upkeep.checking import VERIFICATIONS, check, repair

FOOTER = "All of it belongs to the Harbour Company of Bergen."
TEXTS = (
    "Ebenezer Scrooge met Bob Cratchit in London. Mr. Scrooge paid Bob Cratchit on Monday.",
    f"Scrooge saw the Ghost of Marley in London. {FOOTER}",
    f"Mary Scrooge met Bob Cratchit. Scrooge said yes to Mary Scrooge. {FOOTER}",
    f"The counting house stands in London. Bob Cratchit left the counting house. {FOOTER}",
    "A counting house is a house of the Harbour Company. Jacob Marley kept the counting house. "
    "Jacob Marley met Ebenezer Scrooge.",
    f"BOB CRATCHIT wrote to Mary Scrooge. The ghost of Marley laughed. {FOOTER}",
    "The Great Counting Register (GCR) names Bob Cratchit.",
    "Bob Cratchit wrote to the GCR. Mary Scrooge read the GCR.",
)
HEAD = "action,a,b,note\n"
WORDS = (
    "",
    "merge,Jacob Marley,Ghost of Marley,\n",
    "rename,London,The Great City,\ntype,Bob Cratchit,clerk,\n",
    "never,Mr. Scrooge,Ebenezer Scrooge,\n",
)
# More of the corpus than one step of these changes, so that most steps fold the difference.
ALWAYS = {f"always-{i}.txt": f"{text} It is page {i}." for i, text in enumerate(TEXTS * 2)}
NAMES = st.sampled_from(["a.txt", "b.txt", "c.txt", "always-3.txt"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("file"), NAMES, st.sampled_from([None, *range(len(TEXTS))])),
        st.tuples(st.just("words"), st.sampled_from(WORDS), st.just(0)),
        st.tuples(st.just("rule"), st.sampled_from([1, 2]), st.sampled_from([0.0, 0.3])),
        st.tuples(st.just("extractor"), NAMES, st.sampled_from(["llm", "nlp"])),
        st.tuples(st.just("summary"), st.integers(0, 3), st.just(0)),
    ),
    min_size=2,
    max_size=5,
)
GRAPH = ("entities", "relationships", "entity_chunks", "relationship_chunks", "chunk_titles")
OF_STATE = "(SELECT DISTINCT * FROM {0}.{1})"


def differences(engine: Engine) -> dict[str, int]:
    """How many rows differ from a fold of the whole index, of the graph and of its state."""
    with engine.store.transaction() as con:
        found = graph_differences(con, engine.settings.graph, engine.settings.chunks.encoding)
        for table in STATE_TABLES:
            kept, whole = (OF_STATE.format(schema, table) for schema in ("staging", "temp"))
            row = con.execute(
                f"""SELECT (SELECT count(*) FROM (FROM {kept} EXCEPT FROM {whole}))
                         + (SELECT count(*) FROM (FROM {whole} EXCEPT FROM {kept}))"""
            ).fetchone()
            found |= {table: row[0]} if row and row[0] else {}
    return found


def settings(folder: Path, rule: tuple[int, float] = (2, 0.3)) -> Settings:
    given = {"min_concept_frequency": rule[0], "min_concept_pmi": rule[1]}
    resolution = {"aliases_file": str(folder / "aliases.csv")}
    return Settings(home=str(folder), graph=given, resolution=resolution)


def take(engine: Engine, folder: Path, step: tuple) -> None:
    kind, what, value = step
    if kind == "file":
        engine.write({what: None if value is None else f"{TEXTS[value]} It stands in {what}."})
    elif kind == "words":
        (folder / "aliases.csv").write_text(HEAD + what)
    elif kind == "rule":
        engine.settings = settings(folder, (what, value))
    else:
        with engine.store.transaction() as con:
            (con.execute(EXTRACTED, [value, what]) if kind == "extractor" else summarise(con, what))
            fold.fold_again(con)


EXTRACTED = """
UPDATE extractions SET extractor = ? WHERE chunk_id IN (
    SELECT c.id FROM chunks c JOIN documents d ON d.id = c.document_id WHERE ends_with(d.uri, ?))
"""


def summarise(con, number: int) -> None:
    """Give what was not found by rule alone a description that a model has made, or another."""
    con.execute("DELETE FROM description_summaries")
    con.execute(
        """INSERT INTO description_summaries
           SELECT id, input_hash, 'Merged ' || $n, 'model' FROM staging.folded_descriptions
           WHERE input_hash IS NOT NULL AND hash(id) % 3 <> $n""",
        {"n": number},
    )


def always(folder: Path) -> Engine:
    """An index of ALWAYS as far as its graph."""

    def make(made: Path) -> None:
        made.mkdir()
        (made / "aliases.csv").write_text(HEAD)
        engine = Engine(made, settings(made))
        engine.write(ALWAYS)
        engine.index()

    copy_of("always", make, folder)
    return Engine(folder, settings(folder))


def follow(folder: Path, steps: list[tuple], monkeypatch: pytest.MonkeyPatch) -> None:
    """Take steps, and compare after each; the last fold is one of a difference."""
    how: list[bool] = []
    looked = fold.find_changes
    monkeypatch.setattr(fold, "find_changes", lambda *given: how.append(looked(*given)) or how[-1])
    engine = always(folder)
    assert differences(engine) == {}
    for step in [*steps, ("file", "z.txt", 2)]:
        take(engine, folder, step)
        engine.index()
        assert differences(engine) == {}, step
    assert how[-1] is True


@examples(3)
@given(STEPS)
def test_after_any_history_the_graph_is_that_of_a_fold_of_all(tmp_path_factory, steps):
    with pytest.MonkeyPatch.context() as patch:
        follow(tmp_path_factory.mktemp("history"), steps, patch)


def rows(engine: Engine) -> list[list[tuple]]:
    return [engine.rows(f"FROM {table} ORDER BY ALL") for table in GRAPH]


def test_two_builds_are_equal_whatever_the_number_of_threads(tmp_path):
    built = []
    for threads in (1, 4):
        engine = always(tmp_path / str(threads))
        with engine.store.transaction() as con:
            con.execute("UPDATE relationship_mentions SET weight = 0.1 + 1 / (1 + start_char)")
            outdate_graph(con)
        with engine.store.transaction() as con:
            con.execute(f"SET threads = {threads}")
            fold.merge_within(con, engine.settings.graph, engine.settings.chunks.encoding)
        built.append(rows(engine))
    assert all(built[0])
    assert built[0] == built[1]


def test_what_fails_within_a_fold_of_a_difference_leaves_all_as_it_was(tmp_path, monkeypatch):
    engine = always(tmp_path)
    state = [engine.rows(f"FROM staging.{table} ORDER BY ALL") for table in STATE_TABLES]
    before = rows(engine)

    def fails(*_: object) -> None:
        raise KeyboardInterrupt

    engine.write({"more.txt": f"{TEXTS[2]} It is the last page."})
    with monkeypatch.context() as patch:
        patch.setattr(fold, "update_titles", fails)
        with pytest.raises(KeyboardInterrupt):
            engine.index()
    assert rows(engine) == before
    assert [engine.rows(f"FROM staging.{t} ORDER BY ALL") for t in STATE_TABLES] == state
    merge_graph(engine.store, engine.settings.graph, engine.settings.chunks.encoding)
    assert rows(engine) != before
    assert differences(engine) == {}


@pytest.fixture
def staged(tmp_path, plain_stores) -> Engine:
    """An index with a document that is not in its graph yet."""

    def make(made: Path) -> None:
        engine = always(made)
        engine.write({"more.txt": f"{TEXTS[2]} It is the last page."})
        for batch in engine.cut():
            engine.ingest(batch.key)

    copy_of("always and more", make, tmp_path)
    return Engine(tmp_path, settings(tmp_path))


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.waits
@pytest.mark.parametrize("stride", [61, pytest.param(1, marks=pytest.mark.nightly)])
def test_a_fold_that_is_killed_leaves_the_graph_as_it_was_and_the_next_is_right(stride, staged):
    before, statement = rows(staged), 3
    while True:
        ended = killed_fold(statement, staged.log.home)
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        if rows(staged) != before:
            break
        statement += stride
    assert statement > 2 * stride
    assert differences(staged) == {}
    assert (
        merge_graph(staged.store, staged.settings.graph, staged.settings.chunks.encoding).batches
        == ()
    )


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_after_a_fold_that_was_killed_the_difference_is_folded(staged, monkeypatch):
    before, how = rows(staged), []
    assert killed_fold(60, staged.log.home).returncode == -signal.SIGKILL
    looked = fold.find_changes
    monkeypatch.setattr(fold, "find_changes", lambda *given: how.append(looked(*given)) or how[-1])
    staged.merge()
    assert how == [True]
    assert rows(staged) != before
    assert differences(staged) == {}


@pytest.mark.parametrize(
    "lost", ["DELETE FROM staging.folded", "UPDATE staging.folded SET version = 'x'"]
)
def test_without_a_state_of_this_version_all_is_folded(tmp_path, monkeypatch, lost):
    engine, how = always(tmp_path), []
    looked = fold.find_changes
    monkeypatch.setattr(fold, "find_changes", lambda *given: how.append(looked(*given)) or how[-1])
    with engine.store.transaction() as con:
        con.execute(lost)
        con.execute("DELETE FROM staging.folded_mentions")
    engine.write({"more.txt": f"{TEXTS[2]} It is the last page."})
    engine.index()
    assert how == [False]
    assert differences(engine) == {}


@pytest.mark.usefixtures("plain_stores")
def test_a_graph_that_is_not_that_of_its_mentions_is_told_and_made_anew(tmp_path, monkeypatch):
    engine = always(tmp_path)
    right = rows(engine)
    of_graph = tuple(each for each in VERIFICATIONS if each.name == "graph")
    monkeypatch.setattr("graphrag_pipeline.upkeep.checking.VERIFICATIONS", of_graph)
    assert check(engine.workspace).problems == ()
    with engine.store.transaction() as con:
        con.execute("UPDATE relationships SET weight = weight + 1")
        con.execute("UPDATE entities SET description = 'x' WHERE title = 'London'")
    lines = [problem.line for problem in check(engine.workspace).problems]
    assert [line.partition(" (")[0] for line in lines] == [
        f"index.duckdb, {table}: rows are not those that the mentions make"
        for table in ("entities", "relationships")
    ]
    repair(engine.workspace)
    assert rows(engine) == right
