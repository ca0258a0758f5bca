import json
import shutil
from collections import Counter, defaultdict
from pathlib import Path

import polars as pl
import pytest

from conftest import workspace_of
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.progress import listening
from graphrag_pipeline.core.settings import (
    CommunitySettings,
    GraphSettings,
    ReportSettings,
    Settings,
)
from graphrag_pipeline.core.text import normalize_title
from graphrag_pipeline.exchange.importing import import_extractions, import_graphrag
from graphrag_pipeline.exchange.importing.hierarchy import complete_hierarchy
from graphrag_pipeline.exchange.importing.passages import locate
from graphrag_pipeline.graph.communities import update_communities
from graphrag_pipeline.graph.fold import merge_graph
from graphrag_pipeline.ingest.reading.cleaning import clean_text
from graphrag_pipeline.pipeline.stages import ingest
from graphrag_pipeline.planning.pending import pending_batches
from graphrag_pipeline.releases.invariants import (
    ENDPOINTS_EXIST,
    ENTITIES_HAVE_SOURCES,
    EVERY_COMMUNITY_REPORTED,
    EVERY_ENTITY_COVERED_ONCE,
    violations,
)
from graphrag_pipeline.reports.extractive import ExtractiveWriter
from graphrag_pipeline.reports.levels import update_reports
from graphrag_pipeline.store.batches import BatchLog
from graphrag_pipeline.store.index_store import IndexStore

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
CAROL = SHARED / "carol_index"
MUSIQUE = SHARED / "musique"
SETTINGS = Settings()
OTHER_SETTINGS = Settings(
    communities=CommunitySettings(max_cluster_size=25, seed=7),
    reports=ReportSettings(max_context_tokens=900, max_findings=3),
    graph=GraphSettings(min_concept_frequency=9, max_description_sentences=1),
)


def needs(folder):
    absent = not folder.is_dir()
    skip = pytest.mark.skipif(absent, reason=f"needs {folder}, the data sets beside the checkout")
    return lambda test: pytest.mark.shared_data(skip(test))


def rows(home, query, *parameters):
    with IndexStore(home / "index.duckdb").read() as con:
        return con.execute(query, parameters).fetchall()


def merge(home, settings=SETTINGS):
    store = workspace_of(home, settings).store
    return merge_graph(store, settings.graph, settings.chunks.encoding)


def tail(home, settings=SETTINGS):
    """Run the stages after ingestion; return how many reports each level wrote, 3 to 0."""
    workspace = workspace_of(home, settings)
    store = workspace.store
    merge_graph(workspace.store, workspace.settings.graph, workspace.settings.chunks.encoding)
    update_communities(store, settings.communities)
    return [
        update_reports(
            store,
            settings.reports,
            level,
            and_deeper=level == 3,
            writer=ExtractiveWriter(settings.reports),
        ).written
        for level in (3, 2, 1, 0)
    ]


def index_folder(home, folder):
    workspace = workspace_of(home, SETTINGS)
    for batch in workspace.batches.cut(folder, SETTINGS.batches, max_bytes=10**7):
        ingest(workspace, "documents", batch.key)
        ingest(workspace, "chunks", batch.key)
        ingest(workspace, "extractions", batch.key)


def every_row(home):
    tables = [
        "documents",
        "chunks",
        "entity_mentions",
        "relationship_mentions",
        "claims",
        "entities",
        "relationships",
        "communities",
        "community_members",
        "community_reports",
    ]
    return {table: sorted(map(repr, rows(home, f"FROM {table}"))) for table in tables}


def imported_reports(home):
    return sorted(rows(home, "FROM community_reports WHERE writer = 'import'"))


def assert_sound(home):
    with IndexStore(home / "index.duckdb").read() as con:
        levels = con.execute("SELECT max(last_level) FROM communities").fetchone()[0]
        for level in range(levels + 1):
            assert violations(con, EVERY_ENTITY_COVERED_ONCE, {"first": level, "last": level}) == 0
        assert violations(con, EVERY_COMMUNITY_REPORTED, {"first": 0, "last": levels}) == 0
        assert violations(con, ENDPOINTS_EXIST) == 0
        assert violations(con, ENTITIES_HAVE_SOURCES) == 0
    assert_spans(home)


def assert_spans(home):
    found = rows(
        home,
        "SELECT d.text, c.start_char, c.end_char, c.text FROM chunks c JOIN documents d "
        "ON d.id = c.document_id",
    )
    assert found
    assert all(text[start:end] == chunk for text, start, end, chunk in found)


