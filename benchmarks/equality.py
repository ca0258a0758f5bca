"""Whether two checkouts of the pipeline make the same index and find the same: table by table.

``python -m benchmarks.equality --before CHECKOUT --after CHECKOUT`` builds every index of
:func:`_cases` with the command line of each checkout, then compares all tables and views of both
releases as multisets of rows, their vectors, and what every method finds and answers. It exits
with 1 where anything differs. Indexes are kept in ``--work``: what a clean commit has built is not
built again.

Each index is built in two runs, between which documents come, change and go, so that repairs are
compared too. The environment decides nothing but what is set here.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import lancedb
import pyarrow as pa
from model_server import ModelServer

from benchmarks.index_speed import podcast_files
from benchmarks.model_index import model_environment
from benchmarks.played_answers import played_answer

PARTS = ("sample", "carol", "podcast")
SIDES = ("before", "after")
KINDS = ("retrieve", "answer")
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
PROBE = Path(__file__).with_name("equality_probe.py")

_PORT = 18_731
"""Where the model is played. The address is part of the embedder's name, so it must not change."""
_DIMENSIONS = 256
_CHANGING = 8
"""One document in so many is new in the second run, and as many are gone."""
_MODEL_DOCUMENTS = 36
_QUESTIONS = 10
_ANY_TIME = 1_700_000_000
_NOT_INHERITED = ("GRAPHRAG_", "DAGSTER_", "OPENAI_", "PYTHON")
_SETTINGS = {
    "GRAPHRAG_BATCHES__MAX_FILES": "100",
    "GRAPHRAG_EMBEDDINGS__FACTS": "true",
    "GRAPHRAG_EMBEDDINGS__SYNONYMS": "true",
    "GRAPHRAG_HIERARCHIES__RAPTOR": "true",
    "GRAPHRAG_HIERARCHIES__ATTRIBUTED": "true",
    "GRAPHRAG_HIERARCHIES__HIRAG": "true",
    "DAGSTER_DISABLE_TELEMETRY": "1",
}
_MODEL_SETTINGS = {
    "GRAPHRAG_EXTRACTION__CLAIMS": "true",
    "GRAPHRAG_RESOLUTION__METHOD": "llm",
}
_CAROL_QUESTIONS = (
    "Who visits Scrooge on Christmas Eve?",
    "What does Bob Cratchit do for a living?",
    "What is the matter with Tiny Tim?",
    "How are Marley and Scrooge related?",
    "What does the Ghost of Christmas Past show?",
    "Why does Scrooge change?",
    "Who was Fezziwig?",
    "What are the main themes of the story?",
    "What happens at the house of Scrooge's nephew Fred?",
    "Which places in London are named?",
)

_EXCLUDED = {
    r"TIMESTAMP": "a clock",
    r"\w+\.(\w+_)?hash": "covers versions and settings, not only results",
    r"\w+\.(\w+_)?versions?": "a version of the code or of a LanceDB table",
    r"\w+\.(seconds|cost)": "how long a call took, and its price",
    r"meta\.\w+": "states of stages: versions, hashes and estimates",
    r"releases\.id|model_quality\.release": "begins with the time",
    r"llm_calls\.id": "random",
    r"\w+ \w+\.timings": "a clock",
    r"\w+ \w+\.release": "begins with the time",
    r"answer \w+\.(cost|calls|model_calls|cached_calls|\w+_tokens)": "depend on the cache",
}
"""Columns, as TABLE.COLUMN or by type, and parts of answers that may differ, and why."""


@dataclass(frozen=True)
class Run:
    """The documents that are there, by their names, and the command that is then given."""

    documents: Mapping[str, Path]
    command: Sequence[str]


@dataclass(frozen=True)
class Case:
    """One index: its runs, and what is asked of it."""

    name: str
    runs: Sequence[Run]
    questions: Sequence[str]
    settings: Mapping[str, str]


@dataclass(frozen=True)
class Comparison:
    """One table of both sides: rows, and rows that only one has. ``notes`` show the first."""

    case: str
    table: str
    rows: tuple[int, int]
    only: tuple[int, int]
    notes: Sequence[str] = ()

    @property
    def differs(self) -> bool:
        """Whether anything counts as a difference."""
        return any(self.only)


