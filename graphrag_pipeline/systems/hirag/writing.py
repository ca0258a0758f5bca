"""Summary entities: the common ground of a cluster of entities, by a model or by extraction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import polars as pl

from graphrag_pipeline.core import progress
from graphrag_pipeline.core.identity import make_id
from graphrag_pipeline.core.prompting import Prompt, load_prompt, prompt_version
from graphrag_pipeline.core.settings import Settings, fingerprint
from graphrag_pipeline.extraction.model.tuples import ParsedExtraction, parse_tuples
from graphrag_pipeline.llm.answer_purposes import making
from graphrag_pipeline.llm.configured import answered_by, prompts_folder, with_model
from graphrag_pipeline.llm.errors import ModelError, ModelOutputError
from graphrag_pipeline.llm.running import ask_each
from graphrag_pipeline.systems.hirag.groups import GROUP, group_title

if TYPE_CHECKING:
    from graphrag_pipeline.llm.client import ModelClient

STAGE = "hirag_clusters"
META_TYPES = (
    "organization",
    "person",
    "location",
    "event",
    "product",
    "technology",
    "industry",
    "mathematics",
    "social sciences",
)
"""The general concepts that guide a model to summary entities: those of the authors' code."""
_EXTRACTIVE = "extractive:2"
_PROMPT = "summarise_cluster"
_CENTRAL, _NAMED = 5, 3
_LONGEST = 240


@dataclass(frozen=True)
class SummaryEntity:
    """An entity that summarises a cluster."""

    title: str
    type: str
    description: str


@dataclass(frozen=True)
class SummaryLink:
    """The reason why a member, by its title, belongs to a summary entity, by its own."""

    source: str
    target: str
    description: str


@dataclass(frozen=True)
class Summary:
    """The summary of one cluster; ``hash`` is of what was read.

    ``attempts`` counts how often a model's answer could not be used: the summary is then
    extractive, and asked for again by the next run.
    """

    hash: str
    entities: tuple[SummaryEntity, ...]
    links: tuple[SummaryLink, ...] = ()
    attempts: int = 0


class ExtractiveClusters:
    """Names a cluster after its most central members, and tells what these are.

    A cluster is given as the rows of its members, the most central first.
    """

    version = _EXTRACTIVE
    """What decides a summary besides the cluster."""

    def write(
        self, clusters: Mapping[str, pl.DataFrame], failed: Mapping[str, int]
    ) -> list[Summary]:
        """Return a summary of each cluster, by its hash."""
        return [Summary(key, (_extracted(members),)) for key, members in clusters.items()]


class ModelClusters:
    """Asks the configured model, one call a cluster (section 4.1 and figure 9)."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._folder = prompts_folder(settings)
        self.version = fingerprint(
            "hirag", META_TYPES, *answered_by(settings.llm_for("summaries")),
            prompt_version(_PROMPT, folder=self._folder),
        )  # fmt: skip

    def write(
        self, clusters: Mapping[str, pl.DataFrame], failed: Mapping[str, int]
    ) -> list[Summary]:
        """Return a summary of each cluster, by its hash; ``failed`` says how often one failed.

        Raises the model's error when no further call can succeed; what was answered until then is
        in the cache.
        """
        if not clusters:
            return []
        return with_model(
            self._settings, lambda client: self._all(client, clusters, failed), "summaries"
        )

    async def _all(
        self, client: ModelClient, clusters: Mapping[str, pl.DataFrame], failed: Mapping[str, int]
    ) -> list[Summary]:
        prompt = load_prompt(_PROMPT, self._folder)

        async def summarise(key: str) -> Summary:
            with making(key):
                return await _asked(client, prompt, key, clusters[key])

        tell = partial(progress.report, "cluster calls")
        summaries = await ask_each(client, [*clusters], summarise, tell)
        return [
            Summary(key, (_extracted(clusters[key]),), (), failed.get(key, 0) + 1)
            if isinstance(summary, ModelError)
            else summary
            for key, summary in zip(clusters, summaries, strict=True)
        ]


ClusterWriter = ExtractiveClusters | ModelClusters


def cluster_writer(settings: Settings) -> ClusterWriter:
    """Return what summarises clusters as configured: the model where it writes the reports."""
    return ModelClusters(settings) if settings.reports.writer == "llm" else ExtractiveClusters()


def cluster_hash(members: pl.DataFrame, version: str) -> str:
    """Return a hash of what a summary of these members is made from, in whatever order."""
    return make_id("cluster", version, *chain.from_iterable(sorted(_told(members))))


def keeping(
    writer: ClusterWriter, summaries: Mapping[str, Summary]
) -> Callable[[Sequence[pl.DataFrame]], list[Summary]]:
    """Return a function that summarises clusters, but those only whose summary is not kept."""

    def write(clusters: Sequence[pl.DataFrame]) -> list[Summary]:
        hashed = {cluster_hash(members, writer.version): members for members in clusters}
        result = {
            key: summaries[key]
            for key in hashed
            if key in summaries and not summaries[key].attempts
        }
        failed = {key: summary.attempts for key, summary in summaries.items()}
        new = {key: members for key, members in hashed.items() if key not in result}
        result |= {summary.hash: summary for summary in writer.write(new, failed)}
        return [result[cluster_hash(members, writer.version)] for members in clusters]

    return write


async def _asked(client: ModelClient, prompt: Prompt, key: str, members: pl.DataFrame) -> Summary:
    records = _shown(members)
    messages = prompt.render(meta_types=", ".join(META_TYPES), descriptions=records)

    def parse(answer: str) -> ParsedExtraction:
        parsed = parse_tuples(answer, chunk_text=records)
        if not parsed.entities:
            raise ModelOutputError("the answer names no summary entity")
        return parsed

    tuples = await client.read(messages, parse, stage=STAGE)
    entities = {e.title.casefold(): e for e in reversed(tuples.entities)}
    return Summary(
        key,
        tuple(SummaryEntity(e.title, e.type, e.description) for e in reversed(entities.values())),
        tuple(SummaryLink(r.source, r.target, r.description) for r in tuples.relationships),
    )


def _shown(members: pl.DataFrame) -> str:
    """Return the members as lines, in an order that does not depend on how central each is."""
    return "\n".join(
        f"- {title} ({kind}): {' '.join(description.split())}"
        for title, kind, description in sorted(_told(members))
    )


def _told(members: pl.DataFrame) -> Iterator[tuple[str, str, str]]:
    return members.select("title", "type", "description").iter_rows()


def _extracted(members: pl.DataFrame) -> SummaryEntity:
    central = list(_told(members.head(_CENTRAL)))
    title = group_title(name for name, _, _ in central[:_NAMED])
    beginnings = dict.fromkeys(_beginning(about or name) for name, _, about in central)
    return SummaryEntity(title, GROUP, "\n".join(beginnings))


def _beginning(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST else f"{flat[:_LONGEST].rsplit(' ', 1)[0]} …"
