"""Everything Dagster is told of: assets, jobs, resources, sensors and schedules."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import dagster as dg
from dagster._core.definitions.definitions_load_context import StateBackedDefinitionsLoader

from graphrag_pipeline.assets import (
    Names,
    build_inbox,
    build_index_check,
    build_ingestion,
    build_tail,
    build_web_pages,
)
from graphrag_pipeline.core.doors import Door, require_takes
from graphrag_pipeline.core.errors import ConfigError, GraphRAGError
from graphrag_pipeline.core.extras import how_to_install, missing_modules
from graphrag_pipeline.core.service_settings import IN_PROCESS
from graphrag_pipeline.core.settings import Settings, load_settings
from graphrag_pipeline.extraction.model.trial import learn_of_model
from graphrag_pipeline.llm.configured import check_own_prompts
from graphrag_pipeline.marts.build import MARTS_JOB, manifest
from graphrag_pipeline.marts.inputs import OFFERED
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.resources.index import BESIDE_OTHERS
from graphrag_pipeline.sensors import (
    FETCH_JOB,
    Status,
    build_addresses_sensor,
    build_check_schedule,
    build_inbox_sensor,
    build_marts_sensor,
    build_refresh_schedule,
    build_refresh_sensor,
    build_run_sensors,
    check_crons,
)
from graphrag_pipeline.store.spending import uses_model

Automation = Literal["off", "on"]
"""Whether sensors and schedules begin switched on."""
INGEST_JOB = "ingest_batch"
REFRESH_JOB = "refresh_index"
CHECK_JOB = "check_index"
# A second process of a run would only wait for DuckDB's single writer.
ONE_PROCESS = dg.in_process_executor
log = logging.getLogger("graphrag_pipeline")
_PREFIXES: dict[Path, tuple[str, ...]] = {}
"""The prefix under which each home was defined in this process."""


@dataclass(frozen=True, kw_only=True)
class Building:
    """The subject of definitions: an index, the names of its parts, and what is asked for.

    ``status`` is that of new sensors and schedules; with ``marts``, what takes seconds to import
    is built, too.
    """

    index: IndexResource
    names: Names
    status: Status
    marts: bool

    @property
    def settings(self) -> Settings:
        """The settings of the index."""
        return self.index.settings

    @property
    def with_marts(self) -> bool:
        """Whether the marts are asked for, and dbt is installed."""
        return self.marts and not missing_modules("marts")


DEFINITIONS: Door[Any] = Door(
    "definitions",
    object,
    "Dagster definitions",
    own={
        "check": "definitions:check_definitions",
        "addresses": "definitions:address_definitions",
        "marts": "definitions:marts_definitions",
    },
    beside=__name__,
    check=lambda name, part: require_takes(part, "building"),
)
"""What stands beside the assets of an index: functions of a :class:`Building`."""


def build_definitions(
    settings: Settings,
    *,
    key_prefix: str | Sequence[str] = (),
    marts: bool = False,
    automation: Automation = "off",
) -> dg.Definitions:
    """Return the definitions of the index with these settings; with ``marts``, those of dbt too.

    Every asset's key begins with ``key_prefix``, and every other name, that of the resource
    ``index`` among them, with its parts and an underscore: several indexes, each with a home of its
    own, live in one code location. dbt takes seconds to import, and to read its project for the
    first time: only who shows or builds the marts asks for them. Where dbt is not installed, they
    are left out.

    Nothing starts by itself: sensors and schedules are there, and are switched on in the UI. With
    ``automation="on"`` they run as soon as the daemon does.

    Raises ConfigError where a process has defined an index of this home under another prefix.
    """
    if not isinstance(settings, Settings):
        raise ConfigError(
            f"build_definitions takes Settings, not {type(settings).__name__}: "
            "use Settings(**values) or load_settings()"
        )
    status = _status(automation)
    check_crons(settings)
    if uses_model(settings):
        check_own_prompts(settings)
    names, index = Names.under(key_prefix), IndexResource.of(settings)
    _check_prefix(settings.home_path, names.prefix)
    ingestion, tail = build_ingestion(settings, names), build_tail(settings, names)
    ingest_job = dg.define_asset_job(
        names.name(INGEST_JOB),
        selection=dg.AssetSelection.assets(*ingestion),
        executor_def=ONE_PROCESS,
        description="Read, chunk and extract document batches.",
    )
    refresh_job = dg.define_asset_job(
        names.name(REFRESH_JOB),
        selection=dg.AssetSelection.assets(*tail) - _nightly(names),
        executor_def=ONE_PROCESS,
        description="Add finished batches to the graph, refresh everything after it, and publish.",
    )
    batches = [key for asset in ingestion for key in asset.keys]
    # With workers the coordinator follows the folder: graphrag-pipeline index --watch.
    follows = settings.workers.launcher == IN_PROCESS
    followers = [
        build_inbox_sensor(ingest_job, index, names, status),
        build_refresh_sensor(refresh_job, ingest_job.name, batches, index, names, status),
    ]
    main = dg.Definitions(
        assets=[build_inbox(settings, names), *ingestion, *tail],
        jobs=[ingest_job, refresh_job],
        sensors=followers if follows else [],
        schedules=[build_refresh_schedule(refresh_job, index, names, status)] if follows else [],
        resources={names.resource: index},
    )
    parts = [main, *_beside(Building(index=index, names=names, status=status, marts=marts))]
    return dg.Definitions.merge(*parts, _failures(parts, index, names, status))


def _beside(building: Building) -> Iterator[dg.Definitions]:
    """Yield what comes in by the door; a package that fails is told of, and left out."""
    if building.settings.evaluation.experiment and missing_modules("evaluation"):
        log.warning("evaluation.experiment is left out: %s", how_to_install("evaluation"))
    for name, part in DEFINITIONS.usable().items():
        if name in DEFINITIONS.own:
            yield from part(building)
            continue
        try:
            made = list(part(building))
            dg.Definitions.merge(*made)
        except GraphRAGError:
            raise
        except Exception as error:
            log.warning("Dagster definitions %s: %s: %s", name, type(error).__name__, error)
        else:
            yield from made


def _status(automation: str) -> Status:
    if automation not in get_args(Automation):
        raise ConfigError(f"automation = {automation!r}: must be 'off' or 'on'")
    return "RUNNING" if automation == "on" else "STOPPED"


def _check_prefix(home: Path, prefix: tuple[str, ...]) -> None:
    """Raise ConfigError where two indexes of one code location would write to one home."""
    other = _PREFIXES.setdefault(home.resolve(), prefix)
    if other != prefix:
        first, second = ("/".join(parts) or "none" for parts in (other, prefix))
        raise ConfigError(
            f"two indexes in one home: {home} is defined under key_prefix {first} and under "
            f"{second}; give each index a home of its own, or define it under one prefix"
        )


def job_beside(name: str, assets: Sequence[dg.AssetsDefinition], about: str) -> Any:
    """Return a job of assets that writes nothing to the index, and so waits for no other."""
    return dg.define_asset_job(
        name,
        tags={BESIDE_OTHERS: "true"},
        selection=dg.AssetSelection.assets(*assets),
        executor_def=ONE_PROCESS,
        description=about,
    )


def _nightly(names: Names) -> dg.AssetSelection:
    """Return the checks that no refresh makes."""
    return dg.AssetSelection.checks(build_index_check(names))


def check_definitions(building: Building) -> list[dg.Definitions]:
    """Return the check of the whole index, and the schedule of it."""
    index, names = building.index, building.names
    check = build_index_check(names)
    job = dg.define_asset_job(
        names.name(CHECK_JOB),
        tags={BESIDE_OTHERS: "true"},
        selection=dg.AssetSelection.checks(check),
        executor_def=ONE_PROCESS,
        description="Verify index, vectors, releases, manifests and answers against each other.",
    )
    schedule = build_check_schedule(job, index, names, building.status)
    return [dg.Definitions(asset_checks=[check], jobs=[job], schedules=[schedule])]


def address_definitions(building: Building) -> list[dg.Definitions]:
    """Return the pages of the addresses in the settings, and what fetches them."""
    index, names = building.index, building.names
    pages = build_web_pages(index.settings, names)
    if not pages:
        return []
    job = job_beside(
        names.name(FETCH_JOB),
        pages,
        "Fetch new and changed pages of the addresses in the settings.",
    )
    sensor = build_addresses_sensor(job, index, names, building.status)
    return [dg.Definitions(assets=pages, jobs=[job], sensors=[sensor])]


def marts_definitions(building: Building) -> list[dg.Definitions]:
    """Return dbt's models, where they are asked for and dbt is installed."""
    if not building.with_marts:
        return []
    from graphrag_pipeline.assets.marts import build_marts
    from graphrag_pipeline.resources.marts import build_dbt

    index, names = building.index, building.names
    models = build_marts(manifest(index.home), names)
    job = job_beside(
        names.name(MARTS_JOB),
        [models],
        "Build and test the marts of the published release and the experiments.",
    )
    made = dg.Definitions(
        assets=[models, *_offered(names), *_evaluations(names)],
        jobs=[job],
        sensors=[build_marts_sensor(index, names, building.status)],
        resources={names.name("dbt"): build_dbt()},
    )
    return [made]


