"""Tools that an assistant may call. Each is a function of its arguments; ``TOOLS`` has them all.

They answer within the limits of the other addresses, and each is audited as one of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.rows import records, to_json_line
from graphrag_pipeline.core.text import counted
from graphrag_pipeline.query.control import Control
from graphrag_pipeline.query.methods import list_methods as methods_here
from graphrag_server.addresses import LinkOf, answer_address, citation_address, links_for, no_link
from graphrag_server.callers import caller_of
from graphrag_server.folders import Folders
from graphrag_server.inquiry import record_failure, record_reading
from graphrag_server.limits import (
    MOST_CHARACTERS,
    MOST_HOPS,
    MOST_ROWS,
    QUESTION_CHARACTERS,
    attended,
)
from graphrag_server.mcp.outputs import (
    Answered,
    DocumentPart,
    Entities,
    Methods,
    Neighbourhood,
    Output,
    QueryRows,
    Retrieved,
    ToolResult,
    answered_fields,
    retrieved_fields,
)
from graphrag_server.mcp.quoting import (
    RULE,
    Keeping,
    answer_text,
    evidence_text,
    quoted,
    quoted_rows,
)
from graphrag_server.problems import HttpProblem
from graphrag_server.routes.asked import ToAnswer, ToRetrieve, Turn
from graphrag_server.routes.documents import text_of_document
from graphrag_server.routes.graph import entities_named, entity_id, neighbourhood_of
from graphrag_server.routes.questions import answered, answered_and_kept
from graphrag_server.routes.reading import read
from graphrag_server.state import holder_of, server_of

if TYPE_CHECKING:
    from fastapi import Request

    from graphrag_pipeline.query.engine import QueryEngine
    from graphrag_pipeline.query.release import Release
    from graphrag_pipeline.query.results import Retrieval

_TEXT_CHARACTERS = 20_000
_NO_LABELS = "SQL reads every document: a key with labels may not ask it"


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _InCollection(_Arguments):
    collection: str | None = Field(
        None, description="The collection; without it the default one. list_methods names them."
    )


class ToFind(_InCollection):
    """A question whose evidence is wanted."""

    question: str = Field(min_length=1, max_length=QUESTION_CHARACTERS)
    method: str | None = Field(
        None,
        max_length=200,
        description="A method of list_methods, with parameters as in lightrag:mode=local. Without "
        "it the question chooses one.",
    )
    where: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="Only documents with this metadata, title or uri: a value, or several. A uri "
        "may be a folder, or hold a *; a key such as date>= asks for a range.",
    )


class ToAsk(ToFind):
    """A question that is to be answered."""

    history: list[Turn] = Field(
        default_factory=list, description="The conversation before it, where a model writes."
    )
    conversation: str | None = Field(
        None,
        max_length=64,
        description="Keep the answer, so that people can open it by a link: in this conversation "
        "of its caller, as an answer before named it; empty: in a new one. Without it nothing is "
        "kept.",
    )


class ToName(_InCollection):
    """A name that is looked for."""

    name: str = Field(min_length=1, max_length=200, description="Part of a name.")
    most: int = Field(20, ge=1, le=MOST_ROWS)


class ToSurround(_InCollection):
    """An entity whose neighbours are wanted."""

    entity: str = Field(min_length=1, max_length=200, description="Its id, or its name.")
    hops: int = Field(1, ge=1, le=MOST_HOPS)
    most: int = Field(50, ge=1, le=MOST_ROWS, description="At most so many entities.")


class ToRead(_InCollection):
    """A part of a document."""

    document: str = Field(min_length=1, max_length=200, description="Its id, as citations have it.")
    start: int = Field(0, ge=0, le=MOST_CHARACTERS, description="The first character, from 0.")
    end: int | None = Field(
        None,
        ge=0,
        le=MOST_CHARACTERS,
        description=f"After the last; at most {_TEXT_CHARACTERS:,} come at once.",
    )
    release: str | None = Field(
        None, max_length=128, description="The release of the answer that cites it."
    )


class ToRun(_InCollection):
    """A statement of SQL."""

    statement: str = Field(
        min_length=1,
        max_length=QUESTION_CHARACTERS,
        description="One query in DuckDB's SQL. SHOW TABLES names the tables.",
    )


@dataclass(frozen=True)
class Tool:
    """A tool: what it is for, its arguments, the scope it needs, what it gives, how it is done."""

    name: str
    about: str
    arguments: type[BaseModel]
    scope: str
    output: type[Output]
    run: Callable[[Request, Any], Coroutine[Any, Any, ToolResult]]
    without_labels: bool = False

    def check(self, request: Request) -> None:
        """Raise a Problem where whoever asks may not call it."""
        caller = caller_of(request)
        caller.check_scope(self.scope)
        if self.without_labels and caller.labels is not None:
            raise HttpProblem(403, _NO_LABELS)


async def _query(request: Request, asked: ToAsk) -> ToolResult:
    result, kept = await answered_and_kept(request, ToAnswer(**dict(asked)))
    link_of = _citing(request, asked, result.release)
    link = answer_address(request, asked.collection, kept["answer"]) if kept else None
    keeping = Keeping(kept.get("conversation"), link)
    return ToolResult(
        answer_text(result, link_of, keeping), answered_fields(result, link_of, keeping)
    )


async def _retrieve(request: Request, asked: ToFind) -> ToolResult:
    async def retrieved(engine: QueryEngine) -> Retrieval:
        return await engine.aretrieve(whole.ask(engine))

    whole = ToRetrieve(**dict(asked))
    evidence = await answered(request, whole, retrieved)
    link_of = _citing(request, asked, evidence.release)
    return ToolResult(evidence_text(evidence, link_of), retrieved_fields(evidence, link_of))


async def _find_entities(request: Request, asked: ToName) -> ToolResult:
    work = partial(entities_named, q=asked.name, most=asked.most)
    found = _linked(request, asked, await read(request, asked.collection, work))
    head = f"Entities of that name, release {found['release']}."
    return ToolResult(_listed(head, found["entities"]), Entities.model_validate(found))


async def _neighbourhood(request: Request, asked: ToSurround) -> ToolResult:
    def around(index: Release) -> dict[str, Any]:
        id = entity_id(index, asked.entity)
        return neighbourhood_of(index, id=id, hops=asked.hops, most=asked.most)

    found = _linked(request, asked, await read(request, asked.collection, around))
    entities = _listed(
        f"Entities within {counted(asked.hops, 'step')}, the nearest first, "
        f"release {found['release']}.",
        found["entities"],
    )
    names = ("source", "target", "type", "weight", "description")
    rows = [{name: row[name] for name in names} for row in found["relationships"]]
    text = f"{entities}\n\nWhat relates them:\n\n{quoted_rows(rows)}"
    return ToolResult(text, Neighbourhood.model_validate(found))


async def _read_document(request: Request, asked: ToRead) -> ToolResult:
    most = asked.start + _TEXT_CHARACTERS
    until = most if asked.end is None else min(asked.end, most)
    work = partial(text_of_document, id=asked.document, start=asked.start, until=until)
    part = await read(request, asked.collection, work, asked.release)
    start, end = part["start_char"], max(part["start_char"], part["end_char"])
    links = links_for(request, asked.collection, part["release"])
    link = links and links.of("documents", part["id"], (start, end))
    fields = {**part, "document": part["id"], "start": start, "end": end, "link": link}
    return ToolResult(document_text(part, link), DocumentPart.model_validate(fields))


async def _list_methods(request: Request, asked: _InCollection) -> ToolResult:
    holder = holder_of(request, asked.collection)
    caller = caller_of(request)
    names = [name for name in server_of(request).collections.holders if caller.may_see(name)]
    tables = await asyncio.to_thread(holder.tables)
    methods = [
        {
            "method": method["name"],
            "finds": method["summary"],
            "parameters": {each["name"]: each["default"] for each in method["parameters"]},
        }
        for method in methods_here(holder.settings, tables)
        if method["can_answer"]
    ]
    head = f"Collections: {', '.join(names)}. Methods of {holder.name}, with their parameters:"
    fields = {"collections": names, "collection": holder.name, "methods": methods}
    return ToolResult(
        "\n".join([head, *map(to_json_line, methods)]), Methods.model_validate(fields)
    )


async def _sql(request: Request, asked: ToRun) -> ToolResult:
    from graphrag_pipeline.marts.sql import PublishedSql

    holder = holder_of(request, asked.collection)
    server = server_of(request)
    control = Control()
    folders = Folders([])

    def run() -> tuple[list[str], list[tuple[object, ...]]]:
        nonlocal folders
        with holder.lease() as engine:
            release = engine.index.facts.id
            with PublishedSql(holder.home, release, marts=False) as published:
                if engine.index.bare:
                    folders = Folders.around(holder, published.folders())
                return published.query(asked.statement, most=MOST_ROWS + 1, control=control)

    try:
        with server.limits.place(caller_of(request).key_id):
            seconds = server.limits.seconds
            names, rows = await attended(request, control, asyncio.to_thread(run), seconds)
    except InputError as error:
        # DuckDB quotes values it cannot convert.
        problem = HttpProblem(422, quoted(folders.without(str(error))))
        record_failure(request, problem, holder.name, asked.statement)
        raise problem from None
    except BaseException as error:
        record_failure(request, error, holder.name, asked.statement)
        raise
    record_reading(request, holder.name, asked.statement)
    head = f"{counted(len(rows), 'row')}."
    if len(rows) > MOST_ROWS:
        head = f"The first {MOST_ROWS} rows; there are more: use LIMIT, or aggregate."
    shown = records(names, folders.without(rows[:MOST_ROWS]))
    columns = [*records(names, [names])[0]]
    fields = {"columns": columns, "rows": shown, "more": len(rows) > MOST_ROWS}
    return ToolResult(_listed(head, shown), QueryRows.model_validate(fields))


TOOLS = {
    tool.name: tool
    for tool in (
        Tool(
            "query",
            "Answer a question from the indexed documents, with the passages that it cites.",
            ToAsk,
            "query",
            Answered,
            _query,
        ),
        Tool(
            "retrieve",
            "Find the evidence for a question, with no answer made of it: passages, entities, "
            "relationships and reports, as the method finds them.",
            ToFind,
            "query",
            Retrieved,
            _retrieve,
        ),
        Tool(
            "find_entities",
            "Find entities of the knowledge graph by a part of their name.",
            ToName,
            "read",
            Entities,
            _find_entities,
        ),
        Tool(
            "neighbourhood",
            "List what is near an entity in the knowledge graph, and what relates it.",
            ToSurround,
            "read",
            Neighbourhood,
            _neighbourhood,
        ),
        Tool(
            "read_document",
            "Read the text of a document, or the characters of it that a citation names.",
            ToRead,
            "read",
            DocumentPart,
            _read_document,
        ),
        Tool(
            "list_methods",
            "List the methods that questions can be answered by here, and the collections.",
            _InCollection,
            "query",
            Methods,
            _list_methods,
        ),
        Tool(
            "sql",
            "Run one SQL query (DuckDB, read-only) on documents, chunks, entities, relationships, "
            "communities and reports.",
            ToRun,
            "sql",
            QueryRows,
            _sql,
            without_labels=True,
        ),
    )
}


def document_text(part: dict[str, Any], link: str | None = None) -> str:
    """Return a part of a document for an assistant, its permanent link, and where to read on."""
    start, end, n_chars = part["start_char"], part["end_char"], part["n_chars"]
    head = f"Characters {start} to {max(start, end)} of {n_chars}, release {part['release']}."
    more = f" Read on with read_document from {end}." if end < n_chars else ""
    linked = {"link": link} if link else {}
    named = {"document": part["id"], "title": part["title"], "uri": part["uri"], **linked}
    return "\n\n".join((f"{head}{more}", RULE, quoted(f"{to_json_line(named)}\n{part['text']}")))


def _citing(request: Request, asked: _InCollection, release: str) -> LinkOf:
    """Return what gives the permanent link of a citation of an answer of a release."""
    links = links_for(request, asked.collection, release)
    if links is None:
        return no_link
    return partial(citation_address, links.base, links.collection, release)


def _linked(request: Request, asked: _InCollection, found: dict[str, Any]) -> dict[str, Any]:
    """Return entities with the permanent link of each."""
    links = links_for(request, asked.collection, found["release"])
    entities = [
        {**row, "link": links and links.of("entities", row["id"])} for row in found["entities"]
    ]
    return {**found, "entities": entities}


def _listed(head: str, rows: list[dict[str, Any]]) -> str:
    return "\n\n".join((head, RULE, quoted_rows(rows))) if rows else f"{head} There are none."
