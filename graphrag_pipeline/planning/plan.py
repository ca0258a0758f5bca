"""The plan of the next run: what it would do and cost, before anything is spent.

Documents are read and cut into chunks in memory, so that changes, chunks and extraction calls are
counted, and those whose answer is in the cache left out. What depends on the model's answers is
estimated (``estimates``). Nothing is written and the model is not asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import duckdb
import polars as pl

from graphrag_pipeline.core import showing
from graphrag_pipeline.core.settings import EMBEDDINGS, Settings
from graphrag_pipeline.core.text import counted
from graphrag_pipeline.extraction.estimate import chunks_of, guess_entities, look_up
from graphrag_pipeline.graph.resolution.user_aliases import read_user_aliases
from graphrag_pipeline.ingest import documents
from graphrag_pipeline.ingest.chunking import chunk_documents
from graphrag_pipeline.ingest.reading.files import is_of_other_kind
from graphrag_pipeline.ingest.to_extract import shown_metadata
from graphrag_pipeline.llm.configured import (
    calls_place,
    check_own_prompts,
    model_options,
)
from graphrag_pipeline.llm.estimates import REPORTS_PER_ENTITY, Average, Chunks, Growth, Texts
from graphrag_pipeline.llm.offline import vectors_known
from graphrag_pipeline.llm.prices import unpriced
from graphrag_pipeline.llm.pricing import ModelPlan, StagePlan, by_model
from graphrag_pipeline.llm.speed import timed
from graphrag_pipeline.planning.estimates import assumptions, estimate, unpriced_models
from graphrag_pipeline.planning.local_vectors import LocalVectors, local_vectors
from graphrag_pipeline.planning.outdated import IndexState, extracted, look_at_index
from graphrag_pipeline.planning.pending import pending_batches
from graphrag_pipeline.planning.rereading import Rereading, find_rereading, reasons_by_batch
from graphrag_pipeline.planning.windows import check_windows, said_of_extractor, said_of_window
from graphrag_pipeline.releases.publishing import refresh_needed
from graphrag_pipeline.store.batches import BatchLog, Look
from graphrag_pipeline.store.scanning import LeftOut
from graphrag_pipeline.store.sources import (
    ACTIONS,
    Source,
    SourceChange,
    apply_changes,
    changed_files,
    first_names,
)
from graphrag_pipeline.store.space import Space, space_for
from graphrag_pipeline.store.spending import uses_model
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.structures.registry import model_stages, steps_without_model

_TO_EXTRACT = pl.Schema(
    {
        "id": pl.String,
        "text": pl.String,
        "n_tokens": pl.Int64,
        "title": pl.String,
        "context": pl.String,
        "failed": pl.Boolean,
        "outdated": pl.Boolean,
    }
)
_TRIED = ("failed", "outdated")
_WRITING_STAGES = ("summaries", "community_reports")
_HISTORY = """
SELECT stage, avg(prompt_tokens), avg(completion_tokens) FROM llm_calls
WHERE NOT cached AND error IS NULL AND stage IN (SELECT unnest($stages)) GROUP BY stage
"""
_EARLIER = """
SELECT chunk_id AS id, bool_or(status <> 'ok') AS failed, bool_and(status = 'ok') AS outdated
FROM extractions GROUP BY ALL
"""


_Number = TypeVar("_Number", int, float | None)


class _Total(Generic[_Number]):
    """A property of a plan: the sum of what all stages have, None where that of one is unknown."""

    def __init__(self, meaning: str) -> None:
        self.__doc__ = meaning

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, plan: Plan, owner: type) -> _Number:
        numbers: list[Any] = [getattr(stage, self._name) for stage in plan.stages]
        total: Any = None if None in numbers else sum(numbers)
        return total


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The work that the next run would do.

    ``changes`` counts files by action (add, change, remove, rename); ``chunks`` those of all files
    that would be read, ``to_extract`` those of them whose extraction is still to be made,
    ``to_retry`` those and the reports that failed before. ``quarantined`` has the files and records
    that would not be read, and why. ``is_due`` says whether a run would
    change anything, ``question`` what `index` would ask first, because so many files are gone.
    ``left_out`` says which rules leave files and folders out, and how many. ``reread`` is what is
    read again though no file has changed, None if nothing is; ``local_vectors`` what a model on
    this machine will embed, None if nothing; ``without_model`` are the structures that are brought
    up to date without one.
    """

    changes: Mapping[str, int]
    left_out: Sequence[LeftOut]
    pending_batches: int
    reread: Rereading | None
    documents: int
    quarantined: Sequence[Mapping[str, object]]
    chunks: int
    to_extract: int
    to_retry: int
    is_due: bool
    question: str | None
    space: Space
    stages: Sequence[StagePlan]
    assumptions: Sequence[str]
    local_vectors: LocalVectors | None = None
    without_model: Sequence[str] = ()

    def __repr__(self) -> str:
        cost = "at an unknown cost" if self.cost is None else f"for ${self.cost:,.4f}"
        chunks = f"{counted(self.chunks, 'chunk')}, {self.to_extract:,} of them to extract"
        return showing.two_lines(
            f"Plan: {changed_files(self.changes) or 'no file changed'}; {chunks}; "
            f"{counted(self.calls, 'model call')} {cost}"
        )

    @property
    def unreadable(self) -> int:
        """Files and records that cannot be read."""
        return len(self.quarantined)

    @property
    def tokens(self) -> int:
        """Tokens of all stages, read and written."""
        return sum(stage.prompt_tokens + stage.completion_tokens for stage in self.stages)

    @property
    def models(self) -> list[ModelPlan]:
        """The calls of each model, with their tokens and cost."""
        return by_model(self.stages)

    calls = _Total[int]("Model calls of all stages that are to be paid for.")
    cached = _Total[int]("Model calls of all stages that the cache answers.")
    rounds = _Total[int]("Rounds of batches that wait for each other.")
    repeated_tokens = _Total[int]("Tokens of prompts that begin as one before.")
    cost = _Total[float | None]("US dollars, None if the price of some model is not known.")
    direct_cost = _Total[float | None]("US dollars where all models are asked over connections.")
    batch_cost = _Total[float | None]("US dollars where all are asked in batches that can be.")
    cached_cost = _Total[float | None](
        "US dollars where a provider's cache has all that is repeated."
    )
    seconds = _Total[float | None]("Time of all calls, None if the speed of a model is not known.")


