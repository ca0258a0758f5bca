"""The definitions that a worker loads: under the settings of its machine, without dbt's."""

from __future__ import annotations

from graphrag_pipeline.core.settings import load_settings
from graphrag_pipeline.definitions import build_definitions

defs = build_definitions(load_settings())
