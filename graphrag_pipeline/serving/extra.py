"""What serving needs that is not installed with the rest."""

from __future__ import annotations

import importlib.util

from graphrag_pipeline.core.errors import ConfigError

_EXTRA = ("fastapi", "uvicorn", "prometheus_client", "mcp")


def require_extra() -> None:
    """Raise ConfigError where the extra ``server`` is not installed."""
    for name in _EXTRA:
        if importlib.util.find_spec(name) is None:
            raise ConfigError(
                f"this needs {name}: install it by pip install 'graphrag-pipeline[server]'"
            )
