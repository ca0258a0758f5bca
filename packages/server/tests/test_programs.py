"""Programs of others, the newest of each, against the server: each is installed for it.

What they send is recorded in ``tests/data/clients`` too, and replayed by ``test_clients.py`` where
nothing can be installed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from client_server import ANSWER, OBJECT, QUESTION, served_to_programs
from http_server import Served

INSTALLED = Path(__file__).parents[2] / "build" / "programs"
PATIENCE = 300
CITING = ("openai-python", "openai-node", "litellm", "vercel")
pytestmark = [pytest.mark.live, pytest.mark.waits, pytest.mark.nightly]

# Each script prints, as JSON, what the program gives: ``answers`` are texts of the collection
# without a model, ``sources`` addresses of passages, ``objects`` what a model has written as JSON.
OPENAI_PYTHON = """
import json, openai, os
from pydantic import BaseModel

class Clerk(BaseModel):
    name: str
    year: int

client = openai.OpenAI(base_url=os.environ["BASE"], api_key="any")
asked = {"model": "default/auto", "messages": [{"role": "user", "content": os.environ["QUESTION"]}]}
function = {"name": "weather", "parameters": {"type": "object", "properties": {}}}
tools = [{"type": "function", "function": function}]
message = client.chat.completions.create(**asked, tools=tools, verbosity="low").choices[0].message
*pieces, last = client.chat.completions.create(**asked, stream=True)
prompted = client.completions.create(model=asked["model"], prompt=os.environ["QUESTION"])
by_schema = client.chat.completions.parse(**asked | {"model": "book/local"}, response_format=Clerk)
streamed = "".join(piece.choices[0].delta.content or "" for piece in pieces)
print(json.dumps({
    "answers": [message.content, streamed, prompted.choices[0].text],
    "sources": [each.url_citation.url for each in message.annotations]
    + [each["url_citation"]["url"] for each in last.choices[0].delta.annotations],
    "objects": [by_schema.choices[0].message.parsed.model_dump()],
}))
"""
LANGCHAIN = """
import json, os
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAI
from pydantic import BaseModel

class Clerk(BaseModel):
    "The clerk that is asked for."
    name: str
    year: int

@tool
def weather(city: str) -> str:
    "The weather of a city."
    return "sunny"

known = {"base_url": os.environ["BASE"], "api_key": "any"}
question = os.environ["QUESTION"]
chat = ChatOpenAI(model="default/auto", **known)
agent = create_agent(chat, [weather], system_prompt="You help.")
messages = agent.invoke({"messages": [{"role": "user", "content": question}]})["messages"]
structured = ChatOpenAI(model="book/local", **known).with_structured_output(Clerk)
print(json.dumps({
    "answers": [
        messages[-1].text,
        "".join(chunk.text for chunk in chat.stream(question)),
        OpenAI(model="default/auto", **known).invoke(question),
    ],
    "objects": [structured.invoke(question).model_dump()],
}))
"""
LLAMAINDEX = """
import json, os
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike

llm = OpenAILike(model="default/auto", api_base=os.environ["BASE"], api_key="any")
question = os.environ["QUESTION"]
*_, last = llm.stream_complete(question)
print(json.dumps({"answers": [
    llm.complete(question).text,
    llm.chat([ChatMessage(role="user", content=question)]).message.content,
    last.text,
]}))
"""
LITELLM = """
import json, litellm, os

