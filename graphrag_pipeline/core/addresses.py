"""Permanent links: addresses of a server's page, each of one thing of one release."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from graphrag_pipeline.core.rows import sql_literal

if TYPE_CHECKING:
    from graphrag_pipeline.core.settings import Settings

_DEFAULT = "default"


@dataclass(frozen=True)
class PermanentLinks:
    """Links to the things of one release, as a server at ``base`` gives it.

    ``base`` is where the server is reached, with or without a slash at its end.
    """

    base: str
    collection: str
    release: str

    def around(self, kind: str) -> tuple[str, str]:
        """Return what stands before and after the id of a thing in its link; see :meth:`of`."""
        return self._before(kind), self._after

    def of(self, kind: str, id: str, span: tuple[int, int] | None = None) -> str:
        """Return the link to a thing; ``kind`` is ``documents``, ``entities``, ``communities`` or
        ``reports``, ``span`` the characters of a document to mark."""
        return f"{self._before(kind)}{quote(id, safe='')}{self._after}{_marked(span)}"

    def sql(self, kind: str, id: str, span: tuple[str, str] | None = None) -> str:
        """Return DuckDB's expression for the link; ``id`` and ``span`` are expressions, too."""
        parts = [sql_literal(self._before(kind)), f"url_encode({id})", sql_literal(self._after)]
        if span is not None:
            parts += ["'&start='", f"({span[0]})", "'&end='", f"({span[1]})"]
        return f"({' || '.join(parts)})"

    def _before(self, kind: str) -> str:
        return f"{self.base.rstrip('/')}/{kind}/"

    @property
    def _after(self) -> str:
        place = {"collection": self.collection, "release": self.release}
        return f"?{urlencode(place, quote_via=quote)}"


def links_of(
    settings: Settings, release: str, *, home: Path | None = None
) -> PermanentLinks | None:
    """Return the links to a release of a home (default: that of the settings).

    None where ``server.address`` is not set, or no collection of the server is that home.
    """
    server = settings.server
    place = os.path.abspath(home or settings.home_path)
    names = [
        name
        for name, folder in server.collections.items()
        if os.path.abspath(Path(folder).expanduser()) == place
    ]
    if place == os.path.abspath(settings.home_path) and _DEFAULT not in server.collections:
        names = [_DEFAULT]
    return PermanentLinks(server.address, names[0], release) if server.address and names else None


def _marked(span: tuple[int, int] | None) -> str:
    return "" if span is None else f"&start={span[0]}&end={span[1]}"
