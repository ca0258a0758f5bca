"""A package from outside adds a part by each door, as the page on extending shows them."""

from __future__ import annotations

import importlib
import importlib.util
import json
import logging
import re
import shutil
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from artefacts import copy_of
from commands import command, run_python
from typer.testing import CliRunner

from graphrag_pipeline.assets import Names
from graphrag_pipeline.assets.quality import build_measures
from graphrag_pipeline.cli.app import app
from graphrag_pipeline.cli.commands import COMMANDS
from graphrag_pipeline.core import doors
from graphrag_pipeline.core.errors import ConfigError, InputError, RemovalError, StorageError
from graphrag_pipeline.core.package_settings import SECTIONS
from graphrag_pipeline.core.prompting import (
    PROMPT_FOLDERS,
    check_prompts,
    load_prompt,
    prompt_names,
)
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.core.settings_template import template
from graphrag_pipeline.definitions import DEFINITIONS, build_definitions
from graphrag_pipeline.exchange.exporting import EXPORTERS
from graphrag_pipeline.index import Index
from graphrag_pipeline.ingest.reading import FORMATS, FileFormat, ReadingOptions, read_file
from graphrag_pipeline.ingest.reading.formats import reader_versions, supported_suffixes
from graphrag_pipeline.ingest.reading.separate import Readers, ReadingLimits
from graphrag_pipeline.planning.pending import nothing_pending
from graphrag_pipeline.releases.measuring import MEASURES
from graphrag_pipeline.resources import IndexResource, readable_failures
from graphrag_pipeline.structures import (
    STRUCTURES,
    Structure,
    register_structure,
    unregister_structure,
)
from graphrag_pipeline.upkeep.home_files import HOME_FILES, faults, purge_files
from graphrag_pipeline.upkeep.other_files import find_damaged_files

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "tests" / "outside_package"
PAGE = ROOT / "docs" / "how-to" / "extend.md"
DESCRIBED = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
SUBTITLES = """WEBVTT

NOTE Taken at the opening.

1
00:01.000 --> 00:04.000
<v Narrator>Orsolya Venn built
the Kestrel Dam.</v>

00:05.000 --> 00:08.000 align:start
Mira Dorn tested its concrete.
"""
TEXT = "Anna Berg owns the ferry at Varna. Boris Claude steers it."
WANTED = {
    "wanted": ["document_summaries", "frequent_words"],
    "options": {"document_summaries": {"words": 4}},
}


def install(site: Path, name: str, groups: Mapping[str, Mapping[str, str]]) -> None:
    """Leave in a folder what an installation of a package leaves there, but for its modules."""
    about = site / f"{name.replace('-', '_')}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [
        line
        for group, entries in groups.items()
        for line in (f"[{group}]", *(f"{key} = {value}" for key, value in entries.items()))
    ]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages, first on the path of modules."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    doors._warn.cache_clear()
    return folder


@pytest.fixture
def installed(site: Path) -> Path:
    for module in PACKAGE.glob("*.py"):
        shutil.copy(module, site)
    install(site, DESCRIBED["name"], DESCRIBED["entry-points"])
    return site


