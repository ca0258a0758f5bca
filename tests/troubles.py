"""Every way in which servers are known to misbehave, by name: one table for tests and benchmarks.

``CHAT`` and ``VECTORS`` lead from a name to what is wrong with the answer. A trouble that is
``lasting`` comes for the same request however often it is made: a model that refuses a text will
refuse it again. The others are of the moment.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from model_server import (
    Fault,
    Request,
    bad_request,
    content_filter,
    dropped,
    empty_answer,
    empty_choices,
    half_body,
    invalid_json,
    prompt_filtered,
    rate_limited,
    refusal,
    server_error,
    without_usage,
)

Make = Callable[[random.Random], Fault]
HTML = b"<!DOCTYPE html><html><body><h1>502 Bad Gateway</h1></body></html>"
NEVER_DONE = "the the the " * 40_000


@dataclass(frozen=True)
class Trouble:
    """A way to misbehave."""

    make: Make
    lasting: bool = False


def _message(**changes: Any) -> Make:
    message = {"role": "assistant", "content": None} | changes
    return lambda chance: Fault(change={"message": message})


def _always(fault: Fault) -> Make:
    return lambda chance: fault


def _cut(answer: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    choice = answer["choices"][0]
    text = choice["message"]["content"] or ""
    end = chance.randint(len(text) // 4, max(len(text) * 3 // 4, len(text) // 4))
    choice["message"]["content"], choice["finish_reason"] = text[:end], "length"
    return answer


def _content(change: Callable[[str], Any]) -> Make:
    def reply(answer: dict[str, Any]) -> dict[str, Any]:
        message = answer["choices"][0]["message"]
        message["content"] = change(message["content"] or "")
        return answer

    return lambda chance: Fault(reply=reply)


_CALL = {"id": "c1", "type": "function", "function": {"name": "answer", "arguments": "{}"}}

CHAT: Mapping[str, Trouble] = {
    "rate limit, seconds": Trouble(_always(rate_limited("0.01"))),
    "rate limit, no header": Trouble(_always(rate_limited())),
    "server error 500": Trouble(_always(server_error(500))),
    "bad gateway 502": Trouble(_always(server_error(502))),
    "overloaded 503": Trouble(_always(server_error(503))),
    "connection dropped": Trouble(_always(dropped())),
    "half a body": Trouble(_always(half_body())),
    "half of the JSON": Trouble(_always(invalid_json())),
    "an HTML page with 200": Trouble(_always(Fault(raw=HTML))),
    "an error with 200": Trouble(
        _always(Fault(raw=b'{"error": {"message": "busy", "code": 503}}'))
    ),
    "no choices": Trouble(_always(empty_choices())),
    "an empty answer": Trouble(_always(empty_answer())),
    "content null": Trouble(_message()),
    "a refusal": Trouble(_always(refusal()), lasting=True),
    "an apology": Trouble(_always(Fault(text="I'm sorry, I can't help with that.")), lasting=True),
    "filtered answer": Trouble(_always(content_filter()), lasting=True),
    "filtered prompt": Trouble(_always(prompt_filtered()), lasting=True),
    "bad request": Trouble(_always(bad_request()), lasting=True),
    "a tool called": Trouble(_message(tool_calls=[_CALL])),
    "cut off": Trouble(lambda chance: Fault(reply=lambda answer: _cut(answer, chance))),
    "one token for ever": Trouble(_always(Fault(text=NEVER_DONE)), lasting=True),
    "content in parts": Trouble(_content(lambda text: [{"type": "text", "text": text}])),
    "thoughts first": Trouble(_content(lambda text: f"<think>NO. Or YES?</think>\n{text}")),
    "lone surrogates": Trouble(_content(lambda text: f"{text}\ud83d")),
    "no usage": Trouble(_always(without_usage())),
}


def _vectors(change: Callable[[list[dict[str, Any]]], Any]) -> Make:
    def reply(answer: dict[str, Any]) -> dict[str, Any]:
        return answer | {"data": change(answer["data"])}

    return lambda chance: Fault(reply=reply)


def _each(change: Callable[[np.ndarray], Any]) -> Make:
    """Change the first vector, read from base64 or numbers, and leave it as numbers."""

    def first(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [rows[0] | {"embedding": change(_numbers(rows[0]["embedding"]))}, *rows[1:]]

    return _vectors(first)


def _numbers(given: str | list[float]) -> np.ndarray:
    if isinstance(given, str):
        return np.frombuffer(base64.b64decode(given), dtype="<f4")
    return np.asarray(given, dtype=np.float32)


def _raw(answer: dict[str, Any], token: str) -> bytes:
    rows = [row | {"embedding": _numbers(row["embedding"]).tolist()} for row in answer["data"]]
    text = json.dumps(answer | {"data": rows})
    first = str(rows[0]["embedding"][0])
    return text.replace(first, token, 1).encode()


def _renumbered(rows: list[dict[str, Any]], index: Callable[[int], int | None]) -> Any:
    return [row | {"index": index(place)} for place, row in enumerate(rows)]


VECTORS: Mapping[str, Trouble] = {
    "rate limit": Trouble(_always(rate_limited("0.01"))),
    "server error": Trouble(_always(server_error(500))),
    "connection dropped": Trouble(_always(dropped())),
    "half a body": Trouble(_always(half_body())),
    "an HTML page with 200": Trouble(_always(Fault(raw=HTML))),
    "no data": Trouble(_vectors(lambda rows: [])),
    "data null": Trouble(_vectors(lambda rows: None)),
    "one too few": Trouble(_vectors(lambda rows: rows[:-1])),
    "one too many": Trouble(_vectors(lambda rows: [*rows, rows[0] | {"index": len(rows)}])),
    "an empty vector": Trouble(_each(lambda vector: [])),
    "a vector of null": Trouble(_each(lambda vector: None)),
    "another length": Trouble(_each(lambda vector: vector[: len(vector) // 2].tolist())),
    "all of another length": Trouble(
        _vectors(lambda rows: [row | {"embedding": [0.5] * 7} for row in rows])
    ),
    "all noughts": Trouble(_each(lambda vector: (vector * 0).tolist())),
    "not a number": Trouble(lambda chance: Fault(reply=lambda answer: _raw(answer, "NaN"))),
    "infinite": Trouble(lambda chance: Fault(reply=lambda answer: _raw(answer, "1e999"))),
    "base64 that does not decode": Trouble(_each(lambda vector: "!!!not base64!!!")),
    "base64 of half a number": Trouble(_each(lambda vector: "AAA=")),
    "the same index twice": Trouble(_vectors(lambda rows: _renumbered(rows, lambda n: max(n, 1)))),
    "in another order": Trouble(_vectors(lambda rows: rows[::-1])),
    "no index": Trouble(_vectors(lambda rows: _renumbered(rows, lambda n: None))),
    "no usage": Trouble(_always(without_usage())),
}
HARMLESS = frozenset(
    ["content in parts", "thoughts first", "lone surrogates", "no usage", "in another order",
     "no index"]
)  # fmt: skip
"""Those that a client should read without asking again."""


class Mixture:
    """Troubles in a mixture, drawn by a seed: a function of the request for ``ModelServer``.

    ``share`` of requests meet one; ``only`` names those to choose from. ``met`` counts them.
    """

    def __init__(self, share: float, *, seed: int = 0, only: set[str] | None = None) -> None:
        self.share = share
        self.met: dict[str, int] = {}
        self._chance = random.Random(seed)
        self._only = only
        self._lasting: dict[str, Fault] = {}

    def __call__(self, request: Request) -> Fault | None:
        table = VECTORS if request.endpoint == "embeddings" else CHAT
        if request.content_hash in self._lasting and self.share:
            return self._lasting[request.content_hash]
        if self._chance.random() >= self.share:
            return None
        names = [name for name in table if self._only is None or name in self._only]
        if not names:
            return None
        name = self._chance.choice(names)
        self.met[name] = self.met.get(name, 0) + 1
        fault = table[name].make(self._chance)
        if table[name].lasting:
            self._lasting[request.content_hash] = fault
        return fault
