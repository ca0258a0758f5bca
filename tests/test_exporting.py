"""Exports, each read by what it is for: networkx, a CSV reader, a grammar, and our own import."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import duckdb
import networkx
import polars as pl
import pytest
import yaml
from query_fixture import publish, release_row
from typer.testing import CliRunner

from conftest import workspace_of
from graphrag_pipeline.cli import app as cli
from graphrag_pipeline.core.addresses import PermanentLinks, links_of
from graphrag_pipeline.core.errors import InputError, NothingPublishedError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.exchange.exporting import EXPORTERS, export_release
from graphrag_pipeline.exchange.importing import import_graphrag
from graphrag_pipeline.graph.communities import update_communities
from graphrag_pipeline.reports.extractive import ExtractiveWriter
from graphrag_pipeline.reports.levels import update_reports
from graphrag_pipeline.store.index_store import insert
from graphrag_pipeline.structures.registry import all_hierarchies

NASTY = "a\x00b\x0bc\ufffe <&>\"' ]]> \r\n\t;\\,{x} \u2028红\\n"
AS_XML = NASTY.translate(dict.fromkeys(map(ord, "\x00\x0b\ufffe")))
SETTINGS = Settings()
MICROSOFT = (
    "documents",
    "text_units",
    "entities",
    "relationships",
    "communities",
    "community_reports",
    "covariates",
)
GRAPH = {
    "entities": "SELECT title, type, description, human_readable_id FROM entities",
    "relationships": """
        SELECT least(source, target), greatest(source, target), weight, description,
               human_readable_id FROM relationships""",
    "communities": """
        SELECT c.human_readable_id, c.level, c.last_level, p.human_readable_id, c.size
        FROM communities c LEFT JOIN communities p ON p.id = c.parent_id""",
    "members": """
        SELECT c.human_readable_id, m.level, e.title FROM community_members m
        JOIN communities c ON c.id = m.community_id JOIN entities e ON e.id = m.entity_id""",
    "reports": """
        SELECT c.human_readable_id, r.title, summary, full_content, rating, rating_explanation,
               list_transform(findings, lambda f: [f.summary, f.explanation])
        FROM community_reports r JOIN communities c ON c.id = community_id""",
    "documents": "SELECT title, text FROM documents",
    "units": """
        SELECT d.title, start_char, end_char FROM chunks c
        JOIN documents d ON d.id = document_id""",
    "claims": "SELECT subject, object, type, status, description, source_text FROM claims",
    "mentions": """
        SELECT e.title, c.text FROM entity_chunks JOIN entities e ON e.id = entity_id
        JOIN chunks c ON c.id = chunk_id""",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A published index with texts that break careless writers."""
    place = publish(tmp_path_factory.mktemp("published"))
    with duckdb.connect(place / "published.duckdb") as con:
        con.execute("UPDATE entities SET description = $1 WHERE title = 'Scrooge'", [NASTY])
        con.execute(
            "UPDATE relationships SET description = $1, type = $1 WHERE target = 'Paris'", [NASTY]
        )
        con.execute("UPDATE hierarchy_reports SET full_content = $1 WHERE level = 0", [NASTY])
    return place


def rows(home: Path, query: str, file: str = "published.duckdb") -> list[tuple]:
    with duckdb.connect(home / file, read_only=True) as con:
        return con.execute(query).fetchall()


def one(home: Path, query: str):
    return rows(home, query)[0][0]


def communities_by_level(home: Path) -> Counter:
    return Counter(
        rows(
            home,
            """SELECT entity_id, m.level, c.human_readable_id FROM community_members m
               JOIN communities c ON c.id = community_id""",
        )
    )


