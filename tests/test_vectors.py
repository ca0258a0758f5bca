import random
import subprocess
import sys
import time
import zlib
from datetime import timedelta

import lancedb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lancedb.index import FTS

from graphrag_pipeline.core import progress
from graphrag_pipeline.llm.embedders import HashingEmbedder, Storing
from graphrag_pipeline.store import vector_store as vectors
from graphrag_pipeline.store.full_text import full_text, hits_of, no_hits
from graphrag_pipeline.store.vector_store import VectorStore, VectorStoreError, row_schema


class CountingEmbedder(HashingEmbedder):
    """Stored in full precision, to be compared with what was embedded."""

    storing = Storing()

    def __init__(self, dimensions=16, name=None, fails_after=None):
        super().__init__(dimensions)
        self.name = name or self.name
        self.texts = []
        self.fails_after = fails_after

    def embed(self, texts):
        if self.fails_after is not None and len(self.texts) >= self.fails_after:
            raise KeyboardInterrupt
        self.texts += texts
        return super().embed(texts)


def rows(texts, *, level=None, batch=None):
    """One row per id, its hash standing for its text."""
    n = len(texts)
    columns = [list(texts), list(texts.values()), [level] * n, [batch] * n]
    columns.append([f"hash of {text}" for text in texts.values()])
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, row_schema(), strict=True)],
        schema=row_schema(),
    )


def numbered(n):
    return {f"id{i}": f"passage word{i} common" for i in range(n)}


TABLES = ("chunks", "entities", "relationships", "community_reports")


def current(store):
    return store.at({table: store.version(table) for table in TABLES})


def ids(found):
    return found["id"].to_pylist()


@pytest.fixture
def store(tmp_path):
    return VectorStore(tmp_path / "vectors")


@pytest.fixture
def embedder():
    return CountingEmbedder()


def test_a_sync_embeds_everything_once_and_then_only_what_changed(store, embedder):
    first = store.sync("chunks", rows({"a": "river", "b": "town", "c": "king"}), embedder)
    assert (first.reused, first.embedded, first.removed) == (0, 3, 0)
    second = store.sync("chunks", rows({"a": "river", "b": "queen", "d": "sea"}), embedder)
    assert (second.reused, second.embedded, second.removed) == (1, 2, 1)
    assert embedder.texts == ["river", "town", "king", "queen", "sea"]
    assert second.version == store.version("chunks") > first.version


@pytest.mark.parametrize("left", ["", "data", "_versions"])
def test_a_table_whose_making_was_killed_is_made_again(tmp_path, store, embedder, left):
    (tmp_path / "vectors" / "chunks.lance" / left).mkdir(parents=True)
    assert store.version("chunks") == 0
    assert store.sync("chunks", rows({"a": "river"}), embedder).embedded == 1
    assert store.version("chunks") > 0


def test_a_sync_without_a_difference_writes_no_version(store, embedder):
    wanted = rows(numbered(20), level=1, batch="b")
    first = store.sync("chunks", wanted, embedder)
    again = store.sync("chunks", wanted, embedder)
    assert (again.version, again.reused, again.embedded) == (first.version, 20, 0)
    empty = store.sync("entities", rows({}), embedder)
    assert store.sync("entities", rows({}), embedder).version == empty.version


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["a", "b'", 'c"', "d\\", "e;--", "é", "f%_", "", "g\n", "東"])
            | st.text(),
            st.sampled_from(["river", "town of kings", "", "the", "東京"]),
            max_size=8,
        ),
        min_size=1,
        max_size=3,
    )
)
def test_any_sequence_of_wanted_sets_ends_exact_and_embeds_only_changed_rows(
    tmp_path_factory, monkeypatch, states
):
    monkeypatch.setattr(vectors, "SLICE_ROWS", 3)
    monkeypatch.setattr(vectors, "_ID_FILTER_ROWS", 2)
    store, before = VectorStore(tmp_path_factory.mktemp("vectors")), {}
    for state in states:
        embedder = CountingEmbedder()
        result = store.sync("entities", rows(state), embedder)
        changed = {key: text for key, text in state.items() if before.get(key) != text}
        assert sorted(embedder.texts) == sorted(changed.values())
        assert result.embedded == len(changed)
        assert result.reused == len(state) - len(changed)
        assert result.removed == len(before.keys() - state.keys())
        found = current(store).vectors("entities", list(state))
        assert found.keys() == state.keys()
        assert current(store).count("entities") == len(state)
        for key, text in state.items():
            np.testing.assert_array_equal(found[key], HashingEmbedder(16).embed([text])[0])
        before = state


