"""The server of the protocol: what an assistant asks, answered by ``tools`` and ``resources``."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from functools import lru_cache
from importlib.metadata import version
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolResult,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PromptArgument,
    PromptMessage,
    ReadResourceResult,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from mcp_types import Prompt as PromptEntry
from mcp_types import Resource as ResourceEntry
from mcp_types import ResourceTemplate as TemplateEntry
from mcp_types import Tool as ToolEntry
from pydantic import ValidationError
from starlette.requests import Request

from graphrag_pipeline.core.errors import GraphRAGError
from graphrag_server.inquiry import record_failure
from graphrag_server.keys import without_keys
from graphrag_server.limits import QUESTION_CHARACTERS
from graphrag_server.mcp import ADDRESS
from graphrag_server.mcp.prompts import McpPrompt, prompt_named, prompts_of
from graphrag_server.mcp.quoting import RULE
from graphrag_server.mcp.resources import (
    MEDIA_TYPE,
    TEMPLATES,
    list_resources,
    read_resource,
)
from graphrag_server.mcp.tools import TOOLS, Tool
from graphrag_server.problems import HttpProblem, problem_of

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp_types import (
        CallToolRequestParams,
        GetPromptRequestParams,
        PaginatedRequestParams,
        ReadResourceRequestParams,
    )

log = logging.getLogger("graphrag_pipeline")


_ENDING_SECONDS = 10.0
_MOST_OF_A_NAME = 500
_FAILED = "it failed: the log of the server says why"
_INSTRUCTIONS = (
    "Documents turned into a knowledge graph: ask it by query, look for evidence by retrieve, walk "
    f"the graph by find_entities and neighbourhood, read the sources by read_document. {RULE}"
)

T = TypeVar("T")


def protocol_server() -> Server[Any]:
    """Return a server whose every request brings an HTTP request, which says who asks."""
    return Server(
        "graphrag-pipeline",
        version=version("graphrag-pipeline"),
        title="GraphRAG pipeline",
        instructions=_INSTRUCTIONS,
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
        on_list_resources=_list_resources,
        on_list_resource_templates=_list_templates,
        on_read_resource=_read_resource,
        on_list_prompts=_list_prompts,
        on_get_prompt=_get_prompt,
        get_tool_input_schema=_schema_named,
    )


async def _list_tools(
    context: ServerRequestContext[Any, Request], _: PaginatedRequestParams | None
) -> ListToolsResult:
    request = _request_of(context, "tools/list")
    return ListToolsResult(tools=[_entry(tool) for tool in TOOLS.values() if _may(request, tool)])


async def _call_tool(
    context: ServerRequestContext[Any, Request], params: CallToolRequestParams
) -> CallToolResult:
    tool = TOOLS.get(params.name)
    if tool is None:
        raise MCPError(code=INVALID_PARAMS, message=f"there is no tool {params.name[:64]!r}")
    request = _request_of(context, tool.name, params.arguments or {})
    try:
        tool.check(request)
        arguments = tool.arguments.model_validate(params.arguments or {})
        result = await _attended(tool.run(request, arguments))
    except Exception as error:
        asked = params.arguments or {}
        question = _text_of(asked, "question", "statement", most=QUESTION_CHARACTERS)
        record_failure(request, error, _text_of(asked, "collection"), question)
        invalid = isinstance(error, ValidationError)
        return _failure("\n".join(_what_is_wrong(error)) if invalid else _detail(error))
    return CallToolResult(
        content=[TextContent(type="text", text=result.text)], structured_content=result.structured
    )


async def _list_prompts(
    context: ServerRequestContext[Any, Request], _: PaginatedRequestParams | None
) -> ListPromptsResult:
    request = _request_of(context, "prompts/list")
    return ListPromptsResult(prompts=[_prompt_entry(each) for each in prompts_of(request)])


async def _get_prompt(
    context: ServerRequestContext[Any, Request], params: GetPromptRequestParams
) -> GetPromptResult:
    request = _request_of(context, "prompts/get")
    try:
        prompt, text = prompt_named(request, params.name, params.arguments or {})
    except HttpProblem as problem:
        raise MCPError(code=INVALID_PARAMS, message=problem.detail) from None
    message = PromptMessage(role="user", content=TextContent(type="text", text=text))
    return GetPromptResult(description=prompt.about, messages=[message])


async def _list_resources(
    context: ServerRequestContext[Any, Request], params: PaginatedRequestParams | None
) -> ListResourcesResult:
    request = _request_of(context, "resources/list")
    cursor = params.cursor if params is not None else None
    rows, following = await _or_error(request, list_resources(request, cursor))
    return ListResourcesResult(
        resources=[ResourceEntry(uri=u, name=n, mime_type=MEDIA_TYPE) for u, n in rows],
        next_cursor=following,
    )


async def _list_templates(
    context: ServerRequestContext[Any, Request], _: PaginatedRequestParams | None
) -> ListResourceTemplatesResult:
    templates = [
        TemplateEntry(uri_template=uri, name=name, description=about, mime_type=MEDIA_TYPE)
        for name, (uri, about) in TEMPLATES.items()
    ]
    return ListResourceTemplatesResult(resource_templates=templates)


async def _read_resource(
    context: ServerRequestContext[Any, Request], params: ReadResourceRequestParams
) -> ReadResourceResult:
    uri = str(params.uri)
    request = _request_of(context, "resources/read", {"uri": uri})
    text = await _or_error(request, read_resource(request, uri))
    contents = TextResourceContents(uri=uri, text=text, mime_type=MEDIA_TYPE)
    return ReadResourceResult(contents=[contents])


def _text_of(
    arguments: Mapping[str, object], *names: str, most: int = _MOST_OF_A_NAME
) -> str | None:
    """Return the first of some arguments that is a text, cut to a length and without keys."""
    for name in names:
        value = arguments.get(name)
        if isinstance(value, str):
            return without_keys(value[:most])
    return None


def _request_of(
    context: ServerRequestContext[Any, Request], name: str, arguments: object = None
) -> Request:
    """Return the request of a message, at an address that names what it asks for."""
    request = context.request
    assert request is not None
    address = SimpleNamespace(path=f"{ADDRESS}/{name}")
    item = arguments if isinstance(arguments, dict) else {}
    texts = {name: _text_of(item, name) for name in ("document", "entity", "uri")}
    opened = {name: text for name, text in texts.items() if text is not None}
    scope = {**request.scope, "route": address, "path_params": opened}
    return Request(scope, request.receive)


async def _attended(work: Coroutine[Any, Any, T]) -> T:
    """Return what some work gives; where the assistant wants it no more, it is ended in order.

    The protocol cancels again and again until it is obeyed, so that the work would not come to
    interrupt its SQL.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait({task}, timeout=_ENDING_SECONDS)
        raise


