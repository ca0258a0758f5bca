import shutil
from dataclasses import replace

import pytest
from artefacts import copy_of
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from conftest import Engine, build_graph, examples
from graphrag_pipeline.core.hardening.temporary import temporary_folder
from graphrag_pipeline.core.settings import (
    ChunkSettings,
    ExtractionSettings,
    GraphSettings,
    InputSettings,
    Settings,
)
from graphrag_pipeline.extraction import extractors
from graphrag_pipeline.extraction.rules import nlp
from graphrag_pipeline.ingest import documents, mention_files, to_extract
from graphrag_pipeline.ingest.mention_files import identify
from graphrag_pipeline.ingest.reading import read_file, separate
from graphrag_pipeline.ingest.stages import (
    INGESTION,
    STAGES,
    stage_versions,
)
from graphrag_pipeline.pipeline.stages import ingest
from graphrag_pipeline.planning.pending import pending_batches
from graphrag_pipeline.store.limits import DatabaseLimits

PLACED = """SELECT * EXCLUDE batch REPLACE ((
    SELECT d.uri || '@' || c.ordinal FROM chunks c JOIN documents d ON d.id = c.document_id
    WHERE c.id = t.chunk_id) AS chunk_id) FROM {table} t"""
"""A table with chunks named by their place: ids tell under which name a text was first seen."""

FOLDED = {
    "documents": "SELECT uri, source, title, content_hash, metadata, text FROM documents",
    "document_names": """SELECT n.uri, n.source, n.is_first, d.uri AS first, d.text
        FROM document_names n JOIN documents d ON d.id = n.document_id""",
    "blocks": """SELECT uri, start_char, end_char, kind
        FROM blocks b JOIN documents d ON d.id = b.document_id""",
    "chunks": """SELECT uri, ordinal, start_char, end_char, n_tokens, c.text
        FROM chunks c JOIN documents d ON d.id = c.document_id""",
    "extractions": PLACED.format(table="extractions"),
    "entity_mentions": PLACED.format(table="entity_mentions"),
    "relationship_mentions": PLACED.format(table="relationship_mentions"),
    "entities": "SELECT * EXCLUDE human_readable_id FROM entities",
    "relationships": "SELECT * EXCLUDE human_readable_id FROM relationships",
    "entity_chunks": PLACED.format(table="entity_chunks").replace("EXCLUDE batch ", ""),
    "relationship_chunks": PLACED.format(table="relationship_chunks").replace("EXCLUDE batch ", ""),
    "chunk_titles": PLACED.format(table="chunk_titles").replace("EXCLUDE batch ", ""),
}
"""What must depend on the documents that are there, and on nothing that came before."""

STORY = (
    "Alice Smith met Bob Jones in Paris. The old lighthouse stood near the harbour. "
    "Bob Jones works for Acme Corporation. Carol Brown visited the old lighthouse with Alice Smith."
)
OTHER = "Dr. Brown of Acme Corporation wrote to Alice Smith in London about the old lighthouse."


def read_without_blocks(path, options, *, data):
    result = read_file(path, options, data=data)
    return replace(result, documents=[replace(d, blocks=()) for d in result.documents])


def folded(engine: Engine) -> dict[str, list[tuple]]:
    with engine.store.read() as con:
        return {
            name: con.execute(f"FROM ({query}) ORDER BY ALL").fetchall()
            for name, query in FOLDED.items()
        }


def present(engine: Engine) -> dict[str, bytes]:
    return {
        str(path.relative_to(engine.inbox)): path.read_bytes()
        for path in engine.inbox.rglob("*")
        if path.is_file()
    }


NAMES = ("a.txt", "b.md", "c.csv", "sub/d.txt", "e.txt", "0.csv")
CONTENTS = (
    STORY,
    OTHER,
    f"{STORY}\n\n{OTHER}",
    f"# A preface\n\n{STORY}\n\n    Bob Jones met Alice Smith\n",
    f"id,title,text\n1,First,{STORY.split('. ')[0]}.\n2,Second,{OTHER}\n",
    f"id,title,text\n2,Second,{OTHER}\n3,Third,{STORY.split('. ')[1]}.\n",
    "",
)


