"""One HTML file with data, program and style inside; it asks nothing of any network."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.files import write_output
from graphrag_pipeline.pages.explorer.data import page_data
from graphrag_pipeline.pages.policy import policy
from graphrag_pipeline.releases.kept import release_file
from graphrag_pipeline.store.index_store import connect_published

_HERE = Path(__file__).parent
_LIBRARIES = _HERE / "vendor" / "graph-libraries.min.js"


@dataclass(frozen=True)
class WrittenPage:
    """What was written, and how much of it there is."""

    path: Path
    n_bytes: int
    release: str
    n_entities: int
    n_relationships: int
    n_communities: int


def write_page(home: Path, path: Path, release: str | None = None) -> WrittenPage:
    """Write the graph of a release as one self-contained HTML file, in place of what is there.

    ``release`` is the id of one that is kept, or its beginning; None: what readers see.

    Raises NothingPublishedError when there is no release, InputError when ``release`` is none of
    those kept or ``path`` is a folder, StorageError when a file cannot be read or written.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a file in it, such as {path / 'graph.html'}")
    con = connect_published(release_file(home, release))
    try:
        data = page_data(con)
    finally:
        con.close()
    page = render(data).encode()
    write_output(path, page)
    return WrittenPage(
        path=path,
        n_bytes=len(page),
        release=data["release"]["id"],
        n_entities=len(data["entities"]["title"]),
        n_relationships=len(data["relationships"]["source"]),
        n_communities=len(data["communities"]["title"]),
    )


def render(data: dict[str, Any]) -> str:
    """Return the page of such columns as :func:`page_data` gives.

    The data is packed (JSON, gzip, base64), so no text of a document can end its element or begin
    another. Only the page's own program and style may run, by their hashes.
    """
    libraries, style = (
        file.read_text(encoding="utf-8") for file in (_LIBRARIES, _HERE / "page.css")
    )
    # Numbered, for each of them uses those before it.
    program = "".join(file.read_text(encoding="utf-8") for file in sorted(_HERE.glob("js/*.js")))
    packed = gzip.compress(json.dumps(data, ensure_ascii=False).encode(), 6, mtime=0)
    environment = Environment(
        loader=PackageLoader("graphrag_pipeline.pages.explorer", "."),
        autoescape=True,
        undefined=StrictUndefined,
    )
    return environment.get_template("page.html.j2").render(
        data=base64.b64encode(packed).decode(),
        libraries=libraries,
        program=program,
        style=style,
        policy=policy([libraries, program], [style]),
    )
