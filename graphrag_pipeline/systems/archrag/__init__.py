"""ArchRAG's attributed communities, their reports, and the C-HNSW index over them."""
