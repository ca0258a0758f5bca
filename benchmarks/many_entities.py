"""What the explorer of a large graph costs, and a release as large as wanted.

It is an index several times over, each time in words of its own.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb

from benchmarks.index_speed import index_speed, podcast_files
from graphrag_pipeline.core.home import Home

ENTITIES = 41_600

# Each copy swaps its letters for others, so that no text is like that of another copy and the
# spans of mentions still hold. Every twentieth relationship is also one between two copies.
_LETTERS = "etaoinshrldcumwfgypb"
_COPIED = {
    "documents": ("id", "text title uri source"),
    "chunks": ("id document_id", "text"),
    "entities": ("id", "title description"),
    "entity_chunks": ("entity_id chunk_id", ""),
    "entity_aliases": ("entity_id canonical_id", "title canonical_title"),
    "relationships": ("id source_id target_id", "source target description"),
    "relationship_chunks": ("relationship_id chunk_id", ""),
    "hierarchy_communities": ("id parent_id", "title"),
    "hierarchy_members": ("community_id entity_id", ""),
    "hierarchy_reports": ("id community_id", "title summary full_content"),
}
_NUMBERED = {"documents", "chunks", "entities", "relationships", "hierarchy_communities"}
_LINKS = """
INSERT INTO relationships
SELECT r.* REPLACE ('x' || $copy || r.id AS id, 'c' || $copy || r.source_id AS source_id)
FROM original.relationships r WHERE hash(r.id) % 20 = 0
"""
_FINDINGS = """list_transform(findings, f -> {
    'summary': translate(f.summary, $letters, $others),
    'explanation': translate(f.explanation, $letters, $others),
    'chunk_id': 'c' || $copy || f.chunk_id, 'start_char': f.start_char, 'end_char': f.end_char})"""
_COUNTS = """
UPDATE releases SET n_documents = (SELECT count(*) FROM documents),
    n_chunks = (SELECT count(*) FROM chunks), n_entities = (SELECT count(*) FROM entities),
    n_relationships = (SELECT count(*) FROM relationships),
    n_communities = (SELECT count(*) FROM communities),
    n_reports = (SELECT count(*) FROM community_reports)
"""


def enlarged(home: Path, target: Path, n_entities: int) -> Path:
    """Write into ``target`` the release of ``home`` as often as it takes to have ``n_entities``.

    Vectors are those of the original alone.
    """
    shutil.copytree(home, target, dirs_exist_ok=True)
    file = Home(target).published
    file.unlink()
    shutil.copyfile(Home(home).published, file)
    with duckdb.connect(str(file)) as con:
        con.execute(f"ATTACH '{Home(home).published}' AS original (READ_ONLY)")
        (present,) = con.execute("SELECT count(*) FROM entities").fetchall()[0]
        for copy in range(1, -(-n_entities // max(present, 1))):
            _add_copy(con, copy)
        con.execute(_COUNTS)
    return target


def _add_copy(con: duckdb.DuckDBPyConnection, copy: int) -> None:
    given = {
        "copy": copy,
        "letters": _LETTERS,
        "others": _LETTERS[copy:] + _LETTERS[:copy],
    }
    for table, (ids, texts) in _COPIED.items():
        changes = [f"'c' || $copy || {name} AS {name}" for name in ids.split()]
        changes += [f"translate({name}, $letters, $others) AS {name}" for name in texts.split()]
        if table in _NUMBERED:
            changes.append(
                f"human_readable_id + $copy * (SELECT max(human_readable_id) + 1 "
                f"FROM original.{table}) AS human_readable_id"
            )
        if table == "hierarchy_reports":
            changes.append(f"{_FINDINGS} AS findings")
        statement = (
            f"INSERT INTO {table} SELECT * REPLACE ({', '.join(changes)}) FROM original.{table}"
        )
        con.execute(statement, {k: v for k, v in given.items() if f"${k}" in statement})
    con.execute(_LINKS, {"copy": copy})


def explorer_cost(home: Path, page: Path) -> tuple[float, float]:
    """Write the explorer of a home by the command; return megabytes, and CPU of its process."""
    before = _children_cpu()
    subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "graphrag_pipeline.cli", "explore", "-o", str(page)],
        env={**os.environ, "GRAPHRAG_HOME": str(home)},
        capture_output=True,
        check=True,
    )
    return page.stat().st_size / 1e6, _children_cpu() - before


def _children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main(data_dir: Path) -> None:
    """Print what the explorer costs on podcast transcripts, and on as many entities as wanted."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        podcast_files(data_dir, place / "all")
        index_speed(place / "all", place / "podcast")
        large = enlarged(place / "podcast", place / "large", ENTITIES)
        for home in (place / "podcast", large):
            with duckdb.connect(str(Home(home).published), read_only=True) as con:
                counts = con.sql("SELECT n_entities, n_relationships FROM releases").fetchall()[0]
            megabytes, seconds = explorer_cost(home, place / "graph.html")
            print(
                f"{counts[0]:,} entities, {counts[1]:,} relationships: {megabytes:.2f} MB, "
                f"{seconds:.2f} s CPU"
            )
