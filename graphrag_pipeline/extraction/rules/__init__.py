"""Extraction by rule: names, noun phrases and their co-occurrence, with no model."""
