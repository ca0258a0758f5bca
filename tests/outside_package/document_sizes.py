"""document_sizes.py: how long documents are, noted for each release."""

import json

from graphrag_pipeline.core.hardening.files import write_beside
from graphrag_pipeline.marts.sql import query_published
from graphrag_pipeline.releases.measuring import Measure

SIZES = "SELECT count(*), avg(n_chars), (SELECT max(id) FROM releases) FROM documents"


def noted(workspace):
    path = workspace.home / "document_sizes.json"
    return json.loads(path.read_text()) if path.is_file() else {}


def measure(workspace):
    _, [(documents, characters, release)] = query_published(workspace.home, SIZES)
    sizes = {"documents": documents, "mean_characters": characters, "release": release}
    write_beside(workspace.home / "document_sizes.json", json.dumps(sizes).encode())
    return sizes


SIZES_OF_RELEASE = Measure(
    about="How long documents are.",
    label="sizes of documents",
    group="field_notes",
    measure=measure,
    is_made=lambda workspace, release: noted(workspace).get("release") == release,
)