def plan_run(workspace: Workspace, folder: Path, *, recluster: bool = False) -> Plan:
    """Return what `index` of this folder would do now.

    Raises InputError if the folder cannot be read; ConfigError for prices, prompts or aliases of
    the user's that cannot be used, or if llm.max_cost is set for a model without a price: the run
    would stop there.
    """
    look = workspace.batches.look(folder, max_bytes=workspace.settings.input.max_file_bytes)
    pending = [batch.key for batch in workspace.batches.batches()]
    if workspace.exists:
        pending = pending_batches(workspace)
    return _plan(workspace, folder, look, pending, recluster=recluster)


def plan_batches(workspace: Workspace, batches: Sequence[str]) -> Plan:
    """Return what runs of these batches would do, with the refresh that follows them.

    No folder is looked into. Without batches it is what the refresh alone would do. Raises as
    :func:`plan_run`.
    """
    return _plan(workspace, None, Look((), ()), batches, recluster=False)


def _plan(
    workspace: Workspace,
    folder: Path | None,
    look: Look,
    pending: Sequence[str],
    *,
    recluster: bool,
) -> Plan:
    settings, log = workspace.settings, workspace.batches
    read_user_aliases(settings.aliases_path)
    if uses_model(settings):
        check_own_prompts(settings)
    new = look.changes
    sources = log.sources()
    changes = _changes(log, new, pending, sources)
    batches = {uri: source.batch for uri, source in sources.items()}
    apply_changes(sources, new, batch="", root=log.root_name(folder) if folder else "")
    firsts = first_names(sources)
    to_read = [change for change in changes if firsts.get(change.uri) == change.uri]
    read = documents.read_changes(to_read, sources, log, settings)
    chunks = _chunks(read.documents, settings)
    todo = _to_extract(workspace, chunks, read)
    new_entities = Growth(entities=guess_entities(todo))
    index = IndexState(net_chunks=chunks_of(todo).full, growth=new_entities)
    if workspace.exists:
        uris = {change.uri for change in changes} | {c.origin for c in changes if c.origin}
        with workspace.store.read() as con:
            index = look_at_index(con, settings, uris, chunks, todo, recluster=recluster)
    growth = _growth(workspace, todo, index)
    sample = [*todo["text"].to_list(), *index.texts]
    stages = timed(list(estimate(settings, growth)), calls_place(settings, workspace.home))
    _check_models(settings, stages)
    reread = None
    if workspace.exists:
        changed = {change.uri for change in new}
        unchanged = {c.uri: batches[c.uri] for c in to_read if c.uri not in changed}
        with workspace.store.read() as con:
            again = _reasons(con, workspace, pending, unchanged)
            reread = find_rereading(con, read, again, chunks, todo, stages)
    is_due = bool(new or pending or stages or recluster)
    counts = {action: sum(c.action == action for c in new) for action in ACTIONS}
    return Plan(
        changes=counts,
        left_out=look.left_out,
        pending_batches=len(pending),
        reread=reread,
        documents=len(read.documents),
        quarantined=_quarantined(read.quarantine, {change.uri for change in to_read}),
        chunks=len(chunks),
        to_extract=len(todo),
        to_retry=int(todo["failed"].sum()) + index.failed_reports,
        question=log.question(folder, new, settings.batches) if folder else None,
        space=space_for(workspace.settings, changes),
        is_due=is_due or (workspace.exists and refresh_needed(workspace)),
        stages=stages,
        assumptions=[*_said_of(todo, index), *_assumed(settings, growth, stages)] if stages else [],
        local_vectors=local_vectors(settings, growth, sample),
        without_model=steps_without_model(settings, growth),
    )