def test_a_changed_level_or_batch_is_written_without_embedding(store, embedder):
    store.sync("chunks", rows(numbered(5), level=1, batch="old"), embedder)
    result = store.sync("chunks", rows(numbered(5), level=2, batch="new"), embedder)
    assert (result.reused, result.embedded, len(embedder.texts)) == (5, 0, 5)
    assert ids(current(store).fulltext("chunks", "word3", 5)) == ["id3"]
    scanned = [
        row
        for part in current(store).scan("chunks", ["id", "level", "batch", "text"])
        for row in part.to_pylist()
    ]
    assert {"id": "id3", "level": 2, "batch": "new", "text": "passage word3 common"} in scanned
    assert {(row["level"], row["batch"]) for row in scanned} == {(2, "new")}
    vector = HashingEmbedder(16).embed(["passage word3 common"])[0]
    np.testing.assert_array_equal(current(store).vectors("chunks", ["id3"])["id3"], vector)


def test_an_interrupted_sync_is_completed_without_embedding_a_committed_row_again(
    store, monkeypatch
):
    monkeypatch.setattr(vectors, "SLICE_ROWS", 4)
    with pytest.raises(KeyboardInterrupt):
        store.sync("chunks", rows(numbered(20)), CountingEmbedder(fails_after=8))
    rest = CountingEmbedder()
    result = store.sync("chunks", rows(numbered(20)), rest)
    assert (result.reused, result.embedded) == (8, 12)
    assert len(set(rest.texts)) == 12
    assert len(ids(current(store).fulltext("chunks", "common", 50))) == 20


KILLED = """
import os, sys
sys.path[:0] = {path!r}
from test_vectors import CountingEmbedder, VectorStore, numbered, rows, vectors
vectors.SLICE_ROWS = 4
class Killed(CountingEmbedder):
    def embed(self, texts):
        if len(self.texts) >= 8:
            os.kill(os.getpid(), 9)
        return super().embed(texts)
VectorStore({uri!r}).sync("chunks", rows(numbered(20)), Killed())
"""


def test_a_killed_process_leaves_a_table_that_another_completes(tmp_path):
    store = VectorStore(tmp_path)
    store.sync("chunks", rows({"id0": "passage word0 common", "old": "gone"}), CountingEmbedder())
    snapshot = current(store)
    code = KILLED.format(path=[*sys.path, str(__file__).rsplit("/", 1)[0]], uri=str(tmp_path))
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert set(ids(snapshot.fulltext("chunks", "gone common", 9))) == {"id0", "old"}
    rest = CountingEmbedder()
    result = store.sync("chunks", rows(numbered(20)), rest)
    assert (result.reused, result.embedded, result.removed) == (9, 11, 1)
    assert current(store).count("chunks") == 20


def test_large_syncs_make_few_versions(store, embedder, monkeypatch):
    monkeypatch.setattr(vectors, "SLICE_ROWS", 1000)
    assert store.sync("entities", rows(numbered(5000)), embedder).version <= 5 + 4
    assert store.sync("entities", rows({}), embedder).removed == 5000


class HalfEmbedder(CountingEmbedder):
    """Stored as a local model's vectors are."""

    storing = Storing(rows=4, half=True)