def carol(table):
    return pl.read_parquet(CAROL / f"{table}.parquet")


@pytest.fixture(scope="module")
def carol_home(tmp_path_factory):
    if not CAROL.is_dir():
        pytest.skip(f"needs {CAROL}, the data sets beside the checkout")
    home = tmp_path_factory.mktemp("carol")
    import_graphrag(CAROL, workspace_of(home, SETTINGS))
    return home


@needs(CAROL)
def test_an_imported_index_has_the_entities_of_the_original(carol_home):
    given = {
        (normalize_title(title), title, kind, description, frequency)
        for title, kind, description, frequency in carol("entities")
        .select("title", "type", "description", "frequency")
        .iter_rows()
    }
    found = rows(carol_home, "SELECT title, type, description, frequency FROM entities")
    assert {(normalize_title(row[0]), *row) for row in found} == given
    assert len(found) == 529


@needs(CAROL)
def test_an_imported_index_has_the_relationships_of_the_original_with_directions_added_up(
    carol_home,
):
    entities = {normalize_title(title) for title in carol("entities")["title"]}
    weights, descriptions = Counter(), defaultdict(set)
    orphans = 0
    columns = ("source", "target", "weight", "description")
    for source, target, weight, description in carol("relationships").select(columns).iter_rows():
        pair = frozenset(map(normalize_title, (source, target)))
        if pair <= entities:
            weights[pair] += weight
            descriptions[pair].add(description)
        else:
            orphans += 1
    found = rows(carol_home, "SELECT source, target, weight, description FROM relationships")
    assert orphans == 84
    assert {frozenset(map(normalize_title, row[:2])): row[2] for row in found} == dict(weights)
    for source, target, _, description in found:
        said = descriptions[frozenset(map(normalize_title, (source, target)))]
        assert all(each in description for each in said)
    assert sum(len(said) == 2 for said in descriptions.values()) > 30


@needs(CAROL)
def test_imported_text_units_are_spans_of_their_document(carol_home):
    assert_spans(carol_home)
    found = [text for (text,) in rows(carol_home, "SELECT text FROM chunks ORDER BY ordinal")]
    units = carol("text_units").sort("human_readable_id")["text"]
    assert [unit.removeprefix("title: a-christmas-carol.txt.\n") for unit in units] == found
    assert rows(carol_home, "SELECT text FROM documents") == [(carol("documents")["text"][0],)]


@needs(CAROL)
def test_imported_reports_and_communities_stay_byte_for_byte_whatever_the_settings(
    carol_home, tmp_path
):
    shutil.copytree(carol_home, tmp_path, dirs_exist_ok=True)
    communities = rows(tmp_path, "FROM communities ORDER BY id")
    reports = imported_reports(tmp_path)
    assert len(reports) == 122
    assert tail(tmp_path) == [0, 0, 0, 7]
    assert tail(tmp_path) == [0, 0, 0, 0]
    assert_sound(tmp_path)
    tail(tmp_path, OTHER_SETTINGS)
    assert rows(tmp_path, "FROM communities ORDER BY id") == communities
    assert imported_reports(tmp_path) == reports
    assert rows(tmp_path, "SELECT count(*) FROM community_reports") == [(129,)]


@needs(CAROL)
def test_imported_reports_say_what_the_originals_say_of_the_same_members(carol_home):
    titles = dict(carol("entities").select("id", "title").iter_rows())
    members = {
        number: (level, {titles[e] for e in ids})
        for number, level, ids in carol("communities")
        .select("community", "level", "entity_ids")
        .iter_rows()
    }
    given = {
        row["community"]: (
            row["title"],
            row["summary"],
            row["full_content"],
            row["rank"],
            row["rating_explanation"],
            [(f["summary"], f["explanation"]) for f in row["findings"]],
            *members[row["community"]],
        )
        for row in carol("community_reports").to_dicts()
    }
    found = rows(
        carol_home,
        """SELECT c.human_readable_id, r.title, r.summary, r.full_content, r.rating,
                  r.rating_explanation, r.findings, c.level, c.title, list(e.title)
           FROM community_reports r JOIN communities c ON c.id = r.community_id
           JOIN community_members m ON m.community_id = c.id AND m.level = c.level
           JOIN entities e ON e.id = m.entity_id WHERE r.writer = 'import' GROUP BY ALL""",
    )
    assert len(found) == 122
    for number, title, *texts, findings, level, community_title, names in found:
        told = [(f["summary"], f["explanation"]) for f in findings]
        assert (title, *texts, told, level, set(names)) == given[number]
        assert community_title == title
        assert all(f["chunk_id"] is None for f in findings)


