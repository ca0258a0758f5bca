"""What serving needs that is not installed with the rest."""

from __future__ import annotations

import importlib

from graphrag_pipeline.core.errors import ConfigError

_EXTRA = ("fastapi", "uvicorn", "prometheus_client")


def require_extra() -> None:
    """Raise ConfigError where the extra ``server`` is not installed."""
    for name in _EXTRA:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError:
            raise ConfigError(
                f"serve needs {name}: install it by pip install 'graphrag-pipeline[server]'"
            ) from None
