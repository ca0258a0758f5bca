"""Settings: what a program says, over environment variables, over ``graphrag.toml``, over defaults.

A section may be part of one and part of another: each setting is taken from the first that has it.
"""

from __future__ import annotations

import ast
import codecs
import functools
import hashlib
import importlib.util
import inspect
import json
import os
import re
import textwrap
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

from dotenv import dotenv_values
from dotenv.parser import parse_stream
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from graphrag_pipeline.core import showing
from graphrag_pipeline.core.environment import BROKER, NO_KEY, POSTGRES, Secret, variable
from graphrag_pipeline.core.errors import ConfigError, InputError, StorageError
from graphrag_pipeline.core.extras import how_to_install
from graphrag_pipeline.core.levels import parse_level
from graphrag_pipeline.core.model_sizes import why_by_rule
from graphrag_pipeline.core.ownership import check_values, other_owner
from graphrag_pipeline.core.package_settings import SECTIONS, check_sections, read_section

CONFIG_FILE = "graphrag.toml"
PREFIX = "GRAPHRAG_"
WEBHOOK, MAIL_SERVER = f"{PREFIX}WEBHOOK_URL", f"{PREFIX}SMTP_URL"
"""Variables of the environment that hold secrets: where notices go."""
_NO_SETTINGS = {f"{PREFIX}CONFIG", f"{PREFIX}API_KEY", WEBHOOK, MAIL_SERVER, POSTGRES, BROKER}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_MODELS = "models"
_ARGUMENTS, _ENVIRONMENT = "the settings of the program", "the environment"


def _level(value: object) -> object:
    try:
        return parse_level(value) if isinstance(value, str) else value
    except InputError as error:
        raise ValueError(str(error)) from None


def _address(address: str) -> str:
    if address and urlsplit(address).scheme not in ("http", "https"):
        raise PydanticCustomError("address", "must begin with http:// or https://")
    return address


def _environment_variable(name: str) -> str:
    """Return the name of a variable; what is none may be a key, and is not shown."""
    if name and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise PydanticCustomError(
            "variable", "must be the name of an environment variable, and not the key itself"
        )
    return name


def _place(place: object) -> object:
    if isinstance(place, str) and _SCHEME.match(place):
        raise PydanticCustomError("place", "must be a path of this machine, and no address")
    return str(place) if isinstance(place, Path) else place


def _storage_url(url: str) -> str:
    parts = urlsplit(url)
    is_bucket = parts.scheme == "s3" and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", parts.netloc)
    is_folder = parts.scheme == "file" and not parts.netloc and parts.path.startswith("/")
    if parts.username is not None or parts.password is not None:
        raise PydanticCustomError(
            "secret", "must hold no key: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    if url and (parts.query or parts.fragment or not (is_bucket or is_folder)):
        raise PydanticCustomError(
            "storage_url", "must be s3://bucket/prefix or file:///folder, or empty for the home"
        )
    return url.rstrip("/") if is_bucket else url


def _without_password(address: str) -> str:
    """Return where Postgres is. An address with a password is a secret, and is not shown."""
    user = urlsplit(address).netloc.rpartition("@")[0]
    if "password" in address.lower() or ":" in user:
        raise PydanticCustomError(
            "secret",
            f"must hold no password: set {POSTGRES} to the whole address, in the environment or "
            "in .env",
        )
    return address


def _broker(address: str) -> str:
    """Return where Redis is. An address with a password is a secret, and is not shown."""
    parts = urlsplit(address)
    if parts.password is not None or parts.query:
        raise PydanticCustomError(
            "secret",
            f"must hold no password: set {BROKER} to the whole address, in the environment or in "
            ".env",
        )
    if address and parts.scheme not in ("redis", "rediss"):
        raise PydanticCustomError("broker", "must be redis://host:port/number")
    return address


def _rights(mode: object) -> str:
    if not isinstance(mode, str) or not re.fullmatch(r"0?[0-7]?7[0-7][0145]", mode):
        raise PydanticCustomError(
            "rights",
            'must be rights in quotes by which not everybody may write, such as "0700" (you alone) '
            'or "0750" (your group)',
        )
    return mode


def _without_nul(value: object) -> object:
    """Return a value that holds no NUL: C libraries take a path or a text to end there."""
    parts: list[object] = [value]
    while parts:
        part = parts.pop()
        if isinstance(part, str) and "\0" in part:
            raise PydanticCustomError("nul", "must hold no NUL character")
        if isinstance(part, Mapping):
            parts += [*part.keys(), *part.values()]
        elif isinstance(part, list | tuple):
            parts += part
    return value


Positive = Annotated[int, Field(ge=1, le=10**9)]
Level = Annotated[int, Field(ge=0), BeforeValidator(_level)]
Megabytes = Annotated[float, Field(gt=0, le=1e6)]
Place = Annotated[str, Field(min_length=1), BeforeValidator(_place)]
Address = Annotated[str, AfterValidator(_address)]
BrokerAddress = Annotated[str, AfterValidator(_broker)]
StorageUrl = Annotated[str, AfterValidator(_storage_url)]
PostgresAddress = Annotated[str, AfterValidator(_without_password)]
EnvironmentVariable = Annotated[str, AfterValidator(_environment_variable)]
Share = Annotated[float, Field(ge=0, le=1)]
Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Label = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:@-]{0,63}$")]

Lane = Literal["direct", "batch"]
Role = Literal["extraction", "summaries", "reports", "answers", "judging", "embeddings"]
"""What a model is asked for."""
ROLES: tuple[Role, ...] = get_args(Role)
EMBEDDINGS: Role = "embeddings"
LLM = "llm"
"""The name by which a role takes the model of ``[llm]``."""
CHAT, VECTORS = "chat", "vectors"
"""Names of models that have a role without being told."""

_SET_BY_THE_CLIENT = frozenset({"model", "messages", "n", "stream", "stream_options"})


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    _nul = field_validator("*", mode="before")(_without_nul)


