"""Addresses of the page that a citation can point at: its passage, marked, or its report."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from graphrag_pipeline.core.addresses import PermanentLinks
from graphrag_server.state import holder_of, server_of

if TYPE_CHECKING:
    from fastapi import Request

    from graphrag_pipeline.query.results import Citation

LinkOf = Callable[["Citation"], str | None]
"""A function that gives the permanent link of a citation, None where no address is known."""

_HOST = re.compile(r"[A-Za-z0-9.:_\[\]-]+")


def no_link(_: Citation) -> None:
    """Return no link."""


def base_of(request: Request) -> str:
    """Return where whoever sends a request reaches this server, without a slash at the end.

    That is the address of the settings, or else what the request says: scheme, host, and where a
    proxy puts the server.
    """
    if address := server_of(request).address:
        return address.rstrip("/")
    if "server" not in request.scope:
        # An assistant's, over standard streams.
        return ""
    place = request.base_url.netloc
    # A request may name anything; what is no name of a host is left out of what others read.
    return str(request.base_url).rstrip("/") if _HOST.fullmatch(place) else ""


def citation_address(base: str, collection: str, release: str, citation: Citation) -> str:
    """Return the address of the page that shows what an answer of a release cites.

    ``base`` is where the server is reached, with or without a slash at its end. A passage is named
    by its document and the characters of it; a citation without a document by its report.
    """
    links = PermanentLinks(base, collection, release)
    if not citation.document_id:
        return links.of("reports", citation.report_id or "")
    return links.of("documents", citation.document_id, (citation.start_char, citation.end_char))


def answer_address(request: Request, collection: str | None, id: str) -> str | None:
    """Return the address of the page that shows an answer that is kept; None: it has none.

    ``collection`` is the one that whoever sends the request named.
    """
    base, name = base_of(request), holder_of(request, collection).name
    named = urlencode({"collection": name}, quote_via=quote)
    return f"{base}/answers/{quote(id, safe='')}?{named}" if base else None


def links_for(request: Request, collection: str | None, release: str) -> PermanentLinks | None:
    """Return the links that whoever sends a request can open; ``collection`` is the one he named.

    None where he comes by no address, and the settings name none.
    """
    base = base_of(request)
    return PermanentLinks(base, holder_of(request, collection).name, release) if base else None
