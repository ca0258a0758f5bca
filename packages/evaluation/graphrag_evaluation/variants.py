"""Indexes of the same documents by other settings, for conditions that compare settings.

They lie in the home of the index that has the usual settings, in a folder each, whose name is a
hash of the changes: conditions that name the same changes share one. What a model writes for them
is looked up among the paid answers of the home, and added to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphrag_pipeline.core.errors import ConfigError, InputError
from graphrag_pipeline.core.hardening.locks import locked
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.settings import Settings, WorkerSettings, fingerprint
from graphrag_pipeline.index import Index
from graphrag_pipeline.llm.configured import calls_place, spending_since
from graphrag_pipeline.llm.pricing import StagePlan
from graphrag_pipeline.releases.publishing import config_hash
from graphrag_pipeline.store.spending import ledger_position
from graphrag_pipeline.store.workspace import Workspace

Changes = Mapping[str, Any]
"""Settings in which an index differs, by section."""
_CONFIG = "SELECT config_hash FROM releases ORDER BY created_at DESC LIMIT 1"
_SPECIAL = re.compile(r"([\\*?\[\]!# ])")
_EXTRACTIONS, _SUMMARIES = "extractions", "summaries"


def settings_apart(settings: Settings, folder: Path) -> Settings:
    """Return the settings of an index in a folder: the same, and answers shared with the home.

    It is in a folder of this machine, wherever the index of the home is.
    """
    llm = settings.llm.model_copy(update={"shared_cache": str(settings.home_path)})
    aliases = settings.aliases_path
    file = str(aliases) if aliases else settings.resolution.aliases_file
    resolution = settings.resolution.model_copy(update={"aliases_file": file})
    update: dict[str, Any] = {"home": str(folder), "llm": llm, "resolution": resolution}
    update["storage"] = settings.storage.model_copy(update={"url": ""})
    update["workers"] = WorkerSettings()
    return settings.model_copy(update=update)


def variant_of(settings: Settings, changes: Changes) -> Settings:
    """Return the settings of an index that differs so.

    Raises ConfigError for settings that there are not.
    """
    values = settings.as_set()
    for section, change in changes.items():
        own = values.get(section)
        values[section] = {**own, **change} if isinstance(own, dict) else change
    changed = Settings(**{**values, "home": settings.home})
    return settings_apart(changed, Home(settings.home_path).index_variants / fingerprint(changes))


def document_folders(settings: Settings) -> list[Path]:
    """Return the folders that the documents of an index come from.

    Raises InputError where one is not there any more, or holds other documents by now.
    """
    workspace = Workspace(settings)
    roots = {source.root for source in workspace.batches.sources().values()}
    folders = [workspace.batches.folder_of(root) for root in sorted(roots)]
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"{folder} is not there, which an index by other settings is made of")
        if workspace.batches.look(folder, max_bytes=settings.input.max_file_bytes).changes:
            raise InputError(f"{folder} has changed: graphrag-pipeline index {folder} first")
    if not folders:
        raise InputError("an index by other settings is made of a folder of documents: index one")
    return folders


def make_variants(settings: Settings, variants: Mapping[str, Changes]) -> str:
    """Make the indexes by other settings, or bring them up to date; return a line about them.

    What was made is kept if it ends early. Raises what an update raises.
    """
    folders, n_made = document_folders(settings), 0
    place = Home(settings.home_path).index_variants
    place.mkdir(mode=0o700, exist_ok=True)
    with locked(place / "lock"):
        for own in _each(settings, variants, folders):
            index = Index(own)
            with spending_since(calls_place(own), ledger_position(own)):
                n_made += any([index.update(folder).is_new for folder in folders])
    return f"{len(variants):,} indexes by other settings, {n_made:,} made now"


def plan_variants(settings: Settings, variants: Mapping[str, Changes]) -> list[StagePlan]:
    """Return the calls that the indexes by other settings still lack, by index and stage.

    Extractions and descriptions that several make alike are counted once, with those of the most
    gleanings; reports and vectors of each, whether or not they come out alike.
    """
    folders = document_folders(settings)
    each = dict(zip(variants, _each(settings, variants, folders), strict=True))
    usual = _alike(variant_of(settings, {}), _SUMMARIES)
    counted = {usual} if _is_current(settings) else set[str]()
    planned: dict[str, list[StagePlan]] = {}
    for name, own in sorted(each.items(), key=lambda item: -item[1].extraction.gleanings):
        planned[name] = [
            replace(stage, stage=f"{name}: {stage.stage}")
            for folder in folders
            for stage in Index(own).plan(folder).stages
            if stage.calls and _alike(own, stage.stage) not in counted
        ]
        counted |= {_alike(own, stage) for stage in (_EXTRACTIONS, _SUMMARIES)}
    return [stage for name in each for stage in planned[name]]


def _each(
    settings: Settings, variants: Mapping[str, Changes], folders: Sequence[Path]
) -> Iterator[Settings]:
    """Yield the settings of each index. Raises ConfigError that names the one that is wrong."""
    home = settings.home_path
    inside = [home.relative_to(folder) for folder in folders if home.is_relative_to(folder)]
    own_home = [_SPECIAL.sub(r"\\\1", f"/{path.as_posix()}/") for path in inside]
    for name, changes in variants.items():
        try:
            own = variant_of(settings, changes)
        except ConfigError as error:
            raise ConfigError(f"{name}: {error}") from None
        exclude = (*own.input.exclude, *own_home)
        yield own.model_copy(update={"input": own.input.model_copy(update={"exclude": exclude})})


def _alike(settings: Settings, stage: str) -> str:
    """Return what two indexes have in common whose calls of a stage are the same."""
    extraction = settings.extraction.model_dump(
        exclude={"gleanings"} if stage == _EXTRACTIONS else None
    )
    parts: list[object] = [stage, extraction, settings.chunks, settings.llm_for("extraction")]
    if stage == _SUMMARIES:
        parts += [settings.graph, settings.llm_for("summaries")]
    elif stage != _EXTRACTIONS:
        parts.append(settings)
    return fingerprint(*parts)


def _is_current(settings: Settings) -> bool:
    """Whether an index was made with its settings as they are."""
    with Workspace(settings).store.read() as con:
        row = con.execute(_CONFIG).fetchone()
    return row == (config_hash(settings),)
