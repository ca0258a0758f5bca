"""Structured results of tools for programs, beside the text for the assistant.

Texts of documents are values of fields here, and each result carries the rule that they are data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from graphrag_pipeline.core.rows import plain, printable
from graphrag_server.addresses import LinkOf, no_link
from graphrag_server.mcp.quoting import NOT_KEPT, RULE_OF_FIELDS, Keeping

if TYPE_CHECKING:
    from graphrag_pipeline.query.results import Answer, Citation, Retrieval


class Output(BaseModel):
    """Fields that every result has."""

    rule: str = Field(RULE_OF_FIELDS, description="How texts of documents are to be read.")


LINK = "A permanent link, for people to open; it names the release. null: no address is known."


class CitedPassage(BaseModel):
    """A passage of a document, or a report where no passage is known."""

    citation: int = Field(description="The number by which the answer refers to it.")
    title: str
    uri: str = Field(description="The name of the document; empty for a report.")
    document: str | None = Field(description="The id that read_document takes.")
    start: int = Field(description="The first character, from 0.")
    end: int = Field(description="After the last character.")
    text: str
    report: str | None
    link: str | None = Field(description=LINK)
    references: list[str] = Field(description="What the answer calls it, as in Sources (3).")


class Answered(Output):
    """An answer and the passages that it cites, or those to read where it names none."""

    answer: str
    generated: bool = Field(description="A model wrote it; else it is sentences of documents.")
    method: str
    release: str
    citations: list[CitedPassage]
    names_no_source: bool = Field(
        description="The answer refers to nothing: the citations are what its writer was shown."
    )
    conversation: str | None = Field(description="The one it is kept in; null: it is not kept.")
    link: str | None = Field(description="The permanent link of the answer where it is kept.")
    doubts: list[str] = Field(
        description="What is amiss with its references, and words that no document says: lines."
    )
    follow_ups: list[str]
    model_calls: int
    tokens: int
    cost: float | None = Field(description="US dollars; null: the price is not known.")


class Retrieved(Output):
    """The evidence for a question, and where it stands."""

    method: str
    release: str
    context: str = Field(description="Sections of rows, as a model reads them.")
    citations: list[CitedPassage]


class EntityFields(BaseModel):
    """An entity of the knowledge graph."""

    id: str
    title: str
    type: str | None
    description: str | None
    degree: int | None = Field(description="How many others it is related to.")
    link: str | None = Field(description=LINK)


class Near(EntityFields):
    """An entity near another one."""

    hop: int = Field(description="How many steps away it is.")


class Related(BaseModel):
    """A relationship of two entities."""

    source: str
    target: str
    type: str | None
    weight: float | None
    description: str | None


class Entities(Output):
    """Entities of a name, the best connected first."""

    release: str
    entities: list[EntityFields]


class Neighbourhood(Output):
    """Entities near another, the nearest first, and what relates them."""

    release: str
    entities: list[Near]
    relationships: list[Related]


class DocumentPart(Output):
    """Characters of a document."""

    document: str
    title: str
    uri: str
    start: int
    end: int
    n_chars: int = Field(description="How many characters the document has.")
    link: str | None = Field(description=LINK)
    text: str


class MethodEntry(BaseModel):
    """A method that can answer here."""

    method: str
    finds: str
    parameters: dict[str, Any] = Field(description="Names, and what each is unless it is set.")


class Methods(Output):
    """The methods of a collection, and the collections that there are."""

    collections: list[str]
    collection: str
    methods: list[MethodEntry]


class QueryRows(Output):
    """Rows of a query."""

    columns: list[str]
    rows: list[dict[str, Any]]
    more: bool = Field(description="There are more rows than these.")


@dataclass(frozen=True)
class ToolResult:
    """The result of a tool: a text for the assistant, and the same as fields."""

    text: str
    fields: Output

    @property
    def structured(self) -> dict[str, Any]:
        """The fields as JSON holds them; no character of a text turns or hides another."""
        return _inert(plain(self.fields.model_dump()))


def answered_fields(
    answer: Answer, link_of: LinkOf = no_link, keeping: Keeping = NOT_KEPT
) -> Answered:
    """Return an answer as fields."""
    return Answered.model_validate(
        {
            "answer": answer.text,
            "generated": answer.generated,
            "method": answer.method,
            "release": answer.release,
            "citations": cited_fields(answer.places, link_of),
            "names_no_source": answer.names_no_source,
            "conversation": keeping.conversation,
            "link": keeping.link,
            "doubts": [*answer.doubts],
            "follow_ups": [*answer.follow_ups],
            "model_calls": answer.model_calls,
            "tokens": answer.prompt_tokens + answer.completion_tokens,
            "cost": answer.cost,
        }
    )


def retrieved_fields(retrieval: Retrieval, link_of: LinkOf = no_link) -> Retrieved:
    """Return what a method found as fields."""
    return Retrieved.model_validate(
        {
            "method": retrieval.method,
            "release": retrieval.release,
            "context": retrieval.context,
            "citations": cited_fields(retrieval.citations, link_of),
        }
    )


def cited_fields(citations: Sequence[Citation], link_of: LinkOf) -> list[Mapping[str, Any]]:
    """Return passages as fields."""
    return [
        {
            "citation": each.number,
            "title": each.document_title,
            "uri": each.uri,
            "document": each.document_id or None,
            "start": each.start_char,
            "end": each.end_char,
            "page": each.page,
            "text": each.text,
            "report": each.report_id,
            "link": link_of(each),
            "references": [*each.references],
        }
        for each in citations
    ]


def _inert(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_inert(each) for each in value]
    if isinstance(value, dict):
        return {printable(name): _inert(each) for name, each in value.items()}
    return value