@pytest.mark.parametrize(
    ("name", "nasty"), [("graphml", AS_XML), ("json", NASTY)], ids=["graphml", "json"]
)
def test_networkx_reads_the_whole_graph_with_all_it_knows(home, tmp_path, name, nasty):
    target = tmp_path / "graph"
    done = export_release(home, name, target)
    graph = (
        networkx.read_graphml(target)
        if name == "graphml"
        else networkx.node_link_graph(json.loads(target.read_text()), edges="edges")
    )
    if name == "graphml":
        assert all(node["label"] == node["title"] for _, node in graph.nodes(data=True))
    expected = rows(
        home, "SELECT id, title, type, degree, frequency, human_readable_id FROM entities"
    )
    found = [
        (node, *(given[k] for k in ("title", "type", "degree", "frequency", "human_readable_id")))
        for node, given in graph.nodes(data=True)
    ]
    assert sorted(found) == sorted(expected)
    levels = Counter(
        (node, level, graph.nodes[node][f"community_level_{level}"])
        for node in graph
        for level in range(3)
    )
    assert levels == communities_by_level(home)
    edges = rows(
        home, "SELECT source_id, target_id, weight, pmi, combined_degree FROM relationships"
    )
    assert graph.number_of_edges() == len(edges)
    for source, target_id, *numbers in edges:
        given = graph.edges[source, target_id]
        assert [given[k] for k in ("weight", "pmi", "combined_degree")] == numbers
    scrooge = one(home, "SELECT id FROM entities WHERE title = 'Scrooge'")
    assert graph.nodes[scrooge]["description"] == nasty
    for text in ("description", "type"):
        assert sum(d[text] == nasty for _, _, d in graph.edges(data=True)) == 1
    assert done.files[0].rows == {"nodes": len(expected), "edges": len(edges)}


def test_neo4j_files_say_what_they_hold_and_every_end_exists(home, tmp_path):
    folder = tmp_path / "neo4j"
    export_release(home, "neo4j", folder)
    tables = {}
    for file in folder.glob("*.csv"):
        with file.open(newline="") as lines:
            tables[file.stem] = list(csv.DictReader(lines))
    header = re.compile(
        r"\w+(:(ID\(\w+\)|int|long|double|string\[\]))?|:LABEL|:TYPE|:(START|END)_ID\(\w+\)"
    )
    ids, ends = {}, []
    for table in tables.values():
        for column in table[0]:
            assert header.fullmatch(column)
            if space := re.search(r":ID\((\w+)\)", column):
                ids[space[1]] = {row[column] for row in table}
            if space := re.search(r"_ID\((\w+)\)", column):
                ends += [(space[1], row[column]) for row in table]
    assert all(end in ids[space] for space, end in ends)
    counts = {name: len(table) for name, table in tables.items()}
    assert counts["entities"] == one(home, "SELECT count(*) FROM entities")
    assert counts["mentions"] == one(home, "SELECT count(*) FROM entity_chunks")
    assert counts["related"] == one(home, "SELECT count(*) FROM relationships")
    assert counts["part_of"] == counts["chunks"]
    assert counts["describes"] == counts["reports"]
    scrooge = next(row for row in tables["entities"] if row["title"] == "Scrooge")
    assert scrooge["description"] == NASTY
    script = folder / "import.sh"
    subprocess.run(["sh", "-n", script], check=True)
    assert set(re.findall(r"=(\w+)\.csv", script.read_text())) == set(tables)


@pytest.mark.parametrize("name", ["graphml", "json", "neo4j", "rdf"])
def test_a_release_of_an_older_program_without_types_of_relationships_is_exported(
    home, tmp_path, name
):
    older = tmp_path / "older"
    shutil.copytree(home, older)
    with duckdb.connect(older / "published.duckdb") as con:
        con.execute("ALTER TABLE relationships DROP COLUMN type")
        con.execute("UPDATE meta SET value = '11' WHERE key = 'schema_version'")
    exports = [export_release(place, name, tmp_path / place.name / "x") for place in (home, older)]
    assert [file.rows for file in exports[0].files] == [file.rows for file in exports[1].files]


def test_rdf_keeps_to_the_grammar_of_n_triples(home, tmp_path):
    target = tmp_path / "graph.nt"
    export_release(home, "rdf", target)
    iri, text = r"<[^\x00-\x20<>\"{}|^`\\]+>", r'"(?:[^\x22\x5C\x0A\x0D]|\\[tbnrf"\'\\])*"'
    triple = re.compile(rf"({iri}) ({iri}) ({iri}|{text}(?:\^\^{iri})?) \.")
    lines = target.read_bytes().decode().split("\n")
    found = [triple.fullmatch(line) for line in lines if line]
    assert all(found)
    triples = [match.groups() for match in found if match]
    concepts = {s for s, _, o in triples if o.endswith("core#Concept>")}
    related = [(s, o) for s, p, o in triples if p.endswith("core#related>")]
    assert len(concepts) == one(home, "SELECT count(*) FROM entities")
    assert len(related) == one(home, "SELECT count(*) FROM relationships")
    assert all({s, o} <= concepts for s, o in related)
    definitions = {json.loads(o) for _, p, o in triples if p.endswith("core#definition>")}
    assert AS_XML in definitions