@needs(CAROL)
def test_imported_communities_keep_their_parents(carol_home):
    given = carol("communities").filter(pl.col("parent") >= 0).select("community", "parent")
    found = rows(
        carol_home,
        """SELECT c.human_readable_id, p.human_readable_id FROM communities c
           JOIN communities p ON p.id = c.parent_id AND p.level = c.level - 1""",
    )
    assert sorted(found) == sorted(given.iter_rows())


@needs(CAROL)
def test_numbers_that_reports_cite_are_kept(carol_home):
    entities = dict(carol("entities").select("human_readable_id", "title").iter_rows())
    assert dict(rows(carol_home, "SELECT human_readable_id, title FROM entities")) == entities
    given = {
        number: frozenset((source, target))
        for number, source, target in carol("relationships")
        .select("human_readable_id", "source", "target")
        .iter_rows()
    }
    found = rows(carol_home, "SELECT human_readable_id, source, target FROM relationships")
    assert len(found) == 851
    assert all(given[number] == {source, target} for number, source, target in found)


@needs(CAROL)
def test_claims_are_imported_with_their_subject_and_chunk(carol_home):
    given = carol("covariates")
    found = rows(
        carol_home,
        "SELECT c.human_readable_id, subject, coalesce(c.description, ''), e.title FROM claims c "
        "SEMI JOIN chunks ON chunks.id = chunk_id LEFT JOIN entities e ON e.id = subject_id "
        "ORDER BY 1",
    )
    assert len(found) == 406
    wanted = given.select("human_readable_id", "subject_id", pl.col("description").fill_null(""))
    assert [row[:3] for row in found] == sorted(wanted.iter_rows())
    titles = set(carol("entities")["title"])
    assert all((title == subject) == (subject in titles) for _, subject, _, title in found)


@needs(CAROL)
def test_importing_again_does_nothing_and_nothing_is_pending(carol_home):
    before = every_row(carol_home)
    again = import_graphrag(CAROL, workspace_of(carol_home, SETTINGS))
    assert again.done_before
    assert every_row(carol_home) == before
    assert [batch.key for batch in BatchLog(carol_home).batches()] == [again.batch]
    changed = Settings.model_validate({"chunks": {"size": 300}, "extraction": {"noun_phrases": 0}})
    for settings in (SETTINGS, changed):
        workspace = workspace_of(carol_home, settings)
        assert pending_batches(workspace) == []
        assert ingest(workspace, "documents", again.batch).done_before
        assert ingest(workspace, "chunks", again.batch).done_before
        assert ingest(workspace, "extractions", again.batch).done_before


@needs(CAROL)
def test_an_import_that_dies_half_way_leaves_nothing(tmp_path):
    def die(stage, done, total):
        if done == total - 1:
            raise KeyboardInterrupt

    with listening(die), pytest.raises(KeyboardInterrupt):
        import_graphrag(CAROL, workspace_of(tmp_path, SETTINGS))
    assert not any(every_row(tmp_path).values())
    assert rows(tmp_path, "FROM batches") == []
    assert BatchLog(tmp_path).batches() == []
    assert not import_graphrag(CAROL, workspace_of(tmp_path, SETTINGS)).done_before


@needs(CAROL)
def test_after_a_new_document_only_reports_of_changed_communities_are_rewritten(
    carol_home, tmp_path
):
    shutil.copytree(carol_home, tmp_path, dirs_exist_ok=True)
    tail(tmp_path)
    before = {row[0]: row for row in imported_reports(tmp_path)}
    line = {
        "text": "Mr. Topper plays blind man's buff.",
        "triples": [["Mr. Topper", "plays", "blind-man's buff of 1843"]],
    }
    (tmp_path / "more.jsonl").write_text(json.dumps(line))
    import_extractions(tmp_path / "more.jsonl", workspace_of(tmp_path, SETTINGS))
    tail(tmp_path)
    after = {row[0]: row for row in imported_reports(tmp_path)}
    assert 30 < len(after) < 122
    assert all(before[report] == row for report, row in after.items())
    assert_sound(tmp_path)


