import math
from pathlib import Path

import polars as pl
import pytest

from conftest import Engine, build, build_graph
from graphrag_pipeline.core.settings import GraphSettings, Settings
from graphrag_pipeline.extraction.mentions import ENTITY_MENTIONS, RELATIONSHIP_MENTIONS, Extraction
from graphrag_pipeline.graph import fold
from graphrag_pipeline.graph.fold import merge_graph
from graphrag_pipeline.ingest.mention_files import identify
from graphrag_pipeline.store.index_store import IndexStore, insert

STORY = (
    "Alice Smith met Bob Jones in Paris. The old lighthouse stood near the harbour.\n\n"
    "Bob Jones works for Acme Corporation. Carol Brown visited the old lighthouse 😀 with Alice "
    "Smith. Café Zürich is in Zürich, and Alice Smith liked it."
)


def graph(folder, chunks, extractor="nlp", **settings):
    """Merge hand-made mentions: per chunk its (title, type)s and its (source, target, weight)s."""
    store = IndexStore(folder / "index.duckdb")
    entities, relationships, rows = [], [], []
    for number, (titles, pairs) in enumerate(chunks):
        chunk = f"c{number}"
        rows.append((chunk, number))
        entities += [(chunk, title, kind, f"About {title}.", 0, 1) for title, kind in titles]
        relationships += [(chunk, s, t, f"{s} and {t}.", w, 0, 1, "") for s, t, w in pairs]
    found = Extraction(
        pl.DataFrame(entities, schema=ENTITY_MENTIONS, orient="row"),
        pl.DataFrame(relationships, schema=RELATIONSHIP_MENTIONS, orient="row"),
    )
    entity_rows, relationship_rows = identify(found)
    with store.transaction() as con:
        for chunk, number in rows:
            con.execute(
                "INSERT INTO chunks VALUES (?, ?, 'd', ?, 0, 1, 1, 'x', 'b')",
                [chunk, number, number],
            )
            con.execute(
                "INSERT INTO extractions VALUES (?, ?, 'v', 'ok', NULL, 0, 0, 0, 0, 'b', 'v', 1)",
                [chunk, extractor],
            )
        insert(con, "entity_mentions", entity_rows.with_columns(batch=pl.lit("b")))
        insert(con, "relationship_mentions", relationship_rows.with_columns(batch=pl.lit("b")))
    merge_graph(store, GraphSettings(**settings), Settings().chunks.encoding)
    with store.read() as con:
        nodes = {row["title"]: row for row in con.sql("FROM entities").pl().iter_rows(named=True)}
        edges = {
            frozenset((row["source"], row["target"])): row
            for row in con.sql("FROM relationships").pl().iter_rows(named=True)
        }
        assert len(edges) == con.execute("SELECT count(*) FROM relationships").fetchone()[0]
    return nodes, edges


P, C = "PERSON", "CONCEPT"


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (["PERSON", "ORGANIZATION", "PERSON"], "PERSON"),
        (["CONCEPT", "CONCEPT", "CONCEPT", "PERSON"], "PERSON"),
        # A tenth of the mentions is enough for a named type, and less is not.
        ([*["CONCEPT"] * 9, "PERSON"], "PERSON"),
        ([*["CONCEPT"] * 10, "PERSON"], "CONCEPT"),
        (["DATE", "DATE", "GEO"], "GEO"),
        (["OTHER", "OTHER", "EVENT"], "EVENT"),
        (["CONCEPT", "CONCEPT"], "CONCEPT"),
    ],
)
def test_a_node_takes_the_majority_type_a_named_one_before_a_general_one(tmp_path, types, expected):
    nodes, _ = graph(tmp_path, [([("X", kind)], []) for kind in types])
    assert nodes["X"]["type"] == expected


def test_a_tie_between_types_does_not_depend_on_order(tmp_path):
    one, _ = graph(tmp_path / "one", [([("X", "GEO")], []), ([("X", P)], [])])
    two, _ = graph(tmp_path / "two", [([("X", P)], []), ([("X", "GEO")], [])])
    assert one["X"]["type"] == two["X"]["type"]


def test_titles_that_differ_in_case_space_and_quotes_are_one_node(tmp_path):
    nodes, _ = graph(
        tmp_path,
        [
            ([("Marie Curie", P)], []),
            ([("MARIE  CURIE", P), ("“Marie Curie”", P)], []),
            ([("Marie Curie", P)], []),
        ],
    )
    assert set(nodes) == {"Marie Curie"}
    assert nodes["Marie Curie"]["frequency"] == 3


