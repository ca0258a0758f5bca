"""A structure: tables beside the graph that some methods need, kept up to date with it.

A :class:`Structure` says everything about itself that publishing, vectors, plans, status and
Dagster's lineage must know; they go through the registry
(:mod:`~graphrag_pipeline.structures.registry`) and name none. One that is made outside of this
package says so too, and comes in by the door :data:`STRUCTURES` or by :func:`register_structure`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import duckdb

from graphrag_pipeline.core.doors import Door
from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm.estimates import Estimate, Growth
from graphrag_pipeline.store.hierarchy import Hierarchy
from graphrag_pipeline.store.index_store import forget_meta
from graphrag_pipeline.store.workspace import Workspace

_NAME = pattern_of(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class VectorTable:
    """A table of vectors: ``texts`` selects what is embedded, as (id, text, level, batch).

    ``made_from`` are the tables that the query reads, by which its asset knows what it waits for.
    ``read_by`` are the methods that search it; empty: it is embedded whatever method is chosen.
    """

    name: str
    texts: str
    made_from: Sequence[str]
    about: str
    read_by: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Check:
    """An invariant: ``broken`` counts the rows against it, ``what`` says in words what they are.

    ``broken`` is a query with ``parameters``; where it is empty, the stage itself counts, or what
    is against it is what could not be done (:attr:`Outcome.failed`). Where a check that is
    ``blocking`` finds such rows, nothing is published. One that ``warns`` stops nothing. ``shows``
    is a query with the same parameters, of what is shown where anything is against it.
    """

    name: str
    about: str
    broken: str
    what: str
    blocking: bool = True
    parameters: Mapping[str, object] = field(default_factory=dict)
    warns: bool = False
    shows: str = ""

    @property
    def stops(self) -> bool:
        """Whether nothing is published where something is against it."""
        return self.blocking and not self.warns

    def failure(self, asset: str, number: int) -> str:
        """Return in words that so many rows of an asset are against it."""
        return f"{asset} {self.name} ({number} {self.what})"


@dataclass(frozen=True)
class Preview:
    """Rows shown as a table, by one query; values are cut to ``longest`` characters.

    With ``if_any``, nothing is shown where there are no rows.
    """

    query: str
    longest: int = 90
    if_any: bool = False


@dataclass(frozen=True)
class Outcome:
    """Result of a step: ``facts`` to show, and how many things ``failed`` and are tried again."""

    facts: Mapping[str, object] = field(default_factory=dict)
    failed: int = 0


@dataclass(frozen=True)
class Step:
    """A table that is brought up to date at once, and is an asset of its own.

    Parameters
    ----------
    key
        Path of the asset's key; its first part is the asset's group.
    about
        What it is, in a sentence.
    table
        The table that it keeps up to date, whose columns are shown.
    update
        Brings the table up to date; does nothing when that is what it is.
    is_current
        Whether the table belongs to the graph, the vectors and the settings as they are.
    late
        What publishing says is behind the graph when it is not current.
    made_from
        Tables that it is made from.
    vectors
        Names of the vector tables that it is made from.
    label
        Name of the stage in the display of progress; the last part of the key unless given.
    facts
        A query with one row, shown by column name.
    previews
        Rows to show, by name.
    checks
        What must hold of the table, and what to warn of.
    is_counted
        Whether ``status`` counts its rows.
    """

    key: tuple[str, ...]
    about: str
    table: str
    update: Callable[[Workspace], Outcome]
    is_current: Callable[[duckdb.DuckDBPyConnection, Settings], bool]
    late: str
    made_from: Sequence[str] = ()
    vectors: Sequence[str] = ()
    label: str = ""
    facts: str = ""
    previews: Mapping[str, Preview] = field(default_factory=dict)
    checks: Sequence[Check] = ()
    is_counted: bool = True

    @property
    def stage(self) -> str:
        """Name of the stage in the display of progress."""
        return self.label or self.key[-1]


def _nothing_to_forget(con: duckdb.DuckDBPyConnection) -> None:
    pass


@dataclass(frozen=True)
class Structure:
    """Tables beside the graph, wanted or not as a whole.

    Parameters
    ----------
    name
        Lower-case letters, digits and underscores.
    steps
        What keeps its tables up to date, in order.
    vectors
        Its vector tables.
    tables
        The tables that belong to a release's content.
    working
        Other tables that it keeps for its own use, such as ``staging.NAME``.
    hierarchy
        The communities that it keeps in the tables that all hierarchies share; only a structure of
        this package can, as their views are in the schema of the index.
    has_stand_ins
        Whether a release that shows some documents only has reports by rule on these communities,
        in place of those that rest on other documents.
    clustered
        Whether these communities are those of the graph as it is, though reports on them may be
        behind. None: where all its steps are current.
    meta
        Keys in ``meta`` under which it keeps its state; one that ends in ``:`` is a prefix.
    setting
        The setting that asks for it, such as ``hierarchies.raptor``. Empty: ``structures.wanted``
        does, by its name.
    schema
        ``CREATE TABLE IF NOT EXISTS`` and ``COMMENT ON`` for its tables, where the schema of the
        index does not have them. Run before its first step; where it has changed, the tables are
        dropped and made anew.
    version
        A hash of the settings, prompts and code that decide its rows: Dagster shows an asset as
        outdated when it changes.
    model_stages
        The stages under which it asks a model.
    estimate
        What a run will ask a model for it; ``plan`` adds these up.
    cluster_anew
        Forgets what keeps its clusters as they are, for those who ask to cluster anew.
    """

    name: str
    steps: Sequence[Step] = ()
    vectors: Sequence[VectorTable] = ()
    tables: Sequence[str] = ()
    working: Sequence[str] = ()
    hierarchy: Hierarchy | None = None
    has_stand_ins: bool = False
    clustered: Callable[[duckdb.DuckDBPyConnection, Settings], bool] | None = None
    meta: Sequence[str] = ()
    setting: str = ""
    schema: str = ""
    version: Callable[[Settings], str] = lambda settings: "1"
    model_stages: Sequence[str] = ()
    estimate: Callable[[Settings, Growth], Estimate] = lambda settings, growth: Estimate()
    cluster_anew: Callable[[duckdb.DuckDBPyConnection], None] = _nothing_to_forget

    @property
    def content(self) -> Sequence[str]:
        """Tables and views that belong to a release's content."""
        return (*self.tables, *(self.hierarchy.views if self.hierarchy else ()))

    def is_wanted(self, settings: Settings) -> bool:
        """Whether the settings ask for it."""
        if not self.setting:
            return self.name in settings.structures.wanted
        section, name = self.setting.split(".")
        return bool(getattr(getattr(settings, section), name))

    def is_clustered(self, con: duckdb.DuckDBPyConnection, settings: Settings) -> bool:
        """Whether its communities, if it has any, are those of the graph as it is."""
        return self.clustered(con, settings) if self.clustered else not self.late(con, settings)

    def late(self, con: duckdb.DuckDBPyConnection, settings: Settings) -> list[str]:
        """Return what of it is behind the graph, in words."""
        return [step.late for step in self.steps if not step.is_current(con, settings)]

    def clear(self, con: duckdb.DuckDBPyConnection) -> None:
        """Empty its tables, as if there had never been anything in them."""
        for table in (*self.tables, *self.working):
            con.execute(f"DELETE FROM {table}")
        if self.hierarchy:
            self.hierarchy.clear(con)
        for key in self.meta:
            forget_meta(con, key)


