"""Addresses of the page that a citation can point at: its passage, marked, or its report."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from graphrag_server.state import server_of

if TYPE_CHECKING:
    from fastapi import Request

    from graphrag_pipeline.query.results import Citation

_HOST = re.compile(r"[A-Za-z0-9.:_\[\]-]+")


def base_of(request: Request) -> str:
    """Return where whoever sends a request reaches this server, without a slash at the end.

    That is the address of the settings, or else what the request says: scheme, host, and where a
    proxy puts the server.
    """
    if address := server_of(request).address:
        return address.rstrip("/")
    place = request.base_url.netloc
    # A request may name anything; what is no name of a host is left out of what others read.
    return str(request.base_url).rstrip("/") if _HOST.fullmatch(place) else ""


def citation_address(base: str, collection: str, release: str, citation: Citation) -> str:
    """Return the address of the page that shows what an answer of a release cites.

    ``base`` is where the server is reached, with or without a slash at its end. A passage is named
    by its document and the characters of it; a citation without a document by its report.
    """
    place = {"collection": collection, "release": release}
    if not citation.document_id:
        return _address(base, "reports", citation.report_id or "", place)
    span = {"start": str(citation.start_char), "end": str(citation.end_char)}
    return _address(base, "documents", citation.document_id, place | span)


def _address(base: str, kind: str, id: str, values: dict[str, str]) -> str:
    return f"{base.rstrip('/')}/{kind}/{quote(id, safe='')}?{urlencode(values, quote_via=quote)}"
