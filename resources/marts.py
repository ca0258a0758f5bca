"""dbt as a Dagster resource: over the published release, away from the checkout."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from functools import cached_property
from importlib.metadata import version

import dagster as dg
from dagster_dbt import DbtCliInvocation, DbtCliResource
from packaging.version import Version

from graphrag_pipeline.core.hardening.child_commands import guard_of
from graphrag_pipeline.marts.build import PROJECT, TARGET, Build, dbt_command


class MartsDbt(DbtCliResource):
    """Runs the commands of the dbt project ``dbt_reports``."""

    @cached_property
    def _cli_version(self) -> Version:
        # The resource would start dbt to ask, which takes seconds and looks for a newer one online.
        return Version(version("dbt-core"))

    @contextlib.contextmanager
    def build(self, context: dg.AssetExecutionContext, build: Build) -> Iterator[DbtCliInvocation]:
        """Start ``dbt build`` for the assets of a run; its profile's environment holds meanwhile.

        dbt's adapter within this process, which reads columns and counts, needs it as dbt does.
        """
        before = {name: os.environ.get(name) for name in build.environment}
        os.environ.update(build.environment)
        try:
            yield self.cli(
                ["build"], context=context, target_path=build.target, raise_on_error=False
            )
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})


def build_dbt() -> MartsDbt:
    """Return the resource. Raises ConfigError when dbt is not installed.

    A run that is killed ends dbt, too, which would go on writing in a folder that is swept.
    """
    project = str(PROJECT)
    executable, *flags = (
        [*guard_of(), str(dbt_command())] if os.name == "posix" else [dbt_command()]
    )
    return MartsDbt(
        project_dir=project,
        profiles_dir=project,
        target=TARGET,
        dbt_executable=executable,
        # They stand before all that dbt is told.
        global_config_flags=flags,
    )
