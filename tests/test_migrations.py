from pathlib import Path

import duckdb
import pytest

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.store import migrations
from graphrag_pipeline.store.index_store import IndexStore, get_meta, set_meta

SCHEMA_1 = Path(__file__).parent / "schemas" / "schema_1.sql"
SHAPE = """
SELECT 'column', c.schema_name, c.table_name, column_name, data_type, is_nullable, c.comment
FROM duckdb_columns() c WHERE NOT c.internal
UNION ALL
SELECT 'table', schema_name, table_name, '', '', false, comment FROM duckdb_tables()
WHERE NOT internal ORDER BY ALL
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
