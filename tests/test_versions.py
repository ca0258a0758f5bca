"""A stage whose SQL or constants change gets a new version, or someone says why not.

What a stage makes is made again only when its version changes. The version is raised by hand, so
this file keeps beside it a hash of the SQL and the constants it stands for. To record a change:
raise the version if rows may differ by it, then run ``python tests/test_versions.py``.
"""

from __future__ import annotations

import ast
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from graphrag_pipeline.ingest.reading.versions import VERSIONS

ROOT = Path(__file__).parents[1] / "graphrag_pipeline"
RECORD = Path(__file__).parent / "snapshots" / "stage_versions.json"

_READERS = "ingest/reading/versions.py"


def _reading(modules: str) -> tuple[str, ...]:
    return tuple(f"ingest/reading/{module}.py" for module in modules.split())


# Each version, by file and name, and the files whose SQL and constants it stands for.
GOVERNED: Mapping[str, tuple[str, ...]] = {
    "ingest/documents.py:READER_VERSION": (
        "ingest/documents.py",
        *_reading("archives blocks cleaning decoding extras fields files line_blocks model"),
        "data/fields.txt",
    ),
    f"{_READERS}:bank statements": _reading("bank_statements"),
    f"{_READERS}:bibliographies": _reading("bibtex latex"),
    f"{_READERS}:calendars": (*_reading("calendars"), "data/fields.txt"),
    f"{_READERS}:catalogues": _reading("catalogues"),
    f"{_READERS}:chat pages": _reading("chat_pages"),
    f"{_READERS}:configs": _reading("configs"),
    f"{_READERS}:family trees": _reading("gedcom"),
    f"{_READERS}:LaTeX": (*_reading("latex latex_macros latex_theorems"), "data/signs.txt"),
    f"{_READERS}:manual pages": (*_reading("manual_pages"), "data/signs.txt"),
    f"{_READERS}:maps": _reading("map_places xml_tree"),
    f"{_READERS}:outlines": _reading("outlines"),
    f"{_READERS}:Outlook": _reading("outlook"),
    f"{_READERS}:packed": _reading("packed"),
    f"{_READERS}:plain": _reading("files text_tables"),
    f"{_READERS}:text": (
        *_reading("broken_words chat_days chat_logs facts head_fields irc_logs pasted_chats"),
        "data/documents.txt",
    ),
    f"{_READERS}:references": (*_reading("ris"), "data/fields.txt"),
    f"{_READERS}:subtitles": _reading("subtitles"),
    f"{_READERS}:web archives": _reading("mail mail_headers"),
    f"{_READERS}:XML": (
        *_reading("bank_statements library_records spreadsheet_xml tei xml_text xml_tree"),
        "data/fields.txt",
    ),
    f"{_READERS}:code": (*_reading("code"), "data/code.txt"),
    f"{_READERS}:components": _reading("components"),
    f"{_READERS}:graphs": _reading("code"),
    f"{_READERS}:HTML": _reading("html html_events html_lines html_links preformatted"),
    f"{_READERS}:mail": (
        *_reading("mail mail_headers mail_quoted winmail"),
        "data/documents.txt",
    ),
    f"{_READERS}:Markdown": (
        *_reading("head_fields markdown markdown_markup note_marks wiki_links"),
        "data/documents.txt",
    ),
    f"{_READERS}:named": _reading("code files text_tables"),
    f"{_READERS}:notebook": _reading("notebook notebook_outputs"),
    f"{_READERS}:office": _reading(
        "cell_formats cell_notes charts docx docx_notes docx_numbers epub equations opendocument "
        "pptx sheets table_head"
    ),
    f"{_READERS}:PDF": _reading(
        "ocr pdf pdf_columns pdf_forms pdf_layout pdf_lines pdf_rules pdf_tables pdf_text"
    ),
    f"{_READERS}:records": (
        *_reading(
            "cell_markup chat_tables chats library_records record_columns records script_archives"
        ),
        *_reading("slack sql_dumps"),
        *_reading("table_head tables tables_beside"),
        "core/records.py",
        "core/turned_tables.py",
        "data/nlp_records.txt",
    ),
    f"{_READERS}:reStructuredText": _reading("rst text_tables"),
    f"{_READERS}:RTF": _reading("rtf"),
    f"{_READERS}:wikis": (*_reading("light_wikis wikitext"), "data/documents.txt"),
    f"{_READERS}:XLS": _reading("cell_formats cell_notes old_workbooks sheets"),
    "ingest/chunking.py:CHUNKER_VERSION": ("ingest/chunking.py",),
    "extraction/rules/nlp.py:NLP_VERSION": (
        "extraction/rules/*.py",
        "core/records.py",
        "data/nlp_*.txt",
    ),
    "extraction/model/llm.py:LLM_VERSION": (
        "extraction/model/llm.py",
        "extraction/model/passes.py",
    ),
    "extraction/model/by_schema.py:SCHEMA_VERSION": ("extraction/model/by_schema.py",),
    "extraction/model/tuples.py:TUPLES_VERSION": ("extraction/model/tuple*.py",),
    "extraction/model/claims.py:CLAIMS_VERSION": ("extraction/model/claims.py",),
    "graph/resolution/resolving.py:RESOLUTION_VERSION": (
        "graph/resolution/*.py",
        "data/resolution.txt",
        "data/han_variants.txt",
    ),
    "graph/fold.py:GRAPH_VERSION": (
        "graph/fold.py",
        "graph/descriptions.py",
        "graph/record_links.py",
        "graph/titles.py",
    ),
    "graph/fold_state.py:STATE_VERSION": ("graph/fold_state.py",),
    "graph/communities.py:COMMUNITIES_VERSION": (
        "graph/communities.py",
        "graph/clustering.py",
        "graph/repair.py",
    ),
    "reports/levels.py:REPORTS_VERSION": (
        "reports/levels.py",
        "reports/contexts.py",
        "reports/inputs.py",
        "reports/text.py",
    ),
    "reports/digests.py:_DIGESTS_VERSION": ("reports/digests.py",),
    "reports/extractive.py:EXTRACTIVE_VERSION": (
        "reports/extractive.py",
        "reports/evidence.py",
        "core/prose.py",
        "data/prose.txt",
    ),
    "reports/parsing.py:REPORT_PARSING_VERSION": ("reports/parsing.py", "reports/references.py"),
    "llm/embedders.py:_HASHING_VERSION": (
        "llm/embedders.py",
        "core/text.py",
        "data/search.txt",
        "data/common_terms.txt",
    ),
    "core/languages.py:_TERMS_VERSION": (
        "core/languages.py",
        "core/text.py",
        "data/nlp_languages.txt",
        "data/search_languages.txt",
    ),
    "llm/embedders.py:_LOCAL_VERSION": ("llm/embedders.py", "llm/embeddings.py"),
    "structures/synonyms/linking.py:_VERSION": ("structures/synonyms/linking.py",),
    "systems/archrag/similarity.py:_VERSION": (
        "systems/archrag/similarity.py",
        "structures/cosines.py",
    ),
    "systems/archrag/communities.py:ATTRIBUTED_VERSION": (
        "systems/archrag/communities.py",
        "systems/archrag/reports.py",
    ),
    "systems/archrag/index.py:_VERSION": (
        "systems/archrag/index.py",
        "systems/archrag/chnsw.py",
    ),
    "systems/hirag/tables.py:_VERSION": (
        "systems/hirag/communities.py",
        "systems/hirag/layers.py",
        "systems/hirag/tables.py",
        "systems/hirag/writing.py",
    ),
    "systems/raptor/summaries.py:_VERSION": ("systems/raptor/summaries.py",),
    "systems/raptor/tree.py:_VERSION": (
        "systems/raptor/tree.py",
        "structures/*mixtures.py",
    ),
}
# Versions of a format of our own, which its reader checks, and not of what a stage makes.
FORMATS = {
    "llm/database.py:_VERSION",
    "exchange/importing/microsoft.py:IMPORT_VERSION",
    "pages/pictures.py:_VERSION",
}