def _check(name: str, structure: Structure) -> None:
    """Raise ConfigError for a name, or names of tables, that cannot be used."""
    if structure.name != name:
        raise ConfigError(f"it is called {structure.name}: name the entry point so, too")
    tables = (*structure.tables, *(table.name for table in structure.vectors))
    wrong = [name for name in (structure.name, *tables) if not _NAME.fullmatch(name)]
    if wrong:
        raise ConfigError(
            f"structure {structure.name!r}: {wrong[0]!r} cannot be used as a name: take lower-case "
            "letters, digits and underscores"
        )


STRUCTURES: Door[Structure] = Door(
    "structures",
    Structure,
    "structure",
    own={
        "facts": "synonyms.structure:FACTS",
        "synonyms": "synonyms.structure:SYNONYMS",
    },
    beside=__name__,
    has_systems=True,
    check=_check,
)
"""All structures by name; each of ours is made from the graph and from those before it."""


def register_structure(structure: Structure) -> None:
    """Add a structure of your own; where ``structures.wanted`` names it, it is kept up to date.

    Raises ConfigError for a name, or names of tables, that cannot be used.
    """
    _check(structure.name, structure)
    if structure.name in STRUCTURES.own:
        raise ConfigError(f"structure {structure.name} is there already: choose another name")
    STRUCTURES.add(structure.name, structure)


def unregister_structure(name: str) -> None:
    """Take back what :func:`register_structure` has added; nothing where it has not."""
    STRUCTURES.remove(name)
