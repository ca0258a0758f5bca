"""Documents with labels: what somebody may not read shows nowhere, whatever is asked."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from graphrag_pipeline import Index
from graphrag_pipeline.core.errors import AccessError, ConfigError, GraphRAGError, InputError
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.query import METHODS, MODEL_METHODS, QueryEngine, read_method, release
from graphrag_pipeline.query import limited_release as limited

# By folder: the word that only its documents say, and what they say of names that others have too.
FOLDERS = {
    "public": "Alba Crane met Dorian Feld at Halden Mill. The council praised Halden Mill. "
    "Alba Crane repaired Halden Mill with Dorian Feld.",
    "hr": "Alba Crane dismissed Dorian Feld over the quaggahr ledger. The quaggahr ledger lay in "
    "Halden Mill. Dorian Feld called it the quaggahr affair.",
    "legal": "Dorian Feld sued Alba Crane in the vexlegal case. Judge Imre Tolliver heard the "
    "vexlegal case. Alba Crane paid Imre Tolliver for Halden Mill.",
    "board": "Imre Tolliver bought Halden Mill from Alba Crane by the zymboard deed. Dorian Feld "
    "signed the zymboard deed. The zymboard deed named Marek Vale.",
    "mixed": "Marek Vale told Imre Tolliver of the juxmixed plan. Alba Crane and Marek Vale wrote "
    "the juxmixed plan at Halden Mill.",
    "unlabelled": "Alba Crane hid the nobwelk key in Halden Mill. Dorian Feld sought the nobwelk "
    "key. Marek Vale stole the nobwelk key.",
}
CANARIES = {
    "hr": "quaggahr", "legal": "vexlegal", "board": "zymboard", "mixed": "juxmixed",
    "unlabelled": "nobwelk",
}  # fmt: skip
RULES = [
    {"match": "public/**", "labels": ["staff", "hr", "legal", "board"]},
    {"match": "hr/", "labels": ["hr", "board"]},
    {"match": "legal/**", "labels": ["legal", "board"]},
    {"match": "board/**", "labels": ["board"]},
    {"match": "mixed/**", "labels": ["hr"]},
    {"match": "mix*/**", "labels": ["legal", "other"]},
]
LABELS = ("staff", "hr", "legal", "board")
QUESTIONS = (
    "What did Alba Crane do with the quaggahr, vexlegal, zymboard, juxmixed and nobwelk?",
    "What happened at Halden Mill?",
    "How are Dorian Feld and Imre Tolliver related?",
)
SPECS = sorted(
    {*METHODS, *MODEL_METHODS}
    | {"raptor:mode=tree", "lightrag:mode=global", "global:mode=similarity", "global:level=0"}
    | {"hirag:hi_index=false", "hirag:mode=bridge", "ppr:second_walk=true"}
)


def opened(labels: set[str]) -> set[str]:
    """Return the folders that labels open: one label of each rule that matches."""
    folders = {name for name in FOLDERS if name != "unlabelled"}
    demands = {
        "public": [set(LABELS)],
        "hr": [{"hr", "board"}],
        "legal": [{"legal", "board"}],
        "board": [{"board"}],
        "mixed": [{"hr"}, {"legal", "other"}],
    }
    return {name for name in folders if all(labels & demand for demand in demands[name])}


def settings_of(home, **sections):
    return Settings.exactly(
        {
            "home": str(home),
            "access": {"mode": "filtered", "rules": RULES},
            "embeddings": {"facts": True, "synonyms": True, "dimensions": 64},
            "hierarchies": {"raptor": True, "attributed": True, "hirag": True},
            "chunks": {"size": 30, "overlap": 5},
            "graph": {"min_concept_frequency": 1},
            **sections,
        }
    )


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("access")
    for name, text in FOLDERS.items():
        (folder / "documents" / name).mkdir(parents=True)
        (folder / "documents" / name / f"{name}.md").write_text(text)
    index = Index(settings_of(folder / "home"))
    index.update(folder / "documents")
    return index


@pytest.fixture(scope="module")
def engine(index):
    with index.open() as opened_engine:
        yield opened_engine


def hidden_words(labels: set[str]) -> list[str]:
    return [word for folder, word in CANARIES.items() if folder not in opened(labels)]


def shown(engine: QueryEngine, question: str, spec: str) -> str:
    """Return all that a method shows of an index, errors among it, but for the question itself."""
    name, options = read_method(spec)
    try:
        found = engine.retrieve(question, name, **options)
        parts = [found.to_dict()["records"], found.to_dict()["citations"]]
        if name in METHODS:
            answer = engine.answer(question, name, follow_ups=3, **options)
            parts += [answer.text, answer.follow_ups, [asdict(c) for c in answer.citations]]
    except GraphRAGError as error:
        parts = [str(error)]
    return json.dumps(parts, default=str).casefold()


@given(data=st.data())
@hypothesis_settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_no_method_shows_a_byte_of_a_document_that_labels_do_not_open(engine, data):
    labels = data.draw(st.sampled_from([{"staff"}, {"hr"}, {"legal"}, {"hr", "legal"}]))
    text = shown(
        engine.view(labels),
        data.draw(st.sampled_from(QUESTIONS)),
        data.draw(st.sampled_from(SPECS)),
    )
    assert [word for word in hidden_words(labels) if word in text] == []


@pytest.mark.nightly
@pytest.mark.parametrize("spec", SPECS)
def test_no_method_shows_a_byte_whatever_the_labels_and_the_question(engine, spec):
    for n in range(1, 2 ** len(LABELS)):
        labels = {label for place, label in enumerate(LABELS) if n >> place & 1}
        for question in QUESTIONS:
            text = shown(engine.view(labels), question, spec)
            assert [word for word in hidden_words(labels) if word in text] == []


@pytest.mark.parametrize("labels", [{"staff"}, {"hr"}, {"legal"}, {"hr", "legal"}])
def test_no_table_of_a_view_holds_a_hidden_word(engine, labels):
    view = engine.view(labels)
    names = tables_of(view)
    assert len(names) > 30
    for name in names:
        text = json.dumps(view.index.rows(f"SELECT * FROM {name}"), default=str).casefold()
        assert [word for word in hidden_words(labels) if word in text] == [], name


def tables_of(view: QueryEngine) -> list[str]:
    rows = view.index.rows(
        "SELECT DISTINCT table_name AS name FROM information_schema.tables "
        "WHERE table_catalog = current_database() AND table_schema = 'main'"
    )
    return sorted(row["name"] for row in rows)


@pytest.mark.parametrize("labels", [{"staff"}, {"hr"}, {"board"}, {"hr", "legal"}])
def test_exactly_the_documents_that_labels_open_are_there(engine, labels):
    rows = engine.view(labels).index.rows("SELECT uri FROM documents")
    assert {row["uri"].split("/")[-2] for row in rows} == opened(labels)


def test_the_words_are_there_for_who_may_see_all(engine):
    text = " ".join(shown(engine, QUESTIONS[0], name) for name in ("bm25", "local", "basic"))
    assert all(word in text for word in CANARIES.values())


def test_a_report_of_visible_sentences_takes_the_place_of_one_that_rests_on_hidden_ones(engine):
    view = engine.view({"staff"}).index
    reports = view.rows("SELECT * FROM community_reports")
    assert reports
    assert {report["writer"] for report in reports} == {"stand-in"}
    assert "Alba Crane met Dorian Feld at Halden Mill." in str(reports)
    answer = engine.view({"staff"}).answer("What are the main themes?", "global")
    assert "Halden Mill" in answer.text


@pytest.mark.parametrize("method", ["raptor", "hirag", "archrag"])
def test_a_method_says_that_summaries_of_hidden_documents_are_left_out(engine, method):
    line = "that rest on other documents, too, are left out"
    limited_steps = engine.view({"staff"}).retrieve(QUESTIONS[1], method).steps
    assert sum(line in step for step in limited_steps) == 1
    assert not any(line in step for step in engine.retrieve(QUESTIONS[1], method).steps)


def test_relationships_weigh_what_visible_chunks_say(engine):
    sql = """SELECT weight FROM relationships
             WHERE list_sort([source, target]) = ['Alba Crane', 'Halden Mill']"""
    (mine,), (all_of_them,) = engine.view({"staff"}).index.rows(sql), engine.index.rows(sql)
    assert 0 < mine["weight"] < all_of_them["weight"]


OF_STRUCTURES = ("raptor", "hirag", "archrag")


def copied(index: Index, folder: Path, rules: list[dict[str, Any]]) -> Index:
    """Return a copy of an index under other rules, not updated yet."""
    shutil.copytree(index.home.parent, folder, dirs_exist_ok=True)
    return Index(settings_of(folder / "home", access={"mode": "filtered", "rules": rules}))


def test_a_view_of_everything_is_the_release_itself(index, monkeypatch, tmp_path):
    everything = copied(index, tmp_path, [{"match": "*", "labels": ["all"]}])
    everything.update(tmp_path / "documents")

    def found(engine: QueryEngine, spec: str) -> list[object]:
        name, options = read_method(spec)
        retrieval = engine.retrieve(QUESTIONS[0], name, **options)
        text = engine.answer(QUESTIONS[0], name, **options).text if name in METHODS else ""
        return [text, *((r.kind, r.id, r.title, r.text) for r in retrieval.records)]

    with everything.open() as engine:
        assert not engine.view({"all"}).index.is_limited
        # What is made by rule is the same where a view is made though nothing is hidden.
        never = "SELECT false, (SELECT count(*) FROM kept_documents)"
        monkeypatch.setattr(limited, "_N_KEPT", never)
        engine.index._limits.clear()
        view = engine.view({"all"})
        assert view.index.is_limited
        for spec in SPECS:
            if not spec.startswith(OF_STRUCTURES):
                assert found(view, spec) == found(engine, spec), spec


def test_new_rules_are_published_and_pay_nothing_again(index, tmp_path):
    before = index.releases()[0].id
    assert not index.update(index.home.parent / "documents").is_new
    changed = copied(index, tmp_path, [*RULES, {"match": "public/**", "labels": ["legal"]}])
    tables = ("chunks", "extractions", "entities", "relationships", "community_reports")
    hashes = [index.sql(f"SELECT bit_xor(hash(t)) FROM {table} t")[1] for table in tables]
    vectors = index.sql("SELECT vector_versions FROM releases ORDER BY created_at DESC LIMIT 1")[1]
    update = changed.update(tmp_path / "documents")
    assert update.is_new
    assert update.release != before
    same = [changed.sql(f"SELECT bit_xor(hash(t)) FROM {table} t")[1] for table in tables]
    assert same == hashes
    now = "SELECT vector_versions FROM releases ORDER BY created_at DESC LIMIT 1"
    assert changed.sql(now)[1] == vectors
    with changed.open() as engine, pytest.raises(AccessError, match="no document is open"):
        engine.view({"staff"})
    with pytest.raises(AccessError, match="callers with labels see only the published release"):
        QueryEngine(settings=changed.settings, release=before, labels=["hr"])


def test_a_view_answers_questions_and_refuses_all_else(index):
    view = index.view(["staff"])
    assert "Halden Mill" in view.answer("Who repaired Halden Mill?", "bm25").text
    assert view.retrieve("Who repaired Halden Mill?", "bm25").records
    for name in ("sql", "export", "diff", "to_polars", "to_networkx", "update", "rollback"):
        with pytest.raises(AccessError, match=f"{name} would show more than the labels allow"):
            getattr(view, name)
    with pytest.raises(AttributeError):
        view.nonsense  # noqa: B018


@pytest.mark.parametrize("labels", [[], ["nobody"], ["STAFF"], ["staff' OR 'a'='a"]])
def test_labels_that_open_nothing_are_refused_in_one_line(index, labels):
    with pytest.raises(AccessError, match="no document is open to") as error:
        index.view(labels).answer("What?", "bm25")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("labels", ["staff", [7], [""]])
def test_what_is_no_list_of_labels_is_refused(index, labels):
    with pytest.raises(InputError, match="must be a list of labels"):
        index.view(labels).open()


def test_a_filter_within_a_view_widens_nothing(engine):
    view = engine.view({"staff"})
    with pytest.raises(InputError, match="no document has title = 'hr'"):
        view.retrieve("What?", "bm25", where={"title": "hr"})
    narrowed = engine.view({"hr", "staff"}).index.view(frozenset({"staff", "board"}))
    assert narrowed.labels == {"staff"}


def test_callers_who_see_the_same_share_a_view(engine):
    first = engine.view({"staff", "unknown"}).index
    assert first._limit.place is engine.view({"staff", "other-key"}).index._limit.place


def test_the_views_used_last_are_kept(engine, monkeypatch):
    monkeypatch.setattr(release, "_LIMITS_REMEMBERED", 2)
    engine.index._limits.clear()
    places = [engine.view({label}).index._limit.place for label in ("staff", "hr", "staff")]
    assert places[0] is places[2]
    engine.view({"legal"})
    assert engine.view({"staff"}).index._limit.place is places[0]
    assert engine.view({"hr"}).index._limit.place is not places[1]


def test_an_index_of_one_clearance_is_open_to_its_labels_alone(index):
    settings = settings_of(index.home, access={"mode": "separate", "labels": ["hr"]})
    with QueryEngine(settings=settings, labels=["hr", "x"]) as engine:
        assert not engine.index.is_limited
    with pytest.raises(AccessError, match="this index is not open to the label staff"):
        QueryEngine(settings=settings, labels=["staff"])


def test_a_release_is_held_to_its_labels_also_by_settings_that_know_of_none(index):
    with QueryEngine(settings=settings_of(index.home, access={}), labels=["staff"]) as engine:
        assert engine.index.facts.counts["n_documents"] == 1


def test_labels_where_access_is_off_are_an_error(tmp_path):
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "a.md").write_text("Alba Crane repaired Halden Mill.")
    index = Index(Settings.exactly({"home": str(tmp_path / "home")}))
    index.update(tmp_path / "documents")
    with pytest.raises(InputError, match="because everybody sees everything"):
        index.view(["hr"]).open()


def test_metadata_holds_labels_too_and_only_narrows(tmp_path):
    texts = {
        "a": "---\nreaders: [hr, legal]\n---\nAlpha text.",
        "b": "---\nreaders: hr, board\n---\nBeta text.",
        "c": "Gamma text.",
        "d": "---\nreaders: []\n---\nDelta text.",
    }
    for name, text in texts.items():
        (tmp_path / "documents" / name).mkdir(parents=True)
        (tmp_path / "documents" / name / f"{name}.md").write_text(text)
    rules = [{"match": "[bc]/", "labels": ["board"]}]
    access = {"mode": "filtered", "rules": rules, "metadata": "readers"}
    index = Index(Settings.exactly({"home": str(tmp_path / "home"), "access": access}))
    index.update(tmp_path / "documents")

    def seen(*labels: str) -> str:
        with contextlib.suppress(AccessError), index.view(labels).open() as engine:
            rows = engine.index.rows("SELECT uri FROM documents ORDER BY uri")
            return "".join(row["uri"].split("/")[-2] for row in rows)
        return ""

    assert [seen("hr"), seen("legal"), seen("board"), seen("hr", "board"), seen("x")] == [
        "a", "a", "bc", "abc", "",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("access", "why"),
    [
        ({"mode": "filtered"}, "needs \\[\\[access.rules\\]\\] or metadata"),
        ({"rules": [{"match": "*", "labels": ["a"]}]}, "no other mode takes them"),
        ({"mode": "separate"}, "needs labels"),
        ({"mode": "filtered", "metadata": "m", "labels": ["a"]}, "no other mode takes them"),
        ({"mode": "filtered", "rules": [{"match": "*", "labels": []}]}, "labels"),
        ({"mode": "filtered", "rules": [{"match": "!hr", "labels": ["a"]}]}, "matches nothing"),
        ({"mode": "filtered", "rules": [{"match": "*", "labels": ["a b"]}]}, "labels"),
    ],
)
def test_access_that_says_nothing_sound_is_refused(access, why):
    with pytest.raises(ConfigError, match=why):
        Settings(access=access)


# What a model wrote of several documents at once
_WRITTEN = """
CREATE TEMP TABLE hidden AS
SELECT c.id FROM chunks c JOIN documents d ON d.id = c.document_id WHERE uri NOT LIKE '%public%';
CREATE TEMP TABLE told AS
SELECT DISTINCT entity_id AS id FROM entity_chunks SEMI JOIN hidden ON hidden.id = chunk_id;
UPDATE entities SET description = 'modelword', title = title || ' modelword'
WHERE id IN (FROM told);
UPDATE relationships SET description = 'modelword', type = 'modelword', source = 'modelword'
WHERE id IN (SELECT relationship_id FROM relationship_chunks SEMI JOIN hidden
             ON hidden.id = chunk_id);
