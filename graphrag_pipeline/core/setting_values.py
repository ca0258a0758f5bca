"""Kinds of values that settings have, and what a section of them is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

from graphrag_pipeline.core.environment import BROKER, POSTGRES
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.levels import parse_level
from graphrag_pipeline.core.patterns import pattern_of

_SCHEME = pattern_of(r"[A-Za-z][A-Za-z0-9+.-]+://")


def _level(value: object) -> object:
    try:
        return parse_level(value) if isinstance(value, str) else value
    except InputError as error:
        raise ValueError(str(error)) from None


def _address(address: str) -> str:
    if address and urlsplit(address).scheme not in ("http", "https"):
        raise PydanticCustomError("address", "must begin with http:// or https://")
    return address


def _environment_variable(name: str) -> str:
    """Return the name of a variable; what is none may be a key, and is not shown."""
    if name and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise PydanticCustomError(
            "variable", "must be the name of an environment variable, and not the key itself"
        )
    return name


def _place(place: object) -> object:
    if isinstance(place, str) and _SCHEME.match(place):
        raise PydanticCustomError("place", "must be a path of this machine, and no address")
    return str(place) if isinstance(place, Path) else place


def _storage_url(url: str) -> str:
    parts = urlsplit(url)
    is_bucket = parts.scheme == "s3" and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", parts.netloc)
    is_folder = parts.scheme == "file" and not parts.netloc and parts.path.startswith("/")
    if parts.username is not None or parts.password is not None:
        raise PydanticCustomError(
            "secret", "must hold no key: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    if url and (parts.query or parts.fragment or not (is_bucket or is_folder)):
        raise PydanticCustomError(
            "storage_url", "must be s3://bucket/prefix or file:///folder, or empty for the home"
        )
    return url.rstrip("/") if is_bucket else url


def _without_password(address: str) -> str:
    """Return where Postgres is. An address with a password is a secret, and is not shown."""
    user = urlsplit(address).netloc.rpartition("@")[0]
    if "password" in address.lower() or ":" in user:
        raise PydanticCustomError(
            "secret",
            f"must hold no password: set {POSTGRES} to the whole address, in the environment or "
            "in .env",
        )
    return address


def _broker(address: str) -> str:
    """Return where Redis is. An address with a password is a secret, and is not shown."""
    parts = urlsplit(address)
    if parts.password is not None or parts.query:
        raise PydanticCustomError(
            "secret",
            f"must hold no password: set {BROKER} to the whole address, in the environment or in "
            ".env",
        )
    if address and parts.scheme not in ("redis", "rediss"):
        raise PydanticCustomError("broker", "must be redis://host:port/number")
    return address


def _rights(mode: object) -> str:
    if not isinstance(mode, str) or not re.fullmatch(r"0?[0-7]?7[0-7][0145]", mode):
        raise PydanticCustomError(
            "rights",
            'must be rights in quotes by which not everybody may write, such as "0700" (you alone) '
            'or "0750" (your group)',
        )
    return mode


def without_nul(value: object) -> object:
    """Return a value that holds no NUL: C libraries take a path or a text to end there."""
    parts: list[object] = [value]
    while parts:
        part = parts.pop()
        if isinstance(part, str) and "\0" in part:
            raise PydanticCustomError("nul", "must hold no NUL character")
        if isinstance(part, Mapping):
            parts += [*part.keys(), *part.values()]
        elif isinstance(part, list | tuple):
            parts += part
    return value


Positive = Annotated[int, Field(ge=1, le=10**9)]
Level = Annotated[int, Field(ge=0), BeforeValidator(_level)]
Megabytes = Annotated[float, Field(gt=0, le=1e6)]
Place = Annotated[str, Field(min_length=1), BeforeValidator(_place)]
Address = Annotated[str, AfterValidator(_address)]
BrokerAddress = Annotated[str, AfterValidator(_broker)]
StorageUrl = Annotated[str, AfterValidator(_storage_url)]
PostgresAddress = Annotated[str, AfterValidator(_without_password)]
EnvironmentVariable = Annotated[str, AfterValidator(_environment_variable)]
Share = Annotated[float, Field(ge=0, le=1)]
Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Rights = Annotated[str, BeforeValidator(_rights)]
Label = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:@-]{0,63}$")]


class Section(BaseModel):
    """A section of settings, which never change."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    _nul = field_validator("*", mode="before")(without_nul)