def item_type(store) -> str:
    return str(store._db.open_table("chunks").schema.field("vector").type.value_type)


def test_half_precision_finds_the_same_within_a_thousandth(tmp_path, monkeypatch):
    texts = {f"id{i}": f"river word{i % 7} town{i % 5} bridge{i % 3}" for i in range(60)}
    half, whole = VectorStore(tmp_path / "half"), VectorStore(tmp_path / "whole")
    half.sync("chunks", rows(texts), HalfEmbedder(64))
    whole.sync("chunks", rows(texts), CountingEmbedder(64))
    assert (item_type(half), item_type(whole)) == ("halffloat", "float")
    query = HashingEmbedder(64).embed(["word3 town2 bridge1"])[0]
    for held_bytes in (vectors.HELD_BYTES, 0):
        monkeypatch.setattr(vectors, "HELD_BYTES", held_bytes)
        found, expected = (
            dict(zip(*current(store).search("chunks", query, 60).to_pydict().values(), strict=True))
            for store in (half, whole)
        )
        assert found.keys() == expected.keys()
        assert max(abs(found[key] - expected[key]) for key in found) < 1e-3
    assert half.sync("chunks", rows(texts), HalfEmbedder(64)).embedded == 0
    assert next(iter(current(half).vectors("chunks", ["id1"]).values())).dtype == np.float32


def test_a_table_in_full_precision_stays_valid_and_stays_in_it(store):
    store.sync("chunks", rows({"a": "river", "b": "town"}), CountingEmbedder(16))
    later = HalfEmbedder(16)
    result = store.sync("chunks", rows({"a": "river", "b": "city", "c": "sea"}), later)
    assert (result.reused, result.embedded) == (1, 2)
    assert sorted(later.texts) == ["city", "sea"]
    assert item_type(store) == "float"
    assert current(store).count("chunks") == 3


def test_a_table_that_gets_a_vector_index_is_in_full_precision(store, monkeypatch):
    monkeypatch.setattr(vectors, "VECTOR_INDEX_ROWS", 300)
    store.sync("chunks", rows(numbered(300)), HalfEmbedder(32))
    assert item_type(store) == "float"


def test_a_slow_embedder_says_how_far_it_is(store):
    heard = []
    with progress.listening(lambda *told: heard.append(told)):
        store.sync("chunks", rows(numbered(10)), HalfEmbedder(16))
        store.sync("entities", rows(numbered(4)), HalfEmbedder(16))
        store.sync("chunks", rows(numbered(10)), HalfEmbedder(16))
    assert heard == [("chunks_vectors", done, 10) for done in (0, 4, 8, 10)]


@pytest.mark.filterwarnings("ignore:optimize")
def test_another_embedder_starts_anew_and_the_published_release_stays_readable(store):
    small, large = CountingEmbedder(16), CountingEmbedder(32)
    store.sync("chunks", rows({"a": "river", "b": "town"}), small)
    versions = store.tag("release-1")
    assert store.sync("chunks", rows({"a": "river"}), large).embedded == 1
    assert store.embedder_name("chunks") == large.name
    renamed = CountingEmbedder(32, name="other model")
    assert store.sync("chunks", rows({"a": "river"}), renamed).embedded == 1
    store.optimize(keep_days=0, spare=0)
    old = VectorStore(store.uri).at(versions)
    assert old.embedder_name("chunks") == small.name
    assert ids(old.fulltext("chunks", "town", 5)) == ["b"]
    assert ids(old.search("chunks", small.embed(["town"])[0], 1)) == ["b"]
    assert ids(current(store).search("chunks", large.embed(["river"])[0], 5)) == ["a"]


