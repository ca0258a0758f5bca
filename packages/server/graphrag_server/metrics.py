"""Metrics for Prometheus at ``/metrics``: requests, questions, what they cost, and releases."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphrag_pipeline.query.trace import Spending

WORKERS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The variable that names the folder in which several workers keep their numbers together."""
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class Metrics:
    """The numbers of one process, or of all workers where there are several.

    No label holds anything that a caller wrote: a method that there is not is not counted by name.
    """

    def __init__(self, inside: Callable[[], int]) -> None:
        self._registry = registry = CollectorRegistry()
        self.requests = Counter(
            "graphrag_requests", "Requests by address and status.", ["route", "status"],
            registry=registry,
        )  # fmt: skip
        self.seconds = Histogram(
            "graphrag_question_seconds", "Seconds from question to the end of its answer.",
            ["collection", "method"], buckets=_SECONDS, registry=registry,
        )  # fmt: skip
        self.tokens = Counter(
            "graphrag_model_tokens", "Tokens paid for, by kind.", ["collection", "kind"],
            registry=registry,
        )  # fmt: skip
        self.dollars = Counter(
            "graphrag_model_dollars", "US dollars that answers cost, where prices are known.",
            ["collection"], registry=registry,
        )  # fmt: skip
        waiting = Gauge(
            "graphrag_questions_inside", "Questions that are worked on or wait.",
            registry=registry, multiprocess_mode="livesum",
        )  # fmt: skip
        self._inside = inside
        self._waiting = waiting

    def answered(self, collection: str, method: str, seconds: float, spending: Spending) -> None:
        """Count a question, and what it took of a model."""
        self.seconds.labels(collection, method).observe(seconds)
        self.tokens.labels(collection, "prompt").inc(spending.prompt_tokens)
        self.tokens.labels(collection, "completion").inc(spending.completion_tokens)
        self.dollars.labels(collection).inc(spending.cost or 0.0)

    def text(self) -> bytes:
        """Return all numbers in Prometheus' format."""
        self._waiting.set(self._inside())
        if not os.environ.get(WORKERS_FOLDER):
            return generate_latest(self._registry)
        from prometheus_client.multiprocess import MultiProcessCollector

        together = CollectorRegistry()
        MultiProcessCollector(together)
        return generate_latest(together)
