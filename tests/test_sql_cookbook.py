"""What an analyst finds in the published file: comments, views, macros, the queries of sql.md."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import polars as pl
import pytest
from artefacts import copy_of
from index_process import SMALL, update

from conftest import Engine, workspace_of
from graphrag_pipeline.marts.sql import query_published
from graphrag_pipeline.releases.kept_releases import release_ids
from graphrag_pipeline.releases.older_releases import release_file
from graphrag_pipeline.releases.publishing import published_sql

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "sql.md").read_text()
CORPUS = ROOT / "examples" / "corpus" / "reference"
TEXTS = ["aldous-inquiry", "clemence-lysander", "kelmouth", "kestrel-bridge", "orlen-dam"]
BLOCK = re.compile(
    r"^##+ (?P<heading>.+?)$|^```(?P<kind>sql|python)\n(?P<code>.*?)^```$", re.M | re.S
)
A_RELEASE = re.compile(r"\d{8}T\d+-[0-9a-f]{8}")
HOSTILE = "Robert'); DROP TABLE entities; --"


def blocks(kind: str) -> dict[str, str]:
    """The page's code of a kind, by the heading it stands under."""
    found, heading = {}, ""
    for match in BLOCK.finditer(PAGE):
        heading = match["heading"] or heading
        if match["kind"] == kind:
            again = sum(key.startswith(heading) for key in found)
            found[f"{heading} ({again + 1})" if again else heading] = match["code"]
    return found


