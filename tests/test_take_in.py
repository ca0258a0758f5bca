"""Taking finished batches in, all at once: as if one after the other, at the cost of their rows."""

from __future__ import annotations

import random

import duckdb
from hypothesis import given
from hypothesis import strategies as st
from quick_stores import bare_tables
from take_in_reference import take_in_one_by_one

from conftest import examples
from graphrag_pipeline.ingest.staging import DERIVED, of_batch, plan_take_in, take_in_staged

SOURCES = ("a", "b", "c", "d", "e")
STAGES = ("documents", "chunks", "extractions")
NO_NUMBER = "* EXCLUDE human_readable_id"
COMPARED = {
    "documents": NO_NUMBER,
    "chunks": NO_NUMBER,
    "claims": NO_NUMBER,
    **dict.fromkeys(("blocks", "extractions", "entity_mentions", "chunk_names"), "*"),
    **dict.fromkeys(("relationship_mentions", "graph_batches"), "*"),
    "batch_stages": "batch, stage, version, staged",
}
COLUMNS = {
    "chunks": "id, document_id, text",
    "extractions": "chunk_id, extractor, version",
    "entity_mentions": "* EXCLUDE batch",
    "relationship_mentions": "* EXCLUDE batch",
    "claims": "* EXCLUDE (batch, human_readable_id)",
    "chunk_names": "* EXCLUDE batch",
}


