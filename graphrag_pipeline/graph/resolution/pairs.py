"""Input and output of resolution: entities, and pairs of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from graphrag_pipeline.graph.resolution.names import Name

BY_FILE = "file name"
"""The rule of a pair that links say: what a file is called, and the title of its document."""
SHARED: Mapping[str, object] = {"shared_documents": None}
"""Evidence to be completed, when it is written, with how many documents mention both."""


@dataclass(frozen=True)
class Entity:
    """An entity as the mentions have it, before anything is merged.

    ``documents`` stand for those that mention it, where rules ask for them.
    ``is_open`` says whether rules may merge it: imported entities are what they are.
    """

    id: str
    name: Name
    documents: frozenset[int] = frozenset()
    description: str = ""
    is_open: bool = True

    @property
    def title(self) -> str:
        """The title most of its chunks give it."""
        return self.name.title

    @property
    def rank(self) -> tuple[bool, int, bool, int, str, str]:
        """Sorts the entity whose title names a merged one first: the fullest, without honorific.

        Letters told one by one, as in I-B-M, name it last: people write IBM.

        It does not depend on how often a title occurs, so that an entity keeps its id as documents
        come and go. Of two names of a person the longer is fuller, of two words the shorter is
        more likely the singular.
        """
        name = self.name
        is_person = name.last and not name.acronym
        return (
            "-" in self.title and all(len(word) == 1 for word in name.core),
            -len(name.core),
            bool(name.honorific),
            -sum(map(len, name.core)) if is_person else len(self.title),
            self.title,
            self.id,
        )


@dataclass(frozen=True)
class Pair:
    """Two entities that may be one: why, how sure, and on what evidence.

    ``method`` is "rule", "model" or "user". A pair of ``confidence`` 0 is to be kept apart.
    """

    one: Entity
    two: Entity
    rule: str
    confidence: float = 0.0
    method: str = "rule"
    evidence: Mapping[str, object] = field(default_factory=dict)

    @property
    def ids(self) -> tuple[str, str]:
        """Both ids, in order."""
        first, second = sorted((self.one.id, self.two.id))
        return first, second

    @property
    def is_told(self) -> bool:
        """Whether the user or a link says so, whatever the names are."""
        return self.method == "user" or self.rule == BY_FILE

    @property
    def strength(self) -> tuple[float, tuple[str, str], str, str]:
        """Sorts the strongest pair first; two rows of it differ in their order, too."""
        return -self.confidence, self.ids, self.rule, as_json(self.evidence)


def as_json(evidence: object) -> str:
    """Return evidence as it is kept."""
    return json.dumps(evidence, ensure_ascii=False, sort_keys=True)
