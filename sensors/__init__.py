"""What starts runs by itself: the inbox sensor, the refresh schedule, and word of failures."""

from sensors.failures import run_failure_sensor
from sensors.inbox import build_inbox_sensor
from sensors.refresh import build_refresh_schedule

__all__ = ["build_inbox_sensor", "build_refresh_schedule", "run_failure_sensor"]
