"""Extraction by a language model (GraphRAG, appendix A.1; HiRAG's two passes)."""
