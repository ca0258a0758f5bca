import shutil
from pathlib import Path

import duckdb
import pytest

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.identity import make_id
from graphrag_pipeline.store import migrations
from graphrag_pipeline.store.index_store import IndexStore, get_meta, set_meta

SCHEMA_1 = Path(__file__).parent / "schemas" / "schema_1.sql"
SHAPE = """
SELECT 'column', c.schema_name, c.table_name, column_name, data_type, is_nullable, c.comment
FROM duckdb_columns() c WHERE NOT c.internal
UNION ALL
SELECT 'table', schema_name, table_name, '', '', false, comment FROM duckdb_tables()
WHERE NOT internal
UNION ALL
SELECT 'view', schema_name, view_name, sql, '', false, comment FROM duckdb_views()
WHERE NOT internal ORDER BY ALL
"""
ONE, TWO, TOP = (make_id("attributed", name) for name in ("one", "two", "top"))
OLD_NAMES = (
    "communities",
    "community_members",
    "community_reports",
    "report_failures",
    "hirag_communities",
    "hirag_community_members",
    "hirag_community_reports",
    "attributed_communities",
    "attributed_members",
    "attributed_entities",
)
NAMES_OF_TABLES = "SELECT table_name FROM duckdb_tables()"
# Two communities of entities, one of which is in a third, which stands at two levels. The same
# communities in two hierarchies have the same ids.
HIERARCHIES_AT_7 = f"""
INSERT INTO communities VALUES
    ('c1', 1, 0, 1, NULL, 'A, B', 2, 1), ('c2', 2, 0, 0, NULL, 'C', 2, 1);
INSERT INTO community_members VALUES ('c1', 'a', 0), ('c1', 'a', 1), ('c2', 'c', 0);
INSERT INTO community_reports VALUES
    ('r', 'c1', 0, 'T', 'S', 1, 'why', [('f', 'e', 'chunk', 0, 9)], '# T', 3, 'v:h', 4, 0.5, 'm',
     0.1);
INSERT INTO report_failures VALUES ('c2', 0, 'h', 'not JSON', 2);
INSERT INTO hirag_communities VALUES
    ('c1', 1, 0, 0, NULL, 'A, B', 3, 1), ('c3', 3, 0, 0, NULL, 'D', 2, 1);
INSERT INTO hirag_community_members VALUES ('c1', 'a', 0), ('c1', 'above', 0), ('c3', 'd', 0);
INSERT INTO hirag_community_reports SELECT * REPLACE (0 AS outdated) FROM community_reports;
INSERT INTO staging.hirag_report_failures VALUES ('c3', 0, 'h', 'not JSON', 1);
INSERT INTO attributed_communities VALUES
    ('{ONE}', 7, 1, 1, '{TOP}', 'T', 2, 2, 1, 'S', 1, 'why', [('f', 'e', NULL, NULL, NULL)], '# T',
     3, 'v:h', 4, 0.5, 'm', NULL, 0),
    ('{TWO}', 8, 1, 1, '{TOP}', 'C', 1, 1, 0, {", ".join(["NULL"] * 10)}, NULL, 0),
    ('{TOP}', 9, 2, 3, NULL, 'A, B, C', 3, 2, 1, {", ".join(["NULL"] * 6)}, 'h', NULL, NULL, NULL,
     'not JSON', 1);
INSERT INTO attributed_members VALUES
    ('{ONE}', 'a', 1), ('{ONE}', 'b', 1), ('{TWO}', 'c', 1), ('{TOP}', '{ONE}', 2),
    ('{TOP}', '{TWO}', 2);
"""

pytestmark = pytest.mark.usefixtures("plain_stores")


@pytest.fixture
def older(tmp_path):
    """An index as version 1 made it, with something in it."""
    store = IndexStore(tmp_path / "index.duckdb")
    with duckdb.connect(str(store.path)) as con:
        con.execute(SCHEMA_1.read_text())
        con.execute("INSERT INTO meta VALUES ('schema_version', '1'), ('kept', 'yes')")
    return store


