"""The size of a model as its server tells it: llama.cpp by `v1/models`, Ollama by `api/show`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from graphrag_pipeline.core.model_sizes import size_in
from graphrag_pipeline.llm.options import LlmOptions

if TYPE_CHECKING:
    import httpx2

_SECONDS = 5.0
_OF_ONE = 1e9


def size_told(options: LlmOptions) -> float | None:
    """Return a model's size in thousand million parameters; None where its server does not say."""
    import httpx2

    base, key = options.connection()
    headers = {"Authorization": f"Bearer {key}"}
    timeout = min(_SECONDS, options.timeout_seconds)
    with httpx2.Client(
        headers=headers, timeout=timeout, trust_env=not options.is_private
    ) as client:
        return _of_llama(client, base, options.model) or _of_ollama(client, base, options.model)


def _of_llama(client: httpx2.Client, base: str, model: str) -> float | None:
    listed = _json(client, "GET", f"{base.rstrip('/')}/models", None).get("data")
    rows = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
    # llama.cpp serves one model, and takes any name for it.
    row = next((row for row in rows if row.get("id") == model), rows[0] if len(rows) == 1 else {})
    meta = row.get("meta")
    number = meta.get("n_params") if isinstance(meta, dict) else None
    return number / _OF_ONE if isinstance(number, int | float) and number > 0 else None


def _of_ollama(client: httpx2.Client, base: str, model: str) -> float | None:
    address = urljoin(base.rstrip("/") + "/", "../api/show")
    details = _json(client, "POST", address, {"model": model}).get("details")
    size = details.get("parameter_size") if isinstance(details, dict) else None
    return size_in(size) if isinstance(size, str) else None


def _json(
    client: httpx2.Client, method: str, address: str, body: Mapping[str, Any] | None
) -> dict[str, Any]:
    import httpx2

    try:
        reply = client.request(method, address, json=body).json()
    except (httpx2.HTTPError, ValueError):
        return {}
    return reply if isinstance(reply, dict) else {}
