"""Measurements, printed by ``make bench``. They share the tests' played model."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
