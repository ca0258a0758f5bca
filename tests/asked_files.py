"""What tests of answers share: files in, an engine that is asked about their index out."""

from collections.abc import Iterator, Mapping

import pytest

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.index import Index
from graphrag_pipeline.query import QueryEngine


def index_asked(files: Mapping[str, str], folders: pytest.TempPathFactory) -> Iterator[QueryEngine]:
    """Yield an engine of an index of the files, by their paths in a folder."""
    folder, home = folders.mktemp("files"), folders.mktemp("home")
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    settings = Settings(home=str(home))
    Index(settings).update(folder)
    with QueryEngine(home, settings=settings) as engine:
        yield engine
