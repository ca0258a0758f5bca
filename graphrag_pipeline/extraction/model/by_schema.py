"""Extraction in JSON by a schema, whose lists and texts end: in one call or in two.

Small models do not find the end of a list of records. By a schema they must: a grammar closes the
list at ``maxItems`` and each text at ``maxLength``. In two calls the ends of a relationship are an
enum of the names that the first call gave, so that no end is invented. A text is asked about once:
no gleaning, and an answer is never asked to go on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.prompting import Message, Prompt, load_prompt
from graphrag_pipeline.core.settings import ExtractionSettings
from graphrag_pipeline.core.text import normalize_title
from graphrag_pipeline.extraction.model.strength import STRENGTHS, asked_in_json, within_scale
from graphrag_pipeline.extraction.model.tuples import (
    MAX_TITLE_CHARS,
    ParsedEntity,
    ParsedExtraction,
    ParsedRelationship,
    example_titles,
    leaked_titles,
    parse_tuples,
)
from graphrag_pipeline.llm.answers import LOOP
from graphrag_pipeline.llm.completion import Completion
from graphrag_pipeline.llm.errors import ModelOutputError
from graphrag_pipeline.llm.parsing import parse_json_object
from graphrag_pipeline.llm.schemas import Schema, choice, closed, listed, number_of
from graphrag_pipeline.llm.schemas import text as a_text

if TYPE_CHECKING:
    from graphrag_pipeline.llm.client import ModelClient

SCHEMA_VERSION: Final = "1"
"""Part of the extraction's version: another parser may find other records in the same answer."""
SCHEMA_PROMPTS: Final[Mapping[str, tuple[str, ...]]] = {
    "schema": ("extract_by_schema",),
    "two_calls": ("name_entities", "relate_entities"),
}
"""The prompts of each format, in the order of their calls."""

LISTS: Final[Mapping[str, tuple[str, ...]]] = {
    "extract_by_schema": ("entities", "relationships"),
    "name_entities": ("entities",),
    "relate_entities": ("relationships",),
}
"""The lists that the answer to each prompt has."""

_CHARS_OF_ENTITY, _CHARS_OF_RELATIONSHIP = 100, 120
_FEWEST_ENTITIES, _FEWEST_RELATIONSHIPS = 14, 12
_NAME_CHARS, _DESCRIPTION_CHARS = 60, 130
_EXAMPLE = pattern_of(
    r"^Text:\n(?P<text>.+?)\nRecords:\n(?P<records>.+?)<\|COMPLETE\|>", re.M | re.S
)

Json = dict[str, Any]


@dataclass(frozen=True)
class Example:
    """A few-shot example, from those in tuple format: a text and what is to be found in it."""

    text: str
    records: ParsedExtraction

    @classmethod
    def first_of(cls, examples: str) -> Example:
        """Return the first example that has entities; one is enough for the form."""
        for match in _EXAMPLE.finditer(examples):
            if (records := parse_tuples(match["records"])).entities:
                return cls(match["text"].strip(), records)
        return cls("", parse_tuples(""))

    def shown(self, lists: Collection[str], *, strengths: bool = False) -> str:
        """Return the example as a prompt shows it, with these lists in its answer."""
        if not self.text:
            return ""
        entities = [
            {"name": e.title, "type": e.type, "description": e.description}
            for e in self.records.entities
        ]
        relationships = [
            {"source": r.source, "target": r.target, "description": r.description}
            | ({"strength": round(within_scale(r.strength))} if strengths else {})
            for r in self.records.relationships
        ]
        names = [] if "entities" in lists else ["Entities:", *(e["name"] for e in entities)]
        rows = {"entities": entities, "relationships": relationships}
        answer = json.dumps({name: rows[name] for name in lists}, ensure_ascii=False)
        return "\n".join(["Text:", self.text, *names, "JSON:", answer])


class BySchema:
    """Asks a model for the graph of a text in JSON, as ``extraction.format`` says."""

    def __init__(
        self,
        client: ModelClient,
        settings: ExtractionSettings,
        prompts: Path | None,
        examples: str,
        *,
        stage: str,
        batch: str | None = None,
    ) -> None:
        self._client = client
        self._settings = settings
        self._prompts = {
            name: load_prompt(name, prompts) for name in SCHEMA_PROMPTS[settings.format]
        }
        self._again = load_prompt("report_retry", prompts)
        self._example = Example.first_of(examples)
        self._titles = example_titles(examples)
        self._stage, self._batch = stage, batch

    async def graph(
        self, shown: str, on_answer: Callable[[Completion], object]
    ) -> ParsedExtraction:
        """Return the graph of a text, not ``completed`` where an answer did not come to its end.

        Raises ModelOutputError for an answer that cannot be read, twice.
        """
        if self._settings.format == "schema":
            return await self._read("extract_by_schema", shown, (), on_answer)
        first = await self._read("name_entities", shown, (), on_answer)
        names = list(dict.fromkeys(entity.title for entity in first.entities))
        if len(names) < 2:
            return replace(first, relationships=())
        try:
            related = await self._read("relate_entities", shown, names, on_answer)
        except ModelOutputError:
            return replace(first, relationships=(), completed=False)
        is_whole = first.completed and related.completed
        return replace(first, relationships=related.relationships, completed=is_whole)

    async def _read(
        self,
        name: str,
        shown: str,
        names: Sequence[str],
        on_answer: Callable[[Completion], object],
    ) -> ParsedExtraction:
        leaked = leaked_titles(self._titles, shown)
        keys = LISTS[name]
        try:
            return await self._client.read(
                messages_of(self._prompts[name], self._settings, self._example, shown, names),
                lambda answer: parse_graph(answer, keys, leaked),
                stage=self._stage,
                batch=self._batch,
                again=lambda error: self._again.render(error=error),
                json_schema=_schema(self._settings, shown, names, keys),
                on_answer=on_answer,
            )
        except ModelOutputError as error:
            answer = error.completion
            if answer is None or answer.finish_reason not in ("length", LOOP):
                raise
            return _whole_records(parse_graph(answer.text, keys, leaked))


