"""What starts runs by itself: sensors of inbox and marts, schedules, word of failures."""

from graphrag_pipeline.sensors.cron import check_crons
from graphrag_pipeline.sensors.evaluation import build_evaluation_schedule
from graphrag_pipeline.sensors.failures import run_failure_sensor
from graphrag_pipeline.sensors.inbox import build_inbox_sensor
from graphrag_pipeline.sensors.marts import build_marts_sensor
from graphrag_pipeline.sensors.refresh import build_refresh_schedule

__all__ = [
    "build_evaluation_schedule",
    "build_inbox_sensor",
    "build_marts_sensor",
    "build_refresh_schedule",
    "check_crons",
    "run_failure_sensor",
]
