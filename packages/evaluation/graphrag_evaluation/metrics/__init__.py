"""Numbers about answers, retrieval and the index, made without a model."""
