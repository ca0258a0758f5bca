"""Prompts: what a person may pick from a menu of the assistant, each a way to use the tools."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphrag_server.callers import caller_of
from graphrag_server.limits import QUESTION_CHARACTERS
from graphrag_server.mcp.quoting import RULE
from graphrag_server.problems import HttpProblem

if TYPE_CHECKING:
    from fastapi import Request

_SCOPE = "query"
_COLLECTION = "collection"
_ARGUMENTS = {
    "question": "What is asked.",
    "first": "The name of one thing, such as a person, a place or a product.",
    "second": "The name of the other.",
    _COLLECTION: "The collection; without it the default one.",
}
_PLACE = re.compile(r"<(\w+)>")
_SAY_SO = "If the documents do not say it, say so, and do not add what you know from elsewhere."
_CITE = (
    "After each sentence name the title of the document that it rests on, in brackets, and list at "
    "the end for each title the passages that you used."
)


@dataclass(frozen=True)
class McpPrompt:
    """A prompt: its name, what it is for, its arguments, and what the assistant is told."""

    name: str
    title: str
    about: str
    arguments: tuple[str, ...]
    text: str

    def arguments_with_help(self) -> dict[str, tuple[str, bool]]:
        """Return by name what each argument is, and whether it is needed."""
        names = (*self.arguments, _COLLECTION)
        return {name: (_ARGUMENTS[name], name != _COLLECTION) for name in names}

    def filled(self, values: Mapping[str, str]) -> str:
        """Return the text with its arguments. Raises a 422 Problem for one that is missing."""
        for name in self.arguments:
            if not values.get(name, "").strip():
                raise HttpProblem(422, f"{name}: this prompt needs it")
        if any(len(value) > QUESTION_CHARACTERS for value in values.values()):
            raise HttpProblem(422, f"an argument has at most {QUESTION_CHARACTERS:,} characters")
        text = _PLACE.sub(lambda place: values[place[1]].strip(), self.text)
        collection = values.get(_COLLECTION, "").strip()
        named = f"\n\nAsk the collection {collection!r} in every call." if collection else ""
        return f"{text}{named}\n\n{RULE}"


PROMPTS = {
    prompt.name: prompt
    for prompt in (
        McpPrompt(
            "ask_with_citations",
            "Ask, with citations",
            "Answer a question from the indexed documents, each sentence with its source.",
            ("question",),
            "Answer from the indexed documents alone. Call query with the question as it stands; "
            "where its passages leave a part open, call retrieve with a question on that part, and "
            f"read_document to see more of a passage. {_CITE} {_SAY_SO}\n\n"
            "The question: <question>",
        ),
        McpPrompt(
            "overview",
            "What is in these documents",
            "Say what the indexed documents are about: their themes, and who and what is in them.",
            (),
            "Give an overview of the indexed documents for somebody who has not seen them. Call "
            "list_methods; then call query with 'What are the main themes?', by the method global "
            "if it is listed, and once more with 'Who and what is most often spoken of?'. For the "
            "three most important names call neighbourhood. Write one paragraph on what the "
            "documents are, a list of their themes with a sentence each, a list of the most "
            f"important names, and five questions that can be asked of them. {_CITE} {_SAY_SO}",
        ),
        McpPrompt(
            "compare",
            "Compare two things",
            "Compare two things by what the indexed documents say of each.",
            ("first", "second"),
            "Compare the two things below by what the indexed documents say of them. Call "
            "find_entities for both names, then retrieve with a question on each and with one on "
            "both. Write a table whose rows are what can be compared and whose columns are the "
            f"two; then say in three sentences where they differ most. {_CITE} {_SAY_SO}\n\n"
            "One: <first>\nThe other: <second>",
        ),
        McpPrompt(
            "connect",
            "How two things are connected",
            "Find in the knowledge graph how two things are connected, and check it in the text.",
            ("first", "second"),
            "Find how the two things below are connected. Call find_entities for both names, then "
            "neighbourhood of each, with hops=2 where one step shows no connection. For each step "
            "of the connection call retrieve with a question that names both its ends, and give "
            f"the passage that says it. {_CITE} {_SAY_SO}\n\nOne: <first>\nThe other: <second>",
        ),
    )
}


def prompts_of(request: Request) -> list[McpPrompt]:
    """Return the prompts that whoever asks can use."""
    return [*PROMPTS.values()] if _SCOPE in caller_of(request).scopes else []


def prompt_named(request: Request, name: str, values: Mapping[str, str]) -> tuple[McpPrompt, str]:
    """Return a prompt and its text.

    Raises a Problem for a name that there is not, an argument that is missing, or a caller who may
    ask nothing.
    """
    caller_of(request).check_scope(_SCOPE)
    prompt = PROMPTS.get(name)
    if prompt is None:
        raise HttpProblem(404, f"there is no prompt {name[:64]!r}: there are {', '.join(PROMPTS)}")
    return prompt, prompt.filled(values)
