"""Measures of an index: worked by hand on a small graph, and by networkx and scikit-learn."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from evaluation_fixture import WHEN, put_row
from graphrag_evaluation.metrics.hierarchies import spread
from graphrag_evaluation.metrics.index import (
    ABOUT,
    Metric,
    answer_entities,
    known_metrics,
    measure_index,
    measures,
)
from graphrag_evaluation.questions.question import Question, put_questions
from graphrag_evaluation.store import EvaluationStore
from query_fixture import CAROL, CURIE, ENTITIES, RELATIONSHIPS, publish, settings_for
from typer.testing import CliRunner

from graphrag_pipeline.cli.app import app
from graphrag_pipeline.query.release import VECTORS, Release, open_release
from graphrag_pipeline.store.index_store import IndexStore
from graphrag_pipeline.store.vector_store import VectorSnapshot

# A release is changed here where it lies.
pytestmark = pytest.mark.usefixtures("plain_stores")

GOLD = [
    Question("Who was dead?", ("marley!", "Jacob Marley, the old partner of the firm")),
    Question("Who are they?", ("the Marie Curie",)),
    Question("Where is it?", ("Paris, France",)),
    Question("Parisian?", ("Parisians",)),
    Question("Who lives there?", ("贾宝玉",)),
    Question("Is it so?", ("yes",)),
    Question("What if?", ("Insufficient information.",)),
    Question("Why?", ("because of all that had come before in Paris",)),
    Question("What is asked?"),
]


def expected_spread(vectors: np.ndarray, labels: np.ndarray) -> float:
    from sklearn.metrics import calinski_harabasz_score

    return calinski_harabasz_score(vectors, labels)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish(tmp_path_factory.mktemp("metrics"))


@pytest.fixture(scope="module")
def release(home: Path) -> Iterator[Release]:
    with open_release(home, settings=settings_for(home)) as opened:
        yield opened


@pytest.fixture(scope="module")
def found(release: Release) -> dict[tuple[str, int], float]:
    return {(one.name, one.level): one.value for one in measures(release)}


def changed(home: Path, folder: Path, *statements: str) -> list[Metric]:
    """What is measured of the release after these statements."""
    copied = Path(shutil.copytree(home, folder / "copied"))
    with IndexStore(copied / "published.duckdb").transaction() as con:
        for statement in statements:
            con.execute(statement)
    with open_release(copied, settings=settings_for(copied)) as opened:
        return list(measures(opened))


def test_modularity_and_coverage_are_those_of_networkx(
    release: Release, found: dict[tuple[str, int], float]
) -> None:
    graph = nx.Graph()
    for row in release.rows("SELECT source_id, target_id, weight FROM relationships"):
        graph.add_edge(row["source_id"], row["target_id"], weight=row["weight"])
    for level in (0, 1, 2):
        groups = release.rows(
            "SELECT list(entity_id) AS ids FROM community_members WHERE level = $level GROUP BY "
            "community_id", level=level,
        )  # fmt: skip
        parts = [ids for row in groups if (ids := set(row["ids"]) & set(graph))]
        expected = nx.community.modularity(graph, parts)
        assert found["modularity", level] == pytest.approx(expected)
    # Level 1 parts Scrooge from Bob Cratchit, whose edge has 3 of the 17 that all weigh.
    assert [found["coverage", level] for level in (0, 1)] == pytest.approx([1, 14 / 17])


def test_clustering_is_that_of_networkx_and_orphans_and_duplicates_are_counted(
    found: dict[tuple[str, int], float],
) -> None:
    graph = nx.Graph(RELATIONSHIPS)
    graph.add_nodes_from(ENTITIES)
    assert nx.average_clustering(graph) > 0
    assert found["clustering_coefficient", -1] == pytest.approx(nx.average_clustering(graph))
    assert 0 < nx.transitivity(graph) != pytest.approx(nx.average_clustering(graph))
    assert found["transitivity", -1] == pytest.approx(nx.transitivity(graph))
    assert found["orphans", -1] == pytest.approx(1 / len(ENTITIES))
    assert found["duplicates", -1] == 0


def test_a_dense_graph_has_the_triangles_that_networkx_finds(home: Path, tmp_path: Path) -> None:
    graph = nx.gnp_random_graph(40, 0.3, seed=3)
    rows = ", ".join(f"('e{a:02}', 'e{b:02}')" for a, b in graph.edges)
    column = "human_readable_id, title, type, description, frequency, degree, n_tokens"
    values = {
        one.name: one.value
        for one in changed(
            home,
            tmp_path,
            "DELETE FROM entities; DELETE FROM relationships",
            f"INSERT INTO entities (id, {column}) SELECT printf('e%02d', i), i, 'x' || i, '', '', "
            "1, 1, 1 FROM range(40) t(i)",
            "INSERT INTO relationships SELECT row_number() OVER ()::VARCHAR, 1, a, b, a, b, '', 1, "
            f"0, 1, 1, '' FROM (VALUES {rows}) t(a, b)",
            "INSERT INTO relationships SELECT id || 'x', 1, target_id, source_id, '', '', '', 1, "
            "0, 1, 1, '' FROM relationships LIMIT 5",
        )
    }
    assert values["clustering_coefficient"] == pytest.approx(nx.average_clustering(graph))
    assert values["transitivity"] == pytest.approx(nx.transitivity(graph))


def test_the_graph_of_all_layers_has_a_transitivity_of_its_own(
    release: Release, found: dict[tuple[str, int], float]
) -> None:
    tables = ("relationships", "hirag_relationships")
    rows = [release.rows(f"SELECT source_id, target_id FROM {table}") for table in tables]
    layered = nx.Graph([(r["source_id"], r["target_id"]) for part in rows for r in part])
    expected = nx.transitivity(layered)
    assert expected != pytest.approx(found["transitivity", -1])
    assert found["hirag_transitivity", -1] == pytest.approx(expected)


def test_without_paths_of_two_steps_there_are_no_triangles(home: Path, tmp_path: Path) -> None:
    one = "DELETE FROM relationships WHERE id <> (SELECT min(id) FROM relationships)"
    values = {metric.name: metric.value for metric in changed(home, tmp_path, one)}
    assert (values["transitivity"], values["clustering_coefficient"]) == (0, 0)


MEMBERS = {
    "attributed_": (
        """SELECT m.level, m.community_id, m.entity_id AS id FROM hierarchy_members m
           WHERE hierarchy = 'attributed'""",
        ("entities",),
    ),
    "hirag_": (
        """SELECT m.level, m.community_id, m.entity_id AS id FROM hierarchy_members m
           WHERE hierarchy = 'hirag'""",
        ("entities", "hirag_entities"),
    ),
    "raptor_": (
        """SELECT layer AS level, node_id AS community_id, child_id AS id
           FROM raptor_edges JOIN raptor_nodes ON id = node_id""",
        ("chunks", "raptor_nodes"),
    ),
}


@pytest.mark.parametrize("prefix", MEMBERS)
def test_every_hierarchy_is_measured_as_scikit_learn_and_equation_4_do(
    home: Path, release: Release, found: dict[tuple[str, int], float], prefix: str
) -> None:
    sql, tables = MEMBERS[prefix]
    snapshot = VectorSnapshot(home / VECTORS, release.facts.vector_versions)
    vector_of: dict[str, np.ndarray] = {}
    for table in tables:
        vector_of |= dict(zip(*snapshot.matrix(table), strict=True))
    members: dict[int, dict[str, list[np.ndarray]]] = {}
    for row in release.rows(f"SELECT * FROM ({sql}) ORDER BY ALL"):
        of = members.setdefault(row["level"], {}).setdefault(row["community_id"], [])
        of += [vector_of[row["id"]]] if vector_of[row["id"]].any() else []
    assert members
    for level, communities in members.items():
        groups = [np.array(group) for group in communities.values() if len(group) > 1]
        cosines = [
            x @ group.mean(axis=0) / np.linalg.norm(x) / np.linalg.norm(group.mean(axis=0))
            for group in groups
            for x in group
        ]
        value = found[f"{prefix}centroid_cosine", level]
        assert value == pytest.approx(np.mean(cosines), rel=1e-5)
        if len(groups) > 1:
            labels = np.repeat(range(len(groups)), [len(group) for group in groups])
            expected = expected_spread(np.concatenate(groups), labels)
            assert found[f"{prefix}calinski_harabasz", level] == pytest.approx(expected, rel=1e-5)
        else:
            assert (f"{prefix}calinski_harabasz", level) not in found


def test_vectors_of_communities_are_measured_as_scikit_learn_and_equation_4_do(
    home: Path, release: Release, found: dict[tuple[str, int], float]
) -> None:
    ids, vectors = VectorSnapshot(home / VECTORS, release.facts.vector_versions).matrix("entities")
    titles = {row["id"]: row["title"] for row in release.rows("SELECT id, title FROM entities")}
    place = {titles[id]: n for n, id in enumerate(ids)}
    groups = [CAROL, CURIE, ["贾宝玉", "林黛玉"]]
    rows = [vectors[[place[title] for title in group]] for group in groups]
    labels = np.repeat(range(3), [len(group) for group in groups])
    expected = expected_spread(np.concatenate(rows), labels)
    assert found["calinski_harabasz", 0] == pytest.approx(expected, rel=1e-5)
    cosines = [
        x @ part.mean(axis=0) / np.linalg.norm(x) / np.linalg.norm(part.mean(axis=0))
        for part in rows
        for x in part
    ]
    assert found["centroid_cosine", 0] == pytest.approx(np.mean(cosines), rel=1e-5)


def test_spread_is_as_worked_by_hand() -> None:
    vectors = np.array([[1.0, 0], [0, 1], [3, 3], [5, 5]])
    # Centroids (.5, .5) and (4, 4), of all (2.25, 2.25): between 24.5, within 1 + 4.
    index, cosine = spread(vectors, np.array([0, 0, 1, 1]))
    assert index == pytest.approx(24.5 / 5 * (4 - 2) / (2 - 1))
    assert cosine == pytest.approx((2 * np.sqrt(0.5) + 2) / 4)
    wide = np.random.default_rng(1).normal(size=(60, 150)).astype(np.float32)
    labels = np.arange(60) % 7
    assert spread(wide, labels)[0] == pytest.approx(expected_spread(wide, labels))
    assert spread(wide, np.zeros(60, np.intp))[0] is None
    assert spread(wide, np.arange(60))[0] is None
    assert spread(np.ones((4, 2)), np.array([0, 0, 1, 1]))[0] is None


def test_what_cannot_be_reckoned_is_left_out(home: Path, tmp_path: Path) -> None:
    bare = ("DELETE FROM relationships", "DELETE FROM hierarchy_reports")
    names = {one.name for one in changed(home, tmp_path, *bare)}
    vectors = ("calinski_harabasz", "centroid_cosine")
    assert {name.removeprefix(prefix) for prefix in ("", *MEMBERS) for name in names} >= {*vectors}
    assert {name for name in names if not name.endswith(vectors)} == {
        "hirag_transitivity",
        "orphans",
        "duplicates",
    }
    tables = ("entities", "hierarchy_members", "hirag_relationships", "raptor_edges")
    nothing = (*bare, *(f"DELETE FROM {table}" for table in tables))
    (tmp_path / "empty").mkdir()
    assert changed(home, tmp_path / "empty", *nothing) == []


def test_titles_with_the_same_letters_are_duplicates(home: Path, tmp_path: Path) -> None:
    spelt = [
        f"UPDATE entities SET title = '{to}' WHERE title = '{title}'"
        for title, to in (("Marley", "SCROOGE,"), ("Fezziwig", "Scro oge"), ("London", "?"),
                          ("Paris", "!"), ("林黛玉", "贾·宝玉"))
    ]  # fmt: skip
    (share,) = [o.value for o in changed(home, tmp_path, *spelt) if o.name == "duplicates"]
    assert share == pytest.approx(3 / len(ENTITIES))


def test_a_finding_is_grounded_if_it_cites_what_there_is_and_is_said_there(
    home: Path, found: dict[tuple[str, int], float], tmp_path: Path
) -> None:
    # One of eight has no reference at all, the others are sentences of the chunks they cite.
    assert found["groundedness", -1] == 7 / 8
    said = [
        ("Scrooge is one of the person names, they say [Data: Entities (0)].", True),
        ("Scrooge founded a railway company in Peru [Data: Entities (0)].", False),
        ("Scrooge is one of the person names [Data: Entities (99); Sources (98)].", False),
        ("Marley was dead, to begin with [Data: Sources (0, +more)].", True),
        ("Marley was dead, to begin with.", False),
        ("[Data: Entities (0)]", False),
    ]
    rows = json.dumps([{"summary": "s", "explanation": text} for text, _ in said])
    (share,) = [
        one.value
        for one in changed(
            home,
            tmp_path,
            "DELETE FROM hierarchy_reports WHERE title <> (SELECT min(title) FROM "
            "hierarchy_reports)",
            f"""UPDATE hierarchy_reports SET findings = (
                SELECT list({{'summary': j.summary, 'explanation': j.explanation, 'chunk_id': NULL,
                              'start_char': NULL, 'end_char': NULL}})
                FROM (SELECT unnest(from_json('{rows}',
                    '[{{"summary": "VARCHAR", "explanation": "VARCHAR"}}]')) AS j))""",
        )
        if one.name == "groundedness"
    ]
    assert share == pytest.approx(sum(is_so for _, is_so in said) / len(said))


def test_gold_answers_are_found_in_the_graph(release: Release, tmp_path: Path) -> None:
    store = EvaluationStore(tmp_path)
    with store.transaction() as con:
        put_questions(con, "gold", GOLD)
        put_questions(con, "none", GOLD[-1:])
        got = {one.name: one.value for one in answer_entities(con, release, "gold")}
        assert answer_entities(con, release, "none") == []
    # Of five short answers Marley, Marie Curie and 贾宝玉 are entities, and Paris stands in one.
    assert got == {"answer_entities@gold": 4 / 5, "answers_as_entities@gold": 3 / 5}


def test_values_are_kept_by_release_and_the_command_shows_them(
    home: Path, release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = EvaluationStore(home)
    monkeypatch.setenv("GRAPHRAG_HOME", str(home))
    with store.transaction() as con:
        put_questions(con, "gold", GOLD)
        put_row(con, "index_metrics", release="r1", metric="modularity", level=7, value=0.5,
                measured_at=WHEN)  # fmt: skip
        con.execute(
            """INSERT INTO answers SELECT 'a' || i, 'q', 'm', '{}', 'r' || (1 + i // 2), '', '', '',
               [], 4, i, 0, 0, 0, 0, NULL, 0, 0, [], now(), '', [], NULL, [], NULL, NULL, NULL
               FROM range(4) t(i)"""
        )
    measured = measure_index(release, store, "gold")
    assert Metric("citation_validity", 1 / 8) in measured
    assert sorted(known_metrics(store, "r1"), key=str) == sorted(measured, key=str)
    assert {one.name.partition("@")[0] for one in measured} == set(ABOUT)
    shown = CliRunner().invoke(app, ["eval", "index", "--json"])
    assert json.loads(shown.stdout)["release"] == "r1"
    assert {"metric": "orphans", "level": None, "value": 1 / len(ENTITIES)} in json.loads(
        shown.stdout
    )["metrics"]
    told = CliRunner().invoke(app, ["eval", "index", "-q", "gold"])
    assert "0.800  answer_entities@gold: share of short gold answers" in told.stdout
    unknown = CliRunner().invoke(app, ["eval", "index", "-q", "silver"])
    assert (unknown.exit_code, "no question set 'silver'" in unknown.stderr) == (2, True)
