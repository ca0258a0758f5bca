"""Ingestion: batches of files become documents, chunks and extractions."""
