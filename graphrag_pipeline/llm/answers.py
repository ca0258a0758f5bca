"""Responses of a chat server, read as answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from graphrag_pipeline.llm.errors import TerminalModelError, TransientModelError
from graphrag_pipeline.llm.loops import LoopFinder, loop_in

LOOP = "loop"
"""Why an answer ended that went round in circles."""
_THINKING, _THOUGHT = "<think>", "</think>"


class TokenUsage(NamedTuple):
    """Tokens as the server counted them; ``cached`` are prompt tokens it had in its own cache."""

    prompt: int
    completion: int
    cached: int = 0


class ChatAnswer(NamedTuple):
    """A chat answer; ``usage`` is None if the server did not say.

    From the character ``loop_begins`` on it only repeats itself.
    """

    text: str
    finish_reason: str
    usage: TokenUsage | None
    loop_begins: int | None = None

    def without_loop(self) -> ChatAnswer:
        """Return the answer as far as it says anything new."""
        return self._replace(text=self.text[: self.loop_begins])


def read_answer(raw: Mapping[str, Any], most_chars: int) -> ChatAnswer:
    """Return the answer, without the thoughts that some models write before it.

    Raises TransientModelError or TerminalModelError if there is none, or it is too long.
    """
    choices = raw.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise _no_answer()
    choice = choices[0]
    message = mapping_of(choice.get("message"))
    text, reason = clean(message.get("content")), str(choice.get("finish_reason") or "stop")
    if len(text) > most_chars:
        raise TerminalModelError(
            f"the answer has {len(text):,} characters, more than llm.max_answer_chars", "size"
        )
    thoughts = _thoughts(message) or (text if text.lstrip().startswith(_THINKING) else "")
    text = without_thoughts(text)
    begins = loop_in(text)
    reason = reason if begins is None else LOOP
    check_answer(text, reason, refused=bool(message.get("refusal")), has_thought=bool(thoughts))
    return ChatAnswer(text, reason, read_usage(raw), begins)


def check_answer(text: str, reason: str, *, refused: bool, has_thought: bool = False) -> None:
    """Raise the error of an answer that says nothing.

    ``has_thought`` says that there were thoughts, which reasoning models write beside an answer.
    """
    if reason == "content_filter":
        raise TerminalModelError(
            "the answer was withheld by the provider's content filter", "filter"
        )
    if text.strip():
        return
    if refused:
        raise TerminalModelError("the model refused to answer", "refusal")
    if reason == LOOP:
        raise TerminalModelError(
            "the model repeated itself before its answer began, and was stopped", LOOP
        )
    if has_thought:
        ended = "and its tokens ran out" if reason == "length" else "and answered nothing"
        raise TerminalModelError(
            f"the model thought, {ended} before its answer: raise max_output_tokens, or let it "
            'think less: extra = { reasoning_effort = "low" }, or "none"; llama.cpp and vLLM: '
            "extra = { chat_template_kwargs = { enable_thinking = false } }",
            "thinking",
        )
    if reason == "length":
        raise TerminalModelError(
            "the model used all its tokens before the answer began: raise max_output_tokens",
            "length",
        )
    raise _no_answer()


class AssembledAnswer:
    """A streamed answer put together as if it had come whole.

    No more of it is of use where it ``is_enough``: it goes round in circles, or has more than
    ``most_chars`` characters.
    """

    def __init__(self, most_chars: float = math.inf) -> None:
        self.usage: TokenUsage | None = None
        self.n_pieces = 0
        self._most_chars = most_chars
        self._whole: Mapping[str, Any] | None = None
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._n_chars = 0
        self._refusal = ""
        self._reason = ""
        self._finder = LoopFinder()

    def take(self, piece: Mapping[str, Any]) -> str:
        """Add a piece and return its text, which may be empty."""
        self.usage = read_usage(piece) or self.usage
        choices = piece.get("choices")
        choice = mapping_of(choices[0]) if isinstance(choices, list) and choices else {}
        if "message" in choice or not isinstance(choices, list):
            self._whole = piece
        delta = mapping_of(choice.get("delta") or choice.get("message"))
        self._reason = str(choice.get("finish_reason") or self._reason)
        self._refusal += str(delta.get("refusal") or "")
        text, thoughts = clean(delta.get("content")), _thoughts(delta)
        self._texts.append(text)
        self._thoughts.append(thoughts)
        said = text or thoughts
        self.n_pieces += bool(said)
        self._n_chars += len(said)
        if self._finder.feed(said) is not None:
            self._reason = LOOP
        return text

    @property
    def is_enough(self) -> bool:
        """Whether no more of it is of use."""
        return self._reason == LOOP or self._n_chars > self._most_chars

    @property
    def raw(self) -> Mapping[str, Any]:
        """The answer as a server gives it that does not stream.

        Raises TransientModelError for one that did not come to its end.
        """
        if self._whole is not None:
            return self._whole
        if not self._reason and self.usage is None and not self.is_enough:
            raise _broken_off()
        message = {
            "content": "".join(self._texts),
            "refusal": self._refusal or None,
            "reasoning_content": "".join(self._thoughts),
        }
        choices = [{"message": message, "finish_reason": self._reason or None}]
        usage = {} if self.usage is None else {"usage": _as_told(self.usage)}
        return {"choices": choices if self.n_pieces or self._reason else [], **usage}


class StreamedAnswer(AssembledAnswer):
    """A streamed answer shown as it comes, without the thoughts before it."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._begun = ""
        self._is_answer = False

    @property
    def text(self) -> str:
        """The answer so far."""
        return "".join(self.texts)

    @property
    def reason(self) -> str:
        """The reason why it ended."""
        return self._reason or "stop"

    def take(self, piece: Mapping[str, Any]) -> str:
        """Add a piece and return what of it is answer, which may be nothing."""
        text = self._answered(super().take(piece))
        if text:
            self.texts.append(text)
        return text

    def _answered(self, text: str) -> str:
        """Hold back a beginning until it is known to be answer, not thoughts."""
        if self._is_answer:
            return text
        self._begun += text
        begun = self._begun.lstrip()
        if begun.startswith(_THINKING):
            self._is_answer = _THOUGHT in begun
        else:
            self._is_answer = not _THINKING.startswith(begun[: len(_THINKING)])
        return without_thoughts(self._begun) if self._is_answer else ""

    def rest(self) -> str:
        """Return what was held back of an answer that ended before it was told from thoughts."""
        rest = "" if self._is_answer else without_thoughts(self._begun)
        if rest:
            self.texts.append(rest)
        self._is_answer = True
        return rest

    def check(self) -> None:
        """Raise the error of an answer that says nothing or did not come to its end."""
        if not self._reason and self.usage is None:
            raise _broken_off()
        thought = any(self._thoughts) or self._begun.lstrip().startswith(_THINKING)
        check_answer(self.text, self.reason, refused=bool(self._refusal), has_thought=thought)


