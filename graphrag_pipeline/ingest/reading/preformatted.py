"""Preformatted text that is prose: a licence, an e-mail, a poem or a transcript, and no code.

What is between `<pre>` tags counts as prose if it has twenty words or more and ends a sentence for
every eighty of them; if four of five words are nothing but letters, in the small letters, capitals
and punctuation of sentences, at most three characters in a hundred are signs of code, and hardly a
word is a call of a function; if few lines are set in columns; and if its lines do not begin with
the mark of a comment. All else is code, for code that is read as prose does more harm than prose
that is not read.
"""

from __future__ import annotations

import re

from graphrag_pipeline.core.patterns import pattern_of

_LEAST_WORDS = 20
_MOST_WORDS_A_SENTENCE = 80
_WORD_SHARE = 0.8
_SIGN_SHARE = 0.03
_CALL_SHARE = 0.025  # of the words
_COLUMN_SHARE = 0.1
_COMMENT_SHARE = 0.3
_PLAIN = pattern_of(r"[\"'“‘«(\[]*[^\W\d_]+(?:[-'’/][^\W\d_]+)*[.,;:!?\"'”’»)\]…]*")
_SIGN = pattern_of(r"[{}<>=\\|@#$%^&*_+~`]|;\s*$|\(\)", re.M)
_CALL = pattern_of(r"\w\((?!s\))|\)[:;]\s*$|^\s*@\w+\s*$", re.M)
_SENTENCE_END = pattern_of(r"[^\W\d_][\"'”’»)\]]*[.!?][\"'”’»)\]]*(?=\s|$)")
_COLUMNS = pattern_of(r"\S {3,}\S|\t")
_COMMENT = pattern_of(r"\s*(?:#|//|;|--|%|\*|/\*|\.\.\.|>>>|\$ )")


def reads_as_prose(text: str) -> bool:
    """Whether preformatted text is prose."""
    words = text.split()
    if len(words) < _LEAST_WORDS or len(words) > _MOST_WORDS_A_SENTENCE * _number(
        _SENTENCE_END, text
    ):
        return False
    plain = sum(_PLAIN.fullmatch(word) is not None for word in words)
    if plain < _WORD_SHARE * len(words) or _number(_SIGN, text) > _SIGN_SHARE * len(text):
        return False
    if _number(_CALL, text) > _CALL_SHARE * len(words):
        return False
    lines = [line for line in text.split("\n") if line.strip()]
    columns = sum(_COLUMNS.search(line.strip()) is not None for line in lines)
    comments = sum(_COMMENT.match(line) is not None for line in lines)
    return columns <= _COLUMN_SHARE * len(lines) and comments <= _COMMENT_SHARE * len(lines)


def _number(pattern: re.Pattern[str], text: str) -> int:
    return sum(1 for _ in pattern.finditer(text))
