"""Sensors and schedules, which start runs by themselves, and reports of failures."""

from graphrag_pipeline.sensors.addresses import (
    FETCH_JOB as FETCH_JOB,
    build_addresses_sensor as build_addresses_sensor,
)
from graphrag_pipeline.sensors.cron import check_crons as check_crons
from graphrag_pipeline.sensors.failures import build_run_sensors as build_run_sensors
from graphrag_pipeline.sensors.inbox import build_inbox_sensor as build_inbox_sensor
from graphrag_pipeline.sensors.marts import build_marts_sensor as build_marts_sensor
from graphrag_pipeline.sensors.refresh import (
    build_refresh_schedule as build_refresh_schedule,
    build_refresh_sensor as build_refresh_sensor,
)
from graphrag_pipeline.sensors.runs import Status as Status
from graphrag_pipeline.sensors.upkeep import build_check_schedule as build_check_schedule
