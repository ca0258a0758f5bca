"""Telling people what went wrong, once, and when it is mended.

What has been told is in a file of the home, so that a command line started by cron and Dagster's
sensors tell of the same outage once together. A hook that fails harms nobody: the log says so, and
it is tried again whenever there is word of the same thing.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from graphrag_pipeline.core.environment import variable
from graphrag_pipeline.core.errors import ConfigError, GraphRAGError, StorageError
from graphrag_pipeline.core.hardening.files import write_beside
from graphrag_pipeline.core.hardening.locks import locked
from graphrag_pipeline.core.home import Home, make_home
from graphrag_pipeline.core.rows import one_line
from graphrag_pipeline.core.settings import MAIL_SERVER, WEBHOOK, Settings

log = logging.getLogger("graphrag_pipeline")

MODEL = "the model"
"""What is told of when the model is out of reach, whichever run has met it."""
_SECONDS = 15
_LONGEST = 2000


class HookError(GraphRAGError):
    """A notice could not be delivered; the message names no address."""

    exit_code = ConfigError.exit_code


@dataclass(frozen=True)
class Notice:
    """``event`` is failed, mended, waits or test; ``what`` it is about; ``text`` says the rest."""

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

    def failed(self, what: str, why: str) -> list[str]:
        """Tell that something failed, each hook once since it last went well.

        Returns a line for each hook that did not work.
        """
        return self._tell("failed", what, why)

    def waits(self, what: str, why: str) -> list[str]:
        """Tell that something waits for a person, each hook once until :meth:`goes_on`.

        Returns a line for each hook that did not work.
        """
        return self._tell("waits", what, why)

    def goes_on(self, what: str) -> None:
        """Note that something waits no longer; nobody is told of what a person allowed."""
        if self._file.exists():
            with self._noted() as noted:
                noted.pop(what, None)

    def _tell(self, event: str, what: str, why: str) -> list[str]:
        hooks = set(dict(self._hooks()))
        if not hooks:
            return []
        with self._noted() as noted:
            before = noted.get(what)
            heard = before.hooks if before and not before.is_over else frozenset()
            noted[what] = _Noted(before.why if before and heard else why, heard | hooks)
        errors = self._send(Notice(event, what, f"{why}\n{self._index}"), hooks - heard)
        with self._noted() as noted:
            if errors and what in noted:
                noted[what] = replace(noted[what], hooks=noted[what].hooks - errors.keys())
        return list(errors.values())

    def mended(self, what: str) -> list[str]:
        """Tell that something goes well again, those hooks that told that it does not.

        Returns a line for each hook that did not work.
        """
        if not self._file.exists():
            return []
        with self._noted() as noted:
            told = noted.pop(what, None)
        if told is None:
            return []
        text = f"It works again. The failure was: {told.why}\n{self._index}"
        errors = self._send(Notice("mended", what, text), told.hooks)
        with self._noted() as noted:
            if errors and what not in noted:
                noted[what] = _Noted(told.why, frozenset(errors), is_over=True)
        return list(errors.values())

    def test(self) -> list[str]:
        """Send a test by each hook; return what worked.

        Raises ConfigError where no hook is set, HookError, a line for each, where some fail.
        """
        hooks = dict(self._hooks())
        if not hooks:
            raise ConfigError(
                f"there is nobody to notify: set {WEBHOOK}, or email or command in [notify]"
            )
        notice = Notice("test", str(self._settings.home_path), "This is a test.")
        errors = self._deliver(notice, hooks)
        if errors:
            raise HookError("\n".join(errors.values()))
        return list(hooks)

    def _send(self, notice: Notice, hooks: Collection[str]) -> dict[str, str]:
        errors = self._deliver(notice, hooks)
        for error in errors.values():
            log.warning("%s", error)
        return errors

    def _deliver(self, notice: Notice, hooks: Collection[str]) -> dict[str, str]:
        errors: dict[str, str] = {}
        for name, deliver in self._hooks():
            if name in hooks:
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
    def _noted(self) -> Iterator[dict[str, _Noted]]:
        """Yield what is told of now, to be changed; other processes wait meanwhile.

        Where the change cannot be written, the disk being full, things are told again and again.
        """
        with contextlib.ExitStack() as lock:
            with contextlib.suppress(OSError, StorageError):
                make_home(self._settings)
                lock.enter_context(locked(self._file.with_suffix(".lock")))
            before = _read(self._file)
            noted = dict(before)
            yield noted
            heard = {what: each for what, each in noted.items() if each.hooks}
            if heard != before:
                with contextlib.suppress(OSError, StorageError):
                    plain = {what: each.plain() for what, each in heard.items()}
                    write_beside(self._file, json.dumps(plain).encode())


@dataclass(frozen=True)
class _Noted:
    """A reason why something failed, and the ``hooks`` that have told of it.

    Where ``is_over`` it goes well again, and these have not told that.
    """

    why: str
    hooks: frozenset[str]
    is_over: bool = False

    def plain(self) -> dict[str, object]:
        return {"why": self.why, "hooks": sorted(self.hooks), "over": self.is_over}


def _read(file: Path) -> dict[str, _Noted]:
    try:
        return {
            str(what): _Noted(str(each["why"]), frozenset(each["hooks"]), bool(each["over"]))
            for what, each in json.loads(file.read_text(encoding="utf-8")).items()
        }
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
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
        raise HookError(f"the server in {MAIL_SERVER} refused the mail ({_kind(error)})") from None


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
