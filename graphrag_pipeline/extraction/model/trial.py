"""A trial of a model on three short texts whose graphs are known, before it extracts from a corpus.

The texts are the first examples of the domains that ship; the prompts of a trial show that of
another domain, so none is shown its own answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.hardening.files import write_beside
from graphrag_pipeline.core.home import make_home
from graphrag_pipeline.core.model_sizes import Tried, file_in, known_of, note, size_in
from graphrag_pipeline.core.prompting import DEFAULT_DOMAIN
from graphrag_pipeline.core.settings import ExtractionSettings, Role, Settings
from graphrag_pipeline.core.text import normalize_title
from graphrag_pipeline.extraction.model.by_schema import BySchema, Example
from graphrag_pipeline.extraction.model.strength import shown_examples
from graphrag_pipeline.extraction.model.tuples import ParsedExtraction
from graphrag_pipeline.llm.configured import model_options, with_model
from graphrag_pipeline.llm.errors import ModelError, ModelOutputError
from graphrag_pipeline.llm.model_size import size_told

if TYPE_CHECKING:
    from graphrag_pipeline.llm.client import ModelClient

_DOMAINS: Final = ("law", "medicine", "science")
_LEAST_NAMES, _LEAST_PAIRS = 0.7, 0.4
_STAGE = "trial"
_ROLE: Role = "extraction"


def learn_of_model(settings: Settings, *, by_trial: bool = True) -> bool:
    """Find out whether the model of ``profile = "local"`` extracts better than rules.

    Asks its server for its size at each run, for another model may be behind the same name; where
    the server does not say, the model is tried once, unless that is not to be done (``by_trial``).
    The home remembers. Returns whether it learned anything: settings that are loaded again follow
    it.
    """
    llm, home = settings.llm_for(_ROLE), settings.home_path
    if settings.profile != "local" or size_in(llm.model) is not None:
        return False
    before = known_of(llm.base_url, llm.model, home)
    try:
        size = size_told(model_options(settings, _ROLE))
    except ConfigError:
        # The run itself will say what is wrong with the settings, and below with the server.
        return False
    if size is None and (before or not by_trial or settings.extraction.extractor != "llm"):
        return False
    try:
        tried = Tried(size) if size is not None else Tried(failure=_try(settings))
    except ModelError:
        return False
    if tried == before:
        return False
    make_home(settings)
    write_beside(file_in(home), note(home, llm.base_url, llm.model, tried))
    return True


def _try(settings: Settings) -> str:
    """Return what was wrong with the answers of a model, empty where they will do."""

    async def run(client: ModelClient) -> list[tuple[ParsedExtraction, ParsedExtraction | None]]:
        return [await _answered(client, domain) for domain in _DOMAINS]

    return failure_of(with_model(settings, run, _ROLE, at_once=True))


async def _answered(
    client: ModelClient, domain: str
) -> tuple[ParsedExtraction, ParsedExtraction | None]:
    example = Example.first_of(shown_examples(domain))
    types = tuple(dict.fromkeys(entity.type.lower() for entity in example.records.entities))
    options = ExtractionSettings(extractor="llm", format="two_calls", entity_types=types)
    asker = BySchema(client, options, None, shown_examples(DEFAULT_DOMAIN), stage=_STAGE)
    try:
        return example.records, await asker.graph(example.text, lambda completion: None)
    except ModelOutputError:
        return example.records, None


def failure_of(trials: Sequence[tuple[ParsedExtraction, ParsedExtraction | None]]) -> str:
    """Return what was wrong with answers, each beside what is true; empty where they will do."""
    if any(answer is None for _, answer in trials):
        return "gave answers that could not be read, in a trial of three short texts"
    names, all_names = _shared([(_names(truth), _names(a)) for truth, a in trials if a])
    pairs, all_pairs = _shared([(_pairs(truth), _pairs(a)) for truth, a in trials if a])
    if names < _LEAST_NAMES * all_names or pairs < _LEAST_PAIRS * all_pairs:
        return (
            f"found {names} of {all_names} entities and {pairs} of {all_pairs} relationships in a "
            "trial of three short texts"
        )
    return ""


def _shared(sets: Sequence[tuple[set[str], set[str]]]) -> tuple[int, int]:
    return sum(len(truth & answer) for truth, answer in sets), sum(len(truth) for truth, _ in sets)


def _names(graph: ParsedExtraction) -> set[str]:
    return {normalize_title(entity.title) for entity in graph.entities}


def _pairs(graph: ParsedExtraction) -> set[str]:
    return {
        "\n".join(sorted(map(normalize_title, (r.source, r.target)))) for r in graph.relationships
    }