class Histories(RuleBasedStateMachine):
    """Random lives of a folder and of its index, with stages done late, again, or half."""

    folder = None

    @initialize(name=st.sampled_from(NAMES), content=st.sampled_from(CONTENTS))
    def start(self, name, content):
        type(self).number = getattr(type(self), "number", 0) + 1
        small = ChunkSettings(size=24, overlap=6)
        self.engine = Engine(self.folder / str(self.number), Settings(chunks=small))
        self.engine.write({name: content})
        self.patch = pytest.MonkeyPatch()

    @rule()
    def change_reader(self):
        """Another version of the program marks no blocks; after it, this one again."""
        if documents.READER_VERSION == "plain":
            self.patch.undo()
        else:
            self.patch.setattr(documents, "READER_VERSION", "plain")
            self.patch.setattr(separate, "read_file", read_without_blocks)

    @rule(name=st.sampled_from(NAMES), content=st.sampled_from((*CONTENTS, None)))
    def alter(self, name, content):
        self.engine.write({name: content})

    @rule(name=st.sampled_from(NAMES), new=st.sampled_from(NAMES), copy=st.booleans())
    def rename_or_copy(self, name, new, copy):
        path = self.engine.inbox / name
        if path.exists():
            self.engine.write({new: path.read_bytes()})
            if name != new and not copy:
                path.unlink()

    @rule()
    def cut(self):
        self.engine.cut()

    @rule(place=st.integers(0, 9), stages=st.integers(1, 3))
    def ingest(self, place, stages):
        batches = self.engine.log.batches()
        if not batches:
            return
        key = batches[place % len(batches)].key
        given = self.engine
        for stage in [*INGESTION][:stages]:
            ingest(given.workspace, stage, key)

    @rule()
    def merge(self):
        self.engine.merge()

    @rule()
    def cut_and_ingest(self):
        for batch in self.engine.cut():
            self.engine.ingest(batch.key)

    @rule(newest_first=st.booleans())
    def finish(self, newest_first):
        self.engine.cut()
        todo = pending_batches(self.engine.workspace)
        for key in sorted(todo, reverse=newest_first):
            self.engine.ingest(key)
        self.engine.merge()
        again = pending_batches(self.engine.workspace)
        assert again == []
        type(self).number += 1
        fresh = Engine(self.folder / str(self.number), self.engine.settings)
        fresh.write(present(self.engine))
        for batch in fresh.cut():
            fresh.ingest(batch.key)
        fresh.merge()
        expected = folded(fresh)
        for name, rows in folded(self.engine).items():
            assert rows == expected[name], name

    def teardown(self):
        if hasattr(self, "engine"):
            self.finish(newest_first=False)
            self.patch.undo()


def test_whatever_the_history_the_index_is_that_of_the_surviving_files(tmp_path):
    class OfThisTest(Histories):
        folder = tmp_path

    few = settings(examples(3), stateful_step_count=6)
    run_state_machine_as_test(OfThisTest, settings=few)


def test_a_document_that_leaves_and_returns_before_the_merge_keeps_its_mentions(tmp_path):
    engine = build_graph(tmp_path, {"a.txt": STORY, "b.txt": OTHER})
    before = folded(engine)
    engine.write({"a.txt": None})
    (gone,) = engine.cut()
    engine.ingest(gone.key)
    engine.write({"a.txt": STORY})
    (back,) = engine.cut()
    engine.ingest(back.key)
    engine.merge()
    assert folded(engine) == before


def test_each_stage_done_twice_does_nothing_the_second_time(tmp_path):
    engine = Engine(tmp_path)
    engine.write({"a.txt": STORY, "b.txt": OTHER, "bad.pdf": b"no pdf"})
    (batch,) = engine.cut()
    assert not any(result.done_before for result in engine.ingest(batch.key))
    path = engine.store.path
    before = path.read_bytes()
    assert all(result.done_before for result in engine.ingest(batch.key))
    assert path.read_bytes() == before
    assert engine.merge().batches == (batch.key,)
    before = path.read_bytes()
    assert engine.merge().batches == ()
    assert all(result.done_before for result in engine.ingest(batch.key))
    assert path.read_bytes() == before
    engine.cluster()
    before = path.read_bytes()
    assert engine.cluster().counts == {}
    assert path.read_bytes() == before
    engine.report()
    before = path.read_bytes()
    assert sum(level.written + level.removed for level in engine.report()) == 0
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("changed", "redone"),
    [
        ({"input": InputSettings(title_columns=("headline",))}, STAGES),
        ({"input": InputSettings(settle_seconds=9, poll_seconds=9, folder="x")}, ()),
        ({"chunks": ChunkSettings(size=300)}, ("chunks", "extractions")),
        ({"chunks": ChunkSettings(prepend_metadata=("author",))}, ()),
        ({"extraction": ExtractionSettings(noun_phrases=False)}, ("extractions",)),
        ({"graph": GraphSettings(min_concept_frequency=3)}, ()),
        ({"home": "elsewhere"}, ()),
    ],
)
def test_a_change_of_configuration_does_again_exactly_the_stages_it_concerns(
    tmp_path, changed, redone
):
    home = copy_of("ingested", lambda made: build_graph(made, {"a.txt": STORY}), tmp_path)
    engine = Engine(home, Settings(**changed))
    (batch,) = engine.log.batches()
    assert pending_batches(engine.workspace) == ([batch.key] if redone else [])
    done = dict(zip(STAGES, engine.ingest(batch.key), strict=True))
    assert tuple(stage for stage, result in done.items() if not result.done_before) == redone