def main() -> None:
    """Build what is not built, compare, print a table, and exit with 1 where something differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, required=True, help="a checkout")
    parser.add_argument("--after", type=Path, required=True, help="a checkout")
    parser.add_argument("--work", type=Path, default=Path("build/equality"))
    parser.add_argument("--parts", default=",".join(PARTS), help=", ".join(PARTS))
    parser.add_argument("--podcast", type=int, default=400, help="how many transcripts")
    parser.add_argument("--model", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    checkouts = {side: getattr(options, side).resolve() for side in SIDES}
    for checkout in checkouts.values():
        _check_is_imported(checkout)
    work, differing, compared = options.work.resolve(), 0, 0
    with ModelServer(played_answer, dimensions=_DIMENSIONS, port=_PORT) as server:
        for case in _cases(options, checkouts["before"], work, server.base_url):
            for side, checkout in checkouts.items():
                _build(case, checkout, work / side / case.name)
                server.forget()
            print(
                f"\n{case.name:<41}  {'before':>9}{'after':>9}{'only before':>13}{'only after':>12}"
            )
            for found in _compare(case, {side: work / side / case.name for side in SIDES}):
                _print(found)
                compared, differing = compared + 1, differing + found.differs
    print(f"\n{compared} tables compared, {differing} differ")
    raise SystemExit(differing > 0)


def _print(found: Comparison) -> None:
    counts = (f"{count:,}" for count in (*found.rows, *found.only))
    _print_row("*" if found.differs else "", found.table, *counts)
    for note in found.notes:
        print(f"      {note}")


def _print_row(mark: str, name: str, *cells: str) -> None:
    print(f"{mark:<2}{name:<40}{''.join(f'{cell:>13}' for cell in cells)}", flush=True)


# What is indexed


def _cases(options: argparse.Namespace, before: Path, work: Path, model: str) -> Iterator[Case]:
    by_model = {**_SETTINGS, **_MODEL_SETTINGS, **model_environment(model)}
    parts = options.parts.split(",")
    sample = before / "examples"
    documents = _by_name(sample / "corpus")
    if "sample" in parts:
        lines = (sample / "questions.jsonl").read_text().splitlines()
        questions = _evenly([json.loads(line)["question"] for line in lines])
        yield Case("sample", _in_two_runs(documents), questions, _SETTINGS)
        if options.model:
            two_passes = {**by_model, "GRAPHRAG_EXTRACTION__PASSES": "2"}
            yield Case("sample-model", _in_two_runs(documents), questions, two_passes)
    if "carol" in parts:
        brought_in = Run({}, ("import-graphrag", str(options.data / "carol_index")))
        beside = {name: path for name, path in documents.items() if name.startswith("reference/")}
        runs = (brought_in, Run(beside, ("index", "documents")))
        yield Case("carol", runs, _CAROL_QUESTIONS, _SETTINGS)
    if "podcast" in parts:
        podcast_files(options.data, work / "podcast")
        every = _by_name(work / "podcast")
        with (options.data / "podcast" / "questions.csv").open(encoding="utf-8-sig") as file:
            questions = _evenly([row["question_text"] for row in csv.DictReader(file)])
        for count, settings in ((options.podcast, _SETTINGS), (_MODEL_DOCUMENTS, by_model)):
            if settings is _SETTINGS or options.model:
                name = f"podcast-{count}{'' if settings is _SETTINGS else '-model'}"
                runs = _in_two_runs(dict(list(every.items())[:count]))
                yield Case(name, runs, questions, settings)


def _by_name(folder: Path) -> dict[str, Path]:
    return {p.relative_to(folder).as_posix(): p for p in sorted(folder.rglob("*")) if p.is_file()}


def _evenly(questions: Sequence[str]) -> Sequence[str]:
    return questions[:: max(1, len(questions) // _QUESTIONS)][:_QUESTIONS]


def _in_two_runs(documents: Mapping[str, Path]) -> Sequence[Run]:
    """Return two runs: in the second some documents are new, some are gone, and one has changed.

    It says what the last of those that are gone has said.
    """
    names, changing = list(documents), max(1, len(documents) // _CHANGING)
    first = {name: documents[name] for name in names[changing:]}
    second = {name: documents[name] for name in names[:-changing]}
    second[names[changing]] = documents[names[-1]]
    command = ("index", "documents", "--yes")
    return [Run(first, command), Run(second, command)]


# Building and asking


def _build(case: Case, checkout: Path, folder: Path) -> None:
    """Make an index and ask it; what this commit has made of the same before is kept."""
    environment = _environment(checkout, {"GRAPHRAG_HOME": "home", **case.settings})
    contents = [
        (run.command, [(name, _hash(p.read_bytes())) for name, p in run.documents.items()])
        for run in case.runs
    ]
    recipe = repr((_state_of(checkout), contents, sorted(case.settings.items())))
    with _made_once(folder / "built", recipe) as missing:
        if missing:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            for run in case.runs:
                _fill(folder / "documents", run.documents)
                _run([*_command_line(checkout), *run.command], folder, environment)
    with _made_once(folder / "asked", PROBE.read_text() + repr(case.questions)) as missing:
        if missing:
            questions = json.dumps(case.questions)
            answers = _run([sys.executable, str(PROBE)], folder, environment, questions)
            (folder / "answers.jsonl").write_text(answers)
            _tell_errors(answers)


def _tell_errors(answers: str) -> None:
    """Say which questions ended in an error: where both sides do, that is equal, too."""
    replies = map(json.loads, answers.splitlines())
    errors = Counter(
        f"{kind} {line['method']}: {line[kind]['error']}"
        for line in replies
        for kind in KINDS
        if "error" in line[kind]
    )
    for error, count in errors.items():
        sys.stderr.write(f"  {count} x {error}\n")


@contextlib.contextmanager
def _made_once(mark: Path, recipe: str) -> Iterator[bool]:
    """Yield whether something is to be made; once it is, remember by which recipe."""
    wanted = _hash(recipe.encode())
    missing = not mark.is_file() or mark.read_text() != wanted
    began = time.perf_counter()
    yield missing
    if missing:
        mark.write_text(wanted)
        sys.stderr.write(f"{mark}: {time.perf_counter() - began:.0f} s\n")


def _fill(folder: Path, documents: Mapping[str, Path]) -> None:
    """Make a folder hold these documents, as old as each other in every checkout."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, source in documents.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        os.utime(target, (_ANY_TIME, _ANY_TIME))


