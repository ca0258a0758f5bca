"""Names that may stand for two things: counted with a release."""

from __future__ import annotations

import random
from importlib.resources import files
from pathlib import Path

import duckdb
import pytest

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.index import Index
from graphrag_pipeline.releases.homonyms import count_homonyms

TABLES = """
CREATE TABLE entities (id VARCHAR, title VARCHAR, type VARCHAR, degree BIGINT);
CREATE TABLE relationships (id VARCHAR, source_id VARCHAR, target_id VARCHAR);
CREATE TABLE relationship_chunks (relationship_id VARCHAR, chunk_id VARCHAR);
CREATE TABLE chunks (id VARCHAR, document_id VARCHAR);
CREATE TABLE documents (id VARCHAR, uri VARCHAR);
"""
TYPES = ("PERSON", "PERSON", "ORGANIZATION", "CONCEPT")
TWO = {
    "varde.md": "Li Wei is CFO of Varde Shipping. Li Wei lives in Odense.",
    "solna.md": "Li Wei is pilot of the Port of Solna. Li Wei works with Karin Boman.",
}
SPLIT = "action,a,b,note,documents\nsplit,Li Wei,Li Wei (pilot),,solna.md\n"


def graph_of_chance(seed: int) -> duckdb.DuckDBPyConnection:
    """Return the tables of sixty entities, a few of which are in most of some dozen documents."""
    chance = random.Random(seed)
    entities = {f"e{n:02d}": chance.choice(TYPES) for n in range(60)}
    chunks = {f"c{n:02d}": f"d{chance.randrange(30):02d}" for n in range(45)}
    found = set()
    for chunk in chunks:
        for _ in range(chance.randrange(1, 6)):
            one, other = (int(60 * chance.random() ** chance.choice((1, 3))) for _ in "ab")
            if one != other:
                found.add((f"e{min(one, other):02d}", f"e{max(one, other):02d}", chunk))
    pairs = sorted({(one, other) for one, other, _ in found})
    ends = [end for pair in pairs for end in pair]
    con = duckdb.connect()
    con.execute(TABLES)
    for table, rows in (
        ("entities", [(e, e.upper(), kind, ends.count(e)) for e, kind in entities.items()]),
        ("relationships", [("-".join(pair), *pair) for pair in pairs]),
        ("relationship_chunks", [(f"{one}-{other}", chunk) for one, other, chunk in found]),
        ("chunks", list(chunks.items())),
        ("documents", [(d, f"{d}.txt") for d in set(chunks.values())]),
    ):
        con.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
    view = files("graphrag_pipeline.releases").joinpath("published.sql").read_text("utf-8")
    con.execute(
        f"CREATE VIEW homonyms {view.partition('CREATE VIEW homonyms')[2].partition(';')[0]}"
    )
    return con


def test_as_many_are_counted_as_the_view_lists():
    counts = []
    for seed in range(30):
        with graph_of_chance(seed) as con:
            (listed,) = con.execute("SELECT count(*) FROM homonyms").fetchone()
            assert count_homonyms(con) == listed, seed
            counts.append(listed)
    assert min(counts) < max(counts)
    assert sum(counts) > 30


@pytest.fixture
def index(tmp_path: Path) -> Index:
    (tmp_path / "documents").mkdir()
    for name, text in TWO.items():
        (tmp_path / "documents" / name).write_text(f"# {name}\n\n{text}\n")
    made = Index(Settings(home=str(tmp_path / "home")))
    made.update(tmp_path / "documents")
    return made


def test_a_name_of_two_is_counted_until_it_is_split(index: Index, tmp_path: Path) -> None:
    assert index.status()["homonyms"] == 1
    (row,) = index.sql("SELECT n_homonyms FROM releases")[1]
    assert tuple(row) == (1,)
    (tmp_path / "home" / "aliases.csv").write_text(SPLIT)
    index.update(tmp_path / "documents")
    assert index.status()["homonyms"] == 0
