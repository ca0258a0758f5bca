"""JSON as models write it: fenced, commented, with loose quotes and commas, or cut off."""

from __future__ import annotations

import contextlib
import json
import math
import re
from typing import Any

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.llm.errors import ModelOutputError

_MAX_DEPTH = 100
_MAX_STARTS = 50
_MAX_DIGITS = 4000
_THOUGHTS = pattern_of(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCE = pattern_of(r"```[a-zA-Z0-9]*[ \t]*\n?(.*?)(?:```|\Z)", re.DOTALL)
_SPACE = pattern_of(r"(?:\s+|//[^\n]*|/\*.*?(?:\*/|\Z)|\#[^\n]*)+", re.DOTALL)
_NUMBER = pattern_of(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?=[\s,}\]/:#]|\Z)")
_NAME = pattern_of(r"[A-Za-z_$][\w$-]*")
_BARE = pattern_of(r"[^,}\]\n]+")
_WORD = pattern_of(r"(?:true|false|null|none|nan)\b(?!\s*\w)", re.IGNORECASE)
_REFERENCES = pattern_of(r"\[\s*Data\b[^\]]*(?:\]|\Z)|\[[\d\s,;]*\]")
_DECISION = pattern_of(r"[^\W_]+")
_DECISIONS = word_lists("decisions.txt")
_YES, _NO = _DECISIONS["yes"], _DECISIONS["no"]
_FORCED = pattern_of(r"(?P<yes>(?:yes)+(?:y|ye)?|y|ye)|(?:no)+n?|n")
_NEXT_KEY = pattern_of(r"""["'“][^"'”\n]{0,200}["'”]\s*:""")
_HALF = pattern_of("[\ud800-\udfff]")
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’"}
_WORDS = {"true": True, "false": False, "null": None, "none": None, "nan": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def parse_json_object(text: str) -> dict[str, Any]:
    """Return the JSON object in a model's answer, repaired where it is broken.

    Words may stand around it, in or out of a code fence, and a block of thoughts before it. What
    was cut off at the end is kept as far as it goes: a half text stays a half text, a key without
    a value is dropped. Raises ModelOutputError, with the position where reading ended, if there is
    no object; its message holds nothing of the answer.
    """
    thoughts = _THOUGHTS.match(text)
    begin = thoughts.end() if thoughts else 0
    with contextlib.suppress(ValueError, RecursionError):
        whole = json.loads(text[begin:])
        if isinstance(whole, dict) and _is_plain(whole):
            return whole
    furthest = begin
    for start, end in _places(text, begin):
        value, reached = _read(text[:end], start)
        if value is not None:
            return value
        furthest = max(furthest, reached)
    raise ModelOutputError(_explain(text, furthest), furthest)


def parse_json_list(text: str, name: str) -> list[Any]:
    """Return the list of this name in the JSON object of a model's answer.

    Raises ModelOutputError where there is none.
    """
    listed = parse_json_object(text).get(name)
    if not isinstance(listed, list):
        raise ModelOutputError(f'the answer must be a JSON object with the list "{name}"')
    return listed


def _places(text: str, begin: int) -> list[tuple[int, int]]:
    """Return where an object may begin, and where the text around it ends: fences come first."""
    fences = [match.span(1) for match in _FENCE.finditer(text, begin)]
    spans = [*fences, (begin, len(text))]
    return [(m.start(), end) for start, end in spans for m in _starts(text, start, end)]


def _starts(text: str, start: int, end: int) -> list[re.Match[str]]:
    return list(re.compile(r"\{").finditer(text, start, end))[:_MAX_STARTS]


def _read(text: str, start: int) -> tuple[dict[str, Any] | None, int]:
    """Return the object that begins here or None, and the position reached."""
    try:
        value, _ = json.JSONDecoder().raw_decode(text, start)
        if _is_plain(value):
            return value, start
    except (ValueError, RecursionError):
        pass
    reader = _Reader(text, start)
    try:
        value = reader.object(0)
    except _UnreadableError as error:
        return None, error.position
    is_empty_guess = not value and not re.compile(r"\{\s*\}").match(text, start)
    return (None if is_empty_guess else value), reader.at


def _is_plain(value: object) -> bool:
    """Say whether a value is free of NaN, infinity and half characters, which Python lets pass."""
    if isinstance(value, float):
        return value - value == 0
    if isinstance(value, str):
        return value.isascii() or not _HALF.search(value)
    if isinstance(value, dict):
        return all(_is_plain(key) and _is_plain(item) for key, item in value.items())
    return not isinstance(value, list) or all(map(_is_plain, value))


class _UnreadableError(Exception):
    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


class _Reader:
    """Reads JSON and what only looks like it, never going back."""

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at

    def object(self, depth: int) -> dict[str, Any]:
        self._enter(depth)
        found: dict[str, Any] = {}
        while (char := self._after_commas()) not in ("}", "]", ""):
            key = self._key(char)
            if self._skip() not in (":", "=", ""):
                raise _UnreadableError(self.at)
            self.at += 1
            if self._skip() == "":
                break
            if self.text[self.at] in ",}":
                found[key] = None
            else:
                found[key] = self._value(depth)
        self._leave("}")
        return found

    def array(self, depth: int) -> list[Any]:
        self._enter(depth)
        found: list[Any] = []
        while self._after_commas() not in ("]", "}", ""):
            before = self.at
            found.append(self._value(depth))
            if self.at == before:
                raise _UnreadableError(self.at)
        self._leave("]")
        return found

    def _value(self, depth: int) -> Any:
        char = self.text[self.at]
        if char == "{":
            return self.object(depth + 1)
        if char == "[":
            return self.array(depth + 1)
        if char in _QUOTES:
            return self._string()
        if number := _NUMBER.match(self.text, self.at):
            return self._number(number)
        return self._bare()

    def _number(self, found: re.Match[str]) -> float | int | None:
        digits = found[0].lstrip("+")
        if re.search(r"[.eE]", digits):
            self.at = found.end()
            value = float(digits)
            return value if math.isfinite(value) else None
        if len(digits) > _MAX_DIGITS:
            raise _UnreadableError(self.at)
        self.at = found.end()
        return int(digits)

    def _bare(self) -> Any:
        words = _WORD.match(self.text, self.at) or _BARE.match(self.text, self.at)
        if words is None:
            raise _UnreadableError(self.at)
        self.at = words.end()
        word = words[0].strip()
        if word.lower() in _WORDS:
            return _WORDS[word.lower()]
        cut_off = self.at == len(self.text)
        if cut_off and any(known.startswith(word.lower()) for known in _WORDS):
            return None
        return word

    def _key(self, char: str) -> str:
        if char in _QUOTES:
            return self._string(is_key=True)
        name = _NAME.match(self.text, self.at)
        if name is None:
            raise _UnreadableError(self.at)
        self.at = name.end()
        return name[0]

    def _string(self, *, is_key: bool = False) -> str:
        opening = self.text[self.at]
        closing = {_QUOTES[opening], opening}
        self.at += 1
        found: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "\\":
                found.append(self._escape())
                continue
            if char in closing and self._ends_string(is_key):
                self.at += 1
                break
            found.append(char)
            self.at += 1
        return _joined(found)

    def _ends_string(self, is_key: bool) -> bool:
        """Say whether this quote ends the text: something must follow that can follow a text."""
        space = _SPACE.match(self.text, self.at + 1)
        after = space.end() if space else self.at + 1
        if after >= len(self.text):
            return True
        char = self.text[after]
        if is_key:
            return char in ":=,}"
        if char in ",}]":
            return char != "," or self._begins_something(after + 1)
        return char in _QUOTES and bool(_NEXT_KEY.match(self.text, after))

    def _begins_something(self, at: int) -> bool:
        space = _SPACE.match(self.text, at)
        after = space.end() if space else at
        return after >= len(self.text) or bool(
            re.compile(r"""["'“‘{\[}\],\d+.-]|[tT]rue|[fF]alse|null|None|NaN|[\w$-]+\s*:""").match(
                self.text, after
            )
        )

    def _escape(self) -> str:
        char = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if char != "u":
            return _ESCAPES.get(char, char)
        digits = self.text[self.at : self.at + 4]
        if not re.fullmatch(r"[0-9a-fA-F]{4}", digits):
            return ""
        self.at += 4
        return chr(int(digits, 16))

    def _enter(self, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise _UnreadableError(self.at)
        self.at += 1

    def _leave(self, closing: str) -> None:
        """Go past the end of a container; the wrong bracket ends an outer one and stays."""
        if self.text[self.at : self.at + 1] == closing:
            self.at += 1

    def _after_commas(self) -> str:
        while self._skip() == ",":
            self.at += 1
        return self.text[self.at : self.at + 1]

    def _skip(self) -> str:
        if space := _SPACE.match(self.text, self.at):
            self.at = space.end()
        return self.text[self.at : self.at + 1]


def _joined(parts: list[str]) -> str:
    """Join characters; two halves of a pair become one, half a pair becomes U+FFFD."""
    text = "".join(parts)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _explain(text: str, position: int) -> str:
    if not text.strip():
        return "the model's answer is empty: ask again"
    what = "is no JSON object" if "{" in text else "holds no JSON object"
    return f"the model's answer {what} (character {position} of {len(text)}): ask again"


def has_words(text: str) -> bool:
    """Say whether a text holds a word or a number besides references to records."""
    return _DECISION.search(_REFERENCES.sub("", text)) is not None


def check_words(text: str) -> None:
    """Raise ModelOutputError for an answer that holds no words, but references at most."""
    if not has_words(text):
        raise ModelOutputError("the model's answer held no words: ask again, or ask another model")


def parse_yes_no(text: str) -> bool | None:
    """Return what a model decided, yes or no; None if it did neither, or both.

    A forced word goes on for as long as it may (``YESYESYES``), or stops in the middle (``YE``).
    """
    words = [word.lower() for word in _DECISION.findall(text[:2000])]
    if len(words) == 1 and (forced := _FORCED.fullmatch(words[0])):
        return forced["yes"] is not None
    if words and (words[0] in _YES) != (words[0] in _NO):
        return words[0] in _YES
    said = set(words) & (_YES | _NO)
    return next(iter(said)) in _YES if len(said) == 1 else None