def test_a_name_in_capitals_is_a_title_only_where_it_is_written_in_no_other_way(tmp_path):
    often = [([("MARIE CURIE", P)], [])] * 3
    nodes, _ = graph(tmp_path / "both", [*often, ([("Marie Curie", P)], [])])
    assert set(nodes) == {"Marie Curie"}
    nodes, _ = graph(tmp_path / "alone", often)
    assert set(nodes) == {"MARIE CURIE"}


def test_both_directions_of_a_pair_are_one_edge_with_their_weights_summed(tmp_path):
    both = [("A", P), ("B", P)]
    _, edges = graph(
        tmp_path, [(both, [("A", "B", 1.0)]), (both, [("B", "A", 2.5), ("a", "b", 1)])]
    )
    assert edges[frozenset("AB")]["weight"] == 4.5
    assert len(edges) == 1


def test_a_relationship_with_itself_is_dropped(tmp_path):
    nodes, edges = graph(tmp_path, [([("A", P)], [("A", "A", 1.0), ("A", "“a”", 1.0)])])
    assert edges == {}
    assert nodes["A"]["degree"] == 0


def test_an_entity_without_relationships_is_kept(tmp_path):
    nodes, _ = graph(tmp_path, [([("A", P), ("B", P), ("C", P)], [("A", "B", 1.0)])])
    assert nodes["C"]["degree"] == 0


def test_rare_concepts_and_dates_are_pruned_with_their_edges_and_names_are_kept(tmp_path):
    titles = [("Alice", P), ("fog", C), ("1890", "DATE"), ("tea", C)]
    nodes, edges = graph(
        tmp_path,
        [
            (titles, [("Alice", "fog", 1), ("Alice", "tea", 1), ("fog", "1890", 1)]),
            ([("tea", C)], []),
        ],
    )
    assert set(nodes) == {"Alice", "tea"}
    assert set(edges) == {frozenset(("Alice", "tea"))}
    assert nodes["Alice"]["degree"] == 1


def test_the_least_frequency_of_a_concept_is_a_setting(tmp_path):
    chunks = [([("fog", C)], []), ([("fog", C), ("tea", C)], [])]
    assert set(graph(tmp_path / "1", chunks, min_concept_frequency=1)[0]) == {"fog", "tea"}
    assert set(graph(tmp_path / "3", chunks, min_concept_frequency=3)[0]) == set()


def test_what_another_extractor_found_once_is_kept(tmp_path):
    nodes, _ = graph(tmp_path, [([("fog", C)], [])], extractor="import")
    assert set(nodes) == {"fog"}


def _corpus_with_a_common_concept() -> list:
    """Forty chunks: a concept in half of them, once beside each of twelve names."""
    names = [f"Name {n}" for n in range(12)]
    chunks = [
        (
            [("thing", C), (name, P), (f"Friend {n}", P)],
            [("thing", name, 1.0), (name, f"Friend {n}", 1.0)],
        )
        for n, name in enumerate(names)
    ]
    chunks += [([(name, P)], []) for name in names]
    chunks += [([("thing", C), ("kin", C)], [("thing", "kin", 1.0)]) for _ in range(7)]
    chunks += [([("thing", C), ("Lone", P)], [("thing", "Lone", 1.0)])]
    return chunks + [([("Elsewhere", P)], []) for _ in range(8)]


def test_a_common_concept_is_related_to_what_it_meets_oftener_than_chance_and_to_the_lone(tmp_path):
    nodes, edges = graph(tmp_path / "one", _corpus_with_a_common_concept())
    around = {other for pair in edges if "thing" in pair for other in pair - {"thing"}}
    assert around == {"kin", "Lone"}
    assert nodes["thing"]["degree"] == 2
    assert nodes["Name 1"]["degree"] == 1
    _, edges = graph(tmp_path / "two", _corpus_with_a_common_concept(), min_concept_pmi=-1)
    assert frozenset(("thing", "Name 1")) in edges


