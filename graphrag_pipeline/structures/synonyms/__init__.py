"""Facts with vectors, and synonym edges between entities whose titles are alike (HippoRAG)."""
