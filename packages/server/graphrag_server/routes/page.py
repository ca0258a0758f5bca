"""`/`, `/documents/{id}`, `/explorer` and so on: pages, which are files of this package.

All but the explorer are one page: it shows what its address names, and asks `/v1` for it. What one
may do is said by its policy: run and show its own files, and speak to this server alone.
On the page to ask on, text can never become an element: the browser refuses it (trusted types).
"""

from __future__ import annotations

import functools
import gzip
import mimetypes
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from starlette.datastructures import Headers
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from graphrag_pipeline.pages.explorer import render_served
from graphrag_server.guard import LINKED, VIEWS

if TYPE_CHECKING:
    from starlette.types import Scope

FOLDER = Path(__file__).parents[1] / "page"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
# Chat programs add words to find to an address (``#:~:text=``): the browser would mark those too.
_NO_WORDS = "force-load-at-top"

router = APIRouter(include_in_schema=False)


class _Packed(StaticFiles):
    """Files of the page, packed once by gzip for whoever takes that: a quarter of their size."""

    def file_response(
        self, full_path: Any, stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        """Return a file as it is asked for."""
        headers = {"vary": "Accept-Encoding"}
        if "gzip" not in Headers(scope=scope).get("accept-encoding", ""):
            return super().file_response(full_path, stat_result, scope, status_code)
        kind = mimetypes.guess_type(str(full_path))[0] or "text/plain"
        headers["content-encoding"] = "gzip"
        packed = _gzipped(str(full_path), stat_result.st_mtime_ns)
        return Response(packed, status_code, headers, media_type=kind)


@functools.cache
def _gzipped(file: str, changed: int) -> bytes:
    return gzip.compress(Path(file).read_bytes(), mtime=0)


files = _Packed(directory=FOLDER)


async def page(request: Request) -> Response:
    """Return the page; for an address with ``.json`` behind it, where its data is."""
    url = request.url
    if url.path.endswith(".json"):
        asked = f"?{url.query}" if url.query else ""
        # Of the address that was called, not of one that its path may be taken for ("//host").
        place = quote(url.path.removesuffix(".json").strip("/"))
        return RedirectResponse(f"/v1/{place}{asked}")
    headers = {"content-security-policy": POLICY, "document-policy": _NO_WORDS}
    return FileResponse(FOLDER / "index.html", headers=headers, media_type="text/html")


for _path in (*VIEWS, *(f"{kind}{{id}}" for kind in LINKED)):
    router.get(_path)(page)


@router.get("/explorer")
async def explorer() -> Response:
    """Return the explorer, which asks for the graph at ``/v1/explorer``."""
    page, policy = _explorer()
    headers = {"content-security-policy": policy}
    return Response(page, headers=headers, media_type="text/html")


@functools.cache
def _explorer() -> tuple[str, str]:
    return render_served("/v1/explorer")
