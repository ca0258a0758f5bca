"""RAPTOR's tree of summaries over chunks."""
