"""Lines that somebody types, with the keys of readline, or that a pipe brings.

What was typed comes back by the arrow keys until the session ends. It is kept in no file: a
question or a statement may name what a purge is to remove.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable, Iterable

from graphrag_pipeline.cli import console


class Lines:
    """The lines of standard input. ``words`` gives what Tab completes to."""

    def __init__(self, words: Callable[[], Iterable[str]]) -> None:
        self.are_typed = sys.stdin.isatty()
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(errors="replace")
        if self.are_typed:
            _complete(words)

    def read(self, prompt: str) -> str | None:
        """Return the next line, or None at the end of input, which is Ctrl-D at a terminal.

        Ctrl-C raises KeyboardInterrupt.
        """
        if not self.are_typed:
            line = sys.stdin.readline()
            return line.rstrip("\r\n") if line else None
        if not sys.stdout.isatty():
            # Who sits there sees standard error; results go into a file.
            sys.stderr.write(prompt)
            sys.stderr.flush()
            prompt = ""
        try:
            return input(prompt)
        except EOFError:
            console.note("")
            return None


def _complete(words: Callable[[], Iterable[str]]) -> None:
    """Have Tab complete words; without readline, as on Windows, the terminal edits lines itself."""
    with contextlib.suppress(ImportError):
        import readline

        def completed(begun: str, place: int) -> str | None:
            fitting = [word for word in words() if word.lower().startswith(begun.lower())]
            return fitting[place] if place < len(fitting) else None

        readline.set_completer(completed)
        readline.set_completer_delims(" \t\n,()=")
        is_libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
