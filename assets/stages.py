"""A stage in Dagster: what it makes and what is shown of it is said once, and wrapped here."""

# No annotations from the future: Dagster reads the class of a context from them.

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import dagster as dg
import duckdb

from graphrag_pipeline.assets.common import (
    OWNERS,
    adorned,
    column_schema,
    facts,
    markdown_table,
    picture,
)
from graphrag_pipeline.assets.names import Names
from graphrag_pipeline.core import progress
from graphrag_pipeline.core.hardening.interrupts import end_if_interrupted
from graphrag_pipeline.pages.pictures import Picture
from graphrag_pipeline.pipeline import stages as engine
from graphrag_pipeline.releases import invariants
from graphrag_pipeline.resources import IndexResource, readable_failures
from graphrag_pipeline.store.index_store import IndexStore
from graphrag_pipeline.store.spending import Spent
from graphrag_pipeline.structures.structure import Check, Preview

INDEX_POOL = "index_db"
_LONG_REASON = 240
T = TypeVar("T")
Pictures = Mapping[dg.AssetKey, Sequence[Picture | None]]


@dataclass(frozen=True)
class StageOutcome:
    """Result of a stage: what to tell of it and of each of its tables, how much failed, and why.

    ``violations`` are of the checks that the engine has made, by the table's key and their name.
    """

    facts: Mapping[str, Any] = field(default_factory=dict)
    failed: int = 0
    why: str = ""
    violations: Mapping[engine.Checked, int] = field(default_factory=dict)
    of_table: Mapping[dg.AssetKey, Mapping[str, Any]] = field(default_factory=dict)


def _check_spec(check: Check, key: dg.AssetKey) -> dg.AssetCheckSpec:
    """Return what Dagster is told of a check beforehand."""
    return dg.AssetCheckSpec(check.name, asset=key, blocking=check.stops, description=check.about)


def _check_result(
    check: Check,
    key: dg.AssetKey,
    con: duckdb.DuckDBPyConnection | None,
    parameters: Mapping[str, Any],
    outcome: StageOutcome,
    names: Names,
) -> dg.AssetCheckResult:
    """Count what is against a check of a table, unless the engine has; else it is what failed."""
    number = outcome.violations.get((tuple(key.path), check.name))
    if number is None and con is not None and check.broken:
        number = invariants.violations(con, check.broken, parameters)
    number = outcome.failed if number is None else number
    metadata: dict[str, Any] = {"number" if check.warns else "violations": number}
    if number and check.shows and con is not None:
        rows = partial(markdown_table, con, check.shows, parameters, _LONG_REASON)
        metadata |= adorned("rows", lambda: {"rows": rows()})
    return dg.AssetCheckResult(
        asset_key=names.key(key),
        check_name=check.name,
        passed=number == 0,
        severity=dg.AssetCheckSeverity.WARN if check.warns else dg.AssetCheckSeverity.ERROR,
        description=(outcome.why or f"{number} {check.what}") if number else None,
        metadata=metadata,
    )


