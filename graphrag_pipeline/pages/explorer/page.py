"""One HTML file with data, program and style inside; it asks nothing of any network."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from pydantic_core import to_json

from graphrag_pipeline.core.addresses import PermanentLinks, links_of
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.hardening.files import write_output
from graphrag_pipeline.core.settings import load_settings
from graphrag_pipeline.pages.explorer.data import page_data
from graphrag_pipeline.pages.policy import policy
from graphrag_pipeline.releases.older_releases import release_file
from graphrag_pipeline.store.bare_names import bare_names
from graphrag_pipeline.store.index_store import connect_published

_HERE = Path(__file__).parent
_LIBRARIES = _HERE / "vendor" / "graph-libraries.min.js"
# The next one takes two thirds more time for one per cent fewer bytes.
_LEVEL = 5


@dataclass(frozen=True)
class WrittenPage:
    """A page as written, with its size."""

    path: Path
    n_bytes: int
    release: str
    n_entities: int
    n_relationships: int
    n_communities: int
    n_untold: int
    """Entities whose texts the file had no room for."""


def write_page(home: Path, path: Path, release: str | None = None) -> WrittenPage:
    """Write the graph of a release as one self-contained HTML file, in place of what is there.

    ``release`` is the id of one that is kept, or its beginning; None: what readers see.

    Raises NothingPublishedError when there is no release, InputError when ``release`` is none of
    those kept or ``path`` is a folder, StorageError when a file cannot be read or written.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a file in it, such as {path / 'graph.html'}")
    links = partial(links_of, load_settings(home=home))
    data = read_data(release_file(home, release), links=links)
    html = render(data).encode()
    write_output(path, html)
    return WrittenPage(
        path=path,
        n_bytes=len(html),
        release=data["release"]["id"],
        n_entities=data["release"]["n_entities"],
        n_relationships=data["release"]["n_relationships"],
        n_communities=data["release"]["n_communities"],
        n_untold=n_untold(data),
    )


def read_data(
    file: Path, *, bare: bool = False, links: Callable[[str], PermanentLinks | None] | None = None
) -> dict[str, Any]:
    """Return what the page shows of the release in a file; see :func:`page_data`.

    ``bare``: no document is named by a path of this machine.
    Raises StorageError when the file cannot be read.
    """
    with connect_published(file) as con:
        if bare:
            bare_names(con)
        return page_data(con, links=links)


def packed(data: Mapping[str, Any], *, collection: str | None = None) -> bytes:
    """Return such columns as JSON, by gzip.

    ``collection`` is the one of the server that they are served by: the page then asks it for what
    it does not hold.
    """
    return gzip.compress(to_json({**data, "collection": collection}), _LEVEL, mtime=0)


def n_untold(data: Mapping[str, Any]) -> int:
    """Return how many entities a page has no description of, or does not draw."""
    told = sum(text is not None for text in data["entities"]["description"])
    return data["release"]["n_entities"] - told


def render(data: Mapping[str, Any]) -> str:
    """Return the page of such columns as :func:`page_data` gives.

    The data is packed (JSON, gzip, base64), so no text of a document can end its element or begin
    another. Only the page's own program and style may run, by their hashes.
    """
    return _rendered(data=base64.b64encode(packed(data)).decode())[0]


def render_served(source: str) -> tuple[str, str]:
    """Return the page without data, which it asks its server for at ``source``; and its policy."""
    return _rendered(source=source)


def _rendered(*, data: str = "", source: str = "") -> tuple[str, str]:
    libraries, style = (
        file.read_text(encoding="utf-8") for file in (_LIBRARIES, _HERE / "page.css")
    )
    # Numbered, for each of them uses those before it.
    program = "".join(file.read_text(encoding="utf-8") for file in sorted(_HERE.glob("js/*.js")))
    environment = Environment(
        loader=PackageLoader("graphrag_pipeline.pages.explorer", "."),
        autoescape=True,
        undefined=StrictUndefined,
    )
    allowed = policy([libraries, program], [style], is_served=bool(source))
    html = environment.get_template("page.html.j2").render(
        data=data,
        source=source,
        libraries=libraries,
        program=program,
        style=style,
        policy="" if source else allowed,
    )
    return html, allowed
