"""The cron schedules of the settings, checked by Dagster before anything is scheduled by them."""

from __future__ import annotations

import dagster as dg

from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.settings import Settings


def check_crons(settings: Settings) -> None:
    """Raise ConfigError if Dagster does not take a cron schedule of the settings."""
    crons = {
        "schedule.refresh_cron": settings.schedule.refresh_cron,
        "schedule.check_cron": settings.schedule.check_cron,
        "evaluation.cron": settings.evaluation.cron,
    }
    for name, cron in crons.items():
        try:
            dg.ScheduleDefinition(name="checked", cron_schedule=cron, job_name="checked")
        except dg.DagsterInvalidDefinitionError:
            raise ConfigError(
                f"{name} = {cron!r}: must be five cron fields, such as '0 2 * * *', or a word such "
                "as '@daily'"
            ) from None
