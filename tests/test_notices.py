"""Hooks that tell people: what they are sent, how often, and what happens where they fail."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from graphrag_pipeline.cli.app import app
from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.notices import HookError, Notifier
from graphrag_pipeline.core.settings import Settings, load_settings

SECRET = "T000-B000-very-secret"


class Webhook(ThreadingHTTPServer):
    """Takes what Slack takes: JSON with a text; ``status`` is its answer."""

    daemon_threads = True

    def __init__(self) -> None:
        self.status = 200
        self.texts: list[str] = []
        super().__init__(("127.0.0.1", 0), _Hook)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/services/{SECRET}"


class _Hook(BaseHTTPRequestHandler):
    server: Webhook

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert list(body) == ["text"]
        assert self.headers["Content-Type"] == "application/json"
        if self.server.status == 200:
            self.server.texts.append(body["text"])
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Mailbox(socketserver.ThreadingTCPServer):
    """As much of SMTP (RFC 5321) as one plain message needs; no TLS, no login."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        self.letters: list[str] = []
        self.addresses: list[str] = []
        super().__init__(("127.0.0.1", 0), _Smtp)


class _Smtp(socketserver.StreamRequestHandler):
    server: Mailbox

    def handle(self) -> None:
        self._say("220 ready")
        while line := self.rfile.readline().decode().strip():
            word = line[:4].upper()
            if word == "RCPT":
                self.server.addresses.append(line.split(":", 1)[1])
            if word == "DATA":
                self._say("354 go on")
                letter = b"".join(iter(self.rfile.readline, b".\r\n"))
                self.server.letters.append(letter.decode())
            self._say("221 bye" if word == "QUIT" else "250 fine")
            if word == "QUIT":
                return

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


@contextmanager
def serving(server: Any) -> Iterator[Any]:
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def webhook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Webhook]:
    with serving(Webhook()) as server:
        monkeypatch.setenv("GRAPHRAG_WEBHOOK_URL", server.url)
        yield server


def notifier(home: Path, **notify: Any) -> Notifier:
    return Notifier(Settings(home=str(home), notify=notify))


def test_a_failure_is_told_once_until_it_is_mended(tmp_path: Path, webhook: Webhook) -> None:
    for _ in range(3):
        notifier(tmp_path).failed("the model", "429 <!channel> & more")
    notifier(tmp_path).failed("job refresh", "no disk")
    assert webhook.texts == [
        f"*graphrag: the model failed*\n429 &lt;!channel&gt; &amp; more\nIndex: {tmp_path}",
        f"*graphrag: job refresh failed*\nno disk\nIndex: {tmp_path}",
    ]
    for _ in range(2):
        notifier(tmp_path).mended("the model")
    assert len(webhook.texts) == 3
    assert webhook.texts[2].startswith("*graphrag: the model mended*")
    notifier(tmp_path).failed("the model", "again")
    assert len(webhook.texts) == 4


def test_what_nobody_heard_of_is_told_again(tmp_path: Path, webhook: Webhook, caplog: Any) -> None:
    webhook.status = 500
    notifier(tmp_path).failed("the model", "gone")
    assert "webhook: the address in GRAPHRAG_WEBHOOK_URL answered 500" in caplog.text
    assert SECRET not in caplog.text
    webhook.status = 200
    notifier(tmp_path).failed("the model", "gone")
    assert len(webhook.texts) == 1


def test_a_hook_that_failed_beside_another_is_tried_again_alone(
    tmp_path: Path, webhook: Webhook
) -> None:
    mark = tmp_path / "marks"
    mark.write_text("")
    command = ["sh", "-c", f'echo "$GRAPHRAG_EVENT" >> {mark}']
    webhook.status = 500
    assert "answered 500" in notifier(tmp_path, command=command).failed("the model", "gone")[0]
    assert (webhook.texts, mark.read_text()) == ([], "failed\n")
    webhook.status = 200
    for _ in range(2):
        assert notifier(tmp_path, command=command).failed("the model", "gone") == []
    assert (len(webhook.texts), mark.read_text()) == (1, "failed\n")
    webhook.status = 500
    assert len(notifier(tmp_path, command=command).mended("the model")) == 1
    webhook.status = 200
    for _ in range(2):
        assert notifier(tmp_path, command=command).mended("the model") == []
    assert mark.read_text() == "failed\nmended\n"
    assert [text.split("*")[1] for text in webhook.texts] == [
        "graphrag: the model failed",
        "graphrag: the model mended",
    ]


