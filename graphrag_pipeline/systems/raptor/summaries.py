"""Summaries of several texts: by a model where one is configured, else their central sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphrag_pipeline.core.prompting import load_prompt
from graphrag_pipeline.core.settings import Settings, fingerprint
from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.extraction.rules.sentences import sentence_spans
from graphrag_pipeline.llm.configured import (
    answered_by,
    model_of,
    prompts_folder,
    with_model,
)
from graphrag_pipeline.llm.embedders import HashingEmbedder
from graphrag_pipeline.llm.errors import ModelError
from graphrag_pipeline.llm.running import ask_each

if TYPE_CHECKING:
    from graphrag_pipeline.llm.client import ModelClient

STAGE = "raptor_tree"

Told = Callable[[int, int], None]
"""Hears how many summaries of how many are done."""

_VERSION = "1"
_CLUSTERS_AT_ONCE = 64
_ALIKE = 0.8
_CUT_OFF = 0.5
_FULL_CHARS = 60
_WHOLE = tuple(".!?…。！？\"'”’»」』)]")
_LEFT_OVER = 0.1
_WORDS_PER_TOKEN = 0.75


class Extractor:
    """Summaries of the sentences nearest to the middle of all, in the order of the texts.

    Nearness is that of words (the hashing embedder's vectors), whatever embeds the index: sentences
    cost nothing then. Short sentences and parts of one count for less, and a sentence much like one
    that was taken is passed over.
    """

    written_by = "extractive"

    def __init__(self, settings: Settings) -> None:
        self._most_tokens = settings.hierarchies.summary_tokens
        self._encoding = settings.chunks.encoding

    @property
    def version(self) -> str:
        """A hash of all that decides a summary besides the texts."""
        return fingerprint("extractive", _VERSION, self._most_tokens, self._encoding)

    def write(self, clusters: Sequence[Sequence[str]], tell: Told) -> list[str | None]:
        """Return a summary of each cluster of texts; it cannot fail."""
        embedder = HashingEmbedder()
        summaries: list[str | None] = []
        for start in range(0, len(clusters), _CLUSTERS_AT_ONCE):
            sentences = [_sentences(texts) for texts in clusters[start : start + _CLUSTERS_AT_ONCE]]
            vectors = embedder.embed([sentence for part in sentences for sentence in part])
            ends = np.cumsum([len(part) for part in sentences])
            for part, of_some in zip(sentences, np.split(vectors, ends[:-1]), strict=True):
                summaries.append(self._central(part, of_some))
            tell(len(summaries), len(clusters))
        return summaries

    def _central(self, sentences: Sequence[str], vectors: np.ndarray) -> str:
        whole = np.array([sentence.endswith(_WHOLE) for sentence in sentences])
        long = np.minimum(1.0, np.array([len(sentence) for sentence in sentences]) / _FULL_CHARS)
        nearness = vectors @ vectors.sum(axis=0) * np.where(whole, 1.0, _CUT_OFF) * long
        places: list[int] = []
        budget = self._most_tokens
        for place in map(int, np.argsort(-nearness, kind="stable")):
            n_tokens = count_tokens([f" {sentences[place]}"], self._encoding)[0]
            if n_tokens <= budget and not (vectors[places] @ vectors[place] > _ALIKE).any():
                places.append(place)
                budget -= n_tokens
            if budget < self._most_tokens * _LEFT_OVER:
                break
        if not places:
            return self._cut(sentences[int(nearness.argmax())])
        return " ".join(sentences[place] for place in sorted(places))

    def _cut(self, sentence: str) -> str:
        """Return the beginning of a sentence that is too long as a whole."""
        while (n_tokens := count_tokens([sentence], self._encoding)[0]) > self._most_tokens:
            share = min(0.9, self._most_tokens / n_tokens)
            sentence = sentence[: int(len(sentence) * share)].rstrip()
        return sentence


class ModelSummariser:
    """Summaries by the model; each is paid for once."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._words = str(max(15, int(settings.hierarchies.summary_tokens * _WORDS_PER_TOKEN)))
        self._prompt = load_prompt("summarise_texts", prompts_folder(settings))
        self.written_by = model_of(settings, "summaries")

    @property
    def version(self) -> str:
        """A hash of all that decides a summary besides the texts."""
        return fingerprint(
            "llm",
            self._prompt.version,
            self._words,
            *answered_by(self._settings.llm_for("summaries")),
        )

    def write(self, clusters: Sequence[Sequence[str]], tell: Told) -> list[str | None]:
        """Return the model's summary of each cluster of texts, None where it gave none.

        Raises the model's error when no further call can succeed.
        """
        if not clusters:
            return []
        return with_model(
            self._settings, lambda client: self._ask(client, clusters, tell), "summaries"
        )

    async def _ask(
        self, client: ModelClient, clusters: Sequence[Sequence[str]], tell: Told
    ) -> list[str | None]:
        async def summarise(texts: Sequence[str]) -> str | None:
            messages = self._prompt.render(text="\n\n".join(texts), max_words=self._words)
            completion = await client.complete(messages, stage=STAGE)
            return completion.text.strip() or None

        summaries = await ask_each(client, clusters, summarise, tell)
        return [None if isinstance(text, ModelError) else text for text in summaries]


Summariser = Extractor | ModelSummariser


def configured_summariser(settings: Settings) -> Summariser:
    """Return the model's summariser where reports are written by a model, else sentences."""
    return ModelSummariser(settings) if settings.reports.writer == "llm" else Extractor(settings)


def _sentences(texts: Sequence[str]) -> list[str]:
    """Return the sentences of texts, each once, in order; never none."""
    return list(dict.fromkeys(sentence for text in texts for sentence in _split(text))) or [""]


def _split(text: str) -> Iterator[str]:
    for start, end in sentence_spans(text):
        if sentence := " ".join(text[start:end].split()):
            yield sentence
