"""The page on architecture tells the truth of files, and imports stand at the top of modules."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
ROW = re.compile(r"^\| `([\w/.]+)` \| (\d+) \|", re.MULTILINE)
PACKAGE = "graphrag_pipeline"
# Commands import what they need, so that the command line starts at once.
WINGS = (
    "packages/cluster/graphrag_cluster",
    "packages/evaluation/graphrag_evaluation",
    "packages/server/graphrag_server",
)
LAZY_ROOMS = tuple(ROOT / room / "cli" for room in (PACKAGE, *WINGS))
LAZY = {
    # Classes of dbt's are the bases of classes in these, and importing dbt takes seconds.
    "graphrag_pipeline/definitions.py": {
        "graphrag_pipeline.assets.marts",
        "graphrag_pipeline.resources.marts",
    },
    # Celery's main process forks: what has threads of its own is loaded in the child.
    "packages/cluster/graphrag_cluster/celery_app.py": {"graphrag_cluster"},
    # What a run asks that finds nothing to do, and does not make.
    "packages/evaluation/graphrag_evaluation/quality.py": {
        "graphrag_evaluation.metrics.index",
        "graphrag_pipeline.query.release",
    },
    # What asks a model, for the one who has one.
    "graphrag_pipeline/llm/configured.py": {"graphrag_pipeline.llm.client"},
    # Only the last stage makes what questions need.
    "graphrag_pipeline/pipeline/stages.py": {"graphrag_pipeline.query.published_arrays"},
    # What every run defines and none but the nightly one, or one that fetches, does; and what a
    # program asks of an index, which a command does not.
    "assets/upkeep.py": {
        "graphrag_pipeline.upkeep.checking",
        "graphrag_pipeline.upkeep.index_tables",
    },
    "assets/web_pages.py": {"graphrag_pipeline.ingest.sites"},
    "graphrag_pipeline/orchestration/runs.py": {"graphrag_pipeline.index"},
    # Half the engine, for the one who looks after a server.
    "packages/server/graphrag_server/routes/state.py": {
        "graphrag_pipeline.planning.status",
        "graphrag_pipeline.store.workspace",
    },
    # What a question of all documents, and a server that no assistant asks, do without.
    "graphrag_pipeline/query/limited_release.py": {
        "graphrag_pipeline.query.limited_reports",
        "graphrag_pipeline.query.labelled_index",
    },
    "graphrag_pipeline/query/visible_vectors.py": {
        "graphrag_pipeline.structures.synonyms.linking",
        "graphrag_pipeline.structures.registry",
    },
    "packages/server/graphrag_server/mcp/endpoint.py": {"graphrag_server.mcp.protocol"},
    "packages/server/graphrag_server/mcp/tools.py": {"graphrag_pipeline.marts.sql"},
    # Only what may cost something is planned; every process of a code location loads the sensors.
    "sensors/consent.py": {"graphrag_pipeline.planning.plan"},
    "packages/evaluation/graphrag_evaluation/schedule.py": {
        "graphrag_evaluation.evaluating",
        "graphrag_evaluation.experiment",
    },
    # Of an evaluation, a run needs nothing unless the settings name one.
    "packages/evaluation/graphrag_evaluation/definitions.py": {"graphrag_evaluation.assets"},
    # Whoever uses an old name may lack what it stands for.
    "graphrag_pipeline/core/moved.py": {"graphrag_pipeline.core.extras"},
}
"""The imports of our modules within functions, by file: each for what it would load too early."""
FILE = re.compile(r"`([\w/]+\.(?:py|sql))`")


def place(file: str) -> Path:
    """Return where a file named on the page is: in the package, or at the top."""
    rooms = (ROOT / room for room in (PACKAGE, *WINGS))
    return next((room / file for room in rooms if (room / file).is_file()), ROOT / file)


def lines(file: str) -> int:
    return place(file).read_text().count("\n")


def test_every_file_on_the_page_exists() -> None:
    files = FILE.findall(PAGE.read_text())
    assert len(files) > 20
    assert [file for file in files if not place(file).is_file()] == []


def test_the_spine_says_how_long_its_files_are() -> None:
    spine = ROW.findall(PAGE.read_text())
    assert len(spine) == 7
    wrong = {
        file: lines(file) for file, said in spine if abs(lines(file) - int(said)) > 0.1 * int(said)
    }
    assert not wrong, "run python tests/test_architecture.py to write the numbers anew"


def test_rows_are_handed_to_duckdb_in_one_place_alone() -> None:
    rooms = (ROOT / room for room in (PACKAGE, "assets", "resources", "sensors"))
    others = {
        str(path.relative_to(ROOT))
        for room in rooms
        for path in room.rglob("*.py")
        if re.search(r"\bcon\.register\(|\bfrom_arrow\(con", path.read_text())
    }
    assert others == {f"{PACKAGE}/store/frames.py"}, "use put_rows or streamed"


def test_only_the_command_line_imports_our_modules_within_functions() -> None:
    modules = [
        path
        for room in (PACKAGE, "assets", "resources", "sensors", *WINGS)
        for path in (ROOT / room).rglob("*.py")
        if not any(path.is_relative_to(lazy) for lazy in LAZY_ROOMS)
    ]
    assert len(modules) > 150
    within = {str(path.relative_to(ROOT)): local_imports(path) for path in modules}
    assert {file: names for file, names in within.items() if names} == LAZY


def test_our_modules_are_loaded_by_name_in_the_doors_alone() -> None:
    loads = re.compile(r"import_module\(\s*(?:f[\"']|[\"'](?:graphrag_|\.))|__import__\(")
    rooms = (ROOT / room for room in (PACKAGE, "assets", "resources", "sensors", *WINGS))
    files = {
        str(path.relative_to(ROOT))
        for room in rooms
        for path in room.rglob("*.py")
        if loads.search(path.read_text())
    }
    assert files == {f"{PACKAGE}/core/systems.py"}


@cache
def described() -> list[tuple[str, str, int]]:
    """Return modules, classes and functions of the program: name, docstring, lines."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    rooms = (ROOT / room for room in (PACKAGE, "assets", "resources", "sensors", *WINGS))
    rows: list[tuple[str, str, int]] = []
    for path in (path for room in rooms for path in room.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, kinds):
                is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                lines = (node.end_lineno or 0) - node.lineno + 1 if is_function else 0
                name = f"{path} {getattr(node, 'name', 'itself')}"
                rows.append((name, ast.get_docstring(node) or "", lines))
    assert len(rows) > 5000
    return rows


