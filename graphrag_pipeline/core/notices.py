"""Telling people what went wrong, once, and when it is mended.

What has been told is in a file of the home, so that a command line started by cron and Dagster's
sensors tell of the same outage once together. A hook that fails harms nobody: the log says so.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from graphrag_pipeline.core.environment import variable
from graphrag_pipeline.core.errors import ConfigError, GraphRAGError, StorageError
from graphrag_pipeline.core.files import write_beside
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.locks import locked
from graphrag_pipeline.core.rows import one_line
from graphrag_pipeline.core.settings import MAIL_SERVER, WEBHOOK, Settings

log = logging.getLogger("graphrag_pipeline")

MODEL = "the model"
"""What is told of when the model is out of reach, whichever run has met it."""
_SECONDS = 15
_LONGEST = 2000


class HookError(GraphRAGError):
    """A notice could not be delivered; the message names no address."""


@dataclass(frozen=True)
class Notice:
    """``event`` is failed, mended or test; ``what`` it happened to; ``text`` says the rest."""

    event: str
    what: str
    text: str

    @property
    def subject(self) -> str:
        """One line."""
        return f"graphrag: {one_line(self.what)} {self.event}"[:200]


class Notifier:
    """The hooks of one index."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._file = Home(settings.home_path).notices
        self._index = f"Index: {settings.home_path}"

    def failed(self, what: str, why: str) -> None:
        """Tell that something failed, unless it has been told since it last went well."""
        hooks = dict(self._hooks())
        if hooks and self._remember(what, why):
            errors = self._send(Notice("failed", what, f"{why}\n{self._index}"))
            if len(errors) == len(hooks):
                self._forget(what)

    def mended(self, what: str) -> None:
        """Tell that something goes well again, if people were told that it does not."""
        if self._file.exists() and (why := self._forget(what)) is not None:
            text = f"It works again. The failure was: {why}\n{self._index}"
            self._send(Notice("mended", what, text))

    def test(self) -> list[str]:
        """Send a test by each hook; return what worked.

        Raises ConfigError where no hook is set, HookError, a line for each, where some fail.
        """
        hooks = dict(self._hooks())
        if not hooks:
            raise ConfigError(
                f"nobody would be told: set {WEBHOOK}, or email or command in [notify]"
            )
        errors = self._deliver(Notice("test", str(self._settings.home_path), "This is a test."))
        if errors:
            raise HookError("\n".join(errors.values()))
        return list(hooks)

    def _send(self, notice: Notice) -> dict[str, str]:
        errors = self._deliver(notice)
        for error in errors.values():
            log.warning("%s", error)
        return errors

    def _deliver(self, notice: Notice) -> dict[str, str]:
        errors: dict[str, str] = {}
        for name, deliver in self._hooks():
            try:
                deliver(notice)
            except HookError as error:
                errors[name] = f"{name}: {error}"
        return errors

    def _hooks(self) -> Iterator[tuple[str, Callable[[Notice], None]]]:
        given, env_file = self._settings.notify, self._settings.llm.env_file
        if url := variable(WEBHOOK, env_file):
            yield "webhook", lambda notice: _post(url, notice)
        if given.email:
            server = variable(MAIL_SERVER, env_file)
            sender = given.sender or given.email[0]
            yield "email", lambda notice: _mail(server, sender, given.email, notice)
        if given.command:
            yield "command", lambda notice: _call(given.command, notice)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with locked(self._file.with_suffix(".lock")):
            yield

    def _remember(self, what: str, why: str) -> bool:
        """Note that something is told of; return whether it was not before.

        Where that cannot be noted, the disk being full, it is told again and again.
        """
        with contextlib.suppress(OSError, StorageError), self._alone():
            noted = _read(self._file)
            if what in noted:
                return False
            write_beside(self._file, json.dumps({**noted, what: why}).encode())
        return True

    def _forget(self, what: str) -> str | None:
        """Return what was told of something, and forget it."""
        why = None
        with contextlib.suppress(OSError, StorageError), self._alone():
            noted = _read(self._file)
            why = noted.pop(what, None)
            if why is not None:
                write_beside(self._file, json.dumps(noted).encode())
        return why


def _read(file: Path) -> dict[str, str]:
    try:
        return {str(k): str(v) for k, v in json.loads(file.read_text(encoding="utf-8")).items()}
    except (OSError, ValueError, AttributeError):
        return {}


def _post(url: str, notice: Notice) -> None:
    import urllib.error
    import urllib.request

    if urlsplit(url).scheme not in ("http", "https"):
        raise HookError(f"{WEBHOOK} must begin with https:// or http://")
    # As Slack wants it; so nothing that a file is named can call a whole channel.
    plain = f"*{notice.subject}*\n{notice.text[:_LONGEST]}"
    text = plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    body = json.dumps({"text": text}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS):
            pass
    except urllib.error.HTTPError as error:
        raise HookError(f"the address in {WEBHOOK} answered {error.code}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise HookError(f"the address in {WEBHOOK} does not answer ({_kind(reason)})") from None


def _mail(server: str, sender: str, addresses: tuple[str, ...], notice: Notice) -> None:
    import smtplib
    from email.message import EmailMessage

    parts = urlsplit(server)
    if parts.scheme not in ("smtp", "smtps") or not parts.hostname:
        raise HookError(f"set {MAIL_SERVER} to smtp://user:password@host:587")
    message = EmailMessage()
    try:
        message["Subject"], message["From"] = notice.subject, sender
        message["To"] = ", ".join(addresses)
        message.set_content(notice.text[:_LONGEST])
        connect = smtplib.SMTP_SSL if parts.scheme == "smtps" else smtplib.SMTP
        with connect(parts.hostname, parts.port or 0, timeout=_SECONDS) as smtp:
            smtp.ehlo()
            if parts.scheme == "smtp" and smtp.has_extn("starttls"):
                smtp.starttls()
            if parts.username:
                smtp.login(unquote(parts.username), unquote(parts.password or ""))
            smtp.send_message(message)
    except (OSError, ValueError, smtplib.SMTPException) as error:
        raise HookError(f"the server in {MAIL_SERVER} did not take it ({_kind(error)})") from None


def _call(command: tuple[str, ...], notice: Notice) -> None:
    import subprocess

    environment = {**os.environ, "GRAPHRAG_EVENT": notice.event, "GRAPHRAG_SUBJECT": notice.subject}
    text = f"{notice.subject}\n{notice.text}\n"
    try:
        ended = subprocess.run(
            command, input=text, text=True, env=environment, timeout=_SECONDS, check=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, ValueError) as error:
        raise HookError(f"{command[0]} cannot be run ({_kind(error)})") from None
    except subprocess.TimeoutExpired:
        raise HookError(f"{command[0]} took more than {_SECONDS} seconds") from None
    if ended.returncode:
        raise HookError(f"{command[0]} ended with exit code {ended.returncode}")


def _kind(error: object) -> str:
    """Return what kind of error it is: messages of libraries quote addresses and passwords."""
    return getattr(error, "strerror", None) or type(error).__name__