asked = {
    "model": "openai/default/auto", "api_base": os.environ["BASE"], "api_key": "any", "top_k": 4,
    "messages": [{"role": "user", "content": os.environ["QUESTION"]}],
    "tools": [{"type": "function", "function": {"name": "weather", "parameters": {}}}],
}
message = litellm.completion(**asked).choices[0].message
chunks = list(litellm.completion(**asked, stream=True))
print(json.dumps({
    "answers": [
        message.content, "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    ],
    "sources": [each["url_citation"]["url"] for each in message.annotations],
}))
"""
LLM = """
import json, os, pathlib, subprocess, sys

known = pathlib.Path(os.environ["LLM_USER_PATH"])
(known / "extra-openai-models.yaml").write_text(
    "- {model_id: documents, model_name: default/auto, supports_tools: true, "
    f"api_base: '{os.environ['BASE']}'}}\\n"
)
function = "def times(x: int, y: int) -> int:\\n    'Multiply.'\\n    return x * y"
asked = [sys.executable, "-m", "llm", "-m", "documents", os.environ["QUESTION"]]
print(json.dumps({"answers": [
    subprocess.run([*asked, *more], check=True, capture_output=True, text=True).stdout
    for more in ([], ["--no-stream"], ["--functions", function])
]}))
"""
VERCEL = """
import { generateObject, generateText, stepCountIs, streamText, tool } from 'ai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { createOpenAI } from '@ai-sdk/openai';
import { z } from 'zod';

const baseURL = process.env.BASE, prompt = process.env.QUESTION;
const known = { name: 'documents', baseURL, apiKey: 'any', supportsStructuredOutputs: true };
const compatible = createOpenAICompatible(known);
const model = compatible.chatModel('default/auto');
const inputSchema = z.object({ city: z.string() });
const weather = tool({ description: 'Weather', inputSchema, execute: async () => 'sunny' });
const called = { model, prompt, tools: { weather }, stopWhen: stepCountIs(3) };
const schema = z.object({ name: z.string(), year: z.number() });
const written = compatible.chatModel('book/local');
const openai = createOpenAI({ baseURL, apiKey: 'any' }).chat('default/auto');
const cited = await generateText({ model: openai, prompt });
const streamed = streamText({ model: openai, prompt });
await streamed.consumeStream();
console.log(JSON.stringify({
  answers: [
    (await generateText(called)).text,
    await streamText(called).text,
    cited.text,
    await streamed.text,
    (await generateText({ model: compatible.completionModel('default/auto'), prompt })).text,
  ],
  sources: [...cited.sources, ...await streamed.sources].map((source) => source.url),
  objects: [(await generateObject({ model: written, prompt, schema })).object],
}));
"""
OPENAI_NODE = """
import OpenAI from 'openai';

const client = new OpenAI({ baseURL: process.env.BASE, apiKey: 'any' });
const messages = [{ role: 'user', content: process.env.QUESTION }];
const weather = { name: 'weather', parameters: { type: 'object', properties: {} } };
const asked = { model: 'default/auto', messages, tools: [{ type: 'function', function: weather }] };
const whole = (await client.chat.completions.create(asked)).choices[0].message;
const streamed = await client.chat.completions.stream(asked).finalChatCompletion();
console.log(JSON.stringify({
  answers: [whole.content, streamed.choices[0].message.content],
  sources: whole.annotations.map((each) => each.url_citation.url),
}));
"""
MCP_NODE = """
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const client = new Client({ name: 'test', version: '1' });
const address = new URL(process.env.BASE.replace(/v1$/, 'mcp'));
await client.connect(new StreamableHTTPClientTransport(address));
const { tools } = await client.listTools();
const { prompts } = await client.listPrompts();
const given = { question: process.env.QUESTION };
// The client itself checks what is structured against the tool's schema.
const result = await client.callTool({ name: 'query', arguments: given });
const [prompt] = prompts;
const needed = prompt.arguments.filter((each) => each.required);
const filled = needed.map((each) => [each.name, process.env.QUESTION]);
const { messages } = await client.getPrompt({
  name: prompt.name, arguments: Object.fromEntries(filled),
});
console.log(JSON.stringify({
  answers: [result.content[0].text, JSON.stringify(result.structuredContent)],
  schemas: tools.filter((tool) => tool.outputSchema).map((tool) => tool.name),
  prompted: messages[0].content.text,
}));
await client.close();
"""


@dataclass(frozen=True)
class Program:
    """What is installed from PyPI or npm, and a script that uses it."""

    packages: Sequence[str]
    script: str
    is_node: bool = False


PROGRAMS = {
    "openai-python": Program(["openai"], OPENAI_PYTHON),
    "langchain": Program(["langchain", "langchain-openai"], LANGCHAIN),
    "llamaindex": Program(["llama-index-core", "llama-index-llms-openai-like"], LLAMAINDEX),
    "litellm": Program(["litellm"], LITELLM),
    "llm": Program(["llm"], LLM),
    "vercel": Program(
        ["ai", "@ai-sdk/openai", "@ai-sdk/openai-compatible", "zod"], VERCEL, is_node=True
    ),
    "openai-node": Program(["openai"], OPENAI_NODE, is_node=True),
    "mcp-node": Program(["@modelcontextprotocol/sdk"], MCP_NODE, is_node=True),
}


def run(command: Sequence[str | Path], folder: Path, **more: str) -> subprocess.CompletedProcess:
    """Run a command that has nothing of this checkout on its path."""
    surroundings = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        command, cwd=folder, env=surroundings | more, capture_output=True, text=True,
        timeout=PATIENCE, check=False,
    )  # fmt: skip


def failure_of(command: Sequence[str | Path], folder: Path) -> str:
    """Run a command that installs something; return how it failed, or nothing."""
    try:
        result = run(command, folder)
    except subprocess.TimeoutExpired:
        return f"it takes more than {PATIENCE} seconds"
    return result.stderr.strip()[-300:] if result.returncode else ""


def installed(name: str, program: Program) -> list[Path | str]:
    """Install the newest of a program, and return the command that runs a script with it.

    What an earlier run has installed will do where no index can be reached.
    """
    folder = INSTALLED / name
    folder.mkdir(parents=True, exist_ok=True)
    if program.is_node:
        node, npm = shutil.which("node"), shutil.which("npm")
        if node is None or npm is None:
            pytest.skip("Node.js is not installed")
        (folder / "package.json").write_text('{"private": true}')
        newest = [f"{package}@latest" for package in program.packages]
        command = [node]
        install = [npm, "install", "--no-audit", "--no-fund", "--fetch-retries=1", *newest]
    else:
        python = folder / "venv" / "bin" / "python"
        if not python.exists():
            run([sys.executable, "-m", "venv", folder / "venv"], folder)
        command = [python]
        install = [python, "-m", "pip", "install", "-qU", "--retries=1", *program.packages]
    failure, ready = failure_of(install, folder), folder / "ready"
    if not failure:
        ready.touch()
    elif not ready.exists():
        pytest.skip(f"{name} cannot be installed here: {failure}")
    return [*command]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_to_programs(tmp_path_factory.mktemp("programs")) as (server, _):
        yield server


@pytest.fixture(scope="module", params=PROGRAMS)
def shown(request: pytest.FixtureRequest, served: Served) -> tuple[str, dict[str, Any]]:
    """What a program prints of its talk with the server."""
    name = request.param
    program = PROGRAMS[name]
    command = installed(name, program)
    script = INSTALLED / name / ("script.mjs" if program.is_node else "script.py")
    script.write_text(program.script, encoding="utf-8")
    talk = run(
        [*command, script], script.parent, BASE=f"{served.url}/v1", QUESTION=QUESTION,
        OPENAI_API_KEY="any", LLM_USER_PATH=str(script.parent), LITELLM_LOCAL_MODEL_COST_MAP="True",
        LANGSMITH_TRACING="false", NO_PROXY="127.0.0.1",
    )  # fmt: skip
    assert talk.returncode == 0, talk.stderr[-3000:]
    return name, json.loads(talk.stdout.strip().splitlines()[-1])


def test_a_program_as_it_is_shows_answers_their_passages_and_json(
    shown: tuple[str, dict[str, Any]], served: Served
) -> None:
    name, results = shown
    assert all(ANSWER in answer for answer in results["answers"]), results
    assert bool(results.get("sources")) == (name in CITING)
    for source in results.get("sources", ()):
        assert source.startswith(f"{served.url}/documents/")
        assert served.http.get(source, timeout=60).status_code == 200
    for written in results.get("objects", ()):
        assert written.items() <= OBJECT.items()
    if name == "mcp-node":
        assert {"query", "retrieve", "find_entities"} <= {*results["schemas"]}
        assert QUESTION in results["prompted"]