@pytest.mark.filterwarnings("ignore:optimize")
def test_tagged_versions_survive_cleaning_and_the_others_go(store, embedder, monkeypatch):
    monkeypatch.setattr(vectors, "_CLOCK_MARGIN", timedelta(milliseconds=300))
    kept = {}
    for n in range(1, 5):
        store.sync("chunks", rows(numbered(n)), embedder)
        kept[n] = store.version("chunks")
        if n == 3:
            store.tag("three")
        time.sleep(0.4)
    store.optimize(keep_days=0, spare=0)
    assert store.at({"chunks": kept[3]}).count("chunks") == 3
    assert ids(store.at({"chunks": kept[3]}).fulltext("chunks", "word2 word3", 5)) == ["id2"]
    assert current(store).count("chunks") == 4
    with pytest.raises(VectorStoreError, match="publish again"):
        store.at({"chunks": kept[1]}).count("chunks")
    store.drop_tags(["three", "never made"])
    assert store.tags() == {}
    store.optimize(keep_days=0, spare=0)
    with pytest.raises(VectorStoreError):
        store.at({"chunks": kept[3]}).count("chunks")


@pytest.mark.filterwarnings("ignore:optimize")
def test_lancedb_itself_refuses_to_clean_past_a_tag(store, embedder):
    store.sync("chunks", rows(numbered(1)), embedder)
    store.tag("one")
    store.sync("chunks", rows(numbered(2)), embedder)
    table = lancedb.connect(store.uri).open_table("chunks")
    with pytest.raises(RuntimeError, match="tagged version"):
        table.optimize(cleanup_older_than=timedelta(microseconds=1))


def test_tagging_twice_is_tagging_once(store, embedder):
    store.sync("chunks", rows(numbered(2)), embedder)
    store.sync("entities", rows({}), embedder)
    versions = store.tag("r")
    assert store.tag("r") == versions == store.tags()["r"]
    assert versions.keys() == {"chunks", "entities"}
    assert store.version("chunks") == versions["chunks"]
    store.sync("chunks", rows(numbered(3)), embedder)
    assert store.tag("r")["chunks"] == store.version("chunks")


@pytest.mark.parametrize("release", ["", "a/b", "10:30", "rel 1", "é"])
def test_a_release_id_that_cannot_be_a_tag_is_refused(store, embedder, release):
    store.sync("chunks", rows({"a": "x"}), embedder)
    with pytest.raises(VectorStoreError, match="letters, digits"):
        store.tag(release)


def test_full_text_sees_new_changed_and_removed_rows_at_every_version(store, embedder):
    store.sync("chunks", rows({"a": "old river", "b": "town"}), embedder)
    old = current(store)
    store.sync("chunks", rows({"a": "new sea", "c": "river Thames"}), embedder)
    new = current(store)
    assert ids(old.fulltext("chunks", "river", 5)) == ["a"]
    assert ids(new.fulltext("chunks", "river", 5)) == ["c"]
    assert ids(new.fulltext("chunks", "town", 5)) == []
    assert ids(new.fulltext("chunks", "SEAS", 5)) == ["a"]
    store.optimize(spare=0)
    assert ids(current(store).fulltext("chunks", "river", 5)) == ["c"]
    assert ids(old.fulltext("chunks", "river", 5)) == ["a"]


def test_the_full_text_index_of_an_older_program_goes(store, embedder):
    store.sync("chunks", rows(numbered(5)), embedder)
    table = lancedb.connect(store.uri).open_table("chunks")
    table.create_index("terms", config=FTS(base_tokenizer="whitespace"))
    store.sync("chunks", rows(numbered(40)), embedder)
    assert lancedb.connect(store.uri).open_table("chunks").list_indices() == []
    assert ids(current(store).fulltext("chunks", "word39", 5)) == ["id39"]


