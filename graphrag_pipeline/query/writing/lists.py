"""Lists of words that a model gives for a question: entities, synonyms, keywords."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from graphrag_pipeline.llm.errors import ModelOutputError
from graphrag_pipeline.llm.parsing import parse_json_object
from graphrag_pipeline.llm.schemas import Schema, closed, listed, text
from graphrag_pipeline.query.writing.asking import Asking

_LONGEST = 200
_MOST = 40


async def ask_lists(
    asking: Asking, step: str, prompt: str, names: Sequence[str], **values: str
) -> list[list[str]] | None:
    """Return the lists of these names that a model gives, or None if it gave none to read.

    The failure is noted; one that ends everything is raised.
    """
    read = partial(_lists, names=names)
    return await asking.tried(step, asking.read(step, read, _schema(names), prompt, **values))


def one_line_of(text: str) -> str:
    """Return what a model said as one line that can be searched for."""
    return " ".join(text.encode("utf-8", "replace").decode().replace("\0", " ").split())


def _lists(text: str, names: Sequence[str]) -> list[list[str]]:
    reply = parse_json_object(text)
    if not any(isinstance(reply.get(name), list) for name in names):
        keys = " and ".join(f'"{name}"' for name in names)
        raise ModelOutputError(f"the answer must be a JSON object with the lists {keys}")
    return [_words(reply.get(name)) for name in names]


def _words(value: object) -> list[str]:
    strings = [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
    words = (one_line_of(word)[:_LONGEST] for word in strings)
    return list(dict.fromkeys(filter(None, words)))


def _schema(names: Sequence[str]) -> Schema:
    return closed(**dict.fromkeys(names, listed(text(_LONGEST), _MOST)))
