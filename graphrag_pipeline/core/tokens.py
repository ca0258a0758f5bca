"""Tokens as models count them; the encodings of OpenAI's models ship with the package."""

from __future__ import annotations

import functools
import gzip
import hashlib
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

from graphrag_pipeline.core.errors import ConfigError, StorageError

if TYPE_CHECKING:
    import tiktoken

DEFAULT_ENCODING = "cl100k_base"
BYTES_PER_TOKEN = 4
"""About how many bytes of text a token takes, where nothing is counted."""


class _Shipped(NamedTuple):
    sha256: str
    pattern: str
    special: Mapping[str, int]


_LETTERS = r"\p{Lm}\p{Lo}\p{M}"
_ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_SHIPPED = {
    "cl100k_base": _Shipped(
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
        {
            "<|endoftext|>": 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
    ),
    "o200k_base": _Shipped(
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}{_LETTERS}]*[\p{{Ll}}{_LETTERS}]+{_ENDINGS}"
        rf"|[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}{_LETTERS}]+[\p{{Ll}}{_LETTERS}]*{_ENDINGS}"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        {"<|endoftext|>": 199999, "<|endofprompt|>": 200018},
    ),
}
# The same ranks with more special tokens, which no text of ours may hold.
_SAME_RANKS = {"o200k_harmony": "o200k_base"}


@functools.cache
def get_encoding(name: str = DEFAULT_ENCODING) -> tiktoken.Encoding:
    """Return a tiktoken encoding; those that ship need no network, others come tiktoken's own way.

    Raises ConfigError for an unknown encoding or one whose ranks cannot be fetched.
    """
    import tiktoken

    if shipped := _SHIPPED.get(name):
        ranks = shipped_ranks(name)
        encoding = tiktoken.Encoding(
            name,
            pat_str=shipped.pattern,
            mergeable_ranks=ranks,
            special_tokens=dict(shipped.special),
        )
        # It counts by a copy of its own, and would hold these, 25 MB, to be pickled alone.
        ranks.clear()
        return encoding
    try:
        return tiktoken.get_encoding(name)
    except ValueError:
        names = ", ".join(tiktoken.list_encoding_names())
        raise ConfigError(f"chunks.encoding = {name!r}: must be one of {names}") from None
    except Exception as error:
        raise ConfigError(
            f"chunks.encoding = {name!r}: its ranks cannot be fetched ({type(error).__name__}); "
            f"use {' or '.join(_SHIPPED)}, which need no network"
        ) from None


@functools.cache
def model_encoding(model: str) -> str | None:
    """Return the name of a model's own encoding if it is known and ships; else None.

    The provider before a slash (``openai/gpt-4o``) is no part of the name. Source: tiktoken's
    table of models.
    """
    from tiktoken.model import encoding_name_for_model

    try:
        name = encoding_name_for_model(model.removeprefix("openai/"))
    except KeyError:
        return None
    name = _SAME_RANKS.get(name, name)
    return name if name in _SHIPPED else None


def encoding_for(model: str) -> str:
    """Return the encoding to count a model's tokens with: its own, or the usual one."""
    return model_encoding(model) or DEFAULT_ENCODING


def count_tokens(texts: Sequence[str], encoding: str = DEFAULT_ENCODING) -> list[int]:
    """Return the number of tokens of each text; special-token markup counts as plain text."""
    encode = get_encoding(encoding).encode_ordinary
    return [len(encode(text)) for text in texts]


def message_tokens(messages: Sequence[Mapping[str, str]]) -> int:
    """Return the tokens of what messages to a model say."""
    return sum(count_tokens([message["content"] for message in messages]))


@functools.cache
def word_token(model: str, word: str) -> int | None:
    """Return the id of a word that is one token to a model, None if it is not, or not known."""
    name = model_encoding(model)
    tokens = get_encoding(name).encode_ordinary(word) if name else []
    return tokens[0] if len(tokens) == 1 else None


def is_token(text: str, name: str = DEFAULT_ENCODING) -> bool:
    """Return whether a text is one token of an encoding that ships, as frequent words are."""
    return b2a_base64(text.encode(), newline=False) in _tokens_looked_up(name)


@functools.cache
def _tokens_looked_up(name: str) -> frozenset[bytes]:
    return frozenset(shipped_tokens(name))


def shipped_ranks(name: str = DEFAULT_ENCODING) -> dict[bytes, int]:
    """Return the rank of each token of an encoding that ships, in order, read anew each time."""
    return {token: rank for rank, token in enumerate(map(a2b_base64, shipped_tokens(name)))}


def shipped_tokens(name: str = DEFAULT_ENCODING) -> list[bytes]:
    """Return the tokens of an encoding that ships, each in base64, by rank.

    Raises StorageError if the file is not what it was.
    """
    path = resources.files("graphrag_pipeline").joinpath(f"data/{name}.tiktoken.gz")
    try:
        data = gzip.decompress(path.read_bytes())
    except (OSError, EOFError):
        data = b""
    if hashlib.sha256(data).hexdigest() != _SHIPPED[name].sha256:
        raise StorageError(f"the package's {name}.tiktoken.gz is damaged: install it again")
    # On each line are a token and its rank, which is the number of the line.
    return data.split()[::2]