def test_full_text_scores_as_lancedb_does(store, embedder):
    chance = random.Random(7)
    words = [f"w{n}x" for n in range(60)]
    texts = {
        f"id{n:03}": " ".join(chance.choices(words, range(60, 0, -1), k=chance.randrange(1, 80)))
        for n in range(400)
    }
    store.sync("chunks", rows(texts), embedder)
    table = lancedb.connect(store.uri).open_table("chunks")
    table.create_index("terms", config=FTS(base_tokenizer="whitespace", stem=False))
    for question in ("w1x w40x w59x", "w0x", "w58x w58x w2x nowhere"):
        search = table.search(question, query_type="fts", fts_columns="terms").limit(400)
        expected = {row["id"]: row["_score"] for row in search.to_list()}
        found = current(store).fulltext("chunks", question, 400).to_pydict()
        scores = dict(zip(found["id"], found["score"], strict=True))
        assert scores == pytest.approx(expected, rel=1e-4)
        assert found["id"] == sorted(scores, key=lambda key: (-scores[key], key))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.dictionaries(st.integers(0, 12), st.text("ab ", max_size=9)), max_size=5))
def test_an_index_by_difference_is_the_index_made_anew(states):
    before = None
    for state in states:
        texts = {f"{key}": " ".join(text.split()) for key, text in state.items()}
        versions = np.array([zlib.crc32(text.encode()) for text in texts.values()], np.uint64)

        def read(ids, texts=texts):
            wanted = texts if ids is None else ids
            return pa.table({"id": [*wanted], "terms": pa.array([texts[k] for k in wanted], "str")})

        anew = full_text(np.array([*texts], np.bytes_), versions, read).arrays()
        before = full_text(np.array([*texts], np.bytes_), versions, read, before)
        assert before.arrays().keys() == anew.keys()
        for name, array in before.arrays().items():
            assert array.dtype == anew[name].dtype
            np.testing.assert_array_equal(array, anew[name])


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory):
    store = VectorStore(tmp_path_factory.mktemp("vectors"))
    texts = {"quote": 'it\'s "AND" (x) OR y*', "cjk": "東京都 tower", "plain": "the river Thames"}
    store.sync("chunks", rows(texts, level=1, batch="b"), HashingEmbedder(16))
    store.sync("entities", rows({}), HashingEmbedder(16))
    return current(store)


@settings(max_examples=60, deadline=None)
@given(st.text() | st.text(st.sampled_from("'\"()*:^~+-&|\\/?[]{} ANDOR")))
def test_any_string_is_a_safe_full_text_query(snapshot, query):
    found = snapshot.fulltext("chunks", query, 5)
    assert set(ids(found)) <= {"quote", "cjk", "plain"}
    assert all(score > 0 for score in found["score"].to_pylist())


@pytest.mark.parametrize("query", ["", "  ", "the of", "!!!", '"', "()"])
def test_a_query_without_terms_finds_nothing(snapshot, query):
    assert snapshot.fulltext("chunks", query, 5).num_rows == 0


def test_full_text_finds_folded_words_and_bigrams(snapshot):
    assert ids(snapshot.fulltext("chunks", "RIVERS", 5)) == ["plain"]
    assert ids(snapshot.fulltext("chunks", "京都", 5)) == ["cjk"]
    assert ids(snapshot.fulltext("chunks", "tower river", 5, among=["quote", "none"])) == []
    assert ids(snapshot.fulltext("chunks", "tower river", 5, among=["cjk", "quote"])) == ["cjk"]


@pytest.mark.parametrize("table", ["entities", "relationships"])
def test_empty_and_missing_tables_find_nothing(snapshot, table):
    for found in (
        snapshot.search(table, np.ones(16), 3),
        snapshot.fulltext(table, "river", 3),
    ):
        assert found.num_rows == 0
        assert found.column_names == ["id", "score"]
    assert snapshot.vectors(table, ["a"]) == {}
    assert snapshot.count(table) == 0


