"""Questions of Open WebUI to which a file is attached: a task, and passages of the file."""

from __future__ import annotations

import re

_FILES = re.compile(r"^<attached_files>\n.*?^</attached_files>\s*", re.MULTILINE | re.DOTALL)
# Up to the last end of a context: a file may hold such a line, too.
_TASK = re.compile(
    r"\A### Task:\nRespond to the user query using the provided context\b.*^</context>\s*",
    re.MULTILINE | re.DOTALL,
)


def without_attached(text: str) -> str:
    """Return what a user has said, without what was attached to it; where nothing is left, all."""
    return _FILES.sub("", _TASK.sub("", text)).strip() or text
