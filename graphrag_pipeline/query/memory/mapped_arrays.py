"""Arrays that a release carries, so that a reader maps them from a file and makes none.

``releases/ID.arrays`` holds the full-text index of each vector table, the vectors of small tables
that count words, the names of entities, and the graph with the rows that questions keep asking for:
numbers, ids and hashes, no text. It rests on the release alone and can be made again at any time. A
reader who finds none, or one of another version of the program, makes in memory what it needs.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path

from graphrag_pipeline.core.settings import fingerprint
from graphrag_pipeline.query.memory import entity_names, graph_arrays
from graphrag_pipeline.releases.kept_releases import arrays_file
from graphrag_pipeline.store.array_file import ArrayFile, Arrays, open_arrays, write_arrays
from graphrag_pipeline.store.full_text import FullText
from graphrag_pipeline.store.sparse_vectors import SparseArrays, SparseVectors, Versioned

GRAPH, NAMES = "graph", "names"
FULL_TEXT, VECTORS = "full text", "vectors"
_FORMAT = 2


@dataclass(frozen=True)
class CarriedArrays:
    """The arrays that a release carries, and which versions of vector tables they are of."""

    versions: Mapping[str, int]
    embedder: str
    _file: ArrayFile

    @classmethod
    def of_release(cls, home: Path, release: str) -> CarriedArrays | None:
        """Return those of a release; None where there are none that this program can use."""
        file = open_arrays(arrays_file(home, release))
        if file is None or file.facts.get("made_by") != _made_by():
            return None
        return cls(file.facts["versions"], file.facts["embedder"], file)

    def below(self, name: str) -> Arrays:
        """Return the arrays under a name."""
        return self._file.below(name)

    def full_texts(self, versions: Mapping[str, int]) -> dict[str, FullText]:
        """Return the full-text indexes of those tables that are held at these versions."""
        return {
            table: FullText.of_arrays(self.below(f"{FULL_TEXT}/{table}"))
            for table, version in versions.items()
            if version and self.versions.get(table) == version
        }

    def vectors(self, versions: Mapping[str, int]) -> dict[str, tuple[str, SparseVectors]]:
        """Return the embedder and the vectors of those tables held at these versions."""
        texts = self.full_texts(versions)
        carried = {table: self._sparse(table) for table in texts}
        return {
            table: (self.embedder, SparseVectors(texts[table].ids, arrays))
            for table, arrays in carried.items()
            if arrays is not None
        }

    def versioned(self, table: str) -> Versioned | None:
        """Return the vectors of a table with the versions of their rows, if it has any here."""
        arrays = self._sparse(table)
        if arrays is None:
            return None
        text = FullText.of_arrays(self.below(f"{FULL_TEXT}/{table}"))
        return Versioned(text.ids, text.versions, arrays)

    def _sparse(self, table: str) -> SparseArrays | None:
        arrays = self.below(f"{VECTORS}/{table}")
        return SparseArrays.of_arrays(arrays) if arrays else None


def rows_name(sql: str) -> str:
    """Return the name of the rows of a query."""
    return f"rows/{md5(sql.encode()).hexdigest()}"


def write_carried(
    file: Path,
    release: str,
    embedder: str,
    versions: Mapping[str, int],
    parts: Mapping[str, Arrays],
) -> None:
    """Write the arrays of a release, by the name that each group of them has.

    ``versions`` are those of its vector tables, made by ``embedder``. Raises StorageError.
    """
    arrays = {
        f"{name}/{each}": array for name, part in parts.items() for each, array in part.items()
    }
    facts = {
        "made_by": _made_by(),
        "release": release,
        "embedder": embedder,
        "versions": dict(versions),
    }
    write_arrays(file, arrays, facts)


@functools.cache
def _made_by() -> str:
    """Return a hash of what makes arrays: those of another program are not used."""
    made_from = [entity_names.NAMES_SQL, graph_arrays.GRAPH_SQL, str(_FORMAT)]
    return fingerprint(made_from)