class InputSettings(_Section):
    """The folder and the web pages that documents come from."""

    folder: Place = "documents"
    """The folder the inbox sensor watches and `index` reads when none is named."""
    include: tuple[str, ...] = ()
    """Patterns, as in a .gitignore, of the files to read, such as *.md or reports/; empty: all."""
    exclude: tuple[str, ...] = ()
    """Patterns of files and folders to leave out; one that begins with ! takes a file back in."""
    default_excludes: bool = True
    """Leave out hidden files, caches, node_modules, environments and lock files."""
    ignore_files: bool = True
    """Leave out what .gitignore and .graphragignore name, in the folder and in those below it."""
    follow_links: bool = False
    """Follow symbolic links that lead out of the folder."""
    settle_seconds: Annotated[float, Field(ge=0, le=1e9)] = 5.0
    """The sensor and `index --watch` leave a file alone until it has not changed for so long."""
    poll_seconds: Positive = 30
    """How often the sensor and `index --watch` look into the folder."""
    verify_days: Annotated[float, Field(ge=0, le=36500)] = 0.0
    """Days after which a file is read again even if its size, times and inode are as they were; 0:
    never. `index --verify` reads all at once."""
    max_file_mb: Megabytes = 50.0
    """Larger files are quarantined."""
    reader_mb: Annotated[float, Field(ge=300, le=1e6)] = 2000.0
    """Most megabytes of memory for reading one file (only on Linux); what takes more is
    quarantined."""
    reader_seconds: Annotated[float, Field(ge=1, le=86400)] = 120.0
    """Most seconds of the processor for reading one file; what takes longer is quarantined."""
    encoding: str = ""
    """Encoding of text files; empty: byte-order mark, then UTF-8, then detection."""
    text_columns: tuple[str, ...] = ("text", "content", "body")
    """Columns (csv, json, jsonl, parquet) that hold a record's text, first match."""
    title_columns: tuple[str, ...] = ("title", "name", "headline")
    """Columns that hold a record's title."""
    id_columns: tuple[str, ...] = ("id",)
    """Columns that identify a record within its file."""
    ocr: bool = False
    """Recognise the text of scanned pages of PDF files by tesseract, which has to be installed."""
    ocr_languages: Annotated[str, Field(pattern=r"^[A-Za-z0-9_/+]{2,200}$")] = "eng"
    """Languages of scanned pages by tesseract's names, such as eng+deu."""
    ocr_seconds: Annotated[float, Field(gt=0, le=3600)] = 60.0
    """Most seconds for one scanned page; a page that takes longer has no text."""
    urls: tuple[Address, ...] = ()
    """Web pages and sitemaps (http, https) that `index` and `plan` fetch where no folder is named;
    none: nothing is fetched."""
    urls_seconds: Annotated[float, Field(ge=0, le=3600)] = 1.0
    """Seconds between two requests to one server, if its robots.txt asks for no more."""
    urls_every_minutes: Annotated[float, Field(gt=0, le=44640)] = 60.0
    """How often Dagster and `index --watch` fetch them again."""
    urls_most: Positive = 5000
    """Most pages that one run fetches."""
    urls_other_hosts: bool = False
    """Follow redirections and sitemap entries to other hosts than that of the address."""
    urls_private: bool = False
    """Fetch from private, loopback and link-local addresses too, such as a wiki of your own."""

    @property
    def max_file_bytes(self) -> int:
        """``max_file_mb`` in bytes."""
        return int(self.max_file_mb * 1e6)

    @model_validator(mode="after")
    def _encoding_is_known(self) -> InputSettings:
        try:
            codecs.lookup(self.encoding or "utf-8")
        except LookupError:
            raise ValueError(
                f"input.encoding = {self.encoding!r}: must be an encoding, such as utf-8 or cp1252"
            ) from None
        return self


class StorageSettings(_Section):
    """The place of an index, and the limits of a run on the machine."""

    url: StorageUrl = ""
    """Where workers share an index: s3://bucket/prefix, or file:///folder that all of them see;
    empty: the home folder. It needs Postgres and the extra [cluster]."""
    postgres: PostgresAddress = ""
    """Postgres of a shared index, without a password: postgresql://user@host/database. With one,
    the whole address is GRAPHRAG_POSTGRES_URL in the environment or in .env, which wins."""
    memory_gb: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] = 0.0
    """About the most gigabytes of memory that a run takes; 0: half of what there is. Tables that do
    not fit go to disk; under 1, little is left for them."""
    threads: Annotated[int, Field(ge=0, le=1024)] = 0
    """Threads that work on tables; 0: one for each core. Each takes memory of its own."""
    temp: str = ""
    """Folder, on a fast disk with room, for what does not fit in memory; none set: the home."""


IN_PROCESS = "in_process"
"""The launcher of who works alone."""


class WorkerSettings(_Section):
    """The workers of a shared index ([storage] url)."""

    launcher: Literal["in_process", "celery", "k8s"] = "in_process"
    """in_process: this machine. celery: processes of `graphrag-pipeline worker`, through Redis.
    k8s: a pod for each batch."""
    broker: BrokerAddress = ""
    """Redis of launcher = "celery", without a password: redis://host:6379/0. With one, the whole
    address is GRAPHRAG_BROKER_URL in the environment or in .env, which wins."""
    send_files: bool = True
    """Whether workers are sent the files of a batch, and need not see the folder of the documents.
    They lie under [storage] url until the batch is taken in."""


class BatchSettings(_Section):
    """Rules to cut a set of new documents into batches, the partitions of ingestion."""

    max_files: Positive = 2000
    """Most files in one batch."""
    max_mb: Megabytes = 64.0
    """Most megabytes of files in one batch (a larger file is a batch of its own)."""
    max_removed_share: Share = 0.5
    """Ask before all files of a folder are removed, or ten and more that are more than this share
    of them; with 0, before any is."""
    check_space: bool = True
    """Refuse a run for which the disk of the home has surely no room, and warn of one for which it
    may have none."""


class ChunkSettings(_Section):
    """Rules to cut documents into chunks."""

    size: Positive = 600
    """Tokens in a chunk."""
    overlap: Annotated[int, Field(ge=0)] = 100
    """Tokens a chunk repeats of the one before."""
    encoding: str = "cl100k_base"
    """tiktoken encoding that counts tokens (cl100k_base and o200k_base ship with the package)."""
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

            names = tiktoken.list_encoding_names()
            if self.encoding not in names:
                raise ValueError(
                    f"chunks.encoding = {self.encoding!r}: must be one of {', '.join(names)}"
                )
        return self


class ExtractionSettings(_Section):
    """Rules to find entities and relationships in chunks."""

    extractor: Literal["auto", "nlp", "llm", "import"] = "auto"
    """auto: by profile. nlp: by rule. llm: by model. import: only what is brought in."""
    noun_phrases: bool = True
    """nlp: take noun phrases as concepts, besides named entities."""
    entity_types: Annotated[tuple[str, ...], Field(min_length=1)] = (
        "organization",
        "person",
        "geo",
        "event",
    )
    """llm: the types of entities to look for."""
    domain: str = "general"
    """llm: whose few-shot examples the prompt shows: general, science, medicine, law, or yours."""
    passes: Annotated[int, Field(ge=1, le=2)] = 1
    """llm: 2 asks for entities first, then for relationships between those (as HiRAG does)."""
    format: Literal["auto", "tuples", "schema", "two_calls"] = "auto"
    """llm: tuples: records in text. schema: JSON by a schema whose lists end, in one call.
    two_calls: the same, entities first, then what relates the names found. The last two ask once
    and glean nothing; passes is of tuples. auto: by profile."""
    gleanings: Annotated[int, Field(ge=0, le=10)] = 1
    """llm: how often to ask for entities that were missed, for as long as the model says so."""
    claims: bool = False
    """llm: extract claims about entities as well."""
    claim_description: str = (
        "statements of fact about these entities that a reader would want to check"
    )
    """llm: which claims to extract."""


class GraphSettings(_Section):
    """Rules to merge mentions into the graph."""

    min_concept_frequency: Positive = 2
    """nlp: a noun phrase (type CONCEPT) or date must stand in so many chunks to become a node."""
    min_concept_pmi: Annotated[float, Field(ge=-1, le=1)] = 0.3
    """nlp: a noun phrase or date of ten or more chunks is related to what is rarer where they meet
    so much oftener than chance (normalised PMI), or where that has nothing closer; -1: always."""
    max_description_sentences: Positive = 3
    """nlp: sentences kept to describe an entity."""
    summaries: Literal["auto", "off", "llm"] = "auto"
    """Whether a model merges the descriptions of an entity or relationship; auto: by profile."""
    max_description_tokens: Positive = 400
    """llm: several descriptions that are longer together are merged into one."""


class ResolutionSettings(_Section):
    """Rules to decide which titles mean the same thing, before the graph is made."""

    method: Literal["auto", "off", "rules", "llm"] = "auto"
    """auto: by rule, imports left as they are. rules: imports too. llm: unsure pairs by model.
    off: only what aliases_file says."""
    aliases_file: str = "aliases.csv"
    """Your own word, which wins: a file with the columns action (merge or never), a, b, note."""
    max_model_pairs: Positive = 200
    """llm: most pairs asked of the model, the most alike first."""