def test_after_a_change_of_configuration_the_index_is_that_of_a_fresh_build(tmp_path):
    files = {"a.txt": f"{STORY} {OTHER} {STORY}", "b.txt": OTHER}
    engine = build_graph(tmp_path / "one", files)
    changed = {
        "chunks": {"size": 20, "overlap": 5, "sentences": True},
        "extraction": {"noun_phrases": False},
    }
    engine.settings = Settings(**changed)
    engine.index()
    assert folded(engine) == folded(build_graph(tmp_path / "two", files, **changed))


def test_a_batch_half_done_under_new_settings_waits_and_leaves_the_index_as_it_was(tmp_path):
    engine = Engine(tmp_path)
    engine.write({"a.txt": f"{STORY} {OTHER}", "b.txt": OTHER})
    (batch,) = engine.cut()
    engine.ingest(batch.key)
    engine.settings = Settings(chunks=ChunkSettings(size=20, overlap=5))
    ingest(engine.workspace, "documents", batch.key)
    ingest(engine.workspace, "chunks", batch.key)
    engine.merge()
    unread = "SELECT count(*) FROM chunks ANTI JOIN extractions ON chunk_id = chunks.id"
    assert engine.rows(unread) == [(0,)]
    assert pending_batches(engine.workspace) == [batch.key]
    engine.index()
    assert engine.rows(unread) == [(0,)]
    assert engine.rows("SELECT count(*) > 2 FROM chunks") == [(True,)]


def test_a_file_that_cannot_be_read_is_recorded_and_the_rest_is_indexed(tmp_path):
    engine = build_graph(
        tmp_path, {"a.txt": STORY, "bad.pdf": b"%PDF-nothing", "empty.txt": "", "z.xyz": "?"}
    )
    assert engine.rows("SELECT uri FROM documents") == [("documents/a.txt",)]
    quarantine = dict(engine.rows("SELECT uri, reason FROM quarantine"))
    assert set(quarantine) == {"documents/bad.pdf", "documents/empty.txt", "documents/z.xyz"}
    assert all(reason and "\n" not in reason for reason in quarantine.values())
    assert engine.rows("SELECT status, n_added, n_quarantined FROM batches") == [("partial", 4, 3)]
    statuses = dict(engine.rows("SELECT uri, status FROM batch_sources"))
    assert statuses == {"documents/a.txt": "ok"} | dict.fromkeys(quarantine, "quarantined")


def test_a_batch_of_which_nothing_can_be_read_is_done_and_harmless(tmp_path):
    engine = build_graph(tmp_path, {"empty.txt": "", "bad.pdf": b"x"})
    assert engine.rows("SELECT status FROM batches") == [("quarantined",)]
    assert pending_batches(engine.workspace) == []
    engine.write({"empty.txt": STORY})
    engine.index()
    assert engine.rows("SELECT uri FROM documents") == [("documents/empty.txt",)]


def test_a_document_that_can_no_longer_be_read_leaves_the_index(tmp_path):
    engine = build_graph(tmp_path, {"a.txt": STORY, "b.txt": OTHER})
    engine.write({"a.txt": ""})
    engine.index()
    assert engine.rows("SELECT uri FROM documents") == [("documents/b.txt",)]
    assert engine.rows("SELECT uri FROM quarantine") == [("documents/a.txt",)]


