"""Community reports (GraphRAG, section 3.1.5), by a model or from the text alone."""
