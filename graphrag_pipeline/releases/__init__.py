"""Releases: what is published, kept, compared and taken back."""
