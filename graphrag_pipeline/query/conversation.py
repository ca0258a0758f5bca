"""The conversation before a question: turns of (role, text), oldest first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphrag_pipeline.core.errors import InputError

Turn = tuple[str, str]
ROLES = ("user", "assistant")
HISTORY_TURNS = 10
"""Turns of a conversation that count unless told otherwise."""

_FORM = 'a JSON list of {"role": "user" or "assistant", "content": "what was said"}'


def recent_turns(history: Sequence[Turn], turns: int) -> list[Turn]:
    """Return the ``turns`` most recent turns of a conversation, oldest first.

    Raises InputError for what is no conversation.
    """
    if isinstance(turns, bool) or not isinstance(turns, int) or turns < 0:
        raise InputError(f"history_turns = {turns!r}: must be a whole number, at least 0")
    for turn in history:
        if len(turn) != 2 or turn[0] not in ROLES:
            raise InputError(
                'history must be a list of (role, text), the role "user" or "assistant"'
            )
    recent = history[-turns:] if turns else ()
    return [(role, str(text).encode("utf-8", "replace").decode()) for role, text in recent]


def read_history(path: Path) -> list[Turn]:
    """Return the conversation in a file: a JSON list of ``{"role", "content"}``, oldest first.

    Raises InputError where the file cannot be read or holds something else.
    """
    try:
        turns = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"{path}: cannot read the history: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise InputError(f"{path}: not JSON; the history must be {_FORM}") from None
    if not isinstance(turns, list):
        raise InputError(f"{path}: the history must be {_FORM}")
    for place, turn in enumerate(turns, start=1):
        if not _is_turn(turn):
            raise InputError(f"{path}: turn {place} is not valid; the history must be {_FORM}")
    return [(turn["role"], turn["content"]) for turn in turns]


def _is_turn(turn: Any) -> bool:
    return (
        isinstance(turn, dict)
        and turn.get("role") in ROLES
        and isinstance(turn.get("content"), str)
    )