def read_usage(raw: Mapping[str, Any]) -> TokenUsage | None:
    """Return the tokens that the server says it took."""
    usage = raw.get("usage")
    if not isinstance(usage, Mapping) or not isinstance(usage.get("prompt_tokens"), int):
        return None
    prompt = usage["prompt_tokens"]
    cached = _number(mapping_of(usage.get("prompt_tokens_details")).get("cached_tokens"))
    return TokenUsage(prompt, _number(usage.get("completion_tokens")), min(cached, prompt))


def clean(content: object) -> str:
    """Return a message's text as Unicode; servers send parts, or escapes that are no characters."""
    if isinstance(content, list):
        parts = [part.get("text") or "" for part in content if isinstance(part, dict)]
        content = "".join(str(part) for part in parts)
    text = content if isinstance(content, str) else ""
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")


def _thoughts(message: Mapping[str, Any]) -> str:
    """Return the thoughts that servers give apart from the answer, each by its own name."""
    return clean(message.get("reasoning_content")) or clean(message.get("reasoning"))


def without_thoughts(text: str) -> str:
    """Return an answer without a block of thoughts before it; of thoughts cut off, nothing."""
    begun = text.lstrip()
    if not begun.startswith(_THINKING):
        return text
    return begun.partition(_THOUGHT)[2].lstrip()


def mapping_of(given: object) -> Mapping[str, Any]:
    """Return what a server sent if it is an object of JSON, else an empty one."""
    return given if isinstance(given, Mapping) else {}


def _number(given: object) -> int:
    return given if isinstance(given, int) else 0


def _no_answer() -> TransientModelError:
    return TransientModelError("the model answered with nothing: run again later", "empty")


def _broken_off() -> TransientModelError:
    return TransientModelError(
        "the stream of the answer broke off: ask again, or without streaming", "connection"
    )


def _as_told(usage: TokenUsage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }
