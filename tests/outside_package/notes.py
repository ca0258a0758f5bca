"""notes.py: a file of the home in which people note something about documents."""

import csv
import io

from graphrag_pipeline.core.hardening.files import write_beside
from graphrag_pipeline.store.index_store import connect_published
from graphrag_pipeline.upkeep.home_files import HomeFile

COLUMNS = ["document", "note"]


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def fault(path):
    return "" if read(path)[:1] == [COLUMNS] else "its first line is not document,note"


def purge(path, published):
    """Take out the notes on documents that are gone."""
    with connect_published(published) as con:
        documents = {uri for (uri,) in con.execute("SELECT uri FROM documents").fetchall()}
    notes = [row for row in read(path)[1:] if row[0] in documents]
    text = io.StringIO()
    csv.writer(text).writerows([COLUMNS, *notes])
    write_beside(path, text.getvalue().encode())


NOTES = HomeFile(
    about="What people note about documents.",
    in_backup=True,
    fault=fault,
    remedy="write document,note above the notes",
    purge=purge,
)