def _environment(checkout: Path, settings: Mapping[str, str]) -> dict[str, str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(_NOT_INHERITED)}
    own = {"PYTHONPATH": str(checkout), "PYTHONSAFEPATH": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return {**inherited, **own, **settings}


def _command_line(checkout: Path) -> list[str]:
    """Return the installed command of a checkout, wherever its modules are."""
    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    module, _, function = project["scripts"]["graphrag-pipeline"].partition(":")
    return [sys.executable, "-c", f"from {module} import {function}; {function}()"]


def _run(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], given: str = ""
) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment, input=given, text=True, capture_output=True
    )
    if done.returncode:
        raise SystemExit(f"{folder}: {' '.join(command)}\n{done.stderr[-4000:]}")
    return done.stdout


def _check_is_imported(checkout: Path) -> None:
    where = "import graphrag_pipeline; print(graphrag_pipeline.__file__)"
    imported = _run([sys.executable, "-c", where], Path.cwd(), _environment(checkout, {}))
    if not Path(imported.strip()).is_relative_to(checkout):
        raise SystemExit(f"{checkout} is not what is imported, but {imported.strip()}")


def _state_of(checkout: Path) -> str:
    """Return what names the code of a checkout: its commit, and a hash of what is not committed."""
    git = ["git", "-C", str(checkout)]
    commit = _run([*git, "rev-parse", "HEAD"], checkout, os.environ).strip()
    return commit + _hash(_run([*git, "diff", "HEAD"], checkout, os.environ).encode())


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# Comparing

Tables = Mapping[str, str]
"""Name of a table, and how SQL refers to it."""


def _compare(case: Case, folders: Mapping[str, Path]) -> Iterator[Comparison]:
    """Yield the comparison of every table, view, vector table and method of either side."""
    with duckdb.connect() as con:
        for source in (_published, _vectors, _answers):
            before, after = (source(con, side, folders[side]) for side in SIDES)
            for name in sorted({*before, *after}):
                yield _compare_table(con, case.name, name, before.get(name), after.get(name))
            for relation in {*before.values(), *after.values()}:
                con.unregister(relation.strip('"'))


def _published(con: duckdb.DuckDBPyConnection, side: str, folder: Path) -> Tables:
    con.execute(f"ATTACH '{folder / 'home' / 'published.duckdb'}' AS {side} (READ_ONLY)")
    rows = con.execute(
        """SELECT table_name FROM duckdb_tables() WHERE database_name = $side UNION ALL
           SELECT view_name FROM duckdb_views() WHERE database_name = $side AND NOT internal""",
        {"side": side},
    )
    return {name: f'{side}."{name}"' for (name,) in rows.fetchall()}


def _vectors(con: duckdb.DuckDBPyConnection, side: str, folder: Path) -> Tables:
    newest = (
        f"SELECT vector_versions::VARCHAR FROM {side}.releases ORDER BY created_at DESC LIMIT 1"
    )
    ((versions,),) = con.execute(newest).fetchall()
    database = lancedb.connect(folder / "home" / "vectors")
    tables = {}
    for name, version in json.loads(versions).items():
        table = database.open_table(name)
        table.checkout(version)
        tables[f"vectors {name}"] = _register(con, f"{side} vectors {name}", table.to_arrow())
    return tables


def _answers(con: duckdb.DuckDBPyConnection, side: str, folder: Path) -> Tables:
    rows: dict[str, list[dict[str, object]]] = {}
    for line in (folder / "answers.jsonl").read_text().splitlines():
        reply = json.loads(line)
        for kind in KINDS:
            table = f"{kind} {reply['method']}"
            for part, place, value in _answer_parts(table, reply[kind]):
                row = {"question": reply["question"], "part": part, "place": place, "value": value}
                rows.setdefault(table, []).append(row)
    return {
        table: _register(con, f"{side} {table}", pa.Table.from_pylist(parts))
        for table, parts in rows.items()
    }