@needs(CAROL)
def test_beside_other_documents_only_reports_that_still_hold_survive(tmp_path):
    line = {
        "text": "Scrooge met Marley.",
        "entities": [{"title": "Scrooge", "type": "PERSON", "description": "A miser elsewhere."}],
        "triples": [["Scrooge", "met", "Marley"]],
    }
    (tmp_path / "other.jsonl").write_text(json.dumps(line))
    import_extractions(tmp_path / "other.jsonl", workspace_of(tmp_path, SETTINGS))
    result = import_graphrag(CAROL, workspace_of(tmp_path, SETTINGS))
    assert 0 < result.counts["reports"] < 122
    tail(tmp_path)
    assert_sound(tmp_path)
    told = rows(
        tmp_path,
        """SELECT DISTINCT r.writer FROM community_reports r
           JOIN community_members m ON m.community_id = r.community_id
           JOIN entities e ON e.id = m.entity_id WHERE lower(e.title) = 'scrooge'""",
    )
    assert told == [("extractive",)]
    assert rows(tmp_path, "SELECT count(*) FROM community_reports WHERE writer = 'import'") > [
        (30,)
    ]


def write_index(folder, **tables):
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        pl.DataFrame(table).write_parquet(folder / f"{name}.parquet")
    return folder


UNITS = {
    "id": ["u1", "u2"],
    "human_readable_id": [0, 1],
    "text": ["Ada knew Charles.", "Charles built an engine. Ada wrote of it."],
    "document_id": ["d1", "d1"],
}
DOCUMENTS = {"id": ["d1"], "title": ["notes.txt"], "text": [" ".join(UNITS["text"])]}
ENTITIES = {
    "id": ["a", "b", "c"],
    "title": ["ADA", "CHARLES", "ENGINE"],
    "type": ["PERSON", "PERSON", ""],
    "description": ["A writer.", "A builder.", "A machine."],
    "text_unit_ids": [["u1", "u2"], ["u1", "u2"], ["u2"]],
}
RELATIONSHIPS = {
    "source": ["ADA", "CHARLES", "CHARLES", "ADA"],
    "target": ["CHARLES", "ADA", "ENGINE", "NOBODY"],
    "description": ["Ada knew Charles.", "Charles knew Ada.", "Charles built it.", "Gone."],
    "weight": [1.1, 2.0, 7.0, 1.0],
    "text_unit_ids": [["u1", "u2"], ["u1"], ["u2"], ["u1"]],
}


@pytest.mark.parametrize("weight", [0.0, -2.0, float("inf"), float("nan"), None])
def test_a_weight_that_says_nothing_is_imported_as_one(tmp_path, weight):
    tables = {"documents": DOCUMENTS, "text_units": UNITS, "entities": ENTITIES}
    edges = {**RELATIONSHIPS, "weight": [weight, None, 7.0, 1.0]}
    folder = write_index(tmp_path / "ragtest" / "output", **tables, relationships=edges)
    import_graphrag(folder, workspace_of(tmp_path, SETTINGS))
    weights = "SELECT weight FROM relationships WHERE 'ENGINE' NOT IN (source, target)"
    assert rows(tmp_path, weights) == [(2.0,)]


def test_a_small_index_is_imported_and_edges_in_both_directions_are_one(tmp_path):
    folder = write_index(
        tmp_path / "ragtest" / "output",
        documents=DOCUMENTS,
        text_units=UNITS,
        entities=ENTITIES,
        relationships=RELATIONSHIPS,
    )
    result = import_graphrag(folder, workspace_of(tmp_path, SETTINGS))
    assert result.counts["relationships_without_entity"] == 1
    assert rows(tmp_path, "SELECT uri, source FROM documents") == [
        ("import:ragtest/notes.txt", "import:ragtest/notes.txt")
    ]
    found = rows(tmp_path, "SELECT source, target, weight, description FROM relationships")
    by_ends = {frozenset(row[:2]): row[2:] for row in found}
    weight, description = by_ends[frozenset(("ADA", "CHARLES"))]
    assert weight == pytest.approx(3.1)
    assert "Ada knew Charles." in description
    assert "Charles knew Ada." in description
    assert by_ends[frozenset(("CHARLES", "ENGINE"))] == (7.0, "Charles built it.")
    assert rows(tmp_path, "SELECT type FROM entities WHERE title = 'ENGINE'") == [("OTHER",)]
    tail(tmp_path)
    assert_sound(tmp_path)


def test_where_the_document_is_not_what_the_units_were_cut_from_the_units_are_the_document(
    tmp_path,
):
    folder = write_index(
        tmp_path / "old",
        documents={"id": ["d1"], "title": ["notes.txt"], "text": ["Something else."]},
        text_units=UNITS,
        entities=ENTITIES,
        relationships=RELATIONSHIPS,
    )
    import_graphrag(folder, workspace_of(tmp_path, SETTINGS))
    assert_spans(tmp_path)
    assert rows(tmp_path, "SELECT text FROM chunks ORDER BY ordinal") == [
        (text,) for text in UNITS["text"]
    ]