def test_names_and_what_another_extractor_found_keep_all_that_they_meet(tmp_path):
    chunks = _corpus_with_a_common_concept()
    _, edges = graph(tmp_path / "one", chunks, extractor="llm")
    assert frozenset(("thing", "Name 1")) in edges
    as_name = [
        ([(t.title(), P) for t, _ in titles], [(a.title(), b.title(), w) for a, b, w in pairs])
        for titles, pairs in chunks
    ]
    _, edges = graph(tmp_path / "two", as_name)
    assert frozenset(("Thing", "Name 1")) in edges


def test_a_common_value_of_a_column_stays_related_to_its_records(tmp_path):
    lines = (f"Ship {n},{'in dock' if n % 2 else 'at sea'},Ida Brandt{n}\n" for n in range(40))
    engine = build_graph(tmp_path, {"ships.csv": "name,state,captain\n" + "".join(lines)})
    degrees = dict(engine.rows("SELECT title, degree FROM entities WHERE type = 'CONCEPT'"))
    assert degrees == {"in dock": 20, "at sea": 20}


def test_the_mutual_information_is_that_computed_by_hand(tmp_path):
    a, b, c = ("A", P), ("B", P), ("C", P)
    _, edges = graph(
        tmp_path,
        [
            ([a, b, c], [("A", "B", 1), ("A", "C", 1)]),
            ([a, b], [("A", "B", 1), ("B", "A", 1)]),
            ([a], []),
            ([c], []),
        ],
    )
    # p(A) = 3/4, p(B) = 2/4, p(C) = 2/4, p(A, B) = 2/4, p(A, C) = 1/4.
    assert edges[frozenset("AB")]["pmi"] == pytest.approx(
        math.log((2 / 4) / (3 / 4 * 2 / 4)) / -math.log(2 / 4), abs=1e-6
    )
    assert edges[frozenset("AC")]["pmi"] == pytest.approx(
        math.log((1 / 4) / (3 / 4 * 2 / 4)) / -math.log(1 / 4), abs=1e-6
    )


def test_a_pair_that_is_together_in_every_chunk_has_mutual_information_one(tmp_path):
    both = ([("A", P), ("B", P)], [("A", "B", 1)])
    _, edges = graph(tmp_path, [both, both])
    assert edges[frozenset("AB")]["pmi"] == 1.0


def test_degrees_count_neighbours_and_the_combined_degree_is_their_sum(tmp_path):
    four = [("A", P), ("B", P), ("C", P), ("D", P)]
    nodes, edges = graph(
        tmp_path,
        [
            (four, [("A", "B", 1), ("A", "C", 1), ("A", "D", 1)]),
            (four, [("B", "A", 1), ("B", "C", 1)]),
        ],
    )
    assert {title: row["degree"] for title, row in nodes.items()} == {
        "A": 3,
        "B": 2,
        "C": 2,
        "D": 1,
    }
    for pair, row in edges.items():
        assert row["combined_degree"] == sum(nodes[title]["degree"] for title in pair)


def test_descriptions_are_the_sentences_that_say_most_and_no_more_than_set(tmp_path):
    engine = build_graph(tmp_path, {"a.txt": STORY}, graph={"max_description_sentences": 1})
    (description,) = engine.rows("SELECT description FROM entities WHERE title = 'Bob Jones'")[0]
    assert description.count(".") == 1
    assert "Bob Jones" in description


def test_descriptions_say_sentences_as_a_reader_wants_them(tmp_path):
    written = "- **Alice Smith** met [Bob Jones](https://a.example/b_c) in `May` and *June*.\n"
    engine = build_graph(tmp_path, {"a.md": f"# Meetings\n\n{written}"})
    tables = "(SELECT description FROM relationships UNION ALL SELECT description FROM entities)"
    told = {description for (description,) in engine.rows(f"FROM {tables}")}
    assert told == {"Alice Smith met Bob Jones in May and June."}


def test_what_many_documents_repeat_in_the_same_words_weighs_once_and_is_told_last(tmp_path):
    footer = "Alice Smith of Acme Corporation wrote to Bob Jones about this page."
    own = "Alice Smith met Bob Jones on day {}."
    files = {f"{n}.txt": f"{own.format(n)}\n\n{footer}" for n in range(5)}
    engine = build_graph(tmp_path / "five", files)
    edges = engine.rows("SELECT source, target, weight, description FROM relationships")
    told_of = {frozenset(ends): (weight, told) for *ends, weight, told in edges}
    of_footer, _ = told_of[frozenset(("Alice Smith", "Acme Corporation"))]
    of_all, told = told_of[frozenset(("Alice Smith", "Bob Jones"))]
    [(description,)] = engine.rows("SELECT description FROM entities WHERE title = 'Bob Jones'")
    assert (of_footer, of_all) == (1, 6)
    assert told.startswith("Alice Smith met Bob Jones")
    assert description.startswith("Alice Smith met Bob Jones")
    engine.write({f"{n}.txt": None for n in range(2, 5)})
    engine.index()
    two = build_graph(tmp_path / "two", dict(list(files.items())[:2]))
    rows = "SELECT source, target, weight, description FROM relationships ORDER BY ALL"
    assert engine.rows(rows) == two.rows(rows)
    assert engine.rows("SELECT max(weight) FROM relationships") == [(4,)]


