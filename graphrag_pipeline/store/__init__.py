"""Storage of an index: DuckDB's file and its schema, LanceDB's tables, what models cost."""
