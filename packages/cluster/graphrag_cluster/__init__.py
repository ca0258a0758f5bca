"""Workers: parts of batches made on other machines, and taken in by the one that has the index.

The coordinator places an order for a batch (``orders``), a worker makes the part that is ordered,
by the stages of ingestion on an empty index of its own (``making``), and the coordinator takes it
in as if it had made it itself (``taking``). Which batch is handed out when, and what is tried
again, is decided in ``dispatch``. What they share lies under ``storage.url``:

- ``orders/KEY.json``: the batch's manifest, and what else its reading depends on;
- ``files/KEY/HASH.zip``: files of a batch that waits, for workers that do not see the documents;
- ``parts/KEY/part.json``, written last, and beside it a Parquet file for each table;
- ``slices/HASH/``: texts to be embedded, and their vectors (``slices``).
"""
