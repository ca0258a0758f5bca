"""Structures that some methods need beside the graph, each optional and kept up to date."""