def _check_models(settings: Settings, stages: Sequence[StagePlan]) -> None:
    """Raise ConfigError where texts do not fit into a model, or a limit of costs has no price."""
    if stages:
        check_windows(settings)
    if settings.llm.max_cost and (models := unpriced_models(stages)):
        raise unpriced(models[0])


def _quarantined(
    rows: Sequence[Mapping[str, object]], files: Set[str]
) -> list[Mapping[str, object]]:
    """Return what would be quarantined, as the status of an index has it."""
    return [
        {
            "uri": row["uri"],
            "reason": row["reason"],
            "is_record": row["uri"] not in files,
            "is_other_kind": is_of_other_kind(str(row["reason"])),
        }
        for row in rows
    ]


def _reasons(
    con: duckdb.DuckDBPyConnection,
    workspace: Workspace,
    pending: Sequence[str],
    batch_of: Mapping[str, str],
) -> Mapping[str, Sequence[str]]:
    """Return why files that have not changed are read again, by uri; ``batch_of`` has theirs."""
    by_batch = reasons_by_batch(con, workspace.settings, workspace.batches, pending)
    return {uri: by_batch[batch] for uri, batch in batch_of.items() if batch in by_batch}


def _assumed(settings: Settings, growth: Growth, stages: Sequence[StagePlan]) -> Iterator[str]:
    yield from assumptions(settings, growth, stages)
    yield from said_of_window(settings)
    yield from said_of_extractor(settings)


def _changes(
    log: BatchLog,
    new: Sequence[SourceChange],
    pending: Sequence[str],
    sources: Mapping[str, Source],
) -> list[SourceChange]:
    """Return the changes that the next run would look at, the newest of each file."""
    owners = {uri: source.batch for uri, source in sources.items()}
    waiting = set(pending)
    changes = {
        change.uri: change
        for batch in log.batches()
        if batch.key in waiting
        for change in batch.changes
        if owners.get(change.uri, batch.key) == batch.key
    }
    changes |= {change.uri: change for change in new}
    return list(changes.values())