def test_who_never_heard_of_a_failure_is_not_told_that_it_is_mended(
    tmp_path: Path, webhook: Webhook
) -> None:
    webhook.status = 500
    given = notifier(tmp_path, command=["true"])
    given.failed("the model", "gone")
    webhook.status = 200
    given.mended("the model")
    assert webhook.texts == []


def test_without_hooks_nothing_is_written_and_a_test_says_what_to_set(tmp_path: Path) -> None:
    notifier(tmp_path).failed("the model", "gone")
    notifier(tmp_path).mended("the model")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConfigError, match="set GRAPHRAG_WEBHOOK_URL, or email or command"):
        notifier(tmp_path).test()


def test_mail_goes_to_every_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Mailbox()) as mailbox:
        port = mailbox.server_address[1]
        monkeypatch.setenv("GRAPHRAG_SMTP_URL", f"smtp://127.0.0.1:{port}")
        given = notifier(tmp_path, email=["a@example.org", "b@example.org"])
        given.failed("batch 1\r\nBcc: evil@example.org", "naïve.pdf\nSubject: no")
    assert mailbox.addresses == ["<a@example.org>", "<b@example.org>"]
    (letter,) = mailbox.letters
    head, _, body = letter.partition("\r\n\r\n")
    assert "Subject: graphrag: batch 1 Bcc: evil@example.org failed" in head
    assert "\r\nBcc:" not in head
    assert "Subject: no" in body


@pytest.mark.parametrize(
    ("environment", "notify", "reason"),
    [
        ({"GRAPHRAG_WEBHOOK_URL": f"http://127.0.0.1:9/{SECRET}"}, {}, "webhook: .* not answer"),
        ({"GRAPHRAG_WEBHOOK_URL": f"file:///{SECRET}"}, {}, "webhook: .* must begin with https"),
        ({"GRAPHRAG_SMTP_URL": f"smtp://u:{SECRET}@127.0.0.1:9"}, {"email": ["a@b.org"]},
         "email: the server in GRAPHRAG_SMTP_URL refused the mail"),
        ({}, {"email": ["a@b.org"]}, "email: set GRAPHRAG_SMTP_URL to smtp://"),
        ({}, {"command": ["/no/such/program"]}, "command: /no/such/program cannot be run"),
        ({}, {"command": ["false"]}, "command: false ended with exit code 1"),
    ],
)  # fmt: skip
def test_a_hook_that_fails_harms_nobody_and_shows_no_secret(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    environment: dict[str, str],
    notify: dict[str, Any],
    reason: str,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    notifier(tmp_path, **notify).failed("the model", "gone")
    with pytest.raises(HookError, match=reason) as error:
        notifier(tmp_path, **notify).test()
    assert SECRET not in caplog.text + str(error.value)
    assert error.value.exit_code == ConfigError.exit_code


def test_secrets_may_be_in_the_file_beside_the_settings(
    tmp_path: Path, webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GRAPHRAG_WEBHOOK_URL")
    (tmp_path / "graphrag.toml").write_text("")
    (tmp_path / ".env").write_text(f"GRAPHRAG_WEBHOOK_URL={webhook.url}\n")
    settings = load_settings(tmp_path / "graphrag.toml", home=str(tmp_path))
    assert Notifier(settings).test() == ["webhook"]
    assert SECRET not in settings.model_dump_json()


def test_the_command_line_tells_of_a_failed_index_and_sends_a_test(
    tmp_path: Path, webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("Alice Smith met Bob Jones in Ulm.")
    result = CliRunner().invoke(app, ["notify"])
    assert result.output == "Sent by webhook.\n"
    monkeypatch.setenv("GRAPHRAG_PROFILE", "llm")
    monkeypatch.setenv("GRAPHRAG_LLM__MAX_COST", "1")
    monkeypatch.setenv("GRAPHRAG_LLM__MODEL", "unheard-of")
    monkeypatch.setenv("GRAPHRAG_LLM__BASE_URL", "https://models.example/v1")
    for _ in range(2):
        assert CliRunner().invoke(app, ["index", "docs"]).exit_code != 0
    assert len(webhook.texts) == 2
    assert "max_cost needs a price for unheard-of" in webhook.texts[1]
    assert CliRunner().invoke(app, ["index", "gone"]).exit_code == 2
    assert len(webhook.texts) == 2
    monkeypatch.setenv("GRAPHRAG_PROFILE", "embedded")
    assert CliRunner().invoke(app, ["index", "docs"]).exit_code == 0
    assert webhook.texts[2].startswith("*graphrag: index mended*")
