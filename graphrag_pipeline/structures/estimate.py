"""What plans reckon with: how much a run adds to an index, and what it will ask of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

ENTITIES, ENTITY_TOKENS = 7, 60
"""Entities of a chunk, and tokens of one with its description."""
RELATIONSHIPS, RELATIONSHIP_TOKENS = 12, 36
"""Relationships of a chunk, and tokens of one."""
REPORTS_PER_CHUNK = 2
"""Communities of two or more entities for each chunk, on all levels together."""
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
class Growth:
    """How an index grows by a run.

    ``indexed`` are the chunks that the graph has, ``grown`` those that it will take in, ``reports``
    the community reports to be written; ``rows`` counts the rows of the structures' tables.
    """

    indexed: Chunks = Chunks()
    grown: Chunks = Chunks()
    reports: float = 0.0
    rows: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelCalls:
    """Calls of a stage, and the tokens that one of them reads and writes on average.

    ``limit`` names the setting that bounds the tokens one is given, such as ``chunks.size``.
    """

    stage: str
    number: float
    prompt_tokens: float
    completion_tokens: float
    limit: str = ""


@dataclass(frozen=True)
class Embedded:
    """A number of texts to embed, and the tokens of all of them."""

    number: float
    tokens: float


@dataclass(frozen=True)
class Estimate:
    """What a structure will ask of models: calls, further community reports, texts to embed."""

    calls: Sequence[ModelCalls] = ()
    reports: float = 0.0
    texts: Sequence[Embedded] = ()
