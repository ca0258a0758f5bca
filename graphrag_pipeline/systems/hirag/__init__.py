"""HiRAG's hierarchical knowledge graph: entities that summarise clusters of entities, in layers.

``layers`` clusters and stops, ``writing`` says what a cluster has in common, ``tables`` keeps both
up to date, and ``communities`` clusters the graph of all layers and reports on it.

Source: Huang et al., 2025 (HiRAG), section 4.1, algorithm 1.
"""
