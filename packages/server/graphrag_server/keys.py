"""The keys by which callers are known: made, listed, revoked; stored as hashes alone.

A key reads ``grp_<id>_<secret>``. The secret is 256 random bits, so that its SHA-256 needs neither
salt nor rounds. The id is no secret: logs and the audit name a key by it.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from graphrag_pipeline.core.errors import InputError, StorageError
from graphrag_pipeline.core.hardening.files import write_beside
from graphrag_pipeline.core.hardening.locks import locked
from graphrag_pipeline.core.home import make_home
from graphrag_server.paths import ServerFiles

if TYPE_CHECKING:
    from graphrag_pipeline.core.settings import Settings

SCOPES = {
    "query": "ask questions",
    "read": "read documents, entities, communities, reports",
    "sql": "ask SQL",
    "write": "upload documents, change entities",
    "metrics": "read the numbers of the server",
}
"""What a key may be for, and what each of them allows."""
EVERYTHING = "*"
"""In place of a list of collections or labels: all of them."""

_KEY = re.compile(r"grp_([0-9a-f]{8})_([0-9a-f]{64})")
_ANY_KEY = re.compile(r"grp_[0-9a-f]{8}_[0-9a-f]{8,}")
_NAME = re.compile(r"\w[\w.@ -]{0,63}")
_LABEL = re.compile(r"[^\s,*](?:[^,*\x00-\x1f\x7f]{0,62}[^\s,*])?")
# What no secret has for its hash, so that an unknown id takes as long as a known one.
_NOBODYS = "0" * 64


def _scope(name: str) -> str:
    if name not in SCOPES:
        raise ValueError(f"there is no scope {name!r}: use {', '.join(SCOPES)}")
    return name


def _plain_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError("a name has 1 to 64 letters, digits, spaces and . _ - @")
    return name


def _label(name: str) -> str:
    if name != EVERYTHING and not _LABEL.fullmatch(name):
        raise ValueError(f"{name[:64]!r} is no label: at most 64 characters, and no comma")
    return name


class Key(BaseModel):
    """A key: whose it is and what it allows, and the hash of its secret."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(pattern=r"^[0-9a-f]{8}$")
    name: Annotated[str, AfterValidator(_plain_name)]
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", repr=False)
    collections: frozenset[str] = Field(min_length=1)
    labels: frozenset[Annotated[str, AfterValidator(_label)]] = frozenset()
    scopes: frozenset[Annotated[str, AfterValidator(_scope)]] = Field(min_length=1)
    created: AwareDatetime
    expires: AwareDatetime | None = None
    revoked: AwareDatetime | None = None
    requests_per_minute: int | None = Field(None, ge=1)
    tokens_per_minute: int | None = Field(None, ge=1)
    budget_usd: float | None = Field(None, ge=0, allow_inf_nan=False)

    def state(self, now: datetime) -> str:
        """Return whether it opens anything: active, expired or revoked."""
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and self.expires <= now else "active"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON; the hash is left out."""
        plain = self.model_dump(mode="json", exclude={"sha256"})
        lists = {name: sorted(plain[name]) for name in ("collections", "labels", "scopes")}
        return {**plain, **lists, "state": self.state(_now())}


class _KeyFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    keys: list[Key] = []


def add_key(settings: Settings, name: str, **allowed: Any) -> tuple[Key, str]:
    """Make a key; return what is known of it, of which the home keeps a file, and the key itself.

    ``allowed`` are the other fields of :class:`Key`. Raises InputError for what a key cannot have,
    or for a name that another key has which is not revoked.
    """
    identity, secret = secrets.token_hex(4), secrets.token_hex(32)
    try:
        key = Key(id=identity, name=name, sha256=_hash_of(secret), created=_now(), **allowed)
    except ValidationError as error:
        raise InputError(_first_of(error)) from None
    if key.state(_now()) == "expired":
        raise InputError("a key that has expired already opens nothing: name a later day")
    make_home(settings)
    with _changed(settings) as keys:
        if any(other.name == name and other.revoked is None for other in keys):
            raise InputError(
                f"there is a key of the name {name} already: choose another, or revoke that one"
            )
        keys.append(key)
    return key, f"grp_{identity}_{secret}"


def revoke_key(settings: Settings, named: str) -> Key:
    """Revoke an active key by its id or its name, and return it.

    Servers see it with the next request. Raises InputError where there is no such key.
    """
    if not ServerFiles(settings.home_path).keys.is_file():
        raise InputError(f"there are no keys in {settings.home_path}")
    with _changed(settings) as keys:
        for n, key in enumerate(keys):
            if named in (key.id, key.name) and key.revoked is None:
                keys[n] = key.model_copy(update={"revoked": _now()})
                break
        else:
            raise InputError(f"there is no key {named} to revoke: see graphrag-pipeline keys list")
        return keys[n]


def read_keys(path: Path) -> list[Key]:
    """Return the keys of a file, also those that are over; none where there is no file.

    Raises StorageError where it cannot be read, or where others may change it.
    """
    try:
        with path.open("rb") as file:
            if os.name != "nt" and stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o022:
                raise StorageError(f"others may change the keys in {path}: chmod 600 {path}")
            return _KeyFile.model_validate_json(file.read()).keys
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror or error}") from None
    except ValidationError:
        raise StorageError(
            f"{path} is damaged: remove it, and make the keys anew by graphrag-pipeline keys add"
        ) from None


class Keyring:
    """The keys of one file as they are now: it is read anew when it has changed.

    ``path`` None: there are none, ever. ``required``: nobody comes in without a key, even where
    there is none; from the first key on that holds too, so that a file which is lost opens nothing.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        required: bool = False,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self.path = path
        self._required = required
        self._clock = clock or _now
        self._stamp: object = None
        self._keys: dict[str, Key] = {}

    @property
    def home(self) -> Path | None:
        """The folder of the file."""
        return self.path and self.path.parent

    @property
    def is_required(self) -> bool:
        """Whether a caller needs a key."""
        self._look()
        return self._required

    def find(self, presented: str) -> Key | None:
        """Return the active key that somebody presents, or None where it is none.

        The time it takes tells nothing of a secret. Raises StorageError where keys cannot be read.
        """
        self._look()
        match = _KEY.fullmatch(presented)
        identity, secret = match.groups() if match else ("", "")
        key = self._keys.get(identity)
        is_right = hmac.compare_digest(_hash_of(secret), key.sha256 if key else _NOBODYS)
        return key if key and is_right and key.state(self._clock()) == "active" else None

    def _look(self) -> None:
        if self.path is None:
            return
        try:
            about = self.path.stat()
            stamp = about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_mode
        except FileNotFoundError:
            stamp = None
        except OSError as error:
            raise StorageError(f"cannot read {self.path}: {error.strerror}") from None
        if stamp != self._stamp:
            self._keys = {key.id: key for key in read_keys(self.path)}
            self._required = self._required or bool(self._keys)
            self._stamp = stamp


def without_keys(text: str) -> str:
    """Return a text with the keys in it made unreadable."""
    return _ANY_KEY.sub("grp_***", text)


@contextlib.contextmanager
def _changed(settings: Settings) -> Iterator[list[Key]]:
    """Yield the keys, and write them where the list was changed."""
    home = ServerFiles(settings.home_path)
    with _locked(home.keys_lock):
        before = read_keys(home.keys)
        keys = list(before)
        yield keys
        if keys != before:
            data = _KeyFile(keys=keys).model_dump_json(indent=1).encode()
            write_beside(home.keys, data, is_private=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(path))
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error.strerror or error}") from None
        yield


def _hash_of(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def _first_of(error: ValidationError) -> str:
    problem = error.errors()[0]
    return f"{problem['loc'][0]}: {problem['msg'].removeprefix('Value error, ')}"
