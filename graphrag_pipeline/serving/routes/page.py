"""`/` and `/page/...`: the page to ask on, which is files of this package and asks the addresses.

What it may do is said by its policy: run and show its own files, and speak to this server alone.
Text can never become a program or an element there: the browser refuses it (trusted types).
"""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles

FOLDER = Path(__file__).parents[1] / "page"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)

router = APIRouter(include_in_schema=False)
files = StaticFiles(directory=FOLDER)


@router.get("/")
async def page() -> Response:
    """Return the page."""
    headers = {"content-security-policy": POLICY}
    return FileResponse(FOLDER / "index.html", headers=headers, media_type="text/html")
