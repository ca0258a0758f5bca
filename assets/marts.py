"""The marts: one asset per model of the dbt project, its data tests as asset checks.

Imported only where the marts are wanted: dbt takes seconds to import.
"""

# No annotations from the future: Dagster reads the class of a context from them.

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
from dagster_dbt import (
    DagsterDbtTranslator,
    DagsterDbtTranslatorSettings,
    DbtCliInvocation,
    dbt_assets,
)
from dagster_dbt.core.dbt_event_iterator import DbtEventIterator

from graphrag_pipeline.assets.common import OWNERS, adorned, markdown_rows
from graphrag_pipeline.assets.names import Names
from graphrag_pipeline.assets.stages import timed
from graphrag_pipeline.core.rows import one_line
from graphrag_pipeline.marts.build import MARTS_JOB, building
from graphrag_pipeline.resources import IndexResource, readable_failures
from graphrag_pipeline.resources.marts import MartsDbt

MARTS_POOL = "marts"
_STAGING = "staging"
_MOST_NAMED = 3
_COLUMNS = "dagster/column_schema"
_LINEAGE = "dagster/column_lineage"
_LONGEST_ORIGIN = 400
_DBT_TEXT = "character varying(256)"


class _Translator(DagsterDbtTranslator):
    def __init__(self, names: Names) -> None:
        # All tables of the release come from the one asset that publishes it.
        super().__init__(DagsterDbtTranslatorSettings(enable_duplicate_source_asset_keys=True))
        self._names = names

    def get_asset_key(self, dbt_resource_props: Mapping[str, Any]) -> dg.AssetKey:
        if dbt_resource_props["resource_type"] != "model":
            return self._names.key(super().get_asset_key(dbt_resource_props))
        within = [_STAGING] if dbt_resource_props["schema"] == _STAGING else []
        return self._names.key(dg.AssetKey(["marts", *within, dbt_resource_props["name"]]))

    def get_group_name(self, dbt_resource_props: Mapping[str, Any]) -> str | None:
        is_staging = dbt_resource_props.get("schema") == _STAGING
        return self._names.name("marts_staging" if is_staging else "marts")

    def get_owners(self, dbt_resource_props: Mapping[str, Any]) -> list[str]:
        return OWNERS

    def get_asset_check_spec(
        self, asset_spec: dg.AssetSpec, manifest: Mapping[str, Any], unique_id: str, project: Any
    ) -> dg.AssetCheckSpec | None:
        spec = super().get_asset_check_spec(asset_spec, manifest, unique_id, project)
        if spec is None or spec.description:
            return spec
        return spec._replace(description=_test_description(manifest["nodes"][unique_id]))


def _test_description(test: Mapping[str, Any]) -> str:
    """Say what a generic test asks for, from its name and arguments."""
    arguments = test["test_metadata"]["kwargs"]
    columns = arguments.get("column_name") or ", ".join(arguments.get("columns", ()))
    more = {name: value for name, value in arguments.items() if name in ("values", "to", "field")}
    text = ", ".join(f"{name} {value}" for name, value in more.items())
    return f"{columns}: {test['test_metadata']['name'].replace('_', ' ')}" + (
        f" ({text})" if text else ""
    )


def build_marts(manifest: Path, names: Names) -> dg.AssetsDefinition:
    """Return the assets of all models, which are built together."""

    @dbt_assets(
        manifest=manifest,
        name=names.name("marts"),
        dagster_dbt_translator=_Translator(names),
        pool=names.name(MARTS_POOL),
        required_resource_keys={names.resource, names.name("dbt")},
    )
    def marts(context: dg.AssetExecutionContext) -> Iterator[Any]:
        index: IndexResource = getattr(context.resources, names.resource)
        dbt: MartsDbt = getattr(context.resources, names.name("dbt"))
        if context.is_subset:
            raise dg.Failure(
                "the marts are built together, from one release: materialise all of them (job "
                f"{names.name(MARTS_JOB)})"
            )
        with (
            readable_failures(),
            timed("marts"),
            building(index.home) as build,
            dbt.build(context, build) as invocation,
        ):
            is_successful = invocation.is_successful()
            # What dbt says of files that a purge has taken away helps nobody.
            build.check_there()
            if not is_successful:
                yield from invocation.stream()
                raise dg.Failure(_why(invocation))
            for event in _counted_and_described(invocation):
                yield _with_columns_told(event)
            build.put_in_place()

    return marts


def _counted_and_described(invocation: DbtCliInvocation) -> Iterator[Any]:
    """Return dbt's events with row counts and columns; each step ends before the next begins.

    Chained as they are meant to be, these iterators take a processor core each to wait for one
    another.
    """
    events: Iterator[Any] = invocation.stream()
    for fetch in (DbtEventIterator.fetch_row_counts, DbtEventIterator.fetch_column_metadata):
        events = fetch(DbtEventIterator(iter(list(events)), invocation))
    return events


def _with_columns_told(event: Any) -> Any:
    """Return an event with the types that DuckDB has, and a table of what columns are made from."""
    if _COLUMNS not in event.metadata:
        return event
    columns = adorned("columns_made_from", lambda: _columns_told(event))
    return event.with_metadata({**event.metadata, **columns})


def _columns_told(event: Any) -> Mapping[str, Any]:
    """Return the columns of a model, with their types and what they are made from, as metadata.

    dbt's adapter takes every text for ``character varying(256)``. The lineage of columns that
    Dagster keeps is not shown by its open-source UI.
    """
    columns = [
        dg.TableColumn(c.name, "VARCHAR" if c.type == _DBT_TEXT else c.type)
        for c in event.metadata[_COLUMNS].value.columns
    ]
    lineage = event.metadata.get(_LINEAGE)
    origins = lineage.value.deps_by_column if lineage else {}
    made_from = [
        (name, ", ".join(f"{o.asset_key.path[-1]}.{o.column_name}" for o in deps))
        for name, deps in origins.items()
        if deps
    ]
    return {
        _COLUMNS: dg.TableSchema(columns=columns),
        "columns_made_from": markdown_rows(("column", "made from"), made_from, _LONGEST_ORIGIN),
    }


def _why(invocation: DbtCliInvocation) -> str:
    try:
        results = invocation.get_artifact("run_results.json")["results"]
    except OSError:
        return f"dbt failed with exit code {invocation.process.returncode}; the last marts stay"
    failures = [r for r in results if r["status"] in ("fail", "error")]
    reasons = [f"{r['unique_id'].split('.')[2]}: {one_line(r['message'])}" for r in failures]
    more = f" and {len(reasons) - _MOST_NAMED} more" if len(reasons) > _MOST_NAMED else ""
    return f"{'; '.join(reasons[:_MOST_NAMED])}{more}; the last marts stay"
