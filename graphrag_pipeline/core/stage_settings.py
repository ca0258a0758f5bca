"""Settings of the stages of an index, and of questions: a section each."""

from __future__ import annotations

import codecs
from typing import Annotated, Literal

from pydantic import Field, JsonValue, model_validator

from graphrag_pipeline.core.setting_values import (
    Address,
    Level,
    Megabytes,
    Place,
    Positive,
    Section,
    Share,
)


class InputSettings(Section):
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


class BatchSettings(Section):
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


class ChunkSettings(Section):
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


class ExtractionSettings(Section):
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
    strength: bool = False
    """llm: ask how strong each relationship is, from 1 to 10, and weigh it by that, not by 1."""
    claims: bool = False
    """llm: extract claims about entities as well."""
    claim_description: str = (
        "statements of fact about these entities that a reader would want to check"
    )
    """llm: which claims to extract."""


class GraphSettings(Section):
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


class ResolutionSettings(Section):
    """Rules to decide which titles mean the same thing, before the graph is made."""

    method: Literal["auto", "off", "rules", "llm"] = "auto"
    """auto: by rule, imports left as they are. rules: imports too. llm: unsure pairs by model.
    off: only what aliases_file says."""
    aliases_file: str = "aliases.csv"
    """Your own word, which wins: a file with the columns action (merge or never), a, b, note."""
    max_model_pairs: Positive = 200
    """llm: most pairs asked of the model, the most alike first."""


class CommunitySettings(Section):
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


class ReportSettings(Section):
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


class EmbeddingSettings(Section):
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


class HierarchySettings(Section):
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
    attributed_clustering: str = "attributed"
    """attributed: what clusters them. Leiden over links and likeness (attributed, as ArchRAG does)
    or over links alone (links); or one that another package brings. That of evaluation has what
    ArchRAG is compared with, made anew at every change: spectral clustering of links and likeness
    (spectral) or of links alone, weighed by likeness (spectral_links) or all by one as its authors
    do (spectral_unweighted), SCAN (scan), node2vec with k-means (node2vec); and Leiden (codicil) or
    one of these over the edges of CODICIL (codicil_spectral, codicil_scan, codicil_node2vec). Time
    or memory of spectral clustering and node2vec grow with the square of the entities."""
    attributed_parameters: dict[str, Annotated[float, Field(gt=0)]] = {}
    """attributed: parameters of SCAN (epsilon .5, mu 2) or node2vec (p 1, q .5, dimensions 128)."""
    attributed_fewest: Annotated[int, Field(ge=1)] = 1
    """attributed: a level of fewer communities is left out; the authors of ArchRAG leave out those
    of fewer than 5."""
    hirag: bool = False
    """Keep layers of entities that summarise clusters of entities, and communities over all layers
    with a report on each (HiRAG): the method hirag needs it."""


class StructureSettings(Section):
    """Structures that another package brings, or your own program: docs/how-to/extend.md."""

    wanted: tuple[str, ...] = ()
    """Names of those to be kept up to date."""
    options: dict[str, JsonValue] = {}
    """What each of them is to know, by its name: { name = { option = "value" } }."""


class QuerySettings(Section):
    """Retrieval defaults."""

    top_k: Positive = 10
    """Chunks (or entities, for local) that a search starts from."""
    max_context_tokens: Positive = 12000
    """Tokens of evidence given to the answer."""
    dates: bool = True
    """Words of time ("before 1960", "since May", "the latest version") limit a question to those
    documents, where at least half have a date in their metadata, or years in their names."""
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