def messages_of(
    prompt: Prompt, settings: ExtractionSettings, example: Example, shown: str, names: Sequence[str]
) -> list[Message]:
    """Return what is asked of a text by one of the prompts of a format."""
    values = {
        "entity_types": ", ".join(settings.entity_types),
        "most_entities": str(most_entities(shown)),
        "most_relationships": str(most_relationships(shown)),
        "examples": example.shown(LISTS[prompt.name], strengths=settings.strength),
        "document": shown,
        "names": "\n".join(names),
        **asked_in_json(settings),
    }
    return prompt.render(**{k: v for k, v in values.items() if k in prompt.placeholders})


def most_entities(text: str) -> int:
    """Return how many entities a text of this length may be asked for."""
    return max(_FEWEST_ENTITIES, len(text) // _CHARS_OF_ENTITY)


def most_relationships(text: str) -> int:
    """Return how many relationships a text of this length may be asked for."""
    return max(_FEWEST_RELATIONSHIPS, len(text) // _CHARS_OF_RELATIONSHIP)


def parse_graph(answer: str, keys: Sequence[str], leaked: Collection[str]) -> ParsedExtraction:
    """Read the entities and relationships of an answer in JSON; what stands twice counts once.

    ``keys`` are the lists that it must have; a record that names one of the ``leaked`` titles of
    the prompt's example is dropped. Raises ModelOutputError where there is no such list.
    """
    reply = parse_json_object(answer)
    if not any(isinstance(reply.get(key), list) for key in keys):
        wanted = " and ".join(f'"{key}"' for key in keys)
        raise ModelOutputError(f"the answer must be a JSON object with the list {wanted}")
    entities = dict.fromkeys(
        ParsedEntity(title, _text(row.get("type")).upper() or "OTHER", _text(row["description"]))
        for row in _rows(reply, "entities")
        if (title := _title(row.get("name")))
    )
    relationships = dict.fromkeys(
        ParsedRelationship(source, target, _text(row["description"]), _strength(row))
        for row in _rows(reply, "relationships")
        if (source := _title(row.get("source"))) and (target := _title(row.get("target")))
        if normalize_title(source) != normalize_title(target)
    )
    own_entities = [e for e in entities if normalize_title(e.title) not in leaked]
    own_relationships = [
        r for r in relationships if not {*map(normalize_title, (r.source, r.target))} & {*leaked}
    ]
    return ParsedExtraction(tuple(own_entities), tuple(own_relationships), True)


def _whole_records(graph: ParsedExtraction) -> ParsedExtraction:
    """Return a graph from an answer that broke off without its last record, which may be half.

    Raises ModelOutputError where no other is left.
    """
    if graph.relationships:
        graph = replace(graph, relationships=graph.relationships[:-1])
    else:
        graph = replace(graph, entities=graph.entities[:-1])
    if not graph.entities and not graph.relationships:
        raise ModelOutputError("the answer broke off before its first record ended")
    return replace(graph, completed=False)


def _rows(reply: Json, key: str) -> list[Json]:
    rows = reply.get(key)
    listed = rows if isinstance(rows, list) else []
    return [{"description": "", **row} for row in listed if isinstance(row, dict)]


def _text(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _strength(row: Json) -> float | None:
    value = row.get("strength")
    return within_scale(value) if isinstance(value, int | float) else None


def _title(value: object) -> str:
    title = _text(value)
    return title if normalize_title(title) and len(title) <= MAX_TITLE_CHARS else ""


def _schema(
    settings: ExtractionSettings, shown: str, names: Sequence[str], keys: Sequence[str]
) -> Schema:
    name, description = a_text(_NAME_CHARS), a_text(_DESCRIPTION_CHARS)
    end = choice(names) if names else name
    kind = choice(each.upper() for each in settings.entity_types)
    entity = closed(name=name, type=kind, description=description)
    strength = {"strength": number_of(STRENGTHS)} if settings.strength else {}
    relationship = closed(source=end, target=end, description=description, **strength)
    lists = {
        "entities": listed(entity, most_entities(shown)),
        "relationships": listed(relationship, most_relationships(shown)),
    }
    return closed(**{key: lists[key] for key in keys})
