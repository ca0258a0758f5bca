"""What starts runs by itself: sensors of inbox and marts, schedules, word of failures."""

from sensors.evaluation import build_evaluation_schedule
from sensors.failures import run_failure_sensor
from sensors.inbox import build_inbox_sensor
from sensors.marts import build_marts_sensor
from sensors.refresh import build_refresh_schedule

__all__ = [
    "build_evaluation_schedule",
    "build_inbox_sensor",
    "build_marts_sensor",
    "build_refresh_schedule",
    "run_failure_sensor",
]
