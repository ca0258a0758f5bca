"""The page's query for names of one word that stand for several persons writes lines that work."""

from __future__ import annotations

import re
from pathlib import Path

from graphrag_pipeline import Index
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.marts.sql import query_published

PAGE = (Path(__file__).parents[1] / "docs" / "how-to" / "run.md").read_text("utf-8")
TEXTS = {
    "song": "Jaden Smith wrote the song. Smith sang it in Bergen. Anna Vik heard Vik sing.",
    "bridge": "Corey Smith built the bridge. Smith came from Oslo.",
    "both": "Corey Smith met Jaden Smith. Smith was late. Anna Vik came, too, and Vik left.",
}


def test_each_line_tells_apart_what_stands_for_somebody_else(tmp_path: Path):
    for name, text in TEXTS.items():
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / f"{name}.txt").write_text(text)
    settings = Settings.exactly({"home": str(tmp_path / "home")})
    index = Index(settings)
    index.update(tmp_path / "in")
    query = next(q for q in re.findall(r"```sql\n(.*?)```", PAGE, re.S) if "'split,'" in q)
    lines = [str(line) for (line,) in query_published(tmp_path / "home", query)[1]]
    assert lines == [
        "split,Smith,Corey Smith,,in/bridge.txt",
        "split,Smith,Jaden Smith,,in/song.txt",
    ]
    (tmp_path / "home" / "aliases.csv").write_text(
        "\n".join(("action,a,b,note,documents", *lines)), "utf-8"
    )
    index.update(tmp_path / "in")
    people = "SELECT title, degree FROM entities WHERE title LIKE '%Smith' ORDER BY title"
    titles = query_published(tmp_path / "home", people)[1]
    assert [title for title, _ in titles].count("Corey Smith") == 1
    assert not query_published(tmp_path / "home", query)[1]
