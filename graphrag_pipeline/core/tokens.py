"""Token counts that never need a network: cl100k_base ships with the package."""

from __future__ import annotations

import functools
import hashlib
from binascii import a2b_base64
from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING

from graphrag_pipeline.core.errors import ConfigError, StorageError

if TYPE_CHECKING:
    import tiktoken

DEFAULT_ENCODING = "cl100k_base"
_RANKS_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
_SPECIAL = {
    "<|endoftext|>": 100257,
    "<|fim_prefix|>": 100258,
    "<|fim_middle|>": 100259,
    "<|fim_suffix|>": 100260,
    "<|endofprompt|>": 100276,
}


@functools.cache
def get_encoding(name: str = DEFAULT_ENCODING) -> tiktoken.Encoding:
    """Return a tiktoken encoding; cl100k_base from package data, others tiktoken's own way.

    Raises ConfigError for an unknown encoding or one whose ranks cannot be fetched.
    """
    import tiktoken

    if name == DEFAULT_ENCODING:
        return tiktoken.Encoding(
            name, pat_str=_PATTERN, mergeable_ranks=_shipped_ranks(), special_tokens=_SPECIAL
        )
    try:
        return tiktoken.get_encoding(name)
    except ValueError:
        known = ", ".join(tiktoken.list_encoding_names())
        raise ConfigError(f"chunks.encoding = {name!r}: must be one of {known}") from None
    except Exception as error:
        raise ConfigError(
            f"chunks.encoding = {name!r}: its ranks cannot be fetched ({type(error).__name__}); "
            f"use {DEFAULT_ENCODING}, which needs no network"
        ) from None


def count_tokens(texts: Sequence[str], encoding: str = DEFAULT_ENCODING) -> list[int]:
    """Return the number of tokens of each text; special-token markup counts as plain text."""
    encode = get_encoding(encoding).encode_ordinary
    return [len(encode(text)) for text in texts]


def _shipped_ranks() -> dict[bytes, int]:
    data = resources.files("graphrag_pipeline").joinpath("data/cl100k_base.tiktoken").read_bytes()
    if hashlib.sha256(data).hexdigest() != _RANKS_SHA256:
        raise StorageError("the package's cl100k_base.tiktoken is damaged: install it again")
    parts = data.split()
    return dict(zip(map(a2b_base64, parts[::2]), map(int, parts[1::2]), strict=True))
