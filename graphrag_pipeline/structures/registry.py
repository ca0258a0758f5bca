"""All structures, in order: those that ship, and those that were added from outside.

Who has to do with structures asks here, and names none.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

import duckdb

from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.identity import content_hash
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.core.systems import systems
from graphrag_pipeline.graph.communities import forget_state
from graphrag_pipeline.llm.estimates import Growth
from graphrag_pipeline.store.hierarchy import GRAPH, Hierarchy
from graphrag_pipeline.store.index_store import (
    IndexStore,
    count_rows,
    forget_meta,
    get_meta,
    set_meta,
)
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.structures.structure import (
    STRUCTURES,
    Outcome,
    Step,
    Structure,
    VectorTable,
)
from graphrag_pipeline.structures.vector_tables import (
    TABLES,
    forget_texts,
    tables_read,
    terms_key,
)

_MADE = "structure:"
_THERE = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main'"
_ENTRIES = "SELECT key, value FROM meta WHERE starts_with(key, ?) ORDER BY key"


def shipped_structures() -> tuple[Structure, ...]:
    """Return the structures of this package, which the schema of every index has tables for."""
    return tuple(each for name in STRUCTURES.own if (each := STRUCTURES.find(name)))


def all_structures() -> tuple[Structure, ...]:
    """Return all structures that there are, wanted or not."""
    return tuple(STRUCTURES.usable().values())


def wanted_structures(settings: Settings) -> tuple[Structure, ...]:
    """Return the structures that the settings ask for.

    Raises ConfigError where there is none of a name in ``structures.wanted``, or it cannot be used.
    """
    shipped = {structure.name: structure for structure in shipped_structures()}
    _check_hierarchies(settings, {structure.setting for structure in shipped.values()})
    here = (*shipped.values(), *STRUCTURES.added().values())
    wanted = {each.name: each for each in here if each.is_wanted(settings)}
    for name in settings.structures.wanted:
        if name in shipped:
            raise ConfigError(
                f"structures.wanted: {name} ships with the pipeline: set {shipped[name].setting}"
            )
        wanted[name] = _named(name)
    return tuple(wanted.values())


def _check_hierarchies(settings: Settings, known: Collection[str]) -> None:
    """Raise ConfigError where a hierarchy is asked for whose system is not there."""
    for name, value in settings.hierarchies:
        setting = f"hierarchies.{name}"
        if value is True and setting not in known:
            raise ConfigError(
                f"{setting} = true: there is no system that keeps it (there are "
                f"{', '.join(systems())}): set it to false, or put its folder back"
            )


def _named(name: str) -> Structure:
    structure = STRUCTURES.find(name)
    if structure is None:
        others = sorted(set(STRUCTURES.names()) - set(STRUCTURES.own))
        there = f"there are {', '.join(others)}" if others else "none is installed"
        raise ConfigError(
            f"structures.wanted: there is no structure {name!r} ({there}): install the package "
            "that brings it, or take it out; the next index then drops its tables"
        )
    return structure


def vector_tables(settings: Settings) -> tuple[VectorTable, ...]:
    """Return the vector tables that the settings ask for."""
    wanted = wanted_structures(settings)
    return (*_tables_read(settings), *(table for each in wanted for table in each.vectors))


def _tables_read(settings: Settings) -> tuple[VectorTable, ...]:
    """Return the tables of every index that chosen methods or structures read."""
    steps = (step for structure in wanted_structures(settings) for step in structure.steps)
    return tables_read(settings.embeddings, {name for step in steps for name in step.vectors})


def made_vector_tables(con: duckdb.DuckDBPyConnection, settings: Settings) -> list[VectorTable]:
    """Return the vector tables that the settings ask for, but for structures without tables yet."""
    optional = (table for each in made_structures(con, settings) for table in each.vectors)
    return [*_tables_read(settings), *optional]


def made_structures(con: duckdb.DuckDBPyConnection, settings: Settings) -> list[Structure]:
    """Return the structures that the settings ask for, but for those without tables yet."""
    made = _made(con)
    wanted = wanted_structures(settings)
    return [each for each in wanted if not each.schema or each.name in made]


def known_vector_tables() -> dict[str, VectorTable]:
    """Return all vector tables that are known by now, by name, wanted or not."""
    optional = (table for each in all_structures() for table in each.vectors)
    return {table.name: table for table in (*TABLES, *optional)}


def update_step(workspace: Workspace, structure: Structure, step: Step) -> Outcome:
    """Bring one table of a structure up to date, after making its tables where there are none."""
    if structure.schema:
        _make_tables(workspace.store, structure)
    return step.update(workspace)


def steps_without_model(settings: Settings, growth: Growth) -> list[str]:
    """Return the names of the steps that ask no language model in a run that brings so much."""
    reports_are_asked = settings.reports.writer == "llm"
    steps: list[str] = []
    for structure in wanted_structures(settings):
        asks = structure.estimate(settings, growth)
        if not asks.calls and not (asks.reports and reports_are_asked):
            steps += (step.stage for step in structure.steps)
    return steps


def clear_unwanted(con: duckdb.DuckDBPyConnection, settings: Settings) -> None:
    """Empty the tables of structures that the settings do not ask for.

    Those that the schema of the index does not have are dropped, whether or not the package that
    brought them is still installed.
    """
    wanted = {structure.name for structure in wanted_structures(settings)}
    for structure in shipped_structures():
        if structure.name not in wanted:
            structure.clear(con)
    for name, record in _made(con).items():
        if name not in wanted:
            _drop_tables(con, name, record)
    forget_texts(con, [table.name for table in vector_tables(settings)])


def all_hierarchies() -> tuple[Hierarchy, ...]:
    """Return all hierarchies of communities that an index has tables for."""
    return (GRAPH, *(each.hierarchy for each in shipped_structures() if each.hierarchy))


def hierarchies_with_stand_ins() -> tuple[Hierarchy, ...]:
    """Return the hierarchies on which a release that shows some documents has reports by rule."""
    shipped = shipped_structures()
    return (GRAPH, *(each.hierarchy for each in shipped if each.hierarchy and each.has_stand_ins))


def content_tables(con: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the tables of structures that belong to a release's content."""
    shipped = [table for structure in shipped_structures() for table in structure.content]
    return [*shipped, *(table for record in _made(con).values() for table in record["tables"])]


