"""Dumps of databases in SQL: their rows are records, and the rest is code."""

from __future__ import annotations

import time

import pytest
from read_files import only, read

MYSQL = r"""CREATE TABLE `ships` (
  `id` int NOT NULL AUTO_INCREMENT, -- of the register
  `name` varchar(40) DEFAULT 'a, b',
  `port` enum('Bergen','Cork') DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB;
INSERT INTO `ships` VALUES (1,'Astrid','Bergen'),(2,'O\'Hara; VALUES (1)','Cork'),(3,NULL,'Cork');
INSERT INTO crew (id, name) VALUES (1, 'Sean O''Brien');
"""


def rows(text: str) -> dict[str, str]:
    """Return the lines of each document, by its key."""
    return {d.key: d.text for d in read("dump.sql", text).documents}


def test_rows_of_a_dump_are_records_with_the_columns_of_their_tables() -> None:
    told = rows(MYSQL)
    assert [*told] == ["ships!1", "ships!2", "ships!3", "crew!1", "schema"]
    assert told["ships!1"] == "name: Astrid\nid: 1\nport: Bergen"
    assert "O'Hara; VALUES (1)" in told["ships!2"]
    assert "name" not in told["ships!3"]
    assert "Sean O'Brien" in told["crew!1"]
    assert "CREATE TABLE" in told["schema"]
    assert "Astrid" not in told["schema"]


def test_a_backslash_is_one_where_a_dump_is_none_of_mysql() -> None:
    dump = r"""CREATE TABLE public.files (id integer, folder text);
INSERT INTO public.files VALUES (1, 'C:\'), (2, E'D:');"""
    assert rows(dump)["files!1"].startswith("folder: C:\\\n")
    assert "folder: D:" in rows(dump)["files!2"]


def test_rows_that_postgres_copies_are_records() -> None:
    told = rows(
        """CREATE TABLE public.ships (
    id integer NOT NULL, -- of the register, never used twice
    name text, port text
);
COPY public.ships (id, name, port) FROM stdin;
1\tAstrid, of\\tSellenby\tBergen\\nNorth
2\tO'Hara\t\\N
\\.

COPY public.ships FROM stdin;
3\tPetrel\tCork
\\.
SELECT 1;
"""
    )
    assert [*told] == ["ships!1", "ships!2", "ships!3", "schema"]
    assert told["ships!1"] == "name: Astrid, of Sellenby\nid: 1\nport: Bergen\nNorth"
    assert told["ships!2"] == "name: O'Hara\nid: 2"
    assert "port: Cork" in told["ships!3"]
    assert "SELECT 1" in told["schema"]
    assert "Petrel" not in told["schema"]


@pytest.mark.parametrize(
    ("statement", "port"),
    [
        ("INSERT OR IGNORE INTO ships VALUES(1,'Astrid',replace('a\\nb','\\n',char(10)));", "a\nb"),
        ("INSERT INTO ships VALUES(1,'Astrid',unistr('a\\u000ab'));", "a\nb"),
        ("INSERT [dbo].[ships] ([id], [name], [port]) VALUES (1, N'Astrid', N'Cork')\nGO", "Cork"),
        ("INSERT ships VALUES (1, 'Astrid', CAST(N'1902-05' AS DateTime2(7)));", "1902-05"),
        (
            "INSERT INTO ships VALUES (1, 'Astrid', E'O\\'Hara''s') ON CONFLICT DO NOTHING;",
            "O'Hara's",
        ),
        ("INSERT INTO ships VALUES (1, 'Astrid', X'00FF');", None),
        ("INSERT INTO ships VALUES (1, _utf8mb4'Astrid', 0x00FF);", None),
    ],
)
def test_values_are_read_as_each_database_writes_them(statement: str, port: str | None) -> None:
    told = rows(f"CREATE TABLE ships (id int, name text, port text);\n{statement}")
    expected = "name: Astrid\nid: 1" + (f"\nport: {port}" if port else "")
    assert told["ships!1"] == expected


def test_a_table_of_one_column_keeps_all_its_rows() -> None:
    told = rows("INSERT INTO ships (name) VALUES ('Astrid'),('Petrel'),('Marigold');")
    assert [*told] == ["ships!row-1", "ships!row-2", "ships!row-3"]
    assert "Petrel" in told["ships!row-2"]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO unknown VALUES (1, 'x');",
        "INSERT INTO ships (id, name) SELECT id, name FROM boats;",
        "INSERT INTO ships (id, name) VALUES (1, now());",
        "INSERT INTO ships (id, name) VALUES (1);",
        "INSERT INTO ships (id, name) VALUES (1, 'x'",
        "COPY ships (id, name) FROM stdin;\n1\n\\.",
    ],
)
def test_rows_that_cannot_be_told_stay_code(statement: str) -> None:
    document = only(read("a.sql", statement))
    assert (document.text, document.metadata["language"]) == (statement, "SQL")


@pytest.mark.parametrize(
    "part",
    [
        "INSERT INTO t VALUES ('\n",
        "INSERT INTO t VALUES (E'\\'\n",
        "INSERT INTO t (",
        "INSERT INTO t VALUES (1),(1),",
        "COPY t FROM stdin;\n1\t2\n",
        "CREATE TABLE t (\n",
        "CREATE TABLE t (a -- x\n -- y\n",
        " -- (y\n",
    ],
)
def test_a_dump_of_beginnings_is_read_in_linear_time(part: str) -> None:
    def seconds(n: int) -> float:
        begun = time.process_time()
        only(read("a.sql", f"CREATE TABLE t (a int);\n{part * n}"))
        return time.process_time() - begun

    seconds(100)
    assert seconds(20_000) < 1 + 20 * seconds(2_000)
