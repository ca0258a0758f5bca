"""What starts runs by itself: inbox and marts sensors, the refresh schedule, word of failures."""

from sensors.failures import run_failure_sensor
from sensors.inbox import build_inbox_sensor
from sensors.marts import build_marts_sensor
from sensors.refresh import build_refresh_schedule

__all__ = [
    "build_inbox_sensor",
    "build_marts_sensor",
    "build_refresh_schedule",
    "run_failure_sensor",
]
