"""Names of one word that stand for several persons, as the view of homonyms tells them apart."""

from __future__ import annotations

from pathlib import Path

from graphrag_pipeline import Index
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.marts.sql import query_published

TEXTS = {
    "song": "Jaden Smith wrote the song. Smith sang it in Bergen. Anna Vik heard Vik sing.",
    "bridge": "Corey Smith built the bridge. Smith came from Oslo.",
    "both": "Corey Smith met Jaden Smith. Smith was late. Anna Vik came, too, and Vik left.",
}


def test_a_line_for_each_document_tells_apart_what_stands_for_somebody_else(tmp_path: Path):
    for name, text in TEXTS.items():
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / f"{name}.txt").write_text(text)
    settings = Settings.exactly({"home": str(tmp_path / "home")})
    index = Index(settings)
    index.update(tmp_path / "in")
    homonyms = "SELECT entity, in_some, in_others FROM homonyms"
    ((name, one, other),) = query_published(tmp_path / "home", homonyms)[1]
    assert (name, one, other) == ("Smith", ["in/bridge.txt"], ["in/song.txt"])
    lines = [f"split,Smith,Corey Smith,,{one[0]}", f"split,Smith,Jaden Smith,,{other[0]}"]
    (tmp_path / "home" / "aliases.csv").write_text(
        "\n".join(("action,a,b,note,documents", *lines)), "utf-8"
    )
    index.update(tmp_path / "in")
    people = "SELECT title, degree FROM entities WHERE title LIKE '%Smith' ORDER BY title"
    titles = query_published(tmp_path / "home", people)[1]
    assert [title for title, _ in titles].count("Corey Smith") == 1
    assert not query_published(tmp_path / "home", homonyms)[1]
