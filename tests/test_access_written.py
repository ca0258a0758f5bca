"""What a model wrote of several documents: shown to who may read all, and to nobody else."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest
from strict_server import StrictServer

from graphrag_pipeline import Index, Settings
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.query import QueryEngine

HR = "hr"
TEXTS = {
    "public/mill": "Alba Crane met Dorian Feld at Halden Mill. The council praised Halden Mill.",
    "public/line": "Brandvik Line carried grain for Halden Mill. Alba Crane ran Brandvik Line.",
    "hr/ledger": "Alba Crane dismissed Dorian Feld over the Quagga Ledger at Halden Mill.",
    "hr/affair": "Marek Vale hid the Quagga Ledger at Brandvik Line. Marek Vale left.",
    "public/weir": "Osric Thale built the Northern Weir near Halden Mill. The weir held in spring, "
    "and Osric Thale was thanked by the council of Bergen. Bergen paid for the Northern Weir.",
    "public/fair": "Lucan Vane opened the Bergen Fair. Lucan Vane sold horses to Osric Thale, and "
    "the Bergen Fair closed late. Brandvik Line brought visitors to the Bergen Fair.",
    "hr/review": "Dorian Feld wrote to Imre Tolliver that Osric Thale was to leave. Imre Tolliver "
    "kept the letter in the Quagga Ledger, which Alba Crane never saw.",
}
RULES = [{"match": "public/**", "labels": ["staff", "hr"]}, {"match": "hr/", "labels": ["hr"]}]
WRITINGS = """
SELECT hierarchy AS kind, community_id AS id, full_content AS text FROM hierarchy_reports
UNION ALL SELECT 'raptor node', id, text FROM raptor_nodes
UNION ALL SELECT 'hirag entity', id, description FROM hirag_entities
"""
KINDS = {"graph", "hirag", "attributed", "raptor node", "hirag entity"}


@dataclass(frozen=True)
class Written:
    """An index whose every report and summary a model has written, by its documents' labels."""

    settings: dict[str, Any]
    documents: Path
    server: StrictServer

    def index(self, rules: Sequence[object] = RULES) -> Index:
        """Return the index under some rules."""
        access = {"mode": "filtered", "rules": list(rules)}
        return Index(Settings.exactly({**self.settings, "access": access}))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    played = importlib.import_module("benchmarks.played_answers")
    folder = tmp_path_factory.mktemp("written")
    for name, text in TEXTS.items():
        file = folder / "documents" / f"{name}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    with pytest.MonkeyPatch.context() as patch, StrictServer(played.played_answer) as server:
        patch.setenv("OPENAI_API_KEY", "sk-test")
        settings = {
            "profile": "llm",
            "home": str(folder / "home"),
            "llm": {"base_url": server.base_url, "retry_seconds": 0.005, "max_retries": 2},
            "chunks": {"size": 20, "overlap": 4},
            "hierarchies": {"raptor": True, "attributed": True, "hirag": True},
        }
        built = Written(settings, folder / "documents", server)
        built.index().update(built.documents)
        yield built


def sources(index: Index) -> dict[tuple[str, str], set[str]]:
    """Return the folders of the documents that each thing was written from."""
    _, rows = index.sql(
        "SELECT w.kind, w.id, split_part(d.uri, '/', -2) FROM written_from w "
        "JOIN documents d ON d.id = w.document_id"
    )
    found: dict[tuple[str, str], set[str]] = {}
    for kind, id, folder in rows:
        found.setdefault((str(kind), str(id)), set()).add(str(folder))
    return found


def test_all_that_was_written_says_from_which_documents(written: Written) -> None:
    index = written.index()
    _, rows = index.sql(WRITINGS)
    assert {(kind, id) for kind, id, _ in rows} == sources(index).keys()
    assert {kind for kind, _, _ in rows} == KINDS


def test_what_mixes_classes_is_shown_to_none_who_lacks_one(written: Written) -> None:
    index = written.index()
    made = {str(text) for _, _, text in index.sql(WRITINGS)[1]}
    mixed = {key for key, folders in sources(index).items() if HR in folders}
    assert {kind for kind, _ in mixed} == KINDS
    with index.view(["staff"]).open() as engine:
        shown = engine.index.rows(WRITINGS)
    assert not {(row["kind"], row["id"]) for row in shown if row["text"] in made} & mixed
    with index.view(["hr"]).open() as engine:
        everything = engine.index.rows(WRITINGS)
    assert {row["text"] for row in everything} == made


def test_new_labels_count_at_once_and_ask_no_model(written: Written) -> None:
    before, n_asked = sources(written.index()), len(written.server.requests)
    assert n_asked
    rules = {
        "open": [{"match": "*", "labels": ["staff", "hr"]}],
        "closed": [*RULES, {"match": "/public/line.md", "labels": ["hr"]}],
        "as before": RULES,
    }
    texts: dict[str, set[str]] = {}
    for name, those in rules.items():
        index = written.index(those)
        assert index.update(written.documents).is_new
        assert sources(index) == before
        with index.view(["staff"]).open() as engine:
            texts[name] = {row["text"] for row in engine.index.rows(WRITINGS)}
    assert len(written.server.requests) == n_asked
    made = {str(text) for _, _, text in written.index().sql(WRITINGS)[1]}
    assert texts["open"] == made
    assert len(texts["closed"] & made) <= len(texts["as before"] & made) < len(made)


def test_a_filter_shows_a_report_a_little_behind_that_says_what_it_was_written_from(
    tmp_path: Path,
) -> None:
    texts = {
        "left": "Alba Crane met Dorian Feld at Halden Mill. Dorian Feld praised Halden Mill.",
        "right": "Imre Tolliver sold Bergen Fair to Osric Thale. Osric Thale closed Bergen Fair.",
    }
    for name, text in texts.items():
        (tmp_path / "documents" / name).mkdir(parents=True)
        (tmp_path / "documents" / name / f"{name}.md").write_text(text)
    rules = [{"match": f"{name}/", "labels": [name]} for name in texts]
    settings = Settings.exactly(
        {"home": str(tmp_path / "home"), "access": {"mode": "filtered", "rules": rules}}
    )
    Index(settings).update(tmp_path / "documents")

    def writers(sql: str) -> set[str]:
        file = Home(tmp_path / "home").published
        file.chmod(0o600)
        with duckdb.connect(str(file)) as con:
            con.execute(sql)
        with QueryEngine(settings=settings) as engine:
            left = engine.index.limited({"title": ("Left",)})
            return {row["writer"] for row in left.rows("FROM community_reports")}

    assert writers("SELECT 1") == {"extractive"}
    assert writers("UPDATE hierarchy_reports SET outdated = 0.05") == {"extractive"}
    assert writers("DELETE FROM written_from") == {"stand-in"}