def test_a_graph_without_text_units_gets_passages_of_its_own(tmp_path):
    folder = write_index(
        tmp_path / "graph",
        entities={"title": ["ADA", "CHARLES", "NOBODY"], "description": ["A writer.", None, "x"]},
        relationships={"source": ["ADA"], "target": ["CHARLES"], "description": ["Friends."]},
    )
    result = import_graphrag(folder, workspace_of(tmp_path, SETTINGS))
    assert result.counts["without_source"] == 4
    assert any("text_units" in warning for warning in result.warnings)
    assert rows(tmp_path, "SELECT text FROM chunks ORDER BY ordinal") == [
        ("ADA: A writer.",),
        ("CHARLES: ",),
        ("NOBODY: x",),
        ("ADA – CHARLES: Friends.",),
    ]
    tail(tmp_path)
    assert_sound(tmp_path)


def test_files_and_columns_of_older_versions_are_read(tmp_path):
    folder = write_index(
        tmp_path / "v1",
        create_final_documents={"id": ["d1"], "title": ["n"], "raw_content": DOCUMENTS["text"]},
        create_final_text_units={
            "id": UNITS["id"],
            "text": UNITS["text"],
            "document_ids": [["d1"], ["d1"]],
        },
        create_final_entities={("name" if k == "title" else k): v for k, v in ENTITIES.items()},
        create_final_relationships=RELATIONSHIPS,
        create_final_communities={
            "community": [0, 1, 2],
            "level": [0, 1, 1],
            "children": [[1, 2], [], []],
            "entity_ids": [["a", "b"], ["a"], ["b"]],
        },
        create_final_community_reports={
            "community": ["0"],
            "title": ["Friends"],
            "summary": ["They knew each other."],
            "full_content": ["# Friends"],
            "rank": [7.5],
            "rank_explanation": ["Why not."],
            "findings": [["They were friends."]],
        },
    )
    import_graphrag(folder, workspace_of(tmp_path, SETTINGS))
    tail(tmp_path)
    assert_sound(tmp_path)
    found = rows(
        tmp_path,
        "SELECT title, rating, rating_explanation, findings[1].explanation "
        "FROM community_reports WHERE writer = 'import'",
    )
    assert found == [("Friends", 7.5, "Why not.", "They were friends.")]
    levels = rows(tmp_path, "SELECT level, last_level, size FROM communities ORDER BY ALL")
    assert levels == [(0, 0, 2), (0, 1, 1), (1, 1, 1), (1, 1, 1)]


@pytest.mark.parametrize(
    ("tables", "named"),
    [
        ({"entities": ENTITIES}, "relationships.parquet"),
        ({"relationships": RELATIONSHIPS}, "entities.parquet"),
        ({"entities": {"id": ["a"]}, "relationships": RELATIONSHIPS}, "no column title"),
    ],
)
def test_what_is_missing_is_named(tmp_path, tables, named):
    folder = write_index(tmp_path / "broken", **tables)
    with pytest.raises(InputError, match=named):
        import_graphrag(folder, workspace_of(tmp_path, SETTINGS))


def test_a_file_that_is_not_parquet_is_named(tmp_path):
    (tmp_path / "entities.parquet").write_text("no")
    with pytest.raises(InputError, match=r"cannot read .*entities\.parquet"):
        import_graphrag(tmp_path, workspace_of(tmp_path, SETTINGS))


def test_importing_a_changed_index_replaces_what_the_first_brought(tmp_path):
    tables = {"text_units": UNITS, "entities": ENTITIES, "relationships": RELATIONSHIPS}
    folder = write_index(tmp_path / "index", documents=DOCUMENTS, **tables)
    import_graphrag(folder, workspace_of(tmp_path, SETTINGS))
    tail(tmp_path)
    renamed = {**DOCUMENTS, "title": ["letters.txt"]}
    fewer = pl.DataFrame(ENTITIES).head(2).to_dict(as_series=False)
    write_index(folder, documents=renamed, entities=fewer)
    import_graphrag(folder, workspace_of(tmp_path, SETTINGS))
    tail(tmp_path)
    assert rows(tmp_path, "SELECT title FROM documents") == [("letters.txt",)]
    assert sorted(rows(tmp_path, "SELECT title FROM entities")) == [("ADA",), ("CHARLES",)]
    assert_sound(tmp_path)
    assert set(BatchLog(tmp_path).sources()) == {"import:index/letters.txt"}