def test_a_docstring_says_first_what_a_thing_is_or_does() -> None:
    clause = re.compile(r"(?:What|Who|Where|When|Which|How|That|Why|Whose|Whom)\b(?!.*\?)")
    assert [f"{name}: {text}" for name, text, _ in described() if clause.match(text)] == []
    modules = [(name, text) for name, text, _ in described() if name.endswith(" itself")]
    assert [name for name, text in modules if text.startswith("Whether")] == []


def test_a_function_can_be_read_without_turning_the_page() -> None:
    assert [f"{name}: {lines} lines" for name, _, lines in described() if lines > 60] == []


def test_the_name_of_a_class_means_one_thing() -> None:
    places: dict[str, list[str]] = {}
    for room in (PACKAGE, "assets", "resources", "sensors", *WINGS):
        for path in (ROOT / room).rglob("*.py"):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert len(places) > 500
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def local_imports(path: Path) -> set[str]:
    """Return our modules that functions of a module import."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    tree = ast.parse(path.read_text())
    tops = (node for node in ast.walk(tree) if isinstance(node, functions))
    inside = (node for top in tops for node in ast.walk(top))
    ours = (".", PACKAGE, *(Path(wing).name for wing in WINGS))
    return {name for node in inside for name in imported(node) if name.startswith(ours)}


def imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield "." * node.level + (node.module or "")


def write() -> None:
    """Write the numbers of lines as they are."""
    text = PAGE.read_text()
    PAGE.write_text(ROW.sub(lambda row: f"| `{row[1]}` | {lines(row[1])} |", text))


if __name__ == "__main__":
    write()
    sys.stdout.write(f"written to {PAGE}\n")