def shape(store):
    with store.read() as con:
        return con.execute(SHAPE).fetchall()


def test_an_older_index_becomes_what_a_new_one_is_and_keeps_what_it_holds(older, tmp_path):
    assert shape(older) == shape(IndexStore(tmp_path / "new" / "index.duckdb"))
    with older.read() as con:
        assert get_meta(con, "kept") == "yes"
        assert get_meta(con, "schema_version") == str(migrations.migrations()[-1][0])


def test_communities_of_every_hierarchy_are_what_they_were_under_their_old_names(tmp_path):
    path = tmp_path / "index.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute(SCHEMA_1.read_text())
        for number, _, sql in migrations.migrations():
            if number < 8:
                con.execute(sql)
        con.execute("INSERT INTO meta VALUES ('schema_version', '7'), ('reports_state:0', 'done')")
        con.execute(HIERARCHIES_AT_7)
        before = {name: columns_and_rows(con, name) for name in OLD_NAMES}
    with IndexStore(path).read() as con:
        assert {name: columns_and_rows(con, name) for name in OLD_NAMES} == before
        assert get_meta(con, "graph:reports_state:0") == "done"
        assert {name for (name,) in con.execute(NAMES_OF_TABLES).fetchall()}.isdisjoint(OLD_NAMES)
        failures = con.execute("SELECT hierarchy, community_id FROM hierarchy_failures")
        assert sorted(failures.fetchall()) == [
            ("attributed", TOP),
            ("graph", "c2"),
            ("hirag", "c3"),
        ]
        ids = con.execute("SELECT id, community_id FROM hierarchy_reports WHERE id <> 'r'")
        assert ids.fetchall() == [(make_id("report", ONE), ONE)]
        # As if the process had been killed after the migration.
        for file in tmp_path.glob("index.duckdb*"):
            shutil.copy(file, tmp_path / file.name.replace("index", "killed"))
    with duckdb.connect(str(tmp_path / "killed.duckdb")) as con:
        assert {name: columns_and_rows(con, name) for name in OLD_NAMES} == before


def columns_and_rows(con, name):
    result = con.execute(f"FROM {name} ORDER BY ALL")
    return [column[:2] for column in result.description], result.fetchall()


def test_an_index_takes_over_new_comments_without_a_migration(tmp_path):
    store, new = (IndexStore(tmp_path / name / "index.duckdb") for name in ("known", "new"))
    with store.read() as con:
        con.execute("COMMENT ON COLUMN documents.uri IS 'as it was'")
        con.execute("COMMENT ON TABLE chunks IS NULL")
        assert shape(new) != con.execute(SHAPE).fetchall()
        set_meta(con, "comments", "of an older schema.sql")
    assert shape(store) == shape(new)


def test_migrations_are_numbered_one_by_one():
    numbers = [number for number, _, _ in migrations.migrations()]
    assert numbers == list(range(2, 2 + len(numbers)))


def test_a_migration_that_fails_leaves_the_index_as_it_was(older, monkeypatch):
    steps = ((2, "good", "CREATE TABLE half (x INT)"), (3, "bad", "SELECT * FROM nowhere"))
    monkeypatch.setattr(migrations, "migrations", lambda: steps)
    with pytest.raises(StorageError, match=r"step bad: .*nowhere.*as it was"), older.read():
        pass
    with duckdb.connect(str(older.path)) as con:
        assert get_meta(con, "schema_version") == "1"
        assert con.execute(
            "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'half'"
        ).fetchone() == (0,)


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("999", "made by a newer version.*update"),
        ("0", "too old.*index again"),
        ("x", "not an ind"),
    ],
)
def test_what_cannot_be_brought_up_is_refused_in_one_line(older, version, said):
    with older.transaction() as con:
        set_meta(con, "schema_version", version)
    with pytest.raises(StorageError, match=said) as raised, older.read():
        pass
    assert "\n" not in str(raised.value)