def test_a_folder_scan_leaves_what_was_imported(tmp_path):
    home, inbox = tmp_path / ".graphrag", tmp_path / "inbox"
    inbox.mkdir()
    folder = write_index(tmp_path / "index", entities=ENTITIES, relationships=RELATIONSHIPS)
    import_graphrag(folder, workspace_of(home, SETTINGS))
    assert BatchLog(home).cut(inbox, SETTINGS.batches, max_bytes=1) == []
    seen = BatchLog(home).look(tmp_path, max_bytes=1).changes
    assert {change.action for change in seen} == {"add"}
    (inbox / "a.txt").write_text("The Mary Rose was a ship of King Henry.")
    index_folder(home, inbox)
    tail(home)
    assert rows(home, "SELECT count(*) FROM documents") == [(2,)]
    assert_sound(home)


def test_units_are_found_in_order_behind_metadata_and_broken_characters():
    text = "one. two. one. two. drei\u00e4"
    units = ["title: x.\none. two", "title: x.\none. two", "date: 1.\n\n two. drei\ufffd"]
    spans = locate(text, units)
    assert spans is None
    units[2] = "title: x.\ntwo. drei\ufffd"
    assert locate(text, units) == [(0, 8), (10, 18), (15, 24)]


def test_a_broken_hierarchy_still_covers_every_entity_once():
    communities = pl.DataFrame(
        {
            "community": [0, 1, 2, 3, 4],
            "level": [0, 0, 1, 1, 2],
            "parent": [-1, -1, 0, 0, 77],
            "children": [[], [], [], [], []],
            "entity_ids": [["a", "b", "c"], ["c", "d"], ["a", "d"], ["a", "gone"], ["b"]],
        },
        schema_overrides={"children": pl.List(pl.Int64)},
    )
    ids = {name: name.upper() for name in "abcd"}
    everyone = ["A", "B", "C", "D", "E", "F"]
    found = complete_hierarchy(
        communities, ids, everyone, [("E", "F", 1.0)], CommunitySettings()
    ).clusters
    for level in (0, 1):
        standing = [c.members for c in found if c.level <= level <= c.last_level]
        assert sorted(entity for members in standing for entity in members) == everyone
    assert {c.members for c in found if c.level == 0} == {
        ("A", "B", "C"),
        ("D",),
        ("E", "F"),
    }
    assert {c.members for c in found if c.level == 1} == {("A",), ("B",), ("C",)}


def test_a_community_whose_parent_is_not_one_level_above_is_left_out():
    communities = pl.DataFrame(
        {
            "community": [0, 1, 2, 3],
            "level": [0, 1, 2, 2],
            "parent": [-1, 0, 1, 0],
            "children": [[1, 3], [2], [], []],
            "entity_ids": [["a", "b", "c"], ["a", "b"], ["a"], ["c"]],
        },
        schema_overrides={"children": pl.List(pl.Int64)},
    )
    ids = {name: name.upper() for name in "abc"}
    hierarchy = complete_hierarchy(communities, ids, ["A", "B", "C"], [], CommunitySettings())
    assert set(hierarchy.ids) == {0, 1, 2}
    for level in (0, 1, 2):
        standing = [c.members for c in hierarchy.clusters if c.level <= level <= c.last_level]
        assert sorted(entity for members in standing for entity in members) == ["A", "B", "C"]


def musique_to_jsonl(openie, target):
    """Write HippoRAG's recorded OpenIE of MuSiQue as lines for ``import_extractions``."""
    documents = json.loads(Path(openie).read_text())["docs"]
    with Path(target).open("w") as stream:
        for given in documents:
            line = {
                "document": given["title"],
                "text": given["text"],
                "entities": given["extracted_entities"],
                "triples": given["extracted_triples"],
            }
            stream.write(json.dumps(line) + "\n")
    return documents