class CommunitySettings(_Section):
    """Hierarchical Leiden."""

    max_cluster_size: Annotated[int, Field(ge=2)] = 10
    """Communities with more entities are split at the next level."""
    resolution: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    """Higher gives more and smaller communities."""
    seed: Annotated[int, Field(ge=0, lt=2**64)] = 0xDEADBEEF
    """Seed of the random number generator."""
    max_drift: Annotated[float, Field(ge=0, le=1)] = 0.01
    """Communities are repaired as the graph changes; once they lack this share of the modularity
    of a fresh clustering, Leiden goes over the whole graph again."""
    levels: Annotated[int, Field(ge=1, le=10)] = 4
    """Level assets shown in Dagster (C0 to C3 by default); the last holds all deeper levels."""


class ReportSettings(_Section):
    """Community reports."""

    max_context_tokens: Positive = 8000
    """Tokens of a community's elements a report is written from."""
    max_findings: Positive = 8
    """Findings of an extractive report."""
    writer: Literal["auto", "extractive", "llm"] = "auto"
    """auto: by profile. extractive: central sentences. llm: written by a model."""
    max_words: Positive = 1500
    """llm: most words of a report."""
    written_findings: Positive = 10
    """llm: most findings of a report."""
    max_outdated: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """llm: a report is written anew once more than this share of what it was written from, by
    tokens, has changed (0: at any change); at once where it may tell of what was removed."""


class EmbeddingSettings(_Section):
    """Vectors for search."""

    embedder: Literal["auto", "hashing", "local", "llm"] = "auto"
    """auto: by profile. hashing: lexical. local: sentence-transformers ([local]). llm: endpoint."""
    model: str = "sentence-transformers/all-MiniLM-L6-v2"
    """local: model name or folder."""
    dimensions: Annotated[int, Field(ge=32, le=8192)] = 640
    """hashing: length of the vectors."""
    facts: bool = False
    """Embed each fact (what one text says of two entities), too: the method hipporag2 needs it."""
    synonyms: bool = False
    """Embed the titles of entities, too, and link those alike: the hipporag methods use it."""
    methods: tuple[str, ...] = ()
    """Methods that will be asked, such as ppr: a model then embeds no table that none of them
    reads, and other methods may be refused. Empty: all. By hashing every table is embedded."""
    synonym_similarity: Annotated[float, Field(gt=0, le=1)] = 0.8
    """Titles whose vectors have at least this cosine are linked as synonyms."""


class HierarchySettings(_Section):
    """Hierarchies of summaries besides communities, each for the search methods named after it."""

    raptor: bool = False
    """Keep a tree of summaries of like chunks: the method raptor needs it."""
    raptor_layers: Annotated[int, Field(ge=1, le=20)] = 5
    """raptor: most layers of summaries above the chunks."""
    raptor_cluster_tokens: Positive = 3500
    """raptor: texts of more tokens than this together are not summarised as one but apart."""
    summary_tokens: Annotated[int, Field(ge=20, le=10_000)] = 100
    """Most tokens of a summary."""
    attributed: bool = False
    """Keep communities of entities that are linked or alike, level upon level, with a report on
    each, and an index over them all (ArchRAG): the method archrag needs it."""
    attributed_levels: Annotated[int, Field(ge=1, le=10)] = 4
    """attributed: most levels of communities above the entities."""
    attributed_clustering: Literal[
        "attributed", "links", "spectral", "spectral_links", "scan", "node2vec",
        "codicil", "codicil_spectral", "codicil_scan", "codicil_node2vec",
    ] = "attributed"  # fmt: skip
    """attributed: what clusters them. Leiden over links and likeness (attributed, as ArchRAG does)
    or over links alone (links). What ArchRAG is compared with, made anew at every change: spectral
    clustering of links and likeness (spectral) or of links alone (spectral_links), SCAN, node2vec
    with k-means; and Leiden (codicil) or one of these over the edges of CODICIL. Time or memory of
    spectral clustering and node2vec grow with the square of the entities."""
    hirag: bool = False
    """Keep layers of entities that summarise clusters of entities, and communities over all layers
    with a report on each (HiRAG): the method hirag needs it."""


class StructureSettings(_Section):
    """Structures that another package brings, or your own program: docs/how-to/extend.md."""

    wanted: tuple[str, ...] = ()
    """Names of those to be kept up to date."""
    options: dict[str, JsonValue] = {}
    """What each of them is to know, by its name: { name = { option = "value" } }."""


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
    level: Level = 2
    """global and local: community level whose reports are read; 0, or C0, is the root."""
    answers: Literal["auto", "extractive", "llm"] = "auto"
    """auto: by profile. extractive: the evidence itself. llm: written by a model."""
    response_type: str = "multiple paragraphs"
    """llm: length and form of an answer."""
    answer_style: Literal["full", "short"] = "full"
    """llm: short is a few words, or "Not in the documents", whatever the method."""
    map_words: Positive = 1000
    """llm: most words that each group of records contributes (global, archrag, text_summary)."""
    reduce_words: Positive = 2000
    """llm: most words of an answer that merges what groups of records contribute."""
    cache: bool = False
    """llm: keep answers to questions, and give them again without asking."""
    reranker: Annotated[str, Field(pattern=r"^(llm|local:\s*\S.*)?$")] = ""
    """What puts the best passages in order once more. local:NAME: a cross-encoder on this machine,
    by name or folder ([local]). llm: the model, by a list. Empty: nothing."""
    reranked: Annotated[int, Field(ge=0, le=1000)] = 40
    """reranker: how many of the best passages it is given."""

    @model_validator(mode="after")
    def _shares_fit(self) -> QuerySettings:
        if self.text_share + self.report_share > 1:
            raise ValueError(
                f"text_share ({self.text_share}) plus report_share ({self.report_share}) "
                "must not exceed 1"
            )
        return self


def _check_extra(extra: Mapping[str, JsonValue], name: str) -> None:
    if conflicts := sorted(_SET_BY_THE_CLIENT & extra.keys()):
        raise ValueError(f"{name} must not hold {conflicts[0]}: the pipeline sets it itself")
    try:
        json.dumps(extra, allow_nan=False)
    except ValueError:
        raise ValueError(f"{name} must hold no infinite number and no nan") from None