ODD = "a/b ?'&#<>é"


def test_graphs_and_notes_link_to_the_server_that_the_settings_name(home, tmp_path):
    settings = Settings(home=str(home), server={"address": "https://graph.example.com/x"})
    links = links_of(settings, "r1")
    assert links is not None
    wanted = {links.of("entities", id) for (id,) in rows(home, "SELECT id FROM entities")}
    assert links_of(settings, "r1", home=tmp_path) is None
    for name in ("graphml", "json", "neo4j", "rdf", "obsidian"):
        target = tmp_path / name
        export_release(home, name, target, settings=settings)
        assert links_in(target, name) >= wanted, name
        export_release(home, name, tmp_path / f"{name}-plain", settings=Settings(home=str(home)))
        assert not links_in(tmp_path / f"{name}-plain", name)
    with (tmp_path / "neo4j" / "chunks.csv").open(newline="") as lines:
        chunks = {row["id:ID(Chunk)"]: row["link"] for row in csv.DictReader(lines)}
    places = rows(home, "SELECT id, document_id, start_char, end_char FROM chunks")
    assert chunks == {id: links.of("documents", of, (s, e)) for id, of, s, e in places}


def test_a_link_is_the_same_by_sql_and_holds_whatever_an_id_is():
    links = PermanentLinks("https://h/it's/", "a&b c#", "r?1")
    by_sql = f"SELECT {links.sql('documents', '$id', ('1', '2'))}"
    found = duckdb.execute(by_sql, {"id": ODD}).fetchone()
    assert found == (links.of("documents", ODD, (1, 2)),)
    parts = urlsplit(found[0])
    assert unquote(parts.path.rpartition("/")[2]) == ODD
    query = {"collection": "a&b c#", "release": "r?1", "start": "1", "end": "2"}
    assert dict(parse_qsl(parts.query)) == query


def links_in(target: Path, name: str) -> set[str]:
    """Return the links of an export, as a reader of its format sees them."""
    files = [file for file in target.rglob("*") if file.is_file()] if target.is_dir() else [target]
    if name == "graphml":
        nodes = networkx.read_graphml(target).nodes(data=True)
        return {node["link"] for _, node in nodes if "link" in node}
    if name == "json":
        return {node["link"] for node in json.loads(target.read_text())["nodes"] if "link" in node}
    text = "\n".join(file.read_text() for file in files)
    return set(re.findall(r"https://graph\.example\.com/x/[^\s\"<>,]+", text))


HOSTILE_TITLES = (
    "CON", "nul.txt", "scrooge", "SCROOGE", "a/../../b", "..", "", "x" * 400, "红" * 200,
    "a]]b|c#d^e",
)  # fmt: skip