async def _or_error(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return what some work gives. Raises MCPError with what the caller may know of a failure."""
    try:
        return await _attended(work)
    except Exception as error:
        record_failure(request, error)
        is_ours = isinstance(error, HttpProblem) and error.status < 500
        code = INVALID_PARAMS if is_ours else INTERNAL_ERROR
        raise MCPError(code=code, message=_detail(error)) from None


def _detail(error: Exception) -> str:
    if isinstance(error, HttpProblem):
        return error.detail
    if isinstance(error, GraphRAGError):
        return problem_of(error).detail
    log.error("a request of an assistant failed", exc_info=error)
    return _FAILED


def _failure(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


def _what_is_wrong(error: ValidationError) -> list[str]:
    """Return each argument that is not valid, and why; its value is not repeated."""
    return [
        f"{'.'.join(map(str, each['loc'])) or 'arguments'}: {each['msg']}"
        for each in error.errors(include_url=False, include_input=False, include_context=False)
    ]


def _may(request: Request, tool: Tool) -> bool:
    try:
        tool.check(request)
    except HttpProblem:
        return False
    return True


def _entry(tool: Tool) -> ToolEntry:
    return ToolEntry(
        name=tool.name,
        description=tool.about,
        input_schema=_schema(tool.name),
        output_schema=_output_schema(tool.name),
        annotations=ToolAnnotations(
            read_only_hint=True, destructive_hint=False, open_world_hint=False
        ),
    )


def _prompt_entry(prompt: McpPrompt) -> PromptEntry:
    arguments = [
        PromptArgument(name=name, description=about, required=is_needed)
        for name, (about, is_needed) in prompt.arguments_with_help().items()
    ]
    return PromptEntry(
        name=prompt.name, title=prompt.title, description=prompt.about, arguments=arguments
    )


def _schema_named(name: str) -> dict[str, Any] | None:
    return _schema(name) if name in TOOLS else None


@lru_cache
def _schema(name: str) -> dict[str, Any]:
    return TOOLS[name].arguments.model_json_schema()


@lru_cache
def _output_schema(name: str) -> dict[str, Any]:
    return TOOLS[name].output.model_json_schema(mode="serialization")
