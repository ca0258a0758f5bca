"""Extraction: chunks of text in, mentions of entities and relationships out."""

from graphrag_pipeline.extraction.mentions import Extraction, empty_extraction

__all__ = ["Extraction", "empty_extraction"]
