"""Before and after a run: what it will do and cost, what is outdated, where the index stands."""
