"""Indexes and graphs of other tools, in and out."""