class LlmSettings(_Section):
    """The language model: any OpenAI-compatible endpoint. Its key is OPENAI_API_KEY, or else
    GRAPHRAG_API_KEY, in the environment or in a file .env, never here.
    """

    env_file: str = ""
    """File of environment variables with OPENAI_API_KEY; as it is: .env beside graphrag.toml."""
    base_url: Address = ""
    """Address of the endpoint; empty: OPENAI_BASE_URL, then OpenAI."""
    api_key_env: EnvironmentVariable = ""
    """Name of the environment variable that holds the key; empty: OPENAI_API_KEY, then
    GRAPHRAG_API_KEY."""
    model: str = "gpt-4.1-mini"
    """Chat model."""
    embedding_model: str = "text-embedding-3-small"
    """Embedding model."""
    embedding_dimensions: Annotated[int, Field(ge=0)] = 0
    """Length of the vectors; 0: the model's own."""
    embedding_max_tokens: Positive = 8000
    """Most tokens of a text the embedding model takes; longer ones are embedded in pieces."""
    context_window: Annotated[int, Field(ge=0)] = 0
    """Most tokens of prompt and answer together; 0: what is known of the model. Set it to what your
    server was started with (Ollama: OLLAMA_CONTEXT_LENGTH; vLLM: --max-model-len)."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    """Temperature of every call."""
    max_output_tokens: Annotated[int, Field(ge=0)] = 0
    """Most tokens of an answer; 0: the server's own limit."""
    max_answer_chars: Positive = 400_000
    """Most characters of an answer; a longer one is an error, for no stage asks for so much."""
    extra: dict[str, JsonValue] = {}
    """More parameters of each chat call, such as { reasoning_effort = "low" }."""
    concurrency: Positive = 16
    """Most calls at once."""
    requests_per_minute: Annotated[int, Field(ge=0)] = 0
    """Most requests a minute; 0: no limit."""
    tokens_per_minute: Annotated[int, Field(ge=0)] = 0
    """Most tokens a minute; 0: no limit."""
    timeout_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 180.0
    """How long to wait for an answer; of a server on this machine or network, for each piece of it.
    Before the first it waits longer: while the prompt is read, or others are answered."""
    max_retries: Annotated[int, Field(ge=0)] = 6
    """How often a call that failed for a passing reason is tried again."""
    retry_seconds: Annotated[float, Field(ge=0, le=300)] = 0.5
    """How long to wait before the first of these tries; the wait doubles each time."""
    max_cost: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Most US dollars a run may spend; 0: no limit. What was bought until then is kept."""
    max_tokens: Annotated[int, Field(ge=0)] = 0
    """Most tokens a run may use; 0: no limit."""
    cache_gb: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Largest size of the cache of answers, in GB; 0: no limit, for they were paid for. Above it a
    run drops at its end those not used for longest; what is needed again is bought again."""
    shared_cache: str = ""
    """Folder whose paid answers this index uses and adds to: the home of another index, or one of
    no index. Indexes of the same documents then pay once; empty: none."""
    confirm_cost: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    """`index` asks before it starts what may cost more US dollars than this, and what starts by
    itself waits for a person; 0: never."""
    lane: Lane = "direct"
    """How an index asks chat models: direct, or batch: in files, at half the price, answered within
    a day (OpenAI's Batch API). Questions and embeddings are direct always."""
    structured_output: Literal["auto", "on", "off"] = "auto"
    """Whether to ask the server for JSON by schema; auto: if it takes it."""
    prices_file: str = ""
    """Your own prices (TOML, US dollars per million tokens); empty: the list that ships."""
    prompts: str = ""
    """Folder of your own prompts, as `tune` writes them; empty: those that ship."""
    log_content: bool = False
    """Write prompts and answers, and so your documents, to the debug log graphrag_pipeline.llm."""

    @model_validator(mode="after")
    def _extra_fits(self) -> LlmSettings:
        _check_extra(self.extra, "llm.extra")
        return self


class PriceSettings(_Section):
    """The price of a model, in US dollars per million tokens."""

    input: Dollars
    """Tokens of prompts."""
    output: Dollars = 0.0
    """Tokens of answers."""
    cached_input: Dollars | None = None
    """Tokens of prompts that the server still had in its own cache; not set: as input."""
    batch_input: Dollars | None = None
    """Tokens of prompts that are sent in batches; not set: half of input."""
    batch_output: Dollars | None = None
    """Tokens of answers that come in batches; not set: half of output."""


class ModelSettings(_Section):
    """One of several models: its own server, window, prices and limits. What is left out is as in
    [llm]. An address of its own is sent the key that api_key_env names, and no other, unless it is
    [llm]'s or OpenAI's.
    """

    base_url: Address | None = None
    """Address of the endpoint."""
    api_key_env: EnvironmentVariable | None = None
    """Name of the environment variable that holds the key."""
    model: Annotated[str, Field(min_length=1)] | None = None
    """The model's name at the server: of a chat model, or of what embeds."""
    embedding_dimensions: Annotated[int, Field(ge=0)] | None = None
    """Length of the vectors; 0: the model's own."""
    embedding_max_tokens: Positive | None = None
    """Most tokens of a text that it embeds at once."""
    context_window: Annotated[int, Field(ge=0)] | None = None
    """Most tokens of prompt and answer together; 0: what is known of the model."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """Temperature of every call."""
    max_output_tokens: Annotated[int, Field(ge=0)] | None = None
    """Most tokens of an answer; 0: the server's own limit."""
    max_answer_chars: Positive | None = None
    """Most characters of an answer."""
    extra: dict[str, JsonValue] | None = None
    """More parameters of each chat call, in place of those in [llm]."""
    concurrency: Positive | None = None
    """Most calls at once."""
    requests_per_minute: Annotated[int, Field(ge=0)] | None = None
    """Most requests a minute; 0: no limit."""
    tokens_per_minute: Annotated[int, Field(ge=0)] | None = None
    """Most tokens a minute; 0: no limit."""
    timeout_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """How long to wait for an answer; of a server on this machine or network, for each piece of it.
    Before the first it waits longer: while the prompt is read, or others are answered."""
    max_retries: Annotated[int, Field(ge=0)] | None = None
    """How often a call that failed for a passing reason is tried again."""
    retry_seconds: Annotated[float, Field(ge=0, le=300)] | None = None
    """How long to wait before the first of these tries."""
    lane: Lane | None = None
    """How an index asks it: direct, or batch: in files, at half the price, within a day."""
    structured_output: Literal["auto", "on", "off"] | None = None
    """Whether to ask the server for JSON by schema; auto: if it takes it."""
    prices: PriceSettings | None = None
    """Dollars per million tokens, such as { input = 0.1, output = 0.4 }; not set: as the list of
    prices says."""

    @model_validator(mode="after")
    def _extra_fits(self) -> ModelSettings:
        _check_extra(self.extra or {}, "extra of a model")
        return self

    def over(self, llm: LlmSettings, role: Role) -> LlmSettings:
        """Return ``[llm]`` with what this section says in place of it, for a role."""
        own = {name: value for name, value in self if value is not None and name != "prices"}
        if self.base_url and not self._is_known_to(llm):
            own.setdefault("api_key_env", NO_KEY)
        if role == EMBEDDINGS and self.model:
            own["embedding_model"] = own.pop("model")
        return llm.model_copy(update=own)

    def _is_known_to(self, llm: LlmSettings) -> bool:
        """Whether the key of ``[llm]`` may go to this section's own address."""
        assert self.base_url
        others = llm.base_url or variable("OPENAI_BASE_URL", llm.env_file)
        is_same = self.base_url.rstrip("/") == others.rstrip("/")
        # A key of another server is none of OpenAI's business, nor the other way round.
        return is_same or (
            not llm.api_key_env and urlsplit(self.base_url).hostname == "api.openai.com"
        )


class RoleSettings(_Section):
    """Models by kind of work: the NAME of a section [models.NAME], or llm for [llm]. Where nothing
    is said, a model called chat does all but embed and one called vectors embeds; without these,
    [llm] does.
    """

    extraction: str = ""
    """Finds entities, relationships and claims in chunks, says which names mean the same, and
    writes prompts for `tune`."""
    summaries: str = ""
    """Merges descriptions; summarises chunks (raptor) and clusters of entities (hirag)."""
    reports: str = ""
    """Writes the reports of communities."""
    answers: str = ""
    """Answers questions, and puts passages in order (query.reranker)."""
    judging: str = ""
    """Evaluates: writes questions, finds claims, judges answers."""
    embeddings: str = ""
    """Embeds texts and questions, where embeddings.embedder is llm."""