def test_every_link_of_a_vault_has_its_note_whatever_things_are_called(home, tmp_path):
    index, vault = tmp_path / "index", tmp_path / "vault"
    shutil.copytree(home, index)
    with duckdb.connect(index / "published.duckdb") as con:
        ids = [key for (key,) in con.execute("SELECT id FROM entities ORDER BY id").fetchall()]
        for key, title in zip(ids, HOSTILE_TITLES, strict=False):
            con.execute("UPDATE entities SET title = $1 WHERE id = $2", [title, key])
        con.execute("UPDATE documents SET title = 'Paris', text = '[[x]] ![](http://a) <b> #t `='")
        con.execute("UPDATE relationships SET description = 'so [[nowhere]]' || chr(10) || '## x'")
    exported = export_release(index, "obsidian", vault)
    notes = {path.stem: path for path in vault.rglob("*.md")}
    folders = Counter(path.parent.name for path in notes.values())
    tables = {"entities": "entities", "reports": "community_reports", "documents": "documents"}
    assert folders == {name: one(home, f"SELECT count(*) FROM {t}") for name, t in tables.items()}
    assert folders == {file.name: file.rows["notes"] for file in exported.files}
    assert len({name.casefold() for name in notes}) == len(notes) == sum(folders.values())
    reserved = re.compile(r"(con|nul)(\..*)?|.*[\\/:*?\"<>|#^\[\]].*|.*[. ]|\..*", re.I)
    assert not [name for name in notes if reserved.fullmatch(name) or len(name.encode()) > 150]
    texts = {name: path.read_text() for name, path in notes.items()}
    links = [link for text in texts.values() for link in re.findall(r"\[\[(.*?)\]\]", text)]
    assert {link.partition("|")[0] for link in links} <= set(notes)
    n_ends = 2 * one(home, "SELECT count(*) FROM relationships")
    assert (
        sum("so \\[\\[nowhere" in line for t in texts.values() for line in t.split("\n")) == n_ends
    )
    assert "\\[\\[x\\]\\] !\\[\\](http://a) \\<b> \\#t \\`\\=" in texts["Paris (document)"]
    matter = yaml.safe_load(texts["Fezziwig"].split("---\n")[1]) if "Fezziwig" in texts else {}
    assert set(matter) <= {"title", "type", "degree", "community"}
    for place in ("own.md", "reports/own.md"):
        (vault / place).write_text("mine")
    with duckdb.connect(index / "published.duckdb") as con:
        con.execute("DELETE FROM hierarchy_reports")
    export_release(index, "obsidian", vault, force=True)
    assert len(list(vault.rglob("*.md"))) == len(notes) - folders["reports"] + 2
    assert [note.name for note in (vault / "reports").glob("*.md")] == ["own.md"]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_every_table_is_exported_as_it_is(home, tmp_path, kind):
    folder = tmp_path / kind
    done = export_release(home, kind, folder, raw=True)
    tables = {
        name
        for (name,) in rows(
            home, "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main'"
        )
        if not name.startswith("hierarchy_")
    } | {view for hierarchy in all_hierarchies() for view in hierarchy.views}
    assert {"communities", "hirag_communities", "attributed_communities"} < tables
    assert {file.stem for file in folder.iterdir()} == tables
    counts = {Path(file.name).stem: file.rows["rows"] for file in done.files}
    assert counts == {name: one(home, f"SELECT count(*) FROM {name}") for name in tables}
    titles = "SELECT title, description FROM {} ORDER BY id"
    read = duckdb.sql(titles.format(f"'{folder}/entities.{kind}'")).fetchall()
    assert read == rows(home, titles.format("entities"))
    if kind == "csv":
        with (folder / "community_reports.csv").open(newline="") as lines:
            findings = [json.loads(row["findings"]) for row in csv.DictReader(lines)]
        assert all(found[0]["explanation"] for found in findings)


def test_an_index_and_a_folder_with_a_quote_in_their_names_are_exported(home, tmp_path):
    index, folder = tmp_path / "Ann's index", tmp_path / "Ann's papers" / "tables"
    shutil.copytree(home, index)
    export_release(index, "csv", folder, tables=["documents"])
    with (folder / "documents.csv").open(newline="") as lines:
        titles = [row["title"] for row in csv.DictReader(lines)]
    assert sorted(titles) == sorted(title for (title,) in rows(home, "SELECT title FROM documents"))


def test_what_was_exported_is_imported_as_the_same_graph(home, tmp_path):
    done = export_release(home, "graphrag", tmp_path / "story")
    again = imported(tmp_path / "story", tmp_path / "again")
    for what in set(GRAPH) - {"documents", "units", "mentions"}:
        assert table(again, what) == table(home, what), what
    given = set(rows(home, GRAPH["documents"]))
    assert given <= set(rows(again, GRAPH["documents"]))
    assert len(done.lost) > 2


@pytest.fixture(scope="module")
def carol_home(tmp_path_factory, shared_data):
    return imported(shared_data / "carol_index", tmp_path_factory.mktemp("carol"))