def _chunks(read: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    """Return the chunks of documents, with their document's title and the metadata to be shown."""
    fields = settings.chunks.prepend_metadata
    titled = read.select("title", "metadata").iter_rows()
    contexts = pl.Series([shown_metadata(fields, *row) for row in titled], dtype=pl.String)
    about = read.select("id", "text", "title", context=contexts)
    chunks = chunk_documents(about.select("id", "text"), settings.chunks)
    return chunks.join(about.drop("text"), left_on="document_id", right_on="id", how="left")


def _to_extract(
    workspace: Workspace, chunks: pl.DataFrame, read: documents.BatchDocuments
) -> pl.DataFrame:
    """Return the chunks without an extraction, with the columns of ``_TO_EXTRACT``."""
    earlier = pl.DataFrame(schema={name: _TO_EXTRACT[name] for name in ("id", *_TRIED)})
    if workspace.exists:
        with workspace.store.read() as con:
            kept = extracted(con, workspace.settings, chunks, read)
            chunks = chunks.join(kept, on="id", how="anti")
            earlier = con.sql(_EARLIER).pl()
    todo = chunks.join(earlier, on="id", how="left")
    return todo.with_columns(pl.col(_TRIED).fill_null(value=False)).select(list(_TO_EXTRACT))


def _growth(workspace: Workspace, todo: pl.DataFrame, index: IndexState) -> Growth:
    unasked, begun, n_answered = look_up(workspace.settings, todo)
    new = chunks_of(todo)
    total = Chunks(new.number + index.staged.number, new.tokens + index.staged.tokens)
    new_texts = [f"{title}\n{text}" for title, text in todo.select("title", "text").iter_rows()]
    tokens = [sum(map(len, merge.parts)) / 4 for merge in index.merges]
    reports, context = _reports(index, total)
    return replace(
        index.growth,
        unasked=unasked,
        begun=begun,
        answered=n_answered,
        grown=total,
        merges=len(index.merges),
        merge_tokens=sum(tokens) / len(tokens) if tokens else None,
        reports=reports,
        report_context=context,
        texts=[_unknown(workspace, texts) for texts in (index.texts, new_texts) if texts],
        history=_history(workspace),
    )


def _reports(index: IndexState, chunks: Chunks) -> tuple[float, float | None]:
    """Return the number of reports to be written, and the tokens of what one is made from.

    They are known ones, those new chunks touch, and new ones.
    """
    outdated, rest = len(index.outdated), index.communities - len(index.outdated)
    if effect := index.growth.effect:
        # What replaces other chunks falls to the communities of those, which are known.
        share = max(index.net_chunks, 0.0) / chunks.full * rest / max(index.communities, 1)
        late = effect.reports.times(share)
        known = (index.report_tokens or 0.0) * outdated
        number = outdated + late.number
        return number, (known + late.tokens) / number if number else None
    touched = 0.0
    if rest > 0:
        missed = 1 - min(1.0, index.of_a_chunk / index.communities)
        touched = rest * (1 - missed**chunks.number)
    new = max(index.net_chunks, 0.0) / (chunks.full or 1.0) * index.growth.entities
    new *= REPORTS_PER_ENTITY
    number = min(outdated + touched + new, index.communities + new)
    return number, index.report_tokens


def _unknown(workspace: Workspace, texts: Sequence[str]) -> Texts:
    settings = workspace.settings
    if settings.embeddings.embedder == "hashing":
        return Texts()
    if settings.embeddings.embedder == "local":
        return Texts(len(texts), sum(len(text.encode("utf-8", "replace")) for text in texts))
    is_cached = vectors_known(calls_place(settings), model_options(settings, EMBEDDINGS), texts)
    to_buy = [
        len(t.encode("utf-8", "replace")) for t, k in zip(texts, is_cached, strict=True) if not k
    ]
    return Texts(len(to_buy), sum(to_buy), sum(is_cached))


def _history(workspace: Workspace) -> Mapping[str, Average]:
    if not workspace.exists:
        return {}
    with workspace.store.read() as con:
        rows = con.execute(_HISTORY, {"stages": [*_WRITING_STAGES, *model_stages()]}).fetchall()
    return {stage: Average(*tokens) for stage, *tokens in rows}


def _said_of(todo: pl.DataFrame, index: IndexState) -> list[str]:
    sentences = []
    if n_outdated := int(todo["outdated"].sum()):
        sentences.append(
            f"{counted(n_outdated, 'chunk was', 'chunks were')} extracted before, by other prompts "
            "or examples, another model, other settings or another version of this program: "
            "their old results stay until they are extracted again"
        )
    if index.n_lost:
        sentences.append(
            f"{counted(index.n_lost, 'chunk goes or changes', 'chunks go or change')}: the reports "
            "on all communities named there are written again"
        )
    if effect := index.growth.effect:
        sentences.append(
            "new chunks change as much as those of this index would if they were the new ones: "
            f"{effect.reports.number:,.0f} of the {index.communities:,} reports, "
            f"{effect.few:,.0f} to {effect.many:,.0f} in most cases"
        )
    elif index.of_a_chunk:
        sentences.append(
            f"a new chunk touches {index.of_a_chunk:.0f} of the {index.communities:,} communities, "
            "as those of this index do"
        )
    return sentences