class Life:
    """A random life of an index at the level of its tables, in two files that get the same rows."""

    def __init__(self, seed: int, *sides: duckdb.DuckDBPyConnection) -> None:
        self.random = random.Random(seed)
        self.sides = sides
        self.contents: dict[str, tuple[str, int]] = {}
        self.batches: dict[str, dict[str, tuple[str, int] | None]] = {}
        self.tries = 0

    def live(self, steps: int) -> None:
        for _ in range(steps):
            act = self.random.choices(
                (self.cut, self.ingest, self.take_in), weights=(4, 6, 2), k=1
            )[0]
            act()
        for key in [*self.batches]:
            self.stage(key, 0)
        self.take_in()

    def cut(self) -> None:
        """Add, change, remove or rename sources: (document, version), None where one is gone."""
        changes: dict[str, tuple[str, int] | None] = {}
        for source in self.random.sample(SOURCES, self.random.randint(1, 3)):
            here = self.contents.get(source)
            act = self.random.choice(("put", "put", "remove", "rename"))
            if here is None or act == "put":
                changes[source] = (here[0] if here else source, self.random.randint(0, 2))
            elif act == "remove":
                changes[source] = None
            else:
                other = self.random.choice([s for s in SOURCES if s not in changes])
                changes |= {source: None, other: here}
        documents = [content[0] for content in changes.values() if content]
        staying = {s: c for s, c in self.contents.items() if s not in changes}
        if len({*documents, *(c[0] for c in staying.values())}) < len(documents) + len(staying):
            return
        self.contents = staying | {s: c for s, c in changes.items() if c}
        self.batches[f"{len(self.batches):03}"] = changes

    def ingest(self) -> None:
        if self.batches:
            self.stage(self.random.choice([*self.batches]), self.random.choice((0, 0, 0, 1, 2)))

    def stage(self, key: str, first: int) -> None:
        """Do a batch's stages from the first on, or from the first that was never done."""
        ((done,),) = self.rows(
            f"SELECT list(stage) FROM batch_stages WHERE batch = '{key}'", self.sides[0]
        )
        missing = [place for place, stage in enumerate(STAGES) if stage not in (done or ())]
        last = self.random.choices((2, 1, 0), weights=(6, 1, 1), k=1)[0]
        for place in range(min([first, *missing]), last + 1):
            rows = (self.documents, self.chunks, self.extractions)[place](key)
            for con in self.sides:
                for stage in STAGES[place:]:
                    con.execute(
                        "DELETE FROM batch_stages WHERE batch = ? AND stage = ?", [key, stage]
                    )
                for table in ("documents", "blocks", "chunks", *DERIVED)[(0, 2, 3)[place] :]:
                    con.execute(f"DELETE FROM staging.{table} WHERE batch = ?", [key])
                for table, values in rows:
                    marks = ", ".join("?" * len(values))
                    con.execute(f"INSERT INTO {table} VALUES ({marks})", values)
                con.execute(
                    "INSERT INTO batch_stages VALUES (?, ?, 'v', now(), 0, true)",
                    [key, STAGES[place]],
                )

    def documents(self, key: str) -> list[tuple[str, list]]:
        for con in self.sides:
            con.execute("DELETE FROM batch_sources WHERE batch = ?", [key])
        rows: list[tuple[str, list]] = []
        for source, content in self.batches[key].items():
            is_old = any(source in changes for k, changes in self.batches.items() if k > key)
            status = "superseded" if is_old and self.random.random() < 0.5 else "ok"
            rows.append(("batch_sources", [key, source, "add", None, 0, status, 1]))
            if content and status == "ok":
                document, version = content
                whole = [
                    document,
                    len(rows),
                    source,
                    source,
                    "t",
                    f"{version}",
                    1,
                    "{}",
                    "t",
                    key,
                    "",
                    [0, version + 1],
                ]
                rows += [
                    ("staging.documents", whole),
                    ("staging.blocks", [document, version, version + 1, "code", key]),
                ]
        return rows

    def chunks(self, key: str) -> list[tuple[str, list]]:
        documents = self.rows(
            f"SELECT id, content_hash FROM ({of_batch('documents')}) ORDER BY ALL",
            self.sides[0],
            {"key": key},
        )
        return [
            ("staging.chunks", [f"{id}{n}", n, id, n, 0, 1, 1, f"{id}{n}", key])
            for id, version in documents
            for n in (int(version), int(version) + 1)
        ]

    def extractions(self, key: str) -> list[tuple[str, list]]:
        chunks = self.rows(
            f"SELECT id FROM ({of_batch('chunks')}) ORDER BY ALL", self.sides[0], {"key": key}
        )
        again = self.random.random() < 0.4
        there = {
            id
            for (id,) in self.rows(
                """SELECT chunk_id FROM extractions WHERE status <> 'failed' UNION
                   SELECT chunk_id FROM staging.extractions
                   WHERE status <> 'failed' AND batch <> $key""",
                self.sides[0],
                {"key": key},
            )
        }
        rows: list[tuple[str, list]] = []
        for (id,) in chunks:
            if id in there and not again:
                continue
            self.tries += 1
            status, name = self.random.choice(("ok", "ok", "cut", "failed")), f"{self.tries}"
            rows.append(
                (
                    "staging.extractions",
                    [id, "nlp", "v", status, name, 1, 1, 0, 0, key, name, self.tries],
                )
            )
            if status != "failed":
                rows += [
                    ("staging.entity_mentions", [id, name, name, "T", "", 0, 1, key]),
                    ("staging.relationship_mentions", [id, name, "x", "", 1, 0, 1, key, ""]),
                    ("staging.claims", [name, 0, id, *[name] * 9, key]),
                    ("staging.chunk_names", [id, name, name, key]),
                ]
        return rows

    def take_in(self) -> None:
        """Take in on both sides; what is planned, done, and done one by one must be equal."""
        sets, one_by_one = self.sides
        plan_take_in(sets)
        views = ("chunks", *DERIVED)
        planned = {t: self.ids(sets, f"next_{t}") for t in views}
        assert take_in_staged(sets) == take_in_one_by_one(one_by_one)
        for table, columns in COMPARED.items():
            taken = self.table(sets, table, columns)
            assert taken == self.table(one_by_one, table, columns), table
            if table in planned:
                assert planned[table] == self.ids(sets, table), table
        for table in ("documents", "blocks", "chunks", *DERIVED):
            assert self.table(sets, f"staging.{table}") == self.table(
                one_by_one, f"staging.{table}"
            )

    def table(self, con: duckdb.DuckDBPyConnection, table: str, columns: str = "*") -> list:
        return self.rows(f"SELECT {columns} FROM {table} ORDER BY ALL", con)

    def ids(self, con: duckdb.DuckDBPyConnection, table: str) -> list:
        """What of a table does not change when its rows are taken in."""
        return self.table(con, table, COLUMNS[table.removeprefix("next_")])

    def rows(self, sql: str, con: duckdb.DuckDBPyConnection, given: dict | None = None) -> list:
        return con.execute(sql, given or {}).fetchall()


@examples(3)
@given(st.integers(0, 2**32))
def test_all_batches_at_once_are_as_one_after_the_other(seed):
    with bare_tables() as one, bare_tables() as other:
        Life(seed, one, other).live(steps=20)
