"""`/`, `/documents/{id}`, `/explorer` and so on: pages, which are files of this package.

All but the explorer are one page: it shows what its address names, and asks `/v1` for it. What one
may do is said by its policy: run and show its own files, and speak to this server alone.
On the page to ask on, text can never become an element: the browser refuses it (trusted types).
"""

from __future__ import annotations

import functools
from pathlib import Path
from urllib.parse import quote

from fastapi import APIRouter, Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from graphrag_pipeline.pages.explorer import render_served
from graphrag_server.guard import LINKED, VIEWS

FOLDER = Path(__file__).parents[1] / "page"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
# Chat programs add words to find to an address (``#:~:text=``): the browser would mark those too.
_NO_WORDS = "force-load-at-top"

router = APIRouter(include_in_schema=False)
files = StaticFiles(directory=FOLDER)


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
