"""Content security policy of pages: their own scripts and styles, by hash, and nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable


def policy(scripts: Iterable[str], styles: Iterable[str], *, is_served: bool = False) -> str:
    """Return the Content-Security-Policy (W3C, level 3) of a page with such inline elements.

    It loads nothing and sends nothing; one that ``is_served`` may ask its own server. Text of a
    document that got into the page as an element or an attribute would neither run nor look like
    anything.
    """
    asking = "connect-src 'self'; frame-ancestors 'none'; " if is_served else ""
    return (
        f"default-src 'none'; script-src {_hashes(scripts)}; style-src {_hashes(styles)}; "
        f"{asking}img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hashes(texts: Iterable[str]) -> str:
    digests = (hashlib.sha256(text.encode()).digest() for text in texts)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