@needs(MUSIQUE)
def test_the_recorded_extraction_of_musique_is_imported_whole(tmp_path):
    documents = musique_to_jsonl(MUSIQUE / "openie_gpt35.json", tmp_path / "musique.jsonl")
    triples = [triple for given in documents for triple in given["extracted_triples"]]
    well_formed = [t for t in triples if len(t) == 3 and all(isinstance(p, str) for p in t)]
    apart = [t for t in well_formed if normalize_title(t[0]) != normalize_title(t[2])]
    result = import_extractions(tmp_path / "musique.jsonl", workspace_of(tmp_path, SETTINGS))
    assert (len(triples), len(well_formed), len(apart)) == (17_419, 17_234, 17_214)
    assert result.counts["malformed_triples"] == 185
    assert result.counts["self_relationships"] == 20
    assert result.warnings == ()
    merge(tmp_path)
    said = rows(tmp_path, "SELECT description FROM relationship_mentions")
    assert Counter(text for (text,) in said) == Counter(
        " ".join(" ".join(triple).split()) for triple in apart
    )
    assert rows(tmp_path, "SELECT count(*) FROM documents") == [(1890,)]
    assert rows(tmp_path, "SELECT text FROM chunks ORDER BY human_readable_id") == [
        (clean_text(given["text"]),) for given in documents
    ]
    assert_spans(tmp_path)
    names = {
        normalize_title(name)
        for given in documents
        for name in (
            *given["extracted_entities"],
            *(end for t in given["extracted_triples"] if len(t) == 3 for end in (t[0], t[2])),
        )
    }
    assert rows(tmp_path, "SELECT count(*) FROM entities") == [(len(names),)]


def write_lines(path, *lines):
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def test_ends_of_triples_are_entities_and_the_text_describes_them(tmp_path):
    file = write_lines(
        tmp_path / "x.jsonl",
        {
            "document": "Curie",
            "text": "It rained. Marie Curie was born in Warsaw. She left.",
            "entities": ["marie  curie", {"title": "Poland", "type": "GEO", "description": "Land"}],
            "relationships": [
                ["Marie Curie", "was born in", "Warsaw"],
                {"source": "Warsaw", "target": "Poland", "description": "lies in", "weight": 2},
            ],
        },
    )
    import_extractions(file, workspace_of(tmp_path, SETTINGS))
    merge(tmp_path)
    found = rows(tmp_path, "SELECT title, type, description FROM entities ORDER BY title")
    assert found == [
        ("Poland", "GEO", "Land"),
        ("Warsaw", "CONCEPT", "Marie Curie was born in Warsaw."),
        ("marie curie", "CONCEPT", "Marie Curie was born in Warsaw."),
    ]
    edges = rows(tmp_path, "SELECT description, weight FROM relationships ORDER BY weight")
    assert edges == [("Marie Curie was born in Warsaw", 1.0), ("lies in", 2.0)]
    spans = rows(
        tmp_path,
        "SELECT substr(d.text, start_char + 1, end_char - start_char) FROM relationship_chunks, "
        "documents d WHERE start_char IS NOT NULL",
    )
    assert spans == [("Marie Curie was born in Warsaw.",)]


MALFORMED_TRIPLES = [
    ["a", "b"],
    ["a", "b", "c", "d"],
    ["a", "b", ""],
    ["  ", "b", "c"],
    ["a", None, "c"],
    [1, "b", "c"],
    "abc",
    None,
    {"source": "a"},
    {"source": ["a"], "target": {}},
]


def test_malformed_parts_are_counted_and_malformed_lines_named(tmp_path):
    good = {
        "text": "Ada knew Charles.",
        "entities": ["Ada", "", None, 3, {"type": "X"}, ["Ada"]],
        "triples": [*MALFORMED_TRIPLES, ["Ada", "knew", "Charles"]],
    }
    file = tmp_path / "x.jsonl"
    lines = [
        b"\xef\xbb\xbf" + json.dumps(good).encode(),
        b"{not json",
        b"",
        b"[1, 2]",
        b'{"document": "no text"}',
        b'{"text": "t", "triples": {"a": 1}}',
        b'{"text": "\xff"}',
        b'{"chunk_id": "nowhere", "triples": []}',
        b"[" * 100_000,
        b'{"text": "Lone \\ud800 surrogate", "entities": ["\\ud800", "Lone"]}',
    ]
    file.write_bytes(b"\n".join(lines))
    result = import_extractions(file, workspace_of(tmp_path, SETTINGS))
    told = sorted(int(warning.split(":")[0].removeprefix("line ")) for warning in result.warnings)
    assert told == [2, 4, 5, 6, 7, 8, 9]
    assert result.counts["malformed_triples"] == len(MALFORMED_TRIPLES)
    assert result.counts["malformed_entities"] == 6
    merge(tmp_path)
    assert sorted(rows(tmp_path, "SELECT title FROM entities")) == [
        ("Ada",),
        ("Charles",),
        ("Lone",),
    ]


@pytest.mark.parametrize("content", [b"", b"\n\n", b"nonsense\n", b'{"entities": ["a"]}'])
def test_a_file_with_nothing_usable_is_refused(tmp_path, content):
    (tmp_path / "x.jsonl").write_bytes(content)
    with pytest.raises(InputError, match="no usable line"):
        import_extractions(tmp_path / "x.jsonl", workspace_of(tmp_path, SETTINGS))
    with pytest.raises(InputError, match="cannot read"):
        import_extractions(tmp_path / "absent.jsonl", workspace_of(tmp_path, SETTINGS))