def test_search_is_exact_cosine_best_first(tmp_path, embedder):
    store = VectorStore(tmp_path)
    texts = {f"id{i}": f"word{i % 9} word{i % 7} word{i}" for i in range(300)}
    store.sync("chunks", rows(texts), embedder)
    query = embedder.embed(["word3 word30"])[0]
    expected = embedder.embed(list(texts.values())) @ query
    found = current(store).search("chunks", 5 * query, 10)
    np.testing.assert_allclose(found["score"], np.sort(expected)[::-1][:10], atol=1e-5)
    for key, score in zip(ids(found), found["score"].to_pylist(), strict=True):
        assert score == pytest.approx(expected[int(key[2:])], abs=1e-5)


def test_vectors_held_in_memory_give_what_lancedb_gives(tmp_path, embedder, monkeypatch):
    store = VectorStore(tmp_path)
    texts = {f"id{i:03}": f"word{i % 9} word{i % 7} word{i % 40}" for i in range(300)}
    store.sync("chunks", rows(texts), embedder)
    query = embedder.embed(["word3 word30"])[0]
    asked = ["id007", "none", "id299", "id000"]

    def found() -> tuple[dict[str, str], dict[str, float], dict[str, float]]:
        hits = current(store).search("chunks", query, 300)
        names, scores = ids(hits), hits["score"].to_pylist()
        alike = current(store).similarities("chunks", query, asked)
        texts_of = current(store).texts("chunks", names)
        return texts_of, dict(zip(names, scores, strict=True)), alike

    in_memory = found()
    monkeypatch.setattr(vectors, "HELD_BYTES", 0)
    by_lancedb = found()
    assert in_memory[0] == by_lancedb[0] == texts
    for held, searched in zip(in_memory[1:], by_lancedb[1:], strict=True):
        assert held == pytest.approx(searched, abs=2e-6)
    assert in_memory[2] == {key: in_memory[1][key] for key in asked if key != "none"}


def test_equal_scores_are_in_the_order_of_ids_wherever_they_are_cut(tmp_path, embedder):
    store = VectorStore(tmp_path)
    names = [f"id{i:03}" for i in range(300)]
    store.sync("chunks", rows(dict.fromkeys(reversed(names), "one and the same")), embedder)
    query = embedder.embed(["same"])[0]
    assert ids(current(store).search("chunks", query, 7)) == names[:7]
    assert ids(current(store).fulltext("chunks", "same", 7)) == names[:7]


def test_search_filters_before_it_counts(tmp_path, embedder, monkeypatch):
    monkeypatch.setattr(vectors, "HELD_BYTES", 0)
    store = VectorStore(tmp_path)
    store.sync("chunks", rows(numbered(50)), embedder)
    query = embedder.embed(["word7"])[0]
    among = [f"id{number}" for number in range(20, 30)]
    assert sorted(ids(current(store).search("chunks", query, 10, among=among))) == among


def test_a_query_vector_of_other_dimensions_is_refused_by_name(snapshot):
    with pytest.raises(VectorStoreError, match="embed the query with hashing-v1-16"):
        snapshot.search("chunks", np.ones(8), 3)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (rows({"a": "x"}).drop_columns("text"), "lack the columns"),
        (pa.concat_tables([rows({"a": "x"}), rows({"a": "y"})]), "repeated ids"),
        (pa.table({**{n: ["a"] for n in ("id", "content_hash")}, "text": pa.array([None], "string"),
                   "level": pa.array([None], "int32"), "batch": ["b"]}), "null in column text"),
    ],
)  # fmt: skip
def test_rows_that_cannot_be_stored_are_refused_before_anything_is_written(
    store, embedder, wanted, message
):
    with pytest.raises(VectorStoreError, match=message):
        store.sync("chunks", wanted, embedder)
    assert store.version("chunks") == 0


def test_unknown_tables_are_refused(tmp_path):
    with pytest.raises(VectorStoreError, match="cannot name a vector table"):
        VectorStore(tmp_path).version("../chunks")


