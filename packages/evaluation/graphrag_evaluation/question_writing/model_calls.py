"""Asking a model for questions: several calls at a time, and no question twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from graphrag_evaluation.inquiring import Reader, Wording
from graphrag_evaluation.metrics.answers import normalized
from graphrag_pipeline.core.progress import report
from graphrag_pipeline.llm.embedders import HashingEmbedder
from graphrag_pipeline.llm.errors import ModelError, ModelOutputError
from graphrag_pipeline.llm.parsing import parse_json_list
from graphrag_pipeline.llm.running import ask_each
from graphrag_pipeline.llm.schemas import Schema, closed, listed, text

if TYPE_CHECKING:
    from graphrag_pipeline.core.settings import Settings
    from graphrag_pipeline.llm.client import ModelClient

NEARLY_THE_SAME: Final = 0.85
"""Two questions whose words' vectors (``HashingEmbedder``) have this cosine or more are one.

Of the paper's 125 questions on podcasts no two come near it; the same question with other question
words does.
"""
LONGEST: Final = 600
"""A question, a person or a task has no more characters than this."""

Item = TypeVar("Item")
Parsed = TypeVar("Parsed")


class GeneratingCalls:
    """One run that asks a model for questions; ``calls`` is how many it is likely to make.

    ``failures`` say why calls gave nothing.
    """

    def __init__(self, client: ModelClient, settings: Settings, calls: int) -> None:
        self._client = client
        self._settings = settings
        self._calls = calls
        self._done = 0
        self.failures: list[str] = []

    async def ask(self, wording: Wording, parse: Callable[[str], Parsed], **values: str) -> Parsed:
        """Return what ``parse`` reads of the answer.

        An answer that cannot be read is asked for once more, and that answer is never kept.
        """
        said = await Reader(self._client, self._settings, wording).read(values, parse)
        self._done += 1
        report("questions", min(self._done, self._calls), self._calls)
        return said

    async def for_each(
        self, items: Sequence[Item], work: Callable[[Item], Awaitable[list[Parsed]]]
    ) -> list[list[Parsed]]:
        """Return the lists that a model gives for items; none where its answers say nothing."""
        results = await ask_each(self._client, items, work, lambda done, total: None)
        self.failures += [str(result) for result in results if isinstance(result, ModelError)]
        return [[] if isinstance(result, ModelError) else result for result in results]


class SeenQuestions:
    """Questions that there are, so that none is asked twice."""

    def __init__(self) -> None:
        self._plain: set[str] = set()
        self._embedder = HashingEmbedder()
        self._vectors: list[np.ndarray] = []

    def is_new(self, question: str) -> bool:
        """Say whether a question is unlike all before it, and remember it if so."""
        plain = normalized(question)
        vector = self._embedder.embed([question])[0]
        if plain in self._plain:
            return False
        if self._vectors and (np.stack(self._vectors) @ vector).max() >= NEARLY_THE_SAME:
            return False
        self._plain.add(plain)
        self._vectors.append(vector)
        return True


def texts_in(answer: str, part: str) -> list[str]:
    """Return the texts in a model's answer, at least one. Raises ModelOutputError."""
    lines = map(one_line, parse_json_list(answer, part))
    texts = list(dict.fromkeys(line for line in lines if 0 < len(line) <= LONGEST))
    if not texts:
        raise ModelOutputError(f'the answer must be a JSON object with the list "{part}"')
    return texts


def one_line(value: object) -> str:
    """Return what a list holds as one line: a text, or the texts of an object."""
    if isinstance(value, dict):
        return ": ".join(filter(None, map(one_line, value.values())))
    if not isinstance(value, str):
        return ""
    plain = value.encode("utf-8", "replace").decode()
    return " ".join("".join(c if c.isprintable() else " " for c in plain).split())


def listing(part: str, most: int, items: Schema | None = None) -> Schema:
    """Return the schema of an object with one list; its items are texts, or as given."""
    return closed(**{part: listed(items or text(LONGEST), most)})
