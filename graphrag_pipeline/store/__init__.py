"""Where an index is kept: DuckDB's file and its schema, LanceDB's tables, what models cost."""