def test_passages_of_one_title_are_documents_of_their_own(tmp_path):
    lines = [{"document": "A", "text": f"Text {n}.", "entities": ["Text"]} for n in range(3)]
    lines.append({"document": "A (2)", "text": "Other.", "entities": ["Other"]})
    import_extractions(write_lines(tmp_path / "x.jsonl", *lines), workspace_of(tmp_path, SETTINGS))
    merge(tmp_path)
    found = rows(tmp_path, "SELECT uri, text FROM documents ORDER BY human_readable_id")
    assert [text for _, text in found] == ["Text 0.", "Text 1.", "Text 2.", "Other."]
    assert len({uri for uri, _ in found}) == 4


@pytest.mark.parametrize("merged", [True, False])
def test_an_imported_extraction_takes_the_place_of_a_chunks_own(tmp_path, merged):
    home, inbox = tmp_path / ".graphrag", tmp_path / "inbox"
    inbox.mkdir()
    (inbox / "a.txt").write_text("The Mary Rose was a ship of King Henry.")
    (inbox / "b.txt").write_text("Vasa was a ship of King Gustav Adolf.")
    index_folder(home, inbox)
    if merged:
        merge(home)
    table = "chunks" if merged else "staging.chunks"
    ((chunk,),) = rows(home, f"SELECT id FROM {table} WHERE text LIKE '%Mary%'")
    file = write_lines(
        tmp_path / "x.jsonl",
        {"chunk_id": chunk, "triples": [["Mary Rose", "belonged to", "Henry VIII"]]},
        {"uri": "inbox/b.txt", "triples": [["Vasa", "belonged to", "Gustav II Adolf"]]},
        {"uri": "inbox/c.txt", "triples": [["Vasa", "belonged to", "Nobody"]]},
    )
    result = import_extractions(file, workspace_of(home, SETTINGS))
    assert result.warnings == ("line 3: there is no such chunk of inbox/c.txt in the index",)
    merge(home)
    assert {title for (title,) in rows(home, "SELECT title FROM entities")} == {
        "Mary Rose",
        "Henry VIII",
        "Vasa",
        "Gustav II Adolf",
    }
    assert rows(home, "SELECT extractor, status, count(*) FROM extractions GROUP BY ALL") == [
        ("import", "ok", 2)
    ]
    changed = Settings.model_validate({"extraction": {"noun_phrases": False}})
    workspace = workspace_of(home, changed)
    for key in pending_batches(workspace):
        ingest(workspace, "extractions", key)
    merge(home, changed)
    assert rows(home, "SELECT DISTINCT extractor FROM extractions") == [("import",)]


def test_importing_extractions_again_replaces_what_the_file_brought(tmp_path):
    file = tmp_path / "x.jsonl"
    one = {"document": "A", "text": "Ada knew Charles.", "triples": [["Ada", "knew", "Charles"]]}
    two = {"document": "B", "text": "Grace knew Howard.", "triples": [["Grace", "knew", "Howard"]]}
    import_extractions(write_lines(file, one, two), workspace_of(tmp_path, SETTINGS))
    merge(tmp_path)
    before = rows(tmp_path, "FROM entities ORDER BY id")
    import_extractions(file, workspace_of(tmp_path, SETTINGS))
    merge(tmp_path)
    assert rows(tmp_path, "FROM entities ORDER BY id") == before
    import_extractions(write_lines(file, one), workspace_of(tmp_path, SETTINGS))
    import_extractions(write_lines(file, two), workspace_of(tmp_path, SETTINGS))
    merge(tmp_path)
    assert rows(tmp_path, "SELECT title FROM documents") == [("B",)]
    assert sorted(rows(tmp_path, "SELECT title FROM entities")) == [("Grace",), ("Howard",)]


def test_a_manifest_lost_to_a_kill_is_written_by_the_next_import(tmp_path):
    folder = write_index(tmp_path / "index", entities=ENTITIES, relationships=RELATIONSHIPS)
    first = import_graphrag(folder, workspace_of(tmp_path, SETTINGS))
    manifest = tmp_path / "batches" / f"{first.batch}.json"
    written = manifest.read_bytes()
    manifest.unlink()
    assert import_graphrag(folder, workspace_of(tmp_path, SETTINGS)).done_before
    assert manifest.read_bytes() == written