def test_the_ends_of_every_relationship_exist_and_no_pair_comes_twice(tmp_path):
    engine = build_graph(tmp_path, {f"{i}.txt": STORY for i in range(3)})
    assert engine.rows("SELECT count(*) > 3 FROM relationships") == [(True,)]
    missing = """SELECT count(*) FROM relationships r
                 WHERE source_id NOT IN (SELECT id FROM entities)
                 OR target_id NOT IN (SELECT id FROM entities) OR source_id >= target_id"""
    assert engine.rows(missing) == [(0,)]
    twice = "SELECT count(*) - count(DISTINCT (source_id, target_id)) FROM relationships"
    assert engine.rows(twice) == [(0,)]
    titles = """SELECT count(*) FROM relationships r JOIN entities s ON s.id = r.source_id
                JOIN entities t ON t.id = r.target_id
                WHERE s.title <> r.source OR t.title <> r.target"""
    assert engine.rows(titles) == [(0,)]


def test_provenance_points_to_text_that_holds_the_title(tmp_path):
    padding = "Ärger über 漢字 und 😀 am Morgen. " * 30
    engine = build_graph(
        tmp_path,
        {"a.txt": padding + STORY, "b.txt": STORY + padding + STORY},
        chunks={"size": 50, "overlap": 10},
    )
    links = engine.rows(
        """SELECT e.title, p.start_char, p.end_char, c.start_char, c.end_char, d.text
           FROM entity_chunks p JOIN entities e ON e.id = p.entity_id
           JOIN chunks c ON c.id = p.chunk_id JOIN documents d ON d.id = c.document_id"""
    )
    assert len(links) > 20
    assert {"Alice Smith", "Zürich"} <= {link[0] for link in links}
    for title, start, end, chunk_start, chunk_end, text in links:
        assert text[start:end].casefold() == title.casefold()
        assert chunk_start <= start < end <= chunk_end


def test_evidence_points_to_text_that_holds_both_ends(tmp_path):
    engine = build_graph(
        tmp_path, {"a.txt": "Ünder 😀. " * 40 + STORY}, chunks={"size": 60, "overlap": 9}
    )
    links = engine.rows(
        """SELECT r.source, r.target, p.start_char, p.end_char, d.text
           FROM relationship_chunks p JOIN relationships r ON r.id = p.relationship_id
           JOIN chunks c ON c.id = p.chunk_id JOIN documents d ON d.id = c.document_id"""
    )
    assert len(links) > 5
    for source, target, start, end, text in links:
        assert source.casefold() in text[start:end].casefold()
        assert target.casefold() in text[start:end].casefold()


def test_every_entity_and_relationship_leads_back_to_a_chunk(tmp_path):
    engine = build_graph(tmp_path, {"a.txt": STORY, "b.txt": STORY})
    assert engine.rows(
        "SELECT count(*) FROM entities ANTI JOIN entity_chunks ON id = entity_id"
    ) == [(0,)]
    lost = (
        "SELECT count(*) FROM relationships ANTI JOIN relationship_chunks ON id = relationship_id"
    )
    assert engine.rows(lost) == [(0,)]


def test_a_document_that_moves_leaves_the_graph_as_it_was(tmp_path):
    corpus = Path(__file__).parents[1] / "examples" / "corpus"
    files = {path.name: path.read_bytes() for path in sorted(corpus.rglob("*.md"))}
    engine = build_graph(tmp_path, files)
    graph = (
        "SELECT * EXCLUDE human_readable_id FROM entities ORDER BY id",
        "SELECT * EXCLUDE human_readable_id FROM relationships ORDER BY id",
    )
    before = [engine.rows(query) for query in graph]
    moved = list(files)[::3]
    engine.write({name: None for name in moved})
    engine.write({f"elsewhere/{name}": files[name] for name in moved})
    engine.index()
    assert [engine.rows(query) for query in graph] == before


