"""Presets: the tables and figures of the papers as data, and what makes them from an experiment."""