class ScheduleSettings(_Section):
    """Times at which the unpartitioned stages run by themselves."""

    refresh_cron: str = "*/5 * * * *"
    """How often to look for finished batches that the published index lacks (cron)."""
    check_cron: str = "30 4 * * *"
    """When everything that the index keeps is checked against itself (cron)."""


class NotifySettings(_Section):
    """People told when runs fail or the model is out of reach, and when that is over: once each. A
    webhook (Slack, Mattermost: JSON with "text") is set by GRAPHRAG_WEBHOOK_URL, the mail server by
    GRAPHRAG_SMTP_URL, in the environment or in .env, for both may hold a secret.
    """

    email: tuple[str, ...] = ()
    """Addresses, told through smtp://user:password@host:587 (or smtps://) in GRAPHRAG_SMTP_URL."""
    sender: str = ""
    """The address that mail comes from; empty: the first of email."""
    command: tuple[str, ...] = ()
    """A program and its arguments; it is given the notice on its standard input."""


class EvaluationSettings(_Section):
    """A nightly evaluation, and when it warns."""

    experiment: str = ""
    """TOML file of an experiment that Dagster offers as assets; empty: none."""
    watch: Place = "recall@5"
    """The metric that must not fall from one run of it to the next, in any condition."""
    max_drop: Annotated[float, Field(ge=0, le=1e6)] = 0.05
    """Most that its mean may fall before the check fails."""
    cron: str = "0 3 * * *"
    """When the schedule runs the experiment (cron), once it is turned on in the UI."""


