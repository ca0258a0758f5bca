"""Costs in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphrag_pipeline.core.text import counted


def money(cost: float | None) -> str:
    """Return US dollars as shown, to four places where they are few."""
    return "unknown cost" if cost is None else f"${cost:.4f}" if cost < 1 else f"${cost:,.2f}"


def amount(took: Mapping[str, Any]) -> str:
    """Return calls, tokens and cost in one line."""
    from_cache = f" ({took['cached']:,} more in the cache)" if took["cached"] else ""
    calls = counted(took["calls"], "call")
    return f"{calls}{from_cache}, {took['tokens']:,} tokens, {money(took['cost'])}"


def megabytes(n_bytes: int) -> str:
    """Return a size as shown."""
    return f"{n_bytes / 1e6:,.1f} MB"
