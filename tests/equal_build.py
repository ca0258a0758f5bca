"""Build an index of batches that are cut already, as one of two machines would: see test_equality.

``python equal_build.py FOLDER THREADS ORDER``: the batches are ingested in this order, by their
places.
"""

from __future__ import annotations

import sys
from pathlib import Path

from conftest import Engine
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.store import index_store


def main() -> None:
    """Build it as far as the reports."""
    folder, threads, order = sys.argv[1:]
    index_store._spare_threads = lambda con, *_: con.execute(f"SET threads = {int(threads)}")
    engine = Engine(Path(folder), Settings())
    keys = [batch.key for batch in engine.log.batches()]
    for place in order.split(","):
        engine.ingest(keys[int(place)])
    engine.merge()
    engine.cluster()
    engine.report(levels=3)


if __name__ == "__main__":
    main()