def test_vectors_that_are_no_numbers_are_refused(store, embedder, monkeypatch):
    monkeypatch.setattr(embedder, "embed", lambda texts: np.full((len(texts), 16), np.nan))
    with pytest.raises(VectorStoreError, match="no numbers"):
        store.sync("chunks", rows({"a": "x"}), embedder)


def test_a_large_table_gets_a_vector_index_that_finds_the_same(store, monkeypatch):
    monkeypatch.setattr(vectors, "VECTOR_INDEX_ROWS", 1000)
    monkeypatch.setattr(vectors, "HELD_BYTES", 0)
    embedder = CountingEmbedder(128)
    store.sync("chunks", rows(numbered(1500)), embedder)
    table = lancedb.connect(store.uri).open_table("chunks")
    assert {tuple(index.columns) for index in table.list_indices()} == {("vector",)}
    found = current(store).search("chunks", embedder.embed(["passage word77 common"])[0], 20)
    assert ids(found)[0] == "id77"
    assert found["score"][0].as_py() == pytest.approx(1.0, abs=1e-5)


def test_an_exact_search_of_a_large_table_misses_no_row(store, monkeypatch):
    embedder = CountingEmbedder(128)
    question = embedder.embed(["passage word7 common"])[0]

    def found(**more) -> list[tuple[str, float]]:
        hits = current(store).search("chunks", question, 300, **more)
        return sorted(zip(ids(hits), hits["score"].to_pylist(), strict=True), key=lambda h: -h[1])

    store.sync("chunks", rows(numbered(1500)), embedder)
    all_of_them = [score for _, score in found()]
    for name, value in {"HELD_BYTES": 0, "VECTOR_INDEX_ROWS": 1000, "_REFINE": 1}.items():
        monkeypatch.setattr(vectors, name, value)
    store.sync("chunks", rows(numbered(1501)), embedder)
    assert len(lancedb.connect(store.uri).open_table("chunks").list_indices()) == 1
    exact = [score for _, score in found(exact=True)]
    assert exact == pytest.approx(all_of_them, abs=2e-6)
    assert [score for _, score in found()] != pytest.approx(all_of_them, abs=2e-6)


def test_importing_the_module_does_not_import_lancedb():
    code = "import sys, graphrag_pipeline.store.vector_store; sys.exit('lancedb' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def in_a_fresh_process(code, *arguments):
    """Run code that exits with what went wrong, or with nothing."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_lancedb_by_itself_imports_its_rest_client():
    """Otherwise graphrag_pipeline.store.lance has nothing to put off any more."""
    in_a_fresh_process(
        """
import sys, lancedb
from graphrag_pipeline.store.lance import REST_CLIENT
sys.exit(None if f"{REST_CLIENT}.api" in sys.modules else "remove graphrag_pipeline.store.lance")
"""
    )


def test_the_rest_client_is_put_off_and_whole_for_all_threads_when_asked_for(tmp_path):
    in_a_fresh_process(
        """
import sys, threading
from graphrag_pipeline.store.lance import REST_CLIENT
from graphrag_pipeline.store.vector_store import VectorStore
VectorStore(sys.argv[1]).version("chunks")
models = [name for name in sys.modules if name.startswith(f"{REST_CLIENT}.models.")]
assert len(models) < 30, models
assert not [name for name in sys.modules if name.startswith(f"{REST_CLIENT}.api")]
import lance_namespace_urllib3_client as client
seen, together = [], threading.Barrier(4)
def ask():
    together.wait()
    seen.append((client.BranchApi, client.ApiClient, client.__version__))