UPDATE hierarchy_reports SET title = 'modelword', summary = 'modelword',
    rating_explanation = 'modelword', full_content = 'modelword',
    findings = list_transform(findings, f -> struct_update(f, explanation := 'modelword')),
    writer = 'a-model'
WHERE community_id IN (SELECT community_id FROM hierarchy_members SEMI JOIN told
                       ON told.id = entity_id);
UPDATE hierarchy_communities SET title = 'modelword'
WHERE id IN (SELECT community_id FROM hierarchy_members SEMI JOIN told ON told.id = entity_id);
UPDATE raptor_nodes SET text = 'modelword';
UPDATE hirag_entities SET description = 'modelword', title = 'modelword';
UPDATE entity_aliases SET evidence = '{"note": "modelword"}', canonical_title = 'modelword';
"""


@pytest.mark.parametrize(
    "links",
    ["", "DELETE FROM hirag_relationships; DELETE FROM raptor_edges; DELETE FROM report_elements"],
)
def test_nothing_that_was_written_of_hidden_documents_too_is_in_a_view(index, tmp_path, links):
    home = tmp_path / "home"
    shutil.copytree(index.home, home)
    file = Home(home).published
    file.chmod(0o600)
    with duckdb.connect(str(file)) as con:
        con.execute(_WRITTEN + links)
    with QueryEngine(settings=settings_of(home), labels=["staff"]) as view:
        for name in tables_of(view):
            text = json.dumps(view.index.rows(f"SELECT * FROM {name}"), default=str).casefold()
            assert "modelword" not in text, name
        assert view.index.rows("SELECT count(*) AS n FROM community_reports") != [{"n": 0}]
        for spec in SPECS:
            assert "modelword" not in shown(view, "What happened at Halden Mill?", spec), spec


def test_what_the_whole_graph_left_out_is_in_a_view_whose_documents_have_it(index, tmp_path):
    home = tmp_path / "home"
    shutil.copytree(index.home, home)
    file = Home(home).published
    file.chmod(0o600)
    pair = "WHERE list_sort([source, target]) = ['Alba Crane', 'Halden Mill']"
    with QueryEngine(settings=settings_of(home), labels=["staff"]) as view:
        before = view.index.rows(f"FROM relationships {pair}")
        assert before
    with duckdb.connect(str(file)) as con:
        con.execute(f"DELETE FROM relationships {pair}")
    with QueryEngine(settings=settings_of(home), labels=["staff"]) as view:
        assert view.index.rows(f"FROM relationships {pair}") == before


def test_a_release_of_an_older_program_is_open_to_no_labels(index, tmp_path):
    home = tmp_path / "home"
    shutil.copytree(index.home, home)
    file = Home(home).published
    file.chmod(0o600)
    with duckdb.connect(str(file)) as con:
        con.execute("DROP TABLE document_labels")
    with pytest.raises(AccessError, match="has no labels yet: index again"):
        QueryEngine(settings=settings_of(home), labels=["staff"])


# Names that are one entity


@pytest.fixture(scope="module")
def merged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryEngine]:
    """Lord Vane, the Raven and Osric Thale are one, which only the hidden document says."""
    folder = tmp_path_factory.mktemp("merged")
    texts = {
        "one": "Osric Thale built Halden Mill with Alba Crane. Osric Thale praised Halden Mill.",
        "two": "Raven Morrow robbed Halden Mill and Dorian Feld. Raven Morrow fled to Bergen.",
        "three": "Lucan Vane lent Dorian Feld a horse. Lucan Vane rode to Bergen.",
        "both": "Osric Thale feared Raven Morrow. Raven Morrow wrote to Osric Thale.",
    }
    for name, text in texts.items():
        (folder / "documents" / name).mkdir(parents=True)
        (folder / "documents" / name / f"{name}.md").write_text(text)
    aliases = folder / "aliases.csv"
    lines = ("merge,Osric Thale,Raven Morrow,", "merge,Osric Thale,Lucan Vane,")
    aliases.write_text("\n".join(("action,a,b,note", *lines)))
    rules = [
        {"match": "/one/", "labels": ["left", "right", "both"]},
        {"match": "/two/", "labels": ["left", "right", "both"]},
        {"match": "/three/", "labels": ["right"]},
        {"match": "/both/", "labels": ["both"]},
    ]
    sections = {
        "access": {"mode": "filtered", "rules": rules},
        "resolution": {"aliases_file": str(aliases)},
    }
    index = Index(settings_of(folder / "home", **sections))
    index.update(folder / "documents")
    with index.open() as opened_engine:
        yield opened_engine


def names_of(engine: QueryEngine, *names: str) -> dict[str, str]:
    rows = engine.index.rows("SELECT known_as, entity_id FROM entity_names")
    return {row["known_as"]: row["entity_id"] for row in rows if row["known_as"] in names}


PEOPLE = ("Osric Thale", "Raven Morrow", "Lucan Vane")


@pytest.mark.parametrize(
    ("labels", "n_entities", "known"),
    [({"left"}, 2, 2), ({"right"}, 3, 3), ({"both"}, 1, 2)],
)
def test_names_are_one_entity_only_where_a_visible_document_has_both(
    merged, labels, n_entities, known
):
    assert len(set(names_of(merged, *PEOPLE).values())) == 1
    view = merged.view(labels)
    names = names_of(view, *PEOPLE)
    assert (len(names), len(set(names.values()))) == (known, n_entities)


def test_entities_that_are_parted_have_each_their_own_places_and_relationships(merged):
    view = merged.view({"left"})
    edges = {
        frozenset((row["source"], row["target"]))
        for row in view.index.rows("SELECT source, target FROM relationships")
    }
    assert frozenset(("Raven Morrow", "Bergen")) in edges
    assert frozenset(("Osric Thale", "Alba Crane")) in edges
    assert frozenset(("Osric Thale", "Bergen")) not in edges
    assert frozenset(("Osric Thale", "Raven Morrow")) not in edges
    places = view.index.rows(
        "SELECT e.title, d.title AS document, l.start_char, substr(d.text, l.start_char + 1, "
        "l.end_char - l.start_char) AS quote FROM entity_chunks l JOIN entities e "
        "ON e.id = l.entity_id JOIN chunks c ON c.id = l.chunk_id "
        "JOIN documents d ON d.id = c.document_id WHERE e.title = ANY(['Osric Thale', "
        "'Raven Morrow'])"
    )
    assert {(row["title"], row["document"]) for row in places} == {
        ("Osric Thale", "One"),
        ("Raven Morrow", "Two"),
    }
    assert all(row["quote"] in ("Osric Thale", "Raven Morrow") for row in places)
    supported = view.index.rows(
        "SELECT count(*) AS n FROM relationships r ANTI JOIN relationship_chunks l "
        "ON l.relationship_id = r.id"
    )
    assert supported == [{"n": 0}]
    for name in METHODS:
        found = view.retrieve("What did Raven Morrow and Osric Thale do?", name)
        assert "feared" not in json.dumps(found.to_dict(), default=str)