def assignments(path: Path) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names and values assigned at the top of a module."""
    for statement in ast.parse(path.read_text()).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            yield statement.targets[0].id, statement.value
        elif (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and statement.value is not None
        ):
            yield statement.target.id, statement.value


def is_version(name: str) -> bool:
    return name.endswith("_VERSION")


def canonical(value: ast.expr) -> str:
    """Return an expression as text: the same in every Python, however it is indented."""
    parts = []
    for node in ast.walk(value):
        parts.append(type(node).__name__)
        if isinstance(node, ast.Constant):
            text = " ".join(node.value.split()) if isinstance(node.value, str) else node.value
            parts.append(repr(text))
        elif isinstance(node, ast.Name | ast.Attribute):
            parts.append(node.id if isinstance(node, ast.Name) else node.attr)
    return " ".join(parts)


def shape(files: tuple[str, ...]) -> str:
    """Return a hash of the constants in some files, whatever they are called."""
    values = []
    for pattern in files:
        for path in sorted(ROOT.glob(pattern)):
            if path.suffix != ".py":
                values.append(path.read_text())
                continue
            for name, value in assignments(path):
                if not is_version(name):
                    values.append(canonical(value))
    return hashlib.sha256("\n".join(sorted(values)).encode()).hexdigest()[:16]


def version(place: str) -> object:
    file, name = place.split(":")
    values = dict(assignments(ROOT / file))
    if file == _READERS:
        return ast.literal_eval(values["VERSIONS"])[name]
    return ast.literal_eval(values[name])


def current(place: str) -> dict[str, object]:
    return {"version": version(place), "shape": shape(GOVERNED[place])}


def test_every_version_says_what_it_stands_for() -> None:
    versions = {
        f"{path.relative_to(ROOT).as_posix()}:{name}"
        for path in ROOT.rglob("*.py")
        for name, value in assignments(path)
        if is_version(name) and isinstance(value, ast.Constant)
    }
    readers = {f"{_READERS}:{kind}" for kind in VERSIONS}
    assert versions | readers == set(GOVERNED) | FORMATS


def test_each_module_of_the_reader_has_a_version_that_stands_for_it() -> None:
    governed = {file for files in GOVERNED.values() for file in files}
    modules = {f"ingest/reading/{path.name}" for path in (ROOT / "ingest/reading").glob("*.py")}
    where_it_is_read = set(_reading("answers child deaths separate"))
    assert modules - governed == {
        "ingest/reading/__init__.py",
        # Whose line names a format is not what its reader makes: a new line reads nothing anew.
        "ingest/reading/formats.py",
        _READERS,
        *where_it_is_read,
    }


@pytest.mark.parametrize("place", GOVERNED)
def test_sql_and_constants_change_with_the_version(place: str) -> None:
    recorded, now = json.loads(RECORD.read_text())[place], current(place)
    assert now == recorded, (
        f"{place} stands for {', '.join(GOVERNED[place])}, which changed: raise the version if "
        "rows may differ by it, then run python tests/test_versions.py"
    )


def test_another_constant_is_another_shape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    file = tmp_path / "stage.py"
    file.write_text('_SQL = """SELECT 1\n   FROM t"""\n')
    before = shape(("stage.py",))
    file.write_text('_QUERY = """SELECT 1 FROM t"""\nA_VERSION = "2"\n')
    assert shape(("stage.py",)) == before
    file.write_text('_SQL = "SELECT 2 FROM t"\n')
    assert shape(("stage.py",)) != before


if __name__ == "__main__":
    RECORD.write_text(json.dumps({place: current(place) for place in GOVERNED}, indent=1) + "\n")
    print(f"recorded in {RECORD}")