def _answer_parts(table: str, reply: Mapping[str, Any]) -> Iterator[tuple[str, int, str]]:
    """Yield the parts of a reply: each record, citation and step with its place, and all else."""
    for name, value in reply.items():
        if _is_excluded(f"{table}.{name}"):
            continue
        if name == "retrieval":
            yield from _answer_parts(table, value)
            continue
        for place, item in enumerate(value if isinstance(value, list) else [value]):
            yield name, place, json.dumps(item, ensure_ascii=False)


def _register(con: duckdb.DuckDBPyConnection, name: str, table: pa.Table) -> str:
    # DuckDB reads no half floats.
    halves = [
        pa.types.is_fixed_size_list(f.type) and f.type.value_type == pa.float16()
        for f in table.schema
    ]
    fields = [
        f.with_type(pa.list_(pa.float32(), f.type.list_size)) if half else f
        for f, half in zip(table.schema, halves, strict=True)
    ]
    con.register(name, table.cast(pa.schema(fields)))
    return f'"{name}"'


def _compare_table(
    con: duckdb.DuckDBPyConnection, case: str, name: str, before: str | None, after: str | None
) -> Comparison:
    if before is None:
        return Comparison(case, name, (0, _count(con, f"FROM {after}")), (0, 0), ["new"])
    if after is None:
        rows = _count(con, f"FROM {before}")
        return Comparison(case, name, (rows, 0), (max(rows, 1), 0), ["gone"])
    types, types_after = _types(con, before), _types(con, after)
    columns = [c for c, kind in types.items() if not _is_excluded(f"{name}.{c}", kind)]
    rows = _count(con, f"FROM {before}"), _count(con, f"FROM {after}")
    if gone := [c for c in columns if c not in types_after]:
        return Comparison(case, name, rows, rows, [f"without {', '.join(gone)}"])
    if not columns:
        return Comparison(case, name, rows, (0, 0), ["not compared"])
    sides = [_select(columns, side, at) for side, at in zip(SIDES, (before, after), strict=True)]
    differences = [f"{a} EXCEPT ALL {b}" for a, b in (sides, sides[::-1])]
    lost, new = (_count(con, difference) for difference in differences)
    notes = [f"new column {c}" for c in types_after if c not in types]
    notes += [
        f"{c} was {types[c]}, is {types_after[c]}" for c in columns if types[c] != types_after[c]
    ]
    if lost or new:
        notes += _first_difference(con, columns, differences)
    return Comparison(case, name, rows, (lost, new), notes)


def _is_excluded(column: str, kind: str = "") -> bool:
    return any(re.fullmatch(p, column) or kind.startswith(p) for p in _EXCLUDED)


def _types(con: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    return {row[0]: row[1] for row in con.execute(f"DESCRIBE {table}").fetchall()}


def _select(columns: Sequence[str], side: str, table: str) -> str:
    """Return SQL for rows; a batch, whose name begins with the time, is told by its number."""
    number = f"list_position((SELECT list(batch ORDER BY batch) FROM {side}.batches), batch)"
    values = [f"{number} AS batch" if c == "batch" else f'"{c}"' for c in columns]
    return f"SELECT {', '.join(values)} FROM {table}"


def _count(con: duckdb.DuckDBPyConnection, rows: str) -> int:
    ((count,),) = con.execute(f"SELECT count(*) FROM ({rows})").fetchall()
    return count


def _first_difference(
    con: duckdb.DuckDBPyConnection, columns: Sequence[str], differences: Sequence[str]
) -> Iterator[str]:
    """Yield lines on the first row of one side: where it differs from the likest of the other."""
    one, other = (
        con.execute(f"SELECT * FROM ({rows}) ORDER BY ALL LIMIT 200").fetchall()
        for rows in differences
    )
    if not one or not other:
        which, row = ("before", one) if one else ("after", other)
        yield f"only {which}: {_shown(dict(zip(columns, row[0], strict=True)))}"
        return
    like = max(other, key=lambda row: sum(a == b for a, b in zip(one[0], row, strict=True)))
    same = {c: a for c, a, b in zip(columns, one[0], like, strict=True) if a == b}
    yield f"in the row of {_shown(same)}"
    for column, a, b in zip(columns, one[0], like, strict=True):
        if a != b:
            yield f"{column}: {' -> '.join(_where_they_part(repr(a), repr(b)))}"


def _shown(row: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={str(value)[:40]!r}" for name, value in list(row.items())[:4])


def _where_they_part(a: str, b: str) -> Sequence[str]:
    length = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), 0)
    return [text[max(0, length - 30) : length + 50] for text in (a, b)]


if __name__ == "__main__":
    main()