@pytest.mark.shared_data
def test_a_real_index_survives_import_and_export_whole(carol_home, shared_data, tmp_path):
    export_release(carol_home, "graphrag", tmp_path / "carol_index")
    for name in MICROSOFT:
        ours, theirs = (
            pl.read_parquet(folder / f"{name}.parquet")
            for folder in (tmp_path / "carol_index", shared_data / "carol_index")
        )
        empty = [column for column, kind in theirs.schema.items() if kind == pl.Null]
        assert ours.columns == theirs.columns
        assert ours.drop(empty).schema == theirs.drop(empty).schema, name
        assert all(ours[column].null_count() == len(ours) for column in empty)
    again = imported(tmp_path / "carol_index", tmp_path / "again")
    for what in GRAPH:
        assert table(again, what) == table(carol_home, what), what


def imported(folder: Path, home: Path) -> Path:
    """Import an index, and put what came of it where readers look."""
    workspace = workspace_of(home, SETTINGS)
    import_graphrag(folder, workspace)
    store = workspace.store
    update_communities(store, SETTINGS.communities)
    writer = ExtractiveWriter(SETTINGS.reports)
    update_reports(store, SETTINGS.reports, 0, and_deeper=True, writer=writer)
    with store.transaction() as con:
        insert(con, "releases", release_row("none", "r1", {}, Counter()))
    store.copy_to(home / "published.duckdb")
    return home


def table(home: Path, what: str) -> list[str]:
    return sorted(map(repr, rows(home, GRAPH[what])))


def test_nothing_is_written_over_and_nothing_is_left_half_done(home, tmp_path):
    folder, file = tmp_path / "tables", tmp_path / "graph.json"
    with pytest.raises(InputError, match="there is no table"):
        export_release(home, "csv", folder, tables=['x" UNION SELECT 1; --'])
    with pytest.raises(InputError, match="--table is for parquet, csv"):
        export_release(home, "json", file, tables=["entities"])
    assert list(tmp_path.iterdir()) == []
    folder.mkdir()
    (folder / "own.txt").write_text("mine")
    file.write_text("mine")
    for name, target in (("csv", folder), ("json", file)):
        with pytest.raises(InputError, match="--force"):
            export_release(home, name, target)
    with pytest.raises(InputError, match="is a folder"):
        export_release(home, "json", folder, force=True)
    with pytest.raises(InputError, match="is a file"):
        export_release(home, "csv", file, force=True)
    assert file.read_text() == "mine"
    export_release(home, "csv", folder, tables=["entities"], force=True)
    export_release(home, "json", file, force=True)
    assert {path.name for path in folder.iterdir()} == {"own.txt", "entities.csv"}
    assert json.loads(file.read_text())["nodes"]
    assert sorted(tmp_path.iterdir()) == [file, folder]


def test_the_command_says_what_it_wrote_and_what_is_not_in_it(home, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRAPHRAG_HOME", str(home))
    monkeypatch.setattr(sys, "argv", ["graphrag-pipeline", "export", "graphml"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert not stopped.value.code
    said = capsys.readouterr().out
    assert "14 nodes, 11 edges" in said
    assert "Not in it" in said
    assert networkx.read_graphml("graph.graphml").number_of_nodes() == 14
    monkeypatch.setattr(
        sys, "argv", ["graphrag-pipeline", "export", "graphml", "--force", "--json"]
    )
    with pytest.raises(SystemExit):
        cli.main()
    assert json.loads(capsys.readouterr().out)["files"][0]["rows"] == {"nodes": 14, "edges": 11}


def test_the_command_offers_every_format_and_names_them_where_there_is_no_such():
    shown = CliRunner().invoke(cli.app, ["export", "--help"], env={"COLUMNS": "200"}).output
    assert f"One of {', '.join(EXPORTERS.own)}, or " in shown
    refused = CliRunner().invoke(cli.app, ["export", "foo"])
    assert refused.exit_code == 2
    assert f"unknown format 'foo': use one of {', '.join(EXPORTERS.own)}" in refused.output


def test_an_index_that_is_not_published_cannot_be_exported(tmp_path):
    with pytest.raises(NothingPublishedError):
        export_release(tmp_path, "json", tmp_path / "graph.json")