def test_only_rows_that_differ_are_written(tmp_path):
    engine = build_graph(tmp_path, {"a.txt": STORY, "b.txt": STORY})
    engine.write({"c.txt": "Dora Green met Emil Black in Rome."})
    (batch,) = engine.cut()
    engine.ingest(batch.key)
    changes = engine.merge()
    assert changes.batches == (batch.key,)
    assert changes.entities["changed"] == 0
    assert changes.entities["added"] == 3
    assert changes.entities["reused"] > 4


def test_a_corpus_without_documents_has_an_empty_graph(tmp_path):
    engine = Engine(tmp_path)
    engine.update()
    for table in ("entities", "relationships", "communities", "community_reports"):
        assert engine.rows(f"SELECT count(*) FROM {table}") == [(0,)]


def test_the_graph_empties_when_the_last_document_leaves(tmp_path):
    engine = build(tmp_path, {"a.txt": STORY})
    engine.write({"a.txt": None})
    engine.update()
    tables = "documents chunks extractions entity_mentions entities relationships entity_chunks"
    for table in (*tables.split(), "communities", "community_members", "community_reports"):
        assert engine.rows(f"SELECT count(*) FROM {table}") == [(0,)]


def test_what_is_mostly_written_in_lower_case_is_no_organisation(tmp_path):
    text = "The standard library has a parser. Ida Brandt read the standard library."
    files = {"a.txt": text, "b.md": "# The Standard Library\n\nIda Brandt wrote it.", "c.txt": text}
    engine = build_graph(tmp_path, files)
    types = dict(engine.rows("SELECT title, type FROM entities"))
    assert types["standard library"] == "CONCEPT"
    assert types["Ida Brandt"] == "PERSON"


def test_a_graph_made_few_rows_at_a_time_is_that_made_at_once(tmp_path, monkeypatch):
    files = {
        f"{name}.txt": "".join(f"Ann Lee met Bob Roe{n} in Paris{n % 3}. " for n in range(40))
        for name in "abcdefgh"
    }
    tables = ("entities", "relationships", "entity_chunks", "relationship_chunks")
    queries = [f"FROM {table} ORDER BY ALL" for table in tables]
    whole = build_graph(tmp_path / "whole", files)
    monkeypatch.setattr(fold, "parts_within", lambda con, n_bytes: 7)
    parts = build_graph(tmp_path / "parts", files)
    assert parts.rows("SELECT count(*) FROM relationships")[0][0] > 30
    assert [parts.rows(query) for query in queries] == [whole.rows(query) for query in queries]


def test_an_entity_is_called_by_its_acronym_where_that_is_written_more_often(tmp_path):
    def titles() -> set[str]:
        return {title for (title,) in engine.rows("SELECT title FROM entities")}

    said = "The Harbour Tide Register (HTR) is kept in Bergen by Ida Brandt."
    often = "Ida Brandt wrote to the HTR. In Bergen the HTR was read."
    engine = build_graph(tmp_path, {"a.txt": said, "b.txt": often, "c.txt": f"{often} So be it."})
    assert "HTR" in titles()
    assert "Harbour Tide Register" not in titles()
    engine.write({"b.txt": None, "c.txt": f"{said} It is bound in blue."})
    engine.index()
    assert "Harbour Tide Register" in titles()
    assert "HTR" not in titles()


def test_a_person_is_called_by_the_name_and_not_by_initials(tmp_path):
    said = "Ida Brandt (IB), Jan Moe (JM)."
    spoken = "\n\n".join(f"IB: The ropes of boat {n} are wet." for n in range(20))
    engine = build_graph(tmp_path, {"a.txt": f"{said}\n\n{spoken}"})
    assert engine.rows("SELECT title, type FROM entities WHERE title IN ('IB', 'Ida Brandt')") == [
        ("Ida Brandt", "PERSON")
    ]


def test_a_name_that_is_in_capitals_at_times_is_no_acronym(tmp_path):
    said = "Ida Brandt came. Brandt read it. Brandt wrote. Brandt left. BRANDT sat. BRANDT slept."
    engine = build_graph(tmp_path, {"a.txt": said})
    assert engine.rows("SELECT title FROM entities WHERE type = 'PERSON'") == [("Ida Brandt",)]