@dataclass(frozen=True, kw_only=True)
class StageTable:
    """An asset: a table, or what else a stage makes, and what is shown of it.

    ``facts`` is a query of one row, shown by column name; it and the previews are asked with
    ``parameters``, or with a batch's ``key``. ``table`` is empty for what is no table of the index;
    ``version``, a hash of code and settings, where it is known by the first part of the key.
    """

    key: dg.AssetKey
    about: str
    group: str
    made_from: Sequence[dg.AssetKey] = ()
    kinds: frozenset[str] = frozenset({"python", "duckdb"})
    table: str = ""
    version: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    facts: str = ""
    previews: Mapping[str, Preview] = field(default_factory=dict)
    checks: Sequence[Check] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def spec(self, names: Names, versions: Mapping[str, str], **more: Any) -> dg.AssetSpec:
        """Return what Dagster is told of it beforehand."""
        version = self.version or versions.get(self.key.path[0])
        kept_in = {
            "dagster/table_name": f"index.main.{self.table}",
            "dagster/storage_kind": "duckdb",
        }
        return dg.AssetSpec(
            names.key(self.key),
            deps=[names.key(key) for key in self.made_from],
            description=self.about,
            group_name=names.name(self.group),
            kinds=set(self.kinds),
            owners=OWNERS,
            code_version=version,
            metadata={**(kept_in if self.table else {}), **self.metadata},
            **more,
        )

    def shown(
        self, store: IndexStore, con: duckdb.DuckDBPyConnection, parameters: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return what the table's rows are shown by."""
        shown: dict[str, Any] = {}
        if self.facts:
            shown |= adorned("counts", lambda: facts(con, self.facts, parameters))
        if self.table:
            shown |= adorned("columns", lambda: column_schema(con, store, self.table))
        for name, preview in self.previews.items():
            shown |= adorned(name, partial(_preview, con, name, preview, parameters))
        return shown


@dataclass(frozen=True, kw_only=True)
class AssetStage:
    """A stage of the engine, and the assets that it makes together.

    ``work`` is given the index, then the key of a batch where the stage is run batch by batch, then
    what the launchpad was told where there is a ``config``. ``part`` of ``parts`` says how far the
    display of progress is when it begins. Where it ``spends``, its calls of a model are accounted
    for, and the run is refused before where the disk has no room.
    """

    name: str
    work: Callable[..., StageOutcome]
    tables: Sequence[StageTable]
    pool: str = INDEX_POOL
    label: str = ""
    part: int = 0
    parts: int = 1
    by_batch: bool = False
    config: type[dg.Config] | None = None
    spends: bool = True
    pictures: Callable[[duckdb.DuckDBPyConnection], Pictures] | None = None

    @property
    def key(self) -> dg.AssetKey:
        """The key of what it makes first."""
        return self.tables[0].key

    def build(self, names: Names, versions: Mapping[str, str]) -> dg.AssetsDefinition:
        """Return the assets as they are called here, with the version of their code."""
        partitions = {"partitions_def": names.batches} if self.by_batch else {}
        specs = [table.spec(names, versions, **partitions) for table in self.tables]

        @dg.multi_asset(
            name=names.name(self.name),
            specs=specs,
            check_specs=[_check_spec(c, names.key(t.key)) for t in self.tables for c in t.checks],
            pool=names.name(self.pool),
            required_resource_keys={names.resource},
            config_schema=self.config.to_fields_dict() if self.config else None,
            backfill_policy=dg.BackfillPolicy.single_run() if self.by_batch else None,
        )
        def stage(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult]:
            index = getattr(context.resources, names.resource)
            with readable_failures():
                end_if_interrupted()
                if self.spends:
                    index.check_space()
                if self.by_batch:
                    yield self._run_batches(context, index, names)
                else:
                    options = (
                        [self.config(**context.op_execution_context.op_config)]
                        if self.config
                        else []
                    )
                    yield from self._run(index, names, *options)

        return stage

    def _run(
        self, index: IndexResource, names: Names, *inputs: object
    ) -> Iterator[dg.MaterializeResult]:
        with (
            timed(self.label or self.name, self.part, self.parts) as metadata,
            self._spent(index) as s,
        ):
            outcome = self.work(index, *inputs)
        metadata |= {**outcome.facts, **s.metadata}
        with self._connection(index) as con:
            tables = {
                t.key: t.shown(index.store, con, t.parameters) if con else {} for t in self.tables
            }
            checks = {
                t.key: [
                    _check_result(c, t.key, con, t.parameters, outcome, names) for c in t.checks
                ]
                for t in self.tables
            }
            draw = self.pictures
            pictures = adorned("pictures", lambda: draw(con)) if con and draw else {}
        for key in tables:
            pictures_of = [picture(index.home, drawing) for drawing in pictures.get(key, ())]
            yield dg.MaterializeResult(
                asset_key=names.key(key),
                metadata={
                    **{name: value for drawing in pictures_of for name, value in drawing.items()},
                    **metadata,
                    **outcome.of_table.get(key, {}),
                    **tables[key],
                },
                check_results=checks[key],
            )

    def _spent(self, index: IndexResource) -> contextlib.AbstractContextManager[Spent]:
        return index.spending() if self.spends else contextlib.nullcontext(Spent())

    def _connection(
        self, index: IndexResource
    ) -> contextlib.AbstractContextManager[duckdb.DuckDBPyConnection | None]:
        asks = any(t.table or any(c.broken for c in t.checks) for t in self.tables)
        return index.get_connection() if asks else contextlib.nullcontext()

    def _run_batches(
        self, context: dg.AssetExecutionContext, index: IndexResource, names: Names
    ) -> dg.MaterializeResult:
        """Do the work batch by batch; each partition is told what is its own."""
        (table,) = self.tables
        key, batches = names.key(table.key), sorted(context.partition_keys)
        n_failed = 0
        for number, batch in enumerate(batches):
            end_if_interrupted()
            with timed(self.name, number, len(batches)) as metadata, self._spent(index) as spending:
                outcome = self.work(index, batch)
            with index.get_connection() as con:
                metadata |= {
                    **outcome.facts,
                    **spending.metadata,
                    **table.shown(index.store, con, {"key": batch}),
                }
            n_failed += outcome.failed
            context.add_asset_metadata(metadata, asset_key=key, partition_key=batch)
        with index.get_connection() as con:
            whole = StageOutcome(failed=n_failed)
            checks = [
                _check_result(c, table.key, con, {"keys": batches}, whole, names)
                for c in table.checks
            ]
        return dg.MaterializeResult(asset_key=key, check_results=checks)


def shown(
    stage: engine.Stage[T],
    tell: Callable[[IndexResource, T], StageOutcome],
    tables: Sequence[StageTable],
    prepare: Callable[..., None] | None = None,
    **more: Any,
) -> AssetStage:
    """Return a stage of the engine with the tables that it makes, and its checks of them.

    ``prepare`` comes first, given the index and what the launchpad was told; ``tell`` says what
    came of the stage; ``more`` is what :class:`AssetStage` takes besides.
    """

    def work(index: IndexResource, *inputs: object) -> StageOutcome:
        if prepare is not None:
            prepare(index, *inputs)
        outcome, violations = stage.update_and_check(index.workspace)
        return replace(tell(index, outcome), violations=violations)

    checked = [
        replace(t, checks=[*stage.checks.get(tuple(t.key.path), ()), *t.checks]) for t in tables
    ]
    about = {"name": stage.name, "label": stage.label, "part": stage.part, "parts": stage.parts}
    return AssetStage(**{"work": work, "tables": checked, **about, **more})


def _preview(
    con: duckdb.DuckDBPyConnection, name: str, preview: Preview, parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """Return rows as metadata, under this name."""
    if preview.if_any and not con.execute(preview.query, parameters).fetchone():
        return {}
    return {name: markdown_table(con, preview.query, parameters, preview.longest)}


@contextlib.contextmanager
def timed(label: str, part: int = 0, parts: int = 1) -> Iterator[dict[str, Any]]:
    """Yield metadata that says in the end how many seconds the body took; show its progress."""
    metadata: dict[str, Any] = {}
    began = time.perf_counter()
    progress.report(label, part, parts)
    yield metadata
    metadata["seconds"] = round(time.perf_counter() - began, 3)
    progress.report(label, part + 1, parts)
