"""Common parts of methods by which a model answers: calls, lists, map-reduce, references."""
