"""The text of a report, and the interface of whoever writes reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from graphrag_pipeline.store.hierarchy import GRAPH, Hierarchy

if TYPE_CHECKING:
    from graphrag_pipeline.reports.contexts import Context
    from graphrag_pipeline.reports.evidence import Evidence
    from graphrag_pipeline.store.index_store import IndexStore


@dataclass(frozen=True)
class Finding:
    """An insight of a report. Spans are characters of the document that holds the chunk."""

    summary: str
    explanation: str
    chunk_id: str | None
    start_char: int | None
    end_char: int | None


@dataclass(frozen=True)
class ReportText:
    """The text of a report, whoever wrote it. ``rating`` is 0 to 10."""

    title: str
    summary: str
    rating: float
    rating_explanation: str
    findings: tuple[Finding, ...]

    @property
    def full_content(self) -> str:
        """The report as Markdown."""
        findings = "\n\n".join(f"## {f.summary}\n\n{f.explanation}" for f in self.findings)
        return f"# {self.title}\n\n{self.summary}\n\n{findings}".rstrip() + "\n"


@dataclass(frozen=True)
class WrittenReports:
    """Reports by community, and why others could not be written."""

    reports: Mapping[str, ReportText] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)


class ReportWriter(Protocol):
    """Writes the reports on communities from their contexts."""

    @property
    def name(self) -> str:
        """The name that the column ``writer`` has."""
        ...

    @property
    def version(self) -> str:
        """A hash of all that decides a report besides its context."""
        ...

    @property
    def is_model(self) -> bool:
        """Whether a model writes.

        That costs money, so that small changes are let gather, and it is told the claims about an
        entity. Rules cite the places of their evidence, so that a report changes when that moves.
        """
        ...

    def write(
        self,
        store: IndexStore,
        contexts: Sequence[Context],
        hierarchy: Hierarchy = GRAPH,
        evidence: Evidence | None = None,
    ) -> WrittenReports:
        """Write a report for each context, of communities of this hierarchy.

        Where rules write, ``evidence`` is what the contexts rest on, or it reads that itself.
        """
        ...