@pytest.fixture
def index(tmp_path: Path, installed: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    """An index of subtitles and a text, in the current folder."""
    settings = Settings(structures=WANTED, embeddings={"dimensions": 64})

    def make(made: Path) -> None:
        folder = made / "documents"
        folder.mkdir(parents=True)
        (folder / "opening.captions").write_text(SUBTITLES)
        (folder / "ferry.txt").write_text(TEXT)
        Index(made / ".graphrag", settings).update(folder)

    home = copy_of("outside package", make, tmp_path) / ".graphrag"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRAPHRAG_HOME", str(home))
    monkeypatch.setenv("GRAPHRAG_STRUCTURES__WANTED", json.dumps(WANTED["wanted"]))
    monkeypatch.setenv("GRAPHRAG_EMBEDDINGS__DIMENSIONS", "64")
    return Index(home, settings)


def test_a_file_of_its_format_is_indexed_and_cited_by_its_method(index: Index) -> None:
    _, rows = index.sql("SELECT text FROM documents WHERE ends_with(uri, '.captions')")
    assert rows == [("Orsolya Venn built the Kestrel Dam.\nMira Dorn tested its concrete.",)]
    answer = index.answer("Who built the Kestrel Dam?", "nearby", hops=2)
    assert "Orsolya Venn built the Kestrel Dam" in answer.text
    assert answer.retrieval.method == "nearby"
    (cited,) = {citation.uri for citation in answer.citations}
    assert cited.endswith("opening.captions")


def test_its_small_structure_is_read_by_its_method_where_all_may_be_seen(index: Index) -> None:
    words = {word for (word,) in index.sql("SELECT word FROM frequent_words")[1]}
    assert {"kestrel", "concrete"} & words
    answer = index.answer("What of the Kestrel Dam?", "frequent")
    assert "Kestrel Dam" in answer.text
    with pytest.raises(InputError, match="frequent_words is not shown where only some documents"):
        index.answer("What of the Kestrel Dam?", "frequent", where={"title": "Opening"})


def test_a_method_says_which_structure_it_lacks(index: Index, tmp_path: Path) -> None:
    other = Index(tmp_path / "other", Settings(structures={"wanted": []}))
    other.update(tmp_path / "documents")
    with pytest.raises(InputError, match=r"put 'frequent_words' into structures\.wanted and"):
        other.answer("What of the Kestrel Dam?", "frequent")


def test_its_table_and_its_file_of_the_home_are_planned_read_checked_kept_and_purged(
    plain_stores: None, index: Index, tmp_path: Path
) -> None:
    query = "SELECT summary FROM document_summaries ORDER BY summary"
    summaries = [("Anna Berg owns the",), ("Orsolya Venn built the",)]
    assert index.sql(query)[1] == summaries
    by_model = {"llm": {"base_url": "http://localhost:9/v1"}, "reports": {"writer": "llm"}}
    planning = Index(tmp_path / "planned", Settings(structures=WANTED, **by_model))
    plan = planning.plan(tmp_path / "documents")
    assert {stage.stage: stage.calls for stage in plan.stages}["document_summaries"] == 2
    assert plan.without_model == ["frequent_words"]

    notes, head = index.home / "notes.csv", "document,note\r\n"
    kept = "documents/opening.captions,Ask Mira.\r\n"
    notes.write_bytes(f"{head}documents/ferry.txt,Who steers?\r\n{kept}".encode())
    archive = tmp_path / "index.tar.zst"
    index.backup(archive)
    restored = Index.restore(archive, tmp_path / "restored")
    assert not restored.checked.problems
    assert Index(tmp_path / "restored", index.settings).sql(query)[1] == summaries
    assert (tmp_path / "restored" / "notes.csv").read_bytes() == notes.read_bytes()

    (tmp_path / "documents" / "ferry.txt").unlink()
    index.forget(tmp_path / "documents" / "ferry.txt")
    assert index.sql(query)[1] == [("Orsolya Venn built the",)]
    assert all(b"Anna Berg owns" not in path.read_bytes() for path in index.home.rglob("*.duckdb"))
    assert notes.read_bytes() == f"{head}{kept}".encode()

    with index.store.transaction() as con:
        con.execute("DELETE FROM document_summaries WHERE starts_with(summary, 'Orsolya')")
    assert "documents have no summary" in str(index.check().problems)
    notes.write_text(kept)
    (fault,) = faults(index.home)
    assert fault == (
        "notes.csv",
        "its first line is not document,note",
        "write document,note above the notes",
    )
    assert [problem.where for problem in find_damaged_files(index)] == ["notes.csv"]
    with pytest.raises(StorageError, match=r"nothing was backed up: notes\.csv: its first line"):
        index.backup(tmp_path / "another.tar.zst")


def test_its_command_runs_and_its_export_is_written(index: Index, tmp_path: Path) -> None:
    cli = CliRunner()
    shown = cli.invoke(app, ["longest", "-n", "1"])
    assert shown.output.split(maxsplit=1) == ["66", "Opening\n"]
    listed = json.loads(cli.invoke(app, ["longest", "--json"]).output)
    assert [row["title"] for row in listed] == ["Opening", "Ferry"]
    assert "the longest documents" in cli.invoke(app, ["--help"]).output
    (tmp_path / "graphrag.toml").write_text("[packages.longest]\nnumber = 1\n")
    assert len(json.loads(cli.invoke(app, ["longest", "--json"]).output)) == 1
    (tmp_path / "graphrag.toml").unlink()
    written = cli.invoke(app, ["export", "glossary"])
    assert written.exit_code == 0, written.output
    lines = (tmp_path / "glossary.md").read_text().splitlines()
    assert lines[0] == "# Glossary"
    assert any(line.startswith("- **Kestrel Dam**: ") for line in lines)


def test_what_a_package_does_with_its_file_may_fail_and_that_is_told(
    site: Path, tmp_path: Path
) -> None:
    (site / "failing.py").write_text(
        "from graphrag_pipeline.upkeep.home_files import HomeFile\n"
        "def fail(*paths): raise KeyError('lost')\n"
        "FILE = HomeFile(about='.', fault=lambda path: fail(), purge=lambda path, new: fail())"
    )
    install(site, "old-notes", {HOME_FILES.group: {"lost.csv": "failing:FILE"}})
    (tmp_path / "lost.csv").touch()
    assert [*faults(tmp_path)] == [("lost.csv", "it cannot be checked (KeyError: 'lost')", "")]
    with pytest.raises(StorageError, match=r"cannot purge .*lost\.csv: KeyError"):
        purge_files(tmp_path, tmp_path / "published.duckdb")


@pytest.mark.parametrize(
    ("section", "why"),
    [
        ({"longest": {"number": 0}}, "packages.longest.number = 0: Input should be greater than 0"),
        ({"longest": {"n": 1}}, "packages.longest.n: unknown setting: there are number"),
    ],
)
def test_what_is_wrong_in_a_section_of_a_package_is_one_line(
    site: Path, section: dict[str, Any], why: str
) -> None:
    shutil.copy(PACKAGE / "longest.py", site)
    install(site, "field-notes", {SECTIONS.group: {"longest": "longest:LongestSettings"}})
    with pytest.raises(ConfigError) as failure:
        Settings(packages=section)
    assert str(failure.value).startswith(why)
    assert "\n" not in str(failure.value)


def test_init_lists_the_sections_of_packages(installed: Path) -> None:
    lines = template().splitlines()
    place = lines.index("[packages.longest]")
    assert lines[place + 1 :] == ["#number = 10"]
    assert tomllib.loads("\n".join(line.removeprefix("#") for line in lines[place:])) == {
        "packages": {"longest": {"number": 10}}
    }


def test_a_section_of_a_package_that_is_gone_is_told_of_and_stops_nothing(
    site: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(packages={site.parent.name: {"number": 3}})
    (line,) = caplog.messages
    assert line.startswith(f"[packages.{site.parent.name}] in the settings: no package that is")
    with pytest.raises(ConfigError, match="install the package, or take the section out"):
        settings.of_package(site.parent.name)


@pytest.mark.parametrize("broken", [False, True])
def test_documents_stay_where_the_package_that_reads_them_is_gone(
    site: Path, tmp_path: Path, broken: bool
) -> None:
    module = f"subtitles_{site.parent.name.replace('-', '_')}"
    code = (PACKAGE / "subtitles.py").read_text()
    (site / f"{module}.py").write_text(code)
    install(site, "old-notes", {FORMATS.group: {"captions": f"{module}:VTT"}})
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    for number in range(12):
        (inbox / f"{number}.captions").write_text(
            f"WEBVTT\n\n00:01 --> 00:02\nAnna Berg said {number}.\n"
        )
    (inbox / "note.txt").write_text("Carl Holt lives in Oslo.")
    index = Index(tmp_path / "kept")
    index.update(inbox)
    if broken:
        (site / f"{module}.py").write_text("import nothing_of_this_name")
        sys.modules.pop(module, None)
        FORMATS._loaded.clear()
    else:
        shutil.rmtree(next(site.glob("old_notes*.dist-info")))
        doors._installed.cache_clear()
    why = (
        "package old-notes 1.0 cannot be used"
        if broken
        else "install the package that reads .captions"
    )
    with pytest.raises(RemovalError, match=rf"^12 of the 13 files indexed.*{why}.*--remove-all"):
        index.update(inbox)
    assert index.sql("SELECT count(*) FROM documents")[1] == [(13,)]
    index.update(inbox, remove_all=True)
    assert index.sql("SELECT count(*) FROM documents")[1] == [(1,)]


def test_an_error_within_a_part_names_its_package_and_line(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def where(file: str) -> str:
        return rf" \({file}\.py, line \d+, of the package field-notes 1\.0\)"

    update = importlib.import_module("frequent_words").update
    with pytest.raises(dg.Failure) as raised, readable_failures():
        update(None)
    assert re.fullmatch("AttributeError: .*" + where("frequent_words"), raised.value.description)
    monkeypatch.setattr(importlib.import_module("longest"), "settings_here", lambda: 1 / 0)
    failed = CliRunner().invoke(app, ["longest"])
    assert failed.exit_code == 1
    line = "error: ZeroDivisionError: division by zero" + where("longest")
    assert re.fullmatch(line, failed.stderr.splitlines()[-1])
    assert "Traceback" in failed.stderr
    # What is raised on purpose, and what is raised by the program, is as it was.
    with pytest.raises(dg.Failure, match="no such file"), readable_failures():
        raise InputError("no such file")
    assert doors.raised_outside(ValueError("of the program")) == ""


def test_no_package_takes_a_file_of_ours(site: Path) -> None:
    shutil.copy(PACKAGE / "notes.py", site)
    taken = {
        "index.duckdb": "notes:NOTES",
        "published.duckdb": "notes:NOTES",
        ".env": "notes:NOTES",
    }
    install(site, "old-notes", {HOME_FILES.group: taken})
    assert HOME_FILES.usable().keys().isdisjoint({".env"})
    assert {n for n, f in HOME_FILES.usable().items() if f.purge} <= {"conversations.sqlite"}


def test_its_asset_stands_beside_those_of_the_index(index: Index) -> None:
    built = build_definitions(index.settings, key_prefix="press")
    key = dg.AssetKey(["press", "document_count"])
    graph = built.resolve_asset_graph()
    assert graph.get(key).parent_keys == {dg.AssetKey(["press", "published_index"])}
    (asset,) = (each for each in built.assets or () if key in getattr(each, "keys", ()))
    made = dg.materialize([asset]).asset_materializations_for_node("press__document_count")
    assert made[0].metadata["documents"].value == 2


def test_its_measure_is_made_once_of_each_release(index: Index) -> None:
    assert not nothing_pending(index)
    assets = [stage.build(Names(), {}) for stage in build_measures()]
    made = dg.materialize(
        assets,
        resources={"index": IndexResource.of(index.settings)},
        selection="document_sizes",
        instance=dg.DagsterInstance.ephemeral(),
    )
    (event,) = made.asset_materializations_for_node("document_sizes")
    assert event.metadata["mean_characters"].value == 62
    sizes = MEASURES.find("document_sizes")
    assert sizes
    assert sizes.is_made(index, str(event.metadata["release"].value))
    assert not sizes.is_made(index, "another release")


def test_a_measure_that_fails_is_told_of_and_fails_no_run(
    site: Path, index: Index, caplog: pytest.LogCaptureFixture
) -> None:
    (site / "failing_measure.py").write_text(
        "from graphrag_pipeline.releases.measuring import Measure\n"
        "def fail(workspace): raise KeyError('lost')\n"
        "def is_made(workspace, release): return False\n"
        "FAILS = Measure(about='.', label='.', group='old', measure=fail, is_made=is_made)"
    )
    install(site, "old-notes", {MEASURES.group: {"lost": "failing_measure:FAILS"}})
    doors._installed.cache_clear()
    (stage,) = (stage for stage in build_measures() if stage.name == "lost")
    made = dg.materialize(
        [stage.build(Names(), {})],
        resources={"index": IndexResource.of(index.settings)},
        instance=dg.DagsterInstance.ephemeral(),
    )
    assert made.success
    assert "measures could not be shown: KeyError: 'lost'" in caplog.text


def test_prompts_of_a_package_are_read_replaced_and_checked_as_ours(site: Path) -> None:
    prompts, own = site / "shipped", site / "own"
    prompts.mkdir()
    own.mkdir()
    (prompts / "greeting.txt").write_text("Greet {{who}} from {{text}}.")
    (prompts / "basic_answer.txt").write_text("Say nothing.")
    (site / "greetings.py").write_text(
        f"from pathlib import Path\nPROMPTS = Path({str(prompts)!r})\nNONE = PROMPTS / 'none'"
    )
    places = {"greetings": "greetings:PROMPTS", "none": "greetings:NONE"}
    install(site, "greetings", {PROMPT_FOLDERS.group: places})
    assert "greeting" in prompt_names()
    assert (
        "Greet Ann from "
        in load_prompt("greeting", own).render(who="Ann", text="us")[-1]["content"]
    )
    assert "Say nothing" not in load_prompt("basic_answer").user
    (own / "greeting.txt").write_text("Hail {{who}}.")
    with pytest.raises(ConfigError, match=r"greeting\.txt: placeholder \{\{text\}\} is missing"):
        check_prompts(own)
    (own / "greeting.txt").write_text("Hail {{who}}: {{text}}.")
    check_prompts(own)
    assert load_prompt("greeting", own).user == "Hail {{who}}: {{text}}."


def test_definitions_that_fail_are_told_and_left_out(
    site: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (site / "failing_assets.py").write_text(
        "def fails(building): raise KeyError('lost')\n"
        "def none(building): return [7]\n"
        "def shape(): ...\n"
    )
    parts = {name: f"failing_assets:{name}" for name in ("fails", "none", "shape")}
    install(site, "old-notes", {DEFINITIONS.group: parts})
    graph = build_definitions(Settings(home=str(tmp_path))).resolve_asset_graph()
    assert dg.AssetKey("published_index") in graph.get_all_asset_keys()
    assert "Dagster definitions fails: KeyError: 'lost'" in caplog.text
    assert "Dagster definitions none: " in caplog.text
    assert "shape does not take (building)" in caplog.text


def test_the_page_shows_the_package_as_it_is() -> None:
    page = PAGE.read_text()
    for module in PACKAGE.glob("*.py"):
        assert f"```python\n{module.read_text()}```" in page, module.name
    for group, entries in DESCRIBED["entry-points"].items():
        for name, place in entries.items():
            line = f'"{name}" = "{place}"' if "." in name else f'{name} = "{place}"'
            assert f'```toml\n[project.entry-points."{group}"]\n{line}\n```' in page


def test_the_page_lists_every_door() -> None:
    rows = re.findall(r"^\| `graphrag_pipeline\.(\w+)` \| (.*?) \|", PAGE.read_text(), re.M)
    assert rows == list(doors.DOORS.items())


def test_each_part_of_our_own_is_where_its_door_says() -> None:
    rooms = [
        path.relative_to(ROOT).with_suffix("").parts
        for room in ("graphrag_pipeline", "assets", "resources", "sensors")
        for path in (ROOT / room).rglob("*.py")
        if re.search(r"\bDoor\(\n", path.read_text())
    ]
    names = {".".join(("graphrag_pipeline", *parts)) for parts in rooms}
    names = {
        name.replace("graphrag_pipeline.graphrag_pipeline", "graphrag_pipeline") for name in names
    }
    modules = [importlib.import_module(name) for name in names]
    ours = {
        id(part): part for m in modules for part in vars(m).values() if type(part) is doors.Door
    }
    assert {door.name for door in ours.values()} == set(doors.DOORS)
    for door in ours.values():
        for place in door._own.values():
            module, _, name = place.partition(":")
            spec = importlib.util.find_spec(module)
            assert spec is not None, place
            assert re.search(rf"^(def )?{name}\b", Path(str(spec.origin)).read_text(), re.M), place


# What does not work


def test_files_are_read_once_their_format_is_installed_and_no_others_again(
    site: Path, tmp_path: Path
) -> None:
    before = reader_versions([".py", ".captions"])
    before_of_pdf = reader_versions([".py", ".pdf"])
    assert "are not read, only" in reason(tmp_path)
    for module in PACKAGE.glob("*.py"):
        shutil.copy(module, site)
    install(site, DESCRIBED["name"], DESCRIBED["entry-points"])
    doors._installed.cache_clear()
    assert reader_versions([".py", ".captions"]) == f"{before}-subtitles1"
    assert reader_versions([".py", ".pdf"]) == before_of_pdf
    (document,) = read_file(
        tmp_path / "a.captions", ReadingOptions(), data=SUBTITLES.encode()
    ).documents
    assert document.text.startswith("Orsolya Venn built")


def reason(folder: Path) -> str:
    (refused,) = read_file(folder / "a.captions", ReadingOptions(), data=b"WEBVTT").quarantined
    return refused.reason


BROKEN = {
    "missing": ("import no_such_library", "ModuleNotFoundError: No module named 'no_such_library'"),
    "older": (
        "from graphrag_pipeline.ingest.reading import FileFormat\nPART = FileFormat(reader=print)",
        "TypeError: FileFormat.__init__() got an unexpected keyword argument 'reader'",
    ),
    "ends": ("raise SystemExit(3)", "SystemExit: 3"),
    "nothing": ("", "has no attribute 'PART'"),
    "other": ("PART = 7", "it is int, not FileFormat"),
    "shape": (
        "from graphrag_pipeline.ingest.reading import FileFormat\n"
        "def read(path): ...\n"
        "PART = FileFormat(read, {'subtitles': '1'})",
        "read does not take (path, data, options): too many positional arguments",
    ),
    "version": (
        "from graphrag_pipeline.ingest.reading import FileFormat\n"
        "PART = FileFormat(lambda path, data, options: None, {'x-1': '1'})",
        "versions must be as",
    ),
}


@pytest.mark.parametrize("name", [".captions", "SUB"])
def test_a_format_that_no_ending_is_called_as_is_told_of_where_files_are_looked_for(
    site: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    shutil.copy(PACKAGE / "subtitles.py", site)
    install(site, "old-notes", {FORMATS.group: {name: "subtitles:VTT"}})
    supported_suffixes()
    (line,) = caplog.messages
    assert line.startswith(f"format {name} (subtitles:VTT) of the package old-notes 1.0 cannot be")
    assert "call it as the ending is written in small letters, without the dot" in line


@pytest.mark.parametrize(("code", "why"), BROKEN.values(), ids=BROKEN)
def test_a_part_that_cannot_be_used_is_told_in_a_line_that_names_its_package(
    site: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, code: str, why: str
) -> None:
    module = f"broken_{site.parent.name.replace('-', '_')}"
    (site / f"{module}.py").write_text(code)
    install(site, "old-notes", {FORMATS.group: {"captions": f"{module}:PART"}})
    line = reason(tmp_path)
    assert line.startswith(
        f"format captions ({module}:PART) of the package old-notes 1.0 cannot be"
    )
    assert why in line
    assert "mend old-notes if it is yours, install a version of it that is made for" in line
    assert "\n" not in line
    assert reader_versions([".captions"]) == ""
    with caplog.at_level(logging.WARNING):
        assert FORMATS.usable().keys() == set(FORMATS.own)
        FORMATS.usable()
    assert [record.getMessage() for record in caplog.records] == [line]
    assert read_file(tmp_path / "a.md", ReadingOptions(), data=b"# Read").documents


def test_a_reader_that_returns_something_else_refuses_its_file(site: Path, tmp_path: Path) -> None:
    (site / "returns_text.py").write_text(
        "from graphrag_pipeline.ingest.reading import FileFormat\n"
        "VTT = FileFormat(lambda path, data, options: 'text', {'subtitles': '1'})"
    )
    install(site, "old-notes", {FORMATS.group: {"captions": "returns_text:VTT"}})
    assert "its reader returned str, not ReadResult" in reason(tmp_path)


def test_a_format_is_read_in_a_process_with_limits_unless_its_files_are_safe(
    installed: Path, tmp_path: Path
) -> None:
    (installed / "packed.py").write_text(
        "from dataclasses import replace\nfrom subtitles import VTT as SAFE\n"
        "VTT = replace(SAFE, safe_bytes=0)"
    )
    install(installed, "packed-notes", {FORMATS.group: {"packed": "packed:VTT"}})
    doors._installed.cache_clear()
    options, data = ReadingOptions(), SUBTITLES.encode()
    with Readers(options, ReadingLimits(2_000, 60), tmp_path / "deaths.json") as readers:
        safe = readers.read(Path("opening.captions"), data, "0")
        assert readers._child is None
        apart = readers.read(Path("opening.packed"), data, "0")
        assert readers._child is not None
    assert apart.documents == safe.documents


def test_what_a_reader_gives_is_made_clean(site: Path, tmp_path: Path) -> None:
    (site / "unclean.py").write_text(
        "from graphrag_pipeline.ingest.reading import FileFormat, ReadDocument, ReadResult\n"
        "TEXTS = [ReadDocument('', 'A\\n title', ' A\\0 word\\r\\n\\ud800')]\n"
        "TEXTS.append(ReadDocument('2', 'Empty', ' '))\n"
        "VTT = FileFormat(lambda path, data, options: ReadResult(TEXTS, []), {'subtitles': '1'})"
    )
    install(site, "old-notes", {FORMATS.group: {"captions": "unclean:VTT"}})
    (document,) = read_file(tmp_path / "a.captions", ReadingOptions(), data=b"x").documents
    assert document.title == "A title"
    document.text.encode()
    assert document.text.startswith("A word")


def test_parts_of_one_name_are_refused_and_none_replaces_one_of_the_programs_own(
    site: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for module in PACKAGE.glob("*.py"):
        shutil.copy(module, site)
    install(
        site, "one-reader", {FORMATS.group: {"captions": "subtitles:VTT", "pdf": "subtitles:VTT"}}
    )
    install(site, "other-reader", {FORMATS.group: {"captions": "subtitles:VTT"}})
    with pytest.raises(
        ConfigError,
        match=r"two of one name: format captions .*one-reader 1\.0 and captions .*other-reader",
    ):
        FORMATS.find("captions")
    with caplog.at_level(logging.WARNING):
        assert set(FORMATS.usable()) == set(FORMATS.own)
    assert "pdf is the program's own" in caplog.text
    pdf = FORMATS.find("pdf")
    assert isinstance(pdf, FileFormat)
    assert "PDF" in pdf.versions


def test_a_package_that_is_installed_twice_counts_once(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (site, tmp_path / "other"):
        install(folder, "old-notes", {FORMATS.group: {"captions": "subtitles:VTT"}})
    shutil.copy(PACKAGE / "subtitles.py", site)
    monkeypatch.syspath_prepend(tmp_path / "other")
    assert FORMATS.find("captions") is not None


def test_what_a_program_adds_comes_before_what_packages_bring(installed: Path) -> None:
    added = Structure("document_summaries")
    register_structure(added)
    try:
        assert STRUCTURES.find("document_summaries") is added
        assert STRUCTURES.names().count("document_summaries") == 1
    finally:
        unregister_structure("document_summaries")
    assert STRUCTURES.find("document_summaries") is not added
    with pytest.raises(ConfigError, match="structure raptor is there already"):
        register_structure(Structure("raptor"))


def test_a_part_for_a_door_that_there_is_not_is_told(
    site: Path, caplog: pytest.LogCaptureFixture
) -> None:
    install(site, "old-notes", {"graphrag_pipeline.readers": {"captions": "subtitles:VTT"}})
    with caplog.at_level(logging.WARNING):
        assert FORMATS.find("captions") is None
    assert "graphrag_pipeline.readers is no door: there are formats, exporters" in caplog.text


def test_a_broken_exporter_or_command_stops_nothing_but_itself(index: Index, site: Path) -> None:
    install(
        site,
        "old-notes",
        {
            EXPORTERS.group: {"slides": "no_such:X"},
            COMMANDS.group: {"say": "no_such:X"},
        },
    )
    doors._installed.cache_clear()
    cli = CliRunner()
    for words, what in ((["export", "slides"], "export format slides"), (["say"], "command say")):
        refused = cli.invoke(app, words)
        assert refused.exit_code == 2
        assert f"error: {what} (no_such:X) of the package old-notes 1.0" in refused.output
        assert len(refused.output.strip().splitlines()) == 1
    assert cli.invoke(app, ["export", "json", "-o", "graph.json"]).exit_code == 0
    assert cli.invoke(app, ["longest"]).exit_code == 0
    helped = cli.invoke(app, ["--help"])
    assert helped.exit_code == 0
    assert "longest" in helped.output


def test_entry_points_that_cannot_be_read_are_told(
    site: Path, caplog: pytest.LogCaptureFixture
) -> None:
    install(site, "old-notes", {FORMATS.group: {"captions": "no_such:X"}})
    with (site / "old_notes-1.0.dist-info" / "entry_points.txt").open("a") as file:
        file.write("half a line\n")
    assert FORMATS.find("captions") is None
    assert "the entry points of the package old-notes cannot be read" in caplog.text


def test_parts_are_there_though_the_current_folder_is_gone(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert "captions" in FORMATS.names()


def test_nothing_is_imported_from_the_current_folder(tmp_path: Path, monkeypatch) -> None:
    install(tmp_path, "planted", {"graphrag_pipeline.commands": {"planted": "planted:run"}})
    (tmp_path / "planted.py").write_text("print('planted was run')\ndef run(): ...\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert "planted" not in COMMANDS.names()
    asked = command("planted")
    assert asked.returncode == 2
    assert "No such command 'planted'" in asked.stderr
    assert "was run" not in asked.stdout + asked.stderr


def test_a_command_imports_no_other(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom graphrag_pipeline.cli.commands import Commands\n"
        "Commands()['status']\n"
        "print(*(name for name in sys.modules if name.startswith('graphrag_pipeline.cli.')))"
    )
    imported = run_python("-c", code).stdout.split()
    assert "graphrag_pipeline.cli.index" in imported
    assert "graphrag_server.cli.serve" not in imported