threads = [threading.Thread(target=ask) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
from lance_namespace_urllib3_client.api.branch_api import BranchApi
assert len(seen) == 4 and {branch for branch, *_ in seen} == {BranchApi}, seen
assert not hasattr(client, "no_such_name")
import pydantic
try:
    BranchApi().create_table_branch(5, None)
except pydantic.ValidationError as error:
    sys.exit(None if error.error_count() >= 2 else str(error))
sys.exit("nothing was validated")
""",
        tmp_path,
    )


def test_names_stand_for_the_models_that_they_are_of(tmp_path):
    in_a_fresh_process(
        """
import sys
from graphrag_pipeline.store.vector_store import VectorStore
VectorStore(sys.argv[1]).version("chunks")
from lance_namespace import DropTableRequest, CreateTableRequest, LanceNamespace
from typing import Optional
class Larger(CreateTableRequest):
    pass
assert (CreateTableRequest | None) == Optional[CreateTableRequest]
one = CreateTableRequest(id=["a"])
from lance_namespace_urllib3_client.models import CreateTableRequest as Model
assert type(one) is Model and issubclass(Larger, Model)
assert isinstance(Larger(id=["b"]), CreateTableRequest) and not isinstance(1, DropTableRequest)
assert CreateTableRequest.from_dict({"id": ["a"]}) == one
sys.exit(None if LanceNamespace.create_table.__annotations__ else "no annotations")
""",
        tmp_path,
    )


def test_a_lancedb_that_cannot_be_imported_lightly_is_imported_as_it_is(tmp_path):
    in_a_fresh_process(
        """
import sys
from graphrag_pipeline.store import lance
def fail(self, name):
    raise RuntimeError("another version, which makes one at once")
lance._Later.__init__ = fail
from graphrag_pipeline.store.vector_store import VectorStore
VectorStore(sys.argv[1]).version("chunks")
from lance_namespace import CreateTableRequest
from lance_namespace_urllib3_client.models.create_table_request import CreateTableRequest as Model
sys.exit(None if CreateTableRequest is Model else "a name")
""",
        tmp_path,
    )


def test_a_rest_client_that_is_there_already_stays_as_it_is(tmp_path):
    in_a_fresh_process(
        """
import sys
import lance_namespace_urllib3_client as client
from graphrag_pipeline.store.vector_store import VectorStore
VectorStore(sys.argv[1]).version("chunks")
sys.exit(None if sys.modules["lance_namespace_urllib3_client"] is client else "another")
""",
        tmp_path,
    )


def test_terms_held_are_those_that_stand_in_texts_as_whole_words():
    texts = {"c": "dam orlen dam", "a": "", "b": "orlen 1,890 bridge"}
    table = pa.table({"id": [*texts], "terms": [*texts.values()]})
    held = full_text(np.array([*texts], np.bytes_), np.zeros(3, np.uint64), lambda _: table)
    words = ["dam", "orlen", "1,890", "bridg", "orlen dam"]
    assert [held.count(word) for word in words] == [1, 2, 1, 0, 0]
    assert held.held(["b", "bb", "nope", "c"], words).tolist() == [
        [False, True, True, False, False],
        [False] * 5,
        [False] * 5,
        [True, True, False, False, False],
    ]
    none = np.empty(0, np.bytes_), np.zeros(0, np.uint64)
    assert full_text(*none, lambda _: table.slice(0, 0)).count("dam") == 0


def test_each_form_of_a_word_counts_as_rare_as_the_word_is_and_not_as_itself():
    terms = ["haus", "hus", "hus", "hus", "boot", "boot", "boot", "boot"]
    table = pa.table({"id": list("abcdefgh"), "terms": terms})
    ids = np.array(list("abcdefgh"), np.bytes_)
    held = full_text(ids, np.zeros(8, np.uint64), lambda _: table)

    def scores(*forms):
        return set(held.best(held.weights(dict.fromkeys(forms, 1.0)), 8)[1].tolist())

    assert scores(("haus", "hus")) == scores(("boot",))
    assert len(scores(("haus",), ("hus",))) == 2


def test_no_hits_are_a_table_as_hits_are() -> None:
    some = hits_of(["a"], np.array([0.5]))
    assert no_hits().schema == some.schema
    assert pa.concat_tables([no_hits(), some]).to_pylist() == [{"id": "a", "score": 0.5}]