@contextmanager
def editable(release: Path, copy: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    shutil.copyfile(release, copy)
    with duckdb.connect(str(copy)) as con:
        yield con


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """An index with two releases, the published one with what only a model and mishaps bring."""

    def make(place: Path) -> None:
        engine = Engine(place, SMALL)
        texts = [CORPUS / f"{name}.md" for name in TEXTS]
        for text in texts[:-1]:
            shutil.copy(text, engine.inbox)
        update(engine)
        shutil.copy(texts[-1], engine.inbox)
        engine.write({"nothing.md": "it was so.", "quoted.md": "Sean O'Hara met Mary in Kelmouth."})
        update(engine)
        published = engine.log.home / "published.duckdb"
        with editable(published, place / "edited.duckdb") as con:
            con.execute(BY_HAND)
        (place / "edited.duckdb").replace(published)
        # The older one is made whole once, and not for each query.
        release_file(engine.log.home, min(release_ids(engine.log.home)))

    return copy_of("cookbook", make, tmp_path_factory.mktemp("cookbook"))


BY_HAND = """
INSERT INTO claims
SELECT 'claim', 0, c.chunk_id, e.id, e.title, NULL, 'WORK', 'TRUE', '1951-01-01', NULL,
       'He designed the dam.', 'designed the dam', 'batch'
FROM entities e JOIN entity_chunks c ON c.entity_id = e.id WHERE e.title = 'Oskar Kovarna' LIMIT 1;
INSERT INTO llm_calls VALUES
('1', '2026-11-20 10:00:00+00', 'extractions', 'batch', 'm', 100, 10, 0.5, 1, false, NULL),
('2', '2026-11-21 10:00:00+00', 'extractions', 'batch', 'm', 100, 10, 0, 0, true, NULL),
('3', '2026-11-21 10:00:00+00', 'query', NULL, 'm', 7, 0, NULL, 2, false, 'timeout');
UPDATE hierarchy_reports SET outdated = 0.02
WHERE title = (SELECT min(title) FROM community_reports);
"""


@pytest.fixture(scope="module")
def con(folder):
    with duckdb.connect(str(folder / ".graphrag" / "published.duckdb"), read_only=True) as con:
        yield con


# Comments


def test_every_table_and_column_of_a_release_has_a_comment(con):
    lacking = con.execute(
        """SELECT table_name FROM duckdb_tables() WHERE comment IS NULL AND NOT internal
           UNION ALL SELECT view_name FROM duckdb_views() WHERE comment IS NULL AND NOT internal
           UNION ALL SELECT table_name || '.' || column_name FROM duckdb_columns()
           WHERE comment IS NULL AND NOT internal
           UNION ALL SELECT function_name FROM duckdb_functions()
           WHERE NOT internal AND (comment IS NULL OR NOT contains(comment, ' Example: '))"""
    ).fetchall()
    assert lacking == []
    assert con.execute("SELECT count(*) FROM duckdb_columns() WHERE NOT internal").fetchone() > (
        300,
    )


def test_what_a_comment_joins_is_a_column(con):
    columns = {
        f"{table}.{column}"
        for table, column in con.execute(
            "SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal"
        ).fetchall()
    }
    comments = con.execute("SELECT comment FROM duckdb_columns() WHERE NOT internal").fetchall()
    named = {name for (text,) in comments for name in re.findall(r"\b[a-z_]+\.[a-z_]+\b", text)}
    assert len(named) > 10
    settings = {"embeddings.synonym_similarity", "reports.max_outdated"}
    assert named - columns <= {"aliases.csv", *settings}


# The page


@pytest.mark.parametrize("question", blocks("sql"))
def test_a_query_of_the_page_runs_and_finds_something(question, folder, tmp_path, monkeypatch):
    shutil.copytree(folder / ".graphrag", tmp_path / ".graphrag", copy_function=_link)
    monkeypatch.chdir(tmp_path)
    code = blocks("sql")[question]
    earliest = release_file(Path(".graphrag"), min(release_ids(Path(".graphrag"))))
    attaches = code.startswith("ATTACH")
    file = ":memory:" if attaches else ".graphrag/published.duckdb"
    with duckdb.connect(file, read_only=not attaches) as con:
        rows = con.execute(A_RELEASE.sub(earliest.stem, code)).fetchall()
    assert rows, question
    for written in re.findall(r"TO '(.+?)'", code):
        assert len(duckdb.sql(f"FROM '{written}'")) > 1


def _link(source: str, target: str) -> None:
    Path(target).hardlink_to(source)


def test_there_are_twenty_numbered_queries():
    numbers = [question.split(". ")[0] for question in blocks("sql") if question[0].isdecimal()]
    assert numbers == [str(n) for n in range(1, 21)]


@pytest.mark.parametrize("heading", blocks("python"))
def test_the_python_of_the_page_runs(heading, folder, monkeypatch):
    monkeypatch.chdir(folder)
    scope: dict[str, object] = {}
    exec(blocks("python")[heading], scope)
    frame = scope["frame"]
    assert isinstance(frame, pl.DataFrame)
    assert len(frame)


# Views and macros


def test_each_macro_is_listed_with_an_example_that_runs(con):
    listed = dict(con.execute("SELECT macro, example FROM macros").fetchall())
    assert len(listed) >= 12
    for example in listed.values():
        con.execute(example)


def test_no_macro_or_view_hides_what_duckdb_has(con):
    clashes = con.execute(
        """SELECT function_name FROM duckdb_functions() WHERE NOT internal
           INTERSECT (SELECT function_name FROM duckdb_functions() WHERE internal
                      UNION SELECT table_name FROM duckdb_tables()
                      UNION SELECT view_name FROM duckdb_views())"""
    ).fetchall()
    assert clashes == []


def test_a_name_is_found_by_title_in_any_case_by_alias_and_by_id(con):
    alias, title, entity = con.execute(
        "SELECT known_as, entity, entity_id FROM entity_names WHERE is_alias LIMIT 1"
    ).fetchone()
    found = [
        con.execute("FROM entities_named(?)", [n]).fetchall() for n in (alias.upper(), f" {title} ")
    ]
    assert [*found, con.execute("FROM entities_named(?)", [entity]).fetchall()] == [[(entity,)]] * 3
    aliases = con.execute("SELECT aliases FROM entity(?)", [title]).fetchone()[0]
    assert alias in aliases


def test_neighbors_are_those_of_the_relationships_each_where_it_is_first_reached(con):
    edges = con.execute("SELECT source, target FROM relationships").fetchall()
    both = {*edges, *((b, a) for a, b in edges)}
    near = {b for a, b in both if a == "Orlen Dam"}
    far = {b for a, b in both if a in near} - near - {"Orlen Dam"}
    rows = con.execute("SELECT hop, neighbor FROM neighbors('Orlen Dam', hops := 2)").fetchall()
    assert near
    assert far
    assert sorted(rows) == sorted([(1, n) for n in near] + [(2, n) for n in far])


def test_a_shortest_path_is_a_chain_of_as_many_steps_as_hops(con):
    hop, last = con.execute(
        """SELECT hop, neighbor FROM neighbors('Orlen Dam', hops := 4)
           ORDER BY hop DESC, neighbor LIMIT 1"""
    ).fetchone()
    steps = con.execute(
        "SELECT step, from_entity, to_entity FROM shortest_path('Orlen Dam', ?)", [last]
    ).fetchall()
    assert hop > 1
    assert [step for step, _, _ in steps] == list(range(1, hop + 1))
    assert [a for _, a, _ in steps] == ["Orlen Dam", *(b for _, _, b in steps[:-1])]
    assert steps[-1][2] == last
    short = con.execute("FROM shortest_path('Orlen Dam', ?, longest := ?)", [last, hop - 1])
    assert short.fetchall() == []


@pytest.mark.parametrize("view", ["entity_evidence", "relationship_evidence", "report_evidence"])
def test_every_quote_is_the_text_of_its_span(con, view):
    wrong = con.execute(
        f"""SELECT count(*), count(*) FILTER (
                quote = '' OR substr(d.text, start_char + 1, end_char - start_char) <> quote)
            FROM {view} v JOIN documents d ON d.id = v.document_id"""
    ).fetchone()
    assert wrong[0] > 50
    assert wrong[1] == 0


def test_macros_say_what_the_views_say(con):
    title, other = con.execute(
        "SELECT source, target FROM relationships ORDER BY weight DESC"
    ).fetchone()
    for macro, view, names, where in (
        ("mentions", "entity_evidence", [title], "entity = $1"),
        (
            "evidence",
            "relationship_evidence",
            [other, title],
            "source IN ($1, $2) AND target IN ($1, $2)",
        ),
    ):
        marks = ", ".join(f"${n + 1}" for n in range(len(names)))
        spans = "SELECT DISTINCT uri, start_char, end_char, quote FROM"
        macro_rows = con.execute(f"{spans} {macro}({marks}) ORDER BY ALL", names).fetchall()
        assert macro_rows
        assert (
            macro_rows
            == con.execute(f"{spans} {view} WHERE {where} ORDER BY ALL", names).fetchall()
        )
    report = con.execute(
        "SELECT community_id FROM community_reports ORDER BY level LIMIT 1"
    ).fetchone()
    one = con.execute(
        "SELECT element_id, quote FROM report_sources(?) ORDER BY ALL", report
    ).fetchall()
    view = "SELECT element_id, quote FROM report_evidence WHERE community_id = ? ORDER BY ALL"
    assert one == con.execute(view, report).fetchall()


def test_every_report_and_relationship_leads_to_text(con):
    assert_traced(con)


@pytest.mark.shared_data
def test_every_report_and_relationship_of_an_imported_index_leads_to_text(shared_data, tmp_path):
    from graphrag_pipeline.exchange.importing import import_graphrag

    import_graphrag(shared_data / "carol_index", workspace_of(tmp_path, SMALL))
    with duckdb.connect(str(tmp_path / "index.duckdb")) as con:
        con.execute(published_sql())
        assert_traced(con)


def test_a_report_that_does_not_say_what_it_rests_on_rests_on_its_community(folder, tmp_path):
    with editable(folder / ".graphrag" / "published.duckdb", tmp_path / "copy.duckdb") as con:
        told = "SELECT DISTINCT kind FROM report_evidence WHERE community_id = ? ORDER BY kind"
        one = con.execute("SELECT community_id FROM community_reports LIMIT 1").fetchone()
        assert con.execute(told, one).fetchall() == [("entity",), ("relationship",)]
        con.execute("DELETE FROM report_elements WHERE community_id = ?", one)
        assert con.execute(told, one).fetchall() == [("entity",)]
        assert_traced(con)


def assert_traced(con) -> None:
    edges, told_of, reports, written = con.execute(
        """SELECT (SELECT count(DISTINCT relationship_id) FROM relationship_evidence
                   WHERE quote <> ''),
                  (SELECT count(*) FROM relationships),
                  (SELECT count(DISTINCT report_id) FROM report_evidence WHERE quote <> ''),
                  (SELECT count(*) FROM community_reports)"""
    ).fetchone()
    assert (edges, reports) == (told_of, written)
    assert edges
    assert reports


def test_the_tree_holds_every_community_below_its_parent(con):
    rows = con.execute(
        "SELECT community_id, parent_id, depth, level, path FROM community_tree"
    ).fetchall()
    depths = {community: depth for community, _, depth, _, _ in rows}
    assert (
        con.execute("SELECT count(*) FROM communities").fetchone() == (len(rows),) == (len(depths),)
    )
    assert max(depths.values()) > 0
    for place, (_, parent, depth, _, path) in enumerate(rows):
        assert len(path) == depth + 1
        assert depth == (depths[parent] + 1 if parent else 0)
        assert depth <= rows[place - 1][2] + 1


def test_cost_counts_each_call_once_and_what_is_cached_apart(con):
    rows = con.execute(
        "SELECT stage, calls, cached, failed, prompt_tokens, cost, without_price FROM cost_by_stage"
    ).fetchall()
    assert rows == [("extractions", 1, 1, 0, 100, 0.5, 0), ("query", 1, 0, 1, 7, None, 0)]


def test_a_hostile_title_is_only_a_name(con):
    for macro in ("entity", "neighbors", "mentions", "find_name", "claims_of", "members_of"):
        assert con.execute(f"FROM {macro}(?)", [HOSTILE]).fetchall() == []
    title = con.execute("SELECT title FROM entities WHERE contains(title, ?)", ["'"]).fetchone()
    assert title
    assert con.execute("SELECT title FROM entity(?)", title).fetchall() == [title]


# Ways to open it


def test_views_work_under_any_name_and_macros_once_it_is_in_use(folder):
    file = folder / ".graphrag" / "published.duckdb"
    with duckdb.connect() as con:
        con.execute(f"ATTACH '{file}' AS g (READ_ONLY)")
        views = con.execute(
            "SELECT view_name FROM duckdb_views() WHERE database_name = 'g' AND NOT internal"
        ).fetchall()
        assert len(views) >= 10
        for (view,) in views:
            con.execute(f"SELECT * FROM g.{view} LIMIT 1")
        con.execute("USE g")
        assert con.execute("FROM neighbors('orlen dam')").fetchall()


def test_the_command_reads_macros_of_a_release(folder):
    home = folder / ".graphrag"
    for release in (None, min(release_ids(home))):
        names, rows = query_published(home, "FROM communities_of('Orlen Dam')", release)
        assert names[:2] == ["level", "community"]
        assert [row[0] for row in rows] == list(range(len(rows))) != []
