"""Quantities that plans compute with: how much a run adds to an index, and its calls of a model.

Each stage that asks a model says by an :class:`Estimate` what it will ask for some :class:`Growth`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from graphrag_pipeline.core.settings import Role

ENTITIES, ENTITY_TOKENS = 7, 60
"""Entities of a chunk, and tokens of one with its description."""
RELATIONSHIPS, RELATIONSHIP_TOKENS = 12, 36
"""Relationships of a chunk, and tokens of one."""
REPORTS_PER_CHUNK = 2
"""Communities of two or more entities for each chunk, on all levels together."""
REPORTS_PER_ENTITY = 0.26
"""Communities of two or more entities on all levels (Carol: 0.23)."""
RELATIONSHIPS_PER_ENTITY = 2.0
"""Relationships for each entity (Carol: 1.8; podcasts: 2.4)."""
TITLE_TOKENS = 4
"""Tokens of an entity's title."""
_SMALL_CHUNK = 100


@dataclass(frozen=True)
class Chunks:
    """A number of chunks and their tokens."""

    number: int = 0
    tokens: int = 0

    @property
    def full(self) -> float:
        """The number of chunks, where those that say next to nothing count as parts of one."""
        return min(self.number, self.tokens / _SMALL_CHUNK)

    def times(self, factor: float) -> Chunks:
        """Return so many times these chunks."""
        return Chunks(round(self.number * factor), round(self.tokens * factor))


@dataclass(frozen=True)
class Amount:
    """A number of texts or calls, and the tokens of all of them."""

    number: float = 0.0
    tokens: float = 0.0

    def times(self, factor: float) -> Amount:
        """Return so many times as much."""
        return Amount(self.number * factor, self.tokens * factor)


@dataclass(frozen=True, kw_only=True)
class Effect:
    """The effect of so many chunks: elements that are new or change, and what is written for them.

    The tokens of ``reports`` are those of their contexts, of ``report_texts`` the texts'. Four of
    five draws had ``few`` to ``many`` reports.
    """

    entities: Amount
    relationships: Amount
    merges: float
    reports: Amount
    report_texts: Amount
    few: float
    many: float


@dataclass(frozen=True)
class ExtractedChunk:
    """The average cost of extracting from a chunk of ``size`` tokens."""

    size: float
    calls: float
    prompt: float
    completion: float


@dataclass(frozen=True)
class Texts:
    """A number of texts to embed and their bytes; ``known`` are those whose vector is cached."""

    number: int = 0
    n_bytes: int = 0
    known: int = 0


@dataclass(frozen=True)
class Average:
    """Tokens of a stage's call in this index's history, on average."""

    prompt: float
    completion: float


@dataclass(frozen=True, kw_only=True)
class Growth:
    """The growth of an index by a run, and what is known of it.

    Parameters
    ----------
    indexed, grown
        The chunks that the graph has, and those that it will take in.
    reports, further_reports
        The community reports to be written, and those that structures add to them.
    report_context
        Tokens of what one of them is made from (None: not known).
    rows
        The rows of the structures' tables, by table.
    current
        The names of the structures that belong to the graph as it is.
    unasked, begun, answered
        Chunks that are new to the model; those of which the first answer is in the cache; and all
        extraction calls that are there.
    extracted
        What extracting from a chunk of the index has taken.
    merges, merge_tokens
        Descriptions to merge, and what one of them is made from on average (None: not known).
    texts
        Texts to embed that are known by now.
    entities
        Entities that are guessed from the names in the texts.
    effect
        What the chunks will change, learned from those of the index.
    mean_context
        Tokens of what a report of the index was made from.
    history
        What calls of a stage have taken in this index, by stage.
    """

    indexed: Chunks = Chunks()
    grown: Chunks = Chunks()
    reports: float = 0.0
    further_reports: float = 0.0
    report_context: float | None = None
    rows: Mapping[str, int] = field(default_factory=dict)
    current: frozenset[str] = frozenset()
    unasked: Chunks = Chunks()
    begun: Chunks = Chunks()
    answered: int = 0
    extracted: ExtractedChunk | None = None
    merges: int = 0
    merge_tokens: float | None = None
    texts: Sequence[Texts] = ()
    entities: float = 0.0
    effect: Effect | None = None
    mean_context: float | None = None
    history: Mapping[str, Average] = field(default_factory=dict)

    @property
    def changes_graph(self) -> bool:
        """Whether anything is known that structures would have to follow."""
        return bool(self.grown.number or self.merges or self.reports)


@dataclass(frozen=True)
class ModelCalls:
    """Calls of a stage, and the tokens that one of them reads and writes on average.

    ``limit`` names the setting that bounds the tokens one is given, such as ``chunks.size``. What
    earlier calls of the stage took on average is reckoned with instead, unless ``is_total``: then
    the tokens are those of all calls together. ``cached`` calls are answered already. ``role`` says
    which model is asked. In ``rounds`` one after the other some calls wait for others, and
    ``repeated`` is the share of the prompts' tokens that begin as a prompt before, as providers'
    caches count them.
    """

    stage: str
    number: float
    prompt_tokens: float
    completion_tokens: float
    limit: str = ""
    is_total: bool = False
    cached: int = 0
    role: Role = "summaries"
    rounds: int = 1
    repeated: float = 0.0


@dataclass(frozen=True)
class LargestCall:
    """The largest call of a stage: tokens of its instructions and its answer, the setting that
    bounds the rest of its prompt, and which model is asked.
    """

    stage: str
    instructions: int
    limit: str
    answer: int
    role: Role


@dataclass(frozen=True)
class Embedded:
    """A number of texts to embed, and the tokens of all of them.

    ``table`` is the vector table they are for, where the settings may do without it.
    """

    number: float
    tokens: float
    table: str = ""


@dataclass(frozen=True)
class Estimate:
    """The work of models for a stage: calls, further community reports, texts to embed."""

    calls: Sequence[ModelCalls] = ()
    reports: float = 0.0
    texts: Sequence[Embedded] = ()