def _offered(names: Names) -> list[dg.AssetSpec]:
    """Return the tables that packages offer to the marts, which no asset makes."""
    return [
        dg.AssetSpec(
            names.key(name),
            description=f"The table {name}, where an installed package offers it.",
            group_name=names.name("marts"),
        )
        for name in OFFERED
    ]


def _evaluations(names: Names) -> list[dg.AssetSpec]:
    """Return the file of evaluations, which the marts read, where no package says what makes it."""
    if not missing_modules("evaluation"):
        return []
    spec = dg.AssetSpec(
        names.key("evaluations"),
        description="evaluation.duckdb: the results of all experiments, if any were made.",
        group_name=names.name("evaluation"),
        kinds={"duckdb"},
    )
    return [spec]


def _failures(
    parts: Sequence[dg.Definitions], index: IndexResource, names: Names, status: Status
) -> dg.Definitions:
    jobs = [job.name for part in parts for job in part.jobs or ()]
    made = [
        key
        for part in parts
        for asset in part.assets or ()
        if isinstance(asset, dg.AssetsDefinition)
        for key in asset.keys
    ]
    return dg.Definitions(sensors=build_run_sensors(jobs, made, index, names, status))


class SettingsOnce(StateBackedDefinitionsLoader[dict[str, Any]]):
    """Definitions under settings that are read once, as the code location is loaded.

    Dagster loads the definitions again in each process that executes a run, and hands it what was
    read then: what is edited meanwhile holds from the next loading of the code location.
    """

    def __init__(
        self, read: Callable[[], Settings], build: Callable[[Settings], dg.Definitions], name: str
    ) -> None:
        self._read = read
        self._build = build
        self._name = name

    @property
    def defs_key(self) -> str:
        """The key under which Dagster keeps the settings."""
        return f"graphrag_pipeline/settings/{self._name}"

    def fetch_state(self) -> dict[str, Any]:
        """Read the settings, and ask a local model for its size: a small one does not extract.

        A trial would take longer than Dagster waits for a code location.
        """
        settings = self._read()
        if settings.profile == "local" and learn_of_model(settings, by_trial=False):
            settings = self._read()
        state = settings.as_set()
        # Whoever is handed this does not decide anew.
        decided = {"extractor": settings.extraction.extractor}
        return {**state, "extraction": {**state.get("extraction", {}), **decided}}

    def defs_from_state(self, state: dict[str, Any]) -> dg.Definitions:
        """Return the definitions under settings that were read."""
        return self._build(Settings.exactly(state))

    def build_defs(self) -> dg.Definitions:
        """Return the definitions; what Dagster hands on needs no place in themselves."""
        return self.defs_from_state(self.get_or_fetch_state())


@dg.definitions
def defs() -> dg.Definitions:
    """Return the definitions that our own UI loads; there the automation is on."""
    build = partial(build_definitions, marts=True, automation="on")
    index = SettingsOnce(load_settings, build, "home")
    return dg.Definitions.merge(index.build_defs(), dg.Definitions(executor=ONE_PROCESS))
