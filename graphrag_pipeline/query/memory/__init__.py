"""A release in memory: its graph, names and rows, loaded once and shared by all questions."""