def late_structures(con: duckdb.DuckDBPyConnection, settings: Settings) -> list[str]:
    """Return in words which tables of the structures asked for are behind the graph."""
    late = _late(con, settings)
    return [what for structure in wanted_structures(settings) for what in late[structure.name]]


def current_structures(con: duckdb.DuckDBPyConnection, settings: Settings) -> frozenset[str]:
    """Return the names of the structures asked for that are not behind the graph."""
    return frozenset(name for name, late in _late(con, settings).items() if not late)


def _late(con: duckdb.DuckDBPyConnection, settings: Settings) -> dict[str, list[str]]:
    made = _made(con)
    return {
        structure.name: structure.late(con, settings)
        if not structure.schema or structure.name in made
        else [step.late for step in structure.steps]
        for structure in wanted_structures(settings)
    }


def counts(con: duckdb.DuckDBPyConnection, structures: Sequence[Structure]) -> dict[str, int]:
    """Return the numbers of rows that structures have by now, by the tables of their steps."""
    there = {name for (name,) in con.execute(_THERE).fetchall()}
    tables = [
        step.table
        for structure in structures
        for step in structure.steps
        if step.is_counted and step.table in there
    ]
    return {table: count_rows(con, table) for table in tables}


def model_stages() -> list[str]:
    """Return the stages under which structures ask a model."""
    return [stage for structure in all_structures() for stage in structure.model_stages]


def ask_for_clustering(store: IndexStore) -> None:
    """Let the next update cluster the whole graph anew, and all hierarchies there are."""
    with store.transaction() as con:
        forget_state(con, GRAPH)
        made = _made(con)
        for structure in all_structures():
            if not structure.schema or structure.name in made:
                structure.cluster_anew(con)


def _made(con: duckdb.DuckDBPyConnection) -> dict[str, dict[str, list[str]]]:
    """Return what tables, keys in ``meta`` and vectors structures from outside have made."""
    entries: Sequence[tuple[str, str]] = con.execute(_ENTRIES, [_MADE]).fetchall()
    return {key.removeprefix(_MADE): json.loads(value) for key, value in entries}


def _make_tables(store: IndexStore, structure: Structure) -> None:
    record = {
        "schema": [content_hash(structure.schema)],
        "tables": list(structure.tables),
        "working": list(structure.working),
        "meta": [*structure.meta, *(f"vectors:{table.name}" for table in structure.vectors)],
    }
    key, value = f"{_MADE}{structure.name}", json.dumps(record)
    with store.read() as con:
        if get_meta(con, key) == value:
            return
    with store.transaction() as con:
        before = _made(con).get(structure.name)
        if before:
            _drop_tables(con, structure.name, before)
        con.execute(structure.schema)
        set_meta(con, key, value)


def _drop_tables(con: duckdb.DuckDBPyConnection, name: str, record: dict[str, list[str]]) -> None:
    for table in (*record["tables"], *record["working"]):
        quoted = ".".join('"{}"'.format(part.replace('"', '""')) for part in table.split("."))
        con.execute(f"DROP TABLE IF EXISTS {quoted}")
    for key in record["meta"]:
        forget_meta(con, key)
        forget_meta(con, terms_key(key.removeprefix("vectors:")))
    forget_meta(con, f"{_MADE}{name}")