class ReleaseSettings(_Section):
    """Published releases."""

    keep: Positive = 10
    """Most releases that stay readable; the published one and the one before always do."""
    keep_days: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 30.0
    """Days that older releases stay readable; 0: as long as there is room by number."""
    max_failed_share: Annotated[float, Field(ge=0, le=1)] = 0.05
    """Share of chunks or of reports at which the model may fail: above it nothing is published."""
    max_garbage_share: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Share of what a model extracted that may be wrong in one way: descriptions that copy their
    text or hold one phrase, chunks with one entity. Above it, or without any relationship, nothing
    is published. 1: publish all the same."""


class AccessRule(_Section):
    """Documents that only some may read."""

    match: Place
    """Pattern of paths, as in .gitignore: hr/**, *.private.md; * is every document."""
    labels: Annotated[tuple[Label, ...], Field(min_length=1)]
    """Who reads them has one of these labels, and one of each further rule that matches."""

    @field_validator("match")
    @classmethod
    def _is_one_pattern(cls, match: str) -> str:
        if match.lstrip()[:1] in ("!", "#", ""):
            raise ValueError(f"match = {match!r} matches nothing: write a pattern such as hr/**")
        return match


class AccessSettings(_Section):
    """Rules on who may see which documents. A change is published by the next run, at no cost."""

    mode: Literal["off", "filtered", "separate"] = "off"
    """filtered: a caller with labels sees the documents that they open, and what rests on these
    alone; need-to-know, not proof against inference. separate: this index is one clearance, opened
    whole by one of `labels`; other clearances are other indexes. off: everybody sees all."""
    rules: tuple[AccessRule, ...] = ()
    """Labels by path (filtered). A document that no rule and no metadata names is nobody's."""
    metadata: str = ""
    """Key of the documents' metadata that holds labels, too (filtered): a list, or comma-separated.
    It narrows what rules say, and never widens it."""
    labels: tuple[Label, ...] = ()
    """Labels of which one opens this index (separate)."""

    @model_validator(mode="after")
    def _means_something(self) -> AccessSettings:
        has_rules = bool(self.rules or self.metadata)
        if has_rules != (self.mode == "filtered"):
            raise ValueError(
                'access: mode = "filtered" needs [[access.rules]] or metadata, and no other mode '
                "takes them"
            )
        if bool(self.labels) != (self.mode == "separate"):
            raise ValueError('access: mode = "separate" needs labels, and no other mode takes them')
        return self


class ServerSettings(_Section):
    """The release that `serve` answers from, and how much it does at once."""

    collections: dict[str, Place] = {}
    """Other indexes to serve: a name, and the home folder it is of. The index of these settings is
    the collection default, unless that name is given to another."""
    threads: Annotated[int, Field(ge=0, le=256)] = 0
    """Threads in which questions are worked on; 0: one for each core of the processor."""
    waiting: Positive = 64
    """Most questions that are worked on or wait; one more is told to come again later."""
    timeout_seconds: Annotated[float, Field(gt=0, le=3600)] = 120.0
    """A question that takes longer is stopped."""
    address: Address = ""
    """Address (https://graph.example.com) by which clients reach it, for links to sources; none
    set: the one that a request is sent to."""
    hosts: tuple[str, ...] = ()
    """Names (graph.example.com) by which it may be called where there are keys; none set: any."""
    origins: tuple[Address, ...] = ()
    """Addresses (http://localhost:3000) of pages whose scripts may ask; none but its own."""
    uploads: str = ""
    """Folder, within input.folder, for documents that callers upload; none set: none can be."""
    upload_mb: Megabytes = 20.0
    """An upload that is larger is refused."""
    uploads_most: Positive = 1000
    """Most uploads that the folder holds; one more is refused."""
    audit: bool = True
    """Whether each question that is asked with a key is recorded, in audit/ of the home."""
    audit_text: bool = False
    """Whether the audit has the text of a question, and not only its hash."""
    audit_mb: Megabytes = 20.0
    """A file of the audit that has grown over this is put aside."""
    audit_files: Positive = 20
    """Most files of the audit that were put aside; the oldest are removed."""
    audit_days: Annotated[float, Field(ge=0)] = 0.0
    """Days that the audit is kept: what is older goes with the next line; 0: no end but
    audit_files."""

    @field_validator("collections")
    @classmethod
    def _names_are_plain(cls, collections: dict[str, str]) -> dict[str, str]:
        for name in collections:
            if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", name):
                raise ValueError(
                    f"server.collections: {name!r} must be a name of letters, digits, - and _"
                )
        return collections


_BY_MODEL: dict[str, dict[str, object]] = {
    "extraction": {"extractor": "llm", "format": "tuples"},
    "graph": {"summaries": "llm"},
    "reports": {"writer": "llm"},
    "embeddings": {"embedder": "llm"},
    "query": {"answers": "llm"},
}
# Ollama's address and its names of models. Each stage's prompt and answer fit in the window.
_ON_ONES_OWN_MACHINE: dict[str, dict[str, object]] = {
    "llm": {
        "base_url": "http://localhost:11434/v1",
        "model": "llama3.1",
        "embedding_model": "nomic-embed-text",
        "embedding_max_tokens": 1500,
        "context_window": 8192,
        "max_output_tokens": 2048,
        "concurrency": 4,
        "timeout_seconds": 600.0,
    },
    "extraction": {"format": "two_calls"},
    "graph": {"max_description_tokens": 300},
    "reports": {"max_context_tokens": 4000, "max_words": 600, "written_findings": 5},
    "hierarchies": {"raptor_cluster_tokens": 3000},
    "query": {"max_context_tokens": 3000, "map_words": 500, "reduce_words": 1000},
}
PROFILES: dict[str, dict[str, dict[str, object]]] = {
    "embedded": {
        "extraction": {"extractor": "nlp", "format": "tuples"},
        "graph": {"summaries": "off"},
        "reports": {"writer": "extractive"},
        "embeddings": {"embedder": "hashing"},
        "query": {"answers": "extractive"},
    },
    "llm": _BY_MODEL,
    "local": {
        section: {**_BY_MODEL.get(section, {}), **_ON_ONES_OWN_MACHINE.get(section, {})}
        for section in {**_BY_MODEL, **_ON_ONES_OWN_MACHINE}
    },
}
"""What each profile decides, by section, where it is left open."""


class Settings(BaseSettings):
    """All settings: the arguments, over environment variables, over a file, over the defaults.

    ``Settings(home="x", chunks={"size": 300})`` asks the environment for all else (GRAPHRAG_HOME,
    GRAPHRAG_CHUNKS__OVERLAP=50) and reads no file: :func:`load_settings` does. A section that is
    given as an object, ``ChunkSettings(size=300)``, is the whole section.

    Settings never change. ``Settings(**settings.model_dump(mode="json"))`` equals ``settings`` in
    whatever environment. Raises ConfigError with one line per wrong setting.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
    )

    def __repr__(self) -> str:
        return f"Settings({showing.cut(self.as_set(), 2 * showing.WIDTH)})"

    def __init__(
        self, _file: Path | None = None, _env_file: Path | None = None, **values: Any
    ) -> None:
        layers = {_ARGUMENTS: values, _ENVIRONMENT: _environment()}
        if _env_file is not None and _env_file.is_file():
            layers[str(_env_file)] = _of_env_file(_env_file)
        if _file is not None:
            layers[str(_file)] = _read_toml(_file)
        try:
            super().__init__(**_merged([*layers.values()]))
        except ValidationError as error:
            raise ConfigError("\n".join(_explain(error, layers))) from None
        _check_sharing(self)
        _check_models(self)
        check_sections(self.packages)

    _nul = field_validator("home", mode="before")(_without_nul)

    home: Place = ".graphrag"
    """Folder of everything the pipeline writes."""
    home_mode: Annotated[str, BeforeValidator(_rights)] = "0700"
    """Rights of that folder when it is made: 0700, you alone; 0750, your group may read what is
    published. Paid answers and Dagster's history stay yours; a home that is there is not changed.
    """
    profile: Literal["embedded", "llm", "local"] = "embedded"
    """embedded: no model and no key. llm: each stage by the model in [llm], unless set alone.
    local: the same for a small model on your own machine, with budgets that fit its window; of one
    below three thousand million parameters rules extract, for they find more."""
    packages: dict[str, dict[str, Any]] = {}
    """Settings of packages that are installed beside: a table for each, [packages.NAME]."""
    models: dict[str, ModelSettings] = {}
    """More models than that of [llm], each in a section [models.NAME]: [roles] has their tasks."""
    storage: StorageSettings = StorageSettings()
    workers: WorkerSettings = WorkerSettings()
    input: InputSettings = InputSettings()
    batches: BatchSettings = BatchSettings()
    chunks: ChunkSettings = ChunkSettings()
    extraction: ExtractionSettings = ExtractionSettings()
    graph: GraphSettings = GraphSettings()
    resolution: ResolutionSettings = ResolutionSettings()
    communities: CommunitySettings = CommunitySettings()
    reports: ReportSettings = ReportSettings()
    embeddings: EmbeddingSettings = EmbeddingSettings()
    hierarchies: HierarchySettings = HierarchySettings()
    structures: StructureSettings = StructureSettings()
    query: QuerySettings = QuerySettings()
    llm: LlmSettings = LlmSettings()
    roles: RoleSettings = RoleSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    notify: NotifySettings = NotifySettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    releases: ReleaseSettings = ReleaseSettings()
    access: AccessSettings = AccessSettings()
    server: ServerSettings = ServerSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take the arguments alone: ``__init__`` has laid them over all other sources."""
        return (init_settings,)

    @model_validator(mode="after")
    def _profile_decides(self) -> Settings:
        is_open = False
        for section, values in PROFILES[self.profile].items():
            own: _Section = getattr(self, section)
            left = values.keys() - own.model_fields_set
            decided = {n: v for n, v in values.items() if n in left or getattr(own, n) == "auto"}
            if decided:
                object.__setattr__(self, section, own.model_copy(update=decided))
            if section == "extraction" and "extractor" in decided:
                is_open = True
        if is_open and self.why_by_rule:
            by_rule = self.extraction.model_copy(update={"extractor": "nlp"})
            object.__setattr__(self, "extraction", by_rule)
        return self

    @property
    def why_by_rule(self) -> str:
        """The reason why rules extract better than a small local model; empty for any other."""
        if self.profile != "local":
            return ""
        model = self.llm_for("extraction")
        return why_by_rule(model.base_url, model.model, self.home_path)

    @classmethod
    def exactly(cls, values: Mapping[str, Any]) -> Settings:
        """Return settings of these values and defaults, whatever the environment says.

        With what :meth:`as_set` returns, these are the same settings again.
        """
        settings = cls.__new__(cls)
        BaseModel.__init__(settings, **values)
        return settings

    def as_set(self) -> dict[str, Any]:
        """Return what was set, as plain values; what was left at its default is not in it."""
        return self.model_dump(mode="json", exclude_unset=True)

    def of_package(self, name: str) -> Any:
        """Return the settings of a package, as the model that it brings by the door ``settings``.

        Raises ConfigError where no package has such a section, or a value of it is wrong.
        """
        return read_section(name, self.packages.get(name, {}))

    def model_for(self, role: Role) -> str:
        """Return the name of the model of a role: of a section ``[models.NAME]``, or ``llm``."""
        usual = VECTORS if role == EMBEDDINGS else CHAT
        return getattr(self.roles, role) or (usual if usual in self.models else LLM)

    def llm_for(self, role: Role) -> LlmSettings:
        """Return the model of a role: ``[llm]``, and what ``[models.NAME]`` says over it."""
        section = self.models.get(self.model_for(role))
        return section.over(self.llm, role) if section else self.llm

    def with_llm(self, llm: LlmSettings) -> Settings:
        """Return these settings with one model for all roles."""
        return self.model_copy(update={"llm": llm, "models": {}, "roles": RoleSettings()})

    @property
    def postgres(self) -> Secret:
        """The address of Postgres, with its password; no dump of the settings has it."""
        return Secret(variable(POSTGRES, self.llm.env_file) or self.storage.postgres)

    @property
    def broker(self) -> Secret:
        """The address of Redis, with its password; no dump of the settings has it."""
        return Secret(variable(BROKER, self.llm.env_file) or self.workers.broker)

    @property
    def home_path(self) -> Path:
        """The home folder, absolute."""
        return Path(self.home).expanduser().resolve()

    @property
    def input_path(self) -> Path:
        """The input folder, absolute."""
        return Path(self.input.folder).expanduser().resolve()

    @property
    def aliases_path(self) -> Path | None:
        """The user's file of aliases: as named, or in the home folder.

        None where there is none and none was asked for. Raises ConfigError if a file that was
        asked for is not there.
        """
        name = Path(self.resolution.aliases_file).expanduser()
        for folder in (Path.cwd(), self.home_path):
            if (folder / name).is_file():
                return (folder / name).resolve()
        if self.resolution.aliases_file not in ("", ResolutionSettings().aliases_file):
            raise ConfigError(
                f"resolution.aliases_file = {self.resolution.aliases_file!r}: there is no such file"
            )
        return None


def load_settings(file: Path | None = None, **values: Any) -> Settings:
    """Return ``Settings(**values)`` over the environment, ``.env`` and the settings file.

    ``file`` defaults to ``graphrag.toml`` in the folder ``home``, where that is among the values;
    then ``$GRAPHRAG_CONFIG``, then ``graphrag.toml`` in the current folder, then in the home folder
    of the environment. ``.env`` lies beside that file, or in the current folder where there is
    none; what it says of GRAPHRAG_* counts as if it stood in the environment, which wins over it.
    Raises ConfigError with one line per wrong setting, and for an environment variable that looks
    like a setting and is none.
    """
    path = file or _find_config_file(values.get("home"))
    env_file = (path.parent if path else Path()) / ".env"
    if not file and not os.environ.get(f"{PREFIX}CONFIG"):
        _check_owners(path, env_file)
    for where, names in (("", _environment_names()), (f"{env_file}: ", _settings_in(env_file))):
        for name in names:
            if not _is_setting(name):
                raise ConfigError(f"{where}unknown environment variable {name}: {_closest(name)}")
    settings = Settings(path, env_file, **values)
    if settings.llm.env_file and not Path(settings.llm.env_file).is_file():
        raise ConfigError(f"llm.env_file = {settings.llm.env_file!r}: there is no such file")
    return _with_aliases_beside(path, settings) if path else settings


def _check_sharing(settings: Settings) -> None:
    """Raise ConfigError, with all that is lacking, where an index cannot be shared as is set."""
    url, launcher = settings.storage.url, settings.workers.launcher
    lacking: list[str] = []
    if launcher != "in_process" and not url:
        lacking.append(
            f'workers.launcher = "{launcher}" needs storage.url: set it to s3://bucket/prefix'
        )
    if url and not settings.postgres:
        lacking.append(
            f"storage.url = {url!r} needs Postgres: set storage.postgres, or {POSTGRES} in the "
            "environment or in .env"
        )
    if launcher == "celery" and not settings.broker:
        lacking.append(
            f'workers.launcher = "celery" needs Redis: set workers.broker, or {BROKER} in the '
            "environment or in .env"
        )
    needed = [("storage.url", "graphrag_cluster"), ("storage.url", "psycopg")] if url else []
    if launcher != "in_process":
        needed.append(("workers.launcher", f"dagster_{launcher}"))
    absent = [(by, module) for by, module in needed if importlib.util.find_spec(module) is None]
    lacking += (f"{by} needs {module}: {how_to_install('cluster')}" for by, module in absent[:1])
    if lacking:
        raise ConfigError("; ".join(lacking))


def _check_models(settings: Settings) -> None:
    """Raise ConfigError for a model without a proper name, and a role without a model."""
    for name in settings.models:
        if name == LLM or not re.fullmatch(r"[a-z][a-z0-9-]*(_[a-z0-9-]+)*", name):
            raise ConfigError(
                f"[models.{name}]: the name must be lower-case letters, digits, - and _, and not "
                f"{LLM}"
            )
    for role, name in settings.roles:
        if name and name not in {LLM, *settings.models}:
            raise ConfigError(f"roles.{role} = {name!r}: {_no_model(name, [*settings.models])}")


def _no_model(name: str, names: Sequence[str]) -> str:
    import difflib

    close = difflib.get_close_matches(name, [*names, LLM], n=1)
    if close:
        return f"there is no such model: did you mean {close[0]}?"
    return f"there is no such model: write a section [models.{name}], or name one that there is"


def _check_owners(config: Path | None, env_file: Path) -> None:
    """Raise ConfigError where settings that were found, not named, are somebody else's trap."""
    if config is not None and (owner := other_owner(config)):
        values = _read_toml(config)
        check_values(config, owner, values)
    if owner := other_owner(env_file):
        values = _of_env_file(env_file)
        check_values(env_file, owner, values, env_file)


def _with_aliases_beside(config: Path, settings: Settings) -> Settings:
    """Return the settings with the file of aliases named in full where it lies beside theirs."""
    name = Path(settings.resolution.aliases_file).expanduser()
    beside = config.resolve().parent / name
    if beside.parent in (Path.cwd(), settings.home_path) or not beside.is_file():
        return settings
    if name.is_file():
        return settings
    resolution = settings.resolution.model_copy(update={"aliases_file": str(beside)})
    return settings.model_copy(update={"resolution": resolution})


def fingerprint(*parts: object) -> str:
    """Return a short stable hash of plain values and settings (16 hexadecimal digits)."""
    plain = [p.model_dump(mode="json") if isinstance(p, BaseModel) else p for p in parts]
    canonical = json.dumps(plain, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def setting_rows() -> Iterator[tuple[str, str, object, str]]:
    """Yield (section, name, default, description) of every setting, in order."""
    for owner, group, name, default in _fields():
        yield group, name, default, _descriptions(owner)[name]


def _fields() -> Iterator[tuple[type[BaseModel], str, str, object]]:
    for name, field in Settings.model_fields.items():
        if isinstance(field.default, _Section):
            section = type(field.default)
            for inner, inner_field in section.model_fields.items():
                yield section, name, inner, inner_field.default
        else:
            yield Settings, "", name, field.default


def model_rows() -> Iterator[tuple[str, str]]:
    """Yield (name, description) of every setting of a section ``[models.NAME]``, in order."""
    descriptions = _descriptions(ModelSettings)
    yield from ((name, descriptions[name]) for name in ModelSettings.model_fields)


@functools.cache
def _descriptions(owner: type[BaseModel]) -> Mapping[str, str]:
    """Return what is written below each field: read here, since few commands ask for it."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
    assert isinstance(tree, ast.ClassDef)
    descriptions = dict.fromkeys(owner.model_fields, "")
    for field, below in pairwise(tree.body):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                descriptions[name] = " ".join(text.split())
    return descriptions


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
            lines += ["", f"[{group}]", f"# {' '.join(about.split())}"]
        if name == _MODELS:
            lines += _EXAMPLE_OF_MODELS
        lines += [f"# {description}", f"#{name} = {_toml(default)}"]
    return "\n".join([*lines, *_sections_of_packages()]) + "\n"


_EXAMPLE_OF_MODELS = (
    "# Instead of the next line, sections at the end of the file, such as",
    "#   [models.chat]",
    '#   base_url = "http://localhost:8080/v1"',
    "#   [models.vectors]",
    '#   base_url = "http://localhost:8081/v1"',
)


def _sections_of_packages() -> Iterator[str]:
    """Yield the lines of the sections of packages that are installed, like those of our own."""
    for name, model in SECTIONS.usable().items():
        yield from ("", f"[packages.{name}]")
        values = model().model_dump(mode="json")
        for setting, field in model.model_fields.items():
            about = " ".join((field.description or "").split())
            default = "" if values[setting] is None else _toml(values[setting])
            yield from ([f"# {about}"] if about else [])
            yield f"#{setting} = {default}".rstrip()


def _find_config_file(home: object) -> Path | None:
    if isinstance(home, str | Path) and (own := Path(home).expanduser() / CONFIG_FILE).is_file():
        return own
    file_name = os.environ.get(f"{PREFIX}CONFIG")
    if file_name:
        if not Path(file_name).is_file():
            raise ConfigError(f"GRAPHRAG_CONFIG names {file_name}, which is not a file")
        return Path(file_name)
    places = (Path(), Path(os.environ.get(f"{PREFIX}HOME", ".graphrag")))
    try:
        return next((p / CONFIG_FILE for p in places if (p / CONFIG_FILE).is_file()), None)
    except PermissionError as error:
        raise StorageError(f"cannot look for {error.filename}: permission denied") from None


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None


def _environment() -> dict[str, Any]:
    try:
        return EnvSettingsSource(Settings)()
    except SettingsError as error:
        raise ConfigError(_explain_environment() or str(error).splitlines()[0]) from None


def _of_env_file(path: Path) -> dict[str, Any]:
    """Return the settings in a file of environment variables, and where the model's key is."""
    try:
        values = DotEnvSettingsSource(Settings, env_file=path)()
    except SettingsError as error:
        raise ConfigError(f"{path}: {str(error).splitlines()[0]}") from None
    known = {name: value for name, value in values.items() if name in Settings.model_fields}
    model = known.get("llm")
    known["llm"] = {"env_file": str(path.resolve()), **(model if isinstance(model, dict) else {})}
    return known


def _settings_in(path: Path) -> list[str]:
    """Return the names of a file of environment variables that look like settings.

    Raises ConfigError where it cannot be read.
    """
    if not path.is_file():
        return []
    try:
        with path.open(encoding="utf-8") as text:
            for line in parse_stream(text):
                if line.error:
                    number = line.original.line
                    raise ConfigError(f"{path}: line {number} must be NAME=value, or begin with #")
        names = [name.upper() for name in dotenv_values(path)]
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8: save it as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    return [name for name in names if name.startswith(PREFIX) and name not in _NO_SETTINGS]


def _merged(layers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return each setting as the first layer has it that does; sections are put together."""
    values: dict[str, Any] = {}
    for layer in reversed(layers):
        for name, value in layer.items():
            below = values.get(name)
            if isinstance(below, Mapping) and isinstance(value, Mapping):
                value = _merged([value, below]) if name == _MODELS else {**below, **value}
            values[name] = value
    return values


def _environment_names() -> list[str]:
    names = [name for name in os.environ if name.upper().startswith(PREFIX)]
    return [name for name in names if name.upper() not in _NO_SETTINGS]


def _known_names() -> set[str]:
    return {f"{g}__{n}" if g else n for _, g, n, _ in _fields()}


def _is_setting(variable: str) -> bool:
    name = variable[len(PREFIX) :].lower()
    section, _, of_model = name.partition("__")
    if section == _MODELS and of_model:
        return of_model.partition("__")[2] in ModelSettings.model_fields
    return name in _known_names() or name in Settings.model_fields


def _closest(variable: str) -> str:
    import difflib

    names = [f"{PREFIX}{name.upper()}" for name in sorted(_known_names())]
    model = variable[len(PREFIX) :].upper().split("__")
    if len(model) > 1 and model[0] == _MODELS.upper():
        start = f"{PREFIX}{'__'.join(model[:2])}__"
        names = [f"{start}{name.upper()}" for name in ModelSettings.model_fields]
    close = difflib.get_close_matches(variable.upper(), names, n=1)
    return f"did you mean {close[0]}?" if close else "see graphrag-pipeline init for all settings"


def _explain(error: ValidationError, layers: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for item in error.errors():
        name = ".".join(str(part) for part in item["loc"])
        source = _source(item["loc"], layers)
        if item["type"] == "extra_forbidden":
            yield f"{source}: unknown setting {name}: {_instead_of(name)}"
        elif item["type"] == "value_error":
            yield f"{source}: {item['msg'].removeprefix('Value error, ')}"
        else:
            yield f"{source}: {name} = {_shown(item)}: {_what_is_right(item)}"


def _shown(item: ErrorDetails) -> str:
    """Return a wrong value as it was written; an address without its user, password and query."""
    value = item["input"]
    if item["type"] in ("variable", "secret"):
        return "(not shown)"
    if item["type"] == "address":
        value = value.rpartition("@")[2].partition("?")[0]
    return repr(value)


def _instead_of(name: str) -> str:
    """Say what to write in place of a setting there is not."""
    import difflib

    section, _, own = name.rpartition(".")
    if own == "api_key":
        return "no key stands in settings: set OPENAI_API_KEY, or write it to .env"
    if name == "notify.webhook":
        return f"its address is a secret: set {WEBHOOK}, or write it to .env"
    names = [n.replace("__", ".") for n in sorted(_known_names())]
    if section.startswith(f"{_MODELS}."):
        return _instead_in_a_model(section, own)
    if section in Settings.model_fields:
        owns = [n.rpartition(".")[2] for n in names if n.startswith(f"{section}.")]
        close = [f"{section}.{n}" for n in difflib.get_close_matches(own, owns, n=1)]
        close += [n for n in names if n.rpartition(".")[2] == own]
    else:
        close = difflib.get_close_matches(name, [*Settings.model_fields, *names], n=1)
    return f"did you mean {close[0]}?" if close else "remove it"


def _instead_in_a_model(section: str, name: str) -> str:
    import difflib

    close = difflib.get_close_matches(name, [*ModelSettings.model_fields], n=1)
    if name in LlmSettings.model_fields and name != "embedding_model":
        return f"it is for all models: set {LLM}.{name}"
    return (
        f"did you mean {section}.{'model' if name == 'embedding_model' else close[0]}?"
        if (close)
        else "remove it"
    )


def _source(place: tuple[int | str, ...], layers: Mapping[str, Mapping[str, Any]]) -> str:
    """Return where the setting at this place, or the first of its section, is said to be so."""
    for name, layer in layers.items():
        value: Any = layer
        for part in place:
            value = value.get(part) if isinstance(value, Mapping) else value
        if value is not None:
            return _variable(place) if name == _ENVIRONMENT else name
    return [*layers][-1]


def _variable(place: tuple[int | str, ...]) -> str:
    """Return the environment variable that gives a setting, or one of a section."""
    depth = 3 if place[:1] == (_MODELS,) else 2
    variable = PREFIX + "__".join(str(part) for part in place[:depth]).upper()
    names = sorted(n for n in os.environ if f"{n.upper()}__".startswith(f"{variable}__"))
    return names[0] if names else _ENVIRONMENT


def _what_is_right(item: ErrorDetails) -> str:
    if item["type"] == "model_type":
        section = ".".join(str(part) for part in item["loc"])
        return f"must be a section, [{section}], with settings beneath it"
    if item["type"] == "tuple_type":
        return 'must be a list, such as ["one", "other"]'
    if item["type"] == "string_pattern_mismatch" and item["loc"][-1] == "reranker":
        return 'must be "llm" or "local:NAME", or empty for none'
    if item["type"] == "dict_type":
        return 'must be a table, such as { setting = "value" }'
    return item["msg"][0].lower() + item["msg"][1:]


def _explain_environment() -> str | None:
    """Return what is wrong with a variable that must be JSON, the way a list is given."""
    lists = {f"{g}__{n}" for _, g, n, default in _fields() if isinstance(default, tuple)}
    tables = {f"{g}__{n}" for _, g, n, default in _fields() if isinstance(default, dict)}
    sections = {group for _, group, _, _ in _fields() if group}
    for given in sorted(_environment_names()):
        name = given[len(PREFIX) :].lower()
        if name not in lists | tables | sections:
            continue
        try:
            json.loads(os.environ[given])
        except ValueError:
            right = '["one", "other"]' if name in lists else '{"setting": "value"}'
            return f"{given} = {os.environ[given]!r}: must be JSON, such as {right}"
    return None


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return "[" + ", ".join(_toml(part) for part in value) + "]"
    return json.dumps(value, ensure_ascii=False)
