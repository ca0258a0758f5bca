"""The graph: resolution of names, the fold over mentions, communities and their repair."""
