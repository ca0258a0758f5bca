"""The HTTP server of the project, on loopback, in a thread of the test's own process."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import requests
import uvicorn
from graphrag_server.app import create_app
from graphrag_server.collections import Collections
from graphrag_server.connections import H11_BYTES, Punctual, Watched
from graphrag_server.keys import Keyring
from query_fixture import settings_for

from graphrag_pipeline.core.settings import ServerSettings, Settings
from graphrag_pipeline.query.open_engine import Holder


def bearer(key: str) -> dict[str, str]:
    """Return the header that shows a key."""
    return {"Authorization": f"Bearer {key}"}


class Served:
    """A server over some homes, from ``with`` to the end of its block."""

    def __init__(
        self,
        homes: Mapping[str, Path | Settings],
        keyring: Keyring | None = None,
        *,
        http: type[Watched] = Punctual,
        **server: Any,
    ) -> None:
        self.holders = {
            name: Holder(name, home if isinstance(home, Settings) else settings_for(home))
            for name, home in homes.items()
        }
        self.app = create_app(
            Collections(self.holders, next(iter(homes))), ServerSettings(**server), keyring
        )
        config = uvicorn.Config(
            self.app,
            port=0,
            log_level="critical",
            lifespan="on",
            http=http,
            h11_max_incomplete_event_size=H11_BYTES,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self.http = requests.Session()
        self.http.trust_env = False

    def __enter__(self) -> Self:
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive()
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()
        self._server.should_exit = True
        self._thread.join(timeout=20)

    @property
    def port(self) -> int:
        return self._server.servers[0].sockets[0].getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def limits(self) -> Any:
        return self.app.state.server.limits

    def get(self, path: str, **given: Any) -> requests.Response:
        return self.http.get(self.url + path, timeout=60, **given)

    def post(self, path: str, key: str = "", **body: Any) -> requests.Response:
        headers = bearer(key) if key else {}
        return self.http.post(self.url + path, json=body, headers=headers, timeout=60)
