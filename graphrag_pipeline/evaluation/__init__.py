"""Evaluation on the user's own corpus: the papers' experiments as a tool."""