def test_small_numbers_are_never_given_twice(tmp_path):
    engine = build_graph(tmp_path, {"a.txt": STORY})
    first = dict(engine.rows("SELECT human_readable_id, title FROM entities"))
    engine.write({"a.txt": None, "b.txt": "Frank Miller met George Wilson in Berlin."})
    engine.index()
    second = dict(engine.rows("SELECT human_readable_id, title FROM entities"))
    assert first
    assert second
    assert not first.keys() & second.keys()
    engine.write({"a.txt": STORY})
    engine.index()
    third = dict(engine.rows("SELECT human_readable_id, title FROM entities"))
    assert first.items() <= third.items()
    assert second.items() <= third.items()
    for table in ("documents", "chunks", "entities", "relationships"):
        numbers = f"SELECT count(*) - count(DISTINCT human_readable_id) FROM {table}"
        assert engine.rows(numbers) == [(0,)]


def test_the_versions_of_the_stages_depend_on_settings_alone():
    assert stage_versions(Settings()) == stage_versions(Settings())
    assert len(set(stage_versions(Settings()).values())) == len(STAGES)


def test_a_chunk_whose_code_is_marked_otherwise_is_read_again_by_rule(tmp_path, monkeypatch):
    files = {"a.md": "The old mill was sold.\n\n    Alice Smith met Bob Jones\n", "b.txt": STORY}
    monkeypatch.setattr(separate, "read_file", read_without_blocks)
    engine = build_graph(tmp_path / "engine", files)
    assert ("Bob Jones", 2) in engine.rows("SELECT title, frequency FROM entities")
    monkeypatch.undo()
    monkeypatch.setattr(documents, "READER_VERSION", "next")
    (key,) = pending_batches(engine.workspace)
    engine.ingest(key)
    assert engine.rows("SELECT count(*) FROM staging.extractions") == [(1,)]
    engine.merge()
    assert ("Bob Jones", 1) in engine.rows("SELECT title, frequency FROM entities")
    assert folded(engine) == folded(build_graph(tmp_path / "fresh", files))


def test_mentions_that_are_staged_by_slices_are_those_of_the_whole_batch(tmp_path, monkeypatch):
    rows = "ship,captain\n" + "".join(f"Ship {n},Captain {n % 3}\n" for n in range(9))
    files = {"a.txt": STORY, "b.txt": OTHER, "ships.csv": rows}
    whole = build_graph(tmp_path / "whole", files)
    monkeypatch.setattr(extractors, "_SLICE_BYTES", 300)
    monkeypatch.setattr(to_extract, "_MOST_CHUNKS", 4)
    written = []
    monkeypatch.setattr(
        mention_files, "identify", lambda part: written.append(identify(part)) or written[-1]
    )
    sliced = build_graph(tmp_path / "sliced", files)
    assert len(written) > 3
    assert folded(sliced) == folded(whole)


def test_a_text_at_which_rules_fail_stays_without_names_and_the_others_have_theirs(
    tmp_path, monkeypatch, caplog
):
    def failing(text, *others):
        if "Ada Finch" in text:
            raise RecursionError("too deep")
        return read(text, *others)

    read = nlp._read
    monkeypatch.setattr(nlp, "_read", failing)
    built = build_graph(tmp_path, {"a.txt": STORY, "b.txt": OTHER, "c.txt": "Ada Finch met Bo."})
    assert ("Bob Jones", 1) in built.rows("SELECT title, frequency FROM entities")
    (warning,) = [each for each in caplog.messages if "stays without names" in each]
    assert "too deep" in warning


def test_what_a_killed_extraction_leaves_behind_is_gone_after_the_next(tmp_path):
    with temporary_folder(tmp_path, "extracting") as folder:
        leftover = shutil.copytree(folder.parent, tmp_path / ".extracting.0123abcd.tmp")
    with mention_files.mention_files(tmp_path, [], DatabaseLimits()):
        assert not leftover.exists()
    assert not list(tmp_path.iterdir())


def test_documents_of_a_table_are_the_same_by_column_as_one_by_one(tmp_path, monkeypatch):
    quoted = 'id,title,text,note\n7,"A ""b""\\",Été été,"x\ty"\n8,Two,"Ann Lee\nsaid so.",\n'
    files = {"a.txt": STORY, "quoted.csv": quoted, "ships.csv": "ship,captain\nHope,Ann Lee\n"}
    by_column = build_graph(tmp_path / "columns", files)

    def read_rows(path, options, *, data):
        result = read_file(path, options, data=data)
        return replace(result, documents=[*result.documents])

    monkeypatch.setattr(separate, "read_file", read_rows)
    by_row = build_graph(tmp_path / "rows", files)
    assert folded(by_column) == folded(by_row)
    every = "SELECT * EXCLUDE batch FROM documents ORDER BY id"
    assert by_column.rows(every) == by_row.rows(every)
