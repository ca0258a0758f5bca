"""Answers that go round in circles: one record, sentence or cycle of a few, again and again."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from graphrag_pipeline.core.patterns import pattern_of

_TOKEN = pattern_of(r"[A-Za-z0-9_]{1,16}|[^\sA-Za-z0-9_]")
_UNFINISHED = pattern_of(r"[A-Za-z0-9_]*\Z")
_GRAM = 6
_SENTENCE, _FEWEST = 10, 80
_MOST_BLANKS = 1000
_FEED = 256
_SHORTEST = 400
_COMPRESSED = 0.35


class LoopFinder:
    """Finds where a text begins to repeat itself, while it comes.

    The text is read as words and single signs. Where six in a row have come before, what follows
    is compared with what followed then; a text that agrees with itself so many words long, so many
    words back, goes round: see :func:`_long_enough`. That takes one look into a table for each
    word. Lists, tables and JSON repeat their keys, but never all that stands between them.
    """

    def __init__(self) -> None:
        self._tokens: list[str] = []
        self._starts: list[int] = []
        self._last_seen: dict[tuple[str, ...], int] = {}
        self._waiting = ""
        self._read = 0
        self._blanks = 0
        self._period = self._run = 0

    def feed(self, text: str) -> int | None:
        """Take more of the text; return the position from which on it only repeats, or None."""
        self._waiting += text
        return self._look(at_end=False) if len(self._waiting) >= _FEED else None

    def finish(self) -> int | None:
        """Look at what is left of the text, now that it has ended."""
        return self._look(at_end=True)

    def _look(self, *, at_end: bool) -> int | None:
        text = self._waiting
        unfinished = None if at_end else _UNFINISHED.search(text)
        # A word that may go on waits, unless it has gone on for long.
        end = len(text)
        if unfinished is not None and unfinished.start():
            end = unfinished.start()
        elif unfinished is not None:
            end -= end % 16
        begin, self._read = self._read, self._read + end
        self._waiting = text[end:]
        for match in _TOKEN.finditer(text, 0, end):
            if (position := self._take(match[0], begin + match.start())) is not None:
                return position
        return self._blank(text[:end])

    def _blank(self, text: str) -> int | None:
        blank = len(text) - len(text.rstrip())
        self._blanks = self._blanks + blank if blank == len(text) else blank
        return self._read - self._blanks if self._blanks > _MOST_BLANKS else None

    def _take(self, token: str, start: int) -> int | None:
        self._tokens.append(token)
        self._starts.append(start)
        last = len(self._tokens) - 1
        if last < _GRAM - 1:
            return None
        gram = tuple(self._tokens[-_GRAM:])
        before = self._last_seen.get(gram, last)
        self._last_seen[gram] = last
        # As long as the text agrees with a cycle, what is alike within the cycle is no other.
        if self._run and token == self._tokens[last - self._period]:
            self._run += 1
        else:
            self._period = last - before
            self._run = _GRAM if self._period else 0
        if self._run >= _FEWEST and self._run >= _long_enough(self._tokens[-self._period :]):
            return self._starts[last - self._run + 1]
        return None


def _long_enough(cycle: Sequence[str]) -> int:
    """Return how many words must repeat, of a cycle of words, for the text to go round.

    Of a long cycle that is two more, of a sentence or record three, of a few words many: rules,
    empty cells and noughts may stand in a row.
    """
    period = len(cycle)
    if period < _SENTENCE:
        return 160 if any(token.isalpha() for token in cycle) else 1600
    return max(3 * period, _FEWEST) if period < 100 else 2 * period


def loop_in(text: str) -> int | None:
    """Return the position from which on a text only repeats what it said, or None.

    A text that does not compress well is not looked at: that takes a fiftieth of the time.
    """
    if len(text) < _SHORTEST:
        return None
    data = text.encode("utf-8", "replace")
    if len(zlib.compress(data, 1)) > _COMPRESSED * len(data):
        return None
    finder = LoopFinder()
    position = finder.feed(text)
    return finder.finish() if position is None else position
