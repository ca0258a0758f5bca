"""Windows of models: how many tokens one reads and writes together, and what fits into them."""

from __future__ import annotations

import functools
import json
import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.core.tokens import count_tokens, encoding_for, model_encoding
from graphrag_pipeline.llm.errors import TerminalModelError
from graphrag_pipeline.llm.options import LlmOptions
from graphrag_pipeline.llm.server_words import window_told

HISTORY_TOKENS = 4000
"""Older turns of a conversation than fit into so many tokens are left out."""
_INSTRUCTIONS = 1000
_ANSWER = 2000
_HISTORY_SHARE = 4
# Where the encoding is not known, another one's count is this much too low at times.
_EXCESS = 1.2
_LEAST_EVIDENCE = 200
_MARKUP = 16
# A server that counts so much less than was sent has read a part alone. Small counts are of
# servers that leave out what they had kept of the call before; tokens of more characters on average
# than this are of no text.
_READ_A_PART, _LEAST_COUNT, _CHARS_OF_A_TOKEN = 0.6, 1024, 5


def window_of(options: LlmOptions) -> int | None:
    """Return the tokens of the chat model's window, as set or as known by its name; else None."""
    if options.context_window:
        return options.context_window
    name = options.model.removeprefix("openai/")
    fitting = [prefix for prefix in _windows() if name.startswith(prefix)]
    return _windows()[max(fitting, key=len)] if fitting else None


def excess(model: str) -> float:
    """Return by what to multiply a count of tokens for a model, to be on the safe side."""
    return 1.0 if model_encoding(model) else _EXCESS


def evidence_room(settings: Settings, options: LlmOptions) -> int | None:
    """Return the most tokens of evidence that a question's prompt may hold, None if any number.

    The rest of the window is for instructions, the conversation so far, and the answer.
    """
    window = window_of(options) if settings.query.answers == "llm" else None
    if window is None:
        return None
    rest = _left(options, window)
    return max(_LEAST_EVIDENCE, int((rest - _history(rest)) / excess(options.model)))


def prompt_room(options: LlmOptions) -> int | None:
    """Return the most tokens that a stage may put into one prompt, None if any number."""
    window = window_of(options)
    return None if window is None else int(_left(options, window) / excess(options.model))


def history_tokens(options: LlmOptions) -> int:
    """Return the most tokens of a conversation that are shown with a question."""
    window = window_of(options)
    return HISTORY_TOKENS if window is None else _history(_left(options, window))


def window_error(
    model: str, section: str, body: Mapping[str, Any], sent: bytes
) -> TerminalModelError:
    """Return the error of a prompt and answer that a server's window does not hold.

    ``section`` is where the settings of the model are, ``body`` the server's error.
    """
    window, prompt = window_told(body)
    try:
        request = json.loads(sent)
    except ValueError:
        request = {}
    if "input" in request:
        return TerminalModelError(
            f"a text is longer than {model} embeds at once"
            f"{f' ({prompt:,} tokens)' if prompt else ''}: lower {section}.embedding_max_tokens, "
            "or start the server for longer ones (llama.cpp: --ubatch-size)",
            "context_length",
        )
    answer = request.get("max_tokens") or request.get("max_completion_tokens")
    size = f"has {window:,} tokens" if window else "is too small"
    parts = [f"the prompt {prompt:,}"] if prompt else ["the prompt"]
    parts += [f"the answer up to {answer:,}"] if answer else []
    return TerminalModelError(
        f"the window of {model} {size}, and {' and '.join(parts)} "
        f"{'do' if len(parts) > 1 else 'does'} not fit: {_cures(section)}",
        "context_length",
    )


def _cures(section: str) -> str:
    return (
        f"start the server with a larger one, or lower {section}.max_output_tokens or what a "
        "prompt holds (chunks.size and extraction.gleanings, reports.max_context_tokens, "
        "query.max_context_tokens)"
    )


def check_fits(options: LlmOptions, text: str, answer: int = 1) -> None:
    """Raise TerminalModelError if a prompt and ``answer`` tokens do not fit into the window."""
    window = window_of(options)
    # No token is shorter than a byte.
    if window is None or len(text.encode("utf-8", "replace")) + answer + _MARKUP <= window:
        return
    counted = count_tokens([text], encoding_for(options.model))[0] + _MARKUP
    if counted + answer > window:
        raise TerminalModelError(
            f"a prompt of {counted:,} tokens and an answer of up to {answer:,} do not fit into the "
            f"window of {options.model} ({window:,}): {_cures(options.section)}; set "
            f"{options.section}.context_window if the window is larger",
            "context_length",
        )


def check_was_read(options: LlmOptions, text: str, n_read: int) -> None:
    """Raise TerminalModelError if a server of one's own has cut a prompt and said nothing.

    ``n_read`` is its own count of the prompt's tokens. Ollama cuts what its window does not hold.
    """
    if not options.is_private or n_read < _LEAST_COUNT or n_read * _CHARS_OF_A_TOKEN > len(text):
        return
    sent = count_tokens([text], encoding_for(options.model))[0]
    if n_read < _READ_A_PART * sent:
        raise TerminalModelError(
            f"the server read {n_read:,} of about {sent:,} tokens and left out the rest: start it "
            f"with a larger window (Ollama: OLLAMA_CONTEXT_LENGTH), or set {options.section}."
            "context_window to the one it has",
            "context_length",
        )


def _left(options: LlmOptions, window: int) -> int:
    """Return what instructions and answer leave of a window for evidence and conversation."""
    answer = options.max_output_tokens or min(_ANSWER, window // 4)
    return max(0, window - _INSTRUCTIONS - answer)


def _history(rest: int) -> int:
    return min(HISTORY_TOKENS, rest // _HISTORY_SHARE)


@functools.cache
def _windows() -> Mapping[str, int]:
    text = resources.files("graphrag_pipeline").joinpath("data/windows.toml").read_text("utf-8")
    return tomllib.loads(text)["windows"]
