"""Extraction: chunks of text in, mentions of entities and relationships out."""
