"""Settings: ``graphrag.toml``, environment variables over it, defaults beneath."""

from __future__ import annotations

import codecs
import hashlib
import json
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from graphrag_pipeline.cron import is_cron
from graphrag_pipeline.errors import ConfigError

CONFIG_FILE = "graphrag.toml"
PREFIX = "GRAPHRAG_"

Positive = Annotated[int, Field(ge=1, le=10**9)]
Megabytes = Annotated[float, Field(gt=0, le=1e6)]
Place = Annotated[str, Field(min_length=1)]
Share = Annotated[float, Field(ge=0, le=1)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class InputSettings(_Section):
    """Where documents come from."""

    folder: Place = "documents"
    """The folder the inbox sensor watches and `index` reads when none is named."""
    settle_seconds: Annotated[float, Field(ge=0, le=1e9)] = 5.0
    """The sensor leaves a file alone until it has not changed for so long."""
    poll_seconds: Positive = 30
    """How often the sensor looks into the folder."""
    max_file_mb: Megabytes = 50.0
    """Larger files are quarantined."""
    encoding: str = ""
    """Encoding of text files; empty: byte-order mark, then UTF-8, then detection."""
    text_columns: tuple[str, ...] = ("text", "content", "body")
    """Columns (csv, json, jsonl, parquet) that hold a record's text, first match."""
    title_columns: tuple[str, ...] = ("title", "name", "headline")
    """Columns that hold a record's title."""
    id_columns: tuple[str, ...] = ("id",)
    """Columns that identify a record within its file."""

    @model_validator(mode="after")
    def _encoding_is_known(self) -> InputSettings:
        try:
            codecs.lookup(self.encoding or "utf-8")
        except LookupError:
            raise ValueError(
                f"input.encoding = {self.encoding!r}: must be an encoding, such as utf-8 or cp1252"
            ) from None
        return self


class BatchSettings(_Section):
    """How a set of new documents is cut into batches, the partitions of ingestion."""

    max_files: Positive = 2000
    """Most files in one batch."""
    max_mb: Megabytes = 64.0
    """Most megabytes of files in one batch (a larger file is a batch of its own)."""


class ChunkSettings(_Section):
    """How documents are cut into chunks."""

    size: Positive = 600
    """Tokens in a chunk."""
    overlap: Annotated[int, Field(ge=0)] = 100
    """Tokens a chunk repeats of the one before."""
    encoding: str = "cl100k_base"
    """tiktoken encoding that counts tokens (cl100k_base ships with the package)."""
    sentences: bool = False
    """Prefer to end a chunk at the end of a sentence."""
    prepend_metadata: tuple[str, ...] = ()
    """Document metadata shown to a model with each chunk; never part of the stored text."""

    @model_validator(mode="after")
    def _overlap_fits(self) -> ChunkSettings:
        if self.overlap >= self.size:
            raise ValueError(
                f"chunk overlap ({self.overlap}) must be smaller than chunk size ({self.size})"
            )
        return self

    @model_validator(mode="after")
    def _encoding_is_known(self) -> ChunkSettings:
        if self.encoding != "cl100k_base":
            import tiktoken

            known = tiktoken.list_encoding_names()
            if self.encoding not in known:
                raise ValueError(
                    f"chunks.encoding = {self.encoding!r}: must be one of {', '.join(known)}"
                )
        return self


class ExtractionSettings(_Section):
    """How entities and relationships are found in chunks."""

    extractor: Literal["nlp", "import"] = "nlp"
    """nlp: by rule, no model. import: only what `import-extractions` brings."""
    noun_phrases: bool = True
    """nlp: take noun phrases as concepts, besides named entities."""


class GraphSettings(_Section):
    """How mentions are merged into the graph."""

    min_concept_frequency: Positive = 2
    """nlp: a noun phrase (type CONCEPT) or date must stand in so many chunks to become a node."""
    max_description_sentences: Positive = 3
    """nlp: sentences kept to describe an entity."""


class CommunitySettings(_Section):
    """Hierarchical Leiden."""

    max_cluster_size: Annotated[int, Field(ge=2)] = 10
    """Communities with more entities are split at the next level."""
    resolution: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    """Higher gives more and smaller communities."""
    seed: Annotated[int, Field(ge=0, lt=2**64)] = 0xDEADBEEF
    """Seed of the random number generator."""
    levels: Annotated[int, Field(ge=1, le=10)] = 4
    """Level assets shown in Dagster (C0 to C3 by default); the last holds all deeper levels."""


class ReportSettings(_Section):
    """Community reports."""

    max_context_tokens: Positive = 8000
    """Tokens of a community's elements a report is written from."""
    max_findings: Positive = 8
    """Findings of an extractive report."""


class EmbeddingSettings(_Section):
    """Vectors for search."""

    embedder: Literal["hashing", "local"] = "hashing"
    """hashing: lexical, no model. local: a sentence-transformers model (extra [local])."""
    model: str = "sentence-transformers/all-MiniLM-L6-v2"
    """local: model name or folder."""
    dimensions: Annotated[int, Field(ge=32, le=8192)] = 640
    """hashing: length of the vectors."""


class QuerySettings(_Section):
    """Retrieval defaults."""

    top_k: Positive = 10
    """Chunks (or entities, for local) that a search starts from."""
    max_context_tokens: Positive = 12000
    """Tokens of evidence given to the answer."""
    text_share: Share = 0.5
    """local: share of the context for source text."""
    report_share: Share = 0.15
    """local: share of the context for community reports; the rest is for the graph."""
    level: Annotated[int, Field(ge=0)] = 2
    """global and local: community level whose reports are read."""

    @model_validator(mode="after")
    def _shares_fit(self) -> QuerySettings:
        if self.text_share + self.report_share > 1:
            raise ValueError(
                f"text_share ({self.text_share}) plus report_share ({self.report_share}) "
                "must not exceed 1"
            )
        return self


class ScheduleSettings(_Section):
    """When the unpartitioned stages run by themselves."""

    refresh_cron: str = "*/5 * * * *"
    """How often to look for finished batches that the published index lacks (cron)."""

    @model_validator(mode="after")
    def _cron_is_valid(self) -> ScheduleSettings:
        if not is_cron(self.refresh_cron):
            raise ValueError(
                f"schedule.refresh_cron = {self.refresh_cron!r}: must be five cron fields, such "
                "as '0 2 * * *'"
            )
        return self


class ReleaseSettings(_Section):
    """Published releases."""

    keep: Positive = 10
    """Releases whose vectors stay readable."""


class Settings(BaseSettings):
    """All settings. Environment variables win: GRAPHRAG_HOME, GRAPHRAG_CHUNKS__SIZE=300."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
    )

    home: Place = ".graphrag"
    """Folder of everything the pipeline writes."""
    input: InputSettings = InputSettings()
    batches: BatchSettings = BatchSettings()
    chunks: ChunkSettings = ChunkSettings()
    extraction: ExtractionSettings = ExtractionSettings()
    graph: GraphSettings = GraphSettings()
    communities: CommunitySettings = CommunitySettings()
    reports: ReportSettings = ReportSettings()
    embeddings: EmbeddingSettings = EmbeddingSettings()
    query: QuerySettings = QuerySettings()
    schedule: ScheduleSettings = ScheduleSettings()
    releases: ReleaseSettings = ReleaseSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Let the environment win over the file's values, which arrive as arguments."""
        return env_settings, init_settings

    @property
    def home_path(self) -> Path:
        """The home folder, absolute."""
        return Path(self.home).expanduser().resolve()

    @property
    def input_path(self) -> Path:
        """The input folder, absolute."""
        return Path(self.input.folder).expanduser().resolve()


def load_settings(file: Path | None = None) -> Settings:
    """Read the settings.

    ``file`` defaults to ``$GRAPHRAG_CONFIG``, then ``graphrag.toml`` in the current folder, then
    in the home folder. Raises ConfigError with one line per wrong setting.
    """
    path = file or _find_config_file()
    values: dict[str, Any] = _read_toml(path) if path else {}
    where = str(path) if path else "the environment"
    unknown = [name for name in _environment_names() if not _is_setting(name)]
    if unknown:
        raise ConfigError(f"unknown environment variable {unknown[0]}: {_closest(unknown[0])}")
    try:
        return Settings(**values)
    except ValidationError as error:
        raise ConfigError("\n".join(_explain(error, where))) from None
    except SettingsError as error:
        raise ConfigError(_explain_environment() or str(error).splitlines()[0]) from None


def fingerprint(*parts: object) -> str:
    """Return a short stable hash of plain values and settings (16 hexadecimal digits)."""
    plain = [p.model_dump(mode="json") if isinstance(p, BaseModel) else p for p in parts]
    canonical = json.dumps(plain, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def setting_rows() -> Iterator[tuple[str, str, object, str]]:
    """Yield (section, name, default, description) of every setting, in order."""
    for name, field in Settings.model_fields.items():
        if isinstance(field.default, _Section):
            for inner, inner_field in type(field.default).model_fields.items():
                yield name, inner, inner_field.default, inner_field.description or ""
        else:
            yield "", name, field.default, field.description or ""


def template() -> str:
    """Return a ``graphrag.toml`` with every setting at its default, commented out."""
    lines = [
        "# Settings of the GraphRAG pipeline. Every line shows a default: remove the # to change",
        "# it. Environment variables win, for example GRAPHRAG_CHUNKS__SIZE=300.",
    ]
    section = ""
    for group, name, default, description in setting_rows():
        if group != section:
            section = group
            about = type(Settings.model_fields[group].default).__doc__ or ""
            lines += ["", f"[{group}]", f"# {about}"]
        lines += [f"# {description}", f"#{name} = {_toml(default)}"]
    return "\n".join(lines) + "\n"


def _find_config_file() -> Path | None:
    named = os.environ.get(f"{PREFIX}CONFIG")
    if named:
        if not Path(named).is_file():
            raise ConfigError(f"GRAPHRAG_CONFIG names {named}, which is not a file")
        return Path(named)
    home = Path(os.environ.get(f"{PREFIX}HOME", ".graphrag"))
    places = (Path(CONFIG_FILE), home / CONFIG_FILE)
    return next((place for place in places if place.is_file()), None)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None


def _environment_names() -> list[str]:
    own = {f"{PREFIX}CONFIG"}
    return [n for n in os.environ if n.upper().startswith(PREFIX) and n.upper() not in own]


def _known_names() -> set[str]:
    return {f"{g}__{n}" if g else n for g, n, _, _ in setting_rows()}


def _is_setting(variable: str) -> bool:
    name = variable[len(PREFIX) :].lower()
    return name in _known_names() or name in Settings.model_fields


def _closest(variable: str) -> str:
    import difflib

    names = [f"{PREFIX}{name.upper()}" for name in sorted(_known_names())]
    close = difflib.get_close_matches(variable.upper(), names, n=1)
    return f"did you mean {close[0]}?" if close else "see graphrag-pipeline init for all settings"


def _explain(error: ValidationError, where: str) -> Iterator[str]:
    for item in error.errors():
        name = ".".join(str(part) for part in item["loc"])
        variable = PREFIX + "__".join(str(part) for part in item["loc"]).upper()
        source = _source(variable) or where
        if item["type"] == "extra_forbidden":
            import difflib

            known = [n.replace("__", ".") for n in sorted(_known_names())]
            close = difflib.get_close_matches(name, [*Settings.model_fields, *known], n=1)
            hint = f"did you mean {close[0]}?" if close else "remove it"
            yield f"{source}: unknown setting {name}: {hint}"
        elif item["type"] == "value_error":
            yield f"{source}: {item['msg'].removeprefix('Value error, ')}"
        else:
            yield f"{source}: {name} = {item['input']!r}: {_what_is_right(item)}"


def _source(variable: str) -> str | None:
    """Return the environment variable that gives a setting, or one of a section, if any does."""
    given = sorted(n for n in os.environ if f"{n.upper()}__".startswith(f"{variable}__"))
    return given[0] if given else None


def _what_is_right(item: ErrorDetails) -> str:
    if item["type"] == "model_type":
        return f"must be a section, [{item['loc'][0]}], with settings beneath it"
    if item["type"] == "tuple_type":
        return 'must be a list, such as ["one", "other"]'
    return item["msg"][0].lower() + item["msg"][1:]


def _explain_environment() -> str | None:
    """Return what is wrong with a variable that must be JSON, the way a list is given."""
    lists = {f"{g}__{n}" for g, n, default, _ in setting_rows() if isinstance(default, tuple)}
    for variable in sorted(_environment_names()):
        name = variable[len(PREFIX) :].lower()
        if name not in lists | set(Settings.model_fields) - {"home"}:
            continue
        try:
            json.loads(os.environ[variable])
        except ValueError:
            right = '["one", "other"]' if name in lists else '{"setting": "value"}'
            return f"{variable} = {os.environ[variable]!r}: must be JSON, such as {right}"
    return None


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(part) for part in value) + "]"
    return json.dumps(value, ensure_ascii=False)
